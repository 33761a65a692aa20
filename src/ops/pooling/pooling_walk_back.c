/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of averages over overlapping windows of 3x3 (and any depth) that begin at every element, of
 * pixels of whole runs of channels, in fp32, fp16 and bf16: a thread walks down the rows. */
#include "ops/pooling/pooling_walk.h"

#define WD_KERNELS_MODULE pooling_walk_back
#define WD_KERNELS_ROWS "ops/pooling/pooling_walk_back_kernels.def"
#include "ops/kernels_host.inc"

enum { COLUMNS = 2 };

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    WD_NEED(!s->max, reason, NOT_SUPPORTED, "maxima");
    WD_NEED(s->window[1] == 3 && s->window[2] == 3 && s->stride[0] == 1 && s->stride[1] == 1 &&
                s->stride[2] == 1,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 at every element");
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE, "not at any alignment");
    return wd_pool_walk_takes(s, reason);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    struct pool_walk_args a;
    if ((uintptr_t)m->dy % 16 != 0 || (uintptr_t)m->out % 16 != 0) {
        return wd_pool_backward_tile.emit(queue, s, m);
    }
    a = wd_pool_walk_args_of(queue->device, s, COLUMNS, m);
    return wd_pool_walk_launch(
        queue, &kernel_rows[KERNEL_spread_walk_f32_3_flat + s->type * 2 + !wd_pool_walk_is_flat(s)],
        &a);
}

const struct wd_pool_way wd_pool_backward_walk = {takes, NULL, emit_shape};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    return wd_pool_way_match(&wd_pool_backward_walk, problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_pool_way_emit(&wd_pool_backward_walk, call, queue);
}

const struct wd_engine wd_engine_pool_backward_walk = {
    .name = "pool_backward_walk",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
