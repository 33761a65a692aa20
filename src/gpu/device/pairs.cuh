// SPDX-License-Identifier: Apache-2.0
//
// Two 16-bit numbers in a word, compared at once: masks are 0xffff where it is so. T says which type
// they are.
#ifndef WD_GPU_DEVICE_PAIRS_CUH
#define WD_GPU_DEVICE_PAIRS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

template <class T> struct wd_pair;

template <> struct wd_pair<__half> {
    static constexpr uint32_t LOWEST = 0xfc00fc00u; /* minus infinity */
    static __device__ __forceinline__ __half2 of(uint32_t word)
    {
        __half2 pair;
        memcpy(&pair, &word, 4);
        return pair;
    }
    static __device__ __forceinline__ uint32_t greater(uint32_t a, uint32_t b)
    {
        return __hgt2_mask(of(a), of(b));
    }
    static __device__ __forceinline__ uint32_t equal(uint32_t a, uint32_t b)
    {
        return __heq2_mask(of(a), of(b));
    }
    // NaN where one is.
    static __device__ __forceinline__ uint32_t largest(uint32_t a, uint32_t b)
    {
        const __half2 most = __hmax2_nan(of(a), of(b));
        uint32_t word;
        memcpy(&word, &most, 4);
        return word;
    }
};

template <> struct wd_pair<__nv_bfloat16> {
    static constexpr uint32_t LOWEST = 0xff80ff80u;
    static __device__ __forceinline__ __nv_bfloat162 of(uint32_t word)
    {
        __nv_bfloat162 pair;
        memcpy(&pair, &word, 4);
        return pair;
    }
    static __device__ __forceinline__ uint32_t greater(uint32_t a, uint32_t b)
    {
        return __hgt2_mask(of(a), of(b));
    }
    static __device__ __forceinline__ uint32_t equal(uint32_t a, uint32_t b)
    {
        return __heq2_mask(of(a), of(b));
    }
    static __device__ __forceinline__ uint32_t largest(uint32_t a, uint32_t b)
    {
        const __nv_bfloat162 most = __hmax2_nan(of(a), of(b));
        uint32_t word;
        memcpy(&word, &most, 4);
        return word;
    }
};

// The larger one; NaN where one is.
static __device__ __forceinline__ float wd_largest(float a, float b)
{
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
}
static __device__ __forceinline__ double wd_largest(double a, double b)
{
    return a != a || b <= a ? a : b;
}

#endif
