/* SPDX-License-Identifier: Apache-2.0
 *
 * The random numbers of dropout, many Philox blocks at a time. The compiler does not see that a
 * product of 32 bits by 32 is one operation, and takes three for each; so it is named here. */
#include "ops/dropout/dropout_draw.h"

#include <stdbool.h>
#include <string.h>

#include "base/philox.h"
#include "cpu/module/bits.h" /* asserts the order of bytes */
#include "cpu/module/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef uint64_t wide_128 __attribute__((vector_size(16)));
#define WIDE wide_128
#define ISA
#define DRAW draw_base
#if defined(__x86_64__)
#define MULTIPLY(a, b) ((wide_128)_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#else
#define MULTIPLY(a, b) (((a)&UINT64_C(0xffffffff)) * (b))
#endif
#include "ops/dropout/dropout_draw.inc"
#undef WIDE
#undef ISA
#undef DRAW
#undef MULTIPLY

#if defined(__x86_64__)
typedef uint64_t wide_256 __attribute__((vector_size(32)));
#define WIDE wide_256
#define ISA __attribute__((target("avx2")))
#define DRAW draw_avx2
#define MULTIPLY(a, b) ((wide_256)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#include "ops/dropout/dropout_draw.inc"
#undef WIDE
#undef ISA
#undef DRAW
#undef MULTIPLY

typedef uint64_t wide_512 __attribute__((vector_size(64)));
#define WIDE wide_512
#define ISA __attribute__((target("avx512f")))
#define DRAW draw_avx512
#define MULTIPLY(a, b) ((wide_512)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#include "ops/dropout/dropout_draw.inc"
#undef WIDE
#undef ISA
#undef DRAW
#undef MULTIPLY
#endif

/* The definition's way. */
static void draw_exactly(uint8_t *kept, uint64_t seed, uint64_t offset, uint64_t first,
                         uint32_t threshold)
{
    for (int i = 0; i < WD_DRAW_BLOCKS * WD_PHILOX_HALVES; i += WD_PHILOX_HALVES) {
        uint64_t block = first + (uint64_t)(i / WD_PHILOX_HALVES);
        uint32_t number[4];
        uint32_t second[4];
        wd_philox(seed, offset, block, number);
        wd_philox(seed, offset, block + WD_PHILOX_SECOND, second);
        for (int k = 0; k < WD_PHILOX_HALVES; ++k) {
            kept[i + k] = wd_philox_chance(number, second, k) >= threshold;
        }
    }
}

void wd_dropout_draw(uint8_t *kept, uint64_t seed, uint64_t offset, uint64_t first,
                     uint32_t threshold)
{
    bool ties = WD_PICK(draw)(kept, seed, offset, first, threshold);
    /* a number that is not below the upper bits is not below the threshold, if there are no lower */
    if (ties && (threshold & 0xffffu) != 0) draw_exactly(kept, seed, offset, first, threshold);
}
