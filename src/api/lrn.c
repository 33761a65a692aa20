/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response and divisive normalization: descriptors, forward and backward. */
#include "api/api.h"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { DIV_X, DIV_MEANS, DIV_TEMP, DIV_TEMP2, DIV_Y };
enum { DIVB_X, DIVB_MEANS, DIVB_DY, DIVB_TEMP, DIVB_TEMP2, DIVB_DX, DIVB_DMEANS };
enum { ALPHA, BETA };

struct cudnnLRNStruct {
    struct wd_descriptor head;
    uint32_t n; /* the window */
    double alpha;
    double beta;
    double k;
};

cudnnStatus_t cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t *normDesc)
{
    struct cudnnLRNStruct *own;
    WD_TRY(WD_DESC_CREATE(WD_DESC_LRN, normDesc));
    own = *normDesc;
    own->n = 5;
    own->alpha = 1e-4;
    own->beta = 0.75;
    own->k = 2.0;
    own->head.set = 1; /* what it begins with can run */
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t lrnDesc)
{
    return WD_DESC_DESTROY(WD_DESC_LRN, lrnDesc);
}

cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned int lrnN,
                                    double lrnAlpha, double lrnBeta, double lrnK)
{
    WD_DESC(normDesc, WD_DESC_LRN);
    WD_ARG(lrnN >= CUDNN_LRN_MIN_N && lrnN <= CUDNN_LRN_MAX_N, CUDNN_STATUS_BAD_PARAM,
           "lrnN=%u is not between CUDNN_LRN_MIN_N=%d and CUDNN_LRN_MAX_N=%d", lrnN,
           CUDNN_LRN_MIN_N, CUDNN_LRN_MAX_N);
    /* written so that NaN fails */
    WD_ARG(lrnBeta >= CUDNN_LRN_MIN_BETA, CUDNN_STATUS_BAD_PARAM,
           "lrnBeta=%g is not at least CUDNN_LRN_MIN_BETA=%g", lrnBeta, CUDNN_LRN_MIN_BETA);
    WD_ARG(lrnK >= CUDNN_LRN_MIN_K, CUDNN_STATUS_BAD_PARAM,
           "lrnK=%g is not at least CUDNN_LRN_MIN_K=%g", lrnK, CUDNN_LRN_MIN_K);
    normDesc->n = lrnN;
    normDesc->alpha = lrnAlpha;
    normDesc->beta = lrnBeta;
    normDesc->k = lrnK;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned int *lrnN,
                                    double *lrnAlpha, double *lrnBeta, double *lrnK)
{
    WD_DESC(normDesc, WD_DESC_LRN);
    if (lrnN) *lrnN = normDesc->n;
    if (lrnAlpha) *lrnAlpha = normDesc->alpha;
    if (lrnBeta) *lrnBeta = normDesc->beta;
    if (lrnK) *lrnK = normDesc->k;
    return CUDNN_STATUS_SUCCESS;
}

static struct wd_lrn_attr lrn_attr(const struct cudnnLRNStruct *lrn, int mode)
{
    return (struct wd_lrn_attr){(int32_t)lrn->n, mode, lrn->alpha, lrn->beta, lrn->k};
}

struct operand {
    const char *name;
    const void *data;
};

