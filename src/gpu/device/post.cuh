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

// N words side by side as they are now, on their way: who asks early need not wait for them.
template <int N>
static __device__ __forceinline__ void wd_posts_ask(const uint64_t *from, uint64_t (&word)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i) {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                     : "=l"(word[i])
                     : "l"(from + i)
                     : "memory");
    }
}

// N numbers side by side, when all of them are those of the turn; `word` is what was asked for before.
template <int N>
static __device__ __forceinline__ void wd_posts_take(const uint64_t *from, uint32_t tag,
                                                     uint64_t (&word)[N], float (&to)[N])
{
    for (;;) {
        bool there = true;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            there = there && (uint32_t)(word[i] >> 32) == tag;
            to[i] = __uint_as_float((uint32_t)word[i]);
        }
        if (there) return;
        wd_posts_ask(from, word);
    }
}

template <int N>
static __device__ __forceinline__ void wd_posts_await(const uint64_t *from, uint32_t tag,
                                                      float (&to)[N])
{
    uint64_t word[N];
    wd_posts_ask(from, word);
    wd_posts_take(from, tag, word, to);
}

#endif
