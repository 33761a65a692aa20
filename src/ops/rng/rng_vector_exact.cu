// SPDX-License-Identifier: Apache-2.0
//
// Random tensors in one pass over y, 16 bytes a store. Values are the definition's, bit for bit: the
// same functions make them (rng_numbers.h), and so this file is compiled without contraction.
#include "gpu/device/shared.cuh"
#include "gpu/device/warp.cuh"
#include "ops/rng/rng_elements.cuh"
#include "ops/rng/rng_normal.cuh"

namespace {

// ---- Stores ----

template <int BYTES>
using piece = std::conditional_t<
    BYTES == 1, uint8_t,
    std::conditional_t<BYTES == 2, uint16_t, std::conditional_t<BYTES == 4, uint32_t, uint64_t>>>;

// Element i of those that words hold.
template <class P> __device__ __forceinline__ P element(const uint32_t *word, int i)
{
    if constexpr (sizeof(P) == 8) return (uint64_t)word[2 * i + 1] << 32 | word[2 * i];
    else if constexpr (sizeof(P) == 4) return word[i];
    else return (P)(word[i * (int)sizeof(P) / 4] >> (8 * (i * (int)sizeof(P) & 3)));
}

// 16 bytes to a boundary.
__device__ __forceinline__ void store_run(const rng_vector_args &a, void *to, const uint32_t *word)
{
    const uint4 run = make_uint4(word[0], word[1], word[2], word[3]);
    if (a.streaming) __stcs(static_cast<uint4 *>(to), run);
    else *static_cast<uint4 *>(to) = run;
}

// The same at element `at`, those elements of it that are y's.
template <class P>
__device__ __forceinline__ void store(const rng_vector_args &a, int64_t at, const uint32_t *word)
{
    constexpr int COUNT = RNG_BYTES / (int)sizeof(P);
    P *y = static_cast<P *>(a.y);
    if (at >= 0 && at + COUNT <= a.count) {
        store_run(a, y + at, word);
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        if (at + i >= 0 && at + i < a.count) y[at + i] = element<P>(word, i);
    }
}

// The 16 bytes behind the first 4 WORDS bytes and `bits` bits of those of the lane before and its own.
template <int WORDS, bool IN_WORDS>
__device__ __forceinline__ void take_over(const uint32_t *own, uint32_t bits, uint32_t *to)
{
    uint32_t all[8];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if (w >= WORDS) all[w] = __shfl_sync(0xffffffffu, own[w], (threadIdx.x + 31) % 32);
        all[w + 4] = own[w];
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const uint32_t low = all[w + WORDS];
        if constexpr (IN_WORDS) to[w] = low;
        else to[w] = (uint32_t)(((uint64_t)all[w + WORDS + 1] << 32 | low) >> bits);
    }
}

// Likewise behind `bytes`, 1 to 15, a multiple of SIZE.
template <int SIZE>
__device__ __forceinline__ void take_from(const uint32_t *own, uint32_t bytes, uint32_t *to)
{
    constexpr bool IN_WORDS = SIZE >= 4;
    const uint32_t bits = bytes % 4 * 8;
    if (bytes < 4) take_over<0, IN_WORDS>(own, bits, to);
    else if (bytes < 8) take_over<1, IN_WORDS>(own, bits, to);
    else if (bytes < 12) take_over<2, IN_WORDS>(own, bits, to);
    else take_over<3, IN_WORDS>(own, bits, to);
}

// ---- Memory in the order of the index ----

// How many blocks of bits 16 bytes are, or how many runs of 16 bytes share one.
template <class T, int WAY> struct shares {
    static constexpr int COUNT = RNG_BYTES / (int)sizeof(T);
    static constexpr int IN_BLOCK = elements<T, WAY>::IN_BLOCK;
    static constexpr int BLOCKS = COUNT > IN_BLOCK ? COUNT / IN_BLOCK : 1;
    static constexpr int PARTS = COUNT < IN_BLOCK ? IN_BLOCK / COUNT : 1;
    static constexpr int PARTS_LOG2 = PARTS == 4 ? 2 : PARTS == 2 ? 1 : 0;
    static_assert(PARTS == 1 << PARTS_LOG2, "a power of two");
};

