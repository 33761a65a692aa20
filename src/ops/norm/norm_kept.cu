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

// dscale and dbias over samples and blocks.
__device__ __forceinline__ void kept_params(const norm_kept_args &a)
{
    wd_wait_for_previous();
    sum_params<NORM_KEPT_FINISH, NORM_ROWS_THREADS / WARP>(
        a.sums, a.samples * a.slices, a.channels, blockIdx.x * NORM_KEPT_FINISH, a.dscale, a.dbias,
        [&](uint32_t row, uint32_t channel) { return has_sums(a, row, channel); });
}

} // namespace

// left alone the compiler spills where it thinks that more blocks fit
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/norm_kept_kernels.def"
#include "ops/kernels_device.inc"
