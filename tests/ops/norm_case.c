/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization cases, see norm_case.h: tensors and calls. One thread. */
#include "norm_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        c->workspace_back ? c->workspace_back->data : NULL,
        c->workspace_back ? (size_t)c->workspace_back->bytes : 0,
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
    if (c->forward && forward > 0) c->workspace = tensor_bytes((int64_t)forward);
    if (c->backward && backward > 0) c->workspace_back = tensor_bytes((int64_t)backward);
    if (reserve > 0) c->reserve = tensor_bytes((int64_t)reserve);
    return true;
}

static double *value_of(const struct tensor *t)
{
    double *to;
    if (!t) return NULL;
    to = malloc((size_t)t->count * sizeof *to);
    memcpy(to, t->value, (size_t)t->count * sizeof *to);
    return to;
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
        norm_judge_forward(c, &in, pre);
        if (c->backward) norm_judge_backward(c, &in, pre);
        check_engine(c);
    }
    norm_inputs_free(&in);
    free(pre);
    free(c->shape.param_of);
    if (c->activation) cudnnDestroyActivationDescriptor(c->activation);
    case_end();
}
