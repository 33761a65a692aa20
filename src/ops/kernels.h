/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of CUDA engines. An engine's <op>_<how>_kernels.def has one row a kernel instance:
 *
 *     WD_KERNEL(symbol, struct args, threads, registers, device code)
 *
 * and the row makes the device entry point (ops/kernels_device.inc, in the engine's .cu), the host's
 * table (ops/kernels_host.inc, in its .c), the fake driver's check of launches, and the check of the
 * compiler's report against the budget of registers (tests/tools/kernels_test.py: no spills either). Every
 * kernel takes one plain struct, and waits for its predecessor before it touches memory
 * (gpu/device/depend.cuh). `threads` is the most a block has. */
#ifndef WD_OPS_KERNELS_H
#define WD_OPS_KERNELS_H

#include "base/queue.h"

struct wd_kernel_row {
    struct wd_kernel kernel;
    size_t args_size;
    uint32_t threads;
    uint32_t registers;
};

/* The rows of one module. Their kernels are published when they are first launched. */
struct wd_kernel_table {
    struct wd_kernel_row *rows;
    int count;
};

/* Blocks of `threads` (at most the row's), `shared` bytes of dynamic shared memory, no clusters. */
cudnnStatus_t wd_emit_kernel(struct wd_queue *queue, struct wd_kernel_row *row, int64_t blocks,
                             uint32_t threads, uint32_t shared, const void *args);

/* Of the common shape: one dimension of blocks in clusters of `cluster`. */
cudnnStatus_t wd_emit_cluster_kernel(struct wd_queue *queue, struct wd_kernel_row *row,
                                     int64_t blocks, uint32_t threads, uint32_t cluster,
                                     uint32_t shared, const void *args);

/* Likewise; all blocks are there at once and meet (gpu/device/grid.cuh): at most as many as the
 * device has room for, which the caller knows. */
cudnnStatus_t wd_emit_meeting_kernel(struct wd_queue *queue, struct wd_kernel_row *row,
                                     int64_t blocks, uint32_t threads, uint32_t shared,
                                     const void *args);

/* Whether the driver's copy of so many bytes is as fast as a kernel (WD_COPY_UNIT). */
bool wd_copy_suits(const void *to, const void *from, int64_t bytes);

#endif
