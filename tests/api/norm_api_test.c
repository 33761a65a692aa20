/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization: invalid arguments of every function that computes or sizes (what is derived:
 * norm_derive_api_test.c). The many arguments of a call are a struct with valid values; a row changes
 * one. */
#include <math.h>
#include <stddef.h>

#include "support/harness_internal.h"
#include "support/refusal.h"

static const int shape[4] = {2, 3, 4, 5};
static const float one = 1.0f;
static const float zero = 0.0f;

/* Every argument of every call; each call takes what it has. */
struct arguments {
    cudnnHandle_t handle;
    int mode, ops;
    const void *alpha, *beta, *alpha_param, *beta_param;
    cudnnTensorDescriptor_t x_desc, y_desc, z_desc, dy_desc, dx_desc, dz_desc, param_desc;
    const void *x, *z, *dy, *scale, *bias, *mean, *var, *y_in;
    void *y, *dx, *dz, *dscale, *dbias, *running_mean, *running_var, *saved_mean, *saved_inv;
    double factor, epsilon;
    cudnnActivationDescriptor_t activation;
    void *workspace, *reserve;
    size_t workspace_bytes, reserve_bytes;
    size_t *size;
};

static cudnnStatus_t infer(const struct arguments *a)
{
    return cudnnBatchNormalizationForwardInference(
        a->handle, (cudnnBatchNormMode_t)a->mode, a->alpha, a->beta, a->x_desc, a->x, a->y_desc,
        a->y, a->param_desc, a->scale, a->bias, a->mean, a->var, a->epsilon);
}

static cudnnStatus_t train(const struct arguments *a)
{
    return cudnnBatchNormalizationForwardTraining(
        a->handle, (cudnnBatchNormMode_t)a->mode, a->alpha, a->beta, a->x_desc, a->x, a->y_desc,
        a->y, a->param_desc, a->scale, a->bias, a->factor, a->running_mean, a->running_var,
        a->epsilon, a->saved_mean, a->saved_inv);
}

static cudnnStatus_t back(const struct arguments *a)
{
    return cudnnBatchNormalizationBackward(
        a->handle, (cudnnBatchNormMode_t)a->mode, a->alpha, a->beta, a->alpha_param, a->beta_param,
        a->x_desc, a->x, a->dy_desc, a->dy, a->dx_desc, a->dx, a->param_desc, a->scale, a->dscale,
        a->dbias, a->epsilon, a->saved_mean, a->saved_inv);
}

static cudnnStatus_t train_ex(const struct arguments *a)
{
    return cudnnBatchNormalizationForwardTrainingEx(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->alpha, a->beta,
        a->x_desc, a->x, a->z_desc, a->z, a->y_desc, a->y, a->param_desc, a->scale, a->bias,
        a->factor, a->running_mean, a->running_var, a->epsilon, a->saved_mean, a->saved_inv,
        a->activation, a->workspace, a->workspace_bytes, a->reserve, a->reserve_bytes);
}

static cudnnStatus_t back_ex(const struct arguments *a)
{
    return cudnnBatchNormalizationBackwardEx(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->alpha, a->beta,
        a->alpha_param, a->beta_param, a->x_desc, a->x, a->y_desc, a->y_in, a->dy_desc, a->dy,
        a->dz_desc, a->dz, a->dx_desc, a->dx, a->param_desc, a->scale, a->bias, a->dscale, a->dbias,
        a->epsilon, a->saved_mean, a->saved_inv, a->activation, a->workspace, a->workspace_bytes,
        a->reserve, a->reserve_bytes);
}

static cudnnStatus_t train_size(const struct arguments *a)
{
    return cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->x_desc, a->z_desc,
        a->y_desc, a->param_desc, a->activation, a->size);
}

static cudnnStatus_t back_size(const struct arguments *a)
{
    return cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->x_desc, a->y_desc,
        a->dy_desc, a->dz_desc, a->dx_desc, a->param_desc, a->activation, a->size);
}

static cudnnStatus_t reserve_size(const struct arguments *a)
{
    return cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->activation,
        a->x_desc, a->size);
}

#define ROW(status, function, caller, argument, change)                                            \
    do {                                                                                           \
        struct arguments row = valid;                                                              \
        row.change;                                                                                \
        REFUSED(status, function, argument, caller(&row));                                         \
    } while (0)

static struct arguments valid;
static cudnnTensorDescriptor_t unset, wide, half, params_wrong, params_f64, nhwc, rank3, integers;
static cudnnActivationDescriptor_t no_activation;

