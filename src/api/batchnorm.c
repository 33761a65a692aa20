/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization: the descriptor of its parameters, inference, training and backward. The
 * calls with a fused activation are in batchnorm_ex.c and share the checks that stand here. Ranks
 * other than 4 and 5 are taken too. */
#include "api/batchnorm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/norm_shape.h"

enum { INFER_X, INFER_SCALE, INFER_BIAS, INFER_MEAN, INFER_VAR, INFER_Z, INFER_Y };
enum {
    TRAIN_X,
    TRAIN_SCALE,
    TRAIN_BIAS,
    TRAIN_Z,
    TRAIN_Y,
    TRAIN_RUNNING_MEAN,
    TRAIN_RUNNING_VAR,
    TRAIN_SAVED_MEAN,
    TRAIN_SAVED_INV_STD,
    TRAIN_RESERVE
};
enum {
    GRAD_X,
    GRAD_DY,
    GRAD_SCALE,
    GRAD_SAVED_MEAN,
    GRAD_SAVED_INV_STD,
    GRAD_RESERVE,
    GRAD_DX,
    GRAD_DSCALE,
    GRAD_DBIAS,
    GRAD_DZ
};
enum { ALPHA, BETA, FACTOR };
enum { ALPHA_DATA, BETA_DATA, ALPHA_PARAM, BETA_PARAM };

const struct wd_bn_words wd_bn_words = {"cudnnBatchNormMode_t", "bnOps", "cudnnBatchNormOps_t",
                                        "bnScale", "bnBias"};

/* fp64 for fp64, fp32 for what fp32 can hold. */
static int param_dtype(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_INT8: return CUDNN_DATA_FLOAT;
    default: return dtype;
    }
}

static bool is_mode(int mode)
{
    return mode >= CUDNN_BATCHNORM_PER_ACTIVATION && mode <= CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
}

