// SPDX-License-Identifier: Apache-2.0
//
// Blocks of random bits, base/philox.h, for kernels that draw many of them: indices of 32 bits, so that
// half of the products of the first two rounds are the same for all, and the eight numbers of 16 bits
// of a block compared with a probability.
#ifndef WD_GPU_DEVICE_PHILOX_CUH
#define WD_GPU_DEVICE_PHILOX_CUH

#include "base/philox.h"
#include "gpu/device/math.cuh"
#include "gpu/device/signs.cuh"

struct wd_drawing {
    uint64_t offset;
    uint32_t key[2 * WD_PHILOX_ROUNDS]; // of all rounds
};

static __device__ __forceinline__ wd_drawing wd_drawing_of(uint64_t seed, uint64_t offset)
{
    wd_drawing d;
    d.offset = offset;
    wd_philox_keys(seed, d.key);
    return d;
}

// wd_philox_round by single instructions.
static __device__ __forceinline__ void wd_draw_round(uint32_t *counter, const uint32_t *key)
{
    uint32_t low0, high0, low1, high1;
    wd_product(counter[0], WD_PHILOX_FACTOR0, low0, high0);
    wd_product(counter[2], WD_PHILOX_FACTOR1, low1, high1);
    counter[0] = high1 ^ counter[1] ^ key[0];
    counter[1] = low1;
    counter[2] = high0 ^ counter[3] ^ key[1];
    counter[3] = low0;
}

static __device__ __forceinline__ void wd_draw(const wd_drawing &d, uint32_t block,
                                               uint32_t *number)
{
    number[0] = block;
    number[1] = 0;
    number[2] = (uint32_t)d.offset;
    number[3] = (uint32_t)(d.offset >> 32);
#pragma unroll
    for (int round = 0; round < WD_PHILOX_ROUNDS; ++round) {
        wd_draw_round(number, d.key + 2 * round);
    }
}

// What the first two rounds' products and keys come to for all blocks, for kernels that draw in loops.
struct wd_prepared : wd_drawing {
    uint32_t first; // of the second number after the first round
    uint32_t even;  // of the two after the second
    uint32_t odd;
    uint32_t last; // of the second after the third
};

static __device__ __forceinline__ void wd_prepare(wd_prepared &d)
{
    uint32_t low, high;
    d.first = (uint32_t)(d.offset >> 32) ^ d.key[1];
    wd_product((uint32_t)d.offset, WD_PHILOX_FACTOR1, low, high);
    d.even = low ^ d.key[2];
    wd_product(high ^ d.key[0], WD_PHILOX_FACTOR0, low, high);
    d.odd = high ^ d.key[3];
    d.last = low ^ d.key[5];
    wd_forget<0>(d.first);
    wd_forget<1>(d.even);
    wd_forget<2>(d.odd);
    wd_forget<3>(d.last);
}

static __device__ __forceinline__ void wd_draw(const wd_prepared &d, uint32_t block,
                                               uint32_t *number)
{
    uint32_t low0, high0, low1, high1, low2, high2;
    wd_product(block, WD_PHILOX_FACTOR0, low0, high0);
    wd_product(high0 ^ d.first, WD_PHILOX_FACTOR1, low1, high1);
    wd_product(high1 ^ d.even, WD_PHILOX_FACTOR0, low2, high2);
    wd_product(low0 ^ d.odd, WD_PHILOX_FACTOR1, low0, high0);
    number[0] = high0 ^ low1 ^ d.key[4];
    number[1] = low0;
    number[2] = high2 ^ d.last;
    number[3] = low2;
#pragma unroll
    for (int round = 3; round < WD_PHILOX_ROUNDS; ++round) {
        wd_draw_round(number, d.key + 2 * round);
    }
}

// The block that is asked for rarely: little code, few registers.
static __device__ __forceinline__ void wd_draw_second(const wd_drawing &d, uint32_t block,
                                                      uint32_t *number)
{
    uint32_t key[2] = {d.key[0], d.key[1]};
    number[0] = block;
    number[1] = (uint32_t)(WD_PHILOX_SECOND >> 32);
    number[2] = (uint32_t)d.offset;
    number[3] = (uint32_t)(d.offset >> 32);
#pragma unroll 1
    for (int round = 0; round < WD_PHILOX_ROUNDS; ++round) {
        wd_draw_round(number, key);
        key[0] += WD_PHILOX_KEY0;
        key[1] += WD_PHILOX_KEY1;
    }
}

// Bits of numbers that are equal to `tie`, and maybe others, but none where none is.
static __device__ __forceinline__ uint32_t wd_ties(const uint32_t *number, uint32_t tie)
{
    uint32_t any = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const uint32_t other = number[w] ^ tie * 0x10001u;
        any |= (other - 0x10001u) & ~other;
    }
    return any & 0x80008000u;
}

// The numbers of 16 bits of a block compared with the threshold: bit 15 of word w is set where number 2 w
// is not below it, bit 31 where number 2 w + 1 is not. Other bits hold anything.
template <class D>
static __device__ __forceinline__ void wd_draw_chances(const D &d, const wd_threshold &t,
                                                       uint32_t block, uint32_t *flags)
{
    wd_draw(d, block, flags);
    if (t.above != 0) {
#pragma unroll
        for (int w = 0; w < 4; ++w) flags[w] = ((flags[w] & 0xfffeffffu) >> 1) + t.above;
        return;
    }
    uint32_t second[4] = {0, 0, 0, 0};
    if (t.lower != 0 && wd_ties(flags, t.tie) != 0) wd_draw_second(d, block, second);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        uint32_t low = flags[w] & 0xffffu, high = flags[w] >> 16;
        if (t.lower != 0 && low == t.tie) low = (second[w] & 0xffffu) < t.lower ? 0 : 0xffffu;
        if (t.lower != 0 && high == t.tie) high = second[w] >> 16 < t.lower ? 0 : 0xffffu;
        flags[w] = (low < t.limit ? 0 : 0x8000u) | (high < t.limit ? 0 : 0x80000000u);
    }
}

// All bits of a byte for each of four numbers that are not below, the first the lowest; of a half for two.
static __device__ __forceinline__ uint32_t wd_bytes_above(const uint32_t *flags)
{
    return wd_signs<0xfdb9>(flags[0], flags[1]);
}
static __device__ __forceinline__ uint32_t wd_halves_above(uint32_t flags)
{
    return wd_signs<0xbb99>(flags, flags);
}

// All bits of a word where the first or second number of a word is not below.
template <int SECOND> static __device__ __forceinline__ uint32_t wd_word_above(uint32_t flags)
{
    return wd_signs < SECOND ? 0xbbbb : 0x9999 > (flags, flags);
}

// A bit for each of the eight, the first the lowest.
static __device__ __forceinline__ uint32_t wd_bits_above(const uint32_t *flags)
{
    const uint32_t bits =
        (wd_bytes_above(flags) & 0x08040201u) | (wd_bytes_above(flags + 2) & 0x80402010u);
    return bits * 0x01010101u >> 24;
}

#endif
