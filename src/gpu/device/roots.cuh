// SPDX-License-Identifier: Apache-2.0
//
// What kernels compute with, by the type of storage, and roots: single precision's are the hardware's
// (2^-22.9 off at most), double precision's are exact to the last place.
#ifndef WD_GPU_DEVICE_ROOTS_CUH
#define WD_GPU_DEVICE_ROOTS_CUH

#include "gpu/device/math.cuh"

template <class T> struct wd_accumulator {
    typedef float type;
};
template <> struct wd_accumulator<double> {
    typedef double type;
};

static __device__ __forceinline__ float wd_inverse_root(float s)
{
    return wd_about_rsqrt(s);
}
static __device__ __forceinline__ double wd_inverse_root(double s)
{
    return rsqrt(s);
}

static __device__ __forceinline__ float wd_root(float s)
{
    return wd_about_sqrt(s);
}
static __device__ __forceinline__ double wd_root(double s)
{
    return sqrt(s);
}

#endif
