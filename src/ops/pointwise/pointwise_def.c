/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine of last resort for pointwise, on both devices: takes whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/pointwise/pointwise_args.h"

#define WD_DEF_MODULE pointwise_def
#define WD_DEF_BODY "ops/pointwise/pointwise_def.h"
#define WD_DEF_PASSES "ops/pointwise/pointwise_passes.def"
#include "ops/definition_host.inc"

enum { X, B, T, Y };
enum { ALPHA1, ALPHA2, ALPHA, BETA };

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct pointwise_args args = {
        .x = wd_call_view(call, X),
        .b = wd_call_view(call, B),
        .t = wd_call_view(call, T),
        .y = wd_call_view(call, Y),
        .alpha1 = call->scalars[ALPHA1],
        .alpha2 = call->scalars[ALPHA2],
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .has_t = wd_call_tensor(call, T) != NULL,
        .attr = call->problem.node->attr.pointwise,
    };
    int bits = wd_dtype_bits(args.y.dtype);
    int64_t count = wd_view_count(&args.y);
    wd_view_order(&args.y, args.order);
    args.per_item = bits > 0 && bits < 8 ? 8 / bits : 1;
    return wd_emit_map(queue, &wd_pass_pointwise, wd_problem_acc(&call->problem), &args,
                       (count + args.per_item - 1) / args.per_item);
}

const struct wd_engine wd_engine_pointwise_def_cpu = {
    .name = "pointwise_def",
    .op = WD_OP_POINTWISE,
    .device = WD_CPU,
    .last_resort = true,
    .emit = emit,
};

const struct wd_engine wd_engine_pointwise_def_gpu = {
    .name = "pointwise_def",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .last_resort = true,
    .emit = emit,
};
