/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor descriptors: set, get, size. Sizes beyond 2^31 elements are legal here; what an `int` of
 * the API cannot say is refused where it would have to be said. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

enum { STRIDES_GIVEN = -1 }; /* in the place of a format */

static const char stride4d_names[] = "nStride cStride hStride wStride";

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
                          "dataType=%d (%s) is none of INT8x4, UINT8x4 and INT8x32, which format "
                          "NCHW_VECT_C wants",
                          dtype, wd_dtype_name(dtype));
    }
    return CUDNN_STATUS_SUCCESS;
}

const char *wd_element_name(const char *names, int d, char *text)
{
    const char *at = names;
    if (!strchr(names, ' ')) {
        snprintf(text, WD_ELEMENT_NAME_SIZE, "%s[%d]", names, d);
        return text;
    }
    for (int i = 0; i < d; ++i) at += strcspn(at, " ") + 1;
    snprintf(text, WD_ELEMENT_NAME_SIZE, "%.*s", (int)strcspn(at, " "), at);
    return text;
}

/* "n=2, c=3, h=4, w=5" into `text`. */
static const char *list_text(const char *names, int count, const int *values, char *text,
                             size_t size)
{
    size_t length = 0;
    char name[WD_ELEMENT_NAME_SIZE];
    text[0] = '\0';
    for (int d = 0; d < count && length < size; ++d) {
        length += (size_t)snprintf(text + length, size - length, "%s%s=%d", d ? ", " : "",
                                   wd_element_name(names, d, name), values[d]);
    }
    return text;
}

/* Refuses more elements than can be counted, and strides that reach further. */
static cudnnStatus_t check_extent(const char *function, const struct wd_tensor *tensor,
                                  const int *dims, const char *dim_names, const int *strides,
                                  const char *stride_names)
{
    char text[256];
    __extension__ __int128 units = 1;
    __extension__ __int128 count = 1;
    for (int d = 0; d < tensor->rank; ++d) {
        __extension__ __int128 stride =
            tensor->stride[d] < 0 ? -tensor->stride[d] : tensor->stride[d];
        units += stride * (tensor->dim[d] - 1);
        count *= tensor->dim[d];
        if (count > INT64_MAX / 1024) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "%s: the tensor has more than 2^53 elements",
                              list_text(dim_names, tensor->rank, dims, text, sizeof text));
        }
        if (units > INT64_MAX / 1024) {
            return wd_fail_in(
                function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                "%s: the tensor reaches over more than 2^53 elements",
                strides ? list_text(stride_names, tensor->rank, strides, text, sizeof text)
                        : list_text(dim_names, tensor->rank, dims, text, sizeof text));
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_tensor_fill(const char *function, struct wd_tensor *tensor, int format, int dtype,
                             int rank, const int *dims, const char *dim_names, const int *strides,
                             const char *stride_names)
{
    struct wd_tensor t;
    int64_t unit_dim[WD_MAX_RANK];
    int lanes = wd_dtype_lanes(dtype);
    char name[WD_ELEMENT_NAME_SIZE];
    char other[WD_ELEMENT_NAME_SIZE];
    char text[256];
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
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s=%d is not positive",
                              wd_element_name(dim_names, d, name), dims[d]);
        }
        count *= dims[d];
        if (count > INT64_MAX / 1024) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "%s: the tensor has more than 2^53 elements",
                              list_text(dim_names, rank, dims, text, sizeof text));
        }
        t.dim[d] = unit_dim[d] = dims[d];
    }
    if (lanes > 1 && format == CUDNN_TENSOR_NCHW_VECT_C) {
        if (dims[1] % lanes != 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                              "%s=%d is not a multiple of the vector's %d",
                              wd_element_name(dim_names, 1, name), dims[1], lanes);
        }
        unit_dim[1] = dims[1] / lanes;
    } else if (lanes > 1) {
        t.dim[1] = (int64_t)dims[1] * lanes; /* here the API counts vectors */
    }
    if (strides) {
        for (int d = 0; d < rank; ++d) {
            t.stride[d] = strides[d];
            if (strides[d] == 0 && dims[d] != 1) {
                return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s=0 where %s=%d is not 1",
                                  wd_element_name(stride_names, d, name),
                                  wd_element_name(dim_names, d, other), dims[d]);
            }
        }
    } else if (format == CUDNN_TENSOR_NHWC) {
        wd_strides_nhwc(unit_dim, rank, t.stride);
    } else {
        wd_strides_nchw(unit_dim, rank, t.stride);
    }
    WD_TRY(check_extent(function, &t, dims, dim_names, strides, stride_names));
    *tensor = t;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set(const char *function, cudnnTensorDescriptor_t descriptor, int format,
                         int dtype, int rank, const int *dims, const char *dim_names,
                         const int *strides, const char *stride_names)
{
    WD_TRY(wd_check_descriptor(function, "tensorDesc", WD_DESC_TENSOR, descriptor, 0));
    WD_TRY(wd_tensor_fill(function, &descriptor->tensor, format, dtype, rank, dims, dim_names,
                          strides, stride_names));
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
    return WD_DESC_CREATE(WD_DESC_TENSOR, tensorDesc);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc)
{
    return WD_DESC_DESTROY(WD_DESC_TENSOR, tensorDesc);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                         cudnnTensorFormat_t format, cudnnDataType_t dataType,
                                         int n, int c, int h, int w)
{
    int dims[4] = {n, c, h, w};
    WD_TRY(check_format(__func__, (int)format, (int)dataType));
    return set(__func__, tensorDesc, (int)format, (int)dataType, 4, dims, "n c h w", NULL, NULL);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                           cudnnDataType_t dataType, int n, int c, int h, int w,
                                           int nStride, int cStride, int hStride, int wStride)
{
    int dims[4] = {n, c, h, w};
    int strides[4] = {nStride, cStride, hStride, wStride};
    return set(__func__, tensorDesc, STRIDES_GIVEN, (int)dataType, 4, dims, "n c h w", strides,
               stride4d_names);
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
    return set(__func__, tensorDesc, STRIDES_GIVEN, (int)dataType, nbDims, dimA, "dimA", strideA,
               "strideA");
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
    return set(__func__, tensorDesc, (int)format, (int)dataType, nbDims, dimA, "dimA", NULL, NULL);
}

