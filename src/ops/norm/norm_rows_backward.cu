// SPDX-License-Identifier: Apache-2.0
//
// Gradients of layer norm and RMS norm over rows without gaps, as norm_rows walks: x and dy are read
// once, dscale and dbias are added up in registers over the rows of a thread, then over the rows side
// by side in a block, then by a second kernel or, of a small problem, by the blocks of one cluster.
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "ops/norm/norm_rows_held.cuh"
#include "ops/norm/norm_rows_odd.cuh"
#include "ops/norm/norm_rows_odd_held.cuh"
#include "ops/norm/norm_rows_strips.cuh"

namespace {

template <class T, int C, bool EDGES, kind KIND>
__device__ __forceinline__ part look(const norm_rows_args &a, const seat &s, uint4 *ring,
                                     uint32_t at, uint32_t row, const known &k, const float *scale,
                                     float *dscale, float *dbias)
{
    constexpr int E = EACH<T>;
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
    if constexpr (EDGES) {
        const T *x = singles_of<T, 2>(a, s, ring, at, 0, a.x, row);
        const T *dy = singles_of<T, 2>(a, s, ring, at, 1, a.dy, row);
#pragma unroll
        for (int i = 0; i < C; ++i) {
            if (!has<EDGES>(s, i)) continue;
            add_column<KIND>(p, k, wd_widen(x[i * s.stride]), wd_widen(dy[i * s.stride]), scale[i],
                             dscale[i], dbias[i]);
        }
    } else {
#pragma unroll
        for (int v = 0; v < UNITS<T, C>; ++v) {
            const unit<T> x = take<T, C, 2>(ring, at, 0, v);
            const unit<T> dy = take<T, C, 2>(ring, at, 1, v);
#pragma unroll
            for (int i = 0; i < E; ++i) {
                add_column<KIND>(p, k, wide_of<T>(x, i), wide_of<T>(dy, i), scale[v * E + i],
                                 dscale[v * E + i], dbias[KIND == SQUARES ? 0 : v * E + i]);
            }
        }
    }
    return p;
}

// dx = inv_std (g - (sum of g + xhat sum of g xhat) / length)
template <class T, int C, bool EDGES, kind KIND>
__device__ __forceinline__ void put_row(const norm_rows_args &a, const seat &s, uint4 *ring,
                                        uint32_t at, uint32_t row, const known &k, const part &all,
                                        const float *scale)
{
    constexpr int E = EACH<T>;
    const float level = a.centered ? all.pivot * a.inverse : 0.0f;
    const float slope = (all.rest * a.inverse) * (k.inv_std * k.inv_std);
    T *to = static_cast<T *>(a.y) + ((int64_t)row * a.length + s.first);
    if constexpr (EDGES) {
        const uint32_t count = row < (uint32_t)a.rows ? s.count : 0;
        T *x = singles_of<T, 2>(a, s, ring, at, 0, a.x, row);
        const T *dy = singles_of<T, 2>(a, s, ring, at, 1, a.dy, row);
#pragma unroll
        for (int i = 0; i < C; i += SOME) {
            unit<T> of_x[SOME / E], of_dy[SOME / E];
            float dx[SOME];
            take_singles<T>(of_x, x, s.stride, i, count);
            take_singles<T>(of_dy, dy, s.stride, i, count);
#pragma unroll
            for (int j = 0; j < SOME; ++j) {
                const float d = wide_of<T>(of_dy[j / E], j % E),
                            x_j = wide_of<T>(of_x[j / E], j % E);
                dx[j] = dx_of<KIND>(k, x_j, d, scale[i + j], slope, level);
            }
            put_singles<T>(x, s.stride, i, count, dx);
        }
        put_slot<T, 2>(a, s, ring, at, row);
    } else {
        if (row >= (uint32_t)a.rows) return;
#pragma unroll
        for (int v = 0; v < UNITS<T, C>; ++v) {
            float dx[E];
            const unit<T> x = take<T, C, 2>(ring, at, 0, v);
            const unit<T> dy = take<T, C, 2>(ring, at, 1, v);
#pragma unroll
            for (int i = 0; i < E; ++i) {
                const float d = wide_of<T>(dy, i), of_x = wide_of<T>(x, i);
                dx[i] = dx_of<KIND>(k, of_x, d, scale[v * E + i], slope, level);
            }
            put<T>(a, to + v * s.stride, dx);
        }
    }
}

// Of a row by posts the last block may have less, by whole warps: the others have none of it.
template <class T, int C> __device__ __forceinline__ void last_of_row(seat &s)
{
    const uint32_t lanes = s.part / C;
    s.stride = lanes * EACH<T>;
    if (s.lane < lanes) return;
    s.count = 0;
    s.first = s.before;
}

template <class T, int C, bool EDGES, kind KIND>
__device__ __forceinline__ void rows_backward(const norm_rows_args &a)
{
    __shared__ slots of;
    WD_DYNAMIC_SHARED(uint4, ring);
    seat s = seat_of<T, C, EDGES>(a);
    if (KIND == POSTS) last_of_row<T, C>(s);
    const bool there = KIND != POSTS || s.count > 0;
    const uint32_t rows = (uint32_t)a.rows, step = (uint32_t)a.step; // less than 2^31 and 2^20
    const bool alone = KIND == SEVERAL || a.lanes == WARP;
    float scale[C], dscale[C], dbias[KIND == SQUARES ? 1 : C];
    known k = {0.0f, 0.0f};
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
    if (KIND != SEVERAL) begin_exchange(a, of);
    wd_wait_for_previous();
    uint32_t row = blockIdx.x / a.cluster * a.groups + s.group;
    for (uint32_t r = 0; r < a.ahead; ++r) {
        if (there && row + r * step < rows) {
            ask<T, C, EDGES, 2>(a, s, ring, r, 0, a.x, row + r * step);
            ask<T, C, EDGES, 2>(a, s, ring, r, 1, a.dy, row + r * step);
        }
        wd_copies_end();
    }
    const bool posts = KIND == POSTS || (KIND == SQUARES && a.posts);
    if (posts) begin_posts(a, s.rank);
    known of_next = known_of(a, row);
    read_param<T, C, EDGES>(s, a.scale, scale);
#pragma unroll
    for (int i = 0; i < C; ++i) dscale[i] = dbias[KIND == SQUARES ? 0 : i] = 0.0f;
    uint32_t present = 0, next = 0, last = a.ahead % a.ring;
    for (uint32_t turn = 0;; ++turn, row += step) {
        // turn 0 only looks; row `row - step` is put while `row` has been looked at
        const bool more = row - s.group < rows;
        part of_it = {0.0f, 0.0f, 0.0f, 0.0f};
        const known later = known_of(a, row + step);
        early_posts early = {{0, 0}}; // of squares not: there are no registers for it
        if (KIND == POSTS) ask_posts(a, turn, early);
        if (more) {
            if (turn > 0) {
                const uint32_t far = row + (a.ahead - 1) * step;
                if (there && far < rows) {
                    ask<T, C, EDGES, 2>(a, s, ring, last, 0, a.x, far);
                    ask<T, C, EDGES, 2>(a, s, ring, last, 1, a.dy, far);
                }
                wd_copies_end();
                if (++last == a.ring) last = 0;
            }
            wait_for_row(a);
            if (EDGES) meet_row(a, s);
            if (there && row < rows)
                of_it =
                    look<T, C, EDGES, KIND>(a, s, ring, next, row, of_next, scale, dscale, dbias);
            if (KIND == SEVERAL) of_it = join<false>(of_it, s.width, 0.0f);
            else if (KIND == SQUARES) of_it.rest = sum_of_warp(of_it.rest);
            else of_it = join_warp<false>(of_it, 0.0f);
            if (!alone) say(a, s.rank, of, turn, of_it);
        }
        if (posts) p = exchange(a, s.rank, of, turn, more, early);
        if (turn > 0) {
            if (!alone && !posts) p = hear<false>(a, s.group, of, turn - 1);
            if (there) put_row<T, C, EDGES, KIND>(a, s, ring, present, row - step, k, p, scale);
        }
        if (!more) break;
        if (!posts) p = of_it;
        k = of_next;
        of_next = later;
        present = next;
        if (++next == a.ring) next = 0;
    }
    deliver<T, C, EDGES, KIND>(a, s, dscale, dbias, reinterpret_cast<float *>(ring));
}

// ---- Few rows ----

// Sums over the block; all threads get them.
__device__ __forceinline__ part join_block(const part &mine)
{
    __shared__ part of_warp[WARPS];
    const part p = join_warp<false>(mine, 0.0f);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = p;
    __syncthreads();
    return join_all<false>(of_warp, blockDim.x / WARP, 0.0f);
}

// Of the thread's columns; loads of all before the first is looked at.
template <class P>
__device__ __forceinline__ void few_load(const norm_rows_args &a, const void *from, float *to)
{
    P raw[NORM_ROWS_FEW_COLUMNS];
#pragma unroll
    for (int i = 0; i < NORM_ROWS_FEW_COLUMNS; ++i) {
        const uint32_t column = threadIdx.x + i * blockDim.x;
        wd_narrow(raw[i], 0.0f);
        if (column < a.length) raw[i] = static_cast<const P *>(from)[column];
    }
#pragma unroll
    for (int i = 0; i < NORM_ROWS_FEW_COLUMNS; ++i) to[i] = wd_widen(raw[i]);
}

template <class T> __device__ __forceinline__ void few_row(const norm_rows_args &a, int64_t row)
{
    constexpr int EACH_THREAD = NORM_ROWS_FEW_COLUMNS;
    const known k = known_of(a, row);
    const T *x = static_cast<const T *>(a.x) + row * a.length;
    const T *dy = static_cast<const T *>(a.dy) + row * a.length;
    float centred[EACH_THREAD], g[EACH_THREAD], scale[EACH_THREAD];
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
    if (a.scale.type == NORM_ROWS_F32) few_load<float>(a, a.scale.data, scale);
    else if (a.scale.type == NORM_ROWS_F16) few_load<half16>(a, a.scale.data, scale);
    else few_load<bfloat16>(a, a.scale.data, scale);
    few_load<T>(a, x, centred);
    few_load<T>(a, dy, g);
#pragma unroll
    for (int i = 0; i < EACH_THREAD; ++i) {
        const bool there = threadIdx.x + i * blockDim.x < a.length;
        centred[i] = there ? centred[i] - k.mean : 0.0f;
        g[i] *= scale[i];
    }
#pragma unroll
    for (int i = 0; i < EACH_THREAD; ++i) {
        p.pivot += g[i];
        p.rest = fmaf(g[i], centred[i], p.rest);
    }
    p = join_block(p);
    const float level = a.centered ? p.pivot * a.inverse : 0.0f;
    const float slope = (p.rest * a.inverse) * (k.inv_std * k.inv_std);
    T *to = static_cast<T *>(a.y) + row * a.length;
#pragma unroll
    for (int i = 0; i < EACH_THREAD; ++i) {
        const uint32_t column = threadIdx.x + i * blockDim.x;
        if (column >= a.length) continue;
        wd_narrow(to[column], k.inv_std * fmaf(-slope, centred[i], g[i] - level));
    }
}

// A warp has every so manyth row, a lane a column.
template <class T>
__device__ __forceinline__ void few_columns(const norm_rows_args &a, uint32_t strip)
{
    __shared__ float of_warp[2][WARPS][WARP];
    const uint32_t warps = blockDim.x / WARP;
    const uint32_t warp = threadIdx.x / WARP;
    const uint32_t lane = threadIdx.x % WARP;
    const uint32_t column = strip * WARP + lane;
    float dscale = 0.0f, dbias = 0.0f;
    if (column < a.length) {
#pragma unroll 4
        for (uint32_t row = warp; row < a.rows; row += warps) {
            const known k = known_of(a, row);
            const int64_t at = (int64_t)row * a.length + column;
            const float d = wd_widen(static_cast<const T *>(a.dy)[at]);
            const float xhat = (wd_widen(static_cast<const T *>(a.x)[at]) - k.mean) * k.inv_std;
            dscale = fmaf(d, xhat, dscale);
            dbias += d;
        }
    }
    of_warp[0][warp][lane] = dscale;
    of_warp[1][warp][lane] = dbias;
    __syncthreads();
    if (warp > 1 || column >= a.length) return;
    float sum = 0.0f;
    for (uint32_t w = 0; w < warps; ++w) sum += of_warp[warp][w][lane];
    write_param(param_of(a, warp), column, sum);
}

// Blocks of two kinds, which need nothing of one another: the first ones have a row each, the others
// some columns of all rows, which they read again.
template <class T> __device__ __forceinline__ void few(const norm_rows_args &a)
{
    wd_wait_for_previous();
    if (blockIdx.x < a.rows) few_row<T>(a, blockIdx.x);
    else few_columns<T>(a, blockIdx.x - (uint32_t)a.rows);
}

// dscale and dbias of the partial rows, first those that are wanted: a block has a tile of columns of one
// of them, and `groups` slices of the partial rows side by side, whose sums lanes join. What a thread adds
// up is on its way before the first of it is looked at.
__device__ __forceinline__ void rows_finish(const norm_rows_args &a)
{
    constexpr int AT_ONCE = 8;
    __shared__ double of[NORM_ROWS_FINISH + NORM_ROWS_SLICES];
    const uint32_t slices = a.groups;
    const uint32_t tile = blockDim.x / slices;
    const uint32_t tiles = (a.length + tile - 1) / tile;
    const uint32_t which = a.dscale.data ? blockIdx.x / tiles : 1;
    const uint32_t first = blockIdx.x % tiles * tile;
    const uint32_t slice = threadIdx.x / tile;
    uint32_t column = first + threadIdx.x % tile;
    double sum = 0.0;
    wd_wait_for_previous();
    const float *from = a.partial + ((int64_t)which * a.length + min(column, a.length - 1));
    for (uint32_t p = slice; p < a.partials; p += AT_ONCE * slices) {
        float some[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            some[i] = 0.0f;
            if (p + i * slices < a.partials)
                some[i] = from[(int64_t)(p + i * slices) * 2 * a.length];
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) sum += some[i];
    }
    if (slices > 1) {
        // the lanes that join a column's slices lie side by side
        of[slice * (tile + 1) + threadIdx.x % tile] = sum;
        __syncthreads();
        sum = of[threadIdx.x % slices * (tile + 1) + threadIdx.x / slices];
        for (uint32_t o = slices / 2; o > 0; o /= 2) sum += __shfl_xor_sync(WHOLE_WARP, sum, o);
        column = first + threadIdx.x / slices;
        if (threadIdx.x % slices > 0) return;
    }
    if (column < a.length) write_param(param_of(a, which), column, (float)sum);
}

} // namespace

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_rows_backward_kernels.def"
#include "ops/kernels_device.inc"
