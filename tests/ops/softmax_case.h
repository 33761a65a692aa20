/* SPDX-License-Identifier: Apache-2.0
 *
 * A softmax: its calls, and its formula in double, row by row. Used by the lists of softmax_test.c and
 * softmax_shapes_test.c. */
#ifndef TESTS_OPS_SOFTMAX_CASE_H
#define TESTS_OPS_SOFTMAX_CASE_H

#include "part.h"

struct softmax_call {
    cudnnSoftmaxAlgorithm_t algorithm;
    cudnnSoftmaxMode_t mode;
    struct part *x, *y, *dy, *dx;
    double alpha, beta;
    bool skips; /* each tensor is packed and begins some elements into its whole */
    int x_skip, y_skip, dy_skip, dx_skip;
};

enum { SOFTMAX_TYPES = 4 };
extern const cudnnDataType_t softmax_types[SOFTMAX_TYPES];
extern const char *const softmax_type_name[SOFTMAX_TYPES];

/* For run_call. */
cudnnStatus_t softmax_forward(void *context);
cudnnStatus_t softmax_backward(void *context);
/* The call in every way, and the judgement. */
void softmax_run_forward(struct softmax_call *c);
void softmax_run_backward(struct softmax_call *c);

#endif
