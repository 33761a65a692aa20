// SPDX-License-Identifier: Apache-2.0
//
// Gradients of instance norm by norm_clusters. dx = inv_std scale (dy - (sum of dy + xhat sum of dy xhat) / length). dy is
// asked for a quad ahead where it does not stay.
#ifndef WD_OPS_NORM_CLUSTERS_BACKWARD_CUH
#define WD_OPS_NORM_CLUSTERS_BACKWARD_CUH

#include "ops/norm/norm_clusters_device.cuh"

namespace {

// dx = dy factor - (x - mean) slope - level
struct cluster_slopes {
    float mean;
    float factor;
    float slope;
    float level;
};

// To sums of dy and of dy (x - mean), even and odd elements apart.
template <class T>
__device__ __forceinline__ void look_at_both(const uint4 (&x)[QUAD], const uint4 (&dy)[QUAD],
                                             int left, float mean, float2 &sums, float2 &products)
{
#pragma unroll
    for (int v = 0; v < (int)QUAD; ++v) {
        if (v >= left) continue;
        float one[RUN<T>], given[RUN<T>];
        widen_unit<T>(one, x[v]);
        widen_unit<T>(given, dy[v]);
#pragma unroll
        for (int i = 0; i < RUN<T>; i += 2) {
            sums.x += given[i], sums.y += given[i + 1];
            products.x = fmaf(given[i], one[i] - mean, products.x);
            products.y = fmaf(given[i + 1], one[i + 1] - mean, products.y);
        }
    }
}

template <class T>
__device__ __forceinline__ void put_both(uint4 *dx, const uint4 (&x)[QUAD], const uint4 (&dy)[QUAD],
                                         uint32_t quad, uint32_t count, const cluster_slopes &g)
{
#pragma unroll
    for (uint32_t v = 0; v < QUAD; ++v) {
        const uint32_t at = quad * QUAD + v;
        float out[RUN<T>], given[RUN<T>];
        if (at >= count) continue;
        widen_unit<T>(out, x[v]);
        widen_unit<T>(given, dy[v]);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i)
            out[i] = fmaf(-g.slope, out[i] - g.mean, fmaf(given[i], g.factor, -g.level));
        put_unit<T>(dx + (int64_t)at * blockDim.x, out);
    }
}

// A thread's dy of a share: quads that stay in shared memory, others a quad ahead in registers.
struct cluster_dy {
    const uint4 *from;
    const uint4 *places;
    uint4 ahead[QUAD];
};

template <bool AGAIN>
__device__ __forceinline__ void ask_dy(const norm_clusters_args &a, cluster_dy &dy, uint32_t quad,
                                       uint32_t count)
{
    if (quad >= a.dy_quads) load_quad<AGAIN>(dy.ahead, dy.from, quad, count);
}

template <bool AGAIN>
__device__ __forceinline__ void take_dy(const norm_clusters_args &a, uint4 (&to)[QUAD],
                                        cluster_dy &dy, uint32_t quad, uint32_t count)
{
    if (quad < a.dy_quads) {
        take_quad(to, dy.places + quad * QUAD * blockDim.x);
    } else {
#pragma unroll
        for (uint32_t i = 0; i < QUAD; ++i) to[i] = dy.ahead[i];
    }
    ask_dy<AGAIN>(a, dy, quad + 1, count);
}

template <class T> __device__ __forceinline__ void backward(const norm_clusters_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    __shared__ cluster_room room;
    WD_DYNAMIC_SHARED(uint4, places);
    const cluster_seat s = cluster_seat_of(a);
    uint4 *const mine = places + threadIdx.x;
    const uint32_t quad_places = QUAD * blockDim.x;
    uint4 *const mine_dy = mine + (a.quads - HELD) * quad_places;
    uint32_t share = blockIdx.x / a.cluster;
    uint4 held[HELD][QUAD];
    begin_cluster(room);
    wd_wait_for_previous();
    {
        const uint4 *x = units_of(a, a.x, s, share), *dy = units_of(a, a.dy, s, share);
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) load_quad<false>(held[q], x, q, s.count);
        for (uint32_t q = 0; q < a.quads; ++q) {
            if (q >= HELD) copy_quad(mine + (q - HELD) * quad_places, x, q, s.count);
            if (q < a.dy_quads) copy_quad(mine_dy + q * quad_places, dy, q, s.count);
            wd_copies_end();
        }
    }
