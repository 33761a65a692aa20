/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of windows of 3x3 on the GPU at any alignment, in fp32, fp16 and bf16, by rows that flow through
 * shared memory: averages at a stride of 1 and 2 of planes and of pixels, maxima at one of 2 of pixels that
 * are not whole runs of channels. */
#include "ops/pooling/pooling_flow.h"

#define WD_KERNELS_MODULE pooling_flow_back
#define WD_KERNELS_ROWS "ops/pooling/pooling_flow_back_kernels.def"
#include "ops/kernels_host.inc"

static enum wd_pool_flow_work work_of(const struct wd_pool_shape *s)
{
    if (s->max) return WD_POOL_FLOW_MAXIMA;
    return s->stride[1] == 1 ? WD_POOL_FLOW_SPREAD : WD_POOL_FLOW_PAIRS;
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    return wd_pool_flow_takes(device, s, work_of(s), reason);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    const enum wd_pool_flow_work work = work_of(s);
    const int kernel = (s->max ? KERNEL_flow_maxima_f32 : KERNEL_flow_averages_f32) + s->type;
    if (m->alpha == 0.0 || m->beta != 0.0) return wd_pool_backward_tile.emit(queue, s, m);
    return wd_pool_flow_emit(queue, &kernel_rows[kernel], s, work, m);
}

const struct wd_pool_way wd_pool_backward_flow = {takes, NULL, emit_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_flow, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_backward_flow, call, queue);
}

const struct wd_engine wd_engine_pool_backward_flow = {
    .name = "pool_backward_flow",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
