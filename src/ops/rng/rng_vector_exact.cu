// SPDX-License-Identifier: Apache-2.0
//
// Random tensors in one pass over y, 16 bytes a store. Values are the definition's, bit for bit: the
// same functions make them (rng_numbers.h), and so this file is compiled without contraction.
#include <type_traits>

#include "gpu/device/depend.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/philox.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/rng/rng_vector_args.h"

namespace {

enum { CHANCE, UNIFORM, NORMAL };

// Keys of a seed that the host knew lie with the arguments.
__device__ __forceinline__ wd_drawing begin(const rng_vector_args &a)
{
    wd_drawing d;
    wd_wait_for_previous();
    d.offset = rng_integer(a.offset, a.offset_dtype, a.offset_value);
    if (a.seed) {
        wd_philox_keys(rng_integer(a.seed, a.seed_dtype, 0), d.key);
    } else {
#pragma unroll
        for (int i = 0; i < 2 * WD_PHILOX_ROUNDS; ++i) d.key[i] = a.key[i];
    }
    return d;
}

// ---- A block's elements ----

// sqrt(x) rounded to nearest, of what is neither 0 nor near the ends of the range: P. Markstein,
// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990.
__device__ __forceinline__ float root(float x)
{
    const float inverse = wd_about_rsqrt(x);
    const float near = x * inverse;
    return fmaf(fmaf(-near, near, x), 0.5f * inverse, near);
}

// A word's half and 1/2, by its place in a mantissa.
template <int HIGH>
__device__ __forceinline__ float middle_of(const rng_vector_args &a, uint32_t word)
{
    return __uint_as_float(__byte_perm(word, a.exponent, HIGH ? 0x7632 : 0x7610)) - 8388607.5f;
}
__device__ __forceinline__ float turn_of(const rng_vector_args &a, uint32_t word)
{
    return fmaf(middle_of<1>(a, word), 1.0f / 32768.0f, -1.0f);
}

// Integers below 2^32 as double, by their place in a mantissa.
__device__ __forceinline__ double whole(uint32_t r)
{
    return __hiloint2double(0x43300000, (int)r) - 0x1p52;
}

__device__ __forceinline__ void double_pair(const rng_scale &p, const uint32_t *number, double *to)
{
    const double u = whole(number[0]) + 0.5;
    const uint32_t high = (uint32_t)__double2hiint(u);
    // below the square root of 1/2 or not; a double's power is the upper word's
    uint32_t power = (high - 0x3fe6a09eu) & 0xfff00000u;
    double f = __hiloint2double((int)(high - power), __double2loint(u));
    if (f < 0.70710678118654752440) f += f, power -= 0x00100000u;
    const double radius = sqrt(rng_double_square(f, (double)((int32_t)power >> 20) - 32.0));
    const double t = (whole((number[1] << 2 | 2u) ^ 0x80000000u) - 2147483648.0) * 0x1p-31;
    rng_double_pair(&p, radius, t, number[1], to);
}

template <class T> __device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    uint32_t word;
    if constexpr (std::is_same<T, half16>::value) {
        const __half2 pair = __floats2half2_rn(low, high);
        memcpy(&word, &pair, sizeof word);
    } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        memcpy(&word, &pair, sizeof word);
    }
    return word;
}

__device__ __forceinline__ void put(uint32_t *word, int i, double v)
{
    word[2 * i] = (uint32_t)__double2loint(v);
    word[2 * i + 1] = (uint32_t)__double2hiint(v);
}

// The tail's middles, in place of those of the words' lower halves.
__device__ __forceinline__ void set_tails(const wd_drawing &d, uint32_t block,
                                          const uint32_t *number, float *middle)
{
    bool few = false;
#pragma unroll
    for (int w = 0; w < 4; ++w) few |= (number[w] & 0xffffu & ~(RNG_TAIL - 1)) == 0;
    if (!few) return;
    uint32_t second[4];
    wd_draw_second(d, block, second);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        middle[w] = rng_coarse_middle(number[w] & 0xffffu, second[w] & 0xffffu);
    }
}

