/* SPDX-License-Identifier: Apache-2.0
 *
 * Times the memory-bound calls of problems_memory.def. Each call has a function here that runs it
 * and says the bytes it cannot do without: every input read once, every output written once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { BUFFERS = 4 };

/* What all calls draw from: four images of the problem's size, their descriptor, that of the pooled
 * image, and one value a channel. */
struct context {
    int n, c, h, w;
    int64_t count;
    int64_t pooled; /* elements */
    cudnnTensorDescriptor_t full, half, whole, channel;
    float *data[BUFFERS];
    float *scale, *bias, *mean, *variance, *saved_mean, *saved_inverse, *scale_gradient,
        *bias_gradient;
    cudnnPoolingDescriptor_t max, average, global;
    cudnnActivationDescriptor_t relu, sigmoid, tanh;
    cudnnOpTensorDescriptor_t add;
};

static const float one = 1.0F;
static const float zero = 0.0F;

static cudnnStatus_t pool(struct context *c, cudnnPoolingDescriptor_t pooling,
                          cudnnTensorDescriptor_t out)
{
    return cudnnPoolingForward(bench_handle, pooling, &one, c->full, c->data[0], &zero, out,
                               c->data[1]);
}

static cudnnStatus_t pool_back(struct context *c, cudnnPoolingDescriptor_t pooling)
{
    return cudnnPoolingBackward(bench_handle, pooling, &one, c->half, c->data[1], c->half,
                                c->data[3], c->full, c->data[0], &zero, c->full, c->data[2]);
}

static cudnnStatus_t max_forward(void *v)
{
    struct context *c = v;
    return pool(c, c->max, c->half);
}

static cudnnStatus_t max_backward(void *v)
{
    struct context *c = v;
    return pool_back(c, c->max);
}

static cudnnStatus_t average_forward(void *v)
{
    struct context *c = v;
    return pool(c, c->average, c->half);
}

static cudnnStatus_t average_backward(void *v)
{
    struct context *c = v;
    return pool_back(c, c->average);
}

static cudnnStatus_t global_forward(void *v)
{
    struct context *c = v;
    return pool(c, c->global, c->whole);
}

static cudnnStatus_t activate(struct context *c, cudnnActivationDescriptor_t activation)
{
    return cudnnActivationForward(bench_handle, activation, &one, c->full, c->data[0], &zero,
                                  c->full, c->data[1]);
}

static cudnnStatus_t activate_back(struct context *c, cudnnActivationDescriptor_t activation)
{
    return cudnnActivationBackward(bench_handle, activation, &one, c->full, c->data[0], c->full,
                                   c->data[1], c->full, c->data[2], &zero, c->full, c->data[3]);
}

static cudnnStatus_t relu_forward(void *v)
{
    struct context *c = v;
    return activate(c, c->relu);
}

static cudnnStatus_t relu_backward(void *v)
{
    struct context *c = v;
    return activate_back(c, c->relu);
}

static cudnnStatus_t sigmoid_forward(void *v)
{
    struct context *c = v;
    return activate(c, c->sigmoid);
}

static cudnnStatus_t sigmoid_backward(void *v)
{
    struct context *c = v;
    return activate_back(c, c->sigmoid);
}

static cudnnStatus_t tanh_forward(void *v)
{
    struct context *c = v;
    return activate(c, c->tanh);
}

static cudnnStatus_t training(void *v)
{
    struct context *c = v;
    return cudnnBatchNormalizationForwardTraining(
        bench_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, c->full, c->data[0], c->full,
        c->data[1], c->channel, c->scale, c->bias, 0.1, c->mean, c->variance, 1e-5, c->saved_mean,
        c->saved_inverse);
}

static cudnnStatus_t inference(void *v)
{
    struct context *c = v;
    return cudnnBatchNormalizationForwardInference(
        bench_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, c->full, c->data[0], c->full,
        c->data[1], c->channel, c->scale, c->bias, c->mean, c->variance, 1e-5);
}

static cudnnStatus_t norm_backward(void *v)
{
    struct context *c = v;
    return cudnnBatchNormalizationBackward(bench_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one,
                                           &zero, c->full, c->data[0], c->full, c->data[1], c->full,
                                           c->data[2], c->channel, c->scale, c->scale_gradient,
                                           c->bias_gradient, 1e-5, c->saved_mean, c->saved_inverse);
}

static cudnnStatus_t soft(struct context *c, cudnnSoftmaxAlgorithm_t algorithm,
                          cudnnSoftmaxMode_t mode)
{
    return cudnnSoftmaxForward(bench_handle, algorithm, mode, &one, c->full, c->data[0], &zero,
                               c->full, c->data[1]);
}

