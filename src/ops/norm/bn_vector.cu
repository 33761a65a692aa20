// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization at the speed of memory: sums of segments, what follows from them for every
// parameter, and one more walk that writes. Forward reads x twice, backward x and dy. Sums are added
// in an order that depends on the shape alone.
#include "gpu/device/statistics.cuh"
#include "ops/norm/bn_device.cuh"

namespace {

// ---- What follows from the sums ----

__device__ void write_numbers(const bn_vector_args &a, uint32_t c, double mean, double inv_std)
{
    const float rounded = (float)mean;
    bn_numbers n = {};
    n.mean = rounded;
    n.rest = (float)(mean - rounded);
    n.inv_std = (float)inv_std;
    if (a.scale.data) n.factor = param(a.scale, c) * n.inv_std;
    if (a.bias.data) n.base = param(a.bias, c) - n.factor * n.rest;
    a.numbers[c] = n;
}

// Joins the partial results of a parameter: lane by lane, warp by warp, always in the same order.
// Gives them to the first thread of those that work on it.
__device__ wd_part join_partials(const bn_vector_args &a, uint32_t c, bool statistics)
{
    __shared__ wd_part of_warp[BN_THREADS / 32];
    const uint32_t inner = a.by_inner.divisor;
    const uint32_t copies = (uint32_t)(a.width / a.params); // of the parameter in a row of partials
    const uint32_t lanes = a.finish_lanes;
    wd_part all = {0.0, 0.0, 0.0};
    for (uint32_t i = threadIdx.x % lanes; c < a.params && i < a.segments * copies; i += lanes) {
        const uint32_t copy = i % copies;
        const int64_t at = (int64_t)(i / copies) * a.width +
                           (int64_t)(copy / inner * a.params + c) * inner + copy % inner;
        const bn_partial p = a.partial[at];
        if (statistics) {
            wd_join_parts(all, wd_part{p.count, p.first, p.second});
        } else {
            all.mean += p.first;
            all.squares += p.second;
        }
    }
    if (statistics) {
        wd_join_parts_of_warp(all);
    } else {
        all.mean = wd_sum_of_warp(all.mean);
        all.squares = wd_sum_of_warp(all.squares);
    }
    if (lanes == 32) return all;
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all;
    __syncthreads();
    for (int w = 1; w < BN_THREADS / 32; ++w) {
        if (statistics) {
            wd_join_parts(all, of_warp[w]);
        } else {
            all.mean += of_warp[w].mean;
            all.squares += of_warp[w].squares;
        }
    }
    return all;
}

__device__ void stats_finish(const bn_vector_args &a)
{
    const uint32_t c = (blockIdx.x * blockDim.x + threadIdx.x) / a.finish_lanes;
    wd_wait_for_previous();
    const wd_part all = join_partials(a, c, true);
    if (c >= a.params || threadIdx.x % a.finish_lanes != 0) return;
    const double inv_std = 1.0 / sqrt(all.squares / all.count + a.epsilon);
    const double unbiased = all.squares / (all.count > 1.0 ? all.count - 1.0 : all.count);
    write_numbers(a, c, all.mean, inv_std);
    blend_param(a.mean, c, all.mean, 1.0, 0.0);
    blend_param(a.var, c, inv_std, 1.0, 0.0);
    blend_param(a.running_mean, c, all.mean, a.factor, 1.0 - a.factor);
    blend_param(a.running_var, c, unbiased, a.factor, 1.0 - a.factor);
}

__device__ void sums_finish(const bn_vector_args &a)
{
    const uint32_t c = (blockIdx.x * blockDim.x + threadIdx.x) / a.finish_lanes;
    wd_wait_for_previous();
    const wd_part all = join_partials(a, c, false);
    if (c >= a.params || threadIdx.x % a.finish_lanes != 0) return;
    bn_numbers n = {};
    if (a.mean.data) {
        n.mean = param(a.mean, c);
        n.inv_std = param(a.var, c);
    } else {
        n = a.numbers[c];
    }
    const double scaled = (double)param(a.scale, c) * n.inv_std;
    const double dscale = (all.squares - n.rest * all.mean) * n.inv_std; // sum of dy * xhat
    n.factor = (float)scaled;
    n.slope = (float)(-scaled * dscale * n.inv_std / (double)a.terms);
    n.base = (float)(-scaled * all.mean / (double)a.terms) - n.slope * n.rest;
    a.numbers[c] = n;
    blend_param(a.dscale, c, dscale, a.alpha_param, a.beta_param);
    blend_param(a.dbias, c, all.mean, a.alpha_param, a.beta_param);
}

// ---- Planes ----

// Where unit `u` of parameter `c` lies: a run of it, or one element.
__device__ __forceinline__ int64_t plane_unit(const bn_vector_args &a, uint32_t c, uint32_t u)
{
    const uint32_t outer = wd_fastdiv_quotient(u, a.by_plane);
    const uint32_t inner = u - outer * a.by_plane.divisor;
    return ((int64_t)outer * a.params + c) * a.by_plane.divisor + inner;
}

template <class T> __device__ void stats_planes(const bn_vector_args &a)
{
    const uint32_t c = blockIdx.x % a.params;
    const uint32_t segment = blockIdx.x / a.params;
    const uint32_t first = segment * a.per_segment + threadIdx.x;
    const uint32_t last = min((segment + 1) * a.per_segment, a.units);
    const T *x = static_cast<const T *>(a.x);
    const bool by_runs = a.whole_runs && a.aligned;
    __shared__ wd_part warp_part[BN_THREADS / 32];
    uint32_t units = 0;
    wd_shifted mine;
    wd_wait_for_previous();
    mine.begin(first < last ? wd_widen(x[plane_unit(a, c, first) * (by_runs ? BN_RUN : 1)]) : 0.0f);
    if (by_runs) {
#pragma unroll 4
        for (uint32_t u = first; u < last; u += blockDim.x, ++units) {
            run<T> r;
            r.load(x + plane_unit(a, c, u) * BN_RUN);
#pragma unroll
            for (int i = 0; i < BN_RUN; ++i) mine.add(wd_widen(r.get(i)));
        }
    } else {
#pragma unroll 8
        for (uint32_t u = first; u < last; u += blockDim.x, ++units) {
            mine.add(wd_widen(x[plane_unit(a, c, u)]));
        }
    }
    wd_part part = mine.part(units * (by_runs ? BN_RUN : 1));
    wd_join_parts_of_warp(part);
    if (threadIdx.x % 32 == 0) warp_part[threadIdx.x / 32] = part;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (uint32_t w = 1; w < blockDim.x / 32; ++w) wd_join_parts(part, warp_part[w]);
        a.partial[(int64_t)segment * a.params + c] = {part.count, part.mean, part.squares};
    }
}

