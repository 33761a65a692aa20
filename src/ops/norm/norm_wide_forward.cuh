// SPDX-License-Identifier: Apache-2.0
//
// Forward over a few rows that the whole chip has, see norm_wide.cuh. Each part runs once a launch, from a cold cache of
// instructions, so loops are loops: over columns and rows. Sums are around a number of the warp; parameters
// come while blocks meet, when memory has nothing else to do.
#ifndef WD_OPS_NORM_WIDE_FORWARD_CUH
#define WD_OPS_NORM_WIDE_FORWARD_CUH

#include "gpu/device/bulk.cuh"
#include "gpu/device/prefetch.cuh"
#include "ops/norm/norm_middle.cuh"
#include "ops/norm/norm_wide.cuh"

namespace {

// Columns of a thread at a time, and of a block.
constexpr int WIDE_COLUMNS = 8;
constexpr uint32_t WIDE_STEP = WIDE_THREADS<true> * WIDE_COLUMNS;

// These columns, from where the thread's first is: units, or singles. `left` are there, and `other` stands for the rest.
template <class T, bool RUNS>
__device__ __forceinline__ void wide_take(const T *from, uint32_t left, float other, float *to)
{
    constexpr int E = EACH<T>;
    if constexpr (RUNS) {
#pragma unroll
        for (int v = 0; v < WIDE_COLUMNS; v += E) {
            const bool there = (uint32_t)v < left;
            const unit<T> u = strip_take<T>(
                reinterpret_cast<const uint4 *>(there ? from + v * WIDE_THREADS<true> : from));
#pragma unroll
            for (int k = 0; k < E; ++k) to[v + k] = there ? wide_of(u, k) : other;
        }
    } else {
#pragma unroll
        for (int k = 0; k < WIDE_COLUMNS; ++k) {
            to[k] = other;
            if ((uint32_t)k < left) to[k] = wd_widen(from[k * WIDE_THREADS<true>]);
        }
    }
}

template <class T, bool RUNS>
__device__ __forceinline__ void wide_put(const norm_rows_args &a, T *to, uint32_t left,
                                         const float *value)
{
    if constexpr (RUNS) {
#pragma unroll
        for (int v = 0; v < WIDE_COLUMNS; v += EACH<T>) {
            if ((uint32_t)v < left) put(a, to + v * WIDE_THREADS<true>, value + v);
        }
    } else {
#pragma unroll
        for (int k = 0; k < WIDE_COLUMNS; ++k) {
            if ((uint32_t)k < left) wd_narrow(to[k * WIDE_THREADS<true>], value[k]);
        }
    }
}

// The units of row `r` of the ring that are done with the STEP columns from `i` on, to memory: sectors that are written in
// parts cost as much again. A warp's begin at a line; what is not the block's of the first and the last unit stays.
template <class T>
__device__ __forceinline__ void wide_put_units(const norm_wide_args &w, const strip &s,
                                               const uint4 *ring, const wide_row &n, uint32_t r,
                                               uint32_t i)
{
    constexpr int E = EACH<T>;
    const uint4 *row = ring + r * w.row_units;
    const int shift = (int)(n.at - r * w.row_units * E);
    const int stop = shift + (int)s.count, after = shift + (int)(i + WIDE_STEP);
    const int first = (shift + (int)i) / E, whole = (shift + E - 1) / E, wholes = stop / E - whole;
    const int end = after < stop ? after / E : (stop + E - 1) / E;
    uint4 *to = static_cast<uint4 *>(n.to);
    const int lead = (int)((reinterpret_cast<uintptr_t>(to) / NORM_ROWS_UNIT + (uint32_t)first) %
                           (WD_LINE / NORM_ROWS_UNIT));
#pragma unroll 1
    for (int u = first - lead + (int)threadIdx.x; u < end; u += (int)WIDE_THREADS<true>) {
        if (u < first) continue;
        const unit<T> one = strip_take<T>(row + u);
        T *at = reinterpret_cast<T *>(to + u);
        if ((uint32_t)(u - whole) < (uint32_t)wholes) {
            if (w.of.streaming) one.store_streaming(at);
            else one.store(at);
            continue;
        }
#pragma unroll
        for (int k = 0; k < E; ++k) {
            if (u * E + k >= shift && u * E + k < stop) at[k] = one.get(k);
        }
    }
}

// Parameters of these columns; 0 where there are none.
template <class T, bool RUNS>
__device__ __forceinline__ void wide_params(const norm_rows_param &p, uint32_t column,
                                            uint32_t left, float *to)
{
    constexpr int E = RUNS ? EACH<T> : 1;
    const uint32_t there = p.data ? left : 0;
    if (p.type == NORM_ROWS_F32) {
        const float *from = static_cast<const float *>(p.data) + column;
#pragma unroll
        for (int k = 0; k < WIDE_COLUMNS; ++k) {
            to[k] = 0.0f;
            if ((uint32_t)k < there) to[k] = from[k / E * E * WIDE_THREADS<true> + k % E];
        }
    } else {
        const uint16_t *from = static_cast<const uint16_t *>(p.data) + column;
#pragma unroll
        for (int k = 0; k < WIDE_COLUMNS; ++k) {
            unit<half16> one;
            one.word[0] = 0;
            if ((uint32_t)k < there) one.word[0] = from[k / E * E * WIDE_THREADS<true> + k % E];
            to[k] =
                p.type == NORM_ROWS_F16 ? wd_widen(one.get(0)) : __uint_as_float(one.word[0] << 16);
        }
    }
}

// The block's parts of all rows on their way to the ring, a row by one copy: threads that copied them would wait for
// places in the queue of loads, and not look at the rows that are there.
template <class T, bool RUNS>
__device__ __forceinline__ void wide_ask(const norm_wide_args &w, const strip &s, room &of,
                                         uint4 *ring)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr uint32_t E = EACH<T>;
    if (threadIdx.x == 0) {
#pragma unroll 1
        for (uint32_t r = 0; r < w.batch; ++r) wd_counter_begin(&of.landed[r]);
#pragma unroll 1
        for (uint32_t r = 0; r < w.batch; ++r) {
            const uint32_t shift = RUNS ? 0 : wide_shift_of<T>(w, s, w.of.x, r);
            const uint32_t bytes = s.count > 0 ? (shift + s.count + E - 1) / E * NORM_ROWS_UNIT : 0;
            const T *from =
                static_cast<const T *>(w.of.x) + ((int64_t)r * w.of.length + s.first) - shift;
            wd_counter_expect(&of.landed[r], bytes);
            if (bytes > 0) wd_bulk_copy(ring + r * w.row_units, from, bytes, &of.landed[r]);
        }
    }
    __syncthreads(); // others may look at the counters
#else
    ask_rows<T, RUNS, 1, WIDE_THREADS<true>>(w, s, of, ring);
#endif
}

