// SPDX-License-Identifier: Apache-2.0
//
// Runs of elements between memory and registers: loads and stores of up to 16 bytes at once, and
// conversions to and from the accumulator. The types of storage are float, double, half16 and
// bfloat16; conversions are exact in and round to nearest even out, as base/dtype.h does.
#ifndef WD_GPU_DEVICE_VECTOR_CUH
#define WD_GPU_DEVICE_VECTOR_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

typedef __half half16;
typedef __nv_bfloat16 bfloat16;

static __device__ __forceinline__ float wd_widen(float v)
{
    return v;
}
static __device__ __forceinline__ double wd_widen(double v)
{
    return v;
}
static __device__ __forceinline__ float wd_widen(half16 v)
{
    return __half2float(v);
}
static __device__ __forceinline__ float wd_widen(bfloat16 v)
{
    return __bfloat162float(v);
}

static __device__ __forceinline__ void wd_narrow(float &to, float v)
{
    to = v;
}
static __device__ __forceinline__ void wd_narrow(double &to, double v)
{
    to = v;
}
static __device__ __forceinline__ void wd_narrow(half16 &to, float v)
{
    to = __float2half_rn(v);
}
static __device__ __forceinline__ void wd_narrow(bfloat16 &to, float v)
{
    to = __float2bfloat16_rn(v);
}

// N elements of T in registers. N * sizeof(T) is a multiple of 16, or a power of two below.
template <class T, int N> struct wd_run {
    static constexpr int BYTES = N * (int)sizeof(T);
    static constexpr int WORDS = BYTES / 4;
    union {
        uint32_t word[WORDS > 0 ? WORDS : 1];
        uint16_t half_word;
        unsigned char bytes[BYTES];
    };

    __device__ __forceinline__ T get(int i) const
    {
        T value;
        if constexpr (sizeof(T) == 8) {
            value = __hiloint2double((int)word[2 * i + 1], (int)word[2 * i]);
        } else if constexpr (sizeof(T) == 4) {
            value = __uint_as_float(word[i]);
        } else {
            uint16_t bits = WORDS > 0 ? (uint16_t)(word[i / 2] >> (16 * (i & 1))) : half_word;
            if constexpr (sizeof(T) == 2) memcpy(&value, &bits, 2);
        }
        return value;
    }

    __device__ __forceinline__ void put(int i, T value)
    {
        if constexpr (sizeof(T) == 8) {
            word[2 * i] = (uint32_t)__double2loint(value);
            word[2 * i + 1] = (uint32_t)__double2hiint(value);
        } else if constexpr (sizeof(T) == 4) {
            word[i] = __float_as_uint(value);
        } else {
            uint16_t bits;
            memcpy(&bits, &value, 2);
            if constexpr (WORDS > 0) {
                uint32_t other = i & 1 ? word[i / 2] & 0xffffu : word[i / 2] & 0xffff0000u;
                word[i / 2] = other | (uint32_t)bits << (16 * (i & 1));
            } else {
                half_word = bits;
            }
        }
    }

    // From memory that is aligned to the run, or to 16 bytes where that is longer.
    __device__ __forceinline__ void load(const T *from)
    {
        if constexpr (BYTES >= 16) {
#pragma unroll
            for (int i = 0; i < BYTES / 16; ++i) {
                uint4 v = reinterpret_cast<const uint4 *>(from)[i];
                word[4 * i] = v.x, word[4 * i + 1] = v.y, word[4 * i + 2] = v.z,
                         word[4 * i + 3] = v.w;
            }
        } else if constexpr (BYTES == 8) {
            uint2 v = *reinterpret_cast<const uint2 *>(from);
            word[0] = v.x, word[1] = v.y;
        } else if constexpr (BYTES == 4) {
            word[0] = *reinterpret_cast<const uint32_t *>(from);
        } else {
            half_word = *reinterpret_cast<const uint16_t *>(from);
        }
    }

    __device__ __forceinline__ void store(T *to) const
    {
        if constexpr (BYTES >= 16) {
#pragma unroll
            for (int i = 0; i < BYTES / 16; ++i) {
                reinterpret_cast<uint4 *>(to)[i] =
                    make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]);
            }
        } else if constexpr (BYTES == 8) {
            *reinterpret_cast<uint2 *>(to) = make_uint2(word[0], word[1]);
        } else if constexpr (BYTES == 4) {
            *reinterpret_cast<uint32_t *>(to) = word[0];
        } else {
            *reinterpret_cast<uint16_t *>(to) = half_word;
        }
    }

    // The same past the caches that keep what is read again soon.
    __device__ __forceinline__ void store_streaming(T *to) const
    {
        if constexpr (BYTES >= 16) {
#pragma unroll
            for (int i = 0; i < BYTES / 16; ++i) {
                __stcs(reinterpret_cast<uint4 *>(to) + i,
                       make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]));
            }
        } else {
            store(to);
        }
    }
};

#endif
