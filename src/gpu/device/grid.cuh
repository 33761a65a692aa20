// SPDX-License-Identifier: Apache-2.0
//
// Meetings of blocks that are all there at once (wd_emit_meeting_kernel): a word of the queue's
// counters a group of blocks. Its upper bit turns with every meeting; the others count those who have
// come, and are 0 between meetings, so that nobody has to put it back. Numbers that blocks draw, from any kernel,
// count in the same bits of a word, which who draws the last one sets back to 0.
#ifndef WD_GPU_DEVICE_GRID_CUH
#define WD_GPU_DEVICE_GRID_CUH

#include <stdint.h>

// Of counters that are used at the same time, each has a sector of its own.
enum { WD_COUNTER_WORDS = 8 };

constexpr uint32_t WD_MEETING = 0x80000000u;

// By one thread of each of the `blocks` of the group, of which one is the `first`, after a barrier of
// its block: what the block wrote before is seen by those who have waited. Returns what to wait with.
// The next meeting comes after the wait.
static __device__ __forceinline__ uint32_t wd_come(uint32_t *counter, uint32_t blocks, bool first)
{
    const uint32_t mine = first ? WD_MEETING - (blocks - 1) : 1u;
    uint32_t before;
    // what the block's other threads wrote is ordered by the barrier above: release is cumulative
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(mine)
                 : "memory");
    return before;
}

// By the same thread; a barrier of its block follows. Or by a lane of any warp that has `before` of this meeting, read
// before its block came, so that the bit is the one that turns; __syncwarp follows, and what others wrote is seen by
// that warp.
static __device__ __forceinline__ void wd_await(uint32_t *counter, uint32_t before)
{
    uint32_t now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (((now ^ before) & WD_MEETING) == 0);
}

// By all threads of all blocks: what any of them wrote before is seen by all of them afterwards, by
// loads that do not go through the read-only path (__ldg). Blocks of one dimension.
static __device__ __forceinline__ void wd_meet(uint32_t *counter, uint32_t blocks, bool first)
{
    __syncthreads();
    if (threadIdx.x == 0) wd_await(counter, wd_come(counter, blocks, first));
    __syncthreads();
}

// By one thread: a word with the next of a counter's numbers, from 0 on, which may be on its way until wd_number_of
// is asked. Blocks that draw them need not be there at once. No addition: of these the compiler asks how many lanes
// make it, and waits for what comes back to share it out.
static __device__ __forceinline__ uint32_t wd_draw_number(uint32_t *counter)
{
    uint32_t before;
    asm volatile("atom.inc.relaxed.gpu.global.u32 %0, [%1], 0xfffffffe;"
                 : "=r"(before)
                 : "l"(counter)
                 : "memory");
    return before;
}

static __device__ __forceinline__ uint32_t wd_number_of(uint32_t drawn)
{
    return drawn & ~WD_MEETING;
}

// By a thread that has drawn a number, of `all` that a kernel draws: the last one sets the counter back.
static __device__ __forceinline__ void wd_drawn(uint32_t *counter, uint32_t drawn, uint32_t all)
{
    if (wd_number_of(drawn) != all - 1) return;
    asm volatile("red.add.relaxed.gpu.global.u32 [%0], %1;" ::"l"(counter), "r"(0u - all)
                 : "memory");
}

#endif
