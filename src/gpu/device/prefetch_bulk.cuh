// SPDX-License-Identifier: Apache-2.0
//
// Much that is read soon is asked for, up to the second-level cache, by one instruction.
#ifndef WD_GPU_DEVICE_PREFETCH_BULK_CUH
#define WD_GPU_DEVICE_PREFETCH_BULK_CUH

#include <stdint.h>

// A multiple of 16 bytes, from a boundary of 16 on; nothing below compute capability 9.0.
static __device__ __forceinline__ void wd_prefetch_bytes(const void *at, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
                 :
                 : "l"(__cvta_generic_to_global(at)), "r"(bytes));
#endif
}

#endif
