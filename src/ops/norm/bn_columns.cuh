// SPDX-License-Identifier: Apache-2.0
//
// bn_vector by columns: a thread has a run of columns and some of the rows. What sums goes through
// rows that are interleaved over the segments, so that all blocks together sweep memory once; what
// writes takes rows that follow one another, from the end, and finds what was read last in the cache.
// The numbers of a tile's columns come through shared memory, one load a column and block.
#ifndef WD_OPS_NORM_BN_COLUMNS_CUH
#define WD_OPS_NORM_BN_COLUMNS_CUH

#include "gpu/device/words.cuh"
#include "ops/norm/bn_finish.cuh"

namespace {

constexpr int TILE_COLUMNS = BN_TILE_RUNS * BN_RUN;

// Rows of a thread whose loads are under way at once: where it sums x, where there is dy too, where a plain call writes, and
// where others do.
template <class T> constexpr int SUM_BATCH = sizeof(T) == 8 ? 2 : 4;
template <class T> constexpr int PAIR_BATCH = sizeof(T) == 8 ? 1 : 2;
template <class T> constexpr int WRITE_BATCH = sizeof(T) == 8 ? 1 : 16 / (int)sizeof(T);
template <class T> constexpr int OTHER_BATCH = sizeof(T) == 8 ? 1 : 4;

// A thread's place: its run of columns, in the row that begins a.lead elements before x does.
struct column_place {
    uint32_t tile;
    uint32_t segment;
    uint32_t column; // first of the run, in the row
    uint32_t lane;   // which of the block's rows
    uint32_t run;    // which of the tile's runs
    bool active;
};

__device__ __forceinline__ column_place place_of(const bn_vector_args &a, uint32_t block)
{
    column_place p;
    p.segment = block / a.tiles;
    p.tile = block - p.segment * a.tiles;
    p.lane = wd_fastdiv_quotient(threadIdx.x, a.by_tile);
    p.run = threadIdx.x - p.lane * a.tile_runs;
    p.column = (p.tile * a.tile_runs + p.run) * BN_RUN;
    p.active = p.lane < a.tile_rows && p.column < a.width;
    return p;
}

// The element of x's row that lies in a column.
__device__ __forceinline__ uint32_t element_of_column(const bn_vector_args &a, uint32_t column)
{
    return column < a.lead ? column + (uint32_t)a.width - a.lead : column - a.lead;
}

__device__ __forceinline__ uint32_t param_of_column(const bn_vector_args &a, uint32_t column)
{
    const uint32_t plane = wd_fastdiv_quotient(element_of_column(a, column), a.by_inner);
    return plane - wd_fastdiv_quotient(plane, a.by_params) * a.params;
}

// A run in one of N arrays of the tile's columns.
template <class A, int N> struct tile_numbers {
    __align__(16) A of[N][TILE_COLUMNS];

    __device__ __forceinline__ void get(int which, uint32_t run, A *to) const
    {
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) to[i] = of[which][run * BN_RUN + i];
    }
};

// Joins what the block's rows have of each column, half of each run at a time, pairwise in an order
// that the number of rows fixes, and writes the segment's partial results.
template <class A, bool STATISTICS>
__device__ __forceinline__ void join_columns(const bn_vector_args &a, const column_place &p,
                                             const wd_part *mine)
{
    constexpr int HALF = BN_RUN / 2;
    __shared__ double first[BN_THREADS * HALF];
    __shared__ double second[BN_THREADS * HALF];
    __shared__ float count[STATISTICS ? BN_THREADS * HALF : 1];
    const uint32_t columns = a.tile_runs * HALF;
    const int64_t base = (int64_t)p.segment * a.width;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        __syncthreads();
        if (p.lane < a.tile_rows) {
#pragma unroll
            for (int i = 0; i < HALF; ++i) {
                const uint32_t at = p.lane * columns + p.run * HALF + i;
                first[at] = mine[half * HALF + i].mean;
                second[at] = mine[half * HALF + i].squares;
                if (STATISTICS) count[at] = (float)mine[half * HALF + i].count;
            }
        }
        for (uint32_t rows = a.tile_rows; rows > 1;) {
            const uint32_t kept = (rows + 1) / 2;
            __syncthreads();
            for (uint32_t to = threadIdx.x; to < (rows - kept) * columns; to += blockDim.x) {
                const uint32_t from = to + kept * columns;
                if (STATISTICS) {
                    wd_part all = {(double)count[to], first[to], second[to]};
                    join<A>(all, wd_part{(double)count[from], first[from], second[from]});
                    count[to] = (float)all.count;
                    first[to] = all.mean;
                    second[to] = all.squares;
                } else {
                    first[to] += first[from];
                    second[to] += second[from];
                }
            }
            rows = kept;
        }
        __syncthreads();
        for (uint32_t c = threadIdx.x; c < columns; c += blockDim.x) {
            const uint32_t column =
                (p.tile * a.tile_runs + c / HALF) * BN_RUN + half * HALF + c % HALF;
            if (column < a.width) {
                a.partial[base + element_of_column(a, column)] = {
                    STATISTICS ? (double)count[c] : 0.0, first[c], second[c]};
            }
        }
    }
}

