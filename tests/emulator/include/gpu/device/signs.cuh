// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/signs.cuh.
#ifndef EMULATOR_SIGNS_CUH
#define EMULATOR_SIGNS_CUH

#include <stdint.h>

template <uint32_t SELECTOR> static inline uint32_t wd_signs(uint32_t low, uint32_t high)
{
    const uint64_t both = (uint64_t)high << 32 | low;
    uint32_t signs = 0;
    for (int byte = 0; byte < 4; ++byte) {
        const uint32_t from = SELECTOR >> (4 * byte) & 7u;
        if (both >> (8 * from + 7) & 1u) signs |= 0xffu << (8 * byte);
    }
    return signs;
}

#endif
