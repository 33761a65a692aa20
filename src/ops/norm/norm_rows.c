/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer norm and RMS norm on the GPU at the speed of memory, in all phases, where what is normalized
 * is a row without gaps: the innermost dimensions, packed. norm_rows_args.h says how a row is cut;
 * the cut depends on shape and device alone. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_gpu.h"
#include "ops/norm/norm_rows.h"
#include "ops/norm/norm_wide.h"

#define WD_KERNELS_MODULE norm_rows
#define WD_KERNELS_ROWS "ops/norm/norm_rows_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    SHORT_COLUMNS = 8, /* of a thread */
    SHORT_LONGEST = 256,
    PLAIN_COLUMNS = 32,
    PLAIN_LONGEST = 16384,
    PLAIN_RMS = 10240,    /* of two bytes an element, whose statistics are given ... */
    PLAIN_CENTRED = 8192, /* ... likewise layer norm */
    PLAIN_WARPS = 2,      /* warps of a row whose statistics are not given, ... */
    PLAIN_RMS_WARPS = 3,  /* ... and of RMS norm, where these are full */
    WARP_COLUMNS = 64,    /* of a thread whose warp has a row of two bytes an element, ... */
    WARP_ROWS = 64,       /* ... of a processor, at least */
    SHORT_THREADS = 128,  /* of a block of several short rows, ... */
    PLAIN_THREADS =
        64, /* ... and of others where there are clusters, but for those that a warp has, which are alone */
};

/* ---- The shape ---- */

bool wd_norm_rows_see(struct wd_norm_rows *s, const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, 0);
    struct wd_norm_split split;
    memset(&split, 0, sizeof split);
    (void)wd_norm_split(problem->graph, problem->node, &split);
    s->rows = s->length = 1;
    s->outer = 0;
    s->count = wd_tensor_order(x, s->order);
    for (int i = 0; i < s->count; ++i) {
        int d = s->order[i];
        if (split.keep[d] == 1) {
            s->length *= x->dim[d];
            continue;
        }
        if (split.term[d] != 1 || s->length > 1) return false;
        s->rows *= x->dim[d];
        s->outer = i + 1;
    }
    return true;
}

/* Whether a tensor has an element for each place of dimensions order[first], ... order[last - 1], in
 * the order of x's memory without gaps, and none beside. */
static bool follows(const struct wd_norm_rows *s, const struct wd_tensor *x,
                    const struct wd_tensor *t, int first, int last)
{
    int64_t expected = 1;
    for (int i = s->count - 1; i >= 0; --i) {
        int d = s->order[i];
        if (i < first || i >= last) {
            if (t->dim[d] != 1) return false;
            continue;
        }
        if (t->dim[d] != x->dim[d] || t->stride[d] != expected) return false;
        expected *= x->dim[d];
    }
    return true;
}

/* ---- Matching ---- */

