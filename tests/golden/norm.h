/* SPDX-License-Identifier: Apache-2.0
 *
 * One batch normalization as the cases state it, in either interface: its tensors, and how far two
 * correct results may differ.
 */
#ifndef GOLDEN_NORM_H
#define GOLDEN_NORM_H

#include "golden.h"

struct norm_kind {
    const char *name;
    cudnnDataType_t type, param;
    enum gd_layout layout;
    int nd, dim[5];
};

struct norm_set {
    struct gd_tens *x, *z, *y, *dy, *dx, *dz;
    struct gd_tens *scale, *bias, *mean, *var, *saved_mean, *saved_var, *dscale, *dbias;
    cudnnActivationDescriptor_t a; /* null: none */
    cudnnDataType_t st;            /* of scaling factors and sums */
    double n;                      /* elements of one statistic */
};

/* Inside a case: the tensors for a mode of either interface, inputs filled, outputs poisoned. */
struct norm_set norm_set(const struct norm_kind *kind, int mode);
/* Gives it an activation; norm_end destroys that. */
void norm_activation(struct norm_set *s, int activation);
void norm_end(struct norm_set *s);
/* Fills the outputs that calls with beta read; dz is not one of them. */
void norm_fill_outputs(struct norm_set *s);

struct gd_tol norm_tolerance(const struct norm_set *s, const struct gd_tens *t, double n,
                             double scale);
/* Notes what training and backward wrote; `scale` is |alpha| + |beta|. */
void norm_out_training(struct norm_set *s, double scale);
void norm_out_backward(struct norm_set *s, double scale, bool dz);

#endif
