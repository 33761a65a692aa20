/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on the GPU at the speed of memory: for fp16, or bf16, throughout. */
#include "graph/pointwise_modes.h"
#include "ops/pointwise/pointwise_gpu.h"
#include "ops/pointwise/pointwise_vector_args.h"

#define WD_KERNELS_MODULE pointwise_half
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_half_kernels.def"
#include "ops/kernels_host.inc"

enum { RUN = 8, FLAT_RUNS_1 = 4, FLAT_RUNS_2 = 2 };

/* The rows behind those of 0 to 3 inputs. */
enum {
    FLAT_1 = KERNEL_pointwise_f16_flat1 - KERNEL_pointwise_f16_0,
    FLAT_2 = KERNEL_pointwise_f16_flat2 - KERNEL_pointwise_f16_0,
    SMALL_1 = KERNEL_pointwise_f16_small1 - KERNEL_pointwise_f16_0,
    SMALL_2 = KERNEL_pointwise_f16_small2 - KERNEL_pointwise_f16_0,
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    int type = wd_pointwise_gpu_type(problem);
    WD_NEED(type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16, reason, NOT_SUPPORTED_DATA_TYPE,
            "tensors are not fp16 throughout, nor bf16, with single precision to compute in");
    return wd_pointwise_gpu_match(problem, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_problem *problem = &call->problem;
    int inputs = wd_pointwise_operands(problem->node->attr.pointwise.mode);
    int first = wd_pointwise_gpu_type(problem) == CUDNN_DATA_HALF ? KERNEL_pointwise_f16_0
                                                                  : KERNEL_pointwise_bf16_0;
    bool fills = wd_pointwise_gpu_fills(call);
    struct wd_pointwise_kernel kernel = {&kernel_rows[fills ? first : first + inputs], RUN, 0};
    struct wd_pointwise_kernel flat[2] = {
        {&kernel_rows[first + (inputs == 1 ? FLAT_1 : FLAT_2)], RUN,
         inputs == 1 ? FLAT_RUNS_1 : FLAT_RUNS_2},
        {&kernel_rows[first + (inputs == 1 ? SMALL_1 : SMALL_2)], RUN, 1},
    };
    return wd_pointwise_gpu_emit(call, queue, kernel, inputs <= 2 && !fills ? flat : NULL);
}

const struct wd_engine wd_engine_pointwise_half = {
    .name = "pointwise_half",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
