/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms of tensors and filters by a transform descriptor. */
#include "api/transform.h"

enum { SRC, DEST };
enum { ALPHA, BETA };

static cudnnStatus_t run(const char *function, cudnnHandle_t handle,
                         const struct cudnnTensorTransformStruct *transform, const void *alpha,
                         const struct wd_tensor *src, const void *src_data, const void *beta,
                         const struct wd_tensor *dest, void *dest_data)
{
    struct wd_single single;
    if (transform->rank != 0 && transform->rank != src->rank) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "srcDesc has %d dimensions, transDesc %d", src->rank, transform->rank);
    }
    if (!alpha || !beta) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null",
                          alpha ? "beta" : "alpha");
    }
    if (dest_data && src_data == dest_data) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "srcData and destData are the same memory; elements move, so a transform "
                          "has no in-place form");
    }
    wd_single_init(&single, WD_OP_TRANSFORM);
    single.node.attr.transform = wd_transform_attr(transform);
    wd_bind(&single, SRC, src, "srcDesc", src_data, "srcData");
    wd_bind(&single, DEST, dest, "destDesc", dest_data, "destData");
    single.attr_desc = "transDesc";
    /* as of cudnnTransformTensor: the scalars have the type that goes with the source */
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, src->dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, src->dtype));
    return wd_run(function, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnTransformTensorEx(cudnnHandle_t handle,
                                     const cudnnTensorTransformDescriptor_t transDesc,
                                     const void *alpha, const cudnnTensorDescriptor_t srcDesc,
                                     const void *srcData, const void *beta,
                                     const cudnnTensorDescriptor_t destDesc, void *destData)
{
    WD_HANDLE(handle);
    WD_DESC(transDesc, WD_DESC_TRANSFORM);
    WD_DESC_SET(srcDesc, WD_DESC_TENSOR);
    WD_DESC_SET(destDesc, WD_DESC_TENSOR);
    return run(__func__, handle, transDesc, alpha, &srcDesc->tensor, srcData, beta,
               &destDesc->tensor, destData);
}

cudnnStatus_t cudnnTransformFilter(cudnnHandle_t handle,
                                   const cudnnTensorTransformDescriptor_t transDesc,
                                   const void *alpha, const cudnnFilterDescriptor_t srcDesc,
                                   const void *srcData, const void *beta,
                                   const cudnnFilterDescriptor_t destDesc, void *destData)
{
    WD_HANDLE(handle);
    WD_DESC(transDesc, WD_DESC_TRANSFORM);
    WD_DESC_SET(srcDesc, WD_DESC_FILTER);
    WD_DESC_SET(destDesc, WD_DESC_FILTER);
    return run(__func__, handle, transDesc, alpha, &srcDesc->tensor, srcData, beta,
               &destDesc->tensor, destData);
}
