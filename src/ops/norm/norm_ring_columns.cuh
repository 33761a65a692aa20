// SPDX-License-Identifier: Apache-2.0
//
// norm_ring by columns: channels lie last. A thread has the same columns throughout.
#ifndef WD_OPS_NORM_RING_COLUMNS_CUH
#define WD_OPS_NORM_RING_COLUMNS_CUH

#include "ops/norm/norm_ring_device.cuh"

namespace {

__device__ __forceinline__ ring_areas column_areas_of(const norm_ring_args &a, uint4 *behind)
{
    ring_areas r;
    r.table = reinterpret_cast<float4 *>(behind);
    r.groups = r.table + a.threads;
    r.results = reinterpret_cast<pair *>(r.groups + a.groups);
    r.found = reinterpret_cast<float2 *>(r.results + 2 * a.groups);
    r.over = r.found + a.channels;
    r.given = r.over + a.channels;
    return r;
}

// ---- Sums of columns ----

// Rows of a run that a lane adds up, at least.
constexpr uint32_t RING_ADDED_LEAST = 2;

// Two sums of every column over the rows of the block, two columns at a time.
template <class T>
__device__ __forceinline__ void ring_columns(const norm_ring_args &a, const float (&one)[RUN<T>],
                                             const float (&other)[RUN<T>], const ring_areas &area)
{
    uint32_t adders = WARP;
    while (adders > 1 && (a.across * adders > a.threads || RING_ADDED_LEAST * adders > a.rows)) {
        adders /= 2;
    }
    const uint32_t items = a.across * adders;
#pragma unroll
    for (int c = 0; c < RUN<T>; c += 2) {
        if (c > 0) meet_others(a);
        area.table[threadIdx.x] = make_float4(one[c], other[c], one[c + 1], other[c + 1]);
        meet_others(a);
        for (uint32_t item = threadIdx.x; item - threadIdx.x % WARP < items; item += a.threads) {
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
    meet_others(a);
}

// f(group, whether it is one) by `lanes` side by side for each.
template <class F>
__device__ __forceinline__ void for_ring_groups(const norm_ring_args &a, uint32_t lanes, const F &f)
{
    for (uint32_t g = threadIdx.x / lanes; g - threadIdx.x % WARP / lanes < a.groups;
         g += a.threads / lanes) {
        f(min(g, a.groups - 1), g < a.groups);
    }
}

__device__ __forceinline__ uint32_t lanes_of_group(const norm_ring_args &a)
{
    uint32_t lanes = 1;
    while (lanes < WARP && 2 * lanes < a.each) lanes *= 2;
    return lanes;
}

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

template <class T>
__device__ __forceinline__ void sum_columns(const norm_ring_args &a, const ring_seat &s,
                                            const ring_areas &area, uint4 *ring, ring_seen &seen,
                                            ring_ahead &next, uint32_t turn)
{
    float pivot[RUN<T>], sum[RUN<T>], squares[RUN<T>];
    await_seen<T, 1>(a, s, ring, next, seen, 1);
    meet_others(a);
    if (s.all > 0) pivots_of<T>(a, s, ring + seen.place * a.threads, pivot);
    if (s.keep < s.batches) meet_others(a); // before others come into their places
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        if (s.all == 0) pivot[i] = 0.0f;
        sum[i] = squares[i] = 0.0f;
    }
    see_runs<T, 1>(a, s, ring, seen, next, [&](uint32_t at) {
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
    });
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
__device__ __forceinline__ void put_columns(const norm_ring_args &a, const ring_seat &s,
                                            const ring_areas &area, uint4 *ring, ring_seen &seen,
                                            ring_ahead &next, uint32_t turn)
{
    meet_exchange(a);
    for (uint32_t g = threadIdx.x; g < a.groups; g += a.threads) {
        const pair p = area.results[turn % 2 * a.groups + g];
        const float mean = (float)p.first, inv_std = (float)p.second;
        area.groups[g] = make_float4(mean, inv_std, (float)(mean - p.first) * inv_std, 0.0f);
    }
    uint32_t scale[RUN<T>], bias[RUN<T>];
    params_at(scale, a.scale, s.place * RUN<T>, s.slots > 0 ? RUN<T> : 0);
    params_at(bias, a.bias, s.place * RUN<T>, s.slots > 0 ? RUN<T> : 0);
    meet_others(a);
    float mean[RUN<T>], factor[RUN<T>], base[RUN<T>];
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        const float4 n = area.groups[wd_fastdiv_quotient(s.place * RUN<T> + i, a.by_each)];
        mean[i] = n.x;
        factor[i] = param_of(a.scale, scale[i]) * n.y;
        base[i] = fmaf(param_of(a.scale, scale[i]), n.z, param_of(a.bias, bias[i]));
    }
    T *y = static_cast<T *>(a.y) + ring_base<T>(a, s, s.team + turn * a.teams);
    put_runs<T, 1>(a, s, ring, seen, next, [&](uint32_t slot, uint32_t at) {
        run<T> r;
        float v[RUN<T>];
        r.load(reinterpret_cast<const T *>(ring + at));
        widen(v, r);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) v[i] = fmaf(factor[i], v[i] - mean[i], base[i]);
        put_run(a, y + (int64_t)slot * s.step, v, ring + at);
    });
}

template <class T> __device__ __forceinline__ void columns_forward(const norm_ring_args &a)
{
    uint4 *ring = wd_dynamic_shared<uint4>();
    const ring_areas area = column_areas_of(a, ring + a.ring * a.threads);
    walk<T, 1>(
        a, ring, area, [] {},
        [&](const ring_seat &s, ring_seen &seen, ring_ahead &next, uint32_t turn) {
            sum_columns<T>(a, s, area, ring, seen, next, turn);
        },
        [&](const ring_seat &s, ring_seen &seen, ring_ahead &next, uint32_t turn) {
            put_columns<T>(a, s, area, ring, seen, next, turn);
        });
}

// ---- Backward ----

template <class T>
__device__ __forceinline__ void sum_column_gradients(const norm_ring_args &a, const ring_seat &s,
                                                     const ring_areas &area, uint4 *ring,
                                                     ring_seen &seen, ring_ahead &next,
                                                     uint32_t turn)
{
    const float2 *given = given_at(a, area, turn);
    float mean[RUN<T>], sum[RUN<T>], product[RUN<T>];
    meet_others(a);
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i) {
        mean[i] = given[wd_fastdiv_quotient(s.place * RUN<T> + i, a.by_each)].x;
        sum[i] = product[i] = 0.0f;
    }
    see_runs<T, 2>(a, s, ring, seen, next, [&](uint32_t at) {
        run<T> rx, rdy;
        float x[RUN<T>], dy[RUN<T>];
        rx.load(reinterpret_cast<const T *>(ring + at));
        rdy.load(reinterpret_cast<const T *>(ring + at + a.ring * a.threads));
        widen(x, rx);
        widen(dy, rdy);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            sum[i] += dy[i];
            product[i] = fmaf(dy[i], x[i] - mean[i], product[i]);
        }
    });
    ring_columns<T>(a, sum, product, area);
    for (uint32_t c = threadIdx.x; a.sums && c < a.channels; c += a.threads) {
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
__device__ __forceinline__ void put_column_gradients(const norm_ring_args &a, const ring_seat &s,
                                                     const ring_areas &area, uint4 *ring,
                                                     ring_seen &seen, ring_ahead &next,
                                                     uint32_t turn)
{
    const float2 *given = given_at(a, area, turn);
    // of the panel that is summed next, under way while this one is written
    const uint32_t coming = turn + 1 + a.lag;
    const float2 first = given_of(a, s, coming, threadIdx.x);
    meet_exchange(a);
    for (uint32_t g = threadIdx.x; g < a.groups; g += a.threads) {
        const pair p = area.results[turn % 2 * a.groups + g];
        const float2 of = given[g];
        area.groups[g] =
            make_float4(of.x, of.y, -of.y * (float)p.first, -of.y * of.y * (float)p.second);
    }
    uint32_t scale[RUN<T>];
    params_at(scale, a.scale, s.place * RUN<T>, s.slots > 0 ? RUN<T> : 0);
    meet_others(a);
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
    put_runs<T, 2>(a, s, ring, seen, next, [&](uint32_t slot, uint32_t at) {
        run<T> rx, rdy;
        float x[RUN<T>], v[RUN<T>];
        rx.load(reinterpret_cast<const T *>(ring + at));
        rdy.load(reinterpret_cast<const T *>(ring + at + a.ring * a.threads));
        widen(x, rx);
        widen(v, rdy);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            v[i] = fmaf(factor[i], v[i], fmaf(slope[i], x[i] - mean[i], base[i]));
        }
        put_run(a, dx + (int64_t)slot * s.step, v, ring + at);
    });
    take_given(a, s, area, coming, first);
}

template <class T> __device__ __forceinline__ void columns_backward(const norm_ring_args &a)
{
    uint4 *ring = wd_dynamic_shared<uint4>();
    const ring_areas area = column_areas_of(a, ring + 2 * a.ring * a.threads);
    walk<T, 2>(
        a, ring, area,
        [&] {
            for (uint32_t c = threadIdx.x; c < a.channels; c += a.threads) {
                area.over[c] = make_float2(0.0f, 0.0f);
            }
        },
        [&](const ring_seat &s, ring_seen &seen, ring_ahead &next, uint32_t turn) {
            sum_column_gradients<T>(a, s, area, ring, seen, next, turn);
        },
        [&](const ring_seat &s, ring_seen &seen, ring_ahead &next, uint32_t turn) {
            put_column_gradients<T>(a, s, area, ring, seen, next, turn);
        });
    for (uint32_t c = threadIdx.x; a.sums && c < a.channels; c += a.threads) {
        const float2 all = area.over[c];
        a.sums[(int64_t)blockIdx.x * a.channels + c] = {all.x, all.y};
    }
}

} // namespace

#endif
