/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter descriptors. A filter is a tensor of dims K, C, [D,] R, S; its format names the order of
 * its strides: NHWC is K, R, S, C in memory. */
#include "api/api.h"

static cudnnStatus_t set(const char *function, cudnnFilterDescriptor_t descriptor, int dtype,
                         int format, int rank, const int *dims, const char *dim_names)
{
    WD_TRY(wd_check_descriptor(function, "filterDesc", WD_DESC_FILTER, descriptor, 0));
    if (format < 0) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "format=%d is no cudnnTensorFormat_t",
                          format);
    }
    if (dtype == CUDNN_DATA_INT32) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "dataType=%d (int32) is no filter type",
                          dtype);
    }
    WD_TRY(wd_tensor_fill(function, &descriptor->tensor, format, dtype, rank, dims, dim_names, NULL,
                          NULL));
    descriptor->declared_dtype = dtype;
    descriptor->declared_format = format;
    descriptor->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

static int declared_dim(const struct cudnnFilterStruct *filter, int d)
{
    const struct wd_tensor *tensor = &filter->tensor;
    bool counts_vectors =
        tensor->vect_count > 1 && d == 1 && filter->declared_format != CUDNN_TENSOR_NCHW_VECT_C;
    return (int)(counts_vectors ? tensor->dim[d] / tensor->vect_count : tensor->dim[d]);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filterDesc)
{
    return WD_DESC_CREATE(WD_DESC_FILTER, filterDesc);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filterDesc)
{
    return WD_DESC_DESTROY(WD_DESC_FILTER, filterDesc);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc,
                                         cudnnDataType_t dataType, cudnnTensorFormat_t format,
                                         int k, int c, int h, int w)
{
    int dims[4] = {k, c, h, w};
    return set(__func__, filterDesc, (int)dataType, (int)format, 4, dims, "k c h w");
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc,
                                         cudnnDataType_t dataType, cudnnTensorFormat_t format,
                                         int nbDims, const int filterDimA[])
{
    WD_ARG(nbDims >= 3, CUDNN_STATUS_BAD_PARAM, "nbDims=%d is less than 3", nbDims);
    WD_ARG(nbDims <= CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "nbDims=%d is more than CUDNN_DIM_MAX=%d", nbDims, CUDNN_DIM_MAX);
    WD_ARG(filterDimA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "filterDimA is null");
    return set(__func__, filterDesc, (int)dataType, (int)format, nbDims, filterDimA, "filterDimA");
}

cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filterDesc,
                                         cudnnDataType_t *dataType, cudnnTensorFormat_t *format,
                                         int *k, int *c, int *h, int *w)
{
    int *dims[4] = {k, c, h, w};
    WD_DESC(filterDesc, WD_DESC_FILTER);
    for (int d = 0; d < 4; ++d)
        if (dims[d]) *dims[d] = declared_dim(filterDesc, d);
    if (dataType) *dataType = (cudnnDataType_t)filterDesc->declared_dtype;
    if (format) *format = (cudnnTensorFormat_t)filterDesc->declared_format;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filterDesc,
                                         int nbDimsRequested, cudnnDataType_t *dataType,
                                         cudnnTensorFormat_t *format, int *nbDims, int filterDimA[])
{
    WD_DESC(filterDesc, WD_DESC_FILTER);
    WD_ARG(nbDimsRequested >= 1, CUDNN_STATUS_BAD_PARAM, "nbDimsRequested=%d is not positive",
           nbDimsRequested);
    for (int d = 0; d < nbDimsRequested && d < CUDNN_DIM_MAX && filterDimA; ++d)
        filterDimA[d] = d < filterDesc->tensor.rank ? declared_dim(filterDesc, d) : 0;
    if (dataType) *dataType = (cudnnDataType_t)filterDesc->declared_dtype;
    if (format) *format = (cudnnTensorFormat_t)filterDesc->declared_format;
    if (nbDims) *nbDims = filterDesc->tensor.rank;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filterDesc, size_t *size)
{
    WD_DESC(filterDesc, WD_DESC_FILTER);
    WD_ARG(size != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "size is null");
    *size = filterDesc->head.set ? (size_t)wd_tensor_extent(&filterDesc->tensor) : 0;
    return CUDNN_STATUS_SUCCESS;
}
