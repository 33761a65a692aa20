// SPDX-License-Identifier: Apache-2.0
//
// gpu/device/async.cuh's copies of 16 bytes with a word on whether the second-level cache should keep what was
// read: a policy, made once a kernel.
#ifndef WD_GPU_DEVICE_ASYNC_ONCE_CUH
#define WD_GPU_DEVICE_ASYNC_ONCE_CUH

#include <stdint.h>

// `again`: as it always does; else what is read goes first.
static __device__ __forceinline__ uint64_t wd_cache_policy(bool again)
{
    uint64_t once, usual;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(usual));
    return again ? usual : once;
}

static __device__ __forceinline__ void wd_copy_async_by(void *shared, const void *from,
                                                        uint64_t policy)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "l"(policy)
                 : "memory");
}

#endif
