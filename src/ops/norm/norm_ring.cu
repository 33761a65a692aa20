// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm with a ring of runs under way: one reading, one writing, and in backward a
// small kernel for dscale and dbias. norm_ring_args.h says how x is gone through.
#include "ops/norm/norm_ring_columns.cuh"
#include "ops/norm/norm_ring_planes.cuh"

namespace {

// By planes not all blocks of a team have something of a channel.
__device__ __forceinline__ bool has_sums(const norm_ring_args &a, uint32_t row, uint32_t channel)
{
    if (a.slices == 0) return true;
    return row % a.slices < slices_of(a, channel % a.each);
}

// dscale and dbias over blocks and samples: a warp's lanes are channels, and warps have rows of sums.
__device__ __forceinline__ void ring_params(const norm_ring_args &a)
{
    __shared__ double of_warp[2][NORM_ROWS_THREADS / WARP][WARP];
    const uint32_t lane = threadIdx.x % WARP;
    const uint32_t warp = threadIdx.x / WARP;
    const uint32_t warps = blockDim.x / WARP;
    const uint32_t channel = blockIdx.x * NORM_RING_FINISH + lane;
    double dy = 0.0, dy_xhat = 0.0;
    wd_wait_for_previous();
    if (channel < a.channels) {
#pragma unroll 8
        for (uint32_t row = warp; row < a.sum_rows; row += warps) {
            if (!has_sums(a, row, channel)) continue;
            const norm_ring_sums one = a.sums[(int64_t)row * a.channels + channel];
            dy += one.dy, dy_xhat += one.dy_xhat;
        }
    }
    of_warp[0][warp][lane] = dy;
    of_warp[1][warp][lane] = dy_xhat;
    __syncthreads();
    if (warp > 0 || channel >= a.channels) return;
    for (uint32_t w = 1; w < warps; ++w) dy += of_warp[0][w][lane], dy_xhat += of_warp[1][w][lane];
    set_param(a.dbias, channel, (float)dy);
    set_param(a.dscale, channel, (float)dy_xhat);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/norm_ring_kernels.def"
#include "ops/kernels_device.inc"
