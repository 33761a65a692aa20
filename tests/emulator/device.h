// SPDX-License-Identifier: Apache-2.0
//
// What nvcc knows by itself, for kernels that a host compiler reads: included before every .cu file.
// Functions of src/gpu/device that are instructions have host versions in include/gpu/device.
#ifndef EMULATOR_DEVICE_H
#define EMULATOR_DEVICE_H

#define _Thread_local thread_local
#include "emulator.h"
#undef _Thread_local

#include <math.h>
#include <stdint.h>
#include <string.h>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __constant__
#define __shared__ static thread_local
#define __align__(n) __attribute__((aligned(n)))

#define threadIdx (emulator_now->thread_index)
#define blockIdx (emulator_now->block_index)
#define blockDim (emulator_now->block_size)
#define gridDim (emulator_now->grid_size)

struct __align__(8) uint2
{
    uint32_t x, y;
};
struct __align__(16) uint4
{
    uint32_t x, y, z, w;
};
struct __align__(8) float2
{
    float x, y;
};
struct __align__(16) float4
{
    float x, y, z, w;
};
struct __align__(16) double2
{
    double x, y;
};
static inline uint2 make_uint2(uint32_t x, uint32_t y)
{
    return {x, y};
}
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return {x, y, z, w};
}
static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline double2 make_double2(double x, double y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

template <class To, class From> static inline To emulator_bits(From from)
{
    To to;
    static_assert(sizeof to == sizeof from, "the same bits");
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline float __uint_as_float(uint32_t v)
{
    return emulator_bits<float>(v);
}
static inline uint32_t __float_as_uint(float v)
{
    return emulator_bits<uint32_t>(v);
}
static inline float __int_as_float(int32_t v)
{
    return emulator_bits<float>(v);
}
static inline int32_t __float_as_int(float v)
{
    return emulator_bits<int32_t>(v);
}
static inline double __longlong_as_double(long long v)
{
    return emulator_bits<double>(v);
}
static inline long long __double_as_longlong(double v)
{
    return emulator_bits<long long>(v);
}
static inline double __hiloint2double(int high, int low)
{
    return emulator_bits<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}
static inline int __double2loint(double v)
{
    return (int)(uint32_t)emulator_bits<uint64_t>(v);
}
static inline int __double2hiint(double v)
{
    return (int)(uint32_t)(emulator_bits<uint64_t>(v) >> 32);
}

template <class A, class B> static inline auto min(A a, B b) -> decltype(a + b)
{
    typedef decltype(a + b) both;
    return (both)b < (both)a ? (both)b : (both)a;
}
template <class A, class B> static inline auto max(A a, B b) -> decltype(a + b)
{
    typedef decltype(a + b) both;
    return (both)a < (both)b ? (both)b : (both)a;
}
static inline float rsqrtf(float x)
{
    return (float)(1.0 / sqrt((double)x));
}
static inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}
static inline float __fdividef(float a, float b)
{
    return a / b;
}
#define __expf expf /* the C library has one of its own */
static inline float normcdff(float x)
{
    return (float)(0.5 * erfc(-(double)x * 0.70710678118654752440));
}
static inline double normcdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}
static inline uint32_t __umulhi(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}
// Of the modes that kernels use: bytes of a, then of b, each picked by four bits.
static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t pick)
{
    const uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
        word |= (uint32_t)(bytes >> (8 * ((pick >> (4 * i)) & 7)) & 0xff) << (8 * i);
    }
    return word;
}

static inline float __saturatef(float x)
{
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; // 0 of NaN
}

template <class T> static inline T __ldg(const T *from)
{
    return *from;
}
template <class T> static inline T __ldcg(const T *from)
{
    return *from;
}
template <class T> static inline void __stcs(T *to, T value)
{
    *to = value;
}
template <class T> static inline T atomicAdd(T *at, T value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline void __threadfence(void)
{
}
static inline void __syncthreads(void)
{
    emulator_barrier(0, 0);
}

template <class T> static inline T emulator_shuffle(T value, uint32_t from)
{
    static_assert(sizeof(T) <= 8, "what a shuffle moves");
    emulator_warp_show(&value, sizeof value);
    emulator_warp_see(from, &value, sizeof value);
    return value;
}
template <class T> static inline T __shfl_sync(uint32_t, T value, int from, int width = 32)
{
    const uint32_t lane = emulator_lane();
    return emulator_shuffle(value, lane / width * width + (uint32_t)from % width);
}
template <class T> static inline T __shfl_xor_sync(uint32_t, T value, int mask, int width = 32)
{
    const uint32_t lane = emulator_lane(), from = lane ^ (uint32_t)mask;
    return emulator_shuffle(value, from / width > lane / width ? lane : from);
}
template <class T> static inline T __shfl_down_sync(uint32_t, T value, uint32_t by, int width = 32)
{
    const uint32_t lane = emulator_lane(), from = lane + by;
    return emulator_shuffle(value, from / width > lane / width ? lane : from);
}
template <class T> static inline T __shfl_up_sync(uint32_t, T value, uint32_t by, int width = 32)
{
    const uint32_t lane = emulator_lane();
    return emulator_shuffle(value, lane % width < by ? lane : lane - by);
}
static inline int __reduce_max_sync(uint32_t mask, int value)
{
    for (int by = 16; by > 0; by /= 2) value = max(value, __shfl_xor_sync(mask, value, by));
    return value;
}

static inline void __syncwarp(void)
{
    emulator_shuffle(0, emulator_lane());
}

#endif
