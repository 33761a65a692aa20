// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/barrier.cuh.
#ifndef EMULATOR_BARRIER_CUH
#define EMULATOR_BARRIER_CUH

#include <stdint.h>
#include <string.h>

static inline void wd_barrier(uint32_t name, uint32_t threads)
{
    emulator_barrier(name, threads);
}

// What lies in the 8 bytes of a counter: bytes still to come (below 0: come before they were
// expected), and twice the number of phases that ended, plus 1 once this one's bytes are known.
struct emulator_counter {
    int32_t bytes;
    volatile uint32_t phase;
};

static inline void emulator_counter_look(emulator_counter *c)
{
    if (c->bytes == 0 && c->phase % 2) c->phase += 1;
}

static inline void wd_counter_begin(uint64_t *counter)
{
    memset(counter, 0, sizeof *counter);
}

static inline void wd_counter_expect(uint64_t *counter, uint32_t bytes)
{
    emulator_counter *c = reinterpret_cast<emulator_counter *>(counter);
    c->bytes += (int32_t)bytes;
    c->phase += 1;
    emulator_counter_look(c);
}

static inline void wd_counter_send(void *mine, uint64_t *counter, uint32_t rank, float4 value)
{
    emulator_counter *c = static_cast<emulator_counter *>(emulator_of_cluster(counter, rank));
    memcpy(emulator_of_cluster(mine, rank), &value, sizeof value);
    c->bytes -= (int32_t)sizeof value;
    emulator_counter_look(c);
}

static inline void wd_counter_wait(uint64_t *counter, uint32_t parity)
{
    emulator_counter *c = reinterpret_cast<emulator_counter *>(counter);
    while (c->phase / 2 % 2 == parity) emulator_wait_while(&c->phase, c->phase);
}

#endif
