// SPDX-License-Identifier: Apache-2.0
//
// What the 32 threads of a warp know of each other. All of them call these together.
#ifndef WD_GPU_DEVICE_WARP_CUH
#define WD_GPU_DEVICE_WARP_CUH

#include <stdint.h>

// A bit a thread: where `it` holds.
static __device__ __forceinline__ uint32_t wd_ballot(bool it)
{
    return __ballot_sync(0xffffffffu, it);
}

// Whether it holds of any thread of the warp.
static __device__ __forceinline__ bool wd_any(bool it)
{
    return __any_sync(0xffffffffu, it);
}

// A bit a thread: those that have the same value.
static __device__ __forceinline__ uint32_t wd_peers(uint32_t value)
{
    return __match_any_sync(0xffffffffu, value);
}

static __device__ __forceinline__ uint32_t wd_bits(uint32_t mask)
{
    return (uint32_t)__popc(mask);
}

// The lowest bit that is set, of a mask that is not 0.
static __device__ __forceinline__ uint32_t wd_lowest(uint32_t mask)
{
    return (uint32_t)__ffs((int)mask) - 1;
}

#endif