/* An output lies apart from everything else. `others` ends with a null name. */
static cudnnStatus_t check_apart(const char *function, const char *name, const void *output,
                                 const struct operand *others)
{
    for (; others->name; ++others) {
        if (!output || output != others->data) continue;
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "%s is the memory of %s; windows overlap, so there is no in-place form",
                          name, others->name);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc,
                                          cudnnLRNMode_t lrnMode, const void *alpha,
                                          const cudnnTensorDescriptor_t xDesc, const void *x,
                                          const void *beta, const cudnnTensorDescriptor_t yDesc,
                                          void *y)
{
    const struct operand others[] = {{"x", x}, {NULL, NULL}};
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(normDesc, WD_DESC_LRN);
    WD_ARG((int)lrnMode == CUDNN_LRN_CROSS_CHANNEL_DIM1, CUDNN_STATUS_BAD_PARAM,
           "lrnMode=%d is no cudnnLRNMode_t", (int)lrnMode);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_TRY(check_apart(__func__, "y", y, others));
    wd_single_init(&single, WD_OP_LRN_FORWARD);
    single.attr_desc = "normDesc";
    single.node.attr.lrn = lrn_attr(normDesc, (int)lrnMode);
    WD_BIND(&single, FORWARD_X, xDesc, x);
    WD_BIND(&single, FORWARD_Y, yDesc, y);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, yDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, yDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc,
                                           cudnnLRNMode_t lrnMode, const void *alpha,
                                           const cudnnTensorDescriptor_t yDesc, const void *y,
                                           const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                           const cudnnTensorDescriptor_t xDesc, const void *x,
                                           const void *beta, const cudnnTensorDescriptor_t dxDesc,
                                           void *dx)
{
    const struct operand others[] = {{"y", y}, {"dy", dy}, {"x", x}, {NULL, NULL}};
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(normDesc, WD_DESC_LRN);
    WD_ARG((int)lrnMode == CUDNN_LRN_CROSS_CHANNEL_DIM1, CUDNN_STATUS_BAD_PARAM,
           "lrnMode=%d is no cudnnLRNMode_t", (int)lrnMode);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dyDesc, WD_DESC_TENSOR);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_DESC_SET(dxDesc, WD_DESC_TENSOR);
    WD_TRY(check_apart(__func__, "dx", dx, others));
    wd_single_init(&single, WD_OP_LRN_BACKWARD);
    single.attr_desc = "normDesc";
    single.node.attr.lrn = lrn_attr(normDesc, (int)lrnMode);
    WD_BIND(&single, BACKWARD_Y, yDesc, y);
    WD_BIND(&single, BACKWARD_DY, dyDesc, dy);
    WD_BIND(&single, BACKWARD_X, xDesc, x);
    WD_BIND(&single, BACKWARD_DX, dxDesc, dx);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, dxDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, dxDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnDivisiveNormalizationForward(cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc,
                                                cudnnDivNormMode_t mode, const void *alpha,
                                                const cudnnTensorDescriptor_t xDesc, const void *x,
                                                const void *means, void *temp, void *temp2,
                                                const void *beta,
                                                const cudnnTensorDescriptor_t yDesc, void *y)
{
    const struct operand inputs[] = {{"x", x}, {"means", means}, {NULL, NULL}};
    const struct operand all[] = {
        {"x", x}, {"means", means}, {"temp", temp}, {"temp2", temp2}, {NULL, NULL}};
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(normDesc, WD_DESC_LRN);
    WD_ARG((int)mode == CUDNN_DIVNORM_PRECOMPUTED_MEANS, CUDNN_STATUS_BAD_PARAM,
           "mode=%d is no cudnnDivNormMode_t", (int)mode);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_TRY(check_apart(__func__, "temp", temp, inputs));
    WD_TRY(check_apart(__func__, "temp2", temp2, inputs));
    WD_ARG(temp != temp2 || !temp, CUDNN_STATUS_BAD_PARAM, "temp and temp2 are the same memory");
    WD_TRY(check_apart(__func__, "y", y, all));
    wd_single_init(&single, WD_OP_DIVNORM_FORWARD);
    single.attr_desc = "normDesc";
    single.node.attr.lrn = lrn_attr(normDesc, (int)mode);
    WD_BIND(&single, DIV_X, xDesc, x);
    if (means) WD_BIND(&single, DIV_MEANS, xDesc, means);
    WD_BIND(&single, DIV_TEMP, xDesc, temp);
    WD_BIND(&single, DIV_TEMP2, xDesc, temp2);
    WD_BIND(&single, DIV_Y, yDesc, y);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, yDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, yDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnDivisiveNormalizationBackward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc, cudnnDivNormMode_t mode, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x, const void *means, const void *dy,
    void *temp, void *temp2, const void *beta, const cudnnTensorDescriptor_t dXdMeansDesc, void *dx,
    void *dMeans)
{
    const struct operand inputs[] = {{"x", x}, {"means", means}, {"dy", dy}, {NULL, NULL}};
    const struct operand all[] = {{"x", x},       {"means", means}, {"dy", dy},
                                  {"temp", temp}, {"temp2", temp2}, {NULL, NULL}};
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(normDesc, WD_DESC_LRN);
    WD_ARG((int)mode == CUDNN_DIVNORM_PRECOMPUTED_MEANS, CUDNN_STATUS_BAD_PARAM,
           "mode=%d is no cudnnDivNormMode_t", (int)mode);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_DESC_SET(dXdMeansDesc, WD_DESC_TENSOR);
    WD_TRY(check_apart(__func__, "temp", temp, inputs));
    WD_TRY(check_apart(__func__, "temp2", temp2, inputs));
    WD_ARG(temp != temp2 || !temp, CUDNN_STATUS_BAD_PARAM, "temp and temp2 are the same memory");
    WD_TRY(check_apart(__func__, "dx", dx, all));
    WD_TRY(check_apart(__func__, "dMeans", dMeans, all));
    WD_ARG(dMeans != dx || !dx, CUDNN_STATUS_BAD_PARAM, "dx and dMeans are the same memory");
    wd_single_init(&single, WD_OP_DIVNORM_BACKWARD);
    single.attr_desc = "normDesc";
    single.node.attr.lrn = lrn_attr(normDesc, (int)mode);
    WD_BIND(&single, DIVB_X, xDesc, x);
    if (means) WD_BIND(&single, DIVB_MEANS, xDesc, means);
    WD_BIND(&single, DIVB_DY, xDesc, dy);
    WD_BIND(&single, DIVB_TEMP, xDesc, temp);
    WD_BIND(&single, DIVB_TEMP2, xDesc, temp2);
    WD_BIND(&single, DIVB_DX, dXdMeansDesc, dx);
    if (dMeans) WD_BIND(&single, DIVB_DMEANS, dXdMeansDesc, dMeans);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, dXdMeansDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, dXdMeansDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}
