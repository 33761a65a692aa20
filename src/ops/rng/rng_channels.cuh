// SPDX-License-Identifier: Apache-2.0
//
// Random tensors whose channels are neighbours, by pairs of channels and by tiles.
#ifndef WD_OPS_RNG_RNG_CHANNELS_CUH
#define WD_OPS_RNG_RNG_CHANNELS_CUH

#include "gpu/device/barrier.cuh"
#include "gpu/device/grid.cuh"
#include "gpu/device/shared.cuh"
#include "ops/rng/rng_normal.cuh"
#include "ops/rng/rng_store.cuh"

namespace {

// What is drawn with: of eight bytes other things bind.
template <class M>
using drawing_of = std::conditional_t<sizeof(typename M::stored) <= 4, wd_prepared, wd_drawing>;

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

// All of two blocks of bits.
template <class M, class D, int WORDS>
__device__ __forceinline__ void make_two(const rng_vector_args &a, const D &d,
                                         const uint32_t *block, uint32_t (*word)[WORDS])
{
    if constexpr (std::is_base_of<halves_of_normals, M>::value) {
        M::template some<2>(a, d, block, word);
    } else {
        M::all(a, d, block[0], word[0]);
        M::all(a, d, block[1], word[1]);
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
        const uint32_t two[2] = {block, block + a.row_blocks};
        uint32_t word[2][COUNT * (int)sizeof(P) / 4];
        make_two<M>(a, d, two, word);
#pragma unroll
        for (uint32_t i = 0; i < (uint32_t)COUNT; ++i) {
            store_two(reinterpret_cast<P *>(to + (uint64_t)stride * i), word[0], word[1], (int)i);
        }
    }
}

template <class M> __device__ __forceinline__ void pairs(const rng_vector_args &a)
{
    pairs_of<M>(a, begin<drawing_of<M>>(a));
}

__device__ __forceinline__ void pairs_of_normals(const rng_vector_args &a)
{
    if (a.near) bring_radii();
    auto d = begin<with_radii<wd_prepared>>(a);
    if (a.near) {
        d.radii = radii_table<true>();
        pairs_of<normal_halves<true>>(a, d);
    } else {
        d.radii = radii_table<false>();
        pairs_of<normal_halves<false>>(a, d);
    }
}

// What the threads of a group have written to shared memory is seen by all of them: a warp's, or two warps'.
__device__ __forceinline__ void group_meets(const rng_vector_args &a, uint32_t group)
{
    if (a.group == 32) __syncwarp();
    else wd_barrier(1 + group, a.group);
}

// 16 bytes of every STEPth pixel, from `first` on.
template <uint32_t STEP, class P>
__device__ __forceinline__ void store_turned(const rng_vector_args &a, const P *from, P *to,
                                             uint32_t first)
{
#pragma unroll 4
    for (uint32_t p = first; p < a.plane; p += STEP) {
        uint32_t word[4];
#pragma unroll
        for (uint32_t w = 0; w < 4; ++w) {
            if constexpr (sizeof(P) == 4) {
                word[w] = from[w * a.plane];
            } else {
                word[w] = __byte_perm(from[2 * w * a.plane], from[(2 * w + 1) * a.plane], 0x5410);
            }
        }
        *reinterpret_cast<uint4 *>(to) = make_uint4(word[0], word[1], word[2], word[3]);
        from += STEP;
        to += STEP * a.channels;
    }
}

// Tiles of whole planes of some channels, which are whole blocks of bits: a tile is made in the order of the index, and
// turned where it is stored, 16 bytes of a pixel at a time. A group of threads has a tile of its own, so that none waits
// for others than its own warp, or two.
template <class M, class D>
__device__ __forceinline__ void turned_tiles(const rng_vector_args &a, const D &d,
                                             unsigned char *shared)
{
    typedef piece<sizeof(typename M::stored)> P;
    constexpr uint32_t BYTES = sizeof(P), COUNT = M::IN_BLOCK, WORDS = COUNT * BYTES / 4;
    constexpr uint32_t UNIT = RNG_BYTES / BYTES, UNITS = RNG_ROW / RNG_BYTES;
    const uint32_t lane = threadIdx.x & (a.group - 1), group = threadIdx.x / a.group;
    const uint32_t groups = blockDim.x / a.group;
    const uint32_t c = lane % UNITS * UNIT, first = lane / UNITS;
    unsigned char *own = wd_opaque_shared(shared + group * a.tile_bytes);
    uint4 *made = reinterpret_cast<uint4 *>(own) + lane * (WORDS / 4);
    const P *turned = reinterpret_cast<const P *>(own) + (c * a.plane + first);
    // Where blocks stay their groups draw tiles: they are not equally fast.
    __shared__ uint32_t following[RNG_GROUPS];
    uint32_t number = blockIdx.x * groups + group;
#pragma unroll 1
    while (number < a.all_tiles) {
        uint32_t drawn = 0;
        if (M::TABLE && lane == 0) drawn = wd_draw_number(a.counter);
        const uint32_t image = wd_fastdiv_quotient(number, a.by_groups);
        const uint32_t channel = (number - image * a.by_groups.divisor) * a.tile_channels;
        const uint32_t channels = min(a.tile_channels, a.channels - channel);
        const uint32_t end = (image * a.channels + channel + channels) * a.plane / COUNT;
        uint32_t block = (image * a.channels + channel) * a.plane / COUNT + lane;
        uint4 *to = made;
#pragma unroll 1
        for (; block < end; block += a.group, to += a.group * (WORDS / 4)) {
            uint32_t word[WORDS];
            M::all(a, d, block, word);
#pragma unroll
            for (uint32_t w = 0; w < WORDS; w += 4) {
                to[w / 4] = make_uint4(word[w], word[w + 1], word[w + 2], word[w + 3]);
            }
        }
        if (M::TABLE && lane == 0) {
            following[group] = wd_number_of(drawn) + gridDim.x * groups;
            wd_drawn(a.counter, drawn, a.all_tiles);
        }
        group_meets(a, group);
        if constexpr (M::TABLE) number = following[group];
        else number += gridDim.x * groups;
        P *at = static_cast<P *>(a.y) +
                ((uint64_t)(image * a.plane + first) * a.channels + channel + c);
        if (c < channels) {
            if (a.group == 32) store_turned<32 / UNITS>(a, turned, at, first);
            else store_turned<64 / UNITS>(a, turned, at, first);
        }
        group_meets(a, group);
    }
}

template <class M> __device__ __forceinline__ void turned(const rng_vector_args &a)
{
    WD_DYNAMIC_SHARED(unsigned char, shared);
    auto d = begin<with_radii<drawing_of<M>>>(a);
    if constexpr (M::TABLE) bring_radii();
    if constexpr (M::TABLE) d.radii = radii_table<true>();
    turned_tiles<M>(a, d, shared);
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
    // Neighbours have neighbouring channels, a thread the same one in all turns. Of whole planes a block of bits goes on
    // from one channel to the next: it is made with the one that it begins in, or, that before the tile, last.
    const uint32_t origin = (image * a.channels + channel) * a.plane + pixel;
    const uint32_t end = origin + (uint32_t)channels * a.plane;
    const uint32_t part = wd_fastdiv_quotient(threadIdx.x, a.by_channels);
    uint32_t step = a.parts * COUNT, further = step * a.tile_channels;
    wd_forget<0>(step);
    wd_forget<1>(further);
#pragma unroll 1
    for (uint32_t c = threadIdx.x - part * a.tile_channels; c < (uint32_t)channels;
         c += blockDim.x) {
        const uint32_t index = origin + c * a.plane;
        uint32_t block = (a.small ? index + COUNT - 1 : index) / COUNT + part, skip = 0;
        int p = (int)(block * COUNT - index);
        P *first = made + p * (int)a.tile_channels + (int)c;
        const bool before = a.small && origin % COUNT != 0 && part == 0 && c == 0;
#pragma unroll 1
        for (;; block += a.parts, p += (int)step, first += further) {
            uint32_t word[COUNT * (int)sizeof(P) / 4];
            if (p >= pixels) {
                if (!before) break;
                block = origin / COUNT, p = 0, first = made, skip = origin % COUNT;
            }
            M::all(a, d, block, word);
            P *to = first;
            if (skip == 0 && p >= 0 && p + COUNT <= pixels) {
#pragma unroll
                for (int j = 0; j < COUNT; ++j, to += a.tile_channels) *to = element<P>(word, j);
            } else if (a.small) {
                const uint32_t back =
                    a.plane * a.tile_channels - 1; // to the next channel's first pixel
                int q = p;
#pragma unroll
                for (uint32_t j = 0; j < (uint32_t)COUNT; ++j) {
                    if (j < skip || block * COUNT + j >= end) continue;
                    *to = element<P>(word, (int)j);
                    to += a.tile_channels;
                    if (++q == pixels) q = 0, to -= back;
                }
                if (skip > 0) break;
            } else {
#pragma unroll
                for (int j = 0; j < COUNT; ++j, to += a.tile_channels) {
                    if ((uint32_t)(p + j) < (uint32_t)pixels) *to = element<P>(word, j);
                }
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
    auto d = begin<with_radii<drawing_of<M>>>(a);
    if constexpr (M::TABLE) bring_radii();
    if constexpr (M::TABLE) d.radii = radii_table<true>();
    if constexpr (!M::TABLE && (BYTES == 2 || BYTES == 4)) {
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
