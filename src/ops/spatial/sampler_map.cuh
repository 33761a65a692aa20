// SPDX-License-Identifier: Apache-2.0
//
// The affine map that an image's grid is, or nearly so: from three of its corners, and how far off places are, which
// some of them say and all are held to. See sampler_affine.cuh.
#ifndef WD_OPS_SPATIAL_SAMPLER_MAP_CUH
#define WD_OPS_SPATIAL_SAMPLER_MAP_CUH

#include "gpu/device/opaque.cuh"
#include "ops/spatial/sampler_back_tile.cuh"

namespace {

// What the grid says of a place.
__device__ __forceinline__ float2 numbers_of(const sampler_vector_args &a, const float *places,
                                             int number)
{
    places += 2 * (int64_t)number;
    return a.pairs ? *reinterpret_cast<const float2 *>(places) : make_float2(places[0], places[1]);
}

// What a place looks at, as sight::coordinate has it.
__device__ __forceinline__ float2 looked_at(const sampler_vector_args &a, float2 s)
{
    s.x = (s.x + 1) * a.scale_w32;
    s.y = (s.y + 1) * a.scale_h32;
    return s;
}
__device__ __forceinline__ float2 looked_at(const sampler_vector_args &a, const float *places,
                                            int number)
{
    return looked_at(a, numbers_of(a, places, number));
}

__device__ __forceinline__ const float *grid_of(const sampler_vector_args &a, uint32_t n)
{
    return static_cast<const float *>(a.grid) + 2 * ((int64_t)n * a.rows * a.columns);
}

// From an image's coordinates to the grid's, and back: that which is right at three corners. Numbers that are not
// finite come out where these lie on a line.
__device__ __forceinline__ void fit_map(const sampler_vector_args &a, const float *places,
                                        sampler_map &m)
{
    const float2 first = looked_at(a, places, 0), across = looked_at(a, places, a.columns - 1),
                 down = looked_at(a, places, (a.rows - 1) * a.columns);
    const float columns = (float)(a.columns - 1), rows = (float)(a.rows - 1);
    m.x0 = first.x;
    m.y0 = first.y;
    m.xq = (across.x - first.x) / columns;
    m.yq = (across.y - first.y) / columns;
    m.xp = (down.x - first.x) / rows;
    m.yp = (down.y - first.y) / rows;
    const float area = m.xq * m.yp - m.xp * m.yq, turned = 1 / area;
    m.qx = m.yp * turned;
    m.qy = -m.xp * turned;
    m.px = -m.yq * turned;
    m.py = m.xq * turned;
    m.q0 = -(m.qx * first.x + m.qy * first.y);
    m.p0 = -(m.px * first.x + m.py * first.y);
    m.along = fabsf(m.xq) >= fabsf(m.yq);
    m.first = m.along ? first.x : first.y;
    m.per_step = 1 / (m.along ? m.xq : m.yq);
    m.slope = -(m.along ? m.xp : m.yp) * m.per_step;
}
// What follows from how far off places are, in places. Whether they are so far apart, and the map so near to them, that what a
// warp takes at once has cells of its own, two neighbours of a row apart; and terms so small, both ways, that rounding them is
// less than what is left of that.
__device__ __forceinline__ void finish_map(const sampler_vector_args &a, sampler_map &m)
{
    constexpr float TERMS = 65536, BORDER = 1.0f / 16;
    const float columns = (float)a.columns, rows = (float)a.rows;
    const float xq = fabsf(m.xq), xp = fabsf(m.xp), yq = fabsf(m.yq), yp = fabsf(m.yp);
    const float reach = fmaxf(fmaxf((float)a.width, fabsf(m.x0) + xq * columns + xp * rows),
                              fmaxf((float)a.height, fabsf(m.y0) + yq * columns + yp * rows));
    const float terms = reach * fmaxf(fabsf(m.px) + fabsf(m.py), fabsf(m.qx) + fabsf(m.qy));
    const float area = fabsf(m.px * m.qy - m.py * m.qx);
    const float off = fmaxf(xq * m.off_q + xp * m.off_p, yq * m.off_q + yp * m.off_p);
    m.margin = fabsf(m.slope) * m.off_p + m.off_q;
    m.within = off + BORDER;
    // Rows so far apart have no elements in common.
    const float apart = ceilf((2 + 2 * off) * (xq + yq) * area);
    m.mapped = m.off_p < 1 && m.off_q < 1 && 2 * fmaxf(xq, yq) - 2 * off >= 1 &&
               apart <= AFFINE_SIDE && terms <= TERMS;
    m.apart = m.mapped ? max((int)apart, 2) : 2;
    m.marked = !m.mapped;
}

// How far place `number` is from where the map has it: rows, columns.
__device__ __forceinline__ float2 off_map(const sampler_vector_args &a, const sampler_map &m,
                                          const float2 &s, int number)
{
    uint32_t p = (uint32_t)number;
    const uint32_t q = take_rest(p, a.by_line);
    return make_float2(fabsf(m.px * s.x + m.py * s.y + (m.p0 - (float)p)),
                       fabsf(m.qx * s.x + m.qy * s.y + (m.q0 - (float)q)));
}

// A block an image: its map, and from some places how far off all may be, which is not known before all are looked at.
__device__ __forceinline__ void fit_maps(const sampler_affine_args &args)
{
    constexpr int EACH = 4, WARPS = SPATIAL_THREADS / 32;
    __shared__ int off_of[2][WARPS];
    const sampler_vector_args &a = args.all;
    const int64_t count = (int64_t)a.rows * a.columns;
    int off[2] = {0, 0};
    sampler_map m;
    wd_wait_for_previous();
    const float *places = grid_of(a, a.first_image + blockIdx.x);
    float2 s[EACH];
    int number[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        number[e] = (int)((threadIdx.x + e * SPATIAL_THREADS) * count / (EACH * SPATIAL_THREADS));
        s[e] = looked_at(a, places, number[e]);
    }
    fit_map(a, places, m);
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const float2 by = off_map(a, m, s[e], number[e]);
        off[0] = max(off[0], __float_as_int(by.x)); // that of NaN is the largest
        off[1] = max(off[1], __float_as_int(by.y));
    }
#pragma unroll
    for (int d = 0; d < 2; ++d) {
        off[d] = __reduce_max_sync(0xffffffffu, off[d]);
        if (threadIdx.x % 32 == 0) off_of[d][threadIdx.x / 32] = off[d];
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        off[0] = max(off[0], off_of[0][w]);
        off[1] = max(off[1], off_of[1][w]);
    }
    const float more = 1.25f, rounding = 1.0f / 32; // of AFFINE_SIDE, in fp32
    m.off_p = more * __int_as_float(off[0]) + rounding;
    m.off_q = more * __int_as_float(off[1]) + rounding;
    finish_map(a, m);
    static_cast<sampler_map *>(args.maps)[blockIdx.x] = m;
}

