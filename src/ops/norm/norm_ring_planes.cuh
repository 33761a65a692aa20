// SPDX-License-Identifier: Apache-2.0
//
// norm_ring by planes: channels lie before what is spatial, and are whole runs. A panel is a share,
// one stretch of memory, whatever its channels are; these matter to the parameters alone.
#ifndef WD_OPS_NORM_RING_PLANES_CUH
#define WD_OPS_NORM_RING_PLANES_CUH

#include "ops/norm/norm_ring_device.cuh"

namespace {

constexpr uint32_t RING_WARPS = NORM_RING_THREADS / WARP;

__device__ __forceinline__ ring_areas plane_areas_of(const norm_ring_args &a, uint4 *behind)
{
    ring_areas r;
    r.table = nullptr;
    r.groups = reinterpret_cast<float4 *>(behind);
    r.lines = r.groups + 1;
    r.results = reinterpret_cast<pair *>(r.lines + a.lines);
    r.found = reinterpret_cast<float2 *>(r.results + 2);
    r.over = nullptr;
    r.given = r.found + a.lines * a.pieces;
    return r;
}

// The channels that a block has something of, counted from the panel's first.
struct ring_channels {
    uint32_t first;
    uint32_t count;
    uint32_t of; // the panel's first
};

__device__ __forceinline__ ring_channels ring_channels_of(const norm_ring_args &a,
                                                          const ring_seat &s, uint32_t turn)
{
    ring_channels c = {0, 0, 0};
    c.of = (s.team + turn * a.teams) % a.cycle * a.each;
    if (s.all == 0) return c;
    c.first = wd_fastdiv_quotient(s.begin, a.by_plane);
    c.count = wd_fastdiv_quotient(s.begin + s.all - 1, a.by_plane) + 1 - c.first;
    return c;
}

// Blocks that have something of a channel of the panel.
__device__ __forceinline__ uint32_t slices_of(const norm_ring_args &a, uint32_t channel)
{
    const uint32_t first = channel * a.plane;
    return (first + a.plane - 1) / a.part - first / a.part + 1;
}

// Posts the sum over the block's threads.
__device__ __forceinline__ void post_of_block(const norm_ring_args &a, const ring_seat &s,
                                              pair mine, pair *of_warp, uint32_t turn)
{
    const uint32_t lane = threadIdx.x % WARP;
    mine = sum_of_lanes(mine, WARP);
    if (lane == 0) of_warp[threadIdx.x / WARP] = mine;
    meet_others(a);
    if (threadIdx.x >= WARP) return;
    mine = {0.0, 0.0};
    if (lane < a.threads / WARP) mine = of_warp[lane];
    mine = sum_of_lanes(mine, RING_WARPS);
    if (lane == 0) post_pair(post_at(a, s, turn, 0, s.rank), mine, turn);
}

// ---- Forward ----

template <class T>
__device__ __forceinline__ void sum_planes(const norm_ring_args &a, const ring_seat &s,
                                           const ring_areas &area, uint4 *ring, ring_seen &seen,
                                           ring_ahead &next, uint32_t turn, pair *of_warp)
{
    float pivot = 0.0f, sum[2] = {0.0f, 0.0f}, squares[2] = {0.0f, 0.0f};
    meet_others(a);
    await_seen<T, 1>(a, s, ring, next, seen, 1);
    if (s.slots > 0) {
        pivot = wd_widen(*reinterpret_cast<const T *>(ring + seen.place * a.threads + threadIdx.x));
    }
    see_runs<T, 1>(a, s, ring, seen, next, [&](uint32_t at) {
        run<T> r;
        float v[RUN<T>];
        r.load(reinterpret_cast<const T *>(ring + at));
        widen(v, r);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            const float d = v[i] - pivot;
            sum[i % 2] += d;
            squares[i % 2] = fmaf(d, d, squares[i % 2]);
        }
    });
    const shifted mine = {pivot, sum[0] + sum[1], squares[0] + squares[1]};
    post_of_block(a, s, mine.from(0.0f, s.slots * RUN<T>), of_warp, turn);
}

