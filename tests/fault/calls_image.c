/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response and divisive normalization, transforms by descriptor, spatial transformers. Each
 * call has its descriptor made and destroyed as well. */
#include "fault/calls.h"

static const float one = 1.0f, zero = 0.0f;

static cudnnStatus_t first(cudnnStatus_t status, cudnnStatus_t destroyed)
{
    return status ? status : destroyed;
}

static cudnnStatus_t lrn(struct scene *s)
{
    cudnnLRNDescriptor_t l = NULL;
    cudnnStatus_t status = cudnnCreateLRNDescriptor(&l);
    if (status) return status;
    status = cudnnLRNCrossChannelForward(s->handle, l, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, s->image,
                                         s->in[0], &zero, s->image, s->out[0]);
    return first(status, cudnnDestroyLRNDescriptor(l));
}

static cudnnStatus_t lrn_backward(struct scene *s)
{
    cudnnLRNDescriptor_t l = NULL;
    cudnnStatus_t status = cudnnCreateLRNDescriptor(&l);
    if (status) return status;
    status = cudnnLRNCrossChannelBackward(s->handle, l, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one,
                                          s->image, s->in[0], s->image, s->in[1], s->image,
                                          s->in[2], &zero, s->image, s->out[0]);
    return first(status, cudnnDestroyLRNDescriptor(l));
}

static cudnnStatus_t divisive(struct scene *s)
{
    cudnnLRNDescriptor_t l = NULL;
    cudnnStatus_t status = cudnnCreateLRNDescriptor(&l);
    if (status) return status;
    status = cudnnDivisiveNormalizationForward(s->handle, l, CUDNN_DIVNORM_PRECOMPUTED_MEANS, &one,
                                               s->image, s->in[0], s->in[1], s->out[1], s->out[2],
                                               &zero, s->image, s->out[0]);
    return first(status, cudnnDestroyLRNDescriptor(l));
}

static cudnnStatus_t divisive_backward(struct scene *s)
{
    cudnnLRNDescriptor_t l = NULL;
    cudnnStatus_t status = cudnnCreateLRNDescriptor(&l);
    if (status) return status;
    status = cudnnDivisiveNormalizationBackward(s->handle, l, CUDNN_DIVNORM_PRECOMPUTED_MEANS, &one,
                                                s->image, s->in[0], s->in[1], s->in[2], s->out[1],
                                                s->out[2], &zero, s->image, s->out[0], s->out[3]);
    return first(status, cudnnDestroyLRNDescriptor(l));
}

static cudnnStatus_t transform(struct scene *s)
{
    static const int32_t before[4] = {0, 0, 1, 0}, after[4] = {0, 0, 0, 2};
    static const uint32_t fold[2] = {2, 2};
    cudnnTensorTransformDescriptor_t t = NULL;
    cudnnTensorDescriptor_t dest = NULL;
    cudnnStatus_t status = cudnnCreateTensorTransformDescriptor(&t);
    if (status) return status;
    status = cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NHWC, before, after, fold,
                                               CUDNN_TRANSFORM_FOLD);
    if (!status) status = cudnnCreateTensorDescriptor(&dest);
    if (!status) status = cudnnInitTransformDest(t, s->image, dest, NULL);
    if (!status) {
        status =
            cudnnTransformTensorEx(s->handle, t, &one, s->image, s->in[0], &zero, dest, s->out[0]);
    }
    status = first(status, cudnnDestroyTensorDescriptor(dest));
    return first(status, cudnnDestroyTensorTransformDescriptor(t));
}

