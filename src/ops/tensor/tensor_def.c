/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for transforms, on both devices: take whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/tensor/tensor_args.h"

#define WD_DEF_MODULE tensor_def
#define WD_DEF_BODY "ops/tensor/tensor_def.h"
#define WD_DEF_PASSES "ops/tensor/tensor_passes.def"
#include "ops/definition_host.inc"

enum { SRC, DEST };
enum { ALPHA, BETA };

static cudnnStatus_t transform(const struct wd_call *call, struct wd_queue *queue)
{
    struct transform_args args = {
        .src = wd_call_view(call, SRC),
        .dest = wd_call_view(call, DEST),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .attr = call->problem.node->attr.transform,
    };
    wd_view_order(&args.dest, args.order);
    return wd_emit_map(queue, &wd_pass_transform, wd_problem_acc(&call->problem), &args,
                       wd_view_count(&args.dest));
}

const struct wd_engine wd_engine_transform_def_cpu = {
    .name = "transform_def",
    .op = WD_OP_TRANSFORM,
    .device = WD_CPU,
    .last_resort = true,
    .emit = transform,
};

const struct wd_engine wd_engine_transform_def_gpu = {
    .name = "transform_def",
    .op = WD_OP_TRANSFORM,
    .device = WD_GPU,
    .last_resort = true,
    .emit = transform,
};
