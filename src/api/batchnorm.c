/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization: the descriptor of its parameters; inference, training and backward; and the
 * Ex calls, with a fused residual and activation, their workspace and their reserve space. Any mode
 * of activation descriptors is taken, with any layout and type. With CUDNN_BATCHNORM_OPS_BN, which
 * the plain calls mean, the arguments of the activation and of z are not looked at. */
#include "api/batchnorm.h"

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derivedBnDesc,
                                            const cudnnTensorDescriptor_t xDesc,
                                            cudnnBatchNormMode_t mode)
{
    WD_DESC(derivedBnDesc, WD_DESC_TENSOR);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_TRY(wd_bn_check_mode(__func__, &wd_bn_batchnorm, (int)mode));
    wd_bn_derive(derivedBnDesc, xDesc, (int)mode);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t yDesc,
    void *y, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, const void *estimatedMean, const void *estimatedVariance, double epsilon)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_batchnorm,
        .handle = handle,
        .mode = (int)mode,
        .epsilon = epsilon,
        .x = WD_BN_TENSOR(xDesc, x),
        .y = WD_BN_TENSOR(yDesc, y),
        .param = WD_BN_DESC(bnScaleBiasMeanVarDesc),
        .alpha = WD_BN_POINTER(alpha),
        .beta = WD_BN_POINTER(beta),
        .scale = WD_BN_POINTER(bnScale),
        .bias = WD_BN_POINTER(bnBias),
        .mean = WD_BN_POINTER(estimatedMean),
        .var = WD_BN_POINTER(estimatedVariance),
    };
    return wd_bn_inference(&call);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t yDesc,
    void *y, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean, void *resultSaveInvVariance)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_batchnorm,
        .handle = handle,
        .mode = (int)mode,
        .epsilon = epsilon,
        .x = WD_BN_TENSOR(xDesc, x),
        .y = WD_BN_TENSOR(yDesc, y),
        .param = WD_BN_DESC(bnScaleBiasMeanVarDesc),
        .alpha = WD_BN_POINTER(alpha),
        .beta = WD_BN_POINTER(beta),
        .scale = WD_BN_POINTER(bnScale),
        .bias = WD_BN_POINTER(bnBias),
        .factor = exponentialAverageFactor,
        .mean = WD_BN_POINTER(resultRunningMean),
        .var = WD_BN_POINTER(resultRunningVariance),
        .saved_mean = WD_BN_POINTER(resultSaveMean),
        .saved_inv_std = WD_BN_POINTER(resultSaveInvVariance),
    };
    return wd_bn_training(&call);
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alphaDataDiff,
    const void *betaDataDiff, const void *alphaParamDiff, const void *betaParamDiff,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t dyDesc,
    const void *dy, const cudnnTensorDescriptor_t dxDesc, void *dx,
    const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScale, void *dBnScaleResult,
    void *dBnBiasResult, double epsilon, const void *savedMean, const void *savedInvVariance)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_batchnorm,
        .handle = handle,
        .mode = (int)mode,
        .epsilon = epsilon,
        .x = WD_BN_TENSOR(xDesc, x),
        .dx = WD_BN_TENSOR(dxDesc, dx),
        .dy = WD_BN_TENSOR(dyDesc, dy),
        .param = WD_BN_DESC(dBnScaleBiasDesc),
        .alpha = WD_BN_POINTER(alphaDataDiff),
        .beta = WD_BN_POINTER(betaDataDiff),
        .alpha_param = WD_BN_POINTER(alphaParamDiff),
        .beta_param = WD_BN_POINTER(betaParamDiff),
        .scale = WD_BN_POINTER(bnScale),
        .dscale = WD_BN_POINTER(dBnScaleResult),
        .dbias = WD_BN_POINTER(dBnBiasResult),
        .saved_mean = WD_BN_POINTER(savedMean),
        .saved_inv_std = WD_BN_POINTER(savedInvVariance),
    };
    return wd_bn_backward(&call);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_batchnorm,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)bnOps,
        .activation = activationDesc,
        .x = WD_BN_DESC(xDesc),
    };
    return wd_bn_reserve(&call, sizeInBytes);
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc,
    const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_batchnorm,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)bnOps,
        .epsilon = CUDNN_BN_MIN_EPSILON,
        .activation = activationDesc,
        .x = WD_BN_DESC(xDesc),
        .y = WD_BN_DESC(yDesc),
        .z = WD_BN_DESC(zDesc),
        .param = WD_BN_DESC(bnScaleBiasMeanVarDesc),
    };
    return wd_bn_training_workspace(&call, sizeInBytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
    const cudnnTensorDescriptor_t dxDesc, const cudnnTensorDescriptor_t dBnScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_batchnorm,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)bnOps,
        .epsilon = CUDNN_BN_MIN_EPSILON,
        .activation = activationDesc,
        .x = WD_BN_DESC(xDesc),
        .y = WD_BN_DESC(yDesc),
        .dx = WD_BN_DESC(dxDesc),
        .dy = WD_BN_DESC(dyDesc),
        .dz = WD_BN_DESC(dzDesc),
        .param = WD_BN_DESC(dBnScaleBiasDesc),
    };
    return wd_bn_backward_workspace(&call, sizeInBytes);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t zDesc, const void *zData, const cudnnTensorDescriptor_t yDesc,
    void *yData, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean, void *resultSaveInvVariance,
    cudnnActivationDescriptor_t activationDesc, void *workspace, size_t workSpaceSizeInBytes,
    void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_batchnorm,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)bnOps,
        .epsilon = epsilon,
        .activation = activationDesc,
        .x = WD_BN_TENSOR(xDesc, xData),
        .y = WD_BN_TENSOR(yDesc, yData),
        .z = WD_BN_TENSOR(zDesc, zData),
        .param = WD_BN_DESC(bnScaleBiasMeanVarDesc),
        .alpha = WD_BN_POINTER(alpha),
        .beta = WD_BN_POINTER(beta),
        .scale = WD_BN_POINTER(bnScale),
        .bias = WD_BN_POINTER(bnBias),
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

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t yDesc, const void *yData, const cudnnTensorDescriptor_t dyDesc,
    const void *dyData, const cudnnTensorDescriptor_t dzDesc, void *dzData,
    const cudnnTensorDescriptor_t dxDesc, void *dxData,
    const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScaleData, const void *bnBiasData,
    void *dBnScaleData, void *dBnBiasData, double epsilon, const void *savedMean,
    const void *savedInvVariance, cudnnActivationDescriptor_t activationDesc, void *workSpace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    const struct wd_bn_call call = {
        .function = __func__,
        .interface = &wd_bn_batchnorm,
        .handle = handle,
        .mode = (int)mode,
        .ops = (int)bnOps,
        .epsilon = epsilon,
        .activation = activationDesc,
        .x = WD_BN_TENSOR(xDesc, xData),
        .y = WD_BN_TENSOR(yDesc, yData),
        .dx = WD_BN_TENSOR(dxDesc, dxData),
        .dy = WD_BN_TENSOR(dyDesc, dyData),
        .dz = WD_BN_TENSOR(dzDesc, dzData),
        .param = WD_BN_DESC(dBnScaleBiasDesc),
        .alpha = WD_BN_POINTER(alphaDataDiff),
        .beta = WD_BN_POINTER(betaDataDiff),
        .alpha_param = WD_BN_POINTER(alphaParamDiff),
        .beta_param = WD_BN_POINTER(betaParamDiff),
        .scale = WD_BN_POINTER(bnScaleData),
        .bias = WD_BN_POINTER(bnBiasData),
        .dscale = WD_BN_POINTER(dBnScaleData),
        .dbias = WD_BN_POINTER(dBnBiasData),
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
