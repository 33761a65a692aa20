// SPDX-License-Identifier: Apache-2.0
//
// norm_groups by columns: channels lie last. A thread has eight columns and some of the rows; what it
// found of each column is joined over the rows of the block, then columns of a group.
#ifndef WD_OPS_NORM_GROUPS_COLUMNS_CUH
#define WD_OPS_NORM_GROUPS_COLUMNS_CUH

#include "ops/norm/norm_groups_device.cuh"

namespace {

constexpr uint32_t COLUMN_THREADS = NORM_GROUPS_COLUMN_THREADS;
constexpr uint32_t TILE = NORM_GROUPS_TILE;

template <class T> constexpr int COLUMN_BATCH = 8 / (int)sizeof(T);
template <class T> constexpr int COLUMN_PAIR_BATCH = 4 / (int)sizeof(T);

struct column_seat {
    uint32_t sample;
    uint32_t segment;
    uint32_t channel; // the tile's first, and how many
    uint32_t width;
    uint32_t across; // threads side by side
    uint32_t row;    // of the block's rows
    uint32_t column; // the thread's first, in the tile
    spread as;
    uint32_t count; // of its columns
    uint32_t begin; // rows
    uint32_t end;
};

__device__ __forceinline__ column_seat column_seat_of(const norm_groups_args &a, uint32_t block)
{
    column_seat s;
    const uint32_t tile = block / a.segments % a.tiles;
    s.segment = block % a.segments;
    s.sample = block / a.segments / a.tiles;
    s.channel = tile * a.tile;
    s.width = min(a.tile, a.channels - s.channel);
    s.across = (a.tile + RUN - 1) / RUN;
    s.row = threadIdx.x / s.across;
    const uint32_t place = threadIdx.x - s.row * s.across;
    s.column = a.runs ? place * RUN : place;
    s.as = {a.runs != 0, a.runs ? 1 : s.across};
    s.count = s.row < a.rows ? s.as.left(s.column, s.width) : 0;
    s.begin = min(s.segment * a.part, a.plane);
    s.end = min(s.begin + a.part, a.plane);
    return s;
}

// Elements of the thread in a row, of which there may be none.
struct column_place {
    int64_t at;
    uint32_t left;
};

__device__ __forceinline__ column_place column_place_of(const norm_groups_args &a,
                                                        const column_seat &s, uint32_t turn)
{
    column_place p;
    const uint32_t row = s.begin + turn * a.rows + s.row;
    p.left = row < s.end ? s.count : 0;
    p.at = ((int64_t)s.sample * a.plane + row) * a.channels + s.channel + s.column;
    return p;
}

// Turns from the last one on, of which the cache may have something still.
__device__ __forceinline__ uint32_t turn_back(const norm_groups_args &a, uint32_t turn)
{
    return turn < a.turns ? a.turns - 1 - turn : turn;
}

// The group of a column of the tile: there counted from the tile's first, and its share.
__device__ __forceinline__ uint32_t share_of_column(const norm_groups_args &a, const column_seat &s,
                                                    uint32_t column)
{
    return s.sample * a.groups + (s.channel + column) / a.each;
}

// ---- Forward ----

constexpr int HALF = RUN / 2;

// Of half of the columns at a time, by the thread.
struct forward_room {
    double mean[COLUMN_THREADS * HALF];
    double squares[COLUMN_THREADS * HALF];
    float count[COLUMN_THREADS * HALF];
};

// What the rows of the block have of each column, pairwise in an order that their number fixes.
__device__ __forceinline__ void join_rows(const norm_groups_args &a, const column_seat &s,
                                          const wd_shifted *mine, uint32_t rows, forward_room &room,
                                          wd_part *of_column)
{
    const uint32_t columns = s.across * HALF;
    const uint32_t place = threadIdx.x - s.row * s.across;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        __syncthreads();
        if (s.row < a.rows) {
#pragma unroll
            for (int i = 0; i < HALF; ++i) {
                const wd_part p = mine[half * HALF + i].part(rows);
                const uint32_t at = s.row * columns + i * s.across + place;
                room.mean[at] = p.mean;
                room.squares[at] = p.squares;
                room.count[at] = (float)p.count;
            }
        }
        for (uint32_t left = a.rows; left > 1;) {
            const uint32_t kept = (left + 1) / 2;
            __syncthreads();
            for (uint32_t to = threadIdx.x; to < (left - kept) * columns; to += blockDim.x) {
                const uint32_t from = to + kept * columns;
                wd_part all = {room.count[to], room.mean[to], room.squares[to]};
                wd_join_parts(all, wd_part{room.count[from], room.mean[from], room.squares[from]});
                room.count[to] = (float)all.count;
                room.mean[to] = all.mean;
                room.squares[to] = all.squares;
            }
            left = kept;
        }
        __syncthreads();
        for (uint32_t k = threadIdx.x; k < columns; k += blockDim.x) {
            const uint32_t i = half * HALF + k / s.across;
            const uint32_t column = a.runs ? k % s.across * RUN + i : k % s.across + i * s.across;
            if (column < s.width) {
                of_column[column] = {room.count[k], room.mean[k], room.squares[k]};
            }
        }
    }
    __syncthreads();
}