// Of the element, of WORDS words, that word w is a part of.
template <int WORDS> __device__ __forceinline__ uint32_t element_above(const uint32_t *flags, int w)
{
    const int i = w / WORDS;
    return i & 1 ? wd_word_above<1>(flags[i / 2]) : wd_word_above<0>(flags[i / 2]);
}

// T is what y holds; of Bernoulli's an integer of as many bytes.
template <class T, int WAY> struct elements {
    static constexpr bool HALVES = WAY == CHANCE || sizeof(T) <= 2;
    static constexpr int IN_BLOCK = HALVES ? WD_PHILOX_HALVES : 4;

    static __device__ __forceinline__ void draw(const rng_vector_args &a, const wd_drawing &d,
                                                uint32_t block, uint32_t *number)
    {
        if constexpr (WAY == CHANCE) wd_draw_chances(d, a.threshold, block, number);
        else wd_draw(d, block, number);
    }

    // The first COUNT elements that words of a block are, packed. Of pairs, both.
    template <int COUNT>
    static __device__ __forceinline__ void make(const rng_vector_args &a, const wd_drawing &d,
                                                uint32_t block, const uint32_t *number,
                                                uint32_t *word)
    {
        constexpr int WORDS = COUNT * (int)sizeof(T) / 4;
        const rng_scale &p = a.scale;
        if constexpr (WAY == CHANCE) {
#pragma unroll
            for (int w = 0; w < WORDS; ++w) {
                uint32_t above;
                if constexpr (sizeof(T) == 1) above = wd_bytes_above(number + 2 * w);
                else if constexpr (sizeof(T) == 2) above = wd_halves_above(number[w]);
                else above = element_above<sizeof(T) / 4>(number, w);
                word[w] = (uint32_t)(a.none >> (32 * (w & 1))) ^
                          ((uint32_t)(a.flip >> (32 * (w & 1))) & ~above);
            }
        } else if constexpr (sizeof(T) == 2 && WAY == UNIFORM) {
#pragma unroll
            for (int w = 0; w < WORDS; ++w) {
                word[w] = pair_of<T>(rng_coarse_uniform(&p, middle_of<0>(a, number[w])),
                                     rng_coarse_uniform(&p, middle_of<1>(a, number[w])));
            }
        } else if constexpr (sizeof(T) == 2) {
            float middle[4];
            static_assert(WORDS == 4, "a block");
#pragma unroll
            for (int w = 0; w < 4; ++w) middle[w] = middle_of<0>(a, number[w]);
            set_tails(d, block, number, middle);
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                float v[2];
                rng_coarse_pair(&p, root(rng_coarse_square(middle[w], a.one)),
                                turn_of(a, number[w]), v);
                word[w] = pair_of<T>(v[0], v[1]);
            }
        } else if constexpr (sizeof(T) == 1) {
            constexpr bool SIGNED = std::is_same<T, int8_t>::value;
#pragma unroll
            for (int w = 0; w < WORDS; ++w) word[w] = 0;
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const double v = rng_coarse_uniform(&p, i & 1 ? middle_of<1>(a, number[i / 2])
                                                              : middle_of<0>(a, number[i / 2]));
                const int64_t whole = wd_saturate(v, SIGNED ? -128.0 : 0.0, SIGNED ? 127.0 : 255.0);
                word[i / 4] |= (uint32_t)(uint8_t)whole << (8 * (i & 3));
            }
        } else if constexpr (std::is_same<T, int32_t>::value) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const double v = rng_double_uniform(&p, whole(number[i]));
                word[i] = (uint32_t)(int32_t)wd_saturate(v, -2147483648.0, 2147483647.0);
            }
        } else if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int i = 0; i < COUNT; i += 2) {
                float v[2] = {rng_single_uniform(&p, number[i]),
                              rng_single_uniform(&p, number[i + 1])};
                if constexpr (WAY == NORMAL) {
                    rng_single_pair(&p, root(rng_single_square(number[i])), number[i + 1], v);
                }
                word[i] = __float_as_uint(v[0]);
                word[i + 1] = __float_as_uint(v[1]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; i += 2) {
                double v[2];
                if constexpr (WAY == NORMAL) {
                    double_pair(p, number + i, v);
                } else {
                    v[0] = rng_double_uniform(&p, whole(number[i]));
                    v[1] = rng_double_uniform(&p, whole(number[i + 1]));
                }
                put(word, i, v[0]);
                put(word, i + 1, v[1]);
            }
        }
    }
};

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
        made::template make<COUNT>(a, d, block + b, number, word + b * (4 / BLOCKS));
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
        const int64_t first = (int64_t)blockIdx.x * (threads * RNG_RUNS); // of the block's runs
        const uint32_t block = (uint32_t)(first / in::PARTS) * in::BLOCKS;
        const bool whole = blockIdx.x < a.whole_blocks;
        char *to = static_cast<char *>(a.y) + first * RNG_BYTES;
