/* SPDX-License-Identifier: Apache-2.0
 *
 * The newer interface of normalization: invalid arguments of every function that computes or sizes
 * (what is derived: norm_derive_api_test.c). The many arguments of a call are a struct with valid
 * values; a row changes one. */
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
    int mode, ops, algo, groups;
    const void *alpha, *beta, *alpha_param, *beta_param;
    cudnnTensorDescriptor_t x_desc, y_desc, z_desc, dy_desc, dx_desc, dz_desc, param_desc,
        stats_desc;
    const void *x, *z, *dy, *scale, *bias, *mean, *var, *y_in;
    void *y, *dx, *dz, *dscale, *dbias, *running_mean, *running_var, *saved_mean, *saved_inv;
    double factor, epsilon;
    cudnnActivationDescriptor_t activation;
    void *workspace, *reserve;
    size_t workspace_bytes, reserve_bytes;
    size_t *size;
};

#define CHOICES (cudnnNormMode_t) a->mode, (cudnnNormOps_t)a->ops, (cudnnNormAlgo_t)a->algo

static cudnnStatus_t infer(const struct arguments *a)
{
    return cudnnNormalizationForwardInference(a->handle, CHOICES, a->alpha, a->beta, a->x_desc,
                                              a->x, a->param_desc, a->scale, a->bias, a->stats_desc,
                                              a->mean, a->var, a->z_desc, a->z, a->activation,
                                              a->y_desc, a->y, a->epsilon, a->groups);
}

static cudnnStatus_t train(const struct arguments *a)
{
    return cudnnNormalizationForwardTraining(
        a->handle, CHOICES, a->alpha, a->beta, a->x_desc, a->x, a->param_desc, a->scale, a->bias,
        a->factor, a->stats_desc, a->running_mean, a->running_var, a->epsilon, a->saved_mean,
        a->saved_inv, a->activation, a->z_desc, a->z, a->y_desc, a->y, a->workspace,
        a->workspace_bytes, a->reserve, a->reserve_bytes, a->groups);
}

static cudnnStatus_t back(const struct arguments *a)
{
    return cudnnNormalizationBackward(
        a->handle, CHOICES, a->alpha, a->beta, a->alpha_param, a->beta_param, a->x_desc, a->x,
        a->y_desc, a->y_in, a->dy_desc, a->dy, a->dz_desc, a->dz, a->dx_desc, a->dx, a->param_desc,
        a->scale, a->bias, a->dscale, a->dbias, a->epsilon, a->stats_desc, a->saved_mean,
        a->saved_inv, a->activation, a->workspace, a->workspace_bytes, a->reserve, a->reserve_bytes,
        a->groups);
}

static cudnnStatus_t train_size(const struct arguments *a)
{
    return cudnnGetNormalizationForwardTrainingWorkspaceSize(
        a->handle, CHOICES, a->x_desc, a->z_desc, a->y_desc, a->param_desc, a->activation,
        a->stats_desc, a->size, a->groups);
}

static cudnnStatus_t back_size(const struct arguments *a)
{
    return cudnnGetNormalizationBackwardWorkspaceSize(
        a->handle, CHOICES, a->x_desc, a->y_desc, a->dy_desc, a->dz_desc, a->dx_desc, a->param_desc,
        a->activation, a->stats_desc, a->size, a->groups);
}

static cudnnStatus_t reserve_size(const struct arguments *a)
{
    return cudnnGetNormalizationTrainingReserveSpaceSize(a->handle, CHOICES, a->activation,
                                                         a->x_desc, a->size, a->groups);
}

#define ROW(status, function, caller, argument, change)                                            \
    do {                                                                                           \
        struct arguments row = valid;                                                              \
        row.change;                                                                                \
        REFUSED(status, function, argument, caller(&row));                                         \
    } while (0)

