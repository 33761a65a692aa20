/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise modes in double, written apart from the library. */
#ifndef TESTS_OPS_POINTWISE_FORMULA_H
#define TESTS_OPS_POINTWISE_FORMULA_H

#include <stdbool.h>

/* What a mode's descriptor and its operation's say. */
struct pointwise_attributes {
    double low, high, slope, elu, softplus, swish, alpha1, alpha2;
};

/* mode(x, b, t); of a gradient b is dy. The factors alpha1 and alpha2 are the caller's to apply. */
double pointwise_formula(int mode, const struct pointwise_attributes *a, double x, double b,
                         double t);
bool pointwise_is_gradient(int mode);
/* How many of x, b, t a mode has. */
int pointwise_operands(int mode);

#endif
