// SPDX-License-Identifier: Apache-2.0
//
// Sixteen bytes of elements in words, all at once: of 16 bits two a word, which one instruction makes.
#ifndef WD_GPU_DEVICE_WORDS_CUH
#define WD_GPU_DEVICE_WORDS_CUH

#include "gpu/device/vector.cuh"

static __device__ __forceinline__ uint32_t wd_narrow_pair(float x, float y, half16)
{
    const __half2 both = __floats2half2_rn(x, y);
    uint32_t word;
    memcpy(&word, &both, 4);
    return word;
}

static __device__ __forceinline__ uint32_t wd_narrow_pair(float x, float y, bfloat16)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
    uint32_t word;
    memcpy(&word, &both, 4);
    return word;
}

template <class T, int N, class A>
static __device__ __forceinline__ void wd_narrow_run(wd_run<T, N> &to, const A (&value)[N])
{
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
            to.word[i] = wd_narrow_pair(value[2 * i], value[2 * i + 1], T());
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) to.put(i, value[i]);
    }
}

// 0 for elements whose bit is 0.
template <class T, int N>
static __device__ __forceinline__ void wd_mask_run(wd_run<T, N> &run, uint32_t bits)
{
    constexpr int WORDS = wd_run<T, N>::WORDS;
    if constexpr (sizeof(T) == 2) {
        // of two bits at 0 and 1 both halves of a word full of them
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            const uint32_t two = bits >> 2 * i & 3;
            run.word[i] &= (two * 0x8001u & 0x10001u) * 0xffffu;
        }
    } else {
        constexpr int EACH = (int)sizeof(T) / 4;
#pragma unroll
        for (int i = 0; i < WORDS; ++i) run.word[i] = bits >> i / EACH & 1 ? run.word[i] : 0;
    }
}

#endif
