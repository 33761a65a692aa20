/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization against its formula in double: inference, training and backward, plain and
 * with a fused residual and activation; every mode, type and layout, running averages, saved and
 * unsaved statistics, in place, large common offsets, one element a parameter, more parameters than
 * one range of the definition; the oracle's gradients against finite differences of its forward. */
#include "support/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { NO_ACTIVATION = -1 };

/* ---- The oracle: plain loops over logical indices, wider than double ---- */

typedef long double wide;

struct shape {
    int rank;
    int dim[8];
    int param_dim[8];
    int64_t count;
    int64_t params;
    int64_t terms;
    int64_t *param_of; /* of each element */
};

static void shape_make(struct shape *s, int mode, int rank, const int *dim)
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

static double *zeros(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

static wide *wide_zeros(int64_t count)
{
    return calloc((size_t)count, sizeof(wide));
}

static double *copy(const double *from, int64_t count)
{
    double *to = malloc((size_t)count * sizeof *to);
    memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

/* Mean, biased variance and the largest deviation of each parameter. */
static void statistics(const struct shape *s, const double *x, wide *mean, wide *var,
                       double *spread)
{
    for (int64_t i = 0; i < s->count; ++i) mean[s->param_of[i]] += x[i];
    for (int64_t p = 0; p < s->params; ++p) mean[p] /= (wide)s->terms;
    for (int64_t i = 0; i < s->count; ++i) {
        wide d = x[i] - mean[s->param_of[i]];
        var[s->param_of[i]] += d * d;
        if (fabs((double)d) > spread[s->param_of[i]]) spread[s->param_of[i]] = fabs((double)d);
    }
    for (int64_t p = 0; p < s->params; ++p) var[p] /= (wide)s->terms;
}

static double activate(int act, double coef, double v)
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

/* ---- One case ---- */

struct bn {
    int mode;
    int ops;
    int act;
    double coef;
    cudnnDataType_t dtype;
    cudnnDataType_t param_dtype;
    struct shape shape;
    double alpha, beta;           /* forward */
    double alpha_data, beta_data; /* backward */
    double alpha_param, beta_param;
    double factor;
    double epsilon;
    bool running, saved, in_place;
    struct tensor *x, *z, *y, *scale, *bias, *mean, *var, *saved_mean, *saved_inv;
    struct tensor *dy, *dx, *dz, *dscale, *dbias;
    struct tensor *workspace, *reserve;
    cudnnActivationDescriptor_t activation;
    bool forward, backward, ex;
};

static struct tensor *param_tensor(struct bn *c, enum layout layout, double low, double high)
{
    return tensor_input(c->param_dtype, c->shape.rank, c->shape.param_dim, layout, low, high);
}

static const void *scalar(const struct bn *c, double value, double *room)
{
    float single = (float)value;
    if (c->dtype == CUDNN_DATA_DOUBLE) *room = value;
    else memcpy(room, &single, sizeof single);
    return room;
}

static cudnnStatus_t call_inference(void *context)
{
    const struct bn *c = context;
    double a;
    double b;
    return cudnnBatchNormalizationForwardInference(
        harness_handle, (cudnnBatchNormMode_t)c->mode, scalar(c, c->alpha, &a),
        scalar(c, c->beta, &b), c->x->desc, c->x->data, c->y->desc, c->y->data, c->scale->desc,
        c->scale->data, c->bias->data, c->mean->data, c->var->data, c->epsilon);
}

static cudnnStatus_t call_forward(const struct bn *c)
{
    double a;
    double b;
    void *mean = c->running ? c->mean->data : NULL;
    void *var = c->running ? c->var->data : NULL;
    void *saved_mean = c->saved ? c->saved_mean->data : NULL;
    void *saved_inv = c->saved ? c->saved_inv->data : NULL;
    if (!c->ex) {
        return cudnnBatchNormalizationForwardTraining(
            harness_handle, (cudnnBatchNormMode_t)c->mode, scalar(c, c->alpha, &a),
            scalar(c, c->beta, &b), c->x->desc, c->x->data, c->y->desc, c->y->data, c->scale->desc,
            c->scale->data, c->bias->data, c->factor, mean, var, c->epsilon, saved_mean, saved_inv);
    }
    return cudnnBatchNormalizationForwardTrainingEx(
        harness_handle, (cudnnBatchNormMode_t)c->mode, (cudnnBatchNormOps_t)c->ops,
        scalar(c, c->alpha, &a), scalar(c, c->beta, &b), c->x->desc, c->x->data,
        c->z ? c->z->desc : NULL, c->z ? c->z->data : NULL, c->y->desc, c->y->data, c->scale->desc,
        c->scale->data, c->bias->data, c->factor, mean, var, c->epsilon, saved_mean, saved_inv,
        c->activation, c->workspace ? c->workspace->data : NULL,
        c->workspace ? (size_t)c->workspace->bytes : 0, c->reserve ? c->reserve->data : NULL,
        c->reserve ? (size_t)c->reserve->bytes : 0);
}

static cudnnStatus_t call_backward(const struct bn *c)
{
    double room[4];
    const void *ad = scalar(c, c->alpha_data, &room[0]);
    const void *bd = scalar(c, c->beta_data, &room[1]);
    const void *ap = scalar(c, c->alpha_param, &room[2]);
    const void *bp = scalar(c, c->beta_param, &room[3]);
    const void *saved_mean = c->saved ? c->saved_mean->data : NULL;
    const void *saved_inv = c->saved ? c->saved_inv->data : NULL;
    if (!c->ex) {
        return cudnnBatchNormalizationBackward(
            harness_handle, (cudnnBatchNormMode_t)c->mode, ad, bd, ap, bp, c->x->desc, c->x->data,
            c->dy->desc, c->dy->data, c->dx->desc, c->dx->data, c->scale->desc, c->scale->data,
            c->dscale->data, c->dbias->data, c->epsilon, saved_mean, saved_inv);
    }
    return cudnnBatchNormalizationBackwardEx(
        harness_handle, (cudnnBatchNormMode_t)c->mode, (cudnnBatchNormOps_t)c->ops, ad, bd, ap, bp,
        c->x->desc, c->x->data, c->ops ? c->y->desc : NULL, c->ops ? c->y->data : NULL, c->dy->desc,
        c->dy->data, c->dz ? c->dz->desc : NULL, c->dz ? c->dz->data : NULL, c->dx->desc,
        c->dx->data, c->scale->desc, c->scale->data, c->ops ? c->bias->data : NULL, c->dscale->data,
        c->dbias->data, c->epsilon, saved_mean, saved_inv, c->activation,
        c->workspace ? c->workspace->data : NULL, c->workspace ? (size_t)c->workspace->bytes : 0,
        c->reserve ? c->reserve->data : NULL, c->reserve ? (size_t)c->reserve->bytes : 0);
}

static cudnnStatus_t call_case(void *context)
{
    const struct bn *c = context;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (c->forward) status = call_forward(c);
    if (status == CUDNN_STATUS_SUCCESS && c->backward) status = call_backward(c);
    return status;
}

static bool fine(const char *what, cudnnStatus_t status)
{
    char text[512];
    if (status == CUDNN_STATUS_SUCCESS) return true;
    cudnnGetLastErrorString(text, sizeof text);
    case_fail("%s: %s: %s", what, cudnnGetErrorString(status), text);
    return false;
}

/* Exactly as much workspace and reserve space as is asked for. */
static bool make_spaces(struct bn *c)
{
    size_t forward = 0;
    size_t backward = 0;
    size_t reserve = 0;
    cudnnBatchNormMode_t mode = (cudnnBatchNormMode_t)c->mode;
    cudnnBatchNormOps_t ops = (cudnnBatchNormOps_t)c->ops;
    cudnnTensorDescriptor_t z = c->z ? c->z->desc : NULL;
    cudnnTensorDescriptor_t like = c->x->desc;
    if (!fine("workspace size", cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                                    harness_handle, mode, ops, like, z, like, c->scale->desc,
                                    c->activation, &forward)) ||
        !fine("workspace size", cudnnGetBatchNormalizationBackwardExWorkspaceSize(
                                    harness_handle, mode, ops, like, like, like, like, like,
                                    c->scale->desc, c->activation, &backward)) ||
        !fine("reserve size", cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
                                  harness_handle, mode, ops, c->activation, like, &reserve))) {
        return false;
    }
    if (!c->backward) backward = 0;
    if (!c->forward) forward = 0;
    if (forward < backward) forward = backward;
    if (forward > 0) c->workspace = tensor_bytes((int64_t)forward);
    if (reserve > 0) c->reserve = tensor_bytes((int64_t)reserve);
    return true;
}

