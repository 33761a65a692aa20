// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of spatial transformers share: where places look, and how results are blended. A
// place's cell and fractions are computed as in the definition, rounding by rounding.
#ifndef WD_OPS_SPATIAL_VECTOR_CUH
#define WD_OPS_SPATIAL_VECTOR_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "ops/spatial/spatial_vector_args.h"

namespace {

template <class T> struct accumulator {
    typedef float type;
};
template <> struct accumulator<double> {
    typedef double type;
};

// n = quotient * divisor + the result; n becomes the quotient.
__device__ __forceinline__ uint32_t take_rest(uint32_t &n, const wd_fastdiv &by)
{
    const uint32_t quotient = wd_fastdiv_quotient(n, by);
    const uint32_t rest = n - quotient * by.divisor;
    n = quotient;
    return rest;
}

__device__ __forceinline__ float round_down(float s)
{
    return floorf(s);
}
__device__ __forceinline__ double round_down(double s)
{
    return floor(s);
}

// A number of the arguments, which hold it in fp64 and in fp32: a conversion is as long as 16 additions.
template <class A> __device__ __forceinline__ A factor(double in64, float in32)
{
    if constexpr (sizeof(A) == 8) return in64;
    else return in32;
}

// Where a place looks.
template <class A> struct sight {
    int row, column; // the upper left corner of its cell
    A down, right;
    bool seen; // else nothing of the image is near; `down` and `right` are then 0 or NaN

    static __device__ __forceinline__ bool coordinate(A g, A scale, int extent, int &corner,
                                                      A &beyond)
    {
        const A s = (g + 1) * scale;
        const bool in = s > -1 && s < (A)extent;
        const A whole = round_down(s);
        corner = in ? (int)whole : 0;
        beyond = in ? s - whole : s - s;
        return in;
    }

    // `place` counts the places of the whole grid.
    template <class T>
    __device__ __forceinline__ void look(const sampler_vector_args &a, int64_t place)
    {
        A gx, gy;
        read<T>(a, static_cast<const T *>(a.grid) + 2 * place, gx, gy);
        set(a, gx, gy);
    }
    // The same of place `number` of image n, which all threads have.
    template <class T>
    __device__ __forceinline__ void look(const sampler_vector_args &a, uint32_t n, int number)
    {
        const T *image =
            static_cast<const T *>(a.grid) + 2 * ((int64_t)n * (uint32_t)(a.rows * a.columns));
        A gx, gy;
        read<T>(a, image + 2 * (uint32_t)number, gx, gy);
        set(a, gx, gy);
    }
    // A place's numbers.
    template <class T>
    static __device__ __forceinline__ void read(const sampler_vector_args &a, const T *at, A &gx,
                                                A &gy)
    {
        if (a.pairs) {
            wd_run<T, 2> both;
            both.load(at);
            gx = wd_widen(both.get(0));
            gy = wd_widen(both.get(1));
        } else {
            gx = wd_widen(at[0]);
            gy = wd_widen(at[1]);
        }
    }
    __device__ __forceinline__ void set(const sampler_vector_args &a, A gx, A gy)
    {
        const bool across =
            coordinate(gx, factor<A>(a.scale_w, a.scale_w32), a.width, column, right);
        seen = coordinate(gy, factor<A>(a.scale_h, a.scale_h32), a.height, row, down) && across;
    }

    // What y is where nothing is seen: NaN of a coordinate that is not finite.
    __device__ __forceinline__ A nothing() const
    {
        return seen ? (A)0 : (down + right) * 0;
    }

    __device__ __forceinline__ bool has(const sampler_vector_args &a, int down_by,
                                        int right_by) const
    {
        return seen && (uint32_t)(row + down_by) < (uint32_t)a.height &&
               (uint32_t)(column + right_by) < (uint32_t)a.width;
    }
};

template <class A>
__device__ __forceinline__ A blended(bool scales, A alpha, A value, bool blends, A beta, A old)
{
    A r = scales ? alpha * value : (A)0;
    if (blends) r += beta * old;
    return r;
}

// alpha * value + beta * what is there, of dx.
template <class T, int V, class A>
__device__ __forceinline__ void put(const sampler_vector_args &a, T *to, const A *value)
{
    const A alpha = factor<A>(a.alpha, a.alpha32), beta = factor<A>(a.beta, a.beta32);
    wd_run<T, V> run;
    if (a.blends) run.load(to);
#pragma unroll
    for (int v = 0; v < V; ++v) {
        T narrow;
        const A old = a.blends ? wd_widen(run.get(v)) : (A)0;
        wd_narrow(narrow, blended<A>(a.scales, alpha, value[v], a.blends, beta, old));
        run.put(v, narrow);
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

// value + beta * what is there, which counts if OLD; alpha is in the value.
template <class T, int V, bool OLD, class A>
__device__ __forceinline__ void put_run(const sampler_vector_args &a, T *to, const A *value)
{
    wd_run<T, V> run;
    if (OLD) run.load(to);
#pragma unroll
    for (int v = 0; v < V; ++v) {
        T narrow;
        A sum = value[v];
        if (OLD) sum += factor<A>(a.beta, a.beta32) * wd_widen(run.get(v));
        wd_narrow(narrow, sum);
        run.put(v, narrow);
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

} // namespace

#endif
