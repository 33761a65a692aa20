/* SPDX-License-Identifier: Apache-2.0
 *
 * A 64-bit hash of bytes: eight at a time through a multiply and fold, in four chains that do not wait for
 * each other while there is enough, for in-process tables and for images of kernels, which are read by
 * the build that wrote them (the value may change between versions). */
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

static inline uint64_t wd_hash_word(uint64_t h, const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return wd_hash_mix(h ^ word, 0xd6e8feb86659fd93u);
}

static inline uint64_t wd_hash(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t h = 0x9e3779b97f4a7c15u ^ bytes;
    uint64_t a = h;
    uint64_t b = ~h;
    uint64_t c = h << 1;
    uint64_t d = h >> 1;
    uint64_t word = 0;
    for (; bytes >= 32; bytes -= 32, p += 32) {
        a = wd_hash_word(a, p);
        b = wd_hash_word(b, p + 8);
        c = wd_hash_word(c, p + 16);
        d = wd_hash_word(d, p + 24);
    }
    h = wd_hash_mix(a, b | 1) ^ wd_hash_mix(c, d | 1);
    for (; bytes >= 8; bytes -= 8, p += 8) h = wd_hash_word(h, p);
    if (bytes) memcpy(&word, p, bytes);
    return wd_hash_mix(h ^ word, 0xa0761d6478bd642fu);
}

#endif
