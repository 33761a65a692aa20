/* SPDX-License-Identifier: Apache-2.0
 *
 * The newer interface of normalization: batch normalization by other names, PER_CHANNEL for SPATIAL,
 * with its statistics under a descriptor of their own, and a fused residual and activation in
 * inference too. Both values of cudnnNormAlgo_t mean the same result and run the same engines, in
 * both modes; groupCnt is reserved and must be 1. With CUDNN_NORM_OPS_NORM the arguments of the
 * activation and of z are not looked at. */
#include "api/batchnorm.h"
#include "graph/norm_shape.h"

_Static_assert((int)CUDNN_NORM_PER_ACTIVATION == (int)CUDNN_BATCHNORM_PER_ACTIVATION &&
                   (int)CUDNN_NORM_PER_CHANNEL == (int)CUDNN_BATCHNORM_SPATIAL,
               "the modes are batch normalization's");
_Static_assert((int)CUDNN_NORM_OPS_NORM == (int)CUDNN_BATCHNORM_OPS_BN &&
                   (int)CUDNN_NORM_OPS_NORM_ADD_ACTIVATION ==
                       (int)CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
               "so are the operations");

static const struct wd_bn_words norm_words = {"cudnnNormMode_t", "normOps", "cudnnNormOps_t",
                                              "normScale", "normBias"};

static bool is_mode(int mode)
{
    return mode == CUDNN_NORM_PER_ACTIVATION || mode == CUDNN_NORM_PER_CHANNEL;
}

static bool is_ops(int ops)
{
    return ops >= CUDNN_NORM_OPS_NORM && ops <= CUDNN_NORM_OPS_NORM_ADD_ACTIVATION;
}

/* What this interface has beyond batch normalization's. */
static cudnnStatus_t check_choices(const char *function, int mode, int algo, int group_count)
{
    if (!is_mode(mode)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnNormMode_t", mode);
    }
    if (algo != CUDNN_NORM_ALGO_STANDARD && algo != CUDNN_NORM_ALGO_PERSIST) {
        /* an unknown algorithm is documented as not supported */
        return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED, "algo=%d is no cudnnNormAlgo_t",
                          algo);
    }
    if (group_count != 1) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "groupCnt=%d is not 1, the only value that is supported", group_count);
    }
    return CUDNN_STATUS_SUCCESS;
}

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
    WD_ARG(is_mode((int)mode), CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnNormMode_t", (int)mode);
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
    const struct wd_bn_common common = {
        .mode = (int)mode, .ops = (int)normOps, .activation = activationDesc};
    struct wd_norm_attr attr;
    WD_HANDLE(handle);
    WD_TRY(check_choices(__func__, (int)mode, (int)algo, groupCnt));
    WD_ARG(is_ops((int)normOps), CUDNN_STATUS_BAD_PARAM, "normOps=%d is no cudnnNormOps_t",
           (int)normOps);
    if (normOps != CUDNN_NORM_OPS_NORM) WD_DESC_SET(activationDesc, WD_DESC_ACTIVATION);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    attr = wd_bn_attr(&common);
    *sizeInBytes =
        (size_t)wd_norm_reserve_bytes(&attr, xDesc->tensor.dtype, wd_tensor_count(&xDesc->tensor));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetNormalizationForwardTrainingWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc,
    const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t normScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t normMeanVarDesc,
    size_t *sizeInBytes, int groupCnt)
{
    const struct wd_bn_training call = {
        .common = {.function = __func__,
                   .words = &norm_words,
                   .mode = (int)mode,
                   .ops = (int)normOps,
                   .epsilon = CUDNN_BN_MIN_EPSILON,
                   .x = {xDesc, "xDesc", NULL, "xData"},
                   .y = {yDesc, "yDesc", NULL, "yData"},
                   .activation = activationDesc,
                   .param = normScaleBiasDesc,
                   .param_name = "normScaleBiasDesc",
                   .stats = normMeanVarDesc,
                   .stats_name = "normMeanVarDesc"},
        .z = {zDesc, "zDesc", NULL, "zData"},
    };
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(check_choices(__func__, (int)mode, (int)algo, groupCnt));
    WD_TRY(wd_bn_check_common(&call.common));
    if (normOps == CUDNN_NORM_OPS_NORM_ADD_ACTIVATION) {
        WD_TRY(wd_bn_check_like(&call.common, &call.z, NULL));
    }
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    wd_bn_bind_training(&call, &single);
    return wd_run_workspace(__func__, handle, &single, sizeInBytes);
}

