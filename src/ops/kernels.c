/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of kernels that have a row, and which copies need none. No state. */
#include "ops/kernels.h"

#include <assert.h>

#include "base/status.h"

static struct wd_launch launch_of(struct wd_kernel_row *row, int64_t blocks, uint32_t threads,
                                  uint32_t shared, const void *args)
{
    struct wd_launch launch = {
        .kernel = &row->kernel,
        .grid = {(uint32_t)blocks, 1, 1},
        .block = {threads, 1, 1},
        .cluster = 1,
        .shared = shared,
        .overlaps = true,
        .param_count = 1,
        .param = {args},
        .param_size = {row->args_size},
    };
    assert(threads > 0 && threads <= row->threads && blocks <= INT32_MAX);
    return launch;
}

cudnnStatus_t wd_emit_cluster_kernel(struct wd_queue *queue, struct wd_kernel_row *row,
                                     int64_t blocks, uint32_t threads, uint32_t cluster,
                                     uint32_t shared, const void *args)
{
    struct wd_launch launch = launch_of(row, blocks, threads, shared, args);
    launch.cluster = cluster;
    if (blocks <= 0) return CUDNN_STATUS_SUCCESS;
    return queue->ops->kernel(queue, &launch);
}

cudnnStatus_t wd_emit_meeting_kernel(struct wd_queue *queue, struct wd_kernel_row *row,
                                     int64_t blocks, uint32_t threads, uint32_t shared,
                                     const void *args)
{
    struct wd_launch launch = launch_of(row, blocks, threads, shared, args);
    launch.meets = true;
    if (blocks <= 0) return CUDNN_STATUS_SUCCESS;
    return queue->ops->kernel(queue, &launch);
}

cudnnStatus_t wd_emit_kernel(struct wd_queue *queue, struct wd_kernel_row *row, int64_t blocks,
                             uint32_t threads, uint32_t shared, const void *args)
{
    return wd_emit_cluster_kernel(queue, row, blocks, threads, 1, shared, args);
}

enum { COPY_LOAD = 16 };

bool wd_copy_suits(const void *to, const void *from, int64_t bytes)
{
    return bytes % WD_COPY_UNIT == 0 && ((uintptr_t)to | (uintptr_t)from) % COPY_LOAD == 0;
}
