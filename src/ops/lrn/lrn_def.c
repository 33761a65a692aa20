/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for local response and divisive normalization, on both devices: take
 * whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/lrn/lrn_args.h"

#define WD_DEF_MODULE lrn_def
#define WD_DEF_BODY "ops/lrn/lrn_def.h"
#define WD_DEF_PASSES "ops/lrn/lrn_passes.def"
#include "ops/definition_host.inc"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { DIV_X, DIV_MEANS, DIV_TEMP, DIV_TEMP2, DIV_Y };
enum { DIVB_X, DIVB_MEANS, DIVB_DY, DIVB_TEMP, DIVB_TEMP2, DIVB_DX, DIVB_DMEANS };
enum { ALPHA, BETA };

static cudnnStatus_t lrn_forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct lrn_args args = {
        .x = wd_call_view(call, FORWARD_X),
        .y = wd_call_view(call, FORWARD_Y),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.lrn,
    };
    return wd_emit_map(queue, &wd_pass_lrn_forward, wd_problem_acc(&call->problem), &args,
                       wd_view_count(&args.y));
}

static cudnnStatus_t lrn_backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct lrn_args args = {
        .x = wd_call_view(call, BACKWARD_X),
        .y = wd_call_view(call, BACKWARD_DY),
        .dx = wd_call_view(call, BACKWARD_DX),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.lrn,
    };
    return wd_emit_map(queue, &wd_pass_lrn_backward, wd_problem_acc(&call->problem), &args,
                       wd_view_count(&args.dx));
}

static cudnnStatus_t divnorm_forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct divnorm_args args = {
        .x = wd_call_view(call, DIV_X),
        .means = wd_call_view(call, DIV_MEANS),
        .y = wd_call_view(call, DIV_Y),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.lrn,
    };
    return wd_emit_map(queue, &wd_pass_divnorm_forward, wd_problem_acc(&call->problem), &args,
                       wd_view_count(&args.y));
}

static cudnnStatus_t divnorm_backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct divnorm_args args = {
        .x = wd_call_view(call, DIVB_X),
        .means = wd_call_view(call, DIVB_MEANS),
        .y = wd_call_view(call, DIVB_DY),
        .dx = wd_call_view(call, DIVB_DX),
        .dmeans = wd_call_view(call, DIVB_DMEANS),
        .temp = wd_call_data(call, DIVB_TEMP),
        .temp2 = wd_call_data(call, DIVB_TEMP2),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.lrn,
    };
    enum wd_acc acc = wd_problem_acc(&call->problem);
    int64_t elements = wd_view_count(&args.x);
    WD_TRY(wd_emit_map(queue, &wd_pass_divnorm_share, acc, &args, elements));
    return wd_emit_map(queue, &wd_pass_divnorm_backward, acc, &args, elements);
}

const struct wd_engine wd_engine_lrn_forward_def_cpu = {
    .name = "lrn_forward_def",
    .op = WD_OP_LRN_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .emit = lrn_forward,
};

const struct wd_engine wd_engine_lrn_forward_def_gpu = {
    .name = "lrn_forward_def",
    .op = WD_OP_LRN_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .emit = lrn_forward,
};

const struct wd_engine wd_engine_lrn_backward_def_cpu = {
    .name = "lrn_backward_def",
    .op = WD_OP_LRN_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .emit = lrn_backward,
};

const struct wd_engine wd_engine_lrn_backward_def_gpu = {
    .name = "lrn_backward_def",
    .op = WD_OP_LRN_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .emit = lrn_backward,
};

const struct wd_engine wd_engine_divnorm_forward_def_cpu = {
    .name = "divnorm_forward_def",
    .op = WD_OP_DIVNORM_FORWARD,
    .device = WD_CPU,
    .last_resort = true,
    .emit = divnorm_forward,
};

const struct wd_engine wd_engine_divnorm_forward_def_gpu = {
    .name = "divnorm_forward_def",
    .op = WD_OP_DIVNORM_FORWARD,
    .device = WD_GPU,
    .last_resort = true,
    .emit = divnorm_forward,
};

const struct wd_engine wd_engine_divnorm_backward_def_cpu = {
    .name = "divnorm_backward_def",
    .op = WD_OP_DIVNORM_BACKWARD,
    .device = WD_CPU,
    .last_resort = true,
    .emit = divnorm_backward,
};

const struct wd_engine wd_engine_divnorm_backward_def_gpu = {
    .name = "divnorm_backward_def",
    .op = WD_OP_DIVNORM_BACKWARD,
    .device = WD_GPU,
    .last_resort = true,
    .emit = divnorm_backward,
};
