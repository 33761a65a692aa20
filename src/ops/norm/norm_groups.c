/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm on the GPU at the speed of memory, in all phases, of packed images of any
 * number of dimensions with channels first or last. norm_groups_args.h says how x is gone through,
 * norm_groups_cut.h how it is cut. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_groups.h"
#include "ops/norm/norm_groups_args.h"

#define WD_KERNELS_MODULE norm_groups
#define WD_KERNELS_ROWS "ops/norm/norm_groups_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    COLUMN_PLANE = 1 << 24, /* rows of columns that are counted in fp32 */
    PARTS_OF_WARP = 256,    /* parts of a share that a warp joins, at most */
};

/* Steps, in the order of the kernels' rows: planes have no WHOLE. */
enum step { WHOLE, SUMS, APPLY, STEPS };

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

bool wd_norm_groups_see(struct norm_groups_shape *s, const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    struct wd_norm_split split;
    int order[WD_MAX_RANK];
    int count = wd_tensor_order(x, order);
    int first = count > 0 && order[0] == 0 ? 1 : 0;
    bool next = first < count && order[first] == 1;
    bool last = count > first && order[count - 1] == 1;
    memset(&split, 0, sizeof split);
    (void)wd_norm_split(problem->graph, problem->node, &split);
    s->samples = x->dim[0];
    s->channels = x->dim[1];
    s->plane = 1;
    for (int d = 2; d < x->rank; ++d) s->plane *= x->dim[d];
    s->groups = split.keep[1];
    s->each = s->channels / s->groups;
    s->size = (int)(wd_dtype_bits(x->dtype) / 8);
    s->arrays = is_backward(problem) ? 2 : 1;
    s->columns = last || s->plane == 1;
    if (s->samples > 1 && first == 0) return false;
    return next || last || s->channels == 1;
}

/* Whether a tensor is [a][b] in its first two dimensions, without gaps, and 1 in others. */
static bool is_table(const struct wd_tensor *t, int64_t a, int64_t b)
{
    for (int d = 2; d < t->rank; ++d) {
        if (t->dim[d] != 1) return false;
    }
    return t->dim[0] == a && t->dim[1] == b && (b == 1 || t->stride[1] == 1) &&
           (a == 1 || t->stride[0] == b);
}

bool wd_norm_groups_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    const int params[] = {p.scale, p.bias, p.dscale, p.dbias};
    const int statistics[] = {p.mean, p.inv_std};
    const struct wd_tensor *x = wd_norm_tensor(problem, p.x);
    int mode = problem->node->attr.norms.mode;
    struct norm_groups_shape s;
    WD_NEED(mode == CUDNN_GROUP_NORM || mode == CUDNN_INSTANCE_NORM, reason, NOT_SUPPORTED,
            "mode %d is neither group nor instance norm", mode);
    if (!wd_norm_match(problem, reason)) return false;
    if (!wd_norm_has_statistics(problem, reason)) return false;
    WD_NEED(wd_norm_groups_see(&s, problem), reason, NOT_SUPPORTED_LAYOUT,
            "samples of x are not outermost, or channels neither next nor last");
    for (int i = 0; i < 4; ++i) {
        const struct wd_tensor *t = wd_norm_tensor(problem, params[i]);
        WD_NEED(!t || is_table(t, 1, s.channels), reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is not %lld neighbours, a channel each", params[i], (long long)s.channels);
    }
    for (int i = 0; i < 2; ++i) {
        const struct wd_tensor *t = wd_norm_tensor(problem, statistics[i]);
        WD_NEED(!t || is_table(t, s.samples, s.groups), reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is not %lld neighbours a sample, a group each", statistics[i],
                (long long)s.groups);
    }
    WD_NEED(wd_tensor_count(x) / s.samples / s.groups <= INT32_MAX &&
                s.samples * s.channels <= INT32_MAX && (!s.columns || s.plane <= COLUMN_PLANE),
            reason, NOT_SUPPORTED_SHAPE, "%lld samples of %lld channels of %lld elements",
            (long long)s.samples, (long long)s.channels, (long long)s.plane);
    return true;
}

/* ---- Scratch ---- */

bool wd_norm_groups_given(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_INFERENCE &&
           wd_norm_tensor(problem, NORM_INFER_INV_STD) != NULL;
}

static bool wants_params(const struct wd_problem *problem)
{
    return is_backward(problem) && (wd_norm_tensor(problem, NORM_GRAD_DSCALE) != NULL ||
                                    wd_norm_tensor(problem, NORM_GRAD_DBIAS) != NULL);
}

