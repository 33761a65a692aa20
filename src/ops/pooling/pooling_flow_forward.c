/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling forward on the GPU of windows of 3x3 at the same stride of 1 or 2 along rows and columns, of planes
 * and of pixels of any number of channels at any alignment, in fp32, fp16 and bf16: rows flow through shared
 * memory. */
#include "ops/pooling/pooling_flow.h"

#define WD_KERNELS_MODULE pooling_flow_forward
#define WD_KERNELS_ROWS "ops/pooling/pooling_flow_forward_kernels.def"
#include "ops/kernels_host.inc"

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    return wd_pool_flow_takes(device, s, WD_POOL_FLOW_FORWARD, reason);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    if (m->alpha == 0.0 || m->beta != 0.0) return wd_pool_forward_tile.emit(queue, s, m);
    return wd_pool_flow_emit(queue, &kernel_rows[KERNEL_pool_flow_f32 + s->type], s,
                             WD_POOL_FLOW_FORWARD, m);
}

static const struct wd_pool_way way = {takes, NULL, emit_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&way, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&way, call, queue);
}

const struct wd_engine wd_engine_pool_forward_flow = {
    .name = "pool_forward_flow",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
