/* SPDX-License-Identifier: Apache-2.0
 *
 * Group and instance norm on the GPU in training, and instance norm's gradients, channels first, of shares that the
 * registers of a few threads hold: small images. norm_shares_args.h says who has what; what lies off the boundaries goes the way of norm_kept. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_groups.h"
#include "ops/norm/norm_rows.h"
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
    WALK_BLOCKS_LEAST = 9, /* of a share: fewer are a cluster */
    WALK_AT_ONCE = 2,      /* blocks of a processor: one moves data while another waits for sums */
    WALK_WARPS = 8,        /* of a block */
    WALK_TURNS_LEAST = 6,  /* of blocks: of fewer too much is beginning and end */
    WALK_TURNS = 2,        /* these are about so many turns */
    WALK_UNITS = 256,      /* whose work a turn takes beside a block's units, about */
    WALK_LAG_RING = 5,     /* places that leave room for two shares that wait */
    WALK_FIXED = 6 << 10,  /* bytes of shared memory beside the ring, at most */
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
    bool walks;
    struct wd_norm_cut walk; /* of shares that several blocks have, where rows are shares */
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

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

/* Blocks of a share, for least work of a processor, turns to begin and to end with among it. */
static bool cut_walk(struct cut *c, const struct wd_problem *problem)
{
    const struct wd_device *device = problem->device;
    const struct norm_groups_shape *s = &c->shape;
    struct wd_norm_cut *w = &c->walk;
    int64_t run = NORM_ROWS_UNIT / s->size;
    int64_t strip = NORM_SHARES_WALK_UNITS * WARP;
    int64_t units = c->length / run;
    int64_t places = WALK_AT_ONCE * (int64_t)device->multiprocessors;
    int64_t blocks = wd_ceil_div(units, strip * WALK_WARPS);
    int64_t best = 0;
    int64_t turns_of_best = 0;
    if (s->plane % (strip * run) != 0) return false; /* a strip is of one channel */
    if (blocks < WALK_BLOCKS_LEAST) return false;
    if (c->shares > INT32_MAX || c->length > INT32_MAX) return false;
    if (!device->grids_meet || wd_norm_cluster_max(device) < 2) return false;
    for (; blocks <= wd_least(places, NORM_SHARES_WALK_BLOCKS); ++blocks) {
        int64_t share = wd_ceil_div(wd_ceil_div(units, blocks), strip) * strip;
        int64_t teams = wd_least(places / blocks, c->shares);
        int64_t turns = wd_ceil_div(c->shares, teams);
        int64_t cost = (turns + WALK_TURNS) * (share + WALK_UNITS);
        if ((blocks - 1) * share >= units) continue; /* for a block without a part nobody waits */
        if (best > 0 && cost >= best) continue;
        best = cost;
        turns_of_best = turns;
        w->cluster = blocks;
        w->share = share;
        w->step = teams;
    }
    if (turns_of_best < WALK_TURNS_LEAST) return false;
    c->threads = wd_ceil_div(w->share, strip) * WARP;
    w->shared = c->threads * NORM_SHARES_WALK_UNITS * NORM_ROWS_UNIT * 2; /* of a place, x and dy */
    w->ring = wd_least((device->shared_per_processor / WALK_AT_ONCE - WALK_FIXED) / w->shared,
                       NORM_ROWS_AHEAD_MAX + 1);
    w->lag = w->ring >= WALK_LAG_RING ? 2 : 1;
    w->ahead = w->ring - w->lag;
    w->shared *= w->ring;
    c->walks = w->ahead >= 1;
    return c->walks;
}

static bool see(struct cut *c, const struct wd_problem *problem)
{
    const struct norm_groups_shape *s = &c->shape;
    memset(c, 0, sizeof *c);
    (void)wd_norm_groups_see(&c->shape, problem);
    c->shares = s->samples * s->groups;
    c->length = s->each * s->plane;
    if (s->columns) return false;
    if (is_backward(problem)) return (s->each == 1 && cut_whole(c)) || cut_walk(c, problem);
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
    WD_NEED(is_fp32(problem, p.scale) && (is_backward(problem) || is_fp32(problem, p.bias)), reason,
            NOT_SUPPORTED_DATA_TYPE, "scale or bias is missing or not fp32");
    WD_NEED(see(&c, problem), reason, NOT_SUPPORTED_SHAPE,
            "channels are last, or %lld elements of a sample and group are many, or no whole units",
            (long long)c.length);
    return true;
}

/* Parts of a channel of which what is found is left. */
static int64_t slices_of(const struct cut *c)
{
    int64_t strip = NORM_SHARES_WALK_UNITS * WARP * NORM_ROWS_UNIT / c->shape.size;
    return c->walks ? c->shape.plane / strip : 1;
}

/* Bytes of it. */
static int64_t found_bytes(const struct wd_problem *problem, const struct cut *c)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    if (!wd_norm_tensor(problem, p.dscale) && !wd_norm_tensor(problem, p.dbias)) return 0;
    return c->shape.samples * slices_of(c) * c->shape.channels *
           (int64_t)sizeof(struct norm_kept_sums);
}