static cudnnTensorDescriptor_t tensor(cudnnTensorFormat_t format, cudnnDataType_t type, int rank,
                                      const int *dim)
{
    cudnnTensorDescriptor_t t;
    cudnnCreateTensorDescriptor(&t);
    cudnnSetTensorNdDescriptorEx(t, format, type, rank, dim);
    return t;
}

#define COMMON_ROWS(function, caller)                                                              \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, handle, handle = NULL);                          \
    ROW(BAD_PARAM, function, caller, mode, mode = -1);                                             \
    ROW(BAD_PARAM, function, caller, mode, mode = 3);                                              \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, xDesc, x_desc = NULL);                           \
    ROW(BAD_PARAM, function, caller, xDesc, x_desc = unset)

#define PARAM_ROWS(function, caller, argument)                                                     \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, argument, param_desc = NULL);                    \
    ROW(BAD_PARAM, function, caller, argument, param_desc = unset);                                \
    ROW(BAD_PARAM, function, caller, argument, param_desc = params_f64);                           \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, argument, param_desc = params_wrong);          \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, argument, param_desc = valid.x_desc)

/* A tensor that has the shape and type of x. */
#define LIKE_ROWS(function, caller, argument, field)                                               \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, argument, field = NULL);                         \
    ROW(BAD_PARAM, function, caller, argument, field = unset);                                     \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, argument, field = wide);                       \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, argument, field = rank3);                      \
    ROW(BAD_PARAM, function, caller, argument, field = half)

#define NULL_ROW(function, caller, argument, field)                                                \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, argument, field = NULL)

#define EPSILON_ROWS(function, caller)                                                             \
    ROW(BAD_PARAM, function, caller, epsilon, epsilon = -1e-9);                                    \
    ROW(BAD_PARAM, function, caller, epsilon, epsilon = NAN);                                      \
    ROW(BAD_PARAM, function, caller, epsilon, epsilon = INFINITY)

static void forward_rows(void)
{
    void *odd = (char *)valid.y + 1;
    COMMON_ROWS(cudnnBatchNormalizationForwardInference, infer);
    PARAM_ROWS(cudnnBatchNormalizationForwardInference, infer, bnScaleBiasMeanVarDesc);
    LIKE_ROWS(cudnnBatchNormalizationForwardInference, infer, yDesc, y_desc);
    EPSILON_ROWS(cudnnBatchNormalizationForwardInference, infer);
    NULL_ROW(cudnnBatchNormalizationForwardInference, infer, alpha, alpha);
    NULL_ROW(cudnnBatchNormalizationForwardInference, infer, beta, beta);
    NULL_ROW(cudnnBatchNormalizationForwardInference, infer, x, x);
    NULL_ROW(cudnnBatchNormalizationForwardInference, infer, y, y);
    NULL_ROW(cudnnBatchNormalizationForwardInference, infer, bnScale, scale);
    NULL_ROW(cudnnBatchNormalizationForwardInference, infer, bnBias, bias);
    NULL_ROW(cudnnBatchNormalizationForwardInference, infer, estimatedMean, mean);
    NULL_ROW(cudnnBatchNormalizationForwardInference, infer, estimatedVariance, var);
    ROW(BAD_PARAM_MISALIGNED_POINTER, cudnnBatchNormalizationForwardInference, infer, y, y = odd);

    COMMON_ROWS(cudnnBatchNormalizationForwardTraining, train);
    PARAM_ROWS(cudnnBatchNormalizationForwardTraining, train, bnScaleBiasMeanVarDesc);
    LIKE_ROWS(cudnnBatchNormalizationForwardTraining, train, yDesc, y_desc);
    EPSILON_ROWS(cudnnBatchNormalizationForwardTraining, train);
    NULL_ROW(cudnnBatchNormalizationForwardTraining, train, alpha, alpha);
    NULL_ROW(cudnnBatchNormalizationForwardTraining, train, beta, beta);
    NULL_ROW(cudnnBatchNormalizationForwardTraining, train, x, x);
    NULL_ROW(cudnnBatchNormalizationForwardTraining, train, y, y);
    NULL_ROW(cudnnBatchNormalizationForwardTraining, train, bnScale, scale);
    NULL_ROW(cudnnBatchNormalizationForwardTraining, train, bnBias, bias);
    NULL_ROW(cudnnBatchNormalizationForwardTraining, train, resultSaveMean, saved_mean);
    NULL_ROW(cudnnBatchNormalizationForwardTraining, train, resultSaveInvVariance, saved_inv);
    ROW(BAD_PARAM, cudnnBatchNormalizationForwardTraining, train, exponentialAverageFactor,
        factor = NAN);
    ROW(BAD_PARAM, cudnnBatchNormalizationForwardTraining, train, exponentialAverageFactor,
        factor = INFINITY);
    ROW(BAD_PARAM, cudnnBatchNormalizationForwardTraining, train, exponentialAverageFactor,
        factor = -INFINITY);
    ROW(BAD_PARAM, cudnnBatchNormalizationForwardTraining, train, resultRunningVariance,
        running_var = valid.running_mean);
    ROW(BAD_PARAM, cudnnBatchNormalizationForwardTraining, train, resultSaveInvVariance,
        saved_inv = valid.saved_mean);
    ROW(BAD_PARAM_MISALIGNED_POINTER, cudnnBatchNormalizationForwardTraining, train, y, y = odd);
    {
        /* in place, but with other strides */
        struct arguments row = valid;
        row.y = (void *)(uintptr_t)row.x;
        row.y_desc = nhwc;
        REFUSED(BAD_PARAM, cudnnBatchNormalizationForwardTraining, yDesc, train(&row));
        /* statistics of integers */
        row = valid;
        row.x_desc = row.y_desc = integers;
        REFUSED(NOT_SUPPORTED_DATA_TYPE, cudnnBatchNormalizationForwardTraining, xDesc,
                train(&row));
    }
}