void wd_bn_derive(struct cudnnTensorStruct *result, const struct cudnnTensorStruct *x, int mode)
{
    struct wd_tensor derived = x->tensor;
    for (int d = 0; d < derived.rank; ++d) {
        if (!wd_norm_is_param_axis(mode, d)) derived.dim[d] = 1;
    }
    if (derived.vect_count > 1) {
        int64_t units[WD_MAX_RANK];
        memcpy(units, derived.dim, sizeof units);
        units[derived.vect_dim] /= derived.vect_count;
        wd_strides_nchw(units, derived.rank, derived.stride);
        result->declared_dtype = x->declared_dtype;
        result->declared_format = -1;
    } else {
        derived.dtype = param_dtype(derived.dtype);
        wd_strides_nchw(derived.dim, derived.rank, derived.stride);
        result->declared_dtype = derived.dtype;
        result->declared_format = CUDNN_TENSOR_NCHW;
    }
    result->tensor = derived;
    result->head.set = 1;
}

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derivedBnDesc,
                                            const cudnnTensorDescriptor_t xDesc,
                                            cudnnBatchNormMode_t mode)
{
    WD_DESC(derivedBnDesc, WD_DESC_TENSOR);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_ARG(is_mode((int)mode), CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnBatchNormMode_t",
           (int)mode);
    wd_bn_derive(derivedBnDesc, xDesc, (int)mode);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_bn_check_pointers(const char *function, const struct wd_bn_pointer *pointers)
{
    for (; pointers->name; ++pointers) {
        if (pointers->pointer) continue;
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null",
                          pointers->name);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_bn_check_pair(const char *function, const void *a, const char *a_name,
                               const void *b, const char *b_name)
{
    if ((a == NULL) == (b == NULL)) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                      "%s is null, but %s is not: both or neither", a ? b_name : a_name,
                      a ? a_name : b_name);
}

cudnnStatus_t wd_bn_check_like(const struct wd_bn_common *call, const struct wd_bn_data *tensor,
                               const struct wd_bn_data *over)
{
    const struct wd_tensor *x;
    const struct wd_tensor *t;
    char own[160];
    char its[160];
    WD_TRY(wd_check_descriptor(call->function, tensor->desc_name, WD_DESC_TENSOR, tensor->desc, 1));
    x = &call->x.desc->tensor;
    t = &tensor->desc->tensor;
    if (!wd_tensor_same_dims(t, x)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "the dims of %s (%s) differ from those of %s (%s)", tensor->desc_name,
                          wd_tensor_text(t, own, sizeof own), call->x.desc_name,
                          wd_tensor_text(x, its, sizeof its));
    }
    if (t->dtype != x->dtype) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM, "%s is %s, but %s is %s",
                          tensor->desc_name, wd_dtype_name(t->dtype), call->x.desc_name,
                          wd_dtype_name(x->dtype));
    }
    if (over && over->desc && tensor->data && tensor->data == over->data &&
        !wd_tensor_same_layout(t, &over->desc->tensor)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM,
                          "%s and %s are the same memory, but the strides of %s and %s differ",
                          tensor->name, over->name, tensor->desc_name, over->desc_name);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_param(const struct wd_bn_common *call,
                                 const struct cudnnTensorStruct *desc, const char *name)
{
    const struct wd_tensor *x = &call->x.desc->tensor;
    const struct wd_tensor *param;
    bool fits;
    char own[160];
    char its[160];
    WD_TRY(wd_check_descriptor(call->function, name, WD_DESC_TENSOR, desc, 1));
    param = &desc->tensor;
    fits = param->rank == x->rank;
    for (int d = 0; fits && d < x->rank; ++d) {
        fits = param->dim[d] == (wd_norm_is_param_axis(call->mode, d) ? x->dim[d] : 1);
    }
    if (!fits) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "the dims of %s (%s) are not those that mode %d derives from %s (%s)",
                          name, wd_tensor_text(param, own, sizeof own), call->mode,
                          call->x.desc_name, wd_tensor_text(x, its, sizeof its));
    }
    if (param->dtype != param_dtype(x->dtype)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM, "%s is %s; for %s of %s it is %s",
                          name, wd_dtype_name(param->dtype), call->x.desc_name,
                          wd_dtype_name(x->dtype), wd_dtype_name(param_dtype(x->dtype)));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_bn_check_common(const struct wd_bn_common *call)
{
    if (!is_mode(call->mode)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM, "mode=%d is no %s", call->mode,
                          call->words->mode_type);
    }
    if (call->ops < CUDNN_BATCHNORM_OPS_BN || call->ops > CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM, "%s=%d is no %s",
                          call->words->ops, call->ops, call->words->ops_type);
    }
    if (!(call->epsilon >= CUDNN_BN_MIN_EPSILON) || !isfinite(call->epsilon)) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM,
                          "epsilon=%g is not a number of at least CUDNN_BN_MIN_EPSILON=%g",
                          call->epsilon, CUDNN_BN_MIN_EPSILON);
    }
    if (call->ops != CUDNN_BATCHNORM_OPS_BN) {
        WD_TRY(wd_check_descriptor(call->function, "activationDesc", WD_DESC_ACTIVATION,
                                   call->activation, 1));
    }
    WD_TRY(wd_check_descriptor(call->function, call->x.desc_name, WD_DESC_TENSOR, call->x.desc, 1));
    WD_TRY(wd_bn_check_like(call, &call->y, &call->x));
    WD_TRY(check_param(call, call->param, call->param_name));
    return call->stats_name ? check_param(call, call->stats, call->stats_name)
                            : CUDNN_STATUS_SUCCESS;
}

struct wd_norm_attr wd_bn_attr(const struct wd_bn_common *call)
{
    struct wd_norm_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.mode = call->mode;
    attr.ops = call->ops;
    attr.epsilon = call->epsilon;
    if (call->ops != CUDNN_BATCHNORM_OPS_BN)
        attr.activation = wd_activation_attr(call->activation, 0);
    return attr;
}

static void bind_param(struct wd_single *single, int slot, const struct wd_bn_common *call,
                       const void *data, const char *name)
{
    wd_bind(single, slot, &call->param->tensor, call->param_name, data, name);
}

/* Statistics, where they are given. */
static void bind_stats(struct wd_single *single, int slot, const struct wd_bn_common *call,
                       const void *data, const char *name)
{
    if (!data) return;
    if (call->stats_name) wd_bind(single, slot, &call->stats->tensor, call->stats_name, data, name);
    else bind_param(single, slot, call, data, name);
}

static void bind_data(struct wd_single *single, int slot, const struct wd_bn_data *tensor)
{
    wd_bind(single, slot, &tensor->desc->tensor, tensor->desc_name, tensor->data, tensor->name);
}

