// SPDX-License-Identifier: Apache-2.0
//
// 16 bytes of memory that are aligned to 2 or 4 or 8 only, as four words: by the two aligned loads
// that hold them, of which neighbouring threads share one, and 16 bytes out of two times 16.
#ifndef WD_GPU_DEVICE_SHIFTED_CUH
#define WD_GPU_DEVICE_SHIFTED_CUH

#include <stdint.h>

// Bytes [by, by + 16) of the words `low` and `high`; 0 < by < 16, a multiple of 2.
static __device__ __forceinline__ void wd_shift_words(uint32_t (&to)[4], const uint32_t (&low)[4],
                                                      const uint32_t (&high)[4], uint32_t by)
{
    uint32_t w[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = low[i], w[4 + i] = high[i];
    if (by & 8) {
#pragma unroll
        for (int i = 0; i < 6; ++i) w[i] = w[i + 2];
    }
    if (by & 4) {
#pragma unroll
        for (int i = 0; i < 5; ++i) w[i] = w[i + 1];
    }
    const uint32_t bits = by % 4 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = (uint32_t)(((uint64_t)w[i + 1] << 32 | w[i]) >> bits);
}

// The two aligned loads around `from`, which is not aligned to 16 bytes; `near` and `far` are memory
// of the same allocation.
static __device__ __forceinline__ void wd_load_around(uint32_t (&low)[4], uint32_t (&high)[4],
                                                      const void *from)
{
    const uint4 *near =
        reinterpret_cast<const uint4 *>(reinterpret_cast<uintptr_t>(from) & ~(uintptr_t)15);
    const uint4 a = near[0], b = near[1];
    low[0] = a.x, low[1] = a.y, low[2] = a.z, low[3] = a.w;
    high[0] = b.x, high[1] = b.y, high[2] = b.z, high[3] = b.w;
}

#endif
