/* SPDX-License-Identifier: Apache-2.0
 *
 * Group and instance norm on the GPU, forward, and instance norm's gradients, channels first, of shares that are large and
 * many: each is held by a block alone or a cluster. norm_clusters_args.h says who has what; what lies off the boundaries goes the way of norm_groups. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_clusters.h"
#include "ops/norm/norm_groups.h"

#define WD_KERNELS_MODULE norm_clusters
#define WD_KERNELS_ROWS "ops/norm/norm_clusters_kernels.def"
#include "ops/kernels_host.inc"

/* Bytes of a share that other engines are as fast with. Measured on an H200, us, by blocks and before: instance training and backward fp16
 * 16x64x256x256 (128 KB) 77.5 and 82.2, 106.2 and 155.8; group training fp32 64x256x56x56 (98 KB) 130 and 113. */
enum { LEAST = 112 << 10 };

/* A cut, and of what is prepared the arguments but for pointers and scalars. */
struct cut {
    struct norm_groups_shape shape;
    struct wd_share_cut of;
    struct norm_clusters_args args;
    bool gathers; /* dscale and dbias are added up by clusters */
};

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

static bool is_inference(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_INFERENCE;
}

static bool is_single(const struct wd_tensor *t)
{
    return t && wd_norm_type(t->dtype) == NORM_ROWS_F32;
}

/* Backward, whether a cluster has all shares of a channel, and adds up its dscale and dbias: where each has a channel, and none more shares than
 * otherwise. Teams gain nothing (H200, us: instance norm's gradient fp32 2x32x128x128x128 541 and 547). */
static bool gathers(const struct wd_problem *problem, const struct cut *c)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    int64_t channels = c->shape.groups, clusters = c->of.clusters;
    if (!is_backward(problem) || c->of.meets || clusters > channels) return false;
    return is_single(wd_norm_tensor(problem, p.dscale)) &&
           is_single(wd_norm_tensor(problem, p.dbias)) &&
           wd_ceil_div(channels, clusters) * c->shape.samples <=
               wd_ceil_div(c->of.shares, clusters);
}

/* Of a problem that matches but for its shape; whether shares are cut. */
static bool see(struct cut *c, const struct wd_problem *problem)
{
    const struct norm_groups_shape *s = &c->shape;
    memset(c, 0, sizeof *c);
    (void)wd_norm_groups_see(&c->shape, problem);
    c->of.shares = s->samples * s->groups;
    c->of.units = s->each * s->plane * s->size / NORM_ROWS_UNIT;
    c->of.two = is_backward(problem);
    c->of.least = LEAST;
    c->of.may_halve = true;
    c->of.may_meet = true;
    if (!wd_share_cut(&c->of, problem->device)) return false;
    c->gathers = gathers(problem, c);
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct norm_groups_shape *s;
    struct cut c;
    bool fits;
    if (!wd_norm_groups_match(problem, reason)) return false;
    fits = see(&c, problem);
    s = &c.shape;
    WD_NEED(!is_inference(problem) || !wd_norm_groups_given(problem), reason, NOT_SUPPORTED,
            "statistics are given");
    WD_NEED(!s->columns, reason, NOT_SUPPORTED_LAYOUT, "channels are last");
    WD_NEED(s->plane * s->size % NORM_ROWS_UNIT == 0, reason, NOT_SUPPORTED_SHAPE,
            "planes of %lld elements, no whole 16 bytes", (long long)s->plane);
    WD_NEED(s->each <= (is_backward(problem) ? 1 : NORM_CLUSTERS_EACH), reason, NOT_SUPPORTED_SHAPE,
            "%lld channels of a group", (long long)s->each);
    WD_NEED(fits, reason, NOT_SUPPORTED_SHAPE,
            "%lld groups of samples of %lld times 16 bytes are too few, too small or too large",
            (long long)c.of.shares, (long long)c.of.units);
    return true;
}

