// SPDX-License-Identifier: Apache-2.0
//
// Pooling by boxes of lines, at any alignment.
#include "ops/pooling/pooling_band_body.cuh"
#include "ops/pooling/pooling_band_planes.cuh"

namespace {

template <class T, bool PLANE, int STRIDE, int ROWS>
__device__ __forceinline__ void pool_band(const pool_band_args &a)
{
    wd_wait_for_previous();
    if (a.mode == POOL_AVERAGE) band_windows<T, POOL_AVERAGE, PLANE, 3, STRIDE, ROWS, false>(a);
    else if (a.mode == POOL_MAX) band_windows<T, POOL_MAX, PLANE, 3, STRIDE, ROWS, false>(a);
    else band_windows<T, POOL_MAX_NAN, PLANE, 3, STRIDE, ROWS, false>(a);
}

template <class T> __device__ __forceinline__ void pool_planes(const pool_band_args &a)
{
    wd_wait_for_previous();
    if (a.mode == POOL_AVERAGE) band_planes<T, POOL_AVERAGE>(a);
    else if (a.mode == POOL_MAX) band_planes<T, POOL_MAX>(a);
    else band_planes<T, POOL_MAX_NAN>(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_band_forward_kernels.def"
#include "ops/kernels_device.inc"
