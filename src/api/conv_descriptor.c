/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution descriptors: set and get, and the dims of the output that they give. Setting the
 * geometry leaves math type, group count and reorder type as they are. */
#include <limits.h>

#include "api/conv.h"
#include "graph/conv.h"

/* What the arguments of a Set function are called, as wd_element_name takes it. */
struct names {
    const char *pad;
    const char *stride;
    const char *dilation;
};

static cudnnStatus_t set(const char *function, cudnnConvolutionDescriptor_t descriptor, int spatial,
                         const struct names *names, const int *pad, const int *stride,
                         const int *dilation, int mode, int compute)
{
    char name[WD_ELEMENT_NAME_SIZE];
    WD_TRY(wd_check_descriptor(function, "convDesc", WD_DESC_CONVOLUTION, descriptor, 0));
    for (int d = 0; d < spatial; ++d) {
        if (pad[d] < 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s=%d is negative",
                              wd_element_name(names->pad, d, name), pad[d]);
        }
        if (stride[d] <= 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s=%d is not positive",
                              wd_element_name(names->stride, d, name), stride[d]);
        }
        if (dilation[d] <= 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s=%d is not positive",
                              wd_element_name(names->dilation, d, name), dilation[d]);
        }
    }
    if (mode != CUDNN_CONVOLUTION && mode != CUDNN_CROSS_CORRELATION) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnConvolutionMode_t",
                          mode);
    }
    if (compute != CUDNN_DATA_FLOAT && compute != CUDNN_DATA_DOUBLE && compute != CUDNN_DATA_HALF &&
        compute != CUDNN_DATA_INT32) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "computeType=%d (%s) is none of fp32, fp64, fp16, int32", compute,
                          wd_dtype_name(compute));
    }
    for (int d = 0; d < spatial; ++d) {
        descriptor->pad[d] = pad[d];
        descriptor->stride[d] = stride[d];
        descriptor->dilation[d] = dilation[d];
    }
    descriptor->spatial = spatial;
    descriptor->mode = mode;
    descriptor->compute = compute;
    descriptor->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convDesc)
{
    WD_TRY(WD_DESC_CREATE(WD_DESC_CONVOLUTION, convDesc));
    (*convDesc)->groups = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convDesc)
{
    return WD_DESC_DESTROY(WD_DESC_CONVOLUTION, convDesc);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc, int pad_h,
                                              int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t computeType)
{
    static const struct names names = {"pad_h pad_w", "u v", "dilation_h dilation_w"};
    int pad[2] = {pad_h, pad_w};
    int stride[2] = {u, v};
    int dilation[2] = {dilation_h, dilation_w};
    return set(__func__, convDesc, 2, &names, pad, stride, dilation, (int)mode, (int)computeType);
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convDesc,
                                              int *pad_h, int *pad_w, int *u, int *v,
                                              int *dilation_h, int *dilation_w,
                                              cudnnConvolutionMode_t *mode,
                                              cudnnDataType_t *computeType)
{
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    if (pad_h) *pad_h = convDesc->pad[0];
    if (pad_w) *pad_w = convDesc->pad[1];
    if (u) *u = convDesc->stride[0];
    if (v) *v = convDesc->stride[1];
    if (dilation_h) *dilation_h = convDesc->dilation[0];
    if (dilation_w) *dilation_w = convDesc->dilation[1];
    if (mode) *mode = (cudnnConvolutionMode_t)convDesc->mode;
    if (computeType) *computeType = (cudnnDataType_t)convDesc->compute;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc,
                                              int arrayLength, const int padA[],
                                              const int filterStrideA[], const int dilationA[],
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t computeType)
{
    static const struct names names = {"padA", "filterStrideA", "dilationA"};
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG(arrayLength >= 0, CUDNN_STATUS_BAD_PARAM, "arrayLength=%d is negative", arrayLength);
    WD_ARG(arrayLength <= CONV_DESC_SPATIAL_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "arrayLength=%d is more than CUDNN_DIM_MAX - 2 = %d", arrayLength,
           (int)CONV_DESC_SPATIAL_MAX);
    WD_ARG(padA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "padA is null");
    WD_ARG(filterStrideA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "filterStrideA is null");
    WD_ARG(dilationA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "dilationA is null");
    return set(__func__, convDesc, arrayLength, &names, padA, filterStrideA, dilationA, (int)mode,
               (int)computeType);
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t convDesc,
                                              int arrayLengthRequested, int *arrayLength,
                                              int padA[], int strideA[], int dilationA[],
                                              cudnnConvolutionMode_t *mode,
                                              cudnnDataType_t *computeType)
{
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG(arrayLengthRequested >= 0, CUDNN_STATUS_BAD_PARAM, "arrayLengthRequested=%d is negative",
           arrayLengthRequested);
    WD_ARG(arrayLengthRequested <= CONV_DESC_SPATIAL_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "arrayLengthRequested=%d is more than CUDNN_DIM_MAX - 2 = %d", arrayLengthRequested,
           (int)CONV_DESC_SPATIAL_MAX);
    for (int d = 0; d < arrayLengthRequested; ++d) {
        bool own = d < convDesc->spatial; /* zeros beyond */
        if (padA) padA[d] = own ? convDesc->pad[d] : 0;
        if (strideA) strideA[d] = own ? convDesc->stride[d] : 0;
        if (dilationA) dilationA[d] = own ? convDesc->dilation[d] : 0;
    }
    if (arrayLength) *arrayLength = convDesc->spatial;
    if (mode) *mode = (cudnnConvolutionMode_t)convDesc->mode;
    if (computeType) *computeType = (cudnnDataType_t)convDesc->compute;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                          cudnnMathType_t mathType)
{
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG((int)mathType >= CUDNN_DEFAULT_MATH && (int)mathType <= CUDNN_FMA_MATH,
           CUDNN_STATUS_BAD_PARAM, "mathType=%d is no cudnnMathType_t", (int)mathType);
    convDesc->math = (int32_t)mathType;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                          cudnnMathType_t *mathType)
{
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG(mathType != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "mathType is null");
    *mathType = (cudnnMathType_t)convDesc->math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount)
{
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG(groupCount >= 1, CUDNN_STATUS_BAD_PARAM, "groupCount=%d is not positive", groupCount);
    convDesc->groups = groupCount;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int *groupCount)
{
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG(groupCount != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "groupCount is null");
    *groupCount = convDesc->groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                             cudnnReorderType_t reorderType)
{
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG((int)reorderType == CUDNN_DEFAULT_REORDER || (int)reorderType == CUDNN_NO_REORDER,
           CUDNN_STATUS_BAD_PARAM, "reorderType=%d is no cudnnReorderType_t", (int)reorderType);
    convDesc->reorder = (int32_t)reorderType;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                             cudnnReorderType_t *reorderType)
{
    WD_DESC(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG(reorderType != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "reorderType is null");
    *reorderType = (cudnnReorderType_t)convDesc->reorder;
    return CUDNN_STATUS_SUCCESS;
}

struct wd_conv_attr wd_conv_attr_of(const struct cudnnConvolutionStruct *conv)
{
    struct wd_conv_attr attr = {
        .spatial = conv->spatial,
        .mode = conv->mode,
        .compute = conv->compute,
        .math = conv->math,
        .groups = conv->groups,
    };
    for (int d = 0; d < conv->spatial; ++d) {
        attr.pad_before[d] = attr.pad_after[d] = conv->pad[d];
        attr.stride[d] = conv->stride[d];
        attr.dilation[d] = conv->dilation[d];
    }
    return attr;
}

/* The first `count` dims of the output. */
static cudnnStatus_t output_dims(const char *function, const struct cudnnConvolutionStruct *conv,
                                 const struct cudnnTensorStruct *input,
                                 const struct cudnnFilterStruct *filter, int count, int *dims)
{
    struct wd_conv_attr attr = wd_conv_attr_of(conv);
    const struct wd_tensor *x = &input->tensor;
    const struct wd_tensor *w = &filter->tensor;
    if (x->rank != conv->spatial + 2 || w->rank != conv->spatial + 2) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "inputTensorDesc has %d dimensions and filterDesc %d, not the %d spatial "
                          "ones of convDesc and 2",
                          x->rank, w->rank, conv->spatial);
    }
    if (x->vect_count != w->vect_count) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "inputTensorDesc has vectors of %d, filterDesc of %d", x->vect_count,
                          w->vect_count);
    }
    if (x->dim[1] != w->dim[1] * conv->groups) {
        return wd_fail_in(
            function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "C=%lld of inputTensorDesc is not the C=%lld of filterDesc times %d groups",
            (long long)x->dim[1], (long long)w->dim[1], conv->groups);
    }
    for (int d = 0; d < count; ++d) {
        int64_t extent = d == 0   ? x->dim[0]
                         : d == 1 ? w->dim[0]
                                  : wd_conv_output_dim(&attr, d - 2, x->dim[d], w->dim[d]);
        if (extent < 1) {
            return wd_fail_in(
                function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                "the extent %lld of filterDesc with dilation %d of convDesc is larger "
                "than the padded image (%lld of inputTensorDesc + 2 * %d) in spatial "
                "dimension %d",
                (long long)w->dim[d], conv->dilation[d - 2], (long long)x->dim[d], conv->pad[d - 2],
                d - 2);
        }
        if (extent > INT_MAX) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "output dim[%d]=%lld, from convDesc, inputTensorDesc and filterDesc, "
                              "does not fit the API's int",
                              d, (long long)extent);
        }
        dims[d] = (int)extent;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                                    const cudnnTensorDescriptor_t inputTensorDesc,
                                                    const cudnnFilterDescriptor_t filterDesc,
                                                    int *n, int *c, int *h, int *w)
{
    int dims[4];
    WD_DESC_SET(convDesc, WD_DESC_CONVOLUTION);
    WD_DESC_SET(inputTensorDesc, WD_DESC_TENSOR);
    WD_DESC_SET(filterDesc, WD_DESC_FILTER);
    WD_ARG(n != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "n is null");
    WD_ARG(c != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "c is null");
    WD_ARG(h != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "h is null");
    WD_ARG(w != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "w is null");
    WD_ARG(convDesc->spatial >= 2, CUDNN_STATUS_BAD_PARAM,
           "convDesc has %d spatial dimensions, not 2", convDesc->spatial);
    /* three spatial dimensions give the first two, as they always have */
    WD_TRY(output_dims(__func__, convDesc, inputTensorDesc, filterDesc, 4, dims));
    *n = dims[0];
    *c = dims[1];
    *h = dims[2];
    *w = dims[3];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                                    const cudnnTensorDescriptor_t inputTensorDesc,
                                                    const cudnnFilterDescriptor_t filterDesc,
                                                    int nbDims, int tensorOuputDimA[])
{
    int dims[WD_MAX_RANK] = {0};
    WD_DESC_SET(convDesc, WD_DESC_CONVOLUTION);
    WD_DESC_SET(inputTensorDesc, WD_DESC_TENSOR);
    WD_DESC_SET(filterDesc, WD_DESC_FILTER);
    WD_ARG(tensorOuputDimA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "tensorOuputDimA is null");
    WD_ARG(nbDims >= 0 && nbDims <= convDesc->spatial + 2, CUDNN_STATUS_BAD_PARAM,
           "nbDims=%d is not within the %d dimensions of the output", nbDims,
           convDesc->spatial + 2);
    WD_TRY(output_dims(__func__, convDesc, inputTensorDesc, filterDesc, nbDims, dims));
    for (int d = 0; d < nbDims; ++d) tensorOuputDimA[d] = dims[d];
    return CUDNN_STATUS_SUCCESS;
}
