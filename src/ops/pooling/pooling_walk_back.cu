// SPDX-License-Identifier: Apache-2.0
//
// Gradients of averages over overlapping windows of pixels, which begin at every element.
#include "ops/pooling/pooling_walk.cuh"

namespace {

template <class T, int K, int N, bool FLAT>
__device__ __forceinline__ void spread_walk(const pool_walk_args &a)
{
    wd_wait_for_previous();
    walk<T, POOL_AVERAGE, K, 1, N, true, FLAT>(a);
}

} // namespace

#define WD_KERNELS_ROWS "ops/pooling/pooling_walk_back_kernels.def"
#include "ops/kernels_device.inc"
