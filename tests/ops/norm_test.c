/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization against its formula in double: inference, training and backward, plain and
 * with a fused residual and activation; every mode, type and layout, running averages, saved and
 * unsaved statistics, in place, large common offsets, one element a parameter, more parameters than
 * one range of the definition; the oracle's gradients against finite differences of its forward. */
#include "norm_random.h"

#include <math.h>
#include <stdlib.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static void random_cases(int turns)
{
    static const char *const kinds[] = {"training", "both", "ex_bn", "ex_act", "ex_add_act"};
    for (int d = 0; d < NORM_DTYPES; ++d) {
        for (int mode = 0; mode < 3; ++mode) {
            for (int kind = 0; kind < COUNT(kinds); ++kind) {
                for (int turn = 0; turn < turns; ++turn) {
                    struct norm_case c = {.forward = true, .backward = kind > 0, .ex = kind > 1};
                    if (!case_begin("random/%s/mode%d/%s/%d", norm_dtype_names[d], mode,
                                    kinds[kind], turn)) {
                        continue;
                    }
                    norm_random(&c, norm_dtypes[d], mode, kind > 2 ? kind - 2 : 0);
                    norm_run(&c, (struct norm_range){-3.0, 3.0});
                }
            }
            for (int turn = 0; turn < turns; ++turn) {
                struct norm_case c = {0};
                if (!case_begin("inference/%s/mode%d/%d", norm_dtype_names[d], mode, turn))
                    continue;
                norm_random(&c, norm_dtypes[d], mode, CUDNN_BATCHNORM_OPS_BN);
                norm_run_inference(&c);
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
        struct norm_case c = {.mode = rows[r].mode,
                              .dtype = norm_dtypes[rows[r].dtype],
                              .act = rows[r].kind == 1 ? CUDNN_ACTIVATION_RELU
                                                       : CUDNN_ACTIVATION_SWISH,
                              .ops = rows[r].kind ? CUDNN_BATCHNORM_OPS_BN_ACTIVATION : 0,
                              .ex = rows[r].kind > 0,
                              .forward = true,
                              .backward = true,
                              .running_mean = true,
                              .running_var = true,
                              .saved = rows[r].saved,
                              .factor = 0.125,
                              .epsilon = 1e-5};
        if (!case_begin("hard/%s", rows[r].name)) continue;
        if (!rows[r].kind) c.act = NO_ACTIVATION;
        c.alpha = c.alpha_data = c.alpha_param = 1.0;
        norm_shape_make(&c.shape, c.mode, rows[r].rank, rows[r].dim);
        norm_run(&c, (struct norm_range){rows[r].low, rows[r].high});
    }
}

/* A constant channel stays at the bias exactly, however small epsilon is; a NaN in its channel. */
static void special_values(void)
{
    struct norm_case c = {.mode = CUDNN_BATCHNORM_SPATIAL,
                          .dtype = CUDNN_DATA_FLOAT,
                          .forward = true,
                          .alpha = 1.0,
                          .epsilon = 1e-12,
                          .act = NO_ACTIVATION};
    if (!case_begin("special/constant_and_nan")) return;
    norm_shape_make(&c.shape, c.mode, 4, (const int[]){3, 3, 5, 7});
    norm_make_tensors(&c, (struct norm_range){-3.0, 3.0});
    for (int64_t i = 0; i < c.shape.count; ++i) {
        if (c.shape.param_of[i] == 1) c.x->value[i] = 0.1f;
    }
    c.x->value[2 * 35 + 1] = NAN; /* sample 0, channel 2 */
    tensor_write(c.x);
    if (run_call(norm_call, &c)) {
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
        if (norm_fine("derive", cudnnDeriveBNTensorDescriptor(param, x, mode)) &&
            norm_fine("forward", cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                                     harness_handle, mode, CUDNN_BATCHNORM_OPS_BN, x, NULL, x,
                                     param, NULL, &forward)) &&
            norm_fine("backward", cudnnGetBatchNormalizationBackwardExWorkspaceSize(
                                      harness_handle, mode, CUDNN_BATCHNORM_OPS_BN, x, NULL, x,
                                      NULL, x, param, NULL, &backward)) &&
            (forward > (8u << 20) || backward > (8u << 20))) {
            case_fail("%zu and %zu bytes of scratch", forward, backward);
        }
        cudnnDestroyTensorDescriptor(x);
        cudnnDestroyTensorDescriptor(param);
        case_end();
    }
}

/* sum(w y) as the oracle's forward gives it, for finite differences. */
static double loss(const struct norm_case *c, const struct norm_inputs *in)
{
    const struct norm_shape *s = &c->shape;
    norm_wide *mean = norm_wide_zeros(s->params);
    norm_wide *var = norm_wide_zeros(s->params);
    double *spread = norm_zeros(s->params);
    double sum = 0.0;
    norm_statistics(s, in->x, mean, var, spread);
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t p = s->param_of[i];
        double v = in->scale[p] * (double)((in->x[i] - mean[p]) / sqrtl(var[p] + c->epsilon)) +
                   in->bias[p];
        if (in->z) v += in->z[i];
        sum += in->dy[i] * norm_activate(c->act, c->coef, v);
    }
    free(mean), free(var), free(spread);
    return sum;
}

static void compare_difference(const char *name, const struct norm_case *c,
                               const struct norm_inputs *in, double *where, int64_t index,
                               double got)
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
            struct norm_case c = {
                .mode = mode,
                .dtype = CUDNN_DATA_DOUBLE,
                .act = acts[k],
                .coef = 0.8,
                .ops = acts[k] == NO_ACTIVATION ? 0 : CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
                .ex = true,
                .forward = true,
                .backward = true,
                .alpha = 1.0,
                .alpha_data = 1.0,
                .alpha_param = 1.0,
                .epsilon = 1e-3};
            struct norm_inputs in;
            if (!case_begin("differences/mode%d/act%d", mode, acts[k])) continue;
            c.saved = k % 2 == 0;
            norm_shape_make(&c.shape, mode, 4, (const int[]){4, 3, 2, 3});
            norm_make_tensors(&c, (struct norm_range){-2.0, 2.0});
            in = norm_inputs(&c);
            if (norm_make_spaces(&c) && run_call(norm_call, &c)) {
                for (int64_t i = 0; i < c.shape.count; ++i) {
                    compare_difference("dx", &c, &in, in.x, i, c.dx->value[i]);
                    if (c.dz) compare_difference("dz", &c, &in, in.z, i, c.dz->value[i]);
                }
                for (int64_t p = 0; p < c.shape.params; ++p) {
                    compare_difference("dscale", &c, &in, in.scale, p, c.dscale->value[p]);
                    compare_difference("dbias", &c, &in, in.bias, p, c.dbias->value[p]);
                }
            }
            norm_inputs_free(&in);
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
    hard_cases();
    special_values();
    scratch_is_bounded();
    finite_differences();
    return harness_finish();
}
