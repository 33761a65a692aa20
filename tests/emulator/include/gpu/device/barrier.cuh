// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/barrier.cuh.
#ifndef EMULATOR_BARRIER_CUH
#define EMULATOR_BARRIER_CUH

#include <stdint.h>

static inline void wd_barrier(uint32_t name, uint32_t threads)
{
    emulator_barrier(name, threads);
}

// By a number of each warp's: threads come one by one here, and those of several warps would fill one number together.
static inline void wd_barrier_of_warp(void)
{
    emulator_barrier((threadIdx.x / 32 + 1) % 16, 32);
}

static inline void wd_counter_begin(uint64_t *counter)
{
    emulator_counter_begin(counter);
}

static inline void wd_counter_end(uint64_t *counter)
{
    (void)counter;
}

static inline void wd_counter_expect(uint64_t *counter, uint32_t bytes)
{
    emulator_counter_expect(counter, bytes);
}

static inline void wd_counter_send(void *mine, uint64_t *counter, uint32_t rank, float4 value)
{
    emulator_counter_send(mine, counter, rank, &value, sizeof value);
}

static inline void wd_arrivals_begin(uint64_t *counter, uint32_t all)
{
    (void)all;
    emulator_counter_begin(counter);
}

static inline void wd_arrive(uint64_t *counter, uint32_t all)
{
    emulator_arrive(counter, all);
}

static inline void wd_counter_wait(uint64_t *counter, uint32_t parity)
{
    emulator_counter_wait(counter, parity);
}

#endif
