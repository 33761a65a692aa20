/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle of batch normalization, see norm_case.h: plain loops over logical indices, wider than
 * double. One thread. */
#include <math.h>
#include <stdlib.h>

#include "norm_case.h"

void norm_shape_make(struct norm_shape *s, int mode, int rank, const int *dim)
{
    s->rank = rank;
    s->count = s->params = 1;
    for (int d = 0; d < rank; ++d) {
        bool own = mode == CUDNN_BATCHNORM_PER_ACTIVATION ? d > 0 : d == 1;
        s->dim[d] = dim[d];
        s->param_dim[d] = own ? dim[d] : 1;
        s->count *= dim[d];
        s->params *= s->param_dim[d];
    }
    s->terms = s->count / s->params;
    s->param_of = malloc((size_t)s->count * sizeof *s->param_of);
    for (int64_t i = 0; i < s->count; ++i) {
        int at[8];
        int64_t rest = i;
        int64_t p = 0;
        for (int d = rank - 1; d >= 0; --d) {
            at[d] = (int)(rest % dim[d]);
            rest /= dim[d];
        }
        for (int d = 0; d < rank; ++d) {
            if (s->param_dim[d] > 1) p = p * dim[d] + at[d];
        }
        s->param_of[i] = p;
    }
}

double *norm_zeros(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

norm_wide *norm_wide_zeros(int64_t count)
{
    return calloc((size_t)count, sizeof(norm_wide));
}

/* Mean, biased variance and the largest deviation of each parameter. */
void norm_statistics(const struct norm_shape *s, const double *x, norm_wide *mean, norm_wide *var,
                     double *spread)
{
    for (int64_t i = 0; i < s->count; ++i) mean[s->param_of[i]] += x[i];
    for (int64_t p = 0; p < s->params; ++p) mean[p] /= (norm_wide)s->terms;
    for (int64_t i = 0; i < s->count; ++i) {
        norm_wide d = x[i] - mean[s->param_of[i]];
        var[s->param_of[i]] += d * d;
        if (fabs((double)d) > spread[s->param_of[i]]) spread[s->param_of[i]] = fabs((double)d);
    }
    for (int64_t p = 0; p < s->params; ++p) var[p] /= (norm_wide)s->terms;
}

double norm_activate(int act, double coef, double v)
{
    switch (act) {
    case CUDNN_ACTIVATION_SIGMOID: return 1.0 / (1.0 + exp(-v));
    case CUDNN_ACTIVATION_RELU: return v > 0 ? v : 0.0;
    case CUDNN_ACTIVATION_TANH: return tanh(v);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return v > coef ? coef : v > 0 ? v : 0.0;
    case CUDNN_ACTIVATION_ELU: return v > 0 ? v : coef * (exp(v) - 1.0);
    case CUDNN_ACTIVATION_SWISH: return v / (1.0 + exp(-v));
    default: return v;
    }
}

static double slope(int act, double coef, double v)
{
    double s = 1.0 / (1.0 + exp(-v));
    switch (act) {
    case CUDNN_ACTIVATION_SIGMOID: return s * (1.0 - s);
    case CUDNN_ACTIVATION_RELU: return v > 0 ? 1.0 : 0.0;
    case CUDNN_ACTIVATION_TANH: return 1.0 - tanh(v) * tanh(v);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return v > 0 && v < coef ? 1.0 : 0.0;
    case CUDNN_ACTIVATION_ELU: return v > 0 ? 1.0 : coef * exp(v);
    case CUDNN_ACTIVATION_SWISH: return s + v * s * (1.0 - s);
    default: return 1.0;
    }
}

static void check_running(const struct norm_case *c, const struct norm_inputs *in,
                          const norm_wide *mean, const norm_wide *var, const double *spread)
{
    const struct norm_shape *s = &c->shape;
    norm_wide n = (norm_wide)s->terms;
    double *new_mean = norm_zeros(s->params);
    double *new_var = norm_zeros(s->params);
    double *mean_size = norm_zeros(s->params);
    double *var_size = norm_zeros(s->params);
    for (int64_t p = 0; p < s->params; ++p) {
        double keep = 1.0 - c->factor;
        double unbiased = s->terms > 1 ? (double)(var[p] * n / (n - 1)) : 0.0;
        double old_mean = c->factor == 1.0 || !in->mean ? 0.0 : keep * in->mean[p];
        double old_var = c->factor == 1.0 || !in->var ? 0.0 : keep * in->var[p];
        new_mean[p] = old_mean + c->factor * (double)mean[p];
        new_var[p] = old_var + c->factor * unbiased;
        mean_size[p] = fabs(old_mean) + fabs(c->factor * (double)mean[p]) + spread[p];
        var_size[p] = fabs(old_var) + fabs(c->factor * unbiased);
    }
    if (c->running_mean) {
        check_values("running mean", c->mean, new_mean, NULL, mean_size, c->param_dtype);
    }
    if (c->running_var) {
        check_values("running variance", c->var, new_var, NULL, var_size, c->param_dtype);
    }
    free(new_mean), free(new_var), free(mean_size), free(var_size);
}

void norm_judge_forward(const struct norm_case *c, const struct norm_inputs *in, double *pre)
{
    const struct norm_shape *s = &c->shape;
    norm_wide *mean = norm_wide_zeros(s->params);
    norm_wide *var = norm_wide_zeros(s->params);
    double *spread = norm_zeros(s->params);
    double *inv = norm_zeros(s->params);
    double *rounded_mean = norm_zeros(s->params);
    double *y = norm_zeros(s->count);
    double *y_size = norm_zeros(s->count);
    norm_statistics(s, in->x, mean, var, spread);
    for (int64_t p = 0; p < s->params; ++p) {
        inv[p] = (double)(1 / sqrtl(var[p] + c->epsilon));
        rounded_mean[p] = (double)mean[p];
    }
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t p = s->param_of[i];
        double old = c->beta == 0.0 ? 0.0 : c->beta * in->y[i];
        pre[i] = in->scale[p] * (double)(in->x[i] - mean[p]) * inv[p] + in->bias[p];
        if (in->z) pre[i] += in->z[i];
        y[i] = c->alpha * norm_activate(c->act, c->coef, pre[i]) + old;
        y_size[i] = fabs(c->alpha) * (fabs(in->scale[p]) * spread[p] * inv[p] + fabs(in->bias[p]) +
                                      (in->z ? fabs(in->z[i]) : 0.0)) +
                    fabs(old);
    }
    check_values("y", c->y, y, NULL, y_size, c->param_dtype);
    if (c->saved) {
        check_values("saved mean", c->saved_mean, rounded_mean, NULL, spread, c->param_dtype);
        check_values("saved inverse deviation", c->saved_inv, inv, NULL, inv, c->param_dtype);
    }
    if (c->running_mean || c->running_var) check_running(c, in, mean, var, spread);
    free(mean), free(var), free(spread), free(inv), free(rounded_mean), free(y), free(y_size);
}

