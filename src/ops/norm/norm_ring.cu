// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm by columns with a ring of runs under way: one reading, one writing, and in
// backward a small kernel for dscale and dbias. norm_ring_args.h says how x is gone through.
#include "ops/norm/norm_ring_device.cuh"

namespace {

__device__ __forceinline__ float middle_of(float a, float b, float c)
{
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

// What differences of a thread's columns are from: the median of three rows of the block, so that no
// element far out makes them so large that single precision has no digits left for the others.
template <class T>
__device__ __forceinline__ void pivots_of(const norm_ring_args &a, const ring_seat &s,
                                          const uint4 *first, float (&to)[RUN<T>])
{
    const uint32_t rows = min(a.rows, s.all);
    float v[3][RUN<T>];
#pragma unroll
    for (uint32_t k = 0; k < 3; ++k) {
        const uint32_t row = k == 0 ? 0 : k == 1 ? rows / 2 : rows - 1;
        run<T> r;
        r.load(reinterpret_cast<const T *>(first + row * a.across + s.place));
        widen(v[k], r);
    }
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) to[i] = middle_of(v[0][i], v[1][i], v[2][i]);
}

// Waits for a batch of the panel that is summed, where `behind` batches have been asked for less than
// the ring has room for.
__device__ __forceinline__ void await_batch(const norm_ring_args &a, uint32_t behind, uint32_t b)
{
    await_batches(a.ring / BATCH - behind - b - 1);
}

// Posts what follows from all blocks' posts of a turn, for the groups that are this block's.
__device__ __forceinline__ void post_statistics(const norm_ring_args &a, const ring_seat &s,
                                                const ring_areas &area, uint32_t turn)
{
    const uint32_t mine = groups_of_block(a, s);
    for (uint32_t i = threadIdx.x; i < mine; i += blockDim.x) {
        const uint32_t group = s.rank + i * a.blocks;
        const pair all = added(a, area, i);
        const double mean = all.first * a.inverse;
        const double variance = fmax(all.second * a.inverse - mean * mean, 0.0);
        const float inv_std = 1.0f / sqrtf((float)(variance + a.epsilon));
        const int64_t share = (int64_t)(s.team + turn * a.teams) * a.groups + group;
        post_pair(post_at(a, s, turn, group, a.blocks), {mean, inv_std}, turn);
        if (a.mean) a.mean[share] = (float)mean;
        if (a.inv_std) a.inv_std[share] = inv_std;
    }
}

template <class T>
__device__ __forceinline__ void sum_panel(const norm_ring_args &a, const ring_seat &s,
                                          const ring_areas &area, const uint4 *ring,
                                          uint32_t &place, uint32_t turn, uint32_t behind)
{
    float pivot[RUN<T>], sum[RUN<T>], squares[RUN<T>];
    await_batch(a, behind, 0);
    __syncthreads();
    if (a.lag && turn > 0) post_statistics(a, s, area, turn - 1);
    if (s.all > 0) pivots_of<T>(a, s, ring + place * blockDim.x, pivot);
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        if (s.all == 0) pivot[i] = 0.0f;
        sum[i] = squares[i] = 0.0f;
    }
    for_runs(
        a, s, place, [&](uint32_t b) { await_batch(a, behind, b); },
        [&](uint32_t, uint32_t at) {
            run<T> r;
            float v[RUN<T>];
            r.load(reinterpret_cast<const T *>(ring + at));
            widen(v, r);
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                const float d = v[i] - pivot[i];
                sum[i] += d;
                squares[i] = fmaf(d, d, squares[i]);
            }
        },
        [] {});
    if (threadIdx.x < a.across) {
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) area.over[s.place * RUN<T> + i].x = pivot[i];
    }
    ring_columns<T>(a, sum, squares, area);
    const uint32_t lanes = lanes_of_group(a);
    for_ring_groups(a, lanes, [&](uint32_t g, bool is) {
        pair all = {0.0, 0.0};
        for (uint32_t c = threadIdx.x % lanes; c < a.each; c += lanes) {
            const float2 one = area.found[g * a.each + c];
            const double pivot = area.over[g * a.each + c].x;
            const double offset = s.all * pivot;
            add(all, {one.x + offset, one.y + pivot * (2.0 * one.x + offset)});
        }
        all = sum_of_lanes(all, lanes);
        if (is && threadIdx.x % lanes == 0) post_pair(post_at(a, s, turn, g, s.rank), all, turn);
    });
}

