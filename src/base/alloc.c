/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory with a count of what is alive, and failures on demand. Each block carries its size in
 * a header of one maximal alignment. Safe for threads. */
#include "base/alloc.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

union header {
    size_t bytes;
    max_align_t align;
};

static _Atomic uint64_t alive;
static _Thread_local uint64_t countdown;
static _Thread_local uint64_t made;

void *wd_alloc(size_t bytes)
{
    union header *block;
    made += 1;
    if (countdown != 0 && --countdown == 0) return NULL;
    if (bytes > SIZE_MAX - sizeof *block) return NULL;
    block = calloc(1, sizeof *block + bytes);
    if (!block) return NULL;
    block->bytes = bytes;
    atomic_fetch_add_explicit(&alive, bytes, memory_order_relaxed);
    return block + 1;
}

void wd_free(void *data)
{
    union header *block = data;
    if (!block) return;
    block -= 1;
    atomic_fetch_sub_explicit(&alive, block->bytes, memory_order_relaxed);
    free(block);
}

uint64_t wd_alloc_bytes(void)
{
    return atomic_load_explicit(&alive, memory_order_relaxed);
}

uint64_t wd_alloc_fail_at(uint64_t n)
{
    uint64_t before = made;
    countdown = n;
    made = 0;
    return before;
}
