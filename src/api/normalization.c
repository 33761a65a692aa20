/* SPDX-License-Identifier: Apache-2.0
 *
 * The newer interface of normalization: batch normalization by other names, PER_CHANNEL for SPATIAL,
 * with its statistics under a descriptor of their own, and a fused residual and activation in
 * inference too. Both values of cudnnNormAlgo_t mean the same result and run the same engines, in
 * both modes; groupCnt is reserved and must be 1. With CUDNN_NORM_OPS_NORM the arguments of the
 * activation and of z are not looked at. */
#include "api/batchnorm.h"

cudnnStatus_t cudnnDeriveNormTensorDescriptor(cudnnTensorDescriptor_t derivedNormScaleBiasDesc,
                                              cudnnTensorDescriptor_t derivedNormMeanVarDesc,
                                              const cudnnTensorDescriptor_t xDesc,
                                              cudnnNormMode_t mode, int groupCnt)
{
    struct cudnnTensorStruct x;
    WD_DESC(derivedNormScaleBiasDesc, WD_DESC_TENSOR);
    WD_DESC(derivedNormMeanVarDesc, WD_DESC_TENSOR);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_ARG(groupCnt == 1, CUDNN_STATUS_NOT_SUPPORTED,
           "groupCnt=%d is not 1, the only value that is supported", groupCnt);
    WD_TRY(wd_bn_check_mode(__func__, &wd_bn_normalization, (int)mode));
    x = *xDesc; /* which may be one of the results */
    wd_bn_derive(derivedNormScaleBiasDesc, &x, (int)mode);
    wd_bn_derive(derivedNormMeanVarDesc, &x, (int)mode);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetNormalizationTrainingReserveSpaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes, int groupCnt)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_normalization,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)normOps,
        .algo = (int)algo,
        .group_count = groupCnt,
        .activation = activationDesc,
        .x = WD_BN_DESC(xDesc),
    };
    return wd_bn_reserve(&call, sizeInBytes);
}

cudnnStatus_t cudnnGetNormalizationForwardTrainingWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc,
    const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t normScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t normMeanVarDesc,
    size_t *sizeInBytes, int groupCnt)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_normalization,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)normOps,
        .algo = (int)algo,
        .group_count = groupCnt,
        .epsilon = CUDNN_BN_MIN_EPSILON,
        .activation = activationDesc,
        .x = WD_BN_DESC(xDesc),
        .y = WD_BN_DESC(yDesc),
        .z = WD_BN_DESC(zDesc),
        .param = WD_BN_DESC(normScaleBiasDesc),
        .stats = WD_BN_DESC(normMeanVarDesc),
    };
    return wd_bn_training_workspace(&call, sizeInBytes);
}

cudnnStatus_t cudnnGetNormalizationBackwardWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
    const cudnnTensorDescriptor_t dxDesc, const cudnnTensorDescriptor_t dNormScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t normMeanVarDesc,
    size_t *sizeInBytes, int groupCnt)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_normalization,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)normOps,
        .algo = (int)algo,
        .group_count = groupCnt,
        .epsilon = CUDNN_BN_MIN_EPSILON,
        .activation = activationDesc,
        .x = WD_BN_DESC(xDesc),
        .y = WD_BN_DESC(yDesc),
        .dx = WD_BN_DESC(dxDesc),
        .dy = WD_BN_DESC(dyDesc),
        .dz = WD_BN_DESC(dzDesc),
        .param = WD_BN_DESC(dNormScaleBiasDesc),
        .stats = WD_BN_DESC(normMeanVarDesc),
    };
    return wd_bn_backward_workspace(&call, sizeInBytes);
}

cudnnStatus_t cudnnNormalizationForwardInference(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void *alpha, const void *beta, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnTensorDescriptor_t normScaleBiasDesc, const void *normScale, const void *normBias,
    const cudnnTensorDescriptor_t normMeanVarDesc, const void *estimatedMean,
    const void *estimatedVariance, const cudnnTensorDescriptor_t zDesc, const void *z,
    cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t yDesc, void *y,
    double epsilon, int groupCnt)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_normalization,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)normOps,
        .algo = (int)algo,
        .group_count = groupCnt,
        .epsilon = epsilon,
        .activation = activationDesc,
        .x = WD_BN_TENSOR(xDesc, x),
        .y = WD_BN_TENSOR(yDesc, y),
        .z = WD_BN_TENSOR(zDesc, z),
        .param = WD_BN_DESC(normScaleBiasDesc),
        .stats = WD_BN_DESC(normMeanVarDesc),
        .alpha = WD_BN_POINTER(alpha),
        .beta = WD_BN_POINTER(beta),
        .scale = WD_BN_POINTER(normScale),
        .bias = WD_BN_POINTER(normBias),
        .mean = WD_BN_POINTER(estimatedMean),
        .var = WD_BN_POINTER(estimatedVariance),
    };
    return wd_bn_inference(&call);
}