cudnnStatus_t cudnnGetNormalizationBackwardWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
    const cudnnTensorDescriptor_t dxDesc, const cudnnTensorDescriptor_t dNormScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t normMeanVarDesc,
    size_t *sizeInBytes, int groupCnt)
{
    const struct wd_bn_backward call = {
        .common = {.function = __func__,
                   .words = &norm_words,
                   .mode = (int)mode,
                   .ops = (int)normOps,
                   .epsilon = CUDNN_BN_MIN_EPSILON,
                   .x = {xDesc, "xDesc", NULL, "xData"},
                   .y = {dxDesc, "dxDesc", NULL, "dxData"},
                   .activation = activationDesc,
                   .param = dNormScaleBiasDesc,
                   .param_name = "dNormScaleBiasDesc",
                   .stats = normMeanVarDesc,
                   .stats_name = "normMeanVarDesc"},
        .dy = {dyDesc, "dyDesc", NULL, "dyData"},
        .dz = {dzDesc, "dzDesc", NULL, "dzData"},
    };
    const struct wd_bn_data y = {yDesc, "yDesc", NULL, "yData"};
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(check_choices(__func__, (int)mode, (int)algo, groupCnt));
    WD_TRY(wd_bn_check_common(&call.common));
    WD_TRY(wd_bn_check_like(&call.common, &call.dy, NULL));
    if (normOps != CUDNN_NORM_OPS_NORM) WD_TRY(wd_bn_check_like(&call.common, &y, NULL));
    if (normOps == CUDNN_NORM_OPS_NORM_ADD_ACTIVATION) {
        WD_TRY(wd_bn_check_like(&call.common, &call.dz, NULL));
    }
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    /* without saved statistics: what is enough for them is enough with */
    wd_bn_bind_backward(&call, &single);
    return wd_run_workspace(__func__, handle, &single, sizeInBytes);
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
    const struct wd_bn_inference call = {
        .common = {.function = __func__,
                   .words = &norm_words,
                   .mode = (int)mode,
                   .ops = (int)normOps,
                   .epsilon = epsilon,
                   .x = {xDesc, "xDesc", x, "x"},
                   .y = {yDesc, "yDesc", y, "y"},
                   .activation = activationDesc,
                   .param = normScaleBiasDesc,
                   .param_name = "normScaleBiasDesc",
                   .stats = normMeanVarDesc,
                   .stats_name = "normMeanVarDesc"},
        .alpha = alpha,
        .beta = beta,
        .z = {zDesc, "zDesc", z, "z"},
        .scale = normScale,
        .bias = normBias,
        .mean = estimatedMean,
        .var = estimatedVariance,
    };
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(check_choices(__func__, (int)mode, (int)algo, groupCnt));
    WD_TRY(wd_bn_make_inference(&call, &single));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
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
    const struct wd_bn_training call = {
        .common = {.function = __func__,
                   .words = &norm_words,
                   .mode = (int)mode,
                   .ops = (int)normOps,
                   .epsilon = epsilon,
                   .x = {xDesc, "xDesc", xData, "xData"},
                   .y = {yDesc, "yDesc", yData, "yData"},
                   .activation = activationDesc,
                   .param = normScaleBiasDesc,
                   .param_name = "normScaleBiasDesc",
                   .stats = normMeanVarDesc,
                   .stats_name = "normMeanVarDesc"},
        .alpha = alpha,
        .beta = beta,
        .z = {zDesc, "zDesc", zData, "zData"},
        .scale = normScale,
        .bias = normBias,
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
    WD_TRY(check_choices(__func__, (int)mode, (int)algo, groupCnt));
    WD_TRY(wd_bn_make_training(&call, &single));
    single.workspace = "workspace";
    single.workspace_size = "workSpaceSizeInBytes";
    return wd_run(__func__, handle, &single, workspace, wd_bytes_given(workSpaceSizeInBytes));
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
    const struct wd_bn_backward call = {
        .common = {.function = __func__,
                   .words = &norm_words,
                   .mode = (int)mode,
                   .ops = (int)normOps,
                   .epsilon = epsilon,
                   .x = {xDesc, "xDesc", xData, "xData"},
                   .y = {dxDesc, "dxDesc", dxData, "dxData"},
                   .activation = activationDesc,
                   .param = dNormScaleBiasDesc,
                   .param_name = "dNormScaleBiasDesc",
                   .stats = normMeanVarDesc,
                   .stats_name = "normMeanVarDesc"},
        .alpha_data = alphaDataDiff,
        .beta_data = betaDataDiff,
        .alpha_param = alphaParamDiff,
        .beta_param = betaParamDiff,
        .dy = {dyDesc, "dyDesc", dyData, "dyData"},
        .dz = {dzDesc, "dzDesc", dzData, "dzData"},
        .scale = normScaleData,
        .dscale = dNormScaleData,
        .dbias = dNormBiasData,
        .scale_name = "normScaleData",
        .dscale_name = "dNormScaleData",
        .dbias_name = "dNormBiasData",
        .saved_mean = savedMean,
        .saved_inv_std = savedInvVariance,
        .reserve = reserveSpace,
        .reserve_bytes = reserveSpaceSizeInBytes,
    };
    const struct wd_bn_data y = {yDesc, "yDesc", yData, "yData"};
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(check_choices(__func__, (int)mode, (int)algo, groupCnt));
    WD_TRY(wd_bn_make_backward(&call, &single));
    if (normOps != CUDNN_NORM_OPS_NORM) {
        /* what the activation did stands in the reserve space; y and the bias are checked alone */
        const struct wd_bn_pointer forward[] = {
            {yData, "yData"}, {normBiasData, "normBiasData"}, {NULL, NULL}};
        WD_TRY(wd_bn_check_like(&call.common, &y, NULL));
        WD_TRY(wd_bn_check_pointers(__func__, forward));
    }
    single.workspace = "workSpace";
    single.workspace_size = "workSpaceSizeInBytes";
    return wd_run(__func__, handle, &single, workSpace, wd_bytes_given(workSpaceSizeInBytes));
}
