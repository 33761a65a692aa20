// SPDX-License-Identifier: Apache-2.0
//
// A word of memory that threads share, exchanged at once.
#ifndef WD_GPU_DEVICE_EXCHANGE_CUH
#define WD_GPU_DEVICE_EXCHANGE_CUH

#include <stdint.h>

// Returns what was there.
static __device__ __forceinline__ uint32_t wd_exchange(uint32_t *at, uint32_t value)
{
    return atomicExch(at, value);
}

#endif
