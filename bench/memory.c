/* SPDX-License-Identifier: Apache-2.0
 *
 * Times the memory-bound calls of problems_memory.def. Each call has a function here that runs it
 * and says the bytes it cannot do without: every input read once, every output written once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sets.h"

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
    cudnnReduceTensorDescriptor_t reduction;
    cudnnTensorDescriptor_t point, plane;
    float *indices;
    void *workspace; /* of a reduction */
};

enum { REDUCTION_BYTES = 64 << 20 };

static const float one = 1.0F;
static const float zero = 0.0F;

static cudnnStatus_t pool(struct context *c, cudnnPoolingDescriptor_t pooling,
                          cudnnTensorDescriptor_t out)
{
    return ours.PoolingForward(sets_handle, pooling, &one, c->full, c->data[0], &zero, out,
                               c->data[1]);
}

static cudnnStatus_t pool_back(struct context *c, cudnnPoolingDescriptor_t pooling)
{
    return ours.PoolingBackward(sets_handle, pooling, &one, c->half, c->data[1], c->half,
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
    return ours.ActivationForward(sets_handle, activation, &one, c->full, c->data[0], &zero,
                                  c->full, c->data[1]);
}

static cudnnStatus_t activate_back(struct context *c, cudnnActivationDescriptor_t activation)
{
    return ours.ActivationBackward(sets_handle, activation, &one, c->full, c->data[0], c->full,
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
    return ours.BatchNormalizationForwardTraining(
        sets_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, c->full, c->data[0], c->full, c->data[1],
        c->channel, c->scale, c->bias, 0.1, c->mean, c->variance, 1e-5, c->saved_mean,
        c->saved_inverse);
}

static cudnnStatus_t inference(void *v)
{
    struct context *c = v;
    return ours.BatchNormalizationForwardInference(
        sets_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, c->full, c->data[0], c->full, c->data[1],
        c->channel, c->scale, c->bias, c->mean, c->variance, 1e-5);
}

static cudnnStatus_t norm_backward(void *v)
{
    struct context *c = v;
    return ours.BatchNormalizationBackward(sets_handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one,
                                           &zero, c->full, c->data[0], c->full, c->data[1], c->full,
                                           c->data[2], c->channel, c->scale, c->scale_gradient,
                                           c->bias_gradient, 1e-5, c->saved_mean, c->saved_inverse);
}

static cudnnStatus_t soft(struct context *c, cudnnSoftmaxAlgorithm_t algorithm,
                          cudnnSoftmaxMode_t mode)
{
    return ours.SoftmaxForward(sets_handle, algorithm, mode, &one, c->full, c->data[0], &zero,
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
    return ours.SoftmaxBackward(sets_handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
                                &one, c->full, c->data[0], c->full, c->data[1], &zero, c->full,
                                c->data[2]);
}

static cudnnStatus_t add(void *v)
{
    struct context *c = v;
    return ours.OpTensor(sets_handle, c->add, &one, c->full, c->data[0], &one, c->full, c->data[1],
                         &zero, c->full, c->data[2]);
}

static cudnnStatus_t add_bias(void *v)
{
    struct context *c = v;
    return ours.AddTensor(sets_handle, &one, c->channel, c->bias, &one, c->full, c->data[0]);
}

static cudnnStatus_t scale(void *v)
{
    struct context *c = v;
    return ours.ScaleTensor(sets_handle, c->full, c->data[0], &one);
}

static cudnnStatus_t bias_gradient(void *v)
{
    struct context *c = v;
    return ours.ConvolutionBackwardBias(sets_handle, &one, c->full, c->data[0], &zero, c->channel,
                                        c->bias_gradient);
}

static cudnnStatus_t reduce(struct context *c, cudnnReduceTensorOp_t op,
                            cudnnReduceTensorIndices_t indices, cudnnTensorDescriptor_t to)
{
    size_t bytes;
    cudnnStatus_t status = ours.SetReduceTensorDescriptor(
        c->reduction, op, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN, indices, CUDNN_32BIT_INDICES);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    status = ours.GetReductionIndicesSize(sets_handle, c->reduction, c->full, to, &bytes);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return ours.ReduceTensor(sets_handle, c->reduction, bytes ? c->indices : NULL, bytes,
                             c->workspace, REDUCTION_BYTES, &one, c->full, c->data[0], &zero, to,
                             c->data[1]);
}

static cudnnStatus_t add_all(void *v)
{
    struct context *c = v;
    return reduce(c, CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_NO_INDICES, c->point);
}

static cudnnStatus_t add_channels(void *v)
{
    struct context *c = v;
    return reduce(c, CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_NO_INDICES, c->channel);
}

static cudnnStatus_t avg_images(void *v)
{
    struct context *c = v;
    return reduce(c, CUDNN_REDUCE_TENSOR_AVG, CUDNN_REDUCE_TENSOR_NO_INDICES, c->whole);
}

static cudnnStatus_t norm2_points(void *v)
{
    struct context *c = v;
    return reduce(c, CUDNN_REDUCE_TENSOR_NORM2, CUDNN_REDUCE_TENSOR_NO_INDICES, c->plane);
}

static cudnnStatus_t max_images(void *v)
{
    struct context *c = v;
    return reduce(c, CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, c->whole);
}

static cudnnStatus_t max_all(void *v)
{
    struct context *c = v;
    return reduce(c, CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_NO_INDICES, c->point);
}

static cudnnStatus_t mul_channels(void *v)
{
    struct context *c = v;
    return reduce(c, CUDNN_REDUCE_TENSOR_MUL, CUDNN_REDUCE_TENSOR_NO_INDICES, c->channel);
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
    {"reduce", "add_all", add_all, 1, 0},
    {"reduce", "add_channels", add_channels, 1, 0},
    {"reduce", "avg_images", avg_images, 1, 0},
    {"reduce", "norm2_points", norm2_points, 1, 0},
    {"reduce", "max_images", max_images, 1, 0},
    {"reduce", "max_all", max_all, 1, 0},
    {"reduce", "mul_channels", mul_channels, 1, 0},
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
    bench_check(ours.CreateTensorDescriptor(desc), "tensor");
    bench_check(ours.SetTensor4dDescriptor(*desc, format, CUDNN_DATA_FLOAT, n, c, h, w), "tensor");
}

static void describe_pooling(cudnnPoolingDescriptor_t *desc, cudnnPoolingMode_t mode, int window,
                             int pad, int stride, int w)
{
    bench_check(ours.CreatePoolingDescriptor(desc), "pooling");
    bench_check(ours.SetPooling2dDescriptor(*desc, mode, CUDNN_NOT_PROPAGATE_NAN, window,
                                            w > 0 ? w : window, pad, pad, stride, stride),
                "pooling");
}

static void describe_activation(cudnnActivationDescriptor_t *desc, cudnnActivationMode_t mode)
{
    bench_check(ours.CreateActivationDescriptor(desc), "activation");
    bench_check(ours.SetActivationDescriptor(*desc, mode, CUDNN_NOT_PROPAGATE_NAN, 0.0),
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
    describe(&c->point, 1, 1, 1, 1);
    describe(&c->plane, p->n, 1, p->h, p->w);
    bench_check(ours.CreateReduceTensorDescriptor(&c->reduction), "reduction");
    describe_pooling(&c->max, CUDNN_POOLING_MAX, 3, 1, 2, 0);
    describe_pooling(&c->average, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 3, 1, 2, 0);
    describe_pooling(&c->global, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, p->h, 0, 1, p->w);
    describe_activation(&c->relu, CUDNN_ACTIVATION_RELU);
    describe_activation(&c->sigmoid, CUDNN_ACTIVATION_SIGMOID);
    describe_activation(&c->tanh, CUDNN_ACTIVATION_TANH);
    bench_check(ours.CreateOpTensorDescriptor(&c->add), "op tensor");
    bench_check(ours.SetOpTensorDescriptor(c->add, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                           CUDNN_NOT_PROPAGATE_NAN),
                "op tensor");
    for (int i = 0; i < BUFFERS; ++i) c->data[i] = sets_floats(c->count);
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; ++i) {
        *channels[i] = sets_floats(p->c);
    }
    if (!strcmp(p->family, "reduce")) {
        c->indices = sets_floats(c->count);
        bench_check(ours.Malloc(sets_handle, REDUCTION_BYTES, &c->workspace), "workspace");
    }
    /* a variance is not negative */
    bench_check(ours.Memset(sets_handle, c->variance, 0, (size_t)p->c * sizeof(float)), "variance");
    /* y, and the saved statistics, are what a forward call makes */
    if (!strcmp(p->name, "max_backward")) bench_check(max_forward(c), "pooling");
    if (!strcmp(p->family, "batchnorm")) bench_check(training(c), "batch norm");
}

static void tear_down(struct context *c)
{
    float *channels[] = {c->scale,      c->bias,          c->mean,           c->variance,
                         c->saved_mean, c->saved_inverse, c->scale_gradient, c->bias_gradient};
    for (int i = 0; i < BUFFERS; ++i) ours.Free(sets_handle, c->data[i]);
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; ++i) {
        ours.Free(sets_handle, channels[i]);
    }
    ours.Free(sets_handle, c->indices);
    ours.Free(sets_handle, c->workspace);
    ours.DestroyReduceTensorDescriptor(c->reduction);
    ours.DestroyTensorDescriptor(c->point);
    ours.DestroyTensorDescriptor(c->plane);
    ours.DestroyTensorDescriptor(c->full);
    ours.DestroyTensorDescriptor(c->half);
    ours.DestroyTensorDescriptor(c->whole);
    ours.DestroyTensorDescriptor(c->channel);
    ours.DestroyPoolingDescriptor(c->max);
    ours.DestroyPoolingDescriptor(c->average);
    ours.DestroyPoolingDescriptor(c->global);
    ours.DestroyActivationDescriptor(c->relu);
    ours.DestroyActivationDescriptor(c->sigmoid);
    ours.DestroyActivationDescriptor(c->tanh);
    ours.DestroyOpTensorDescriptor(c->add);
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
    if (!sets_wanted(row.set, row.name, row.problem)) return;
    while (strcmp(calls[call].family, p->family) != 0 || strcmp(calls[call].name, p->name) != 0) {
        if (++call == sizeof calls / sizeof calls[0]) {
            fprintf(stderr, "problems_memory.def names %s %s, which memory.c does not know\n",
                    p->family, p->name);
            bench_give_up();
        }
    }
    set_up(&c, p);
    row.work = (double)sizeof(float) *
               ((double)c.count * calls[call].full + (double)c.pooled * calls[call].pooled);
    row.copy = bench_reference_copy(row.work);
    row.timing = cpu_time(calls[call].run, &c);
    ours.GetLastEngine(sets_handle, &engine);
    snprintf(row.engine, sizeof row.engine, "%s", engine);
    copy = bench_reference_copy(row.work);
    if (copy > row.copy) row.copy = copy;
    sets_add(&row);
    tear_down(&c);
}

void sets_memory(void)
{
    for (size_t i = 0; i < sizeof problems / sizeof problems[0] && !bench_is_stopped(); ++i) {
        time_problem(&problems[i]);
    }
}
