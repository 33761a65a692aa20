/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of single pointwise operations share on the host: which problems they take,
 * and their launches. */
#ifndef WD_OPS_POINTWISE_GPU_H
#define WD_OPS_POINTWISE_GPU_H

#include "ops/engine.h"

/* Tensors of types of whole bytes, any strides, all modes but GEN_INDEX. */
bool wd_pointwise_gpu_match(const struct wd_problem *problem, struct wd_reason *reason);

/* The type of all tensors, where it is one and single precision computes it (double: fp64), and the
 * mode's code is not long; else -1. */
int wd_pointwise_gpu_type(const struct wd_problem *problem);

/* Whether the mode is the identity of a number, and y is not blended into. */
bool wd_pointwise_gpu_fills(const struct wd_call *call);

/* A kernel whose threads have runs of `run` elements: one after another as far as the tensors go, or
 * `runs` of them at once. */
struct wd_pointwise_kernel {
    struct wd_kernel_row *row;
    int run;
    int runs; /* 0: one after another */
};

/* Launches the kernel, or one of two `flat` ones (null: none) where all tensors lie as the index counts
 * and are equally far behind a boundary of 16 bytes and the mode is one of pointwise_flat_modes.def:
 * the first where there is enough for every processor, the second (whose row may be null) for less. */
cudnnStatus_t wd_pointwise_gpu_emit(const struct wd_call *call, struct wd_queue *queue,
                                    struct wd_pointwise_kernel kernel,
                                    const struct wd_pointwise_kernel *flat);

#endif
