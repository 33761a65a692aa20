/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch normalization case: its tensors, its calls, and its oracle, which is the formula in plain
 * loops, wider than double. Used by the lists of norm_test.c and others. */
#ifndef TESTS_OPS_NORM_CASE_H
#define TESTS_OPS_NORM_CASE_H

#include "support/harness.h"

enum { NO_ACTIVATION = -1 };

typedef long double norm_wide;

struct norm_shape {
    int rank;
    int dim[8];
    int param_dim[8];
    int64_t count;
    int64_t params;
    int64_t terms;
    int64_t *param_of; /* of each element */
};

struct norm_case {
    int mode;
    int ops;
    int act;
    double coef;
    cudnnDataType_t dtype;
    cudnnDataType_t param_dtype;
    struct norm_shape shape;
    double alpha, beta;           /* forward */
    double alpha_data, beta_data; /* backward */
    double alpha_param, beta_param;
    double factor;
    double epsilon;
    bool running_mean, running_var, saved, in_place;
    struct tensor *x, *z, *y, *scale, *bias, *mean, *var, *saved_mean, *saved_inv;
    struct tensor *dy, *dx, *dz, *dscale, *dbias;
    struct tensor *workspace, *workspace_back, *reserve;
    cudnnActivationDescriptor_t activation;
    bool forward, backward, ex;
    bool newer; /* with ex: through cudnnNormalization*, whose statistics have their own layout */
    int algo;   /* cudnnNormAlgo_t of these */
    int layout; /* of all tensors of x's shape, plus 1; 0: each has its own, at random */
    int odd;    /* elements by which all tensors of a case lie off their alignment */
    const char *engine; /* that must have run last; null: any */
};

/* What the tensors held before the call. */
struct norm_inputs {
    double *x, *y, *z, *dy, *dx, *dscale, *dbias, *mean, *var, *scale, *bias, *saved_mean,
        *saved_inv;
};

/* Of the values of x. */
struct norm_range {
    double low, high;
};

void norm_shape_make(struct norm_shape *s, int mode, int rank, const int *dim);
double *norm_zeros(int64_t count);
norm_wide *norm_wide_zeros(int64_t count);
/* Mean, biased variance and the largest deviation of each parameter, into zeros. */
void norm_statistics(const struct norm_shape *s, const double *x, norm_wide *mean, norm_wide *var,
                     double *spread);
double norm_activate(int act, double coef, double v);

/* What the call wrote against the formula. Forward fills `pre`, the values before the activation, which
 * backward takes. */
void norm_judge_forward(const struct norm_case *c, const struct norm_inputs *in, double *pre);
void norm_judge_backward(const struct norm_case *c, const struct norm_inputs *in,
                         const double *pre);

/* Makes the tensors of a case whose plain fields are set. */
void norm_make_tensors(struct norm_case *c, struct norm_range x);
/* Exactly as much workspace and reserve space as is asked for. */
bool norm_make_spaces(struct norm_case *c);
struct norm_inputs norm_inputs(const struct norm_case *c);
void norm_inputs_free(struct norm_inputs *in);
/* The whole of it: tensors, the call in every way, the judgement, the end of the case. */
void norm_run(struct norm_case *c, struct norm_range x);

/* For run_call: training, then backward where wanted; and inference. */
cudnnStatus_t norm_call(void *context);
cudnnStatus_t norm_call_inference(void *context);
/* The same steps through the newer interface (norm_newer.c). */
cudnnStatus_t norm_newer_inference(void *context);
cudnnStatus_t norm_newer_forward(const struct norm_case *c);
cudnnStatus_t norm_newer_backward(const struct norm_case *c);
bool norm_newer_sizes(const struct norm_case *c, size_t *forward, size_t *backward,
                      size_t *reserve);
/* alpha or beta in the form that the API takes it, in `room`. */
const void *norm_scalar(const struct norm_case *c, double value, double *room);
/* Fails the case with the text of a refusal. */
bool norm_fine(const char *what, cudnnStatus_t status);

struct tensor *norm_param(struct norm_case *c, enum layout layout, double low, double high);
/* An output; where beta is 0 it starts as NaN, for it must not be read. */
struct tensor *norm_output(struct norm_case *c, enum layout layout, double beta);
enum layout norm_any_layout(void);

#endif
