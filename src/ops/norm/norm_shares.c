/* SPDX-License-Identifier: Apache-2.0
 *
 * Group and instance norm on the GPU in training, channels first, of shares that the registers of a few threads hold:
 * small images. norm_shares_args.h says who has what; what lies off the boundaries goes the way of norm_kept. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_groups.h"
#include "ops/norm/norm_shares_args.h"

#define WD_KERNELS_MODULE norm_shares
#define WD_KERNELS_ROWS "ops/norm/norm_shares_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    WHOLE_LEAST =
        512, /* elements of a share of whole units: of less, lanes have one unit or none */
    WHOLE_THREADS = 128, /* of a block of several such shares */
    PLANE_LEAST =
        33, /* elements of planes that lie beside each other: of less, lanes have nothing to do */
};

/* Threads of a share, or of a warp, and shares that they have; blocks of these. */
struct cut {
    struct norm_groups_shape shape;
    int64_t shares;
    int64_t length;
    int64_t threads; /* of a block */
    int64_t groups;  /* shares of it */
    int64_t lanes;   /* of a share of whole units */
    bool beside;
};

static bool cut_beside(struct cut *c)
{
    const struct norm_groups_shape *s = &c->shape;
    int64_t columns = NORM_SHARES_UNITS * NORM_ROWS_UNIT / s->size;
    int64_t shares = WARP * columns / NORM_SHARES_PLANE; /* of a warp */
    c->beside = s->each == 1 && s->plane >= PLANE_LEAST && s->plane <= NORM_SHARES_PLANE &&
                c->shares % shares == 0;
    c->lanes = 1;
    c->groups = NORM_SHARES_WARPS * shares;
    c->threads = NORM_SHARES_WARPS * WARP;
    return c->beside;
}

static bool cut_whole(struct cut *c)
{
    const struct norm_groups_shape *s = &c->shape;
    int64_t run = NORM_ROWS_UNIT / s->size;
    if (s->size != 2 || s->plane < run || c->length % run != 0) return false;
    if (c->length < WHOLE_LEAST || c->length > NORM_SHARES_LONGEST) return false;
    c->lanes = wd_ceil_div(wd_ceil_div(c->length, NORM_SHARES_COLUMNS), WARP) * WARP;
    c->groups = wd_most(1, WHOLE_THREADS / c->lanes);
    c->threads = c->lanes * c->groups;
    return true;
}

static bool see(struct cut *c, const struct wd_problem *problem)
{
    const struct norm_groups_shape *s = &c->shape;
    memset(c, 0, sizeof *c);
    (void)wd_norm_groups_see(&c->shape, problem);
    c->shares = s->samples * s->groups;
    c->length = s->each * s->plane;
    if (s->columns) return false;
    return cut_beside(c) || cut_whole(c);
}

static bool is_fp32(const struct wd_problem *problem, int slot)
{
    const struct wd_tensor *t = wd_norm_tensor(problem, slot);
    return t && t->dtype == CUDNN_DATA_FLOAT;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    struct cut c;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(is_fp32(problem, p.scale) && is_fp32(problem, p.bias), reason, NOT_SUPPORTED_DATA_TYPE,
            "scale or bias is missing or not fp32");
    WD_NEED(see(&c, problem) && wd_norm_kept_takes(problem), reason, NOT_SUPPORTED_SHAPE,
            "channels are last, or %lld elements of a sample and group are many, or no whole units",
            (long long)c.length);
    return true;
}

static struct norm_shares_args args_of(const struct wd_call *call, const struct cut *c,
                                       const struct wd_device *device)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    struct norm_shares_args a;
    memset(&a, 0, sizeof a);
    a.of.x = wd_norm_data(call, p.x);
    a.of.y = wd_norm_data(call, p.y);
    a.of.scale = wd_norm_param(call, p.scale);
    a.of.bias = wd_norm_param(call, p.bias);
    a.of.mean = wd_norm_data(call, p.mean);
    a.of.inv_std = wd_norm_data(call, p.inv_std);
    a.of.epsilon = (float)wd_call_view(call, NORM_TRAIN_EPSILON).value;
    a.of.inverse = 1.0F / (float)c->length;
    a.of.rows = c->shares;
    a.of.length = (uint32_t)c->length;
    a.of.lanes = (uint32_t)c->lanes;
    a.of.groups = (uint32_t)c->groups;
    a.of.centered = 1;
    a.of.streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > device->l2_bytes;
    a.by_plane = wd_fastdiv_of((uint32_t)c->shape.plane);
    a.by_groups = wd_fastdiv_of((uint32_t)c->shape.groups);
    a.by_lanes = wd_fastdiv_of((uint32_t)c->lanes);
    a.each = (uint32_t)c->shape.each;
    return a;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    int type = wd_norm_type(wd_call_tensor(call, p.x)->dtype);
    struct cut c;
    struct norm_shares_args a;
    if (!see(&c, &call->problem)) return CUDNN_STATUS_INTERNAL_ERROR;
    a = args_of(call, &c, queue->device);
    if (!wd_norm_aligned(a.of.x) || !wd_norm_aligned(a.of.y)) {
        struct wd_norm_kept_work own;
        return wd_norm_kept_emit(call, queue, wd_call_prepared(call, wd_norm_kept_prepare, &own));
    }
    type += c.beside ? KERNEL_norm_shares_beside_f32 : KERNEL_norm_shares_whole_f16 - NORM_ROWS_F16;
    return wd_emit_kernel(queue, &kernel_rows[type], wd_ceil_div(c.shares, c.groups),
                          (uint32_t)c.threads, 0, &a);
}

const struct wd_engine wd_engine_norm_training_shares = {
    .name = "norm_training_shares",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = wd_norm_kept_workspace,
    .prepare = wd_norm_kept_prepare, /* for what is off the boundaries */
    .prepared_bytes = sizeof(struct wd_norm_kept_work),
    .emit = emit,
};
