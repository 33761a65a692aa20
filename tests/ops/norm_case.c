/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization cases, see norm_case.h. One thread. */
#include "norm_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The oracle: plain loops over logical indices, wider than double ---- */

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

static double *copy(const double *from, int64_t count)
{
    double *to = malloc((size_t)count * sizeof *to);
    memcpy(to, from, (size_t)count * sizeof *to);
    return to;
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

/* ---- One case ---- */

struct tensor *norm_param(struct norm_case *c, enum layout layout, double low, double high)
{
    return tensor_input(c->param_dtype, c->shape.rank, c->shape.param_dim, layout, low, high);
}

const void *norm_scalar(const struct norm_case *c, double value, double *room)
{
    float single = (float)value;
    if (c->dtype == CUDNN_DATA_DOUBLE) *room = value;
    else memcpy(room, &single, sizeof single);
    return room;
}

cudnnStatus_t norm_call_inference(void *context)
{
    const struct norm_case *c = context;
    double a;
    double b;
    return cudnnBatchNormalizationForwardInference(
        harness_handle, (cudnnBatchNormMode_t)c->mode, norm_scalar(c, c->alpha, &a),
        norm_scalar(c, c->beta, &b), c->x->desc, c->x->data, c->y->desc, c->y->data, c->scale->desc,
        c->scale->data, c->bias->data, c->mean->data, c->var->data, c->epsilon);
}

static cudnnStatus_t call_forward(const struct norm_case *c)
{
    double a;
    double b;
    void *mean = c->running_mean ? c->mean->data : NULL;
    void *var = c->running_var ? c->var->data : NULL;
    void *saved_mean = c->saved ? c->saved_mean->data : NULL;
    void *saved_inv = c->saved ? c->saved_inv->data : NULL;
    if (!c->ex) {
        return cudnnBatchNormalizationForwardTraining(
            harness_handle, (cudnnBatchNormMode_t)c->mode, norm_scalar(c, c->alpha, &a),
            norm_scalar(c, c->beta, &b), c->x->desc, c->x->data, c->y->desc, c->y->data,
            c->scale->desc, c->scale->data, c->bias->data, c->factor, mean, var, c->epsilon,
            saved_mean, saved_inv);
    }
    return cudnnBatchNormalizationForwardTrainingEx(
        harness_handle, (cudnnBatchNormMode_t)c->mode, (cudnnBatchNormOps_t)c->ops,
        norm_scalar(c, c->alpha, &a), norm_scalar(c, c->beta, &b), c->x->desc, c->x->data,
        c->z ? c->z->desc : NULL, c->z ? c->z->data : NULL, c->y->desc, c->y->data, c->scale->desc,
        c->scale->data, c->bias->data, c->factor, mean, var, c->epsilon, saved_mean, saved_inv,
        c->activation, c->workspace ? c->workspace->data : NULL,
        c->workspace ? (size_t)c->workspace->bytes : 0, c->reserve ? c->reserve->data : NULL,
        c->reserve ? (size_t)c->reserve->bytes : 0);
}

static cudnnStatus_t call_backward(const struct norm_case *c)
{
    double room[4];
    const void *ad = norm_scalar(c, c->alpha_data, &room[0]);
    const void *bd = norm_scalar(c, c->beta_data, &room[1]);
    const void *ap = norm_scalar(c, c->alpha_param, &room[2]);
    const void *bp = norm_scalar(c, c->beta_param, &room[3]);
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

cudnnStatus_t norm_call(void *context)
{
    const struct norm_case *c = context;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (c->forward) status = c->newer ? norm_newer_forward(c) : call_forward(c);
    if (status != CUDNN_STATUS_SUCCESS || !c->backward) return status;
    status = c->newer ? norm_newer_backward(c) : call_backward(c);
    return status;
}

bool norm_fine(const char *what, cudnnStatus_t status)
{
    char text[512];
    if (status == CUDNN_STATUS_SUCCESS) return true;
    cudnnGetLastErrorString(text, sizeof text);
    case_fail("%s: %s: %s", what, cudnnGetErrorString(status), text);
    return false;
}

static bool ask_sizes(const struct norm_case *c, size_t *forward, size_t *backward, size_t *reserve)
{
    cudnnBatchNormMode_t mode = (cudnnBatchNormMode_t)c->mode;
    cudnnBatchNormOps_t ops = (cudnnBatchNormOps_t)c->ops;
    cudnnTensorDescriptor_t z = c->z ? c->z->desc : NULL;
    cudnnTensorDescriptor_t like = c->x->desc;
    cudnnTensorDescriptor_t y = c->y ? c->y->desc : like;
    cudnnTensorDescriptor_t dy = c->dy ? c->dy->desc : like;
    cudnnTensorDescriptor_t dz = c->dz ? c->dz->desc : like;
    cudnnTensorDescriptor_t dx = c->dx ? c->dx->desc : like;
    return norm_fine("workspace size", cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                                           harness_handle, mode, ops, like, z, y, c->scale->desc,
                                           c->activation, forward)) &&
           norm_fine("workspace size", cudnnGetBatchNormalizationBackwardExWorkspaceSize(
                                           harness_handle, mode, ops, like, y, dy, dz, dx,
                                           c->scale->desc, c->activation, backward)) &&
           norm_fine("reserve size", cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
                                         harness_handle, mode, ops, c->activation, like, reserve));
}