/* A problem, how it is cut, and where its scratch lies. */
struct work {
    struct norm_groups_shape shape;
    struct norm_groups_cut cut;
    bool backward;
    int64_t slices;
    int64_t units;
    int64_t numbers; /* bytes, first */
    int64_t found;   /* bytes, behind them */
};

static struct work work_of(const struct wd_problem *problem)
{
    struct work w;
    const struct norm_groups_shape *s = &w.shape;
    memset(&w, 0, sizeof w);
    (void)wd_norm_groups_see(&w.shape, problem);
    w.cut = norm_groups_cut(s, !wd_norm_groups_given(problem), problem->device);
    w.backward = is_backward(problem);
    w.slices = w.backward && w.cut.by_channels ? 1 : w.cut.segments;
    w.units = w.backward || s->columns ? s->channels : s->groups;
    if (wd_norm_groups_given(problem)) return w;
    if (!w.cut.whole) {
        w.numbers = s->samples * s->groups * (int64_t)sizeof(struct norm_groups_numbers);
    }
    if (w.backward ? wants_params(problem) || !w.cut.whole : !w.cut.whole) {
        w.found = s->samples * w.slices * w.units *
                  (int64_t)(w.backward ? sizeof(struct norm_groups_sums)
                                       : sizeof(struct norm_groups_part));
    }
    return w;
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    *(struct work *)prepared = work_of(problem);
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct work w = work_of(problem);
    return w.numbers + w.found;
}

/* ---- Emitting ---- */

static void place(struct norm_groups_args *a, const struct work *w)
{
    const struct norm_groups_shape *s = &w->shape;
    const struct norm_groups_cut *c = &w->cut;
    a->shares = s->samples * s->groups;
    a->inverse = (float)(1.0 / (double)(s->each * s->plane));
    a->samples = (uint32_t)s->samples;
    a->channels = (uint32_t)s->channels;
    a->plane = (uint32_t)s->plane;
    a->groups = (uint32_t)s->groups;
    a->each = (uint32_t)s->each;
    a->segments = (uint32_t)c->segments;
    a->slices = (uint32_t)w->slices;
    a->units = (uint32_t)w->units;
    a->by_channels = c->by_channels;
    a->part = (uint32_t)c->part;
    a->width = (uint32_t)c->width;
    a->team = (uint32_t)c->team;
    a->tile = (uint32_t)c->tile;
    a->tiles = (uint32_t)c->tiles;
    a->rows = (uint32_t)c->rows;
    a->turns = (uint32_t)c->turns;
    a->runs = wd_norm_aligned(a->x) && wd_norm_aligned(a->dy) && wd_norm_aligned(a->y) &&
              (s->columns ? s->channels : s->plane) % NORM_GROUPS_RUN == 0;
}

static struct norm_groups_args args_of(const struct wd_call *call, const struct work *w,
                                       const struct wd_device *device)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    struct norm_groups_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_norm_data(call, p.x);
    a.dy = wd_norm_data(call, p.dy);
    a.y = wd_norm_data(call, p.y);
    a.scale = wd_norm_param(call, p.scale);
    a.bias = wd_norm_param(call, p.bias);
    a.dscale = wd_norm_param(call, p.dscale);
    a.dbias = wd_norm_param(call, p.dbias);
    if (call->problem.node->op == WD_OP_NORM_TRAINING) {
        a.mean = wd_norm_data(call, p.mean);
        a.inv_std = wd_norm_data(call, p.inv_std);
        a.epsilon = wd_call_view(call, NORM_TRAIN_EPSILON).value;
    } else {
        a.given_mean = wd_norm_data(call, p.mean);
        a.given_inv_std = wd_norm_data(call, p.inv_std);
        if (!w->backward) a.epsilon = wd_call_view(call, NORM_INFER_EPSILON).value;
    }
    if (w->numbers > 0) a.numbers = call->workspace;
    if (w->found > 0) {
        void *found = (char *)call->workspace + w->numbers;
        if (w->backward) a.sums = found;
        else a.parts = found;
    }
    a.streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > device->l2_bytes;
    place(&a, w);
    return a;
}

static cudnnStatus_t emit_step(const struct wd_call *call, struct wd_queue *queue, enum step step,
                               const struct work *w, const struct norm_groups_args *a)
{
    int type = wd_norm_type(wd_call_tensor(call, 0)->dtype);
    int row = w->shape.columns ? 2 * (STEPS - 1) + w->backward * STEPS + (int)step
                               : w->backward * (STEPS - 1) + (int)step - SUMS;
    return wd_emit_cluster_kernel(
        queue,
        &kernel_rows[KERNEL_norm_groups_planes_forward_sums_f32 + row * NORM_ROWS_TYPES + type],
        w->cut.blocks, (uint32_t)w->cut.threads, step == WHOLE ? (uint32_t)w->cut.segments : 1,
        step == APPLY ? 0 : (uint32_t)w->cut.shared, a);
}

