// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm of what fits the shared memory of a block or cluster: one kernel, one
// reading, and in backward a small one for dscale and dbias. norm_kept_args.h says how x is gone
// through.
#include "ops/norm/norm_kept_columns.cuh"
#include "ops/norm/norm_kept_planes_backward.cuh"

namespace {

// By planes, how many blocks have something of a channel: `part` is elements here.
__device__ __forceinline__ uint32_t slices_of(const norm_kept_args &a, uint32_t sample,
                                              uint32_t channel)
{
    const uint32_t group = channel / a.each;
    const int64_t share = (int64_t)sample * a.groups + group;
    const uint32_t first = (channel - group * a.each) * a.plane;
    const uint32_t skip = (uint32_t)(share * a.length + a.shift) % a.lanes;
    return (first + skip + a.plane - 1) / a.part - (first + skip) / a.part + 1;
}

__device__ __forceinline__ bool has_sums(const norm_kept_args &a, uint32_t row, uint32_t channel)
{
    if (a.length == 0 || a.slices == 1) return true;
    return row % a.slices < slices_of(a, row / a.slices, channel);
}

constexpr uint32_t ROWS_AT_ONCE = 8;

// dscale and dbias over samples and blocks: lanes are channels and rows of sums, and so are warps.
__device__ __forceinline__ void kept_params(const norm_kept_args &a)
{
    __shared__ double of_warp[2][NORM_ROWS_THREADS / WARP][NORM_KEPT_FINISH];
    const uint32_t lane = threadIdx.x % NORM_KEPT_FINISH;
    const uint32_t warp = threadIdx.x / NORM_KEPT_FINISH; // so many channels' worth of one
    const uint32_t warps = blockDim.x / NORM_KEPT_FINISH;
    const uint32_t channel = blockIdx.x * NORM_KEPT_FINISH + lane;
    double dy = 0.0, dy_xhat = 0.0;
    wd_wait_for_previous();
    if (channel < a.channels) {
        const uint32_t rows = a.samples * a.slices;
        const norm_kept_sums *of = a.sums + channel;
        for (uint32_t first = warp; first < rows; first += ROWS_AT_ONCE * warps) {
            norm_kept_sums some[ROWS_AT_ONCE];
#pragma unroll
            for (uint32_t k = 0; k < ROWS_AT_ONCE; ++k) {
                const uint32_t row = first + k * warps;
                some[k] = {0.0f, 0.0f};
                if (row < rows && has_sums(a, row, channel)) {
                    some[k] = of[(int64_t)row * a.channels];
                }
            }
#pragma unroll
            for (uint32_t k = 0; k < ROWS_AT_ONCE; ++k) {
                dy += some[k].dy, dy_xhat += some[k].dy_xhat;
            }
        }
    }
    for (uint32_t lanes = NORM_KEPT_FINISH; lanes < WARP; lanes *= 2) {
        dy += __shfl_xor_sync(WHOLE_WARP, dy, (int)lanes);
        dy_xhat += __shfl_xor_sync(WHOLE_WARP, dy_xhat, (int)lanes);
    }
    if (threadIdx.x % WARP < NORM_KEPT_FINISH) {
        of_warp[0][threadIdx.x / WARP][lane] = dy;
        of_warp[1][threadIdx.x / WARP][lane] = dy_xhat;
    }
    __syncthreads();
    if (warp > 0 || channel >= a.channels) return;
    for (uint32_t w = 1; w < blockDim.x / WARP; ++w)
        dy += of_warp[0][w][lane], dy_xhat += of_warp[1][w][lane];
    set_param(a.dbias, channel, (float)dy);
    set_param(a.dscale, channel, (float)dy_xhat);
}

} // namespace

// left alone the compiler spills where it thinks that more blocks fit
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/norm_kept_kernels.def"
#include "ops/kernels_device.inc"
