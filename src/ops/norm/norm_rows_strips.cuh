// SPDX-License-Identifier: Apache-2.0
//
// Gradients of layer norm and RMS norm over rows of whole units that a cluster shares, of which all
// threads have as many columns: a warp has a strip of the row, which comes to shared memory by bulk
// copies some rows ahead, and a thread's units lie at fixed distances. A block goes through its
// rows with the parameters of a thread's columns and their sums in registers; the first clusters
// have most of the rows, the later ones little each, so that processors which memory serves sooner
// do more of it. As in norm_rows_bulk.cuh, a row is put `lag` turns after it was looked at, and
// nothing but what is said of rows keeps warps together.
#ifndef WD_OPS_NORM_ROWS_STRIPS_CUH
#define WD_OPS_NORM_ROWS_STRIPS_CUH

#include "gpu/device/bulk.cuh"
#include "gpu/device/opaque.cuh"
#include "ops/norm/norm_rows_gradient.cuh"

namespace {

constexpr uint32_t STRIP_WARPS = 16;
constexpr uint32_t STRIP_COPIES =
    8; // a warp that is ahead writes when another still reads of earlier turns
struct __align__(128) strip_sums
{
    float4 of_cluster[STRIP_COPIES][NORM_ROWS_CLUSTER_MAX];
    float2 of_block[STRIP_COPIES][STRIP_WARPS];
    uint64_t here[STRIP_COPIES];    // what all blocks said
    uint64_t arrived[STRIP_COPIES]; // the warps of this one
    uint64_t read[STRIP_COPIES];    // lanes that have read what a warp left
    uint64_t landed[NORM_ROWS_AHEAD_MAX + 1][STRIP_WARPS];
};

// Between units, where a compiler that reads all of them ahead runs out of registers.
template <class T> __device__ __forceinline__ void strip_in_turn(void)
{
    if (sizeof(T) == 4) __syncwarp();
}

// A cluster's rows: less than 2^31, and a step less than 2^20.
struct strip_rows {
    uint32_t row, end, step;
};
__device__ __forceinline__ strip_rows strip_rows_of(const norm_rows_args &a)
{
    const uint32_t id = blockIdx.x / a.cluster;
    if (id < a.first) return {id, a.early, a.first};
    const uint32_t row = a.early + (id - a.first) * a.later;
    return {row, min((uint32_t)a.rows, row + a.later), 1};
}

// By one lane: the warp's strips of x and of dy of a row, `at` bytes behind the tensors' beginnings.
template <uint32_t STRIP>
__device__ __forceinline__ void strip_ask(const norm_rows_args &a, uint4 *to, int64_t at,
                                          uint64_t *landed)
{
    wd_counter_expect(landed, 2 * STRIP * NORM_ROWS_UNIT);
    wd_bulk_copy(to, static_cast<const char *>(a.x) + at, STRIP * NORM_ROWS_UNIT, landed);
    wd_bulk_copy(to + STRIP, static_cast<const char *>(a.dy) + at, STRIP * NORM_ROWS_UNIT, landed);
}

template <class T, int C, kind KIND>
__device__ __forceinline__ part strip_look(const uint4 *at, const known &k, const float *scale,
                                           float *dscale, float *dbias)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
    part sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int v = 0; v < U; ++v) {
        const unit<T> x = strip_take<T>(at + v * WARP);
        const unit<T> dy = strip_take<T>(at + (U + v) * WARP);
#pragma unroll
        for (int i = 0; i < E; ++i) {
            add_column<KIND>(sum, k, wide_of<T>(x, i), wide_of<T>(dy, i), scale[v * E + i],
                             dscale[v * E + i], dbias[KIND == SQUARES ? 0 : v * E + i]);
        }
    }
    return sum;
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void strip_put(const norm_rows_args &a, const uint4 *at, char *to,
                                          const known &k, const part &all, const float *scale)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
    const float level = all.pivot * a.inverse; // 0 in RMS norm
    const float slope = (all.rest * a.inverse) * (k.inv_std * k.inv_std);
