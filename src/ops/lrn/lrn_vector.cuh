// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of local response normalization share: powers of the strength, and how results
// are blended into runs of the output. Single precision computes s^-1/2, s^-3/4 and s^-1 from the
// hardware's reciprocal root (2^-22.9 off at most), other powers through logarithms.
#ifndef WD_OPS_LRN_VECTOR_CUH
#define WD_OPS_LRN_VECTOR_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/item.cuh"
#include "gpu/device/roots.cuh"
#include "gpu/device/vector.cuh"
#include "ops/lrn/any_power.cuh"
#include "ops/lrn/lrn_vector_args.h"
#include "ops/lrn/window_sums.cuh"

namespace {

template <class T, int V> __device__ __forceinline__ void clear(wd_run<T, V> &run)
{
    if constexpr (wd_run<T, V>::WORDS > 0) {
#pragma unroll
        for (int i = 0; i < wd_run<T, V>::WORDS; ++i) run.word[i] = 0;
    } else {
        run.half_word = 0;
    }
}

// A call's numbers, in the accumulator's type.
template <class A> __device__ __forceinline__ const auto &numbers(const lrn_vector_args &a)
{
    if constexpr (sizeof(A) == 8) return a.full;
    else return a.single;
}

// s^-B, and 1 / s. Strengths are positive, infinite or NaN. ANY_FIRST: which exponent it is, is asked in the order
// in which nvcc spills no registers of forward walks with any window.
template <int V, bool ANY_FIRST = false, class A>
__device__ __forceinline__ void powers(const lrn_vector_args &a, const A *s, A *power, A *inverse)
{
    A r[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
        r[v] = wd_inverse_root(s[v]);
        inverse[v] = r[v] * r[v];
    }
    if (ANY_FIRST && a.power == LRN_POWER_ANY) {
#pragma unroll
        for (int v = 0; v < V; ++v) power[v] = any_power(s[v], numbers<A>(a).exponent);
    } else if (__builtin_expect(a.power == LRN_POWER_THREE_QUARTERS, 1)) {
#pragma unroll
        for (int v = 0; v < V; ++v) power[v] = r[v] * wd_root(r[v]);
    } else if (!ANY_FIRST && a.power == LRN_POWER_ANY) {
#pragma unroll
        for (int v = 0; v < V; ++v) power[v] = any_power(s[v], numbers<A>(a).exponent);
    } else {
#pragma unroll
        for (int v = 0; v < V; ++v) power[v] = a.power == LRN_POWER_ONE ? inverse[v] : r[v];
    }
}

// alpha * value + beta * what is there.
template <class A> __device__ __forceinline__ A blended(const lrn_vector_args &a, A value, A old)
{
    A r = a.scales ? numbers<A>(a).alpha * value : (A)0;
    if (a.blends) r += numbers<A>(a).beta * old;
    return r;
}

template <class T, int V, class A>
__device__ __forceinline__ void put(const lrn_vector_args &a, T *to, const A *value)
{
    wd_run<T, V> run;
    if (__builtin_expect(a.plain, 1)) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            T narrow;
            wd_narrow(narrow, numbers<A>(a).alpha * value[v]);
            run.put(v, narrow);
        }
    } else {
        clear(run);
        if (a.blends) run.load(to);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            T narrow;
            wd_narrow(narrow, blended<A>(a, value[v], wd_widen(run.get(v))));
            run.put(v, narrow);
        }
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

} // namespace

#endif
