// SPDX-License-Identifier: Apache-2.0
//
// The gradients of the image, without atomics on them. A block has a tile of the image and collects the
// places whose cells touch it, from the boxes of the grid that come near, into lists by cell, then by
// place, in shared memory: so every sum has one order. The part of dy that these places are in comes to
// shared memory as windows, 16 bytes of channels at a time, and every element walks through the lists of its
// four cells. Where the window does not fit, or rows are not aligned, dy is read from device memory; where
// the places do not fit, they come in portions.
#ifndef WD_OPS_SPATIAL_SAMPLER_GATHER_CUH
#define WD_OPS_SPATIAL_SAMPLER_GATHER_CUH

#include "ops/spatial/sampler_back_tile.cuh"
#include "ops/spatial/sampler_cells.cuh"
#include "ops/spatial/sampler_window.cuh"

namespace {

// Places of an element that stay in registers.
template <class T> constexpr int gather_kept = sizeof(T) == 4 ? 6 : 5;

// NUMBERS: what the places in order are is kept; then no windows come there.
template <class T, bool NUMBERS = false> struct gatherer {
    static constexpr int U = 16 / (int)sizeof(T);
    static constexpr int WARPS = GATHER_THREADS / 32;
    const sampler_window_args &a;
    const sampler_vector_args &all;
    uint32_t n, in_batch;
    int top, left, across, cells;
    T *stages;
    uint4 *found;     // places on the way: number, cell, how far down and right
    uint32_t *listed; // their numbers by cell, in no order
    float2 *fraction; // of the places in order
    int *where;       // in the window or in the plane
    uint32_t *begin, *filled;
    uint16_t *near;
    int *scratch;
    uint32_t candidates;
    bool fits;
    window<T, GATHER_THREADS> w;

    __device__ __forceinline__ gatherer(const sampler_window_args &args, int *shared)
        : a(args), all(args.all), scratch(shared)
    {
        uint32_t b = blockIdx.x, tile = take_rest(b, a.elements.by_tile);
        left = (int)take_rest(tile, a.elements.by_column) * a.elements.width;
        top = (int)tile * a.elements.height;
        in_batch = b;
        n = all.first_image + b;
        across = a.elements.width + 1;
        cells = across * (a.elements.height + 1);
        stages = wd_dynamic_shared<T>();
        found = wd_dynamic_shared<uint4>();
        listed = reinterpret_cast<uint32_t *>(found + a.listed);
        // in 16 bytes
        const int windows = NUMBERS ? 0 : GATHER_STAGES * GATHER_ROOM,
                  before = ((NUMBERS ? 6 : 5) * a.listed + 3) / 4;
        fraction = reinterpret_cast<float2 *>(found + max(windows, before));
        where = reinterpret_cast<int *>(fraction + a.listed);
        begin = reinterpret_cast<uint32_t *>(where + a.listed);
        filled = begin + cells + 1;
        near = reinterpret_cast<uint16_t *>(filled + cells);
    }

    // The sum of what the threads before this one have; `total` of all.
    __device__ __forceinline__ uint32_t before(uint32_t own, uint32_t &total) const
    {
        const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        uint32_t upto = own, part;
#pragma unroll
        for (uint32_t step = 1; step < 32; step *= 2) {
            const uint32_t other = __shfl_up_sync(0xffffffffu, upto, step);
            if (lane >= step) upto += other;
        }
        __syncthreads();
        if (lane == 31) scratch[warp] = (int)upto;
        __syncthreads();
        part = lane < WARPS ? (uint32_t)scratch[lane] : 0;
#pragma unroll
        for (uint32_t step = 1; step < WARPS; step *= 2) {
            const uint32_t other = __shfl_up_sync(0xffffffffu, part, step);
            if (lane >= step) part += other;
        }
        total = __shfl_sync(0xffffffffu, part, WARPS - 1);
        part = __shfl_sync(0xffffffffu, part, warp > 0 ? (int)warp - 1 : 0);
        return upto - own + (warp > 0 ? part : 0);
    }

    // The boxes whose places may look into the tile, in order.
    __device__ __forceinline__ void find_boxes()
    {
        constexpr int EACH = SPATIAL_BOXES_MAX / GATHER_THREADS;
        const uint32_t boxes = all.by_boxes.divisor;
        const int bottom = top + a.elements.height, right = left + a.elements.width;
        uint32_t hits = 0, total, at;
        bool hit[EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const uint32_t number = threadIdx.x * EACH + i;
            hit[i] = false;
            if (number >= boxes) continue;
            const uint4 box =
                __ldcg(static_cast<const uint4 *>(all.boxes) + in_batch * boxes + number);
            hit[i] = (int)box.y >= top - 1 && -(int)box.x < bottom && (int)box.w >= left - 1 &&
                     -(int)box.z < right && (int)box.x != INT32_MIN;
            hits += hit[i];
        }
        at = before(hits, total);
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            if (hit[i]) near[at++] = (uint16_t)(threadIdx.x * EACH + i);
        }
        candidates = total << box_log2(all);
    }

