/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation descriptors, and activation forward and backward: pointwise nodes. */
#include <math.h>

#include "api/api.h"

enum { X, B, T, Y };
enum { ALPHA1, ALPHA2, ALPHA, BETA };

static bool is_mode(int mode)
{
    return mode >= CUDNN_ACTIVATION_SIGMOID && mode <= CUDNN_ACTIVATION_SWISH;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *activationDesc)
{
    WD_TRY(WD_DESC_CREATE(WD_DESC_ACTIVATION, activationDesc));
    (*activationDesc)->swish_beta = 1.0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activationDesc)
{
    return WD_DESC_DESTROY(WD_DESC_ACTIVATION, activationDesc);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
                                           cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t reluNanOpt, double coef)
{
    WD_DESC(activationDesc, WD_DESC_ACTIVATION);
    WD_ARG(is_mode((int)mode), CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnActivationMode_t",
           (int)mode);
    WD_ARG((int)reluNanOpt == CUDNN_NOT_PROPAGATE_NAN || (int)reluNanOpt == CUDNN_PROPAGATE_NAN,
           CUDNN_STATUS_BAD_PARAM, "reluNanOpt=%d is no cudnnNanPropagation_t", (int)reluNanOpt);
    activationDesc->mode = (int32_t)mode;
    activationDesc->propagate_nan = (int32_t)reluNanOpt;
    activationDesc->coef = coef;
    activationDesc->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t activationDesc,
                                           cudnnActivationMode_t *mode,
                                           cudnnNanPropagation_t *reluNanOpt, double *coef)
{
    WD_DESC(activationDesc, WD_DESC_ACTIVATION);
    if (mode) *mode = (cudnnActivationMode_t)activationDesc->mode;
    if (reluNanOpt) *reluNanOpt = (cudnnNanPropagation_t)activationDesc->propagate_nan;
    if (coef) *coef = activationDesc->coef;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activationDesc,
                                                    double swish_beta)
{
    WD_DESC(activationDesc, WD_DESC_ACTIVATION);
    activationDesc->swish_beta = swish_beta;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activationDesc,
                                                    double *swish_beta)
{
    WD_DESC(activationDesc, WD_DESC_ACTIVATION);
    WD_ARG(swish_beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "swish_beta is null");
    *swish_beta = activationDesc->swish_beta;
    return CUDNN_STATUS_SUCCESS;
}

struct wd_pointwise_attr wd_activation_attr(const struct cudnnActivationStruct *activation,
                                            int backward)
{
    struct wd_pointwise_attr attr = {
        .compute = CUDNN_DATA_FLOAT,
        .propagate_nan = activation->propagate_nan,
        .upper_clip = HUGE_VAL,
        .elu_alpha = activation->coef,
        .swish_beta = activation->swish_beta,
    };
    static const int32_t modes[][2] = {
        [CUDNN_ACTIVATION_SIGMOID] = {CUDNN_POINTWISE_SIGMOID_FWD, CUDNN_POINTWISE_SIGMOID_BWD},
        [CUDNN_ACTIVATION_RELU] = {CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_RELU_BWD},
        [CUDNN_ACTIVATION_TANH] = {CUDNN_POINTWISE_TANH_FWD, CUDNN_POINTWISE_TANH_BWD},
        [CUDNN_ACTIVATION_CLIPPED_RELU] = {CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_RELU_BWD},
        [CUDNN_ACTIVATION_ELU] = {CUDNN_POINTWISE_ELU_FWD, CUDNN_POINTWISE_ELU_BWD},
        [CUDNN_ACTIVATION_IDENTITY] = {CUDNN_POINTWISE_IDENTITY, CUDNN_POINTWISE_IDENTITY},
        [CUDNN_ACTIVATION_SWISH] = {CUDNN_POINTWISE_SWISH_FWD, CUDNN_POINTWISE_SWISH_BWD},
    };
    attr.mode = modes[activation->mode][backward != 0];
    if (activation->mode == CUDNN_ACTIVATION_CLIPPED_RELU) attr.upper_clip = activation->coef;
    return attr;
}

/* Identity is for the fused calls alone. */
static cudnnStatus_t check_mode(const char *function,
                                const struct cudnnActivationStruct *activation)
{
    if (activation->mode != CUDNN_ACTIVATION_IDENTITY) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                      "the mode of activationDesc is IDENTITY, which only "
                      "cudnnConvolutionBiasActivationForward takes");
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle,
                                     cudnnActivationDescriptor_t activationDesc, const void *alpha,
                                     const cudnnTensorDescriptor_t xDesc, const void *x,
                                     const void *beta, const cudnnTensorDescriptor_t yDesc, void *y)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(activationDesc, WD_DESC_ACTIVATION);
    WD_TRY(check_mode(__func__, activationDesc));
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_TRY(wd_check_same_tensor(__func__, xDesc, "xDesc", yDesc, "yDesc"));
    WD_IN_PLACE(y, yDesc, x, xDesc);
    wd_single_init(&single, WD_OP_POINTWISE);
    single.attr_desc = "activationDesc";
    single.node.attr.pointwise = wd_activation_attr(activationDesc, 0);
    WD_BIND(&single, X, xDesc, x);
    WD_BIND(&single, Y, yDesc, y);
    wd_single_scalar(&single, ALPHA1, 1.0);
    wd_single_scalar(&single, ALPHA2, 1.0);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, yDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, yDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle,
                                      cudnnActivationDescriptor_t activationDesc, const void *alpha,
                                      const cudnnTensorDescriptor_t yDesc, const void *y,
                                      const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                      const cudnnTensorDescriptor_t xDesc, const void *x,
                                      const void *beta, const cudnnTensorDescriptor_t dxDesc,
                                      void *dx)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(activationDesc, WD_DESC_ACTIVATION);
    WD_TRY(check_mode(__func__, activationDesc));
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dyDesc, WD_DESC_TENSOR);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dxDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_TRY(wd_check_same_tensor(__func__, yDesc, "yDesc", dyDesc, "dyDesc"));
    WD_TRY(wd_check_same_tensor(__func__, xDesc, "xDesc", dyDesc, "dyDesc"));
    WD_TRY(wd_check_same_tensor(__func__, dxDesc, "dxDesc", dyDesc, "dyDesc"));
    WD_IN_PLACE(dx, dxDesc, dy, dyDesc);
    WD_IN_PLACE(dx, dxDesc, x, xDesc);
    WD_IN_PLACE(dx, dxDesc, y, yDesc);
    wd_single_init(&single, WD_OP_POINTWISE);
    single.attr_desc = "activationDesc";
    single.node.attr.pointwise = wd_activation_attr(activationDesc, 1);
    WD_BIND(&single, X, xDesc, x);
    WD_BIND(&single, B, dyDesc, dy);
    WD_BIND(&single, T, yDesc, y);
    WD_BIND(&single, Y, dxDesc, dx);
    wd_single_scalar(&single, ALPHA1, 1.0);
    wd_single_scalar(&single, ALPHA2, 1.0);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, dxDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, dxDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}
