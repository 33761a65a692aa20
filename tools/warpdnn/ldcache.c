/* SPDX-License-Identifier: Apache-2.0
 *
 * glibc's cache format, version 1.1: a header, entries, and the strings that they point to, at
 * offsets from the header. An older table may stand before it. Every offset is checked. */
#include "ldcache.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static const char magic[] = "glibc-ld.so.cache1.1";
enum { MAGIC_SIZE = sizeof magic - 1, X86_64_LIBC6 = 0x0303, KIND_MASK = 0xffff };
static const size_t cache_max = (size_t)64 << 20;

struct header {
    char magic[MAGIC_SIZE];
    uint32_t count, strings;
    uint32_t unused[5];
};

struct entry {
    int32_t flags;
    uint32_t key, value, version;
    uint64_t capabilities;
};

static char *read_all(const char *path, size_t *size)
{
    struct text text = {0};
    char bytes[65536];
    size_t got;
    FILE *file = fopen(path, "re");
    if (!file) return NULL;
    while ((got = fread(bytes, 1, sizeof bytes, file)) > 0 && text.length < cache_max) {
        text_add_bytes(&text, bytes, got);
    }
    fclose(file);
    *size = text.length;
    return text.data;
}

bool ldcache_each(const char *cache, const char *name, void (*found)(void *user, const char *path),
                  void *user)
{
    size_t size = 0;
    char *bytes = read_all(cache, &size);
    char *base = bytes ? memmem(bytes, size, magic, MAGIC_SIZE) : NULL;
    size_t left = base ? size - (size_t)(base - bytes) : 0;
    struct header header;
    bool understood = false;
    if (left >= sizeof header) {
        memcpy(&header, base, sizeof header);
        understood = header.count <= (left - sizeof header) / sizeof(struct entry);
    }
    for (uint32_t i = 0; understood && i < header.count; ++i) {
        struct entry entry;
        memcpy(&entry, base + sizeof header + i * sizeof entry, sizeof entry);
        /* the bytes end with a zero, so a string that begins inside ends inside */
        if (entry.key >= left || entry.value >= left) continue;
        if ((entry.flags & KIND_MASK) != X86_64_LIBC6) continue;
        if (strcmp(base + entry.key, name) == 0) found(user, base + entry.value);
    }
    free(bytes);
    return understood;
}
