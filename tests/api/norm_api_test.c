/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization: invalid arguments of every function that computes or sizes (what is derived:
 * norm_derive_api_test.c). The rows are norm_world.h's, by the lists below. */
#include <stdlib.h>
#include "api/norm_world.h"

static cudnnStatus_t infer(const struct norm_arguments *a)
{
    return cudnnBatchNormalizationForwardInference(
        a->handle, (cudnnBatchNormMode_t)a->mode, a->alpha, a->beta, a->x_desc, a->x, a->y_desc,
        a->y, a->param_desc, a->scale, a->bias, a->mean, a->var, a->epsilon);
}

static cudnnStatus_t train(const struct norm_arguments *a)
{
    return cudnnBatchNormalizationForwardTraining(
        a->handle, (cudnnBatchNormMode_t)a->mode, a->alpha, a->beta, a->x_desc, a->x, a->y_desc,
        a->y, a->param_desc, a->scale, a->bias, a->factor, a->running_mean, a->running_var,
        a->epsilon, a->saved_mean, a->saved_inv);
}

static cudnnStatus_t back(const struct norm_arguments *a)
{
    return cudnnBatchNormalizationBackward(
        a->handle, (cudnnBatchNormMode_t)a->mode, a->alpha, a->beta, a->alpha_param, a->beta_param,
        a->x_desc, a->x, a->dy_desc, a->dy, a->dx_desc, a->dx, a->param_desc, a->scale, a->dscale,
        a->dbias, a->epsilon, a->saved_mean, a->saved_inv);
}

static cudnnStatus_t train_ex(const struct norm_arguments *a)
{
    return cudnnBatchNormalizationForwardTrainingEx(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->alpha, a->beta,
        a->x_desc, a->x, a->z_desc, a->z, a->y_desc, a->y, a->param_desc, a->scale, a->bias,
        a->factor, a->running_mean, a->running_var, a->epsilon, a->saved_mean, a->saved_inv,
        a->activation, a->workspace, a->workspace_bytes, a->reserve, a->reserve_bytes);
}

static cudnnStatus_t back_ex(const struct norm_arguments *a)
{
    return cudnnBatchNormalizationBackwardEx(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->alpha, a->beta,
        a->alpha_param, a->beta_param, a->x_desc, a->x, a->y_desc, a->y_in, a->dy_desc, a->dy,
        a->dz_desc, a->dz, a->dx_desc, a->dx, a->param_desc, a->scale, a->bias, a->dscale, a->dbias,
        a->epsilon, a->saved_mean, a->saved_inv, a->activation, a->workspace, a->workspace_bytes,
        a->reserve, a->reserve_bytes);
}

static cudnnStatus_t train_size(const struct norm_arguments *a)
{
    return cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->x_desc, a->z_desc,
        a->y_desc, a->param_desc, a->activation, a->size);
}

static cudnnStatus_t back_size(const struct norm_arguments *a)
{
    return cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->x_desc, a->y_desc,
        a->dy_desc, a->dz_desc, a->dx_desc, a->param_desc, a->activation, a->size);
}

static cudnnStatus_t reserve_size(const struct norm_arguments *a)
{
    return cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        a->handle, (cudnnBatchNormMode_t)a->mode, (cudnnBatchNormOps_t)a->ops, a->activation,
        a->x_desc, a->size);
}

