// SPDX-License-Identifier: Apache-2.0
//
// norm_kept by planes: what has a mean is one stretch of memory, whatever its channels are; where one
// of these ends matters to the parameters alone, which lie in a table.
#ifndef WD_OPS_NORM_KEPT_PLANES_CUH
#define WD_OPS_NORM_KEPT_PLANES_CUH

#include "ops/norm/norm_kept_device.cuh"

namespace {

// What a block has of panels. The last one may be shorter.
struct plane_seat {
    uint32_t rank;    // in the cluster
    uint32_t first;   // run of the panel
    uint32_t length;  // elements of the panel
    uint32_t count;   // runs of the block's
    uint32_t channel; // of the panel: the first that the block has something of
    uint32_t batch;   // slots
};

template <class T> __device__ __forceinline__ plane_seat plane_seat_of(const norm_kept_args &a)
{
    plane_seat s;
    s.rank = blockIdx.x % a.cluster;
    s.first = s.rank * a.part;
    s.channel = wd_fastdiv_quotient(s.first * RUN<T>, a.by_plane);
    s.batch = (a.slots + BATCHES - 1) / BATCHES;
    s.length = s.count = 0;
    return s;
}

template <class T>
__device__ __forceinline__ void sit_down(const norm_kept_args &a, plane_seat &s, int64_t panel)
{
    const int64_t left = a.total - panel * a.length;
    s.length = left < a.length ? (uint32_t)left : a.length;
    const uint32_t all = (s.length + RUN<T> - 1) / RUN<T>;
    s.count = s.first < all ? min(a.part, all - s.first) : 0;
}

// Runs of a thread in a batch.
#define FOR_RUNS_OF_BATCH(b, v)                                                                    \
    for (uint32_t v = (b)*s.batch * blockDim.x + threadIdx.x,                                      \
                  v##_end = min(((b) + 1) * s.batch * blockDim.x, s.count);                        \
         v < v##_end; v += blockDim.x)

template <class T>
__device__ __forceinline__ void fetch_run(const norm_kept_args &a, const plane_seat &s,
                                          const T *panel, uint4 *kept, uint32_t v)
{
    const uint32_t at = (s.first + v) * RUN<T>;
    const uint32_t left = s.length - at;
    fetch(kept + v, panel + at, a.runs && left >= RUN<T>, left);
}

template <class T>
__device__ __forceinline__ void fetch_panel(const norm_kept_args &a, const plane_seat &s,
                                            const T *panel, uint4 *kept)
{
    for (uint32_t b = 0; b < BATCHES; ++b) {
        FOR_RUNS_OF_BATCH(b, v) fetch_run(a, s, panel, kept, v);
        wd_copies_end();
    }
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

// All threads get what those of the cluster have.
__device__ __forceinline__ pair sum_of_cluster(const norm_kept_args &a, const plane_seat &s,
                                               const exchange &e, const pair &mine, pair *of_warp)
{
    if (threadIdx.x == 0) expect(a, e);
    const pair all = sum_of_block(mine, of_warp);
    if (a.cluster == 1) return all;
    if (threadIdx.x < a.cluster) send(a, e, s.rank, 0, threadIdx.x, all);
    wait_for_all(a, e);
    return received(a, e, 0);
}

// A channel's formula: y = factor * (x - mean) + base, or dx = factor * dy + slope * (x - mean) + base.
struct __align__(16) line
{
    float mean;
    float factor;
    float base;
    float slope; // backward
};

__device__ __forceinline__ line line_of(const norm_kept_args &a, const numbers &n, uint32_t channel)
{
    const float scale = param_at(a.scale, channel);
    return {n.mean, scale * n.inv_std, fmaf(scale, n.rest, param_at(a.bias, channel)), 0.0f};
}

// The lines of a run, an element each; `at` is the run's first element, counted from the panel's first.
template <class T, bool EVEN>
__device__ __forceinline__ void lines_of(const norm_kept_args &a, const plane_seat &s,
                                         const line *table, uint32_t at, line (&l)[RUN<T>])
{
    const uint32_t channel = wd_fastdiv_quotient(at, a.by_plane);
    uint32_t end = (channel + 1) * a.plane - at;
    const line *of = table + (channel - s.channel);
    if constexpr (EVEN) {
        const line here = of[0];
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) l[i] = here;
    } else if (a.plane >= RUN<T>) {
        const line here = of[0], next = of[1];
#pragma unroll
        for (uint32_t i = 0; i < RUN<T>; ++i) l[i] = i < end ? here : next;
    } else {
#pragma unroll
        for (uint32_t i = 0; i < RUN<T>; ++i) {
            if (i == end) of += 1, end += a.plane;
            l[i] = of[0];
        }
    }
}

template <class T>
__device__ __forceinline__ void leave(const norm_kept_args &a, int64_t share, const numbers &n)
{
    if (a.mean) a.mean[share] = n.mean;
    if (a.inv_std) a.inv_std[share] = n.inv_std;
}

// Several shares of a block, lanes side by side for each: their lines.
template <class T>
__device__ __forceinline__ void lines_of_shares(const norm_kept_args &a, const plane_seat &s,
                                                int64_t panel, const T *kept, line *table)
{
    const uint32_t size = a.each * a.plane;
    const uint32_t lane = threadIdx.x % a.lanes;
    const int64_t first = panel * a.beside;
    for (uint32_t u = threadIdx.x / a.lanes; u - threadIdx.x % WARP / a.lanes < a.beside;
         u += blockDim.x / a.lanes) {
        const bool some = u < a.beside && u * size < s.length;
        const T *x = kept + u * size;
        shifted mine;
        uint32_t count = 0;
        float origin = 0.0f;
        mine.begin(0.0f);
        if (some) {
            origin = wd_widen(x[0]);
            if (lane < size) mine.begin(wd_widen(x[lane]));
            for (uint32_t i = lane; i < size; i += a.lanes, ++count) mine.add(wd_widen(x[i]));
        }
        const pair all = sum_of_lanes(mine.from(origin, count), a.lanes);
        const numbers n = numbers_of(a, all, origin);
        if (!some) continue;
        if (lane == 0) leave<T>(a, first + u, n);
        const uint32_t channel = (uint32_t)((first + u) % a.groups) * a.each;
        for (uint32_t c = lane; c < a.each; c += a.lanes) {
            table[u * a.each + c] = line_of(a, n, channel + c);
        }
    }
}

// The block's or cluster's one share.
template <class T>
__device__ __forceinline__ numbers lines_of_share(const norm_kept_args &a, const plane_seat &s,
                                                  const exchange &e, int64_t panel, float origin,
                                                  const uint4 *kept, line *table, pair *of_warp)
{
    shifted mine;
    uint32_t count = 0;
    mine.begin(0.0f);
#pragma unroll
    for (int b = 0; b < BATCHES; ++b) {
        wait_for_batch(b);
        FOR_RUNS_OF_BATCH(b, v)
        {
            const uint32_t left = s.length - (s.first + v) * RUN<T>;
            run<T> r;
            r.load(reinterpret_cast<const T *>(kept + v));
            if (count == 0) mine.begin(wd_widen(r.get(0)));
            if (left >= RUN<T>) {
#pragma unroll
                for (int i = 0; i < RUN<T>; ++i) mine.add(wd_widen(r.get(i)));
                count += RUN<T>;
            } else {
#pragma unroll
                for (uint32_t i = 0; i < RUN<T>; ++i) {
                    if (i < left) mine.add(wd_widen(r.get(i)));
                }
                count += left;
            }
        }
    }
    const pair all = sum_of_cluster(a, s, e, mine.from(origin, count), of_warp);
    const numbers n = numbers_of(a, all, origin);
    const uint32_t first = (uint32_t)(panel % a.groups) * a.each + s.channel;
    const uint32_t end = min((s.first + s.count) * RUN<T>, s.length);
    const uint32_t channels =
        s.count > 0 ? wd_fastdiv_quotient(end - 1, a.by_plane) + 1 - s.channel : 0;
    for (uint32_t c = threadIdx.x; c < channels; c += blockDim.x) {
        table[c] = line_of(a, n, first + c);
    }
    if (s.rank == 0 && threadIdx.x == 0) leave<T>(a, panel, n);
    return n;
}

template <class T, bool EVEN, bool BESIDE>
__device__ __forceinline__ void planes_forward(const norm_kept_args &a)
{
    __shared__ pair of_warp[WARPS];
    __shared__ pair of_block[2 * CLUSTER];
    __shared__ uint64_t here[2];
    uint4 *kept = wd_dynamic_shared<uint4>();
    line *table = reinterpret_cast<line *>(kept + a.space);
    plane_seat s = plane_seat_of<T>(a);
    exchange e = {of_block, here, 1, 0};
    int64_t panel = blockIdx.x / a.cluster;
    const T *x = static_cast<const T *>(a.x) + panel * a.length;
    sit_down<T>(a, s, panel);
    begin_exchange(a, e);
    wd_wait_for_previous();
    fetch_panel(a, s, x, kept);
    float origin = wd_widen(x[0]);
    for (; panel < a.panels; panel += a.clusters, e.turn += 1) {
        numbers n = {0.0f, 0.0f, 0.0f};
        T *y = static_cast<T *>(a.y) + panel * a.length;
        if constexpr (BESIDE) {
            wd_copies_wait_all();
            __syncthreads();
            lines_of_shares(a, s, panel, reinterpret_cast<const T *>(kept), table);
        } else {
            n = lines_of_share<T>(a, s, e, panel, origin, kept, table, of_warp);
        }
        plane_seat next = s;
        next.count = 0;
        x += (int64_t)a.clusters * a.length;
        if (panel + a.clusters < a.panels) {
            sit_down<T>(a, next, panel + a.clusters); // it has no more than this one
            origin = wd_widen(x[0]);
        }
        __syncthreads();
        for (uint32_t b = 0; b < BATCHES; ++b) {
            FOR_RUNS_OF_BATCH(b, v)
            {
                const uint32_t at = (s.first + v) * RUN<T>;
                const uint32_t left = s.length - at;
                run<T> r;
                line l[RUN<T>];
                float value[RUN<T>];
                r.load(reinterpret_cast<const T *>(kept + v));
                lines_of<T, EVEN>(a, s, table, at, l);
#pragma unroll
                for (int i = 0; i < RUN<T>; ++i) {
                    const float d = wd_widen(r.get(i)) - (BESIDE ? l[i].mean : n.mean);
                    value[i] = fmaf(l[i].factor, d, l[i].base);
                }
                put(y + at, value, a.runs && left >= RUN<T>, left, a.streaming);
                if (v < next.count) fetch_run(a, next, x, kept, v);
            }
            wd_copies_end();
        }
        s = next;
    }
}

// ---- Backward ----

// Sums of channels, by lanes side by side for each piece of one, which are `pieces` of as many lanes.
template <class T, bool EVEN, bool BESIDE>
__device__ __forceinline__ void sum_channels(const norm_kept_args &a, const plane_seat &s,
                                             int64_t panel, uint32_t channels, const T *x,
                                             const T *dy, norm_kept_sums *found)
{
    constexpr uint32_t AT_ONCE = EVEN ? RUN<T> : 1;
    const uint32_t lane = threadIdx.x % a.lanes;
    const uint32_t begin = s.first * RUN<T>;
    const uint32_t end = min(begin + s.count * RUN<T>, s.length);
    const uint32_t units = channels * a.pieces;
    for (uint32_t u = threadIdx.x / a.lanes; u - threadIdx.x % WARP / a.lanes < units;
         u += blockDim.x / a.lanes) {
        const uint32_t c = s.channel + u / a.pieces;
        float sum = 0.0f, product = 0.0f, inv_std = 0.0f;
        if (u < units) {
            const int64_t share =
                BESIDE ? panel * a.beside + wd_fastdiv_quotient(c, a.by_each) : panel;
            const uint32_t to = min((c + 1) * a.plane, end) - begin;
            const uint32_t from = max(c * a.plane, begin) - begin;
            const float mean = a.given_mean[share];
            inv_std = a.given_inv_std[share];
            for (uint32_t at = from + (u % a.pieces * a.lanes + lane) * AT_ONCE; at < to;
                 at += a.pieces * a.lanes * AT_ONCE) {
                wd_run<T, AT_ONCE> rx, rdy;
                rx.load(x + at);
                rdy.load(dy + at);
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    const float d = wd_widen(rdy.get(i));
                    sum += d;
                    product = fmaf(d, wd_widen(rx.get(i)) - mean, product);
                }
            }
        }
        for (uint32_t lanes = 1; lanes < a.lanes; lanes *= 2) {
            sum += __shfl_xor_sync(WHOLE_WARP, sum, (int)lanes);
            product += __shfl_xor_sync(WHOLE_WARP, product, (int)lanes);
        }
        if (lane == 0 && u < units) found[u] = {sum, product * inv_std};
    }
}

// Of a channel of the panel, which blocks of the cluster may have some of each.
template <class T>
__device__ __forceinline__ norm_kept_sums leave_sums(const norm_kept_args &a, const plane_seat &s,
                                                     int64_t share, uint32_t c, uint32_t channel,
                                                     const norm_kept_sums *found)
{
    norm_kept_sums all = found[0];
    for (uint32_t k = 1; k < a.pieces; ++k) {
        all.dy += found[k].dy;
        all.dy_xhat += found[k].dy_xhat;
    }
    if (a.sums) {
        const uint32_t slice = s.rank - c * a.plane / (a.part * RUN<T>);
        a.sums[(share / a.groups * a.slices + slice) * a.channels + channel] = all;
    }
    return all;
}

__device__ __forceinline__ line slope_of(const norm_kept_args &a, const pair &all, float mean,
                                         float inv_std, float scale)
{
    return {mean, inv_std * scale, -inv_std * (float)(all.first * a.inverse),
            -inv_std * inv_std * (float)(all.second * a.inverse)};
}

// Lines of the shares of a block.
template <class T>
__device__ __forceinline__ void slopes_of_shares(const norm_kept_args &a, const plane_seat &s,
                                                 int64_t panel, const norm_kept_sums *found,
                                                 line *table)
{
    const uint32_t lane = threadIdx.x % a.lanes;
    for (uint32_t u = threadIdx.x / a.lanes; u - threadIdx.x % WARP / a.lanes < a.beside;
         u += blockDim.x / a.lanes) {
        const bool some = u < a.beside && u * a.each * a.plane < s.length;
        const int64_t share = panel * a.beside + u;
        const uint32_t first = (uint32_t)(share % a.groups) * a.each;
        pair all = {0.0, 0.0};
        for (uint32_t c = lane; some && c < a.each; c += a.lanes) {
            const uint32_t own = u * a.each + c;
            const norm_kept_sums one =
                leave_sums<T>(a, s, share, own, first + c, found + own * a.pieces);
            const float scale = param_at(a.scale, first + c);
            add(all, {scale * one.dy, scale * one.dy_xhat});
        }
        all = sum_of_lanes(all, a.lanes);
        for (uint32_t c = lane; some && c < a.each; c += a.lanes) {
            table[u * a.each + c] = slope_of(a, all, a.given_mean[share], a.given_inv_std[share],
                                             param_at(a.scale, first + c));
        }
    }
}

template <class T, bool EVEN, bool BESIDE>
__device__ __forceinline__ void planes_backward(const norm_kept_args &a)
{
    __shared__ pair of_warp[WARPS];
    __shared__ pair of_block[2 * CLUSTER];
    __shared__ uint64_t here[2];
    uint4 *kept = wd_dynamic_shared<uint4>();
    uint4 *kept_dy = kept + a.space;
    line *table = reinterpret_cast<line *>(kept_dy + a.space);
    norm_kept_sums *found = reinterpret_cast<norm_kept_sums *>(table + a.lines);
    plane_seat s = plane_seat_of<T>(a);
    exchange e = {of_block, here, 1, 0};
    int64_t panel = blockIdx.x / a.cluster;
    const T *x = static_cast<const T *>(a.x) + panel * a.length;
    const T *dy = static_cast<const T *>(a.dy) + panel * a.length;
    sit_down<T>(a, s, panel);
    begin_exchange(a, e);
    wd_wait_for_previous();
    fetch_panel(a, s, x, kept);
    fetch_panel(a, s, dy, kept_dy);
    for (; panel < a.panels; panel += a.clusters, e.turn += 1) {
        T *dx = static_cast<T *>(a.y) + panel * a.length;
        const uint32_t end = min((s.first + s.count) * RUN<T>, s.length);
        const uint32_t channels =
            s.count > 0 ? wd_fastdiv_quotient(end - 1, a.by_plane) + 1 - s.channel : 0;
        line all = {0.0f, 0.0f, 0.0f, 0.0f};
        wd_copies_wait_all();
        __syncthreads();
        sum_channels<T, EVEN, BESIDE>(a, s, panel, channels, reinterpret_cast<const T *>(kept),
                                      reinterpret_cast<const T *>(kept_dy), found);
        __syncthreads();
        if constexpr (BESIDE) {
            slopes_of_shares<T>(a, s, panel, found, table);
        } else {
            const uint32_t first = (uint32_t)(panel % a.groups) * a.each + s.channel;
            const float mean = a.given_mean[panel], inv_std = a.given_inv_std[panel];
            pair mine = {0.0, 0.0};
            for (uint32_t c = threadIdx.x; c < channels; c += blockDim.x) {
                const norm_kept_sums one =
                    leave_sums<T>(a, s, panel, s.channel + c, first + c, found + c * a.pieces);
                const float scale = param_at(a.scale, first + c);
                add(mine, {scale * one.dy, scale * one.dy_xhat});
                table[c] = {0.0f, scale * inv_std, 0.0f, 0.0f};
            }
            all = slope_of(a, sum_of_cluster(a, s, e, mine, of_warp), mean, inv_std, 0.0f);
        }
        plane_seat next = s;
        next.count = 0;
        x += (int64_t)a.clusters * a.length;
        dy += (int64_t)a.clusters * a.length;
        if (panel + a.clusters < a.panels) sit_down<T>(a, next, panel + a.clusters);
        __syncthreads();
        for (uint32_t v = threadIdx.x; v < s.count; v += blockDim.x) {
            const uint32_t at = (s.first + v) * RUN<T>;
            const uint32_t left = s.length - at;
            run<T> rx, rdy;
            line l[RUN<T>];
            float value[RUN<T>];
            rx.load(reinterpret_cast<const T *>(kept + v));
            rdy.load(reinterpret_cast<const T *>(kept_dy + v));
            lines_of<T, EVEN>(a, s, table, at, l);
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                const line &of = BESIDE ? l[i] : all;
                const float d = wd_widen(rx.get(i)) - of.mean;
                value[i] = fmaf(l[i].factor, wd_widen(rdy.get(i)), fmaf(of.slope, d, of.base));
            }
            put(dx + at, value, a.runs && left >= RUN<T>, left, a.streaming);
            if (v < next.count) {
                fetch_run(a, next, x, kept, v);
                fetch_run(a, next, dy, kept_dy, v);
            }
        }
        s = next;
    }
}

} // namespace

#endif
