// SPDX-License-Identifier: Apache-2.0
//
// Gradients by rows of two bytes an element that part of a block, a block or a small cluster has, where all threads have as many
// columns. A warp's strips of x and dy come to shared memory by bulk copies, and from there to its registers, where they stay until
// the row is put: so the next row's are asked for as soon as a row is looked at, or where that is more than 49 KB of a processor
// (`late`) as soon as its sums are there. No more than a row of each is ever on its way. Blocks that ask for more do not get it
// sooner: memory that is full serves parts of the chip alike, however many blocks wait there, and those which are served sooner have
// ended when others have a tenth of their rows left (ROWS.md).
#ifndef WD_OPS_NORM_ROWS_HELD_CUH
#define WD_OPS_NORM_ROWS_HELD_CUH

#include "gpu/device/bulk.cuh"
#include "ops/norm/norm_rows_gradient.cuh"

namespace {

constexpr uint32_t HELD_WARPS = 16;

// What a thread has of a row.
template <class T, int C> struct held_row {
    unit<T> x[UNITS<T, C>];
    unit<T> dy[UNITS<T, C>];
};

// By a warp that has read what lay there: its strips of x and of dy, where the thread's first column is `at` bytes behind the tensors'
// beginnings. The first lane asks for all; below compute capability 9.0 each for its own units.
template <uint32_t STRIP>
__device__ __forceinline__ void held_ask(const norm_rows_args &a, uint4 *strips, int64_t at,
                                         uint64_t *landed)
{
    const char *x = static_cast<const char *>(a.x) + at;
    const char *dy = static_cast<const char *>(a.dy) + at;
    const uint32_t lane = threadIdx.x % WARP;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#pragma unroll
    for (uint32_t u = 0; u < STRIP; u += WARP) {
        wd_copy_async<16, false>(strips + u + lane, x + u * NORM_ROWS_UNIT);
        wd_copy_async<16, false>(strips + STRIP + u + lane, dy + u * NORM_ROWS_UNIT);
    }
    wd_copies_end();
#else
    if (lane > 0) return;
    wd_counter_expect(landed, 2 * STRIP * NORM_ROWS_UNIT);
    wd_bulk_copy(strips, x, STRIP * NORM_ROWS_UNIT, landed);
    wd_bulk_copy(strips + STRIP, dy, STRIP * NORM_ROWS_UNIT, landed);
#endif
}

// For what the warp asked for before a turn; a counter's phase ends once a turn.
__device__ __forceinline__ void held_wait(uint64_t *landed, uint32_t turn)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    wd_copies_wait<0>();
#else
    wd_counter_wait(landed, turn & 1);
#endif
}

template <class T, int C>
__device__ __forceinline__ void held_take(held_row<T, C> &to, const uint4 *from)
{
    constexpr int U = UNITS<T, C>;
#pragma unroll
    for (int v = 0; v < U; ++v) {
        to.x[v] = strip_take<T>(from + v * WARP);
        to.dy[v] = strip_take<T>(from + (U + v) * WARP);
    }
}

template <class T, int C, kind KIND>
__device__ __forceinline__ part held_look(const held_row<T, C> &of, const known &k,
                                          const float *scale, float *dscale, float *dbias)
{
    constexpr int E = EACH<T>;
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < C; ++i) {
        add_column<KIND>(p, k, wide_of<T>(of.x[i / E], i % E), wide_of<T>(of.dy[i / E], i % E),
                         scale[i], dscale[i], dbias[KIND == SQUARES ? 0 : i]);
    }
    return p;
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void held_put(const norm_rows_args &a, const seat &s,
                                         const held_row<T, C> &of, uint32_t row, const known &k,
                                         const part &all, const float *scale)
{
    constexpr int E = EACH<T>;
    const float level = a.centered ? all.pivot * a.inverse : 0.0f;
    const float slope = (all.rest * a.inverse) * (k.inv_std * k.inv_std);
    T *to = static_cast<T *>(a.y) + ((int64_t)row * a.length + s.first);
#pragma unroll
    for (int v = 0; v < UNITS<T, C>; ++v) {
        float dx[E];
#pragma unroll
        for (int i = 0; i < E; ++i)
            dx[i] = dx_of<KIND>(k, wide_of<T>(of.x[v], i), wide_of<T>(of.dy[v], i),
                                scale[v * E + i], slope, level);
        put<T>(a, to + v * s.stride, dx);
    }
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void held_backward(const norm_rows_args &a)
{
    constexpr uint32_t STRIP = UNITS<T, C> * WARP; // units
    __shared__ slots of;
    __shared__ uint64_t landed[HELD_WARPS];
    WD_DYNAMIC_SHARED(uint4, places);
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t rows = (uint32_t)a.rows, step = (uint32_t)a.step; // less than 2^31 and 2^20
    const bool alone = a.lanes == WARP && a.cluster == 1;
    uint4 *strips = places + warp * (2 * STRIP);
    seat s = seat_of<T, C, false>(a);
    s.stride = WARP * EACH<T>;
    s.first = s.before + s.lane / WARP * (WARP * C) + lane * EACH<T>;
    const auto ask_for = [&](uint32_t row) {
        if (row < rows)
            held_ask<STRIP>(a, strips, ((int64_t)row * a.length + s.first) * (int64_t)sizeof(T),
                            &landed[warp]);
    };
    float scale[C], dscale[C], dbias[KIND == SQUARES ? 1 : C];
    if (lane == 0) wd_counter_begin(&landed[warp]);
    begin_exchange(a, of);
    __syncwarp();
    wd_wait_for_previous();
    uint32_t row = blockIdx.x / a.cluster * a.groups + s.group;
    ask_for(row);
    known of_next = known_of(a, row);
    read_param<T, C, false>(s, a.scale, scale);
#pragma unroll
    for (int i = 0; i < C; ++i) dscale[i] = dbias[KIND == SQUARES ? 0 : i] = 0.0f;
#pragma unroll 1
    for (uint32_t turn = 0; row - s.group < rows; ++turn, row += step) {
        // moved before the next are asked for: loads share a counter of the machine, and their first use would wait for these too
        const known k = {of_next.mean + 0.0f, of_next.inv_std + 0.0f};
        held_row<T, C> mine;
        part p = {0.0f, 0.0f, 0.0f, 0.0f};
        of_next = known_of(a, row + step);
        if (row < rows) {
            held_wait(&landed[warp], turn);
            held_take(mine, strips + lane);
            p = held_look<T, C, KIND>(mine, k, scale, dscale, dbias);
        }
        __syncwarp();
        if (!a.late) ask_for(row + step);
        if (KIND == SQUARES) p.rest = sum_of_warp(p.rest);
        else p = join_warp<false>(p, 0.0f);
        if (!alone) {
            say(a, s.rank, of, turn, p);
            p = hear<false>(a, s.group, of, turn);
        }
        if (a.late) ask_for(row + step);
        if (row < rows) held_put<T, C, KIND>(a, s, mine, row, k, p, scale);
    }
    deliver<T, C, false, KIND>(a, s, dscale, dbias, reinterpret_cast<float *>(places));
}

} // namespace

#endif