static void backward_rows(void)
{
    COMMON_ROWS(cudnnBatchNormalizationBackward, back);
    PARAM_ROWS(cudnnBatchNormalizationBackward, back, dBnScaleBiasDesc);
    LIKE_ROWS(cudnnBatchNormalizationBackward, back, dyDesc, dy_desc);
    LIKE_ROWS(cudnnBatchNormalizationBackward, back, dxDesc, dx_desc);
    EPSILON_ROWS(cudnnBatchNormalizationBackward, back);
    NULL_ROW(cudnnBatchNormalizationBackward, back, alphaDataDiff, alpha);
    NULL_ROW(cudnnBatchNormalizationBackward, back, betaDataDiff, beta);
    NULL_ROW(cudnnBatchNormalizationBackward, back, alphaParamDiff, alpha_param);
    NULL_ROW(cudnnBatchNormalizationBackward, back, betaParamDiff, beta_param);
    NULL_ROW(cudnnBatchNormalizationBackward, back, x, x);
    NULL_ROW(cudnnBatchNormalizationBackward, back, dy, dy);
    NULL_ROW(cudnnBatchNormalizationBackward, back, dx, dx);
    NULL_ROW(cudnnBatchNormalizationBackward, back, bnScale, scale);
    NULL_ROW(cudnnBatchNormalizationBackward, back, dBnScaleResult, dscale);
    NULL_ROW(cudnnBatchNormalizationBackward, back, dBnBiasResult, dbias);
    ROW(BAD_PARAM, cudnnBatchNormalizationBackward, back, dBnBiasResult, dbias = valid.dscale);
    NULL_ROW(cudnnBatchNormalizationBackward, back, savedMean, saved_mean);
    NULL_ROW(cudnnBatchNormalizationBackward, back, savedInvVariance, saved_inv);
    {
        struct arguments row = valid;
        row.dx = (void *)(uintptr_t)row.dy;
        row.dx_desc = nhwc;
        REFUSED(BAD_PARAM, cudnnBatchNormalizationBackward, dxDesc, back(&row));
    }
}

#define EX_ROWS(function, caller)                                                                  \
    ROW(BAD_PARAM, function, caller, bnOps, ops = -1);                                             \
    ROW(BAD_PARAM, function, caller, bnOps, ops = 3);                                              \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, activationDesc, activation = NULL);              \
    ROW(BAD_PARAM, function, caller, activationDesc, activation = no_activation)

#define SPACE_ROWS(function, caller, argument)                                                     \
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, function, caller, workSpaceSizeInBytes,                       \
        workspace_bytes -= 1);                                                                     \
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, function, caller, workSpaceSizeInBytes, workspace_bytes = 0); \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, argument, workspace = NULL);                     \
    ROW(BAD_PARAM_MISALIGNED_POINTER, function, caller, argument,                                  \
        workspace = (char *)valid.workspace + 4);                                                  \
    ROW(BAD_PARAM_SIZE_INSUFFICIENT, function, caller, reserveSpaceSizeInBytes,                    \
        reserve_bytes -= 1);                                                                       \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, reserveSpace, reserve = NULL)

