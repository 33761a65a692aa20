/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of overlapping windows of 3x3 over pixels of whole runs of channels, in fp32, fp16 and bf16: a
 * thread walks down the rows. Averages (of any depth) whose windows begin at every element; maxima in images
 * of two dimensions, at a stride of 2. */
#include "ops/pooling/pooling_walk.h"

#define WD_KERNELS_MODULE pooling_walk_back
#define WD_KERNELS_ROWS "ops/pooling/pooling_walk_back_kernels.def"
#include "ops/kernels_host.inc"

enum {
    COLUMNS = 2, /* of dx of a thread; of maxima half as many */
    PAIRS = 1,
};

static bool takes_maxima(const struct wd_pool_shape *s, struct wd_reason *reason)
{
    WD_NEED(wd_pool_walk_is_flat(s) && s->window[1] == 3 && s->window[2] == 3 &&
                s->stride[1] == 2 && s->stride[2] == 2,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 at a stride of 2 in a plane");
    WD_NEED(s->pad[1] >= 0 && s->pad[1] < 3 && s->pad[2] >= 0 && s->pad[2] < 3, reason,
            NOT_SUPPORTED_SHAPE, "the padding is negative, or as large as a window");
    return wd_pool_walk_takes(s, reason);
}

static bool takes(const struct wd_device *device, const struct wd_pool_shape *s,
                  struct wd_reason *reason)
{
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE, "not at any alignment");
    if (s->max) return takes_maxima(s, reason);
    WD_NEED(s->window[1] == 3 && s->window[2] == 3 && s->stride[0] == 1 && s->stride[1] == 1 &&
                s->stride[2] == 1,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 at every element");
    return wd_pool_walk_takes(s, reason);
}

static cudnnStatus_t emit_shape(struct wd_queue *queue, const struct wd_pool_shape *s,
                                const struct wd_pool_memory *m)
{
    const uintptr_t image = (uintptr_t)m->out | (s->max ? (uintptr_t)m->x : 0);
    struct pool_walk_args a;
    int kernel = KERNEL_grad_walk_f32 + s->type;
    if ((image | (uintptr_t)m->dy) % 16 != 0) return wd_pool_backward_tile.emit(queue, s, m);
    a = wd_pool_walk_args_of(queue->device, s, s->max ? PAIRS : COLUMNS, m);
    if (!s->max) kernel = KERNEL_spread_walk_f32_3_flat + s->type * 2 + !wd_pool_walk_is_flat(s);
    return wd_pool_walk_launch(queue, &kernel_rows[kernel], &a);
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
