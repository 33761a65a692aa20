/* SPDX-License-Identifier: Apache-2.0
 *
 * Uniform and normal numbers made of random bits, for the definition and for kernels alike. Nothing
 * here but sums, products, fused products and sums, a quotient, and the conversions of integers, all
 * of which IEEE 754 rounds in one way: every device and engine answers the same bits. (Square roots,
 * which it rounds as well, are the caller's.) Compiled without contraction.
 *
 * Normal numbers come in pairs: radius * cos, radius * sin of an angle, where radius^2 = -2 ln u
 * (G. E. P. Box and M. E. Muller, "A Note on the Generation of Random Normal Deviates", 1958); radii of those of 16
 * bits are found in a table. Polynomials are minimax fits (Remez). Three precisions:
 *
 *   coarse   for y of two bytes and less: 16 bits each, in fp16; 16 more in the tail, where a number may be 6.7
 *            deviations off.
 *   single   for fp32: 32 bits each, to 2 units in the last place.
 *   double   for the rest: 32 bits each, to a few units in the last place. */
#ifndef WD_OPS_RNG_NUMBERS_H
#define WD_OPS_RNG_NUMBERS_H

#include "base/dtype.h"

/* uniform: base + step * (what is random), at most `most`; normal: base + step * (what is random) */
struct rng_scale {
    double base;
    double step;
    double most;
    float base_f;
    float step_f;
    float most_f;
    int32_t unused;
};

/* ---- 16 bits ---- */

WD_FN float rng_coarse_uniform(const struct rng_scale *p, float middle)
{
    return fminf(fmaf(middle, p->step_f, p->base_f), p->most_f);
}

/* Normal numbers come in pairs, radius * sin and radius * cos of an angle, of two numbers of 16 bits. The radius' one: bits 1 to 13
 * tell the entry of the table, bit 15 the sign of the cosine; the angle's: where in a quarter of the circle, the upper ten bits
 * below the lower five, and the sign of the sine. All in fp16, one rounding an operation. */
enum { RNG_RADII = 8192, RNG_RADIUS_BITS = 0x3ffe, RNG_TAIL_BITS = 0x3ff8 };

#if WD_ON_DEVICE
static __device__ __align__(16)
#else
static
#endif
    const uint32_t rng_radii[RNG_RADII / 2] = {
#include "ops/rng/rng_radii_table.inc"
};

/* sin(pi t / 2) / t - 1 of z = t^2 is c0 + z (c1 + z c2); codes of fp16. */
#define RNG_SINE_C0 0x3890u
#define RNG_SINE_C1 0xb923u
#define RNG_SINE_C2 0x2c99u

WD_FN double rng_of_half(uint32_t code)
{
    return (double)wd_decode_small(code, 5, 10, 0);
}

WD_FN double rng_to_half(double value)
{
    return rng_of_half(wd_encode_small(wd_round_odd(value), 5, 10, 0, 0));
}

/* Of radii in the tail (less than 2^-11 exceeds them), u / 2^31 being that chance: -2 ln of it, and
 * 3e-5 more. A float's bits as a number are its logarithm but for what a polynomial of the
 * mantissa m, in [1, 2), adds. `lower` are 16 bits more. */
WD_FN float rng_tail_square(uint32_t number, uint32_t lower)
{
    const uint32_t u = ((number & 0x7u) | (number >> 11 & 0x8u)) << 16 | (lower & 0xffffu);
    const uint32_t bits = WD_FLOAT_TO_BITS(((float)u + 0.5f) * (1.0f / 32768.0f));
    const float m = WD_BITS_TO_FLOAT((bits & 0x007fffffu) | 0x3f800000u);
    float p = -0.0622085907f;
    p = fmaf(p, m, 0.577484134f);
    p = fmaf(p, m, -2.26126506f);
    p = fmaf(p, m, 4.92246299f);
    p = fmaf(p, m, -5.67232929f);
    p = fmaf(p, m, 200.735962f);
    return fmaf((float)(int32_t)bits, -1.38629436f / 8388608.0f, p);
}

WD_FN int rng_is_tail(uint32_t number)
{
    return (number & RNG_TAIL_BITS) == 0;
}

/* A radius that is not in the tail. */
WD_FN double rng_coarse_radius(uint32_t number)
{
    const uint32_t entry = (number & RNG_RADIUS_BITS) / 2;
    return rng_of_half(rng_radii[entry / 2] >> (16 * (entry & 1)) & 0xffffu);
}

/* A normal number: of a pair, the sine (of the angle's number), or the cosine, which is the sine of what the angle leaves. */
WD_FN float rng_coarse_normal(double radius, uint32_t number, uint32_t angle, int cosine)
{
    const double place = ((angle & 0x3ffu) * 32.0 + (angle >> 10 & 0x1fu) + 0.5) / 32768.0;
    const double t = rng_to_half(cosine ? 1.0 - place : place);
    const double z = rng_to_half(t * t);
    const double rest = rng_to_half(z * rng_of_half(RNG_SINE_C2) + rng_of_half(RNG_SINE_C1));
    const double more = rng_to_half(z * rest + rng_of_half(RNG_SINE_C0));
    const double far = rng_to_half(t * radius);
    const float size = (float)rng_to_half(far * more + far);
    return (cosine ? number : angle) & 0x8000u ? -size : size;
}

/* ---- 32 bits, fp32 ---- */

WD_FN float rng_single_uniform(const struct rng_scale *p, uint32_t number)
{
    return fminf(fmaf((float)number, p->step_f, p->base_f), p->most_f);
}