template <class T>
__device__ __forceinline__ void put_panel(const norm_ring_args &a, const ring_seat &s,
                                          const ring_areas &area, uint4 *ring, uint32_t turn,
                                          ring_ahead &next)
{
    for (uint32_t g = threadIdx.x; g < a.groups; g += blockDim.x) {
        const pair p = await_pair(post_at(a, s, turn, g, a.blocks), turn);
        const float mean = (float)p.first, inv_std = (float)p.second;
        area.groups[g] = make_float4(mean, inv_std, (float)(mean - p.first) * inv_std, 0.0f);
    }
    uint32_t scale[RUN<T>], bias[RUN<T>];
    params_at(scale, a.scale, s.place * RUN<T>, s.slots > 0 ? RUN<T> : 0);
    params_at(bias, a.bias, s.place * RUN<T>, s.slots > 0 ? RUN<T> : 0);
    __syncthreads();
    float mean[RUN<T>], factor[RUN<T>], base[RUN<T>];
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        const float4 n = area.groups[wd_fastdiv_quotient(s.place * RUN<T> + i, a.by_each)];
        mean[i] = n.x;
        factor[i] = param_of(a.scale, scale[i]) * n.y;
        base[i] = fmaf(param_of(a.scale, scale[i]), n.z, param_of(a.bias, bias[i]));
    }
    T *y = static_cast<T *>(a.y) + ring_base<T>(a, s, s.team + turn * a.teams);
    uint32_t place = next.place; // the oldest is where the newest comes
    for_runs(
        a, s, place, [](uint32_t) {},
        [&](uint32_t, uint32_t at) {
            run<T> r;
            float v[RUN<T>];
            r.load(reinterpret_cast<const T *>(ring + at));
            widen(v, r);
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) v[i] = fmaf(factor[i], v[i] - mean[i], base[i]);
            put(y, v, a.runs != 0, 0, RUN<T>, a.streaming);
            y += s.step;
        },
        [&] { ask<T, 1>(a, s, ring, next); });
}

template <class T> __device__ __forceinline__ void ring_forward(const norm_ring_args &a)
{
    uint4 *ring = wd_dynamic_shared<uint4>();
    const ring_areas area = ring_areas_of(a, ring + a.ring * blockDim.x);
    const ring_seat s = ring_seat_of(a);
    ring_ahead next = {ring_base<T>(a, s, s.team), s.team, 0, 0};
    uint32_t place = 0;
    wd_wait_for_previous();
    for (uint32_t k = 0; k < a.ring / BATCH; ++k) ask<T, 1>(a, s, ring, next);
    begin_ring_posts(a, s);
    wd_meet(a.counters + s.team * WD_COUNTER_WORDS, a.blocks, s.rank == 0);
    for (uint32_t turn = 0;; ++turn) {
        const bool more = s.team + turn * a.teams < a.panels;
        if (a.lag && turn > 0) {
            add_posts(a, s, area, turn - 1);
            if (!more) {
                __syncthreads();
                post_statistics(a, s, area, turn - 1);
            }
        }
        if (more) {
            sum_panel<T>(a, s, area, ring, place, turn, turn > 0 ? a.lag * s.batches : 0);
        }
        if (a.lag) {
            if (turn > 0) put_panel<T>(a, s, area, ring, turn - 1, next);
        } else if (more) {
            add_posts(a, s, area, turn);
            __syncthreads();
            post_statistics(a, s, area, turn);
            put_panel<T>(a, s, area, ring, turn, next);
        }
        if (!more) return;
    }
}

// ---- Backward ----

// Statistics of a group of the panel of a turn.
__device__ __forceinline__ float2 given_of(const norm_ring_args &a, const ring_seat &s,
                                           uint32_t turn, uint32_t group)
{
    const uint32_t panel = s.team + turn * a.teams;
    if (panel >= a.panels || group >= a.groups) return make_float2(0.0f, 0.0f);
    const int64_t share = (int64_t)panel * a.groups + group;
    return make_float2(a.given_mean[share], a.given_inv_std[share]);
}

constexpr uint32_t GIVEN = 3; // panels: one is written, one summed, one comes next

__device__ __forceinline__ float2 *given_at(const norm_ring_args &a, const ring_areas &area,
                                            uint32_t turn)
{
    return area.given + turn % GIVEN * a.groups;
}

