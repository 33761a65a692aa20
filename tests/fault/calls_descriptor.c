/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles and the lives of descriptors. What a row made it takes back, also where it fails. */
#include "fault/calls.h"

/* The status of the steps, joined to that of giving back: neither is lost. */
static cudnnStatus_t both(cudnnStatus_t status, cudnnStatus_t destroyed)
{
    return status ? status : destroyed;
}

static cudnnStatus_t handle(struct scene *s)
{
    cudnnHandle_t made = NULL;
    cudaStream_t stream;
    cudnnStatus_t status = cudnnCreate(&made);
    (void)s;
    if (status) return status;
    status = cudnnSetStream(made, NULL);
    if (!status) status = cudnnGetStream(made, &stream);
    return both(status, cudnnDestroy(made));
}

static cudnnStatus_t memory(struct scene *s)
{
    void *data = NULL;
    cudnnStatus_t status = warpdnnMalloc(s->handle, 1000, &data);
    if (status) return status;
    status = warpdnnMemset(s->handle, data, 1, 1000);
    if (!status) status = warpdnnMemcpy(s->handle, s->out[0], data, s->bytes < 1000 ? 0 : 1000);
    if (!status) status = warpdnnSynchronize(s->handle);
    return both(status, warpdnnFree(s->handle, data));
}

static cudnnStatus_t tensor(struct scene *s)
{
    static const int dims[5] = {2, 3, 4, 5, 6}, strides[5] = {360, 120, 30, 6, 1};
    cudnnTensorDescriptor_t made = NULL;
    cudnnDataType_t type;
    size_t bytes;
    int rank, d[5], t[5];
    cudnnStatus_t status = cudnnCreateTensorDescriptor(&made);
    (void)s;
    if (status) return status;
    status = cudnnSetTensor4dDescriptor(made, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 1, 2, 3, 4);
    if (!status) {
        status = cudnnSetTensor4dDescriptorEx(made, CUDNN_DATA_FLOAT, 1, 2, 3, 4, 24, 12, 4, 1);
    }
    if (!status) status = cudnnSetTensorNdDescriptor(made, CUDNN_DATA_FLOAT, 5, dims, strides);
    if (!status) {
        status = cudnnSetTensorNdDescriptorEx(made, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, dims);
    }
    if (!status) status = cudnnGetTensorNdDescriptor(made, 5, &type, &rank, d, t);
    if (!status) status = cudnnGetTensorSizeInBytes(made, &bytes);
    return both(status, cudnnDestroyTensorDescriptor(made));
}

static cudnnStatus_t filter(struct scene *s)
{
    static const int dims[5] = {2, 3, 4, 5, 6};
    cudnnFilterDescriptor_t made = NULL;
    size_t bytes;
    cudnnStatus_t status = cudnnCreateFilterDescriptor(&made);
    (void)s;
    if (status) return status;
    status = cudnnSetFilter4dDescriptor(made, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 2, 3, 4);
    if (!status) {
        status = cudnnSetFilterNdDescriptor(made, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 5, dims);
    }
    if (!status) status = cudnnGetFilterSizeInBytes(made, &bytes);
    return both(status, cudnnDestroyFilterDescriptor(made));
}

static cudnnStatus_t convolution(struct scene *s)
{
    static const int ones[3] = {1, 1, 1};
    cudnnConvolutionDescriptor_t made = NULL;
    int dims[4];
    cudnnStatus_t status = cudnnCreateConvolutionDescriptor(&made);
    if (status) return status;
    status = cudnnSetConvolutionNdDescriptor(made, 3, ones, ones, ones, CUDNN_CONVOLUTION,
                                             CUDNN_DATA_FLOAT);
    if (!status) status = cudnnSetConvolutionMathType(made, CUDNN_FMA_MATH);
    if (!status) status = cudnnSetConvolutionGroupCount(made, 1);
    if (!status) {
        status = cudnnSetConvolution2dDescriptor(made, 1, 1, 1, 1, 1, 1, CUDNN_CONVOLUTION,
                                                 CUDNN_DATA_FLOAT);
    }
    if (!status) {
        status = cudnnGetConvolution2dForwardOutputDim(made, s->image, s->filter, &dims[0],
                                                       &dims[1], &dims[2], &dims[3]);
    }
    return both(status, cudnnDestroyConvolutionDescriptor(made));
}

