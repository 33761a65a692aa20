/* SPDX-License-Identifier: Apache-2.0
 *
 * A case of resampling, forward or backward: tensors, the call, and its answer against the documented
 * meaning (resample_case.h) in double and in scatter form: each window hands its gradient back to the
 * pixels that count in it. */
#ifndef TESTS_OPS_RESAMPLE_RUN_H
#define TESTS_OPS_RESAMPLE_RUN_H

#include "resample_case.h"

/* How tensors of a case lie: each its own way; all alike, as fast engines need it; all alike and off
 * their alignment. */
enum resample_lie { LIE_MIXED, LIE_ALIKE, LIE_ODD };

/* Random values and scalars, some of them NaN; an index tensor now and then. */
void resample_forward(const struct geometry *g, int xtype, int ytype, enum layout layout,
                      enum resample_lie lie);
void resample_backward(const struct geometry *g, int dytype, int dxtype, enum layout layout,
                       enum resample_lie lie);

/* Maxima with an index tensor, blended with what is there: NaNs, minus infinities, and windows of nothing else. */
void resample_hard_maxima(const struct geometry *g, int type, enum layout layout,
                          enum resample_lie lie);

/* Constant channels, which have to remain exactly that: averages by shares that are quarters. */
void resample_constant(const struct geometry *g, int type, enum layout layout,
                       enum resample_lie lie);

/* The type that sums are judged by. */
cudnnDataType_t resample_arithmetic(cudnnDataType_t a, cudnnDataType_t b);
int resample_lanes(int type);
bool resample_is_float(int type);
double *resample_copy(const struct tensor *t);

#endif