/* The number as float, rounded toward 0. */
WD_FN float rng_truncated(uint32_t number)
{
#if WD_ON_DEVICE
    return __uint2float_rz(number);
#else
    const float near = (float)number;
    return (double)near > (double)number ? WD_BITS_TO_FLOAT(WD_FLOAT_TO_BITS(near) - 1) : near;
#endif
}

/* -2 ln(number / 2^32), of an odd number. */
WD_FN float rng_single_square(uint32_t number)
{
    const uint32_t bits = WD_FLOAT_TO_BITS(rng_truncated(number | 1u));
    const uint32_t power = (bits - 0x4f2aaaabu) & 0xff800000u;
    const float r = WD_BITS_TO_FLOAT(bits - power - 0x10000000u) - 1.0f;
    float p = -0.281114008f;
    p = fmaf(p, r, 0.308064541f);
    p = fmaf(p, r, -0.279755011f);
    p = fmaf(p, r, 0.328255728f);
    p = fmaf(p, r, -0.400238736f);
    p = fmaf(p, r, 0.500160549f);
    p = fmaf(p, r, -0.666663378f);
    p = fmaf(p, r, 0.999998642f);
    p = fmaf(p, r, -2.0f);
    return fmaf((float)(int32_t)power, -1.38629436f / 8388608.0f, r * p);
}

/* The upper bit of the number says which side of the circle, the others where in a quarter of it; `swapped`, a bit that the
 * radius left, which quarter of the side. */
WD_FN void rng_single_pair(const struct rng_scale *p, float radius, uint32_t number, int swapped,
                           float *to)
{
    const float far = radius * p->step_f;
    const float t = (float)(int32_t)(number << 1 | 1u) * (1.0f / 2147483648.0f);
    const float z = t * t;
    float s = -3.59504523e-05f;
    float c = -0.000318727837f;
    s = fmaf(s, z, 0.00249000102f);
    s = fmaf(s, z, -0.0807454325f);
    s = fmaf(s, z, 0.785398161f) * t;
    c = fmaf(c, z, 0.0158496842f);
    c = fmaf(c, z, -0.308424166f);
    c = fmaf(c, z, 0.999999967f);
    c = WD_BITS_TO_FLOAT(WD_FLOAT_TO_BITS(c) ^ (number & 0x80000000u));
    to[0] = fmaf(far, swapped ? s : c, p->base_f);
    to[1] = fmaf(far, swapped ? c : s, p->base_f);
}

/* ---- 32 bits, in double ---- */

WD_FN double rng_double_uniform(const struct rng_scale *p, double number)
{
    const double value = fma(number, p->step, p->base);
    return value < p->most ? value : p->most;
}

struct rng_interval {
    double inverse;   /* 1 / c, of the interval's centre */
    double logarithm; /* -2 ln c */
};

#if WD_ON_DEVICE
static __device__ __align__(16)
#else
static
#endif
    const struct rng_interval rng_intervals[64] = {
#include "ops/rng/rng_logarithm_table.inc"
};

/* -2 ln(u / 2^32), u being a number and 1/2: of f = c (1 + r) times 2^power, c the centre of one of 64 intervals, by
 * the series of ln(1 + r), |r| below 2^-7. The interval around 1 has c = 1, so that what is near 0 has all its digits.
 * Here and below, coefficients of which 21 bits are enough have no more: an instruction holds those of a double. */
WD_FN double rng_double_square(double u)
{
    const uint64_t bits = WD_DOUBLE_TO_BITS(u);
    const uint32_t place = (uint32_t)(bits >> 32) - 0x3fe62000u;
    const struct rng_interval near = rng_intervals[place >> 14 & 63u];
    const double f = WD_BITS_TO_DOUBLE(bits - ((uint64_t)(place & 0xfff00000u) << 32));
    const double power = (double)(((int32_t)place >> 20) - 32);
    const double r = fma(f, near.inverse, -1.0);
    double p = 0.25;
    p = fma(p, r, -0x1.24925p-2); /* 2 / 7 */
    p = fma(p, r, 0x1.55555p-2);
    p = fma(p, r, -0.4);
    p = fma(p, r, 0.5);
    p = fma(p, r, -2.0 / 3.0);
    p = fma(p, r, 1.0);
    p = fma(p, r, -2.0);
    return fma(p, r, fma(power, -1.38629436111989061883, near.logarithm));
}

/* turned, a signed integer of 32 bits, is where in a quarter of the circle. */
WD_FN void rng_double_pair(const struct rng_scale *p, double radius, double turned, uint32_t number,
                           double *to)
{
    const double far = radius * p->step;
    const double x = turned * (0.78539816339744830962 / 2147483648.0);
    const double z = x * x;
    const int swapped = (int32_t)(number << 1) < 0;
    double s = 0x1.5d841p-33;
    double c = -0x1.8f6adp-37;
    s = fma(s, z, -2.5050705851203879e-08);
    s = fma(s, z, 2.7557313299057389e-06);
    s = fma(s, z, -0.00019841269828402283);
    s = fma(s, z, 0.0083333333333200019);
    s = fma(s, z, -0.16666666666666616);
    s = fma(s, z, 1.0) * x;
    c = fma(c, z, 0x1.1ee95p-29);
    c = fma(c, z, -2.7557312865726447e-07);
    c = fma(c, z, 2.4801587282899702e-05);
    c = fma(c, z, -0.0013888888888858961);
    c = fma(c, z, 0.041666666666666428);
    c = fma(c, z, -0.5);
    c = fma(c, z, 1.0);
    c = WD_BITS_TO_DOUBLE(WD_DOUBLE_TO_BITS(c) ^ (uint64_t)(number & 0x80000000u) << 32);
    to[0] = fma(far, swapped ? s : c, p->base);
    to[1] = fma(far, swapped ? c : s, p->base);
}

#endif
