/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm on the GPU of images whose samples (channels last) or groups of
 * samples (channels first) are shared by processors: one kernel, one reading, copies under way throughout. norm_ring_args.h says how x
 * is gone through, norm_ring.h how it is cut. */
#include "ops/norm/norm_ring.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_ring_args.h"

#define WD_KERNELS_MODULE norm_ring
#define WD_KERNELS_ROWS "ops/norm/norm_ring_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    BYTES = 16,          /* of a run */
    FIXED = 1024,        /* shared memory that kernels have besides what is dynamic */
    GIVEN = 3,           /* panels' statistics, backward */
    GROUPS = 512,        /* of a panel, at most: each is a post of every block */
    UNDER_WAY = 40960,   /* bytes of a processor, at least, while others wait or are written */
    LEAST = 1 << 20,     /* bytes of x */
    SHARE_LEAST = 49152, /* bytes of a panel, by planes */
    PAIR = 8,            /* bytes of two numbers in single precision */
    LANE_RUNS = 8,       /* of a lane in a channel, about, backward */
    SPEED = 32,          /* bytes a nanosecond of a processor */
    BEGIN = 4000,        /* ns of a launch and the first meeting */
    TURN = 300,          /* ns of a panel besides its bytes */
    POSTS = 2500,        /* ... at least, for posts are on their way for so long */
    JOIN = 3500,         /* ns from the last post to the first number that follows from it, ... */
    JOIN_COMPUTES = 800, /* ... of which nothing hides so much */
};

/* ---- The cut ---- */

/* As much longer it takes without threads as with all of them. */
static const double FEWER = 0.2;
/* What the cache saves of a reading. */
static const double CACHED = 0.67;

static int64_t areas(const struct norm_ring_cut *c, const struct norm_groups_shape *s)
{
    int64_t groups = s->columns ? s->groups : 1;
    int64_t results = 2 * groups;
    int64_t given = s->arrays > 1 ? GIVEN * groups * PAIR : 0;
    if (s->columns) return BYTES * (c->threads + groups + results + s->channels) + given;
    return BYTES * (groups + results + c->lines) + PAIR * c->lines * c->pieces + given;
}

/* Planes: what blocks need to know of channels, and how they add them up. */
static void see_channels(struct norm_ring_cut *c, const struct norm_groups_shape *s)
{
    int64_t runs = s->plane * s->size / BYTES;
    c->lines = wd_least(s->each, c->part / runs + 2);
    c->slices = wd_least(c->blocks, (runs - 1) / c->part + 2);
    c->lanes = wd_least(wd_power_up(wd_ceil_div(runs, LANE_RUNS)), WARP);
    c->pieces = 1;
    while (c->lanes == WARP && c->pieces * WARP * c->lines < c->threads &&
           runs >= 2 * c->pieces * WARP) {
        c->pieces *= 2;
    }
}

/* Bytes of what does not stay, that a block reads again: from the cache they count for less. */
static double again_bytes(const struct norm_ring_cut *c, int64_t batches, int64_t batch_bytes,
                          const struct wd_device *device)
{
    double blocks = (double)(c->blocks * c->teams);
    double again = (double)((batches - c->keep) * batch_bytes) * blocks;
    double cached = again < (double)device->l2_bytes / 2 ? again : (double)device->l2_bytes / 2;
    return (again - CACHED * cached) / blocks;
}

/* With so many rows of a block at a time. */
static void offer_rows(struct norm_ring_cut *best, const struct norm_groups_shape *s,
                       struct norm_ring_cut c, const struct wd_device *device)
{
    int64_t batch_bytes;
    int64_t batches;
    int64_t most;
    int64_t spare;
    int64_t turns = wd_ceil_div(c.panels, c.teams);
    double turn;
    c.threads = wd_ceil_div(c.rows * c.across, WARP) * WARP;
    if (!s->columns) see_channels(&c, s);
    batches = wd_ceil_div(c.part, c.rows * NORM_RING_BATCH);
    batch_bytes = c.threads * BYTES * NORM_RING_BATCH * s->arrays;
    most = (device->shared_per_block - FIXED - areas(&c, s)) / batch_bytes;
    spare = wd_ceil_div(UNDER_WAY, batch_bytes);
    most = wd_least(most, turns * batches);
    c.keep = batches;
    c.lag = turns > 1 && most >= wd_least(2 * batches + spare, turns * batches);
    if (most < wd_least(batches + spare, turns * batches)) {
        if (!s->columns && s->arrays > 1) return; /* sums of channels need all of them */
        c.keep = most - spare;
        if (c.keep < 1) return;
    }
    c.ring = most * NORM_RING_BATCH;
    c.ahead = wd_least(most, spare);
    c.shared = most * batch_bytes + areas(&c, s);
    turn = (double)(c.part * c.width * s->size * (s->arrays + 1)) / SPEED + TURN;
    turn += again_bytes(&c, batches, batch_bytes, device) / SPEED;
    if (c.lag && turn < POSTS) turn = POSTS;
    if (!c.lag) {
        int64_t hides = (most - wd_least(c.keep, batches)) * batch_bytes / SPEED;
        turn += JOIN_COMPUTES + (double)wd_most(0, JOIN - JOIN_COMPUTES - hides);
    }
    c.cost = (double)turns * turn + (double)(wd_least(most, batches) * batch_bytes) / SPEED + BEGIN;
    c.cost *= 1.0 + FEWER * (1.0 - (double)c.threads / NORM_RING_THREADS);
    if (best->cost <= 0.0 || best->cost > c.cost) *best = c;
}

