/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU queue: runs every piece of work when it is emitted, on the module's threads where there is
 * a module. Scratch is one block a queue that grows and is kept: calls are synchronous, so nothing
 * uses it between two calls. */
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
    void *scratch;
    size_t scratch_bytes;
};

enum { SCRATCH_ALIGNMENT = 256 };

static cudnnStatus_t cpu_begin(struct wd_queue *queue)
{
    (void)queue;
    return CUDNN_STATUS_SUCCESS;
}

static void cpu_end(struct wd_queue *queue)
{
    (void)queue;
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
    if (bytes > own->scratch_bytes) {
        void *bigger =
            bytes > SIZE_MAX - SCRATCH_ALIGNMENT ? NULL : wd_alloc(bytes + SCRATCH_ALIGNMENT);
        WD_REQUIRE(bigger != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no host memory for %zu bytes of scratch", bytes);
        wd_free(own->scratch);
        own->scratch = bigger;
        own->scratch_bytes = bytes;
    }
    *data = (void *)(((uintptr_t)own->scratch + SCRATCH_ALIGNMENT - 1) &
                     ~(uintptr_t)(SCRATCH_ALIGNMENT - 1));
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
    wd_free(own->scratch);
    wd_free(own);
}
