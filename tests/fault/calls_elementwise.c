/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling, activation, softmax, the element-wise calls, reduction and dropout. */
#include "fault/calls.h"

static const float one = 1.0f, zero = 0.0f, two = 2.0f;

static cudnnStatus_t pooling(struct scene *s)
{
    return cudnnPoolingForward(s->handle, s->pooling, &one, s->image, s->in[0], &zero, s->image,
                               s->out[0]);
}

static cudnnStatus_t pooling_backward(struct scene *s)
{
    return cudnnPoolingBackward(s->handle, s->pooling, &one, s->image, s->in[0], s->image, s->in[1],
                                s->image, s->in[2], &zero, s->image, s->out[0]);
}

static cudnnStatus_t activation(struct scene *s)
{
    return cudnnActivationForward(s->handle, s->activation, &one, s->image, s->in[0], &zero,
                                  s->image, s->out[0]);
}

static cudnnStatus_t activation_backward(struct scene *s)
{
    return cudnnActivationBackward(s->handle, s->activation, &one, s->image, s->in[0], s->image,
                                   s->in[1], s->image, s->in[2], &zero, s->image, s->out[0]);
}

static cudnnStatus_t softmax(struct scene *s)
{
    return cudnnSoftmaxForward(s->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                               s->image, s->in[0], &zero, s->image, s->out[0]);
}

static cudnnStatus_t softmax_backward(struct scene *s)
{
    return cudnnSoftmaxBackward(s->handle, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                                s->image, s->in[0], s->image, s->in[1], &zero, s->image, s->out[0]);
}

static cudnnStatus_t add(struct scene *s)
{
    return cudnnAddTensor(s->handle, &one, s->channel, s->in[0], &two, s->image, s->out[0]);
}

static cudnnStatus_t op(struct scene *s)
{
    return cudnnOpTensor(s->handle, s->op, &one, s->image, s->in[0], &two, s->channel, s->in[1],
                         &zero, s->image, s->out[0]);
}

static cudnnStatus_t scale(struct scene *s)
{
    return cudnnScaleTensor(s->handle, s->image, s->out[0], &two);
}

static cudnnStatus_t set(struct scene *s)
{
    return cudnnSetTensor(s->handle, s->image, s->out[0], &two);
}

static cudnnStatus_t transform(struct scene *s)
{
    return cudnnTransformTensor(s->handle, &two, s->image, s->in[0], &zero, s->image, s->out[0]);
}

static cudnnStatus_t reduce(struct scene *s)
{
    return cudnnReduceTensor(s->handle, s->reduce, s->out[1], FAULT_CHANNELS * sizeof(int),
                             s->workspace, s->bytes, &one, s->image, s->in[0], &zero, s->channel,
                             s->out[0]);
}

static cudnnStatus_t reduce_sizes(struct scene *s)
{
    size_t indices, workspace;
    cudnnStatus_t status =
        cudnnGetReductionIndicesSize(s->handle, s->reduce, s->image, s->channel, &indices);
    if (status) return status;
    return cudnnGetReductionWorkspaceSize(s->handle, s->reduce, s->image, s->channel, &workspace);
}

/* The states lie in out[1], the reserve in out[2]. */
static cudnnStatus_t set_dropout(struct scene *s)
{
    size_t bytes;
    cudnnStatus_t status = cudnnDropoutGetStatesSize(s->handle, &bytes);
    if (status) return status;
    return cudnnSetDropoutDescriptor(s->dropout, s->handle, 0.25f, s->out[1], bytes, 42);
}

static cudnnStatus_t restore_dropout(struct scene *s)
{
    size_t bytes;
    cudnnStatus_t status = cudnnDropoutGetStatesSize(s->handle, &bytes);
    if (status) return status;
    return cudnnRestoreDropoutDescriptor(s->dropout, s->handle, 0.25f, s->out[1], bytes, 42);
}

static cudnnStatus_t dropout(struct scene *s)
{
    size_t bytes;
    cudnnStatus_t status = cudnnDropoutGetReserveSpaceSize(s->image, &bytes);
    if (status) return status;
    return cudnnDropoutForward(s->handle, s->dropout, s->image, s->in[0], s->image, s->out[0],
                               s->out[2], bytes);
}

static cudnnStatus_t dropped(struct scene *s)
{
    cudnnStatus_t status = set_dropout(s);
    return status ? status : dropout(s);
}

static cudnnStatus_t dropout_backward(struct scene *s)
{
    size_t bytes;
    cudnnStatus_t status = cudnnDropoutGetReserveSpaceSize(s->image, &bytes);
    if (status) return status;
    return cudnnDropoutBackward(s->handle, s->dropout, s->image, s->in[0], s->image, s->out[3],
                                s->out[2], bytes);
}

static const struct fault_call rows[] = {
    {"cudnnPoolingForward", pooling, NULL, false},
    {"cudnnPoolingBackward", pooling_backward, NULL, false},
    {"cudnnActivationForward", activation, NULL, false},
    {"cudnnActivationBackward", activation_backward, NULL, false},
    {"cudnnSoftmaxForward", softmax, NULL, false},
    {"cudnnSoftmaxBackward", softmax_backward, NULL, false},
    {"cudnnAddTensor", add, NULL, false},
    {"cudnnOpTensor", op, NULL, false},
    {"cudnnScaleTensor", scale, NULL, false},
    {"cudnnSetTensor", set, NULL, false},
    {"cudnnTransformTensor", transform, NULL, false},
    {"cudnnReduceTensor", reduce, NULL, false},
    {"cudnnGetReductionWorkspaceSize", reduce_sizes, NULL, false},
    {"cudnnSetDropoutDescriptor", set_dropout, NULL, false},
    {"cudnnRestoreDropoutDescriptor", restore_dropout, set_dropout, false},
    {"cudnnDropoutForward", dropout, set_dropout, false},
    {"cudnnDropoutBackward", dropout_backward, dropped, false},
};
const struct fault_calls fault_elementwise_calls = {rows, (int)(sizeof rows / sizeof rows[0])};