// `first` is the thread's first group's, which was asked for earlier.
__device__ __forceinline__ void take_given(const norm_ring_args &a, const ring_seat &s,
                                           const ring_areas &area, uint32_t turn, float2 first)
{
    float2 *to = given_at(a, area, turn);
    for (uint32_t g = threadIdx.x; g < a.groups; g += blockDim.x) {
        to[g] = g == threadIdx.x ? first : given_of(a, s, turn, g);
    }
}

__device__ __forceinline__ void post_gradients(const norm_ring_args &a, const ring_seat &s,
                                               const ring_areas &area, uint32_t turn)
{
    const uint32_t mine = groups_of_block(a, s);
    for (uint32_t i = threadIdx.x; i < mine; i += blockDim.x) {
        const uint32_t group = s.rank + i * a.blocks;
        const pair all = added(a, area, i);
        post_pair(post_at(a, s, turn, group, a.blocks),
                  {all.first * a.inverse, all.second * a.inverse}, turn);
    }
}

template <class T>
__device__ __forceinline__ void sum_gradients(const norm_ring_args &a, const ring_seat &s,
                                              const ring_areas &area, const uint4 *ring,
                                              uint32_t &place, uint32_t turn, uint32_t behind)
{
    const float2 *given = given_at(a, area, turn);
    float mean[RUN<T>], sum[RUN<T>], product[RUN<T>];
    __syncthreads();
    if (a.lag && turn > 0) post_gradients(a, s, area, turn - 1);
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        mean[i] = given[wd_fastdiv_quotient(s.place * RUN<T> + i, a.by_each)].x;
        sum[i] = product[i] = 0.0f;
    }
    for_runs(
        a, s, place, [&](uint32_t b) { await_batch(a, behind, b); },
        [&](uint32_t, uint32_t at) {
            run<T> r;
            float x[RUN<T>], dy[RUN<T>];
            r.load(reinterpret_cast<const T *>(ring + at));
            widen(x, r);
            r.load(reinterpret_cast<const T *>(ring + at + a.ring * blockDim.x));
            widen(dy, r);
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                sum[i] += dy[i];
                product[i] = fmaf(dy[i], x[i] - mean[i], product[i]);
            }
        },
        [] {});
    ring_columns<T>(a, sum, product, area);
    for (uint32_t c = threadIdx.x; a.sums && c < a.channels; c += blockDim.x) {
        const float2 one = area.found[c];
        area.over[c].x += one.x;
        area.over[c].y += one.y * given[wd_fastdiv_quotient(c, a.by_each)].y;
    }
    const uint32_t lanes = lanes_of_group(a);
    for_ring_groups(a, lanes, [&](uint32_t g, bool is) {
        pair all = {0.0, 0.0};
        for (uint32_t c = threadIdx.x % lanes; c < a.each; c += lanes) {
            const float scale = param_at(a.scale, g * a.each + c);
            const float2 one = area.found[g * a.each + c];
            add(all, {scale * one.x, scale * one.y * given[g].y});
        }
        all = sum_of_lanes(all, lanes);
        if (is && threadIdx.x % lanes == 0) post_pair(post_at(a, s, turn, g, s.rank), all, turn);
    });
}

template <class T>
__device__ __forceinline__ void put_gradients(const norm_ring_args &a, const ring_seat &s,
                                              const ring_areas &area, uint4 *ring, uint32_t turn,
                                              ring_ahead &next)
{
    const float2 *given = given_at(a, area, turn);
    // of the panel that is summed next, under way while this one is written
    const uint32_t coming = turn + 1 + a.lag;
    const float2 first = given_of(a, s, coming, threadIdx.x);
    for (uint32_t g = threadIdx.x; g < a.groups; g += blockDim.x) {
        const pair p = await_pair(post_at(a, s, turn, g, a.blocks), turn);
        const float2 of = given[g];
        area.groups[g] =
            make_float4(of.x, of.y, -of.y * (float)p.first, -of.y * of.y * (float)p.second);
    }
    uint32_t scale[RUN<T>];
    params_at(scale, a.scale, s.place * RUN<T>, s.slots > 0 ? RUN<T> : 0);
    __syncthreads();
    float mean[RUN<T>], factor[RUN<T>], base[RUN<T>], slope[RUN<T>];
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        const float4 n = area.groups[wd_fastdiv_quotient(s.place * RUN<T> + i, a.by_each)];
        mean[i] = n.x;
        factor[i] = param_of(a.scale, scale[i]) * n.y;
        base[i] = n.z;
        slope[i] = n.w;
    }
    T *dx = static_cast<T *>(a.y) + ring_base<T>(a, s, s.team + turn * a.teams);
    uint32_t place = next.place;
    for_runs(
        a, s, place, [](uint32_t) {},
        [&](uint32_t, uint32_t at) {
            run<T> r;
            float x[RUN<T>], v[RUN<T>];
            r.load(reinterpret_cast<const T *>(ring + at));
            widen(x, r);
            r.load(reinterpret_cast<const T *>(ring + at + a.ring * blockDim.x));
            widen(v, r);
#pragma unroll
            for (int i = 0; i < RUN<T>; ++i) {
                v[i] = fmaf(factor[i], v[i], fmaf(slope[i], x[i] - mean[i], base[i]));
            }
            put(dx, v, a.runs != 0, 0, RUN<T>, a.streaming);
            dx += s.step;
        },
        [&] { ask<T, 2>(a, s, ring, next); });
    take_given(a, s, area, coming, first);
}

