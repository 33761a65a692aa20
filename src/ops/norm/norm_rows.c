/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer norm and RMS norm on the GPU at the speed of memory, in all phases, where what is normalized
 * is a row without gaps: the innermost dimensions, packed. norm_rows_args.h says how a row is cut;
 * the cut depends on shape and device alone. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_gpu.h"
#include "ops/norm/norm_rows.h"

#define WD_KERNELS_MODULE norm_rows
#define WD_KERNELS_ROWS "ops/norm/norm_rows_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    FEW_THREADS = 256,        /* of a block whose rows are of warps */
    PROCESSOR_THREADS = 1024, /* that a processor has at once, for their registers */
    PART_PROCESSORS = 16,     /* of a part of the chip, at least */
    FINISH_THREADS = 2048, /* that a processor has at once of the kernel that adds partial sums */
};

/* Kernels, the first of each three. */
struct kernels {
    int runs;
    int singles;
    int ahead; /* bytes of a thread that are in shared memory, of runs */
    int fixed; /* bytes of a block besides, at most */
};
static const struct kernels forward = {
    KERNEL_norm_rows_forward_f32, KERNEL_norm_rows_forward_singles_f32, 16 * NORM_ROWS_AHEAD, 4096};
static const struct kernels backward = {KERNEL_norm_rows_backward_f32,
                                        KERNEL_norm_rows_backward_singles_f32,
                                        2 * 16 * NORM_ROWS_AHEAD, 20480};

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

/* ---- The cut ---- */

struct cut {
    int64_t lanes; /* of a row in each block */
    int64_t groups;
    int64_t cluster;
    int64_t clusters;
};

static int64_t threads_of(const struct cut *c)
{
    return c->lanes * c->groups;
}

static int64_t longest(const struct wd_device *device)
{
    return (int64_t)NORM_ROWS_THREADS * NORM_ROWS_COLUMNS * wd_norm_cluster_max(device);
}

/* Lanes of each block in a row of `units`; 0: too many. */
static int64_t lanes_of(int64_t units, int64_t cluster)
{
    int64_t lanes = wd_ceil_div(wd_ceil_div(units, cluster), WARP) * WARP;
    return lanes <= NORM_ROWS_THREADS ? lanes : 0;
}

/* The smallest cluster that a row fits. */
static void cut_long(struct cut *c, int64_t units)
{
    for (c->cluster = 1; lanes_of(units, c->cluster) == 0;) c->cluster *= 2;
    c->lanes = lanes_of(units, c->cluster);
}

/* A cluster stays within a part of the chip, which has a whole number of them; a pair always fits. */
static int64_t clusters_at_once(const struct cut *c, const struct wd_device *device)
{
    int64_t each = PROCESSOR_THREADS / threads_of(c);
    int64_t parts = device->multiprocessors / PART_PROCESSORS;
    if (c->cluster <= 2) return wd_most(1, device->multiprocessors * each / c->cluster);
    return wd_most(1, parts * (PART_PROCESSORS * each / c->cluster));
}

static void cut(struct cut *c, const struct wd_norm_rows *s, const struct wd_device *device)
{
    int64_t units = wd_ceil_div(s->length, NORM_ROWS_COLUMNS);
    int64_t most = 1;
    int64_t each;
    int64_t wanted;
    int64_t at_once;
    c->cluster = 1;
    c->lanes = 1;
    if (units <= WARP) {
        while (c->lanes < units) c->lanes *= 2;
        most = FEW_THREADS / c->lanes;
    } else {
        cut_long(c, units);
        if (c->cluster == 1) most = wd_most(1, NORM_ROWS_BESIDE / c->lanes);
    }
    /* rows go side by side where there are enough for all processors */
    each = c->lanes < WARP ? WARP / c->lanes : 1;
    c->groups = wd_ceil_div(wd_ceil_div(s->rows, device->multiprocessors), each) * each;
    c->groups = wd_least(c->groups, most);
    wanted = wd_ceil_div(s->rows, c->groups);
    at_once = clusters_at_once(c, device);
    /* as many rows for each */
    c->clusters = wd_ceil_div(wanted, wd_ceil_div(wanted, at_once));
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
    if (!wd_norm_has_statistics(problem, reason)) return false;
    WD_NEED(s.length <= longest(problem->device), reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements are longer than %lld", (long long)s.length,
            (long long)longest(problem->device));
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_norm_rows s;
    struct cut c;
    (void)wd_norm_rows_see(&s, problem);
    cut(&c, &s, problem->device);
    if (c.clusters == 1) return 0;
    if (!wd_norm_tensor(problem, NORM_GRAD_DSCALE) && !wd_norm_tensor(problem, NORM_GRAD_DBIAS)) {
        return 0;
    }
    return c.clusters * 2 * s.length * (int64_t)sizeof(float);
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
    a.centered = call->problem.node->attr.norms.mode != CUDNN_RMS_NORM;
    a.streaming = wd_tensor_extent(wd_call_tensor(call, p.x)) > device->l2_bytes;
    return a;
}

