/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer norm and RMS norm on the GPU over rows without gaps of any length, in all phases, and backward
 * also without statistics: where norm_rows has no room or too little to go by. norm_long_args.h says
 * how work is cut; the cut depends on shape and device alone. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_long_args.h"
#include "ops/norm/norm_wide.h"

#define WD_KERNELS_MODULE norm_long
#define WD_KERNELS_ROWS "ops/norm/norm_long_kernels.def"
#include "ops/kernels_host.inc"

enum {
    SEGMENT = 8192,       /* columns, of a row that has several */
    SEGMENT_LEAST = 2048, /* where they are few: what a block has at once */
    WARPS = NORM_LONG_THREADS / NORM_LONG_WARP,
    BLOCKS_A_PROCESSOR = 8, /* over columns */
    ALIGNMENT = 16,
};

/* ---- The cut ---- */

struct cut {
    int64_t lanes; /* of a row, or a segment of one */
    int64_t segment;
    int64_t segments;
    int64_t across;
    int64_t tiles;
    int64_t slab;
    int64_t slabs;
};

static int64_t power_above(int64_t count, int64_t least, int64_t most)
{
    while (least < count && least < most) least *= 2;
    return least;
}

static struct cut cut_of(const struct wd_norm_rows *s, const struct wd_device *device)
{
    int64_t threads = wd_ceil_div(s->length, NORM_LONG_COLUMNS);
    int64_t down;
    struct cut c;
    c.lanes = power_above(threads, NORM_LONG_WARP, NORM_LONG_THREADS);
    c.segment = SEGMENT;
    while (c.segment > SEGMENT_LEAST &&
           s->rows * wd_ceil_div(s->length, c.segment) < 2 * (int64_t)device->multiprocessors) {
        c.segment /= 2;
    }
    c.segments = wd_ceil_div(s->length, c.segment);
    c.across = power_above(threads, 1, NORM_LONG_THREADS);
    c.tiles = wd_ceil_div(s->length, c.across * NORM_LONG_COLUMNS);
    down = NORM_LONG_THREADS / c.across;
    c.slabs = wd_clamp((int64_t)BLOCKS_A_PROCESSOR * device->multiprocessors / c.tiles, 1,
                       wd_ceil_div(s->rows, down));
    c.slab = wd_ceil_div(s->rows, c.slabs);
    c.slabs = wd_ceil_div(s->rows, c.slab);
    return c;
}

/* ---- Matching ---- */

bool wd_norm_long_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_norm_rows s = {.rows = 0};
    if (!wd_norm_rows_match(problem, &s, reason)) return false;
    WD_NEED(s.length <= INT32_MAX && s.rows * wd_ceil_div(s.length, SEGMENT_LEAST) <= INT32_MAX,
            reason, NOT_SUPPORTED_SHAPE, "%lld rows of %lld elements are too many to be counted",
            (long long)s.rows, (long long)s.length);
    return true;
}

/* ---- The workspace ---- */

static bool is_backward(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_NORM_BACKWARD;
}

static bool is_given(const struct wd_problem *problem)
{
    switch (problem->node->op) {
    case WD_OP_NORM_INFERENCE:
        return wd_slot(problem->graph, problem->node, NORM_INFER_INV_STD) != NULL;
    case WD_OP_NORM_BACKWARD:
        return wd_slot(problem->graph, problem->node, NORM_GRAD_INV_STD) != NULL;
    default: return false;
    }
}

static bool wants_params(const struct wd_problem *problem)
{
    return is_backward(problem) && (wd_slot(problem->graph, problem->node, NORM_GRAD_DSCALE) ||
                                    wd_slot(problem->graph, problem->node, NORM_GRAD_DBIAS));
}

/* Bytes of each part, 0 of what is not there. */
struct layout {
    int64_t parts;
    int64_t numbers;
    int64_t sums;
    int64_t partial;
};

static int64_t aligned_bytes(int64_t bytes)
{
    return wd_ceil_div(bytes, ALIGNMENT) * ALIGNMENT;
}

static struct layout layout_of(const struct wd_problem *problem, const struct wd_norm_rows *s,
                               const struct cut *c)
{
    struct layout l;
    bool backward = is_backward(problem);
    bool given = is_given(problem);
    memset(&l, 0, sizeof l);
    if (c->segments > 1 && (backward || !given)) {
        l.parts = aligned_bytes(s->rows * c->segments * 3 * (int64_t)sizeof(double));
    }
    if (!given) l.numbers = s->rows * (int64_t)sizeof(struct norm_long_numbers);
    if (backward) l.sums = aligned_bytes(s->rows * 2 * (int64_t)sizeof(float));
    if (wants_params(problem) && c->slabs > 1) {
        l.partial = c->slabs * 2 * s->length * (int64_t)sizeof(float);
    }
    return l;
}

/* Whether all blocks share every row: where something is to be found of rows, and is not given. */
static bool shares_rows(struct wd_norm_wide *c, const struct wd_problem *problem,
                        const struct wd_norm_rows *s)
{
    return is_backward(problem) == is_given(problem) && wd_norm_wide_cut(c, problem, s);
}

int64_t wd_norm_long_workspace(const struct wd_problem *problem)
{
    struct wd_norm_rows s;
    struct wd_norm_wide wide;
    struct cut c;
    struct layout l;
    (void)wd_norm_rows_see(&s, problem);
    if (shares_rows(&wide, problem, &s)) return wide.parts;
    c = cut_of(&s, problem->device);
    l = layout_of(problem, &s, &c);
    return l.parts + l.numbers + l.sums + l.partial;
}

