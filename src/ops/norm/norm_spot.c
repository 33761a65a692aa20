/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm on the GPU of small images with channels last, whose groups' columns a
 * block has in registers. Tensors off the boundaries go the way of norm_kept. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_groups.h"
#include "ops/norm/norm_spot_args.h"

#define WD_KERNELS_MODULE norm_spot
#define WD_KERNELS_ROWS "ops/norm/norm_spot_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    BYTES = 16,      /* of a run */
    SLOTS = 4,       /* of a thread, where it may have more of them */
    BLOCKS_MOST = 2, /* of a processor: others are faster where it has more to do */
};

struct cut {
    struct norm_groups_shape shape;
    int64_t tile;
    int64_t across;
    int64_t lanes;
    int64_t threads;
    int64_t blocks;
};

/* False where a block's threads have no room for a tile. */
static bool see(struct cut *c, const struct wd_problem *problem)
{
    const struct norm_groups_shape *s = &c->shape;
    int64_t run;
    (void)wd_norm_groups_see(&c->shape, problem);
    run = BYTES / s->size;
    if (!s->columns || s->plane < 2 || s->channels % run != 0) return false;
    c->tile = wd_lcm(s->each, run);
    if (c->tile > NORM_SPOT_COLUMNS || s->channels % c->tile != 0) return false;
    c->across = c->tile / run;
    c->lanes = wd_power_up(c->across);
    c->threads = wd_clamp(wd_power_up(wd_ceil_div(s->plane, SLOTS) * c->lanes), WARP,
                          (int64_t)NORM_SPOT_THREADS);
    c->blocks = s->samples * (s->channels / c->tile);
    return c->lanes <= WARP && s->plane <= c->threads / c->lanes * NORM_SPOT_SLOTS &&
           c->blocks <= (int64_t)BLOCKS_MOST * problem->device->multiprocessors;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct cut c;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(!wd_norm_groups_given(problem), reason, NOT_SUPPORTED, "statistics are given");
    WD_NEED(see(&c, problem) && wd_norm_kept_takes(problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld rows of %lld channels of a sample are many, or no whole runs",
            (long long)c.shape.plane, (long long)c.shape.channels);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    bool training = call->problem.node->op == WD_OP_NORM_TRAINING;
    struct cut c;
    const struct norm_groups_shape *s = &c.shape;
    struct norm_spot_args a;
    if (!see(&c, &call->problem)) return CUDNN_STATUS_INTERNAL_ERROR;
    memset(&a, 0, sizeof a);
    a.x = wd_norm_data(call, p.x);
    a.y = wd_norm_data(call, p.y);
    if (!wd_norm_aligned(a.x) || !wd_norm_aligned(a.y)) return wd_norm_kept_emit(call, queue);
    a.scale = wd_norm_param(call, p.scale);
    a.bias = wd_norm_param(call, p.bias);
    if (training) {
        a.mean = wd_norm_data(call, p.mean);
        a.inv_std = wd_norm_data(call, p.inv_std);
    }
    a.epsilon =
        (float)wd_call_view(call, training ? (int)NORM_TRAIN_EPSILON : (int)NORM_INFER_EPSILON)
            .value;
    a.inverse = (float)(1.0 / (double)(s->each * s->plane));
    a.by_each = wd_fastdiv_of((uint32_t)s->each);
    a.channels = (uint32_t)s->channels;
    a.plane = (uint32_t)s->plane;
    a.each = (uint32_t)s->each;
    a.tile = (uint32_t)c.tile;
    a.tiles = (uint32_t)(s->channels / c.tile);
    a.across = (uint32_t)c.across;
    a.lanes = (uint32_t)c.lanes;
    return wd_emit_kernel(
        queue, &kernel_rows[KERNEL_norm_spot_f32 + wd_norm_type(wd_call_tensor(call, 0)->dtype)],
        c.blocks, (uint32_t)c.threads, 0, &a);
}

const struct wd_engine wd_engine_norm_training_spot = {
    .name = "norm_training_spot",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .workspace = wd_norm_kept_workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_norm_inference_spot = {
    .name = "norm_inference_spot",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .workspace = wd_norm_kept_workspace,
    .emit = emit,
};
