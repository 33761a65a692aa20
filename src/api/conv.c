/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution: forward, with bias and activation, and the gradients of data, filter and bias. */
#include "api/conv.h"

#include "graph/conv.h"

enum { ALPHA, BETA };
enum { OUT = 2 };
enum { FUSED_Z = 2, FUSED_B = 3, FUSED_Y = 4 };

/* x, w and y have one type, but for 8-bit integers, whose sums may go out wider and whose image may
 * be unsigned. */
static cudnnStatus_t check_types(const struct wd_conv_call *call)
{
    int x = call->x->declared_dtype;
    int w = call->w->declared_dtype;
    int y = call->y->declared_dtype;
    bool same = x == w && w == y;
    bool bytes = wd_dtype_lane(w) == CUDNN_DATA_INT8 &&
                 (x == w || (w == CUDNN_DATA_INT8 && x == CUDNN_DATA_UINT8) ||
                  (w == CUDNN_DATA_INT8x4 && x == CUDNN_DATA_UINT8x4)) &&
                 (y == x || y == w || y == CUDNN_DATA_FLOAT || y == CUDNN_DATA_INT32 ||
                  y == CUDNN_DATA_INT8);
    if (same || bytes) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(call->function, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                      "the types of %s (%s), %s (%s) and %s (%s) do not go together", call->x_name,
                      wd_dtype_name(x), call->w_name, wd_dtype_name(w), call->y_name,
                      wd_dtype_name(y));
}

static cudnnStatus_t check_layouts(const struct wd_conv_call *call)
{
    const struct wd_tensor *tensors[2] = {&call->x->tensor, &call->y->tensor};
    const char *names[2] = {call->x_name, call->y_name};
    for (int t = 0; t < 2; ++t) {
        for (int d = 0; d < tensors[t]->rank; ++d) {
            if (tensors[t]->stride[d] >= 0) continue;
            return wd_fail_in(call->function, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
                              "stride[%d]=%lld of %s is negative", d,
                              (long long)tensors[t]->stride[d], names[t]);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_ranks(const struct wd_conv_call *call)
{
    int x = call->x->tensor.rank;
    int w = call->w->tensor.rank;
    int y = call->y->tensor.rank;
    if (x != y || x != w) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%s has %d dimensions, %s %d and %s %d", call->x_name, x, call->w_name, w,
                          call->y_name, y);
    }
    if (x < 3 || x != call->conv->spatial + 2) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%s has %d dimensions, convDesc %d spatial ones", call->x_name, x,
                          call->conv->spatial);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_conv_build(const struct wd_conv_call *call, struct wd_single *single)
{
    struct wd_tensor filter;
    bool fused = call->op == WD_OP_CONV_FUSED;
    int x = call->op == WD_OP_CONV_DGRAD ? 2 : 0;
    int w = call->op == WD_OP_CONV_DGRAD ? 0 : call->op == WD_OP_CONV_WGRAD ? 2 : 1;
    int y = fused ? FUSED_Y : call->op == WD_OP_CONV_FPROP ? 2 : 1;
    WD_TRY(wd_check_descriptor(call->function, call->x_name, WD_DESC_TENSOR, call->x, 1));
    WD_TRY(wd_check_descriptor(call->function, call->w_name, WD_DESC_FILTER, call->w, 1));
    WD_TRY(wd_check_descriptor(call->function, "convDesc", WD_DESC_CONVOLUTION, call->conv, 1));
    WD_TRY(wd_check_descriptor(call->function, call->y_name, WD_DESC_TENSOR, call->y, 1));
    WD_TRY(check_ranks(call));
    WD_TRY(check_types(call));
    WD_TRY(check_layouts(call));
    wd_single_init(single, call->op);
    single->node.attr.conv = wd_conv_attr_of(call->conv);
    filter = call->w->tensor;
    if (filter.vect_count == 32 && call->conv->reorder == CUDNN_NO_REORDER &&
        (fused || call->op == WD_OP_CONV_FPROP)) {
        filter.reordering = CUDNN_TENSOR_REORDERING_INT8x32;
    }
    wd_bind(single, x, &call->x->tensor, call->x_name, call->x_data, call->x_data_name);
    wd_bind(single, w, &filter, call->w_name, call->w_data, call->w_data_name);
    wd_bind(single, y, &call->y->tensor, call->y_name, call->y_data, call->y_data_name);
    single->attr_desc = "convDesc";
    single->workspace = "workSpace";
    single->workspace_size = "workSpaceSizeInBytes";
    wd_single_scalar(single, ALPHA, 1.0);
    wd_single_scalar(single, BETA, 0.0);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_conv_check_data(const struct wd_conv_call *call)
{
    if (call->x_data && call->w_data && call->y_data) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null",
                      !call->x_data   ? call->x_data_name
                      : !call->w_data ? call->w_data_name
                                      : call->y_data_name);
}

/* The output may lie over neither input: each of its elements needs many of theirs. */
static cudnnStatus_t check_apart(const struct wd_conv_call *call, const void *out)
{
    bool x = call->x_data == out;
    bool w = call->w_data == out;
    bool y = call->y_data == out;
    if ((int)x + (int)w + (int)y == 1) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM,
                      "%s and %s are the same memory (%p), an input and the output",
                      x ? call->x_data_name : call->w_data_name,
                      y ? call->y_data_name : call->w_data_name, out);
}