static cudnnStatus_t softmax_forward(void *v)
{
    return soft(v, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE);
}

static cudnnStatus_t log_forward(void *v)
{
    return soft(v, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE);
}

static cudnnStatus_t channel_forward(void *v)
{
    return soft(v, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL);
}

static cudnnStatus_t softmax_backward(void *v)
{
    struct context *c = v;
    return cudnnSoftmaxBackward(bench_handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
                                &one, c->full, c->data[0], c->full, c->data[1], &zero, c->full,
                                c->data[2]);
}

static cudnnStatus_t add(void *v)
{
    struct context *c = v;
    return cudnnOpTensor(bench_handle, c->add, &one, c->full, c->data[0], &one, c->full, c->data[1],
                         &zero, c->full, c->data[2]);
}

static cudnnStatus_t add_bias(void *v)
{
    struct context *c = v;
    return cudnnAddTensor(bench_handle, &one, c->channel, c->bias, &one, c->full, c->data[0]);
}

static cudnnStatus_t scale(void *v)
{
    struct context *c = v;
    return cudnnScaleTensor(bench_handle, c->full, c->data[0], &one);
}

static cudnnStatus_t bias_gradient(void *v)
{
    struct context *c = v;
    return cudnnConvolutionBackwardBias(bench_handle, &one, c->full, c->data[0], &zero, c->channel,
                                        c->bias_gradient);
}

/* The calls by name, with the images of full and of pooled size that each reads or writes at least.
 * Max pooling backward needs x and y to find the largest, and dy, and writes dx. Batch norm in
 * training and backward goes through x twice unless the caches hold it: that is not counted. */
static const struct {
    const char *family;
    const char *name;
    cudnnStatus_t (*run)(void *context);
    int full;
    int pooled;
} calls[] = {
    {"pooling", "max_forward", max_forward, 1, 1},
    {"pooling", "max_backward", max_backward, 2, 2},
    {"pooling", "average_forward", average_forward, 1, 1},
    {"pooling", "average_backward", average_backward, 1, 1},
    {"pooling", "global_forward", global_forward, 1, 0},
    {"activation", "relu_forward", relu_forward, 2, 0},
    {"activation", "relu_backward", relu_backward, 3, 0},
    {"activation", "sigmoid_forward", sigmoid_forward, 2, 0},
    {"activation", "sigmoid_backward", sigmoid_backward, 3, 0},
    {"activation", "tanh_forward", tanh_forward, 2, 0},
    {"batchnorm", "training", training, 2, 0},
    {"batchnorm", "inference", inference, 2, 0},
    {"batchnorm", "backward", norm_backward, 3, 0},
    {"softmax", "forward", softmax_forward, 2, 0},
    {"softmax", "backward", softmax_backward, 3, 0},
    {"softmax", "log_forward", log_forward, 2, 0},
    {"softmax", "channel_forward", channel_forward, 2, 0},
    {"elementwise", "add", add, 3, 0},
    {"elementwise", "bias", add_bias, 2, 0},
    {"elementwise", "scale", scale, 2, 0},
    {"elementwise", "bias_gradient", bias_gradient, 1, 0},
};

static const struct problem {
    const char *family;
    const char *name;
    int n, c, h, w;
} problems[] = {
#define WD_MEMORY(family, call, N, C, H, W) {#family, #call, N, C, H, W},
#include "problems_memory.def"
#undef WD_MEMORY
};

static void describe(cudnnTensorDescriptor_t *desc, int n, int c, int h, int w)
{
    cudnnTensorFormat_t format = bench_options.nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    bench_check(cudnnCreateTensorDescriptor(desc), "tensor");
    bench_check(cudnnSetTensor4dDescriptor(*desc, format, CUDNN_DATA_FLOAT, n, c, h, w), "tensor");
}

static void describe_pooling(cudnnPoolingDescriptor_t *desc, cudnnPoolingMode_t mode, int window,
                             int pad, int stride, int w)
{
    bench_check(cudnnCreatePoolingDescriptor(desc), "pooling");
    bench_check(cudnnSetPooling2dDescriptor(*desc, mode, CUDNN_NOT_PROPAGATE_NAN, window,
                                            w > 0 ? w : window, pad, pad, stride, stride),
                "pooling");
}

static void describe_activation(cudnnActivationDescriptor_t *desc, cudnnActivationMode_t mode)
{
    bench_check(cudnnCreateActivationDescriptor(desc), "activation");
    bench_check(cudnnSetActivationDescriptor(*desc, mode, CUDNN_NOT_PROPAGATE_NAN, 0.0),
                "activation");
}

