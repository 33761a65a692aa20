/* SPDX-License-Identifier: Apache-2.0
 *
 * A reduction: its call, and its oracle, which is the definition in long double. Used by the lists of
 * reduce_test.c and reduce_walk_test.c. */
#ifndef TESTS_OPS_REDUCE_CASE_H
#define TESTS_OPS_REDUCE_CASE_H

#include "support/harness.h"

struct reduction {
    int op;
    int compute;
    int nan;
    int indices;
    int width;
    double alpha, beta;
    struct tensor *a, *c, *workspace, *index;
    cudnnReduceTensorDescriptor_t desc;
    size_t index_bytes;
};

/* Types of A and C, and what is computed in. */
struct reduce_types {
    const char *name;
    cudnnDataType_t a, c;
    int compute;
};
enum { REDUCE_TYPES = 12, REDUCE_OPS = 9 };
extern const struct reduce_types reduce_types[REDUCE_TYPES];
extern const char *const reduce_op_names[REDUCE_OPS];

/* Whether there are indices. */
bool reduce_picks(int op);
enum layout reduce_layout(void);
/* C as it must not be read, where beta is 0. */
struct tensor *reduce_output(cudnnDataType_t dtype, int rank, const int *dim, double beta);

/* Descriptor, workspace and indices of exactly the answered sizes; false where one is refused. */
bool reduce_prepare(struct reduction *r);
cudnnStatus_t reduce_call(void *context);
/* The whole of a case whose tensors are made, and its end. */
void reduce_run(struct reduction *r);

#endif
