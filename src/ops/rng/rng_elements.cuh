// SPDX-License-Identifier: Apache-2.0
//
// The elements of a block of random bits, packed, for kernels that store 16 bytes at a time. Values are the
// definition's, bit for bit: the same functions make them (rng_numbers.h), or ones that round alike.
#ifndef WD_OPS_RNG_ELEMENTS_CUH
#define WD_OPS_RNG_ELEMENTS_CUH

#include <type_traits>

#include "gpu/device/depend.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/philox.cuh"
#include "gpu/device/vector.cuh"
#include "ops/rng/rng_vector_args.h"

namespace {

enum { CHANCE, UNIFORM, NORMAL };

// Keys of a seed that the host knew lie with the arguments. D is wd_prepared where instructions bind.
template <class D> __device__ __forceinline__ D begin(const rng_vector_args &a)
{
    D d;
    wd_wait_for_previous();
    d.offset = rng_integer(a.offset, a.offset_dtype, a.offset_value);
    if (a.seed) {
        wd_philox_keys(rng_integer(a.seed, a.seed_dtype, 0), d.key);
    } else {
#pragma unroll
        for (int i = 0; i < 2 * WD_PHILOX_ROUNDS; ++i) d.key[i] = a.key[i];
    }
    if constexpr (std::is_base_of<wd_prepared, D>::value) wd_prepare(d);
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

// The same of a double, from some twenty bits in one step of the third order.
__device__ __forceinline__ double root(double x)
{
    const double about = wd_about_rsqrt(x);
    const double rest = fma(-x, about * about, 1.0);
    const double inverse = fma(fma(rest, 0.375, 0.5) * rest, about, about);
    const double near = x * inverse;
    return fma(fma(-near, near, x), 0.5 * inverse, near);
}

__device__ __forceinline__ void double_pair(const rng_scale &p, const uint32_t *number, double *to)
{
    const double u = (double)number[0] + 0.5;
    const double turned = (double)(int32_t)(number[1] << 2 | 2u);
    rng_double_pair(&p, root(rng_double_square(u)), turned, number[1], to);
}

// Pairs of fp16 or bf16: one kernel makes both.
template <int WORDS>
__device__ __forceinline__ void pack(const rng_vector_args &a, const float (*value)[2],
                                     uint32_t *word)
{
    if (a.bfloat) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            const __nv_bfloat162 pair = __floats2bfloat162_rn(value[w][0], value[w][1]);
            memcpy(word + w, &pair, sizeof pair);
        }
    } else {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            const __half2 pair = __floats2half2_rn(value[w][0], value[w][1]);
            memcpy(word + w, &pair, sizeof pair);
        }
    }
}

__device__ __forceinline__ void put(uint32_t *word, int i, double v)
{
    word[2 * i] = (uint32_t)__double2loint(v);
    word[2 * i + 1] = (uint32_t)__double2hiint(v);
}

// Of the element, of WORDS words, that word w is a part of.
template <int WORDS> __device__ __forceinline__ uint32_t element_above(const uint32_t *flags, int w)
{
    const int i = w / WORDS;
    return i & 1 ? wd_word_above<1>(flags[i / 2]) : wd_word_above<0>(flags[i / 2]);
}

// T is what y holds; of Bernoulli's an integer of as many bytes, and so of uniform numbers of one and two.
template <class T, int WAY> struct elements {
    typedef T stored;
    static constexpr bool HALVES = WAY == CHANCE || sizeof(T) <= 2;
    static constexpr int IN_BLOCK = HALVES ? WD_PHILOX_HALVES : 4;
    static constexpr bool TABLE = false;

    template <class D>
    static __device__ __forceinline__ void draw(const rng_vector_args &a, const D &d,
                                                uint32_t block, uint32_t *number)
    {
        if constexpr (WAY == CHANCE) wd_draw_chances(d, a.threshold, block, number);
        else wd_draw(d, block, number);
    }

    // All of a block, packed.
    template <class D>
    static __device__ __forceinline__ void all(const rng_vector_args &a, const D &d, uint32_t block,
                                               uint32_t *word)
    {
        uint32_t number[4];
        draw(a, d, block, number);
        make<IN_BLOCK>(a, number, word);
    }

    // The first COUNT elements that words of a block are, packed. Of pairs, both.
    template <int COUNT>
    static __device__ __forceinline__ void make(const rng_vector_args &a, const uint32_t *number,
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
        } else if constexpr (sizeof(T) <= 2) {
            float value[COUNT / 2][2];
#pragma unroll
            for (int w = 0; w < COUNT / 2; ++w) {
                value[w][0] = rng_coarse_uniform(&p, middle_of<0>(a, number[w]));
                value[w][1] = rng_coarse_uniform(&p, middle_of<1>(a, number[w]));
            }
            if constexpr (sizeof(T) == 2) {
                pack<WORDS>(a, value, word);
            } else {
                uint32_t bits[COUNT]; // rounded by what is added: the lowest bytes are the integers
#pragma unroll
                for (int i = 0; i < COUNT; ++i) {
                    const float v = fminf(fmaxf(value[i / 2][i & 1], a.byte_least), a.byte_most);
                    bits[i] = __float_as_uint(v + 12582912.0f);
                }
#pragma unroll
                for (int w = 0; w < WORDS; ++w) {
                    word[w] =
                        __byte_perm(__byte_perm(bits[4 * w], bits[4 * w + 1], 0x0040),
                                    __byte_perm(bits[4 * w + 2], bits[4 * w + 3], 0x0040), 0x5410);
                }
            }
        } else if constexpr (std::is_same<T, int32_t>::value) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const double v = rng_double_uniform(&p, whole(number[i]));
                word[i] = (uint32_t)(int32_t)wd_saturate(v, -2147483648.0, 2147483647.0);
            }
        } else if constexpr (sizeof(T) == 4) {
            // in a register: a bit that nvcc knows is tested by two instructions
            uint32_t lowest = 1;
            wd_forget<0>(lowest);
#pragma unroll
            for (int i = 0; i < COUNT; i += 2) {
                float v[2] = {rng_single_uniform(&p, number[i]),
                              rng_single_uniform(&p, number[i + 1])};
                if constexpr (WAY == NORMAL) {
                    rng_single_pair(&p, root(rng_single_square(number[i])), number[i + 1],
                                    (number[i] & lowest) != 0, v);
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