/* The reserve space, as large as it is needed. */
static void bind_reserve(struct wd_single *single, int slot, const struct wd_bn_common *call,
                         const void *data)
{
    const struct wd_tensor *x = &call->x.desc->tensor;
    struct wd_tensor reserve = wd_opaque_bytes(
        wd_norm_reserve_bytes(&single->node.attr.norm, x->dtype, wd_tensor_count(x)));
    if (reserve.dim[0] > 0) wd_single_bind(single, slot, &reserve, data, "reserveSpace");
}

static cudnnStatus_t check_reserve(const struct wd_bn_common *call, const void *reserve,
                                   size_t bytes)
{
    const struct wd_tensor *x = &call->x.desc->tensor;
    struct wd_norm_attr attr = wd_bn_attr(call);
    int64_t needed = wd_norm_reserve_bytes(&attr, x->dtype, wd_tensor_count(x));
    if (needed == 0) return CUDNN_STATUS_SUCCESS;
    if (bytes < (size_t)needed) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          "reserveSpaceSizeInBytes=%zu is less than the %lld that are needed",
                          bytes, (long long)needed);
    }
    if (!reserve) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                          "reserveSpace is null, %lld bytes are needed", (long long)needed);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Two outputs of one size each need memory of their own. */
static cudnnStatus_t check_apart(const char *function, const void *a, const char *a_name,
                                 const void *b, const char *b_name)
{
    if (!a || a != b) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s and %s are the same memory", a_name,
                      b_name);
}

cudnnStatus_t wd_bn_make_inference(const struct wd_bn_inference *call, struct wd_single *single)
{
    const struct wd_bn_common *common = &call->common;
    const struct wd_bn_pointer needed[] = {
        {call->alpha, "alpha"},
        {call->beta, "beta"},
        {common->x.data, common->x.name},
        {common->y.data, common->y.name},
        {call->scale, common->words->scale},
        {call->bias, common->words->bias},
        {call->mean, "estimatedMean"},
        {call->var, "estimatedVariance"},
        {NULL, NULL},
    };
    bool adds = common->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
    int dtype;
    WD_TRY(wd_bn_check_common(common));
    WD_TRY(wd_bn_check_pointers(common->function, needed));
    if (adds) {
        const struct wd_bn_pointer residual[] = {{call->z.data, call->z.name}, {NULL, NULL}};
        WD_TRY(wd_bn_check_like(common, &call->z, &common->y));
        WD_TRY(wd_bn_check_pointers(common->function, residual));
    }
    wd_single_init(single, WD_OP_BN_INFERENCE);
    single->node.attr.norm = wd_bn_attr(common);
    bind_data(single, INFER_X, &common->x);
    bind_param(single, INFER_SCALE, common, call->scale, common->words->scale);
    bind_param(single, INFER_BIAS, common, call->bias, common->words->bias);
    bind_stats(single, INFER_MEAN, common, call->mean, "estimatedMean");
    bind_stats(single, INFER_VAR, common, call->var, "estimatedVariance");
    if (adds) bind_data(single, INFER_Z, &call->z);
    bind_data(single, INFER_Y, &common->y);
    dtype = common->x.desc->tensor.dtype;
    wd_single_scalar(single, ALPHA, wd_scalar(call->alpha, dtype));
    wd_single_scalar(single, BETA, wd_scalar(call->beta, dtype));
    return CUDNN_STATUS_SUCCESS;
}

void wd_bn_bind_training(const struct wd_bn_training *call, struct wd_single *single)
{
    const struct wd_bn_common *common = &call->common;
    wd_single_init(single, WD_OP_BN_TRAINING);
    single->node.attr.norm = wd_bn_attr(common);
    bind_data(single, TRAIN_X, &common->x);
    bind_param(single, TRAIN_SCALE, common, call->scale, common->words->scale);
    bind_param(single, TRAIN_BIAS, common, call->bias, common->words->bias);
    if (common->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) bind_data(single, TRAIN_Z, &call->z);
    bind_data(single, TRAIN_Y, &common->y);
    bind_stats(single, TRAIN_RUNNING_MEAN, common, call->running_mean, "resultRunningMean");
    bind_stats(single, TRAIN_RUNNING_VAR, common, call->running_var, "resultRunningVariance");
    bind_stats(single, TRAIN_SAVED_MEAN, common, call->saved_mean, "resultSaveMean");
    bind_stats(single, TRAIN_SAVED_INV_STD, common, call->saved_inv_std, "resultSaveInvVariance");
    bind_reserve(single, TRAIN_RESERVE, common, call->reserve);
}

