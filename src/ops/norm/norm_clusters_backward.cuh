// SPDX-License-Identifier: Apache-2.0
//
// Gradients of instance norm by norm_clusters. dx = inv_std scale (dy - (sum of dy + xhat sum of dy xhat) / length). x stays;
// dy is read twice, the second time from the second-level cache, both times two quads ahead in registers.
#ifndef WD_OPS_NORM_CLUSTERS_BACKWARD_CUH
#define WD_OPS_NORM_CLUSTERS_BACKWARD_CUH

#include "ops/norm/norm_clusters_device.cuh"

namespace {

constexpr uint32_t AHEAD = 2; // quads
static_assert(HELD % AHEAD == 0, "quads of shared memory begin with the first of these");

// dx = dy factor - (x - mean) slope - level
struct cluster_slopes {
    float mean;
    float factor;
    float slope;
    float level;
};

// To sums of dy and of dy (x - mean), even and odd elements apart.
template <class T>
__device__ __forceinline__ void look_at_both(const uint4 &x, const uint4 &dy, float mean,
                                             float2 &sums, float2 &products)
{
    float one[RUN<T>], given[RUN<T>];
    widen_unit<T>(one, x);
    widen_unit<T>(given, dy);
#pragma unroll
    for (int i = 0; i < RUN<T>; i += 2) {
        sums.x += given[i], sums.y += given[i + 1];
        products.x = fmaf(given[i], one[i] - mean, products.x);
        products.y = fmaf(given[i + 1], one[i + 1] - mean, products.y);
    }
}

template <class T>
__device__ __forceinline__ void put_both(uint4 *dx, const uint4 &x, const uint4 &dy,
                                         const cluster_slopes &g)
{
    float out[RUN<T>], given[RUN<T>];
    widen_unit<T>(out, x);
    widen_unit<T>(given, dy);
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i)
        out[i] = fmaf(-g.slope, out[i] - g.mean, fmaf(given[i], g.factor, -g.level));
    put_unit<T>(dx, out);
}

// A quad of both, and dy of the one after the next in its place, if x of that is kept.
template <class T>
__device__ __forceinline__ void look_and_ask(const cluster_seat &s, const uint4 (&x)[QUAD],
                                             uint4 (&dy)[QUAD], const uint4 *from, uint32_t quad,
                                             float mean, float2 &sums, float2 &products)
{
    const bool more = quad + AHEAD < s.kept;
    from += (int64_t)(quad + AHEAD) * QUAD_UNITS;
#pragma unroll
    for (uint32_t v = 0; v < QUAD; ++v) {
        look_at_both<T>(x[v], dy[v], mean, sums, products);
        if (more) dy[v] = wd_load_again(from + v * ACROSS);
    }
}

template <class T>
__device__ __forceinline__ void put_and_ask(const cluster_seat &s, uint4 *dx,
                                            const uint4 (&x)[QUAD], uint4 (&dy)[QUAD],
                                            const uint4 *from, uint32_t quad,
                                            const cluster_slopes &g)
{
    const bool more = quad + AHEAD < s.kept;
    dx += (int64_t)quad * QUAD_UNITS;
    from += (int64_t)(quad + AHEAD) * QUAD_UNITS;
#pragma unroll
    for (uint32_t v = 0; v < QUAD; ++v) {
        put_both<T>(dx + v * ACROSS, x[v], dy[v], g);
        if (more) dy[v] = wd_load_once(from + v * ACROSS);
    }
}

template <class T> __device__ __forceinline__ void backward(const norm_clusters_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    __shared__ cluster_room room;
    WD_DYNAMIC_SHARED(uint4, places);
    const cluster_seat s = cluster_seat_of(a);
    uint4 *const mine = places + threadIdx.x;
    uint32_t share = blockIdx.x / a.cluster;
    uint4 held[HELD][QUAD], dy[AHEAD][QUAD];
    begin_cluster(room);
    wd_wait_for_previous();
    {
        const uint4 *x = units_of(a, a.x, s, share);
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            if (q < s.kept) load_quad<false, true>(held[q], x, q, s.count);
        }
        for (uint32_t q = HELD; q < s.kept; ++q) {
            copy_quad(mine + (q - HELD) * QUAD_UNITS, x, q);
            wd_copies_end();
        }
    }
#pragma unroll 1
    for (uint32_t turn = 0; share < a.shares; ++turn, share += s.step) {
        const uint4 *x = units_of(a, a.x, s, share), *from = units_of(a, a.dy, s, share);
        const float mean = a.given_mean ? a.given_mean[share] : 0.0f;
        const float inv_std = a.given_inv_std[share];
        const uint32_t bits = param_bits(a.scale, share % a.groups);
        float2 sums = make_float2(0.0f, 0.0f), products = sums;
#pragma unroll
        for (uint32_t q = 0; q < AHEAD; ++q) {
            if (q < s.kept) load_quad<true, true>(dy[q], from, q, s.count);
        }
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            if (q < s.kept)
                look_and_ask<T>(s, held[q], dy[q % AHEAD], from, q, mean, sums, products);
        }
#pragma unroll 1
        for (uint32_t first = HELD; first < s.kept; first += AHEAD) {
#pragma unroll
            for (uint32_t i = 0; i < AHEAD; ++i) {
                const uint32_t q = first + i;
                uint4 some[QUAD];
                if (q >= s.kept) continue;
                wait_for_quad(s.kept - 1 - q);
                take_quad(some, mine + (q - HELD) * QUAD_UNITS);
                look_and_ask<T>(s, some, dy[i], from, q, mean, sums, products);
            }
        }
#pragma unroll 1
        for (uint32_t q = s.kept; q * QUAD < s.count; ++q) {
            uint4 some[QUAD], given[QUAD];
            load_quad<true, false>(some, x, q, s.count);
            load_quad<true, false>(given, from, q, s.count);
#pragma unroll
            for (uint32_t v = 0; v < QUAD; ++v) {
                if (q * QUAD + v < s.count)
                    look_at_both<T>(some[v], given[v], mean, sums, products);
            }
        }
#pragma unroll
        for (uint32_t q = 0; q < AHEAD; ++q) { // while blocks meet
            if (q < s.kept) load_quad<false, true>(dy[q], from, q, s.count);
        }
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
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            if (q >= s.kept) continue;
            put_and_ask<T>(s, dx, held[q], dy[q % AHEAD], from, q, g);
            if (more) load_quad<false, true>(held[q], next, q, s.count);
        }
#pragma unroll 1
        for (uint32_t first = HELD; first < s.kept; first += AHEAD) {
#pragma unroll
            for (uint32_t i = 0; i < AHEAD; ++i) {
                const uint32_t q = first + i;
                uint4 *place = mine + (q - HELD) * QUAD_UNITS;
                uint4 some[QUAD];
                if (q >= s.kept) continue;
                take_quad(some, place);
                put_and_ask<T>(s, dx, some, dy[i], from, q, g);
                if (more) copy_quad(place, next, q);
                wd_copies_end();
            }
        }
#pragma unroll 1
        for (uint32_t q = s.kept; q * QUAD < s.count; ++q) {
            uint4 some[QUAD], given[QUAD];
            load_quad<false, false>(some, x, q, s.count);
            load_quad<false, false>(given, from, q, s.count);
#pragma unroll
            for (uint32_t v = 0; v < QUAD; ++v) {
                if (q * QUAD + v < s.count)
                    put_both<T>(dx + (int64_t)(q * QUAD + v) * ACROSS, some[v], given[v], g);
            }
        }
    }
#endif
}

} // namespace

#endif