#pragma unroll 1
        for (uint32_t run = threadIdx.x; run < threads * RNG_RUNS; run += threads) {
            if (!whole && (first + run) * in::COUNT >= a.count) return;
            make_run<T, WAY>(a, d, block + run / in::PARTS * in::BLOCKS, run % in::PARTS, word + 4);
            if (whole) store_run(a, to + run * RNG_BYTES, word + 4);
            else store<P>(a, (first + run) * in::COUNT, word + 4);
        }
        return;
    }
    // a warp makes 32 runs of the index, of which the first one's are the last of the warp before
    int64_t base = ((int64_t)blockIdx.x * (threads * RNG_RUNS) + threadIdx.x) / 32 * 31 - 1;
    const int before = a.shift / (int)sizeof(T);
#pragma unroll 1
    for (int u = 0; u < RNG_RUNS; ++u, base += threads / 32 * 31) {
        const int64_t run = base + lane, at = base * in::COUNT - before; // of the warp
        uint32_t shifted[4];
        if (at + in::COUNT >= a.count) return;
        make_run<T, WAY>(a, d, (uint32_t)(run >> in::PARTS_LOG2) * in::BLOCKS,
                         (uint32_t)run % in::PARTS, word + 4);
        take_from<(int)sizeof(T)>(word + 4, (uint32_t)(RNG_BYTES - a.shift), shifted);
        if (lane == 0) continue;
        if (at >= 0 && at + 32 * in::COUNT <= a.count) {
            store_run(a, static_cast<P *>(a.y) + at + lane * in::COUNT, shifted);
        } else {
            store<P>(a, at + lane * in::COUNT, shifted);
        }
    }
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

