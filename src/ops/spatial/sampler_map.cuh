// SPDX-License-Identifier: Apache-2.0
//
// The affine map that an image's grid is, or nearly so: from three of its corners, and how far off any place is. See
// sampler_affine.cuh.
#ifndef WD_OPS_SPATIAL_SAMPLER_MAP_CUH
#define WD_OPS_SPATIAL_SAMPLER_MAP_CUH

#include "gpu/device/prefetch.cuh"
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
    const float *at = places + 2 * (int64_t)number;
    return looked_at(a,
                     a.pairs ? *reinterpret_cast<const float2 *>(at) : make_float2(at[0], at[1]));
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
    const float turned = 1 / (xq * yp - xp * yq);
    m.qx = yp * turned;
    m.qy = -xp * turned;
    m.px = -yq * turned;
    m.py = xq * turned;
    m.q0 = -(m.qx * first.x + m.qy * first.y);
    m.p0 = -(m.px * first.x + m.py * first.y);
}

// Of a part's places, number `number` and later: those of FIT_AHEAD turns, a line a thread, come to the second-level cache
// while others are looked at.
enum { FIT_EACH = 4, FIT_STEP = SPATIAL_PARTS * SPATIAL_THREADS, FIT_AHEAD = 4 };
__device__ __forceinline__ void ask_for_places(const float *places, int number, int count,
                                               uint32_t line)
{
    constexpr uint32_t LINES =
        SPATIAL_THREADS * 8 / WD_LINE; // of the block's places that are neighbours
    const int first = number + (int)(line / LINES * FIT_STEP + line % LINES * (WD_LINE / 8));
    if (first < count) wd_prefetch_line(places + 2 * (int64_t)first);
}

// SPATIAL_PARTS blocks an image: its map, how far off places are, and the gradients of those that see
// nothing.
__device__ __forceinline__ void fit_maps(const sampler_affine_args &args)
{
    constexpr int EACH = FIT_EACH, WARPS = SPATIAL_THREADS / 32;
    __shared__ int off_of[2][WARPS];
    const sampler_vector_args &a = args.all;
    const uint32_t in_batch = blockIdx.x / SPATIAL_PARTS, part = blockIdx.x % SPATIAL_PARTS;
    const int count = a.rows * a.columns;
    int off[2] = {0, 0};
    sampler_map m;
    spot at;
    wd_wait_for_previous();
    at.n = a.first_image + in_batch;
    const float *places = grid_of(a, at.n);
    int first = (int)(part * SPATIAL_THREADS);
    ask_for_places(places, first, count, threadIdx.x);
    fit_map(a, places, m);
#pragma unroll 1
    for (; first < count; first += EACH * FIT_STEP) {
        const int i = first + (int)threadIdx.x;
        uint32_t lost = 0; // places that see nothing
        float2 s[EACH];
        if (threadIdx.x < SPATIAL_THREADS / FIT_AHEAD) {
            ask_for_places(places, first + FIT_AHEAD * EACH * FIT_STEP, count, threadIdx.x);
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            s[e] = looked_at(a, places, min(i + e * FIT_STEP, count - 1));
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            uint32_t p = (uint32_t)min(i + e * FIT_STEP, count - 1);
            const uint32_t q = take_rest(p, a.by_line);
            const float by_q = m.qx * s[e].x + m.qy * s[e].y + (m.q0 - (float)q);
            const float by_p = m.px * s[e].x + m.py * s[e].y + (m.p0 - (float)p);
            off[0] = max(off[0], __float_as_int(fabsf(by_p))); // that of NaN is the largest
            off[1] = max(off[1], __float_as_int(fabsf(by_q)));
            const bool seen =
                s[e].x > -1 && s[e].x < (float)a.width && s[e].y > -1 && s[e].y < (float)a.height;
            lost |= (uint32_t)!seen << e;
        }
#pragma unroll 1
        for (int e = 0; lost; ++e, lost >>= 1) {
            uint32_t p = (uint32_t)(i + e * FIT_STEP);
            if (!(lost & 1) || (int)p >= count) continue;
            sight<float> k;
            k.template look<float>(a, (int64_t)at.n * count + p);
            at.q = (int)take_rest(p, a.by_line);
            at.p = (int)p;
            put_lost<float>(a, at, k);
        }
    }
#pragma unroll
    for (int d = 0; d < 2; ++d) {
        off[d] = __reduce_max_sync(0xffffffffu, off[d]);
        if (threadIdx.x % 32 == 0) off_of[d][threadIdx.x / 32] = off[d];
    }
    __syncthreads();
    if (threadIdx.x >= 2) return;
    sampler_map *to = static_cast<sampler_map *>(args.maps) + in_batch;
    int most = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) most = max(most, off_of[threadIdx.x][w]);
    to->off[threadIdx.x][part] = most;
    if (part > 0 || threadIdx.x > 0) return;
    to->px = m.px;
    to->py = m.py;
    to->p0 = m.p0;
    to->qx = m.qx;
    to->qy = m.qy;
    to->q0 = m.q0;
}

} // namespace

#endif
