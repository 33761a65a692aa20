/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling that is pooling: windows of whole pixels, whose padding counts as it does there. The
 * engines of pooling are asked in their order, and the first that takes the shape does the work. What
 * differs is left to the others: index tensors, padding that is a candidate of a maximum or repeats
 * the edge, and gradients of maxima where NaN is no candidate (a window without one hands its gradient
 * on here, and does not there). */
#include <math.h>
#include <string.h>

#include "ops/pooling/pooling_block.h"
#include "ops/resample/resample_vector.h"

/* The lengths in pixels; false where one is a fraction. */
static bool whole_lengths(const struct wd_resample_attr *p, struct wd_pool_attr *pool,
                          struct wd_reason *reason)
{
    memset(pool, 0, sizeof *pool);
    pool->spatial = p->spatial;
    pool->propagate_nan = p->propagate_nan;
    for (int s = 0; s < p->spatial; ++s) {
        const int64_t u = p->unit[s];
        WD_NEED(p->window[s] % u == 0 && p->stride[s] % u == 0 && p->pad_before[s] % u == 0 &&
                    p->pad_after[s] % u == 0,
                reason, NOT_SUPPORTED, "fractions of a pixel in dimension %d", s);
        pool->window[s] = p->window[s] / u;
        pool->stride[s] = p->stride[s] / u;
        pool->pad_before[s] = p->pad_before[s] / u;
        pool->pad_after[s] = p->pad_after[s] / u;
    }
    return true;
}

/* The problem as one of pooling. */
static bool pool_of(const struct wd_problem *problem, struct wd_pool_shape *pool,
                    struct wd_reason *reason)
{
    const struct wd_graph *graph = problem->graph;
    const struct wd_node *node = problem->node;
    const struct wd_resample_attr *p = &node->attr.resample;
    const bool exclude = p->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
    struct wd_resample_shape s;
    struct wd_pool_attr attr;
    bool edge;
    memset(pool, 0, sizeof *pool);
    if (!wd_resample_shape_of(problem, &s, reason)) return false;
    WD_NEED(s.max || exclude || p->mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, reason,
            NOT_SUPPORTED, "neither a maximum nor an average");
    WD_NEED(!s.max || !s.has_idx, reason, NOT_SUPPORTED, "with an index tensor");
    WD_NEED(!s.max || !s.backward || p->propagate_nan, reason, NOT_SUPPORTED,
            "the gradient of a maximum that leaves NaN out");
    edge = !s.max && !exclude && p->padding == CUDNN_EDGE_VAL_PAD && wd_resample_pads(&s);
    WD_NEED(exclude || p->padding == (s.max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD) ||
                (edge && !s.backward) || !wd_resample_pads(&s),
            reason, NOT_SUPPORTED, "padding mode %d", p->padding);
    if (!whole_lengths(p, &attr, reason)) return false;
    attr.mode = s.max     ? CUDNN_POOLING_MAX
                : exclude ? CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING
                          : CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
    if (!wd_pool_shape_from(&attr, s.backward,
                            wd_slot(graph, node, s.backward ? WD_RESAMPLE_BACK_DX : WD_RESAMPLE_X),
                            wd_slot(graph, node, s.backward ? WD_RESAMPLE_BACK_DY : WD_RESAMPLE_Y),
                            s.backward ? wd_slot(graph, node, WD_RESAMPLE_BACK_X) : NULL, pool,
                            reason)) {
        return false;
    }
    pool->lowest = -INFINITY;
    pool->edge = edge;
    return true;
}