// 16 bytes from block `block` on, or part `part` of it, which neighbours draw as well.
template <class T, int WAY>
__device__ __forceinline__ void make_run(const rng_vector_args &a, const wd_drawing &d,
                                         uint32_t block, uint32_t part, uint32_t *word)
{
    typedef elements<T, WAY> made;
    constexpr int BLOCKS = shares<T, WAY>::BLOCKS, PARTS = shares<T, WAY>::PARTS;
    constexpr int COUNT = made::IN_BLOCK / PARTS, WORDS = 4 / PARTS;
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        uint32_t number[4];
        made::draw(a, d, block + b, number);
#pragma unroll
        for (int p = 1; p < PARTS; ++p) {
#pragma unroll
            for (int w = 0; w < WORDS; ++w) {
                number[w] = part == p ? number[p * WORDS + w] : number[w];
            }
        }
        made::template make<COUNT>(a, number, word + b * (4 / BLOCKS));
    }
}

// Where two runs share a block of bits, two neighbours make that of one turn and that of the next, a block each, and
// hand each other halves.
template <class T, int WAY>
__device__ __forceinline__ void flat_by_two(const rng_vector_args &a, const wd_drawing &d,
                                            int64_t first)
{
    typedef elements<T, WAY> made;
    static_assert(shares<T, WAY>::PARTS == 2 && RNG_RUNS % 2 == 0, "two turns");
    const uint32_t threads = blockDim.x;
    const bool odd = threadIdx.x % 2 != 0;
    const bool whole = blockIdx.x < a.whole_blocks;
    uint32_t run = threadIdx.x;
    char *to = static_cast<char *>(a.y) + (first + run) * RNG_BYTES;
#pragma unroll 1
    for (uint32_t turn = 0; turn < a.runs; turn += 2) {
        uint32_t number[4], word[8], got[4];
        made::draw(a, d, (uint32_t)((first + run + (odd ? threads : 0)) / 2), number);
        made::template make<4>(a, number, word);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            got[w] = __shfl_xor_sync(0xffffffffu, odd ? word[w] : word[w + 4], 1);
            word[w] = odd ? got[w] : word[w];
            word[w + 4] = odd ? word[w + 4] : got[w];
        }
        if (whole) {
            store_run(a, to, word);
            store_run(a, to + (int64_t)threads * RNG_BYTES, word + 4);
        } else {
            constexpr int COUNT = shares<T, WAY>::COUNT;
            store<piece<sizeof(T)>>(a, (first + run) * COUNT, word);
            store<piece<sizeof(T)>>(a, (first + run + threads) * COUNT, word + 4);
        }
        run += 2 * threads;
        to += (int64_t)(2 * threads) * RNG_BYTES;
    }
}

template <class T, int WAY> __device__ __forceinline__ void flat(const rng_vector_args &a)
{
    typedef piece<sizeof(T)> P;
    typedef shares<T, WAY> in;
    const wd_drawing d = begin(a);
    const uint32_t threads = blockDim.x, lane = threadIdx.x % 32;
    uint32_t word[8]; // what is stored is behind the first four
    if (a.shift == 0) {
        const int64_t first = (int64_t)blockIdx.x * (threads * a.runs); // of the block's runs
        if constexpr (sizeof(T) == 8 && WAY == NORMAL) {
            flat_by_two<T, WAY>(a, d, first);
            return;
        }
        const uint32_t block = (uint32_t)(first / in::PARTS) * in::BLOCKS;
        const bool whole = blockIdx.x < a.whole_blocks;
        char *to = static_cast<char *>(a.y) + first * RNG_BYTES;
#pragma unroll 1
        for (uint32_t run = threadIdx.x; run < threads * a.runs; run += threads) {
            if (!whole && (first + run) * in::COUNT >= a.count) return;
            make_run<T, WAY>(a, d, block + run / in::PARTS * in::BLOCKS, run % in::PARTS, word + 4);
            if (whole) store_run(a, to + run * RNG_BYTES, word + 4);
            else store<P>(a, (first + run) * in::COUNT, word + 4);
        }
        return;
    }
    // a warp makes 32 runs of the index, of which the first one's are the last of the warp before
    int64_t base = ((int64_t)blockIdx.x * (threads * a.runs) + threadIdx.x) / 32 * 31 - 1;
    const uint32_t step = threads / 32 * 31;
    const int before = a.shift / (int)sizeof(T);
    const bool whole = blockIdx.x > 0 && blockIdx.x < a.whole_blocks;
    char *to = static_cast<char *>(a.y) - a.shift + (base + lane) * RNG_BYTES;
#pragma unroll 1
    for (int u = 0; u < a.runs; ++u, base += step, to += step * RNG_BYTES) {
        const int64_t run = base + lane;
        uint32_t shifted[4];
        if (!whole && base * in::COUNT - before + in::COUNT >= a.count) return; // all of a warp
        make_run<T, WAY>(a, d, (uint32_t)(run >> in::PARTS_LOG2) * in::BLOCKS,
                         (uint32_t)run % in::PARTS, word + 4);
        take_from<(int)sizeof(T)>(word + 4, (uint32_t)(RNG_BYTES - a.shift), shifted);
        if (lane == 0) continue;
        if (whole) store_run(a, to, shifted);
        else store<P>(a, run * in::COUNT - before, shifted);
    }
}

