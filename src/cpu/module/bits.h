/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks: eight bytes of 0 or 1 to the bits of one byte, the first to the lowest, and back. Each is a
 * few operations on one number of 64 bits, whose lowest byte is the first in memory. */
#ifndef WD_CPU_MODULE_BITS_H
#define WD_CPU_MODULE_BITS_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes are taken as one number");

/* The product moves byte i's bit to bit 56 + i; none of the others reaches the highest byte. */
static inline __attribute__((always_inline)) uint8_t wd_bits_gather(const uint8_t *from)
{
    uint64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return (uint8_t)(bytes * UINT64_C(0x0102040810204080) >> 56);
}

static inline __attribute__((always_inline)) void wd_bits_spread(uint8_t *to, uint8_t bits)
{
    uint64_t bytes = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    bytes = (bytes + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
    memcpy(to, &bytes, sizeof bytes);
}

#endif
