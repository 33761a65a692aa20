// SPDX-License-Identifier: Apache-2.0
//
// norm_kept by planes: what has a mean is one stretch of memory, whatever its channels are; where one
// of these ends matters to the parameters alone, which lie in a table.
#ifndef WD_OPS_NORM_KEPT_PLANES_CUH
#define WD_OPS_NORM_KEPT_PLANES_CUH

#include "ops/norm/norm_kept_device.cuh"

namespace {

// What a block has of a panel, whose first run may begin before it, with elements that are not its own.
struct plane_seat {
    uint32_t first;  // run of the panel
    uint32_t count;  // runs of the block's
    uint32_t length; // elements of the panel
    uint32_t skip;   // elements of its first run that are not its own
    uint32_t batch;  // slots
};

template <class T>
__device__ __forceinline__ plane_seat plane_seat_of(const norm_kept_args &a, int64_t panel)
{
    plane_seat s;
    const int64_t begin = panel * a.length;
    const int64_t left = a.total - begin;
    s.length = left < a.length ? (uint32_t)left : a.length;
    s.skip = a.runs ? (uint32_t)(begin + a.shift) % RUN<T> : 0;
    s.first = blockIdx.x % a.blocks * a.part;
    const uint32_t all = (s.length + s.skip + RUN<T> - 1) / RUN<T>;
    s.count = s.first < all ? min(a.part, all - s.first) : 0;
    s.batch = (a.slots + BATCHES - 1) / BATCHES;
    return s;
}

// Runs of a thread in a batch.
#define FOR_RUNS_OF_BATCH(b, v)                                                                    \
    for (uint32_t v = (b)*s.batch * blockDim.x + threadIdx.x,                                      \
                  v##_end = min(((b) + 1) * s.batch * blockDim.x, s.count);                        \
         v < v##_end; v += blockDim.x)

// Where a run lies: `at` counts elements of the panel, of which it has those from `begin` to `end`.
struct plane_run {
    int at;
    int begin;
    int end;
    bool whole;
};

// EVEN: all of them are whole.
template <class T, bool EVEN>
__device__ __forceinline__ plane_run plane_run_of(const plane_seat &s, uint32_t v)
{
    plane_run r;
    r.at = (int)((s.first + v) * RUN<T>)-(EVEN ? 0 : (int)s.skip);
    r.begin = EVEN ? 0 : max(-r.at, 0);
    r.end = EVEN ? RUN<T> : min((int)s.length - r.at, RUN<T>);
    r.whole = EVEN || (r.at >= 0 && r.at + RUN<T> <= (int)s.length);
    return r;
}

template <class T, bool EVEN>
__device__ __forceinline__ void fetch_run(const norm_kept_args &a, const plane_seat &s,
                                          const T *panel, uint4 *kept, uint32_t v)
{
    const plane_run r = plane_run_of<T, EVEN>(s, v);
    fetch(kept + v, panel + r.at, EVEN || (a.runs && r.whole), r.begin, r.end);
}

// By way of the run's own words, where it is not whole.
template <class T>
__device__ __forceinline__ void put_planes(T *to, const run<T> &r, bool whole, const plane_run &at,
                                           uint4 *own, bool streaming)
{
    if (whole) {
        if (streaming) r.store_streaming(to);
        else r.store(to);
        return;
    }
    T *from = reinterpret_cast<T *>(own);
    r.store(from);
#pragma unroll 1
    for (int i = at.begin; i < at.end; ++i) to[i] = from[i];
}

template <class T, bool EVEN>
__device__ __forceinline__ void fetch_panel(const norm_kept_args &a, const plane_seat &s,
                                            const T *panel, uint4 *kept)
{
    for (uint32_t b = 0; b < BATCHES; ++b) {
        FOR_RUNS_OF_BATCH(b, v) fetch_run<T, EVEN>(a, s, panel, kept, v);
        wd_copies_end();
    }
}

// The channels that a block has something of, counted from the panel's first.
struct plane_channels {
    uint32_t first;
    uint32_t count;
};

template <class T>
__device__ __forceinline__ plane_channels plane_channels_of(const norm_kept_args &a,
                                                            const plane_seat &s)
{
    if (s.count == 0) return {0, 0};
    const int begin = plane_run_of<T, false>(s, 0).at;
    const plane_run last = plane_run_of<T, false>(s, s.count - 1);
    plane_channels c;
    c.first = wd_fastdiv_quotient((uint32_t)max(begin, 0), a.by_plane);
    c.count = wd_fastdiv_quotient((uint32_t)(last.at + last.end - 1), a.by_plane) + 1 - c.first;
    return c;
}

// All threads get what those of the block have.
__device__ __forceinline__ pair sum_of_block(pair mine, pair *of_warp)
{
    mine = sum_of_lanes(mine, WARP);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = mine;
    __syncthreads();
    pair all = {0.0, 0.0};
    if (threadIdx.x % WARPS < blockDim.x / WARP) all = of_warp[threadIdx.x % WARPS];
    return sum_of_lanes(all, WARPS);
}

// All threads get what those of all blocks of the panel have.
__device__ __forceinline__ pair sum_of_panel(const norm_kept_args &a, const exchange &e,
                                             const pair &mine, pair *of_warp)
{
    if (threadIdx.x == 0) expect(a, e);
    const pair all = sum_of_block(mine, of_warp);
    if (a.blocks == 1) return all;
    if (threadIdx.x == 0) publish(a, e, 0, all);
    wait_for_all(a, e);
    return received(a, e, 0, WARP);
}

// The same of statistics: the first warp does what follows from sums of warps, for all; where a cluster
// has planes of whole runs every warp does, which is faster there.
template <bool EVEN>
__device__ __forceinline__ numbers numbers_of_panel(const norm_kept_args &a, const exchange &e,
                                                    pair mine, float origin, pair *of_warp)
{
    __shared__ numbers found;
    const uint32_t lane = threadIdx.x % WARP;
    if (EVEN && a.blocks > 1 && !a.counters) {
        return numbers_of(a.inverse, a.epsilon, sum_of_panel(a, e, mine, of_warp), origin);
    }
    if (threadIdx.x == 0) expect(a, e);
    mine = sum_of_lanes(mine, WARP);
    if (lane == 0) of_warp[threadIdx.x / WARP] = mine;
    __syncthreads();
    if (threadIdx.x < WARP) {
        mine = {0.0, 0.0};
        if (lane < blockDim.x / WARP) mine = of_warp[lane];
        mine = sum_of_lanes(mine, WARPS);
        if (a.blocks > 1) {
            if (lane == 0) {
                publish(a, e, 0, mine);
                if (a.counters) {
                    uint32_t *counter = a.counters + blockIdx.x / a.blocks * WD_COUNTER_WORDS;
                    wd_await(counter, wd_come(counter, a.blocks, e.rank == 0));
                }
            }
            __syncwarp();
            if (!a.counters) wait_for_all(a, e);
            mine = received(a, e, 0, WARP);
        }
        const numbers n = numbers_of(a.inverse, a.epsilon, mine, origin);
        if (lane == 0) found = n;
    }
    __syncthreads();
    return found;
}

// A channel's formula: y = factor * (x - mean) + base, or dx = factor * dy + slope * (x - mean) + base.
struct __align__(16) line
{
    float mean;
    float factor;
    float base;
    float slope; // backward
};

__device__ __forceinline__ line line_of(const norm_kept_args &a, const numbers &n, uint32_t scale,
                                        uint32_t bias)
{
    const float by = param_of(a.scale, scale);
    return {n.mean, by * n.inv_std, fmaf(by, n.rest, param_of(a.bias, bias)), 0.0f};
}

// Of two lines the one that an element has, where the second begins at `end`; both are there.
template <class T, bool EVEN, class F>
__device__ __forceinline__ void by_lines(const norm_kept_args &a, const plane_run &r,
                                         const line *table, uint32_t first, const F &each)
{
    const uint32_t channel =
        wd_fastdiv_quotient((uint32_t)(EVEN ? r.at : max(r.at, 0)), a.by_plane);
    const line *of = table + (channel - first);
    const line here = of[0];
    if constexpr (EVEN) {
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) each(i, here);
        return;
    }
    const int end = (int)((channel + 1) * a.plane) - r.at;
    if (end >= RUN<T>) {
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) each(i, here);
    } else {
        const line next = of[1];
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) each(i, i < end ? here : next);
    }
}

