/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for resampling, on both devices: take whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/resample/resample_args.h"
#include "ops/windows.h"

#define WD_DEF_MODULE resample_def
#define WD_DEF_BODY "ops/resample/resample_def.h"
#define WD_DEF_PASSES "ops/resample/resample_passes.def"
#include "ops/definition_host.inc"

enum { FORWARD_X, FORWARD_Y, FORWARD_IDX };
enum { BACKWARD_DY, BACKWARD_IDX, BACKWARD_X, BACKWARD_Y, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    /* Windows whose maxima are remembered at a time: 64 MiB, or one image where that has more. */
    PLACES_MAX = 1 << 23,
};

/* Of a maximum, also where it is. */
static const struct wd_window_pass forward_pass = {&wd_pass_resample_forward,
                                                   &wd_pass_resample_forward_long};

/* Double where values or the compute type are wide; indices do not count. */
static enum wd_acc acc_of(const struct wd_problem *problem)
{
    static const int forward[] = {FORWARD_X, FORWARD_Y, FORWARD_Y};
    static const int backward[] = {BACKWARD_DY, BACKWARD_DX, BACKWARD_X};
    const int *slots = problem->node->op == WD_OP_RESAMPLE_FORWARD ? forward : backward;
    int dtypes[4] = {problem->node->attr.resample.compute};
    int count = 1;
    for (int i = 0; i < 3; ++i) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, slots[i]);
        if (tensor) dtypes[count++] = tensor->dtype;
    }
    return wd_acc_for(dtypes, count);
}

/* Elements of the largest part of a window that lies in the image. */
static int64_t window_terms(const struct wd_resample_attr *attr, const int64_t *image)
{
    int64_t terms = 1;
    for (int s = 0; s < attr->spatial; ++s) terms *= resample_extent(attr, s, image[s]);
    return terms;
}

static int64_t forward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, FORWARD_X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, FORWARD_Y);
    return wd_window_scratch(&forward_pass, acc_of(problem), wd_tensor_count(y),
                             window_terms(&problem->node->attr.resample, x->dim + 2));
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    const struct resample_args args = {
        .x = wd_call_view(call, FORWARD_X),
        .y = wd_call_view(call, FORWARD_Y),
        .idx = wd_call_view(call, FORWARD_IDX),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .has_idx = wd_call_tensor(call, FORWARD_IDX) != NULL,
        .attr = call->problem.node->attr.resample,
    };
    return wd_emit_windows(queue, &forward_pass, acc_of(&call->problem), &args,
                           wd_view_count(&args.y), window_terms(&args.attr, args.x.dim + 2),
                           call->workspace);
}

/* Of a maximum the places are remembered where there is no index tensor. */
static struct wd_window_batches batches_of(const struct wd_resample_attr *attr, const int64_t *dx,
                                           const int64_t *dy, bool has_idx)
{
    struct wd_window_batches batches =
        wd_window_batches(attr->spatial, dx, dy, window_terms(attr, dx + 2));
    if (attr->mode == CUDNN_RESAMPLE_MAXPOOL && !has_idx) {
        wd_window_remember(&batches, batches.windows > PLACES_MAX ? batches.windows : PLACES_MAX);
    }
    return batches;
}

static int64_t backward_workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *dy = wd_slot(problem->graph, problem->node, BACKWARD_DY);
    const struct wd_tensor *dx = wd_slot(problem->graph, problem->node, BACKWARD_DX);
    struct wd_window_batches batches = batches_of(&problem->node->attr.resample, dx->dim, dy->dim,
                                                  problem->node->slot[BACKWARD_IDX] >= 0);
    return wd_window_batches_scratch(&batches, &forward_pass, acc_of(problem));
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct resample_args args = {
        .x = wd_call_view(call, BACKWARD_X),
        .y = wd_call_view(call, BACKWARD_DY),
        .idx = wd_call_view(call, BACKWARD_IDX),
        .dx = wd_call_view(call, BACKWARD_DX),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .has_idx = wd_call_tensor(call, BACKWARD_IDX) != NULL,
        .attr = call->problem.node->attr.resample,
    };
    const struct wd_window_args batch = {&args, &args.first_window, &args.first_element,
                                         &args.places};
    struct wd_window_batches batches =
        batches_of(&args.attr, args.dx.dim, args.y.dim, args.has_idx != 0);
    return wd_emit_window_batches(queue, &batches, &forward_pass, &wd_pass_resample_backward,
                                  acc_of(&call->problem), &batch, wd_view_count(&args.dx),
                                  call->workspace);
}

const struct wd_engine wd_engine_resample_forward_def_cpu = {
    .name = "resample_forward_def",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = forward_workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_resample_forward_def_gpu = {
    .name = "resample_forward_def",
    .op = WD_OP_RESAMPLE_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = forward_workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_resample_backward_def_cpu = {
    .name = "resample_backward_def",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = backward_workspace,
    .emit = backward,
};

const struct wd_engine wd_engine_resample_backward_def_gpu = {
    .name = "resample_backward_def",
    .op = WD_OP_RESAMPLE_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = backward_workspace,
    .emit = backward,
};
