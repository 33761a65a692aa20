/* SPDX-License-Identifier: Apache-2.0
 *
 * A 64-bit hash of bytes: eight at a time through a multiply and fold, for in-process tables only
 * (the value may change between versions and is never stored). */
#ifndef WD_BASE_HASH_H
#define WD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t wd_hash_mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t wd_hash(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t h = 0x9e3779b97f4a7c15u ^ bytes;
    uint64_t word;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        memcpy(&word, p, 8);
        h = wd_hash_mix(h ^ word, 0xd6e8feb86659fd93u);
    }
    word = 0;
    if (bytes) memcpy(&word, p, bytes);
    return wd_hash_mix(h ^ word, 0xa0761d6478bd642fu);
}

#endif