// Where a run may be of more than two channels: f(element, its line), of those that are its own.
template <class F>
__device__ __forceinline__ void by_elements(const norm_kept_args &a, const plane_run &r,
                                            const line *table, uint32_t first, const F &f)
{
#pragma unroll 1
    for (int i = r.begin; i < r.end; ++i) {
        f(i, table[wd_fastdiv_quotient((uint32_t)(r.at + i), a.by_plane) - first]);
    }
}

template <class T>
__device__ __forceinline__ void leave(const norm_kept_args &a, int64_t share, const numbers &n)
{
    if (a.mean) a.mean[share] = n.mean;
    if (a.inv_std) a.inv_std[share] = n.inv_std;
}

// Elements of a lane that has a share's: in so few registers it keeps all of a small share.
template <class T> constexpr int SLOTS = NORM_KEPT_BESIDE_RUNS *RUN<T> / (int)WARP;
constexpr int SLOTS_AT_ONCE = 4;

// f(which of its elements, where it is in the share) of those that the lane has; the groups of four
// of which no lane has any are left out.
template <class T, class F>
__device__ __forceinline__ void for_slots(uint32_t lanes, uint32_t size, const F &f)
{
    const uint32_t lane = threadIdx.x % lanes;
#pragma unroll
    for (int first = 0; first < SLOTS<T>; first += SLOTS_AT_ONCE) {
        if (first * lanes >= size) break;
#pragma unroll
        for (int k = first; k < first + SLOTS_AT_ONCE; ++k) f(k, lane + k * lanes);
    }
}

