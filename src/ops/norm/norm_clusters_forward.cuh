// SPDX-License-Identifier: Apache-2.0
//
// norm_clusters in training, of batch norm too, and in inference that computes statistics. Sums are of differences from the middle of three
// of the share's elements.
#ifndef WD_OPS_NORM_CLUSTERS_FORWARD_CUH
#define WD_OPS_NORM_CLUSTERS_FORWARD_CUH

#include "ops/norm/norm_clusters_device.cuh"
#include "ops/norm/norm_middle.cuh"

namespace {

// y = (x - mean) slope + base
struct cluster_line {
    float slope;
    float base;
};

static_assert(sizeof(cluster_room) + NORM_CLUSTERS_EACH * sizeof(cluster_line) <= WD_SHARE_FIXED,
              "what the cut leaves for it");

// What is asked for of a share before its turn.
template <class T> struct cluster_known {
    T some[3];
};

template <class T>
__device__ __forceinline__ cluster_known<T> known_of(const norm_clusters_args &a, uint32_t share)
{
    cluster_known<T> k;
    const T *x = static_cast<const T *>(a.x);
    // off the edges of images, where padding makes elements alike
    k.some[0] = x[(int64_t)place_of(a, share, a.cut.units / 8 + a.cut.units / 977) * RUN<T>];
    k.some[1] = x[(int64_t)place_of(a, share, a.cut.units / 2 + a.cut.units / 613) * RUN<T>];
    k.some[2] = x[(int64_t)place_of(a, share, a.cut.units / 8 * 7 - a.cut.units / 811) * RUN<T>];
    return k;
}

// 0 where nothing can be taken from the middle one: the mean of what has an infinity is none.
template <class T> __device__ __forceinline__ float pivot_of(const cluster_known<T> &k)
{
    const float middle =
        wd_middle_of(wd_widen(k.some[0]), wd_widen(k.some[1]), wd_widen(k.some[2]));
    return fabsf(middle) <= 3.0e38f ? middle : 0.0f;
}

// A running average, of a number that it moves to.
__device__ __forceinline__ float moved(const norm_clusters_args &a, float old, double to)
{
    const double share = a.factor != 0.0 ? a.factor * to : 0.0;
    return (float)(a.factor != 1.0 ? share + (1.0 - a.factor) * old : share);
}

// To sums of even and odd elements, a quad's by themselves first: of one long sum in single precision what rounding cuts off adds
// up, since numbers of two bytes lie on a grid. Not WHOLE: of as many units as are left.
template <class T, bool WHOLE>
__device__ __forceinline__ void look_at_quad(const uint4 (&x)[QUAD], int left, float pivot,
                                             float2 &sums, float2 &squares)
{
    float2 own = make_float2(0.0f, 0.0f), own_squares = own;
#pragma unroll
    for (int v = 0; v < (int)QUAD; ++v) {
        if (!WHOLE && v >= left) continue;
        float one[RUN<T>];
        widen_unit<T>(one, x[v]);
#pragma unroll
        for (int i = 0; i < RUN<T>; i += 2) {
            const float even = one[i] - pivot, odd = one[i + 1] - pivot;
            own.x += even, own.y += odd;
            own_squares.x = fmaf(even, even, own_squares.x);
            own_squares.y = fmaf(odd, odd, own_squares.y);
        }
    }
    sums.x += own.x, sums.y += own.y;
    squares.x += own_squares.x, squares.y += own_squares.y;
}

// Outputs of a quad. Of a share of several channels a unit's formula is in the table.
template <class T, bool WHOLE>
__device__ __forceinline__ void put_quad(const norm_clusters_args &a, const quad_places &p,
                                         const uint4 (&x)[QUAD], const share_seat &s, uint32_t quad,
                                         float mean, cluster_line line, const cluster_line *table)
{
#pragma unroll
    for (uint32_t v = 0; v < QUAD; ++v) {
        const uint32_t at = quad * QUAD + v;
        float out[RUN<T>];
        if (!WHOLE && at >= s.count) continue;
        widen_unit<T>(out, x[v]);
        if (a.each > 1) line = table[wd_fastdiv_quotient(s.begin + at * ACROSS, a.by_plane)];
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) out[i] = fmaf(out[i] - mean, line.slope, line.base);
        put_unit<T>(a.y, p.at[v], out);
    }
}

