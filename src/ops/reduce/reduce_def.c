/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine of last resort for reduce, on both devices: takes whatever the rule accepts. Its
 * workspace is what a reduction of few long rows needs for its second stage. */
#include "graph/reduce_shape.h"
#include "ops/engine.h"
#include "ops/reduce/reduce_args.h"

#define WD_DEF_MODULE reduce_def
#define WD_DEF_BODY "ops/reduce/reduce_def.h"
#define WD_DEF_PASSES "ops/reduce/reduce_passes.def"
#include "ops/definition_host.inc"

enum { X, Y, INDICES };
enum { ALPHA, BETA };

/* fp64 where asked for, even of narrower tensors. */
static enum wd_acc accumulator(const struct wd_problem *problem)
{
    if (problem->node->attr.reduce.compute == CUDNN_DATA_DOUBLE) return WD_ACC_F64;
    return wd_problem_acc(problem);
}

static int64_t workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, Y);
    int64_t items = wd_tensor_count(y);
    return wd_pass_scratch(&wd_pass_reduce, accumulator(problem), items,
                           items > 0 ? wd_tensor_count(x) / items : 0);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct reduce_args args = {
        .x = wd_call_view(call, X),
        .y = wd_call_view(call, Y),
        .indices = wd_call_data(call, INDICES),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .terms = 1,
        .attr = call->problem.node->attr.reduce,
    };
    uintptr_t bytes = (uintptr_t)wd_index_bytes(args.attr.index_type);
    WD_REQUIRE(!args.indices || (uintptr_t)args.indices % bytes == 0,
               CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
               "indices %p are not aligned to their elements of %d bytes", args.indices,
               (int)bytes);
    for (int d = 0; d < args.x.rank; ++d) {
        if (args.y.dim[d] == args.x.dim[d]) continue;
        args.axis[args.axes++] = d;
        args.terms *= args.x.dim[d];
    }
    return wd_emit_reduce(queue, &wd_pass_reduce, accumulator(&call->problem), &args,
                          wd_view_count(&args.y), args.terms, call->workspace);
}

const struct wd_engine wd_engine_reduce_def_cpu = {
    .name = "reduce_def",
    .op = WD_OP_REDUCE,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_reduce_def_gpu = {
    .name = "reduce_def",
    .op = WD_OP_REDUCE,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};