static void ex_forward_rows(void)
{
    COMMON_ROWS(cudnnBatchNormalizationForwardTrainingEx, train_ex);
    PARAM_ROWS(cudnnBatchNormalizationForwardTrainingEx, train_ex, bnScaleBiasMeanVarDesc);
    EX_ROWS(cudnnBatchNormalizationForwardTrainingEx, train_ex);
    LIKE_ROWS(cudnnBatchNormalizationForwardTrainingEx, train_ex, yDesc, y_desc);
    LIKE_ROWS(cudnnBatchNormalizationForwardTrainingEx, train_ex, zDesc, z_desc);
    EPSILON_ROWS(cudnnBatchNormalizationForwardTrainingEx, train_ex);
    SPACE_ROWS(cudnnBatchNormalizationForwardTrainingEx, train_ex, workspace);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, alpha, alpha);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, beta, beta);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, xData, x);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, zData, z);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, yData, y);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, bnScale, scale);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, bnBias, bias);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, resultSaveMean, saved_mean);
    NULL_ROW(cudnnBatchNormalizationForwardTrainingEx, train_ex, resultSaveInvVariance, saved_inv);
    ROW(BAD_PARAM, cudnnBatchNormalizationForwardTrainingEx, train_ex, exponentialAverageFactor,
        factor = NAN);
}

static void ex_backward_rows(void)
{
    COMMON_ROWS(cudnnBatchNormalizationBackwardEx, back_ex);
    PARAM_ROWS(cudnnBatchNormalizationBackwardEx, back_ex, dBnScaleBiasDesc);
    EX_ROWS(cudnnBatchNormalizationBackwardEx, back_ex);
    LIKE_ROWS(cudnnBatchNormalizationBackwardEx, back_ex, yDesc, y_desc);
    LIKE_ROWS(cudnnBatchNormalizationBackwardEx, back_ex, dyDesc, dy_desc);
    LIKE_ROWS(cudnnBatchNormalizationBackwardEx, back_ex, dzDesc, dz_desc);
    LIKE_ROWS(cudnnBatchNormalizationBackwardEx, back_ex, dxDesc, dx_desc);
    EPSILON_ROWS(cudnnBatchNormalizationBackwardEx, back_ex);
    SPACE_ROWS(cudnnBatchNormalizationBackwardEx, back_ex, workSpace);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, alphaDataDiff, alpha);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, betaDataDiff, beta);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, alphaParamDiff, alpha_param);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, betaParamDiff, beta_param);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, xData, x);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, yData, y_in);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, dyData, dy);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, dzData, dz);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, dxData, dx);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, bnScaleData, scale);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, bnBiasData, bias);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, dBnScaleData, dscale);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, dBnBiasData, dbias);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, savedMean, saved_mean);
    NULL_ROW(cudnnBatchNormalizationBackwardEx, back_ex, savedInvVariance, saved_inv);
    ROW(BAD_PARAM, cudnnBatchNormalizationBackwardEx, back_ex, dzData, dz = valid.dx);
}

static void size_rows(void)
{
    COMMON_ROWS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, train_size);
    PARAM_ROWS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, train_size,
               bnScaleBiasMeanVarDesc);
    EX_ROWS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, train_size);
    LIKE_ROWS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, train_size, yDesc, y_desc);
    LIKE_ROWS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, train_size, zDesc, z_desc);
    NULL_ROW(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, train_size, sizeInBytes,
             size);
    COMMON_ROWS(cudnnGetBatchNormalizationBackwardExWorkspaceSize, back_size);
    PARAM_ROWS(cudnnGetBatchNormalizationBackwardExWorkspaceSize, back_size, dBnScaleBiasDesc);
    EX_ROWS(cudnnGetBatchNormalizationBackwardExWorkspaceSize, back_size);
    LIKE_ROWS(cudnnGetBatchNormalizationBackwardExWorkspaceSize, back_size, yDesc, y_desc);
    LIKE_ROWS(cudnnGetBatchNormalizationBackwardExWorkspaceSize, back_size, dyDesc, dy_desc);
    LIKE_ROWS(cudnnGetBatchNormalizationBackwardExWorkspaceSize, back_size, dzDesc, dz_desc);
    LIKE_ROWS(cudnnGetBatchNormalizationBackwardExWorkspaceSize, back_size, dxDesc, dx_desc);
    NULL_ROW(cudnnGetBatchNormalizationBackwardExWorkspaceSize, back_size, sizeInBytes, size);
    COMMON_ROWS(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, reserve_size);
    EX_ROWS(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, reserve_size);
    NULL_ROW(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, reserve_size, sizeInBytes, size);
}

