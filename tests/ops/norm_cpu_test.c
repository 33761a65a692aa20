/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast CPU engines of batch normalization and dropout: packed tensors of both orders, in shapes
 * that take every way through them (planes whole, in segments and gathered, columns narrow, wide and
 * in blocks), judged by the oracle of norm_case.c; what they are reached by and what they decline.
 * Sums hold for hard data, and the results of whole calls are the same bits with 1, 2 and 64 threads. */
#include "norm_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_runs.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static const struct {
    int mode;
    int rank;
    int dim[5];
} shapes[] = {
    {CUDNN_BATCHNORM_SPATIAL, 4, {2, 17, 33, 35}},           /* planes */
    {CUDNN_BATCHNORM_SPATIAL_PERSISTENT, 4, {3, 9, 40, 64}}, /* planes of whole lines */
    {CUDNN_BATCHNORM_SPATIAL, 4, {3, 2, 61, 67}},            /* few planes: segments */
    {CUDNN_BATCHNORM_SPATIAL, 4, {4, 1, 50, 51}},            /* one plane */
    {CUDNN_BATCHNORM_SPATIAL, 4, {9, 13, 7, 7}},             /* short planes, gathered */
    {CUDNN_BATCHNORM_SPATIAL, 4, {300, 3, 6, 6}},            /* gathered, in segments */
    {CUDNN_BATCHNORM_SPATIAL, 4, {40, 70, 2, 3}},            /* columns even for NCHW */
    {CUDNN_BATCHNORM_SPATIAL, 4, {33, 700, 1, 1}},           /* columns, in two blocks */
    {CUDNN_BATCHNORM_SPATIAL, 4, {2, 1030, 3, 5}},           /* wide columns for NHWC */
    {CUDNN_BATCHNORM_SPATIAL, 5, {2, 10, 3, 11, 13}},        /* volumes */
    {CUDNN_BATCHNORM_SPATIAL, 5, {3, 4, 2, 4, 5}},           /* short volumes */
    {CUDNN_BATCHNORM_PER_ACTIVATION, 4, {19, 5, 7, 9}},      /* activations are columns */
    {CUDNN_BATCHNORM_SPATIAL, 3, {5, 24, 70}},
};

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                        CUDNN_DATA_BFLOAT16};
static const char *const type_names[] = {"f32", "f64", "f16", "bf16"};
static const char *const layout_names[] = {"nchw", "nhwc", "gaps"};

/* What is done on top of the plain call. */
enum kind { PLAIN, BLENDED, IN_PLACE, UNSAVED, RELU, CLIPPED_ADD, IDENTITY_ADD, KINDS };
static const char *const kind_names[] = {"plain", "blended",     "in_place",    "unsaved",
                                         "relu",  "clipped_add", "identity_add"};

static void set_kind(struct norm_case *c, enum kind kind)
{
    c->act = NO_ACTIVATION;
    c->coef = 1.25;
    c->alpha = c->alpha_data = c->alpha_param = 1.0;
    c->factor = 0.3;
    c->epsilon = 1e-5;
    c->forward = true;
    c->running_mean = c->running_var = c->saved = true;
    if (kind == BLENDED) {
        c->alpha = c->alpha_data = c->alpha_param = -1.5;
        c->beta = c->beta_data = c->beta_param = 0.5;
    }
    c->in_place = kind == IN_PLACE;
    if (kind == UNSAVED) c->saved = c->running_mean = c->running_var = false;
    if (kind < RELU) return;
    c->ex = true;
    c->ops =
        kind == RELU ? CUDNN_BATCHNORM_OPS_BN_ACTIVATION : CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
    c->act = kind == RELU          ? CUDNN_ACTIVATION_RELU
             : kind == CLIPPED_ADD ? CUDNN_ACTIVATION_CLIPPED_RELU
                                   : CUDNN_ACTIVATION_IDENTITY;
}

static void training_and_backward(void)
{
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int run = 0; run < KINDS * COUNT(types) * 4; ++run) {
            int kind = run % KINDS;
            int type = run / KINDS % COUNT(types);
            enum layout layout = run / KINDS / COUNT(types) % 2 ? LAYOUT_NHWC : LAYOUT_NCHW;
            bool backward = run / KINDS / COUNT(types) / 2 != 0;
            struct norm_case c = {.mode = shapes[s].mode, .dtype = types[type]};
            if (!case_begin("%s/shape%d/%s/%s/%s", backward ? "backward" : "training", s,
                            type_names[type], layout_names[layout], kind_names[kind])) {
                continue;
            }
            norm_shape_make(&c.shape, c.mode, shapes[s].rank, shapes[s].dim);
            set_kind(&c, (enum kind)kind);
            c.backward = backward;
            c.layout = 1 + (int)layout;
            c.engine = backward ? "bn_backward_cpu" : "bn_training_cpu";
            norm_run(&c, (struct norm_range){-3.0, 3.0});
        }
    }
}