template <class T> __device__ __forceinline__ void ring_backward(const norm_ring_args &a)
{
    uint4 *ring = wd_dynamic_shared<uint4>();
    const ring_areas area = ring_areas_of(a, ring + 2 * a.ring * blockDim.x);
    const ring_seat s = ring_seat_of(a);
    ring_ahead next = {ring_base<T>(a, s, s.team), s.team, 0, 0};
    uint32_t place = 0;
    wd_wait_for_previous();
    for (uint32_t k = 0; k < a.ring / BATCH; ++k) ask<T, 2>(a, s, ring, next);
    begin_ring_posts(a, s);
    for (uint32_t turn = 0; turn <= a.lag; ++turn) {
        take_given(a, s, area, turn, given_of(a, s, turn, threadIdx.x));
    }
    for (uint32_t c = threadIdx.x; c < a.channels; c += blockDim.x) {
        area.over[c] = make_float2(0.0f, 0.0f);
    }
    wd_meet(a.counters + s.team * WD_COUNTER_WORDS, a.blocks, s.rank == 0);
    for (uint32_t turn = 0;; ++turn) {
        const bool more = s.team + turn * a.teams < a.panels;
        if (a.lag && turn > 0) {
            add_posts(a, s, area, turn - 1);
            if (!more) {
                __syncthreads();
                post_gradients(a, s, area, turn - 1);
            }
        }
        if (more) {
            sum_gradients<T>(a, s, area, ring, place, turn, turn > 0 ? a.lag * s.batches : 0);
        }
        if (a.lag) {
            if (turn > 0) put_gradients<T>(a, s, area, ring, turn - 1, next);
        } else if (more) {
            add_posts(a, s, area, turn);
            __syncthreads();
            post_gradients(a, s, area, turn);
            put_gradients<T>(a, s, area, ring, turn, next);
        }
        if (!more) break;
    }
    for (uint32_t c = threadIdx.x; a.sums && c < a.channels; c += blockDim.x) {
        const float2 all = area.over[c];
        a.sums[(int64_t)blockIdx.x * a.channels + c] = {all.x, all.y};
    }
}

// dscale and dbias over blocks: a warp's lanes are channels, and warps have blocks.
__device__ __forceinline__ void ring_params(const norm_ring_args &a)
{
    __shared__ double of_warp[2][NORM_ROWS_THREADS / WARP][WARP];
    const uint32_t lane = threadIdx.x % WARP;
    const uint32_t warp = threadIdx.x / WARP;
    const uint32_t warps = blockDim.x / WARP;
    const uint32_t channel = blockIdx.x * NORM_RING_FINISH + lane;
    const uint32_t rows = a.teams * a.blocks;
    double dy = 0.0, dy_xhat = 0.0;
    wd_wait_for_previous();
    if (channel < a.channels) {
#pragma unroll 8
        for (uint32_t row = warp; row < rows; row += warps) {
            const norm_ring_sums one = a.sums[(int64_t)row * a.channels + channel];
            dy += one.dy, dy_xhat += one.dy_xhat;
        }
    }
    of_warp[0][warp][lane] = dy;
    of_warp[1][warp][lane] = dy_xhat;
    __syncthreads();
    if (warp > 0 || channel >= a.channels) return;
    for (uint32_t w = 1; w < warps; ++w) dy += of_warp[0][w][lane], dy_xhat += of_warp[1][w][lane];
    set_param(a.dbias, channel, (float)dy);
    set_param(a.dscale, channel, (float)dy_xhat);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/norm_ring_kernels.def"
#include "ops/kernels_device.inc"
