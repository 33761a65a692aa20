/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the handle, information, tensor, filter, activation and elementwise calls. */
#include <limits.h>
#include <stddef.h>

#include "support/refusal.h"

static int dims[9] = {2, 3, 4, 5, 1, 1, 1, 1, 1};
static int strides[9] = {60, 20, 5, 1, 1, 1, 1, 1, 1};
static const float one = 1.0f;

static void handle_rows(void)
{
    cudaStream_t stream;
    int value;
    cudnnStatus_t status;
    unsigned mask;
    void *data;
    cudnnCallback_t callback;
    warpdnnDevice_t device;
    cudnnHandle_t h = harness_handle;
    cudnnHandle_t fake = (cudnnHandle_t)(void *)dims;
    const char *name;
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreate, handle, cudnnCreate(NULL));
    REFUSED(BAD_PARAM, cudnnDestroy, handle, cudnnDestroy(fake));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetStream, handle, cudnnSetStream(NULL, NULL));
    REFUSED(BAD_PARAM, cudnnSetStream, handle, cudnnSetStream(fake, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetStream, handle, cudnnGetStream(NULL, &stream));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetStream, streamId, cudnnGetStream(h, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetProperty, value, cudnnGetProperty(MAJOR_VERSION, NULL));
    REFUSED(BAD_PARAM, cudnnGetProperty, type, cudnnGetProperty((libraryPropertyType)3, &value));
    REFUSED(BAD_PARAM, cudnnGetProperty, type, cudnnGetProperty((libraryPropertyType)-1, &value));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetCallback, mask,
            cudnnGetCallback(NULL, &data, &callback));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetCallback, udata,
            cudnnGetCallback(&mask, NULL, &callback));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetCallback, fptr, cudnnGetCallback(&mask, &data, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnQueryRuntimeError, handle,
            cudnnQueryRuntimeError(NULL, &status, CUDNN_ERRQUERY_RAWCODE, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnQueryRuntimeError, rstatus,
            cudnnQueryRuntimeError(h, NULL, CUDNN_ERRQUERY_RAWCODE, NULL));
    REFUSED(BAD_PARAM, cudnnQueryRuntimeError, mode,
            cudnnQueryRuntimeError(h, &status, (cudnnErrQueryMode_t)7, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnGetDevice, handle,
            warpdnnGetDevice(NULL, &device, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnGetDevice, device, warpdnnGetDevice(h, NULL, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnMalloc, handle, warpdnnMalloc(NULL, 1, &data));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnMalloc, ptr, warpdnnMalloc(h, 1, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnFree, handle, warpdnnFree(NULL, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnMemcpy, handle, warpdnnMemcpy(NULL, dims, strides, 4));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnMemcpy, dst, warpdnnMemcpy(h, NULL, strides, 4));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnMemcpy, src, warpdnnMemcpy(h, dims, NULL, 4));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnMemset, handle, warpdnnMemset(NULL, dims, 0, 4));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnMemset, ptr, warpdnnMemset(h, NULL, 0, 4));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnSynchronize, handle, warpdnnSynchronize(NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnGetLastEngine, handle,
            warpdnnGetLastEngine(NULL, &name));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnGetLastEngine, name, warpdnnGetLastEngine(h, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, warpdnnGetStatistics, out, warpdnnGetStatistics(NULL));
}

