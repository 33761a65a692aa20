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

__device__ __forceinline__ wd_drawing begin(const rng_vector_args &a)
{
    wd_wait_for_previous();
    return {rng_integer(a.seed, a.seed_dtype, a.seed_value),
            rng_integer(a.offset, a.offset_dtype, a.offset_value)};
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

// rng_coarse_middle and rng_coarse_turn of a word's halves, by their places in a mantissa.
__device__ __forceinline__ float middle_of(uint32_t word, int high)
{
    const uint32_t bits = __byte_perm(word, 0x4b000000u, high ? 0x7632 : 0x7610);
    return __uint_as_float(bits) - 8388607.5f;
}
__device__ __forceinline__ float turn_of(uint32_t word)
{
    return __uint_as_float((word >> 8 & 0x007fff00u) | 0x40000080u) - 3.0f;
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
    const uint4 drawn = wd_draw_second(d.seed, d.offset, block);
    const uint32_t second[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        middle[w] = rng_coarse_middle(number[w] & 0xffffu, second[w] & 0xffffu);
    }
}

// T is what y holds; of Bernoulli's an integer of as many bytes.
template <class T, int WAY> struct elements {
    static constexpr bool HALVES = WAY == CHANCE || sizeof(T) <= 2;
    static constexpr int COUNT = HALVES ? WD_PHILOX_HALVES : 4;
    static constexpr int WORDS = COUNT * (int)sizeof(T) / 4;

    static __device__ __forceinline__ void make(const rng_vector_args &a, const wd_drawing &d,
                                                uint32_t block, uint32_t *word)
    {
        const rng_scale &p = a.scale;
        uint32_t number[4];
        if constexpr (WAY == CHANCE) wd_draw_chances(d, a.threshold, block, number);
        else wd_draw(d, block, number);
        if constexpr (WAY == CHANCE) {
#pragma unroll
            for (int w = 0; w < WORDS; ++w) word[w] = (uint32_t)(a.none >> (32 * (w & 1)));
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const uint64_t flip = wd_is_below(a.threshold, number, i) ? a.flip : 0;
                if constexpr (sizeof(T) == 8) {
                    word[2 * i] ^= (uint32_t)flip;
                    word[2 * i + 1] ^= (uint32_t)(flip >> 32);
                } else {
                    constexpr int IN_WORD = 4 / (int)sizeof(T), BITS = 8 * (int)sizeof(T);
                    constexpr uint32_t MASK = UINT32_MAX >> (32 - BITS);
                    word[i / IN_WORD] ^= (uint32_t)flip & MASK << (i % IN_WORD * BITS);
                }
            }
        } else if constexpr (sizeof(T) == 2 && WAY == UNIFORM) {
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                word[w] = pair_of<T>(rng_coarse_uniform(&p, middle_of(number[w], 0)),
                                     rng_coarse_uniform(&p, middle_of(number[w], 1)));
            }
        } else if constexpr (sizeof(T) == 2) {
            float middle[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) middle[w] = middle_of(number[w], 0);
            set_tails(d, block, number, middle);
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                float v[2];
                rng_coarse_pair(&p, root(rng_coarse_square(middle[w])), turn_of(number[w]),
                                number[w] & 0x80000000u, v);
                word[w] = pair_of<T>(v[0], v[1]);
            }
        } else if constexpr (sizeof(T) == 1) {
            constexpr bool SIGNED = std::is_same<T, int8_t>::value;
#pragma unroll
            for (int w = 0; w < WORDS; ++w) word[w] = 0;
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const double v = rng_coarse_uniform(&p, middle_of(number[i / 2], i & 1));
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
                double v[2] = {rng_double_uniform(&p, whole(number[i])),
                               rng_double_uniform(&p, whole(number[i + 1]))};
                if constexpr (WAY == NORMAL) double_pair(p, number + i, v);
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

// The bytes from `from` (1 to 15) on of words that follow one another.
template <int WORDS>
__device__ __forceinline__ void shift_down(const uint32_t *all, uint32_t from, uint32_t *to)
{
    uint32_t t[WORDS + 2], u[WORDS + 1];
#pragma unroll
    for (int i = 0; i < WORDS + 2; ++i) t[i] = from & 8 ? all[i + 2] : all[i];
#pragma unroll
    for (int i = 0; i < WORDS + 1; ++i) u[i] = from & 4 ? t[i + 1] : t[i];
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        to[i] = (uint32_t)(((uint64_t)u[i + 1] << 32 | u[i]) >> (8 * (from & 3)));
    }
}

