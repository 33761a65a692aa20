/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of train_digits on the cuDNN API. One thread, one handle. */
#include "network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudnnHandle_t handle;
const float one = 1.0f, zero = 0.0f;
unsigned long long random_state;

void check(cudnnStatus_t status, const char *call)
{
    char text[512];
    if (status == CUDNN_STATUS_SUCCESS) return;
    cudnnGetLastErrorString(text, sizeof text);
    fprintf(stderr, "%s\n  in %.60s...\n  %s\n", cudnnGetErrorString(status), call, text);
    exit(1);
}

/* Memory where the handle computes. */
static void *device_memory(size_t bytes)
{
    void *data;
    CHECK(warpdnnMalloc(handle, bytes, &data));
    CHECK(warpdnnMemset(handle, data, 0, bytes));
    return data;
}

double uniform(void)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(random_state >> 11) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2.0 * log(1.0 - uniform())) * cos(6.283185307179586 * uniform());
}

static struct blob blob_new(int channels, int size)
{
    struct blob b = {NULL, channels, size, NULL, NULL};
    size_t bytes;
    CHECK(cudnnCreateTensorDescriptor(&b.desc));
    CHECK(cudnnSetTensor4dDescriptor(b.desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, BATCH, channels,
                                     size, size));
    CHECK(cudnnGetTensorSizeInBytes(b.desc, &bytes));
    b.data = device_memory(bytes);
    b.grad = device_memory(bytes);
    return b;
}

