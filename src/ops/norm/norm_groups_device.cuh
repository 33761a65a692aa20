// SPDX-License-Identifier: Apache-2.0
//
// What the norm_groups kernels share: eights of elements between memory, shared memory and registers,
// parameters, and how threads, warps and the blocks of a cluster join what each found of a share.
#ifndef WD_OPS_NORM_GROUPS_DEVICE_CUH
#define WD_OPS_NORM_GROUPS_DEVICE_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/statistics.cuh"
#include "ops/norm/norm_groups_args.h"
#include "ops/norm/norm_param.cuh"

namespace {

constexpr int RUN = NORM_GROUPS_RUN;
constexpr uint32_t WARPS = NORM_GROUPS_THREADS / WARP;

template <class T> using run = wd_run<T, RUN>;
template <class T> constexpr int RUN_WORDS = run<T>::BYTES / 16;

// What kernels do with a share: the first or the last of the steps.
enum step { SUMS, APPLY };

using numbers = norm_groups_numbers;
using sums = norm_groups_sums;

// The last step goes backwards: what was read last may still be in the cache.
template <step STEP> __device__ __forceinline__ uint32_t block_of(void)
{
    return STEP == APPLY ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
}

// ---- Eights ----

// How a thread's eight lie: neighbours, which are all there or none, or so many elements apart.
struct spread {
    bool runs;
    uint32_t apart; // of neighbours 1

    // Of the elements from `at` on before `end`, how many of eight there are.
    __device__ __forceinline__ uint32_t left(uint32_t at, uint32_t end) const
    {
        if (at >= end) return 0;
        return runs ? (uint32_t)RUN : min((end - at - 1) / apart + 1, (uint32_t)RUN);
    }
};

// `left` elements; the others are zeros.
template <class T>
__device__ __forceinline__ void fetch(run<T> &to, const T *from, const spread &as, uint32_t left)
{
    if (as.runs) {
#pragma unroll
        for (int w = 0; w < run<T>::WORDS; ++w) to.word[w] = 0;
        if (left > 0) to.load(from);
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < RUN; ++i) {
        T one;
        wd_narrow(one, 0.0f);
        if (i < left) one = from[i * as.apart];
        to.put(i, one);
    }
}

template <class T>
__device__ __forceinline__ void put(T *to, const float *value, const spread &as, uint32_t left,
                                    bool streaming)
{
    run<T> all;
#pragma unroll
    for (int i = 0; i < RUN; ++i) {
        T one;
        wd_narrow(one, value[i]);
        all.put(i, one);
    }
    if (as.runs) {
        if (left == 0) return;
        if (streaming) all.store_streaming(to);
        else all.store(to);
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < RUN; ++i) {
        if (i < left) to[i * as.apart] = all.get(i);
    }
}

// ---- Parameters ----

// A channel's formula, xhat in it: y = factor * (x - mean) + base.
struct line {
    float mean;
    float factor;
    float base;
};

__device__ __forceinline__ line line_of(const norm_groups_args &a, const numbers &n,
                                        uint32_t channel)
{
    const float scale = param_at(a.scale, channel);
    return {n.first, scale * n.second, fmaf(scale, n.third, param_at(a.bias, channel))};
}

// ---- Joining ----

// Of groups of `width` lanes, a power of two; the result is the first one's of each.
__device__ __forceinline__ void join_lanes(wd_part &part, uint32_t width)
{
    for (uint32_t lanes = 1; lanes < width; lanes *= 2) {
        const wd_part other = {wd_shuffle_down(part.count, (int)lanes),
                               wd_shuffle_down(part.mean, (int)lanes),
                               wd_shuffle_down(part.squares, (int)lanes)};
        wd_join_parts(part, other);
    }
}

// All of the group get the same.
__device__ __forceinline__ sums add_lanes(sums s, uint32_t width)
{
    for (uint32_t lanes = 1; lanes < width; lanes *= 2) {
        s.dy += __shfl_xor_sync(WHOLE_WARP, s.dy, (int)lanes);
        s.dy_xhat += __shfl_xor_sync(WHOLE_WARP, s.dy_xhat, (int)lanes);
    }
    return s;
}

// The numbers of a share, whose statistics are written where `writes`.
__device__ __forceinline__ numbers numbers_of(const norm_groups_args &a, int64_t share,
                                              const wd_part &all, bool writes)
{
    numbers n;
    n.first = (float)all.mean;
    n.second = (float)(1.0 / sqrt(all.squares / all.count + a.epsilon));
    n.third = (float)((n.first - all.mean) * n.second);
    n.unused = 0.0f;
    if (writes && a.mean) a.mean[share] = n.first;
    if (writes && a.inv_std) a.inv_std[share] = n.second;
    return n;
}

__device__ __forceinline__ numbers given_numbers(const norm_groups_args &a, int64_t share)
{
    return {a.given_mean[share], a.given_inv_std[share], 0.0f, 0.0f};
}

__device__ __forceinline__ void join(sums &into, const sums &from)
{
    into.dy += from.dy, into.dy_xhat += from.dy_xhat;
}

} // namespace

#endif