static void offer(struct norm_ring_cut *best, const struct norm_groups_shape *s, int64_t teams,
                  const struct wd_device *device)
{
    struct norm_ring_cut c = {.teams = teams};
    int64_t run = BYTES / s->size;
    int64_t most;
    c.panels = s->columns ? s->samples : s->samples * s->groups;
    c.height = s->columns ? s->plane : s->each * s->plane / run;
    c.width = s->columns ? s->channels : run;
    c.across = c.width / run;
    c.part = wd_ceil_div(c.height, device->multiprocessors / teams);
    c.blocks = wd_ceil_div(c.height, c.part);
    most = wd_least(NORM_RING_THREADS / c.across, c.part);
    if (!s->columns) {
        c.rows = wd_ceil_div(most, WARP) * WARP;
        offer_rows(best, s, c, device);
        return;
    }
    /* fewer at a time may leave less of the last ones empty */
    for (c.rows = most; c.rows > 0 && 4 * c.rows >= 3 * most; --c.rows) {
        offer_rows(best, s, c, device);
    }
}

bool norm_ring_cut(struct norm_ring_cut *best, const struct norm_groups_shape *s,
                   const struct wd_device *device)
{
    int64_t shares = s->columns ? s->samples : s->samples * s->groups;
    int64_t most = wd_least(device->multiprocessors, shares);
    int64_t lasts = s->columns ? s->channels : s->plane;
    memset(best, 0, sizeof *best);
    if (!device->grids_meet || s->plane < 2 || lasts * s->size % BYTES != 0) return false;
    if (s->samples * s->channels * s->plane * s->size < LEAST) return false;
    if (s->columns) {
        if (s->groups > GROUPS || lasts * s->size / BYTES > NORM_RING_THREADS) return false;
    } else if (s->each * s->plane * s->size * s->arrays < SHARE_LEAST) {
        return false;
    }
    for (int64_t teams = 1; teams <= most; ++teams) offer(best, s, teams, device);
    return best->cost > 0.0;
}

/* ---- What the engines say ---- */

