// SPDX-License-Identifier: Apache-2.0
//
// Numbers of which the compiler is to know nothing.
#ifndef WD_GPU_DEVICE_OPAQUE_CUH
#define WD_GPU_DEVICE_OPAQUE_CUH

#include <stdint.h>

// The same number. Of p + s, p + s + s and so on the compiler would make p + 2 * s, 64-bit products of six
// instructions each; of an opaque s it makes one addition after the other, of two.
static __device__ __forceinline__ int64_t wd_opaque(int64_t value)
{
    asm volatile("// opaque" : "+l"(value));
    return value;
}

static __device__ __forceinline__ uint32_t wd_opaque(uint32_t value)
{
    asm volatile("// opaque" : "+r"(value));
    return value;
}

// Likewise the same address, of device memory, which an address of which nothing is known would not be.
template <class T> static __device__ __forceinline__ T *wd_opaque_global(T *at)
{
    const int64_t number = wd_opaque((int64_t)__cvta_generic_to_global(at));
    return static_cast<T *>(__cvta_global_to_generic((size_t)number));
}

// Likewise of shared memory, which where there are clusters is made of the block's rank anew wherever it is used, with
// some 30 clocks' wait.
template <class T> static __device__ __forceinline__ T *wd_opaque_shared(T *at)
{
    const uint32_t number = wd_opaque((uint32_t)__cvta_generic_to_shared(at));
    return static_cast<T *>(__cvta_shared_to_generic((size_t)number));
}

#endif
