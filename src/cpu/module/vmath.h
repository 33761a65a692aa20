/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions for loops that the compiler turns into vector code: no branch, no table, no
 * call. The fp32 ones are polynomials of our own (minimax fits by Remez's exchange), good to three
 * units in the last place (exp, expm1 and log to one) over the whole range, infinities, NaN and
 * subnormals included; tests/unit/vmath_test.c goes through the floats. The fp64 ones are libm's, which do not vectorise. Arithmetic is written to
 * be exact where it must be without fused operations, which not every machine has. Stateless. */
#ifndef WD_CPU_MODULE_VMATH_H
#define WD_CPU_MODULE_VMATH_H

#include <math.h>

#include "base/dtype.h"

/* Into the caller, or the copies that WD_SIMD makes of it would call the plain one. */
#define WD_LANE static inline __attribute__((always_inline))

/* x = n ln2 + r, |r| <= ln2 / 2: gives exp(r) and n. ln2 in two parts, the first of which has so few
 * bits that n times it is exact; n is rounded by an addition that leaves it in the low bits. */
WD_LANE float wd_exp_reduced(float x, uint32_t *n)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23 */
    float shifted = x * 1.44269504f + magic;
    float whole = shifted - magic;
    float r = x - whole * 0.693359375f;
    float q;
    r -= whole * -2.12194440e-4f;
    q = 1.3814573e-3f;
    q = q * r + 8.3687381e-3f;
    q = q * r + 4.16683895e-2f;
    q = q * r + 1.66665205e-1f;
    q = q * r + 4.99999934e-1f;
    *n = WD_FLOAT_TO_BITS(shifted) - 0x4b400000u;
    return (q * (r * r) + r) + 1.0f;
}

WD_LANE float wd_exp_f32(float x)
{
    uint32_t n;
    uint32_t half;
    float e;
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    e = wd_exp_reduced(x, &n);
    /* 2^n in two factors, so that neither end of the range is lost */
    half = (uint32_t)((int32_t)n >> 1);
    e *= WD_BITS_TO_FLOAT((half + 127u) << 23);
    return e * WD_BITS_TO_FLOAT((n - half + 127u) << 23);
}

/* exp of x <= 0: one factor does, where the other is always the same. */
WD_LANE float wd_exp_negative_f32(float x)
{
    uint32_t n;
    float e = wd_exp_reduced(x, &n);
    e *= WD_BITS_TO_FLOAT((n + 24u + 127u) << 23);
    return x < -104.0f ? 0.0f : e * 0x1p-24f;
}

/* exp of x <= 0 for what is then added to numbers of order 1: results below 2^-126 are 0. */
WD_LANE float wd_exp_decay_f32(float x)
{
    uint32_t n;
    float e = wd_exp_reduced(x, &n);
    e *= WD_BITS_TO_FLOAT((n + 127u) << 23);
    return x < -87.33654f ? 0.0f : e;
}

/* exp(x) - 1 for x <= 0 (for x > 0: 0). */
WD_LANE float wd_expm1_negative_f32(float x)
{
    const float magic = 12582912.0f;
    float shifted;
    float whole;
    float r;
    float q;
    float scale;
    x = x < -30.0f ? -30.0f : x;
    x = x > 0.0f ? 0.0f : x;
    shifted = x * 1.44269504f + magic;
    whole = shifted - magic;
    r = x - whole * 0.693359375f;
    r -= whole * -2.12194440e-4f;
    q = 1.3814573e-3f;
    q = q * r + 8.3687381e-3f;
    q = q * r + 4.16683895e-2f;
    q = q * r + 1.66665205e-1f;
    q = q * r + 4.99999934e-1f;
    q = q * (r * r) + r; /* exp(r) - 1 */
    scale = WD_BITS_TO_FLOAT((WD_FLOAT_TO_BITS(shifted) - 0x4b400000u + 127u) << 23);
    return scale * q + (scale - 1.0f);
}

