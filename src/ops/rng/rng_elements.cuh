// SPDX-License-Identifier: Apache-2.0
//
// The elements of a block of random bits, packed, for kernels that store 16 bytes at a time. Values are the
// definition's, bit for bit: the same functions make them (rng_numbers.h), or ones that round alike.
#ifndef WD_OPS_RNG_ELEMENTS_CUH
#define WD_OPS_RNG_ELEMENTS_CUH

#include <type_traits>

#include "gpu/device/depend.cuh"
#include "gpu/device/halves.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/philox.cuh"
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

// ---- Normal numbers of 16 bits ----

// The table where threads read it from all banks at once.
__device__ __forceinline__ uint32_t *near_table()
{
    __shared__ __align__(16) uint32_t table[RNG_ENTRIES];
    return table;
}

// All threads of a block come.
__device__ __forceinline__ void bring_table()
{
    uint4 *table = reinterpret_cast<uint4 *>(near_table());
    const uint4 *from = reinterpret_cast<const uint4 *>(rng_normal_table);
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < RNG_ENTRIES / 4; i += blockDim.x) table[i] = from[i];
    __syncthreads();
}

__device__ __forceinline__ float half_of(uint32_t word)
{
    const uint16_t bits = (uint16_t)word;
    half16 value;
    memcpy(&value, &bits, sizeof value);
    return __half2float(value);
}

// Halves of words, the lowest one last.
__device__ __forceinline__ void turn_halves(uint32_t *word)
{
    const uint32_t lowest = word[0];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        word[w] = word[w] >> 16 | (w < 3 ? word[w + 1] : lowest) << 16;
    }
}

// A block's elements in the tail, one by one: some are, of one block in 256.
template <class T>
__device__ __forceinline__ void put_tails(const rng_scale &p, const wd_drawing &d, uint32_t block,
                                          const uint32_t *number, uint32_t *word)
{
    uint32_t first[4], second[4];
    wd_draw_second(d, block, second);
#pragma unroll
    for (int w = 0; w < 4; ++w) first[w] = number[w];
#pragma unroll 1
    for (int i = 0; i < WD_PHILOX_HALVES; ++i) {
        const uint32_t half = first[0] & 0xffffu;
        if (rng_is_tail(half)) {
            const float z = rng_tail_number(half, root(rng_tail_square(half, second[0] & 0xffffu)));
            const float value = fmaf(p.step_f, z, p.base_f);
            word[0] = (word[0] & 0xffff0000u) | (pair_of<T>(value, 0.0f) & 0xffffu);
        }
        turn_halves(first);
        turn_halves(second);
        turn_halves(word);
    }
}

template <class T>
__device__ __forceinline__ void make_normal(const rng_scale &p, const wd_drawing &d, uint32_t block,
                                            const uint32_t *number, uint32_t *word)
{
    const uint32_t *table = near_table();
    uint32_t tails = 0; // where an upper bit is set
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const uint32_t low = table[number[w] >> 4 & (RNG_ENTRIES - 1)];
        const uint32_t high = table[number[w] >> 20 & (RNG_ENTRIES - 1)];
        const uint32_t place = (number[w] << 6 & 0x03c003c0u) | 0x3c003c00u; // 1 and sixteenths
        const uint32_t size =
            wd_halves_fma(__byte_perm(low, high, 0x7632), place, __byte_perm(low, high, 0x5410));
        tails |= size;
        word[w] = (number[w] & 0x80008000u) ^ size;
    }
    if (!std::is_same<T, half16>::value || p.step_f != 1.0f || p.base_f != 0.0f) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            word[w] = pair_of<T>(fmaf(p.step_f, half_of(word[w]), p.base_f),
                                 fmaf(p.step_f, half_of(word[w] >> 16), p.base_f));
        }
    }
    if (tails & 0x80008000u) put_tails<T>(p, d, block, number, word);
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
            static_assert(WORDS == 4, "a block");
            make_normal<T>(p, d, block, number, word);
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

} // namespace

#endif
