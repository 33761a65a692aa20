// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/poll.cuh.
#ifndef EMULATOR_POLL_CUH
#define EMULATOR_POLL_CUH

#include "gpu/device/barrier.cuh"

static inline void wd_counter_wait_together(uint64_t *counter, uint32_t parity)
{
    emulator_counter_wait(counter, parity);
    __syncwarp();
}

#endif
