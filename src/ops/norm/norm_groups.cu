// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm and their gradients at the speed of memory: shares that fit the shared memory
// of a cluster are read once, others twice, and what blocks found is joined in between. All sums are
// joined in an order that depends on shape and device alone.
#include "ops/norm/norm_groups_columns.cuh"
#include "ops/norm/norm_groups_planes.cuh"

namespace {

// A share's place in the kernels between: `lanes` threads have it.
struct finish_seat {
    uint32_t share;
    uint32_t sample;
    uint32_t group;
    uint32_t lane;
};

__device__ __forceinline__ finish_seat finish_seat_of(const norm_groups_args &a)
{
    finish_seat s;
    s.share = blockIdx.x * (blockDim.x / a.lanes) + threadIdx.x / a.lanes;
    s.lane = threadIdx.x % a.lanes;
    s.sample = s.share / a.groups;
    s.group = s.share - s.sample * a.groups;
    return s;
}

// The share's number `j` of `each` neighbours a slice, of rows of `units`.
__device__ __forceinline__ int64_t found_at(const norm_groups_args &a, const finish_seat &s,
                                            uint32_t j, uint32_t each, uint32_t units)
{
    const uint32_t slice = j / each;
    return ((int64_t)s.sample * a.slices + slice) * units + s.group * each + (j - slice * each);
}

// Statistics of shares, from what segments found.
__device__ __forceinline__ void groups_statistics(const norm_groups_args &a)
{
    __shared__ wd_part of_warp[NORM_GROUPS_FINISH_THREADS / WARP];
    const finish_seat s = finish_seat_of(a);
    const uint32_t each = a.units / a.groups;
    wd_part all = {0.0, 0.0, 0.0};
    wd_wait_for_previous();
    for (uint32_t j = s.lane; s.share < a.shares && j < a.slices * each; j += a.lanes) {
        const norm_groups_part &one = a.parts[found_at(a, s, j, each, a.units)];
        wd_join_parts(all, wd_part{one.count, one.mean, one.squares});
    }
    join_lanes(all, WARP);
    if (a.lanes > WARP) {
        if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = all;
        __syncthreads();
        for (uint32_t w = 1; threadIdx.x == 0 && w < blockDim.x / WARP; ++w) {
            wd_join_parts(all, of_warp[w]);
        }
    }
    if (s.lane == 0 && s.share < a.shares) {
        a.numbers[s.share] = numbers_of(a, s.share, all, true);
    }
}

// Backward: a / n and b / n of shares, from the sums of their channels.
__device__ __forceinline__ void groups_gradients(const norm_groups_args &a)
{
    __shared__ sums of_warp[NORM_GROUPS_FINISH_THREADS / WARP];
    const finish_seat s = finish_seat_of(a);
    sums all = {0.0f, 0.0f};
    wd_wait_for_previous();
    for (uint32_t j = s.lane; s.share < a.shares && j < a.slices * a.each; j += a.lanes) {
        const sums one = a.sums[found_at(a, s, j, a.each, a.channels)];
        const float scale = param_at(a.scale, s.group * a.each + j % a.each);
        all.dy = fmaf(scale, one.dy, all.dy);
        all.dy_xhat = fmaf(scale, one.dy_xhat, all.dy_xhat);
    }
    all = add_lanes(all, WARP);
    if (a.lanes > WARP) {
        if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = all;
        __syncthreads();
        for (uint32_t w = 1; threadIdx.x == 0 && w < blockDim.x / WARP; ++w) join(all, of_warp[w]);
    }
    if (s.lane == 0 && s.share < a.shares) {
        a.numbers[s.share] = {all.dy * a.inverse, all.dy_xhat * a.inverse, 0.0f, 0.0f};
    }
}

// dscale and dbias over samples and slices.
__device__ __forceinline__ void groups_params(const norm_groups_args &a)
{
    wd_wait_for_previous();
    sum_params<NORM_GROUPS_PARAMS, NORM_ROWS_THREADS / WARP>(
        a.sums, a.samples * a.slices, a.channels, blockIdx.x * NORM_GROUPS_PARAMS, a.dscale,
        a.dbias, [](uint32_t, uint32_t) { return true; });
}

} // namespace

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_groups_kernels.def"
#include "ops/kernels_device.inc"