/* Padded by the scene's width, so that each take has dims of its own. */
static cudnnStatus_t transform_filter(struct scene *s)
{
    const int32_t after[4] = {0, 0, 0, s->w};
    const int dims[4] = {FAULT_CHANNELS, FAULT_CHANNELS, 3, 3 + s->w};
    cudnnTensorTransformDescriptor_t t = NULL;
    cudnnFilterDescriptor_t dest = NULL;
    cudnnStatus_t status = cudnnCreateTensorTransformDescriptor(&t);
    if (status) return status;
    status = cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NCHW, NULL, after, NULL,
                                               CUDNN_TRANSFORM_FOLD);
    if (!status) status = cudnnCreateFilterDescriptor(&dest);
    if (!status) {
        status = cudnnSetFilterNdDescriptor(dest, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, dims);
    }
    if (!status) {
        status =
            cudnnTransformFilter(s->handle, t, &one, s->filter, s->in[0], &zero, dest, s->out[0]);
    }
    status = first(status, cudnnDestroyFilterDescriptor(dest));
    return first(status, cudnnDestroyTensorTransformDescriptor(t));
}

/* A descriptor whose output is the scene's image. */
static cudnnStatus_t describe(const struct scene *s, cudnnSpatialTransformerDescriptor_t *st)
{
    const int dims[4] = {s->n, FAULT_CHANNELS, s->h, s->w};
    cudnnStatus_t status = cudnnCreateSpatialTransformerDescriptor(st);
    if (status) return status;
    return cudnnSetSpatialTransformerNdDescriptor(*st, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT, 4,
                                                  dims);
}

static cudnnStatus_t grid(struct scene *s)
{
    cudnnSpatialTransformerDescriptor_t st = NULL;
    cudnnStatus_t status = describe(s, &st);
    if (!status) status = cudnnSpatialTfGridGeneratorForward(s->handle, st, s->in[0], s->out[0]);
    return first(status, cudnnDestroySpatialTransformerDescriptor(st));
}

static cudnnStatus_t grid_backward(struct scene *s)
{
    cudnnSpatialTransformerDescriptor_t st = NULL;
    cudnnStatus_t status = describe(s, &st);
    if (!status) status = cudnnSpatialTfGridGeneratorBackward(s->handle, st, s->in[0], s->out[0]);
    return first(status, cudnnDestroySpatialTransformerDescriptor(st));
}

static cudnnStatus_t sampler(struct scene *s)
{
    cudnnSpatialTransformerDescriptor_t st = NULL;
    cudnnStatus_t status = describe(s, &st);
    if (!status) {
        status = cudnnSpatialTfSamplerForward(s->handle, st, &one, s->image, s->in[0], s->in[1],
                                              &zero, s->image, s->out[0]);
    }
    return first(status, cudnnDestroySpatialTransformerDescriptor(st));
}

static cudnnStatus_t sampler_backward(struct scene *s)
{
    cudnnSpatialTransformerDescriptor_t st = NULL;
    cudnnStatus_t status = describe(s, &st);
    if (!status) {
        status = cudnnSpatialTfSamplerBackward(s->handle, st, &one, s->image, s->in[0], &zero,
                                               s->image, s->out[0], &one, s->image, s->in[1],
                                               s->in[2], &zero, s->out[1]);
    }
    return first(status, cudnnDestroySpatialTransformerDescriptor(st));
}

static const struct fault_call rows[] = {
    {"cudnnLRNCrossChannelForward", lrn, NULL, false},
    {"cudnnLRNCrossChannelBackward", lrn_backward, NULL, false},
    {"cudnnDivisiveNormalizationForward", divisive, NULL, false},
    {"cudnnDivisiveNormalizationBackward", divisive_backward, NULL, false},
    {"cudnnTransformTensorEx", transform, NULL, false},
    {"cudnnTransformFilter", transform_filter, NULL, false},
    {"cudnnSpatialTfGridGeneratorForward", grid, NULL, false},
    {"cudnnSpatialTfGridGeneratorBackward", grid_backward, NULL, false},
    {"cudnnSpatialTfSamplerForward", sampler, NULL, false},
    {"cudnnSpatialTfSamplerBackward", sampler_backward, NULL, false},
};
const struct fault_calls fault_image_calls = {rows, (int)(sizeof rows / sizeof rows[0])};