/* Exactly as much workspace and reserve space as is asked for. */
bool norm_make_spaces(struct norm_case *c)
{
    size_t forward = 0;
    size_t backward = 0;
    size_t reserve = 0;
    bool asked = c->newer ? norm_newer_sizes(c, &forward, &backward, &reserve)
                          : ask_sizes(c, &forward, &backward, &reserve);
    if (!asked) return false;
    if (!c->backward) backward = 0;
    if (!c->forward) forward = 0;
    if (forward < backward) forward = backward;
    if (forward > 0) c->workspace = tensor_bytes((int64_t)forward);
    if (reserve > 0) c->reserve = tensor_bytes((int64_t)reserve);
    return true;
}

static double *value_of(const struct tensor *t)
{
    return t ? copy(t->value, t->count) : NULL;
}

void norm_inputs_free(struct norm_inputs *in)
{
    free(in->x), free(in->y), free(in->z), free(in->dy), free(in->dx), free(in->dscale);
    free(in->dbias), free(in->mean), free(in->var), free(in->scale), free(in->bias);
    free(in->saved_mean), free(in->saved_inv);
}

struct norm_inputs norm_inputs(const struct norm_case *c)
{
    return (struct norm_inputs){value_of(c->x),        value_of(c->y),    value_of(c->z),
                                value_of(c->dy),       value_of(c->dx),   value_of(c->dscale),
                                value_of(c->dbias),    value_of(c->mean), value_of(c->var),
                                value_of(c->scale),    value_of(c->bias), value_of(c->saved_mean),
                                value_of(c->saved_inv)};
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

static void check_forward(const struct norm_case *c, const struct norm_inputs *in, double *pre)
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

static void check_backward(const struct norm_case *c, const struct norm_inputs *in,
                           const double *pre)
{
    const struct norm_shape *s = &c->shape;
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
struct tensor *norm_output(struct norm_case *c, enum layout layout, double beta)
{
    struct tensor *t = tensor_inout(c->dtype, c->shape.rank, c->shape.dim, layout, -2.0, 2.0);
    if (beta != 0.0) return t;
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN; /* must not be read */
    tensor_write(t);
    return t;
}

static struct tensor *written_param(struct norm_case *c, enum layout layout, double beta)
{
    struct tensor *t =
        tensor_inout(c->param_dtype, c->shape.rank, c->shape.param_dim, layout, 0.5, 2.0);
    if (beta != 0.0) return t;
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    tensor_write(t);
    return t;
}

enum layout norm_any_layout(void)
{
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

static enum layout own_layout(const struct norm_case *c)
{
    return c->layout ? (enum layout)(c->layout - 1) : norm_any_layout();
}

void norm_make_tensors(struct norm_case *c, struct norm_range x)
{
    const struct norm_shape *s = &c->shape;
    enum layout params = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
    enum layout layout = own_layout(c);
    enum layout stats = params;
    if (c->newer) stats = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
    c->param_dtype = c->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    if (c->in_place && layout == LAYOUT_GAPS) layout = LAYOUT_NHWC;
    if (c->in_place && !c->backward) {
        c->x = tensor_inout(c->dtype, s->rank, s->dim, layout, x.low, x.high);
    } else {
        c->x = tensor_input(c->dtype, s->rank, s->dim, layout, x.low, x.high);
    }
    c->scale = norm_param(c, params, 0.25, 2.0);
    c->bias = norm_param(c, params, -1.0, 1.0);
    if (c->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        c->z = tensor_input(c->dtype, s->rank, s->dim, own_layout(c), -2.0, 2.0);
    }
    c->y = c->in_place && !c->backward ? c->x : norm_output(c, own_layout(c), c->beta);
    if (c->running_mean) c->mean = written_param(c, stats, 1.0 - c->factor);
    if (c->running_var) c->var = written_param(c, stats, 1.0 - c->factor);
    if (c->saved) {
        c->saved_mean = written_param(c, stats, 0.0);
        c->saved_inv = written_param(c, stats, 0.0);
    }
    if (c->backward) {
        enum layout dy = own_layout(c);
        if (c->in_place && dy == LAYOUT_GAPS) dy = LAYOUT_NCHW;
        c->dy = c->in_place ? tensor_inout(c->dtype, s->rank, s->dim, dy, -2.0, 2.0)
                            : tensor_input(c->dtype, s->rank, s->dim, dy, -2.0, 2.0);
        c->dx = c->in_place ? c->dy : norm_output(c, own_layout(c), c->beta_data);
        if (c->z) c->dz = norm_output(c, own_layout(c), 0.0);
        c->dscale = written_param(c, params, c->beta_param);
        c->dbias = written_param(c, params, c->beta_param);
    }
    if (c->ops) {
        cudnnCreateActivationDescriptor(&c->activation);
        cudnnSetActivationDescriptor(c->activation, (cudnnActivationMode_t)c->act,
                                     CUDNN_NOT_PROPAGATE_NAN, c->coef);
    }
}

static void check_engine(const struct norm_case *c)
{
    const char *name = "";
    if (!c->engine) return;
    warpdnnGetLastEngine(harness_handle, &name);
    if (strcmp(name, c->engine) != 0) case_fail("%s ran, not %s", name, c->engine);
}

void norm_run(struct norm_case *c, struct norm_range x)
{
    struct norm_inputs in;
    double *pre = norm_zeros(c->shape.count);
    tensor_odd = c->odd;
    norm_make_tensors(c, x);
    tensor_odd = 0;
    in = norm_inputs(c);
    if ((!c->ex || norm_make_spaces(c)) && run_call(norm_call, c)) {
        check_forward(c, &in, pre);
        if (c->backward) check_backward(c, &in, pre);
        check_engine(c);
    }
    norm_inputs_free(&in);
    free(pre);
    free(c->shape.param_of);
    if (c->activation) cudnnDestroyActivationDescriptor(c->activation);
    case_end();
}
