// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/grid.cuh.
#ifndef EMULATOR_GRID_CUH
#define EMULATOR_GRID_CUH

enum { WD_COUNTER_WORDS = 8 };

static inline void wd_meet(uint32_t *counter, uint32_t blocks, bool first)
{
    constexpr uint32_t HALF = 0x80000000u;
    __syncthreads();
    if (threadIdx.x == 0) emulator_meet(counter, first ? HALF - (blocks - 1) : 1u);
    __syncthreads();
}

#endif
