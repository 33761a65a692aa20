// SPDX-License-Identifier: Apache-2.0
//
// Gradients of layer norm and RMS norm over rows of whole units, of which all threads have as many columns:
// a warp has a strip of the row, so that a thread's units lie at fixed distances in memory and in the ring.
// A block has some rows and goes through them with the next ones on their way; the parameters of a
// thread's columns and their sums stay in registers. The first blocks have most of the rows, the later
// ones little each, so that processors which memory serves sooner do more of it.
#ifndef WD_OPS_NORM_ROWS_STRIPS_CUH
#define WD_OPS_NORM_ROWS_STRIPS_CUH

#include "ops/norm/norm_rows_gradient.cuh"

namespace {

// What the warps of a block said of a row, by fours (a group's begin with a four); of a cluster, all.
constexpr uint32_t FOUR = 4;
constexpr uint32_t STRIP_PLACES = NORM_ROWS_THREADS / WARP + NORM_ROWS_GROUPS * (FOUR - 1);
struct strip_sums {
    union {
        float4 of_block[COPIES][2][(STRIP_PLACES + FOUR - 1) / FOUR];
        float4 of_cluster[COPIES][PARTS];
    };
    uint64_t here[COPIES];
};

// Blocks of a row: one where there are no clusters, which spares registers there.
__device__ __forceinline__ uint32_t strip_blocks(const norm_rows_args &a)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    return 1;
#else
    return a.cluster;
#endif
}

// Between units, where a compiler that reads all of them ahead runs out of registers.
template <class T> __device__ __forceinline__ void strip_in_turn(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    __syncwarp();
#else
    if (sizeof(T) == 4) __syncwarp();
#endif
}

// A block's rows, and where a thread's units lie in the ring: a warp's of x and of dy side by side.
template <class T, int C> struct strip_place {
    static constexpr int U = UNITS<T, C>;
    uint32_t row, end; // of this block
    uint32_t step;
    uint32_t stride; // units of a place of the ring
    uint32_t far;    // bytes from one row to the next: not many fit the chip at once
    uint32_t begin;  // of the thread's
};

template <class T, int C>
__device__ __forceinline__ strip_place<T, C> strip_place_of(const norm_rows_args &a, const seat &s)
{
    strip_place<T, C> p;
    const uint32_t id = blockIdx.x / strip_blocks(a);
    p.step = a.first * a.groups;
    p.row = id * a.groups + s.group;
    p.end = a.early;
    if (id >= a.first) {
        p.row = a.early + (id - a.first) * a.later + s.group;
        p.end = min((uint32_t)a.rows, p.row - s.group + a.later);
        p.step = a.groups;
    }
    p.far = p.step * a.length * (uint32_t)sizeof(T);
    p.stride = blockDim.x / WARP * (2 * p.U * WARP + 1);
    p.begin = threadIdx.x / WARP * (2 * p.U * WARP + 1) + threadIdx.x % WARP;
    return p;
}

// A row on its way to a place of the ring, with its statistics behind it.
template <class T, int C>
__device__ __forceinline__ void strip_ask(const norm_rows_args &a, const strip_place<T, C> &p,
                                          uint4 *to, int64_t at, uint32_t row)
{
    const char *x = static_cast<const char *>(a.x) + at;
    const char *dy = static_cast<const char *>(a.dy) + at;
    const uint32_t lane = threadIdx.x % WARP;
#pragma unroll
    for (int v = 0; v < p.U; ++v)
        wd_copy_async<16, false>(to + v * WARP, x + v * WARP * NORM_ROWS_UNIT);
#pragma unroll
    for (int v = 0; v < p.U; ++v)
        wd_copy_async<16, false>(to + (p.U + v) * WARP, dy + v * WARP * NORM_ROWS_UNIT);
    if (lane < 2) {
        const float *from = lane == 0 ? a.given_inv_std : a.given_mean;
        float *statistic = reinterpret_cast<float *>(to + 2 * p.U * WARP - lane) + lane;
        if (from) wd_copy_async<4, false>(statistic, from + row);
    }
}

// By a warp, after it waited, and before the place is asked for again.
template <class T, int C> __device__ __forceinline__ known strip_known(const uint4 *at)
{
    __syncwarp();
    const uint4 *behind = at + 2 * UNITS<T, C> * WARP - threadIdx.x % WARP;
    const float2 both = *reinterpret_cast<const float2 *>(behind);
    __syncwarp();
    return {both.y, both.x};
}

