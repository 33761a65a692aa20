/* SPDX-License-Identifier: Apache-2.0
 *
 * Straight chains on the host: which programs are one, and their launch. Pure functions but for the
 * launch, which goes to the queue. */
#ifndef WD_OPS_POINTWISE_STRAIGHT_H
#define WD_OPS_POINTWISE_STRAIGHT_H

#include "ops/joined.h"
#include "ops/pointwise/pointwise_program.h"
#include "ops/pointwise/pointwise_straight_args.h"

/* The order of the kernels' rows of a type: any chain of one operand at most; the frequent ones, of one
 * operand, where there is enough for every processor and where not; and of two. */
enum straight_row {
    STRAIGHT_ROW_ANY,
    STRAIGHT_ROW_ONE,
    STRAIGHT_ROW_LITTLE,
    STRAIGHT_ROW_TWO,
    STRAIGHT_ROWS_OF
};

/* A type's kernels, whose threads have so many runs of 16 bytes each. */
struct straight_kernels {
    struct wd_kernel_row *rows; /* null: none */
    int chunk;                  /* elements of a run */
    int runs[STRAIGHT_ROWS_OF]; /* STRAIGHT_ROW_ANY: at most */
};

/* Those of tensors of fp32, and of fp16 or bf16, throughout. */
struct straight_kernels wd_straight_kernels_f32(void);
struct straight_kernels wd_straight_kernels_half(int dtype);

/* Makes the arguments of a walk whose operands are a program's inputs and then its output, as
 * wd_pointwise_follow left them; false: it is no straight chain, or operands lie otherwise. */
bool wd_straight_make(struct pointwise_straight_args *args, const struct pointwise_program *program,
                      const struct wd_joined *walk, const struct pointwise_operand *operands);

/* Those of a single operation, of which `how` says all but where its operands lie. */
bool wd_straight_make_single(struct pointwise_straight_args *args,
                             const struct pointwise_vector_args *how, const struct wd_joined *walk,
                             const struct pointwise_operand *operands);

/* Launches the kernel for `count` elements, the first `skip` of them for nothing. */
cudnnStatus_t wd_straight_emit(struct wd_queue *queue, const struct straight_kernels *kernels,
                               struct pointwise_straight_args *args, uint32_t count, uint32_t skip,
                               bool streaming);

#endif
