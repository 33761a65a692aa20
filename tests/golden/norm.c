/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements norm.h.
 */
#include "norm.h"

struct norm_set norm_set(const struct norm_kind *kind, int mode)
{
    struct norm_set s = {0};
    struct gd_tens **big[] = {&s.x, &s.z, &s.y, &s.dy, &s.dx, &s.dz};
    static const char *const big_names[] = {"x", "z", "y", "dy", "dx", "dz"};
    struct gd_tens **small[] = {&s.scale,      &s.bias,      &s.mean,   &s.var,
                                &s.saved_mean, &s.saved_var, &s.dscale, &s.dbias};
    static const char *const small_names[] = {"scale",      "bias",      "mean",   "var",
                                              "saved_mean", "saved_var", "dscale", "dbias"};
    bool each = mode == CUDNN_BATCHNORM_PER_ACTIVATION; /* or CUDNN_NORM_PER_ACTIVATION */
    enum gd_layout pl = kind->layout == GD_NHWC && each ? GD_NHWC : GD_NCHW;
    int p[5] = {1};
    s.st = kind->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    s.n = kind->dim[0];
    for (int i = 1; i < kind->nd; i++) {
        p[i] = i == 1 || each ? kind->dim[i] : 1;
        if (i > 1 && !each) s.n *= kind->dim[i];
    }
    for (int i = 0; i < 6; i++)
        *big[i] = gd_tens(big_names[i], kind->type, kind->layout, kind->nd, kind->dim);
    for (int i = 0; i < 8; i++) *small[i] = gd_tens(small_names[i], kind->param, pl, kind->nd, p);
    gd_fill(s.x, GD_REAL);
    gd_fill(s.z, GD_UNIT);
    gd_fill(s.dy, GD_UNIT);
    gd_fill(s.scale, GD_POS);
    gd_fill(s.bias, GD_UNIT);
    gd_fill(s.mean, GD_UNIT);
    gd_fill(s.var, GD_POS);
    return s;
}

void norm_activation(struct norm_set *s, int activation)
{
    gd_setup("act", lib.CreateActivationDescriptor(&s->a));
    gd_setup("act.set", lib.SetActivationDescriptor(s->a, (cudnnActivationMode_t)activation,
                                                    CUDNN_PROPAGATE_NAN, 1));
}

void norm_end(struct norm_set *s)
{
    if (s->a) lib.DestroyActivationDescriptor(s->a);
}

void norm_fill_outputs(struct norm_set *s)
{
    gd_fill(s->y, GD_UNIT);
    gd_fill(s->dx, GD_UNIT);
    gd_fill(s->dscale, GD_UNIT);
    gd_fill(s->dbias, GD_UNIT);
}

/* The mean of n values of [-4, 4] has the error of their sum over n; the variance the error of a
 * sum of squares up to 16; dividing by a deviation of about 2 keeps y in the same range. A small
 * variance would magnify, but inputs are spread. */
struct gd_tol norm_tolerance(const struct norm_set *s, const struct gd_tens *t, double n,
                             double scale)
{
    struct gd_tol tol = gd_sum_tol(t->type, s->st, n, 1);
    tol.abs = tol.abs / (n + 2) * 16 * (scale + 1e-30);
    tol.rel += 16 * gd_roundoff(s->st);
    return tol;
}

void norm_out_training(struct norm_set *s, double scale)
{
    gd_out(s->y, norm_tolerance(s, s->y, s->n, 1 + scale));
    gd_out(s->mean, norm_tolerance(s, s->mean, s->n, 1));
    gd_out(s->var, norm_tolerance(s, s->var, s->n, 1));
    gd_out(s->saved_mean, norm_tolerance(s, s->saved_mean, s->n, 1));
    gd_out(s->saved_var, norm_tolerance(s, s->saved_var, s->n, 1));
}

void norm_out_backward(struct norm_set *s, double scale, bool dz)
{
    gd_out(s->dx, norm_tolerance(s, s->dx, s->n, scale));
    if (dz) gd_out(s->dz, norm_tolerance(s, s->dz, 1, scale));
    gd_out(s->dscale, norm_tolerance(s, s->dscale, s->n, scale * s->n));
    gd_out(s->dbias, norm_tolerance(s, s->dbias, s->n, scale * s->n));
}