static int64_t found_bytes(const struct wd_problem *problem, const struct cut *c)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    if (c->gathers) return 0;
    if (!wd_norm_tensor(problem, p.dscale) && !wd_norm_tensor(problem, p.dbias)) return 0;
    return c->of.shares * (int64_t)sizeof(struct norm_kept_sums);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct cut c;
    (void)see(&c, problem);
    return wd_most(found_bytes(problem, &c), wd_norm_groups_any(problem)->workspace(problem));
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct cut *c = prepared;
    struct norm_clusters_args *a = &c->args;
    (void)see(c, problem);
    a->cut = wd_share_args_of(&c->of);
    a->inverse = 1.0 / (double)(c->shape.each * c->shape.plane);
    a->by_plane = wd_fastdiv_of((uint32_t)(c->of.units / c->shape.each));
    a->by_row = wd_fastdiv_of((uint32_t)c->of.units);
    a->stride = (uint32_t)c->of.units;
    a->each = (uint32_t)c->shape.each;
    a->groups = (uint32_t)c->shape.groups;
    a->together = c->gathers ? (uint32_t)c->shape.samples : 1;
}

static struct norm_clusters_args args_of(const struct wd_call *call, const struct cut *c)
{
    const struct wd_problem *problem = &call->problem;
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    struct norm_clusters_args a = c->args;
    a.x = wd_norm_data(call, p.x);
    a.dy = wd_norm_data(call, p.dy);
    a.y = wd_norm_data(call, p.y);
    a.scale = wd_norm_param(call, p.scale);
    a.bias = wd_norm_param(call, p.bias);
    if (is_backward(problem)) {
        a.given_mean = wd_norm_data(call, p.mean);
        a.given_inv_std = wd_norm_data(call, p.inv_std);
        if (found_bytes(problem, c) > 0) a.found = call->workspace;
        if (c->gathers) {
            a.dscale = wd_norm_param(call, p.dscale).data;
            a.dbias = wd_norm_param(call, p.dbias).data;
            a.alpha_param = 1.0;
        }
    } else if (is_inference(problem)) {
        a.epsilon = wd_call_view(call, NORM_INFER_EPSILON).value;
    } else {
        a.mean = wd_norm_data(call, p.mean);
        a.inv_std = wd_norm_data(call, p.inv_std);
        a.epsilon = wd_call_view(call, NORM_TRAIN_EPSILON).value;
    }
    return a;
}

cudnnStatus_t norm_clusters_launch(struct wd_queue *queue, const struct wd_share_cut *c,
                                   const struct norm_clusters_args *a, int type)
{
    int row =
        type + (c->two ? KERNEL_norm_clusters_backward_f32 : KERNEL_norm_clusters_forward_f32);
    if (c->halves) return norm_halves_launch(queue, c, a, type);
    if (c->meets) {
        struct norm_clusters_args own = *a;
        void *counters = NULL;
        WD_TRY(queue->ops->counters(queue, &counters));
        own.board = (uint32_t *)counters + WD_COUNTERS_BYTES / sizeof(uint32_t);
        return wd_emit_meeting_kernel(queue, &kernel_rows[row], c->clusters * c->cluster,
                                      WD_SHARE_THREADS, (uint32_t)c->shared, &own);
    }
    return wd_emit_cluster_kernel(queue, &kernel_rows[row], c->clusters * c->cluster,
                                  WD_SHARE_THREADS, a->cut.cluster, (uint32_t)c->shared, a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    int type = wd_norm_type(wd_call_tensor(call, p.x)->dtype);
    struct cut own;
    const struct cut *c = wd_call_prepared(call, prepare, &own);
    struct norm_clusters_args a = args_of(call, c);
    if (!wd_norm_aligned(a.x) || !wd_norm_aligned(a.dy) || !wd_norm_aligned(a.y))
        return wd_norm_groups_any(&call->problem)->emit(call, queue);
    WD_TRY(norm_clusters_launch(queue, &c->of, &a, type));
    if (!a.found) return CUDNN_STATUS_SUCCESS;
    return wd_norm_kept_sum_params(queue, &c->shape, a.found, wd_norm_param(call, p.dscale),
                                   wd_norm_param(call, p.dbias));
}

const struct wd_engine wd_engine_norm_training_clusters = {
    .name = "norm_training_clusters",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct cut),
    .emit = emit,
};

const struct wd_engine wd_engine_norm_backward_clusters = {
    .name = "norm_backward_clusters",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct cut),
    .emit = emit,
};

const struct wd_engine wd_engine_norm_inference_clusters = {
    .name = "norm_inference_clusters",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct cut),
    .emit = emit,
};