// f(slot, where it is in the ring, its line) of the thread's runs.
template <class T, int TENSORS, class F>
__device__ __forceinline__ void put_lines(const norm_ring_args &a, const ring_seat &s,
                                          const ring_areas &area, const ring_channels &channels,
                                          uint4 *ring, ring_seen &seen, ring_ahead &next,
                                          const F &f)
{
    const uint32_t first = s.begin + s.row;
    put_runs<T, TENSORS>(a, s, ring, seen, next, [&](uint32_t slot, uint32_t at) {
        const uint32_t channel = wd_fastdiv_quotient(first + slot * a.rows, a.by_plane);
        f(slot, at, area.lines[channel - channels.first]);
    });
}

template <class T>
__device__ __forceinline__ void put_planes(const norm_ring_args &a, const ring_seat &s,
                                           const ring_areas &area, uint4 *ring, ring_seen &seen,
                                           ring_ahead &next, uint32_t turn)
{
    const ring_channels channels = ring_channels_of(a, s, turn);
    meet_exchange(a);
    for (uint32_t c = threadIdx.x; c < channels.count; c += a.threads) {
        const uint32_t channel = channels.of + channels.first + c;
        const uint32_t scale = param_bits(a.scale, channel), bias = param_bits(a.bias, channel);
        const pair p = area.results[turn % 2];
        const float mean = (float)p.first;
        const float factor = param_of(a.scale, scale) * (float)p.second;
        const float base = fmaf((float)(mean - p.first), factor, param_of(a.bias, bias));
        area.lines[c] = make_float4(mean, factor, base, 0.0f);
    }
    meet_others(a);
    T *y = static_cast<T *>(a.y) + ring_base<T>(a, s, s.team + turn * a.teams);
    put_lines<T, 1>(a, s, area, channels, ring, seen, next,
                    [&](uint32_t slot, uint32_t at, const float4 &line) {
                        run<T> r;
                        float v[RUN<T>];
                        r.load(reinterpret_cast<const T *>(ring + at));
                        widen(v, r);
#pragma unroll
                        for (int i = 0; i < RUN<T>; ++i) v[i] = fmaf(line.y, v[i] - line.x, line.z);
                        put_run(a, y + (int64_t)slot * s.step, v, ring + at);
                    });
}

template <class T> __device__ __forceinline__ void planes_forward(const norm_ring_args &a)
{
    __shared__ pair of_warp[RING_WARPS];
    uint4 *ring = wd_dynamic_shared<uint4>();
    const ring_areas area = plane_areas_of(a, ring + a.ring * a.threads);
    walk<T, 1>(
        a, ring, area, [] {},
        [&](const ring_seat &s, ring_seen &seen, ring_ahead &next, uint32_t turn) {
            sum_planes<T>(a, s, area, ring, seen, next, turn, of_warp);
        },
        [&](const ring_seat &s, ring_seen &seen, ring_ahead &next, uint32_t turn) {
            put_planes<T>(a, s, area, ring, seen, next, turn);
        });
}

// ---- Backward ----