cudnnStatus_t wd_bn_make_training(const struct wd_bn_training *call, struct wd_single *single)
{
    const struct wd_bn_common *common = &call->common;
    const struct wd_bn_pointer needed[] = {
        {call->alpha, "alpha"},
        {call->beta, "beta"},
        {common->x.data, common->x.name},
        {common->y.data, common->y.name},
        {call->scale, common->words->scale},
        {call->bias, common->words->bias},
        {NULL, NULL},
    };
    int dtype;
    WD_TRY(wd_bn_check_common(common));
    WD_TRY(wd_bn_check_pointers(common->function, needed));
    WD_TRY(wd_bn_check_pair(common->function, call->saved_mean, "resultSaveMean",
                            call->saved_inv_std, "resultSaveInvVariance"));
    WD_TRY(check_apart(common->function, call->running_mean, "resultRunningMean", call->running_var,
                       "resultRunningVariance"));
    WD_TRY(check_apart(common->function, call->saved_mean, "resultSaveMean", call->saved_inv_std,
                       "resultSaveInvVariance"));
    if (!isfinite(call->factor)) {
        return wd_fail_in(common->function, CUDNN_STATUS_BAD_PARAM,
                          "exponentialAverageFactor=%g is no finite number", call->factor);
    }
    if (common->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        const struct wd_bn_pointer residual[] = {{call->z.data, call->z.name}, {NULL, NULL}};
        WD_TRY(wd_bn_check_like(common, &call->z, &common->y));
        WD_TRY(wd_bn_check_pointers(common->function, residual));
    }
    WD_TRY(check_reserve(common, call->reserve, call->reserve_bytes));
    wd_bn_bind_training(call, single);
    dtype = common->x.desc->tensor.dtype;
    wd_single_scalar(single, ALPHA, wd_scalar(call->alpha, dtype));
    wd_single_scalar(single, BETA, wd_scalar(call->beta, dtype));
    wd_single_scalar(single, FACTOR, call->factor);
    return CUDNN_STATUS_SUCCESS;
}

void wd_bn_bind_backward(const struct wd_bn_backward *call, struct wd_single *single)
{
    const struct wd_bn_common *common = &call->common;
    wd_single_init(single, WD_OP_BN_BACKWARD);
    single->node.attr.norm = wd_bn_attr(common);
    bind_data(single, GRAD_X, &common->x);
    bind_data(single, GRAD_DY, &call->dy);
    bind_param(single, GRAD_SCALE, common, call->scale, call->scale_name);
    bind_stats(single, GRAD_SAVED_MEAN, common, call->saved_mean, "savedMean");
    bind_stats(single, GRAD_SAVED_INV_STD, common, call->saved_inv_std, "savedInvVariance");
    bind_reserve(single, GRAD_RESERVE, common, call->reserve);
    bind_data(single, GRAD_DX, &common->y);
    bind_param(single, GRAD_DSCALE, common, call->dscale, call->dscale_name);
    bind_param(single, GRAD_DBIAS, common, call->dbias, call->dbias_name);
    if (common->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) bind_data(single, GRAD_DZ, &call->dz);
}

