/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance norm on the GPU of small images with channels last, in training: where there are fewer blocks
 * than processors, each with its channels in registers. Tensors off the boundaries go the way of
 * norm_kept. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_groups.h"
#include "ops/norm/norm_spot_args.h"

#define WD_KERNELS_MODULE norm_spot
#define WD_KERNELS_ROWS "ops/norm/norm_spot_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    BYTES = 16,     /* of a row that a block has */
    MOST = 1 << 20, /* bytes of x: norm_kept has clusters for more, and for more rows */
};

struct cut {
    struct norm_groups_shape shape;
    int64_t tiles; /* of a sample */
    int64_t threads;
    int64_t blocks;
};

/* False where x is large, a block's threads have no room for its rows, or blocks are more than there
 * are processors. */
static bool see(struct cut *c, const struct wd_problem *problem)
{
    const struct norm_groups_shape *s = &c->shape;
    int64_t run;
    (void)wd_norm_groups_see(&c->shape, problem);
    run = BYTES / s->size;
    if (!s->columns || s->each > 1 || s->plane < 2 || s->channels % run != 0) return false;
    if (s->plane > (int64_t)NORM_SPOT_THREADS * NORM_SPOT_SLOTS) return false;
    if (s->samples * s->channels * s->plane * s->size > MOST) return false;
    c->tiles = s->channels / run;
    c->threads = wd_most(WARP, wd_power_up(wd_ceil_div(s->plane, NORM_SPOT_SLOTS)));
    c->blocks = s->samples * c->tiles;
    return c->blocks <= problem->device->multiprocessors;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct cut c;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(see(&c, problem) && wd_norm_kept_takes(problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld rows of %lld channels of a sample are many, no whole runs, or of larger groups",
            (long long)c.shape.plane, (long long)c.shape.channels);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    struct cut c;
    const struct norm_groups_shape *s = &c.shape;
    struct norm_spot_args a;
    if (!see(&c, &call->problem)) return CUDNN_STATUS_INTERNAL_ERROR;
    memset(&a, 0, sizeof a);
    a.x = wd_norm_data(call, p.x);
    a.y = wd_norm_data(call, p.y);
    if (!wd_norm_aligned(a.x) || !wd_norm_aligned(a.y)) {
        struct wd_norm_kept_work own;
        return wd_norm_kept_emit(call, queue, wd_call_prepared(call, wd_norm_kept_prepare, &own));
    }
    a.scale = wd_norm_param(call, p.scale);
    a.bias = wd_norm_param(call, p.bias);
    a.mean = wd_norm_data(call, p.mean);
    a.inv_std = wd_norm_data(call, p.inv_std);
    a.epsilon = (float)wd_call_view(call, NORM_TRAIN_EPSILON).value;
    a.inverse = (float)(1.0 / (double)s->plane);
    a.channels = (uint32_t)s->channels;
    a.plane = (uint32_t)s->plane;
    a.tiles = (uint32_t)c.tiles;
    return wd_emit_kernel(
        queue, &kernel_rows[KERNEL_norm_spot_f32 + wd_norm_type(wd_call_tensor(call, 0)->dtype)],
        c.blocks, (uint32_t)c.threads, 0, &a);
}

const struct wd_engine wd_engine_norm_training_spot = {
    .name = "norm_training_spot",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = wd_norm_kept_workspace,
    .prepare = wd_norm_kept_prepare, /* for what is off the boundaries */
    .prepared_bytes = sizeof(struct wd_norm_kept_work),
    .emit = emit,
};