__device__ __forceinline__ void wide_await(const norm_wide_args &w, room &of, uint32_t r)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    wd_counter_wait(&of.landed[r], 0);
#else
    wait_but(w.batch - 1 - r);
    __syncthreads(); // what others copied
#endif
}

// The lines of the block's parameters, on their way to the second-level cache.
__device__ __forceinline__ void prefetch_param(const norm_rows_param &p, const strip &s)
{
    const uint32_t each = p.type == NORM_ROWS_F32 ? 4 : 2;
    const char *from = static_cast<const char *>(p.data) + (size_t)s.first * each;
    if (!p.data) return;
#pragma unroll 1
    for (uint32_t i = threadIdx.x * WD_LINE; i < s.count * each; i += WIDE_THREADS<true> * WD_LINE)
        wd_prefetch_line(from + i);
}

// What the warp finds of a row in the ring; `count` columns are its own.
template <class T, bool RUNS>
__device__ __forceinline__ part look_forward(const norm_wide_args &w, const strip &s, const T *from,
                                             float count, float inverse)
{
    part p = {0.0f, 0.0f, 0.0f, count};
    float sum = 0.0f, squares = 0.0f;
    if (w.of.centered) {
        // of a lane that has no columns the first lane's
        float mine = s.mine > 0 ? wd_widen(*from) : 0.0f;
        const float first = __shfl_sync(WHOLE_WARP, mine, 0);
        if (s.mine == 0) mine = first;
        p.pivot = wd_middle_of(first, __shfl_sync(WHOLE_WARP, mine, WARP / 2),
                               __shfl_sync(WHOLE_WARP, mine, WARP - 1));
    }
#pragma unroll 1
    for (uint32_t i = 0; i < s.mine; i += WIDE_COLUMNS, from += WIDE_STEP) {
        float x[WIDE_COLUMNS];
        wide_take<T, RUNS>(from, s.mine - i, p.pivot, x);
#pragma unroll
        for (int k = 0; k < WIDE_COLUMNS; ++k) {
            const float d = x[k] - p.pivot;
            sum += d;
            squares = fmaf(d, d, squares);
        }
    }
    sum = sum_of_warp(sum);
    p.squares = sum_of_warp(squares);
    if (w.of.centered) {
        p.rest = sum * inverse;
        p.squares = fmaf(-sum, p.rest, p.squares);
        if (p.squares < 0.0f) p.squares = 0.0f;
    }
    return p;
}

