/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of a chain of pointwise operations: an instruction a node, and where each finds its
 * operands. Made anew whenever it is wanted, without memory of its own. Pure functions. */
#ifndef WD_OPS_POINTWISE_PROGRAM_H
#define WD_OPS_POINTWISE_PROGRAM_H

#include "ops/engine.h"
#include "ops/pointwise/pointwise_chain_args.h"

struct pointwise_program {
    struct pointwise_instruction instruction[CHAIN_INSTRUCTIONS]; /* without factors */
    int length;
    int32_t input[CHAIN_INPUTS]; /* tensors that are read from memory, or carried by value */
    int inputs;
    int32_t output[CHAIN_OUTPUTS]; /* tensors that are written */
    int outputs;
    int kept;        /* places for results that a later instruction wants */
    enum wd_acc acc; /* what all nodes compute in */
    int32_t dtype;   /* of all inputs and outputs in memory; -1: there are several */
};

/* The instruction of a mode (enum chain_op), or -1. `by_output`: a gradient that has the forward output. */
int wd_pointwise_op(const struct wd_pointwise_attr *attr, bool by_output);

/* Makes the program of a piece; false, with a reason, where it is none: other operations, modes whose
 * code is long, outputs of several shapes, elements that are no floating numbers, too many operands. */
bool wd_pointwise_program_make(const struct wd_problem *problem, struct pointwise_program *program,
                               struct wd_reason *reason);

/* Puts in what the call and the nodes' attributes say, in the type that the program computes in. */
void wd_pointwise_program_factors(const struct wd_call *call, struct pointwise_program *program);

#endif