static int64_t post_bytes(const struct cut *c)
{
    int64_t blocks = c->walks ? c->walk.step * c->walk.cluster : 0;
    return blocks * NORM_SHARES_WALK_COPIES * NORM_ROWS_POST * (int64_t)sizeof(uint64_t);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct cut c;
    (void)see(&c, problem);
    return wd_most(post_bytes(&c) + found_bytes(problem, &c),
                   wd_norm_groups_any(problem)->workspace(problem));
}

static struct norm_shares_args args_of(const struct wd_call *call, const struct cut *c,
                                       const struct wd_device *device)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    struct norm_shares_args a;
    memset(&a, 0, sizeof a);
    a.of.x = wd_norm_data(call, p.x);
    a.of.dy = wd_norm_data(call, p.dy);
    a.of.y = wd_norm_data(call, p.y);
    a.of.scale = wd_norm_param(call, p.scale);
    a.of.bias = wd_norm_param(call, p.bias);
    if (is_backward(&call->problem)) {
        a.of.given_mean = wd_norm_data(call, p.mean);
        a.of.given_inv_std = wd_norm_data(call, p.inv_std);
        if (found_bytes(&call->problem, c) > 0)
            a.found = (struct norm_kept_sums *)(void *)((char *)call->workspace + post_bytes(c));
        a.slices = (uint32_t)slices_of(c);
    } else {
        a.of.mean = wd_norm_data(call, p.mean);
        a.of.inv_std = wd_norm_data(call, p.inv_std);
        a.of.epsilon = (float)wd_call_view(call, NORM_TRAIN_EPSILON).value;
    }
    a.of.inverse = 1.0F / (float)c->length;
    a.of.rows = c->shares;
    a.of.length = (uint32_t)c->length;
    a.of.lanes = (uint32_t)c->lanes;
    a.of.groups = (uint32_t)c->groups;
    a.of.centered = 1;
    a.of.streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > device->l2_bytes;
    a.by_plane = wd_fastdiv_of((uint32_t)c->shape.plane);
    a.by_groups = wd_fastdiv_of((uint32_t)c->shape.groups);
    a.by_lanes = wd_fastdiv_of((uint32_t)wd_most(c->lanes, 1));
    a.each = (uint32_t)c->shape.each;
    return a;
}

static cudnnStatus_t emit_walk(const struct wd_call *call, struct wd_queue *queue,
                               const struct cut *c, int type, struct norm_shares_args *a)
{
    const struct wd_norm_cut *w = &c->walk;
    void *counters = NULL;
    WD_TRY(queue->ops->counters(queue, &counters));
    a->of.counters = counters;
    a->of.posts = call->workspace;
    a->of.cluster = (uint32_t)w->cluster;
    a->of.share = (uint32_t)w->share;
    a->of.step = w->step;
    a->of.ahead = (uint32_t)w->ahead;
    a->of.ring = (uint32_t)w->ring;
    a->of.lag = (uint32_t)w->lag;
    return wd_emit_meeting_kernel(queue, &kernel_rows[KERNEL_norm_shares_walk_back_f32 + type],
                                  w->step * w->cluster, (uint32_t)c->threads, (uint32_t)w->shared,
                                  a);
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    (void)see(prepared, problem);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    int type = wd_norm_type(wd_call_tensor(call, p.x)->dtype);
    struct cut own;
    struct cut c = *(const struct cut *)wd_call_prepared(call, prepare, &own);
    struct norm_shares_args a = args_of(call, &c, queue->device);
    if (!wd_norm_aligned(a.of.x) || !wd_norm_aligned(a.of.dy) || !wd_norm_aligned(a.of.y))
        return wd_norm_groups_any(&call->problem)->emit(call, queue);
    if (c.walks) {
        WD_TRY(emit_walk(call, queue, &c, type, &a));
    } else {
        type += c.beside                      ? KERNEL_norm_shares_beside_f32
                : is_backward(&call->problem) ? KERNEL_norm_shares_backward_f16 - NORM_ROWS_F16
                                              : KERNEL_norm_shares_whole_f16 - NORM_ROWS_F16;
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[type], wd_ceil_div(c.shares, c.groups),
                              (uint32_t)c.threads, 0, &a));
    }
    if (!a.found) return CUDNN_STATUS_SUCCESS;
    c.shape.samples *= slices_of(&c);
    return wd_norm_kept_sum_params(queue, &c.shape, a.found, wd_norm_param(call, p.dscale),
                                   wd_norm_param(call, p.dbias));
}

const struct wd_engine wd_engine_norm_training_shares = {
    .name = "norm_training_shares",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct cut),
    .emit = emit,
};

const struct wd_engine wd_engine_norm_backward_shares = {
    .name = "norm_backward_shares",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct cut),
    .emit = emit,
};