cudnnStatus_t cudnnNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void *alpha, const void *beta, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t normScaleBiasDesc, const void *normScale, const void *normBias,
    double exponentialAverageFactor, const cudnnTensorDescriptor_t normMeanVarDesc,
    void *resultRunningMean, void *resultRunningVariance, double epsilon, void *resultSaveMean,
    void *resultSaveInvVariance, cudnnActivationDescriptor_t activationDesc,
    const cudnnTensorDescriptor_t zDesc, const void *zData, const cudnnTensorDescriptor_t yDesc,
    void *yData, void *workspace, size_t workSpaceSizeInBytes, void *reserveSpace,
    size_t reserveSpaceSizeInBytes, int groupCnt)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_normalization,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)normOps,
        .algo = (int)algo,
        .group_count = groupCnt,
        .epsilon = epsilon,
        .activation = activationDesc,
        .x = WD_BN_TENSOR(xDesc, xData),
        .y = WD_BN_TENSOR(yDesc, yData),
        .z = WD_BN_TENSOR(zDesc, zData),
        .param = WD_BN_DESC(normScaleBiasDesc),
        .stats = WD_BN_DESC(normMeanVarDesc),
        .alpha = WD_BN_POINTER(alpha),
        .beta = WD_BN_POINTER(beta),
        .scale = WD_BN_POINTER(normScale),
        .bias = WD_BN_POINTER(normBias),
        .factor = exponentialAverageFactor,
        .mean = WD_BN_POINTER(resultRunningMean),
        .var = WD_BN_POINTER(resultRunningVariance),
        .saved_mean = WD_BN_POINTER(resultSaveMean),
        .saved_inv_std = WD_BN_POINTER(resultSaveInvVariance),
        .workspace_name = "workspace",
        .workspace = workspace,
        .workspace_bytes = workSpaceSizeInBytes,
        .reserve = reserveSpace,
        .reserve_bytes = reserveSpaceSizeInBytes,
    };
    return wd_bn_training(&call);
}

cudnnStatus_t cudnnNormalizationBackward(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t yDesc, const void *yData, const cudnnTensorDescriptor_t dyDesc,
    const void *dyData, const cudnnTensorDescriptor_t dzDesc, void *dzData,
    const cudnnTensorDescriptor_t dxDesc, void *dxData,
    const cudnnTensorDescriptor_t dNormScaleBiasDesc, const void *normScaleData,
    const void *normBiasData, void *dNormScaleData, void *dNormBiasData, double epsilon,
    const cudnnTensorDescriptor_t normMeanVarDesc, const void *savedMean,
    const void *savedInvVariance, cudnnActivationDescriptor_t activationDesc, void *workSpace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes, int groupCnt)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_normalization,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)normOps,
        .algo = (int)algo,
        .group_count = groupCnt,
        .epsilon = epsilon,
        .activation = activationDesc,
        .x = WD_BN_TENSOR(xDesc, xData),
        .y = WD_BN_TENSOR(yDesc, yData),
        .dx = WD_BN_TENSOR(dxDesc, dxData),
        .dy = WD_BN_TENSOR(dyDesc, dyData),
        .dz = WD_BN_TENSOR(dzDesc, dzData),
        .param = WD_BN_DESC(dNormScaleBiasDesc),
        .stats = WD_BN_DESC(normMeanVarDesc),
        .alpha = WD_BN_POINTER(alphaDataDiff),
        .beta = WD_BN_POINTER(betaDataDiff),
        .alpha_param = WD_BN_POINTER(alphaParamDiff),
        .beta_param = WD_BN_POINTER(betaParamDiff),
        .scale = WD_BN_POINTER(normScaleData),
        .bias = WD_BN_POINTER(normBiasData),
        .dscale = WD_BN_POINTER(dNormScaleData),
        .dbias = WD_BN_POINTER(dNormBiasData),
        .saved_mean = WD_BN_POINTER(savedMean),
        .saved_inv_std = WD_BN_POINTER(savedInvVariance),
        .workspace_name = "workSpace",
        .workspace = workSpace,
        .workspace_bytes = workSpaceSizeInBytes,
        .reserve = reserveSpace,
        .reserve_bytes = reserveSpaceSizeInBytes,
    };
    return wd_bn_backward(&call);
}