__device__ __forceinline__ float sum_of_lanes(float v, uint32_t width)
{
    for (uint32_t lanes = 1; lanes < width; lanes *= 2) {
        v += __shfl_xor_sync(WHOLE_WARP, v, (int)lanes);
    }
    return v;
}

// Shares of a block, lanes side by side for each, which keep it in registers: outputs come into the
// places of the elements. Of so few, and around their mean, single precision loses nothing.
template <class T>
__device__ __forceinline__ void outputs_of_shares(const norm_kept_args &a, const plane_seat &s,
                                                  int64_t panel, T *kept, line *table)
{
    const uint32_t size = a.each * a.plane;
    const float inverse = (float)a.inverse;
    const int64_t first = panel * a.beside;
    for (uint32_t u = threadIdx.x / a.lanes; u - threadIdx.x % WARP / a.lanes < a.beside;
         u += blockDim.x / a.lanes) {
        const bool some = u < a.beside && u * size < s.length;
        const uint32_t own = some ? size : 0;
        const uint32_t group = (uint32_t)((first + u) % a.groups);
        T *x = kept + s.skip + (some ? u : 0) * size;
        const float origin = some ? wd_widen(x[0]) : 0.0f;
        float scale = 0.0f, bias = 0.0f;
        if (some && a.each == 1) scale = param_at(a.scale, group), bias = param_at(a.bias, group);
        float v[SLOTS<T>], sum = 0.0f, squares = 0.0f;
        for_slots<T>(a.lanes, size, [&](int k, uint32_t i) {
            v[k] = i < own ? wd_widen(x[i]) : origin;
            sum += v[k] - origin;
        });
        const float mean = fmaf(sum_of_lanes(sum, a.lanes), inverse, origin);
        sum = 0.0f;
        for_slots<T>(a.lanes, size, [&](int k, uint32_t i) {
            const float d = i < size ? v[k] - mean : 0.0f;
            sum += d;
            squares = fmaf(d, d, squares);
        });
        // what rounding cut off the mean
        const float rest = sum_of_lanes(sum, a.lanes) * inverse;
        squares = sum_of_lanes(squares, a.lanes);
        float variance = fmaf(squares, inverse, -rest * rest);
        if (variance < 0.0f) variance = 0.0f; // a NaN stays one
        const float inv_std = 1.0f / sqrtf((float)(variance + a.epsilon));
        if (a.each > 1) {
            for (uint32_t c = threadIdx.x % a.lanes; some && c < a.each; c += a.lanes) {
                const float factor = inv_std * param_at(a.scale, group * a.each + c);
                const float base = fmaf(-rest, factor, param_at(a.bias, group * a.each + c));
                table[u * a.each + c] = {mean, factor, base, 0.0f};
            }
        }
        __syncwarp(); // all have seen the share's first element, and the table is there
        if (!some) continue;
        if (threadIdx.x % a.lanes == 0) {
            if (a.mean) a.mean[first + u] = mean + rest;
            if (a.inv_std) a.inv_std[first + u] = inv_std;
        }
        if (a.each == 1) {
            const float factor = scale * inv_std, base = fmaf(-rest, factor, bias);
            for_slots<T>(a.lanes, size, [&](int k, uint32_t i) {
                if (i < size) wd_narrow(x[i], fmaf(factor, v[k] - mean, base));
            });
            continue;
        }
        const line *lines = table + u * a.each;
        for_slots<T>(a.lanes, size, [&](int k, uint32_t i) {
            if (i >= size) return;
            const line l = lines[wd_fastdiv_quotient(i, a.by_plane)];
            wd_narrow(x[i], fmaf(l.factor, v[k] - mean, l.base));
        });
    }
}

