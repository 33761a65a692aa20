// SPDX-License-Identifier: Apache-2.0
//
// norm_kept by columns: rows that are not kept, which are read again.
#ifndef WD_OPS_NORM_KEPT_AGAIN_CUH
#define WD_OPS_NORM_KEPT_AGAIN_CUH

#include "ops/norm/norm_kept_device.cuh"

namespace {

// Runs of rows that are read again which are under way at once; backward of two tensors.
constexpr uint32_t AGAIN = 4;
constexpr uint32_t AGAIN_BACKWARD = 2;

template <class T>
__device__ __forceinline__ void load_run(run<T> &to, const T *from, bool whole, int left)
{
    if (whole) {
        to.load(from);
        return;
    }
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        T one;
        wd_narrow(one, 0.0f);
        if (i < left) one = from[i];
        to.put(i, one);
    }
}

template <class T> struct run_pair {
    run<T> x;
    run<T> dy;
};

// f(i, r) of `count` of them in their order, where r is what `ask` gave i: AHEAD are under way always.
template <uint32_t AHEAD, class R, class ASK, class F>
__device__ __forceinline__ void again(uint32_t count, const ASK &ask, const F &f)
{
    R r[AHEAD];
#pragma unroll
    for (uint32_t k = 0; k < AHEAD; ++k) {
        if (k < count) ask(k, r[k]);
    }
    for (uint32_t i = 0; i < count; i += AHEAD) {
#pragma unroll
        for (uint32_t k = 0; k < AHEAD; ++k) {
            if (i + k >= count) break;
            f(i + k, r[k]);
            if (i + k + AHEAD < count) ask(i + k + AHEAD, r[k]);
        }
    }
}

} // namespace

#endif