/* Whether the first dims and strides, where they are wanted, can be said in the API's int: asked
 * before anything is written. */
static cudnnStatus_t check_sayable(const char *function, const struct cudnnTensorStruct *descriptor,
                                   int count, bool dims, const char *dim_names, bool strides,
                                   const char *stride_names)
{
    char name[WD_ELEMENT_NAME_SIZE];
    for (int d = 0; d < count; ++d) {
        int64_t dim = declared_dim(descriptor, d);
        int64_t stride = descriptor->tensor.stride[d];
        if (dims && dim > INT_MAX) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "%s would be %lld, which does not fit the API's int",
                              wd_element_name(dim_names, d, name), (long long)dim);
        }
        if (strides && (stride > INT_MAX || stride < INT_MIN)) {
            return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                              "%s would be %lld, which does not fit the API's int",
                              wd_element_name(stride_names, d, name), (long long)stride);
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
    WD_TRY(check_sayable(__func__, tensorDesc, 4, true, "n c h w", true, stride4d_names));
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
    WD_TRY(check_sayable(__func__, tensorDesc, count, dimA != NULL, "dimA", strideA != NULL,
                         "strideA"));
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
                                const struct cudnnTensorStruct *input_desc,
                                const struct wd_place_names *names)
{
    char a[160];
    char b[160];
    if (!output || output != input) return CUDNN_STATUS_SUCCESS;
    if (output_desc->tensor.dtype == input_desc->tensor.dtype &&
        wd_tensor_same_layout(&output_desc->tensor, &input_desc->tensor)) {
        return CUDNN_STATUS_SUCCESS;
    }
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                      "%s and %s are the same memory, but types, dims or strides of %s (%s) and %s "
                      "(%s) differ",
                      names->output, names->input, names->output_desc,
                      wd_tensor_text(&output_desc->tensor, a, sizeof a), names->input_desc,
                      wd_tensor_text(&input_desc->tensor, b, sizeof b));
}
