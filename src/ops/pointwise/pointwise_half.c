/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory: for fp16, or bf16, throughout. */
#include "graph/pointwise_modes.h"
#include "ops/pointwise/pointwise_gpu.h"

#define WD_KERNELS_MODULE pointwise_half
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_half_kernels.def"
#include "ops/kernels_host.inc"

enum { RUN = 8, FLAT_RUNS_1 = 4, FLAT_RUNS_2 = 2, STRAIGHT_RUNS_ONE = 2 };

/* The rows of bf16 follow those of fp16, in the same order. */
enum { BF16 = KERNEL_pointwise_bf16_flat1 - KERNEL_pointwise_f16_flat1 };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    int type = wd_pointwise_gpu_type(problem);
    WD_NEED(type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16, reason, NOT_SUPPORTED_DATA_TYPE,
            "tensors are not fp16 throughout, nor bf16, with single precision to compute in");
    return wd_pointwise_gpu_match(problem, reason);
}

struct straight_kernels wd_straight_kernels_half(int dtype)
{
    int first = dtype == CUDNN_DATA_HALF ? 0 : BF16;
    return (struct straight_kernels){
        &kernel_rows[KERNEL_pointwise_straight_f16_any + first], RUN, {1, STRAIGHT_RUNS_ONE, 1, 1}};
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    int dtype = wd_pointwise_gpu_type(&call->problem);
    int first = dtype == CUDNN_DATA_HALF ? 0 : BF16;
    struct wd_pointwise_kernels kernels_of = {
        .any = wd_pointwise_any_f32(),
        .flat = {{&kernel_rows[KERNEL_pointwise_f16_flat1 + first], RUN, FLAT_RUNS_1},
                 {&kernel_rows[KERNEL_pointwise_f16_flat2 + first], RUN, FLAT_RUNS_2}},
        .little = {{&kernel_rows[KERNEL_pointwise_f16_little1 + first], RUN, 1},
                   {&kernel_rows[KERNEL_pointwise_f16_little2 + first], RUN, 1}},
        .straight = wd_straight_kernels_half(dtype),
    };
    return wd_pointwise_gpu_emit(call, queue, &kernels_of);
}

const struct wd_engine wd_engine_pointwise_half = {
    .name = "pointwise_half",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