// ---- Memory in the order of the index ----

template <class T, int WAY> __device__ __forceinline__ void flat(const rng_vector_args &a)
{
    typedef elements<T, WAY> block_elements;
    typedef piece<sizeof(T)> P;
    constexpr int BLOCK_WORDS = block_elements::WORDS;
    constexpr int BLOCKS = BLOCK_WORDS < 4 ? 4 / BLOCK_WORDS : 1;
    constexpr int WORDS = BLOCKS * BLOCK_WORDS, COUNT = BLOCKS * block_elements::COUNT;
    const wd_drawing d = begin(a);
    const int lane = threadIdx.x % 32, before = a.shift > 0, own = 32 - before;
    const int warps = (int)blockDim.x / 32;
    int64_t turn = (int64_t)blockIdx.x * warps * RNG_RUNS + threadIdx.x / 32;
    P *y = static_cast<P *>(a.y);
#pragma unroll 1
    for (int u = 0; u < RNG_RUNS; ++u, turn += warps) {
        const int64_t run = turn * own + lane - before; // of random bits; lane 0 repeats the last
        const int64_t at = run * COUNT - a.shift / (int)sizeof(T);
        uint32_t word[WORDS + 4]; // what is stored is behind the first four
        if ((run - lane + before) * COUNT - a.shift / (int)sizeof(T) >= a.count) return;
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
            block_elements::make(a, d, (uint32_t)run * BLOCKS + b, word + 4 + b * BLOCK_WORDS);
        }
        if (before) {
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                word[w] = __shfl_sync(0xffffffffu, word[WORDS + w], (lane + 31) % 32);
            }
            uint32_t moved[WORDS];
            shift_down<WORDS>(word, (uint32_t)(RNG_BYTES - a.shift), moved);
#pragma unroll
            for (int w = 0; w < WORDS; ++w) word[4 + w] = moved[w];
            if (lane == 0) continue;
        }
        if (at >= 0 && at + COUNT <= a.count) {
#pragma unroll
            for (int w = 4; w < WORDS + 4; w += 4) {
                wd_run<uint32_t, 4> out;
#pragma unroll
                for (int i = 0; i < 4; ++i) out.word[i] = word[w + i];
                uint32_t *to = reinterpret_cast<uint32_t *>(y + at) + w - 4;
                if (a.streaming) out.store_streaming(to);
                else out.store(to);
            }
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                if (at + i >= 0 && at + i < a.count) y[at + i] = element<P>(word + 4, i);
            }
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
            bits |= wd_bits_below(a.threshold, number) << (WD_PHILOX_HALVES * b);
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
    typedef elements<T, WAY> block_elements;
    typedef piece<sizeof(T)> P;
    constexpr int COUNT = block_elements::COUNT, UNIT = RNG_BYTES / (int)sizeof(T);
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
    for (uint32_t i = threadIdx.x; i < a.tile_channels * a.row_blocks; i += blockDim.x) {
        const uint32_t k = wd_fastdiv_quotient(i, a.by_channels);
        const int c = (int)(i - k * a.tile_channels);
        const uint32_t index = (image * a.channels + channel + (uint32_t)c) * a.plane + pixel;
        uint32_t word[block_elements::WORDS];
        int p = (int)(k * COUNT) - (int)(index % COUNT);
        if (c >= channels || p >= pixels) continue;
        block_elements::make(a, d, index / COUNT + k, word);
        P *to = tile + p * (int)a.tile_channels + c;
#pragma unroll
        for (int j = 0; j < COUNT; ++j, to += a.tile_channels) {
            if (a.whole || (p + j >= 0 && p + j < pixels)) *to = element<P>(word, j);
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
