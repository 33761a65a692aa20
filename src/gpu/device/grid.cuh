// SPDX-License-Identifier: Apache-2.0
//
// Meetings of blocks that are all there at once (wd_emit_meeting_kernel): a word of the queue's
// counters a group of blocks. Its upper bit turns with every meeting; the others count those who have
// come, and are 0 between meetings, so that nobody has to put it back.
#ifndef WD_GPU_DEVICE_GRID_CUH
#define WD_GPU_DEVICE_GRID_CUH

#include <stdint.h>

// Of counters that are used at the same time, each has a sector of its own.
enum { WD_COUNTER_WORDS = 8 };

// By all threads of all `blocks` of the group, of which one is the `first`: what any of them wrote
// before is seen by all of them afterwards, by loads that do not go through the read-only path
// (__ldg). Blocks of one dimension.
static __device__ __forceinline__ void wd_meet(uint32_t *counter, uint32_t blocks, bool first)
{
    constexpr uint32_t HALF = 0x80000000u;
    __syncthreads();
    if (threadIdx.x == 0) {
        const uint32_t mine = first ? HALF - (blocks - 1) : 1u;
        uint32_t before, now;
        // what the block's other threads wrote is ordered by the barrier above: release is cumulative
        asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                     : "=r"(before)
                     : "l"(counter), "r"(mine)
                     : "memory");
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(now)
                         : "l"(counter)
                         : "memory");
        } while (((now ^ before) & HALF) == 0);
    }
    __syncthreads();
}

#endif
