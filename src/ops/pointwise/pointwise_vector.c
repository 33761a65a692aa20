/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory: for fp32 throughout, and for any mixture of types. */
#include "graph/pointwise_modes.h"
#include "ops/pointwise/pointwise_gpu.h"
#include "ops/pointwise/pointwise_vector_args.h"

#define WD_KERNELS_MODULE pointwise_vector
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { RUN_FILL = 4, RUN_F32 = 8, RUN_F64 = 4 };

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    int inputs = wd_pointwise_operands(problem->node->attr.pointwise.mode);
    struct wd_pointwise_kernel kernel = {&kernel_rows[KERNEL_pointwise_any_f32], RUN_F32};
    if (wd_problem_acc(problem) == WD_ACC_F64) {
        kernel = (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_any_f64], RUN_F64};
    } else if (wd_pointwise_gpu_type(problem) == CUDNN_DATA_FLOAT) {
        kernel.row = &kernel_rows[KERNEL_pointwise_f32_0 + inputs];
        if (wd_pointwise_gpu_fills(call)) {
            kernel = (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_f32_0], RUN_FILL};
        }
    }
    return wd_pointwise_gpu_emit(call, queue, kernel, NULL);
}

const struct wd_engine wd_engine_pointwise_vector = {
    .name = "pointwise_vector",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_pointwise_gpu_match,
    .emit = emit,
};
