// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients, without atomics on them. A block has a tile of the image, and collects the
// places whose cells touch it: from all places of a small grid, of others from the boxes (squares of
// the grid, whose extent in the image a first kernel finds) that come near. The places are sorted by
// cell, then by place, in shared memory; so the sums have one order. Then, a run of channels at a time, the
// gradients of these places and the image's tile are brought there: every element collects from the four
// cells around it, every place whose cell belongs to the tile adds up the image's steps there. Where more
// places look into a tile than there is room for, they come in portions.
#ifndef WD_OPS_SPATIAL_SAMPLER_BACK_CUH
#define WD_OPS_SPATIAL_SAMPLER_BACK_CUH

#include "ops/spatial/sampler_back_tile.cuh"

namespace {

// All places of a tile are in shared memory, few for each element: what is theirs stays in registers.
template <class T>
__device__ __forceinline__ void back_few(const back_tile<T> &tile, uint32_t count,
                                         stager<T, 2> &image)
{
    typedef typename accumulator<T>::type A;
    constexpr int P = pack_of<T>, M = SPATIAL_FEW;
    const sampler_vector_args &a = tile.a;
    uint32_t from[M];
    A share[M], steps[2][4];
    int corner[2], few = 0;
    bool owned[2];
    stager<T, 2> places;
    T *to;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int c = tile.own_cell() + r * tile.across;
        const uint32_t first = tile.begin[c], middle = tile.begin[c + 1], end = tile.begin[c + 2];
#pragma unroll
        for (int m = 0; m < M; ++m) {
            const uint32_t i = first + (uint32_t)(m - (r ? few : 0));
            if ((r && m < few) || i >= end) continue;
            from[m] = i;
            share[m] = tile.share_of(i, r, middle);
        }
        few += (int)(end - first);
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        const uint32_t i = threadIdx.x + m * SPATIAL_THREADS;
        owned[m] = i < count && tile.owns(i, corner[m]);
        places.from[m] = i < count ? tile.offset_of(i) : -2;
#pragma unroll
        for (int s = 0; s < 4; ++s) steps[m][s] = 0;
    }
    places.load(a.y, tile.channel_of(a.y, 0), a.channels);
    const bool in = tile.own_element(to, 0);
#pragma unroll 1
    for (int c = 0; c < a.channels; c += P) {
        A sums[P];
        __syncthreads();
        image.store(tile.x);
        places.store(tile.dy);
        __syncthreads();
        if (c + P < a.channels) {
            image.load(a.x, tile.channel_of(a.x, c + P), a.channels - c - P);
            places.load(a.y, tile.channel_of(a.y, c + P), a.channels - c - P);
        }
#pragma unroll
        for (int v = 0; v < P; ++v) sums[v] = 0;
#pragma unroll
        for (int m = 0; m < M; ++m) {
            if (m < few) tile.add(sums, share[m], from[m]);
        }
        if (in) put_pack<T>(a, a.dx, to, a.channels - c, sums);
        to += P * a.dx.channel;
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            if (owned[m]) tile.add_steps(threadIdx.x + m * SPATIAL_THREADS, corner[m], steps[m]);
        }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        if (owned[m]) tile.put_steps(threadIdx.x + m * SPATIAL_THREADS, steps[m]);
    }
}

// Any number of places: portions of them, for all channels of the image, then for slopes.
template <class T, int LINE>
__device__ __forceinline__ void back_many(back_tile<T, LINE> &tile, uint32_t count, uint32_t next)
{
    typedef typename accumulator<T>::type A;
    constexpr int P = back_tile<T, LINE>::P, U = 1; // four would be much code
    const sampler_vector_args &a = tile.a;
    const bool whole = next >= tile.candidates;
    const bool lost = tile.first && !a.boxes;
#pragma unroll 1
    for (int c = 0; c < a.channels; c += P) {
        A sums[P];
        T *to;
#pragma unroll
        for (int v = 0; v < P; ++v) sums[v] = 0;
        if (!whole && c > 0) {
            next = 0;
            count = tile.template collect<U>(next, false);
        }
#pragma unroll 1
        for (;;) {
            __syncthreads();
            tile.stage(count, c);
            __syncthreads();
            tile.collect_element(sums);
            if (next >= tile.candidates) break;
            count = tile.template collect<U>(next, c == 0 && lost);
        }
        if (tile.own_element(to, c)) put_pack<T, LINE == 0, P>(a, a.dx, to, a.channels - c, sums);
    }
#pragma unroll 1
    for (next = 0; next < tile.candidates;) {
        count = tile.template collect<U>(next, false);
#pragma unroll 1
        for (int c = 0; c < a.channels; c += P) {
            __syncthreads();
            tile.stage(count, c);
            __syncthreads();
#pragma unroll 1
            for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) {
                A steps[4], *kept = tile.slope + 4 * i;
                int corner;
                if (!tile.owns(i, corner)) continue;
#pragma unroll
                for (int s = 0; s < 4; ++s) steps[s] = c > 0 ? kept[s] : (A)0;
                tile.add_steps(i, corner, steps);
#pragma unroll
                for (int s = 0; s < 4; ++s) kept[s] = steps[s];
            }
        }
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) {
            int corner;
            if (tile.owns(i, corner)) tile.put_steps(i, tile.slope + 4 * i);
        }
    }
}

template <class T> __device__ __forceinline__ void back_tiles(const sampler_vector_args &a)
{
    __shared__ uint32_t scratch[SPATIAL_THREADS / 32 + 1];
    __shared__ int many;
    back_tile<T> tile(a, scratch);
    stager<T, 2> image;
    uint32_t next = 0;
    wd_wait_for_previous();
    image.find(a.x, a.height, a.width, tile.frame);
    image.load(a.x, tile.channel_of(a.x, 0), a.channels);
    tile.find_boxes();
    if (threadIdx.x == 0) many = 0;
    const uint32_t count = tile.collect(next, tile.first && !a.boxes);
    const int c = tile.own_cell();
    const uint32_t own = tile.begin[c + 2] - tile.begin[c] + tile.begin[c + tile.across + 2] -
                         tile.begin[c + tile.across];
    if (own > SPATIAL_FEW) many = 1;
    __syncthreads();
    if (!many && next >= tile.candidates && count <= 2 * SPATIAL_THREADS) {
        back_few(tile, count, image);
    } else {
        back_many(tile, count, next);
    }
}

} // namespace

#endif