WD_LANE float wd_sigmoid_f32(float x)
{
    float e = wd_exp_negative_f32(-fabsf(x));
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

WD_LANE float wd_tanh_f32(float x)
{
    float a = fabsf(x);
    float z = x * x;
    float e = wd_exp_decay_f32(-2.0f * a);
    float p = -5.6653253e-3f;
    float large = (1.0f - e) / (1.0f + e);
    p = p * z + 2.06066995e-2f;
    p = p * z - 5.37309379e-2f;
    p = p * z + 1.33313543e-1f;
    p = p * z - 3.33332796e-1f;
    large = x < 0.0f ? -large : large;
    return a < 0.625f ? x + x * (z * p) : large;
}

/* log(1 + e) for 0 <= e <= 1: 2 atanh(e / (2 + e)). */
WD_LANE float wd_log1p_unit_f32(float e)
{
    float s = e / (2.0f + e);
    float u = s * s;
    float p = 1.40103801e-1f;
    p = p * u + 1.39999944e-1f;
    p = p * u + 2.00108193e-1f;
    p = p * u + 3.33332072e-1f;
    s += s;
    return s + s * (u * p);
}

/* log(1 + exp(x)) */
WD_LANE float wd_softplus_f32(float x)
{
    float e = wd_exp_negative_f32(-fabsf(x));
    return (x > 0.0f ? x : 0.0f) + wd_log1p_unit_f32(e);
}

/* x = m 2^n with m in [sqrt(1/2), sqrt 2): log x = n ln2 + 2 atanh((m - 1) / (m + 1)). */
WD_LANE float wd_log_f32(float x)
{
    float scaled = x < 0x1p-126f ? x * 0x1p23f : x;
    uint32_t bits = WD_FLOAT_TO_BITS(scaled);
    uint32_t top = bits - 0x3f3504f3u; /* of sqrt(1/2) */
    float n = (float)((int32_t)top >> 23);
    float f = WD_BITS_TO_FLOAT((top & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float s = f / (2.0f + f);
    float u = s * s;
    float half = 0.5f * f * f;
    float p = 1.49383206e-1f;
    float log;
    n = x < 0x1p-126f ? n - 23.0f : n;
    p = p * u + 1.99886993e-1f;
    p = p * u + 3.33333885e-1f;
    p = 2.0f * u * p;
    /* 2 atanh s = f - (f^2/2 - s (f^2/2 + p)) keeps the digits of f */
    log = n * 0.693359375f - ((half - (s * (half + p) + n * -2.12194440e-4f)) - f);
    log = x == INFINITY ? x : log;
    log = x == 0.0f ? -INFINITY : log;
    return x >= 0.0f ? log : x < 0.0f ? NAN : x;
}

/* Near 0 a polynomial, beyond 1 - exp of one; 1 in single precision from 3.92 on. */
WD_LANE float wd_erf_f32(float x)
{
    float a = fabsf(x);
    float z = x * x;
    float t = a > 4.0f ? 4.0f : a;
    float near = 8.3340869e-5f;
    float far = -2.0910012e-5f;
    near = near * z - 8.1341571e-4f;
    near = near * z + 5.2002764e-3f;
    near = near * z - 2.68590924e-2f;
    near = near * z + 1.12836899e-1f;
    near = near * z - 3.76126334e-1f;
    near = near * z + 1.28379167e-1f;
    far = far * t + 4.3230826e-4f;
    far = far * t - 4.1605523e-3f;
    far = far * t + 2.50915630e-2f;
    far = far * t - 1.08236721e-1f;
    far = far * t - 6.33386555e-1f;
    far = far * t - 1.12949520e0f;
    far = far * t + 1.7056110e-4f;
    far = 1.0f - wd_exp_decay_f32(far);
    far = x < 0.0f ? -far : far;
    return a < 0.92f ? x + x * near : x != x ? x : far;
}

WD_LANE double wd_exp_f64(double x)
{
    return exp(x);
}

WD_LANE double wd_exp_negative_f64(double x)
{
    return exp(x);
}

WD_LANE double wd_exp_decay_f64(double x)
{
    return exp(x);
}

WD_LANE double wd_expm1_negative_f64(double x)
{
    return x > 0.0 ? 0.0 : expm1(x);
}

WD_LANE double wd_sigmoid_f64(double x)
{
    double e = exp(x > 0.0 ? -x : x);
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}

WD_LANE double wd_tanh_f64(double x)
{
    return tanh(x);
}

WD_LANE double wd_softplus_f64(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(x > 0.0 ? -x : x));
}

WD_LANE double wd_log_f64(double x)
{
    return log(x);
}

WD_LANE double wd_erf_f64(double x)
{
    return erf(x);
}

#endif
