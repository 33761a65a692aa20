// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/halves.cuh; for numbers whose sum is exact in fp64.
#ifndef EMULATOR_HALVES_CUH
#define EMULATOR_HALVES_CUH

#include "base/dtype.h"

static inline uint32_t wd_halves_fma(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t word = 0;
    for (int i = 0; i < 32; i += 16) {
        const double x = (double)wd_decode_small(a >> i & 0xffffu, 5, 10, 0);
        const double y = (double)wd_decode_small(b >> i & 0xffffu, 5, 10, 0);
        const double z = (double)wd_decode_small(c >> i & 0xffffu, 5, 10, 0);
        word |= wd_encode_small(wd_round_odd(x * y + z), 5, 10, 0, 0) << i;
    }
    return word;
}

static inline uint32_t wd_halves_product(uint32_t a, uint32_t b)
{
    return wd_halves_fma(a, b, 0x80008000u); /* what is 0 has the product's sign */
}

#endif
