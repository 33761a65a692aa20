// SPDX-License-Identifier: Apache-2.0
//
// Gradients of rows of two bytes an element off the boundaries, or that threads have no equal numbers of units of, as norm_rows_held.cuh: a row's strips
// of x and dy (norm_rows_odd_strip.cuh) stay in registers until it is put, and one row is on its way. A group's rows are so far apart that all
// begin equally far behind a boundary. Where a thread has no unit, or no single, its x and dy are zeros, of which nothing comes. A thread's scales are
// in shared memory, where it alone reads them: registers are short.
#ifndef WD_OPS_NORM_ROWS_ODD_HELD_CUH
#define WD_OPS_NORM_ROWS_ODD_HELD_CUH

#include "gpu/device/opaque.cuh"
#include "ops/norm/norm_rows_held.cuh"
#include "ops/norm/norm_rows_odd_strip.cuh"

namespace {

constexpr uint32_t ODD_COLUMNS = 1 << 18; // of rows that clusters hold, less than that

// Of a thread's single, and of a warp's copies.
struct __align__(16) odd_single_sums
{
    float scale;
    float dscale;
    float dbias;
    uint32_t
        where; // column, and above it where it lies in its place, elements; ODD_NONE: there is none

    __device__ __forceinline__ uint32_t column() const
    {
        return where % ODD_COLUMNS;
    }
    __device__ __forceinline__ uint32_t at() const
    {
        return where / ODD_COLUMNS;
    }
    __device__ __forceinline__ bool has() const
    {
        return where != ODD_NONE;
    }
};
struct odd_copies {
    uint32_t bytes;
    uint32_t before; // units more than the strip's
    uint32_t units;  // of the strip
    uint32_t column; // of the strip's first unit
    uint32_t rank;   // of the block
    uint32_t group;
};

// What a warp has in shared memory: scales, singles, places. Registers are short.
template <class T, int C> struct odd_held_room {
    float4 scale[C / 4][WARP];
    uint4 place[2][UNITS<T, C> * WARP + STRIP_ENDS]; // of x and dy
    odd_single_sums single[WARP];
    odd_copies copies;
    uint64_t landed;

    // Of a thread: its units, and its first column.
    __device__ __forceinline__ uint32_t count() const
    {
        return (copies.units + WARP - 1 - threadIdx.x % WARP) / WARP;
    }
    __device__ __forceinline__ uint32_t first() const
    {
        return copies.column + threadIdx.x % WARP * EACH<T>;
    }
};

// What a thread has of a row besides: its single of each, side by side.
template <class T> struct odd_pair {
    uint32_t bits;

    __device__ __forceinline__ float get(int i) const
    {
        unit<T> one;
        one.word[0] = bits;
        return wide_of<T>(one, i);
    }
};

// By a warp that has read what lay there: its strips of a row of x and of dy to places one behind the other. The first lane asks for all; below compute
// capability 9.0 all lanes do.
template <class T, uint32_t PLACE>
__device__ __forceinline__ void odd_held_ask(const norm_rows_args &a, const odd_copies &of,
                                             uint4 *place, uint32_t row, uint64_t *landed)
{
    const uint32_t lane = threadIdx.x % WARP;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    const bool asks = true;
#else
    const bool asks = lane == 0;
#endif
    if (row >= (uint32_t)a.rows || !asks) return;
    const uint32_t before = of.before, bytes = of.bytes;
    const int64_t at =
        ((int64_t)row * a.length + of.column) * (int64_t)sizeof(T) - before * NORM_ROWS_UNIT;
    const char *x = static_cast<const char *>(a.x) + at;
    const char *dy = static_cast<const char *>(a.dy) + at;
    uint4 *to = place + 1 - before;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    for (uint32_t u = lane; u < bytes / NORM_ROWS_UNIT; u += WARP) {
        wd_copy_async<16, false>(to + u, x + u * NORM_ROWS_UNIT);
        wd_copy_async<16, false>(to + PLACE + u, dy + u * NORM_ROWS_UNIT);
    }
    wd_copies_end();
#else
    wd_counter_expect(landed, 2 * bytes);
    if (bytes == 0) return;
    wd_bulk_copy(to, x, bytes, landed);
    wd_bulk_copy(to + PLACE, dy, bytes, landed);
#endif
}

template <class T, int C>
__device__ __forceinline__ void odd_held_take(uint32_t count, const odd_single_sums &of,
                                              held_row<T, C> &to, odd_pair<T> &single,
                                              const uint4 *place, uint32_t dy_behind)
{
    constexpr int U = UNITS<T, C>;
    const uint4 *from = place + 1 + threadIdx.x % WARP;
#pragma unroll
    for (int v = 0; v < U; ++v) {
#pragma unroll
        for (int k = 0; k < 4; ++k) to.x[v].word[k] = to.dy[v].word[k] = 0;
        if ((uint32_t)v < count) {
            to.x[v] = strip_take<T>(from + v * WARP);
            to.dy[v] = strip_take<T>(from + dy_behind + v * WARP);
        }
    }
    single.bits = 0;
    if (of.has()) {
        const uint16_t *x = reinterpret_cast<const uint16_t *>(place) + of.at();
        const uint16_t *dy = reinterpret_cast<const uint16_t *>(place + dy_behind) + of.at();
        single.bits = *x | (uint32_t)*dy << 16;
    }
}

// Of unit v, from the thread's own.
template <int E>
__device__ __forceinline__ void odd_held_scale(const float4 *own, int v, float (&to)[E])
{
#pragma unroll
    for (int k = 0; k < E / 4; ++k) {
        const float4 some = own[(v * (E / 4) + k) * WARP];
        to[4 * k] = some.x, to[4 * k + 1] = some.y, to[4 * k + 2] = some.z, to[4 * k + 3] = some.w;
    }
}

template <class T, int C, kind KIND>
__device__ __forceinline__ part odd_held_look(const held_row<T, C> &of, const odd_pair<T> &single,
                                              const known &k, const float4 *scale, float *dscale,
                                              float *dbias, odd_single_sums &of_single)
{
    constexpr int E = EACH<T>;
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
    if (of_single.has())
        add_column<KIND>(p, k, single.get(0), single.get(1), of_single.scale, of_single.dscale,
                         of_single.dbias);
#pragma unroll
    for (int v = 0; v < UNITS<T, C>; ++v) {
        float by[E];
        odd_held_scale<E>(scale, v, by);
#pragma unroll
        for (int i = 0; i < E; ++i)
            add_column<KIND>(p, k, wide_of<T>(of.x[v], i), wide_of<T>(of.dy[v], i), by[i],
                             dscale[v * E + i], dbias[KIND == SQUARES ? 0 : v * E + i]);
    }
    return p;
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void odd_held_put(const norm_rows_args &a, uint32_t count,
                                             const held_row<T, C> &of, const odd_pair<T> &single,
                                             T *to, uint32_t first, const known &k, const part &all,
                                             const float4 *scale, const odd_single_sums &of_single)
{
    constexpr int E = EACH<T>;
    const float level = a.centered ? all.pivot * a.inverse : 0.0f;
    const float slope = (all.rest * a.inverse) * (k.inv_std * k.inv_std);
#pragma unroll
    for (int v = 0; v < UNITS<T, C>; ++v) {
        float dx[E], by[E];
        if ((uint32_t)v >= count) break;
        odd_held_scale<E>(scale, v, by);
#pragma unroll
        for (int i = 0; i < E; ++i)
            dx[i] = dx_of<KIND>(k, wide_of<T>(of.x[v], i), wide_of<T>(of.dy[v], i), by[i], slope,
                                level);
        put<T>(a, to + first + v * WARP * E, dx);
    }
    if (of_single.has())
        wd_narrow(to[of_single.column()],
                  dx_of<KIND>(k, single.get(0), single.get(1), of_single.scale, slope, level));
}

// The thread's parameters, zeros where it has no column.
template <class T, int C>
__device__ __forceinline__ void odd_held_param(const odd_strip &s, const norm_rows_param &p,
                                               float4 *to, odd_single_sums &single)
{
    constexpr int E = EACH<T>;
    odd_seat seat;
    seat.stride = 0;
#pragma unroll 1
    for (int v = 0; v < C / E; ++v) {
        float one[E + 1];
        seat.first = s.first + v * WARP * E;
        seat.count = (uint32_t)v < s.count ? 1 : 0;
        seat.single = v == 0 ? s.single : ODD_NONE;
        odd_param<T, E>(seat, p, one);
#pragma unroll
        for (int k = 0; k < E / 4; ++k)
            to[(v * (E / 4) + k) * WARP] =
                make_float4(one[4 * k], one[4 * k + 1], one[4 * k + 2], one[4 * k + 3]);
        if (v == 0)
            single = {one[E], 0.0f, 0.0f,
                      s.has_single() ? s.single + s.at * ODD_COLUMNS : ODD_NONE};
    }
}

// Elements from the boundary before a row to its first.
template <class T>
__device__ __forceinline__ uint32_t odd_shift(const norm_rows_args &a, uint32_t row)
{
    const uint32_t begins = (uint32_t)(reinterpret_cast<uintptr_t>(a.x) / sizeof(T));
    return (begins + row * a.length) % EACH<T>;
}

// What leaves: the sums of a group of a block, by rows like `row`, by way of `room`.
struct odd_leaving {
    uint32_t row;
    uint32_t group;
    uint32_t rank;
    float *room;
};

// The sums of one parameter leave, over the rows side by side in a block, whose columns are each other threads', by way of shared memory: of each group
// as they lie behind a boundary, so that units go there by fours, else lanes that lie a unit apart would write to the same banks. Of a block
// that has part of a row its own units, and singles as they are.
template <class T, int C>
__device__ __forceinline__ void odd_held_deliver(const norm_rows_args &a, const odd_strip &s,
                                                 const odd_leaving &l, uint32_t which,
                                                 const float *mine, float single)
{
    constexpr uint32_t E = EACH<T>;
    const uint32_t row = l.row, group = l.group, rank = l.rank, first_row = row - group;
    float *const room = l.room;
    const uint32_t all = a.cluster > 1 ? min(a.share * E, a.length) : a.length;
    const uint32_t apart = (all + 2 * E - 1) / 4 * 4; // of groups
    // of a cluster's block units begin at 0
    const uint32_t head = (E - odd_shift<T>(a, row)) % E;
    const uint32_t before = a.cluster > 1 ? head + rank * a.share * E : 0;
    float *own = room + group * apart + (a.cluster > 1 ? 0 : odd_shift<T>(a, row));
    __syncthreads(); // all have read what lay here
#pragma unroll
    for (int v = 0; v < C / (int)E; ++v) {
        if ((uint32_t)v >= s.count) break;
        float4 *to = reinterpret_cast<float4 *>(own + s.first + v * WARP * E - before);
#pragma unroll
        for (int i = 0; i < (int)E; i += 4)
            to[i / 4] = make_float4(own_sum(mine[v * E + i]), own_sum(mine[v * E + i + 1]),
                                    own_sum(mine[v * E + i + 2]), own_sum(mine[v * E + i + 3]));
    }
    if (s.has_single()) {
        wd_run<float, 1> one;
        one.put(0, single);
        if (a.cluster > 1) put_sum<1>(a, which, s.single, one);
        else own[s.single] = single;
    }
    __syncthreads();
    uint32_t columns = all;
    if (a.cluster > 1) {
        const uint32_t whole = (a.length - head) / E, begin = min(rank * a.share, whole);
        columns = (min(begin + a.share, whole) - begin) * E;
    }
    for (uint32_t k = threadIdx.x; k < columns; k += blockDim.x) {
        wd_run<float, 1> sum;
        sum.put(0, 0.0f);
        for (uint32_t g = 0; g < a.groups; ++g)
            sum.put(0,
                    sum.get(0) +
                        room[g * apart + k + (a.cluster > 1 ? 0 : odd_shift<T>(a, first_row + g))]);
        put_sum<1>(a, which, before + k, sum);
    }
}

template <class T, int C, kind KIND>
__device__ __forceinline__ void odd_held_backward(const norm_rows_args &a)
{
    constexpr uint32_t U = UNITS<T, C>, PLACE = U * WARP + STRIP_ENDS;
    __shared__ slots sums;
    WD_DYNAMIC_SHARED(uint4, places);
    static_assert(sizeof(odd_held_room<T, C>) == 2 * PLACE * NORM_ROWS_UNIT + NORM_ROWS_ODD_ROOM);
    slots &of = *wd_opaque_shared(&sums);
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    const uint32_t group = threadIdx.x / a.lanes;
    const uint32_t rows = (uint32_t)a.rows, step = (uint32_t)a.step; // less than 2^31 and 2^20
    const uint32_t first = blockIdx.x / a.cluster * a.groups + group;
    const bool alone = a.lanes == WARP && a.cluster == 1;
    odd_held_room<T, C> &room =
        wd_opaque_shared(reinterpret_cast<odd_held_room<T, C> *>(places))[warp];
    uint4 *place = room.place[0];
    odd_single_sums &own = room.single[lane];
    const float4 *scale = &room.scale[0][lane];
    const odd_strip s = odd_strip_of<T, U>(a, first, rank);
    const auto ask_for = [&](uint32_t its) {
        odd_held_ask<T, PLACE>(a, room.copies, place, its, &room.landed);
    };
    float dscale[C], dbias[KIND == SQUARES ? 1 : C];
    if (lane == 0) {
        wd_counter_begin(&room.landed);
        room.copies = {s.bytes, s.before, s.units, s.first, rank, group};
    }
    begin_exchange(a, of);
    __syncwarp();
    wd_wait_for_previous();
    uint32_t row = first < step ? first : rows; // as many groups are there as steps
    ask_for(row);
    known of_next = known_of(a, row);
    odd_held_param<T, C>(s, a.scale, &room.scale[0][lane], own);
#pragma unroll
    for (int i = 0; i < C; ++i) dscale[i] = dbias[KIND == SQUARES ? 0 : i] = 0.0f;
    uint32_t turn = 0;
#pragma unroll 1
    for (; row < rows; ++turn, row += step) {
        // moved before the next are asked for (norm_rows_held.cuh)
        const known k = {of_next.mean + 0.0f, of_next.inv_std + 0.0f};
        held_row<T, C> mine;
        odd_pair<T> single;
        held_wait(&room.landed, turn);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
        __syncwarp(); // what is at the ends, and where copies are not where units are read, is other lanes'
#endif
        odd_held_take<T, C>(room.count(), own, mine, single, place, PLACE);
        part p = odd_held_look<T, C, KIND>(mine, single, k, scale, dscale, dbias, own);
        __syncwarp();
        if (!a.late) ask_for(row + step);
        if (KIND == SQUARES) p.rest = sum_of_warp(p.rest);
        else p = join_warp<false>(p, 0.0f);
        if (!alone) {
            say(a, room.copies.rank, of, turn, p);
            p = hear<false>(a, room.copies.group, of, turn);
        }
        of_next = known_of(a, row + step); // not before, for registers
        if (a.late) ask_for(row + step);
        odd_held_put<T, C, KIND>(a, room.count(), mine, single,
                                 static_cast<T *>(a.y) + (int64_t)row * a.length, room.first(), k,
                                 p, scale, own);
    }
    if (lane == 0) wd_counter_end(&room.landed);
    // found again, not kept in registers
    const uint32_t of_cluster = room.copies.rank, of_block = room.copies.group;
    const uint32_t again = blockIdx.x / a.cluster * a.groups + of_block;
    meet_as_often(a, of_block, again + turn * step);
    const odd_strip left = odd_strip_of<T, U>(a, again, of_cluster);
    odd_single_sums last = own;
    const odd_leaving leaving = {again, of_block, of_cluster, reinterpret_cast<float *>(places)};
    // one after the other by the same code
#pragma unroll 1
    for (uint32_t which = 0; which < (KIND == SQUARES ? 1 : 2); ++which) {
        if (param_of(a, which).data)
            odd_held_deliver<T, C>(a, left, leaving, which, dscale, last.dscale);
#pragma unroll
        for (int i = 0; KIND != SQUARES && i < C; ++i) dscale[i] = dbias[KIND == SQUARES ? 0 : i];
        last.dscale = last.dbias;
    }
}

template <class T> __device__ __forceinline__ void odd_held(const norm_rows_args &a)
{
    odd_held_backward<T, 32, ROWS>(a);
}

template <class T> __device__ __forceinline__ void odd_held_squares(const norm_rows_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    odd_held_backward<T, 32, SQUARES>(a);
#endif
}

} // namespace

#endif