static void tensor_rows(void)
{
    cudnnTensorDescriptor_t t;
    cudnnTensorDescriptor_t fake = (cudnnTensorDescriptor_t)(void *)dims;
    cudnnFilterDescriptor_t f;
    cudnnDataType_t type;
    cudnnDataType_t no_type = (cudnnDataType_t)99;
    cudnnTensorFormat_t no_format = (cudnnTensorFormat_t)7;
    cudnnTensorFormat_t nchw = CUDNN_TENSOR_NCHW;
    int n;
    int zero_stride[4] = {60, 0, 5, 1};
    int negative[4] = {2, -3, 4, 5};
    int huge[4] = {INT_MAX, INT_MAX, INT_MAX, INT_MAX};
    size_t size;
    cudnnCreateTensorDescriptor(&t);
    cudnnCreateFilterDescriptor(&f);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateTensorDescriptor, tensorDesc,
            cudnnCreateTensorDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyTensorDescriptor, tensorDesc,
            cudnnDestroyTensorDescriptor(fake));
    REFUSED(BAD_PARAM, cudnnDestroyTensorDescriptor, tensorDesc,
            cudnnDestroyTensorDescriptor((cudnnTensorDescriptor_t)(void *)f));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensor4dDescriptor, tensorDesc,
            cudnnSetTensor4dDescriptor(NULL, nchw, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, format,
            cudnnSetTensor4dDescriptor(t, no_format, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, format,
            cudnnSetTensor4dDescriptor(t, (cudnnTensorFormat_t)-1, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, dataType,
            cudnnSetTensor4dDescriptor(t, nchw, no_type, 1, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, n,
            cudnnSetTensor4dDescriptor(t, nchw, CUDNN_DATA_FLOAT, 0, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, c,
            cudnnSetTensor4dDescriptor(t, nchw, CUDNN_DATA_FLOAT, 1, -1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, h,
            cudnnSetTensor4dDescriptor(t, nchw, CUDNN_DATA_FLOAT, 1, 1, INT_MIN, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, w,
            cudnnSetTensor4dDescriptor(t, nchw, CUDNN_DATA_FLOAT, 1, 1, 1, 0));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnSetTensor4dDescriptor, n,
            cudnnSetTensor4dDescriptor(t, nchw, CUDNN_DATA_FLOAT, INT_MAX, INT_MAX, INT_MAX, 2));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, c,
            cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 1, 6, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptor, dataType,
            cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_FLOAT, 1, 8, 1, 1));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensor4dDescriptorEx, tensorDesc,
            cudnnSetTensor4dDescriptorEx(NULL, CUDNN_DATA_FLOAT, 2, 3, 4, 5, 60, 20, 5, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptorEx, dataType,
            cudnnSetTensor4dDescriptorEx(t, no_type, 2, 3, 4, 5, 60, 20, 5, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptorEx, n,
            cudnnSetTensor4dDescriptorEx(t, CUDNN_DATA_FLOAT, 0, 3, 4, 5, 60, 20, 5, 1));
    REFUSED(BAD_PARAM, cudnnSetTensor4dDescriptorEx, nStride,
            cudnnSetTensor4dDescriptorEx(t, CUDNN_DATA_FLOAT, 2, 3, 4, 5, 0, 20, 5, 1));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensorNdDescriptor, tensorDesc,
            cudnnSetTensorNdDescriptor(NULL, CUDNN_DATA_FLOAT, 4, dims, strides));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptor, dataType,
            cudnnSetTensorNdDescriptor(t, no_type, 4, dims, strides));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptor, nbDims,
            cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 1, dims, strides));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptor, nbDims,
            cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, -4, dims, strides));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnSetTensorNdDescriptor, nbDims,
            cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 9, dims, strides));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensorNdDescriptor, dimA,
            cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 4, NULL, strides));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensorNdDescriptor, strideA,
            cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 4, dims, NULL));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptor, dimA,
            cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 4, negative, strides));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptor, strideA,
            cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 4, dims, zero_stride));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnSetTensorNdDescriptor, dimA,
            cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 4, huge, strides));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensorNdDescriptorEx, tensorDesc,
            cudnnSetTensorNdDescriptorEx(NULL, nchw, CUDNN_DATA_FLOAT, 4, dims));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptorEx, format,
            cudnnSetTensorNdDescriptorEx(t, no_format, CUDNN_DATA_FLOAT, 4, dims));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptorEx, dataType,
            cudnnSetTensorNdDescriptorEx(t, nchw, no_type, 4, dims));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptorEx, nbDims,
            cudnnSetTensorNdDescriptorEx(t, nchw, CUDNN_DATA_FLOAT, 0, dims));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnSetTensorNdDescriptorEx, nbDims,
            cudnnSetTensorNdDescriptorEx(t, nchw, CUDNN_DATA_FLOAT, 9, dims));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensorNdDescriptorEx, dimA,
            cudnnSetTensorNdDescriptorEx(t, nchw, CUDNN_DATA_FLOAT, 4, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetTensor4dDescriptor, tensorDesc,
            cudnnGetTensor4dDescriptor(NULL, &type, &n, &n, &n, &n, &n, &n, &n, &n));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetTensorNdDescriptor, tensorDesc,
            cudnnGetTensorNdDescriptor(NULL, 4, &type, &n, dims, strides));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetTensorSizeInBytes, tensorDesc,
            cudnnGetTensorSizeInBytes(NULL, &size));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetTensorSizeInBytes, size,
            cudnnGetTensorSizeInBytes(t, NULL));

    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateFilterDescriptor, filterDesc,
            cudnnCreateFilterDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyFilterDescriptor, filterDesc,
            cudnnDestroyFilterDescriptor((cudnnFilterDescriptor_t)(void *)t));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetFilter4dDescriptor, filterDesc,
            cudnnSetFilter4dDescriptor(NULL, CUDNN_DATA_FLOAT, nchw, 1, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetFilter4dDescriptor, dataType,
            cudnnSetFilter4dDescriptor(f, no_type, nchw, 1, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetFilter4dDescriptor, format,
            cudnnSetFilter4dDescriptor(f, CUDNN_DATA_FLOAT, no_format, 1, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetFilter4dDescriptor, k,
            cudnnSetFilter4dDescriptor(f, CUDNN_DATA_FLOAT, nchw, 0, 1, 1, 1));
    REFUSED(BAD_PARAM, cudnnSetFilter4dDescriptor, w,
            cudnnSetFilter4dDescriptor(f, CUDNN_DATA_FLOAT, nchw, 1, 1, 1, -1));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetFilterNdDescriptor, filterDesc,
            cudnnSetFilterNdDescriptor(NULL, CUDNN_DATA_FLOAT, nchw, 4, dims));
    REFUSED(BAD_PARAM, cudnnSetFilterNdDescriptor, dataType,
            cudnnSetFilterNdDescriptor(f, no_type, nchw, 4, dims));
    REFUSED(BAD_PARAM, cudnnSetFilterNdDescriptor, format,
            cudnnSetFilterNdDescriptor(f, CUDNN_DATA_FLOAT, no_format, 4, dims));
    REFUSED(BAD_PARAM, cudnnSetFilterNdDescriptor, nbDims,
            cudnnSetFilterNdDescriptor(f, CUDNN_DATA_FLOAT, nchw, 2, dims));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnSetFilterNdDescriptor, nbDims,
            cudnnSetFilterNdDescriptor(f, CUDNN_DATA_FLOAT, nchw, 9, dims));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetFilterNdDescriptor, filterDimA,
            cudnnSetFilterNdDescriptor(f, CUDNN_DATA_FLOAT, nchw, 4, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetFilter4dDescriptor, filterDesc,
            cudnnGetFilter4dDescriptor(NULL, &type, NULL, &n, &n, &n, &n));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetFilterNdDescriptor, filterDesc,
            cudnnGetFilterNdDescriptor(NULL, 4, &type, NULL, &n, dims));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetFilterSizeInBytes, filterDesc,
            cudnnGetFilterSizeInBytes(NULL, &size));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetFilterSizeInBytes, size,
            cudnnGetFilterSizeInBytes(f, NULL));
    cudnnDestroyTensorDescriptor(t);
    cudnnDestroyFilterDescriptor(f);
}