struct inputs {
    double *x, *y, *z, *dy, *dx, *dscale, *dbias, *mean, *var, *scale, *bias, *saved_mean,
        *saved_inv;
};

static double *value_of(const struct tensor *t)
{
    return t ? copy(t->value, t->count) : NULL;
}

static void inputs_free(struct inputs *in)
{
    free(in->x), free(in->y), free(in->z), free(in->dy), free(in->dx), free(in->dscale);
    free(in->dbias), free(in->mean), free(in->var), free(in->scale), free(in->bias);
    free(in->saved_mean), free(in->saved_inv);
}

static struct inputs inputs_of(const struct bn *c)
{
    return (struct inputs){value_of(c->x),        value_of(c->y),    value_of(c->z),
                           value_of(c->dy),       value_of(c->dx),   value_of(c->dscale),
                           value_of(c->dbias),    value_of(c->mean), value_of(c->var),
                           value_of(c->scale),    value_of(c->bias), value_of(c->saved_mean),
                           value_of(c->saved_inv)};
}

static void check_running(const struct bn *c, const struct inputs *in, const wide *mean,
                          const wide *var, const double *spread)
{
    const struct shape *s = &c->shape;
    wide n = (wide)s->terms;
    double *new_mean = zeros(s->params);
    double *new_var = zeros(s->params);
    double *mean_size = zeros(s->params);
    double *var_size = zeros(s->params);
    for (int64_t p = 0; p < s->params; ++p) {
        double keep = 1.0 - c->factor;
        double unbiased = s->terms > 1 ? (double)(var[p] * n / (n - 1)) : 0.0;
        double old_mean = c->factor == 1.0 ? 0.0 : keep * in->mean[p];
        double old_var = c->factor == 1.0 ? 0.0 : keep * in->var[p];
        new_mean[p] = old_mean + c->factor * (double)mean[p];
        new_var[p] = old_var + c->factor * unbiased;
        mean_size[p] = fabs(old_mean) + fabs(c->factor * (double)mean[p]) + spread[p];
        var_size[p] = fabs(old_var) + fabs(c->factor * unbiased);
    }
    check_values("running mean", c->mean, new_mean, NULL, mean_size, c->param_dtype);
    check_values("running variance", c->var, new_var, NULL, var_size, c->param_dtype);
    free(new_mean), free(new_var), free(mean_size), free(var_size);
}