static cudnnStatus_t pooling(struct scene *s)
{
    static const int ones[3] = {1, 1, 1}, none[3] = {0, 0, 0};
    cudnnPoolingDescriptor_t made = NULL;
    int dims[4];
    cudnnStatus_t status = cudnnCreatePoolingDescriptor(&made);
    if (status) return status;
    status = cudnnSetPoolingNdDescriptor(made, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, ones,
                                         none, ones);
    if (!status) {
        status = cudnnSetPooling2dDescriptor(made, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0,
                                             0, 1, 1);
    }
    if (!status) {
        status = cudnnGetPooling2dForwardOutputDim(made, s->image, &dims[0], &dims[1], &dims[2],
                                                   &dims[3]);
    }
    return both(status, cudnnDestroyPoolingDescriptor(made));
}

static cudnnStatus_t activation(struct scene *s)
{
    cudnnActivationDescriptor_t made = NULL;
    cudnnStatus_t status = cudnnCreateActivationDescriptor(&made);
    (void)s;
    if (status) return status;
    status = cudnnSetActivationDescriptor(made, CUDNN_ACTIVATION_SWISH, CUDNN_PROPAGATE_NAN, 1.0);
    if (!status) status = cudnnSetActivationDescriptorSwishBeta(made, 2.0);
    return both(status, cudnnDestroyActivationDescriptor(made));
}

static cudnnStatus_t dropout(struct scene *s)
{
    cudnnDropoutDescriptor_t made = NULL;
    cudnnStatus_t status = cudnnCreateDropoutDescriptor(&made);
    if (status) return status;
    status = cudnnSetDropoutDescriptor(made, s->handle, 0.5f, NULL, 0, 0);
    return both(status, cudnnDestroyDropoutDescriptor(made));
}

static cudnnStatus_t op_tensor(struct scene *s)
{
    cudnnOpTensorDescriptor_t made = NULL;
    cudnnStatus_t status = cudnnCreateOpTensorDescriptor(&made);
    (void)s;
    if (status) return status;
    status = cudnnSetOpTensorDescriptor(made, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                        CUDNN_PROPAGATE_NAN);
    return both(status, cudnnDestroyOpTensorDescriptor(made));
}

static cudnnStatus_t reduce(struct scene *s)
{
    cudnnReduceTensorDescriptor_t made = NULL;
    cudnnStatus_t status = cudnnCreateReduceTensorDescriptor(&made);
    (void)s;
    if (status) return status;
    status = cudnnSetReduceTensorDescriptor(made, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                            CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                            CUDNN_32BIT_INDICES);
    return both(status, cudnnDestroyReduceTensorDescriptor(made));
}

static cudnnStatus_t lrn(struct scene *s)
{
    cudnnLRNDescriptor_t made = NULL;
    cudnnStatus_t status = cudnnCreateLRNDescriptor(&made);
    (void)s;
    if (status) return status;
    status = cudnnSetLRNDescriptor(made, 3, 1e-4, 0.75, 2.0);
    return both(status, cudnnDestroyLRNDescriptor(made));
}

static cudnnStatus_t transform(struct scene *s)
{
    static const uint32_t fold[2] = {2, 2};
    cudnnTensorTransformDescriptor_t made = NULL;
    cudnnStatus_t status = cudnnCreateTensorTransformDescriptor(&made);
    (void)s;
    if (status) return status;
    status = cudnnSetTensorTransformDescriptor(made, 4, CUDNN_TENSOR_NHWC, NULL, NULL, fold,
                                               CUDNN_TRANSFORM_FOLD);
    return both(status, cudnnDestroyTensorTransformDescriptor(made));
}

static const struct fault_call rows[] = {
    {"cudnnCreate", handle, NULL, false},
    {"warpdnnMalloc", memory, NULL, false},
    {"cudnnCreateTensorDescriptor", tensor, NULL, false},
    {"cudnnCreateFilterDescriptor", filter, NULL, false},
    {"cudnnCreateConvolutionDescriptor", convolution, NULL, false},
    {"cudnnCreatePoolingDescriptor", pooling, NULL, false},
    {"cudnnCreateActivationDescriptor", activation, NULL, false},
    {"cudnnCreateDropoutDescriptor", dropout, NULL, false},
    {"cudnnCreateOpTensorDescriptor", op_tensor, NULL, false},
    {"cudnnCreateReduceTensorDescriptor", reduce, NULL, false},
    {"cudnnCreateLRNDescriptor", lrn, NULL, false},
    {"cudnnCreateTensorTransformDescriptor", transform, NULL, false},
};
const struct fault_calls fault_descriptor_calls = {rows, (int)(sizeof rows / sizeof rows[0])};