static void set_up(struct context *c, const struct problem *p)
{
    float **channels[] = {&c->scale,      &c->bias,          &c->mean,           &c->variance,
                          &c->saved_mean, &c->saved_inverse, &c->scale_gradient, &c->bias_gradient};
    int half_h = (p->h + 2 - 3) / 2 + 1;
    int half_w = (p->w + 2 - 3) / 2 + 1;
    c->n = p->n;
    c->c = p->c;
    c->h = p->h;
    c->w = p->w;
    c->count = (int64_t)p->n * p->c * p->h * p->w;
    if (half_h < 1) half_h = 1;
    if (half_w < 1) half_w = 1;
    c->pooled = (int64_t)p->n * p->c * half_h * half_w;
    describe(&c->full, p->n, p->c, p->h, p->w);
    describe(&c->half, p->n, p->c, half_h, half_w);
    describe(&c->whole, p->n, p->c, 1, 1);
    describe(&c->channel, 1, p->c, 1, 1);
    describe_pooling(&c->max, CUDNN_POOLING_MAX, 3, 1, 2, 0);
    describe_pooling(&c->average, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 3, 1, 2, 0);
    describe_pooling(&c->global, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, p->h, 0, 1, p->w);
    describe_activation(&c->relu, CUDNN_ACTIVATION_RELU);
    describe_activation(&c->sigmoid, CUDNN_ACTIVATION_SIGMOID);
    describe_activation(&c->tanh, CUDNN_ACTIVATION_TANH);
    bench_check(cudnnCreateOpTensorDescriptor(&c->add), "op tensor");
    bench_check(cudnnSetOpTensorDescriptor(c->add, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                           CUDNN_NOT_PROPAGATE_NAN),
                "op tensor");
    for (int i = 0; i < BUFFERS; ++i) c->data[i] = bench_floats(c->count);
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; ++i) {
        *channels[i] = bench_floats(p->c);
    }
    /* a variance is not negative */
    bench_check(warpdnnMemset(bench_handle, c->variance, 0, (size_t)p->c * sizeof(float)),
                "variance");
    /* y, and the saved statistics, are what a forward call makes */
    if (!strcmp(p->name, "max_backward")) bench_check(max_forward(c), "pooling");
    if (!strcmp(p->family, "batchnorm")) bench_check(training(c), "batch norm");
}

static void tear_down(struct context *c)
{
    float *channels[] = {c->scale,      c->bias,          c->mean,           c->variance,
                         c->saved_mean, c->saved_inverse, c->scale_gradient, c->bias_gradient};
    for (int i = 0; i < BUFFERS; ++i) warpdnnFree(bench_handle, c->data[i]);
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; ++i) {
        warpdnnFree(bench_handle, channels[i]);
    }
    cudnnDestroyTensorDescriptor(c->full);
    cudnnDestroyTensorDescriptor(c->half);
    cudnnDestroyTensorDescriptor(c->whole);
    cudnnDestroyTensorDescriptor(c->channel);
    cudnnDestroyPoolingDescriptor(c->max);
    cudnnDestroyPoolingDescriptor(c->average);
    cudnnDestroyPoolingDescriptor(c->global);
    cudnnDestroyActivationDescriptor(c->relu);
    cudnnDestroyActivationDescriptor(c->sigmoid);
    cudnnDestroyActivationDescriptor(c->tanh);
    cudnnDestroyOpTensorDescriptor(c->add);
}

static void time_problem(const struct problem *p)
{
    struct row row = {.counted = true};
    struct context c;
    const char *engine;
    double copy;
    size_t call = 0;
    memset(&c, 0, sizeof c);
    snprintf(row.set, sizeof row.set, "%s", p->family);
    snprintf(row.name, sizeof row.name, "%s", p->name);
    snprintf(row.problem, sizeof row.problem, "n%d %dx%dx%d", p->n, p->c, p->h, p->w);
    if (!bench_wanted(row.set, row.name, row.problem)) return;
    while (strcmp(calls[call].family, p->family) != 0 || strcmp(calls[call].name, p->name) != 0) {
        if (++call == sizeof calls / sizeof calls[0]) {
            fprintf(stderr, "problems_memory.def names %s %s, which memory.c does not know\n",
                    p->family, p->name);
            exit(1);
        }
    }
    set_up(&c, p);
    row.work = (double)sizeof(float) *
               ((double)c.count * calls[call].full + (double)c.pooled * calls[call].pooled);
    row.copy = bench_reference_copy(row.work);
    row.timing = bench_time(calls[call].run, &c);
    warpdnnGetLastEngine(bench_handle, &engine);
    snprintf(row.engine, sizeof row.engine, "%s", engine);
    copy = bench_reference_copy(row.work);
    if (copy > row.copy) row.copy = copy;
    report_add(&row);
    tear_down(&c);
}

void bench_memory(void)
{
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i) time_problem(&problems[i]);
}
