/* SPDX-License-Identifier: Apache-2.0
 *
 * A pooling: its calls, and its formula, in scatter form and in double: every window visits its elements,
 * adds them up or takes the first of the largest, and hands its gradient back. Used by the lists of
 * pooling_test.c and pooling_large_test.c. */
#ifndef TESTS_OPS_POOLING_CASE_H
#define TESTS_OPS_POOLING_CASE_H

#include "part.h"

struct pooling_call {
    cudnnPoolingDescriptor_t pooling;
    struct part *x, *y, *dy, *dx;
    double alpha, beta;
};

struct pooling_geometry {
    int mode, propagate, rank;
    int x[8], y[8], window[6], pad[6], stride[6];
};

enum { POOLING_TYPES = CUDNN_DATA_BFLOAT16 + 1 };
extern const char *const pooling_type_name[POOLING_TYPES];

cudnnPoolingDescriptor_t pooling_descriptor(const struct pooling_geometry *g);
/* Few different values, so that maxima are often shared; and now and then a NaN. */
void pooling_roughen(struct part *x, bool nan);
/* For run_call. */
cudnnStatus_t pooling_forward(void *context);
cudnnStatus_t pooling_backward(void *context);
/* Against the values that the output had before, which are written over. */
void pooling_check_forward(const struct pooling_geometry *g, const struct pooling_call *c,
                           double *before);
void pooling_check_backward(const struct pooling_geometry *g, const struct pooling_call *c,
                            double *before);

#endif
