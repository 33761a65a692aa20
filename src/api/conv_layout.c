/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix of im2col, and the order in which int8x32 filters and their bias are stored for tensor
 * cores. */
#include <string.h>

#include "api/conv.h"
#include "graph/conv.h"

/* The matrix has a row for every weight (c, r, s) of one filter over all groups and a column for
 * every output point (n, p, q); packed, row by row. Row (c, r, s) holds what w[k, c, r, s] is
 * multiplied by, in either mode. */
cudnnStatus_t cudnnIm2Col(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void *x,
                          const cudnnFilterDescriptor_t wDesc,
                          const cudnnConvolutionDescriptor_t convDesc, void *colBuffer)
{
    struct wd_single single;
    struct wd_tensor col;
    struct wd_conv_attr *attr = &single.node.attr.conv;
    WD_HANDLE(handle);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(wDesc, WD_DESC_FILTER);
    WD_DESC_SET(convDesc, WD_DESC_CONVOLUTION);
    WD_ARG(x != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "x is null");
    WD_ARG(colBuffer != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "colBuffer is null");
    WD_ARG(colBuffer != x, CUDNN_STATUS_BAD_PARAM, "x and colBuffer are the same memory");
    WD_ARG(xDesc->tensor.rank == convDesc->spatial + 2 && wDesc->tensor.rank == xDesc->tensor.rank,
           CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
           "xDesc has %d dimensions and wDesc %d, not the %d spatial ones of convDesc and 2",
           xDesc->tensor.rank, wDesc->tensor.rank, convDesc->spatial);
    WD_ARG(xDesc->tensor.dim[1] == wDesc->tensor.dim[1] * convDesc->groups,
           CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
           "C=%lld of xDesc is not the C=%lld of wDesc times %d groups",
           (long long)xDesc->tensor.dim[1], (long long)wDesc->tensor.dim[1], convDesc->groups);
    wd_single_init(&single, WD_OP_IM2COL);
    single.attr_desc = "convDesc";
    *attr = wd_conv_attr_of(convDesc);
    memset(&col, 0, sizeof col);
    col.dtype = xDesc->tensor.dtype;
    col.rank = 2;
    col.vect_count = 1;
    col.dim[0] = xDesc->tensor.dim[1];
    col.dim[1] = xDesc->tensor.dim[0];
    for (int d = 0; d < attr->spatial; ++d) {
        int64_t filter = wDesc->tensor.dim[2 + d];
        int64_t extent = wd_conv_output_dim(attr, d, xDesc->tensor.dim[2 + d], filter);
        attr->window[d] = filter;
        /* what overflows here, the rule refuses */
        if (__builtin_mul_overflow(col.dim[0], filter, &col.dim[0])) col.dim[0] = 0;
        if (__builtin_mul_overflow(col.dim[1], extent, &col.dim[1])) col.dim[1] = 0;
    }
    col.stride[0] = col.dim[1];
    col.stride[1] = 1;
    WD_BIND(&single, 0, xDesc, x);
    wd_single_bind(&single, 1, &col, colBuffer, "colBuffer");
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

/* One dimension of a rearranged tensor: its extent and its strides on either side. */
struct axis {
    int64_t extent;
    int64_t from;
    int64_t to;
};

/* Copies from one arrangement to another: an identity over two differently strided views. */
static cudnnStatus_t rearrange(const char *function, cudnnHandle_t handle, int dtype,
                               const struct axis *axes, int rank, const void *from,
                               const char *from_name, void *to, const char *to_name)
{
    enum { X = 0, Y = 3, SCALARS_OF_ONE = 3 };
    struct wd_single single;
    struct wd_tensor source;
    struct wd_tensor target;
    memset(&source, 0, sizeof source);
    source.dtype = dtype;
    source.rank = rank;
    source.vect_count = 1;
    target = source;
    for (int d = 0; d < rank; ++d) {
        source.dim[d] = target.dim[d] = axes[d].extent;
        source.stride[d] = axes[d].from;
        target.stride[d] = axes[d].to;
    }
    wd_single_init(&single, WD_OP_POINTWISE);
    single.node.attr.pointwise.mode = CUDNN_POINTWISE_IDENTITY;
    single.node.attr.pointwise.compute = CUDNN_DATA_FLOAT;
    wd_single_bind(&single, X, &source, from, from_name);
    wd_single_bind(&single, Y, &target, to, to_name);
    for (int i = 0; i < SCALARS_OF_ONE; ++i) wd_single_scalar(&single, i, 1.0);
    return wd_run(function, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

/* From [K][C/32][taps][c%32] to [C/32][taps][K/8][k%2][c/4%8][k/2%4][c%4]: see ops/conv/README.md. */
static cudnnStatus_t reorder_filter(const char *function, cudnnHandle_t handle,
                                    const struct wd_tensor *filter, const void *from, void *to)
{
    int64_t filters = filter->dim[0];
    int64_t vectors = filter->dim[1] / 32;
    int64_t taps = 1;
    for (int d = 2; d < filter->rank; ++d) taps *= filter->dim[d];
    const struct axis axes[] = {
        {filters / 8, 8 * vectors * taps * 32, 8 * 32}, /* k / 8 */
        {4, 2 * vectors * taps * 32, 4},                /* k / 2 % 4 */
        {2, vectors * taps * 32, 4 * 32},               /* k % 2 */
        {vectors, taps * 32, taps * filters * 32},      /* c / 32 */
        {8, 4, 16},                                     /* c / 4 % 8 */
        {4, 1, 1},                                      /* c % 4 */
        {taps, 32, filters * 32},
    };
    return rearrange(function, handle, CUDNN_DATA_INT8, axes, sizeof axes / sizeof axes[0], from,
                     "filterData", to, "reorderedFilterData");
}

/* Within 32 filters from [k/8%4][k/4%2][k%4] to [k/4%2][k/8%4][k%4]. */
static cudnnStatus_t reorder_bias(const char *function, cudnnHandle_t handle, int64_t filters,
                                  const void *from, void *to)
{
    const struct axis axes[] = {{filters / 32, 32, 32}, {4, 8, 4}, {2, 4, 16}, {4, 1, 1}};
    return rearrange(function, handle, CUDNN_DATA_FLOAT, axes, sizeof axes / sizeof axes[0], from,
                     "biasData", to, "reorderedBiasData");
}

static cudnnStatus_t copy(const char *function, cudnnHandle_t handle, int dtype, int64_t count,
                          const void *from, const char *from_name, void *to, const char *to_name)
{
    const struct axis axis = {count, 1, 1};
    return rearrange(function, handle, dtype, &axis, 1, from, from_name, to, to_name);
}

cudnnStatus_t cudnnReorderFilterAndBias(cudnnHandle_t handle,
                                        const cudnnFilterDescriptor_t filterDesc,
                                        cudnnReorderType_t reorderType, const void *filterData,
                                        void *reorderedFilterData, int reorderBias,
                                        const void *biasData, void *reorderedBiasData)
{
    const struct wd_tensor *filter;
    bool reorder = (int)reorderType == CUDNN_DEFAULT_REORDER;
    WD_HANDLE(handle);
    WD_DESC_SET(filterDesc, WD_DESC_FILTER);
    WD_ARG(reorder || (int)reorderType == CUDNN_NO_REORDER, CUDNN_STATUS_BAD_PARAM,
           "reorderType=%d is no cudnnReorderType_t", (int)reorderType);
    WD_ARG(filterData != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "filterData is null");
    WD_ARG(reorderedFilterData != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
           "reorderedFilterData is null");
    WD_ARG(!reorderBias || biasData != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
           "biasData is null, but the bias is to be reordered");
    WD_ARG(!reorderBias || reorderedBiasData != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
           "reorderedBiasData is null, but the bias is to be reordered");
    filter = &filterDesc->tensor;
    WD_ARG(filterDesc->declared_dtype == CUDNN_DATA_INT8x32, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
           "filterDesc is %s, only int8x32 has an order of its own",
           wd_dtype_name(filterDesc->declared_dtype));
    WD_ARG(filterDesc->declared_format == CUDNN_TENSOR_NCHW_VECT_C,
           CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "the format of filterDesc is %d, not NCHW_VECT_C",
           filterDesc->declared_format);
    WD_ARG(filter->dim[0] % 32 == 0, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "K=%lld of filterDesc is not a multiple of 32", (long long)filter->dim[0]);
    WD_ARG(filterData != reorderedFilterData, CUDNN_STATUS_BAD_PARAM,
           "filterData and reorderedFilterData are the same memory");
    WD_ARG(!reorderBias || biasData != reorderedBiasData, CUDNN_STATUS_BAD_PARAM,
           "biasData and reorderedBiasData are the same memory");
    if (reorder) {
        WD_TRY(reorder_filter(__func__, handle, filter, filterData, reorderedFilterData));
    } else {
        WD_TRY(copy(__func__, handle, CUDNN_DATA_INT8, wd_tensor_count(filter), filterData,
                    "filterData", reorderedFilterData, "reorderedFilterData"));
    }
    if (!reorderBias) return CUDNN_STATUS_SUCCESS;
    if (reorder) return reorder_bias(__func__, handle, filter->dim[0], biasData, reorderedBiasData);
    return copy(__func__, handle, CUDNN_DATA_FLOAT, filter->dim[0], biasData, "biasData",
                reorderedBiasData, "reorderedBiasData");
}
