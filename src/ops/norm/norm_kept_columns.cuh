// SPDX-License-Identifier: Apache-2.0
//
// norm_kept by columns: channels lie last. A thread has a run of columns and some of the rows; what it
// found of each column is added up over the rows of the block, over the columns of a group, and over
// the blocks of the panel.
#ifndef WD_OPS_NORM_KEPT_COLUMNS_CUH
#define WD_OPS_NORM_KEPT_COLUMNS_CUH

#include "ops/norm/norm_kept_again.cuh"

namespace {

struct column_seat {
    uint32_t row;   // of the block's rows at a time
    uint32_t place; // run of the row
    uint32_t all;   // rows of the block
    uint32_t slots; // of the thread
    uint32_t kept;  // of these that stay; the others are read again
    int left;       // columns of the run: fewer than it has at the end of a row
    uint32_t first; // row of the panel
    uint32_t batch;
};

template <class T> __device__ __forceinline__ column_seat column_seat_of(const norm_kept_args &a)
{
    column_seat s;
    const uint32_t begin = min((blockIdx.x % a.blocks) * a.part, a.plane);
    s.all = min(a.part, a.plane - begin);
    s.row = threadIdx.x / a.across;
    s.place = threadIdx.x - s.row * a.across;
    s.first = begin + s.row;
    s.slots = s.row < a.rows && s.row < s.all ? (s.all - s.row - 1) / a.rows + 1 : 0;
    s.kept = min(s.slots, a.slots);
    s.left = (int)min(a.tile - s.place * RUN<T>, (uint32_t)RUN<T>);
    s.batch = (a.slots + BATCHES - 1) / BATCHES;
    return s;
}

// The thread's first run of a panel, less the row.
template <class T>
__device__ __forceinline__ int64_t column_base(const norm_kept_args &a, const column_seat &s,
                                               int64_t panel)
{
    const int64_t sample = panel / a.tiles;
    const uint32_t tile = (uint32_t)(panel - sample * a.tiles);
    return sample * a.plane * a.channels + tile * a.tile + s.place * RUN<T>;
}

template <class T>
__device__ __forceinline__ void fetch_columns(const norm_kept_args &a, const column_seat &s,
                                              const T *from, uint4 *kept)
{
    const int64_t step = (int64_t)a.rows * a.channels;
    for (uint32_t b = 0; b < BATCHES; ++b) {
        const uint32_t end = min((b + 1) * s.batch, s.kept);
        for (uint32_t j = b * s.batch; j < end; ++j) {
            fetch(kept + j * blockDim.x + threadIdx.x, from + j * step, a.runs != 0, 0, s.left);
        }
        wd_copies_end();
    }
}

// Rows whose median is what a column's differences are from: no element far out makes them so large
// that single precision has no digits left for the others.
constexpr uint32_t PIVOTS = 3;

// What lies behind the runs in shared memory.
struct column_areas {
    float4 *table;  // by thread
    uint4 *pivots;  // forward: three rows of runs
    float2 *found;  // by column
    float4 *groups; // by group
    pair *of_block;
};

template <class T>
__device__ __forceinline__ column_areas column_areas_of(const norm_kept_args &a, uint4 *behind)
{
    column_areas s;
    s.table = reinterpret_cast<float4 *>(behind);
    s.groups = s.table + blockDim.x;
    s.of_block = reinterpret_cast<pair *>(s.groups + a.tile / a.each);
    s.pivots = reinterpret_cast<uint4 *>(
        a.counters ? s.of_block : s.of_block + 2 * (a.tile / a.each) * a.blocks);
    s.found = reinterpret_cast<float2 *>(s.pivots + PIVOTS * a.across);
    return s;
}

// Rows of a run that a lane adds up, at least.
constexpr uint32_t ADDED_LEAST = 2;

// Two sums of every column over the rows of the block, two columns at a time.
template <class T>
__device__ __forceinline__ void sum_columns(const norm_kept_args &a, const float (&one)[RUN<T>],
                                            const float (&other)[RUN<T>], const column_areas &area)
{
    uint32_t adders = WARP;
    while (adders > 1 && (a.across * adders > blockDim.x || ADDED_LEAST * adders > a.rows)) {
        adders /= 2;
    }
    const uint32_t items = a.across * adders;
#pragma unroll
    for (int c = 0; c < RUN<T>; c += 2) {
        if (c > 0) __syncthreads();
        area.table[threadIdx.x] = make_float4(one[c], other[c], one[c + 1], other[c + 1]);
        __syncthreads();
        for (uint32_t item = threadIdx.x; item - threadIdx.x % WARP < items; item += blockDim.x) {
            const uint32_t place = item / adders;
            float4 all = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (item < items) {
                const float4 *from = area.table + place;
#pragma unroll 4
                for (uint32_t row = item % adders; row < a.rows; row += adders) {
                    const float4 some = from[row * a.across];
                    all.x += some.x, all.y += some.y, all.z += some.z, all.w += some.w;
                }
            }
            for (uint32_t lanes = 1; lanes < adders; lanes *= 2) {
                all.x += __shfl_xor_sync(WHOLE_WARP, all.x, (int)lanes);
                all.y += __shfl_xor_sync(WHOLE_WARP, all.y, (int)lanes);
                all.z += __shfl_xor_sync(WHOLE_WARP, all.z, (int)lanes);
                all.w += __shfl_xor_sync(WHOLE_WARP, all.w, (int)lanes);
            }
            if (item % adders == 0 && item < items) {
                area.found[place * RUN<T> + c] = make_float2(all.x, all.y);
                area.found[place * RUN<T> + c + 1] = make_float2(all.z, all.w);
            }
        }
    }
    __syncthreads();
}

// The groups of the tile by lanes side by side: f(group, whether it is one, lanes of each).
template <class F>
__device__ __forceinline__ void for_groups(uint32_t groups, uint32_t lanes, const F &f)
{
    for (uint32_t g = threadIdx.x / lanes; g - threadIdx.x % WARP / lanes < groups;
         g += blockDim.x / lanes) {
        f(min(g, groups - 1), g < groups);
    }
}

// Lanes that add up a group's columns.
__device__ __forceinline__ uint32_t lanes_of_columns(const norm_kept_args &a)
{
    uint32_t lanes = 1;
    while (lanes < WARP && 2 * lanes < a.each) lanes *= 2;
    return lanes;
}

// ---- Forward ----

// Into shared memory, by the threads of the block's first row, with the first batch of a panel.
template <class T>
__device__ __forceinline__ void fetch_pivots(const norm_kept_args &a, const column_seat &s,
                                             const T *panel, uint4 *pivots)
{
    if (s.row > 0) return;
#pragma unroll
    for (uint32_t i = 0; i < PIVOTS; ++i) {
        const uint32_t row = i == 0 ? 0 : i == 1 ? a.plane / 2 : a.plane - 1;
        fetch(pivots + i * a.across + s.place, panel + (int64_t)row * a.channels, a.runs != 0, 0,
              s.left);
    }
}

__device__ __forceinline__ float median(float a, float b, float c)
{
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

template <class T>
__device__ __forceinline__ float pivot_of(const norm_kept_args &a, const uint4 *pivots, uint32_t c)
{
    const T *first = reinterpret_cast<const T *>(pivots);
    const uint32_t apart = a.across * RUN<T>;
    return median(wd_widen(first[c]), wd_widen(first[c + apart]), wd_widen(first[c + 2 * apart]));
}

template <class T> __device__ __forceinline__ void columns_forward(const norm_kept_args &a)
{
    __shared__ uint64_t here[2];
    uint4 *kept = wd_dynamic_shared<uint4>();
    const column_areas area = column_areas_of<T>(a, kept + a.space);
    const column_seat s = column_seat_of<T>(a);
    const uint32_t groups = a.tile / a.each;
    const int64_t step = (int64_t)a.rows * a.channels;
    const int64_t row = (int64_t)s.first * a.channels; // of the thread
    exchange e = exchange_of(a, area.of_block, here, groups);
    int64_t panel = blockIdx.x / a.blocks;
    const T *x = static_cast<const T *>(a.x) + column_base<T>(a, s, panel);
    begin_exchange(a, e);
    wd_wait_for_previous();
    fetch_pivots(a, s, x, area.pivots);
    fetch_columns(a, s, x + row, kept);
    for (; panel < a.panels; panel += a.teams, e.turn += 1) {
        const int64_t sample = panel / a.tiles;
        const uint32_t channel = (uint32_t)(panel - sample * a.tiles) * a.tile;
        uint32_t scale[RUN<T>], bias[RUN<T>];
        {
            float pivot[RUN<T>], sum[RUN<T>], squares[RUN<T>];
            wait_for_batch(0);
            __syncthreads();
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                pivot[i] = pivot_of<T>(a, area.pivots, s.place * RUN<T> + i);
                sum[i] = squares[i] = 0.0f;
            }
            const auto see = [&](const run<T> &r) {
                float v[RUN<T>];
                widen(v, r);
#pragma unroll
                for (int i = 0; i < RUN<T>; ++i) {
                    const float d = v[i] - pivot[i];
                    sum[i] += d;
                    squares[i] = fmaf(d, d, squares[i]);
                }
            };
            again<AGAIN, run<T>>(
                s.slots - s.kept,
                [&](uint32_t k, run<T> &r) {
                    load_run(r, x + row + (s.kept + k) * step, a.runs != 0, s.left);
                },
                [&](uint32_t, const run<T> &r) { see(r); });
#pragma unroll 1
            for (int b = 0; b < BATCHES; ++b) {
                const uint32_t end = min((b + 1) * s.batch, s.kept);
                wait_for_batch(b);
                for (uint32_t j = b * s.batch; j < end; ++j) {
                    run<T> r;
                    r.load(reinterpret_cast<const T *>(kept + j * blockDim.x + threadIdx.x));
                    see(r);
                }
            }
            // under way while blocks join
            params_at(scale, a.scale, channel + s.place * RUN<T>, s.slots > 0 ? s.left : 0);
            params_at(bias, a.bias, channel + s.place * RUN<T>, s.slots > 0 ? s.left : 0);
            sum_columns<T>(a, sum, squares, area);
        }
        if (threadIdx.x == 0) expect(a, e);
        const uint32_t lanes_columns = lanes_of_columns(a);
        for_groups(groups, lanes_columns, [&](uint32_t g, bool is) {
            pair all = {0.0, 0.0};
            for (uint32_t c = threadIdx.x % lanes_columns; c < a.each; c += lanes_columns) {
                const float2 one = area.found[g * a.each + c];
                const double pivot = pivot_of<T>(a, area.pivots, g * a.each + c);
                const double offset = s.all * pivot;
                add(all, {one.x + offset, one.y + pivot * (2.0 * one.x + offset)});
            }
            all = sum_of_lanes(all, lanes_columns);
            if (is && threadIdx.x % lanes_columns == 0) publish(a, e, g, all);
        });
        wait_for_all(a, e);
        const uint32_t lanes = lanes_of_blocks(a, groups);
        for_groups(groups, lanes, [&](uint32_t g, bool is) {
            const numbers n = numbers_of(a.inverse, a.epsilon, received(a, e, g, lanes), 0.0f);
            if (threadIdx.x % lanes > 0 || !is) return;
            area.groups[g] = make_float4(n.mean, n.inv_std, n.rest, 0.0f);
            if (e.rank > 0) return;
            const int64_t share = sample * a.groups + channel / a.each + g;
            if (a.mean) a.mean[share] = n.mean;
            if (a.inv_std) a.inv_std[share] = n.inv_std;
        });
        __syncthreads();
        float mean[RUN<T>], factor[RUN<T>], base[RUN<T>];
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            mean[i] = factor[i] = base[i] = 0.0f;
            if (i >= s.left || s.slots == 0) continue;
            const uint32_t own = s.place * RUN<T> + i;
            const float4 n = area.groups[wd_fastdiv_quotient(own, a.by_each)];
            mean[i] = n.x;
            factor[i] = param_of(a.scale, scale[i]) * n.y;
            base[i] = fmaf(param_of(a.scale, scale[i]), n.z, param_of(a.bias, bias[i]));
        }
        T *y = static_cast<T *>(a.y) + column_base<T>(a, s, panel) + row;
        const auto finish = [&](const run<T> &r, T *to) {
            float v[RUN<T>];
            widen(v, r);
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                v[i] = fmaf(factor[i], v[i] - mean[i], base[i]);
            }
            put(to, v, a.runs != 0, 0, s.left, a.streaming);
        };
        // backwards: what was read last may still be in the cache
        again<AGAIN, run<T>>(
            s.slots - s.kept,
            [&](uint32_t k, run<T> &r) {
                load_run(r, x + row + (s.slots - 1 - k) * step, a.runs != 0, s.left);
            },
            [&](uint32_t k, const run<T> &r) { finish(r, y + (s.slots - 1 - k) * step); });
        const bool more = panel + a.teams < a.panels;
        if (more) {
            x = static_cast<const T *>(a.x) + column_base<T>(a, s, panel + a.teams);
            fetch_pivots(a, s, x, area.pivots);
        }
        uint4 *at = kept + threadIdx.x;
        const T *from = x + row;
        for (uint32_t b = 0; b < BATCHES; ++b) {
            const uint32_t end = min((b + 1) * s.batch, s.kept);
            for (uint32_t j = b * s.batch; j < end; ++j) {
                run<T> r;
                r.load(reinterpret_cast<const T *>(at));
                finish(r, y);
                if (more) fetch(at, from, a.runs != 0, 0, s.left);
                at += blockDim.x, y += step, from += step;
            }
            if (more) wd_copies_end();
        }
    }
}

