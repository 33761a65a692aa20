/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory: for fp32 throughout, and for any mixture of types that
 * is computed in fp32. */
#include "graph/pointwise_modes.h"
#include "ops/pointwise/pointwise_gpu.h"
#include "ops/pointwise/pointwise_vector_args.h"

#define WD_KERNELS_MODULE pointwise_vector
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { RUN_FILL = 4, RUN = 8, FLAT_RUN = 4, FLAT_RUNS_1 = 4, FLAT_RUNS_2 = 2 };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    WD_NEED(wd_problem_acc(problem) == WD_ACC_F32, reason, NOT_SUPPORTED_DATA_TYPE,
            "single precision does not compute it");
    return wd_pointwise_gpu_match(problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    int inputs = wd_pointwise_operands(problem->node->attr.pointwise.mode);
    struct wd_pointwise_kernel kernel = {&kernel_rows[KERNEL_pointwise_any_f32], RUN, 0};
    struct wd_pointwise_kernel flat[2] = {
        {&kernel_rows[KERNEL_pointwise_f32_flat1], FLAT_RUN, FLAT_RUNS_1},
        {&kernel_rows[KERNEL_pointwise_f32_small1], FLAT_RUN, 1},
    };
    if (wd_pointwise_gpu_type(problem) != CUDNN_DATA_FLOAT) {
        return wd_pointwise_gpu_emit(call, queue, kernel, NULL);
    }
    if (wd_pointwise_gpu_fills(call)) {
        kernel = (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_f32_0], RUN_FILL, 0};
        return wd_pointwise_gpu_emit(call, queue, kernel, NULL);
    }
    kernel.row = &kernel_rows[KERNEL_pointwise_f32_0 + inputs];
    if (inputs == 2) {
        flat[0].row = &kernel_rows[KERNEL_pointwise_f32_flat2];
        flat[0].runs = FLAT_RUNS_2;
        flat[1].row = &kernel_rows[KERNEL_pointwise_f32_small2];
    }
    return wd_pointwise_gpu_emit(call, queue, kernel, inputs <= 2 ? flat : NULL);
}

const struct wd_engine wd_engine_pointwise_vector = {
    .name = "pointwise_vector",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