// The one share of the block, or of all blocks of the panel.
template <class T, bool EVEN>
__device__ __forceinline__ void lines_of_share(const norm_kept_args &a, const plane_seat &s,
                                               const plane_channels &channels, const exchange &e,
                                               int64_t panel, float origin, const uint4 *kept,
                                               line *table, pair *of_warp)
{
    shifted mine;
    uint32_t count = 0;
    // of the thread's first channel, under way while elements are
    const uint32_t first = (uint32_t)(panel % a.groups) * a.each + channels.first;
    const bool has = threadIdx.x < channels.count;
    uint32_t scale = has ? param_bits(a.scale, first + threadIdx.x) : 0;
    uint32_t bias = has ? param_bits(a.bias, first + threadIdx.x) : 0;
    mine.begin(origin);
#pragma unroll 1
    for (int b = 0; b < BATCHES; ++b) {
        wait_for_batch(b);
        FOR_RUNS_OF_BATCH(b, v)
        {
            const plane_run at = plane_run_of<T, EVEN>(s, v);
            run<T> r;
            float x[RUN<T>];
            r.load(reinterpret_cast<const T *>(kept + v));
            widen(x, r);
            if (at.whole) {
                if (count == 0) mine.begin(x[0]);
                count += RUN<T>;
#pragma unroll
                for (int i = 0; i < RUN<T>; ++i) mine.add(x[i]);
            } else {
                count += at.end - at.begin;
                const T *part = reinterpret_cast<const T *>(kept + v);
#pragma unroll 1
                for (int i = at.begin; i < at.end; ++i) mine.add(wd_widen(part[i]));
            }
        }
    }
    const numbers n = numbers_of_panel<EVEN>(a, e, mine.from(origin, count), origin, of_warp);
    for (uint32_t c = threadIdx.x; c < channels.count; c += blockDim.x) {
        if (c >= blockDim.x) {
            scale = param_bits(a.scale, first + c);
            bias = param_bits(a.bias, first + c);
        }
        table[c] = line_of(a, n, scale, bias);
    }
    if (e.rank == 0 && threadIdx.x == 0) leave<T>(a, panel, n);
}

