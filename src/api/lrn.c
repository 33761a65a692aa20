/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of local response and divisive normalization. */
#include "api/api.h"

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
    WD_TRY(wd_descriptor_create(__func__, WD_DESC_LRN, sizeof *own, normDesc));
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
    return wd_descriptor_destroy(__func__, WD_DESC_LRN, lrnDesc);
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
