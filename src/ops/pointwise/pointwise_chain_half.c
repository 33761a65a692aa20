/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of pointwise operations in one pass on the GPU: for fp16, or bf16, throughout (of what is in
 * memory: tensors between may be wider). */
#include "ops/pointwise/pointwise_chain_gpu.h"

#define WD_KERNELS_MODULE pointwise_chain_half
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_chain_half_kernels.def"
#include "ops/kernels_host.inc"

enum { CHUNK = 8, CHUNKS = 2, STRAIGHT_RUNS = 2, STRAIGHT_RUNS_TWO = 1 };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct pointwise_program program;
    if (!wd_chain_gpu_match(problem, &program, reason)) return false;
    WD_NEED(program.acc == WD_ACC_F32 &&
                (program.dtype == CUDNN_DATA_HALF || program.dtype == CUDNN_DATA_BFLOAT16),
            reason, NOT_SUPPORTED_DATA_TYPE,
            "tensors are not fp16 throughout, nor bf16, with single precision to compute in");
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct pointwise_program program;
    struct wd_chain_kernel kernel = {&kernel_rows[KERNEL_pointwise_chain_f16],
                                     CHUNK,
                                     CHUNKS,
                                     {&kernel_rows[KERNEL_pointwise_straight_f16_1], CHUNK,
                                      STRAIGHT_RUNS, STRAIGHT_RUNS_TWO, STRAIGHT_RUNS_TWO}};
    struct wd_reason reason;
    if (!wd_pointwise_program_make(&call->problem, &program, &reason)) {
        return wd_fail(reason.status, "%s", reason.text);
    }
    if (program.dtype == CUDNN_DATA_BFLOAT16) {
        kernel.row = &kernel_rows[KERNEL_pointwise_chain_bf16];
        kernel.straight.rows = &kernel_rows[KERNEL_pointwise_straight_bf16_1];
    }
    return wd_chain_gpu_emit(call, queue, &program, kernel);
}

const struct wd_engine wd_engine_pointwise_chain_half = {
    .name = "pointwise_chain_half",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .takes_pieces = true,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