// fp64 elements are counted from their parameter's first.
template <class T>
__device__ __forceinline__ void origins(const bn_vector_args &a, const column_place &p,
                                        acc<T> *origin)
{
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) {
        origin[i] = 0;
        if (sizeof(T) == 8 && p.active)
            origin[i] = origin_of<T>(a, param_of_column(a, p.column + i));
    }
}

template <class T> __device__ void stats_columns(const bn_vector_args &a)
{
    using A = acc<T>;
    constexpr int BATCH = SUM_BATCH<T>;
    const column_place p = place_of(a, blockIdx.x);
    const uint32_t step = a.segments * a.tile_rows;
    const int64_t column = (int64_t)p.column - a.lead;
    const T *x = static_cast<const T *>(a.x);
    wd_shifted<A> mine[BN_RUN];
    A origin[BN_RUN];
    uint32_t more[BN_RUN]; // elements beyond those of whole rows
    wd_part part[BN_RUN];
    uint32_t row = p.segment * a.tile_rows + p.lane;
    uint32_t rows = 0;
    wd_wait_for_previous();
    origins<T>(a, p, origin);
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) mine[i].begin((A)0), more[i] = 0;
    const auto add_row = [&](int64_t at) {
        run<T> r;
        fetch(r, x, at, a.total, a.aligned);
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) {
            if (at + i >= 0 && at + i < a.total) {
                mine[i].add(wd_widen(r.get(i)) - origin[i]), more[i] += 1;
            }
        }
    };
    if (p.active && row < a.units) {
        const uint32_t whole = a.aligned ? a.whole_rows : 0;
        const bool lacks = column < 0 && row == 0;
        run<T> begin;
        fetch(begin, x, row * a.pitch + column, a.total, a.aligned);
        // what the first row lacks on the left begins in the second, which may end before the others
        if (lacks) fetch(begin, x, a.pitch + column, a.total, a.aligned);
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) mine[i].begin(wd_widen(begin.get(i)) - origin[i]);
        if (lacks) add_row(column), row += step;
        for (; row + (BATCH - 1) * step < whole; row += BATCH * step) {
            run<T> r[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                r[b].load(x + (int64_t)(row + b * step) * a.pitch + column);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
#pragma unroll
                for (int i = 0; i < BN_RUN; ++i) mine[i].add(wd_widen(r[b].get(i)) - origin[i]);
            }
            rows += BATCH;
        }
        if (row < whole) {
            run<T> r[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                // beyond the last whole row the first, so that no check parts the loads
                const uint32_t own = row + b * step < whole ? row + b * step : row;
                r[b].load(x + (int64_t)own * a.pitch + column);
            }
            const uint32_t left = (whole - row + step - 1) / step;
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (b >= left) break;
#pragma unroll
                for (int i = 0; i < BN_RUN; ++i) mine[i].add(wd_widen(r[b].get(i)) - origin[i]);
            }
            rows += left, row += left * step;
        }
        for (; row < a.units; row += step) add_row(row * a.pitch + column);
    }
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) part[i] = mine[i].part(rows + more[i]);
    join_columns<A, true>(a, p, part);
}