template <class T>
__device__ __forceinline__ void column_statistics(const norm_groups_args &a, const column_seat &s,
                                                  forward_room &room, wd_part *of_column)
{
    constexpr int BATCH = COLUMN_BATCH<T>;
    wd_shifted mine[RUN];
    uint32_t rows = 0;
#pragma unroll
    for (int i = 0; i < RUN; ++i) mine[i].begin(0.0f);
    for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
        run<T> x[BATCH];
        uint32_t left[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const column_place p = column_place_of(a, s, turn + b);
            left[b] = p.left;
            fetch(x[b], static_cast<const T *>(a.x) + p.at, s.as, p.left);
        }
        if (turn == 0) {
#pragma unroll
            for (int i = 0; i < RUN; ++i) mine[i].begin(wd_widen(x[0].get(i)));
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            if (left[b] == 0) continue;
            rows += 1;
#pragma unroll
            for (int i = 0; i < RUN; ++i) mine[i].add(wd_widen(x[b].get(i)));
        }
    }
    join_rows(a, s, mine, rows, room, of_column);
    norm_groups_part *to =
        a.parts + ((int64_t)s.sample * a.slices + s.segment) * a.units + s.channel;
    for (uint32_t c = threadIdx.x; c < s.width; c += blockDim.x) {
        to[c] = {of_column[c].count, of_column[c].mean, of_column[c].squares};
    }
}

template <class T>
__device__ __forceinline__ void column_outputs(const norm_groups_args &a, const column_seat &s,
                                               const line *l)
{
    constexpr int BATCH = COLUMN_BATCH<T>;
    for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
        run<T> x[BATCH];
        column_place p[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            p[b] = column_place_of(a, s, turn_back(a, turn + b));
            fetch(x[b], static_cast<const T *>(a.x) + p[b].at, s.as, p[b].left);
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            float v[RUN];
#pragma unroll
            for (int i = 0; i < RUN; ++i) {
                v[i] = fmaf(l[i].factor, wd_widen(x[b].get(i)) - l[i].mean, l[i].base);
            }
            put(static_cast<T *>(a.y) + p[b].at, v, s.as, p[b].left, a.streaming);
        }
    }
}

// Of the thread's columns, asked for together; 0 where there is none.
__device__ __forceinline__ void column_params(const norm_groups_args &a, const column_seat &s,
                                              const norm_rows_param &p, uint32_t (&to)[RUN])
{
#pragma unroll
    for (uint32_t i = 0; i < RUN; ++i) {
        const uint32_t own = i < s.count ? i : 0;
        to[i] = s.count > 0 ? param_bits(p, s.channel + s.column + own * s.as.apart) : 0;
    }
}