template <class T> __device__ __forceinline__ void forward(const norm_clusters_args &a)
{
    __shared__ cluster_room room;
    __shared__ __align__(128) cluster_line table[NORM_CLUSTERS_EACH];
    WD_DYNAMIC_SHARED(uint4, places);
    const share_seat s = share_seat_of(a.cut);
    uint4 *const mine = places + threadIdx.x;
    uint32_t share = blockIdx.x / a.cut.cluster;
    uint4 held[HELD][QUAD];
    if (!a.board) begin_share(a.cut, room);
    wd_wait_for_previous();
    cluster_known<T> known = known_of<T>(a, share);
#pragma unroll
    for (uint32_t q = 0; q < HELD; ++q) {
        if (q < s.kept) load_quad<false, true>(held[q], a.x, places_of(a, s, share, q));
    }
    for (uint32_t q = HELD; q < s.kept; ++q) {
        copy_quad(mine + (q - HELD) * QUAD_UNITS, a.x, places_of(a, s, share, q));
        wd_copies_end();
    }
#pragma unroll 1
    for (uint32_t turn = 0; share < a.cut.shares; ++turn, share += s.step) {
        const float pivot = pivot_of<T>(known);
        const uint32_t first = (share % a.groups) * a.each, param = first + threadIdx.x % a.each;
        const uint32_t scale = param_bits(a.scale, param), bias = param_bits(a.bias, param);
        const bool teller = threadIdx.x == 0 && s.rank == 0;
        float old_mean = 0.0f, old_var = 0.0f;
        if (teller && a.running_mean && a.factor != 1.0)
            old_mean = a.running_mean[share], old_var = a.running_var[share];
        float2 sums = make_float2(0.0f, 0.0f), squares = sums;
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            if (q < s.kept) look_at_quad<T, true>(held[q], 0, pivot, sums, squares);
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < s.kept; ++q) {
            uint4 some[QUAD];
            wait_for_quad(s.kept - 1 - q);
            take_quad(some, mine + (q - HELD) * QUAD_UNITS);
            look_at_quad<T, true>(some, 0, pivot, sums, squares);
        }
#pragma unroll 1
        for (uint32_t q = s.kept; q * QUAD < s.count; ++q) {
            uint4 some[QUAD];
            load_quad<true, false>(some, a.x, places_of(a, s, share, q), q, s.count);
            look_at_quad<T, false>(some, (int)(s.count - q * QUAD), pivot, sums, squares);
        }
        const bool more = share + s.step < a.cut.shares;
        const pair all =
            sums_of_cluster(a, s.rank, room, turn, sums.x + sums.y, squares.x + squares.y, !more);
        const numbers n = numbers_of(a.inverse, a.epsilon, all, pivot);
        const float factor = a.scale.data ? param_of(a.scale, scale) : 1.0f;
        const cluster_line line = {n.inv_std * factor,
                                   fmaf(n.rest, factor, param_of(a.bias, bias))};
        if (teller) {
            const double distance = all.first * a.inverse;
            // of an infinity batch norm's is one
            if (a.mean) a.mean[share] = a.batch ? (float)(pivot + distance) : n.mean;
            if (a.inv_std) a.inv_std[share] = n.inv_std;
            if (a.running_mean) {
                double unbiased = (all.second - all.first * distance) * a.less;
                if (unbiased < 0.0) unbiased = 0.0; // a NaN stays one
                a.running_mean[share] = moved(a, old_mean, pivot + distance);
                a.running_var[share] = moved(a, old_var, unbiased);
            }
        }
        if (a.each > 1) {
            // all have met since they used the last share's
            if (threadIdx.x < a.each) table[threadIdx.x] = line;
            __syncthreads();
        }
        if (more) known = known_of<T>(a, share + s.step);
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            const quad_places p = places_of(a, s, share, q);
            if (q >= s.kept) continue;
            put_quad<T, true>(a, p, held[q], s, q, n.mean, line, table);
            if (more) load_quad<false, true>(held[q], a.x, places_after(a, s.step, p));
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < s.kept; ++q) {
            uint4 *place = mine + (q - HELD) * QUAD_UNITS;
            const quad_places p = places_of(a, s, share, q);
            uint4 some[QUAD];
            take_quad(some, place);
            put_quad<T, true>(a, p, some, s, q, n.mean, line, table);
            if (more) copy_quad(place, a.x, places_after(a, s.step, p));
            wd_copies_end();
        }
#pragma unroll 1
        for (uint32_t q = s.kept; q * QUAD < s.count; ++q) {
            const quad_places p = places_of(a, s, share, q);
            uint4 some[QUAD];
            load_quad<false, false>(some, a.x, p, q, s.count);
            put_quad<T, false>(a, p, some, s, q, n.mean, line, table);
        }
    }
}

} // namespace

#endif
