// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of batch normalization share: parameters, runs of eight elements, and how a run
// of results becomes y (with z, activation and reserve space) or dx (with dz). fp64 is worked on in
// fp64, all else in fp32: acc<T>.
#ifndef WD_OPS_NORM_BN_DEVICE_CUH
#define WD_OPS_NORM_BN_DEVICE_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "gpu/device/warp.cuh"
#include "ops/norm/bn_vector_args.h"

namespace {

template <class T> using run = wd_run<T, BN_RUN>;
template <class T> using acc = decltype(wd_widen(T()));

// Numbers that a parameter keeps between kernels. Forward: y = factor * (x - mean) + base.
// Backward: dx = factor * dy + base + slope * (x - mean). What the rounding of the mean cut off is in
// the base.
template <class A> struct numbers_of {
    A mean;
    A rest; // what the rounding of the mean cut off
    A factor;
    A base;
    A slope;
    A inv_std;
    A unused[BN_NUMBERS - 6];
};

template <class A = float> __device__ __forceinline__ A param(const bn_param &p, uint32_t i)
{
    return static_cast<const A *>(p.data)[i * p.stride];
}

// What was there, fetched before it is needed.
template <class A = float>
__device__ __forceinline__ A old_param(const bn_param &p, uint32_t i, double beta)
{
    return p.data && beta != 0.0 ? param<A>(p, i) : (A)0;
}

template <class A = float>
__device__ __forceinline__ void set_param(const bn_param &p, uint32_t i, A old, double value,
                                          double alpha, double beta)
{
    if (!p.data) return;
    const double result = alpha != 0.0 ? alpha * value : 0.0;
    static_cast<A *>(p.data)[i * p.stride] = (A)(beta != 0.0 ? result + beta * old : result);
}

// Elements [at, at + N) of a tensor; those before its first and from `end` on are left alone.
template <class T, int N = BN_RUN>
__device__ __forceinline__ void fetch(wd_run<T, N> &to, const void *from, int64_t at, int64_t end,
                                      bool aligned)
{
    const T *first = static_cast<const T *>(from) + at;
    if (aligned && at >= 0 && at + N <= end) {
        to.load(first);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (at + i >= 0 && at + i < end) to.put(i, first[i]);
    }
}

// Of fp32 a lane's whole run of eight, beside its neighbours' of the warp: of a pair of lanes each writes half of either's
// run, so that where runs begin at sectors these are written whole (in halves they cost twice).
__device__ __forceinline__ void put_pairs(void *to, const float *value, int64_t at, bool streaming)
{
    constexpr int HALF = BN_RUN / 2;
    const bool odd = threadIdx.x & 1;
    wd_run<float, HALF> first, second;
#pragma unroll
    for (int i = 0; i < HALF; ++i) {
        const float got = __shfl_xor_sync(0xffffffffu, odd ? value[i] : value[HALF + i], 1);
        first.put(i, odd ? got : value[i]);
        second.put(i, odd ? value[HALF + i] : got);
    }
    float *own = static_cast<float *>(to) + (odd ? at - HALF : at);
    if (streaming) first.store_streaming(own), second.store_streaming(own + BN_RUN);
    else first.store(own), second.store(own + BN_RUN);
}

// `paired`: of all lanes of a warp (put_pairs).
template <class T, int N = BN_RUN>
__device__ __forceinline__ void put(void *to, const acc<T> *value, int64_t at, int64_t end,
                                    bool aligned, bool streaming, bool paired = false)
{
    T *first = static_cast<T *>(to) + at;
    if constexpr (sizeof(T) == 4 && N == BN_RUN) {
        if (paired) {
            put_pairs(to, value, at, streaming);
            return;
        }
    }
    if (aligned && at >= 0 && at + N <= end) {
        wd_run<T, N> all;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            T one;
            wd_narrow(one, value[i]);
            all.put(i, one);
        }
        if (streaming) all.store_streaming(first);
        else all.store(first);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (at + i >= 0 && at + i < end) wd_narrow(first[i], value[i]);
    }
}

// dy where the activation lets it pass.
template <class A> __device__ __forceinline__ A masked(A dy, uint32_t bits, int i)
{
    return bits >> i & 1 ? dy : (A)0;
}

// The numbers of parameter c for a forward walk: kept by training, or made from the estimates.
template <class A>
__device__ __forceinline__ numbers_of<A> forward_numbers(const bn_vector_args &a, uint32_t c)
{
    if (a.numbers) return static_cast<const numbers_of<A> *>(a.numbers)[c];
    numbers_of<A> n = {};
    n.mean = param<A>(a.mean, c);
    n.factor = param<A>(a.scale, c) * ((A)1 / sqrt(param<A>(a.var, c) + (A)a.epsilon));
    n.base = param<A>(a.bias, c);
    return n;
}

