// SPDX-License-Identifier: Apache-2.0
//
// Numbers that blocks of a meeting kernel (gpu/device/grid.cuh) leave for one another in memory: a word
// of eight bytes has one and the tag of its turn, so that whoever reads the tag has the number, and
// nothing else is ordered by it.
#ifndef WD_GPU_DEVICE_POST_CUH
#define WD_GPU_DEVICE_POST_CUH

#include <stdint.h>

static __device__ __forceinline__ void wd_post(uint64_t *to, float value, uint32_t tag)
{
    const uint64_t word = (uint64_t)tag << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

// N numbers side by side, when all of them are those of the turn.
template <int N>
static __device__ __forceinline__ void wd_posts_await(const uint64_t *from, uint32_t tag,
                                                      float (&to)[N])
{
    bool there;
    do {
        uint64_t word[N];
        there = true;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                         : "=l"(word[i])
                         : "l"(from + i)
                         : "memory");
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            there = there && (uint32_t)(word[i] >> 32) == tag;
            to[i] = __uint_as_float((uint32_t)word[i]);
        }
    } while (!there);
}

#endif
