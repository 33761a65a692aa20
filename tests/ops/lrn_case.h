/* SPDX-License-Identifier: Apache-2.0
 *
 * A local response or divisive normalization: its call, its formula, written out in double such that what
 * every element does to the others is scattered, not gathered, and the cases that both have. Used by
 * the lists of lrn_test.c and divnorm_test.c. */
#ifndef TESTS_OPS_LRN_CASE_H
#define TESTS_OPS_LRN_CASE_H

#include "part.h"

struct lrn_call {
    cudnnLRNDescriptor_t lrn;
    bool divisive;
    int n;
    double a, b, k; /* of the descriptor */
    double alpha, beta;
    struct part *x, *y, *dy, *dx;
    struct part *means, *temp, *temp2, *dmeans; /* divisive; means and dmeans may be null */
};

struct lrn_type {
    const char *name;
    cudnnDataType_t type;
};
enum { LRN_TYPES = 4 };
extern const struct lrn_type lrn_types[LRN_TYPES];

/* alpha or beta. */
double lrn_random_scalar(void);
/* Makes the descriptor. */
void lrn_describe(struct lrn_call *c);
/* For run_call. */
cudnnStatus_t lrn_forward(void *context);
cudnnStatus_t lrn_backward(void *context);
/* Against the values that the outputs had before, which are written over. */
void lrn_check_forward(const struct lrn_call *c, double *before);
void lrn_check_backward(const struct lrn_call *c, double *dx, double *dmeans);

/* Random shapes, layouts, windows and coefficients, with means and without. */
void lrn_random_case(bool divisive, int type, int turn);
/* NaN and infinities reach what has them in its window, and nothing else. */
void lrn_odd_case(bool divisive, int type);
/* Gradients against finite differences, with a window of n. */
void lrn_difference_case(bool divisive, int n);

#endif
