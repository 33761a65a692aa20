/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine of last resort for matmul, on both devices: takes whatever the rule accepts. */
#include "ops/engine.h"
#include "ops/gemm/matmul_args.h"

#define WD_DEF_MODULE gemm_def
#define WD_DEF_BODY "ops/gemm/matmul_def.h"
#define WD_DEF_PASSES "ops/gemm/gemm_passes.def"
#include "ops/definition_host.inc"

enum { A, B, C, M, N, K };
enum { ALPHA, BETA };

static int64_t workspace(const struct wd_problem *problem)
{
    const struct wd_tensor *a = wd_slot(problem->graph, problem->node, A);
    const struct wd_tensor *c = wd_slot(problem->graph, problem->node, C);
    return wd_pass_scratch(&wd_pass_matmul, wd_problem_acc(problem), wd_tensor_count(c),
                           a->dim[a->rank - 1]);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct matmul_args args = {
        .a = wd_call_view(call, A),
        .b = wd_call_view(call, B),
        .c = wd_call_view(call, C),
        .m = wd_call_view(call, M),
        .n = wd_call_view(call, N),
        .k = wd_call_view(call, K),
        .alpha = call->scalars[ALPHA],
        .beta = call->scalars[BETA],
        .padding = call->problem.node->attr.matmul.padding_value,
    };
    return wd_emit_reduce(queue, &wd_pass_matmul, wd_problem_acc(&call->problem), &args,
                          wd_view_count(&args.c), args.a.dim[args.a.rank - 1], call->workspace);
}

const struct wd_engine wd_engine_matmul_def_cpu = {
    .name = "matmul_def",
    .op = WD_OP_MATMUL,
    .device = WD_CPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};

const struct wd_engine wd_engine_matmul_def_gpu = {
    .name = "matmul_def",
    .op = WD_OP_MATMUL,
    .device = WD_GPU,
    .last_resort = true,
    .workspace = workspace,
    .emit = emit,
};
