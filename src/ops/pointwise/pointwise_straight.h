/* SPDX-License-Identifier: Apache-2.0
 *
 * Straight chains on the host: which programs are one, and their launch. Pure functions but for the
 * launch, which goes to the queue. */
#ifndef WD_OPS_POINTWISE_STRAIGHT_H
#define WD_OPS_POINTWISE_STRAIGHT_H

#include "ops/joined.h"
#include "ops/pointwise/pointwise_program.h"
#include "ops/pointwise/pointwise_straight_args.h"

/* The order of the kernels' rows of a type: any chain by its operands, then the frequent ones. */
enum straight_kernel {
    STRAIGHT_1,
    STRAIGHT_2,
    STRAIGHT_3,
    STRAIGHT_ADD_CLAMP,
    STRAIGHT_ADD_GELU,
    STRAIGHT_ADD_TANH,
    STRAIGHT_ADD_SWISH,
    STRAIGHT_SWISH_MUL,
    STRAIGHT_GELU_MUL,
    STRAIGHT_MUL_ADD,
    STRAIGHT_MUL_ADD_CLAMP,
    STRAIGHT_ADD_ADD_CLAMP,
    STRAIGHT_KERNELS
};

/* A type's kernels, whose threads have so many runs of 16 bytes. */
struct straight_kernels {
    struct wd_kernel_row *rows; /* null: none */
    int chunk;                  /* elements of a run */
    int runs;                   /* of the frequent chains of one operand, */
    int runs_two;               /* of two, */
    int runs_any;               /* and of any */
};

/* Makes the arguments of a walk whose operands are a program's inputs and then its output, as
 * wd_pointwise_follow left them, and says which kernel; -1: it is no straight chain, or operands lie
 * otherwise. */
int wd_straight_make(struct pointwise_straight_args *args, const struct pointwise_program *program,
                     const struct wd_joined *walk, const struct pointwise_operand *operands);

cudnnStatus_t wd_straight_emit(struct wd_queue *queue, const struct straight_kernels *kernels,
                               int kernel, const struct pointwise_straight_args *args);

#endif