template <class T, step STEP>
__device__ __forceinline__ void columns_forward(const norm_groups_args &a)
{
    const column_seat s = column_seat_of(a, block_of<STEP>());
    wd_wait_for_previous();
    if constexpr (STEP == SUMS) {
        __shared__ forward_room room;
        __shared__ wd_part of_column[TILE];
        column_statistics<T>(a, s, room, of_column);
    } else {
        line l[RUN];
        numbers n[RUN];
        uint32_t scale[RUN], bias[RUN];
#pragma unroll
        for (uint32_t i = 0; i < RUN; ++i) {
            const uint32_t own = i < s.count ? i : 0;
            n[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (s.count == 0) continue;
            const uint32_t share = share_of_column(a, s, s.column + own * s.as.apart);
            n[i] = a.given_inv_std ? given_numbers(a, share) : a.numbers[share];
        }
        column_params(a, s, a.scale, scale);
        column_params(a, s, a.bias, bias);
#pragma unroll
        for (int i = 0; i < RUN; ++i) {
            const float by = param_of(a.scale, scale[i]);
            l[i] = {n[i].first, by * n[i].second, fmaf(by, n[i].third, param_of(a.bias, bias[i]))};
        }
        column_outputs<T>(a, s, l);
    }
}

// ---- Backward ----

struct backward_room {
    sums table[RUN][COLUMN_THREADS];
};

__device__ __forceinline__ void add_rows(const norm_groups_args &a, const column_seat &s,
                                         const backward_room &room)
{
    const int64_t base = ((int64_t)s.sample * a.slices + s.segment) * a.channels + s.channel;
    for (uint32_t c = threadIdx.x; c < s.width; c += blockDim.x) {
        const uint32_t i = a.runs ? c % RUN : c / s.across;
        const uint32_t place = a.runs ? c / RUN : c % s.across;
        double dy = 0.0, dy_xhat = 0.0;
        for (uint32_t row = 0; row < a.rows; ++row) {
            const sums one = room.table[i][row * s.across + place];
            dy += one.dy, dy_xhat += one.dy_xhat;
        }
        a.sums[base + c] = {(float)dy, (float)dy_xhat};
    }
}

template <class T>
__device__ __forceinline__ void column_gradients(const norm_groups_args &a, const column_seat &s,
                                                 const numbers *given, backward_room &room)
{
    constexpr int BATCH = COLUMN_PAIR_BATCH<T>;
    sums mine[RUN];
#pragma unroll
    for (int i = 0; i < RUN; ++i) mine[i] = {0.0f, 0.0f};
    for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
        run<T> x[BATCH], dy[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const column_place p = column_place_of(a, s, turn + b);
            fetch(x[b], static_cast<const T *>(a.x) + p.at, s.as, p.left);
            fetch(dy[b], static_cast<const T *>(a.dy) + p.at, s.as, p.left);
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            // where there is no element, dy is 0
#pragma unroll
            for (int i = 0; i < RUN; ++i) {
                const float d = wd_widen(dy[b].get(i));
                mine[i].dy += d;
                mine[i].dy_xhat = fmaf(d, wd_widen(x[b].get(i)) - given[i].first, mine[i].dy_xhat);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < RUN; ++i) {
        mine[i].dy_xhat *= given[i].second;
        room.table[i][threadIdx.x] = mine[i];
    }
    __syncthreads();
    add_rows(a, s, room);
}

// dx = factor * dy + slope * (x - mean) + base in a column.
struct slant {
    float mean;
    float factor;
    float slope;
    float base;
};

template <class T>
__device__ __forceinline__ void column_slopes(const norm_groups_args &a, const column_seat &s,
                                              const slant *l)
{
    constexpr int BATCH = COLUMN_PAIR_BATCH<T>;
    for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
        run<T> x[BATCH], dy[BATCH];
        column_place p[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            p[b] = column_place_of(a, s, turn_back(a, turn + b));
            fetch(x[b], static_cast<const T *>(a.x) + p[b].at, s.as, p[b].left);
            fetch(dy[b], static_cast<const T *>(a.dy) + p[b].at, s.as, p[b].left);
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            float v[RUN];
#pragma unroll
            for (int i = 0; i < RUN; ++i) {
                const float d = wd_widen(x[b].get(i)) - l[i].mean;
                v[i] = fmaf(l[i].factor, wd_widen(dy[b].get(i)), fmaf(l[i].slope, d, l[i].base));
            }
            put(static_cast<T *>(a.y) + p[b].at, v, s.as, p[b].left, a.streaming);
        }
    }
}

template <class T, step STEP>
__device__ __forceinline__ void columns_backward(const norm_groups_args &a)
{
    const column_seat s = column_seat_of(a, block_of<STEP>());
    numbers given[RUN];
    wd_wait_for_previous();
#pragma unroll
    for (uint32_t i = 0; i < RUN; ++i) {
        const uint32_t own = i < s.count ? i : 0;
        given[i] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (s.count == 0) continue;
        given[i] = given_numbers(a, share_of_column(a, s, s.column + own * s.as.apart));
    }
    if constexpr (STEP == SUMS) {
        __shared__ backward_room room;
        column_gradients<T>(a, s, given, room);
    } else {
        slant l[RUN];
        numbers found[RUN];
        uint32_t scale[RUN];
        column_params(a, s, a.scale, scale);
#pragma unroll
        for (uint32_t i = 0; i < RUN; ++i) {
            const uint32_t own = i < s.count ? i : 0;
            found[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (s.count == 0) continue;
            found[i] = a.numbers[share_of_column(a, s, s.column + own * s.as.apart)];
        }
#pragma unroll
        for (int i = 0; i < RUN; ++i) {
            const numbers &n = given[i];
            l[i] = {n.first, n.second * param_of(a.scale, scale[i]),
                    -n.second * n.second * found[i].second, -n.second * found[i].first};
        }
        column_slopes<T>(a, s, l);
    }
}

} // namespace

#endif
