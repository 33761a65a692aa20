// SPDX-License-Identifier: Apache-2.0
//
// Gradients of windows of 3x3 by rows that flow through shared memory.
#include "ops/pooling/pooling_flow_body.cuh"
#include "ops/pooling/pooling_flow_max.cuh"

namespace {

template <class T> __device__ __forceinline__ void flow_of_maxima(const pool_flow_args &a)
{
    wd_wait_for_previous();
    if (threadIdx.x >= a.threads) flow_copies<T, true>(a);
    else if (a.mode == POOL_MAX) flow_works<flow_maxima<T, POOL_MAX>>(a);
    else flow_works<flow_maxima<T, POOL_MAX_NAN>>(a);
}

template <class T> __device__ __forceinline__ void flow_of_averages(const pool_flow_args &a)
{
    wd_wait_for_previous();
    if (threadIdx.x >= a.threads) flow_copies<T, false>(a);
    else if (a.from.span == 3) flow_works<flow_spread<T>>(a);
    else flow_works<flow_pairs<T>>(a);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_flow_back_kernels.def"
#include "ops/kernels_device.inc"
