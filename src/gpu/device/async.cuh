// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous copies from device to shared memory, by a thread for itself: it sees what it copied
// after it waited. Copies are grouped by wd_copies_end; wd_copies_wait<N> waits until at most the N
// latest groups are under way, wd_copies_wait_all for all, grouped or not. Others see them after a
// barrier besides.
#ifndef WD_GPU_DEVICE_ASYNC_CUH
#define WD_GPU_DEVICE_ASYNC_CUH

#include <stdint.h>

// 4, 8 or 16 bytes, aligned to their size on both sides. AGAIN: they are read again soon.
template <int BYTES, bool AGAIN>
static __device__ __forceinline__ void wd_copy_async(void *shared, const void *from)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "what the instruction copies");
    if constexpr (BYTES == 16 && !AGAIN) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES)
                     : "memory");
    }
}

static __device__ __forceinline__ void wd_copies_end(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> static __device__ __forceinline__ void wd_copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

static __device__ __forceinline__ void wd_copies_wait_all(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

#endif