/* alpha or beta: as everywhere else, but int32 where the output is int32. */
static double scalar_of(const void *value, int dtype)
{
    return dtype == CUDNN_DATA_INT32 ? (double)*(const int32_t *)value : wd_scalar(value, dtype);
}

/* The three plain directions: the output stands in their last slot. */
static cudnnStatus_t convolve(const struct wd_conv_call *call, cudnnHandle_t handle,
                              const void *alpha, const void *beta, int algorithm, void *workspace,
                              size_t workspace_bytes)
{
    struct wd_single single;
    int out_dtype;
    WD_TRY(wd_conv_build(call, &single));
    if (!alpha || !beta) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null",
                          alpha ? "beta" : "alpha");
    }
    WD_TRY(wd_conv_check_data(call));
    WD_TRY(check_apart(call, single.data[single.node.slot[OUT]]));
    out_dtype = single.tensors[single.node.slot[OUT]].dtype;
    wd_single_scalar(&single, ALPHA, scalar_of(alpha, out_dtype));
    wd_single_scalar(&single, BETA, scalar_of(beta, out_dtype));
    return wd_conv_run(call->function, handle, &single, algorithm, workspace, workspace_bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t xDesc, const void *x,
                                      const cudnnFilterDescriptor_t wDesc, const void *w,
                                      const cudnnConvolutionDescriptor_t convDesc,
                                      cudnnConvolutionFwdAlgo_t algo, void *workSpace,
                                      size_t workSpaceSizeInBytes, const void *beta,
                                      const cudnnTensorDescriptor_t yDesc, void *y)
{
    struct wd_conv_call call = {WD_CONV_QUERY(FPROP, xDesc, wDesc, yDesc), WD_CONV_DATA(x, w, y)};
    WD_HANDLE(handle);
    return convolve(&call, handle, alpha, beta, (int)algo, workSpace, workSpaceSizeInBytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t wDesc, const void *w,
                                           const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                           const cudnnConvolutionDescriptor_t convDesc,
                                           cudnnConvolutionBwdDataAlgo_t algo, void *workSpace,
                                           size_t workSpaceSizeInBytes, const void *beta,
                                           const cudnnTensorDescriptor_t dxDesc, void *dx)
{
    struct wd_conv_call call = {WD_CONV_QUERY(DGRAD, dxDesc, wDesc, dyDesc),
                                WD_CONV_DATA(dx, w, dy)};
    WD_HANDLE(handle);
    return convolve(&call, handle, alpha, beta, (int)algo, workSpace, workSpaceSizeInBytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t xDesc, const void *x,
                                             const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                             const cudnnConvolutionDescriptor_t convDesc,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *workSpace,
                                             size_t workSpaceSizeInBytes, const void *beta,
                                             const cudnnFilterDescriptor_t dwDesc, void *dw)
{
    struct wd_conv_call call = {WD_CONV_QUERY(WGRAD, xDesc, dwDesc, dyDesc),
                                WD_CONV_DATA(x, dw, dy)};
    WD_HANDLE(handle);
    return convolve(&call, handle, alpha, beta, (int)algo, workSpace, workSpaceSizeInBytes);
}

static cudnnStatus_t check_bias(const char *function, const struct cudnnTensorStruct *bias,
                                const char *name, int rank, int64_t filters)
{
    char text[160];
    bool fits = bias->tensor.rank == rank;
    for (int d = 0; fits && d < rank; ++d) fits = bias->tensor.dim[d] == (d == 1 ? filters : 1);
    if (fits) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                      "%s (%s) is not 1 in all %d dimensions but the second, which is K=%lld", name,
                      wd_tensor_text(&bias->tensor, text, sizeof text), rank, (long long)filters);
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha,
                                           const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                           const void *beta, const cudnnTensorDescriptor_t dbDesc,
                                           void *db)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(dyDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dbDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_ARG(dyDesc->declared_dtype == dbDesc->declared_dtype, CUDNN_STATUS_BAD_PARAM,
           "dyDesc is %s, but dbDesc is %s", wd_dtype_name(dyDesc->declared_dtype),
           wd_dtype_name(dbDesc->declared_dtype));
    WD_TRY(check_bias(__func__, dbDesc, "dbDesc", dyDesc->tensor.rank, dyDesc->tensor.dim[1]));
    WD_ARG(db == NULL || db != dy, CUDNN_STATUS_BAD_PARAM,
           "dy and db are the same memory; a sum has no in-place form");
    wd_single_init(&single, WD_OP_BIAS_GRAD);
    WD_BIND(&single, 0, dyDesc, dy);
    WD_BIND(&single, 1, dbDesc, db);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, dbDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, dbDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

/* y = activation(alpha1 conv(x, w) + alpha2 z + bias) */
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnFilterDescriptor_t wDesc, const void *w, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes,
    const void *alpha2, const cudnnTensorDescriptor_t zDesc, const void *z,
    const cudnnTensorDescriptor_t biasDesc, const void *bias,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t yDesc, void *y)
{
    struct wd_conv_call call = {WD_CONV_QUERY(FUSED, xDesc, wDesc, yDesc), WD_CONV_DATA(x, w, y)};
    struct wd_single single;
    char y_text[160];
    char z_text[160];
    double residual;
    WD_HANDLE(handle);
    WD_TRY(wd_conv_build(&call, &single));
    WD_DESC_SET(zDesc, WD_DESC_TENSOR);
    WD_DESC_SET(biasDesc, WD_DESC_TENSOR);
    WD_DESC_SET(activationDesc, WD_DESC_ACTIVATION);
    WD_ARG(alpha1 != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha1 is null");
    WD_ARG(alpha2 != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha2 is null");
    WD_ARG(wd_tensor_same_dims(&zDesc->tensor, &yDesc->tensor),
           CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "zDesc (%s) has other dims than yDesc (%s)",
           wd_tensor_text(&zDesc->tensor, z_text, sizeof z_text),
           wd_tensor_text(&yDesc->tensor, y_text, sizeof y_text));
    WD_TRY(check_bias(__func__, biasDesc, "biasDesc", yDesc->tensor.rank, wDesc->tensor.dim[0]));
    WD_ARG(z == NULL || z != y ||
               (zDesc->tensor.dtype == yDesc->tensor.dtype &&
                wd_tensor_same_layout(&zDesc->tensor, &yDesc->tensor)),
           CUDNN_STATUS_BAD_PARAM,
           "z and y are the same memory, but the types or strides of zDesc and yDesc differ");
    WD_TRY(wd_conv_check_data(&call));
    WD_TRY(check_apart(&call, y));
    residual = wd_scalar(alpha2, yDesc->tensor.dtype);
    /* without a share in the result z is not read: it may be null */
    WD_ARG(z != NULL || residual == 0.0, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "z is null");
    WD_ARG(bias != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "bias is null");
    WD_ARG(bias != y, CUDNN_STATUS_BAD_PARAM, "bias and y are the same memory");
    single.node.attr.conv.activation = wd_activation_attr(activationDesc, 0);
    if (residual != 0.0) WD_BIND(&single, FUSED_Z, zDesc, z);
    WD_BIND(&single, FUSED_B, biasDesc, bias);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha1, yDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, residual);
    return wd_conv_run(__func__, handle, &single, (int)algo, workSpace, workSpaceSizeInBytes);
}
