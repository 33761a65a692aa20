// SPDX-License-Identifier: Apache-2.0
//
// What pooling kernels share: how elements of a window are put together, where windows lie, and how
// results are stored.
#ifndef WD_OPS_POOLING_WINDOW_CUH
#define WD_OPS_POOLING_WINDOW_CUH

#include <type_traits>

#include "base/fastdiv.h"
#include "gpu/device/depend.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/vector.cuh"

namespace {

template <class T> using acc = decltype(wd_widen(T()));

__device__ __forceinline__ float larger(float a, float b)
{
    return fmaxf(a, b);
}
__device__ __forceinline__ double larger(double a, double b)
{
    return a >= b || b != b ? a : b;
}
__device__ __forceinline__ float nan_or_larger(float a, float b)
{
    return wd_larger_or_nan(a, b);
}
__device__ __forceinline__ double nan_or_larger(double a, double b)
{
    return a != a || b < a ? a : b;
}

// 1 / n, rounded to nearest but for rare cases. A division would bring a call for denormal numbers.
template <class A> __device__ __forceinline__ A inverse(int n)
{
    const float about = __fdividef(1.0f, (float)n);
    const float near = fmaf(about, fmaf(-(float)n, about, 1.0f), about);
    if constexpr (sizeof(A) == 4) return near;
    const double nearer = fma((double)near, fma(-(double)n, (double)near, 1.0), (double)near);
    return (A)fma(nearer, fma(-(double)n, nearer, 1.0), nearer);
}

// What there is before the first element: NaN where NaN is no candidate. Where it is one, every
// element is, and the window's extent tells whether there was any.
template <int MODE, class A> __device__ __forceinline__ A nothing()
{
    if (MODE == POOL_AVERAGE) return (A)0;
    return MODE == POOL_MAX ? (A)__uint_as_float(0x7fc00000u) : (A)__uint_as_float(0xff800000u);
}

template <int MODE, class A> __device__ __forceinline__ void take(A &value, A v)
{
    if (MODE == POOL_AVERAGE) value += v;
    else if (MODE == POOL_MAX) value = larger(value, v);
    else value = nan_or_larger(value, v);
}

// The largest so far and where it is; elements come in row-major order.
template <int MODE, class A> struct window_place {
    A value;
    uint32_t code;

    __device__ __forceinline__ void clear()
    {
        value = nothing<MODE, A>();
        code = POOL_NO_CODE;
    }
    // A value that is not a NaN beats the NaN of the beginning by not being smaller or equal.
    __device__ __forceinline__ void take(A v, uint32_t at)
    {
        bool takes;
        if (MODE == POOL_MAX) takes = !(v <= value) && v == v;
        else takes = code == POOL_NO_CODE || (!(v <= value) && value == value);
        value = takes ? v : value;
        code = takes ? at : code;
    }
};

// n = quotient * divisor + the result; n becomes the quotient.
__device__ __forceinline__ uint32_t take_rest(uint32_t &n, const wd_fastdiv &by)
{
    const uint32_t quotient = wd_fastdiv_quotient(n, by);
    const uint32_t rest = n - quotient * by.divisor;
    n = quotient;
    return rest;
}

// alpha * value + beta * out, to a run; `a` has the fields of every pooling kernel's arguments.
template <class T, int V, class ARGS>
__device__ __forceinline__ void put(const ARGS &a, size_t at, const acc<T> *value)
{
    T *to = static_cast<T *>(a.out) + at;
    const acc<T> alpha = (acc<T>)a.alpha, beta = (acc<T>)a.beta;
    wd_run<T, V> old, run;
    if (a.blends) old.load(to);
#pragma unroll
    for (int i = 0; i < V; ++i) {
        acc<T> r = a.scales ? alpha * value[i] : (acc<T>)0;
        if (a.blends) r += beta * wd_widen(old.get(i));
        T narrow;
        wd_narrow(narrow, r);
        run.put(i, narrow);
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

} // namespace

#endif
