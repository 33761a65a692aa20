// SPDX-License-Identifier: Apache-2.0
//
// Random tensors whose channels are neighbours, by pairs of channels and by tiles.
#ifndef WD_OPS_RNG_RNG_CHANNELS_CUH
#define WD_OPS_RNG_RNG_CHANNELS_CUH

#include "gpu/device/shared.cuh"
#include "ops/rng/rng_normal.cuh"
#include "ops/rng/rng_store.cuh"

namespace {

// Element i of two blocks, side by side.
template <class P>
__device__ __forceinline__ void store_two(P *to, const uint32_t *one, const uint32_t *other, int i)
{
    if constexpr (sizeof(P) == 2) {
        *reinterpret_cast<uint32_t *>(to) =
            __byte_perm(one[i / 2], other[i / 2], i & 1 ? 0x7632 : 0x5410);
    } else {
        *reinterpret_cast<uint2 *>(to) = make_uint2(one[i], other[i]);
    }
}

// Planes are whole blocks of bits: a thread makes those of two channels at a time, neighbouring threads those of
// neighbouring channels, and stores two elements of a pixel at once.
template <class M>
__device__ __forceinline__ void pairs_of(const rng_vector_args &a, const wd_drawing &d)
{
    typedef piece<sizeof(typename M::stored)> P;
    constexpr int COUNT = M::IN_BLOCK;
    const uint32_t all = gridDim.x * blockDim.x;
    uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (uint32_t turn = 0; turn < a.turns && unit < a.all_units; ++turn, unit += all) {
        const uint32_t row = wd_fastdiv_quotient(unit, a.by_units);
        const uint32_t pair = unit - row * a.by_units.divisor;
        const uint32_t image = wd_fastdiv_quotient(row, a.by_spans);
        const uint32_t block =
            (image * a.channels + 2 * pair) * a.row_blocks + row - image * a.row_blocks;
        P *to = static_cast<P *>(a.y) + (int64_t)row * (int)(COUNT * a.channels) + 2 * pair;
        uint32_t one[COUNT * (int)sizeof(P) / 4], other[COUNT * (int)sizeof(P) / 4];
        M::all(a, d, block, one);
        M::all(a, d, block + a.row_blocks, other);
#pragma unroll
        for (int i = 0; i < COUNT; ++i, to += a.channels) store_two(to, one, other, i);
    }
}

template <class M> __device__ __forceinline__ void pairs(const rng_vector_args &a)
{
    pairs_of<M>(a, begin(a));
}

__device__ __forceinline__ void pairs_of_normals(const rng_vector_args &a)
{
    const wd_drawing d = begin(a);
    if (a.near) {
        bring_radii();
        pairs_of<normal_halves<true>>(a, d);
    } else {
        pairs_of<normal_halves<false>>(a, d);
    }
}

// A tile of whole planes of some channels, which are whole blocks of bits: it is made in the order of the index, and
// turned where it is stored, 16 bytes of a pixel at a time. A thread has the same channels of some pixels.
template <class M>
__device__ __forceinline__ void turned_tile(const rng_vector_args &a, const wd_drawing &d,
                                            uint32_t number, unsigned char *shared)
{
    typedef piece<sizeof(typename M::stored)> P;
    constexpr uint32_t BYTES = sizeof(P), COUNT = M::IN_BLOCK, WORDS = COUNT * BYTES / 4;
    constexpr uint32_t UNIT = RNG_BYTES / BYTES, UNITS = RNG_ROW / RNG_BYTES;
    const uint32_t step = blockDim.x / UNITS; // pixels
    const uint32_t image = wd_fastdiv_quotient(number, a.by_groups);
    const uint32_t channel = (number - image * a.by_groups.divisor) * a.tile_channels;
    const uint32_t channels = min(a.tile_channels, a.channels - channel);
    const uint32_t block = (image * a.channels + channel) * a.plane / COUNT;
    const uint32_t blocks = channels * a.plane / COUNT;
    uint4 *made = reinterpret_cast<uint4 *>(shared);
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < blocks; i += blockDim.x) {
        uint32_t word[WORDS];
        M::all(a, d, block + i, word);
#pragma unroll
        for (uint32_t w = 0; w < WORDS; w += 4) {
            made[i * (WORDS / 4) + w / 4] =
                make_uint4(word[w], word[w + 1], word[w + 2], word[w + 3]);
        }
    }
    __syncthreads();
    const uint32_t c = threadIdx.x % UNITS * UNIT;
    if (c >= channels) return;
    uint32_t p = threadIdx.x / UNITS;
    const P *from = reinterpret_cast<const P *>(shared) + c * a.plane + p;
    P *to = static_cast<P *>(a.y) + ((int64_t)image * a.plane + p) * a.channels + channel + c;
#pragma unroll 1
    for (; p < a.plane; p += step) {
        uint32_t word[4];
#pragma unroll
        for (uint32_t w = 0; w < 4; ++w) {
            if constexpr (BYTES == 4) {
                word[w] = from[w * a.plane];
            } else {
                word[w] = __byte_perm(from[2 * w * a.plane], from[(2 * w + 1) * a.plane], 0x5410);
            }
        }
        *reinterpret_cast<uint4 *>(to) = make_uint4(word[0], word[1], word[2], word[3]);
        from += step;
        to += (int64_t)step * a.channels;
    }
}