static struct arguments valid;
static cudnnTensorDescriptor_t unset, wide, half, params_wrong, params_f64, rank3, integers;
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
    ROW(BAD_PARAM, function, caller, mode, mode = 2);                                              \
    ROW(BAD_PARAM, function, caller, normOps, ops = -1);                                           \
    ROW(BAD_PARAM, function, caller, normOps, ops = 3);                                            \
    ROW(NOT_SUPPORTED, function, caller, algo, algo = -1);                                         \
    ROW(NOT_SUPPORTED, function, caller, algo, algo = 2);                                          \
    ROW(BAD_PARAM, function, caller, groupCnt, groups = 0);                                        \
    ROW(BAD_PARAM, function, caller, groupCnt, groups = 2);                                        \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, activationDesc, activation = NULL);              \
    ROW(BAD_PARAM, function, caller, activationDesc, activation = no_activation);                  \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, xDesc, x_desc = NULL);                           \
    ROW(BAD_PARAM, function, caller, xDesc, x_desc = unset)

#define PARAM_ROWS(function, caller, argument, field)                                              \
    ROW(BAD_PARAM_NULL_POINTER, function, caller, argument, field = NULL);                         \
    ROW(BAD_PARAM, function, caller, argument, field = unset);                                     \
    ROW(BAD_PARAM, function, caller, argument, field = params_f64);                                \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, argument, field = params_wrong);               \
    ROW(BAD_PARAM_SHAPE_MISMATCH, function, caller, argument, field = valid.x_desc)

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

static void inference_rows(void)
{
    COMMON_ROWS(cudnnNormalizationForwardInference, infer);
    PARAM_ROWS(cudnnNormalizationForwardInference, infer, normScaleBiasDesc, param_desc);
    PARAM_ROWS(cudnnNormalizationForwardInference, infer, normMeanVarDesc, stats_desc);
    LIKE_ROWS(cudnnNormalizationForwardInference, infer, yDesc, y_desc);
    LIKE_ROWS(cudnnNormalizationForwardInference, infer, zDesc, z_desc);
    EPSILON_ROWS(cudnnNormalizationForwardInference, infer);
    NULL_ROW(cudnnNormalizationForwardInference, infer, alpha, alpha);
    NULL_ROW(cudnnNormalizationForwardInference, infer, beta, beta);
    NULL_ROW(cudnnNormalizationForwardInference, infer, x, x);
    NULL_ROW(cudnnNormalizationForwardInference, infer, z, z);
    NULL_ROW(cudnnNormalizationForwardInference, infer, y, y);
    NULL_ROW(cudnnNormalizationForwardInference, infer, normScale, scale);
    NULL_ROW(cudnnNormalizationForwardInference, infer, normBias, bias);
    NULL_ROW(cudnnNormalizationForwardInference, infer, estimatedMean, mean);
    NULL_ROW(cudnnNormalizationForwardInference, infer, estimatedVariance, var);
    ROW(BAD_PARAM_MISALIGNED_POINTER, cudnnNormalizationForwardInference, infer, y,
        y = (char *)valid.y + 1);
}

static void training_rows(void)
{
    COMMON_ROWS(cudnnNormalizationForwardTraining, train);
    PARAM_ROWS(cudnnNormalizationForwardTraining, train, normScaleBiasDesc, param_desc);
    PARAM_ROWS(cudnnNormalizationForwardTraining, train, normMeanVarDesc, stats_desc);
    LIKE_ROWS(cudnnNormalizationForwardTraining, train, yDesc, y_desc);
    LIKE_ROWS(cudnnNormalizationForwardTraining, train, zDesc, z_desc);
    EPSILON_ROWS(cudnnNormalizationForwardTraining, train);
    SPACE_ROWS(cudnnNormalizationForwardTraining, train, workspace);
    NULL_ROW(cudnnNormalizationForwardTraining, train, alpha, alpha);
    NULL_ROW(cudnnNormalizationForwardTraining, train, beta, beta);
    NULL_ROW(cudnnNormalizationForwardTraining, train, xData, x);
    NULL_ROW(cudnnNormalizationForwardTraining, train, zData, z);
    NULL_ROW(cudnnNormalizationForwardTraining, train, yData, y);
    NULL_ROW(cudnnNormalizationForwardTraining, train, normScale, scale);
    NULL_ROW(cudnnNormalizationForwardTraining, train, normBias, bias);
    NULL_ROW(cudnnNormalizationForwardTraining, train, resultSaveMean, saved_mean);
    NULL_ROW(cudnnNormalizationForwardTraining, train, resultSaveInvVariance, saved_inv);
    ROW(BAD_PARAM, cudnnNormalizationForwardTraining, train, exponentialAverageFactor,
        factor = NAN);
    ROW(BAD_PARAM, cudnnNormalizationForwardTraining, train, exponentialAverageFactor,
        factor = INFINITY);
    ROW(BAD_PARAM, cudnnNormalizationForwardTraining, train, resultRunningVariance,
        running_var = valid.running_mean);
    ROW(BAD_PARAM, cudnnNormalizationForwardTraining, train, resultRunningMean,
        running_mean = valid.running_var);
    ROW(BAD_PARAM, cudnnNormalizationForwardTraining, train, resultSaveInvVariance,
        saved_inv = valid.saved_mean);
    {
        /* statistics of integers */
        struct arguments row = valid;
        row.ops = CUDNN_NORM_OPS_NORM;
        row.x_desc = row.y_desc = integers;
        REFUSED(NOT_SUPPORTED_DATA_TYPE, cudnnNormalizationForwardTraining, xDesc, train(&row));
    }
}