/* Gradients; `pre` are the values before the activation. Statistics that the caller passes are used
 * as they are. */
struct gradients {
    double *dx, *dx_size, *dz, *dscale, *dscale_size, *dbias, *dbias_size;
};

static void gradients_free(struct gradients *g)
{
    free(g->dx), free(g->dx_size), free(g->dz), free(g->dscale), free(g->dscale_size);
    free(g->dbias), free(g->dbias_size);
}

/* How far rounding can move g = dy act'(v): a mask is exact, a smooth derivative as good as v. */
static double incoming_size(const struct norm_case *c, double dy, double dz, double pre)
{
    bool exact = !c->ops || c->act == CUDNN_ACTIVATION_IDENTITY ||
                 c->act == CUDNN_ACTIVATION_RELU || c->act == CUDNN_ACTIVATION_CLIPPED_RELU;
    return exact ? fabs(dz) : fabs(dy) * (1.0 + fabs(pre));
}

/* Whether rounding of the sum decides on which side of a clip it is: either bit is right then. */
static bool at_clip(const struct norm_case *c, double pre)
{
    double near = 8.0 * tensor_epsilon(c->param_dtype) * (4.0 + fabs(pre));
    if (c->act != CUDNN_ACTIVATION_RELU && c->act != CUDNN_ACTIVATION_CLIPPED_RELU) return false;
    return fabs(pre) <= near ||
           (c->act == CUDNN_ACTIVATION_CLIPPED_RELU && fabs(pre - c->coef) <= near);
}

