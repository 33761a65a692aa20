// SPDX-License-Identifier: Apache-2.0
//
// A warp that waits for others of its block by a counter of arrivals (barrier.cuh), all its threads together: unlike
// wd_counter_wait, after which the compiler takes them for scattered, and makes two versions of all that they do together.
#ifndef WD_GPU_DEVICE_POLL_CUH
#define WD_GPU_DEVICE_POLL_CUH

#include "gpu/device/barrier.cuh"

static __device__ __forceinline__ void wd_counter_wait_together(uint64_t *counter, uint32_t parity)
{
#if __CUDA_ARCH__ >= 900
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(counter);
    uint32_t done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
    } while (!__all_sync(0xffffffffu, done));
#endif
}

#endif
