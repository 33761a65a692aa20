// SPDX-License-Identifier: Apache-2.0
//
// The gradients of the grid by chunks (sampler_chunks.cuh), after all channels: a place has four numbers in shared
// memory, its products with the elements of its cell, in the order of the definition's names of these. What is not
// finite is found again from device memory.
#ifndef WD_OPS_SPATIAL_SAMPLER_CHUNK_STEPS_CUH
#define WD_OPS_SPATIAL_SAMPLER_CHUNK_STEPS_CUH

#include "ops/spatial/sampler_chunk_lists.cuh"

namespace {

// The steps of a tile's places, from their products with the elements of their cells.
template <class T> struct chunk_steps {
    typedef chunk_tile<T> tile_of;
    static constexpr int PER = tile_of::PER;
    static_assert(tile_of::ALL >= tile_of::ROOM * PER * 16, "products lie where stages were");
    const tile_of &tile;
    const sampler_chunk_args &a;
    const sampler_vector_args &all;
    float4 *const products;
    const uint32_t first, end; // places of the stages

    __device__ __forceinline__ explicit chunk_steps(const tile_of &t)
        : tile(t), a(t.a), all(t.all), products(reinterpret_cast<float4 *>(t.shared)),
          first(t.base[0] * PER), end(t.counts.chunks * PER)
    {
    }
    // The steps of a place from device memory, as the definition has them.
    __device__ __forceinline__ void steps_again(const sight<float> &k, const spot &place,
                                                float *s) const
    {
        const planes<T> x(all.x, tile.n), y(all.y, tile.n);
        const bool above = k.row >= 0, below = k.row + 1 < all.height, left = k.column >= 0,
                   right = k.column + 1 < all.width;
        const T *g_at = y.data + ((uint32_t)(place.p * all.y.row) + (uint32_t)place.q);
        const T *at = x.data + ((int64_t)k.row * all.x.row + k.column);
#pragma unroll
        for (int i = 0; i < 4; ++i) s[i] = 0;
#pragma unroll 1
        for (int c = 0; c < all.channels; ++c) {
            const float g = wd_widen(*g_at);
            const float f00 = above && left ? wd_widen(at[0]) : 0.0f;
            const float f01 = above && right ? wd_widen(at[1]) : 0.0f;
            const float f10 = below && left ? wd_widen(at[all.x.row]) : 0.0f;
            const float f11 = below && right ? wd_widen(at[all.x.row + 1]) : 0.0f;
            s[0] += g * (f01 - f00);
            s[1] += g * (f11 - f10);
            s[2] += g * (f10 - f00);
            s[3] += g * (f11 - f01);
            at += x.channel;
            g_at += y.channel;
        }
    }
    __device__ __forceinline__ void clear() const
    {
#pragma unroll 1
        for (uint32_t i = first + threadIdx.x; i < end; i += CHUNK_THREADS) {
            products[i] = make_float4(0, 0, 0, 0); // with elements outside of the image
        }
    }
    // Places of a thread, from one on, and what the grid says of them: asked for before the first is looked at.
    static constexpr uint32_t M = 3;
    struct asked {
        spot at[M];
        wd_run<T, 2> said[M];
    };
    __device__ __forceinline__ const T *places() const
    {
        return static_cast<const T *>(all.grid) +
               2 * ((int64_t)tile.n * (uint32_t)(all.rows * all.columns));
    }
    __device__ __forceinline__ void ask(uint32_t i, asked &own) const
    {
        const T *const from = places();
#pragma unroll
        for (uint32_t m = 0; m < M; ++m) {
            spot &at = own.at[m];
            at.q = all.columns;
            if (i + m * CHUNK_THREADS >= end) continue;
            place_at(i + m * CHUNK_THREADS, at);
            if (at.q < all.columns) {
                tile.read_place(from, at.p * all.columns + at.q, own.said[m]);
            }
        }
    }
    // The first of them are asked for.
    __device__ __forceinline__ void put(asked &own) const
    {
        spot(&at)[M] = own.at;
        wd_run<T, 2>(&said)[M] = own.said;
#pragma unroll 1
        for (uint32_t i = first + threadIdx.x; i < end; i += M * CHUNK_THREADS) {
            uint32_t again = 0;
            if (i >= first + M * CHUNK_THREADS) ask(i, own);
#pragma unroll
            for (uint32_t m = 0; m < M; ++m) {
                sight<float> k;
                if (at[m].q >= all.columns || !is_own(said[m], k)) continue;
                const float4 f = products[i + m * CHUNK_THREADS];
                if (fabsf(f.x) + fabsf(f.y) + fabsf(f.z) + fabsf(f.w) <= 3e38f) {
                    const float s[4] = {f.y - f.x, f.w - f.z, f.z - f.x, f.w - f.y};
                    put_steps(at[m], k, s);
                } else {
                    again |= 1u << m;
                }
            }
#pragma unroll 1
            for (uint32_t j = i; again > 0; j += CHUNK_THREADS, again >>= 1) {
                spot one;
                sight<float> k;
                float s[4];
                if (!(again & 1)) continue;
                place_at(j, one);
                tile.read_place(places(), one.p * all.columns + one.q, said[0]);
                is_own(said[0], k);
                steps_again(k, one, s);
                put_steps(one, k, s);
            }
        }
    }
    // Place i of the stages.
    __device__ __forceinline__ void place_at(uint32_t i, spot &at) const
    {
        const int row = tile.rows()[i / PER];
        at.n = tile.n;
        at.p = row - tile.counts.first_row;
        at.q = tile.start[row] + (int)(i - tile.base[row] * PER);
    }
    // Whether the place is the tile's to write, and where it looks.
    __device__ __forceinline__ bool is_own(const wd_run<T, 2> &said, sight<float> &k) const
    {
        int r, c;
        k.set(all, wd_widen(said.get(0)), wd_widen(said.get(1)));
        return k.seen && tile.cell_of(k, r, c) && tile.owns(r, c);
    }
    __device__ __forceinline__ void put_steps(const spot &at, const sight<float> &k,
                                              const float *s) const
    {
        T *const dgrid = static_cast<T *>(all.dgrid) + 2 * at.number(all);
        wd_narrow(dgrid[0], a.by_x * ((1 - k.down) * s[0] + k.down * s[1]));
        wd_narrow(dgrid[1], a.by_y * ((1 - k.right) * s[2] + k.right * s[3]));
    }
};

} // namespace

#endif