static void descriptor_rows(void)
{
    cudnnActivationDescriptor_t a;
    cudnnOpTensorDescriptor_t o;
    double value;
    cudnnNanPropagation_t no_nan = (cudnnNanPropagation_t)3;
    cudnnCreateActivationDescriptor(&a);
    cudnnCreateOpTensorDescriptor(&o);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateActivationDescriptor, activationDesc,
            cudnnCreateActivationDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyActivationDescriptor, activationDesc,
            cudnnDestroyActivationDescriptor((cudnnActivationDescriptor_t)(void *)o));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetActivationDescriptor, activationDesc,
            cudnnSetActivationDescriptor(NULL, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
    REFUSED(BAD_PARAM, cudnnSetActivationDescriptor, mode,
            cudnnSetActivationDescriptor(a, (cudnnActivationMode_t)7, CUDNN_PROPAGATE_NAN, 0.0));
    REFUSED(BAD_PARAM, cudnnSetActivationDescriptor, reluNanOpt,
            cudnnSetActivationDescriptor(a, CUDNN_ACTIVATION_RELU, no_nan, 0.0));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetActivationDescriptor, activationDesc,
            cudnnGetActivationDescriptor(NULL, NULL, NULL, &value));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetActivationDescriptorSwishBeta, activationDesc,
            cudnnSetActivationDescriptorSwishBeta(NULL, 1.0));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetActivationDescriptorSwishBeta, activationDesc,
            cudnnGetActivationDescriptorSwishBeta(NULL, &value));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetActivationDescriptorSwishBeta, swish_beta,
            cudnnGetActivationDescriptorSwishBeta(a, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateOpTensorDescriptor, opTensorDesc,
            cudnnCreateOpTensorDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyOpTensorDescriptor, opTensorDesc,
            cudnnDestroyOpTensorDescriptor((cudnnOpTensorDescriptor_t)(void *)a));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetOpTensorDescriptor, opTensorDesc,
            cudnnSetOpTensorDescriptor(NULL, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                       CUDNN_PROPAGATE_NAN));
    REFUSED(
        BAD_PARAM, cudnnSetOpTensorDescriptor, opTensorOp,
        cudnnSetOpTensorDescriptor(o, (cudnnOpTensorOp_t)6, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
    REFUSED(
        BAD_PARAM, cudnnSetOpTensorDescriptor, opTensorCompType,
        cudnnSetOpTensorDescriptor(o, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_INT8, CUDNN_PROPAGATE_NAN));
    REFUSED(BAD_PARAM, cudnnSetOpTensorDescriptor, opTensorNanOpt,
            cudnnSetOpTensorDescriptor(o, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, no_nan));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetOpTensorDescriptor, opTensorDesc,
            cudnnGetOpTensorDescriptor(NULL, NULL, NULL, NULL));
    cudnnDestroyActivationDescriptor(a);
    cudnnDestroyOpTensorDescriptor(o);
}

