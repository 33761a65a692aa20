// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies from device to shared memory: one thread tells a counter (barrier.cuh) how many bytes
// a phase has, and asks for runs of them, which count themselves in. All who wait for that phase
// see them. Whoever read what lay there before comes to the asking thread first (__syncwarp, a
// barrier). Hopper; nothing below compute capability 9.0.
#ifndef WD_GPU_DEVICE_BULK_CUH
#define WD_GPU_DEVICE_BULK_CUH

#include "gpu/device/barrier.cuh"

// A multiple of 16 bytes, aligned to 16 on both sides.
static __device__ __forceinline__ void wd_bulk_copy(void *shared, const void *from, uint32_t bytes,
                                                    uint64_t *counter)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(from), "r"(bytes), "r"((uint32_t)__cvta_generic_to_shared(counter))
                 : "memory");
#endif
}

#endif
