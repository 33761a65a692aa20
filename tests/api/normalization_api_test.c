/* SPDX-License-Identifier: Apache-2.0
 *
 * The newer interface of normalization: invalid arguments of every function that computes or sizes
 * (what is derived: norm_derive_api_test.c). The rows are norm_world.h's, by the lists below. */
#include <stdlib.h>
#include "api/norm_world.h"

#define CHOICES (cudnnNormMode_t) a->mode, (cudnnNormOps_t)a->ops, (cudnnNormAlgo_t)a->algo

static cudnnStatus_t infer(const struct norm_arguments *a)
{
    return cudnnNormalizationForwardInference(a->handle, CHOICES, a->alpha, a->beta, a->x_desc,
                                              a->x, a->param_desc, a->scale, a->bias, a->stats_desc,
                                              a->mean, a->var, a->z_desc, a->z, a->activation,
                                              a->y_desc, a->y, a->epsilon, a->groups);
}

static cudnnStatus_t train(const struct norm_arguments *a)
{
    return cudnnNormalizationForwardTraining(
        a->handle, CHOICES, a->alpha, a->beta, a->x_desc, a->x, a->param_desc, a->scale, a->bias,
        a->factor, a->stats_desc, a->running_mean, a->running_var, a->epsilon, a->saved_mean,
        a->saved_inv, a->activation, a->z_desc, a->z, a->y_desc, a->y, a->workspace,
        a->workspace_bytes, a->reserve, a->reserve_bytes, a->groups);
}

static cudnnStatus_t back(const struct norm_arguments *a)
{
    return cudnnNormalizationBackward(
        a->handle, CHOICES, a->alpha, a->beta, a->alpha_param, a->beta_param, a->x_desc, a->x,
        a->y_desc, a->y_in, a->dy_desc, a->dy, a->dz_desc, a->dz, a->dx_desc, a->dx, a->param_desc,
        a->scale, a->bias, a->dscale, a->dbias, a->epsilon, a->stats_desc, a->saved_mean,
        a->saved_inv, a->activation, a->workspace, a->workspace_bytes, a->reserve, a->reserve_bytes,
        a->groups);
}

static cudnnStatus_t train_size(const struct norm_arguments *a)
{
    return cudnnGetNormalizationForwardTrainingWorkspaceSize(
        a->handle, CHOICES, a->x_desc, a->z_desc, a->y_desc, a->param_desc, a->activation,
        a->stats_desc, a->size, a->groups);
}

static cudnnStatus_t back_size(const struct norm_arguments *a)
{
    return cudnnGetNormalizationBackwardWorkspaceSize(
        a->handle, CHOICES, a->x_desc, a->y_desc, a->dy_desc, a->dz_desc, a->dx_desc, a->param_desc,
        a->activation, a->stats_desc, a->size, a->groups);
}

static cudnnStatus_t reserve_size(const struct norm_arguments *a)
{
    return cudnnGetNormalizationTrainingReserveSpaceSize(a->handle, CHOICES, a->activation,
                                                         a->x_desc, a->size, a->groups);
}