/* Which bit it was, dz says. */
static double incoming(const struct norm_case *c, const struct norm_inputs *in, double pre,
                       int64_t i)
{
    if (!c->ops) return in->dy[i];
    if (c->dz && at_clip(c, pre)) return c->dz->value[i] == 0.0 ? 0.0 : in->dy[i];
    return in->dy[i] * slope(c->act, c->coef, pre);
}

static struct gradients gradients(const struct norm_case *c, const struct norm_inputs *in,
                                  const double *pre, const double *given_mean,
                                  const double *given_inv)
{
    const struct norm_shape *s = &c->shape;
    struct gradients g = {norm_zeros(s->count),  norm_zeros(s->count),  norm_zeros(s->count),
                          norm_zeros(s->params), norm_zeros(s->params), norm_zeros(s->params),
                          norm_zeros(s->params)};
    norm_wide *mean = norm_wide_zeros(s->params);
    norm_wide *inv = norm_wide_zeros(s->params);
    double *spread = norm_zeros(s->params);
    double n = (double)s->terms;
    norm_statistics(s, in->x, mean, inv, spread);
    for (int64_t p = 0; p < s->params; ++p) {
        inv[p] = given_inv ? given_inv[p] : 1 / sqrtl(inv[p] + c->epsilon);
        if (given_mean) mean[p] = given_mean[p];
    }
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t p = s->param_of[i];
        double xhat = (double)((in->x[i] - mean[p]) * inv[p]);
        double size;
        g.dz[i] = incoming(c, in, pre[i], i);
        size = incoming_size(c, in->dy[i], g.dz[i], pre[i]);
        g.dbias[p] += g.dz[i];
        g.dscale[p] += g.dz[i] * xhat;
        g.dbias_size[p] += size;
        g.dscale_size[p] += size * (fabs(xhat) + spread[p] * (double)inv[p]);
    }
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t p = s->param_of[i];
        double xhat = (double)((in->x[i] - mean[p]) * inv[p]);
        double factor = in->scale[p] * (double)inv[p];
        g.dx[i] = factor * (g.dz[i] - (g.dbias[p] + xhat * g.dscale[p]) / n);
        g.dx_size[i] =
            fabs(factor) * (incoming_size(c, in->dy[i], g.dz[i], pre[i]) +
                            (g.dbias_size[p] + spread[p] * (double)inv[p] * g.dscale_size[p]) / n);
    }
    free(mean), free(inv), free(spread);
    return g;
}

static void blend(double *value, double *size, int64_t count, double alpha, double beta,
                  const double *old)
{
    for (int64_t i = 0; i < count; ++i) {
        double rest = beta == 0.0 ? 0.0 : beta * old[i];
        value[i] = alpha * value[i] + rest;
        size[i] = fabs(alpha) * size[i] + fabs(rest);
    }
}

void norm_judge_backward(const struct norm_case *c, const struct norm_inputs *in, const double *pre)
{
    const struct norm_shape *s = &c->shape;
    const double *given_mean = c->saved ? c->saved_mean->value : NULL;
    const double *given_inv = c->saved ? c->saved_inv->value : NULL;
    struct gradients g = gradients(c, in, pre, given_mean, given_inv);
    double *dz_size = norm_zeros(s->count);
    blend(g.dx, g.dx_size, s->count, c->alpha_data, c->beta_data, in->dx);
    blend(g.dscale, g.dscale_size, s->params, c->alpha_param, c->beta_param, in->dscale);
    blend(g.dbias, g.dbias_size, s->params, c->alpha_param, c->beta_param, in->dbias);
    for (int64_t i = 0; i < s->count; ++i) {
        dz_size[i] = incoming_size(c, in->dy[i], g.dz[i], pre[i]);
    }
    check_values("dx", c->dx, g.dx, NULL, g.dx_size, c->param_dtype);
    check_values("dscale", c->dscale, g.dscale, NULL, g.dscale_size, c->param_dtype);
    check_values("dbias", c->dbias, g.dbias, NULL, g.dbias_size, c->param_dtype);
    if (c->dz) check_values("dz", c->dz, g.dz, NULL, dz_size, c->param_dtype);
    free(dz_size);
    gradients_free(&g);
}