/* The arguments are valid as they stand: every call succeeds with them. */
static void accepted(void)
{
    cudnnStatus_t (*const calls[])(const struct arguments *) = {
        infer, train, back, train_ex, back_ex, train_size, back_size, reserve_size};
    for (int i = 0; i < 8; ++i) {
        cudnnStatus_t status;
        char text[512];
        if (!case_begin("accepted/%d", i)) continue;
        status = calls[i](&valid);
        cudnnGetLastErrorString(text, sizeof text);
        if (status != CUDNN_STATUS_SUCCESS) case_fail("%s: %s", cudnnGetErrorString(status), text);
        warpdnnSynchronize(harness_handle);
        case_count();
    }
}

int main(int argc, char **argv)
{
    static const int other[4] = {2, 3, 4, 6};
    static const int of_params[4] = {1, 3, 1, 1};
    static const int wrong_params[4] = {1, 4, 1, 1};
    struct tensor *data[10];
    struct tensor *params[10];
    struct tensor *workspace;
    struct tensor *reserve;
    size_t size = 0;
    size_t bytes = 0;
    size_t reserve_bytes = 0;
    harness_start(argc, argv);
    if (!case_begin("batch norm")) return harness_finish();
    unset = NULL;
    cudnnCreateTensorDescriptor(&unset);
    cudnnCreateActivationDescriptor(&no_activation);
    wide = tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, other);
    half = tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 4, shape);
    nhwc = tensor(CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 4, shape);
    rank3 = tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 3, shape);
    integers = tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8, 4, shape);
    params_wrong = tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, wrong_params);
    params_f64 = tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 4, of_params);
    for (int i = 0; i < 7; ++i) {
        data[i] = tensor_inout(CUDNN_DATA_FLOAT, 4, shape, LAYOUT_NCHW, -1.0, 1.0);
    }
    for (int i = 0; i < 10; ++i) {
        params[i] = tensor_inout(CUDNN_DATA_FLOAT, 4, of_params, LAYOUT_NCHW, 0.5, 1.0);
    }
    valid = (struct arguments){
        .handle = harness_handle,
        .mode = CUDNN_BATCHNORM_SPATIAL,
        .ops = CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
        .alpha = &one,
        .beta = &zero,
        .alpha_param = &one,
        .beta_param = &zero,
        .x_desc = data[0]->desc,
        .y_desc = data[0]->desc,
        .z_desc = data[0]->desc,
        .dy_desc = data[0]->desc,
        .dx_desc = data[0]->desc,
        .dz_desc = data[0]->desc,
        .param_desc = params[0]->desc,
        .x = data[0]->data,
        .z = data[1]->data,
        .y = data[2]->data,
        .y_in = data[3]->data,
        .dy = data[4]->data,
        .dx = data[5]->data,
        .dz = data[6]->data,
        .scale = params[0]->data,
        .bias = params[1]->data,
        .mean = params[2]->data,
        .var = params[3]->data,
        .running_mean = params[4]->data,
        .running_var = params[5]->data,
        .saved_mean = params[6]->data,
        .saved_inv = params[7]->data,
        .dscale = params[8]->data,
        .dbias = params[9]->data,
        .factor = 0.1,
        .epsilon = 1e-5,
        .size = &size,
    };
    cudnnCreateActivationDescriptor(&valid.activation);
    cudnnSetActivationDescriptor(valid.activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0);
    train_size(&valid);
    bytes = size;
    back_size(&valid);
    /* one workspace for both, exactly as large as either wants where it is short by one byte */
    reserve_size(&valid);
    reserve_bytes = size;
    workspace = tensor_bytes(4096);
    reserve = tensor_bytes((int64_t)reserve_bytes);
    valid.workspace = workspace->data;
    valid.reserve = reserve->data;
    valid.reserve_bytes = reserve_bytes;
    refusal_guard();
    forward_rows();
    backward_rows();
    size_rows();
    valid.workspace_bytes = bytes;
    ex_forward_rows();
    back_size(&valid);
    valid.workspace_bytes = size;
    ex_backward_rows();
    valid.workspace_bytes = 4096;
    accepted();
    cudnnDestroyActivationDescriptor(valid.activation);
    cudnnDestroyActivationDescriptor(no_activation);
    cudnnDestroyTensorDescriptor(unset);
    cudnnDestroyTensorDescriptor(wide);
    cudnnDestroyTensorDescriptor(half);
    cudnnDestroyTensorDescriptor(nhwc);
    cudnnDestroyTensorDescriptor(rank3);
    cudnnDestroyTensorDescriptor(integers);
    cudnnDestroyTensorDescriptor(params_wrong);
    cudnnDestroyTensorDescriptor(params_f64);
    case_end();
    refusal_report();
    return harness_finish();
}