    // The place that candidate `number` is, if it is one.
    __device__ __forceinline__ bool candidate(uint32_t number, spot &at) const
    {
        if (number >= candidates) return false;
        at.n = n;
        return box_place(all, near[number >> box_log2(all)], number, at);
    }

    // Keeps those of U candidates of each thread, from `next` on, that look into the tile.
    template <int M>
    __device__ __forceinline__ void keep(uint32_t next, uint32_t *cursor, reach &own)
    {
        sight<float> k[M];
        spot at[M];
        bool in[M];
#pragma unroll
        for (int m = 0; m < M; ++m) {
            in[m] = candidate(next + m * GATHER_THREADS + threadIdx.x, at[m]);
            if (in[m]) k[m].template look<T>(all, n, at[m].p * all.columns + at[m].q);
        }
#pragma unroll
        for (int m = 0; m < M; ++m) {
            if (!in[m] || !k[m].seen) continue;
            const int r = k[m].row - top + 1, c = k[m].column - left + 1;
            if ((uint32_t)r > (uint32_t)a.elements.height || (uint32_t)c >= (uint32_t)across) {
                continue;
            }
            const uint32_t cell = (uint32_t)(r * across + c);
            found[atomicAdd(cursor, 1u)] =
                make_uint4((uint32_t)(at[m].p * all.columns + at[m].q), cell,
                           __float_as_uint(k[m].down), __float_as_uint(k[m].right));
            atomicAdd(filled + cell, 1u);
            own.four[0] = max(own.four[0], -at[m].p);
            own.four[1] = max(own.four[1], at[m].p);
            own.four[2] = max(own.four[2], -at[m].q);
            own.four[3] = max(own.four[3], at[m].q);
        }
    }

