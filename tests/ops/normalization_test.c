/* SPDX-License-Identifier: Apache-2.0
 *
 * The newer interface of normalization (cudnnNormalization*): training and backward with every
 * operation and both algorithms, of random shapes, and inference with residual and activation, which
 * batch normalization's own interface has not. */
#include <math.h>
#include <stdlib.h>

#include "norm_case.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const cudnnDataType_t dtypes[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                         CUDNN_DATA_BFLOAT16};
static const char *const dtype_names[] = {"f32", "f64", "f16", "bf16"};
static const char *const ops_names[] = {"norm", "act", "add_act"};
static const int acts[] = {CUDNN_ACTIVATION_RELU,    CUDNN_ACTIVATION_CLIPPED_RELU,
                           CUDNN_ACTIVATION_SIGMOID, CUDNN_ACTIVATION_TANH,
                           CUDNN_ACTIVATION_ELU,     CUDNN_ACTIVATION_IDENTITY,
                           CUDNN_ACTIVATION_SWISH};

static void random_case(struct norm_case *c, int dtype, int mode, int ops)
{
    int rank = random_of(3, 4, 4, 5);
    int dim[5];
    for (int d = 0; d < rank; ++d) dim[d] = random_of(1, 2, 3, 4, 5, 7, 8, 11);
    if (dim[0] == 1 && random_chance(0.8)) dim[0] = 3;
    c->mode = mode;
    c->dtype = dtypes[dtype];
    c->param_dtype = c->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    c->ops = ops;
    c->act = ops ? acts[random_int(0, COUNT(acts) - 1)] : NO_ACTIVATION;
    c->coef = c->act == CUDNN_ACTIVATION_CLIPPED_RELU ? 1.25 : 0.75;
    c->algo = random_of(CUDNN_NORM_ALGO_STANDARD, CUDNN_NORM_ALGO_PERSIST);
    c->newer = c->ex = true;
    c->alpha = random_chance(0.5) ? 1.0 : random_real(-1.5, 1.5);
    c->beta = random_chance(0.5) ? 0.0 : random_real(-1.5, 1.5);
    c->alpha_data = random_chance(0.5) ? 1.0 : random_real(-1.5, 1.5);
    c->beta_data = random_chance(0.5) ? 0.0 : random_real(-1.5, 1.5);
    c->alpha_param = random_chance(0.5) ? 1.0 : random_real(-1.5, 1.5);
    c->beta_param = random_chance(0.5) ? 0.0 : random_real(-1.5, 1.5);
    c->factor = random_chance(0.3) ? 1.0 : random_real(0.0, 1.0);
    c->epsilon = random_of(0, 1) ? 1e-5 : 1e-2;
    norm_shape_make(&c->shape, mode, rank, dim);
}

static void training_cases(int turns)
{
    for (int d = 0; d < COUNT(dtypes); ++d) {
        for (int mode = 0; mode < 2; ++mode) {
            for (int ops = 0; ops < 3; ++ops) {
                for (int turn = 0; turn < turns; ++turn) {
                    struct norm_case c = {.forward = true};
                    if (!case_begin("training/%s/mode%d/%s/%d", dtype_names[d], mode,
                                    ops_names[ops], turn)) {
                        continue;
                    }
                    random_case(&c, d, mode, ops);
                    c.backward = turn > 0;
                    c.running_mean = c.running_var = random_chance(0.6);
                    c.saved = random_chance(0.6);
                    c.in_place = random_chance(0.2);
                    norm_run(&c, (struct norm_range){-3.0, 3.0});
                }
            }
        }
    }
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
        y[i] = c->alpha * norm_activate(c->act, c->coef, v) + old;
        /* no activation is steeper than 1.1, and none but exponentials add a rounding of its own */
        size[i] = fabs(c->alpha) * (1.1 * terms + 1.0) + fabs(old);
    }
    check_values("y", c->y, y, NULL, size, c->param_dtype);
    free(y), free(size);
}

static void inference_cases(int turns)
{
    for (int d = 0; d < COUNT(dtypes); ++d) {
        for (int mode = 0; mode < 2; ++mode) {
            for (int ops = 0; ops < 3; ++ops) {
                for (int turn = 0; turn < turns; ++turn) {
                    struct norm_case c = {0};
                    struct norm_inputs in;
                    enum layout params;
                    const int *dim;
                    int rank;
                    if (!case_begin("inference/%s/mode%d/%s/%d", dtype_names[d], mode,
                                    ops_names[ops], turn)) {
                        continue;
                    }
                    random_case(&c, d, mode, ops);
                    dim = c.shape.dim;
                    rank = c.shape.rank;
                    if (ops) {
                        cudnnCreateActivationDescriptor(&c.activation);
                        cudnnSetActivationDescriptor(c.activation, (cudnnActivationMode_t)c.act,
                                                     CUDNN_NOT_PROPAGATE_NAN, c.coef);
                    }
                    c.x = tensor_input(c.dtype, rank, dim, norm_any_layout(), -3.0, 3.0);
                    params = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
                    c.scale = norm_param(&c, params, -2.0, 2.0);
                    c.bias = norm_param(&c, params, -1.0, 1.0);
                    if (ops == CUDNN_NORM_OPS_NORM_ADD_ACTIVATION) {
                        c.z = tensor_input(c.dtype, rank, dim, norm_any_layout(), -2.0, 2.0);
                    }
                    c.mean = norm_param(&c, LAYOUT_NCHW, -1.0, 1.0);
                    c.var = norm_param(&c, LAYOUT_NCHW, 0.1, 2.0);
                    c.y = norm_output(&c, norm_any_layout(), c.beta);
                    in = norm_inputs(&c);
                    if (run_call(norm_newer_inference, &c)) judge_inference(&c, &in);
                    norm_inputs_free(&in);
                    free(c.shape.param_of);
                    if (c.activation) cudnnDestroyActivationDescriptor(c.activation);
                    case_end();
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    training_cases(4);
    inference_cases(4);
    return harness_finish();
}
