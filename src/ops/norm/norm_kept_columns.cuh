// SPDX-License-Identifier: Apache-2.0
//
// norm_kept by columns: channels lie last. A thread has a run of columns and some of the rows; what it
// found is added up over the rows of the block, over the columns of a group, and over the cluster.
#ifndef WD_OPS_NORM_KEPT_COLUMNS_CUH
#define WD_OPS_NORM_KEPT_COLUMNS_CUH

#include "ops/norm/norm_kept_device.cuh"

namespace {

constexpr uint32_t TILE = NORM_KEPT_TILE;

// How the columns of a run belong to groups: all to one; to two, the first one's and the last one's;
// or each is looked at by itself.
enum sharing { ONE, TWO, EACH };
template <class T, sharing S> constexpr int CELLS = S == ONE ? 1 : S == TWO ? 2 : RUN<T>;

struct column_seat {
    uint32_t rank;
    uint32_t row;   // of the block's rows at a time
    uint32_t place; // run of the row
    uint32_t slots; // of the thread
    uint32_t left;  // columns of the run: fewer than it has at the end of a row
    uint32_t first; // row of the panel
    uint32_t batch;
};

__device__ __forceinline__ column_seat column_seat_of(const norm_kept_args &a, uint32_t run_length)
{
    column_seat s;
    const uint32_t begin = min((blockIdx.x % a.cluster) * a.part, a.plane);
    const uint32_t end = min(begin + a.part, a.plane);
    s.rank = blockIdx.x % a.cluster;
    s.row = threadIdx.x / a.across;
    s.place = threadIdx.x - s.row * a.across;
    s.first = begin + s.row;
    s.slots = s.row < a.rows && s.first < end ? (end - s.first - 1) / a.rows + 1 : 0;
    s.left = min(a.tile - s.place * run_length, run_length);
    s.batch = (a.slots + BATCHES - 1) / BATCHES;
    return s;
}

// The thread's first element of a panel.
template <class T>
__device__ __forceinline__ int64_t column_start(const norm_kept_args &a, const column_seat &s,
                                                int64_t panel)
{
    const int64_t sample = panel / a.tiles;
    const uint32_t tile = (uint32_t)(panel - sample * a.tiles);
    return (sample * a.plane + s.first) * a.channels + tile * a.tile + s.place * RUN<T>;
}

template <class T>
__device__ __forceinline__ void fetch_columns(const norm_kept_args &a, const column_seat &s,
                                              const T *from, uint4 *kept)
{
    const int64_t step = (int64_t)a.rows * a.channels;
    for (uint32_t b = 0; b < BATCHES; ++b) {
        const uint32_t end = min((b + 1) * s.batch, s.slots);
        for (uint32_t j = b * s.batch; j < end; ++j) {
            fetch(kept + j * blockDim.x + threadIdx.x, from + j * step, a.runs != 0, s.left);
        }
        wd_copies_end();
    }
}

// Lanes that add up the rows of one run.
constexpr uint32_t ADDERS = 8;

// What the threads of the block have of CELLS numbers, over its rows: to `found`, by cell and run.
template <int CELLS, class F>
__device__ __forceinline__ void sum_rows(const norm_kept_args &a, const F &mine, pair *table,
                                         pair *found)
{
#pragma unroll
    for (int c = 0; c < CELLS; ++c) {
        if (c > 0) __syncthreads();
        table[threadIdx.x] = mine(c);
        __syncthreads();
        for (uint32_t first = 0; first < a.across * ADDERS; first += blockDim.x) {
            const uint32_t item = first + threadIdx.x;
            const uint32_t place = item / ADDERS;
            pair all = {0.0, 0.0};
            for (uint32_t row = item % ADDERS; place < a.across && row < a.rows; row += ADDERS) {
                add(all, table[row * a.across + place]);
            }
            all = sum_of_lanes(all, ADDERS);
            if (item % ADDERS == 0 && place < a.across) found[c * a.across + place] = all;
        }
    }
    __syncthreads();
}

// Of a group of the tile, from what was found of runs.
template <class T, sharing S>
__device__ __forceinline__ pair pair_of_group(const norm_kept_args &a, const pair *found,
                                              uint32_t group)
{
    const uint32_t begin = group * a.each, end = begin + a.each;
    pair all = {0.0, 0.0};
    if constexpr (S == EACH) {
        for (uint32_t c = begin; c < end; ++c) add(all, found[c % RUN<T> * a.across + c / RUN<T>]);
    } else {
        for (uint32_t p = begin / RUN<T>; p * RUN<T> < end; ++p) {
            // a run that began in the group before has this one in its second cell
            add(all, found[(S == TWO && p * RUN<T> < begin ? a.across : 0) + p]);
        }
    }
    return all;
}

// The cell of a run's column; the second of two begins at `split`.
template <class T, sharing S>
__device__ __forceinline__ uint32_t cell_of(uint32_t split, uint32_t i)
{
    return S == ONE ? 0 : S == EACH ? i : i >= split;
}

template <int CELLS>
__device__ __forceinline__ float mean_of(const float *mean, uint32_t split, int i)
{
    return CELLS == 1            ? mean[0]
           : CELLS > 2           ? mean[i % CELLS]
           : (uint32_t)i < split ? mean[0]
                                 : mean[CELLS - 1];
}

// The group of a cell, in the tile.
template <class T, sharing S>
__device__ __forceinline__ uint32_t group_of(const norm_kept_args &a, const column_seat &s,
                                             uint32_t cell)
{
    const uint32_t column = s.place * RUN<T>;
    if constexpr (S == EACH) return (column + cell) / a.each;
    return column / a.each + cell;
}

template <class T, sharing S>
__device__ __forceinline__ void columns_forward(const norm_kept_args &a)
{
    constexpr int C = CELLS<T, S>;
    constexpr int P = S == ONE ? 1 : RUN<T>; // first elements that a thread counts from
    __shared__ pair table[THREADS];
    __shared__ pair found[TILE];
    __shared__ numbers of_group[TILE];
    __shared__ uint64_t here[2];
    uint4 *kept = wd_dynamic_shared<uint4>();
    const column_seat s = column_seat_of(a, RUN<T>);
    const uint32_t split = a.each - s.place * RUN<T> % a.each; // columns of the run's first group
    const uint32_t groups = a.tile / a.each;
    const int64_t step = (int64_t)a.rows * a.channels;
    exchange e = {reinterpret_cast<pair *>(kept + a.space), here, groups, 0};
    int64_t panel = blockIdx.x / a.cluster;
    int64_t start = column_start<T>(a, s, panel);
    begin_exchange(a, e);
    wd_wait_for_previous();
    fetch_columns(a, s, static_cast<const T *>(a.x) + start, kept);
    for (; panel < a.panels; panel += a.clusters, e.turn += 1) {
        const int64_t sample = panel / a.tiles;
        const uint32_t channel = (uint32_t)(panel - sample * a.tiles) * a.tile;
        {
            shifted mine[P];
#pragma unroll
            for (int i = 0; i < P; ++i) mine[i].begin(0.0f);
#pragma unroll
            for (int b = 0; b < BATCHES; ++b) {
                const uint32_t end = min((b + 1) * s.batch, s.slots);
                wait_for_batch(b);
                for (uint32_t j = b * s.batch; j < end; ++j) {
                    run<T> r;
                    r.load(reinterpret_cast<const T *>(kept + j * blockDim.x + threadIdx.x));
                    if (j == 0) {
#pragma unroll
                        for (int i = 0; i < P; ++i) mine[i].begin(wd_widen(r.get(i)));
                    }
#pragma unroll
                    for (int i = 0; i < RUN<T>; ++i) mine[i % P].add(wd_widen(r.get(i)));
                }
            }
            sum_rows<C>(
                a,
                [&](uint32_t c) {
                    if constexpr (S == ONE) {
                        return mine[0].from(0.0f, s.slots * RUN<T>);
                    } else if constexpr (S == EACH) {
                        return mine[c].from(0.0f, s.slots);
                    } else {
                        pair all = {0.0, 0.0};
#pragma unroll
                        for (uint32_t i = 0; i < P; ++i) {
                            if ((i >= split) == (c > 0)) add(all, mine[i].from(0.0f, s.slots));
                        }
                        return all;
                    }
                },
                table, found);
        }
        if (threadIdx.x == 0) expect(a, e);
        for (uint32_t g = threadIdx.x; g < groups; g += blockDim.x) {
            const pair all = pair_of_group<T, S>(a, found, g);
            if (a.cluster == 1) *place_in(a, e, g) = all;
            else
                for (uint32_t to = 0; to < a.cluster; ++to) send(a, e, s.rank, g, to, all);
        }
        for (uint32_t g = threadIdx.x; g < groups; g += blockDim.x) {
            wait_for_all(a, e);
            const numbers n = numbers_of(a, received(a, e, g), 0.0f);
            of_group[g] = n;
            if (s.rank == 0) {
                const int64_t share = sample * a.groups + channel / a.each + g;
                if (a.mean) a.mean[share] = n.mean;
                if (a.inv_std) a.inv_std[share] = n.inv_std;
            }
        }
        __syncthreads();
        float mean[C], factor[RUN<T>], base[RUN<T>];
#pragma unroll
        for (uint32_t c = 0; c < C; ++c) {
            const uint32_t group = group_of<T, S>(a, s, c);
            mean[c] = group < groups ? of_group[group].mean : 0.0f;
        }
#pragma unroll
        for (uint32_t i = 0; i < RUN<T>; ++i) {
            factor[i] = base[i] = 0.0f;
            if (i >= s.left || s.slots == 0) continue;
            const numbers n = of_group[group_of<T, S>(a, s, cell_of<T, S>(split, i))];
            const uint32_t own = channel + s.place * RUN<T> + i;
            const float scale = param_at(a.scale, own);
            factor[i] = scale * n.inv_std;
            base[i] = fmaf(scale, n.rest, param_at(a.bias, own));
        }
        T *y = static_cast<T *>(a.y) + start;
        const bool more = panel + a.clusters < a.panels;
        if (more) start = column_start<T>(a, s, panel + a.clusters);
        const T *x = static_cast<const T *>(a.x) + start;
        for (uint32_t b = 0; b < BATCHES; ++b) {
            const uint32_t end = min((b + 1) * s.batch, s.slots);
            for (uint32_t j = b * s.batch; j < end; ++j) {
                uint4 *at = kept + j * blockDim.x + threadIdx.x;
                run<T> r;
                float value[RUN<T>];
                r.load(reinterpret_cast<const T *>(at));
#pragma unroll
                for (int i = 0; i < RUN<T>; ++i) {
                    value[i] =
                        fmaf(factor[i], wd_widen(r.get(i)) - mean_of<C>(mean, split, i), base[i]);
                }
                put(y + j * step, value, a.runs != 0, s.left, a.streaming);
                if (more) fetch(at, x + j * step, a.runs != 0, s.left);
            }
            if (more) wd_copies_end();
        }
    }
}

// ---- Backward ----

// Sums of every column over the rows of the block: two columns at a time.
template <class T>
__device__ __forceinline__ void sum_columns(const norm_kept_args &a, const float *dy,
                                            const float *product, float4 *table,
                                            norm_kept_sums *found)
{
#pragma unroll
    for (int c = 0; c < RUN<T>; c += 2) {
        if (c > 0) __syncthreads();
        table[threadIdx.x] = make_float4(dy[c], product[c], dy[c + 1], product[c + 1]);
        __syncthreads();
        for (uint32_t first = 0; first < a.across * ADDERS; first += blockDim.x) {
            const uint32_t item = first + threadIdx.x;
            const uint32_t place = item / ADDERS;
            float4 all = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            for (uint32_t row = item % ADDERS; place < a.across && row < a.rows; row += ADDERS) {
                const float4 one = table[row * a.across + place];
                all.x += one.x, all.y += one.y, all.z += one.z, all.w += one.w;
            }
#pragma unroll
            for (uint32_t lanes = 1; lanes < ADDERS; lanes *= 2) {
                all.x += __shfl_xor_sync(WHOLE_WARP, all.x, (int)lanes);
                all.y += __shfl_xor_sync(WHOLE_WARP, all.y, (int)lanes);
                all.z += __shfl_xor_sync(WHOLE_WARP, all.z, (int)lanes);
                all.w += __shfl_xor_sync(WHOLE_WARP, all.w, (int)lanes);
            }
            if (item % ADDERS == 0 && place < a.across) {
                found[place * RUN<T> + c] = {all.x, all.y};
                found[place * RUN<T> + c + 1] = {all.z, all.w};
            }
        }
    }
    __syncthreads();
}

// What the statistics and the sums of a group say.
struct slant {
    float mean;
    float inv_std;
    float base;
    float slope;
};

template <class T, sharing S>
__device__ __forceinline__ void columns_backward(const norm_kept_args &a)
{
    constexpr int C = CELLS<T, S>;
    __shared__ float4 table[THREADS];
    __shared__ norm_kept_sums found[TILE + 8];
    __shared__ slant of_group[TILE];
    __shared__ uint64_t here[2];
    uint4 *kept = wd_dynamic_shared<uint4>();
    uint4 *kept_dy = kept + a.space;
    const column_seat s = column_seat_of(a, RUN<T>);
    const uint32_t split = a.each - s.place * RUN<T> % a.each;
    const uint32_t groups = a.tile / a.each;
    const int64_t step = (int64_t)a.rows * a.channels;
    exchange e = {reinterpret_cast<pair *>(kept_dy + a.space), here, groups, 0};
    int64_t panel = blockIdx.x / a.cluster;
    int64_t start = column_start<T>(a, s, panel);
    begin_exchange(a, e);
    wd_wait_for_previous();
    fetch_columns(a, s, static_cast<const T *>(a.x) + start, kept);
    fetch_columns(a, s, static_cast<const T *>(a.dy) + start, kept_dy);
    for (; panel < a.panels; panel += a.clusters, e.turn += 1) {
        const int64_t sample = panel / a.tiles;
        const uint32_t channel = (uint32_t)(panel - sample * a.tiles) * a.tile;
        const int64_t share = sample * a.groups + channel / a.each;
        {
            float sum[RUN<T>], product[RUN<T>], mean[C];
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) sum[i] = product[i] = 0.0f;
#pragma unroll
            for (uint32_t c = 0; c < C; ++c) {
                const uint32_t group = group_of<T, S>(a, s, c);
                mean[c] = group < groups ? a.given_mean[share + group] : 0.0f;
            }
            wd_copies_wait_all();
            for (uint32_t j = 0; j < s.slots; ++j) {
                run<T> rx, rdy;
                rx.load(reinterpret_cast<const T *>(kept + j * blockDim.x + threadIdx.x));
                rdy.load(reinterpret_cast<const T *>(kept_dy + j * blockDim.x + threadIdx.x));
#pragma unroll
                for (int i = 0; i < RUN<T>; ++i) {
                    const float d = wd_widen(rdy.get(i));
                    const float own = wd_widen(rx.get(i)) - mean_of<C>(mean, split, i);
                    sum[i] += d;
                    product[i] = fmaf(d, own, product[i]);
                }
            }
            sum_columns<T>(a, sum, product, table, found);
        }
        if (threadIdx.x == 0) expect(a, e);
        for (uint32_t g = threadIdx.x; g < groups; g += blockDim.x) {
            const float inv_std = a.given_inv_std[share + g];
            pair all = {0.0, 0.0};
            for (uint32_t c = g * a.each; c < (g + 1) * a.each; ++c) {
                const float scale = param_at(a.scale, channel + c);
                norm_kept_sums one = found[c];
                one.dy_xhat *= inv_std;
                add(all, {scale * one.dy, scale * one.dy_xhat});
                if (a.sums) {
                    a.sums[(sample * a.slices + s.rank) * a.channels + channel + c] = one;
                }
            }
            if (a.cluster == 1) {
                *place_in(a, e, g) = all;
                continue;
            }
            for (uint32_t to = 0; to < a.cluster; ++to) send(a, e, s.rank, g, to, all);
        }
        for (uint32_t g = threadIdx.x; g < groups; g += blockDim.x) {
            wait_for_all(a, e);
            const pair all = received(a, e, g);
            const float inv_std = a.given_inv_std[share + g];
            of_group[g] = {a.given_mean[share + g], inv_std,
                           -inv_std * (float)(all.first * a.inverse),
                           -inv_std * inv_std * (float)(all.second * a.inverse)};
        }
        __syncthreads();
        float mean[C], base[C], slope[C], factor[RUN<T>];
#pragma unroll
        for (uint32_t c = 0; c < C; ++c) {
            const uint32_t group = group_of<T, S>(a, s, c);
            slant n = {0.0f, 0.0f, 0.0f, 0.0f};
            if (group < groups) n = of_group[group];
            mean[c] = n.mean, base[c] = n.base, slope[c] = n.slope;
        }
#pragma unroll
        for (uint32_t i = 0; i < RUN<T>; ++i) {
            factor[i] = 0.0f;
            if (i >= s.left || s.slots == 0) continue;
            const uint32_t group = group_of<T, S>(a, s, cell_of<T, S>(split, i));
            factor[i] = of_group[group].inv_std * param_at(a.scale, channel + s.place * RUN<T> + i);
        }
        T *dx = static_cast<T *>(a.y) + start;
        const bool more = panel + a.clusters < a.panels;
        if (more) start = column_start<T>(a, s, panel + a.clusters);
        const T *x = static_cast<const T *>(a.x) + start;
        const T *dy = static_cast<const T *>(a.dy) + start;
        for (uint32_t j = 0; j < s.slots; ++j) {
            uint4 *at = kept + j * blockDim.x + threadIdx.x;
            uint4 *at_dy = kept_dy + j * blockDim.x + threadIdx.x;
            run<T> rx, rdy;
            float value[RUN<T>];
            rx.load(reinterpret_cast<const T *>(at));
            rdy.load(reinterpret_cast<const T *>(at_dy));
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                const float d = wd_widen(rx.get(i)) - mean_of<C>(mean, split, i);
                value[i] = fmaf(factor[i], wd_widen(rdy.get(i)),
                                fmaf(mean_of<C>(slope, split, i), d, mean_of<C>(base, split, i)));
            }
            put(dx + j * step, value, a.runs != 0, s.left, a.streaming);
            if (!more) continue;
            fetch(at, x + j * step, a.runs != 0, s.left);
            fetch(at_dy, dy + j * step, a.runs != 0, s.left);
        }
    }
}

} // namespace

#endif