static void compute_rows(void)
{
    static const int shape[4] = {2, 3, 4, 5};
    static const int other[4] = {2, 3, 4, 6};
    cudnnHandle_t h = harness_handle;
    struct tensor *x = tensor_input(CUDNN_DATA_FLOAT, 4, shape, LAYOUT_NCHW, -1.0, 1.0);
    struct tensor *y = tensor_output(CUDNN_DATA_FLOAT, 4, shape, LAYOUT_NCHW);
    struct tensor *wide = tensor_input(CUDNN_DATA_FLOAT, 4, other, LAYOUT_NCHW, -1.0, 1.0);
    struct tensor *half = tensor_input(CUDNN_DATA_HALF, 4, shape, LAYOUT_NCHW, -1.0, 1.0);
    struct tensor *nhwc = tensor_output(CUDNN_DATA_FLOAT, 4, shape, LAYOUT_NHWC);
    cudnnTensorDescriptor_t unset;
    cudnnActivationDescriptor_t a;
    cudnnActivationDescriptor_t no_a;
    cudnnOpTensorDescriptor_t o;
    const void *odd = (const char *)x->data + 1;
    cudnnCreateTensorDescriptor(&unset);
    cudnnCreateActivationDescriptor(&a);
    cudnnCreateActivationDescriptor(&no_a);
    cudnnCreateOpTensorDescriptor(&o);
    cudnnSetActivationDescriptor(a, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0);
    cudnnSetOpTensorDescriptor(o, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN);
    refusal_guard();
#define FORWARD(status, argument, ...)                                                             \
    REFUSED(status, cudnnActivationForward, argument, cudnnActivationForward(__VA_ARGS__))
    FORWARD(BAD_PARAM_NULL_POINTER, handle, NULL, a, &one, x->desc, x->data, &one, y->desc,
            y->data);
    FORWARD(BAD_PARAM_NULL_POINTER, activationDesc, h, NULL, &one, x->desc, x->data, &one, y->desc,
            y->data);
    FORWARD(BAD_PARAM, activationDesc, h, no_a, &one, x->desc, x->data, &one, y->desc, y->data);
    FORWARD(BAD_PARAM_NULL_POINTER, alpha, h, a, NULL, x->desc, x->data, &one, y->desc, y->data);
    FORWARD(BAD_PARAM_NULL_POINTER, xDesc, h, a, &one, NULL, x->data, &one, y->desc, y->data);
    FORWARD(BAD_PARAM, xDesc, h, a, &one, unset, x->data, &one, y->desc, y->data);
    FORWARD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, a, &one, wide->desc, wide->data, &one, y->desc,
            y->data);
    FORWARD(BAD_PARAM, xDesc, h, a, &one, half->desc, half->data, &one, y->desc, y->data);
    FORWARD(BAD_PARAM_NULL_POINTER, x, h, a, &one, x->desc, NULL, &one, y->desc, y->data);
    FORWARD(BAD_PARAM_MISALIGNED_POINTER, x, h, a, &one, x->desc, odd, &one, y->desc, y->data);
    FORWARD(BAD_PARAM_NULL_POINTER, beta, h, a, &one, x->desc, x->data, NULL, y->desc, y->data);
    FORWARD(BAD_PARAM_NULL_POINTER, yDesc, h, a, &one, x->desc, x->data, &one, NULL, y->data);
    FORWARD(BAD_PARAM, yDesc, h, a, &one, x->desc, y->data, &one, nhwc->desc, y->data);
    FORWARD(BAD_PARAM_NULL_POINTER, y, h, a, &one, x->desc, x->data, &one, y->desc, NULL);