template <class T> __device__ void sums_planes(const bn_vector_args &a)
{
    const uint32_t c = blockIdx.x % a.params;
    const uint32_t segment = blockIdx.x / a.params;
    const uint32_t first = segment * a.per_segment;
    const uint32_t last = min(first + a.per_segment, a.units);
    const T *x = static_cast<const T *>(a.x);
    const T *dy = static_cast<const T *>(a.dy);
    __shared__ double warp_sum[2][BN_THREADS / 32];
    float sum = 0.0f, product = 0.0f;
    wd_wait_for_previous();
    const float mean = a.mean.data ? param(a.mean, c) : a.numbers[c].mean;
    if (a.whole_runs && a.aligned) {
#pragma unroll 2
        for (uint32_t u = first + threadIdx.x; u < last; u += blockDim.x) {
            const int64_t at = plane_unit(a, c, u);
            const uint32_t bits = a.reserve ? a.reserve[at] : 0xffu;
            run<T> rx, rdy;
            rx.load(x + at * BN_RUN);
            rdy.load(dy + at * BN_RUN);
            float s = 0.0f, p = 0.0f;
#pragma unroll
            for (int i = 0; i < BN_RUN; ++i) {
                const float g = masked(wd_widen(rdy.get(i)), bits, i);
                s += g;
                p += g * (wd_widen(rx.get(i)) - mean);
            }
            sum += s;
            product += p;
        }
    } else {
#pragma unroll 4
        for (uint32_t u = first + threadIdx.x; u < last; u += blockDim.x) {
            const int64_t at = plane_unit(a, c, u);
            const uint32_t bits = a.reserve ? a.reserve[at / 8] >> (at % 8) : 1u;
            const float g = masked(wd_widen(dy[at]), bits, 0);
            sum += g;
            product += g * (wd_widen(x[at]) - mean);
        }
    }
    const double warp_first = wd_sum_of_warp(sum), warp_second = wd_sum_of_warp(product);
    if (threadIdx.x % 32 == 0) {
        warp_sum[0][threadIdx.x / 32] = warp_first;
        warp_sum[1][threadIdx.x / 32] = warp_second;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        bn_partial all = {0.0, 0.0, 0.0};
        for (uint32_t w = 0; w < blockDim.x / 32; ++w) {
            all.first += warp_sum[0][w];
            all.second += warp_sum[1][w];
        }
        a.partial[(int64_t)segment * a.params + c] = all;
    }
}

