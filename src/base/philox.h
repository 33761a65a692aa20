/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers as a function of (seed, offset, index), the same on every device and in every
 * engine: Philox4x32 with seven rounds, from J. K. Salmon et al., "Parallel Random Numbers: As Easy as
 * 1, 2, 3", SC 2011. The seed is the key; the counter holds the offset (which call) and the index of
 * a block of 128 bits (which elements): four numbers of 32 bits or eight of 16. Also the state that
 * callers keep in device memory.
 * Compiled by the C compiler and by nvcc; no state of its own. */
#ifndef WD_BASE_PHILOX_H
#define WD_BASE_PHILOX_H

#include "base/shared.h"

enum {
    WD_PHILOX_ROUNDS = 7, /* the fewest with which the paper's battery of tests (BigCrush) passes */
    WD_PHILOX_HALVES = 8, /* numbers of 16 bits in a block */
};

#define WD_PHILOX_FACTOR0 0xd2511f53u
#define WD_PHILOX_FACTOR1 0xcd9e8d57u
#define WD_PHILOX_KEY0 0x9e3779b9u /* the golden ratio */
#define WD_PHILOX_KEY1 0xbb67ae85u /* the square root of 3, less 1 */

/* What is added to a block's index for its second block, see wd_philox_chance. */
#define WD_PHILOX_SECOND ((uint64_t)1 << 63)

/* A seed's keys, two for each round. */
WD_FN void wd_philox_keys(uint64_t seed, uint32_t *key)
{
    for (int round = 0; round < WD_PHILOX_ROUNDS; ++round) {
        key[2 * round] = (uint32_t)seed + (uint32_t)round * WD_PHILOX_KEY0;
        key[2 * round + 1] = (uint32_t)(seed >> 32) + (uint32_t)round * WD_PHILOX_KEY1;
    }
}

/* Numbers 4*block .. 4*block+3 of the sequence (seed, offset). */
WD_FN void wd_philox(uint64_t seed, uint64_t offset, uint64_t block, uint32_t *number)
{
    uint32_t c0 = (uint32_t)block;
    uint32_t c1 = (uint32_t)(block >> 32);
    uint32_t c2 = (uint32_t)offset;
    uint32_t c3 = (uint32_t)(offset >> 32);
    uint32_t k0 = (uint32_t)seed;
    uint32_t k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < WD_PHILOX_ROUNDS; ++round) {
        uint64_t p0 = (uint64_t)WD_PHILOX_FACTOR0 * c0;
        uint64_t p1 = (uint64_t)WD_PHILOX_FACTOR1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += WD_PHILOX_KEY0;
        k1 += WD_PHILOX_KEY1;
    }
    number[0] = c0;
    number[1] = c1;
    number[2] = c2;
    number[3] = c3;
}

/* Number i of 16 bits of a block. */
WD_FN uint32_t wd_philox_half(const uint32_t *number, int i)
{
    return number[i / 2] >> (16 * (i & 1)) & 0xffffu;
}

/* Element i of a block as a number of 32 bits that is compared with a probability: 16 bits of the
 * block, below them 16 of the block WD_PHILOX_SECOND behind it. These are needed only where the upper
 * ones are equal to the probability's, one time in 65,536, so that engines draw a block for eight. */
WD_FN uint32_t wd_philox_chance(const uint32_t *number, const uint32_t *second, int i)
{
    return wd_philox_half(number, i) << 16 | wd_philox_half(second, i);
}

/* How many of the numbers of 32 bits are below a probability. Probabilities from 1/64 to 63/64 are
 * rounded to multiples of 2^-15, so that 15 bits of a number decide: at most 2^-16 off, a thousandth of
 * them. All others count to 2^-32. */
WD_FN uint64_t wd_chance_threshold(double probability)
{
    const double exact = probability * 4294967296.0;
    const uint64_t least = (uint64_t)1 << 26;
    uint64_t threshold = (uint64_t)exact;
    if ((double)threshold < exact) threshold += 1;
    if (threshold < least || threshold > ((uint64_t)1 << 32) - least) return threshold;
    return (threshold + 0x10000u) >> 17 << 17;
}

/* How engines compare with a threshold below 2^32. Where 15 bits of a number decide, `above` is what,
 * added to them, sets the 16th where the number is not below, twice in a word. Else above is 0, and
 * a number of 16 bits is below the threshold where it is below `limit`, once those that are equal to `tie`
 * (where there may be one: `lower` > 0) were replaced, by 0 where the lower bits are below `lower`, else
 * by 0xffff. */
struct wd_threshold {
    uint32_t above;
    uint32_t limit;
    uint32_t tie;
    uint32_t lower;
};

static inline struct wd_threshold wd_threshold_of(uint32_t threshold)
{
    struct wd_threshold t = {0, threshold >> 16, threshold >> 16, threshold & 0xffffu};
    if (t.lower > 0 && t.limit < 0xffffu) t.limit += 1; /* so that 0 is below it */
    if (threshold > 0 && threshold << 15 == 0) t.above = (0x8000u - (threshold >> 17)) * 0x10001u;
    return t;
}

/* A generator in device memory: callers hold these bytes, copy them away and back. `offset` counts
 * the calls that drew from it; it is advanced on the device, after its last reader, so that each
 * replay of a captured graph draws anew. */
struct wd_random_state {
    uint64_t check; /* WD_RANDOM_CHECK ^ seed: tells a state from other bytes */
    uint64_t seed;
    uint64_t offset;
    uint64_t readers; /* 0, but while a kernel runs whose blocks count themselves here */
};

#define WD_RANDOM_CHECK ((uint64_t)0x57440052414e4431u)

WD_FN int wd_random_state_holds(const struct wd_random_state *state)
{
    return state->check == (WD_RANDOM_CHECK ^ state->seed);
}

WD_FN void wd_random_state_set(struct wd_random_state *state, uint64_t seed)
{
    state->check = WD_RANDOM_CHECK ^ seed;
    state->seed = seed;
    state->offset = 0;
    state->readers = 0;
}

#endif