static struct param param_new(int n, int c, int h, int w, double deviation, float constant)
{
    struct param p = {NULL, n * c * h * w, NULL, NULL, NULL};
    float *initial = malloc(sizeof *initial * (size_t)p.count);
    size_t bytes = sizeof *initial * (size_t)p.count;
    for (int i = 0; i < p.count; ++i) initial[i] = constant + (float)(deviation * normal());
    CHECK(cudnnCreateTensorDescriptor(&p.desc));
    CHECK(cudnnSetTensor4dDescriptor(p.desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
    p.value = device_memory(bytes);
    p.grad = device_memory(bytes);
    p.momentum = device_memory(bytes);
    CHECK(warpdnnMemcpy(handle, p.value, initial, bytes));
    free(initial);
    return p;
}

static struct layer *add_layer(struct network *net, enum kind kind, int channels, int size)
{
    struct layer *layer = &net->layer[net->layers++];
    memset(layer, 0, sizeof *layer);
    layer->kind = kind;
    net->blob[net->layers] = blob_new(channels, size);
    return layer;
}

static void need_workspace(struct network *net, size_t bytes)
{
    if (bytes > net->workspace_bytes) net->workspace_bytes = bytes;
}

/* A convolution with a square window; asks the library for its best algorithm in each direction and
 * for the workspace that it needs. */
static void add_conv(struct network *net, int channels, int window, int pad)
{
    const struct blob x = net->blob[net->layers];
    int size = x.size + 2 * pad - window + 1;
    struct layer *layer = add_layer(net, CONV, channels, size);
    const struct blob y = net->blob[net->layers];
    cudnnConvolutionFwdAlgoPerf_t fprop;
    cudnnConvolutionBwdDataAlgoPerf_t dgrad;
    cudnnConvolutionBwdFilterAlgoPerf_t wgrad;
    int found;
    double fan_in = (double)x.channels * window * window;
    layer->params = 2;
    layer->param[0] = param_new(channels, x.channels, window, window, sqrt(2.0 / fan_in), 0.0f);
    layer->param[1] = param_new(1, channels, 1, 1, 0.0, 0.0f);
    CHECK(cudnnCreateFilterDescriptor(&layer->filter));
    CHECK(cudnnSetFilter4dDescriptor(layer->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, channels,
                                     x.channels, window, window));
    CHECK(cudnnCreateConvolutionDescriptor(&layer->conv));
    CHECK(cudnnSetConvolution2dDescriptor(layer->conv, pad, pad, 1, 1, 1, 1,
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CHECK(cudnnGetConvolutionForwardAlgorithm_v7(handle, x.desc, layer->filter, layer->conv, y.desc,
                                                 1, &found, &fprop));
    CHECK(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, layer->filter, y.desc, layer->conv,
                                                      x.desc, 1, &found, &dgrad));
    CHECK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x.desc, y.desc, layer->conv,
                                                        layer->filter, 1, &found, &wgrad));
    layer->fprop = fprop.algo;
    layer->dgrad = dgrad.algo;
    layer->wgrad = wgrad.algo;
    need_workspace(net, fprop.memory);
    need_workspace(net, dgrad.memory);
    need_workspace(net, wgrad.memory);
}

static void add_norm(struct network *net)
{
    const struct blob x = net->blob[net->layers];
    struct layer *layer = add_layer(net, NORM, x.channels, x.size);
    size_t bytes = sizeof(float) * (size_t)x.channels;
    layer->params = 2;
    layer->param[0] = param_new(1, x.channels, 1, 1, 0.0, 1.0f);
    layer->param[1] = param_new(1, x.channels, 1, 1, 0.0, 0.0f);
    layer->running_mean = device_memory(bytes);
    layer->running_var = device_memory(bytes);
    layer->saved_mean = device_memory(bytes);
    layer->saved_inv_std = device_memory(bytes);
}

static void add_relu(struct network *net)
{
    const struct blob x = net->blob[net->layers];
    struct layer *layer = add_layer(net, RELU, x.channels, x.size);
    CHECK(cudnnCreateActivationDescriptor(&layer->activation));
    CHECK(cudnnSetActivationDescriptor(layer->activation, CUDNN_ACTIVATION_RELU,
                                       CUDNN_PROPAGATE_NAN, 0.0));
}

static void add_pool(struct network *net)
{
    const struct blob x = net->blob[net->layers];
    struct layer *layer = add_layer(net, POOL, x.channels, x.size / 2);
    CHECK(cudnnCreatePoolingDescriptor(&layer->pooling));
    CHECK(cudnnSetPooling2dDescriptor(layer->pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2,
                                      0, 0, 2, 2));
}

static void add_dropout(struct network *net, float probability, unsigned long long seed)
{
    const struct blob x = net->blob[net->layers];
    struct layer *layer = add_layer(net, DROPOUT, x.channels, x.size);
    size_t states;
    CHECK(cudnnDropoutGetStatesSize(handle, &states));
    CHECK(cudnnDropoutGetReserveSpaceSize(x.desc, &layer->reserve_bytes));
    layer->states = device_memory(states);
    layer->reserve = device_memory(layer->reserve_bytes);
    CHECK(cudnnCreateDropoutDescriptor(&layer->dropout));
    CHECK(cudnnSetDropoutDescriptor(layer->dropout, handle, probability, layer->states, states,
                                    seed));
}

/* Notes which engine the library ran, for the table that main prints. */
static void note_engine(struct layer *layer, int backward)
{
    const char *name;
    if (layer->engine[backward][0]) return;
    CHECK(warpdnnGetLastEngine(handle, &name));
    snprintf(layer->engine[backward], sizeof layer->engine[backward], "%s", name);
}

static void layer_forward(struct network *net, int i, int training)
{
    struct layer *l = &net->layer[i];
    struct blob *x = &net->blob[i], *y = &net->blob[i + 1];
    switch (l->kind) {
    case CONV:
        CHECK(cudnnConvolutionForward(handle, &one, x->desc, x->data, l->filter, l->param[0].value,
                                      l->conv, l->fprop, net->workspace, net->workspace_bytes,
                                      &zero, y->desc, y->data));
        note_engine(l, 0);
        CHECK(cudnnAddTensor(handle, &one, l->param[1].desc, l->param[1].value, &one, y->desc,
                             y->data));
        return;
    case NORM:
        if (training) {
            CHECK(cudnnBatchNormalizationForwardTraining(
                handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x->desc, x->data, y->desc, y->data,
                l->param[0].desc, l->param[0].value, l->param[1].value, 0.1, l->running_mean,
                l->running_var, 1e-5, l->saved_mean, l->saved_inv_std));
            note_engine(l, 0);
        } else {
            CHECK(cudnnBatchNormalizationForwardInference(
                handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x->desc, x->data, y->desc, y->data,
                l->param[0].desc, l->param[0].value, l->param[1].value, l->running_mean,
                l->running_var, 1e-5));
        }
        return;
    case RELU:
        CHECK(cudnnActivationForward(handle, l->activation, &one, x->desc, x->data, &zero, y->desc,
                                     y->data));
        break;
    case POOL:
        CHECK(cudnnPoolingForward(handle, l->pooling, &one, x->desc, x->data, &zero, y->desc,
                                  y->data));
        break;
    case DROPOUT:
        if (training) {
            CHECK(cudnnDropoutForward(handle, l->dropout, x->desc, x->data, y->desc, y->data,
                                      l->reserve, l->reserve_bytes));
        } else {
            CHECK(cudnnTransformTensor(handle, &one, x->desc, x->data, &zero, y->desc, y->data));
            return;
        }
        break;
    }
    note_engine(l, 0);
}

/* Gradients of the parameters, and of the input unless this is the first layer. */
static void layer_backward(struct network *net, int i)
{
    struct layer *l = &net->layer[i];
    struct blob *x = &net->blob[i], *y = &net->blob[i + 1];
    switch (l->kind) {
    case CONV:
        CHECK(cudnnConvolutionBackwardBias(handle, &one, y->desc, y->grad, &zero, l->param[1].desc,
                                           l->param[1].grad));
        if (i > 0) {
            CHECK(cudnnConvolutionBackwardData(handle, &one, l->filter, l->param[0].value, y->desc,
                                               y->grad, l->conv, l->dgrad, net->workspace,
                                               net->workspace_bytes, &zero, x->desc, x->grad));
        }
        CHECK(cudnnConvolutionBackwardFilter(
            handle, &one, x->desc, x->data, y->desc, y->grad, l->conv, l->wgrad, net->workspace,
            net->workspace_bytes, &zero, l->filter, l->param[0].grad));
        break;
    case NORM:
        CHECK(cudnnBatchNormalizationBackward(
            handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, x->desc, x->data, y->desc,
            y->grad, x->desc, x->grad, l->param[0].desc, l->param[0].value, l->param[0].grad,
            l->param[1].grad, 1e-5, l->saved_mean, l->saved_inv_std));
        break;
    case RELU:
        CHECK(cudnnActivationBackward(handle, l->activation, &one, y->desc, y->data, y->desc,
                                      y->grad, x->desc, x->data, &zero, x->desc, x->grad));
        break;
    case POOL:
        CHECK(cudnnPoolingBackward(handle, l->pooling, &one, y->desc, y->data, y->desc, y->grad,
                                   x->desc, x->data, &zero, x->desc, x->grad));
        break;
    case DROPOUT:
        CHECK(cudnnDropoutBackward(handle, l->dropout, y->desc, y->grad, x->desc, x->grad,
                                   l->reserve, l->reserve_bytes));
        break;
    }
    note_engine(l, 1);
}

void network_update(struct network *net, double rate)
{
    const float keep = 0.9f, decay = 1e-4f, step = (float)-rate;
    for (int i = 0; i < net->layers; ++i) {
        for (int k = 0; k < net->layer[i].params; ++k) {
            struct param *p = &net->layer[i].param[k];
            CHECK(cudnnAddTensor(handle, &decay, p->desc, p->value, &one, p->desc, p->grad));
            CHECK(cudnnAddTensor(handle, &one, p->desc, p->grad, &keep, p->desc, p->momentum));
            CHECK(cudnnAddTensor(handle, &step, p->desc, p->momentum, &one, p->desc, p->value));
        }
    }
}

void network_create(struct network *net, int size, unsigned long long seed)
{
    int large = size > 16;
    memset(net, 0, sizeof *net);
    net->blob[0] = blob_new(1, size);
    add_conv(net, large ? 32 : 24, 3, 1);
    add_norm(net);
    add_relu(net);
    if (large) add_pool(net);
    add_conv(net, large ? 64 : 48, 3, 1);
    add_norm(net);
    add_relu(net);
    add_pool(net);
    add_dropout(net, 0.3f, seed);
    add_conv(net, CLASSES, net->blob[net->layers].size, 0);
    net->blob[net->layers + 1] = blob_new(CLASSES, 1);
    net->workspace = net->workspace_bytes ? device_memory(net->workspace_bytes) : NULL;
}

void network_destroy(struct network *net)
{
    for (int i = 0; i <= net->layers + 1; ++i) {
        CHECK(warpdnnFree(handle, net->blob[i].data));
        CHECK(warpdnnFree(handle, net->blob[i].grad));
        CHECK(cudnnDestroyTensorDescriptor(net->blob[i].desc));
    }
    for (int i = 0; i < net->layers; ++i) {
        struct layer *l = &net->layer[i];
        void *memory[] = {l->states,      l->reserve,    l->running_mean,
                          l->running_var, l->saved_mean, l->saved_inv_std};
        for (int k = 0; k < 6; ++k) CHECK(warpdnnFree(handle, memory[k]));
        for (int k = 0; k < l->params; ++k) {
            CHECK(warpdnnFree(handle, l->param[k].value));
            CHECK(warpdnnFree(handle, l->param[k].grad));
            CHECK(warpdnnFree(handle, l->param[k].momentum));
            CHECK(cudnnDestroyTensorDescriptor(l->param[k].desc));
        }
        if (l->filter) CHECK(cudnnDestroyFilterDescriptor(l->filter));
        if (l->conv) CHECK(cudnnDestroyConvolutionDescriptor(l->conv));
        if (l->activation) CHECK(cudnnDestroyActivationDescriptor(l->activation));
        if (l->pooling) CHECK(cudnnDestroyPoolingDescriptor(l->pooling));
        if (l->dropout) CHECK(cudnnDestroyDropoutDescriptor(l->dropout));
    }
    CHECK(warpdnnFree(handle, net->workspace));
}

void network_forward(struct network *net, int training)
{
    for (int i = 0; i < net->layers; ++i) layer_forward(net, i, training);
}

void network_backward(struct network *net)
{
    for (int i = net->layers - 1; i >= 0; --i) layer_backward(net, i);
}