bool wd_norm_rows_match(const struct wd_problem *problem, struct wd_norm_rows *s,
                        struct wd_reason *reason)
{
    struct wd_norm_places p = wd_norm_places(problem->node->op);
    const int params[] = {p.scale, p.bias, p.dscale, p.dbias};
    const int statistics[] = {p.mean, p.inv_std};
    const struct wd_tensor *x = wd_norm_tensor(problem, p.x);
    int mode = problem->node->attr.norms.mode;
    WD_NEED(mode == CUDNN_LAYER_NORM || mode == CUDNN_RMS_NORM || mode == CUDNN_ADA_LAYER_NORM,
            reason, NOT_SUPPORTED, "mode %d is none of the layer norms", mode);
    if (!wd_norm_match(problem, reason)) return false;
    WD_NEED(wd_norm_rows_see(s, problem), reason, NOT_SUPPORTED_LAYOUT,
            "what is normalized is not the innermost of x");
    for (int i = 0; i < 4; ++i) {
        const struct wd_tensor *t = wd_norm_tensor(problem, params[i]);
        WD_NEED(!t || follows(s, x, t, s->outer, s->count), reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is no number a column in the order of x", params[i]);
    }
    for (int i = 0; i < 2; ++i) {
        const struct wd_tensor *t = wd_norm_tensor(problem, statistics[i]);
        WD_NEED(!t || follows(s, x, t, 0, s->outer), reason, NOT_SUPPORTED_LAYOUT,
                "slot %d is no number a row in the order of x", statistics[i]);
    }
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_norm_rows s = {.rows = 0};
    if (!wd_norm_rows_match(problem, &s, reason)) return false;
    WD_NEED(s.rows <= INT32_MAX && (s.length <= SHORT_LONGEST || wd_norm_rows_fit(problem, &s)),
            reason, NOT_SUPPORTED_SHAPE, "%lld rows of %lld elements are too many, or too long",
            (long long)s.rows, (long long)s.length);
    return true;
}

static bool is_centred(const struct wd_problem *problem)
{
    return problem->node->attr.norms.mode != CUDNN_RMS_NORM;
}

/* Columns of rows that nobody walks down, at most, of two bytes an element where there are bulk copies. Measured on an H200, us, by blocks that stay and
 * plain: layer norm of 256 MB by rows of 2560 142 and 153, 4096 134 and 143, 5120 135 and 160, 8192 133 and 146; RMS norm 2560 138 and 142, 3072
 * 136 and 134, 4096 132 and 133, 5120 133 and 143, 10240 135 and 138; rows of 2048 147 and 142, 146 and 133. Given statistics are not measured. */
static int64_t plain_columns(const struct wd_norm_rows *s, const struct wd_problem *problem)
{
    int64_t whole = WARP * PLAIN_COLUMNS;
    if (!wd_norm_rows_computes(problem)) return is_centred(problem) ? PLAIN_CENTRED : PLAIN_RMS;
    return whole * (is_centred(problem) || s->length % whole > 0 ? PLAIN_WARPS : PLAIN_RMS_WARPS);
}

/* Forward rows that nobody walks down: each has its threads, which end with it. */
static bool is_plain(const struct wd_norm_rows *s, const struct wd_problem *problem, bool edges)
{
    int64_t bytes = wd_norm_bytes(wd_norm_tensor(problem, 0));
    bool stays = s->length * bytes % NORM_ROWS_UNIT == 0 && bytes == 2 &&
                 wd_norm_cluster_max(problem->device) > 1;
    if (edges) return s->length <= SHORT_LONGEST;
    return s->length <= (stays ? plain_columns(s, problem) : PLAIN_LONGEST);
}

/* Plain rows of two bytes an element that a warp has, of twice the columns a thread: nobody meets. Measured on an H200, us, and by two warps: layer norm of
 * 256 MB by rows of 1280 143 and 165, 1536 138 and 154, 2048 136 and 142; RMS norm 1536 133 and 144, 2048 134 and 133. A processor has 28 of them at once, so
 * that few lose: layer norm 4240 rows of 1536 14.7 and 12.6, 8480 19.4 and 20.0. */
static bool is_by_warp(const struct wd_norm_rows *s, const struct wd_problem *problem)
{
    int64_t whole = WARP * PLAIN_COLUMNS;
    return wd_norm_bytes(wd_norm_tensor(problem, 0)) == 2 && s->length > whole &&
           s->length <= WARP * WARP_COLUMNS && (is_centred(problem) || s->length % whole > 0) &&
           s->rows >= WARP_ROWS * problem->device->multiprocessors &&
           /* where that was measured */
           wd_norm_rows_computes(problem) && wd_norm_cluster_max(problem->device) > 1;
}

void wd_norm_rows_prepare(const struct wd_problem *problem, void *prepared)
{
    struct wd_norm_rows_work *w = prepared;
    bool forward = problem->node->op != WD_OP_NORM_BACKWARD;
    memset(w, 0, sizeof *w);
    (void)wd_norm_rows_see(&w->rows, problem);
    for (int edges = 0; edges < 2; ++edges) {
        w->plain[edges] = forward && is_plain(&w->rows, problem, edges);
        if (w->plain[edges]) continue;
        w->fits[edges] = wd_norm_rows_cut(&w->cut[edges], problem, &w->rows, edges);
        /* what blocks that stay have no cut for, too: where shared memory is small */
        w->plain[edges] = forward && !edges && !w->fits[edges] && w->rows.length <= PLAIN_LONGEST;
    }
    w->by_warp = w->plain[0] && is_by_warp(&w->rows, problem);
}

/* Where pointers lie is not known yet: enough for either way. */
static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_norm_rows_work w;
    int64_t most = 0;
    wd_norm_rows_prepare(problem, &w);
    for (int edges = 0; edges < 2; ++edges) {
        if (w.plain[edges]) continue;
        /* tensors that lie unlike one another go by passes too */
        if (edges || !w.fits[edges]) most = wd_most(most, wd_norm_long_workspace(problem));
        if (w.fits[edges]) most = wd_most(most, wd_norm_rows_posts(&w.cut[edges]));
    }
    return most;
}

