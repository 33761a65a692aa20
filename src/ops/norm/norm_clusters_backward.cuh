// SPDX-License-Identifier: Apache-2.0
//
// Gradients of instance norm by norm_clusters. dx = inv_std scale (dy - (sum of dy + xhat sum of dy xhat) / length). dy is
// asked for a quad ahead where it does not stay.
#ifndef WD_OPS_NORM_CLUSTERS_BACKWARD_CUH
#define WD_OPS_NORM_CLUSTERS_BACKWARD_CUH

#include "ops/norm/norm_clusters_device.cuh"

namespace {

// dx = dy factor - (x - mean) slope - level; of two bytes an element, which say as much, the mean is 0, and in the level.
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
__device__ __forceinline__ void look_at_quads(const uint4 (&x)[QUAD], const uint4 (&dy)[QUAD],
                                              float mean, float2 &sums, float2 &products)
{
#pragma unroll
    for (uint32_t v = 0; v < QUAD; ++v) look_at_both<T>(x[v], dy[v], mean, sums, products);
}

template <class T>
__device__ __forceinline__ void put_both(void *dx, uint32_t to, const uint4 &x, const uint4 &dy,
                                         const cluster_slopes &g)
{
    float out[RUN<T>], given[RUN<T>];
    widen_unit<T>(out, x);
    widen_unit<T>(given, dy);
#pragma unroll
    for (int i = 0; i < RUN<T>; ++i)
        out[i] = fmaf(-g.slope, sizeof(T) == 2 ? out[i] : out[i] - g.mean,
                      fmaf(given[i], g.factor, -g.level));
    put_unit<T>(dx, to, out);
}
template <class T>
__device__ __forceinline__ void put_quads(void *dx, const quad_places &p, const uint4 (&x)[QUAD],
                                          const uint4 (&dy)[QUAD], const cluster_slopes &g)
{
#pragma unroll
    for (uint32_t v = 0; v < QUAD; ++v) put_both<T>(dx, p.at[v], x[v], dy[v], g);
}

// dy of a thread's units that x is kept of: in shared memory, or from memory a quad ahead in registers, behind the last one
// with zeros.
struct cluster_dy {
    const uint4 *places;
    uint32_t share;
    uint4 ahead[QUAD];
};

template <bool AGAIN>
__device__ __forceinline__ void ask_dy(const norm_clusters_args &a, const cluster_seat &s,
                                       cluster_dy &dy, uint32_t quad)
{
    if (quad > s.quads || (quad < s.quads && quad < a.dy_quads)) return;
    const quad_places p = places_of(a, s, dy.share, quad * QUAD);
    if (quad < s.quads) load_quad<AGAIN, true>(dy.ahead, a.dy, p);
    else load_quad<AGAIN, false>(dy.ahead, a.dy, p, quad * QUAD, s.kept);
}

template <bool AGAIN>
__device__ __forceinline__ void take_dy(const norm_clusters_args &a, const cluster_seat &s,
                                        uint4 (&to)[QUAD], cluster_dy &dy, uint32_t quad)
{
    if (quad < a.dy_quads) {
        take_quad(to, dy.places + quad * QUAD_UNITS);
    } else {
#pragma unroll
        for (uint32_t i = 0; i < QUAD; ++i) to[i] = dy.ahead[i];
    }
    ask_dy<AGAIN>(a, s, dy, quad + 1);
}

__device__ __forceinline__ void blend(const norm_clusters_args &a, float *to, double value)
{
    double result = a.alpha_param != 0.0 ? a.alpha_param * value : 0.0;
    if (a.beta_param != 0.0) result += a.beta_param * *to;
    *to = (float)result;
}

template <class T> __device__ __forceinline__ void backward(const norm_clusters_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 // before, nobody launches it
    __shared__ cluster_room room;
    WD_DYNAMIC_SHARED(uint4, places);
    const cluster_seat s = cluster_seat_of(a);
    uint4 *const mine = places + threadIdx.x;
    uint4 *const mine_dy = single_of(mine, a.kept);
    uint32_t share = blockIdx.x / a.cluster;
    uint4 held[HELD][QUAD];
    begin_cluster(room);
    wd_wait_for_previous();
#pragma unroll
    for (uint32_t q = 0; q < HELD; ++q) {
        if (q < s.quads) load_quad<false, true>(held[q], a.x, places_of(a, s, share, q * QUAD));
    }
    for (uint32_t q = 0; q < s.quads; ++q) {
        const quad_places p = places_of(a, s, share, q * QUAD);
        if (q >= HELD) copy_quad(mine + (q - HELD) * QUAD_UNITS, a.x, p);
        if (q < a.dy_quads) copy_quad(mine_dy + q * QUAD_UNITS, a.dy, p);
        wd_copies_end();
    }
    for (uint32_t u = s.quads * QUAD; u < s.kept; ++u) copy_single(a, s, mine, a.x, share, u);
    wd_copies_end();
#pragma unroll 1
    for (uint32_t turn = 0; share < a.shares; ++turn, share += s.step) {
        const float mean = a.given_mean ? a.given_mean[share] : 0.0f;
        const float inv_std = a.given_inv_std[share];
        const uint32_t bits = param_bits(a.scale, share % a.groups);
        float2 sums = make_float2(0.0f, 0.0f), products = sums;
        cluster_dy dy;
        dy.share = share;
        dy.places = mine_dy;
        ask_dy<true>(a, s, dy, 0);
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            uint4 given[QUAD];
            if (q >= s.quads) continue;
            if (q < a.dy_quads) wait_for_quad(s.quads - q);
            take_dy<true>(a, s, given, dy, q);
            look_at_quads<T>(held[q], given, mean, sums, products);
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < s.quads; ++q) {
            uint4 some[QUAD], given[QUAD];
            wait_for_quad(s.quads - q);
            take_dy<true>(a, s, given, dy, q);
            take_quad(some, mine + (q - HELD) * QUAD_UNITS);
            look_at_quads<T>(some, given, mean, sums, products);
        }
        wait_for_quad(0);
#pragma unroll
        for (uint32_t v = 0; v < QUAD - 1; ++v) {
            const uint32_t u = s.quads * QUAD + v;
            if (u < s.kept)
                look_at_both<T>(*single_of(mine, u), dy.ahead[v], mean, sums, products);
        }
#pragma unroll 1
        for (uint32_t u = s.kept; u < s.count; u += QUAD) {
            const quad_places p = places_of(a, s, share, u);
            uint4 some[QUAD], given[QUAD];
            load_quad<true, false>(some, a.x, p, u, s.count);
            load_quad<true, false>(given, a.dy, p, u, s.count);
#pragma unroll
            for (uint32_t v = 0; v < QUAD; ++v) {
                if (u + v < s.count) look_at_both<T>(some[v], given[v], mean, sums, products);
            }
        }
        ask_dy<false>(a, s, dy, 0); // while blocks meet
        const pair all =
            sums_of_cluster(a, s.rank, room, turn, sums.x + sums.y, products.x + products.y);
        const float factor = inv_std * (a.scale.data ? param_of(a.scale, bits) : 1.0f);
        cluster_slopes g = {mean, factor,
                            (float)(all.second * a.inverse) * inv_std * inv_std * factor,
                            (float)(all.first * a.inverse) * factor};
        if (sizeof(T) == 2) g.level = fmaf(-mean, g.slope, g.level);
        if (threadIdx.x == 0 && s.rank == 0) {
            if (a.found) a.found[share] = {(float)all.first, (float)(all.second * inv_std)};
            if (a.dscale) {
                blend(a, a.dscale + share, all.second * inv_std);
                blend(a, a.dbias + share, all.first);
            }
        }
        const bool more = share + s.step < a.shares;
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            const quad_places p = places_of(a, s, share, q * QUAD);
            uint4 given[QUAD];
            if (q >= s.quads) continue;
            take_dy<false>(a, s, given, dy, q);
            put_quads<T>(a.y, p, held[q], given, g);
            if (more) load_quad<false, true>(held[q], a.x, places_after(a, s, p));
            if (more && q < a.dy_quads)
                copy_quad(mine_dy + q * QUAD_UNITS, a.dy, places_after(a, s, p));
            wd_copies_end();
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < s.quads; ++q) {
            uint4 *place = mine + (q - HELD) * QUAD_UNITS;
            const quad_places p = places_of(a, s, share, q * QUAD);
            uint4 some[QUAD], given[QUAD];
            take_quad(some, place);
            take_dy<false>(a, s, given, dy, q);
            put_quads<T>(a.y, p, some, given, g);
            if (more) copy_quad(place, a.x, places_after(a, s, p));
            if (more && q < a.dy_quads)
                copy_quad(mine_dy + q * QUAD_UNITS, a.dy, places_after(a, s, p));
            wd_copies_end();
        }
#pragma unroll
        for (uint32_t v = 0; v < QUAD - 1; ++v) {
            const uint32_t u = s.quads * QUAD + v;
            if (u >= s.kept) continue;
            put_both<T>(a.y, place_of(a, share, s.begin + u * ACROSS), *single_of(mine, u),
                        dy.ahead[v], g);
            if (more) copy_single(a, s, mine, a.x, share + s.step, u);
        }
        wd_copies_end();
#pragma unroll 1
        for (uint32_t u = s.kept; u < s.count; u += QUAD) {
            const quad_places p = places_of(a, s, share, u);
            uint4 some[QUAD], given[QUAD];
            load_quad<false, false>(some, a.x, p, u, s.count);
            load_quad<false, false>(given, a.dy, p, u, s.count);
#pragma unroll
            for (uint32_t v = 0; v < QUAD; ++v) {
                if (u + v < s.count) put_both<T>(a.y, p.at[v], some[v], given[v], g);
            }
        }
    }
#endif
}

} // namespace

#endif
