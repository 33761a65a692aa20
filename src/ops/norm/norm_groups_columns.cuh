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

// The group of a column of the tile: there counted from the tile's first, and its share.
__device__ __forceinline__ uint32_t share_of_column(const norm_groups_args &a, const column_seat &s,
                                                    uint32_t column)
{
    return s.sample * a.groups + (s.channel + column) / a.each;
}

// ---- Forward ----

constexpr int HALF = RUN / 2;

// Of half of the columns at a time, by the thread; then of groups.
union forward_room {
    struct {
        double mean[COLUMN_THREADS * HALF];
        double squares[COLUMN_THREADS * HALF];
        float count[COLUMN_THREADS * HALF];
    } table;
    struct {
        wd_part found[TILE];
        numbers of[TILE];
    } group;
};

// What the rows of the block have of each column, pairwise in an order that their number fixes.
__device__ __forceinline__ void join_rows(const norm_groups_args &a, const column_seat &s,
                                          const wd_shifted<float> *mine, uint32_t rows,
                                          forward_room &room, wd_part *of_column)
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
                room.table.mean[at] = p.mean;
                room.table.squares[at] = p.squares;
                room.table.count[at] = (float)p.count;
            }
        }
        for (uint32_t left = a.rows; left > 1;) {
            const uint32_t kept = (left + 1) / 2;
            __syncthreads();
            for (uint32_t to = threadIdx.x; to < (left - kept) * columns; to += blockDim.x) {
                const uint32_t from = to + kept * columns;
                wd_part all = {room.table.count[to], room.table.mean[to], room.table.squares[to]};
                wd_join_parts(all, wd_part{room.table.count[from], room.table.mean[from],
                                           room.table.squares[from]});
                room.table.count[to] = (float)all.count;
                room.table.mean[to] = all.mean;
                room.table.squares[to] = all.squares;
            }
            left = kept;
        }
        __syncthreads();
        for (uint32_t k = threadIdx.x; k < columns; k += blockDim.x) {
            const uint32_t i = half * HALF + k / s.across;
            const uint32_t column = a.runs ? k % s.across * RUN + i : k % s.across + i * s.across;
            if (column < s.width) {
                of_column[column] = {room.table.count[k], room.table.mean[k],
                                     room.table.squares[k]};
            }
        }
    }
    __syncthreads();
}

// Lanes that join a group's columns.
__device__ __forceinline__ uint32_t lanes_of_group(const norm_groups_args &a)
{
    uint32_t lanes = 1;
    while (lanes < WARP && lanes < a.each) lanes *= 2;
    return lanes;
}

// Numbers of the tile's groups, in room.group.of.
__device__ __forceinline__ void group_numbers(const norm_groups_args &a, const column_seat &s,
                                              wd_part *of_column, forward_room &room)
{
    const uint32_t groups = s.width / a.each;
    const uint32_t lanes = lanes_of_group(a);
    const uint32_t lane = threadIdx.x % lanes;
    for (uint32_t first = 0; first < groups; first += blockDim.x / lanes) {
        const uint32_t group = first + threadIdx.x / lanes;
        wd_part all = {0.0, 0.0, 0.0};
        for (uint32_t c = lane; group < groups && c < a.each; c += lanes) {
            wd_join_parts(all, of_column[group * a.each + c]);
        }
        join_lanes(all, lanes);
        if (lane == 0 && group < groups) room.group.found[group] = all;
    }
    __syncthreads();
    if (a.segments > 1) join_cluster(a, of_column, room.group.found, groups);
    for (uint32_t group = threadIdx.x; group < groups; group += blockDim.x) {
        room.group.of[group] =
            numbers_of(a, share_of_column(a, s, group * a.each),
                       a.segments > 1 ? of_column[group] : room.group.found[group], s.segment == 0);
    }
    __syncthreads();
}

template <class T, step STEP>
__device__ __forceinline__ void column_statistics(const norm_groups_args &a, const column_seat &s,
                                                  uint4 *kept, forward_room &room,
                                                  wd_part *of_column)
{
    constexpr int BATCH = COLUMN_BATCH<T>;
    wd_shifted<float> mine[RUN];
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
            if (STEP == WHOLE && turn + b < a.turns) keep(kept, turn + b, x[b]);
            if (left[b] == 0) continue;
            rows += 1;
#pragma unroll
            for (int i = 0; i < RUN; ++i) mine[i].add(wd_widen(x[b].get(i)));
        }
    }
    join_rows(a, s, mine, rows, room, of_column);
    if constexpr (STEP == WHOLE) {
        group_numbers(a, s, of_column, room);
        return;
    }
    norm_groups_part *to =
        a.parts + ((int64_t)s.sample * a.slices + s.segment) * a.units + s.channel;
    for (uint32_t c = threadIdx.x; c < s.width; c += blockDim.x) {
        to[c] = {of_column[c].count, of_column[c].mean, of_column[c].squares};
    }
}

