// SPDX-License-Identifier: Apache-2.0
//
// Gradients of windows that overlap by boxes of lines, at any alignment.
#include "ops/pooling/pooling_band_body.cuh"
#include "ops/pooling/pooling_scatter.cuh"

namespace {

template <class T, bool PLANE, int SIZE>
__device__ __forceinline__ void scatter_band(const pool_band_args &a)
{
    wd_wait_for_previous();
    if (a.mode == POOL_MAX) scatter<T, POOL_MAX, PLANE, SIZE>(a);
    else scatter<T, POOL_MAX_NAN, PLANE, SIZE>(a);
}

template <class T, bool PLANE> __device__ __forceinline__ void spread_band(const pool_band_args &a)
{
    wd_wait_for_previous();
    band_windows<T, POOL_AVERAGE, PLANE, 3, 1, 4, true>(a);
}

template <class T, bool PLANE> __device__ __forceinline__ void pairs_band(const pool_band_args &a)
{
    wd_wait_for_previous();
    band_spread_pairs<T, PLANE, 2>(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_band_back_kernels.def"
#include "ops/kernels_device.inc"
