// SPDX-License-Identifier: Apache-2.0
//
// The host's version of gpu/device/warp.cuh: by exchanges.
#ifndef WD_GPU_DEVICE_WARP_CUH
#define WD_GPU_DEVICE_WARP_CUH

#include <stdint.h>

static inline uint32_t wd_ballot(bool it)
{
    uint32_t mask = it ? 1u << threadIdx.x % 32 : 0;
    for (int by = 16; by > 0; by /= 2) mask |= __shfl_xor_sync(0xffffffffu, mask, by);
    return mask;
}

static inline bool wd_any(bool it)
{
    int any = it;
    for (int by = 16; by > 0; by /= 2) any |= __shfl_xor_sync(0xffffffffu, any, by);
    return any;
}

static inline uint32_t wd_peers(uint32_t value)
{
    uint32_t mask = 0;
    for (int by = 0; by < 32; ++by) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, value, by);
        if (other == value) mask |= 1u << (threadIdx.x % 32 ^ (uint32_t)by);
    }
    return mask;
}

static inline uint32_t wd_bits(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

static inline uint32_t wd_lowest(uint32_t mask)
{
    return (uint32_t)__builtin_ctz(mask);
}

#endif
