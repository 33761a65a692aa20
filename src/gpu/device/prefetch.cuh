// SPDX-License-Identifier: Apache-2.0
//
// What is read soon is asked for, up to the second-level cache.
#ifndef WD_GPU_DEVICE_PREFETCH_CUH
#define WD_GPU_DEVICE_PREFETCH_CUH

enum { WD_LINE = 128 };

// The line that an address in device memory is in.
static __device__ __forceinline__ void wd_prefetch_line(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(at)));
}

#endif
