/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of layer norm and RMS norm on the GPU over rows without gaps: see norm_rows.c, and
 * norm_rows_cut.c for how rows are cut. */
#include "base/sizes.h"
#include "ops/norm/norm_rows.h"

#define WD_KERNELS_MODULE norm_rows_backward
#define WD_KERNELS_ROWS "ops/norm/norm_rows_backward_kernels.def"
#include "ops/kernels_host.inc"

enum {
    FINISH_THREADS = 2048, /* that a processor has at once of the kernel that adds partial sums */
};

static bool wants_params(const struct wd_problem *problem)
{
    return wd_norm_tensor(problem, NORM_GRAD_DSCALE) || wd_norm_tensor(problem, NORM_GRAD_DBIAS);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_norm_rows s = {.rows = 0};
    struct wd_norm_cut c;
    if (!wd_norm_rows_match(problem, &s, reason)) return false;
    if (!wd_norm_has_statistics(problem, reason)) return false;
    WD_NEED(wd_norm_rows_cut(&c, problem, &s, true), reason, NOT_SUPPORTED_SHAPE,
            "rows of %lld elements are too long", (long long)s.length);
    return true;
}

/* Where pointers lie is not known yet: enough for either way. */
static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_norm_rows s;
    int64_t most = 0;
    if (!wants_params(problem)) return 0;
    (void)wd_norm_rows_see(&s, problem);
    for (int edges = 0; edges < 2; ++edges) {
        struct wd_norm_cut c;
        (void)wd_norm_rows_cut(&c, problem, &s, edges);
        if (c.clusters == c.together) continue;
        most = wd_most(most, c.clusters * 2 * s.length * (int64_t)sizeof(float));
    }
    return most;
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

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_norm_rows s;
    struct norm_rows_args a;
    (void)wd_norm_rows_see(&s, &call->problem);
    a = wd_norm_rows_args_of(call, &s, queue->device);
    if (a.dscale.data || a.dbias.data) a.partial = call->workspace;
    WD_TRY(wd_norm_rows_emit(call, queue, kernel_rows, &a));
    if (!a.partial) return CUDNN_STATUS_SUCCESS;
    return wd_norm_rows_finish(queue, &a);
}

const struct wd_engine wd_engine_norm_backward_rows = {
    .name = "norm_backward_rows",
    .op = WD_OP_NORM_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