#pragma unroll 1
    for (uint32_t turn = 0; share < a.shares; ++turn, share += s.step) {
        const uint4 *x = units_of(a, a.x, s, share);
        const float mean = a.given_mean ? a.given_mean[share] : 0.0f;
        const float inv_std = a.given_inv_std[share];
        const uint32_t bits = param_bits(a.scale, share % a.groups);
        float2 sums = make_float2(0.0f, 0.0f), products = sums;
        cluster_dy dy;
        dy.from = units_of(a, a.dy, s, share);
        dy.places = mine_dy;
        ask_dy<true>(a, dy, 0, s.count);
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            uint4 given[QUAD];
            if (q < a.dy_quads) wait_for_quad(a.quads - 1 - q);
            take_dy<true>(a, given, dy, q, s.count);
            look_at_both<T>(held[q], given, (int)s.count - (int)(q * QUAD), mean, sums, products);
        }
#pragma unroll 1
        for (uint32_t q = HELD; q * QUAD < s.count; ++q) {
            uint4 some[QUAD], given[QUAD];
            if (q < a.quads) wait_for_quad(a.quads - 1 - q);
            take_dy<true>(a, given, dy, q, s.count);
            if (q < a.quads) take_quad(some, mine + (q - HELD) * quad_places);
            else load_quad<true>(some, x, q, s.count);
            look_at_both<T>(some, given, (int)s.count - (int)(q * QUAD), mean, sums, products);
        }
        ask_dy<false>(a, dy, 0, s.count); // while blocks meet
        const pair all =
            sums_of_cluster(a, s.rank, room, turn, sums.x + sums.y, products.x + products.y);
        const float factor = inv_std * (a.scale.data ? param_of(a.scale, bits) : 1.0f);
        const cluster_slopes g = {mean, factor,
                                  (float)(all.second * a.inverse) * inv_std * inv_std * factor,
                                  (float)(all.first * a.inverse) * factor};
        if (threadIdx.x == 0 && s.rank == 0 && a.found)
            a.found[share] = {(float)all.first, (float)(all.second * inv_std)};
        uint4 *dx = const_cast<uint4 *>(units_of(a, a.y, s, share));
        const uint32_t later = share + s.step;
        const bool more = later < a.shares;
        const uint4 *next = units_of(a, a.x, s, more ? later : share);
        const uint4 *next_dy = units_of(a, a.dy, s, more ? later : share);
        const uint32_t asked = more ? s.count : 0;
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            uint4 given[QUAD];
            take_dy<false>(a, given, dy, q, s.count);
            put_both<T>(dx, held[q], given, q, s.count, g);
            load_quad<false>(held[q], next, q, asked);
            if (q < a.dy_quads) copy_quad(mine_dy + q * quad_places, next_dy, q, asked);
            wd_copies_end();
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < a.quads || q * QUAD < s.count; ++q) {
            uint4 *place = mine + (q - HELD) * quad_places;
            uint4 some[QUAD], given[QUAD];
            if (q < a.quads) take_quad(some, place);
            else load_quad<false>(some, x, q, s.count);
            take_dy<false>(a, given, dy, q, s.count);
            put_both<T>(dx, some, given, q, s.count, g);
            if (q >= a.quads) continue;
            copy_quad(place, next, q, asked);
            if (q < a.dy_quads) copy_quad(mine_dy + q * quad_places, next_dy, q, asked);
            wd_copies_end();
        }
    }
#endif
}

} // namespace

#endif