template <class T, step STEP>
__device__ __forceinline__ void column_outputs(const norm_groups_args &a, const column_seat &s,
                                               const line *l, const uint4 *kept)
{
    constexpr int BATCH = STEP == APPLY ? COLUMN_BATCH<T> : 1;
    for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
        run<T> x[BATCH];
        column_place p[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            p[b] = column_place_of(a, s, turn + b);
            if (STEP == WHOLE) find(x[b], kept, turn + b);
            else fetch(x[b], static_cast<const T *>(a.x) + p[b].at, s.as, p[b].left);
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

template <class T, step STEP>
__device__ __forceinline__ void columns_forward(const norm_groups_args &a)
{
    uint4 *kept = wd_dynamic_shared<uint4>();
    __shared__ forward_room room;
    __shared__ wd_part of_column[TILE];
    const column_seat s = column_seat_of(a, block_of<STEP>());
    wd_wait_for_previous();
    if constexpr (STEP != APPLY) column_statistics<T, STEP>(a, s, kept, room, of_column);
    if constexpr (STEP != SUMS) {
        line l[RUN];
#pragma unroll
        for (uint32_t i = 0; i < RUN; ++i) {
            const uint32_t column = s.column + i * s.as.apart;
            l[i] = {0.0f, 0.0f, 0.0f};
            if (i >= s.count) continue;
            if constexpr (STEP == WHOLE) {
                l[i] = line_of(a, room.group.of[column / a.each], s.channel + column);
            } else {
                const uint32_t share = share_of_column(a, s, column);
                l[i] = line_of(a, a.given_inv_std ? given_numbers(a, share) : a.numbers[share],
                               s.channel + column);
            }
        }
        column_outputs<T, STEP>(a, s, l, kept);
    }
}

// ---- Backward ----

union backward_room {
    sums table[RUN][COLUMN_THREADS];
    struct {
        sums found[TILE];
        sums all[TILE];
    } group;
};

__device__ __forceinline__ void add_rows(const norm_groups_args &a, const column_seat &s,
                                         const backward_room &room, sums *of_column)
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
        of_column[c] = {(float)dy, (float)dy_xhat};
        if (a.sums) a.sums[base + c] = of_column[c];
    }
    __syncthreads();
}

// Of the tile's groups, in room.group.all.
__device__ __forceinline__ void group_sums(const norm_groups_args &a, const column_seat &s,
                                           const sums *of_column, backward_room &room)
{
    const uint32_t groups = s.width / a.each;
    const uint32_t lanes = lanes_of_group(a);
    const uint32_t lane = threadIdx.x % lanes;
    for (uint32_t first = 0; first < groups; first += blockDim.x / lanes) {
        const uint32_t group = first + threadIdx.x / lanes;
        sums all = {0.0f, 0.0f};
        for (uint32_t c = lane; group < groups && c < a.each; c += lanes) {
            const uint32_t column = group * a.each + c;
            const float scale = param_at(a.scale, s.channel + column);
            all.dy = fmaf(scale, of_column[column].dy, all.dy);
            all.dy_xhat = fmaf(scale, of_column[column].dy_xhat, all.dy_xhat);
        }
        all = add_lanes(all, lanes);
        if (lane == 0 && group < groups) {
            room.group.found[group] = all;
            if (a.segments == 1) room.group.all[group] = all;
        }
    }
    __syncthreads();
    if (a.segments > 1) join_cluster(a, room.group.all, room.group.found, groups);
}

template <class T, step STEP>
__device__ __forceinline__ void column_gradients(const norm_groups_args &a, const column_seat &s,
                                                 const numbers *given, uint4 *kept,
                                                 backward_room &room, sums *of_column)
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
            if (STEP == WHOLE && turn + b < a.turns) {
                keep(kept, 2 * (turn + b), x[b]);
                keep(kept, 2 * (turn + b) + 1, dy[b]);
            }
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
    add_rows(a, s, room, of_column);
    if (STEP == WHOLE) group_sums(a, s, of_column, room);
}

// dx = factor * dy + slope * (x - mean) + base in a column.
struct slant {
    float mean;
    float factor;
    float slope;
    float base;
};

template <class T, step STEP>
__device__ __forceinline__ void column_slopes(const norm_groups_args &a, const column_seat &s,
                                              const slant *l, const uint4 *kept)
{
    constexpr int BATCH = STEP == APPLY ? COLUMN_PAIR_BATCH<T> : 1;
    for (uint32_t turn = 0; turn < a.turns; turn += BATCH) {
        run<T> x[BATCH], dy[BATCH];
        column_place p[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            p[b] = column_place_of(a, s, turn + b);
            if (STEP == WHOLE) {
                find(x[b], kept, 2 * (turn + b));
                find(dy[b], kept, 2 * (turn + b) + 1);
            } else {
                fetch(x[b], static_cast<const T *>(a.x) + p[b].at, s.as, p[b].left);
                fetch(dy[b], static_cast<const T *>(a.dy) + p[b].at, s.as, p[b].left);
            }
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
    uint4 *kept = wd_dynamic_shared<uint4>();
    __shared__ backward_room room;
    __shared__ sums of_column[TILE];
    const column_seat s = column_seat_of(a, block_of<STEP>());
    numbers given[RUN];
    wd_wait_for_previous();
#pragma unroll
    for (uint32_t i = 0; i < RUN; ++i) {
        given[i] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (i < s.count)
            given[i] = given_numbers(a, share_of_column(a, s, s.column + i * s.as.apart));
    }
    if constexpr (STEP != APPLY) column_gradients<T, STEP>(a, s, given, kept, room, of_column);
    if constexpr (STEP != SUMS) {
        slant l[RUN];
#pragma unroll
        for (uint32_t i = 0; i < RUN; ++i) {
            const uint32_t column = s.column + i * s.as.apart;
            const numbers &n = given[i];
            sums all = {0.0f, 0.0f};
            l[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (i >= s.count) continue;
            if constexpr (STEP == WHOLE) {
                all = room.group.all[column / a.each];
                all.dy *= a.inverse, all.dy_xhat *= a.inverse;
            } else {
                const numbers &found = a.numbers[share_of_column(a, s, column)];
                all = {found.first, found.second};
            }
            l[i] = {n.first, n.second * param_at(a.scale, s.channel + column),
                    -n.second * n.second * all.dy_xhat, -n.second * all.dy};
        }
        column_slopes<T, STEP>(a, s, l, kept);
    }
}

} // namespace

#endif
