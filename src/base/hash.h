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

/* Every bit of a word reaches the high bits of the product, and the fold hands these to the low ones, which the
 * next word's product spreads. (A product of twice the width would do it in one step, but compilers take it
 * through memory.) */
static inline uint64_t wd_hash_fold(uint64_t h)
{
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static inline uint64_t wd_hash_word(uint64_t h, const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return wd_hash_fold(h ^ word);
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
    h = wd_hash_fold(wd_hash_fold(wd_hash_fold(a) ^ b) ^ c) ^ d;
    for (; bytes >= 8; bytes -= 8, p += 8) h = wd_hash_word(h, p);
    if (bytes) memcpy(&word, p, bytes);
    return wd_hash_fold(wd_hash_fold(h ^ word));
}

#endif
