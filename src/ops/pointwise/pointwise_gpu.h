/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of single pointwise operations share on the host: which problems they take,
 * and their launches. */
#ifndef WD_OPS_POINTWISE_GPU_H
#define WD_OPS_POINTWISE_GPU_H

#include "ops/pointwise/pointwise_straight.h"

/* Tensors of types of whole bytes, any strides, all modes but GEN_INDEX. */
bool wd_pointwise_gpu_match(const struct wd_problem *problem, struct wd_reason *reason);

/* The type of all tensors, where it is one and single precision computes it (double: fp64), and the
 * mode's code is not long; else -1. */
int wd_pointwise_gpu_type(const struct wd_problem *problem);

/* A kernel whose threads have runs of `run` elements: one after another as far as the tensors go, or
 * `runs` of them. */
struct wd_pointwise_kernel {
    struct wd_kernel_row *row;
    int run;
    int runs; /* 0: one after another */
};

/* What an engine has for a call. */
struct wd_pointwise_kernels {
    struct wd_pointwise_kernel any; /* takes all */
    /* By the inputs, where all tensors are of one type, lie as the index counts and are equally far
     * behind a boundary of 16 bytes, and the mode is one of pointwise_flat_modes.def. No rows: none. */
    struct wd_pointwise_kernel flat[2];
    struct wd_pointwise_kernel little[2]; /* in their place where there is little; no rows: none */
    struct straight_kernels straight;     /* where tensors are of one type and one may repeat */
};

struct wd_pointwise_kernel wd_pointwise_any_f32(void);
struct wd_kernel_row *wd_pointwise_fill(void);

cudnnStatus_t wd_pointwise_gpu_emit(const struct wd_call *call, struct wd_queue *queue,
                                    const struct wd_pointwise_kernels *kernels);

#endif