// What scales and clips the data, in the type of the accumulator.
template <class A> struct scalars_of {
    A alpha, beta, low, high;

    __device__ __forceinline__ explicit scalars_of(const bn_vector_args &a)
    {
        if constexpr (sizeof(A) == 8) {
            alpha = a.wide_alpha, beta = a.wide_beta, low = a.wide_low, high = a.wide_high;
        } else {
            alpha = a.alpha, beta = a.beta, low = a.low, high = a.high;
        }
    }
};

template <class T, int N>
__device__ __forceinline__ void blend_data(const bn_vector_args &a, const scalars_of<acc<T>> &s,
                                           acc<T> *v, int64_t at, bool paired = false)
{
    if (s.alpha != (acc<T>)1) {
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = s.alpha != (acc<T>)0 ? s.alpha * v[i] : (acc<T>)0;
    }
    if (s.beta != (acc<T>)0) {
        wd_run<T, N> old;
        fetch(old, a.y, at, a.total, a.aligned);
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] += s.beta * wd_widen(old.get(i));
    }
    put<T, N>(a.y, v, at, a.total, a.aligned, a.streaming, paired);
}

template <class T, int N = BN_RUN>
__device__ __forceinline__ void add_z(const bn_vector_args &a, acc<T> *v, int64_t at)
{
    wd_run<T, N> z;
    if (!a.z) return;
    fetch(z, a.z, at, a.total, a.aligned);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] += wd_widen(z.get(i));
}

// The activation, and which elements pass it.
template <class A, int N = BN_RUN>
__device__ __forceinline__ uint32_t activate(const bn_vector_args &a, A *v)
{
    const scalars_of<A> s(a);
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const bool passes = v[i] > s.low && !(v[i] > s.high);
        bits |= (uint32_t)passes << i;
        if (v[i] != v[i]) v[i] = a.keeps_nan ? v[i] : s.low;
        else v[i] = v[i] > s.low ? (v[i] > s.high ? s.high : v[i]) : s.low;
    }
    return bits;
}

// Bits behind the last element are 0.
__device__ __forceinline__ uint32_t bits_there(const bn_vector_args &a, uint32_t bits, int64_t at)
{
    return a.total - at < BN_RUN ? bits & ((1u << (a.total - at)) - 1u) : bits;
}

// v of one run (or, where there is no reserve space, of N elements) to y, and its bits to the reserve
// space.
template <class T, int N = BN_RUN>
__device__ __forceinline__ void finish_forward(const bn_vector_args &a, acc<T> *v, int64_t at,
                                               bool paired = false)
{
    add_z<T, N>(a, v, at);
    if (a.activates) {
        uint32_t bits = activate<acc<T>, N>(a, v);
        if (N == BN_RUN && a.reserve) a.reserve[at / BN_RUN] = (uint8_t)bits_there(a, bits, at);
    }
    blend_data<T, N>(a, scalars_of<acc<T>>(a), v, at, paired);
}

// dx (and dz) of one run; g is dy where the activation lets it pass.
template <class T, int N = BN_RUN>
__device__ __forceinline__ void finish_backward(const bn_vector_args &a, acc<T> *dx,
                                                const acc<T> *g, int64_t at, bool paired = false)
{
    blend_data<T, N>(a, scalars_of<acc<T>>(a), dx, at, paired);
    if (a.dz) put<T, N>(a.dz, g, at, a.total, a.aligned, a.streaming, paired);
}

// The bits of a run: of one that begins before x, or is off the bytes by a.lead elements, from two of them.
__device__ __forceinline__ uint32_t bits_of_run(const bn_vector_args &a, int64_t at)
{
    if (!a.reserve) return 0xffu;
    if (a.lead == 0) return a.reserve[at / BN_RUN];
    const int64_t last = (a.total - 1) / BN_RUN;
    const int64_t byte = (at + a.lead) / BN_RUN; // that begins inside of the run
    const uint32_t before = byte > 0 ? a.reserve[byte - 1] : 0u;
    return ((uint32_t)a.reserve[min(byte, last)] << BN_RUN | before) >> (BN_RUN - a.lead);
}

template <class T>
__device__ __forceinline__ void fetch_gradient(const bn_vector_args &a, acc<T> *g, int64_t at)
{
    run<T> dy;
    fetch(dy, a.dy, at, a.total, a.aligned);
    const uint32_t bits = bits_of_run(a, at);
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) g[i] = masked(wd_widen(dy.get(i)), bits, i);
}

} // namespace

#endif