// ---- Backward ----

template <class T> __device__ __forceinline__ void columns_backward(const norm_kept_args &a)
{
    __shared__ uint64_t here[2];
    uint4 *kept = wd_dynamic_shared<uint4>();
    uint4 *kept_dy = kept + a.space;
    const column_areas area = column_areas_of<T>(a, kept_dy + a.space);
    const column_seat s = column_seat_of<T>(a);
    const uint32_t groups = a.tile / a.each;
    const int64_t step = (int64_t)a.rows * a.channels;
    const int64_t row = (int64_t)s.first * a.channels;
    exchange e = exchange_of(a, area.of_block, here, groups);
    int64_t panel = blockIdx.x / a.blocks;
    const T *x = static_cast<const T *>(a.x) + column_base<T>(a, s, panel) + row;
    const T *dy = static_cast<const T *>(a.dy) + column_base<T>(a, s, panel) + row;
    begin_exchange(a, e);
    wd_wait_for_previous();
    fetch_columns(a, s, x, kept);
    fetch_columns(a, s, dy, kept_dy);
    for (; panel < a.panels; panel += a.teams, e.turn += 1) {
        const int64_t sample = panel / a.tiles;
        const uint32_t channel = (uint32_t)(panel - sample * a.tiles) * a.tile;
        const int64_t share = sample * a.groups + channel / a.each;
        uint32_t scale[RUN<T>]; // under way while blocks join
        {
            float sum[RUN<T>], product[RUN<T>], mean[RUN<T>];
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                sum[i] = product[i] = mean[i] = 0.0f;
                if (i < s.left && s.slots > 0) {
                    mean[i] =
                        a.given_mean[share + wd_fastdiv_quotient(s.place * RUN<T> + i, a.by_each)];
                }
            }
            const auto see = [&](const run<T> &rx, const run<T> &rdy) {
                float vx[RUN<T>], vdy[RUN<T>];
                widen(vx, rx);
                widen(vdy, rdy);
#pragma unroll
                for (int i = 0; i < RUN<T>; ++i) {
                    sum[i] += vdy[i];
                    product[i] = fmaf(vdy[i], vx[i] - mean[i], product[i]);
                }
            };
            again<AGAIN_BACKWARD, run_pair<T>>(
                s.slots - s.kept,
                [&](uint32_t k, run_pair<T> &r) {
                    load_run(r.x, x + (s.kept + k) * step, a.runs != 0, s.left);
                    load_run(r.dy, dy + (s.kept + k) * step, a.runs != 0, s.left);
                },
                [&](uint32_t, const run_pair<T> &r) { see(r.x, r.dy); });
            wd_copies_wait_all();
            for (uint32_t j = 0; j < s.kept; ++j) {
                run<T> rx, rdy;
                rx.load(reinterpret_cast<const T *>(kept + j * blockDim.x + threadIdx.x));
                rdy.load(reinterpret_cast<const T *>(kept_dy + j * blockDim.x + threadIdx.x));
                see(rx, rdy);
            }
            params_at(scale, a.scale, channel + s.place * RUN<T>, s.slots > 0 ? s.left : 0);
            sum_columns<T>(a, sum, product, area);
        }
        if (threadIdx.x == 0) expect(a, e);
        for (uint32_t c = threadIdx.x; a.sums && c < a.tile; c += blockDim.x) {
            const float inv_std = a.given_inv_std[share + wd_fastdiv_quotient(c, a.by_each)];
            const float2 one = area.found[c];
            a.sums[(sample * a.slices + e.rank) * a.channels + channel + c] = {one.x,
                                                                               one.y * inv_std};
        }
        const uint32_t lanes_columns = lanes_of_columns(a);
        for_groups(groups, lanes_columns, [&](uint32_t g, bool is) {
            const float inv_std = a.given_inv_std[share + g];
            pair all = {0.0, 0.0};
            for (uint32_t c = threadIdx.x % lanes_columns; c < a.each; c += lanes_columns) {
                const float scale = param_at(a.scale, channel + g * a.each + c);
                const float2 one = area.found[g * a.each + c];
                add(all, {scale * one.x, scale * one.y * inv_std});
            }
            all = sum_of_lanes(all, lanes_columns);
            if (is && threadIdx.x % lanes_columns == 0) publish(a, e, g, all);
        });
        wait_for_all(a, e);
        const uint32_t lanes = lanes_of_blocks(a, groups);
        for_groups(groups, lanes, [&](uint32_t g, bool is) {
            const pair all = received(a, e, g, lanes);
            if (threadIdx.x % lanes > 0 || !is) return;
            const float inv_std = a.given_inv_std[share + g];
            area.groups[g] = make_float4(a.given_mean[share + g], inv_std,
                                         -inv_std * (float)(all.first * a.inverse),
                                         -inv_std * inv_std * (float)(all.second * a.inverse));
        });
        __syncthreads();
        float mean[RUN<T>], base[RUN<T>], slope[RUN<T>], factor[RUN<T>];
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            mean[i] = base[i] = slope[i] = factor[i] = 0.0f;
            if (i >= s.left || s.slots == 0) continue;
            const uint32_t own = s.place * RUN<T> + i;
            const float4 n = area.groups[wd_fastdiv_quotient(own, a.by_each)];
            mean[i] = n.x;
            factor[i] = n.y * param_of(a.scale, scale[i]);
            slope[i] = n.w;
            base[i] = n.z;
        }
        T *dx = static_cast<T *>(a.y) + column_base<T>(a, s, panel) + row;
        const auto finish = [&](const run<T> &rx, const run<T> &rdy, T *to) {
            float vx[RUN<T>], v[RUN<T>];
            widen(vx, rx);
            widen(v, rdy);
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                const float d = vx[i] - mean[i];
                v[i] = fmaf(factor[i], v[i], fmaf(slope[i], d, base[i]));
            }
            put(to, v, a.runs != 0, 0, s.left, a.streaming);
        };
        again<AGAIN_BACKWARD, run_pair<T>>(
            s.slots - s.kept,
            [&](uint32_t k, run_pair<T> &r) {
                const int64_t at = (s.slots - 1 - k) * step;
                load_run(r.x, x + at, a.runs != 0, s.left);
                load_run(r.dy, dy + at, a.runs != 0, s.left);
            },
            [&](uint32_t k, const run_pair<T> &r) {
                finish(r.x, r.dy, dx + (s.slots - 1 - k) * step);
            });
        const bool more = panel + a.teams < a.panels;
        if (more) {
            x = static_cast<const T *>(a.x) + column_base<T>(a, s, panel + a.teams) + row;
            dy = static_cast<const T *>(a.dy) + column_base<T>(a, s, panel + a.teams) + row;
        }
        uint4 *at = kept + threadIdx.x;
        const T *from = x, *from_dy = dy;
        for (uint32_t j = 0; j < s.kept; ++j) {
            run<T> rx, rdy;
            rx.load(reinterpret_cast<const T *>(at));
            rdy.load(reinterpret_cast<const T *>(at + a.space));
            finish(rx, rdy, dx);
            if (more) {
                fetch(at, from, a.runs != 0, 0, s.left);
                fetch(at + a.space, from_dy, a.runs != 0, 0, s.left);
            }
            at += blockDim.x, dx += step, from += step, from_dy += step;
        }
    }
}

} // namespace

#endif