#define A NORM_ARGUMENT
#define PAIR NORM_PAIR
enum { INFER, TRAIN };
static const struct norm_function functions[] = {
    {.name = "cudnnNormalizationForwardInference",
     .call = infer,
     .modes = 2,
     .newer = true,
     .ops = "normOps",
     .epsilon = true,
     .param = {A(normScaleBiasDesc, param_desc), A(normMeanVarDesc, stats_desc)},
     .like = {A(yDesc, y_desc), A(zDesc, z_desc)},
     .needed = {A(alpha, alpha), A(beta, beta), A(x, x), A(z, z), A(y, y), A(normScale, scale),
                A(normBias, bias), A(estimatedMean, mean), A(estimatedVariance, var)}},
    {.name = "cudnnNormalizationForwardTraining",
     .call = train,
     .modes = 2,
     .newer = true,
     .ops = "normOps",
     .epsilon = true,
     .factor = true,
     .workspace = "workspace",
     .workspace_size = train_size,
     .param = {A(normScaleBiasDesc, param_desc), A(normMeanVarDesc, stats_desc)},
     .like = {A(yDesc, y_desc), A(zDesc, z_desc)},
     .needed = {A(alpha, alpha), A(beta, beta), A(xData, x), A(zData, z), A(yData, y),
                A(normScale, scale), A(normBias, bias), A(resultSaveMean, saved_mean),
                A(resultSaveInvVariance, saved_inv)},
     .apart = {PAIR(resultRunningMean, running_mean, running_var),
               PAIR(resultRunningVariance, running_var, running_mean),
               PAIR(resultSaveInvVariance, saved_inv, saved_mean)}},
    {.name = "cudnnNormalizationBackward",
     .call = back,
     .modes = 2,
     .newer = true,
     .ops = "normOps",
     .epsilon = true,
     .workspace = "workSpace",
     .workspace_size = back_size,
     .param = {A(dNormScaleBiasDesc, param_desc), A(normMeanVarDesc, stats_desc)},
     .like = {A(yDesc, y_desc), A(dyDesc, dy_desc), A(dzDesc, dz_desc), A(dxDesc, dx_desc)},
     .needed = {A(alphaDataDiff, alpha), A(betaDataDiff, beta), A(alphaParamDiff, alpha_param),
                A(betaParamDiff, beta_param), A(xData, x), A(yData, y_in), A(dyData, dy),
                A(dzData, dz), A(dxData, dx), A(normScaleData, scale), A(normBiasData, bias),
                A(dNormScaleData, dscale), A(dNormBiasData, dbias), A(savedMean, saved_mean),
                A(savedInvVariance, saved_inv)},
     .apart = {PAIR(dNormBiasData, dbias, dscale), PAIR(dzData, dz, dx)}},
    {.name = "cudnnGetNormalizationForwardTrainingWorkspaceSize",
     .call = train_size,
     .modes = 2,
     .newer = true,
     .ops = "normOps",
     .param = {A(normScaleBiasDesc, param_desc), A(normMeanVarDesc, stats_desc)},
     .like = {A(yDesc, y_desc), A(zDesc, z_desc)},
     .needed = {A(sizeInBytes, size)}},
    {.name = "cudnnGetNormalizationBackwardWorkspaceSize",
     .call = back_size,
     .modes = 2,
     .newer = true,
     .ops = "normOps",
     .param = {A(dNormScaleBiasDesc, param_desc), A(normMeanVarDesc, stats_desc)},
     .like = {A(yDesc, y_desc), A(dyDesc, dy_desc), A(dzDesc, dz_desc), A(dxDesc, dx_desc)},
     .needed = {A(sizeInBytes, size)}},
    {.name = "cudnnGetNormalizationTrainingReserveSpaceSize",
     .call = reserve_size,
     .modes = 2,
     .newer = true,
     .ops = "normOps",
     .needed = {A(sizeInBytes, size)}},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* What no list says. */
static void more_rows(const struct norm_world *w)
{
    struct norm_arguments row = w->valid;
    row.y = (char *)row.y + 1;
    norm_refuse_row(&functions[INFER], "y", __LINE__, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                    &row);
    /* statistics of integers */
    row = w->valid;
    row.ops = CUDNN_NORM_OPS_NORM;
    row.x_desc = row.y_desc = w->integers;
    norm_refuse_row(&functions[TRAIN], "xDesc", __LINE__, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                    &row);
}

/* The arguments are valid as they stand: every call succeeds with them; so do those that nobody
 * looks at without an activation, and what no result depends on. */
static void accepted(struct norm_arguments row)
{
    norm_call *calls[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; ++i) calls[i] = functions[i].call;
    norm_accept("valid", &row, calls, FUNCTIONS);
    row.algo = CUDNN_NORM_ALGO_PERSIST;
    norm_accept("persist", &row, calls, FUNCTIONS);
    row.ops = CUDNN_NORM_OPS_NORM_ACTIVATION;
    row.z_desc = row.dz_desc = NULL;
    row.z = row.dz = NULL;
    norm_accept("no_residual", &row, calls, FUNCTIONS);
    row.ops = CUDNN_NORM_OPS_NORM;
    row.activation = NULL;
    row.y_in = NULL;
    row.reserve = NULL;
    row.reserve_bytes = 0;
    norm_accept("no_activation", &row, calls, FUNCTIONS);
    row.epsilon = 0.0;
    row.running_mean = row.running_var = NULL;
    row.saved_mean = row.saved_inv = NULL;
    norm_accept("no_statistics", &row, calls, FUNCTIONS);
}

int main(int argc, char **argv)
{
    static struct norm_world w;
    /* the definitions need a workspace, whose refusals are among the rows */
    setenv("WARPDNN_ENGINES", "none", 1);
    harness_start(argc, argv);
    if (!case_begin("normalization")) return harness_finish();
    norm_world_begin(&w, reserve_size);
    for (int i = 0; i < FUNCTIONS; ++i) norm_refuse(&w, &functions[i]);
    more_rows(&w);
    accepted(w.valid);
    norm_world_end(&w);
    refusal_report();
    return harness_finish();
}