static void infer(struct norm_case *c)
{
    const struct norm_shape *s = &c->shape;
    double *y = norm_zeros(s->count);
    double *size = norm_zeros(s->count);
    struct norm_inputs in = norm_inputs(c);
    const char *name = "";
    if (run_call(norm_call_inference, c)) {
        for (int64_t i = 0; i < s->count; ++i) {
            int64_t p = s->param_of[i];
            double inv = 1.0 / sqrt(in.var[p] + c->epsilon);
            double old = c->beta == 0.0 ? 0.0 : c->beta * in.y[i];
            y[i] = c->alpha * (in.scale[p] * (in.x[i] - in.mean[p]) * inv + in.bias[p]) + old;
            size[i] =
                fabs(c->alpha) * (fabs(in.scale[p]) * inv * (fabs(in.x[i]) + fabs(in.mean[p])) +
                                  fabs(in.bias[p])) +
                fabs(old);
        }
        check_values("y", c->y, y, NULL, size, c->param_dtype);
        warpdnnGetLastEngine(harness_handle, &name);
        if (strcmp(name, "bn_inference_cpu") != 0) case_fail("%s ran", name);
    }
    free(y), free(size), norm_inputs_free(&in);
}

static void inference(void)
{
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int run = 0; run < COUNT(types) * 2 * 3; ++run) {
            int type = run % COUNT(types);
            enum layout layout = run / COUNT(types) % 2 ? LAYOUT_NHWC : LAYOUT_NCHW;
            int kind = run / COUNT(types) / 2;
            struct norm_case c = {.mode = shapes[s].mode, .dtype = types[type]};
            if (!case_begin("inference/shape%d/%s/%s/%s", s, type_names[type], layout_names[layout],
                            kind_names[kind])) {
                continue;
            }
            norm_shape_make(&c.shape, c.mode, shapes[s].rank, shapes[s].dim);
            set_kind(&c, (enum kind)kind);
            c.param_dtype = c.dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
            c.x = c.in_place ? tensor_inout(c.dtype, c.shape.rank, c.shape.dim, layout, -3.0, 3.0)
                             : tensor_input(c.dtype, c.shape.rank, c.shape.dim, layout, -3.0, 3.0);
            c.scale = norm_param(&c, LAYOUT_NCHW, -2.0, 2.0);
            c.bias = norm_param(&c, LAYOUT_NCHW, -1.0, 1.0);
            c.mean = norm_param(&c, LAYOUT_NCHW, -1.0, 1.0);
            c.var = norm_param(&c, LAYOUT_NCHW, 0.1, 2.0);
            c.y = c.in_place ? c.x : norm_output(&c, layout, c.beta);
            infer(&c);
            free(c.shape.param_of);
            case_end();
        }
    }
}

/* ---- Data that is hard on sums: statistics against those in long double ---- */

/* The value of element i of n of a channel. */
static double steady(int64_t i, int64_t n)
{
    (void)n;
    return 10000.0 + random_real(-1.7, 1.7) + (double)(i % 2);
}

static double outlier_first(int64_t i, int64_t n)
{
    (void)n;
    return i == 0 ? 1e6 : random_real(-1.0, 1.0);
}

static double dark_first(int64_t i, int64_t n)
{
    return i < n / 16 ? 0.0 : 1000.0 + random_real(-1.0, 1.0);
}

static double drifting(int64_t i, int64_t n)
{
    return 5000.0 * (double)i / (double)n + random_real(-1.0, 1.0);
}

static double constant(int64_t i, int64_t n)
{
    (void)i, (void)n;
    return 1234.5678;
}

static const struct {
    const char *name;
    double (*value)(int64_t i, int64_t n);
} hard[] = {{"steady", steady},
            {"outlier_first", outlier_first},
            {"dark_first", dark_first},
            {"drifting", drifting},
            {"constant", constant}};

