// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/grid.cuh.
#ifndef EMULATOR_GRID_CUH
#define EMULATOR_GRID_CUH

enum { WD_COUNTER_WORDS = 8 };

constexpr uint32_t WD_MEETING = 0x80000000u;

static inline uint32_t wd_come(uint32_t *counter, uint32_t blocks, bool first)
{
    return emulator_come(counter, first ? WD_MEETING - (blocks - 1) : 1u);
}

static inline void wd_await(uint32_t *counter, uint32_t before)
{
    emulator_await(counter, before);
}

static inline void wd_meet(uint32_t *counter, uint32_t blocks, bool first)
{
    __syncthreads();
    if (threadIdx.x == 0) wd_await(counter, wd_come(counter, blocks, first));
    __syncthreads();
}

static inline uint32_t wd_draw_number(uint32_t *counter)
{
    return emulator_come(counter, 1);
}

static inline uint32_t wd_number_of(uint32_t drawn)
{
    return drawn & ~WD_MEETING;
}

static inline void wd_drawn(uint32_t *counter, uint32_t drawn, uint32_t all)
{
    if (wd_number_of(drawn) == all - 1) (void)emulator_come(counter, 0u - all);
}

#endif
