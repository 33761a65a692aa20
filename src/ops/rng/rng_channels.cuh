// SPDX-License-Identifier: Apache-2.0
//
// Random tensors whose channels are neighbours, by pairs of channels and by tiles.
#ifndef WD_OPS_RNG_RNG_CHANNELS_CUH
#define WD_OPS_RNG_RNG_CHANNELS_CUH

#include "gpu/device/grid.cuh"
#include "gpu/device/shared.cuh"
#include "ops/rng/rng_normal.cuh"
#include "ops/rng/rng_store.cuh"

namespace {

// What is drawn with: numbers of two bytes have the least time each.
template <class M>
using drawing_of = std::conditional_t<sizeof(typename M::stored) == 2, wd_prepared, wd_drawing>;

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
template <class M, class D>
__device__ __forceinline__ void pairs_of(const rng_vector_args &a, const D &d)
{
    typedef piece<sizeof(typename M::stored)> P;
    constexpr int COUNT = M::IN_BLOCK;
    // rows of blocks of bits; a thread has the same channels in all turns
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t step = wd_fastdiv_quotient(gridDim.x * blockDim.x, a.by_units);
    uint32_t row = wd_fastdiv_quotient(thread, a.by_units);
    const uint32_t channel = 2 * (thread - row * a.by_units.divisor);
    if (row >= step) return;
    const uint32_t stride = a.channels * (uint32_t)sizeof(P);
    uint32_t bits = channel * a.row_blocks, further = (a.channels - 1) * a.row_blocks;
    uint32_t at = row * (COUNT * a.channels) + channel, ahead = step * (COUNT * a.channels);
    wd_forget<0>(bits);
    wd_forget<1>(further);
    wd_forget<2>(at);
    wd_forget<3>(ahead);
#pragma unroll 1
    for (; row < a.all_rows; row += step, at += ahead) {
        const uint32_t block = bits + row + wd_fastdiv_quotient(row, a.by_spans) * further;
        char *to = reinterpret_cast<char *>(static_cast<P *>(a.y) + at);
        uint32_t one[COUNT * (int)sizeof(P) / 4], other[COUNT * (int)sizeof(P) / 4];
        M::all(a, d, block, one);
        M::all(a, d, block + a.row_blocks, other);
#pragma unroll
        for (uint32_t i = 0; i < (uint32_t)COUNT; ++i) {
            store_two(reinterpret_cast<P *>(to + (uint64_t)stride * i), one, other, (int)i);
        }
    }
}

template <class M> __device__ __forceinline__ void pairs(const rng_vector_args &a)
{
    pairs_of<M>(a, begin<drawing_of<M>>(a));
}

__device__ __forceinline__ void pairs_of_normals(const rng_vector_args &a)
{
    const wd_prepared d = begin<wd_prepared>(a);
    if (a.near) {
        bring_radii();
        pairs_of<normal_halves<true>>(a, d);
    } else {
        pairs_of<normal_halves<false>>(a, d);
    }
}

// Tiles of whole planes of some channels, which are whole blocks of bits: a tile is made in the order of the index, and
// turned where it is stored, 16 bytes of a pixel at a time. A thread has the same channels of the same pixels in all
// tiles of its block, so that it knows where they are before the first one.
template <class M, class D>
__device__ __forceinline__ void turned_tiles(const rng_vector_args &a, const D &d,
                                             unsigned char *shared)
{
    typedef piece<sizeof(typename M::stored)> P;
    constexpr uint32_t BYTES = sizeof(P), COUNT = M::IN_BLOCK, WORDS = COUNT * BYTES / 4;
    constexpr uint32_t UNIT = RNG_BYTES / BYTES, UNITS = RNG_ROW / RNG_BYTES;
    uint32_t step = blockDim.x / UNITS; // pixels
    const uint32_t c = threadIdx.x % UNITS * UNIT, first = threadIdx.x / UNITS;
    // what nvcc would make anew for each tile and pixel
    uint32_t plane = a.plane, own = c * plane + first, other = 0;
    uint32_t before = first * a.channels + c, further = step * a.channels; // the tensor is small
    wd_forget<0>(plane);
    wd_forget<1>(own);
    wd_forget<2>(before);
    wd_forget<3>(further);
    wd_forget<4>(step);
    // Blocks that stay draw their tiles: they are not equally fast.
    __shared__ uint32_t following[2];
    uint32_t number = blockIdx.x, parity = 0;
#pragma unroll 1
    while (number < a.all_tiles) {
        uint32_t drawn = 0;
        if (M::TABLE && threadIdx.x == 0) drawn = wd_draw_number(a.counter);
        const uint32_t image = wd_fastdiv_quotient(number, a.by_groups);
        const uint32_t channel = (number - image * a.by_groups.divisor) * a.tile_channels;
        const uint32_t channels = min(a.tile_channels, a.channels - channel);
        const uint32_t block = (image * a.channels + channel) * a.plane / COUNT;
        const uint32_t blocks = channels * a.plane / COUNT;
        uint4 *made = reinterpret_cast<uint4 *>(shared + other);
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
        if (M::TABLE && threadIdx.x == 0) {
            following[parity] = wd_number_of(drawn) + gridDim.x;
            wd_drawn(a.counter, drawn, a.all_tiles);
        }
        // by turns in two places: when a tile is made, all have stored the one before the last
        __syncthreads();
        if constexpr (M::TABLE) number = following[parity];
        else number += gridDim.x;
        parity ^= 1;
        const P *from = reinterpret_cast<const P *>(shared + other) + own;
        uint32_t to = image * a.plane * a.channels + channel + before;
        other = a.tile_bytes - other;
        if (c >= channels) continue;
#pragma unroll 1
        for (uint32_t p = first; p < plane; p += step) {
            uint32_t word[4];
#pragma unroll
            for (uint32_t w = 0; w < 4; ++w) {
                if constexpr (BYTES == 4) {
                    word[w] = from[w * plane];
                } else {
                    word[w] = __byte_perm(from[2 * w * plane], from[(2 * w + 1) * plane], 0x5410);
                }
            }
            *reinterpret_cast<uint4 *>(static_cast<P *>(a.y) + to) =
                make_uint4(word[0], word[1], word[2], word[3]);
            from += step;
            to += further;
        }
    }
}

template <class M, class D>
__device__ __forceinline__ void tile(const rng_vector_args &a, const D &d, uint32_t number,
                                     unsigned char *shared)
{
    typedef piece<sizeof(typename M::stored)> P;
    constexpr int COUNT = M::IN_BLOCK, UNIT = RNG_BYTES / (int)sizeof(P);
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
    constexpr int BYTES = (int)sizeof(typename M::stored);
    const auto d = begin<drawing_of<M>>(a);
    if constexpr (M::TABLE) bring_radii();
    if constexpr (BYTES == 2 || BYTES == 4) {
        if (a.turned) {
            turned_tiles<M>(a, d, shared);
            return;
        }
    }
    if constexpr (!M::TABLE) {
        tile<M>(a, d, blockIdx.x, shared);
    } else { // which is worth several tiles
#pragma unroll 1
        for (uint32_t number = blockIdx.x, other = 0; number < a.all_tiles; number += gridDim.x) {
            tile<M>(a, d, number, shared + other); // in two places likewise
            other = a.tile_bytes - other;
        }
    }
}

} // namespace

#endif
