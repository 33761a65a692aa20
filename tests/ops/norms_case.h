/* SPDX-License-Identifier: Apache-2.0
 *
 * A normalization of the backend API: its tensors and its oracle, which is the formula in plain loops
 * over logical indices, wider than double. Used by the lists of norms_test.c and norms_frontend_test.c. */
#ifndef TESTS_OPS_NORMS_CASE_H
#define TESTS_OPS_NORMS_CASE_H

#include "support/harness.h"

typedef long double norms_wide;

enum norms_phase { NORMS_INFERENCE, NORMS_TRAINING, NORMS_BACKWARD };

struct norms_case {
    int mode; /* cudnnBackendNormMode_t */
    enum norms_phase phase;
    int rank;
    int dim[8];
    int stat_dim[8];
    int scale_dim[8];
    cudnnDataType_t x_type, y_type, param_type, stat_type; /* y: also of dy and dx */
    bool statistics; /* given to inference and backward, wanted of training */
    bool bias;       /* backward: dbias */
    bool running;
    bool single; /* sums of a hundred terms in single precision: judged beside such */
    double epsilon, factor;
    struct tensor *x, *y, *scale, *bias_tensor, *mean, *inv_std;
    struct tensor *in_mean, *in_var, *out_mean, *out_var;
    struct tensor *dy, *dx, *dscale, *dbias;
};

/* What the tensors held before the call. */
struct norms_inputs {
    double *x, *scale, *bias, *mean, *inv_std, *in_mean, *in_var, *dy;
};

/* Which item of a tensor of dims `own` belongs to each element of x; groups of channels too. */
int64_t *norms_map(const struct norms_case *c, const int *own);
int64_t norms_count(int rank, const int *dim);

struct norms_inputs norms_inputs(const struct norms_case *c);
void norms_inputs_free(struct norms_inputs *in);

/* sum(dy y) as the oracle's forward gives it, for finite differences. */
double norms_loss(const struct norms_case *c, const struct norms_inputs *in);

void norms_judge_forward(const struct norms_case *c, const struct norms_inputs *in);
void norms_judge_backward(const struct norms_case *c, const struct norms_inputs *in);

#endif
