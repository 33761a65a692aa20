/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of layer norm and RMS norm on the GPU over rows without gaps: see norm_rows.c, and
 * norm_rows_cut.c for how rows are cut. */
#include "base/sizes.h"
#include "ops/norm/norm_rows.h"
#include "ops/norm/norm_wide.h"

#define WD_KERNELS_MODULE norm_rows_backward
#define WD_KERNELS_ROWS "ops/norm/norm_rows_backward_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WARP = 32,
    FEW_ELEMENTS = 1 << 18,
    FEW_ROWS = 512,
    FEW_THREADS = 512,     /* of a block, at least */
    FINISH_LEAST = 256,    /* threads of a block of the kernel that adds partial sums */
    FINISH_THREADS = 2048, /* that a processor has at once of the kernel that adds partial sums */
};

static bool wants_params(const struct wd_problem *problem)
{
    return wd_norm_tensor(problem, NORM_GRAD_DSCALE) || wd_norm_tensor(problem, NORM_GRAD_DBIAS);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_norm_rows s = {.rows = 0};
    if (!wd_norm_rows_match(problem, &s, reason)) return false;
    if (!wd_norm_has_statistics(problem, reason)) return false;
    WD_NEED(s.rows <= INT32_MAX && wd_norm_rows_fit(problem, &s), reason, NOT_SUPPORTED_SHAPE,
            "%lld rows of %lld elements are too many, or too long", (long long)s.rows,
            (long long)s.length);
    return true;
}

/* Where pointers lie is not known yet: enough for either way. */
static int64_t workspace(const struct wd_problem *problem)
{
    struct wd_norm_rows s;
    int64_t most = 0;
    (void)wd_norm_rows_see(&s, problem);
    for (int edges = 0; edges < 2; ++edges) {
        struct wd_norm_cut c;
        int64_t bytes;
        /* tensors that lie unlike one another go by passes too */
        if (edges) most = wd_most(most, wd_norm_long_workspace(problem));
        if (!wd_norm_rows_cut(&c, problem, &s, edges)) {
            most = wd_most(most, wd_norm_long_workspace(problem));
            continue;
        }
        bytes = wd_norm_rows_posts(&c);
        if (c.clusters > 1 && wants_params(problem)) {
            bytes += c.clusters * 2 * s.length * (int64_t)sizeof(float);
        }
        most = wd_most(most, bytes);
    }
    return most;
}

cudnnStatus_t wd_norm_rows_finish(struct wd_queue *queue, const struct norm_rows_args *of)
{
    struct norm_rows_args a = *of;
    int64_t wanted = (of->dscale.data ? 1 : 0) + (of->dbias.data ? 1 : 0);
    int64_t slices = 1;
    int64_t threads;
    /* in one wave */
    while (slices < NORM_ROWS_SLICES && slices < a.partials &&
           2 * wanted * slices * (int64_t)a.length <=
               (int64_t)FINISH_THREADS * queue->device->multiprocessors) {
        slices *= 2;
    }
    a.groups = (uint32_t)slices;
    threads = wd_most(slices * NORM_ROWS_TILE, FINISH_LEAST);
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_rows_finish],
                          wanted * wd_ceil_div(a.length, threads / slices), (uint32_t)threads, 0,
                          &a);
}

static bool overlap(const void *a, const void *b, int64_t bytes)
{
    uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;
    return p < q + (uintptr_t)bytes && q < p + (uintptr_t)bytes;
}

/* Few rows: blocks that add up columns read x and dy again, which are in the cache, so that there is
 * no second kernel. Nobody may write there then. */
static bool is_few(const struct norm_rows_args *a, int64_t bytes)
{
    int64_t all = a->rows * a->length;
    return (a->dscale.data || a->dbias.data) && all <= FEW_ELEMENTS && a->rows <= FEW_ROWS &&
           a->length <= NORM_ROWS_FEW_COLUMNS * NORM_ROWS_THREADS &&
           !overlap(a->y, a->x, all * bytes) && !overlap(a->y, a->dy, all * bytes);
}

static cudnnStatus_t emit_few(struct wd_queue *queue, const struct norm_rows_args *a, int type)
{
    int64_t threads = wd_ceil_div(a->length, 4 * WARP) * WARP;
    threads = wd_clamp(threads, FEW_THREADS, NORM_ROWS_THREADS);
    return wd_emit_kernel(queue, &kernel_rows[KERNEL_norm_rows_few_f32 + type],
                          a->rows + wd_ceil_div(a->length, WARP), (uint32_t)threads, 0, a);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    static const int first[][2] = {
        {KERNEL_norm_rows_backward_8_f32, KERNEL_norm_rows_backward_8_edges_f32},
        {KERNEL_norm_rows_backward_24_f32, KERNEL_norm_rows_backward_odd_f32},
        {KERNEL_norm_rows_backward_32_f32, KERNEL_norm_rows_backward_odd_f32},
        {KERNEL_norm_rows_backward_squares_f32, KERNEL_norm_rows_backward_odd_f32},
        {KERNEL_norm_rows_backward_strips_f32, KERNEL_norm_rows_backward_odd_f32},
        {KERNEL_norm_rows_backward_strips_16_f32, KERNEL_norm_rows_backward_odd_f32},
    };
    static const int held[] = {
        0, /* by ways, as above: of short rows there are none */
        KERNEL_norm_rows_backward_held_24_f16,
        KERNEL_norm_rows_backward_held_32_f16, /* there is but fp32 that is not held */
        KERNEL_norm_rows_backward_held_squares_f16,
    };
    static const int odd_held[] = {
        0,
        0, /* off the boundaries all have 32 columns a thread */
        KERNEL_norm_rows_backward_odd_held_f16,
        KERNEL_norm_rows_backward_odd_held_squares_f16,
    };
    const struct wd_tensor *x = wd_call_tensor(call, 0);
    int type = wd_norm_type(x->dtype);
    struct wd_norm_rows_work own;
    const struct wd_norm_rows_work *w = wd_call_prepared(call, wd_norm_rows_prepare, &own);
    struct norm_rows_args a = wd_norm_rows_args_of(call, &w->rows, queue->device);
    bool whole = wd_norm_rows_whole(&a, wd_norm_bytes(x));
    const struct wd_norm_cut *c = &w->cut[!whole];
    bool by_posts;
    if (is_few(&a, wd_norm_bytes(x))) return emit_few(queue, &a, type);
    if (!w->fits[!whole] || (c->odd && !wd_norm_rows_alike(&a))) {
        return wd_norm_long_backward(call, queue);
    }
    if (a.dscale.data || a.dbias.data) {
        char *behind = (char *)call->workspace + wd_norm_rows_posts(c);
        a.partial = (float *)(void *)behind;
    }
    by_posts = c->posts && first[c->way][0] == KERNEL_norm_rows_backward_32_f32;
    type += by_posts  ? KERNEL_norm_rows_backward_posts_f32
            : c->held ? (c->odd ? odd_held : held)[c->way] - NORM_ROWS_F16
                      : first[c->way][c->edges];
    WD_TRY(wd_norm_rows_walk(call, queue, &kernel_rows[type], c, &a));
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
    .prepare = wd_norm_rows_prepare,
    .prepared_bytes = sizeof(struct wd_norm_rows_work),
    .emit = emit,
};