static bool see(struct norm_groups_shape *s, struct norm_ring_cut *c,
                const struct wd_problem *problem)
{
    (void)wd_norm_groups_see(s, problem);
    return norm_ring_cut(c, s, problem->device);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct norm_groups_shape s;
    struct norm_ring_cut c;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(!wd_norm_groups_given(problem), reason, NOT_SUPPORTED, "statistics are given");
    WD_NEED(see(&s, &c, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld elements of %lld channels of a sample are no whole runs, or few",
            (long long)s.plane, (long long)s.channels);
    return true;
}

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

static int64_t post_bytes(const struct norm_groups_shape *s, const struct norm_ring_cut *c)
{
    int64_t groups = s->columns ? s->groups : 1;
    return c->teams * NORM_RING_COPIES * groups * (c->blocks + 1) * NORM_RING_POST *
           (int64_t)sizeof(uint64_t);
}

/* Rows of sums for dscale and dbias that blocks leave. */
static int64_t sum_rows(const struct norm_groups_shape *s, const struct norm_ring_cut *c)
{
    return s->columns ? c->teams * c->blocks : s->samples * c->slices;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct norm_groups_shape s;
    struct norm_ring_cut c;
    int64_t sums = 0;
    if (!see(&s, &c, problem)) return 0;
    if (is_backward(problem)) sums = sum_rows(&s, &c) * s.channels;
    return post_bytes(&s, &c) + BYTES + sums * (int64_t)sizeof(struct norm_ring_sums);
}

/* ---- Emitting ---- */

static void place(struct norm_ring_args *a, const struct norm_groups_shape *s,
                  const struct norm_ring_cut *c)
{
    a->inverse = 1.0 / (double)(s->each * s->plane);
    a->by_each = wd_fastdiv_of((uint32_t)s->each);
    a->by_plane = wd_fastdiv_of((uint32_t)(s->plane * s->size / BYTES));
    a->panels = (uint32_t)c->panels;
    a->teams = (uint32_t)c->teams;
    a->blocks = (uint32_t)c->blocks;
    a->height = (uint32_t)c->height;
    a->width = (uint32_t)c->width;
    a->channels = (uint32_t)s->channels;
    a->groups = s->columns ? (uint32_t)s->groups : 1;
    a->each = (uint32_t)s->each;
    a->cycle = (uint32_t)s->groups;
    a->plane = (uint32_t)(s->plane * s->size / BYTES);
    a->lines = (uint32_t)c->lines;
    a->lanes = (uint32_t)c->lanes;
    a->pieces = (uint32_t)c->pieces;
    a->slices = (uint32_t)c->slices;
    a->sum_rows = (uint32_t)sum_rows(s, c);
    a->part = (uint32_t)c->part;
    a->across = (uint32_t)c->across;
    a->rows = (uint32_t)c->rows;
    a->ring = (uint32_t)c->ring;
    a->keep = (uint32_t)c->keep;
    a->ahead = (uint32_t)c->ahead;
    a->threads = (uint32_t)c->threads;
    a->lag = (uint32_t)c->lag;
    a->runs = wd_norm_aligned(a->x) && wd_norm_aligned(a->dy) && wd_norm_aligned(a->y);
}

static cudnnStatus_t emit_params(struct wd_queue *queue, const struct norm_ring_args *a)
{
    int64_t warps = 1;
    while (warps < a->sum_rows && warps < NORM_ROWS_THREADS / WARP) warps *= 2;
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_ring_params],
                          wd_ceil_div(a->channels, NORM_RING_FINISH), (uint32_t)(warps * WARP), 0,
                          a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    bool backward = is_backward(&call->problem);
    struct norm_groups_shape s;
    struct norm_ring_cut c;
    struct norm_ring_args a;
    void *counters = NULL;
    char *scratch = (char *)(((uintptr_t)call->workspace + BYTES - 1) / BYTES * BYTES);
    int kernel;
    if (!see(&s, &c, &call->problem)) return CUDNN_STATUS_INTERNAL_ERROR;
    memset(&a, 0, sizeof a);
    a.x = wd_norm_data(call, p.x);
    a.y = wd_norm_data(call, p.y);
    a.dy = wd_norm_data(call, p.dy);
    a.scale = wd_norm_param(call, p.scale);
    a.bias = wd_norm_param(call, p.bias);
    a.dscale = wd_norm_param(call, p.dscale);
    a.dbias = wd_norm_param(call, p.dbias);
    a.posts = (uint64_t *)scratch;
    if (backward) {
        a.given_mean = wd_norm_data(call, p.mean);
        a.given_inv_std = wd_norm_data(call, p.inv_std);
        if (a.dscale.data || a.dbias.data) {
            a.sums = (struct norm_ring_sums *)(scratch + post_bytes(&s, &c));
        }
    } else if (call->problem.node->op == WD_OP_NORM_TRAINING) {
        a.mean = wd_norm_data(call, p.mean);
        a.inv_std = wd_norm_data(call, p.inv_std);
        a.epsilon = wd_call_view(call, NORM_TRAIN_EPSILON).value;
    } else {
        a.epsilon = wd_call_view(call, NORM_INFER_EPSILON).value;
    }
    a.streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > queue->device->l2_bytes;
    place(&a, &s, &c);
    WD_TRY(queue->ops->counters(queue, &counters));
    a.counters = counters;
    kernel = KERNEL_norm_ring_planes_forward_f32 + (2 * s.columns + backward) * NORM_ROWS_TYPES +
             wd_norm_type(wd_call_tensor(call, 0)->dtype);
    WD_TRY(wd_emit_meeting_kernel(queue, &kernel_rows[kernel], c.teams * c.blocks,
                                  (uint32_t)c.threads + WARP, (uint32_t)c.shared, &a));
    return a.sums ? emit_params(queue, &a) : CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_norm_inference_ring = {
    .name = "norm_inference_ring",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_norm_training_ring = {
    .name = "norm_training_ring",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_norm_backward_ring = {
    .name = "norm_backward_ring",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
