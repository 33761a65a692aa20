/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm on the GPU of what fits the shared memory of a block or cluster: one
 * kernel, one reading. norm_kept_args.h says how x is gone through, norm_kept_cut.h how it is cut. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_groups.h"
#include "ops/norm/norm_kept_args.h"

#define WD_KERNELS_MODULE norm_kept
#define WD_KERNELS_ROWS "ops/norm/norm_kept_kernels.def"
#include "ops/kernels_host.inc"

enum { WARP = 32, SINGLES_MOST = 1 << 20 };

static bool see_shape(struct norm_groups_shape *s, const struct wd_problem *problem)
{
    (void)wd_norm_groups_see(s, problem);
    if (s->plane == 1) s->columns = false; /* groups are neighbours either way */
    /* what goes by elements has them lie better for a warp where they are read twice */
    if (s->columns && s->channels * s->size % 16 != 0 &&
        s->samples * s->channels * s->plane * s->size > SINGLES_MOST) {
        return false;
    }
    return true;
}

static bool see(struct norm_groups_shape *s, struct norm_kept_cut *c,
                const struct wd_problem *problem)
{
    return see_shape(s, problem) && norm_kept_cut(c, s, problem->device);
}

static bool fits(struct norm_groups_shape *s, const struct wd_problem *problem)
{
    return see_shape(s, problem) && norm_kept_fits(s, problem->device);
}

struct wd_norm_kept_work wd_norm_kept_work_of(const struct wd_problem *problem)
{
    struct wd_norm_kept_work w;
    w.fits = see(&w.shape, &w.cut, problem);
    return w;
}

void wd_norm_kept_prepare(const struct wd_problem *problem, void *prepared)
{
    *(struct wd_norm_kept_work *)prepared = wd_norm_kept_work_of(problem);
}

bool wd_norm_kept_takes(const struct wd_problem *problem)
{
    struct norm_groups_shape s;
    return !wd_norm_groups_given(problem) && fits(&s, problem);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct norm_groups_shape s;
    if (!wd_norm_groups_match(problem, reason)) return false;
    WD_NEED(fits(&s, problem), reason, NOT_SUPPORTED_SHAPE,
            "%lld elements of a sample and group do not fit the shared memory of a cluster",
            (long long)(s.each * s.plane));
    return true;
}

/* ---- Backward ---- */

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

static bool wants_params(const struct wd_problem *problem)
{
    return is_backward(problem) && (wd_norm_tensor(problem, NORM_GRAD_DSCALE) != NULL ||
                                    wd_norm_tensor(problem, NORM_GRAD_DBIAS) != NULL);
}

/* Elements of a stretch that a block has. */
static int64_t stretch(const struct norm_groups_shape *s, const struct norm_kept_cut *c)
{
    return c->part * (16 / s->size);
}

/* Blocks that may have something of the same channel. */
static int64_t slices_of(const struct norm_groups_shape *s, const struct norm_kept_cut *c)
{
    if (s->columns) return c->blocks;
    return wd_least(c->blocks, (s->plane - 1) / stretch(s, c) + 2);
}

/* Bytes of scratch: what blocks that meet tell each other, and what they found of channels. */
static int64_t values_bytes(const struct norm_groups_shape *s, const struct norm_kept_cut *c)
{
    int64_t count = s->columns ? c->tile / s->each : 1;
    return c->meets ? c->teams * 2 * count * c->blocks * 16 + 16 : 0;
}

int64_t wd_norm_kept_workspace(const struct wd_problem *problem)
{
    struct norm_groups_shape s;
    struct norm_kept_cut c;
    int64_t sums = 0;
    if (!see(&s, &c, problem)) return 0;
    if (wants_params(problem)) sums = s.samples * slices_of(&s, &c) * s.channels;
    return values_bytes(&s, &c) + sums * (int64_t)sizeof(struct norm_kept_sums);
}

/* dscale and dbias, from what blocks left. */
static cudnnStatus_t emit_params(struct wd_queue *queue, struct norm_kept_args *a)
{
    int64_t rows = a->samples * (int64_t)a->slices;
    int64_t warps = 1;
    while (warps * (WARP / NORM_KEPT_FINISH) < rows && warps < NORM_ROWS_THREADS / WARP) warps *= 2;
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_kept_params],
                          wd_ceil_div(a->channels, NORM_KEPT_FINISH), (uint32_t)(warps * WARP), 0,
                          a);
}

cudnnStatus_t wd_norm_kept_sum_params(struct wd_queue *queue, const struct norm_groups_shape *s,
                                      struct norm_kept_sums *sums, struct norm_rows_param dscale,
                                      struct norm_rows_param dbias)
{
    struct norm_kept_args a;
    memset(&a, 0, sizeof a);
    a.sums = sums;
    a.samples = (uint32_t)s->samples;
    a.slices = 1;
    a.channels = (uint32_t)s->channels;
    a.dscale = dscale;
    a.dbias = dbias;
    return emit_params(queue, &a);
}

/* ---- Emitting ---- */

