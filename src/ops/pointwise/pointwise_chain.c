/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of pointwise operations in one pass on the GPU: any of fp32, fp16, bf16 and, where double is
 * computed in, fp64. */
#include "ops/pointwise/pointwise_chain_gpu.h"

#define WD_KERNELS_MODULE pointwise_chain
#define WD_KERNELS_ROWS "ops/pointwise/pointwise_chain_kernels.def"
#include "ops/kernels_host.inc"

enum { CHUNK_F32 = 4, CHUNK_F64 = 2, CHUNKS = 2 };

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct pointwise_program program;
    return wd_chain_gpu_match(problem, &program, reason);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct pointwise_program program;
    struct wd_chain_kernel kernel = {
        .row = &kernel_rows[KERNEL_pointwise_chain_any], .chunk = CHUNK_F32, .chunks = CHUNKS};
    struct wd_reason reason;
    if (!wd_pointwise_program_make(&call->problem, &program, &reason)) {
        return wd_fail(reason.status, "%s", reason.text);
    }
    if (program.acc == WD_ACC_F64) {
        kernel.row = &kernel_rows[KERNEL_pointwise_chain_f64];
        kernel.chunk = CHUNK_F64;
    } else if (program.dtype == CUDNN_DATA_FLOAT) {
        kernel.straight = wd_straight_kernels_f32();
    } else if (program.dtype == CUDNN_DATA_HALF || program.dtype == CUDNN_DATA_BFLOAT16) {
        kernel.straight = wd_straight_kernels_half(program.dtype);
    }
    return wd_chain_gpu_emit(call, queue, &program, kernel);
}

const struct wd_engine wd_engine_pointwise_chain = {
    .name = "pointwise_chain",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .takes_pieces = true,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
