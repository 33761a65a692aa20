// SPDX-License-Identifier: Apache-2.0
//
// The board: where the blocks of a meeting kernel show each other pairs of sums, once a kernel,
// without a meeting. It lies behind the queue's counters (base/queue.h): a head, and two banks of
// words. A word has a pair, and is 0 until that is shown: whoever reads it has the pair, and
// nothing else is ordered by it. Kernels of a queue take the banks in turns; each clears what the
// one before left in the other bank, which nobody reads any more. Whose turn it is says the upper
// bit of the head's first word, which turns when all blocks have come, as that of a counter does
// (gpu/device/grid.cuh).
#ifndef WD_GPU_DEVICE_BOARD_CUH
#define WD_GPU_DEVICE_BOARD_CUH

#include "base/board.h"
#include "gpu/device/grid.cuh"

struct wd_board {
    uint64_t *bank;  // of this kernel: all zeros at first
    uint64_t *other; // of the one before, ...
    uint32_t left;   // ... which had so many words
};

// The words are the first of the head: the counter, and how many words of each bank the last kernel
// had that took it.
static __device__ __forceinline__ uint4 wd_board_ask(const uint32_t *head)
{
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(head)
                 : "memory");
    return v;
}

// By a thread that has asked before its block came.
static __device__ __forceinline__ wd_board wd_board_of(uint32_t *head, uint4 asked)
{
    uint64_t *banks = reinterpret_cast<uint64_t *>(head + WD_BOARD_HEAD);
    const bool second = (asked.x & WD_MEETING) != 0;
    wd_board b;
    b.bank = banks + (second ? WD_BOARD_WORDS : 0);
    b.other = banks + (second ? 0 : WD_BOARD_WORDS);
    b.left = second ? asked.y : asked.z;
    return b;
}

static __device__ __forceinline__ void wd_board_show(uint64_t *to, float first, float second)
{
    // no number that is written is the NaN whose complement is 0
    uint32_t upper = ~__float_as_uint(second);
    upper = upper != 0 ? upper : ~0x7fffffffu;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to),
                 "l"((uint64_t)upper << 32 | __float_as_uint(first))
                 : "memory");
}

static __device__ __forceinline__ uint64_t wd_board_word(const uint64_t *from)
{
    uint64_t word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}

// The pairs of the first `count` of N words that lie `step` apart, when all of them are there; else
// 0. All that are not there yet are asked for at once, and of those that are late then one alone
// until it comes.
template <int N>
static __device__ __forceinline__ void wd_board_see(const uint64_t *from, uint32_t step,
                                                    uint32_t count, float2 (&to)[N])
{
    uint64_t word[N];
    uint32_t late; // the last of those that are, and 1
#pragma unroll
    for (int k = 0; k < N; ++k) word[k] = 0;
    do {
        late = 0;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (k < count && word[k] == 0) word[k] = wd_board_word(from + k * step);
        }
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (k < count && word[k] == 0) late = k + 1;
        }
        if (late > 0) {
            const uint64_t *at = from + (late - 1) * step;
            while (wd_board_word(at) == 0) {
            }
        }
    } while (late > 0);
#pragma unroll
    for (int k = 0; k < N; ++k) {
        to[k] = k < count ? make_float2(__uint_as_float((uint32_t)word[k]),
                                        __uint_as_float(~(uint32_t)(word[k] >> 32)))
                          : make_float2(0, 0);
    }
}

// Of kernels that show pairs in turns (gpu/device/board_turns.cuh): the lowest bit of a word's second number, which the
// number loses, says whether the word is of the turn that is asked for.

// The second number is moved towards zero by a last place at most; a NaN has to be a quiet one.
static __device__ __forceinline__ void wd_board_show_in_turn(uint64_t *to, float first,
                                                             float second, uint32_t bit)
{
    const uint32_t upper = (~__float_as_uint(second) & ~1u) | bit;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to),
                 "l"((uint64_t)upper << 32 | __float_as_uint(first))
                 : "memory");
}

// As wd_board_see.
template <int N>
static __device__ __forceinline__ void wd_board_see_in_turn(const uint64_t *from, uint32_t step,
                                                            uint32_t count, uint32_t bit,
                                                            float2 (&to)[N])
{
    uint64_t word[N];
    uint32_t late;
    const auto is_there = [&](uint64_t one) { return ((uint32_t)(one >> 32) & 1) == bit; };
#pragma unroll
    for (int k = 0; k < N; ++k) word[k] = (uint64_t)(bit ^ 1) << 32;
    do {
        late = 0;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (k < count && !is_there(word[k])) word[k] = wd_board_word(from + k * step);
        }
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (k < count && !is_there(word[k])) late = k + 1;
        }
        if (late > 0) {
            while (!is_there(wd_board_word(from + (late - 1) * step))) {
            }
        }
    } while (late > 0);
#pragma unroll
    for (int k = 0; k < N; ++k) {
        to[k] = k < count ? make_float2(__uint_as_float((uint32_t)word[k]),
                                        __uint_as_float(~(uint32_t)(word[k] >> 32) & ~1u))
                          : make_float2(0, 0);
    }
}

// By all threads of all blocks, once: index of `threads`. Of one dimension.
static __device__ __forceinline__ void wd_board_clear(const wd_board &b)
{
    const uint32_t threads = gridDim.x * blockDim.x;
#pragma unroll 1
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < b.left; i += threads) {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(b.other + i), "l"((uint64_t)0)
                     : "memory");
    }
}

// By one thread of each block, when all of the block's have what they asked for, and a barrier is
// between: the block has come. Then the kernel has had the first `words` of its bank.
static __device__ __forceinline__ void wd_board_leave(uint32_t *head, uint4 asked, uint32_t words)
{
    const bool first = blockIdx.x == 0;
    const uint32_t mine = first ? WD_MEETING - (gridDim.x - 1) : 1u;
    if (first) {
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(
                         head + ((asked.x & WD_MEETING) != 0 ? 2 : 1)),
                     "r"(words)
                     : "memory");
    }
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(head), "r"(mine) : "memory");
}

// Likewise where others wait for what the block has written: all have come when wd_await(head, asked.x) ends.
static __device__ __forceinline__ void wd_board_leave_told(uint32_t *head, uint4 asked,
                                                           uint32_t words)
{
    const bool first = blockIdx.x == 0;
    if (first) {
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(
                         head + ((asked.x & WD_MEETING) != 0 ? 2 : 1)),
                     "r"(words)
                     : "memory");
    }
    (void)wd_come(head, gridDim.x, first);
}

#endif