static void place(struct norm_kept_args *a, const struct norm_groups_shape *s,
                  const struct norm_kept_cut *c)
{
    a->panels = c->panels;
    a->total = s->samples * s->channels * s->plane;
    a->inverse = 1.0 / (double)(s->each * s->plane);
    a->by_plane = wd_fastdiv_of((uint32_t)s->plane);
    a->teams = (uint32_t)c->teams;
    a->blocks = (uint32_t)c->blocks;
    a->channels = (uint32_t)s->channels;
    a->plane = (uint32_t)s->plane;
    a->groups = (uint32_t)s->groups;
    a->each = (uint32_t)s->each;
    a->length = (uint32_t)c->length;
    a->beside = (uint32_t)c->beside;
    a->lanes = (uint32_t)c->lanes;
    a->pieces = (uint32_t)c->pieces;
    a->lines = (uint32_t)c->lines;
    a->samples = (uint32_t)s->samples;
    a->slices = (uint32_t)slices_of(s, c);
    a->by_each = wd_fastdiv_of((uint32_t)s->each);
    a->part = (uint32_t)c->part;
    a->slots = (uint32_t)c->slots;
    a->tile = (uint32_t)c->tile;
    a->tiles = (uint32_t)c->tiles;
    a->across = (uint32_t)c->across;
    a->rows = (uint32_t)c->rows;
    a->space = (uint32_t)c->space;
    a->shift = (uint32_t)((uintptr_t)a->x % 16 / (uintptr_t)s->size);
    a->runs = (uintptr_t)a->x % 16 == (uintptr_t)a->y % 16 &&
              (!a->dy || (uintptr_t)a->x % 16 == (uintptr_t)a->dy % 16);
    if (s->columns && (a->shift > 0 || s->channels * s->size % 16 != 0)) a->runs = 0;
    if (!a->runs) a->shift = 0;
}

cudnnStatus_t wd_norm_kept_emit(const struct wd_call *call, struct wd_queue *queue,
                                const struct wd_norm_kept_work *work)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    const struct norm_groups_shape *s = &work->shape;
    struct norm_kept_cut c = work->cut;
    struct norm_kept_args a;
    int type = wd_norm_type(wd_call_tensor(call, 0)->dtype);
    bool backward = is_backward(&call->problem);
    struct wd_kernel_row *row;
    char *scratch = call->workspace;
    if (!work->fits) return CUDNN_STATUS_INTERNAL_ERROR;
    if (c.meets) scratch = (char *)(((uintptr_t)scratch + 15) / 16 * 16); /* there is room for it */
    memset(&a, 0, sizeof a);
    a.x = wd_norm_data(call, p.x);
    a.y = wd_norm_data(call, p.y);
    a.dy = wd_norm_data(call, p.dy);
    a.scale = wd_norm_param(call, p.scale);
    a.bias = wd_norm_param(call, p.bias);
    a.dscale = wd_norm_param(call, p.dscale);
    a.dbias = wd_norm_param(call, p.dbias);
    if (backward) {
        a.given_mean = wd_norm_data(call, p.mean);
        a.given_inv_std = wd_norm_data(call, p.inv_std);
        if (wants_params(&call->problem)) {
            a.sums = (struct norm_kept_sums *)(scratch + values_bytes(s, &c) / 32 * 32);
        }
    } else if (call->problem.node->op == WD_OP_NORM_TRAINING) {
        a.mean = wd_norm_data(call, p.mean);
        a.inv_std = wd_norm_data(call, p.inv_std);
        a.epsilon = wd_call_view(call, NORM_TRAIN_EPSILON).value;
    } else {
        a.epsilon = wd_call_view(call, NORM_INFER_EPSILON).value;
    }
    a.streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > queue->device->l2_bytes;
    place(&a, s, &c);
    /* planes that begin off the boundaries, or otherwise than outputs, are none of whole runs */
    if ((a.shift > 0 || !a.runs) && c.way == NORM_KEPT_EVEN) c.way = NORM_KEPT_ODD;
    row = &kernel_rows[KERNEL_norm_kept_planes_forward_even_f32 +
                       (backward * NORM_KEPT_WAYS + (int)c.way) * NORM_ROWS_TYPES + type];
    if (c.meets) {
        void *counters = NULL;
        WD_TRY(queue->ops->counters(queue, &counters));
        a.counters = counters;
        a.values = scratch;
        WD_TRY(wd_emit_meeting_kernel(queue, row, c.teams * c.blocks, (uint32_t)c.threads,
                                      (uint32_t)c.shared, &a));
    } else {
        WD_TRY(wd_emit_cluster_kernel(queue, row, c.teams * c.blocks, (uint32_t)c.threads,
                                      (uint32_t)c.blocks, (uint32_t)c.shared, &a));
    }
    if (!a.sums) return CUDNN_STATUS_SUCCESS;
    if (s->columns || c.blocks == 1) a.length = 0;
    a.part = (uint32_t)stretch(s, &c);
    a.lanes = a.runs ? (uint32_t)(16 / s->size) : 1;
    return emit_params(queue, &a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_kept_work own;
    return wd_norm_kept_emit(call, queue, wd_call_prepared(call, wd_norm_kept_prepare, &own));
}

const struct wd_engine wd_engine_norm_training_kept = {
    .name = "norm_training_kept",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = wd_norm_kept_workspace,
    .prepare = wd_norm_kept_prepare,
    .prepared_bytes = sizeof(struct wd_norm_kept_work),
    .emit = emit,
};

const struct wd_engine wd_engine_norm_backward_kept = {
    .name = "norm_backward_kept",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = wd_norm_kept_workspace,
    .prepare = wd_norm_kept_prepare,
    .prepared_bytes = sizeof(struct wd_norm_kept_work),
    .emit = emit,
};