#define BACKWARD(status, argument, ...)                                                            \
    REFUSED(status, cudnnActivationBackward, argument, cudnnActivationBackward(__VA_ARGS__))
#define XD x->desc, x->data
#define YD y->desc, y->data
    BACKWARD(BAD_PARAM_NULL_POINTER, handle, NULL, a, &one, XD, XD, XD, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, activationDesc, h, NULL, &one, XD, XD, XD, &one, YD);
    BACKWARD(BAD_PARAM, activationDesc, h, no_a, &one, XD, XD, XD, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, alpha, h, a, NULL, XD, XD, XD, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, yDesc, h, a, &one, NULL, x->data, XD, XD, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, y, h, a, &one, x->desc, NULL, XD, XD, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, dyDesc, h, a, &one, XD, NULL, x->data, XD, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, dy, h, a, &one, XD, x->desc, NULL, XD, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, xDesc, h, a, &one, XD, XD, NULL, x->data, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, x, h, a, &one, XD, XD, x->desc, NULL, &one, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, beta, h, a, &one, XD, XD, XD, NULL, YD);
    BACKWARD(BAD_PARAM_NULL_POINTER, dxDesc, h, a, &one, XD, XD, XD, &one, NULL, y->data);
    BACKWARD(BAD_PARAM_NULL_POINTER, dx, h, a, &one, XD, XD, XD, &one, y->desc, NULL);
    BACKWARD(BAD_PARAM_SHAPE_MISMATCH, dyDesc, h, a, &one, XD, wide->desc, wide->data, XD, &one,
             YD);
    BACKWARD(BAD_PARAM, yDesc, h, a, &one, half->desc, half->data, XD, XD, &one, YD);
    BACKWARD(BAD_PARAM, dxDesc, h, a, &one, XD, x->desc, y->data, XD, &one, nhwc->desc, y->data);
#define ADD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnAddTensor, argument, cudnnAddTensor(__VA_ARGS__))
    ADD(BAD_PARAM_NULL_POINTER, handle, NULL, &one, XD, &one, YD);
    ADD(BAD_PARAM_NULL_POINTER, alpha, h, NULL, XD, &one, YD);
    ADD(BAD_PARAM_NULL_POINTER, aDesc, h, &one, NULL, x->data, &one, YD);
    ADD(BAD_PARAM_SHAPE_MISMATCH, aDesc, h, &one, wide->desc, wide->data, &one, YD);
    ADD(BAD_PARAM, aDesc, h, &one, half->desc, half->data, &one, YD);
    ADD(BAD_PARAM, aDesc, h, &one, unset, x->data, &one, YD);
    ADD(BAD_PARAM_NULL_POINTER, A, h, &one, x->desc, NULL, &one, YD);
    ADD(BAD_PARAM_NULL_POINTER, beta, h, &one, XD, NULL, YD);
    ADD(BAD_PARAM_NULL_POINTER, cDesc, h, &one, XD, &one, NULL, y->data);
    ADD(BAD_PARAM_NULL_POINTER, C, h, &one, XD, &one, y->desc, NULL);