// Outputs of whole runs, in whose places those of the next panel come, `ahead` elements on; 0: there is
// none.
template <class T>
__device__ __forceinline__ void put_even(const norm_kept_args &a, const plane_seat &s,
                                         int64_t panel, int64_t ahead, uint4 *kept,
                                         const line *table, uint32_t first)
{
    const uint32_t apart = blockDim.x * RUN<T>;
    uint32_t v = threadIdx.x;
    uint32_t at = (s.first + v) * RUN<T>;
    T *to = static_cast<T *>(a.y) + panel * a.length + at;
    const T *from = static_cast<const T *>(a.x) + panel * a.length + at + ahead;
    uint4 *own = kept + v;
#pragma unroll 1
    for (uint32_t b = 0; b < BATCHES; ++b) {
        const uint32_t end = min((b + 1) * s.batch * blockDim.x, s.count);
        for (; v < end; v += blockDim.x) {
            run<T> r;
            float value[RUN<T>];
            r.load(reinterpret_cast<const T *>(own));
            const line l = table[wd_fastdiv_quotient(at, a.by_plane) - first];
            widen(value, r);
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) value[i] = fmaf(l.factor, value[i] - l.mean, l.base);
            narrow(r, value);
            if (a.streaming) r.store_streaming(to);
            else r.store(to);
            if (ahead > 0) wd_copy_async<16, false>(own, from);
            own += blockDim.x, at += apart, to += apart, from += apart;
        }
        wd_copies_end();
    }
}

template <class T, bool EVEN, bool BESIDE>
__device__ __forceinline__ void planes_forward(const norm_kept_args &a)
{
    __shared__ pair of_warp[WARPS];
    __shared__ pair of_block[2 * CLUSTER];
    __shared__ uint64_t here[2];
    uint4 *kept = wd_dynamic_shared<uint4>();
    line *table = reinterpret_cast<line *>(kept + a.space);
    exchange e = exchange_of(a, of_block, here, 1);
    int64_t panel = blockIdx.x / a.blocks;
    plane_seat s = plane_seat_of<T>(a, panel);
    const T *x = static_cast<const T *>(a.x) + panel * a.length;
    begin_exchange(a, e);
    wd_wait_for_previous();
    fetch_panel<T, EVEN>(a, s, x, kept);
    float origin = wd_widen(x[0]);
    for (; panel < a.panels; panel += a.teams, e.turn += 1) {
        const plane_channels channels = plane_channels_of<T>(a, s);
        T *y = static_cast<T *>(a.y) + panel * a.length;
        if constexpr (BESIDE) {
            wd_copies_wait_all();
            __syncthreads();
            outputs_of_shares(a, s, panel, reinterpret_cast<T *>(kept), table);
        } else {
            lines_of_share<T, EVEN>(a, s, channels, e, panel, origin, kept, table, of_warp);
        }
        plane_seat next = s;
        next.count = 0;
        x += (int64_t)a.teams * a.length;
        if (panel + a.teams < a.panels) {
            next = plane_seat_of<T>(a, panel + a.teams);
            origin = wd_widen(x[0]);
        }
        __syncthreads();
        if constexpr (EVEN) {
            put_even<T>(a, s, panel, next.count > 0 ? (int64_t)a.teams * a.length : 0, kept, table,
                        channels.first);
        } else {
            for (uint32_t b = 0; b < BATCHES; ++b) {
                const uint32_t end = min((b + 1) * s.batch * blockDim.x, max(s.count, next.count));
                for (uint32_t v = b * s.batch * blockDim.x + threadIdx.x; v < end;
                     v += blockDim.x) {
                    if (v < s.count) {
                        const plane_run at = plane_run_of<T, EVEN>(s, v);
                        run<T> r;
                        r.load(reinterpret_cast<const T *>(kept + v));
                        if (!EVEN && !BESIDE && a.plane < RUN<T>) {
                            T *own = reinterpret_cast<T *>(kept + v);
                            by_elements(a, at, table, channels.first, [&](int i, const line &l) {
                                wd_narrow(own[i],
                                          fmaf(l.factor, wd_widen(own[i]) - l.mean, l.base));
                            });
                            r.load(own);
                        } else if constexpr (!BESIDE) {
                            float value[RUN<T>];
                            widen(value, r);
                            by_lines<T, EVEN>(
                                a, at, table, channels.first, [&](int i, const line &l) {
                                    value[i] = fmaf(l.factor, value[i] - l.mean, l.base);
                                });
                            narrow(r, value);
                        }
                        put_planes(y + at.at, r, a.runs && at.whole, at, kept + v, a.streaming);
                    }
                    if (v < next.count) fetch_run<T, EVEN>(a, next, x, kept, v);
                }
                wd_copies_end();
            }
        }
        s = next;
    }
}

} // namespace

#endif
