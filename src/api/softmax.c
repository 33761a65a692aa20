/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax forward and backward. */
#include "api/api.h"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_DX };
enum { ALPHA, BETA };

static cudnnStatus_t check_kind(const char *function, int algorithm, int mode)
{
    if (algorithm < CUDNN_SOFTMAX_FAST || algorithm > CUDNN_SOFTMAX_LOG) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "algo=%d is no cudnnSoftmaxAlgorithm_t",
                          algorithm);
    }
    if (mode != CUDNN_SOFTMAX_MODE_INSTANCE && mode != CUDNN_SOFTMAX_MODE_CHANNEL) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnSoftmaxMode_t",
                          mode);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                  cudnnSoftmaxMode_t mode, const void *alpha,
                                  const cudnnTensorDescriptor_t xDesc, const void *x,
                                  const void *beta, const cudnnTensorDescriptor_t yDesc, void *y)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(check_kind(__func__, (int)algo, (int)mode));
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_TRY(wd_check_same_tensor(__func__, xDesc, "xDesc", yDesc, "yDesc"));
    WD_ARG(x != y || wd_tensor_same_layout(&xDesc->tensor, &yDesc->tensor), CUDNN_STATUS_BAD_PARAM,
           "x and y are the same memory, but the strides of xDesc and yDesc differ");
    wd_single_init(&single, WD_OP_SOFTMAX_FORWARD);
    single.node.attr.softmax.algorithm = (int32_t)algo;
    single.node.attr.softmax.mode = (int32_t)mode;
    WD_BIND(&single, FORWARD_X, xDesc, x);
    WD_BIND(&single, FORWARD_Y, yDesc, y);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, yDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, yDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                   cudnnSoftmaxMode_t mode, const void *alpha,
                                   const cudnnTensorDescriptor_t yDesc, const void *y,
                                   const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                   const void *beta, const cudnnTensorDescriptor_t dxDesc, void *dx)
{
    struct wd_single single;
    char a[160];
    char b[160];
    WD_HANDLE(handle);
    WD_TRY(check_kind(__func__, (int)algo, (int)mode));
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dyDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dxDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_TRY(wd_check_same_tensor(__func__, yDesc, "yDesc", dyDesc, "dyDesc"));
    WD_TRY(wd_check_same_tensor(__func__, dxDesc, "dxDesc", dyDesc, "dyDesc"));
    WD_ARG(wd_tensor_same_layout(&yDesc->tensor, &dyDesc->tensor), CUDNN_STATUS_BAD_PARAM,
           "the strides of yDesc (%s) differ from those of dyDesc (%s)",
           wd_tensor_text(&yDesc->tensor, a, sizeof a),
           wd_tensor_text(&dyDesc->tensor, b, sizeof b));
    WD_ARG((dx != dy && dx != y) || wd_tensor_same_layout(&dxDesc->tensor, &dyDesc->tensor),
           CUDNN_STATUS_BAD_PARAM,
           "dx is the memory of %s, but the strides of dxDesc and dyDesc differ",
           dx == dy ? "dy" : "y");
    wd_single_init(&single, WD_OP_SOFTMAX_BACKWARD);
    single.node.attr.softmax.algorithm = (int32_t)algo;
    single.node.attr.softmax.mode = (int32_t)mode;
    WD_BIND(&single, BACKWARD_Y, yDesc, y);
    WD_BIND(&single, BACKWARD_DY, dyDesc, dy);
    WD_BIND(&single, BACKWARD_DX, dxDesc, dx);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, dxDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, dxDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}