    // Places from candidate `next` on, as many as there is room for; `next` moves on. Windows are used
    // only where that is all of them.
    __device__ __forceinline__ void collect(uint32_t &next)
    {
        constexpr uint32_t M = 2, STEP = GATHER_THREADS;
        uint32_t *cursor = reinterpret_cast<uint32_t *>(scratch) + 4 * WARPS;
        const bool from_start = next == 0;
        uint32_t most = 0;
        reach own;
        __syncthreads();
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < cells; i += GATHER_THREADS) filled[i] = 0;
        if (threadIdx.x == 0) *cursor = 0;
        __syncthreads();
#pragma unroll 1
        while (next < candidates) {
            if (most + STEP > (uint32_t)a.listed) {
                __syncthreads();
                most = *cursor;
                __syncthreads();
                if (most + STEP > (uint32_t)a.listed) break;
            }
            if (most + M * STEP <= (uint32_t)a.listed) {
                keep<(int)M>(next, cursor, own);
                next += M * STEP;
                most += M * STEP;
            } else {
                keep<1>(next, cursor, own);
                next += STEP;
                most += STEP;
            }
        }
        reach_of_block<GATHER_THREADS>(own, scratch);
        const bool any = own.four[1] != INT32_MIN;
        w.set(any ? -own.four[0] : 0, any ? own.four[1] : -1, any ? -own.four[2] : 0,
              any ? own.four[3] : 0);
        fits = from_start && next >= candidates && a.elements.wide != 0 && !all.dx.runs &&
               w.size() <= GATHER_ROOM;
        sort(*cursor);
    }

    __device__ __forceinline__ uint32_t *number() const
    {
        return listed + a.listed;
    }

    // Puts the places that were kept in the order of cells, then of places.
    __device__ __forceinline__ void sort(uint32_t count)
    {
        const int each = (cells + GATHER_THREADS - 1) / GATHER_THREADS;
        const int from = min((int)threadIdx.x * each, cells), to = min(from + each, cells);
        uint32_t total;
        const uint32_t own = places_of_cells(filled, from, to);
        const uint32_t at = before(own, total);
        begin_cells(begin, filled, from, to, at);
        if (threadIdx.x == 0) begin[cells] = total;
        __syncthreads();
        list_by_cell<GATHER_THREADS>(found, count, begin, filled, listed);
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < count; i += GATHER_THREADS) {
            const uint4 one = found[i];
            const uint32_t rank = rank_of(one, begin, listed);
            uint32_t p = one.x;
            const int q = (int)take_rest(p, all.by_line);
            if constexpr (NUMBERS) number()[rank] = one.x;
            fraction[rank] = make_float2(__uint_as_float(one.z), __uint_as_float(one.w));
            where[rank] = fits ? w.offset((int)p, q) : (int)p * all.y.row + q * all.y.column;
        }
        __syncthreads();
    }

    // The places of an element: those of the two cells above it, then of the two below.
    struct walk {
        uint32_t first, middle_above, above, below, middle_below, count;
    };
    __device__ __forceinline__ walk walk_of(int cell) const
    {
        walk l;
        l.first = begin[cell];
        l.middle_above = begin[cell + 1];
        l.above = begin[cell + 2] - l.first;
        l.below = begin[cell + across];
        l.middle_below = begin[cell + across + 1];
        l.count = l.above + begin[cell + across + 2] - l.below;
        return l;
    }
    // Where place m of them is, and how much of it the element gets.
    __device__ __forceinline__ int place_of(const walk &l, uint32_t m, float &share) const
    {
        const bool lower = m >= l.above;
        const uint32_t i = lower ? l.below + m - l.above : l.first + m;
        const float2 f = fraction[i];
        share = (lower ? 1 - f.x : f.x) *
                (i < (lower ? l.middle_below : l.middle_above) ? f.y : 1 - f.y);
        return where[i];
    }

    // Adds what one element gets of some channels: `in` are windows, or `from` the planes themselves, of
    // which `left_over` are there.
    template <bool WINDOWS>
    __device__ __forceinline__ void add(int cell, uint32_t m, const T *in, const T *from,
                                        int left_over, float *sums) const
    {
        const walk l = walk_of(cell);
#pragma unroll 1
        for (; m < l.count; ++m) {
            float share;
            const int at = place_of(l, m, share);
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if constexpr (WINDOWS) {
                    sums[u] += share * wd_widen(in[u * GATHER_ROOM + at]);
                } else if (u < left_over) {
                    sums[u] += share * wd_widen(from[u * all.y.channel + at]);
                }
            }
        }
    }

    // A run of channels of one element after the other, where channels are neighbours.
    __device__ __forceinline__ void gather_runs(const T *dy, T *dx) const
    {
        const uint32_t runs = all.by_run.divisor;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < elements() * runs; i += GATHER_THREADS) {
            uint32_t e = i;
            const int c = (int)take_rest(e, all.by_run) * U;
            float sums[U];
            int cell, to;
            if (!element(e, cell, to)) continue;
#pragma unroll
            for (int u = 0; u < U; ++u) sums[u] = 0;
            const walk l = walk_of(cell);
#pragma unroll 1
            for (uint32_t m = 0; m < l.count; m += 2) {
                float share[2];
                wd_run<T, U> run[2];
                const bool both = m + 1 < l.count;
                run[0].load(dy + c + place_of(l, m, share[0]));
                if (both) run[1].load(dy + c + place_of(l, m + 1, share[1]));
#pragma unroll
                for (int u = 0; u < U; ++u) sums[u] += share[0] * wd_widen(run[0].get(u));
                if (!both) continue;
#pragma unroll
                for (int u = 0; u < U; ++u) sums[u] += share[1] * wd_widen(run[1].get(u));
            }
            ::put<T, U>(all, dx + to + c, sums);
        }
    }

    // Element e of the tile: its upper left cell, and where it is in a plane of dx.
    __device__ __forceinline__ bool element(uint32_t e, int &cell, int &to) const
    {
        const uint32_t r = wd_fastdiv_quotient(e, a.elements.by_width);
        const int c = (int)(e - r * a.elements.by_width.divisor);
        cell = (int)r * across + c;
        to = (top + (int)r) * all.dx.row + (left + c) * all.dx.column;
        return r < (uint32_t)a.elements.height && top + (int)r < all.height && left + c < all.width;
    }
    __device__ __forceinline__ uint32_t elements() const
    {
        return (uint32_t)(a.elements.width * a.elements.height);
    }
    // Some channels of one element, that are no run: as ::put, with one question about blending for all of
    // them, for registers are scarce.
    template <bool OLD>
    __device__ __forceinline__ void put_apart(T *dx, int channels, const float *sums) const
    {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u >= channels) break;
            T *const at = dx + u * all.dx.channel;
            const float old = OLD ? wd_widen(*at) : 0.0f;
            wd_narrow(*at, blended<float>(all.scales, all.alpha32, sums[u], OLD, all.beta32, old));
        }
    }
    __device__ __forceinline__ void put(T *dx, int channels, const float *sums) const
    {
        if (all.scales && !all.blends && channels >= U) {
#pragma unroll
            for (int u = 0; u < U; ++u) {
                wd_narrow(*dx, all.alpha32 * sums[u]);
                dx += all.dx.channel;
            }
            return;
        }
        if (all.blends) put_apart<true>(dx, channels, sums);
        else put_apart<false>(dx, channels, sums);
    }

    // dy from device memory.
    __device__ __forceinline__ void gather_planes(const T *dy, T *dx, int channels) const
    {
#pragma unroll 1
        for (uint32_t e = threadIdx.x; e < elements(); e += GATHER_THREADS) {
            float sums[U];
            int cell, to;
            if (!element(e, cell, to)) continue;
#pragma unroll
            for (int u = 0; u < U; ++u) sums[u] = 0;
            add<false>(cell, 0, dy, dy, channels, sums);
            put(dx + to, channels, sums);
        }
    }
    // dy from windows. The first places of an element stay in registers; where there are fewer than of another of the
    // warp's, those left look at a zero.
    __device__ __forceinline__ void gather_windows(const T *dy, T *dx) const
    {
        constexpr int M = gather_kept<T>, E = GATHER_EACH, STAGE = U * GATHER_ROOM;
        int at[E][M], to[E], cell[E];
        float share[E][M];
        bool is[E], more[E];
        uint32_t most = 0; // places of any of the warp's elements
        __syncthreads();   // what was there has been read
        if (threadIdx.x < GATHER_STAGES * U) {
            wd_narrow(stages[(int)threadIdx.x * GATHER_ROOM], 0.0f);
        }
#pragma unroll 1
        for (int s = 0; s < 2; ++s) {
            w.template bring<U, GATHER_ROOM>(all.y, dy + s * U * all.y.channel,
                                             all.channels - s * U, stages + s * STAGE);
            wd_copies_end();
        }
#pragma unroll
        for (int e = 0; e < E; ++e) {
            is[e] = element(threadIdx.x + e * GATHER_THREADS, cell[e], to[e]);
            walk l = {0, 0, 0, 0, 0, 0};
            if (is[e]) l = walk_of(cell[e]);
            more[e] = l.count > (uint32_t)M;
            most = max(most, l.count);
#pragma unroll
            for (int m = 0; m < M; ++m) {
                at[e][m] = 0;
                share[e][m] = 0;
                if ((uint32_t)m < l.count) at[e][m] = place_of(l, m, share[e][m]);
            }
        }
        most = __reduce_max_sync(0xffffffffu, most);
        int second = 0;
#pragma unroll 1
        for (int channels = all.channels; channels > 0; channels -= U) {
            T *const in = stages + second * STAGE;
            wd_copies_wait<1>();
            __syncthreads();
#pragma unroll
            for (int e = 0; e < E; ++e) {
                float sums[U];
                if (!is[e]) continue;
#pragma unroll
                for (int u = 0; u < U; ++u) sums[u] = 0;
#pragma unroll
                for (int m = 0; m < M; ++m) {
                    if (m > 0 && most <= (uint32_t)m) break;
                    const T *from = in + at[e][m];
#pragma unroll
                    for (int u = 0; u < U; ++u) {
                        sums[u] += share[e][m] * wd_widen(from[u * GATHER_ROOM]);
                    }
                }
                if (more[e]) add<true>(cell[e], M, in, dy, channels, sums);
                put(dx + to[e], channels, sums);
            }
            __syncthreads();
            w.template bring<U, GATHER_ROOM>(all.y, dy + 2 * U * all.y.channel, channels - 2 * U,
                                             in);
            wd_copies_end();
            second ^= 1;
            dy += U * all.y.channel;
            dx += U * all.dx.channel;
        }
        wd_copies_wait_all();
    }
    // Element after element, portion after portion.
    __device__ __forceinline__ void all_portions(const T *dy, T *dx, uint32_t next)
    {
#pragma unroll 1
        for (int channels = all.channels; channels > 0; channels -= U) {
#pragma unroll 1
            for (uint32_t base = 0; base < elements(); base += GATHER_THREADS) {
                float sums[U];
                int cell, to;
                const bool mine = element(base + threadIdx.x, cell, to);
#pragma unroll
                for (int u = 0; u < U; ++u) sums[u] = 0;
#pragma unroll 1
                for (next = 0; next < candidates;) {
                    collect(next);
                    if (mine) add<false>(cell, 0, dy, dy, channels, sums);
                }
                if (mine) put(dx + to, channels, sums);
            }
            dy += U * all.y.channel;
            dx += U * all.dx.channel;
        }
    }
};

template <class T> __device__ __forceinline__ void gather_tiles(const sampler_window_args &a)
{
    __shared__ int scratch[4 * GATHER_THREADS / 32 + 1];
    gatherer<T> g(a, scratch);
    uint32_t next = 0;
    wd_wait_for_previous();
    g.find_boxes();
    g.collect(next);
    const T *dy = static_cast<const T *>(a.all.y.data) + g.n * a.all.y.image;
    T *dx = static_cast<T *>(a.all.dx.data) + g.n * a.all.dx.image;
    if (g.fits) {
        g.gather_windows(dy, dx);
    } else if (next >= g.candidates && a.all.dx.runs) {
        g.gather_runs(dy, dx);
    } else if (next >= g.candidates) {
#pragma unroll 1
        for (int channels = a.all.channels; channels > 0; channels -= g.U) {
            g.gather_planes(dy, dx, channels);
            dy += g.U * a.all.y.channel;
            dx += g.U * a.all.dx.channel;
        }
    } else {
        g.all_portions(dy, dx, next);
    }
}

} // namespace

#endif
