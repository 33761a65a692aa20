/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of sizes, as cutting work up needs it. */
#ifndef WD_BASE_SIZES_H
#define WD_BASE_SIZES_H

#include <stdint.h>

#include "base/dtype.h"

static inline int64_t wd_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t wd_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t wd_most(int64_t a, int64_t b)
{
    return a < b ? b : a;
}

/* The least power of two that is not below a; 1 of none. */
static inline int64_t wd_power_up(int64_t a)
{
    int64_t power = 1;
    while (power < a) power *= 2;
    return power;
}

/* Of two that are not negative; the other one where one is 0. */
static inline int64_t wd_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Of two above 0. */
static inline int64_t wd_lcm(int64_t a, int64_t b)
{
    return a / wd_gcd(a, b) * b;
}

/* Bytes of an element; 1 of a type of less than a byte, so that one may divide by it. */
static inline int64_t wd_dtype_bytes(int dtype)
{
    return wd_most(wd_dtype_bits(dtype) / 8, 1);
}

static inline int64_t wd_clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

#endif