template <class T> __device__ void sums_columns(const bn_vector_args &a)
{
    using A = acc<T>;
    constexpr int BATCH = PAIR_BATCH<T>;
    __shared__ tile_numbers<A, 1> tile;
    const column_place p = place_of(a, blockIdx.x);
    const uint32_t step = a.segments * a.tile_rows;
    const int64_t column = (int64_t)p.column - a.lead;
    const T *x = static_cast<const T *>(a.x), *dy = static_cast<const T *>(a.dy);
    A sum[BN_RUN], product[BN_RUN], mean[BN_RUN];
    wd_part part[BN_RUN];
    uint32_t row = p.segment * a.tile_rows + p.lane;
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) sum[i] = product[i] = 0;
    wd_wait_for_previous();
    for (uint32_t i = threadIdx.x; i < a.tile_runs * BN_RUN; i += blockDim.x) {
        const uint32_t of_tile = p.tile * a.tile_runs * BN_RUN + i;
        if (of_tile >= a.width) break;
        const uint32_t c = param_of_column(a, of_tile);
        tile.of[0][i] = a.mean.data ? param<A>(a.mean, c)
                                    : static_cast<const numbers_of<A> *>(a.numbers)[c].mean;
    }
    __syncthreads();
    tile.get(0, p.run, mean);
    const auto add_row = [&](int64_t at) {
        run<T> r;
        A g[BN_RUN];
        if (at >= a.total) return;
        fetch(r, x, at, a.total, a.aligned);
        fetch_gradient<T>(a, g, at);
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) {
            if (at + i >= 0 && at + i < a.total) {
                sum[i] += g[i];
                product[i] += g[i] * (wd_widen(r.get(i)) - mean[i]);
            }
        }
    };
    if (p.active && row < a.units) {
        const uint32_t whole = a.aligned ? a.whole_rows : 0;
        if (column < 0 && row == 0) add_row(column), row += step;
        for (; row + (BATCH - 1) * step < whole; row += BATCH * step) {
            run<T> rx[BATCH], rdy[BATCH];
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const int64_t at = (int64_t)(row + b * step) * a.pitch + column;
                rx[b].load(x + at);
                rdy[b].load(dy + at);
                bits[b] = a.reserve ? a.reserve[at / BN_RUN] : 0xffu;
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
#pragma unroll
                for (int i = 0; i < BN_RUN; ++i) {
                    const A g = masked(wd_widen(rdy[b].get(i)), bits[b], i);
                    sum[i] += g;
                    product[i] += g * (wd_widen(rx[b].get(i)) - mean[i]);
                }
            }
        }
        for (; row < a.units; row += step) add_row(row * a.pitch + column);
    }
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) part[i] = {0.0, sum[i], product[i]};
    join_columns<A, false>(a, p, part);
}

// The rows of a block that writes: from `first`, as many as its lanes take in a.per_segment.
struct walk {
    column_place p;
    uint32_t row;
    uint32_t end;
};

