// SPDX-License-Identifier: Apache-2.0
//
// Gradients of windows of 3x3, by sheets.
#include "ops/pooling/pooling_sheet.cuh"
#include "ops/pooling/pooling_sheet_max.cuh"
#include "ops/pooling/pooling_warp_max.cuh"
#include "ops/pooling/pooling_warp_sum.cuh"

namespace {

template <class T> __device__ __forceinline__ void sheet_spread(const pool_band_args &a)
{
    band_box b;
    wd_wait_for_previous();
    band_stage<T, 1>(a, a.dy, b);
    band_columns<T, POOL_AVERAGE, 1, true>(a, b);
}

template <class T> __device__ __forceinline__ void sheet_of_pairs(const pool_band_args &a)
{
    wd_wait_for_previous();
    sheet_pairs<T>(a);
}

template <class T> __device__ __forceinline__ void warp_max(const pool_warp_args &a)
{
    wd_wait_for_previous();
    warp_maxima<T>(a);
}

template <class T> __device__ __forceinline__ void warp_pairs(const pool_warp_args &a)
{
    wd_wait_for_previous();
    warp_sums<T>(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_sheet_kernels.def"
#include "ops/kernels_device.inc"