template <class T> __device__ void apply_planes(const bn_vector_args &a)
{
    const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t at = (int64_t)index * BN_RUN;
    run<T> x;
    float v[BN_RUN];
    wd_wait_for_previous();
    if (at >= a.total) return;
    fetch(x, a.x, at, a.total, a.aligned);
    // a plane is at least a run long: a run lies in one or two of them
    const uint32_t plane = a.whole_runs ? wd_fastdiv_quotient(index, a.by_plane)
                                        : wd_fastdiv_quotient((uint32_t)at, a.by_plane);
    const uint32_t c = plane - wd_fastdiv_quotient(plane, a.by_params) * a.params;
    const bn_numbers n = forward_numbers(a, c);
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) {
        v[i] = n.factor * (wd_widen(x.get(i)) - n.mean) + n.base;
    }
    if (!a.whole_runs) {
        const int own = (int)min((plane + 1) * a.by_plane.divisor - (uint32_t)at, (uint32_t)BN_RUN);
        if (own < BN_RUN) {
            const bn_numbers next = forward_numbers(a, c + 1 == a.params ? 0 : c + 1);
#pragma unroll
            for (int i = 1; i < BN_RUN; ++i) {
                if (i >= own) {
                    v[i] = next.factor * (wd_widen(x.get(i)) - next.mean) + next.base;
                }
            }
        }
    }
    finish_forward<T>(a, v, at);
}

template <class T> __device__ void grad_planes(const bn_vector_args &a)
{
    const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t at = (int64_t)index * BN_RUN;
    run<T> x;
    float g[BN_RUN], dx[BN_RUN];
    wd_wait_for_previous();
    if (at >= a.total) return;
    fetch(x, a.x, at, a.total, a.aligned);
    fetch_gradient<T>(a, g, at);
    const uint32_t plane = a.whole_runs ? wd_fastdiv_quotient(index, a.by_plane)
                                        : wd_fastdiv_quotient((uint32_t)at, a.by_plane);
    const uint32_t c = plane - wd_fastdiv_quotient(plane, a.by_params) * a.params;
    const bn_numbers n = a.numbers[c];
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) {
        dx[i] = n.factor * g[i] + n.base + n.slope * (wd_widen(x.get(i)) - n.mean);
    }
    if (!a.whole_runs) {
        const int own = (int)min((plane + 1) * a.by_plane.divisor - (uint32_t)at, (uint32_t)BN_RUN);
        if (own < BN_RUN) {
            const bn_numbers m = a.numbers[c + 1 == a.params ? 0 : c + 1];
#pragma unroll
            for (int i = 1; i < BN_RUN; ++i) {
                if (i >= own) {
                    dx[i] = m.factor * g[i] + m.base + m.slope * (wd_widen(x.get(i)) - m.mean);
                }
            }
        }
    }
    finish_backward<T>(a, dx, g, at);
}

// ---- Columns ----

// A thread's place: its run of columns and the first and last rows of its block's segment.
struct column_place {
    uint32_t column; // first of the run, in the row
    uint32_t row;    // the thread's first
    uint32_t whole;  // rows before this one have all their elements
    uint32_t end;
    uint32_t lane; // which of the block's rows
    uint32_t run;  // which of the tile's runs
    bool active;
};

