// SPDX-License-Identifier: Apache-2.0
//
// What the norm_groups kernels share: eights of elements between memory, shared memory and registers,
// parameters, and how threads, warps and the blocks of a cluster join what each found of a share.
#ifndef WD_OPS_NORM_GROUPS_DEVICE_CUH
#define WD_OPS_NORM_GROUPS_DEVICE_CUH

#include "gpu/device/cluster.cuh"
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

// What kernels do with a share: all of it, or the first or the last of the steps.
enum step { WHOLE, SUMS, APPLY };

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

// Shared memory has words of each thread's own for them: no barrier lies between.
template <class T>
__device__ __forceinline__ void keep(uint4 *kept, uint32_t slot, const run<T> &from)
{
#pragma unroll
    for (int w = 0; w < RUN_WORDS<T>; ++w) {
        kept[(slot * RUN_WORDS<T> + w) * blockDim.x + threadIdx.x] = make_uint4(
            from.word[4 * w], from.word[4 * w + 1], from.word[4 * w + 2], from.word[4 * w + 3]);
    }
}

template <class T>
__device__ __forceinline__ void find(run<T> &to, const uint4 *kept, uint32_t slot)
{
#pragma unroll
    for (int w = 0; w < RUN_WORDS<T>; ++w) {
        const uint4 v = kept[(slot * RUN_WORDS<T> + w) * blockDim.x + threadIdx.x];
        to.word[4 * w] = v.x, to.word[4 * w + 1] = v.y;
        to.word[4 * w + 2] = v.z, to.word[4 * w + 3] = v.w;
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
    // where x has an infinity there is no mean, whatever the order
    n.first = (float)(all.squares == all.squares ? all.mean : all.squares);
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

__device__ __forceinline__ void join(wd_part &into, const wd_part &from)
{
    wd_join_parts(into, from);
}
__device__ __forceinline__ void join(sums &into, const sums &from)
{
    into.dy += from.dy, into.dy_xhat += from.dy_xhat;
}

__device__ __forceinline__ wd_part of_cluster(const wd_part *mine, uint32_t rank)
{
    return {wd_of_cluster(&mine->count, rank), wd_of_cluster(&mine->mean, rank),
            wd_of_cluster(&mine->squares, rank)};
}
__device__ __forceinline__ sums of_cluster(const sums *mine, uint32_t rank)
{
    return {wd_of_cluster(&mine->dy, rank), wd_of_cluster(&mine->dy_xhat, rank)};
}

// Replaces `count` values of the block, each by what all blocks of the cluster have of it, in their
// order.
template <class P>
__device__ __forceinline__ void join_cluster(const norm_groups_args &a, P *joined, const P *mine,
                                             uint32_t count)
{
    wd_cluster_arrive();
    wd_cluster_wait();
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        P all = of_cluster(&mine[i], 0);
        for (uint32_t rank = 1; rank < a.segments; ++rank) join(all, of_cluster(&mine[i], rank));
        joined[i] = all;
    }
    // nobody leaves, or writes again, before all have read
    wd_cluster_arrive();
    wd_cluster_wait();
}

} // namespace

#endif
