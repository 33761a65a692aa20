// SPDX-License-Identifier: Apache-2.0
//
// Overlapping windows of pixels, forward.
#include "ops/pooling/pooling_walk.cuh"

namespace {

template <class T, int K, int S, int N, bool FLAT>
__device__ __forceinline__ void pool_walk(const pool_walk_args &a)
{
    wd_wait_for_previous();
    if (a.mode == POOL_AVERAGE) walk<T, POOL_AVERAGE, K, S, N, false, FLAT>(a);
    else if (a.mode == POOL_MAX) walk<T, POOL_MAX, K, S, N, false, FLAT>(a);
    else walk<T, POOL_MAX_NAN, K, S, N, false, FLAT>(a);
}

} // namespace

// Of flat images as many blocks of a processor as there is room for.
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_walk_kernels.def"
#include "ops/kernels_device.inc"
