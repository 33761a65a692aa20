// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring lanes, a power of two by its logarithm, that join what they have of one item, set or channel, each a share.
#ifndef WD_OPS_NORM_BN_GRID_SHARES_CUH
#define WD_OPS_NORM_BN_GRID_SHARES_CUH

#include "ops/norm/bn_grid_device.cuh"

namespace {

struct lane_share {
    uint32_t index; // of what is joined
    uint32_t share;
};

__device__ __forceinline__ lane_share share_of_lane(uint32_t bits)
{
    return {threadIdx.x >> bits, threadIdx.x & ((1u << bits) - 1)};
}

// The sum over such lanes, which all of them have then. All threads of a warp come here together.
__device__ __forceinline__ double sum_of_lanes(uint32_t bits, double v)
{
#pragma unroll 1
    for (uint32_t m = 1; m < 1u << bits; m *= 2) v += __shfl_xor_sync(0xffffffffu, v, m);
    return v;
}

__device__ __forceinline__ double2 sum_of_lanes(uint32_t bits, double2 v)
{
#pragma unroll 1
    for (uint32_t m = 1; m < 1u << bits; m *= 2) {
        v.x += __shfl_xor_sync(0xffffffffu, v.x, m);
        v.y += __shfl_xor_sync(0xffffffffu, v.y, m);
    }
    return v;
}

} // namespace

#endif
