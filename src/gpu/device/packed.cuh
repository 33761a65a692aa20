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

#endif