/* The saved statistics of fp32 are those of the data to a few units in the last place. */
static void hard_case(double (*value)(int64_t, int64_t), bool nhwc)
{
    enum { N = 16, C = 6, HW = 64 * 48 };
    const float one = 1.0F;
    const float zero = 0.0F;
    float *x = malloc(sizeof *x * N * C * HW);
    float *y = malloc(sizeof *y * N * C * HW);
    float param[6][C];
    cudnnTensorDescriptor_t data;
    cudnnTensorDescriptor_t derived;
    cudnnCreateTensorDescriptor(&data);
    cudnnCreateTensorDescriptor(&derived);
    cudnnSetTensor4dDescriptor(data, nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                               N, C, 64, 48);
    cudnnDeriveBNTensorDescriptor(derived, data, CUDNN_BATCHNORM_SPATIAL);
    for (int c = 0; c < C; ++c) {
        param[0][c] = 1.0F;
        param[1][c] = 0.0F;
        for (int64_t i = 0; i < N * HW; ++i) {
            int64_t at = nhwc ? i * C + c : (i / HW * C + c) * HW + i % HW;
            x[at] = (float)value(i, N * HW);
        }
    }
    if (norm_fine("training", cudnnBatchNormalizationForwardTraining(
                                  harness_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, data, x,
                                  data, y, derived, param[0], param[1], 1.0, param[2], param[3],
                                  1e-5, param[4], param[5]))) {
        for (int c = 0; c < C; ++c) {
            long double sum = 0;
            long double squares = 0;
            double mean;
            double var;
            double worst = 0.0;
            for (int pass = 0; pass < 2; ++pass) {
                for (int64_t i = 0; i < N * HW; ++i) {
                    int64_t at = nhwc ? i * C + c : (i / HW * C + c) * HW + i % HW;
                    long double d = x[at] - sum / (N * HW);
                    if (pass == 0) sum += x[at];
                    else squares += d * d;
                }
            }
            mean = (double)(sum / (N * HW));
            var = (double)(squares / (N * HW));
            for (int64_t i = 0; i < N * HW; ++i) {
                int64_t at = nhwc ? i * C + c : (i / HW * C + c) * HW + i % HW;
                double want = ((double)x[at] - mean) / sqrt(var + 1e-5);
                double error = fabs(want - (double)y[at]) / (1.0 + fabs(want));
                if (error > worst) worst = error;
            }
            if (fabs(mean - (double)param[4][c]) > 1e-7 * (fabs(mean) + sqrt(var))) {
                case_fail("channel %d: mean %.9g, exactly %.9g", c, (double)param[4][c], mean);
            }
            if (fabs(var * N * HW / (N * HW - 1) - (double)param[3][c]) > 1e-6 * var + 1e-12) {
                case_fail("channel %d: variance %.9g, exactly %.9g", c, (double)param[3][c], var);
            }
            if (worst > 1e-6) case_fail("channel %d: y is off by %g", c, worst);
        }
    }
    free(x), free(y);
    cudnnDestroyTensorDescriptor(data);
    cudnnDestroyTensorDescriptor(derived);
}

/* ---- One digest of large calls, for the comparison between numbers of threads ---- */

static uint64_t digest(uint64_t so_far, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; ++i) so_far = (so_far ^ byte[i]) * UINT64_C(1099511628211);
    return so_far;
}

static uint64_t digest_call(int n, int c, int h, int w, bool nhwc, uint64_t so_far)
{
    const float one = 1.0F;
    const float zero = 0.0F;
    size_t count = (size_t)n * (size_t)c * (size_t)h * (size_t)w;
    float *data[3];
    float *param[8];
    cudnnTensorDescriptor_t full;
    cudnnTensorDescriptor_t derived;
    cudnnCreateTensorDescriptor(&full);
    cudnnCreateTensorDescriptor(&derived);
    cudnnSetTensor4dDescriptor(full, nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                               n, c, h, w);
    cudnnDeriveBNTensorDescriptor(derived, full, CUDNN_BATCHNORM_SPATIAL);
    for (int i = 0; i < 3; ++i) data[i] = calloc(count, sizeof(float));
    for (int i = 0; i < 8; ++i) param[i] = calloc((size_t)c, sizeof(float));
    for (size_t i = 0; i < count; ++i) data[0][i] = (float)random_real(-1.0, 3.0);
    for (int i = 0; i < c; ++i) param[0][i] = (float)random_real(0.5, 2.0);
    norm_fine("training", cudnnBatchNormalizationForwardTraining(
                              harness_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, full, data[0],
                              full, data[1], derived, param[0], param[1], 0.5, param[2], param[3],
                              1e-5, param[4], param[5]));
    norm_fine("backward", cudnnBatchNormalizationBackward(
                              harness_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero,
                              full, data[0], full, data[1], full, data[2], derived, param[0],
                              param[6], param[7], 1e-5, param[4], param[5]));
    for (int i = 1; i < 3; ++i) so_far = digest(so_far, data[i], count * sizeof(float));
    for (int i = 2; i < 8; ++i) so_far = digest(so_far, param[i], (size_t)c * sizeof(float));
    for (int i = 0; i < 3; ++i) free(data[i]);
    for (int i = 0; i < 8; ++i) free(param[i]);
    cudnnDestroyTensorDescriptor(full);
    cudnnDestroyTensorDescriptor(derived);
    return so_far;
}

