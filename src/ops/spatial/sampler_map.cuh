// SPDX-License-Identifier: Apache-2.0
//
// The affine map that an image's grid is, or nearly so: from three of its corners, and how far off places are, which
// some of them say and all are held to. See sampler_affine.cuh.
#ifndef WD_OPS_SPATIAL_SAMPLER_MAP_CUH
#define WD_OPS_SPATIAL_SAMPLER_MAP_CUH

#include "ops/spatial/sampler_back_tile.cuh"

namespace {

// What a place looks at, as sight::coordinate has it, of what the grid says.
__device__ __forceinline__ float2 looked_at(const sampler_vector_args &a, float2 s)
{
    s.x = (s.x + 1) * a.scale_w32;
    s.y = (s.y + 1) * a.scale_h32;
    return s;
}
__device__ __forceinline__ float2 looked_at(const sampler_vector_args &a, const float *places,
                                            int number)
{
    return looked_at(a, *reinterpret_cast<const float2 *>(places + 2 * (int64_t)number));
}

__device__ __forceinline__ const float *grid_of(const sampler_vector_args &a, uint32_t n)
{
    return static_cast<const float *>(a.grid) + 2 * ((int64_t)n * a.rows * a.columns);
}

// From an image's coordinates to the grid's: that which is right at three corners. Numbers that are not
// finite come out where these lie on a line.
__device__ __forceinline__ void fit_map(const sampler_vector_args &a, const float *places,
                                        sampler_map &m)
{
    const float2 first = looked_at(a, places, 0), across = looked_at(a, places, a.columns - 1),
                 down = looked_at(a, places, (a.rows - 1) * a.columns);
    const float columns = (float)(a.columns - 1), rows = (float)(a.rows - 1);
    const float xq = (across.x - first.x) / columns, yq = (across.y - first.y) / columns;
    const float xp = (down.x - first.x) / rows, yp = (down.y - first.y) / rows;
    const float area = xq * yp - xp * yq, turned = 1 / area;
    m.qx = yp * turned;
    m.qy = -xp * turned;
    m.px = -yq * turned;
    m.py = xq * turned;
    m.q0 = -(m.qx * first.x + m.qy * first.y);
    m.p0 = -(m.px * first.x + m.py * first.y);
    m.along = fabsf(xq) >= fabsf(yq);
    m.first = m.along ? first.x : first.y;
    m.per_step = 1 / (m.along ? xq : yq);
    m.slope = -(m.along ? xp : yp) * m.per_step;
}
// What follows from how far off places are, in places. Whether they are so far apart, and the map so near to them, that what a
// warp takes at once has cells of its own, two neighbours of a row apart; and terms so small that rounding them is less than
// what places_check leaves.
__device__ __forceinline__ void finish_map(const sampler_vector_args &a, sampler_map &m)
{
    constexpr float TERMS = 65536;
    const float terms = fmaxf(fabsf(m.px), fabsf(m.qx)) * (float)a.width +
                        fmaxf(fabsf(m.py), fabsf(m.qy)) * (float)a.height;
    const float area = m.px * m.qy - m.py * m.qx, turned = fabsf(1 / area);
    // Steps of a place along its row and to the next row, in pixels.
    const float xq = fabsf(m.py) * turned, xp = fabsf(m.qy) * turned, yq = fabsf(m.px) * turned,
                yp = fabsf(m.qx) * turned;
    const float off = fmaxf(xq * m.off_q + xp * m.off_p, yq * m.off_q + yp * m.off_p);
    m.margin = fabsf(m.slope) * m.off_p + m.off_q;
    // Rows so far apart have no elements in common.
    const float apart = ceilf((2 + 2 * off) * (xq + yq) * fabsf(area));
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
    sampler_map m;
    static_assert(sizeof m == 4 * sizeof(uint4), "four at once");
    uint4 four[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) four[i] = __ldcg(reinterpret_cast<const uint4 *>(from) + i);
    memcpy(&m, four, sizeof m);
    return m;
}

// A part of an image's places, a warp a piece of a row at a time: marks the map if any is further off than it may be; and the
// gradients of those that see nothing. The first piece is asked for by the constructor.
struct places_check {
    static constexpr int EACH = 8, PIECE = EACH * 32, WARPS = SPATIAL_THREADS / 32;
    const sampler_vector_args &a;
    const uint32_t n, pieces;
    uint32_t number, step; // pieces
    int p, q;              // the thread's first place
    float2 s[EACH];        // what the grid says

    __device__ __forceinline__ places_check(const sampler_vector_args &args, uint32_t image,
                                            uint32_t part, uint32_t parts)
        : a(args), n(image), pieces((uint32_t)(args.columns + PIECE - 1) / PIECE),
          number(part * WARPS + threadIdx.x / 32), step(parts * WARPS)
    {
        ask();
    }
    __device__ __forceinline__ bool has(int e) const
    {
        return q + e * 32 < a.columns;
    }
    __device__ __forceinline__ void ask()
    {
        p = (int)(number / pieces);
        q = (int)(number % pieces) * PIECE + (int)threadIdx.x % 32;
        if (p >= a.rows) return;
        const float *const at = grid_of(a, n) + 2 * (int64_t)(p * a.columns + q);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (has(e)) s[e] = *reinterpret_cast<const float2 *>(at + 64 * e);
        }
    }
    __device__ __forceinline__ void run(const sampler_map &m, sampler_map *map)
    {
        const float right = (float)a.width, bottom = (float)a.height;
        // Less than tiles are cut for, whose borders are rounded (finish_map).
        constexpr float LESS = 1.0f / 64;
        const float most_p = m.off_p - LESS, most_q = m.off_q - LESS;
        bool near = true;
#pragma unroll 1
        while (p < a.rows) {
            const float off_p = m.p0 - (float)p, off_q = m.q0 - (float)q;
            uint32_t lost = 0; // places that see nothing
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                if (!has(e)) continue;
                const float2 at = looked_at(a, s[e]);
                const float by_p = m.px * at.x + (m.py * at.y + off_p),
                            by_q = m.qx * at.x + (m.qy * at.y + (off_q - (float)(32 * e)));
                const bool seen = (at.x > -1) & (at.x < right) & (at.y > -1) & (at.y < bottom);
                near &= (fabsf(by_p) <= most_p) & (fabsf(by_q) <= most_q);
                lost |= (uint32_t)!seen << e;
            }
#pragma unroll 1
            for (int e = 0; lost; ++e, lost >>= 1) {
                spot one;
                sight<float> k;
                if (!(lost & 1)) continue;
                one.n = n;
                one.q = q + e * 32;
                one.p = p;
                k.template look<float>(a, one.number(a));
                put_lost<float>(a, one, k);
            }
            number += step;
            ask();
        }
        if (!near) map->marked = 1;
    }
};

} // namespace

#endif
