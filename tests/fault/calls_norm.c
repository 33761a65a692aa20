/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization. Of the outputs 0 holds y, 1 the statistics and gradients of the channels at
 * the places below, 2 the reserve, 3 dx and dz. */
#include "fault/calls.h"

enum { MEAN = 0, VARIANCE = 16, SAVED_MEAN = 32, SAVED_VARIANCE = 48, DSCALE = 64, DBIAS = 80 };

static const float one = 1.0f, zero = 0.0f;
static const double average = 0.5, epsilon = 1e-3;

static cudnnStatus_t inference(struct scene *s)
{
    return cudnnBatchNormalizationForwardInference(
        s->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, s->image, s->in[0], s->image, s->out[0],
        s->channel, s->in[1], s->in[2], s->in[3], s->in[3] + VARIANCE, epsilon);
}

static cudnnStatus_t training(struct scene *s)
{
    return cudnnBatchNormalizationForwardTraining(
        s->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, s->image, s->in[0], s->image, s->out[0],
        s->channel, s->in[1], s->in[2], average, s->out[1] + MEAN, s->out[1] + VARIANCE, epsilon,
        s->out[1] + SAVED_MEAN, s->out[1] + SAVED_VARIANCE);
}

static cudnnStatus_t backward(struct scene *s)
{
    return cudnnBatchNormalizationBackward(s->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one,
                                           &zero, s->image, s->in[0], s->image, s->in[1], s->image,
                                           s->out[3], s->channel, s->in[2], s->out[1] + DSCALE,
                                           s->out[1] + DBIAS, epsilon, NULL, NULL);
}

static const cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
static const cudnnBatchNormOps_t ops = CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;

static cudnnStatus_t sizes(struct scene *s)
{
    size_t bytes;
    cudnnStatus_t status = cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        s->handle, mode, ops, s->activation, s->image, &bytes);
    if (status) return status;
    status = cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        s->handle, mode, ops, s->image, s->image, s->image, s->channel, s->activation, &bytes);
    if (status) return status;
    return cudnnGetBatchNormalizationBackwardExWorkspaceSize(s->handle, mode, ops, s->image,
                                                             s->image, s->image, s->image, s->image,
                                                             s->channel, s->activation, &bytes);
}

static cudnnStatus_t training_ex(struct scene *s)
{
    return cudnnBatchNormalizationForwardTrainingEx(
        s->handle, mode, ops, &one, &zero, s->image, s->in[0], s->image, s->in[1], s->image,
        s->out[0], s->channel, s->in[2], s->in[3], average, s->out[1] + MEAN, s->out[1] + VARIANCE,
        epsilon, s->out[1] + SAVED_MEAN, s->out[1] + SAVED_VARIANCE, s->activation, s->workspace,
        s->bytes, s->out[2], s->bytes);
}

static cudnnStatus_t backward_ex(struct scene *s)
{
    float *dz = s->out[3] + FAULT_CHANNELS * s->n * s->h * s->w;
    return cudnnBatchNormalizationBackwardEx(
        s->handle, mode, ops, &one, &zero, &one, &zero, s->image, s->in[0], s->image, s->out[0],
        s->image, s->in[1], s->image, dz, s->image, s->out[3], s->channel, s->in[2], s->in[3],
        s->out[1] + DSCALE, s->out[1] + DBIAS, epsilon, s->out[1] + SAVED_MEAN,
        s->out[1] + SAVED_VARIANCE, s->activation, s->workspace, s->bytes, s->out[2], s->bytes);
}

static const cudnnNormMode_t newer = CUDNN_NORM_PER_CHANNEL;
static const cudnnNormOps_t newer_ops = CUDNN_NORM_OPS_NORM_ADD_ACTIVATION;
static const cudnnNormAlgo_t algo = CUDNN_NORM_ALGO_PERSIST;

