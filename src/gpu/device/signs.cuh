// SPDX-License-Identifier: Apache-2.0
//
// Upper bits of the halves of words as masks: one permutation of bytes, which can copy a byte's sign.
#ifndef WD_GPU_DEVICE_SIGNS_CUH
#define WD_GPU_DEVICE_SIGNS_CUH

#include <stdint.h>

// A nibble of SELECTOR is a byte of the answer, the lowest first: 8 and the number of a byte of `low`
// (0 to 3) or `high` (4 to 7), whose sign it is.
template <uint32_t SELECTOR>
static __device__ __forceinline__ uint32_t wd_signs(uint32_t low, uint32_t high)
{
    uint32_t signs;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(signs) : "r"(low), "r"(high), "n"(SELECTOR));
    return signs;
}

#endif
