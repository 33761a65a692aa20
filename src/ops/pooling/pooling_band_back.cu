// SPDX-License-Identifier: Apache-2.0
//
// Gradients of windows that overlap by boxes of lines, at any alignment.
#include "ops/pooling/pooling_band_body.cuh"
#include "ops/pooling/pooling_scatter.cuh"

namespace {

template <class T> __device__ __forceinline__ void scatter_band(const pool_band_args &a)
{
    wd_wait_for_previous();
    scatter<T>(a);
}

template <class T> __device__ __forceinline__ void spread_band(const pool_band_args &a)
{
    band_box b;
    wd_wait_for_previous();
    band_stage<T, 1>(a, a.dy, b);
    band_windows<T, POOL_AVERAGE, 3, 1, 4, true>(a, b);
}

template <class T> __device__ __forceinline__ void pairs_band(const pool_band_args &a)
{
    wd_wait_for_previous();
    band_spread_pairs<T, 2>(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_band_back_kernels.def"
#include "ops/kernels_device.inc"
