// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/math.cuh, exact where the instructions are not. Numbers below the normal
// ones become 0 where they do there.
#ifndef EMULATOR_MATH_CUH
#define EMULATOR_MATH_CUH

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float emulator_flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

static inline float wd_larger_or_nan(float a, float b)
{
    if (a != a || b != b) return NAN;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static inline float wd_about_rsqrt(float x)
{
    return emulator_flush((float)(1.0 / sqrt((double)emulator_flush(x))));
}

// The upper 20 bits of the mantissa, and zeros.
static inline double wd_about_rsqrt(double x)
{
    const double exact = 1.0 / sqrt(x);
    uint64_t bits;
    memcpy(&bits, &exact, sizeof bits);
    bits &= ~(uint64_t)0xffffffffu;
    double about;
    memcpy(&about, &bits, sizeof about);
    return about;
}

static inline float wd_about_sqrt(float x)
{
    return sqrtf(emulator_flush(x));
}

static inline float wd_about_exp2(float x)
{
    return emulator_flush(exp2f(emulator_flush(x)));
}

static inline float wd_about_reciprocal(float x)
{
    return emulator_flush(1.0f / emulator_flush(x));
}

static inline float wd_about_reciprocal_to_denormal(float x)
{
    return 1.0f / x;
}

static inline void wd_product(uint32_t a, uint32_t b, uint32_t &low, uint32_t &high)
{
    const uint64_t both = (uint64_t)a * b;
    low = (uint32_t)both;
    high = (uint32_t)(both >> 32);
}

static inline uint32_t emulator_plus_zero(uint32_t two, uint32_t infinity)
{
    uint32_t result = 0;
    for (int shift = 0; shift < 32; shift += 16) {
        uint32_t one = two >> shift & 0xffff;
        if ((one & 0x7fff) > infinity) one = 0x7fff;
        if (one == 0x8000) one = 0;
        result |= one << shift;
    }
    return result;
}

static inline uint32_t wd_plus_zero_f16(uint32_t two)
{
    return emulator_plus_zero(two, 0x7c00);
}

static inline uint32_t wd_plus_zero_bf16(uint32_t two)
{
    return emulator_plus_zero(two, 0x7f80);
}

template <int WHERE> static inline void wd_forget(uint32_t &)
{
}

#endif