// Normal numbers of 16 bits, by blocks of threads that stay: a thread makes a block of bits, 16 bytes, at a time.
__device__ __forceinline__ void aligned_normals(const rng_vector_args &a, const wd_drawing &d)
{
    constexpr int COUNT = WD_PHILOX_HALVES;
    const uint32_t all = gridDim.x * blockDim.x;
    const uint32_t whole = (uint32_t)(a.count / COUNT);
    uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x;
    char *to = static_cast<char *>(a.y) + (int64_t)unit * RNG_BYTES;
#pragma unroll 1
    for (uint32_t turn = 0; turn < a.turns; turn += 32) {
        const uint32_t first = unit;
        uint32_t tails = 0;
#pragma unroll 1
        for (uint32_t bit = 1; bit != 0 && unit <= whole; bit *= 2) {
            uint32_t word[4];
            if (normal_halves::all(a, d, unit, word)) tails |= bit;
            if (unit < whole) store_run(a, to, word);
            else store<uint16_t>(a, (int64_t)unit * COUNT, word);
            unit += all;
            to += (int64_t)all * RNG_BYTES;
        }
        unit = first + 32 * all; // also of those that were through before
        mend(a, d, tails, [&](uint32_t bit) { return first + bit * all; });
    }
}

// The same behind a boundary: a warp makes 32 runs of the index, of which the first one's are the last of the warp
// before.
__device__ __forceinline__ void shifted_normals(const rng_vector_args &a, const wd_drawing &d)
{
    constexpr int COUNT = WD_PHILOX_HALVES;
    const uint32_t all = gridDim.x * blockDim.x, lane = threadIdx.x % 32;
    const int before = a.shift / 2;
    uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x, first = unit, tails = 0;
    const auto block_of = [&](uint32_t turn) { return (first + turn * all) / 32 * 31 - 1 + lane; };
#pragma unroll 1
    for (uint32_t turn = 0, bit = 0; turn < a.turns; ++turn, unit += all) {
        const int64_t base = (int64_t)(unit / 32) * 31 - 1, at = base * COUNT - before;
        bool tail = false;
        if (at + COUNT < a.count) {
            uint32_t word[4], shifted[4];
            tail = normal_halves::all(a, d, (uint32_t)base + lane, word);
            take_from<2>(word, (uint32_t)(RNG_BYTES - a.shift), shifted);
            if (lane > 0) store<uint16_t>(a, at + lane * COUNT, shifted);
            if (base + lane < 0) tail = false;
        }
        tails |= (uint32_t)tail << bit;
        if (++bit == 32 || turn + 1 == a.turns) {
            mend(a, d, tails, block_of);
            tails = bit = 0;
            first = unit + all;
        }
    }
}

__device__ __forceinline__ void flat_normals(const rng_vector_args &a)
{
    const wd_drawing d = begin(a);
    bring_sizes(a, wd_dynamic_shared<normal_memory>());
    if (a.shift != 0) shifted_normals(a, d);
    else aligned_normals(a, d);
}

