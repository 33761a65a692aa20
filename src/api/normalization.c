/* SPDX-License-Identifier: Apache-2.0
 *
 * The newer interface of normalization. Its modes are batch normalization's by another name,
 * PER_CHANNEL for SPATIAL; groupCnt is reserved and must be 1. */
#include "api/batchnorm.h"

static bool is_mode(int mode)
{
    return mode == CUDNN_NORM_PER_ACTIVATION || mode == CUDNN_NORM_PER_CHANNEL;
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
