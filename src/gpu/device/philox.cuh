// SPDX-License-Identifier: Apache-2.0
//
// Blocks of random bits, base/philox.h, for kernels that draw many of them: indices of 32 bits, so that
// half of the products of the first two rounds are the same for all, and the eight numbers of 16 bits
// of a block compared with a probability.
#ifndef WD_GPU_DEVICE_PHILOX_CUH
#define WD_GPU_DEVICE_PHILOX_CUH

#include "base/philox.h"

struct wd_drawing {
    uint64_t seed;
    uint64_t offset;
};

static __device__ __forceinline__ void wd_draw(const wd_drawing &d, uint32_t block,
                                               uint32_t *number)
{
    wd_philox(d.seed, d.offset, (uint64_t)block, number);
}

// The block that is asked for rarely.
static __device__ __noinline__ uint4 wd_draw_second(uint64_t seed, uint64_t offset, uint32_t block)
{
    uint32_t number[4];
    wd_philox(seed, offset, (uint64_t)block + WD_PHILOX_SECOND, number);
    return make_uint4(number[0], number[1], number[2], number[3]);
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
    const uint4 drawn = wd_draw_second(d.seed, d.offset, block);
    const uint32_t second[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
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
