/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization with a fused residual and activation, its workspace and its reserve space.
 * Any mode of activation descriptors is taken, with any layout and type. With
 * CUDNN_BATCHNORM_OPS_BN the arguments of the activation and of z are not looked at. */
#include "api/batchnorm.h"
#include "graph/norm_shape.h"

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes)
{
    struct wd_norm_attr attr;
    struct wd_bn_common common = {
        .mode = (int)mode, .ops = (int)bnOps, .activation = activationDesc};
    WD_HANDLE(handle);
    WD_ARG((int)mode >= CUDNN_BATCHNORM_PER_ACTIVATION &&
               (int)mode <= CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
           CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnBatchNormMode_t", (int)mode);
    WD_ARG((int)bnOps >= CUDNN_BATCHNORM_OPS_BN &&
               (int)bnOps <= CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
           CUDNN_STATUS_BAD_PARAM, "bnOps=%d is no cudnnBatchNormOps_t", (int)bnOps);
    if (bnOps != CUDNN_BATCHNORM_OPS_BN) WD_DESC_SET(activationDesc, WD_DESC_ACTIVATION);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    attr = wd_bn_attr(&common);
    *sizeInBytes =
        (size_t)wd_norm_reserve_bytes(&attr, xDesc->tensor.dtype, wd_tensor_count(&xDesc->tensor));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc,
    const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    const struct wd_bn_training call = {
        .common = {.function = __func__,
                   .words = &wd_bn_words,
                   .mode = (int)mode,
                   .ops = (int)bnOps,
                   .epsilon = CUDNN_BN_MIN_EPSILON,
                   .x = {xDesc, "xDesc", NULL, "xData"},
                   .y = {yDesc, "yDesc", NULL, "yData"},
                   .activation = activationDesc,
                   .param = bnScaleBiasMeanVarDesc,
                   .param_name = "bnScaleBiasMeanVarDesc"},
        .z = {zDesc, "zDesc", NULL, "zData"},
    };
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(wd_bn_check_common(&call.common));
    if (bnOps == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        WD_TRY(wd_bn_check_like(&call.common, &call.z, NULL));
    }
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    /* statistics that are saved or averaged take no workspace: one answer serves all */
    wd_bn_bind_training(&call, &single);
    return wd_run_workspace(__func__, handle, &single, sizeInBytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
    const cudnnTensorDescriptor_t dxDesc, const cudnnTensorDescriptor_t dBnScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    const struct wd_bn_backward call = {
        .common = {.function = __func__,
                   .words = &wd_bn_words,
                   .mode = (int)mode,
                   .ops = (int)bnOps,
                   .epsilon = CUDNN_BN_MIN_EPSILON,
                   .x = {xDesc, "xDesc", NULL, "xData"},
                   .y = {dxDesc, "dxDesc", NULL, "dxData"},
                   .activation = activationDesc,
                   .param = dBnScaleBiasDesc,
                   .param_name = "dBnScaleBiasDesc"},
        .dy = {dyDesc, "dyDesc", NULL, "dyData"},
        .dz = {dzDesc, "dzDesc", NULL, "dzData"},
    };
    const struct wd_bn_data y = {yDesc, "yDesc", NULL, "yData"};
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(wd_bn_check_common(&call.common));
    WD_TRY(wd_bn_check_like(&call.common, &call.dy, NULL));
    if (bnOps != CUDNN_BATCHNORM_OPS_BN) WD_TRY(wd_bn_check_like(&call.common, &y, NULL));
    if (bnOps == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        WD_TRY(wd_bn_check_like(&call.common, &call.dz, NULL));
    }
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    /* without saved statistics: what is enough for them is enough with */
    wd_bn_bind_backward(&call, &single);
    return wd_run_workspace(__func__, handle, &single, sizeInBytes);
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
    const struct wd_bn_training call = {
        .common = {.function = __func__,
                   .words = &wd_bn_words,
                   .mode = (int)mode,
                   .ops = (int)bnOps,
                   .epsilon = epsilon,
                   .x = {xDesc, "xDesc", xData, "xData"},
                   .y = {yDesc, "yDesc", yData, "yData"},
                   .activation = activationDesc,
                   .param = bnScaleBiasMeanVarDesc,
                   .param_name = "bnScaleBiasMeanVarDesc"},
        .alpha = alpha,
        .beta = beta,
        .z = {zDesc, "zDesc", zData, "zData"},
        .scale = bnScale,
        .bias = bnBias,
        .factor = exponentialAverageFactor,
        .running_mean = resultRunningMean,
        .running_var = resultRunningVariance,
        .saved_mean = resultSaveMean,
        .saved_inv_std = resultSaveInvVariance,
        .reserve = reserveSpace,
        .reserve_bytes = reserveSpaceSizeInBytes,
    };
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(wd_bn_make_training(&call, &single));
    single.workspace = "workspace";
    single.workspace_size = "workSpaceSizeInBytes";
    return wd_run(__func__, handle, &single, workspace, wd_bytes_given(workSpaceSizeInBytes));
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
    const struct wd_bn_backward call = {
        .common = {.function = __func__,
                   .words = &wd_bn_words,
                   .mode = (int)mode,
                   .ops = (int)bnOps,
                   .epsilon = epsilon,
                   .x = {xDesc, "xDesc", xData, "xData"},
                   .y = {dxDesc, "dxDesc", dxData, "dxData"},
                   .activation = activationDesc,
                   .param = dBnScaleBiasDesc,
                   .param_name = "dBnScaleBiasDesc"},
        .alpha_data = alphaDataDiff,
        .beta_data = betaDataDiff,
        .alpha_param = alphaParamDiff,
        .beta_param = betaParamDiff,
        .dy = {dyDesc, "dyDesc", dyData, "dyData"},
        .dz = {dzDesc, "dzDesc", dzData, "dzData"},
        .scale = bnScaleData,
        .dscale = dBnScaleData,
        .dbias = dBnBiasData,
        .scale_name = "bnScaleData",
        .dscale_name = "dBnScaleData",
        .dbias_name = "dBnBiasData",
        .saved_mean = savedMean,
        .saved_inv_std = savedInvVariance,
        .reserve = reserveSpace,
        .reserve_bytes = reserveSpaceSizeInBytes,
    };
    const struct wd_bn_data y = {yDesc, "yDesc", yData, "yData"};
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(wd_bn_make_backward(&call, &single));
    if (bnOps != CUDNN_BATCHNORM_OPS_BN) {
        /* what the activation did stands in the reserve space; y and the bias are checked alone */
        const struct wd_bn_pointer forward[] = {
            {yData, "yData"}, {bnBiasData, "bnBiasData"}, {NULL, NULL}};
        WD_TRY(wd_bn_check_like(&call.common, &y, NULL));
        WD_TRY(wd_bn_check_pointers(__func__, forward));
    }
    single.workspace = "workSpace";
    single.workspace_size = "workSpaceSizeInBytes";
    return wd_run(__func__, handle, &single, workSpace, wd_bytes_given(workSpaceSizeInBytes));
}
