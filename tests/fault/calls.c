/* SPDX-License-Identifier: Apache-2.0
 *
 * The scene of the fault tests, and the numbers of their rows. */
#include "fault/calls.h"

#include <stdlib.h>
#include <string.h>

enum { POISON = 0x5a, ROWS_MAX = 128 };

const struct fault_call *fault_call_at(int number)
{
    const struct fault_calls *const lists[] = {&fault_descriptor_calls, &fault_conv_calls,
                                               &fault_norm_calls, &fault_elementwise_calls,
                                               &fault_image_calls};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) {
        if (number < lists[i]->count) return &lists[i]->rows[number];
        number -= lists[i]->count;
    }
    return NULL;
}

static bool make_descriptors(struct scene *s)
{
    return cudnnCreateTensorDescriptor(&s->image) == 0 &&
           cudnnCreateTensorDescriptor(&s->channel) == 0 &&
           cudnnCreateFilterDescriptor(&s->filter) == 0 &&
           cudnnCreateConvolutionDescriptor(&s->conv) == 0 &&
           cudnnCreatePoolingDescriptor(&s->pooling) == 0 &&
           cudnnCreateActivationDescriptor(&s->activation) == 0 &&
           cudnnCreateDropoutDescriptor(&s->dropout) == 0 &&
           cudnnCreateOpTensorDescriptor(&s->op) == 0 &&
           cudnnCreateReduceTensorDescriptor(&s->reduce) == 0;
}

static bool set_descriptors(struct scene *s)
{
    return cudnnSetTensor4dDescriptor(s->image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s->n,
                                      FAULT_CHANNELS, s->h, s->w) == 0 &&
           cudnnSetTensor4dDescriptor(s->channel, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                      FAULT_CHANNELS, 1, 1) == 0 &&
           cudnnSetFilter4dDescriptor(s->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                      FAULT_CHANNELS, FAULT_CHANNELS, 3, 3) == 0 &&
           cudnnSetConvolution2dDescriptor(s->conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                           CUDNN_DATA_FLOAT) == 0 &&
           cudnnSetPooling2dDescriptor(s->pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, 3, 1,
                                       1, 1, 1) == 0 &&
           cudnnSetActivationDescriptor(s->activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN,
                                        0.0) == 0 &&
           cudnnSetOpTensorDescriptor(s->op, CUDNN_OP_TENSOR_MUL, CUDNN_DATA_FLOAT,
                                      CUDNN_PROPAGATE_NAN) == 0 &&
           cudnnSetReduceTensorDescriptor(
               s->reduce, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
               CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, CUDNN_32BIT_INDICES) == 0;
}

static bool make_data(struct scene *s)
{
    size_t count = s->bytes / sizeof(float);
    float *values = malloc(s->bytes);
    bool good = values && warpdnnMalloc(s->handle, s->bytes, &s->workspace) == 0;
    for (int b = 0; good && b < FAULT_INPUTS; ++b) {
        for (size_t i = 0; i < count; ++i) {
            values[i] = 0.5f + (float)((i * 7 + (size_t)b * 5) % 31) / 16.0f;
        }
        good = warpdnnMalloc(s->handle, s->bytes, (void **)&s->in[b]) == 0 &&
               warpdnnMemcpy(s->handle, s->in[b], values, s->bytes) == 0;
    }
    for (int b = 0; good && b < FAULT_OUTPUTS; ++b) {
        s->before[b] = malloc(s->bytes);
        good = s->before[b] && warpdnnMalloc(s->handle, s->bytes, (void **)&s->out[b]) == 0;
    }
    free(values);
    return good;
}

const char *scene_open(struct scene *s, int number, int take)
{
    memset(s, 0, sizeof *s);
    s->n = 1 + number % 4;
    s->h = 3 + number / 4;
    s->w = 4 + take;
    /* im2col's matrix is the largest of them */
    s->bytes = (size_t)FAULT_TAPS * FAULT_CHANNELS * (size_t)(s->n * s->h * s->w) * sizeof(float);
    if (number >= ROWS_MAX) return "there are more rows than the scene has dims for";
    if (cudnnCreate(&s->handle) != 0) return "cudnnCreate";
    if (!make_descriptors(s)) return "a descriptor cannot be made";
    if (!set_descriptors(s)) return "a descriptor cannot be set";
    return make_data(s) ? NULL : "no memory for the data";
}

const char *scene_prepare(struct scene *s, const struct fault_call *call)
{
    for (int b = 0; b < FAULT_OUTPUTS; ++b) {
        if (warpdnnMemset(s->handle, s->out[b], POISON, s->bytes)) return "poison";
    }
    if (call->prepare && call->prepare(s)) return "prepare";
    for (int b = 0; b < FAULT_OUTPUTS; ++b) {
        if (warpdnnMemcpy(s->handle, s->before[b], s->out[b], s->bytes)) return "copy";
    }
    return NULL;
}

bool scene_untouched(struct scene *s)
{
    unsigned char *now = malloc(s->bytes);
    bool same = now != NULL;
    for (int b = 0; same && b < FAULT_OUTPUTS; ++b) {
        same = warpdnnMemcpy(s->handle, now, s->out[b], s->bytes) == 0 &&
               memcmp(now, s->before[b], s->bytes) == 0;
    }
    free(now);
    return same;
}

const char *scene_read(struct scene *s, unsigned char *copy)
{
    for (int b = 0; b < FAULT_OUTPUTS; ++b) {
        if (warpdnnMemcpy(s->handle, copy + (size_t)b * s->bytes, s->out[b], s->bytes)) {
            return "copy";
        }
    }
    return NULL;
}

const char *scene_close(struct scene *s)
{
    int status = 0;
    for (int b = 0; b < FAULT_INPUTS; ++b) status |= (int)warpdnnFree(s->handle, s->in[b]);
    for (int b = 0; b < FAULT_OUTPUTS; ++b) {
        status |= (int)warpdnnFree(s->handle, s->out[b]);
        free(s->before[b]);
    }
    status |= (int)warpdnnFree(s->handle, s->workspace);
    status |= (int)cudnnDestroyTensorDescriptor(s->image);
    status |= (int)cudnnDestroyTensorDescriptor(s->channel);
    status |= (int)cudnnDestroyFilterDescriptor(s->filter);
    status |= (int)cudnnDestroyConvolutionDescriptor(s->conv);
    status |= (int)cudnnDestroyPoolingDescriptor(s->pooling);
    status |= (int)cudnnDestroyActivationDescriptor(s->activation);
    status |= (int)cudnnDestroyDropoutDescriptor(s->dropout);
    status |= (int)cudnnDestroyOpTensorDescriptor(s->op);
    status |= (int)cudnnDestroyReduceTensorDescriptor(s->reduce);
    status |= (int)cudnnDestroy(s->handle);
    return status ? "something cannot be destroyed" : NULL;
}
