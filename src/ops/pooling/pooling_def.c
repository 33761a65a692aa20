/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for pooling, on both devices: take whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/pooling/pooling_args.h"
#include "ops/windows.h"

#define WD_DEF_MODULE pooling_def
#define WD_DEF_BODY "ops/pooling/pooling_def.h"
#define WD_DEF_PASSES "ops/pooling/pooling_passes.def"
#include "ops/definition_host.inc"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    /* Windows whose maxima are remembered at a time: 4 MiB, so that with a reduction's partial sums
     * the scratch of a call without a workspace argument stays below 8 MiB. An image with more is
     * done without: every element looks at all of each window that covers it. */
    ARGMAX_MAX = 1 << 19,
};

static const struct wd_window_pass forward_pass = {&wd_pass_pool_forward,
                                                   &wd_pass_pool_forward_long};
static const struct wd_window_pass argmax_pass = {&wd_pass_pool_argmax, &wd_pass_pool_argmax_long};

/* Elements of the largest part of a window that lies in the image. */
static int64_t window_terms(const struct wd_pool_attr *attr, const int64_t *image)
{
    int64_t terms = 1;
    for (int s = 0; s < attr->spatial; ++s) {
        terms *= attr->window[s] < image[s] ? attr->window[s] : image[s];
    }
    return terms;
}

static int64_t forward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, FORWARD_X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, FORWARD_Y);
    return wd_window_scratch(&forward_pass, wd_problem_acc(problem), wd_tensor_count(y),
                             window_terms(&problem->node->attr.pool, x->dim + 2));
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct pool_args args = {
        .x = wd_call_view(call, FORWARD_X),
        .y = wd_call_view(call, FORWARD_Y),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.pool,
    };
    return wd_emit_windows(queue, &forward_pass, wd_problem_acc(&call->problem), &args,
                           wd_view_count(&args.y), window_terms(&args.attr, args.x.dim + 2),
                           call->workspace);
}

static struct wd_window_batches batches_of(const struct wd_pool_attr *attr, const int64_t *dx,
                                           const int64_t *dy)
{
    struct wd_window_batches batches =
        wd_window_batches(attr->spatial, dx, dy, window_terms(attr, dx + 2));
    if (pool_is_max(attr)) wd_window_remember(&batches, ARGMAX_MAX);
    return batches;
}

static int64_t backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, BACKWARD_DY);
    const struct wd_tensor *dx = wd_slot(problem->graph, problem->node, BACKWARD_DX);
    struct wd_window_batches batches = batches_of(&problem->node->attr.pool, dx->dim, dy->dim);
    return wd_window_batches_scratch(&batches, &argmax_pass, wd_problem_acc(problem));
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct pool_args args = {
        .x = wd_call_view(call, BACKWARD_X),
        .y = wd_call_view(call, BACKWARD_DY),
        .dx = wd_call_view(call, BACKWARD_DX),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.pool,
    };
    const struct wd_window_args batch = {&args, &args.first_window, &args.first_element,
                                         &args.argmax};
    struct wd_window_batches batches = batches_of(&args.attr, args.dx.dim, args.y.dim);
    return wd_emit_window_batches(queue, &batches, &argmax_pass, &wd_pass_pool_backward,
                                  wd_problem_acc(&call->problem), &batch, wd_view_count(&args.dx),
                                  call->workspace);
}

const struct wd_engine wd_engine_pool_forward_def_cpu = {
    .name = "pool_forward_def",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = forward_workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_pool_forward_def_gpu = {
    .name = "pool_forward_def",
    .op = WD_OP_POOL_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = forward_workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_pool_backward_def_cpu = {
    .name = "pool_backward_def",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = backward_workspace,
    .emit = backward,
};

const struct wd_engine wd_engine_pool_backward_def_gpu = {
    .name = "pool_backward_def",
    .op = WD_OP_POOL_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = backward_workspace,
    .emit = backward,
};
