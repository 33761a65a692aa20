/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory: what is computed in fp64. */
#include "graph/pointwise_modes.h"
#include "ops/pointwise/pointwise_gpu.h"

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
    struct wd_pointwise_kernels kernels_of = {
        .any = {&kernel_rows[KERNEL_pointwise_any_f64], RUN, 0}};
    if (wd_pointwise_gpu_type(&call->problem) == CUDNN_DATA_DOUBLE) {
        kernels_of.flat[0] = (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_f64_flat1],
                                                          FLAT_RUN, FLAT_RUNS_1};
        kernels_of.flat[1] = (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_f64_flat2],
                                                          FLAT_RUN, FLAT_RUNS_2};
    }
    return wd_pointwise_gpu_emit(call, queue, &kernels_of);
}

const struct wd_engine wd_engine_pointwise_double = {
    .name = "pointwise_double",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
