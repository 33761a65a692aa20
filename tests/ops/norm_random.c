/* SPDX-License-Identifier: Apache-2.0
 *
 * Random batch normalization cases, see norm_random.h. One thread. */
#include "norm_random.h"

#include <math.h>
#include <stdlib.h>

const cudnnDataType_t norm_dtypes[NORM_DTYPES] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                                  CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
const char *const norm_dtype_names[NORM_DTYPES] = {"f32", "f64", "f16", "bf16"};

static void random_scalars(struct norm_case *c)
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
}

void norm_random(struct norm_case *c, cudnnDataType_t dtype, int mode, int ops)
{
    int rank = random_of(3, 4, 4, 4, 5, 5, 6);
    int dim[8];
    dim[0] = random_of(1, 2, 3, 7, 16);
    dim[1] = random_of(1, 2, 3, 5, 8, 13);
    for (int d = 2; d < rank; ++d) {
        dim[d] = rank > 4 ? random_of(1, 2, 3) : random_of(1, 2, 5, 7, 11);
    }
    norm_shape_make(&c->shape, mode, rank, dim);
    c->mode = mode;
    c->dtype = dtype;
    c->ops = ops;
    random_scalars(c);
    c->running_mean = random_chance(0.6);
    c->running_var = random_chance(0.8) == c->running_mean; /* mostly both or neither */
    c->saved = random_chance(0.6);
    c->in_place = random_chance(0.2);
    c->act = NO_ACTIVATION;
    if (ops) {
        c->act =
            random_of(CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_CLIPPED_RELU,
                      CUDNN_ACTIVATION_SIGMOID, CUDNN_ACTIVATION_TANH, CUDNN_ACTIVATION_ELU,
                      CUDNN_ACTIVATION_IDENTITY, CUDNN_ACTIVATION_SWISH);
    }
    c->coef = c->act == CUDNN_ACTIVATION_CLIPPED_RELU ? 1.25 : 0.75;
}

static void judge_inference(const struct norm_case *c, const struct norm_inputs *in)
{
    const struct norm_shape *s = &c->shape;
    double *y = norm_zeros(s->count);
    double *size = norm_zeros(s->count);
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t p = s->param_of[i];
        double inv = 1.0 / sqrt(in->var[p] + c->epsilon);
        double old = c->beta == 0.0 ? 0.0 : c->beta * in->y[i];
        double z = in->z ? in->z[i] : 0.0;
        double v = in->scale[p] * (in->x[i] - in->mean[p]) * inv + in->bias[p] + z;
        double terms = fabs(in->scale[p]) * inv * (fabs(in->x[i]) + fabs(in->mean[p])) +
                       fabs(in->bias[p]) + fabs(z);
        /* no activation is steeper than 1.1, and none but exponentials add a rounding of its own */
        if (c->ops) terms = 1.1 * terms + 1.0;
        y[i] = c->alpha * norm_activate(c->act, c->coef, v) + old;
        size[i] = fabs(c->alpha) * terms + fabs(old);
    }
    check_values("y", c->y, y, NULL, size, c->param_dtype);
    free(y), free(size);
}

void norm_run_inference(struct norm_case *c)
{
    const struct norm_shape *s = &c->shape;
    enum layout params = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
    enum layout stats = c->newer ? (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC) : params;
    struct norm_inputs in;
    c->param_dtype = c->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    c->x = c->in_place ? tensor_inout(c->dtype, s->rank, s->dim, LAYOUT_NHWC, -3.0, 3.0)
                       : tensor_input(c->dtype, s->rank, s->dim, norm_any_layout(), -3.0, 3.0);
    c->scale = norm_param(c, params, -2.0, 2.0);
    c->bias = norm_param(c, params, -1.0, 1.0);
    c->mean = norm_param(c, stats, -1.0, 1.0);
    c->var = norm_param(c, stats, 0.1, 2.0);
    if (c->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        c->z = tensor_input(c->dtype, s->rank, s->dim, norm_any_layout(), -2.0, 2.0);
    }
    c->y = c->in_place ? c->x : norm_output(c, norm_any_layout(), c->beta);
    if (c->ops) {
        cudnnCreateActivationDescriptor(&c->activation);
        cudnnSetActivationDescriptor(c->activation, (cudnnActivationMode_t)c->act,
                                     CUDNN_NOT_PROPAGATE_NAN, c->coef);
    }
    in = norm_inputs(c);
    if (run_call(c->newer ? norm_newer_inference : norm_call_inference, c)) {
        judge_inference(c, &in);
    }
    norm_inputs_free(&in);
    free(c->shape.param_of);
    if (c->activation) cudnnDestroyActivationDescriptor(c->activation);
    case_end();
}
