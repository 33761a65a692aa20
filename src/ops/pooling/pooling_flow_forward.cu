// SPDX-License-Identifier: Apache-2.0
//
// Pooling of 3x3 by rows that flow through shared memory.
#include "ops/pooling/pooling_flow_body.cuh"

namespace {

template <class T> __device__ __forceinline__ void pool_flow(const pool_flow_args &a)
{
    wd_wait_for_previous();
    if (threadIdx.x >= a.threads) {
        flow_copies<T, false>(a);
    } else if (a.from.per == 1) {
        if (a.mode == POOL_AVERAGE) flow_works<flow_windows<T, true, 1, false>>(a);
        else flow_works<flow_windows<T, false, 1, false>>(a);
    } else {
        if (a.mode == POOL_AVERAGE) flow_works<flow_windows<T, true, 2, false>>(a);
        else flow_works<flow_windows<T, false, 2, false>>(a);
    }
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_flow_forward_kernels.def"
#include "ops/kernels_device.inc"