/* ---- Emitting ---- */

struct norm_rows_args wd_norm_rows_args_of(const struct wd_call *call, const struct wd_norm_rows *s,
                                           const struct wd_device *device)
{
    struct wd_norm_places p = wd_norm_places(call->problem.node->op);
    struct norm_rows_args a;
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
    } else {
        a.given_mean = wd_norm_data(call, p.mean);
        a.given_inv_std = wd_norm_data(call, p.inv_std);
    }
    a.rows = s->rows;
    a.inverse = 1.0F / (float)s->length;
    a.length = (uint32_t)s->length;
    a.centered = is_centred(&call->problem);
    a.streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > device->l2_bytes;
    return a;
}

bool wd_norm_rows_whole(struct norm_rows_args *a, int64_t bytes)
{
    a->apart = (uintptr_t)a->y % NORM_ROWS_UNIT != (uintptr_t)a->x % NORM_ROWS_UNIT;
    return a->length * bytes % NORM_ROWS_UNIT == 0 && wd_norm_aligned(a->x) &&
           wd_norm_aligned(a->dy) && wd_norm_aligned(a->y) && wd_norm_aligned(a->scale.data) &&
           wd_norm_aligned(a->bias.data);
}

bool wd_norm_rows_alike(const struct norm_rows_args *a)
{
    uintptr_t x = (uintptr_t)a->x % NORM_ROWS_UNIT;
    return (uintptr_t)a->y % NORM_ROWS_UNIT == x &&
           (!a->dy || (uintptr_t)a->dy % NORM_ROWS_UNIT == x);
}

void wd_norm_rows_say(struct norm_rows_args *a, const struct wd_norm_cut *c)
{
    a->step = c->step;
    a->first = (uint32_t)c->first;
    a->early = (uint32_t)c->early;
    a->later = (uint32_t)c->later;
    a->lanes = (uint32_t)c->lanes;
    a->share = (uint32_t)c->share;
    a->groups = (uint32_t)c->groups;
    a->classes = (uint32_t)c->classes;
    a->cluster = (uint32_t)c->cluster;
    a->partials = (uint32_t)c->clusters;
    a->ahead = (uint32_t)c->ahead;
    a->ring = (uint32_t)c->ring;
    a->lag = (uint32_t)c->lag;
    a->late = c->late;
    if (c->left > 0) a->by_left = 1.0F / (float)c->left;
    if (c->clusters == 1) a->partial = NULL;
}

cudnnStatus_t wd_norm_rows_walk(const struct wd_call *call, struct wd_queue *queue,
                                struct wd_kernel_row *row, const struct wd_norm_cut *c,
                                struct norm_rows_args *a)
{
    void *counters = NULL;
    int64_t blocks = c->clusters * c->cluster;
    uint32_t threads = (uint32_t)(c->lanes * c->groups);
    wd_norm_rows_say(a, c);
    if (c->draws) {
        WD_TRY(queue->ops->counters(queue, &counters));
        a->counters = counters;
    }
    if (!c->posts) {
        return wd_emit_cluster_kernel(queue, row, blocks, threads, (uint32_t)c->cluster,
                                      (uint32_t)c->shared, a);
    }
    WD_TRY(queue->ops->counters(queue, &counters));
    a->counters = counters;
    a->posts = call->workspace;
    return wd_emit_meeting_kernel(queue, row, blocks, threads, (uint32_t)c->shared, a);
}

