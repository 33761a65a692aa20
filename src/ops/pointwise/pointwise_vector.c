/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory: for fp32 throughout, and for any mixture of types. */
#include "graph/pointwise_modes.h"
#include "ops/pointwise/pointwise_gpu.h"
#include "ops/pointwise/pointwise_vector_args.h"

#define WD_KERNELS_MODULE pointwise_vector
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { RUN_F32 = 8, RUN_F64 = 4 };

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    int inputs = wd_pointwise_operands(problem->node->attr.pointwise.mode);
    int kernel = KERNEL_pointwise_any_f32;
    if (wd_problem_acc(problem) == WD_ACC_F64) {
        return wd_pointwise_gpu_emit(call, queue, &kernel_rows[KERNEL_pointwise_any_f64], RUN_F64);
    }
    if (wd_pointwise_gpu_type(problem) == CUDNN_DATA_FLOAT) {
        kernel = KERNEL_pointwise_f32_1 + inputs - 1;
    }
    return wd_pointwise_gpu_emit(call, queue, &kernel_rows[kernel], RUN_F32);
}

const struct wd_engine wd_engine_pointwise_vector = {
    .name = "pointwise_vector",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_pointwise_gpu_match,
    .emit = emit,
};
