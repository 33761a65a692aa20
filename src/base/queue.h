/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue: where engines emit their work, whatever becomes of it - run on a stream, added to a
 * CUDA graph, patched into one, run by the host, or recorded for a test. An engine emits kernels,
 * fills and host ranges in the order of their dependence, and never launches anything itself.
 *
 * A queue is used by one thread at a time, between wd_queue_begin and wd_queue_end, which the plan
 * calls around an execution (a GPU queue pushes its context there). */
#ifndef WD_BASE_QUEUE_H
#define WD_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cudnn.h"

enum wd_device_kind { WD_CPU = 0, WD_GPU = 1 };

/* What an engine may ask of the device that it is planned for; plain facts, no handle. */
struct wd_device {
    enum wd_device_kind kind;
    int ordinal;                  /* CUDA device ordinal, -1 for the CPU */
    int capability;               /* 10 * major + minor; 0 for the CPU */
    int multiprocessors;          /* cores, for the CPU */
    int64_t shared_per_block;     /* opt-in shared memory of one block, bytes */
    int64_t shared_per_processor; /* bytes */
    int64_t l2_bytes;
    int64_t memory_bytes;
    bool cooperative; /* cluster launch exists */
    bool grids_meet;  /* grids may be launched of which all blocks are there at once */
};

/* Compute capabilities of the devices that one process uses; what is loaded is kept for each. */
enum { WD_MODULE_PLACES = 8 };

/* One CUDA translation unit, compiled to an image for each architecture (gpu/image.h), embedded by the
 * assembler. Loaded when the first of its kernels is launched. No bytes mean a build without CUDA. */
struct wd_module {
    const char *name;
    const unsigned char *image;
    const unsigned char *image_end;
    void *library[WD_MODULE_PLACES]; /* CUlibrary, published once by gpu/module.c */
};

struct wd_kernel {
    struct wd_module *module;
    const char *symbol;
    void *function[WD_MODULE_PLACES]; /* CUkernel, published once by gpu/module.c */
    uint64_t shared_allowed; /* bit per device: dynamic shared memory beyond 48 KiB is allowed */
    uint64_t large_clusters_allowed; /* bit per device: more blocks than every device takes */
};

enum { WD_MAX_PARAMS = 2, WD_COUNTERS_BYTES = 16 << 10 };

struct wd_launch {
    struct wd_kernel *kernel;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster; /* blocks of a cluster along x; 0 or 1 for none */
    uint32_t shared;  /* dynamic shared memory, bytes */
    /* It waits by itself for what its stream did before (gpu/device/depend.cuh), so that it may
     * begin while the kernel before it ends. */
    bool overlaps;
    bool meets; /* all blocks are there at once, so that they may wait for one another */
    int param_count;
    const void *param[WD_MAX_PARAMS]; /* plain structs, copied at emit */
    size_t param_size[WD_MAX_PARAMS];
};

/* A range of independent host work: items begin .. end-1. */
typedef void (*wd_range_fn)(const void *args, int64_t begin, int64_t end);

/* Copies by the driver are as fast as a kernel of ours where they are a multiple of so many bytes, between boundaries of 16.
 * Others take 1.6 times the floor in a captured graph (H200: 140x131x17x64 of fp32 59.7 us, by a kernel 41.0). */
enum { WD_COPY_UNIT = 4096 };

struct wd_queue;

struct wd_queue_ops {
    cudnnStatus_t (*begin)(struct wd_queue *queue);
    void (*end)(struct wd_queue *queue);
    /* GPU queues only. */
    cudnnStatus_t (*kernel)(struct wd_queue *queue, const struct wd_launch *launch);
    /* CPU queues only: runs fn over [0, items) in pieces of at least `grain` items. */
    cudnnStatus_t (*range)(struct wd_queue *queue, wd_range_fn fn, const void *args, int64_t items,
                           int64_t grain);
    /* Sets bytes of the handle's device. */
    cudnnStatus_t (*fill)(struct wd_queue *queue, void *data, int byte, size_t bytes);
    /* Copies within the handle's device; the areas do not overlap. */
    cudnnStatus_t (*copy)(struct wd_queue *queue, void *to, const void *from, size_t bytes);
    /* Scratch for calls that bring no workspace, alive until the execution's work is done. */
    cudnnStatus_t (*scratch)(struct wd_queue *queue, size_t bytes, void **data);
    /* GPU queues only: WD_COUNTERS_BYTES for the meetings of blocks and the numbers that they draw
     * (gpu/device/grid.cuh), which no work that may run at the same time has. The lower 31 bits of every
     * word are 0, and left so. Behind them lies the board (gpu/device/board.cuh). */
    cudnnStatus_t (*counters)(struct wd_queue *queue, void **data);
};

struct wd_queue {
    const struct wd_queue_ops *ops;
    const struct wd_device *device;
    uint64_t emitted; /* kernels, ranges, fills and copies so far */
};

#endif