template <class T, int WAY> __device__ __forceinline__ void tiles(const rng_vector_args &a)
{
    WD_DYNAMIC_SHARED(unsigned char, shared);
    typedef elements<T, WAY> made;
    typedef piece<sizeof(T)> P;
    constexpr int COUNT = made::IN_BLOCK, UNIT = RNG_BYTES / (int)sizeof(T);
    const wd_drawing d = begin(a);
    P *y = static_cast<P *>(a.y);
    const uint32_t row = wd_fastdiv_quotient(blockIdx.x, a.by_groups);
    const uint32_t channel = (blockIdx.x - row * a.by_groups.divisor) * a.tile_channels;
    const uint32_t image = wd_fastdiv_quotient(row, a.by_spans);
    const uint32_t pixel = (row - image * a.by_spans.divisor) * a.tile_pixels;
    const int channels = (int)min(a.tile_channels, a.channels - channel);
    const int pixels = (int)min(a.tile_pixels, a.plane - pixel);
    const int64_t start = ((int64_t)image * a.plane + pixel) * a.channels + channel;
    // as far behind a boundary as in y
    const int shift = a.contiguous ? (int)(reinterpret_cast<uintptr_t>(y + start) % RNG_BYTES) : 0;
    P *tile = reinterpret_cast<P *>(shared + shift);
    // of whole planes the elements are neighbours in the index, and blocks of bits go on from one to the next
    const uint32_t origin = (image * a.channels + channel) * a.plane + pixel;
    const uint32_t end = origin + (uint32_t)channels * a.plane;
    const uint32_t blocks =
        a.small ? (end - 1) / COUNT - origin / COUNT + 1 : a.tile_channels * a.row_blocks;
    for (uint32_t i = threadIdx.x; i < blocks; i += blockDim.x) {
        uint32_t number[4], word[COUNT * (int)sizeof(T) / 4];
        uint32_t block = origin / COUNT + i, skip = 0;
        int c, p;
        if (a.small) {
            skip = block * COUNT < origin ? origin - block * COUNT : 0;
            const uint32_t from = block * COUNT + skip - origin;
            c = (int)wd_fastdiv_quotient(from, a.by_plane);
            p = (int)(from - (uint32_t)c * a.plane);
        } else {
            const uint32_t k = wd_fastdiv_quotient(i, a.by_channels);
            c = (int)(i - k * a.tile_channels);
            const uint32_t index = origin + (uint32_t)c * a.plane;
            p = (int)(k * COUNT) - (int)(index % COUNT);
            block = index / COUNT + k;
            if (c >= channels || p >= pixels) continue;
        }
        made::draw(a, d, block, number);
        made::template make<COUNT>(a, d, block, number, word);
        P *to = tile + p * (int)a.tile_channels + c;
        if (a.small) {
            const uint32_t back =
                a.plane * a.tile_channels - 1; // to the next channel's first pixel
#pragma unroll
            for (uint32_t j = 0; j < (uint32_t)COUNT; ++j) {
                if (j < skip || block * COUNT + j >= end) continue;
                *to = element<P>(word, (int)j);
                to += a.tile_channels;
                if (++p == pixels) p = 0, to -= back;
            }
        } else if (p >= 0 && p + COUNT <= pixels) {
#pragma unroll
            for (int j = 0; j < COUNT; ++j, to += a.tile_channels) *to = element<P>(word, j);
        } else {
#pragma unroll
            for (int j = 0; j < COUNT; ++j, to += a.tile_channels) {
                if ((uint32_t)(p + j) < (uint32_t)pixels) *to = element<P>(word, j);
            }
        }
    }
    __syncthreads();
    if (a.contiguous) {
        const int end = shift / (int)sizeof(T) + pixels * channels; // elements from the boundary
        const P *from = reinterpret_cast<const P *>(shared);
        P *to = y + start - shift / (int)sizeof(T);
        for (int e = (int)threadIdx.x * UNIT; e < end; e += (int)blockDim.x * UNIT) {
            if (e * (int)sizeof(T) >= shift && e + UNIT <= end) {
                *reinterpret_cast<uint4 *>(to + e) = *reinterpret_cast<const uint4 *>(from + e);
                continue;
            }
            for (int j = e; j < e + UNIT && j < end; ++j) {
                if (j * (int)sizeof(T) >= shift) to[j] = from[j];
            }
        }
    } else if (a.units > 0) {
        for (uint32_t i = threadIdx.x; i < (uint32_t)(pixels * a.units); i += blockDim.x) {
            const uint32_t p = wd_fastdiv_quotient(i, a.by_units);
            const int c = (int)(i - p * (uint32_t)a.units) * UNIT;
            if (c >= channels) continue;
            *reinterpret_cast<uint4 *>(y + start + (int64_t)p * a.channels + c) =
                *reinterpret_cast<const uint4 *>(tile + p * a.tile_channels + c);
        }
    } else {
        for (uint32_t i = threadIdx.x; i < (uint32_t)pixels * a.tile_channels; i += blockDim.x) {
            const uint32_t p = wd_fastdiv_quotient(i, a.by_channels);
            const int c = (int)(i - p * a.tile_channels);
            if (c < channels) y[start + (int64_t)p * a.channels + c] = tile[i];
        }
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/rng/rng_vector_exact_kernels.def"
#include "ops/kernels_device.inc"