__device__ __forceinline__ column_place place_of(const bn_vector_args &a)
{
    column_place p;
    const uint32_t tile = blockIdx.x % a.tiles;
    const uint32_t segment = blockIdx.x / a.tiles;
    p.lane = wd_fastdiv_quotient(threadIdx.x, a.by_tile);
    p.run = threadIdx.x - p.lane * a.tile_runs;
    p.column = (tile * a.tile_runs + p.run) * BN_RUN;
    p.row = segment * a.per_segment + p.lane;
    p.end = min((segment + 1) * a.per_segment, a.units);
    p.whole = a.aligned ? min(p.end, a.whole_rows) : 0;
    p.active = p.lane < a.tile_rows && p.column < a.width;
    return p;
}

__device__ __forceinline__ uint32_t param_of_column(const bn_vector_args &a, uint32_t column)
{
    const uint32_t plane = wd_fastdiv_quotient(column, a.by_inner);
    return plane - wd_fastdiv_quotient(plane, a.by_params) * a.params;
}

// Joins what the block's rows have of each column, half of each run at a time, pairwise in an order
// that the number of rows fixes, and writes the segment's partial results.
template <bool STATISTICS>
__device__ __forceinline__ void join_columns(const bn_vector_args &a, const column_place &p,
                                             const wd_part *mine)
{
    constexpr int HALF = BN_RUN / 2;
    __shared__ double first[BN_THREADS * HALF];
    __shared__ double second[BN_THREADS * HALF];
    __shared__ float count[STATISTICS ? BN_THREADS * HALF : 1];
    const uint32_t columns = a.tile_runs * HALF;
    const uint32_t tile = blockIdx.x % a.tiles;
    const int64_t base = (int64_t)(blockIdx.x / a.tiles) * a.width;
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
                    wd_join_parts(all, wd_part{(double)count[from], first[from], second[from]});
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
                (tile * a.tile_runs + c / HALF) * BN_RUN + half * HALF + c % HALF;
            if (column < a.width) {
                a.partial[base + column] = {STATISTICS ? (double)count[c] : 0.0, first[c],
                                            second[c]};
            }
        }
    }
}

template <class T> __device__ void stats_columns(const bn_vector_args &a)
{
    constexpr int BATCH = 4;
    const column_place p = place_of(a);
    wd_shifted mine[BN_RUN];
    uint32_t more[BN_RUN]; // elements beyond those of whole rows
    wd_part part[BN_RUN];
    uint32_t row = p.row;
    uint32_t rows = 0;
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) mine[i].begin(0.0f), more[i] = 0;
    wd_wait_for_previous();
    if (p.active && row < p.end) {
        const T *x = static_cast<const T *>(a.x) + p.column;
        run<T> begin;
        fetch(begin, a.x, (int64_t)row * a.pitch + p.column, a.total, a.aligned);
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) mine[i].begin(wd_widen(begin.get(i)));
        for (; row + (BATCH - 1) * a.tile_rows < p.whole; row += BATCH * a.tile_rows) {
            run<T> r[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                r[b].load(x + (int64_t)(row + b * a.tile_rows) * a.pitch);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
#pragma unroll
                for (int i = 0; i < BN_RUN; ++i) mine[i].add(wd_widen(r[b].get(i)));
            }
            rows += BATCH;
        }
        for (; row < p.end; row += a.tile_rows) {
            const int64_t at = (int64_t)row * a.pitch + p.column;
            run<T> r;
            fetch(r, a.x, at, a.total, a.aligned);
#pragma unroll
            for (int i = 0; i < BN_RUN; ++i) {
                if (at + i < a.total) mine[i].add(wd_widen(r.get(i))), more[i] += 1;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) part[i] = mine[i].part(rows + more[i]);
    join_columns<true>(a, p, part);
}

