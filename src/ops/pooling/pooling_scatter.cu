// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima of windows that overlap, at any alignment.
#include "ops/pooling/pooling_scatter.cuh"

namespace {

template <class T, bool PLANE, int SIZE>
__device__ __forceinline__ void scatter_band(const pool_band_args &a)
{
    wd_wait_for_previous();
    if (a.mode == POOL_MAX) scatter<T, POOL_MAX, PLANE, SIZE>(a);
    else scatter<T, POOL_MAX_NAN, PLANE, SIZE>(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_scatter_kernels.def"
#include "ops/kernels_device.inc"
