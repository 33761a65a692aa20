// SPDX-License-Identifier: Apache-2.0
//
// Instructions that CUDA C has no function for.
#ifndef WD_GPU_DEVICE_MATH_CUH
#define WD_GPU_DEVICE_MATH_CUH

#include <stdint.h>

// The larger, NaN where one is.
static __device__ __forceinline__ float wd_larger_or_nan(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

// A few units in the last place off; numbers below the normal ones count as 0.
static __device__ __forceinline__ float wd_about_rsqrt(float x)
{
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// Of the upper 20 bits.
static __device__ __forceinline__ double wd_about_rsqrt(double x)
{
    double r;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    return r;
}

static __device__ __forceinline__ float wd_about_sqrt(float x)
{
    float r;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

static __device__ __forceinline__ float wd_about_exp2(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

static __device__ __forceinline__ float wd_about_reciprocal(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// The same, but that numbers below the normal ones count.
static __device__ __forceinline__ float wd_about_reciprocal_to_denormal(float x)
{
    float r;
    asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// Both words of a product, by one instruction; of (uint64_t)a * b nvcc makes additions besides.
static __device__ __forceinline__ void wd_product(uint32_t a, uint32_t b, uint32_t &low,
                                                  uint32_t &high)
{
    uint64_t both;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(both) : "r"(a), "r"(b));
    low = (uint32_t)both;
    high = (uint32_t)(both >> 32);
}

// Two of fp16, or bf16, each plus zero: one zero, and one NaN, which is 0x7fff.
static __device__ __forceinline__ uint32_t wd_plus_zero_f16(uint32_t two)
{
    uint32_t r;
    asm("add.f16x2 %0, %1, %2;" : "=r"(r) : "r"(two), "r"(0));
    return r;
}

static __device__ __forceinline__ uint32_t wd_plus_zero_bf16(uint32_t two)
{
    uint32_t r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(two), "r"(0x3f803f80), "r"(0));
    return r;
}

// Makes the compiler forget what it knows of a value, also across branches that differ in WHERE.
template <int WHERE> static __device__ __forceinline__ void wd_forget(uint32_t &value)
{
    asm volatile("// %1" : "+r"(value) : "n"(WHERE));
}

#endif
