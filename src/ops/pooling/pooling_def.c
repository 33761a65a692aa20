/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for pooling, on both devices: take whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/pooling/pooling_args.h"

#define WD_DEF_MODULE pooling_def
#define WD_DEF_BODY "ops/pooling/pooling_def.h"
#define WD_DEF_PASSES "ops/pooling/pooling_passes.def"
#include "ops/definition_host.inc"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    /* Windows whose maxima are remembered at a time: 4 MiB, so that with a reduction's partial sums
     * the scratch of a call without a workspace argument stays below 8 MiB. */
    ARGMAX_MAX = 1 << 19,
    /* From this size on a window is a reduction, unless there are enough windows for all threads
     * of a device: then each is scanned by one. A function of the shape alone, so that every device
     * adds in the same order. */
    LONG_WINDOW = 64,
    MANY_WINDOWS = 1 << 16,
};

/* Elements of the largest part of a window that lies in the image. */
static int64_t window_terms(const struct wd_pool_attr *attr, const int64_t *image)
{
    int64_t terms = 1;
    for (int s = 0; s < attr->spatial; ++s) {
        terms *= attr->window[s] < image[s] ? attr->window[s] : image[s];
    }
    return terms;
}

static bool is_long(int64_t windows, int64_t terms)
{
    return terms >= LONG_WINDOW && windows <= MANY_WINDOWS;
}

static int64_t forward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, FORWARD_X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, FORWARD_Y);
    int64_t terms = window_terms(&problem->node->attr.pool, x->dim + 2);
    int64_t windows = wd_tensor_count(y);
    if (!is_long(windows, terms)) return 0;
    return wd_pass_scratch(&wd_pass_pool_forward_long, wd_problem_acc(problem), windows, terms);
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct pool_args args = {
        .x = wd_call_view(call, FORWARD_X),
        .y = wd_call_view(call, FORWARD_Y),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.pool,
    };
    enum wd_acc acc = wd_problem_acc(&call->problem);
    int64_t windows = wd_view_count(&args.y);
    int64_t terms = window_terms(&args.attr, args.x.dim + 2);
    if (!is_long(windows, terms)) {
        return wd_emit_map(queue, &wd_pass_pool_forward, acc, &args, windows);
    }
    return wd_emit_reduce(queue, &wd_pass_pool_forward_long, acc, &args, windows, terms,
                          call->workspace);
}

/* How the backward pass of a maximum goes through the images (N times C): so many at a time that the
 * places of their maxima fit the scratch. An image with more windows than that is done without
 * remembering them: every element looks at all of each window that covers it. */
struct batches {
    int64_t images;
    int64_t at_once; /* 0: nothing is remembered */
    int64_t windows; /* of an image */
    int64_t terms;   /* of a window */
    bool reduce;     /* each window's maximum is a reduction */
};

static struct batches plan_batches(const struct wd_pool_attr *attr, const int64_t *dx,
                                   const int64_t *dy)
{
    struct batches plan = {.images = dx[0] * dx[1], .windows = 1};
    for (int s = 0; s < attr->spatial; ++s) plan.windows *= dy[2 + s];
    plan.terms = window_terms(attr, dx + 2);
    if (!pool_is_max(attr) || plan.windows == 0) return plan;
    plan.at_once = ARGMAX_MAX / plan.windows;
    if (plan.at_once > plan.images) plan.at_once = plan.images;
    plan.reduce = is_long(plan.images * plan.windows, plan.terms);
    return plan;
}

static int64_t argmax_bytes(const struct batches *plan)
{
    return (plan->at_once * plan->windows * (int64_t)sizeof(int64_t) + 255) / 256 * 256;
}

static int64_t backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, BACKWARD_DY);
    const struct wd_tensor *dx = wd_slot(problem->graph, problem->node, BACKWARD_DX);
    struct batches plan = plan_batches(&problem->node->attr.pool, dx->dim, dy->dim);
    int64_t partials = 0;
    /* few windows: all of their maxima fit at once */
    if (plan.reduce) {
        partials = wd_pass_scratch(&wd_pass_pool_argmax_long, wd_problem_acc(problem),
                                   plan.images * plan.windows, plan.terms);
    }
    return argmax_bytes(&plan) + partials;
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
    enum wd_acc acc = wd_problem_acc(&call->problem);
    struct batches plan = plan_batches(&args.attr, args.dx.dim, args.y.dim);
    int64_t elements = wd_view_count(&args.dx);
    int64_t in_image = plan.images > 0 ? elements / plan.images : 0;
    if (plan.at_once == 0) return wd_emit_map(queue, &wd_pass_pool_backward, acc, &args, elements);
    args.argmax = call->workspace;
    for (int64_t image = 0; image < plan.images; image += plan.at_once) {
        int64_t left = plan.images - image;
        int64_t now = left < plan.at_once ? left : plan.at_once;
        args.first_window = image * plan.windows;
        args.first_element = image * in_image;
        if (plan.reduce) {
            WD_TRY(wd_emit_reduce(queue, &wd_pass_pool_argmax_long, acc, &args, now * plan.windows,
                                  plan.terms, (char *)call->workspace + argmax_bytes(&plan)));
        } else {
            WD_TRY(wd_emit_map(queue, &wd_pass_pool_argmax, acc, &args, now * plan.windows));
        }
        WD_TRY(wd_emit_map(queue, &wd_pass_pool_backward, acc, &args, now * in_image));
    }
    return CUDNN_STATUS_SUCCESS;
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
