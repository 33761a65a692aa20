// SPDX-License-Identifier: Apache-2.0
//
// Gradients of overlapping windows: averages of pixels over windows that begin at every element, maxima of
// those at a stride of 2, of pixels and of planes.
#include "ops/pooling/pooling_columns.cuh"
#include "ops/pooling/pooling_walk.cuh"
#include "ops/pooling/pooling_walk_max.cuh"

namespace {

template <class T, int K, int N, bool FLAT>
__device__ __forceinline__ void spread_walk(const pool_walk_args &a)
{
    wd_wait_for_previous();
    walk<T, POOL_AVERAGE, K, 1, N, true, FLAT>(a);
}

template <class T, int PAIRS> __device__ __forceinline__ void grad_walk(const pool_walk_args &a)
{
    wd_wait_for_previous();
    if (a.mode == POOL_MAX) walk_maxima<T, POOL_MAX, PAIRS>(a);
    else walk_maxima<T, POOL_MAX_NAN, PAIRS>(a);
}

template <class T, int PAD, bool RUNS>
__device__ __forceinline__ void grad_columns(const pool_columns_args &a)
{
    wd_wait_for_previous();
    if (a.mode == POOL_MAX) column_maxima<T, POOL_MAX, PAD, RUNS>(a);
    else column_maxima<T, POOL_MAX_NAN, PAD, RUNS>(a);
}

} // namespace

// Of flat images as many blocks of a processor as there is room for.
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_walk_back_kernels.def"
#include "ops/kernels_device.inc"
