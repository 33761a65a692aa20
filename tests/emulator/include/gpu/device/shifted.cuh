// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/shifted.cuh: what lies around is not read, since others may write it.
#ifndef EMULATOR_SHIFTED_CUH
#define EMULATOR_SHIFTED_CUH

#include <string.h>

static inline void wd_shift_words(uint32_t (&to)[4], const uint32_t (&low)[4],
                                  const uint32_t (&high)[4], uint32_t by)
{
    unsigned char bytes[32];
    memcpy(bytes, low, 16);
    memcpy(bytes + 16, high, 16);
    memcpy(to, bytes + by, 16);
}

static inline void wd_load_around(uint32_t (&low)[4], uint32_t (&high)[4], const void *from)
{
    unsigned char bytes[32] = {0};
    const uint32_t behind = (uint32_t)((uintptr_t)from % 16);
    const uint16_t *at = (const uint16_t *)from;
    for (int i = 0; i < 8; ++i) memcpy(bytes + behind + 2 * i, at + i, 2);
    memcpy(low, bytes, 16);
    memcpy(high, bytes + 16, 16);
}

#endif