__device__ __forceinline__ walk walk_of(const bn_vector_args &a)
{
    walk w;
    // inference comes after no sums, and goes the way memory is laid out
    w.p = place_of(a, a.numbers ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    w.row = w.p.segment * a.per_segment + w.p.lane;
    w.end = min((w.p.segment + 1) * a.per_segment, a.units);
    return w;
}

template <class T> __device__ void apply_columns(const bn_vector_args &a)
{
    using A = acc<T>;
    constexpr int BATCH = WRITE_BATCH<T>;
    __shared__ tile_numbers<A, 3> tile;
    const walk w = walk_of(a);
    const int64_t step = (int64_t)a.tile_rows * a.pitch;
    A mean[BN_RUN], factor[BN_RUN], base[BN_RUN];
    wd_wait_for_previous();
    for (uint32_t i = threadIdx.x; i < a.tile_runs * BN_RUN; i += blockDim.x) {
        const uint32_t column = w.p.tile * a.tile_runs * BN_RUN + i;
        if (column >= a.width) break;
        const numbers_of<A> n = forward_numbers<A>(a, param_of_column(a, column));
        tile.of[0][i] = n.mean, tile.of[1][i] = n.factor, tile.of[2][i] = n.base;
    }
    __syncthreads();
    if (!w.p.active) return;
    tile.get(0, w.p.run, mean), tile.get(1, w.p.run, factor), tile.get(2, w.p.run, base);
    uint32_t row = w.row;
    // of plain calls: checks between loads let none overlap; what a run has given is asked for of the next batch at once
    const scalars_of<A> s(a);
    const bool plain = sizeof(T) == 2 && !a.z && !a.activates && s.alpha == (A)1 && s.beta == (A)0;
    const uint32_t whole =
        plain && a.aligned && w.p.column >= a.lead ? min(w.end, a.whole_rows) : 0;
    bool more = row + (BATCH - 1) * a.tile_rows < whole;
    run<T> r[BATCH];
    const T *from = static_cast<const T *>(a.x) + row * a.pitch + w.p.column - a.lead;
    if (more) {
#pragma unroll
        for (int b = 0; b < BATCH; ++b) r[b].load(from + b * step);
    }
    for (; more; row += BATCH * a.tile_rows) {
        T *to = static_cast<T *>(a.y) + row * a.pitch + w.p.column - a.lead;
        more = row + (2 * BATCH - 1) * a.tile_rows < whole;
        from += BATCH * step;
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            A v[BN_RUN];
#pragma unroll
            for (int i = 0; i < BN_RUN; ++i) {
                v[i] = factor[i] * (wd_widen(r[b].get(i)) - mean[i]) + base[i];
            }
            if (more) r[b].load(from + b * step);
            run<T> y;
            wd_narrow_run(y, v);
            if (a.streaming) y.store_streaming(to + b * step);
            else y.store(to + b * step);
        }
    }
    constexpr int OTHER = OTHER_BATCH<T>;
    for (; row < w.end; row += OTHER * a.tile_rows) {
        const int64_t first = row * a.pitch + w.p.column - a.lead;
#pragma unroll
        for (int b = 0; b < OTHER; ++b) {
            if (row + b * a.tile_rows < w.end)
                fetch(r[b], a.x, first + b * step, a.total, a.aligned);
        }
#pragma unroll
        for (int b = 0; b < OTHER; ++b) {
            A v[BN_RUN];
            if (row + b * a.tile_rows >= w.end || first + b * step >= a.total) break;
#pragma unroll
            for (int i = 0; i < BN_RUN; ++i) {
                v[i] = factor[i] * (wd_widen(r[b].get(i)) - mean[i]) + base[i];
            }
            finish_forward<T>(a, v, first + b * step);
        }
    }
}

template <class T> __device__ void grad_columns(const bn_vector_args &a)
{
    using A = acc<T>;
    constexpr int BATCH = PAIR_BATCH<T>;
    __shared__ tile_numbers<A, 4> tile;
    const walk w = walk_of(a);
    const int64_t step = (int64_t)a.tile_rows * a.pitch;
    A mean[BN_RUN], factor[BN_RUN], base[BN_RUN], slope[BN_RUN];
    wd_wait_for_previous();
    for (uint32_t i = threadIdx.x; i < a.tile_runs * BN_RUN; i += blockDim.x) {
        const uint32_t column = w.p.tile * a.tile_runs * BN_RUN + i;
        if (column >= a.width) break;
        const numbers_of<A> n =
            static_cast<const numbers_of<A> *>(a.numbers)[param_of_column(a, column)];
        tile.of[0][i] = n.mean, tile.of[1][i] = n.factor, tile.of[2][i] = n.base;
        tile.of[3][i] = n.slope;
    }
    __syncthreads();
    if (!w.p.active) return;
    tile.get(0, w.p.run, mean), tile.get(1, w.p.run, factor), tile.get(2, w.p.run, base);
    tile.get(3, w.p.run, slope);
    for (uint32_t row = w.row; row < w.end; row += BATCH * a.tile_rows) {
        run<T> rx[BATCH], rdy[BATCH];
        uint32_t bits[BATCH];
        const int64_t first = row * a.pitch + w.p.column - a.lead;
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const int64_t at = first + b * step;
            if (row + b * a.tile_rows < w.end && at < a.total) {
                fetch(rx[b], a.x, at, a.total, a.aligned);
                fetch(rdy[b], a.dy, at, a.total, a.aligned);
                bits[b] = a.reserve ? a.reserve[at / BN_RUN] : 0xffu;
            }
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            A g[BN_RUN], dx[BN_RUN];
            if (row + b * a.tile_rows >= w.end || first + b * step >= a.total) break;
#pragma unroll
            for (int i = 0; i < BN_RUN; ++i) {
                g[i] = masked(wd_widen(rdy[b].get(i)), bits[b], i);
                dx[i] = factor[i] * g[i] + base[i] + slope[i] * (wd_widen(rx[b].get(i)) - mean[i]);
            }
            finish_backward<T>(a, dx, g, first + b * step);
        }
    }
}

} // namespace

#endif
