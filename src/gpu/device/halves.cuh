// SPDX-License-Identifier: Apache-2.0
//
// Two numbers of fp16 in a word at once: a * b + c and a * b, rounded once.
#ifndef WD_GPU_DEVICE_HALVES_CUH
#define WD_GPU_DEVICE_HALVES_CUH

#include <stdint.h>

static __device__ __forceinline__ uint32_t wd_halves_fma(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

static __device__ __forceinline__ uint32_t wd_halves_product(uint32_t a, uint32_t b)
{
    uint32_t d;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

#endif
