// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over rows off the boundaries. A group's rows are so far apart that all begin equally far behind a
// boundary (norm_rows_args.h): a thread has aligned units, whose columns and parameters stay its own in every row, as
// norm_rows_odd.cuh has them, but a warp's are a strip, at fixed distances. The columns before a row's first boundary and
// behind its last one are singles of some lanes. What is said of a row, and what follows from it, is that of
// norm_rows_bulk.cuh.
#ifndef WD_OPS_NORM_ROWS_ODD_FORWARD_CUH
#define WD_OPS_NORM_ROWS_ODD_FORWARD_CUH

#include "ops/norm/norm_rows_bulk.cuh"
#include "ops/norm/norm_rows_odd_seat.cuh"

namespace {

// Where a thread's units, and the unit of its single, are: in the ring's first place, and from its first column in
// memory. Places are `slot` units apart.
template <class T> struct odd_path {
    uint4 *own;
    uint4 *edge;
    const T *single; // in the ring
    uint32_t slot;
    int64_t to_edge; // elements
    bool asks;       // for the unit of singles
};

template <class T, int C>
__device__ __forceinline__ odd_path<T> odd_path_of(const norm_rows_args &a, const odd_seat &s,
                                                   uint4 *ring)
{
    constexpr uint32_t U = UNITS<T, C>;
    odd_path<T> p;
    p.slot = U * blockDim.x + ODD_PLACES * a.groups;
    p.own = ring + threadIdx.x / WARP * (U * WARP) + threadIdx.x % WARP;
    p.edge = ring + U * blockDim.x + ODD_PLACES * s.group + s.lane / ODD_LANES % ODD_PLACES;
    p.single = reinterpret_cast<const T *>(p.edge) + s.lane % ODD_LANES + s.back;
    p.to_edge = (int64_t)s.single - s.first - s.back;
    p.asks = s.has_single() && s.lane % ODD_LANES == 0;
    return p;
}

// A thread's units of a row on their way to the ring; `at` units from its first place. The units of singles have some
// elements of the rows beside, or lie beside the tensor, but in the same sixteen aligned bytes.
template <class T, int C>
__device__ __forceinline__ void odd_ask(const odd_seat &s, const odd_path<T> &p, uint32_t at,
                                        const T *from)
{
#pragma unroll
    for (int v = 0; v < UNITS<T, C>; ++v) {
        if ((uint32_t)v < s.count)
            wd_copy_async<16, false>(p.own + at + v * WARP, from + v * (int)WARP * EACH<T>);
    }
    if (p.asks) wd_copy_async<16, false>(p.edge + at, from + p.to_edge);
}

// Where a walk is: rows, places by units.
template <class T> struct odd_turns {
    uint32_t row, rows, step, asked;
    uint32_t present, next, last, end;
    const T *from; // of the row that is asked for
    T *to;         // of the one that is put, a turn after it was looked at
    int64_t far;
    bool alone; // a warp has a row
};

// Begins with row `row` of the block's group.
template <class T>
__device__ __forceinline__ odd_turns<T> odd_turns_of(const norm_rows_args &a, const odd_seat &s,
                                                     const odd_path<T> &p, uint32_t row)
{
    odd_turns<T> t;
    const int64_t begin = (int64_t)row * a.length + s.first;
    t.row = t.asked = row;
    t.rows = (uint32_t)a.rows, t.step = (uint32_t)a.step; // less than 2^31 and 2^20
    t.present = t.next = t.last = 0;
    t.end = a.ring * p.slot;
    t.far = (int64_t)t.step * a.length;
    t.from = static_cast<const T *>(a.x) + begin;
    t.to = static_cast<T *>(a.y) + (int64_t)row * a.length - t.far;
    t.alone = a.lanes == WARP && a.cluster == 1;
    return t;
}

__device__ __forceinline__ uint32_t odd_row_of(const norm_rows_args &a)
{
    const uint32_t slot = blockIdx.x / a.cluster * a.groups + threadIdx.x / a.lanes;
    return slot < (uint32_t)a.step ? slot : (uint32_t)a.rows;
}

// The next row to the ring.
template <class T, int C>
__device__ __forceinline__ void odd_ask_next(const odd_seat &s, const odd_path<T> &p,
                                             odd_turns<T> &t)
{
    if (t.asked < t.rows) odd_ask<T, C>(s, p, t.last, t.from);
    wd_copies_end();
    t.asked += t.step, t.from += t.far, t.last += p.slot;
    if (t.last == t.end) t.last = 0;
}

template <class T>
__device__ __forceinline__ void odd_turn_ends(const odd_path<T> &p, odd_turns<T> &t)
{
    t.present = t.next;
    t.next += p.slot;
    if (t.next == t.end) t.next = 0;
    t.row += t.step, t.to += t.far;
}

// Both, one after the other by the same code.
template <class T, int C>
__device__ __forceinline__ void odd_params(const norm_rows_args &a, const odd_seat &s, float *scale,
                                           float *bias)
{
#pragma unroll
    for (int i = 0; i <= C; ++i) scale[i] = 0.0f;
#pragma unroll 1
    for (int which = 0; which < 2; ++which) {
#pragma unroll
        for (int i = 0; i <= C; ++i) bias[i] = scale[i];
        odd_param<T, C>(s, which == 0 ? a.bias : a.scale, scale);
    }
}

// What a thread has of a row in shared memory: its units, a warp apart, and its single. Where it may have less than UNITS or a single, the row ENDS.
template <class T> struct odd_part {
    const uint4 *at;
    const T *single;
    uint32_t count;
    bool has_single;
};

// `inverse` is of the thread's columns.
template <class T, int C, int KIND, bool ENDS>
__device__ __forceinline__ float4 odd_look(const odd_part<T> &of, float inverse)
{
    constexpr int E = EACH<T>;
    float pivot = 0.0f, sum = 0.0f, squares = 0.0f, single = 0.0f;
    if (ENDS && of.has_single) pivot = single = wd_widen(*of.single);
#pragma unroll
    for (int v = 0; v < UNITS<T, C>; ++v) {
        if (ENDS && (uint32_t)v >= of.count) break;
        const unit<T> x = strip_take<T>(of.at + v * WARP);
        if (v == 0) pivot = wide_of<T>(x, 0);
        // nothing could be taken from it
        if (v == 0 && !(fabsf(pivot) <= 3.0e38f)) pivot = 0.0f;
#pragma unroll
        for (int i = 0; i < E; ++i) {
            const float d = KIND == RAW ? wide_of<T>(x, i) : wide_of<T>(x, i) - pivot;
            if (KIND == CENTRED) sum += d;
            squares = fmaf(d, d, squares);
        }
    }
    if (ENDS && of.has_single) {
        const float d = KIND == RAW ? single : single - pivot;
        if (KIND == CENTRED) sum += d;
        squares = fmaf(d, d, squares);
    }
    if (KIND == RAW) return make_float4(0.0f, 0.0f, squares, 0.0f);
    const float rest = sum * inverse;
    const float around = fmaf(-sum, rest, squares);
    return make_float4(pivot, rest, around < 0.0f ? 0.0f : around, 0.0f); // a NaN stays one
}

template <class T>
__device__ __forceinline__ odd_part<T> odd_at(const odd_seat &s, const odd_path<T> &p, uint32_t at)
{
    return {p.own + at, p.single + at * EACH<T>, s.count, s.has_single()};
}

// What all warps said of the row of a turn.
template <int KIND>
__device__ __forceinline__ float4 odd_hear(const norm_rows_args &a, uint32_t group, slots &of,
                                           uint32_t turn)
{
    const uint32_t i = threadIdx.x % BULK_WARPS, warps = a.lanes / WARP, copy = turn % COPIES;
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
    if (a.cluster > 1) {
        wd_counter_wait(&of.here[copy], turn / COPIES & 1);
        p = join_all<true>(of.of_cluster[copy], a.cluster * warps, a.inverse);
        return make_float4(p.pivot, p.rest, p.squares, 0.0f);
    }
    wd_barrier(group + 1, a.lanes);
    if (i < warps) p = of.of_block[copy][group * warps + i];
    return bulk_join<KIND, BULK_WARPS>(make_float4(p.pivot, p.rest, p.squares, 0.0f),
                                       {p.count, a.inverse});
}

template <int KIND> __device__ __forceinline__ float odd_xhat(float x, const numbers &n)
{
    return KIND == RAW ? x * n.inv_std : fmaf(x - n.mean, n.inv_std, n.shift);
}

// From column `first` of a row on, and the single.
template <class T, int C, int KIND, bool ENDS>
__device__ __forceinline__ void odd_put(const norm_rows_args &a, const odd_part<T> &of, T *row,
                                        uint32_t first, uint32_t single, const numbers &n,
                                        const float *scale, const float *bias)
{
    constexpr int E = EACH<T>;
    T *to = row + first;
#pragma unroll
    for (int v = 0; v < UNITS<T, C>; ++v) {
        float y[E];
        if (ENDS && (uint32_t)v >= of.count) break;
        const unit<T> x = strip_take<T>(of.at + v * WARP);
#pragma unroll
        for (int i = 0; i < E; ++i)
            y[i] = fmaf(scale[v * E + i], odd_xhat<KIND>(wide_of<T>(x, i), n), bias[v * E + i]);
        put<T>(a, to + v * (int)WARP * E, y);
    }
    if (ENDS && of.has_single) {
        const float xhat = odd_xhat<KIND>(wd_widen(*of.single), n);
        wd_narrow(row[single], fmaf(scale[C], xhat, bias[C]));
    }
}

template <class T, int C, int KIND>
__device__ __forceinline__ void odd_walk(const norm_rows_args &a, slots &of, const odd_seat &s,
                                         const odd_path<T> &path, odd_turns<T> &t,
                                         const float *scale, const float *bias)
{
    const float mine = s.columns(EACH<T>), columns = sum_of_warp(mine);
    const float own_inverse = mine > 0.0f ? 1.0f / mine : 0.0f;
    const bulk_parts parts = {mine, columns > 0.0f ? 1.0f / columns : 0.0f};
    const bool known = KIND == CENTRED && a.given_inv_std; // RMS norm's too
    numbers n = {0.0f, 0.0f, 0.0f};
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn) {
        const bool more = t.row < t.rows;
        numbers of_next = {0.0f, 0.0f, 0.0f};
        if (more) {
            __syncwarp(); // the singles of the place that was put a turn ago have been read
            if (turn > 0) odd_ask_next<T, C>(s, path, t);
            if (known)
                of_next = {given(a.given_mean, a, t.row), given(a.given_inv_std, a, t.row), 0.0f};
            wait_for_row(a);
            __syncwarp();
            if (!known) {
                const float4 all = bulk_join<KIND>(
                    odd_look<T, C, KIND, true>(odd_at(s, path, t.next), own_inverse), parts);
                if (t.alone) of_next = bulk_numbers(a, all);
                else say(a, s.rank, of, turn, {all.x, all.y, all.z, columns});
            }
        }
        if (turn > 0) {
            if (!known && !t.alone) n = bulk_numbers(a, odd_hear<KIND>(a, s.group, of, turn - 1));
            if (s.lane == 0 && s.rank == 0) {
                if (a.mean) a.mean[t.row - t.step] = n.mean;
                if (a.inv_std) a.inv_std[t.row - t.step] = n.inv_std;
            }
            odd_put<T, C, KIND, true>(a, odd_at(s, path, t.present), t.to, s.first, s.single, n,
                                      scale, bias);
        }
        if (!more) break;
        n = of_next;
        odd_turn_ends(path, t);
    }
}

template <class T, int C> __device__ __forceinline__ void odd_forward(const norm_rows_args &a)
{
    __shared__ slots sums;
    WD_DYNAMIC_SHARED(uint4, places);
    slots &of = *wd_opaque_shared(&sums);
    const uint32_t row = odd_row_of(a);
    const odd_seat s = odd_seat_of<T, UNITS<T, C>>(a, row);
    const odd_path<T> path = odd_path_of<T, C>(a, s, wd_opaque_shared(places));
    odd_turns<T> t = odd_turns_of(a, s, path, row);
    float scale[C + 1], bias[C + 1]; // the last is the single's
    if (!a.given_inv_std) begin_exchange(a, of);
    wd_wait_for_previous();
#pragma unroll 1
    for (uint32_t r = 0; r < a.ahead; ++r) odd_ask_next<T, C>(s, path, t);
    odd_params<T, C>(a, s, scale, bias);
    if (a.given_inv_std || a.centered) odd_walk<T, C, CENTRED>(a, of, s, path, t, scale, bias);
    else odd_walk<T, C, RAW>(a, of, s, path, t, scale, bias);
}

} // namespace

#endif
