/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU queue: runs every piece of work when it is emitted, on the module's threads where there is
 * a module. Scratch is one block a queue that grows and is kept: calls are synchronous, so nothing
 * uses it between two executions. While one is under way what it was given stays where it is: more
 * scratch than the block has left comes from a new block, and the older ones go at the end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "cpu/cpu.h"

struct cpu_queue {
    struct wd_queue base;
    struct wd_device device;
    const struct wd_cpu_module *module;
    struct scratch_block *scratch; /* the newest first */
    int depth;                     /* of begins */
};

/* Followed by its bytes, from the first multiple of SCRATCH_ALIGNMENT on. */
struct scratch_block {
    struct scratch_block *next;
    size_t bytes;
    size_t used;
};

enum { SCRATCH_ALIGNMENT = 256 };

static cudnnStatus_t cpu_begin(struct wd_queue *queue)
{
    ((struct cpu_queue *)queue)->depth += 1;
    return CUDNN_STATUS_SUCCESS;
}

static void free_blocks(struct scratch_block *block)
{
    while (block) {
        struct scratch_block *next = block->next;
        wd_free(block);
        block = next;
    }
}

/* The newest block is as large as all that the execution took, and stays. */
static void cpu_end(struct wd_queue *queue)
{
    struct cpu_queue *own = (struct cpu_queue *)queue;
    if (--own->depth > 0 || !own->scratch) return;
    free_blocks(own->scratch->next);
    own->scratch->next = NULL;
    own->scratch->used = 0;
}

static cudnnStatus_t cpu_range(struct wd_queue *queue, wd_range_fn fn, const void *args,
                               int64_t items, int64_t grain)
{
    const struct cpu_queue *own = (const struct cpu_queue *)queue;
    queue->emitted += 1;
    if (own->module && items > grain) own->module->range(fn, args, items, grain);
    else fn(args, 0, items);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t cpu_fill(struct wd_queue *queue, void *data, int byte, size_t bytes)
{
    queue->emitted += 1;
    memset(data, byte, bytes);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t cpu_copy(struct wd_queue *queue, void *to, const void *from, size_t bytes)
{
    queue->emitted += 1;
    memcpy(to, from, bytes);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t cpu_scratch(struct wd_queue *queue, size_t bytes, void **data)
{
    struct cpu_queue *own = (struct cpu_queue *)queue;
    struct scratch_block *block = own->scratch;
    size_t wanted = 0;
    bool fits = bytes < SIZE_MAX / 4;
    if (fits) wanted = (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    if (!fits || !block || block->bytes - block->used < wanted) {
        size_t size = wanted;
        for (struct scratch_block *b = block; b; b = b->next) size += b->used;
        block = fits ? wd_alloc(sizeof *block + SCRATCH_ALIGNMENT + size) : NULL;
        WD_REQUIRE(block != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no host memory for %zu bytes of scratch", bytes);
        block->bytes = size;
        if (own->scratch && own->scratch->used == 0) { /* nobody was given any of it */
            block->next = own->scratch->next;
            wd_free(own->scratch);
        } else {
            block->next = own->scratch;
        }
        own->scratch = block;
    }
    *data = (void *)((((uintptr_t)(block + 1) + SCRATCH_ALIGNMENT - 1) &
                      ~(uintptr_t)(SCRATCH_ALIGNMENT - 1)) +
                     block->used);
    block->used += wanted;
    return CUDNN_STATUS_SUCCESS;
}

static const struct wd_queue_ops operations = {
    .begin = cpu_begin,
    .end = cpu_end,
    .range = cpu_range,
    .fill = cpu_fill,
    .copy = cpu_copy,
    .scratch = cpu_scratch,
};

cudnnStatus_t wd_cpu_queue_create(struct wd_queue **queue)
{
    struct cpu_queue *own = wd_alloc(sizeof *own);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    WD_REQUIRE(own != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory for a queue");
    own->module = wd_cpu_module(NULL);
    own->device = (struct wd_device){
        .kind = WD_CPU,
        .ordinal = -1,
        .multiprocessors = own->module ? own->module->threads
                           : cores > 0 ? (int)cores
                                       : 1,
        .memory_bytes = pages > 0 && page > 0 ? (int64_t)pages * page : 0,
    };
    own->base.ops = &operations;
    own->base.device = &own->device;
    *queue = &own->base;
    return CUDNN_STATUS_SUCCESS;
}

void wd_cpu_queue_destroy(struct wd_queue *queue)
{
    struct cpu_queue *own = (struct cpu_queue *)queue;
    if (!own) return;
    free_blocks(own->scratch);
    wd_free(own);
}