cudnnStatus_t wd_bn_make_backward(const struct wd_bn_backward *call, struct wd_single *single)
{
    const struct wd_bn_common *common = &call->common;
    const struct wd_bn_pointer needed[] = {
        {call->alpha_data, "alphaDataDiff"},
        {call->beta_data, "betaDataDiff"},
        {call->alpha_param, "alphaParamDiff"},
        {call->beta_param, "betaParamDiff"},
        {common->x.data, common->x.name},
        {call->dy.data, call->dy.name},
        {common->y.data, common->y.name},
        {call->scale, call->scale_name},
        {call->dscale, call->dscale_name},
        {call->dbias, call->dbias_name},
        {NULL, NULL},
    };
    int dtype;
    WD_TRY(wd_bn_check_common(common));
    WD_TRY(wd_bn_check_like(common, &call->dy, &common->y));
    WD_TRY(wd_bn_check_pointers(common->function, needed));
    WD_TRY(wd_bn_check_pair(common->function, call->saved_mean, "savedMean", call->saved_inv_std,
                            "savedInvVariance"));
    WD_TRY(check_apart(common->function, call->dscale, call->dscale_name, call->dbias,
                       call->dbias_name));
    if (common->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION) {
        const struct wd_bn_pointer residual[] = {{call->dz.data, call->dz.name}, {NULL, NULL}};
        WD_TRY(wd_bn_check_like(common, &call->dz, &call->dy));
        WD_TRY(wd_bn_check_pointers(common->function, residual));
        if (call->dz.data == common->y.data) {
            return wd_fail_in(common->function, CUDNN_STATUS_BAD_PARAM,
                              "%s and %s are the same memory", call->dz.name, common->y.name);
        }
    }
    WD_TRY(check_reserve(common, call->reserve, call->reserve_bytes));
    wd_bn_bind_backward(call, single);
    dtype = common->x.desc->tensor.dtype;
    wd_single_scalar(single, ALPHA_DATA, wd_scalar(call->alpha_data, dtype));
    wd_single_scalar(single, BETA_DATA, wd_scalar(call->beta_data, dtype));
    wd_single_scalar(single, ALPHA_PARAM, wd_scalar(call->alpha_param, dtype));
    wd_single_scalar(single, BETA_PARAM, wd_scalar(call->beta_param, dtype));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t yDesc,
    void *y, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, const void *estimatedMean, const void *estimatedVariance, double epsilon)
{
    const struct wd_bn_inference call = {
        .common = {.function = __func__,
                   .words = &wd_bn_words,
                   .mode = (int)mode,
                   .ops = CUDNN_BATCHNORM_OPS_BN,
                   .epsilon = epsilon,
                   .x = {xDesc, "xDesc", x, "x"},
                   .y = {yDesc, "yDesc", y, "y"},
                   .param = bnScaleBiasMeanVarDesc,
                   .param_name = "bnScaleBiasMeanVarDesc"},
        .alpha = alpha,
        .beta = beta,
        .scale = bnScale,
        .bias = bnBias,
        .mean = estimatedMean,
        .var = estimatedVariance,
    };
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(wd_bn_make_inference(&call, &single));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t yDesc,
    void *y, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean, void *resultSaveInvVariance)
{
    const struct wd_bn_training call = {
        .common = {.function = __func__,
                   .words = &wd_bn_words,
                   .mode = (int)mode,
                   .ops = CUDNN_BATCHNORM_OPS_BN,
                   .epsilon = epsilon,
                   .x = {xDesc, "xDesc", x, "x"},
                   .y = {yDesc, "yDesc", y, "y"},
                   .param = bnScaleBiasMeanVarDesc,
                   .param_name = "bnScaleBiasMeanVarDesc"},
        .alpha = alpha,
        .beta = beta,
        .scale = bnScale,
        .bias = bnBias,
        .factor = exponentialAverageFactor,
        .running_mean = resultRunningMean,
        .running_var = resultRunningVariance,
        .saved_mean = resultSaveMean,
        .saved_inv_std = resultSaveInvVariance,
    };
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(wd_bn_make_training(&call, &single));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alphaDataDiff,
    const void *betaDataDiff, const void *alphaParamDiff, const void *betaParamDiff,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t dyDesc,
    const void *dy, const cudnnTensorDescriptor_t dxDesc, void *dx,
    const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScale, void *dBnScaleResult,
    void *dBnBiasResult, double epsilon, const void *savedMean, const void *savedInvVariance)
{
    const struct wd_bn_backward call = {
        .common = {.function = __func__,
                   .words = &wd_bn_words,
                   .mode = (int)mode,
                   .ops = CUDNN_BATCHNORM_OPS_BN,
                   .epsilon = epsilon,
                   .x = {xDesc, "xDesc", x, "x"},
                   .y = {dxDesc, "dxDesc", dx, "dx"},
                   .param = dBnScaleBiasDesc,
                   .param_name = "dBnScaleBiasDesc"},
        .alpha_data = alphaDataDiff,
        .beta_data = betaDataDiff,
        .alpha_param = alphaParamDiff,
        .beta_param = betaParamDiff,
        .dy = {dyDesc, "dyDesc", dy, "dy"},
        .scale = bnScale,
        .dscale = dBnScaleResult,
        .dbias = dBnBiasResult,
        .scale_name = "bnScale",
        .dscale_name = "dBnScaleResult",
        .dbias_name = "dBnBiasResult",
        .saved_mean = savedMean,
        .saved_inv_std = savedInvVariance,
    };
    struct wd_single single;
    WD_HANDLE(handle);
    WD_TRY(wd_bn_make_backward(&call, &single));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}