static void check_forward(const struct bn *c, const struct inputs *in, double *pre)
{
    const struct shape *s = &c->shape;
    wide *mean = wide_zeros(s->params);
    wide *var = wide_zeros(s->params);
    double *spread = zeros(s->params);
    double *inv = zeros(s->params);
    double *rounded_mean = zeros(s->params);
    double *y = zeros(s->count);
    double *y_size = zeros(s->count);
    statistics(s, in->x, mean, var, spread);
    for (int64_t p = 0; p < s->params; ++p) {
        inv[p] = (double)(1 / sqrtl(var[p] + c->epsilon));
        rounded_mean[p] = (double)mean[p];
    }
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t p = s->param_of[i];
        double old = c->beta == 0.0 ? 0.0 : c->beta * in->y[i];
        pre[i] = in->scale[p] * (double)(in->x[i] - mean[p]) * inv[p] + in->bias[p];
        if (in->z) pre[i] += in->z[i];
        y[i] = c->alpha * activate(c->act, c->coef, pre[i]) + old;
        y_size[i] = fabs(c->alpha) * (fabs(in->scale[p]) * spread[p] * inv[p] + fabs(in->bias[p]) +
                                      (in->z ? fabs(in->z[i]) : 0.0)) +
                    fabs(old);
    }
    check_values("y", c->y, y, NULL, y_size, c->param_dtype);
    if (c->saved) {
        check_values("saved mean", c->saved_mean, rounded_mean, NULL, spread, c->param_dtype);
        check_values("saved inverse deviation", c->saved_inv, inv, NULL, inv, c->param_dtype);
    }
    if (c->running) check_running(c, in, mean, var, spread);
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
static double incoming_size(const struct bn *c, double dy, double dz, double pre)
{
    bool exact = !c->ops || c->act == CUDNN_ACTIVATION_IDENTITY ||
                 c->act == CUDNN_ACTIVATION_RELU || c->act == CUDNN_ACTIVATION_CLIPPED_RELU;
    return exact ? fabs(dz) : fabs(dy) * (1.0 + fabs(pre));
}

