// SPDX-License-Identifier: Apache-2.0
//
// What a thread's number says, and how what it made goes out: coordinates taken off a number one by
// one, and alpha * value + beta * old stored by runs.
#ifndef WD_GPU_DEVICE_ITEM_CUH
#define WD_GPU_DEVICE_ITEM_CUH

#include "base/fastdiv.h"
#include "gpu/device/vector.cuh"

// n = quotient * divisor + the result; n becomes the quotient.
static __device__ __forceinline__ uint32_t wd_take_rest(uint32_t &n, const wd_fastdiv &by)
{
    const uint32_t quotient = wd_fastdiv_quotient(n, by);
    const uint32_t rest = n - quotient * by.divisor;
    n = quotient;
    return rest;
}

// alpha * value + beta * out, to the run at `at`. `a` has out, alpha, beta, whether alpha `scales` and
// beta `blends` (is not 0), and whether stores are `streaming`, as kernels' arguments do.
template <class T, int V, class ARGS, class A>
__device__ __forceinline__ void wd_put_run(const ARGS &a, size_t at, const A *value)
{
    T *to = static_cast<T *>(a.out) + at;
    const A alpha = (A)a.alpha, beta = (A)a.beta;
    wd_run<T, V> old, run;
    if (a.blends) old.load(to);
#pragma unroll
    for (int i = 0; i < V; ++i) {
        A r = a.scales ? alpha * value[i] : (A)0;
        if (a.blends) r += beta * wd_widen(old.get(i));
        T narrow;
        wd_narrow(narrow, r);
        run.put(i, narrow);
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

#endif