#define A NORM_ARGUMENT
#define PAIR NORM_PAIR
enum { INFER, TRAIN, BACK };
static const struct norm_function functions[] = {
    {.name = "cudnnBatchNormalizationForwardInference",
     .call = infer,
     .modes = 3,
     .epsilon = true,
     .param = {A(bnScaleBiasMeanVarDesc, param_desc)},
     .like = {A(yDesc, y_desc)},
     .needed = {A(alpha, alpha), A(beta, beta), A(x, x), A(y, y), A(bnScale, scale),
                A(bnBias, bias), A(estimatedMean, mean), A(estimatedVariance, var)}},
    {.name = "cudnnBatchNormalizationForwardTraining",
     .call = train,
     .modes = 3,
     .epsilon = true,
     .factor = true,
     .param = {A(bnScaleBiasMeanVarDesc, param_desc)},
     .like = {A(yDesc, y_desc)},
     .needed = {A(alpha, alpha), A(beta, beta), A(x, x), A(y, y), A(bnScale, scale),
                A(bnBias, bias), A(resultSaveMean, saved_mean),
                A(resultSaveInvVariance, saved_inv)},
     .apart = {PAIR(resultRunningMean, running_mean, running_var),
               PAIR(resultRunningVariance, running_var, running_mean),
               PAIR(resultSaveInvVariance, saved_inv, saved_mean)}},
    {.name = "cudnnBatchNormalizationBackward",
     .call = back,
     .modes = 3,
     .epsilon = true,
     .param = {A(dBnScaleBiasDesc, param_desc)},
     .like = {A(dyDesc, dy_desc), A(dxDesc, dx_desc)},
     .needed = {A(alphaDataDiff, alpha), A(betaDataDiff, beta), A(alphaParamDiff, alpha_param),
                A(betaParamDiff, beta_param), A(x, x), A(dy, dy), A(dx, dx), A(bnScale, scale),
                A(dBnScaleResult, dscale), A(dBnBiasResult, dbias), A(savedMean, saved_mean),
                A(savedInvVariance, saved_inv)},
     .apart = {PAIR(dBnBiasResult, dbias, dscale)}},
    {.name = "cudnnBatchNormalizationForwardTrainingEx",
     .call = train_ex,
     .modes = 3,
     .ops = "bnOps",
     .epsilon = true,
     .factor = true,
     .workspace = "workspace",
     .workspace_size = train_size,
     .param = {A(bnScaleBiasMeanVarDesc, param_desc)},
     .like = {A(yDesc, y_desc), A(zDesc, z_desc)},
     .needed = {A(alpha, alpha), A(beta, beta), A(xData, x), A(zData, z), A(yData, y),
                A(bnScale, scale), A(bnBias, bias), A(resultSaveMean, saved_mean),
                A(resultSaveInvVariance, saved_inv)},
     .apart = {PAIR(resultRunningMean, running_mean, running_var),
               PAIR(resultRunningVariance, running_var, running_mean),
               PAIR(resultSaveInvVariance, saved_inv, saved_mean)}},
    {.name = "cudnnBatchNormalizationBackwardEx",
     .call = back_ex,
     .modes = 3,
     .ops = "bnOps",
     .epsilon = true,
     .workspace = "workSpace",
     .workspace_size = back_size,
     .param = {A(dBnScaleBiasDesc, param_desc)},
     .like = {A(yDesc, y_desc), A(dyDesc, dy_desc), A(dzDesc, dz_desc), A(dxDesc, dx_desc)},
     .needed = {A(alphaDataDiff, alpha), A(betaDataDiff, beta), A(alphaParamDiff, alpha_param),
                A(betaParamDiff, beta_param), A(xData, x), A(yData, y_in), A(dyData, dy),
                A(dzData, dz), A(dxData, dx), A(bnScaleData, scale), A(bnBiasData, bias),
                A(dBnScaleData, dscale), A(dBnBiasData, dbias), A(savedMean, saved_mean),
                A(savedInvVariance, saved_inv)},
     .apart = {PAIR(dBnBiasData, dbias, dscale), PAIR(dzData, dz, dx)}},
    {.name = "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize",
     .call = train_size,
     .modes = 3,
     .ops = "bnOps",
     .param = {A(bnScaleBiasMeanVarDesc, param_desc)},
     .like = {A(yDesc, y_desc), A(zDesc, z_desc)},
     .needed = {A(sizeInBytes, size)}},
    {.name = "cudnnGetBatchNormalizationBackwardExWorkspaceSize",
     .call = back_size,
     .modes = 3,
     .ops = "bnOps",
     .param = {A(dBnScaleBiasDesc, param_desc)},
     .like = {A(yDesc, y_desc), A(dyDesc, dy_desc), A(dzDesc, dz_desc), A(dxDesc, dx_desc)},
     .needed = {A(sizeInBytes, size)}},
    {.name = "cudnnGetBatchNormalizationTrainingExReserveSpaceSize",
     .call = reserve_size,
     .modes = 3,
     .ops = "bnOps",
     .needed = {A(sizeInBytes, size)}},
};

#define ROW(status, function, argument, change)                                                    \
    do {                                                                                           \
        struct norm_arguments row = w->valid;                                                      \
        change;                                                                                    \
        norm_refuse_row(&functions[function], #argument, __LINE__, CUDNN_STATUS_##status, &row);   \
    } while (0)

/* What no list says. */
static void more_rows(const struct norm_world *w)
{
    ROW(BAD_PARAM_MISALIGNED_POINTER, INFER, y, row.y = (char *)row.y + 1);
    ROW(BAD_PARAM_MISALIGNED_POINTER, TRAIN, y, row.y = (char *)row.y + 1);
    /* in place, but with other strides */
    ROW(BAD_PARAM, TRAIN, yDesc, row.y = (void *)(uintptr_t)row.x; row.y_desc = w->nhwc);
    ROW(BAD_PARAM, BACK, dxDesc, row.dx = (void *)(uintptr_t)row.dy; row.dx_desc = w->nhwc);
    /* statistics of integers */
    ROW(NOT_SUPPORTED_DATA_TYPE, TRAIN, xDesc, row.x_desc = row.y_desc = w->integers);
}

int main(int argc, char **argv)
{
    enum { FUNCTIONS = sizeof functions / sizeof functions[0] };
    static struct norm_world w;
    norm_call *calls[FUNCTIONS];
    /* the definitions need a workspace, whose refusals are among the rows */
    setenv("WARPDNN_ENGINES", "none", 1);
    harness_start(argc, argv);
    if (!case_begin("batch norm")) return harness_finish();
    norm_world_begin(&w, reserve_size);
    for (int i = 0; i < FUNCTIONS; ++i) {
        norm_refuse(&w, &functions[i]);
        calls[i] = functions[i].call;
    }
    more_rows(&w);
    norm_accept("valid", &w.valid, calls, FUNCTIONS);
    norm_world_end(&w);
    refusal_report();
    return harness_finish();
}
