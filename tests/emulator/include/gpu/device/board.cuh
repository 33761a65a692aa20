// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/board.cuh.
#ifndef EMULATOR_BOARD_CUH
#define EMULATOR_BOARD_CUH

#include "base/board.h"
#include "gpu/device/grid.cuh"

struct wd_board {
    uint64_t *bank, *other;
    uint32_t left;
};

static inline uint4 wd_board_ask(const uint32_t *head)
{
    uint4 v = {};
    v.x = __atomic_load_n(head, __ATOMIC_RELAXED);
    v.y = __atomic_load_n(head + 1, __ATOMIC_RELAXED);
    v.z = __atomic_load_n(head + 2, __ATOMIC_RELAXED);
    return v;
}

static inline wd_board wd_board_of(uint32_t *head, uint4 asked)
{
    uint64_t *banks = reinterpret_cast<uint64_t *>(head + WD_BOARD_HEAD);
    const bool second = (asked.x & WD_MEETING) != 0;
    return {banks + (second ? WD_BOARD_WORDS : 0), banks + (second ? 0 : WD_BOARD_WORDS),
            second ? asked.y : asked.z};
}

static inline void wd_board_show(uint64_t *to, float first, float second)
{
    const uint32_t upper = ~__float_as_uint(second);
    emulator_post(to, __float_as_uint(first), upper != 0 ? upper : ~0x7fffffffu);
}

template <int N>
static inline void wd_board_see(const uint64_t *from, uint32_t step, uint32_t count,
                                float2 (&to)[N])
{
    for (uint32_t k = 0; k < N; ++k) {
        const uint64_t word = k < count ? emulator_posted(from + k * step) : ~(uint64_t)0 << 32;
        to[k] =
            make_float2(__uint_as_float((uint32_t)word), __uint_as_float(~(uint32_t)(word >> 32)));
    }
}

static inline void wd_board_show_in_turn(uint64_t *to, float first, float second, uint32_t bit)
{
    emulator_post(to, __float_as_uint(first), (~__float_as_uint(second) & ~1u) | bit);
}

template <int N>
static inline void wd_board_see_in_turn(const uint64_t *from, uint32_t step, uint32_t count,
                                        uint32_t bit, float2 (&to)[N])
{
    for (uint32_t k = 0; k < N; ++k) {
        const uint64_t word =
            k < count ? emulator_posted_in_turn(from + k * step, bit) : ~(uint64_t)0 << 32;
        to[k] = make_float2(__uint_as_float((uint32_t)word),
                            __uint_as_float(~(uint32_t)(word >> 32) & ~1u));
    }
}

static inline void wd_board_clear(const wd_board &b)
{
    const uint32_t threads = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < b.left; i += threads) {
        emulator_post(b.other + i, 0, 0);
    }
}

static inline void wd_board_leave(uint32_t *head, uint4 asked, uint32_t words)
{
    const bool first = blockIdx.x == 0;
    if (first) {
        __atomic_store_n(head + ((asked.x & WD_MEETING) != 0 ? 2 : 1), words, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(head, first ? WD_MEETING - (gridDim.x - 1) : 1u, __ATOMIC_RELAXED);
}

static inline void wd_board_leave_told(uint32_t *head, uint4 asked, uint32_t words)
{
    const bool first = blockIdx.x == 0;
    if (first) {
        __atomic_store_n(head + ((asked.x & WD_MEETING) != 0 ? 2 : 1), words, __ATOMIC_RELAXED);
    }
    (void)wd_come(head, gridDim.x, first);
}

#endif