static void backward_rows(void)
{
    COMMON_ROWS(cudnnNormalizationBackward, back);
    PARAM_ROWS(cudnnNormalizationBackward, back, dNormScaleBiasDesc, param_desc);
    PARAM_ROWS(cudnnNormalizationBackward, back, normMeanVarDesc, stats_desc);
    LIKE_ROWS(cudnnNormalizationBackward, back, yDesc, y_desc);
    LIKE_ROWS(cudnnNormalizationBackward, back, dyDesc, dy_desc);
    LIKE_ROWS(cudnnNormalizationBackward, back, dzDesc, dz_desc);
    LIKE_ROWS(cudnnNormalizationBackward, back, dxDesc, dx_desc);
    EPSILON_ROWS(cudnnNormalizationBackward, back);
    SPACE_ROWS(cudnnNormalizationBackward, back, workSpace);
    NULL_ROW(cudnnNormalizationBackward, back, alphaDataDiff, alpha);
    NULL_ROW(cudnnNormalizationBackward, back, betaDataDiff, beta);
    NULL_ROW(cudnnNormalizationBackward, back, alphaParamDiff, alpha_param);
    NULL_ROW(cudnnNormalizationBackward, back, betaParamDiff, beta_param);
    NULL_ROW(cudnnNormalizationBackward, back, xData, x);
    NULL_ROW(cudnnNormalizationBackward, back, yData, y_in);
    NULL_ROW(cudnnNormalizationBackward, back, dyData, dy);
    NULL_ROW(cudnnNormalizationBackward, back, dzData, dz);
    NULL_ROW(cudnnNormalizationBackward, back, dxData, dx);
    NULL_ROW(cudnnNormalizationBackward, back, normScaleData, scale);
    NULL_ROW(cudnnNormalizationBackward, back, normBiasData, bias);
    NULL_ROW(cudnnNormalizationBackward, back, dNormScaleData, dscale);
    NULL_ROW(cudnnNormalizationBackward, back, dNormBiasData, dbias);
    NULL_ROW(cudnnNormalizationBackward, back, savedMean, saved_mean);
    NULL_ROW(cudnnNormalizationBackward, back, savedInvVariance, saved_inv);
    ROW(BAD_PARAM, cudnnNormalizationBackward, back, dzData, dz = valid.dx);
    ROW(BAD_PARAM, cudnnNormalizationBackward, back, dNormBiasData, dbias = valid.dscale);
}