#pragma unroll
    for (int v = 0; v < U; ++v) {
        float dx[E];
        if (v > 0) strip_in_turn<T>();
        const unit<T> x = strip_take<T>(at + v * WARP);
        const unit<T> dy = strip_take<T>(at + (U + v) * WARP);
#pragma unroll
        for (int i = 0; i < E; ++i) {
            const float d = wide_of<T>(dy, i), of_x = wide_of<T>(x, i);
            dx[i] = dx_of<KIND>(k, of_x, d, scale[v * E + i], slope, level);
        }
        put<T>(a, reinterpret_cast<T *>(to + v * WARP * NORM_ROWS_UNIT), dx);
    }
}

// Nobody may write into the shared memory of a block that has not begun. Blocks that are not there say zeros.
__device__ __forceinline__ void strip_begin(const norm_rows_args &a, strip_sums &of)
{
    if (threadIdx.x % WARP == 0) {
#pragma unroll 1
        for (uint32_t i = 0; i < a.ring; ++i) wd_counter_begin(&of.landed[i][threadIdx.x / WARP]);
    }
    for (uint32_t i = threadIdx.x; i < STRIP_COPIES * NORM_ROWS_CLUSTER_MAX; i += blockDim.x)
        of.of_cluster[0][i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (threadIdx.x < STRIP_COPIES) {
        wd_arrivals_begin(&of.arrived[threadIdx.x], blockDim.x / WARP);
        wd_arrivals_begin(&of.read[threadIdx.x], blockDim.x / WARP);
        wd_counter_begin(&of.here[threadIdx.x]);
    }
    wd_cluster_arrive();
    wd_cluster_wait();
}

// By one warp: what the block's warps found of the row of a turn, to all blocks.
template <kind KIND>
__device__ __forceinline__ void strip_say(const norm_rows_args &a, uint32_t rank, strip_sums &of,
                                          uint32_t turn)
{
    const uint32_t lane = threadIdx.x % WARP, copy = turn % STRIP_COPIES;
    float2 sums = make_float2(0.0f, 0.0f);
    wd_counter_wait(&of.arrived[copy], turn / STRIP_COPIES & 1);
    if (lane < blockDim.x / WARP) {
        sums = of.of_block[copy][lane];
        wd_arrive(&of.read[copy], blockDim.x / WARP);
    }
    sums.y = sum_of_warp(sums.y);
    if (KIND != SQUARES) sums.x = sum_of_warp(sums.x);
    if (lane == 0) wd_counter_expect(&of.here[copy], a.cluster * (uint32_t)sizeof(float4));
    if (lane < a.cluster) {
        wd_counter_send(&of.of_cluster[copy][rank], &of.here[copy], lane,
                        make_float4(sums.x, sums.y, 0.0f, 0.0f));
    }
}

__device__ __forceinline__ part strip_hear(const norm_rows_args &a, strip_sums &of, uint32_t turn)
{
    const uint32_t copy = turn % STRIP_COPIES;
    part all = {0.0f, 0.0f, 0.0f, 0.0f};
    wd_counter_wait(&of.here[copy], turn / STRIP_COPIES & 1);
#pragma unroll
    for (uint32_t i = 0; i < NORM_ROWS_CLUSTER_MAX; i += NORM_ROWS_CLUSTER_MAX / 2) {
        if (i >= a.cluster) break;
#pragma unroll
        for (uint32_t j = i; j < i + NORM_ROWS_CLUSTER_MAX / 2; ++j) {
            const float2 v = *reinterpret_cast<const float2 *>(&of.of_cluster[copy][j]);
            all.pivot += v.x, all.rest += v.y;
        }
    }
    return all;
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void strips_walk(const norm_rows_args &a)
{
    constexpr uint32_t STRIP = UNITS<T, C> * WARP; // units
    __shared__ strip_sums shared;
    WD_DYNAMIC_SHARED(uint4, places);
    strip_sums &of = *wd_opaque_shared(&shared);
    uint4 *ring = wd_opaque_shared(places);
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const strip_rows w = strip_rows_of(a);
    seat s = seat_of<T, C, false>(a);
    s.stride = WARP * EACH<T>;
    s.first = s.before + warp * (WARP * C) + lane * EACH<T>;
    const uint32_t stride = 2 * STRIP * (blockDim.x / WARP); // units of a place
    const uint32_t far =
        w.step * a.length * (uint32_t)sizeof(T); // not many rows fit the chip at once
    uint4 *strips = ring + warp * (2 * STRIP);
    uint64_t *landed = &of.landed[0][warp];
    float scale[C], dscale[C], dbias[KIND == SQUARES ? 1 : C];
    strip_begin(a, of);
    wd_wait_for_previous();
    uint32_t row = w.row, asked = w.row, last = 0;
    const int64_t begin = (int64_t)row * a.length + (s.first - lane * EACH<T>);
    int64_t from = begin * (int64_t)sizeof(T);
    char *to = static_cast<char *>(a.y) + (from - (int64_t)a.lag * far) + lane * NORM_ROWS_UNIT;
    for (uint32_t r = 0; r < a.ahead; ++r, asked += w.step, from += far) {
        if (lane == 0 && asked < w.end)
            strip_ask<STRIP>(a, strips + last * stride, from, landed + last * STRIP_WARPS);
        if (++last == a.ring) last = 0;
    }
    read_param<T, C, false>(s, a.scale, scale);
#pragma unroll
    for (int i = 0; i < C; ++i) dscale[i] = dbias[KIND == SQUARES ? 0 : i] = 0.0f;
    uint32_t next = 0, present = 0, phase = 0, says = 0;
    known k1 = {0.0f, 0.0f}, k2 = k1, of_next = known_of(a, row);
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn, row += w.step, to += far) {
        const bool looks = row < w.end, puts = turn >= a.lag;
        if (puts && row - a.lag * w.step >= w.end) break;
        const known k = of_next;
        of_next = known_of(a, row + w.step);
        if (looks) {
            if (turn > 0) {
                if (lane == 0 && asked < w.end)
                    strip_ask<STRIP>(a, strips + last * stride, from, landed + last * STRIP_WARPS);
                asked += w.step, from += far;
                if (++last == a.ring) last = 0;
            }
            wd_counter_wait(landed + next * STRIP_WARPS, phase);
            part mine =
                strip_look<T, C, KIND>(strips + next * stride + lane, k, scale, dscale, dbias);
            mine.rest = sum_of_warp(mine.rest);
            if (KIND != SQUARES) mine.pivot = sum_of_warp(mine.pivot);
            if (lane == 0) {
                wait_for_readers<STRIP_COPIES>(of.read, turn);
                of.of_block[turn % STRIP_COPIES][warp] = make_float2(mine.pivot, mine.rest);
                wd_arrive(&of.arrived[turn % STRIP_COPIES], blockDim.x / WARP);
            }
            if (++next == a.ring) next = 0, phase ^= 1;
        }
        if (puts) {
            part sum = strip_hear(a, of, turn - a.lag);
            if (!a.centered) sum.pivot = 0.0f;
            const known its = {a.lag == 1 ? k1.mean : k2.mean,
                               a.lag == 1 ? k1.inv_std : k2.inv_std};
            strip_put<T, C, KIND>(a, strips + present * stride + lane, to, its, sum, scale);
            if (++present == a.ring) present = 0;
            __syncwarp(); // its place is asked for next
        }
        // in turn, so that none is later than the others, and when these have had time to look too
        if (looks) {
            if (warp == says) strip_say<KIND>(a, s.rank, of, turn);
            if (++says == blockDim.x / WARP) says = 0;
        }
        k2 = k1;
        k1 = k;
    }
    deliver<T, C, false, KIND>(a, s, dscale, dbias, reinterpret_cast<float *>(ring));
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void strips_backward(const norm_rows_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, there are no clusters
    strips_walk<T, C, KIND>(a);
#endif
}

} // namespace

#endif
