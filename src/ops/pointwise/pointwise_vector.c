/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory: for fp32 throughout, and for any mixture of types that
 * is computed in fp32. */
#include "graph/pointwise_modes.h"
#include "ops/pointwise/pointwise_gpu.h"

#define WD_KERNELS_MODULE pointwise_vector
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_vector_kernels.def"
#include "ops/kernels_host.inc"

enum { RUN = 8, FLAT_RUN = 4, FLAT_RUNS_1 = 4, FLAT_RUNS_2 = 2, STRAIGHT_RUNS = 2 };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    WD_NEED(wd_problem_acc(problem) == WD_ACC_F32, reason, NOT_SUPPORTED_DATA_TYPE,
            "single precision does not compute it");
    return wd_pointwise_gpu_match(problem, reason);
}

struct straight_kernels wd_straight_kernels_f32(void)
{
    return (struct straight_kernels){&kernel_rows[KERNEL_pointwise_straight_f32_any],
                                     FLAT_RUN,
                                     {STRAIGHT_RUNS, STRAIGHT_RUNS, 1, STRAIGHT_RUNS}};
}

struct wd_pointwise_kernel wd_pointwise_any_f32(void)
{
    return (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_any_f32], RUN, 0};
}

struct wd_kernel_row *wd_pointwise_fill(void)
{
    return &kernel_rows[KERNEL_pointwise_fill];
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct wd_pointwise_kernels kernels_of = {.any = wd_pointwise_any_f32()};
    if (wd_pointwise_gpu_type(&call->problem) == CUDNN_DATA_FLOAT) {
        kernels_of.flat[0] = (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_f32_flat1],
                                                          FLAT_RUN, FLAT_RUNS_1};
        kernels_of.flat[1] = (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_f32_flat2],
                                                          FLAT_RUN, FLAT_RUNS_2};
        kernels_of.little[0] =
            (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_f32_little1], FLAT_RUN, 1};
        kernels_of.little[1] =
            (struct wd_pointwise_kernel){&kernel_rows[KERNEL_pointwise_f32_little2], FLAT_RUN, 1};
        kernels_of.straight = wd_straight_kernels_f32();
    }
    return wd_pointwise_gpu_emit(call, queue, &kernels_of);
}

const struct wd_engine wd_engine_pointwise_vector = {
    .name = "pointwise_vector",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