/* ---- Emitting ---- */

static struct norm_long_args args_of(const struct wd_call *call, const struct wd_norm_rows *s,
                                     const struct cut *c, const struct wd_device *device)
{
    struct layout l = layout_of(&call->problem, s, c);
    char *at = call->workspace;
    struct norm_long_args a;
    memset(&a, 0, sizeof a);
    a.of = wd_norm_rows_args_of(call, s, device);
    a.of.lanes = (uint32_t)c->lanes;
    a.of.partials = (uint32_t)c->slabs;
    a.slab = c->slab;
    a.segment = (uint32_t)c->segment;
    a.segments = (uint32_t)c->segments;
    a.across = (uint32_t)c->across;
    a.tiles = (uint32_t)c->tiles;
    if (l.parts > 0) a.parts = (double *)(void *)at;
    at += l.parts;
    if (l.numbers > 0) a.numbers = (struct norm_long_numbers *)(void *)at;
    at += l.numbers;
    if (l.sums > 0) a.sums = (float *)(void *)at;
    at += l.sums;
    if (l.partial > 0) a.of.partial = (float *)(void *)at;
    return a;
}

/* The first of six kernels, then by what columns are and by type. */
static struct wd_kernel_row *kernel_of(int first, const struct wd_call *call,
                                       const struct norm_long_args *a)
{
    bool runs = a->of.length % NORM_LONG_COLUMNS == 0 && wd_norm_aligned(a->of.x) &&
                wd_norm_aligned(a->of.dy) && wd_norm_aligned(a->of.y) &&
                wd_norm_aligned(a->of.scale.data) && wd_norm_aligned(a->of.bias.data);
    int type = wd_norm_type(wd_call_tensor(call, 0)->dtype);
    return &kernel_rows[first + (runs ? 0 : NORM_ROWS_TYPES) + type];
}

static int64_t segment_blocks(const struct norm_long_args *a)
{
    return wd_ceil_div(a->of.rows * a->segments, NORM_LONG_THREADS / (int64_t)a->of.lanes);
}

static cudnnStatus_t emit_statistics(const struct wd_call *call, struct wd_queue *queue,
                                     const struct norm_long_args *a)
{
    WD_TRY(wd_emit_kernel(queue, kernel_of(KERNEL_norm_long_statistics_f32, call, a),
                          segment_blocks(a), NORM_LONG_THREADS, 0, a));
    if (a->segments == 1) return CUDNN_STATUS_SUCCESS;
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_long_join_statistics],
                          wd_ceil_div(a->of.rows, WARPS), NORM_LONG_THREADS, 0, a);
}

cudnnStatus_t wd_norm_long_forward(const struct wd_call *call, struct wd_queue *queue)
{
    int epsilon = call->problem.node->op == WD_OP_NORM_TRAINING ? (int)NORM_TRAIN_EPSILON
                                                                : (int)NORM_INFER_EPSILON;
    struct wd_norm_rows s;
    struct wd_norm_wide wide;
    struct cut c;
    struct norm_long_args a;
    (void)wd_norm_rows_see(&s, &call->problem);
    if (shares_rows(&wide, &call->problem, &s)) {
        struct norm_rows_args of = wd_norm_rows_args_of(call, &s, queue->device);
        of.epsilon = (float)wd_call_view(call, epsilon).value;
        return wd_norm_wide_emit(call, queue, &wide, &of);
    }
    c = cut_of(&s, queue->device);
    a = args_of(call, &s, &c, queue->device);
    a.of.epsilon = (float)wd_call_view(call, epsilon).value;
    if (a.numbers) WD_TRY(emit_statistics(call, queue, &a));
    return wd_emit_kernel(queue, kernel_of(KERNEL_norm_long_apply_f32, call, &a),
                          segment_blocks(&a), NORM_LONG_THREADS, 0, &a);
}

cudnnStatus_t wd_norm_long_backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_rows s;
    struct wd_norm_wide wide;
    struct cut c;
    struct norm_long_args a;
    (void)wd_norm_rows_see(&s, &call->problem);
    if (shares_rows(&wide, &call->problem, &s)) {
        struct norm_rows_args of = wd_norm_rows_args_of(call, &s, queue->device);
        return wd_norm_wide_emit(call, queue, &wide, &of);
    }
    c = cut_of(&s, queue->device);
    a = args_of(call, &s, &c, queue->device);
    a.of.epsilon = (float)wd_call_view(call, NORM_GRAD_EPSILON).value;
    if (a.numbers) WD_TRY(emit_statistics(call, queue, &a));
    WD_TRY(wd_emit_kernel(queue, kernel_of(KERNEL_norm_long_sums_f32, call, &a), segment_blocks(&a),
                          NORM_LONG_THREADS, 0, &a));
    if (a.segments > 1) {
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_long_join_sums],
                              wd_ceil_div(a.of.rows, WARPS), NORM_LONG_THREADS, 0, &a));
    }
    WD_TRY(wd_emit_kernel(queue, kernel_of(KERNEL_norm_long_gradient_f32, call, &a),
                          c.tiles * c.slabs, NORM_LONG_THREADS, 0, &a));
    return a.of.partial ? wd_norm_rows_finish(queue, &a.of) : CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_norm_inference_long = {
    .name = "norm_inference_long",
    .op = WD_OP_NORM_INFERENCE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_norm_long_match,
    .workspace = wd_norm_long_workspace,
    .emit = wd_norm_long_forward,
};