#define TRANSFORM(status, argument, ...)                                                           \
    REFUSED(status, cudnnTransformTensor, argument, cudnnTransformTensor(__VA_ARGS__))
    TRANSFORM(BAD_PARAM_NULL_POINTER, handle, NULL, &one, XD, &one, YD);
    TRANSFORM(BAD_PARAM_NULL_POINTER, alpha, h, NULL, XD, &one, YD);
    TRANSFORM(BAD_PARAM_NULL_POINTER, xDesc, h, &one, NULL, x->data, &one, YD);
    TRANSFORM(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, &one, wide->desc, wide->data, &one, YD);
    TRANSFORM(BAD_PARAM_NULL_POINTER, x, h, &one, x->desc, NULL, &one, YD);
    TRANSFORM(BAD_PARAM_NULL_POINTER, beta, h, &one, XD, NULL, YD);
    TRANSFORM(BAD_PARAM_NULL_POINTER, yDesc, h, &one, XD, &one, NULL, y->data);
    TRANSFORM(BAD_PARAM, yDesc, h, &one, x->desc, y->data, &one, nhwc->desc, y->data);
    TRANSFORM(BAD_PARAM_NULL_POINTER, y, h, &one, XD, &one, y->desc, NULL);
    /* in place, but of another type: elements of two sizes would lie over each other */
    TRANSFORM(BAD_PARAM, yDesc, h, &one, half->desc, y->data, &one, YD);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnScaleTensor, handle, cudnnScaleTensor(NULL, YD, &one));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnScaleTensor, yDesc,
            cudnnScaleTensor(h, NULL, y->data, &one));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnScaleTensor, y, cudnnScaleTensor(h, y->desc, NULL, &one));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnScaleTensor, alpha, cudnnScaleTensor(h, YD, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensor, handle, cudnnSetTensor(NULL, YD, &one));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensor, yDesc, cudnnSetTensor(h, NULL, y->data, &one));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensor, y, cudnnSetTensor(h, y->desc, NULL, &one));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetTensor, valuePtr, cudnnSetTensor(h, YD, NULL));
#define OP(status, argument, ...)                                                                  \
    REFUSED(status, cudnnOpTensor, argument, cudnnOpTensor(__VA_ARGS__))
    OP(BAD_PARAM_NULL_POINTER, handle, NULL, o, &one, XD, &one, XD, &one, YD);
    OP(BAD_PARAM_NULL_POINTER, opTensorDesc, h, NULL, &one, XD, &one, XD, &one, YD);
    OP(BAD_PARAM_NULL_POINTER, alpha1, h, o, NULL, XD, &one, XD, &one, YD);
    OP(BAD_PARAM_NULL_POINTER, aDesc, h, o, &one, NULL, x->data, &one, XD, &one, YD);
    OP(BAD_PARAM_SHAPE_MISMATCH, aDesc, h, o, &one, wide->desc, wide->data, &one, XD, &one, YD);
    OP(BAD_PARAM_NULL_POINTER, A, h, o, &one, x->desc, NULL, &one, XD, &one, YD);
    OP(BAD_PARAM_NULL_POINTER, alpha2, h, o, &one, XD, NULL, XD, &one, YD);
    OP(BAD_PARAM_NULL_POINTER, bDesc, h, o, &one, XD, &one, NULL, x->data, &one, YD);
    OP(BAD_PARAM_SHAPE_MISMATCH, bDesc, h, o, &one, XD, &one, wide->desc, wide->data, &one, YD);
    OP(BAD_PARAM_NULL_POINTER, B, h, o, &one, XD, &one, x->desc, NULL, &one, YD);
    OP(BAD_PARAM_NULL_POINTER, beta, h, o, &one, XD, &one, XD, NULL, YD);
    OP(BAD_PARAM_NULL_POINTER, cDesc, h, o, &one, XD, &one, XD, &one, NULL, y->data);
    OP(BAD_PARAM_NULL_POINTER, C, h, o, &one, XD, &one, XD, &one, y->desc, NULL);
    OP(BAD_PARAM, cDesc, h, o, &one, half->desc, y->data, &one, half->desc, half->data, &one, YD);
    cudnnDestroyTensorDescriptor(unset);
    cudnnDestroyActivationDescriptor(a);
    cudnnDestroyActivationDescriptor(no_a);
    cudnnDestroyOpTensorDescriptor(o);
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    handle_rows();
    tensor_rows();
    descriptor_rows();
    compute_rows();
    refusal_report();
    return harness_finish();
}