static struct gradients gradients(const struct bn *c, const struct inputs *in, const double *pre,
                                  const double *given_mean, const double *given_inv)
{
    const struct shape *s = &c->shape;
    struct gradients g = {zeros(s->count),  zeros(s->count),  zeros(s->count), zeros(s->params),
                          zeros(s->params), zeros(s->params), zeros(s->params)};
    wide *mean = wide_zeros(s->params);
    wide *inv = wide_zeros(s->params);
    double *spread = zeros(s->params);
    double n = (double)s->terms;
    statistics(s, in->x, mean, inv, spread);
    for (int64_t p = 0; p < s->params; ++p) {
        inv[p] = given_inv ? given_inv[p] : 1 / sqrtl(inv[p] + c->epsilon);
        if (given_mean) mean[p] = given_mean[p];
    }
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t p = s->param_of[i];
        double xhat = (double)((in->x[i] - mean[p]) * inv[p]);
        double size;
        g.dz[i] = in->dy[i] * (c->ops ? slope(c->act, c->coef, pre[i]) : 1.0);
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

static void check_backward(const struct bn *c, const struct inputs *in, const double *pre)
{
    const struct shape *s = &c->shape;
    const double *given_mean = c->saved ? c->saved_mean->value : NULL;
    const double *given_inv = c->saved ? c->saved_inv->value : NULL;
    struct gradients g = gradients(c, in, pre, given_mean, given_inv);
    double *dz_size = copy(g.dz, s->count);
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

/* Makes the tensors of a case whose plain fields are set, runs and judges it. */
struct range {
    double low, high;
};

static struct tensor *written(struct bn *c, enum layout layout, double beta)
{
    struct tensor *t = tensor_inout(c->dtype, c->shape.rank, c->shape.dim, layout, -2.0, 2.0);
    if (beta != 0.0) return t;
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN; /* must not be read */
    tensor_write(t);
    return t;
}

static struct tensor *written_param(struct bn *c, enum layout layout, double beta)
{
    struct tensor *t =
        tensor_inout(c->param_dtype, c->shape.rank, c->shape.param_dim, layout, 0.5, 2.0);
    if (beta != 0.0) return t;
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    tensor_write(t);
    return t;
}

static enum layout any_layout(void)
{
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

static void make_tensors(struct bn *c, struct range x)
{
    const struct shape *s = &c->shape;
    enum layout params = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
    enum layout layout = any_layout();
    c->param_dtype = c->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    if (c->in_place && layout == LAYOUT_GAPS) layout = LAYOUT_NHWC;
    if (c->in_place && !c->backward) {
        c->x = tensor_inout(c->dtype, s->rank, s->dim, layout, x.low, x.high);
    } else {
        c->x = tensor_input(c->dtype, s->rank, s->dim, layout, x.low, x.high);
    }
    c->scale = param_tensor(c, params, 0.25, 2.0);
    c->bias = param_tensor(c, params, -1.0, 1.0);
    if (c->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        c->z = tensor_input(c->dtype, s->rank, s->dim, any_layout(), -2.0, 2.0);
    }
    c->y = c->in_place && !c->backward ? c->x : written(c, any_layout(), c->beta);
    if (c->running) {
        c->mean = written_param(c, params, 1.0 - c->factor);
        c->var = written_param(c, params, 1.0 - c->factor);
    }
    if (c->saved) {
        c->saved_mean = written_param(c, params, 0.0);
        c->saved_inv = written_param(c, params, 0.0);
    }
    if (c->backward) {
        enum layout dy = any_layout();
        if (c->in_place && dy == LAYOUT_GAPS) dy = LAYOUT_NCHW;
        c->dy = c->in_place ? tensor_inout(c->dtype, s->rank, s->dim, dy, -2.0, 2.0)
                            : tensor_input(c->dtype, s->rank, s->dim, dy, -2.0, 2.0);
        c->dx = c->in_place ? c->dy : written(c, any_layout(), c->beta_data);
        if (c->z) c->dz = written(c, any_layout(), 0.0);
        c->dscale = written_param(c, params, c->beta_param);
        c->dbias = written_param(c, params, c->beta_param);
    }
    if (c->ops) {
        cudnnCreateActivationDescriptor(&c->activation);
        cudnnSetActivationDescriptor(c->activation, (cudnnActivationMode_t)c->act,
                                     CUDNN_NOT_PROPAGATE_NAN, c->coef);
    }
}

static void run_case(struct bn *c, struct range x)
{
    struct inputs in;
    double *pre = zeros(c->shape.count);
    make_tensors(c, x);
    in = inputs_of(c);
    if ((!c->ex || make_spaces(c)) && run_call(call_case, c)) {
        check_forward(c, &in, pre);
        if (c->backward) check_backward(c, &in, pre);
    }
    inputs_free(&in);
    free(pre);
    free(c->shape.param_of);
    if (c->activation) cudnnDestroyActivationDescriptor(c->activation);
    case_end();
}

static void random_shape(struct shape *s, int mode)
{
    int rank = random_of(3, 4, 4, 4, 5, 5, 6);
    int dim[8];
    dim[0] = random_of(1, 2, 3, 7, 16);
    dim[1] = random_of(1, 2, 3, 5, 8, 13);
    for (int d = 2; d < rank; ++d)
        dim[d] = rank > 4 ? random_of(1, 2, 3) : random_of(1, 2, 5, 7, 11);
    shape_make(s, mode, rank, dim);
}

static const cudnnDataType_t dtypes[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                         CUDNN_DATA_BFLOAT16};
static const char *const dtype_names[] = {"f32", "f64", "f16", "bf16"};

static void random_scalars(struct bn *c)
{
    const double values[] = {1.0, 1.0, 0.0, 0.5, -1.5};
    c->alpha = random_chance(0.6) ? 1.0 : values[random_int(0, 4)];
    c->beta = random_chance(0.6) ? 0.0 : values[random_int(0, 4)];
    c->alpha_data = random_chance(0.5) ? 1.0 : values[random_int(0, 4)];
    c->beta_data = random_chance(0.5) ? 0.0 : values[random_int(0, 4)];
    c->alpha_param = random_chance(0.5) ? 1.0 : values[random_int(0, 4)];
    c->beta_param = random_chance(0.5) ? 0.0 : values[random_int(0, 4)];
    c->factor = random_chance(0.3) ? 1.0 : random_real(0.0, 1.0);
    c->epsilon = random_of(0, 1) ? 1e-5 : 1e-2;
    c->running = random_chance(0.6);
    c->saved = random_chance(0.6);
}

static void random_cases(int turns)
{
    static const int acts[] = {CUDNN_ACTIVATION_RELU,         CUDNN_ACTIVATION_RELU,
                               CUDNN_ACTIVATION_CLIPPED_RELU, CUDNN_ACTIVATION_SIGMOID,
                               CUDNN_ACTIVATION_TANH,         CUDNN_ACTIVATION_ELU,
                               CUDNN_ACTIVATION_IDENTITY,     CUDNN_ACTIVATION_SWISH};
    for (int d = 0; d < COUNT(dtypes); ++d) {
        for (int mode = 0; mode < 3; ++mode) {
            for (int kind = 0; kind < 5; ++kind) { /* training, backward, Ex with each ops */
                for (int turn = 0; turn < turns; ++turn) {
                    struct bn c = {.mode = mode, .dtype = dtypes[d], .act = NO_ACTIVATION};
                    if (!case_begin("random/%s/mode%d/%s/%d", dtype_names[d], mode,
                                    (const char *const[]){"training", "both", "ex_bn", "ex_act",
                                                          "ex_add_act"}[kind],
                                    turn)) {
                        continue;
                    }
                    random_shape(&c.shape, mode);
                    random_scalars(&c);
                    c.forward = true;
                    c.backward = kind > 0;
                    c.ex = kind > 1;
                    c.ops = kind > 2 ? kind - 2 : 0;
                    if (c.ops) c.act = acts[random_int(0, COUNT(acts) - 1)];
                    c.coef = c.act == CUDNN_ACTIVATION_CLIPPED_RELU ? 1.25 : 0.75;
                    c.in_place = random_chance(0.2);
                    run_case(&c, (struct range){-3.0, 3.0});
                }
            }
        }
    }
}

static void inference_cases(int turns)
{
    for (int d = 0; d < COUNT(dtypes); ++d) {
        for (int mode = 0; mode < 3; ++mode) {
            for (int turn = 0; turn < turns; ++turn) {
                struct bn c = {.mode = mode, .dtype = dtypes[d], .act = NO_ACTIVATION};
                enum layout params;
                struct shape *s = &c.shape;
                double *y;
                double *size;
                struct inputs in;
                if (!case_begin("inference/%s/mode%d/%d", dtype_names[d], mode, turn)) continue;
                random_shape(s, mode);
                random_scalars(&c);
                c.param_dtype = c.dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
                params = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
                c.in_place = random_chance(0.2);
                c.x = c.in_place ? tensor_inout(c.dtype, s->rank, s->dim, LAYOUT_NHWC, -3.0, 3.0)
                                 : tensor_input(c.dtype, s->rank, s->dim, any_layout(), -3.0, 3.0);
                c.scale = param_tensor(&c, params, -2.0, 2.0);
                c.bias = param_tensor(&c, params, -1.0, 1.0);
                c.mean = param_tensor(&c, params, -1.0, 1.0);
                c.var = param_tensor(&c, params, 0.1, 2.0);
                c.y = c.in_place ? c.x : written(&c, any_layout(), c.beta);
                in = inputs_of(&c);
                y = zeros(s->count);
                size = zeros(s->count);
                if (run_call(call_inference, &c)) {
                    for (int64_t i = 0; i < s->count; ++i) {
                        int64_t p = s->param_of[i];
                        double inv = 1.0 / sqrt(in.var[p] + c.epsilon);
                        double old = c.beta == 0.0 ? 0.0 : c.beta * in.y[i];
                        y[i] = c.alpha * (in.scale[p] * (in.x[i] - in.mean[p]) * inv + in.bias[p]) +
                               old;
                        size[i] = fabs(c.alpha) * (fabs(in.scale[p]) * inv *
                                                       (fabs(in.x[i]) + fabs(in.mean[p])) +
                                                   fabs(in.bias[p])) +
                                  fabs(old);
                    }
                    check_values("y", c.y, y, NULL, size, c.param_dtype);
                }
                free(y), free(size), inputs_free(&in);
                free(s->param_of);
                case_end();
            }
        }
    }
}

/* Shapes and values that are hard. */
static void hard_cases(void)
{
    static const struct {
        const char *name;
        int mode;
        int dtype;
        int rank;
        int dim[5];
        double low, high;
        bool saved;
        int kind; /* 0 plain, 1 Ex with relu, 2 Ex with swish */
    } rows[] = {
        {"offset", CUDNN_BATCHNORM_SPATIAL, 0, 4, {16, 3, 31, 33}, 9998.3, 10001.7, true, 0},
        {"offset_unsaved",
         CUDNN_BATCHNORM_SPATIAL,
         0,
         4,
         {16, 3, 31, 33},
         9998.3,
         10001.7,
         false,
         0},
        {"offset_activation",
         CUDNN_BATCHNORM_PER_ACTIVATION,
         0,
         4,
         {64, 3, 3, 5},
         9998.3,
         10001.7,
         false,
         0},
        {"offset_f64", CUDNN_BATCHNORM_SPATIAL, 1, 4, {16, 3, 31, 33}, 1e9, 1e9 + 3.0, false, 0},
        {"one_term", CUDNN_BATCHNORM_SPATIAL, 0, 4, {1, 5, 1, 1}, -3.0, 3.0, true, 0},
        {"one_term_activation",
         CUDNN_BATCHNORM_PER_ACTIVATION,
         0,
         4,
         {1, 5, 3, 2},
         -3.0,
         3.0,
         false,
         0},
        {"two_stages", CUDNN_BATCHNORM_SPATIAL, 0, 4, {4, 2, 129, 131}, -3.0, 3.0, false, 0},
        {"two_stages_relu",
         CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
         2,
         4,
         {4, 2, 129, 131},
         -3.0,
         3.0,
         true,
         1},
        {"ranges", CUDNN_BATCHNORM_PER_ACTIVATION, 0, 4, {2, 3, 151, 152}, -3.0, 3.0, false, 0},
        {"ranges_f64_5d",
         CUDNN_BATCHNORM_PER_ACTIVATION,
         1,
         5,
         {2, 3, 2, 120, 99},
         -3.0,
         3.0,
         true,
         0},
        {"ranges_relu",
         CUDNN_BATCHNORM_PER_ACTIVATION,
         0,
         4,
         {2, 3, 151, 152},
         -3.0,
         3.0,
         false,
         1},
        {"ranges_swish",
         CUDNN_BATCHNORM_PER_ACTIVATION,
         0,
         4,
         {2, 3, 151, 152},
         -3.0,
         3.0,
         true,
         2},
        {"many_channels", CUDNN_BATCHNORM_SPATIAL, 0, 4, {2, 70001, 1, 2}, -3.0, 3.0, false, 0},
        {"odd_bits", CUDNN_BATCHNORM_SPATIAL, 0, 4, {3, 5, 7, 11}, -3.0, 3.0, true, 1},
    };
    for (int r = 0; r < COUNT(rows); ++r) {
        struct bn c = {.mode = rows[r].mode,
                       .dtype = dtypes[rows[r].dtype],
                       .act = rows[r].kind == 1 ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_SWISH,
                       .ops = rows[r].kind ? CUDNN_BATCHNORM_OPS_BN_ACTIVATION : 0,
                       .ex = rows[r].kind > 0,
                       .forward = true,
                       .backward = true,
                       .running = true,
                       .saved = rows[r].saved,
                       .factor = 0.125,
                       .epsilon = 1e-5};
        if (!case_begin("hard/%s", rows[r].name)) continue;
        if (!rows[r].kind) c.act = NO_ACTIVATION;
        c.alpha = c.alpha_data = c.alpha_param = 1.0;
        shape_make(&c.shape, c.mode, rows[r].rank, rows[r].dim);
        run_case(&c, (struct range){rows[r].low, rows[r].high});
    }
}

/* A constant channel with a tiny epsilon stays at the bias exactly; NaN in one channel stays there. */
static void special_values(void)
{
    struct bn c = {.mode = CUDNN_BATCHNORM_SPATIAL,
                   .dtype = CUDNN_DATA_FLOAT,
                   .forward = true,
                   .alpha = 1.0,
                   .epsilon = 1e-12,
                   .act = NO_ACTIVATION};
    if (!case_begin("special/constant_and_nan")) return;
    shape_make(&c.shape, c.mode, 4, (const int[]){3, 3, 5, 7});
    make_tensors(&c, (struct range){-3.0, 3.0});
    for (int64_t i = 0; i < c.shape.count; ++i) {
        if (c.shape.param_of[i] == 1) c.x->value[i] = 0.1f;
    }
    c.x->value[2 * 35 + 1] = NAN; /* sample 0, channel 2 */
    tensor_write(c.x);
    if (run_call(call_case, &c)) {
        for (int64_t i = 0; i < c.shape.count; ++i) {
            int64_t p = c.shape.param_of[i];
            double y = c.y->value[i];
            if (p == 1 && y != c.bias->value[1]) case_fail("y of a constant channel is %g", y);
            if ((p == 2) != (y != y)) case_fail("y[%d] of channel %d is %g", (int)i, (int)p, y);
        }
    }
    free(c.shape.param_of);
    case_end();
}

/* The plain calls bring no workspace and find at most 8 MiB: what the Ex calls ask for without an
 * activation is what they need, and stays below that however many parameters there are. */
static void scratch_is_bounded(void)
{
    static const struct {
        int mode;
        int dim[4];
    } rows[] = {
        {CUDNN_BATCHNORM_PER_ACTIVATION, {2, 512, 128, 128}},
        {CUDNN_BATCHNORM_PER_ACTIVATION, {1, 65537, 1, 1}},
        {CUDNN_BATCHNORM_SPATIAL, {64, 1 << 20, 7, 7}},
        {CUDNN_BATCHNORM_SPATIAL, {256, 1, 4096, 4096}},
        {CUDNN_BATCHNORM_SPATIAL, {256, 1023, 112, 112}},
    };
    for (int i = 0; i < COUNT(rows); ++i) {
        cudnnTensorDescriptor_t x;
        cudnnTensorDescriptor_t param;
        cudnnBatchNormMode_t mode = (cudnnBatchNormMode_t)rows[i].mode;
        size_t forward = 0;
        size_t backward = 0;
        if (!case_begin("scratch/%d", i)) continue;
        cudnnCreateTensorDescriptor(&x);
        cudnnCreateTensorDescriptor(&param);
        cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, rows[i].dim[0],
                                   rows[i].dim[1], rows[i].dim[2], rows[i].dim[3]);
        if (fine("derive", cudnnDeriveBNTensorDescriptor(param, x, mode)) &&
            fine("forward", cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                                harness_handle, mode, CUDNN_BATCHNORM_OPS_BN, x, NULL, x, param,
                                NULL, &forward)) &&
            fine("backward", cudnnGetBatchNormalizationBackwardExWorkspaceSize(
                                 harness_handle, mode, CUDNN_BATCHNORM_OPS_BN, x, NULL, x, NULL, x,
                                 param, NULL, &backward)) &&
            (forward > (8u << 20) || backward > (8u << 20))) {
            case_fail("%zu and %zu bytes of scratch", forward, backward);
        }
        cudnnDestroyTensorDescriptor(x);
        cudnnDestroyTensorDescriptor(param);
        case_end();
    }
}

/* sum(w y) as the oracle's forward gives it, for finite differences. */
static double loss(const struct bn *c, const struct inputs *in)
{
    const struct shape *s = &c->shape;
    wide *mean = wide_zeros(s->params);
    wide *var = wide_zeros(s->params);
    double *spread = zeros(s->params);
    double sum = 0.0;
    statistics(s, in->x, mean, var, spread);
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t p = s->param_of[i];
        double v = in->scale[p] * (double)((in->x[i] - mean[p]) / sqrtl(var[p] + c->epsilon)) +
                   in->bias[p];
        if (in->z) v += in->z[i];
        sum += in->dy[i] * activate(c->act, c->coef, v);
    }
    free(mean), free(var), free(spread);
    return sum;
}