template <class T> __device__ void sums_columns(const bn_vector_args &a)
{
    constexpr int BATCH = sizeof(T) == 4 ? 2 : 4;
    const column_place p = place_of(a);
    float sum[BN_RUN], product[BN_RUN], mean[BN_RUN];
    wd_part part[BN_RUN];
    uint32_t row = p.row;
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) sum[i] = product[i] = mean[i] = 0.0f;
    wd_wait_for_previous();
    if (p.active) {
        const T *x = static_cast<const T *>(a.x) + p.column;
        const T *dy = static_cast<const T *>(a.dy) + p.column;
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) {
            const uint32_t c = param_of_column(a, p.column + i);
            mean[i] = a.mean.data ? param(a.mean, c) : a.numbers[c].mean;
        }
        for (; row + (BATCH - 1) * a.tile_rows < p.whole; row += BATCH * a.tile_rows) {
            run<T> rx[BATCH], rdy[BATCH];
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const int64_t at = (int64_t)(row + b * a.tile_rows) * a.pitch;
                rx[b].load(x + at);
                rdy[b].load(dy + at);
                bits[b] = a.reserve ? a.reserve[(at + p.column) / BN_RUN] : 0xffu;
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
#pragma unroll
                for (int i = 0; i < BN_RUN; ++i) {
                    const float g = masked(wd_widen(rdy[b].get(i)), bits[b], i);
                    sum[i] += g;
                    product[i] += g * (wd_widen(rx[b].get(i)) - mean[i]);
                }
            }
        }
        for (; row < p.end; row += a.tile_rows) {
            const int64_t at = (int64_t)row * a.pitch + p.column;
            run<T> r;
            float g[BN_RUN];
            if (at >= a.total) break;
            fetch(r, a.x, at, a.total, a.aligned);
            fetch_gradient<T>(a, g, at);
#pragma unroll
            for (int i = 0; i < BN_RUN; ++i) {
                if (at + i < a.total) {
                    sum[i] += g[i];
                    product[i] += g[i] * (wd_widen(r.get(i)) - mean[i]);
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) part[i] = {0.0, sum[i], product[i]};
    join_columns<false>(a, p, part);
}

template <class T> __device__ void apply_columns(const bn_vector_args &a)
{
    constexpr int BATCH = sizeof(T) == 4 ? 4 : 8;
    const column_place p = place_of(a);
    float mean[BN_RUN], factor[BN_RUN], base[BN_RUN];
    uint32_t row = p.row;
    wd_wait_for_previous();
    if (!p.active) return;
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) {
        const bn_numbers n = forward_numbers(a, param_of_column(a, p.column + i));
        mean[i] = n.mean, factor[i] = n.factor, base[i] = n.base;
    }
    for (; row < p.end; row += BATCH * a.tile_rows) {
        run<T> r[BATCH];
        const int64_t first = (int64_t)row * a.pitch + p.column;
        const int64_t step = (int64_t)a.tile_rows * a.pitch;
        const int rows = (int)min((p.end - row + a.tile_rows - 1) / a.tile_rows, (uint32_t)BATCH);
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            if (b < rows) fetch(r[b], a.x, first + b * step, a.total, a.aligned);
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            float v[BN_RUN];
            if (b >= rows || first + b * step >= a.total) break;
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
    constexpr int BATCH = sizeof(T) == 4 ? 2 : 4;
    const column_place p = place_of(a);
    float mean[BN_RUN], factor[BN_RUN], base[BN_RUN], slope[BN_RUN];
    uint32_t row = p.row;
    wd_wait_for_previous();
    if (!p.active) return;
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) {
        const bn_numbers n = a.numbers[param_of_column(a, p.column + i)];
        mean[i] = n.mean, factor[i] = n.factor, base[i] = n.base;
        slope[i] = n.slope;
    }
    for (; row < p.end; row += BATCH * a.tile_rows) {
        run<T> rx[BATCH], rdy[BATCH];
        uint32_t bits[BATCH];
        const int64_t first = (int64_t)row * a.pitch + p.column;
        const int64_t step = (int64_t)a.tile_rows * a.pitch;
        const int rows = (int)min((p.end - row + a.tile_rows - 1) / a.tile_rows, (uint32_t)BATCH);
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            if (b < rows && first + b * step < a.total) {
                fetch(rx[b], a.x, first + b * step, a.total, a.aligned);
                fetch(rdy[b], a.dy, first + b * step, a.total, a.aligned);
                bits[b] = a.reserve ? a.reserve[(first + b * step) / BN_RUN] : 0xffu;
            }
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            float g[BN_RUN], dx[BN_RUN];
            if (b >= rows || first + b * step >= a.total) break;
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

#define WD_KERNELS_ROWS "ops/norm/bn_vector_kernels.def"
#include "ops/kernels_device.inc"
