// SPDX-License-Identifier: Apache-2.0
//
// Logarithms by one instruction: 2^-22 off at most, of their own size or, from 1/2 to 2, absolutely.
#ifndef WD_GPU_DEVICE_LOGS_CUH
#define WD_GPU_DEVICE_LOGS_CUH

// log2(x); of numbers below the normal ones that of 0.
static __device__ __forceinline__ float wd_about_log2(float x)
{
    float r;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

#endif
