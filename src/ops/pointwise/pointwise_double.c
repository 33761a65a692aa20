/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory: what is computed in fp64. */
#include "graph/pointwise_modes.h"
#include "ops/pointwise/pointwise_gpu.h"
#include "ops/pointwise/pointwise_vector_args.h"

#define WD_KERNELS_MODULE pointwise_double
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_double_kernels.def"
#include "ops/kernels_host.inc"

enum { RUN = 4, FLAT_RUN = 2, FLAT_RUNS_1 = 4, FLAT_RUNS_2 = 2 };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    WD_NEED(wd_problem_acc(problem) == WD_ACC_F64, reason, NOT_SUPPORTED_DATA_TYPE,
            "no fp64 is needed to compute it");
    return wd_pointwise_gpu_match(problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    int inputs = wd_pointwise_operands(problem->node->attr.pointwise.mode);
    struct wd_pointwise_kernel kernel = {&kernel_rows[KERNEL_pointwise_any_f64], RUN, 0};
    struct wd_pointwise_kernel flat[2] = {
        {&kernel_rows[KERNEL_pointwise_f64_flat1], FLAT_RUN, FLAT_RUNS_1},
        {NULL, 0, 0},
    };
    bool is_typed = wd_pointwise_gpu_type(problem) == CUDNN_DATA_DOUBLE &&
                    !wd_pointwise_gpu_fills(call) && inputs <= 2;
    if (inputs == 2) {
        flat[0].row = &kernel_rows[KERNEL_pointwise_f64_flat2];
        flat[0].runs = FLAT_RUNS_2;
    }
    return wd_pointwise_gpu_emit(call, queue, kernel, is_typed ? flat : NULL);
}

const struct wd_engine wd_engine_pointwise_double = {
    .name = "pointwise_double",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