// Sums of channels, `lanes` side by side for each piece of one, then of the block.
template <class T>
__device__ __forceinline__ void sum_plane_gradients(const norm_ring_args &a, const ring_seat &s,
                                                    const ring_areas &area, uint4 *ring,
                                                    ring_seen &seen, ring_ahead &next,
                                                    uint32_t turn, pair *of_warp)
{
    const uint32_t size = a.ring * a.threads;
    const uint32_t begin = seen.place * a.threads;
    const uint32_t lane = threadIdx.x % a.lanes;
    const ring_channels channels = ring_channels_of(a, s, turn);
    const uint32_t units = channels.count * a.pieces;
    const uint32_t panel = s.team + turn * a.teams;
    await_seen<T, 2>(a, s, ring, next, seen, s.batches);
    meet_others(a);
    const float2 given = *given_at(a, area, turn);
    for (uint32_t u = threadIdx.x / a.lanes; u - threadIdx.x % WARP / a.lanes < units;
         u += a.threads / a.lanes) {
        float sum = 0.0f, product = 0.0f;
        if (u < units) {
            const uint32_t c = channels.first + u / a.pieces;
            const uint32_t from = max(c * a.plane, s.begin) - s.begin;
            const uint32_t to = min((c + 1) * a.plane, s.begin + s.all) - s.begin;
#pragma unroll 2
            for (uint32_t v = from + u % a.pieces * a.lanes + lane; v < to;
                 v += a.pieces * a.lanes) {
                const uint32_t at = begin + v < size ? begin + v : begin + v - size;
                run<T> rx, rdy;
                float x[RUN<T>], dy[RUN<T>];
                rx.load(reinterpret_cast<const T *>(ring + at));
                rdy.load(reinterpret_cast<const T *>(ring + at + size));
                widen(x, rx);
                widen(dy, rdy);
#pragma unroll
                for (int i = 0; i < RUN<T>; ++i) {
                    sum += dy[i];
                    product = fmaf(dy[i], x[i] - given.x, product);
                }
            }
        }
        for (uint32_t lanes = 1; lanes < a.lanes; lanes *= 2) {
            sum += __shfl_xor_sync(WHOLE_WARP, sum, (int)lanes);
            product += __shfl_xor_sync(WHOLE_WARP, product, (int)lanes);
        }
        if (lane == 0 && u < units) area.found[u] = make_float2(sum, product * given.y);
    }
    seen.place = (seen.place + s.batches * BATCH) % a.ring;
    seen.count += s.batches;
    meet_others(a);
    pair mine = {0.0, 0.0};
    for (uint32_t c = threadIdx.x; c < channels.count; c += a.threads) {
        const uint32_t own = channels.first + c;
        float2 all = area.found[c * a.pieces];
        for (uint32_t k = 1; k < a.pieces; ++k) {
            all.x += area.found[c * a.pieces + k].x;
            all.y += area.found[c * a.pieces + k].y;
        }
        if (a.sums) {
            const int64_t row =
                (int64_t)(panel / a.cycle) * a.slices + s.rank - own * a.plane / a.part;
            a.sums[row * a.channels + channels.of + own] = {all.x, all.y};
        }
        const float scale = param_at(a.scale, channels.of + own);
        add(mine, {scale * all.x, scale * all.y});
    }
    post_of_block(a, s, mine, of_warp, turn);
}

template <class T>
__device__ __forceinline__ void put_plane_gradients(const norm_ring_args &a, const ring_seat &s,
                                                    const ring_areas &area, uint4 *ring,
                                                    ring_seen &seen, ring_ahead &next,
                                                    uint32_t turn)
{
    const ring_channels channels = ring_channels_of(a, s, turn);
    const float2 given = *given_at(a, area, turn);
    const uint32_t coming = turn + 1 + a.lag; // the panel that is summed next
    const float2 first = given_of(a, s, coming, threadIdx.x);
    meet_exchange(a);
    for (uint32_t c = threadIdx.x; c < channels.count; c += a.threads) {
        const uint32_t scale = param_bits(a.scale, channels.of + channels.first + c);
        const pair p = area.results[turn % 2];
        area.lines[c] =
            make_float4(given.x, given.y * param_of(a.scale, scale), -given.y * (float)p.first,
                        -given.y * given.y * (float)p.second);
    }
    meet_others(a);
    T *dx = static_cast<T *>(a.y) + ring_base<T>(a, s, s.team + turn * a.teams);
    put_lines<T, 2>(a, s, area, channels, ring, seen, next,
                    [&](uint32_t slot, uint32_t at, const float4 &line) {
                        run<T> rx, rdy;
                        float x[RUN<T>], v[RUN<T>];
                        rx.load(reinterpret_cast<const T *>(ring + at));
                        rdy.load(reinterpret_cast<const T *>(ring + at + a.ring * a.threads));
                        widen(x, rx);
                        widen(v, rdy);
#pragma unroll
                        for (int i = 0; i < RUN<T>; ++i) {
                            v[i] = fmaf(line.y, v[i], fmaf(line.w, x[i] - line.x, line.z));
                        }
                        put_run(a, dx + (int64_t)slot * s.step, v, ring + at);
                    });
    take_given(a, s, area, coming, first);
}

template <class T> __device__ __forceinline__ void planes_backward(const norm_ring_args &a)
{
    __shared__ pair of_warp[RING_WARPS];
    uint4 *ring = wd_dynamic_shared<uint4>();
    const ring_areas area = plane_areas_of(a, ring + 2 * a.ring * a.threads);
    walk<T, 2>(
        a, ring, area, [] {},
        [&](const ring_seat &s, ring_seen &seen, ring_ahead &next, uint32_t turn) {
            sum_plane_gradients<T>(a, s, area, ring, seen, next, turn, of_warp);
        },
        [&](const ring_seat &s, ring_seen &seen, ring_ahead &next, uint32_t turn) {
            put_plane_gradients<T>(a, s, area, ring, seen, next, turn);
        });
}

} // namespace

#endif
