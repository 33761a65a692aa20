/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pointwise_straight kernels, shared by host and device: a chain in which each
 * operation takes the result of the one before, and at most one operand besides. */
#ifndef WD_OPS_POINTWISE_STRAIGHT_ARGS_H
#define WD_OPS_POINTWISE_STRAIGHT_ARGS_H

#include "ops/pointwise/pointwise_chain_args.h"

enum { STRAIGHT_STEPS = 8, STRAIGHT_OPERANDS = 2 };

/* How operands lie that are no whole tensors: all of a chain that repeat do so in one way. */
enum straight_repeat {
    STRAIGHT_NONE,
    STRAIGHT_ALONG, /* a row's elements are those of the operand, the same in every row */
    STRAIGHT_ROWS,  /* an element a row, the same again after `period` rows */
};

/* Chains that have code of their own; those with a product are the first. */
enum straight_kind {
    STRAIGHT_SWISH_MUL,
    STRAIGHT_GELU_MUL,
    STRAIGHT_MUL,
    STRAIGHT_ADD,
    STRAIGHT_ADD_CLAMP,
    STRAIGHT_ADD_GELU,
    STRAIGHT_ADD_TANH,
    STRAIGHT_ADD_SWISH,
    STRAIGHT_ONE, /* those before have one operand, those behind two */
    STRAIGHT_MUL_ADD = STRAIGHT_ONE,
    STRAIGHT_MUL_ADD_CLAMP,
    STRAIGHT_ADD_ADD_CLAMP,
    STRAIGHT_KINDS
};

struct straight_step {
    uint8_t op;      /* enum chain_op */
    uint8_t operand; /* + 1; 0: none */
    uint8_t swapped; /* the operand comes first */
    uint8_t round;   /* enum chain_round */
    int32_t scales;  /* factors of operands are not 1 */
    int32_t propagate_nan;
    int32_t unused;
    float factor[CHAIN_FACTORS];
};

struct straight_operand {
    const void *data; /* null: a number */
    float value;
    int32_t repeats; /* as the chain's `repeat` says; else as the index counts */
    int32_t stride;  /* STRAIGHT_ROWS: from row to row */
    int32_t unused;
};

struct pointwise_straight_args {
    const void *x;
    void *y;
    uint32_t count; /* of the walk, with what is skipped */
    uint32_t skip;  /* elements before the first: tensors begin so far behind whole loads */
    int32_t length;
    int32_t streaming; /* y is larger than what stays in the cache */
    struct straight_operand operand[STRAIGHT_OPERANDS];
    int32_t repeat; /* enum straight_repeat */
    int32_t kind;   /* enum straight_kind; STRAIGHT_KINDS: any */
    int32_t runs;   /* of a thread, where a kernel takes them one by one */
    int32_t unused;
    struct wd_fastdiv row;
    struct wd_fastdiv period;
    struct straight_step step[STRAIGHT_STEPS];
};

#endif