static void compare_difference(const char *name, const struct bn *c, const struct inputs *in,
                               double *where, int64_t index, double got)
{
    double step = 1e-5;
    double kept = where[index];
    double up;
    double down;
    double difference;
    where[index] = kept + step;
    up = loss(c, in);
    where[index] = kept - step;
    down = loss(c, in);
    where[index] = kept;
    difference = (up - down) / (2.0 * step);
    if (fabs(difference - got) > 2e-6 * (1.0 + fabs(difference))) {
        case_fail("%s[%d] is %.10g, the finite difference %.10g", name, (int)index, got,
                  difference);
    }
}

/* The library's own fp64 gradients, so that oracle and library cannot share a mistake. */
static void finite_differences(void)
{
    static const int acts[] = {NO_ACTIVATION, CUDNN_ACTIVATION_TANH, CUDNN_ACTIVATION_SWISH,
                               CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_ELU};
    for (int mode = 0; mode < 3; ++mode) {
        for (int k = 0; k < COUNT(acts); ++k) {
            struct bn c = {.mode = mode,
                           .dtype = CUDNN_DATA_DOUBLE,
                           .act = acts[k],
                           .coef = 0.8,
                           .ops =
                               acts[k] == NO_ACTIVATION ? 0 : CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
                           .ex = true,
                           .forward = true,
                           .backward = true,
                           .alpha = 1.0,
                           .alpha_data = 1.0,
                           .alpha_param = 1.0,
                           .epsilon = 1e-3};
            struct inputs in;
            if (!case_begin("differences/mode%d/act%d", mode, acts[k])) continue;
            c.saved = k % 2 == 0;
            shape_make(&c.shape, mode, 4, (const int[]){4, 3, 2, 3});
            make_tensors(&c, (struct range){-2.0, 2.0});
            in = inputs_of(&c);
            if (make_spaces(&c) && run_call(call_case, &c)) {
                for (int64_t i = 0; i < c.shape.count; ++i) {
                    compare_difference("dx", &c, &in, in.x, i, c.dx->value[i]);
                    if (c.dz) compare_difference("dz", &c, &in, in.z, i, c.dz->value[i]);
                }
                for (int64_t p = 0; p < c.shape.params; ++p) {
                    compare_difference("dscale", &c, &in, in.scale, p, c.dscale->value[p]);
                    compare_difference("dbias", &c, &in, in.bias, p, c.dbias->value[p]);
                }
            }
            inputs_free(&in);
            free(c.shape.param_of);
            if (c.activation) cudnnDestroyActivationDescriptor(c.activation);
            case_end();
        }
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    random_cases(6);
    inference_cases(6);
    hard_cases();
    special_values();
    scratch_is_bounded();
    finite_differences();
    return harness_finish();
}