template <class T, int C, kind KIND>
__device__ __forceinline__ part strip_look(const strip_place<T, C> &p, const uint4 *at,
                                           const known &k, const float *scale, float *dscale,
                                           float *dbias)
{
    constexpr int E = EACH<T>;
    part sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int v = 0; v < p.U; ++v) {
        if (v > 0) strip_in_turn<half16>();
        const unit<T> x = strip_take<T>(at + v * WARP);
        const unit<T> dy = strip_take<T>(at + (p.U + v) * WARP);
#pragma unroll
        for (int i = 0; i < E; ++i) {
            add_column<KIND>(sum, k, wide_of<T>(x, i), wide_of<T>(dy, i), scale[v * E + i],
                             dscale[v * E + i], dbias[KIND == SQUARES ? 0 : v * E + i]);
        }
    }
    return sum;
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void strip_put(const norm_rows_args &a, const strip_place<T, C> &p,
                                          const uint4 *at, char *to, const known &k,
                                          const part &all, const float *scale)
{
    constexpr int E = EACH<T>;
    const float level = all.pivot * a.inverse; // 0 in RMS norm
    const float slope = (all.rest * a.inverse) * (k.inv_std * k.inv_std);
#pragma unroll
    for (int v = 0; v < p.U; ++v) {
        float dx[E];
        if (v > 0) strip_in_turn<T>();
        const unit<T> x = strip_take<T>(at + v * WARP);
        const unit<T> dy = strip_take<T>(at + (p.U + v) * WARP);
#pragma unroll
        for (int i = 0; i < E; ++i) {
            const float d = wide_of<T>(dy, i), of_x = wide_of<T>(x, i);
            if (KIND == SQUARES) {
                dx[i] = k.inv_std * fmaf(-slope, of_x, d * scale[v * E + i]);
            } else {
                const float g = fmaf(d, scale[v * E + i], -level);
                dx[i] = k.inv_std * fmaf(-slope, of_x - k.mean, g);
            }
        }
        put<T>(a, reinterpret_cast<T *>(to + v * WARP * NORM_ROWS_UNIT), dx);
    }
}

// Fours of the warps of a group.
__device__ __forceinline__ uint32_t fours_of(const norm_rows_args &a)
{
    return (a.lanes / WARP + FOUR - 1) / FOUR;
}

template <kind KIND>
__device__ __forceinline__ void strip_say(const norm_rows_args &a, const seat &s, strip_sums &of,
                                          uint32_t turn, const part &p)
{
    const uint32_t copy = turn % COPIES, lane = threadIdx.x % WARP, warp = s.lane / WARP;
    if (strip_blocks(a) == 1) {
        const uint32_t place = s.group * fours_of(a) * FOUR + warp;
        if (lane == 0) reinterpret_cast<float *>(of.of_block[copy][0])[place] = p.rest;
        if (KIND != SQUARES && lane == 0)
            reinterpret_cast<float *>(of.of_block[copy][1])[place] = p.pivot;
        return;
    }
    const uint32_t warps = a.lanes / WARP;
    if (threadIdx.x == 0) {
        wd_counter_expect(&of.here[copy], a.cluster * warps * (uint32_t)sizeof(float4));
    }
    if (lane < a.cluster) {
        wd_counter_send(&of.of_cluster[copy][s.rank * warps + warp], &of.here[copy], lane,
                        make_float4(p.pivot, p.rest, 0.0f, 0.0f));
    }
}

template <kind KIND>
__device__ __forceinline__ part strip_hear(const norm_rows_args &a, const seat &s, strip_sums &of,
                                           uint32_t turn)
{
    const uint32_t copy = turn % COPIES;
    part all = {0.0f, 0.0f, 0.0f, 0.0f};
    if (strip_blocks(a) == 1) {
        const uint32_t fours = fours_of(a), first = s.group * fours;
        wd_barrier(s.group + 1, a.lanes);
        for (uint32_t i = first; i < first + fours; ++i) {
            const float4 v = of.of_block[copy][0][i];
            all.rest += (v.x + v.y) + (v.z + v.w);
            if (KIND == SQUARES) continue;
            const float4 w = of.of_block[copy][1][i];
            all.pivot += (w.x + w.y) + (w.z + w.w);
        }
        return all;
    }
    wd_counter_wait(&of.here[copy], turn / COPIES & 1);
    for (uint32_t j = threadIdx.x % WARP; j < a.cluster * (a.lanes / WARP); j += WARP) {
        const float4 v = of.of_cluster[copy][j];
        all.pivot += v.x, all.rest += v.y;
    }
    all.rest = sum_of_warp(all.rest);
    if (KIND != SQUARES) all.pivot = sum_of_warp(all.pivot);
    return all;
}