// Written by a launch before; `marked` maybe by this one.
__device__ __forceinline__ sampler_map read_map(const sampler_map *from)
{
    constexpr int RUNS = sizeof(sampler_map) / sizeof(uint4);
    sampler_map m;
    static_assert(sizeof m == RUNS * sizeof(uint4), "whole runs");
    uint4 runs[RUNS];
    from = wd_opaque_global(from);
#pragma unroll
    for (int i = 0; i < RUNS; ++i) runs[i] = __ldcg(reinterpret_cast<const uint4 *>(from) + i);
    memcpy(&m, runs, sizeof m);
    return m;
}

// Whether an image of a batch of `images` is marked: the block asks together.
__device__ __forceinline__ bool any_marked(const sampler_map *maps, uint32_t images)
{
    __shared__ uint32_t marked;
    if (threadIdx.x == 0) marked = 0;
    __syncthreads();
#pragma unroll 1
    for (uint32_t n = threadIdx.x; n < images; n += SPATIAL_THREADS) {
        if (__ldcg(&maps[n].marked)) atomicAdd(&marked, 1u);
    }
    __syncthreads();
    return marked != 0;
}

// How far off a place may be, less than tiles are cut for, whose borders are rounded (finish_map).
constexpr float AFFINE_LESS = 1.0f / 64;

// What tiles do not look at themselves, a piece of a row a warp: places that may see nothing. Their gradients, and whether they
// are where the map has them; else it is marked. Where `all`, all places.
struct places_check {
    static constexpr int EACH = AFFINE_PIECE / 32, WARPS = SPATIAL_THREADS / 32;
    const sampler_vector_args &a;
    const sampler_map &m;
    sampler_map *map;
    uint32_t n;

    // Whether all places of a piece see the image, if they are no further off than they may be.
    __device__ __forceinline__ bool sees(uint32_t number) const
    {
        uint32_t row = number;
        const int from = (int)take_rest(row, a.by_chunk) * AFFINE_PIECE,
                  to = min(from + AFFINE_PIECE, a.columns) - 1;
        const float p = (float)(int)row, first = (float)from, last = (float)to;
        const float x = m.x0 + m.xp * p, y = m.y0 + m.yp * p;
        const float x1 = x + m.xq * first, x2 = x + m.xq * last;
        const float y1 = y + m.yq * first, y2 = y + m.yq * last;
        const float left = m.within - 1, right = (float)a.width - m.within,
                    bottom = (float)a.height - m.within;
        return (fminf(x1, x2) >= left) & (fmaxf(x1, x2) <= right) & (fminf(y1, y2) >= left) &
               (fmaxf(y1, y2) <= bottom);
    }
    __device__ __forceinline__ void look_at(uint32_t number) const
    {
        uint32_t row = number;
        const int from = (int)take_rest(row, a.by_chunk) * AFFINE_PIECE, p = (int)row;
        const float *const places = grid_of(a, n);
        bool near = true;
#pragma unroll 1
        for (int e = 0; e < EACH; ++e) {
            const int q = from + e * 32 + (int)threadIdx.x % 32;
            if (q >= a.columns) break;
            const float2 at = looked_at(a, places, p * a.columns + q);
            const float by_p = m.px * at.x + (m.py * at.y + (m.p0 - (float)p)),
                        by_q = m.qx * at.x + (m.qy * at.y + (m.q0 - (float)q));
            near &= (fabsf(by_p) <= m.off_p - AFFINE_LESS) & (fabsf(by_q) <= m.off_q - AFFINE_LESS);
            spot one;
            sight<float> k;
            one.n = n;
            one.p = p;
            one.q = q;
            k.template look<float>(a, one.number(a));
            if (!k.seen) put_lost<float>(a, one, k);
        }
        if (!near) map->marked = 1;
    }
    __device__ __forceinline__ void run(uint32_t part, uint32_t parts, bool all) const
    {
        const uint32_t count = (uint32_t)a.rows * a.by_chunk.divisor, step = parts * WARPS;
#pragma unroll 1
        for (uint32_t first = part * WARPS + threadIdx.x / 32; first < count; first += 32 * step) {
            const uint32_t number = first + threadIdx.x % 32 * step;
            uint32_t mask = wd_ballot(number < count && (all || !sees(number)));
#pragma unroll 1
            for (; mask; mask &= mask - 1) look_at(first + wd_lowest(mask) * step);
        }
    }
};

} // namespace

#endif
