// SPDX-License-Identifier: Apache-2.0
//
// Elements of one type to another at the same place of memory. Lanes have neighbouring units of four
// elements, so that each access of a warp is whole sectors in either type, and a thread loads eight
// units before it stores the first.
#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "ops/tensor/identity_convert_args.h"

namespace {

template <class X, class Y> __device__ void convert(const convert_args &a)
{
    constexpr int N = CONVERT_ELEMENTS, UNITS = CONVERT_UNITS;
    const X *x = static_cast<const X *>(a.x);
    Y *y = static_cast<Y *>(a.y);
    const int64_t first = (int64_t)blockIdx.x * blockDim.x * UNITS + threadIdx.x;
    wd_run<X, N> from[UNITS];
    wd_wait_for_previous();
#pragma unroll
    for (int u = 0; u < UNITS; ++u) {
        const int64_t at = (first + u * (int)blockDim.x) * N - a.shift;
        if (a.alike && at >= 0 && at + N <= a.count) {
            from[u].load(x + at);
        } else {
#pragma unroll
            for (int j = 0; j < N; ++j) {
                if (at + j >= 0 && at + j < a.count) from[u].put(j, x[at + j]);
            }
        }
    }
#pragma unroll
    for (int u = 0; u < UNITS; ++u) {
        const int64_t at = (first + u * (int)blockDim.x) * N - a.shift;
        wd_run<Y, N> to;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            Y element;
            wd_narrow(element, wd_widen(from[u].get(j)));
            to.put(j, element);
        }
        if (at >= 0 && at + N <= a.count) {
            if (a.streaming) to.store_streaming(y + at);
            else to.store(y + at);
        } else {
#pragma unroll
            for (int j = 0; j < N; ++j) {
                if (at + j >= 0 && at + j < a.count) y[at + j] = to.get(j);
            }
        }
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/tensor/identity_convert_kernels.def"
#include "ops/kernels_device.inc"
