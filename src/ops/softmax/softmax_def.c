/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for softmax, on both devices: take whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/softmax/softmax_args.h"

#define WD_DEF_MODULE softmax_def
#define WD_DEF_BODY "ops/softmax/softmax_def.h"
#define WD_DEF_PASSES "ops/softmax/softmax_passes.def"
#include "ops/definition_host.inc"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_DX };
enum { ALPHA, BETA };

enum {
    /* A row is a reduction where there are too few rows to keep all threads of a device busy with
     * one each, and where it is long enough to be worth the passes; else one item does a row. A
     * function of the shape alone, so that every device adds in the same order. The statistics of
     * this many rows take 1 MiB of scratch. */
    ROWS_MAX = 1 << 16,
    LENGTH_MIN = 32,
};

struct shape {
    int64_t rows;
    int64_t length;
    bool reduce;
};

static struct shape shape_of(const struct wd_problem *problem, int slot)
{
    const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, slot);
    int64_t count = wd_tensor_count(tensor);
    struct shape shape;
    shape.length = softmax_length(problem->node->attr.softmax.mode, tensor->dim, tensor->rank);
    shape.rows = shape.length > 0 ? count / shape.length : 0;
    shape.reduce = shape.rows <= ROWS_MAX && shape.length >= LENGTH_MIN;
    return shape;
}

static int64_t stats_bytes(const struct shape *shape)
{
    return (shape->rows * 2 * (int64_t)sizeof(double) + 255) / 256 * 256;
}

static int64_t forward_workspace(const struct wd_problem *problem)
{
    struct shape shape = shape_of(problem, FORWARD_X);
    enum wd_acc acc = wd_problem_acc(problem);
    int64_t max;
    int64_t sum;
    if (!shape.reduce) return 0;
    max = wd_pass_scratch(&wd_pass_softmax_max, acc, shape.rows, shape.length);
    sum = wd_pass_scratch(&wd_pass_softmax_sum, acc, shape.rows, shape.length);
    return stats_bytes(&shape) + (max > sum ? max : sum);
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct softmax_args args = {
        .x = wd_call_view(call, FORWARD_X),
        .y = wd_call_view(call, FORWARD_Y),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .stats = call->workspace,
        .attr = call->problem.node->attr.softmax,
    };
    enum wd_acc acc = wd_problem_acc(&call->problem);
    struct shape shape = shape_of(&call->problem, FORWARD_X);
    void *partials = (char *)call->workspace + stats_bytes(&shape);
    if (!shape.reduce) return wd_emit_map(queue, &wd_pass_softmax_rows, acc, &args, shape.rows);
    WD_TRY(wd_emit_reduce(queue, &wd_pass_softmax_max, acc, &args, shape.rows, shape.length,
                          partials));
    WD_TRY(wd_emit_reduce(queue, &wd_pass_softmax_sum, acc, &args, shape.rows, shape.length,
                          partials));
    return wd_emit_map(queue, &wd_pass_softmax_forward, acc, &args, shape.rows * shape.length);
}

static int64_t backward_workspace(const struct wd_problem *problem)
{
    struct shape shape = shape_of(problem, BACKWARD_DX);
    if (!shape.reduce) return 0;
    return stats_bytes(&shape) + wd_pass_scratch(&wd_pass_softmax_gradient_sum,
                                                 wd_problem_acc(problem), shape.rows, shape.length);
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct softmax_args args = {
        .y = wd_call_view(call, BACKWARD_Y),
        .dy = wd_call_view(call, BACKWARD_DY),
        .dx = wd_call_view(call, BACKWARD_DX),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .stats = call->workspace,
        .attr = call->problem.node->attr.softmax,
    };
    enum wd_acc acc = wd_problem_acc(&call->problem);
    struct shape shape = shape_of(&call->problem, BACKWARD_DX);
    if (!shape.reduce) {
        return wd_emit_map(queue, &wd_pass_softmax_gradient_rows, acc, &args, shape.rows);
    }
    WD_TRY(wd_emit_reduce(queue, &wd_pass_softmax_gradient_sum, acc, &args, shape.rows,
                          shape.length, (char *)call->workspace + stats_bytes(&shape)));
    return wd_emit_map(queue, &wd_pass_softmax_backward, acc, &args, shape.rows * shape.length);
}

const struct wd_engine wd_engine_softmax_forward_def_cpu = {
    .name = "softmax_forward_def",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = forward_workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_softmax_forward_def_gpu = {
    .name = "softmax_forward_def",
    .op = WD_OP_SOFTMAX_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = forward_workspace,
    .emit = forward,
};

const struct wd_engine wd_engine_softmax_backward_def_cpu = {
    .name = "softmax_backward_def",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = backward_workspace,
    .emit = backward,
};

const struct wd_engine wd_engine_softmax_backward_def_gpu = {
    .name = "softmax_backward_def",
    .op = WD_OP_SOFTMAX_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = backward_workspace,
    .emit = backward,
};