static void size_rows(void)
{
    COMMON_ROWS(cudnnGetNormalizationForwardTrainingWorkspaceSize, train_size);
    PARAM_ROWS(cudnnGetNormalizationForwardTrainingWorkspaceSize, train_size, normScaleBiasDesc,
               param_desc);
    PARAM_ROWS(cudnnGetNormalizationForwardTrainingWorkspaceSize, train_size, normMeanVarDesc,
               stats_desc);
    LIKE_ROWS(cudnnGetNormalizationForwardTrainingWorkspaceSize, train_size, yDesc, y_desc);
    LIKE_ROWS(cudnnGetNormalizationForwardTrainingWorkspaceSize, train_size, zDesc, z_desc);
    NULL_ROW(cudnnGetNormalizationForwardTrainingWorkspaceSize, train_size, sizeInBytes, size);
    COMMON_ROWS(cudnnGetNormalizationBackwardWorkspaceSize, back_size);
    PARAM_ROWS(cudnnGetNormalizationBackwardWorkspaceSize, back_size, dNormScaleBiasDesc,
               param_desc);
    PARAM_ROWS(cudnnGetNormalizationBackwardWorkspaceSize, back_size, normMeanVarDesc, stats_desc);
    LIKE_ROWS(cudnnGetNormalizationBackwardWorkspaceSize, back_size, yDesc, y_desc);
    LIKE_ROWS(cudnnGetNormalizationBackwardWorkspaceSize, back_size, dyDesc, dy_desc);
    LIKE_ROWS(cudnnGetNormalizationBackwardWorkspaceSize, back_size, dzDesc, dz_desc);
    LIKE_ROWS(cudnnGetNormalizationBackwardWorkspaceSize, back_size, dxDesc, dx_desc);
    NULL_ROW(cudnnGetNormalizationBackwardWorkspaceSize, back_size, sizeInBytes, size);
    COMMON_ROWS(cudnnGetNormalizationTrainingReserveSpaceSize, reserve_size);
    NULL_ROW(cudnnGetNormalizationTrainingReserveSpaceSize, reserve_size, sizeInBytes, size);
}

static void accept(const char *what, const struct arguments *a)
{
    cudnnStatus_t (*const calls[])(
        const struct arguments *) = {infer, train, back, train_size, back_size, reserve_size};
    for (int i = 0; i < 6; ++i) {
        cudnnStatus_t status;
        char text[512];
        if (!case_begin("accepted/%s/%d", what, i)) continue;
        status = calls[i](a);
        cudnnGetLastErrorString(text, sizeof text);
        if (status != CUDNN_STATUS_SUCCESS) case_fail("%s: %s", cudnnGetErrorString(status), text);
        warpdnnSynchronize(harness_handle);
        case_count();
    }
}

/* The arguments are valid as they stand: every call succeeds with them; so do those that nobody
 * looks at without an activation, and what no result depends on. */
static void accepted(void)
{
    struct arguments row = valid;
    accept("valid", &row);
    row.algo = CUDNN_NORM_ALGO_PERSIST;
    accept("persist", &row);
    row.ops = CUDNN_NORM_OPS_NORM_ACTIVATION;
    row.z_desc = row.dz_desc = NULL;
    row.z = row.dz = NULL;
    accept("no_residual", &row);
    row.ops = CUDNN_NORM_OPS_NORM;
    row.activation = NULL;
    row.y_in = NULL;
    row.reserve = NULL;
    row.reserve_bytes = 0;
    accept("no_activation", &row);
    row.epsilon = 0.0;
    row.running_mean = row.running_var = NULL;
    row.saved_mean = row.saved_inv = NULL;
    accept("no_statistics", &row);
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
    if (!case_begin("normalization")) return harness_finish();
    unset = NULL;
    cudnnCreateTensorDescriptor(&unset);
    cudnnCreateActivationDescriptor(&no_activation);
    wide = tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, other);
    half = tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 4, shape);
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
        .mode = CUDNN_NORM_PER_CHANNEL,
        .ops = CUDNN_NORM_OPS_NORM_ADD_ACTIVATION,
        .algo = CUDNN_NORM_ALGO_STANDARD,
        .groups = 1,
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
        .stats_desc = params[2]->desc,
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
    size_rows();
    inference_rows();
    valid.workspace_bytes = bytes;
    training_rows();
    back_size(&valid);
    valid.workspace_bytes = size;
    backward_rows();
    valid.workspace_bytes = 4096;
    accepted();
    cudnnDestroyActivationDescriptor(valid.activation);
    cudnnDestroyActivationDescriptor(no_activation);
    cudnnDestroyTensorDescriptor(unset);
    cudnnDestroyTensorDescriptor(wide);
    cudnnDestroyTensorDescriptor(half);
    cudnnDestroyTensorDescriptor(rank3);
    cudnnDestroyTensorDescriptor(integers);
    cudnnDestroyTensorDescriptor(params_wrong);
    cudnnDestroyTensorDescriptor(params_f64);
    case_end();
    refusal_report();
    return harness_finish();
}
