// SPDX-License-Identifier: Apache-2.0
//
// What pooling kernels share: how elements of a window are put together.
#ifndef WD_OPS_POOLING_WINDOW_CUH
#define WD_OPS_POOLING_WINDOW_CUH

#include <type_traits>

#include "gpu/device/depend.cuh"
#include "gpu/device/item.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/packed.cuh"
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

// Where results go, as wd_put_run has it: scalars converted once, not at every store.
template <class A> struct pool_out {
    void *out;
    A alpha;
    A beta;
    bool scales;
    bool blends;
    bool streaming;
    template <class ARGS>
    __device__ __forceinline__ explicit pool_out(const ARGS &a)
        : out(a.out), alpha((A)a.alpha), beta((A)a.beta), scales(a.scales != 0),
          blends(a.blends != 0), streaming(a.streaming != 0)
    {
    }
    // One element: most calls blend with nothing.
    template <class T> __device__ __forceinline__ void put(size_t at, const A &value) const
    {
        if (blends || !scales) {
            wd_put_run<T, 1>(*this, at, &value);
            return;
        }
        put_plain<T>(at, value);
    }
    // One element of a call that blends with nothing.
    template <class T> __device__ __forceinline__ void put_plain(size_t at, const A &value) const
    {
        T narrow;
        wd_narrow(narrow, alpha * value);
        static_cast<T *>(out)[at] = narrow;
    }
};

// A run of results, alpha * factor of it: engines whose calls never blend, for what blending takes is a fifth
// of a walk's instructions even where it is merely predicated.
template <class T, int V, class ARGS, class A>
__device__ __forceinline__ void put_scaled(const ARGS &a, size_t at, const A *value,
                                           A factor = (A)1)
{
    const A alpha = (A)a.alpha * factor;
    T *to = static_cast<T *>(a.out) + at;
    wd_run<T, V> run;
    if constexpr (sizeof(T) == 2 && V % 2 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 2) {
            run.word[i / 2] = wd_packed_narrow<T>(alpha * value[i], alpha * value[i + 1]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            T narrow;
            wd_narrow(narrow, alpha * value[i]);
            run.put(i, narrow);
        }
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

// As wd_put_run has it; most calls blend with nothing, so that is jumped over.
template <class T, int V, class ARGS, class A>
__device__ __forceinline__ void put_results(const ARGS &a, size_t at, A *value, A factor = (A)1)
{
    if (!a.blends && a.scales) {
        put_scaled<T, V>(a, at, value, factor);
        return;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] *= factor;
    wd_put_run<T, V>(a, at, value);
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

} // namespace

#endif
