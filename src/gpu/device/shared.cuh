// SPDX-License-Identifier: Apache-2.0
//
// The shared memory that a launch asks for, beside what the kernel declares.
#ifndef WD_GPU_DEVICE_SHARED_CUH
#define WD_GPU_DEVICE_SHARED_CUH

#include <stdint.h>

extern __shared__ uint4 wd_shared_runs[];

// Aligned to 16 bytes.
template <class T> static __device__ __forceinline__ T *wd_dynamic_shared(void)
{
    return reinterpret_cast<T *>(wd_shared_runs);
}

// The same as an array of the function's own, for kernels that nvcc spills registers of otherwise.
#define WD_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

// atomicAdd on shared memory by a thread that is alone in its warp: of atomicAdd the compiler makes some twenty
// instructions that ask which others add too.
static __device__ __forceinline__ uint32_t wd_add_alone(uint32_t *shared, uint32_t value)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
    uint32_t old;
    asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(value) : "memory");
    return old;
}

#endif