/* A row by a part of a warp, or by warps; small blocks of several. Runs: always, of rows that are not
 * short. */
static cudnnStatus_t emit_plain(struct wd_queue *queue, struct norm_rows_args *a, int type,
                                bool runs, bool by_warp)
{
    bool is_short = a->length <= SHORT_LONGEST;
    int64_t columns = is_short ? SHORT_COLUMNS : by_warp ? WARP_COLUMNS : PLAIN_COLUMNS;
    int64_t lanes = wd_ceil_div(a->length, columns);
    int64_t least = wd_ceil_div(a->rows, queue->device->multiprocessors);
    int64_t groups;
    int kernel = is_short  ? KERNEL_norm_rows_short_f32
                 : by_warp ? KERNEL_norm_rows_warp_f16 - NORM_ROWS_F16
                           : KERNEL_norm_rows_plain_f32;
    if (is_short) {
        int64_t up = 1;
        while (up < lanes) up *= 2;
        lanes = up;
        groups = SHORT_THREADS / lanes;
        least = wd_ceil_div(least, WARP / lanes) * (WARP / lanes);
    } else {
        lanes = wd_ceil_div(lanes, WARP) * WARP;
        int64_t most = wd_norm_cluster_max(queue->device) > 1 ? PLAIN_THREADS : SHORT_THREADS;
        groups = by_warp ? 1 : wd_most(1, most / lanes);
    }
    groups = wd_least(groups, least);
    a->lanes = (uint32_t)lanes;
    a->groups = (uint32_t)groups;
    a->first = (uint32_t)queue->device->multiprocessors;
    return wd_emit_kernel(queue, &kernel_rows[kernel + (runs ? 0 : NORM_ROWS_TYPES) + type],
                          wd_ceil_div(a->rows, groups), (uint32_t)(lanes * groups), 0, a);
}

cudnnStatus_t wd_norm_rows_forward(const struct wd_call *call, struct wd_queue *queue)
{
    int epsilon = call->problem.node->op == WD_OP_NORM_TRAINING ? (int)NORM_TRAIN_EPSILON
                                                                : (int)NORM_INFER_EPSILON;
    const struct wd_tensor *x = wd_call_tensor(call, 0);
    int type = wd_norm_type(x->dtype);
    struct wd_norm_rows_work own;
    const struct wd_norm_rows_work *w = wd_call_prepared(call, wd_norm_rows_prepare, &own);
    struct norm_rows_args a = wd_norm_rows_args_of(call, &w->rows, queue->device);
    bool whole = wd_norm_rows_whole(&a, wd_norm_bytes(x));
    const struct wd_norm_cut *c = &w->cut[!whole];
    a.epsilon = (float)wd_call_view(call, epsilon).value;
    if (w->plain[!whole]) return emit_plain(queue, &a, type, whole, whole && w->by_warp);
    if (!w->fits[!whole] || (c->odd && !wd_norm_rows_alike(&a))) {
        return wd_norm_long_forward(call, queue);
    }
    type += c->edges   ? c->draws ? KERNEL_norm_rows_odd_drawn_f16 - NORM_ROWS_F16
                                  : KERNEL_norm_rows_odd_f32
            : c->wide  ? KERNEL_norm_rows_wide_f16 - NORM_ROWS_F16
            : c->draws ? KERNEL_norm_rows_drawn_f16 - NORM_ROWS_F16
            : c->posts ? KERNEL_norm_rows_parted_f32
                       : KERNEL_norm_rows_bulk_f32;
    return wd_norm_rows_walk(call, queue, &kernel_rows[type], c, &a);
}

const struct wd_engine wd_engine_norm_inference_rows = {
    .name = "norm_inference_rows",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = wd_norm_rows_prepare,
    .prepared_bytes = sizeof(struct wd_norm_rows_work),
    .emit = wd_norm_rows_forward,
};

const struct wd_engine wd_engine_norm_training_rows = {
    .name = "norm_training_rows",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .prepare = wd_norm_rows_prepare,
    .prepared_bytes = sizeof(struct wd_norm_rows_work),
    .emit = wd_norm_rows_forward,
};