// Nobody may write into the shared memory of a block that has not begun.
__device__ __forceinline__ void strip_begin(const norm_rows_args &a, strip_sums &of)
{
    if (strip_blocks(a) == 1) { // places that no warp has
        constexpr uint32_t all = sizeof of.of_block / sizeof(float4);
        for (uint32_t i = threadIdx.x; i < all; i += blockDim.x)
            of.of_block[0][0][i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        return;
    }
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < COPIES; ++i) wd_counter_begin(&of.here[i]);
    }
    wd_cluster_arrive();
    wd_cluster_wait();
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void strips_backward(const norm_rows_args &a)
{
    __shared__ strip_sums of;
    WD_DYNAMIC_SHARED(uint4, ring);
    seat s = seat_of<T, C, false>(a);
    s.stride = WARP * EACH<T>;
    s.first = s.before + s.lane / WARP * (WARP * C) + s.lane % WARP * EACH<T>;
    const strip_place<T, C> p = strip_place_of<T, C>(a, s);
    const bool alone = a.lanes == WARP && strip_blocks(a) == 1;
    float scale[C], dscale[C], dbias[KIND == SQUARES ? 1 : C];
    strip_begin(a, of);
    wd_wait_for_previous();
    uint32_t row = p.row;
    const int64_t first = ((int64_t)row * a.length + s.first) * (int64_t)sizeof(T);
    int64_t put_at = first - p.far;
    for (uint32_t r = 0; r < a.ring && !a.given_mean && threadIdx.x % WARP == 0; ++r) {
        uint4 *behind = ring + (p.begin + r * p.stride + 2 * p.U * WARP);
        *reinterpret_cast<float2 *>(behind) = make_float2(0.0f, 0.0f);
    }
    for (uint32_t r = 0; r < a.ahead; ++r) {
        if (row + r * p.step < p.end)
            strip_ask<T, C>(a, p, ring + (p.begin + r * p.stride), first + r * p.far,
                            row + r * p.step);
        wd_copies_end();
    }
    const uint32_t reach = (a.ahead - 1) * p.step;
    read_param<T, C, false>(s, a.scale, scale);
#pragma unroll
    for (int i = 0; i < C; ++i) dscale[i] = dbias[KIND == SQUARES ? 0 : i] = 0.0f;
    const int32_t around = (int32_t)(a.ring * p.stride), begin = (int32_t)p.begin;
    int32_t next = begin; // place of this turn's row
    part sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn, row += p.step, put_at += p.far) {
        // turn 0 only looks; the row before is put while this one has been looked at
        const bool more = row < p.end;
        part of_it = {0.0f, 0.0f, 0.0f, 0.0f};
        if (more) {
            if (turn > 0) {
                // where the row lay that was put a turn ago
                int32_t free = next - 2 * (int32_t)p.stride;
                if (free < begin) free += around;
                if (row + reach < p.end)
                    strip_ask<T, C>(a, p, ring + free, put_at + a.ahead * p.far, row + reach);
                wd_copies_end();
            }
            wait_for_row(a);
            const known k = strip_known<T, C>(ring + next);
            of_it = strip_look<T, C, KIND>(p, ring + next, k, scale, dscale, dbias);
            of_it.rest = sum_of_warp(of_it.rest);
            if (KIND != SQUARES) of_it.pivot = sum_of_warp(of_it.pivot);
            if (!alone) strip_say<KIND>(a, s, of, turn, of_it);
        }
        if (turn > 0) {
            if (!alone) sum = strip_hear<KIND>(a, s, of, turn - 1);
            if (!a.centered) sum.pivot = 0.0f;
            int32_t present = next - (int32_t)p.stride;
            if (present < begin) present += around;
            const known k = strip_known<T, C>(ring + present);
            strip_put<T, C, KIND>(a, p, ring + present, static_cast<char *>(a.y) + put_at, k, sum,
                                  scale);
        }
        if (!more) break;
        sum = of_it;
        next += (int32_t)p.stride;
        if (next - begin == around) next = begin;
    }
    deliver<T, C, false, KIND>(a, s, dscale, dbias, reinterpret_cast<float *>(ring));
}

} // namespace

#endif
