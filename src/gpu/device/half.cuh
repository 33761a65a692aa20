// SPDX-License-Identifier: Apache-2.0
//
// Functions for results that are rounded to fp16 or bf16: from one or two instructions of the
// special function unit, a few units in the last place of single precision off, which is nothing to
// half of one of 11 bits. Errors are relative, unless said otherwise; numbers below single
// precision's normal ones become 0 where it says nothing else.
#ifndef WD_GPU_DEVICE_HALF_CUH
#define WD_GPU_DEVICE_HALF_CUH

#include "gpu/device/math.cuh"

constexpr float WD_LOG2_E = 1.4426950408889634f;

static __device__ __forceinline__ float wd_half_exp2(float x)
{
    return wd_about_exp2(x);
}

static __device__ __forceinline__ float wd_half_exp(float x)
{
    return wd_half_exp2(x * WD_LOG2_E);
}

static __device__ __forceinline__ float wd_half_reciprocal(float x)
{
    return wd_about_reciprocal(x);
}

// 0 below 2^-128.
static __device__ __forceinline__ float wd_half_sigmoid(float x)
{
    return wd_about_reciprocal_to_denormal(1.0f + wd_half_exp2(-WD_LOG2_E * x));
}

// Near 0 by its series, where the difference would lose digits.
static __device__ __forceinline__ float wd_half_tanh(float x)
{
    const float square = x * x;
    const float far = 1.0f - 2.0f * wd_half_reciprocal(wd_half_exp(2.0f * fabsf(x)) + 1.0f);
    const float near = fabsf(x) * (1.0f - square * (0.33333334f - square * 0.13333333f));
    return copysignf(square < 0.01f ? near : far, x);
}

static __device__ __forceinline__ float wd_half_expm1(float x)
{
    const float near = x * (1.0f + x * (0.5f + x * (0.16666667f + x * 0.041666668f)));
    return fabsf(x) < 0.125f ? near : wd_half_exp(x) - 1.0f;
}

static __device__ __forceinline__ float wd_half_log1p(float x)
{
    const float near = x * (1.0f - x * (0.5f - x * (0.33333334f - x * 0.25f)));
    return fabsf(x) < 0.0625f ? near : logf(1.0f + x);
}

// x P(x^2) / Q(x^2), fitted to the least relative error on [0, 3.92], where 4e-7 is left; beyond, 1
// is nearer than half a unit. Without a branch.
static __device__ __forceinline__ float wd_half_erf(float x)
{
    const float a = fabsf(x);
    const float s = x * x;
    float p = fmaf(2.05009087e-06f, s, 0.000284882117f);
    float q = fmaf(3.80917227e-05f, s, 0.00116252922f);
    p = fmaf(p, s, 0.00376559119f);
    q = fmaf(q, s, 0.0149691636f);
    p = fmaf(p, s, 0.0527486391f);
    q = fmaf(q, s, 0.11410886f);
    p = fmaf(p, s, 0.190405875f);
    q = fmaf(q, s, 0.502075553f);
    p = fmaf(p, s, 1.12837911f);
    q = fmaf(q, s, 1.0f);
    return copysignf(a > 3.92f ? 1.0f : a * (p * wd_half_reciprocal(q)), x);
}

// The normal distribution's Phi(x). The logarithm to base 2 of its tail Phi(-|x|) by a polynomial,
// whose coefficients are a least squares fit, reweighted until the error is even: relative to the
// tail 8e-6 to |x| = 5.8, 4e-4 to 13.5. Computed 2^24 times too large, so that it is right as far as
// bfloat16's smallest.
static __device__ __forceinline__ float wd_half_phi(float x)
{
    const float z = fminf(fabsf(x), 16.0f);
    float log = -1.99686201e-9f;
    log = fmaf(log, z, 1.47850699e-7f);
    log = fmaf(log, z, -4.75860679e-6f);
    log = fmaf(log, z, 8.83039611e-5f);
    log = fmaf(log, z, -1.06146699e-3f);
    log = fmaf(log, z, 8.86530057e-3f);
    log = fmaf(log, z, -5.448604e-2f);
    log = fmaf(log, z, -4.58090574e-1f);
    log = fmaf(log, z, -1.15134931f);
    log = fmaf(log, z, 24.0f - 0.999991417f);
    const float tail = wd_half_exp2(log) * 0x1p-24f;
    return x < 0.0f ? tail : 1.0f - tail;
}

#endif