template <class M>
__device__ __forceinline__ void tile(const rng_vector_args &a, const wd_drawing &d, uint32_t number,
                                     unsigned char *shared)
{
    typedef piece<sizeof(typename M::stored)> P;
    constexpr int COUNT = M::IN_BLOCK, UNIT = RNG_BYTES / (int)sizeof(P);
    if constexpr (sizeof(P) == 2 || sizeof(P) == 4) {
        if (a.turned) {
            turned_tile<M>(a, d, number, shared);
            return;
        }
    }
    P *y = static_cast<P *>(a.y);
    const uint32_t row = wd_fastdiv_quotient(number, a.by_groups);
    const uint32_t channel = (number - row * a.by_groups.divisor) * a.tile_channels;
    const uint32_t image = wd_fastdiv_quotient(row, a.by_spans);
    const uint32_t pixel = (row - image * a.by_spans.divisor) * a.tile_pixels;
    const int channels = (int)min(a.tile_channels, a.channels - channel);
    const int pixels = (int)min(a.tile_pixels, a.plane - pixel);
    const int64_t start = ((int64_t)image * a.plane + pixel) * a.channels + channel;
    // as far behind a boundary as in y
    const int shift = a.contiguous ? (int)(reinterpret_cast<uintptr_t>(y + start) % RNG_BYTES) : 0;
    P *made = reinterpret_cast<P *>(shared + shift);
    // Neighbours have neighbouring channels. Of whole planes a block of bits goes on from one channel to the
    // next: it is made with the one that it begins in, or, that before the tile, last.
    const uint32_t origin = (image * a.channels + channel) * a.plane + pixel;
    const uint32_t end = origin + (uint32_t)channels * a.plane;
    const uint32_t own = a.tile_channels * a.row_blocks;
    const uint32_t all = own + (a.small && origin % COUNT != 0);
    for (uint32_t i = threadIdx.x; i < all; i += blockDim.x) {
        uint32_t word[COUNT * (int)sizeof(P) / 4];
        const uint32_t k = wd_fastdiv_quotient(i, a.by_channels);
        int c = (int)(i - k * a.tile_channels);
        const uint32_t index = origin + (uint32_t)c * a.plane;
        uint32_t block = (a.small ? index + COUNT - 1 : index) / COUNT + k;
        int p = (int)(block * COUNT - index);
        uint32_t skip = 0;
        if (i >= own) block = origin / COUNT, c = 0, p = 0, skip = origin % COUNT;
        if (c >= channels || p >= pixels) continue;
        M::all(a, d, block, word);
        P *to = made + p * (int)a.tile_channels + c;
        if (skip == 0 && p >= 0 && p + COUNT <= pixels) {
#pragma unroll
            for (int j = 0; j < COUNT; ++j, to += a.tile_channels) *to = element<P>(word, j);
        } else if (a.small) {
            const uint32_t back =
                a.plane * a.tile_channels - 1; // to the next channel's first pixel
#pragma unroll
            for (uint32_t j = 0; j < (uint32_t)COUNT; ++j) {
                if (j < skip || block * COUNT + j >= end) continue;
                *to = element<P>(word, (int)j);
                to += a.tile_channels;
                if (++p == pixels) p = 0, to -= back;
            }
        } else {
#pragma unroll
            for (int j = 0; j < COUNT; ++j, to += a.tile_channels) {
                if ((uint32_t)(p + j) < (uint32_t)pixels) *to = element<P>(word, j);
            }
        }
    }
    __syncthreads();
    if (a.contiguous) {
        const int end = shift / (int)sizeof(P) + pixels * channels; // elements from the boundary
        const P *from = reinterpret_cast<const P *>(shared);
        P *to = y + start - shift / (int)sizeof(P);
        for (int e = (int)threadIdx.x * UNIT; e < end; e += (int)blockDim.x * UNIT) {
            if (e * (int)sizeof(P) >= shift && e + UNIT <= end) {
                *reinterpret_cast<uint4 *>(to + e) = *reinterpret_cast<const uint4 *>(from + e);
                continue;
            }
            for (int j = e; j < e + UNIT && j < end; ++j) {
                if (j * (int)sizeof(P) >= shift) to[j] = from[j];
            }
        }
    } else if (a.units > 0) {
        for (uint32_t i = threadIdx.x; i < (uint32_t)(pixels * a.units); i += blockDim.x) {
            const uint32_t p = wd_fastdiv_quotient(i, a.by_units);
            const int c = (int)(i - p * (uint32_t)a.units) * UNIT;
            if (c >= channels) continue;
            *reinterpret_cast<uint4 *>(y + start + (int64_t)p * a.channels + c) =
                *reinterpret_cast<const uint4 *>(made + p * a.tile_channels + c);
        }
    } else {
        for (uint32_t i = threadIdx.x; i < (uint32_t)pixels * a.tile_channels; i += blockDim.x) {
            const uint32_t p = wd_fastdiv_quotient(i, a.by_channels);
            const int c = (int)(i - p * a.tile_channels);
            if (c < channels) y[start + (int64_t)p * a.channels + c] = made[i];
        }
    }
}

template <class M> __device__ __forceinline__ void tiles(const rng_vector_args &a)
{
    WD_DYNAMIC_SHARED(unsigned char, shared);
    const wd_drawing d = begin(a);
    if constexpr (!M::TABLE) {
        tile<M>(a, d, blockIdx.x, shared);
    } else { // which is worth several tiles
        bring_radii();
#pragma unroll 1
        for (uint32_t number = blockIdx.x, other = 0; number < a.all_tiles; number += gridDim.x) {
            // by turns in two places: when a tile is made, all have stored the one before the last
            tile<M>(a, d, number, shared + other);
            other = a.tile_bytes - other;
        }
    }
}

} // namespace

#endif