/* Between the steps: what follows from all that blocks found of a share. */
static cudnnStatus_t emit_finish(struct wd_queue *queue, const struct work *w,
                                 struct norm_groups_args *a)
{
    int kernel = w->backward ? KERNEL_norm_groups_gradients : KERNEL_norm_groups_statistics;
    int64_t parts = w->slices * (w->units / w->shape.groups);
    a->lanes = parts > PARTS_OF_WARP ? NORM_GROUPS_FINISH_THREADS : WARP;
    return wd_emit_kernel(queue, &kernel_rows[kernel],
                          wd_ceil_div(a->shares, NORM_GROUPS_FINISH_THREADS / a->lanes),
                          NORM_GROUPS_FINISH_THREADS, 0, a);
}

static cudnnStatus_t emit_params(struct wd_queue *queue, const struct work *w,
                                 const struct norm_groups_args *a)
{
    int64_t rows = w->shape.samples * w->slices;
    int64_t warps = 1;
    while (warps * (WARP / NORM_GROUPS_PARAMS) < rows && warps < NORM_ROWS_THREADS / WARP) {
        warps *= 2;
    }
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_groups_params],
                          wd_ceil_div(w->shape.channels, NORM_GROUPS_PARAMS),
                          (uint32_t)(warps * WARP), 0, a);
}

static cudnnStatus_t emit_work(const struct wd_call *call, struct wd_queue *queue,
                               const struct work *w)
{
    struct norm_groups_args a = args_of(call, w, queue->device);
    if (wd_norm_groups_given(&call->problem)) return emit_step(call, queue, APPLY, w, &a);
    if (w->cut.whole) {
        WD_TRY(emit_step(call, queue, WHOLE, w, &a));
    } else {
        WD_TRY(emit_step(call, queue, SUMS, w, &a));
        WD_TRY(emit_finish(queue, w, &a));
        WD_TRY(emit_step(call, queue, APPLY, w, &a));
    }
    return wants_params(&call->problem) ? emit_params(queue, w, &a) : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct work own;
    return emit_work(call, queue, wd_call_prepared(call, prepare, &own));
}

/* Inference, which is either engine's. */
struct either {
    bool kept;
    struct wd_norm_kept_work once;
    struct work twice;
};

static void prepare_inference(const struct wd_problem *problem, void *prepared)
{
    struct either *e = prepared;
    memset(e, 0, sizeof *e);
    if (!wd_norm_groups_given(problem)) e->once = wd_norm_kept_work_of(problem);
    e->kept = e->once.fits;
    if (!e->kept) e->twice = work_of(problem);
}

static int64_t inference_workspace(const struct wd_problem *problem)
{
    return wd_norm_kept_takes(problem) ? wd_norm_kept_workspace(problem) : workspace(problem);
}

static cudnnStatus_t emit_inference(const struct wd_call *call, struct wd_queue *queue)
{
    struct either own;
    const struct either *e = wd_call_prepared(call, prepare_inference, &own);
    return e->kept ? wd_norm_kept_emit(call, queue, &e->once) : emit_work(call, queue, &e->twice);
}

const struct wd_engine wd_engine_norm_inference_groups = {
    .name = "norm_inference_groups",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_norm_groups_match,
    .workspace = inference_workspace,
    .prepare = prepare_inference,
    .prepared_bytes = sizeof(struct either),
    .emit = emit_inference,
};

const struct wd_engine wd_engine_norm_training_groups = {
    .name = "norm_training_groups",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_norm_groups_match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};

const struct wd_engine wd_engine_norm_backward_groups = {
    .name = "norm_backward_groups",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_norm_groups_match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};

extern const struct wd_engine wd_engine_norm_training_kept;
extern const struct wd_engine wd_engine_norm_backward_kept;

const struct wd_engine *wd_norm_groups_any(const struct wd_problem *problem)
{
    bool kept = wd_norm_kept_takes(problem);
    switch (problem->node->op) {
    case WD_OP_NORM_INFERENCE: return &wd_engine_norm_inference_groups;
    case WD_OP_NORM_TRAINING:
        return kept ? &wd_engine_norm_training_kept : &wd_engine_norm_training_groups;
    default: return kept ? &wd_engine_norm_backward_kept : &wd_engine_norm_backward_groups;
    }
}
