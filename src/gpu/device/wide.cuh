// SPDX-License-Identifier: Apache-2.0
//
// Stores of several numbers at once, to a boundary of as many bytes. Of the assignment of a vector nvcc may make a store a
// number, each of which takes as many turns as the vector has numbers.
#ifndef WD_GPU_DEVICE_WIDE_CUH
#define WD_GPU_DEVICE_WIDE_CUH

// To device memory. Where an assignment and __stcs have one address, nvcc counts it up twice.
static __device__ __forceinline__ void wd_store_global(uint4 *to, uint4 run)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(to), "r"(run.x), "r"(run.y), "r"(run.z), "r"(run.w)
                 : "memory");
}

// To shared memory.
static __device__ __forceinline__ void wd_store_wide(float *shared, float a, float b)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" : : "r"(to), "f"(a), "f"(b) : "memory");
}

static __device__ __forceinline__ void wd_store_wide(float *shared, float a, float b, float c,
                                                     float d)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(to), "f"(a), "f"(b), "f"(c), "f"(d)
                 : "memory");
}

static __device__ __forceinline__ void wd_store_wide(double *shared, double a, double b)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" : : "r"(to), "d"(a), "d"(b) : "memory");
}

static __device__ __forceinline__ void wd_store_wide(double *shared, double a, double b, double c,
                                                     double d)
{
    wd_store_wide(shared, a, b);
    wd_store_wide(shared + 2, c, d);
}

#endif
