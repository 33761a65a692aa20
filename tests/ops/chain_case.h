/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph of several pointwise operations of the backend API: its values, of which every element is
 * computed in double, with a bound of what rounding may do to it (the spread of an operation's results
 * over its operands' bounds, and some roundings of its own), its run and its judgement. One graph at a
 * time. Used by the lists of chain_test.c. */
#ifndef TESTS_OPS_CHAIN_CASE_H
#define TESTS_OPS_CHAIN_CASE_H

#include "ops/pointwise_formula.h"
#include "support/harness.h"

enum { CHAIN_NODES_MAX = 20, CHAIN_VALUES_MAX = 2 * CHAIN_NODES_MAX + 16, CHAIN_RANK_MAX = 5 };

/* An input or a result. */
struct chain_value {
    cudnnDataType_t dtype;
    bool is_virtual;
    bool is_number; /* carried by value */
    float number;
    struct tensor *t; /* null: virtual, or a number */
    int64_t shift;    /* elements before its first in t, which then is of one long row */
    cudnnBackendDescriptor_t desc;
    double *exact; /* of every element of the space */
    double *bound;
    int readers;
};

struct chain_graph {
    int rank;
    int dim[CHAIN_RANK_MAX];
    int64_t count;
    cudnnDataType_t compute;
    struct chain_value value[CHAIN_VALUES_MAX];
    int values;
    cudnnBackendDescriptor_t op[CHAIN_NODES_MAX];
    int nodes;
    cudnnBackendDescriptor_t plan, pack;
};

extern struct chain_graph chain;

/* An empty graph over a space of these dims; and its end, with the case's. */
void chain_begin(int rank, const int *dim, cudnnDataType_t compute);
void chain_end(void);

/* The next value, of which the caller sets what it is, and then its descriptor. Inputs come first. */
struct chain_value *chain_value(cudnnDataType_t dtype);
void chain_describe(struct chain_value *v, const int *dim);
/* A tensor of the space, or (dim) of one that repeats; `shift` as in struct chain_value, -1: in a
 * layout. */
struct tensor *chain_tensor(cudnnDataType_t dtype, const int *dim, int64_t shift, bool is_input);
/* Fills `exact` of an input from its tensor, repeated over the space. */
void chain_spread(struct chain_value *v, const int *dim);
/* y = mode(x, b, t), of which b and t may be null: the values of y, and the operation. */
void chain_add(int mode, const struct pointwise_attributes *a, const struct chain_value *x,
               const struct chain_value *b, const struct chain_value *t, struct chain_value *y);

/* Runs the graph on an engine (0: the best) and judges what it wrote; whether that engine took several
 * operations at once. */
bool chain_run(int64_t engine);

#endif
