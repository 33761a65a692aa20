/* SPDX-License-Identifier: Apache-2.0
 *
 * Group and instance norm on the GPU, forward, and instance norm's gradients, channels first, of shares that are large and
 * many: each is held by a cluster. norm_clusters_args.h says who has what; what lies off the boundaries goes the way of norm_groups. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_clusters_args.h"
#include "ops/norm/norm_groups.h"

#define WD_KERNELS_MODULE norm_clusters
#define WD_KERNELS_ROWS "ops/norm/norm_clusters_kernels.def"
#include "ops/kernels_host.inc"

enum {
    RUN = NORM_ROWS_UNIT,
    FIXED = 2048,            /* bytes of shared memory beside units, at most */
    SHARE_MOST = 512 << 10, /* bytes that other ways are as fast with */
    QUADS_MOST = 32,         /* of a thread: of more, most would be read twice */
    FULL = 5,                /* of 8 clusters that could be there on average are, at least */
    CLUSTERS = 8,
    PART_PROCESSORS = 16,   /* of a part of the chip, about, in which a cluster stays */
    LARGE_PROCESSORS = 120, /* of more, one of eight parts has 16 or more */
};

struct cut {
    struct norm_groups_shape shape;
    int64_t shares;
    int64_t units; /* of a share */
    int64_t cluster;
    int64_t part; /* units of a block */
    int64_t quads;
    int64_t dy_quads;
    int64_t shared;
};

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

static bool is_inference(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_INFERENCE;
}

/* Cuts a share over a cluster of blocks. Answers whether x stays. */
static bool share_out(struct cut *c, int64_t cluster, const struct wd_device *device)
{
    int64_t quad = NORM_CLUSTERS_THREADS * NORM_CLUSTERS_QUAD; /* units of a block */
    int64_t room = (device->shared_per_block - FIXED) / (quad * RUN);
    int64_t quads = wd_ceil_div(c->units, cluster * quad);
    c->cluster = cluster;
    c->part = quads * quad;
    c->quads = wd_clamp(quads, NORM_CLUSTERS_HELD, NORM_CLUSTERS_HELD + room);
    room -= c->quads - NORM_CLUSTERS_HELD;
    c->dy_quads = c->shape.arrays == 2 ? wd_least(c->quads, room) : 0;
    c->shared = (c->quads - NORM_CLUSTERS_HELD + c->dy_quads) * quad * RUN;
    return c->quads >= quads;
}

static void cut_share(struct cut *c, const struct wd_device *device)
{
    int64_t most = device->multiprocessors > LARGE_PROCESSORS ? NORM_CLUSTERS_BLOCKS
                                                              : NORM_CLUSTERS_BLOCKS / 2;
    int64_t cluster = NORM_CLUSTERS_BLOCKS / 4;
    while (!share_out(c, cluster, device) && cluster < most) cluster *= 2;
}

/* Measured on an H200: 7 of 16 blocks, 15 of 8, 30 of 4. */
static int64_t clusters_at_once(const struct cut *c, const struct wd_device *device)
{
    int64_t halves = wd_most(2, 2 * device->multiprocessors / PART_PROCESSORS - 1);
    return wd_most(1, halves * (PART_PROCESSORS / c->cluster) / 2);
}

static bool see(struct cut *c, const struct wd_problem *problem)
{
    const struct wd_device *device = problem->device;
    struct norm_groups_shape *s = &c->shape;
    int64_t run;
    int64_t at_once;
    memset(c, 0, sizeof *c);
    (void)wd_norm_groups_see(s, problem);
    run = RUN / s->size;
    if (s->columns || s->plane % run != 0 || wd_norm_cluster_max(device) < 2) return false;
    if (s->each > NORM_CLUSTERS_EACH || (s->each > 1 && is_backward(problem))) return false;
    c->shares = s->samples * s->groups;
    c->units = s->each * s->plane / run;
    if (c->units * RUN <= SHARE_MOST) return false;
    cut_share(c, device);
    if (c->part > NORM_CLUSTERS_THREADS * NORM_CLUSTERS_QUAD * QUADS_MOST) return false;
    at_once = clusters_at_once(c, device);
    return CLUSTERS * c->shares >= FULL * at_once * wd_ceil_div(c->shares, at_once);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct cut c;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(!is_inference(problem) || !wd_norm_groups_given(problem), reason, NOT_SUPPORTED,
            "statistics are given");
    WD_NEED(see(&c, problem), reason, NOT_SUPPORTED_SHAPE,
            "channels are last, or elements of a sample and group (%lld times 16 bytes) or these "
            "are few, or no whole units",
            (long long)c.units);
    return true;
}

static int64_t found_bytes(const struct wd_problem *problem, const struct cut *c)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    if (!wd_norm_tensor(problem, p.dscale) && !wd_norm_tensor(problem, p.dbias)) return 0;
    return c->shares * (int64_t)sizeof(struct norm_kept_sums);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct cut c;
    (void)see(&c, problem);
    return wd_most(found_bytes(problem, &c), wd_norm_groups_any(problem)->workspace(problem));
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    (void)see(prepared, problem);
}

static struct norm_clusters_args args_of(const struct wd_call *call, const struct cut *c)
{
    const struct wd_problem *problem = &call->problem;
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    struct norm_clusters_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_norm_data(call, p.x);
    a.dy = wd_norm_data(call, p.dy);
    a.y = wd_norm_data(call, p.y);
    a.scale = wd_norm_param(call, p.scale);
    a.bias = wd_norm_param(call, p.bias);
    if (is_backward(problem)) {
        a.given_mean = wd_norm_data(call, p.mean);
        a.given_inv_std = wd_norm_data(call, p.inv_std);
        if (found_bytes(problem, c) > 0) a.found = call->workspace;
    } else if (is_inference(problem)) {
        a.epsilon = wd_call_view(call, NORM_INFER_EPSILON).value;
    } else {
        a.mean = wd_norm_data(call, p.mean);
        a.inv_std = wd_norm_data(call, p.inv_std);
        a.epsilon = wd_call_view(call, NORM_TRAIN_EPSILON).value;
    }
    a.inverse = 1.0 / (double)(c->shape.each * c->shape.plane);
    a.by_plane = wd_fastdiv_of((uint32_t)(c->units / c->shape.each));
    a.shares = (uint32_t)c->shares;
    a.cluster = (uint32_t)c->cluster;
    a.units = (uint32_t)c->units;
    a.part = (uint32_t)c->part;
    a.quads = (uint32_t)c->quads;
    a.dy_quads = (uint32_t)c->dy_quads;
    a.each = (uint32_t)c->shape.each;
    a.groups = (uint32_t)c->shape.groups;
    return a;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    int row = wd_norm_type(wd_call_tensor(call, p.x)->dtype);
    struct cut own;
    const struct cut *c = wd_call_prepared(call, prepare, &own);
    struct norm_clusters_args a = args_of(call, c);
    int64_t clusters = wd_least(c->shares, clusters_at_once(c, queue->device));
    if (!wd_norm_aligned(a.x) || !wd_norm_aligned(a.dy) || !wd_norm_aligned(a.y))
        return wd_norm_groups_any(&call->problem)->emit(call, queue);
    row += is_backward(&call->problem) ? KERNEL_norm_clusters_backward_f32
                                       : KERNEL_norm_clusters_forward_f32;
    WD_TRY(wd_emit_cluster_kernel(queue, &kernel_rows[row], clusters * c->cluster,
                                  NORM_CLUSTERS_THREADS, a.cluster, (uint32_t)c->shared, &a));
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
