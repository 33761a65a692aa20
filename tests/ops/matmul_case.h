/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of matrix products: any order of dimensions in memory, gaps, and floating types of at most
 * eight bits, which the harness does not know and whose values are made out here. */
#ifndef TESTS_OPS_MATMUL_CASE_H
#define TESTS_OPS_MATMUL_CASE_H

#include "support/harness.h"

/* A box inside a tensor of the harness, whose dimensions may lie in another order in memory. Small
 * floats lie there as bytes. */
struct operand {
    int dtype;
    int rank;
    int dim[8];
    int64_t stride[8]; /* in elements */
    int order[8];      /* dimension i of `whole` is dimension order[i] here */
    int64_t count;
    struct tensor *whole;
};

/* Elements within one or so of zero (integers: twenty); an output starts as NaN where its type has
 * it, for what was there must not matter. `plain`: packed, the last dimension fastest. e2m1 has no
 * gaps and is no output. */
void operand_make(struct operand *t, int dtype, int rank, const int *dim, bool output, bool plain);
/* Coordinates of a logical element, the last dimension fastest. */
void operand_split(const struct operand *t, int64_t index, int *at);
double operand_read(const struct operand *t, const int *at);
/* A value that the type has (not e2m1); tensor_write(t->whole) comes afterwards. */
void operand_write(struct operand *t, const int *at, double value);
/* Fails the case where anything but the elements of an output changed; `before`, which is written
 * to, has the values of the whole before the call. */
void operand_check_rest(const struct operand *t, double *before);

bool dtype_is_integer(int dtype);
const char *dtype_name(int dtype);
/* The largest finite value of a type whose conversions saturate, infinity for others. */
double dtype_limit(int dtype);
/* The rounding of a value to the type: half a unit in its last place, or of the smallest ones. */
double dtype_rounding(int dtype, double value);

#endif
