// SPDX-License-Identifier: Apache-2.0
//
// Blocks of random bits, base/philox.h, for kernels that draw many of them: indices of 32 bits, so that
// half of the products of the first two rounds are the same for all, and the eight numbers of 16 bits
// of a block compared with a probability.
#ifndef WD_GPU_DEVICE_PHILOX_CUH
#define WD_GPU_DEVICE_PHILOX_CUH

#include "base/philox.h"
#include "gpu/device/math.cuh"

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

// A block whose numbers of 16 bits are below t.limit where the definition's chance is below the
// threshold.
static __device__ __forceinline__ void wd_draw_chances(const wd_drawing &d, const wd_threshold &t,
                                                       uint32_t block, uint32_t *number)
{
    wd_draw(d, block, number);
    if (t.lower == 0 || wd_ties(number, t.tie) == 0) return;
    uint32_t second[4];
    wd_draw_second(d, block, second);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if ((number[w] & 0xffffu) == t.tie) {
            const bool below = (second[w] & 0xffffu) < t.lower;
            number[w] = (number[w] & 0xffff0000u) | (below ? 0 : 0xffffu);
        }
        if (number[w] >> 16 == t.tie) {
            const bool below = second[w] >> 16 < t.lower;
            number[w] = (number[w] & 0xffffu) | (below ? 0 : 0xffff0000u);
        }
    }
}

// Whether number i of 16 bits of such a block is below; i is known to the compiler.
static __device__ __forceinline__ bool wd_is_below(const wd_threshold &t, const uint32_t *number,
                                                   int i)
{
    return (i & 1 ? number[i / 2] : number[i / 2] << 16) < t.limit << 16;
}

// Those of all eight as bits, the first the lowest.
static __device__ __forceinline__ uint32_t wd_bits_below(const wd_threshold &t,
                                                         const uint32_t *number)
{
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < WD_PHILOX_HALVES; ++i) bits |= wd_is_below(t, number, i) ? 1u << i : 0u;
    return bits;
}

#endif
