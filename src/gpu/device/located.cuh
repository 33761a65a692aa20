// SPDX-License-Identifier: Apache-2.0
//
// Addresses of shared memory as the 32 bits that they have there, of which the compiler is to know nothing else: what
// they were made of is not made again, and what is added to them is part of the instruction that reads or writes.
#ifndef WD_GPU_DEVICE_LOCATED_CUH
#define WD_GPU_DEVICE_LOCATED_CUH

#include "gpu/device/opaque.cuh"

typedef uint32_t wd_located;

static __device__ __forceinline__ wd_located wd_locate(const void *shared)
{
    return wd_opaque((uint32_t)__cvta_generic_to_shared(shared));
}

// How many bytes it lies after another.
static __device__ __forceinline__ uint32_t wd_located_after(wd_located at, wd_located from)
{
    return at - from;
}

template <class V> static __device__ __forceinline__ V *wd_located_at(wd_located at, uint32_t bytes)
{
    return static_cast<V *>(__cvta_shared_to_generic(at + bytes));
}

#endif
