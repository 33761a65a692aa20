// SPDX-License-Identifier: Apache-2.0
//
// bn_cluster where a block holds several channels of planes of whole units: a block a processor walks down the channels,
// of which it looks at one and writes it while the next ones are on their way, so that memory reads and writes at the
// same time. Nothing is added to results or made of them. A thread reads what it copied itself. Sums are of differences
// from the middle of three of the channel's elements, in single precision by a warp, in double from there on.
#ifndef WD_OPS_NORM_BN_CLUSTER_WALK_CUH
#define WD_OPS_NORM_BN_CLUSTER_WALK_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/shared.cuh"
#include "ops/norm/bn_cluster_args.h"
#include "ops/norm/bn_device.cuh"
#include "ops/norm/norm_middle.cuh"

namespace {

constexpr uint32_t WALK_WARPS = BN_CLUSTER_WALK_THREADS / 32;
static_assert(BN_CLUSTER_SLOTS <= 4, "walk_wait knows no more");

// What is asked for of a channel before its turn: with its parameters three elements.
struct walk_known {
    float some[3];
    float scale, bias, old_mean, old_var;
};

template <class T>
__device__ __forceinline__ walk_known walk_known_of(const bn_cluster_args &a, uint32_t c)
{
    walk_known k = {};
    const T *x = static_cast<const T *>(a.bn.x) + (int64_t)c * a.bn.inner;
    const uint32_t rows = a.units / a.by_row.divisor;
    if (c >= a.bn.params) return k;
    const uint32_t inner = (uint32_t)a.bn.inner; // less than 2^16
    // from all over the samples, and off the edges of images, where padding makes elements alike: of few widths is more
    // than one at an edge
    k.some[0] = wd_widen(x[rows / 8 * a.pitch + inner / 3]);
    k.some[1] = wd_widen(x[rows / 2 * a.pitch + inner * 3 / 7]);
    k.some[2] = wd_widen(x[rows * 7 / 8 * a.pitch + inner * 3 / 5]);
    k.scale = param(a.bn.scale, c);
    k.bias = param(a.bn.bias, c);
    k.old_mean = old_param(a.bn.running_mean, c, 1.0 - a.bn.factor);
    k.old_var = old_param(a.bn.running_var, c, 1.0 - a.bn.factor);
    return k;
}

// 0 where nothing can be taken from the middle one: the mean of what has an infinity is one.
__device__ __forceinline__ float walk_pivot_of(const walk_known &k)
{
    const float middle = wd_middle_of(k.some[0], k.some[1], k.some[2]);
    return fabsf(middle) <= 3.0e38f ? middle : 0.0f;
}

// Where unit `u` of a channel is, from the channel's first element.
template <int L> __device__ __forceinline__ int64_t walk_at(const bn_cluster_args &a, uint32_t u)
{
    const uint32_t row = wd_fastdiv_quotient(u, a.by_row);
    return row * a.pitch + (u - row * a.by_row.divisor) * L;
}

// x of a channel into a slot, backward dy behind it.
template <class T, int L, bool BACKWARD>
__device__ __forceinline__ void walk_ask(const bn_cluster_args &a, uint4 *slot, uint32_t c)
{
    const int64_t begin = (int64_t)c * a.bn.inner;
    if (c < a.bn.params) {
#pragma unroll 2
        for (uint32_t u = threadIdx.x; u < a.units; u += BN_CLUSTER_WALK_THREADS) {
            const int64_t at = begin + walk_at<L>(a, u);
            wd_copy_async<16, false>(slot + u, static_cast<const T *>(a.bn.x) + at);
            if (BACKWARD)
                wd_copy_async<16, false>(slot + a.units + u, static_cast<const T *>(a.bn.dy) + at);
        }
    }
    wd_copies_end();
}

// Results that nothing is done to.
template <class T, int L>
__device__ __forceinline__ void walk_put(const bn_vector_args &a, void *to, int64_t at,
                                         const float *value)
{
    wd_run<T, L> all;
#pragma unroll
    for (int i = 0; i < L; ++i) {
        T one;
        wd_narrow(one, value[i]);
        all.put(i, one);
    }
    if (a.streaming) all.store_streaming(static_cast<T *>(to) + at);
    else all.store(static_cast<T *>(to) + at);
}

// All but the channels that are asked for later than the next one.
__device__ __forceinline__ void walk_wait(uint32_t slots)
{
    if (slots == 2) wd_copies_wait<1>();
    else if (slots == 3) wd_copies_wait<2>();
    else wd_copies_wait<3>();
}

// Two sums over the block, in `of_warp`, which nobody still reads; all threads get them.
__device__ __forceinline__ double2 walk_sums(float2 *of_warp, float first, float second)
{
    double2 all = make_double2(0.0, 0.0);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        first += __shfl_xor_sync(0xffffffffu, first, lanes);
        second += __shfl_xor_sync(0xffffffffu, second, lanes);
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = make_float2(first, second);
    __syncthreads();
#pragma unroll
    for (uint32_t w = 0; w < WALK_WARPS; ++w) {
        const float2 one = of_warp[w];
        all.x += one.x, all.y += one.y;
    }
    return all;
}

template <class T, int L> __device__ __forceinline__ void walk_forward(const bn_cluster_args &a)
{
    __shared__ float2 of_warp[2][WALK_WARPS];
    uint4 *const ring = wd_dynamic_shared<uint4>();
    const double terms = (double)a.bn.terms, inverse = a.inverse;
    uint32_t c = blockIdx.x, asked = c, place = 0;
    wd_wait_for_previous();
    walk_known k = walk_known_of<T>(a, c);
    for (uint32_t s = 0; s < a.slots; ++s, asked += gridDim.x)
        walk_ask<T, L, false>(a, ring + s * a.units, asked);
#pragma unroll 1
    for (uint32_t turn = 0; c < a.bn.params; ++turn, c += gridDim.x, asked += gridDim.x) {
        uint4 *const slot = ring + place * a.units;
        const walk_known later = walk_known_of<T>(a, c + gridDim.x);
        const float pivot = walk_pivot_of(k);
        float sum = 0.0f, squares = 0.0f;
        const int64_t begin = (int64_t)c * a.bn.inner;
        walk_wait(a.slots);
#pragma unroll 2
        for (uint32_t u = threadIdx.x; u < a.units; u += BN_CLUSTER_WALK_THREADS) {
            wd_run<T, L> r;
            r.load(reinterpret_cast<const T *>(slot + u));
#pragma unroll
            for (int i = 0; i < L; ++i) {
                const float d = wd_widen(r.get(i)) - pivot;
                sum += d;
                squares = fmaf(d, d, squares);
            }
        }
        const double2 all = walk_sums(of_warp[turn % 2], sum, squares);
        const double rest = all.x * inverse;
        const double mean = pivot + rest;
        double around = all.y - all.x * rest;
        if (around < 0.0) around = 0.0;
        const double inv_std = rsqrt(around * inverse + a.bn.epsilon);
        const float rounded = (float)mean;
        const float factor = k.scale * (float)inv_std;
        const float base = k.bias - factor * (float)(mean - rounded);
#pragma unroll 2
        for (uint32_t u = threadIdx.x; u < a.units; u += BN_CLUSTER_WALK_THREADS) {
            wd_run<T, L> r;
            float v[L];
            r.load(reinterpret_cast<const T *>(slot + u));
#pragma unroll
            for (int i = 0; i < L; ++i) v[i] = fmaf(factor, wd_widen(r.get(i)) - rounded, base);
            const int64_t at = begin + walk_at<L>(a, u);
            walk_put<T, L>(a.bn, a.bn.y, at, v);
        }
        walk_ask<T, L, false>(a, slot, asked);
        if (threadIdx.x == 0) {
            const double unbiased = around / (terms > 1.0 ? terms - 1.0 : terms);
            const double kept = 1.0 - a.bn.factor;
            set_param(a.bn.mean, c, 0.0f, mean, 1.0, 0.0);
            set_param(a.bn.var, c, 0.0f, inv_std, 1.0, 0.0);
            set_param(a.bn.running_mean, c, k.old_mean, mean, a.bn.factor, kept);
            set_param(a.bn.running_var, c, k.old_var, unbiased, a.bn.factor, kept);
        }
        k = later;
        if (++place == a.slots) place = 0;
    }
}

// What is asked for of a channel before its turn, backward.
struct walk_known_back {
    float mean, inv_std, scale, old_dscale, old_dbias;
};

__device__ __forceinline__ walk_known_back walk_known_back_of(const bn_cluster_args &a, uint32_t c)
{
    walk_known_back k = {};
    if (c >= a.bn.params) return k;
    k.mean = param(a.bn.mean, c);
    k.inv_std = param(a.bn.var, c);
    k.scale = param(a.bn.scale, c);
    k.old_dscale = old_param(a.bn.dscale, c, a.bn.beta_param);
    k.old_dbias = old_param(a.bn.dbias, c, a.bn.beta_param);
    return k;
}

template <class T, int L> __device__ __forceinline__ void walk_backward(const bn_cluster_args &a)
{
    __shared__ float2 of_warp[2][WALK_WARPS];
    uint4 *const ring = wd_dynamic_shared<uint4>();
    uint32_t c = blockIdx.x, asked = c, place = 0;
    wd_wait_for_previous();
    walk_known_back k = walk_known_back_of(a, c);
    for (uint32_t s = 0; s < a.slots; ++s, asked += gridDim.x)
        walk_ask<T, L, true>(a, ring + s * 2 * a.units, asked);
#pragma unroll 1
    for (uint32_t turn = 0; c < a.bn.params; ++turn, c += gridDim.x, asked += gridDim.x) {
        uint4 *const slot = ring + place * 2 * a.units;
        const walk_known_back later = walk_known_back_of(a, c + gridDim.x);
        float sum = 0.0f, product = 0.0f;
        const int64_t begin = (int64_t)c * a.bn.inner;
        walk_wait(a.slots);
#pragma unroll 2
        for (uint32_t u = threadIdx.x; u < a.units; u += BN_CLUSTER_WALK_THREADS) {
            wd_run<T, L> x, dy;
            x.load(reinterpret_cast<const T *>(slot + u));
            dy.load(reinterpret_cast<const T *>(slot + a.units + u));
#pragma unroll
            for (int i = 0; i < L; ++i) {
                const float g = wd_widen(dy.get(i));
                sum += g;
                product = fmaf(g, wd_widen(x.get(i)) - k.mean, product);
            }
        }
        const double2 all = walk_sums(of_warp[turn % 2], sum, product);
        const double scaled = (double)k.scale * k.inv_std;
        const double dscale = all.y * k.inv_std;
        const float factor = (float)scaled, base = (float)(-scaled * all.x * a.inverse);
        const float slope = (float)(-scaled * dscale * k.inv_std * a.inverse);
#pragma unroll 2
        for (uint32_t u = threadIdx.x; u < a.units; u += BN_CLUSTER_WALK_THREADS) {
            wd_run<T, L> x, dy;
            float dx[L];
            x.load(reinterpret_cast<const T *>(slot + u));
            dy.load(reinterpret_cast<const T *>(slot + a.units + u));
#pragma unroll
            for (int i = 0; i < L; ++i) {
                const float g = fmaf(factor, wd_widen(dy.get(i)), base);
                dx[i] = fmaf(slope, wd_widen(x.get(i)) - k.mean, g);
            }
            const int64_t at = begin + walk_at<L>(a, u);
            walk_put<T, L>(a.bn, a.bn.y, at, dx);
        }
        walk_ask<T, L, true>(a, slot, asked);
        if (threadIdx.x == 0) {
            set_param(a.bn.dscale, c, k.old_dscale, dscale, a.bn.alpha_param, a.bn.beta_param);
            set_param(a.bn.dbias, c, k.old_dbias, all.x, a.bn.alpha_param, a.bn.beta_param);
        }
        k = later;
        if (++place == a.slots) place = 0;
    }
}

} // namespace

#endif
