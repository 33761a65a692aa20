/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of pointwise chains share on the host: which pieces they take, and their
 * launches. */
#ifndef WD_OPS_POINTWISE_CHAIN_GPU_H
#define WD_OPS_POINTWISE_CHAIN_GPU_H

#include "ops/pointwise/pointwise_program.h"
#include "ops/pointwise/pointwise_straight.h"

/* A kernel whose threads have runs of so many chunks of so many elements, and those of its type for
 * straight chains. */
struct wd_chain_kernel {
    struct wd_kernel_row *row;
    int chunk;
    int chunks;
    struct straight_kernels straight;
};

/* Pieces that are a program, on devices with the shared memory that it takes at most. */
bool wd_chain_gpu_match(const struct wd_problem *problem, struct pointwise_program *program,
                        struct wd_reason *reason);

cudnnStatus_t wd_chain_gpu_emit(const struct wd_call *call, struct wd_queue *queue,
                                struct pointwise_program *program, struct wd_chain_kernel kernel);

#endif
