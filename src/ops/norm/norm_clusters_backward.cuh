// SPDX-License-Identifier: Apache-2.0
//
// Gradients of instance norm and batch norm by norm_clusters. dx = inv_std scale (dy - (sum of dy + xhat sum of dy xhat) / length). dy is
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

// To sums of dy and of dy (x - mean), even and odd elements apart. Not WHOLE: of as many units as are left.
template <class T, bool WHOLE>
__device__ __forceinline__ void look_at_both(const uint4 (&x)[QUAD], const uint4 (&dy)[QUAD],
                                             int left, float mean, float2 &sums, float2 &products)
{
#pragma unroll
    for (int v = 0; v < (int)QUAD; ++v) {
        if (!WHOLE && v >= left) continue;
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

template <class T, bool WHOLE>
__device__ __forceinline__ void put_both(void *dx, const uint4 (&x)[QUAD], const uint4 (&dy)[QUAD],
                                         const quad_places &p, uint32_t quad, uint32_t count,
                                         const cluster_slopes &g)
{
#pragma unroll
    for (uint32_t v = 0; v < QUAD; ++v) {
        float out[RUN<T>], given[RUN<T>];
        if (!WHOLE && quad * QUAD + v >= count) continue;
        widen_unit<T>(out, x[v]);
        widen_unit<T>(given, dy[v]);
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i)
            out[i] = fmaf(-g.slope, sizeof(T) == 2 ? out[i] : out[i] - g.mean,
                          fmaf(given[i], g.factor, -g.level));
        put_unit<T>(dx, p.at[v], out);
    }
}

// dy of the quads that x is kept of: in shared memory, or from memory a quad ahead in registers.
struct cluster_dy {
    const uint4 *places;
    uint32_t share;
    uint4 ahead[QUAD];
};

template <bool AGAIN>
__device__ __forceinline__ void ask_dy(const norm_clusters_args &a, const share_seat &s,
                                       cluster_dy &dy, uint32_t quad)
{
    if (quad >= a.cut.second_quads && quad < s.kept)
        load_quad<AGAIN, true>(dy.ahead, a.dy, places_of(a, s, dy.share, quad));
}

// What has been asked for.
template <bool AGAIN>
__device__ __forceinline__ void take_dy(const norm_clusters_args &a, const share_seat &s,
                                        uint4 (&to)[QUAD], cluster_dy &dy, uint32_t quad)
{
    if (quad < a.cut.second_quads) {
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

// What is added up of a channel stays between its shares.
struct __align__(128) gradient_room
{
    cluster_room of;
    pair sums;
};

// By one thread, of the share that is the channel's `with`-th: dbias and dscale.
__device__ __forceinline__ void leave_params(const norm_clusters_args &a, gradient_room &room,
                                             uint32_t share, uint32_t with, pair all)
{
    if (a.found) a.found[share] = {(float)all.first, (float)all.second};
    if (!a.dscale) return;
    if (with > 0) all = {room.sums.first + all.first, room.sums.second + all.second};
    if (with + 1 < a.together) {
        room.sums = all;
        return;
    }
    blend(a, a.dscale + share % a.groups, all.second);
    blend(a, a.dbias + share % a.groups, all.first);
}

template <class T> __device__ __forceinline__ void backward(const norm_clusters_args &a)
{
    __shared__ gradient_room gradient;
    cluster_room &room = gradient.of;
    WD_DYNAMIC_SHARED(uint4, places);
    const share_seat s = share_seat_of(a.cut);
    uint4 *const mine = places + threadIdx.x;
    uint4 *const mine_dy = mine + (a.cut.quads - HELD) * QUAD_UNITS;
    uint32_t share = blockIdx.x / a.cut.cluster;
    uint4 held[HELD][QUAD];
    if (!a.board) begin_share(a.cut, room);
    wd_wait_for_previous();
#pragma unroll
    for (uint32_t q = 0; q < HELD; ++q) {
        if (q < s.kept) load_quad<false, true>(held[q], a.x, places_of(a, s, share, q));
    }
    for (uint32_t q = 0; q < s.kept; ++q) {
        const quad_places p = places_of(a, s, share, q);
        if (q >= HELD) copy_quad(mine + (q - HELD) * QUAD_UNITS, a.x, p);
        if (q < a.cut.second_quads) copy_quad(mine_dy + q * QUAD_UNITS, a.dy, p);
        wd_copies_end();
    }
    // shares of a channel lie a sample apart
    const uint32_t channels = a.cut.shares / a.together;
    const uint32_t turns =
        share < channels ? ((channels - share - 1) / s.step + 1) * a.together : 0;
    const uint32_t over = s.step - (a.together - 1) * a.groups;
    uint32_t with = 0, step = 0;
#pragma unroll 1
    for (uint32_t turn = 0; turn < turns; ++turn, share += step) {
        const bool ends = with + 1 == a.together; // the channel
        step = ends ? over : a.groups;
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
            if (q >= s.kept) continue;
            if (q < a.cut.second_quads) wait_for_quad(s.kept - 1 - q);
            take_dy<true>(a, s, given, dy, q);
            look_at_both<T, true>(held[q], given, 0, mean, sums, products);
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < s.kept; ++q) {
            uint4 some[QUAD], given[QUAD];
            wait_for_quad(s.kept - 1 - q);
            take_dy<true>(a, s, given, dy, q);
            take_quad(some, mine + (q - HELD) * QUAD_UNITS);
            look_at_both<T, true>(some, given, 0, mean, sums, products);
        }
#pragma unroll 1
        for (uint32_t q = s.kept; q * QUAD < s.count; ++q) {
            uint4 some[QUAD], given[QUAD];
            const quad_places p = places_of(a, s, share, q);
            load_quad<true, false>(some, a.x, p, q, s.count);
            load_quad<true, false>(given, a.dy, p, q, s.count);
            look_at_both<T, false>(some, given, (int)(s.count - q * QUAD), mean, sums, products);
        }
        ask_dy<false>(a, s, dy, 0); // while blocks meet
        const bool more = turn + 1 < turns;
        const pair all =
            sums_of_cluster(a, s.rank, room, turn, sums.x + sums.y, products.x + products.y, !more);
        const float factor = inv_std * (a.scale.data ? param_of(a.scale, bits) : 1.0f);
        cluster_slopes g = {mean, factor,
                            (float)(all.second * a.inverse) * inv_std * inv_std * factor,
                            (float)(all.first * a.inverse) * factor};
        if (sizeof(T) == 2) g.level = fmaf(-mean, g.slope, g.level);
        if (threadIdx.x == 0 && s.rank == 0)
            leave_params(a, gradient, share, with, {all.first, all.second * inv_std});
        with = ends ? 0 : with + 1;
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            uint4 given[QUAD];
            const quad_places p = places_of(a, s, share, q);
            if (q >= s.kept) continue;
            take_dy<false>(a, s, given, dy, q);
            put_both<T, true>(a.y, held[q], given, p, q, s.count, g);
            if (more) load_quad<false, true>(held[q], a.x, places_after(a, step, p));
            if (more && q < a.cut.second_quads)
                copy_quad(mine_dy + q * QUAD_UNITS, a.dy, places_after(a, step, p));
            wd_copies_end();
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < s.kept; ++q) {
            uint4 *place = mine + (q - HELD) * QUAD_UNITS;
            const quad_places p = places_of(a, s, share, q);
            uint4 some[QUAD], given[QUAD];
            take_quad(some, place);
            take_dy<false>(a, s, given, dy, q);
            put_both<T, true>(a.y, some, given, p, q, s.count, g);
            if (more) copy_quad(place, a.x, places_after(a, step, p));
            if (more && q < a.cut.second_quads)
                copy_quad(mine_dy + q * QUAD_UNITS, a.dy, places_after(a, step, p));
            wd_copies_end();
        }
#pragma unroll 1
        for (uint32_t q = s.kept; q * QUAD < s.count; ++q) {
            uint4 some[QUAD], given[QUAD];
            const quad_places p = places_of(a, s, share, q);
            load_quad<false, false>(some, a.x, p, q, s.count);
            load_quad<false, false>(given, a.dy, p, q, s.count);
            put_both<T, false>(a.y, some, given, p, q, s.count, g);
        }
    }
}

} // namespace

#endif