// All blocks meet; then of the row of each of the first warps what all said of it.
template <class T, bool RUNS>
__device__ __forceinline__ void meet_forward(const norm_wide_args &w, const strip &s, room &of,
                                             uint32_t before)
{
    const uint32_t warp = threadIdx.x / WARP;
    part parts[PARTS_EACH];
    if (threadIdx.x == 0) wd_await(w.counter, before);
    __syncthreads();
    if (warp < w.batch) {
        fetch_parts(w, parts);
        const numbers n = numbers_of(w.of, join_parts<true>(w, parts));
        const uint32_t shift = RUNS ? 0 : wide_shift_of<T>(w, s, w.of.x, warp);
        if (threadIdx.x % WARP == 0) {
            T *to = static_cast<T *>(w.of.y) + ((int64_t)warp * w.of.length + s.first) - shift;
            of.numbers[warp] = {n.mean, n.inv_std, n.shift, warp * w.row_units * EACH<T> + shift,
                                to};
            if (blockIdx.x == 0 && w.of.mean) w.of.mean[warp] = n.mean;
            if (blockIdx.x == 0 && w.of.inv_std) w.of.inv_std[warp] = n.inv_std;
        }
    }
    __syncthreads();
}

template <class T, bool RUNS> __device__ __forceinline__ void wide_forward(const norm_wide_args &w)
{
    constexpr uint32_t THREADS = WIDE_THREADS<true>;
    constexpr uint32_t E = EACH<T>;
    __shared__ room of;
    WD_DYNAMIC_SHARED(uint4, ring);
    const norm_rows_args &a = w.of;
    const strip s = strip_of<T, RUNS, THREADS>(w);
    const uint32_t mine = RUNS ? threadIdx.x * E : threadIdx.x;
    const bool by_units = !RUNS && !a.apart;
    T *x = reinterpret_cast<T *>(ring) + mine;
    wd_wait_for_previous();
    wide_ask<T, RUNS>(w, s, of, ring);
    const float columns = sum_of_warp((float)s.mine);
    const float inverse = columns > 0.0f ? 1.0f / columns : 0.0f;
#pragma unroll 1
    for (uint32_t r = 0; r < w.batch; ++r) {
        if (r + 1 == w.batch) prefetch_param(a.scale, s), prefetch_param(a.bias, s);
        const uint32_t shift = RUNS ? 0 : wide_shift_of<T>(w, s, a.x, r);
        wide_await(w, of, r);
        const part p =
            look_forward<T, RUNS>(w, s, x + r * w.row_units * E + shift, columns, inverse);
        if (threadIdx.x % WARP == 0) of.of_warp[r][threadIdx.x / WARP] = p;
    }
    const uint32_t before = tell<true>(w, s, of);
    uint32_t left = s.mine;
#pragma unroll 1
    for (uint32_t i = 0; i == 0 || i < s.count; i += WIDE_STEP) {
        float scale[WIDE_COLUMNS], bias[WIDE_COLUMNS];
        wide_params<T, RUNS>(a.scale, s.first + mine + i, left, scale);
        wide_params<T, RUNS>(a.bias, s.first + mine + i, left, bias);
        if (i == 0) meet_forward<T, RUNS>(w, s, of, before); // the first come meanwhile
        T *to = static_cast<T *>(a.y) + (s.first + mine + i);
#pragma unroll 1
        for (uint32_t r = 0; r < w.batch && left > 0; ++r, to += a.length) {
            const wide_row n = of.numbers[r];
            T *from = x + n.at + i;
            float v[WIDE_COLUMNS];
            wide_take<T, RUNS>(from, left, 0.0f, v);
#pragma unroll
            for (int k = 0; k < WIDE_COLUMNS; ++k)
                v[k] = fmaf(scale[k], fmaf(v[k] - n.mean, n.inv_std, n.shift), bias[k]);
            if (by_units) wide_put<T, RUNS>(a, from, left, v);
            else wide_put<T, RUNS>(a, to, left, v);
        }
        if (by_units) {
            __syncthreads(); // what others put into the ring
#pragma unroll 1
            for (uint32_t r = 0; r < w.batch; ++r)
                wide_put_units<T>(w, s, ring, of.numbers[r], r, i);
        }
        left -= min(left, (uint32_t)WIDE_COLUMNS);
    }
}

} // namespace

#endif
