// SPDX-License-Identifier: Apache-2.0
//
// Words of two 16-bit floating-point numbers, or of one in single precision: what is done to both at
// once. The type of what is in the word is a template's argument.
#ifndef WD_GPU_DEVICE_PACKED_CUH
#define WD_GPU_DEVICE_PACKED_CUH

#include "gpu/device/vector.cuh"

template <class T> struct wd_is_half {
    static constexpr bool value = false;
};
template <> struct wd_is_half<half16> {
    static constexpr bool value = true;
};

template <class P> static __device__ __forceinline__ P wd_as_pair(uint32_t word)
{
    P pair;
    memcpy(&pair, &word, 4);
    return pair;
}

// The larger ones. NaN where one is if NANS, else the other. Of both zeros either.
template <class T, bool NANS>
static __device__ __forceinline__ uint32_t wd_packed_larger(uint32_t a, uint32_t b)
{
    uint32_t r;
    if constexpr (sizeof(T) == 4) {
        if constexpr (NANS) asm("max.NaN.f32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
        else asm("max.f32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    } else if constexpr (wd_is_half<T>::value) {
        if constexpr (NANS) asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
        else asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    } else {
        if constexpr (NANS) asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
        else asm("max.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    }
    return r;
}

// A mask for each number of two words: where a condition is true of them, all bits are 1. Differ: they
// are not equal, or one is a NaN. Within: a is at most b, and neither is a NaN.
template <class T>
static __device__ __forceinline__ uint32_t wd_packed_differ(uint32_t a, uint32_t b)
{
    if constexpr (sizeof(T) == 4) {
        return __uint_as_float(a) != __uint_as_float(b) ? 0xffffffffu : 0u;
    } else if constexpr (wd_is_half<T>::value) {
        return __hneu2_mask(wd_as_pair<__half2>(a), wd_as_pair<__half2>(b));
    } else {
        return __hneu2_mask(wd_as_pair<__nv_bfloat162>(a), wd_as_pair<__nv_bfloat162>(b));
    }
}

template <class T>
static __device__ __forceinline__ uint32_t wd_packed_within(uint32_t a, uint32_t b)
{
    if constexpr (sizeof(T) == 4) {
        return __uint_as_float(a) <= __uint_as_float(b) ? 0xffffffffu : 0u;
    } else if constexpr (wd_is_half<T>::value) {
        return __hle2_mask(wd_as_pair<__half2>(a), wd_as_pair<__half2>(b));
    } else {
        return __hle2_mask(wd_as_pair<__nv_bfloat162>(a), wd_as_pair<__nv_bfloat162>(b));
    }
}

// Whether small whole numbers (less than 2^10) are the same; a number that is not, with all bits 1, is
// none of them.
template <class T>
static __device__ __forceinline__ uint32_t wd_packed_same_code(uint32_t a, uint32_t b)
{
    if constexpr (sizeof(T) == 4) return a == b ? 0xffffffffu : 0u;
    else return __heq2_mask(wd_as_pair<__half2>(a), wd_as_pair<__half2>(b)); // as denormal numbers
}

// The number i of a word.
template <class T> static __device__ __forceinline__ float wd_packed_get(uint32_t word, int i)
{
    if constexpr (sizeof(T) == 4) {
        return __uint_as_float(word);
    } else if constexpr (wd_is_half<T>::value) {
        const __half2 pair = wd_as_pair<__half2>(word);
        return __half2float(i ? pair.y : pair.x);
    } else {
        return __uint_as_float(i ? word & 0xffff0000u : word << 16);
    }
}

// Sums, each rounded once.
template <class T> static __device__ __forceinline__ uint32_t wd_packed_add(uint32_t a, uint32_t b)
{
    uint32_t word;
    if constexpr (sizeof(T) == 4) {
        word = __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
    } else if constexpr (wd_is_half<T>::value) {
        const __half2 pair = __hadd2(wd_as_pair<__half2>(a), wd_as_pair<__half2>(b));
        memcpy(&word, &pair, 4);
    } else {
        const __nv_bfloat162 pair =
            __hadd2(wd_as_pair<__nv_bfloat162>(a), wd_as_pair<__nv_bfloat162>(b));
        memcpy(&word, &pair, 4);
    }
    return word;
}

// Two numbers of 16 bits, rounded to nearest even.
template <class T>
static __device__ __forceinline__ uint32_t wd_packed_narrow(float low, float high)
{
    uint32_t word;
    if constexpr (wd_is_half<T>::value) {
        const __half2 pair = __floats2half2_rn(low, high);
        memcpy(&word, &pair, 4);
    } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        memcpy(&word, &pair, 4);
    }
    return word;
}

#endif
