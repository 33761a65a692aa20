// SPDX-License-Identifier: Apache-2.0
//
// Pooling by boxes of lines, at any alignment.
#include "ops/pooling/pooling_band_columns.cuh"
#include "ops/pooling/pooling_band_planes.cuh"

namespace {

template <class T, int MODE, int STRIDE, int ROWS>
__device__ __forceinline__ void band_of(const pool_band_args &a, const band_box &b)
{
    if constexpr (sizeof(T) < 8) band_columns<T, MODE, STRIDE, false>(a, b);
    else band_windows<T, MODE, 3, STRIDE, ROWS, false>(a, b); // has time
}

template <class T, int STRIDE, int ROWS>
__device__ __forceinline__ void pool_band(const pool_band_args &a)
{
    band_box b;
    wd_wait_for_previous();
    band_stage<T, STRIDE>(a, a.x, b);
    if (a.mode == POOL_AVERAGE) band_of<T, POOL_AVERAGE, STRIDE, ROWS>(a, b);
    else if (a.mode == POOL_MAX) band_of<T, POOL_MAX, STRIDE, ROWS>(a, b);
    else band_of<T, POOL_MAX_NAN, STRIDE, ROWS>(a, b);
}

template <class T> __device__ __forceinline__ void pool_planes(const pool_band_args &a)
{
    planes_box b;
    wd_wait_for_previous();
    planes_stage<T>(a, b);
    if (a.mode == POOL_AVERAGE) band_planes<T, POOL_AVERAGE>(a, b);
    else if (a.mode == POOL_MAX) band_planes<T, POOL_MAX>(a, b);
    else band_planes<T, POOL_MAX_NAN>(a, b);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_band_forward_kernels.def"
#include "ops/kernels_device.inc"