static void digests(void)
{
    uint64_t all = UINT64_C(14695981039346656037);
    if (!case_begin("digest")) return;
    for (int nhwc = 0; nhwc < 2; ++nhwc) {
        all = digest_call(4, 32, 64, 64, nhwc, all);
        all = digest_call(16, 3, 96, 96, nhwc, all);
        all = digest_call(8, 600, 7, 7, nhwc, all);
        all = digest_call(4, 16, 160, 160, nhwc, all); /* past the caches */
    }
    printf("digest %016llx\n", (unsigned long long)all);
    case_end();
}

/* ---- What is declined, and dropout ---- */

static void declines(void)
{
    struct norm_case c = {.mode = CUDNN_BATCHNORM_SPATIAL, .dtype = CUDNN_DATA_FLOAT};
    if (case_begin("gaps are the definition's")) {
        const int dim[] = {2, 3, 4, 5};
        norm_shape_make(&c.shape, c.mode, 4, dim);
        set_kind(&c, PLAIN);
        c.layout = 1 + LAYOUT_GAPS;
        c.engine = "bn_training_def";
        norm_run(&c, (struct norm_range){-3.0, 3.0});
    }
    if (case_begin("derivatives are the definition's")) {
        const int dim[] = {2, 3, 4, 5};
        struct norm_case smooth = {.mode = CUDNN_BATCHNORM_SPATIAL, .dtype = CUDNN_DATA_FLOAT};
        norm_shape_make(&smooth.shape, smooth.mode, 4, dim);
        set_kind(&smooth, RELU);
        smooth.act = CUDNN_ACTIVATION_TANH;
        smooth.layout = 1 + LAYOUT_NCHW;
        smooth.engine = "bn_training_def";
        norm_run(&smooth, (struct norm_range){-3.0, 3.0});
    }
}

/* Masks are judged by dropout_test.c; here: that the fast engines are what it tests. */
static void dropout_is_reached(void)
{
    static const int order[2][4] = {{105, 35, 7, 1}, {105, 1, 21, 3}};
    static const char *const wanted[2][2] = {{"dropout_forward_cpu", "dropout_backward_cpu"},
                                             {"dropout_forward_def", "dropout_backward_def"}};
    for (int i = 0; i < 2; ++i) {
        float x[210] = {0};
        float y[210];
        unsigned char reserve[64];
        uint64_t states[8];
        size_t bytes = 0;
        const char *name = "";
        cudnnTensorDescriptor_t t;
        cudnnDropoutDescriptor_t d;
        if (!case_begin("dropout/%s", layout_names[i])) continue;
        cudnnCreateTensorDescriptor(&t);
        cudnnCreateDropoutDescriptor(&d);
        cudnnSetTensor4dDescriptorEx(t, CUDNN_DATA_FLOAT, 2, 3, 5, 7, order[i][0], order[i][1],
                                     order[i][2], order[i][3]);
        cudnnDropoutGetStatesSize(harness_handle, &bytes);
        if (bytes > sizeof states) case_fail("%zu bytes of states", bytes);
        cudnnDropoutGetReserveSpaceSize(t, &bytes);
        if (bytes > sizeof reserve) case_fail("%zu bytes of reserve space", bytes);
        norm_fine("set",
                  cudnnSetDropoutDescriptor(d, harness_handle, 0.5F, states, sizeof states, 7));
        norm_fine("forward", cudnnDropoutForward(harness_handle, d, t, x, t, y, reserve, bytes));
        warpdnnGetLastEngine(harness_handle, &name);
        if (strcmp(name, wanted[i][0]) != 0) case_fail("%s ran", name);
        norm_fine("backward", cudnnDropoutBackward(harness_handle, d, t, y, t, x, reserve, bytes));
        warpdnnGetLastEngine(harness_handle, &name);
        if (strcmp(name, wanted[i][1]) != 0) case_fail("%s ran", name);
        cudnnDestroyDropoutDescriptor(d);
        cudnnDestroyTensorDescriptor(t);
        case_end();
    }
}

/* ---- The runs ---- */

static int run_cases(int argc, char **argv)
{
    harness_start(argc, argv);
    if (!getenv("WARPDNN_TEST_QUICK")) {
        training_and_backward();
        inference();
        declines();
        dropout_is_reached();
    }
    for (int h = 0; h < COUNT(hard); ++h) {
        for (int nhwc = 0; nhwc < 2; ++nhwc) {
            if (!case_begin("hard/%s/%s", hard[h].name, layout_names[nhwc])) continue;
            hard_case(hard[h].value, nhwc);
            case_end();
        }
    }
    digests();
    return harness_finish();
}

int main(int argc, char **argv)
{
    return cpu_runs(argc, argv, true, run_cases);
}