static struct norm_rows_args args_of(const struct wd_call *call, const struct wd_norm_rows *s,
                                     const struct cut *c, const struct wd_device *device)
{
    struct norm_rows_args a = wd_norm_rows_args_of(call, s, device);
    a.step = c->clusters * c->groups;
    a.lanes = (uint32_t)c->lanes;
    a.groups = (uint32_t)c->groups;
    a.cluster = (uint32_t)c->cluster;
    a.partials = (uint32_t)c->clusters;
    return a;
}

static cudnnStatus_t emit_rows(const struct wd_call *call, struct wd_queue *queue,
                               const struct kernels *which, const struct cut *c,
                               const struct norm_rows_args *a)
{
    int64_t shared = threads_of(c) * which->ahead;
    bool runs = a->length % NORM_ROWS_COLUMNS == 0 && wd_norm_aligned(a->x) &&
                wd_norm_aligned(a->dy) && wd_norm_aligned(a->y) && wd_norm_aligned(a->scale.data) &&
                wd_norm_aligned(a->bias.data) &&
                shared + which->fixed <= queue->device->shared_per_block;
    int type = wd_norm_type(wd_call_tensor(call, 0)->dtype);
    return wd_emit_cluster_kernel(queue, &kernel_rows[(runs ? which->runs : which->singles) + type],
                                  c->clusters * c->cluster, (uint32_t)threads_of(c),
                                  (uint32_t)c->cluster, runs ? (uint32_t)shared : 0, a);
}

static cudnnStatus_t emit_forward(const struct wd_call *call, struct wd_queue *queue)
{
    int epsilon = call->problem.node->op == WD_OP_NORM_TRAINING ? (int)NORM_TRAIN_EPSILON
                                                                : (int)NORM_INFER_EPSILON;
    struct wd_norm_rows s;
    struct cut c;
    struct norm_rows_args a;
    (void)wd_norm_rows_see(&s, &call->problem);
    cut(&c, &s, queue->device);
    a = args_of(call, &s, &c, queue->device);
    a.epsilon = (float)wd_call_view(call, epsilon).value;
    return emit_rows(call, queue, &forward, &c, &a);
}

cudnnStatus_t wd_norm_rows_finish(struct wd_queue *queue, const struct norm_rows_args *a)
{
    int64_t tiles;
    int64_t slices = 1;
    tiles = wd_ceil_div(a->length, NORM_ROWS_TILE);
    /* in one wave */
    while (slices < NORM_ROWS_SLICES && slices < a->partials &&
           4 * slices * (int64_t)a->length <=
               (int64_t)FINISH_THREADS * queue->device->multiprocessors) {
        slices *= 2;
    }
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_rows_finish], 2 * tiles,
                          (uint32_t)(slices * NORM_ROWS_TILE), 0, a);
}

static cudnnStatus_t emit_backward(const struct wd_call *call, struct wd_queue *queue)
{
    bool wants;
    struct wd_norm_rows s;
    struct cut c;
    struct norm_rows_args a;
    (void)wd_norm_rows_see(&s, &call->problem);
    cut(&c, &s, queue->device);
    a = args_of(call, &s, &c, queue->device);
    wants = a.dscale.data || a.dbias.data;
    if (wants && c.clusters > 1) a.partial = call->workspace;
    WD_TRY(emit_rows(call, queue, &backward, &c, &a));
    if (!a.partial) return CUDNN_STATUS_SUCCESS;
    return wd_norm_rows_finish(queue, &a);
}

const struct wd_engine wd_engine_norm_inference_rows = {
    .name = "norm_inference_rows",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit_forward,
};

const struct wd_engine wd_engine_norm_training_rows = {
    .name = "norm_training_rows",
    .op = WD_OP_NORM_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit_forward,
};

const struct wd_engine wd_engine_norm_backward_rows = {
    .name = "norm_backward_rows",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit_backward,
};