// A mask: a thread has a word, 32 elements. What is in a byte behind the last element stays.
__device__ __forceinline__ void flat_bits(const rng_vector_args &a)
{
    uint8_t *y = static_cast<uint8_t *>(a.y);
    const wd_drawing d = begin(a);
    const int64_t first = (int64_t)blockIdx.x * blockDim.x * RNG_RUNS + threadIdx.x;
#pragma unroll 1
    for (int u = 0; u < RNG_RUNS; ++u) {
        const int64_t at = (first + u * (int)blockDim.x) * RNG_WORD - a.shift;
        uint32_t bits = 0;
        if (at >= a.count) return;
#pragma unroll
        for (int b = 0; b < RNG_WORD / WD_PHILOX_HALVES; ++b) {
            uint32_t number[4];
            wd_draw_chances(d, a.threshold, (uint32_t)(at / WD_PHILOX_HALVES + b), number);
            bits |= (wd_bits_above(number) ^ 0xffu) << (WD_PHILOX_HALVES * b);
        }
        bits = (bits & (uint32_t)a.flip) ^ (uint32_t)a.none;
        if (at >= 0 && at + RNG_WORD <= a.count) {
            *reinterpret_cast<uint32_t *>(y + at / 8) = bits;
            continue;
        }
        for (int byte = 0; byte < RNG_WORD / 8; ++byte) {
            const int64_t from = at + 8 * byte;
            uint32_t mine = bits >> (8 * byte) & 0xffu;
            if (from < 0 || from >= a.count) continue;
            if (a.count - from < 8) {
                const uint32_t there = (1u << (a.count - from)) - 1u;
                mine = (mine & there) | (y[from / 8] & ~there);
            }
            y[from / 8] = (uint8_t)mine;
        }
    }
}

// ---- Channels as neighbours ----

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
template <class M> __device__ __forceinline__ void pairs(const rng_vector_args &a)
{
    typedef piece<sizeof(typename M::stored)> P;
    constexpr int COUNT = M::IN_BLOCK;
    const wd_drawing d = begin(a);
    const uint32_t all = gridDim.x * blockDim.x;
    uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x, first = unit, tails = 0;
    const auto first_block = [&](uint32_t at) {
        const uint32_t row = wd_fastdiv_quotient(at, a.by_units);
        const uint32_t image = wd_fastdiv_quotient(row, a.by_spans);
        return (image * a.channels + 2 * (at - row * a.by_units.divisor)) * a.row_blocks + row -
               image * a.row_blocks;
    };
    const auto block_of = [&](uint32_t bit) {
        return first_block(first + bit / 2 * all) + (bit & 1 ? a.row_blocks : 0);
    };
    if constexpr (M::TAILS) bring_sizes(a, wd_dynamic_shared<normal_memory>());
#pragma unroll 1
    for (uint32_t turn = 0, bit = 0; turn < a.turns; ++turn, unit += all) {
        if (unit < a.all_units) {
            const uint32_t row = wd_fastdiv_quotient(unit, a.by_units);
            const uint32_t pair = unit - row * a.by_units.divisor;
            const uint32_t block = first_block(unit);
            P *to = static_cast<P *>(a.y) + (int64_t)row * (int)(COUNT * a.channels) + 2 * pair;
            uint32_t one[COUNT * (int)sizeof(P) / 4], other[COUNT * (int)sizeof(P) / 4];
            tails |= (uint32_t)M::all(a, d, block, one) << bit;
            tails |= (uint32_t)M::all(a, d, block + a.row_blocks, other) << (bit + 1);
#pragma unroll
            for (int i = 0; i < COUNT; ++i, to += a.channels) store_two(to, one, other, i);
        }
        if constexpr (M::TAILS) {
            bit += 2;
            if (bit == 32 || turn + 1 == a.turns) {
                mend(a, d, tails, block_of);
                tails = bit = 0;
                first = unit + all;
            }
        }
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
        bring_table();
#pragma unroll 1
        for (uint32_t number = blockIdx.x, other = 0; number < a.all_tiles; number += gridDim.x) {
            // by turns in two places: when a tile is made, all have stored the one before the last
            tile<M>(a, d, number, shared + other);
            other = a.tile_bytes - other;
        }
    }
}

} // namespace

// Flat normal numbers of 16 bits by as many threads as there can be.
#define WD_KERNELS_BOUNDS(threads, registers) threads, (registers) == 32 ? 2 : 0
#define WD_KERNELS_ROWS "ops/rng/rng_vector_exact_kernels.def"
#include "ops/kernels_device.inc"
