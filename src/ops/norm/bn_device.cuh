// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of batch normalization share: parameters, runs of eight elements, and how a run
// of results becomes y (with z, activation and reserve space) or dx (with dz).
#ifndef WD_OPS_NORM_BN_DEVICE_CUH
#define WD_OPS_NORM_BN_DEVICE_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "ops/norm/bn_vector_args.h"

namespace {

template <class T> using run = wd_run<T, BN_RUN>;

__device__ __forceinline__ float param(const bn_param &p, uint32_t i)
{
    return p.data[i * p.stride];
}

__device__ __forceinline__ void blend_param(const bn_param &p, uint32_t i, double value,
                                            double alpha, double beta)
{
    if (!p.data) return;
    float *to = p.data + i * p.stride;
    const double result = alpha != 0.0 ? alpha * value : 0.0;
    *to = (float)(beta != 0.0 ? result + beta * *to : result);
}

// Elements [at, at + 8) of a tensor; those from `end` on are left alone.
template <class T, int N = BN_RUN>
__device__ __forceinline__ void fetch(wd_run<T, N> &to, const void *from, int64_t at, int64_t end,
                                      bool aligned)
{
    const T *first = static_cast<const T *>(from) + at;
    if (aligned && at + N <= end) {
        to.load(first);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (at + i < end) to.put(i, first[i]);
    }
}

template <class T, int N = BN_RUN>
__device__ __forceinline__ void put(void *to, const float *value, int64_t at, int64_t end,
                                    bool aligned, bool streaming)
{
    T *first = static_cast<T *>(to) + at;
    if (aligned && at + N <= end) {
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
        if (at + i < end) wd_narrow(first[i], value[i]);
    }
}

// dy where the activation lets it pass.
__device__ __forceinline__ float masked(float dy, uint32_t bits, int i)
{
    return bits >> i & 1 ? dy : 0.0f;
}

// The numbers of parameter c for a forward walk: kept by training, or made from the estimates.
__device__ __forceinline__ bn_numbers forward_numbers(const bn_vector_args &a, uint32_t c)
{
    if (a.numbers) return a.numbers[c];
    bn_numbers n = {};
    n.mean = param(a.mean, c);
    n.factor = param(a.scale, c) * (1.0f / sqrtf(param(a.var, c) + (float)a.epsilon));
    n.base = param(a.bias, c);
    return n;
}

// v of one run (or, where there is no reserve space, of N elements) to y, and its bits to the reserve
// space.
template <class T, int N = BN_RUN>
__device__ __forceinline__ void finish_forward(const bn_vector_args &a, float *v, int64_t at)
{
    if (a.z) {
        wd_run<T, N> z;
        fetch(z, a.z, at, a.total, a.aligned);
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] += wd_widen(z.get(i));
    }
    if (a.activates) {
        uint32_t bits = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const bool passes = v[i] > a.low && !(v[i] > a.high);
            bits |= (uint32_t)passes << i;
            if (v[i] != v[i]) v[i] = a.keeps_nan ? v[i] : a.low;
            else v[i] = v[i] > a.low ? (v[i] > a.high ? a.high : v[i]) : a.low;
        }
        if (a.reserve) {
            // bits behind the last element are 0
            if (a.total - at < BN_RUN) bits &= (1u << (a.total - at)) - 1u;
            a.reserve[at / BN_RUN] = (uint8_t)bits;
        }
    }
    if (a.alpha != 1.0f) {
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = a.alpha != 0.0f ? a.alpha * v[i] : 0.0f;
    }
    if (a.beta != 0.0f) {
        wd_run<T, N> old;
        fetch(old, a.y, at, a.total, a.aligned);
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] += a.beta * wd_widen(old.get(i));
    }
    put<T, N>(a.y, v, at, a.total, a.aligned, a.streaming);
}

// dx (and dz) of one run; g is dy where the activation lets it pass.
template <class T, int N = BN_RUN>
__device__ __forceinline__ void finish_backward(const bn_vector_args &a, float *dx, const float *g,
                                                int64_t at)
{
    if (a.alpha != 1.0f) {
#pragma unroll
        for (int i = 0; i < N; ++i) dx[i] = a.alpha != 0.0f ? a.alpha * dx[i] : 0.0f;
    }
    if (a.beta != 0.0f) {
        wd_run<T, N> old;
        fetch(old, a.y, at, a.total, a.aligned);
#pragma unroll
        for (int i = 0; i < N; ++i) dx[i] += a.beta * wd_widen(old.get(i));
    }
    put<T, N>(a.y, dx, at, a.total, a.aligned, a.streaming);
    if (a.dz) put<T, N>(a.dz, g, at, a.total, a.aligned, a.streaming);
}

template <class T>
__device__ __forceinline__ void fetch_gradient(const bn_vector_args &a, float *g, int64_t at)
{
    run<T> dy;
    const uint32_t bits = a.reserve ? a.reserve[at / BN_RUN] : 0xffu;
    fetch(dy, a.dy, at, a.total, a.aligned);
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) g[i] = masked(wd_widen(dy.get(i)), bits, i);
}

} // namespace

#endif
