/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor descriptors: set, get, size. Sizes beyond 2^31 elements are legal here; what an `int` of
 * the API cannot say is refused where it would have to be said. */
#include <limits.h>
#include <string.h>

#include "api/api.h"

enum { STRIDES_GIVEN = -1 }; /* in the place of a format */

/* Whether a legacy tensor may have this type. */
static bool is_tensor_type(int dtype)
{
    return dtype >= CUDNN_DATA_FLOAT && dtype <= CUDNN_DATA_BFLOAT16;
}

/* A format, and one that the type can have. */
static cudnnStatus_t check_format(const char *function, int format, int dtype)
{
    if (format < CUDNN_TENSOR_NCHW || format > CUDNN_TENSOR_NCHW_VECT_C) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "format=%d is no cudnnTensorFormat_t",
                          format);
    }
    if (format == CUDNN_TENSOR_NCHW_VECT_C && wd_dtype_lanes(dtype) == 1) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "format NCHW_VECT_C wants INT8x4, UINT8x4 or INT8x32, not %s",
                          wd_dtype_name(dtype));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_extent(const char *function, const struct wd_tensor *tensor)
{
    __extension__ __int128 units = 1;
    __extension__ __int128 count = 1;
    for (int d = 0; d < tensor->rank; ++d) {
        __extension__ __int128 stride =
            tensor->stride[d] < 0 ? -tensor->stride[d] : tensor->stride[d];
        units += stride * (tensor->dim[d] - 1);
        count *= tensor->dim[d];
        if (units > INT64_MAX / 1024 || count > INT64_MAX / 1024) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "the tensor has more than 2^53 elements");
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_tensor_fill(const char *function, struct wd_tensor *tensor, int format, int dtype,
                             int rank, const int *dims, const int *strides)
{
    struct wd_tensor t;
    int64_t unit_dim[WD_MAX_RANK];
    int lanes = wd_dtype_lanes(dtype);
    __extension__ __int128 count = 1;
    memset(&t, 0, sizeof t);
    if (!is_tensor_type(dtype)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "dataType=%d (%s) is no tensor type",
                          dtype, wd_dtype_name(dtype));
    }
    if (format != STRIDES_GIVEN) WD_TRY(check_format(function, format, dtype));
    t.rank = rank;
    t.dtype = wd_dtype_lane(dtype);
    t.vect_count = lanes;
    t.vect_dim = lanes > 1 ? 1 : 0;
    for (int d = 0; d < rank; ++d) {
        if (dims[d] <= 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "dim[%d]=%d is not positive", d,
                              dims[d]);
        }
        count *= dims[d];
        if (count > INT64_MAX / 1024) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "the tensor has more than 2^53 elements");
        }
        t.dim[d] = unit_dim[d] = dims[d];
    }
    if (lanes > 1 && format == CUDNN_TENSOR_NCHW_VECT_C) {
        if (dims[1] % lanes != 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                              "dim[1]=%d is not a multiple of the vector's %d", dims[1], lanes);
        }
        unit_dim[1] = dims[1] / lanes;
    } else if (lanes > 1) {
        t.dim[1] = (int64_t)dims[1] * lanes; /* here the API counts vectors */
    }
    if (strides) {
        for (int d = 0; d < rank; ++d) {
            t.stride[d] = strides[d];
            if (strides[d] == 0 && dims[d] != 1) {
                return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                                  "stride[%d]=0 where dim[%d]=%d is not 1", d, d, dims[d]);
            }
        }
    } else if (format == CUDNN_TENSOR_NHWC) {
        wd_strides_nhwc(unit_dim, rank, t.stride);
    } else {
        wd_strides_nchw(unit_dim, rank, t.stride);
    }
    WD_TRY(check_extent(function, &t));
    *tensor = t;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set(const char *function, cudnnTensorDescriptor_t descriptor, int format,
                         int dtype, int rank, const int *dims, const int *strides)
{
    WD_TRY(wd_check_descriptor(function, "tensorDesc", WD_DESC_TENSOR, descriptor, 0));
    WD_TRY(wd_tensor_fill(function, &descriptor->tensor, format, dtype, rank, dims, strides));
    descriptor->declared_dtype = dtype;
    descriptor->declared_format = format;
    descriptor->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

/* The dimension as it was declared. */
static int64_t declared_dim(const struct cudnnTensorStruct *descriptor, int d)
{
    const struct wd_tensor *tensor = &descriptor->tensor;
    if (tensor->vect_count > 1 && d == 1 &&
        descriptor->declared_format != CUDNN_TENSOR_NCHW_VECT_C) {
        return tensor->dim[d] / tensor->vect_count;
    }
    return tensor->dim[d];
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensorDesc)
{
    return wd_descriptor_create(__func__, WD_DESC_TENSOR, sizeof **tensorDesc, tensorDesc);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc)
{
    return wd_descriptor_destroy(__func__, WD_DESC_TENSOR, tensorDesc);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                         cudnnTensorFormat_t format, cudnnDataType_t dataType,
                                         int n, int c, int h, int w)
{
    int dims[4] = {n, c, h, w};
    WD_TRY(check_format(__func__, (int)format, (int)dataType));
    return set(__func__, tensorDesc, (int)format, (int)dataType, 4, dims, NULL);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                           cudnnDataType_t dataType, int n, int c, int h, int w,
                                           int nStride, int cStride, int hStride, int wStride)
{
    int dims[4] = {n, c, h, w};
    int strides[4] = {nStride, cStride, hStride, wStride};
    return set(__func__, tensorDesc, STRIDES_GIVEN, (int)dataType, 4, dims, strides);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                         cudnnDataType_t dataType, int nbDims, const int dimA[],
                                         const int strideA[])
{
    WD_ARG(nbDims >= 2, CUDNN_STATUS_BAD_PARAM, "nbDims=%d is less than 2", nbDims);
    WD_ARG(nbDims <= CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "nbDims=%d is more than CUDNN_DIM_MAX=%d", nbDims, CUDNN_DIM_MAX);
    WD_ARG(dimA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "dimA is null");
    WD_ARG(strideA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "strideA is null");
    return set(__func__, tensorDesc, STRIDES_GIVEN, (int)dataType, nbDims, dimA, strideA);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                           cudnnTensorFormat_t format, cudnnDataType_t dataType,
                                           int nbDims, const int dimA[])
{
    WD_TRY(check_format(__func__, (int)format, (int)dataType));
    WD_ARG(nbDims >= 2, CUDNN_STATUS_BAD_PARAM, "nbDims=%d is less than 2", nbDims);
    WD_ARG(nbDims <= CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "nbDims=%d is more than CUDNN_DIM_MAX=%d", nbDims, CUDNN_DIM_MAX);
    WD_ARG(dimA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "dimA is null");
    return set(__func__, tensorDesc, (int)format, (int)dataType, nbDims, dimA, NULL);
}

/* Whether the first dims and strides, where they are wanted, can be said in the API's int: asked
 * before anything is written. */
static cudnnStatus_t check_sayable(const char *function, const struct cudnnTensorStruct *descriptor,
                                   int count, bool dims, bool strides)
{
    for (int d = 0; d < count; ++d) {
        int64_t dim = declared_dim(descriptor, d);
        int64_t stride = descriptor->tensor.stride[d];
        if (dims && dim > INT_MAX) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "dim[%d]=%lld does not fit the API's int", d, (long long)dim);
        }
        if (strides && (stride > INT_MAX || stride < INT_MIN)) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "stride[%d]=%lld does not fit the API's int", d, (long long)stride);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                                         cudnnDataType_t *dataType, int *n, int *c, int *h, int *w,
                                         int *nStride, int *cStride, int *hStride, int *wStride)
{
    int *dims[4] = {n, c, h, w};
    int *strides[4] = {nStride, cStride, hStride, wStride};
    WD_DESC(tensorDesc, WD_DESC_TENSOR);
    WD_ARG(dataType != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "dataType is null");
    for (int d = 0; d < 4; ++d) {
        static const char names[] = "nchw";
        WD_ARG(dims[d] != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%c is null", names[d]);
        WD_ARG(strides[d] != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%cStride is null",
               names[d]);
    }
    WD_TRY(check_sayable(__func__, tensorDesc, 4, true, true));
    for (int d = 0; d < 4; ++d) {
        *dims[d] = (int)declared_dim(tensorDesc, d);
        *strides[d] = (int)tensorDesc->tensor.stride[d];
    }
    *dataType = (cudnnDataType_t)tensorDesc->declared_dtype;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                                         int nbDimsRequested, cudnnDataType_t *dataType,
                                         int *nbDims, int dimA[], int strideA[])
{
    int rank, count;
    WD_DESC(tensorDesc, WD_DESC_TENSOR);
    WD_ARG(nbDims != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "nbDims is null");
    rank = tensorDesc->tensor.rank;
    count = rank < nbDimsRequested ? rank : nbDimsRequested;
    WD_TRY(check_sayable(__func__, tensorDesc, count, dimA != NULL, strideA != NULL));
    for (int d = 0; d < count; ++d) {
        if (dimA) dimA[d] = (int)declared_dim(tensorDesc, d);
        if (strideA) strideA[d] = (int)tensorDesc->tensor.stride[d];
    }
    if (dataType) *dataType = (cudnnDataType_t)tensorDesc->declared_dtype;
    *nbDims = rank;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensorDesc, size_t *size)
{
    WD_DESC(tensorDesc, WD_DESC_TENSOR);
    WD_ARG(size != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "size is null");
    *size = tensorDesc->head.set ? (size_t)wd_tensor_extent(&tensorDesc->tensor) : 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_check_in_place(const char *function, const void *output,
                                const struct cudnnTensorStruct *output_desc, const void *input,
                                const struct cudnnTensorStruct *input_desc, const char *names)
{
    char a[160];
    char b[160];
    if (!output || output != input) return CUDNN_STATUS_SUCCESS;
    if (output_desc->tensor.dtype == input_desc->tensor.dtype &&
        wd_tensor_same_layout(&output_desc->tensor, &input_desc->tensor)) {
        return CUDNN_STATUS_SUCCESS;
    }
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                      "%s are the same memory, but their types, dims or strides differ (%s and %s)",
                      names, wd_tensor_text(&output_desc->tensor, a, sizeof a),
                      wd_tensor_text(&input_desc->tensor, b, sizeof b));
}