bool wd_resample_halves_of(const struct wd_resample_shape *s, const struct wd_device *device,
                           struct wd_pool_job *job)
{
    const struct wd_resample_attr *p = s->attr;
    struct wd_pool_shape *pool = &job->shape;
    struct wd_reason reason;
    *pool = (struct wd_pool_shape){.type = s->type,
                                   .size = s->size,
                                   .backward = s->backward,
                                   .pixels = s->pixels,
                                   .inverse = 1.0,
                                   .outer = s->outer,
                                   .inner = s->inner};
    job->way = NULL;
    if (p->mode != CUDNN_RESAMPLE_BILINEAR || wd_resample_pads(s) ||
        (s->inner > 1 && s->inner % wd_resample_run(s) != 0)) {
        return false;
    }
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        const int axis = s->axis[d];
        const int64_t u = axis < 0 ? 1 : p->unit[axis];
        pool->image[d] = s->image[d];
        pool->windows[d] = s->windows[d];
        pool->window[d] = pool->stride[d] = 1;
        if (axis < 0) continue;
        if (p->window[axis] != 2 * u || p->stride[axis] != 2 * u || p->pad_before[axis] != 0) {
            return false;
        }
        pool->window[d] = pool->stride[d] = 2;
        pool->inverse /= 2;
    }
    job->way = s->backward ? &wd_pool_backward_vector : &wd_pool_forward_vector;
    if (!job->way->takes(device, pool, &reason)) job->way = NULL;
    else wd_pool_job_prepare(job, device);
    return job->way != NULL;
}

bool wd_resample_emits_halves(const struct wd_pool_job *job, const struct wd_resample_memory *m,
                              struct wd_queue *queue, cudnnStatus_t *status)
{
    struct wd_pool_memory memory = {
        .x = m->from, .dy = m->from, .out = m->out, .alpha = m->alpha, .streaming = m->streaming};
    if (!job->way || m->alpha == 0.0 || m->beta != 0.0 ||
        ((uintptr_t)m->from | (uintptr_t)m->out) % 16 != 0) {
        return false;
    }
    *status = wd_pool_job_emit(job, queue, &memory);
    return true;
}

/* Which engine's way it goes; null, and why none. */
static const struct wd_pool_way *way_of(const struct wd_problem *problem,
                                        struct wd_pool_shape *pool, struct wd_reason *reason)
{
    if (!pool_of(problem, pool, reason)) return NULL;
    if (pool->edge) {
        return wd_pool_slide.takes(problem->device, pool, reason) ? &wd_pool_slide : NULL;
    }
    return wd_pool_way_of(problem->device, pool, reason);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_pool_shape pool;
    return way_of(problem, &pool, reason) != NULL;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_reason reason;
    struct wd_pool_shape pool;
    const struct wd_pool_way *way = way_of(problem, &pool, &reason);
    return way && way->workspace ? way->workspace(&pool) : 0;
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct wd_pool_job *w = prepared;
    struct wd_reason reason;
    w->way = way_of(problem, &w->shape, &reason);
    if (w->way) wd_pool_job_prepare(w, problem->device);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const bool backward = call->problem.node->op == WD_OP_RESAMPLE_BACKWARD;
    const int out = backward ? WD_RESAMPLE_BACK_DX : WD_RESAMPLE_Y;
    struct wd_pool_job own;
    const struct wd_pool_job *w = wd_call_prepared(call, prepare, &own);
    struct wd_pool_memory m = {
        .out = wd_call_data(call, out),
        .workspace = call->workspace,
        .alpha = call->scalars[WD_RESAMPLE_ALPHA],
        .beta = call->scalars[WD_RESAMPLE_BETA],
        .streaming = wd_tensor_extent(wd_call_tensor(call, out)) > queue->device->l2_bytes,
    };
    if (!w->way) return CUDNN_STATUS_INTERNAL_ERROR;
    if (!backward) m.x = wd_call_data(call, WD_RESAMPLE_X);
    else if (w->shape.max) m.x = wd_call_data(call, WD_RESAMPLE_BACK_X);
    if (backward) m.dy = wd_call_data(call, WD_RESAMPLE_BACK_DY);
    return wd_pool_job_emit(w, queue, &m);
}

const struct wd_engine wd_engine_resample_forward_pool = {
    .name = "resample_forward_pool",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_pool_job),
    .emit = emit,
};

const struct wd_engine wd_engine_resample_backward_pool = {
    .name = "resample_backward_pool",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_GPU,
    .match = match,
    .workspace = workspace,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct wd_pool_job),
    .emit = emit,
};