static cudnnStatus_t newer_inference(struct scene *s)
{
    return cudnnNormalizationForwardInference(
        s->handle, newer, newer_ops, algo, &one, &zero, s->image, s->in[0], s->channel, s->in[1],
        s->in[2], s->channel, s->in[3], s->in[3] + VARIANCE, s->image, s->in[0], s->activation,
        s->image, s->out[0], epsilon, 1);
}

static cudnnStatus_t newer_sizes(struct scene *s)
{
    size_t bytes;
    cudnnStatus_t status = cudnnGetNormalizationTrainingReserveSpaceSize(
        s->handle, newer, newer_ops, algo, s->activation, s->image, &bytes, 1);
    if (status) return status;
    status = cudnnGetNormalizationForwardTrainingWorkspaceSize(
        s->handle, newer, newer_ops, algo, s->image, s->image, s->image, s->channel, s->activation,
        s->channel, &bytes, 1);
    if (status) return status;
    return cudnnGetNormalizationBackwardWorkspaceSize(
        s->handle, newer, newer_ops, algo, s->image, s->image, s->image, s->image, s->image,
        s->channel, s->activation, s->channel, &bytes, 1);
}

static cudnnStatus_t newer_training(struct scene *s)
{
    return cudnnNormalizationForwardTraining(
        s->handle, newer, newer_ops, algo, &one, &zero, s->image, s->in[0], s->channel, s->in[2],
        s->in[3], average, s->channel, s->out[1] + MEAN, s->out[1] + VARIANCE, epsilon,
        s->out[1] + SAVED_MEAN, s->out[1] + SAVED_VARIANCE, s->activation, s->image, s->in[1],
        s->image, s->out[0], s->workspace, s->bytes, s->out[2], s->bytes, 1);
}

static cudnnStatus_t newer_backward(struct scene *s)
{
    float *dz = s->out[3] + FAULT_CHANNELS * s->n * s->h * s->w;
    return cudnnNormalizationBackward(
        s->handle, newer, newer_ops, algo, &one, &zero, &one, &zero, s->image, s->in[0], s->image,
        s->out[0], s->image, s->in[1], s->image, dz, s->image, s->out[3], s->channel, s->in[2],
        s->in[3], s->out[1] + DSCALE, s->out[1] + DBIAS, epsilon, s->channel,
        s->out[1] + SAVED_MEAN, s->out[1] + SAVED_VARIANCE, s->activation, s->workspace, s->bytes,
        s->out[2], s->bytes, 1);
}

static cudnnStatus_t derive(struct scene *s)
{
    cudnnTensorDescriptor_t made = NULL;
    cudnnStatus_t destroyed;
    cudnnStatus_t status = cudnnCreateTensorDescriptor(&made);
    if (status) return status;
    status = cudnnDeriveBNTensorDescriptor(made, s->image, CUDNN_BATCHNORM_PER_ACTIVATION);
    destroyed = cudnnDestroyTensorDescriptor(made);
    return status ? status : destroyed;
}

static const struct fault_call rows[] = {
    {"cudnnBatchNormalizationForwardInference", inference, NULL, false},
    {"cudnnBatchNormalizationForwardTraining", training, NULL, false},
    {"cudnnBatchNormalizationBackward", backward, NULL, false},
    {"cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize", sizes, NULL, false},
    {"cudnnBatchNormalizationForwardTrainingEx", training_ex, NULL, false},
    {"cudnnBatchNormalizationBackwardEx", backward_ex, training_ex, false},
    {"cudnnNormalizationForwardInference", newer_inference, NULL, false},
    {"cudnnGetNormalizationForwardTrainingWorkspaceSize", newer_sizes, NULL, false},
    {"cudnnNormalizationForwardTraining", newer_training, NULL, false},
    {"cudnnNormalizationBackward", newer_backward, newer_training, false},
    {"cudnnDeriveBNTensorDescriptor", derive, NULL, false},
};
const struct fault_calls fault_norm_calls = {rows, (int)(sizeof rows / sizeof rows[0])};
