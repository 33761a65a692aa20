/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor transform descriptors, and the tensor that a transform gives. */
#include <limits.h>
#include <string.h>

#include "api/transform.h"
#include "graph/transform_shape.h"

cudnnStatus_t cudnnCreateTensorTransformDescriptor(cudnnTensorTransformDescriptor_t *transformDesc)
{
    return WD_DESC_CREATE(WD_DESC_TRANSFORM, transformDesc);
}

cudnnStatus_t cudnnDestroyTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc)
{
    return WD_DESC_DESTROY(WD_DESC_TRANSFORM, transformDesc);
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (from) memcpy(to, from, bytes);
    else memset(to, 0, bytes);
}

cudnnStatus_t cudnnSetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc,
                                                const uint32_t nbDims,
                                                const cudnnTensorFormat_t destFormat,
                                                const int32_t padBeforeA[],
                                                const int32_t padAfterA[], const uint32_t foldA[],
                                                const cudnnFoldingDirection_t direction)
{
    WD_DESC(transformDesc, WD_DESC_TRANSFORM);
    WD_ARG(nbDims >= 2, CUDNN_STATUS_BAD_PARAM, "nbDims=%u is less than 2", nbDims);
    WD_ARG(nbDims <= CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "nbDims=%u is more than CUDNN_DIM_MAX=%d", nbDims, CUDNN_DIM_MAX);
    WD_ARG((int)destFormat >= CUDNN_TENSOR_NCHW && (int)destFormat <= CUDNN_TENSOR_NCHW_VECT_C,
           CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "destFormat=%d is no cudnnTensorFormat_t",
           (int)destFormat);
    memset(transformDesc->fold, 0, sizeof transformDesc->fold);
    transformDesc->rank = (int32_t)nbDims;
    transformDesc->format = (int32_t)destFormat;
    /* whatever is not FOLD unfolds, as it always has */
    transformDesc->direction =
        (int)direction == CUDNN_TRANSFORM_FOLD ? CUDNN_TRANSFORM_FOLD : CUDNN_TRANSFORM_UNFOLD;
    copy(transformDesc->before, padBeforeA, nbDims * sizeof *padBeforeA);
    copy(transformDesc->after, padAfterA, nbDims * sizeof *padAfterA);
    copy(transformDesc->fold, foldA, (nbDims - 2) * sizeof *foldA);
    transformDesc->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc,
                                                uint32_t nbDimsRequested,
                                                cudnnTensorFormat_t *destFormat,
                                                int32_t padBeforeA[], int32_t padAfterA[],
                                                uint32_t foldA[],
                                                cudnnFoldingDirection_t *direction)
{
    WD_DESC(transformDesc, WD_DESC_TRANSFORM);
    WD_ARG(nbDimsRequested >= 3 && nbDimsRequested <= CUDNN_DIM_MAX, CUDNN_STATUS_BAD_PARAM,
           "nbDimsRequested=%u is not within 3 and CUDNN_DIM_MAX=%d", nbDimsRequested,
           CUDNN_DIM_MAX);
    if (destFormat) *destFormat = (cudnnTensorFormat_t)transformDesc->format;
    if (direction) *direction = (cudnnFoldingDirection_t)transformDesc->direction;
    if (padBeforeA) copy(padBeforeA, transformDesc->before, nbDimsRequested * sizeof *padBeforeA);
    if (padAfterA) copy(padAfterA, transformDesc->after, nbDimsRequested * sizeof *padAfterA);
    if (foldA) copy(foldA, transformDesc->fold, (nbDimsRequested - 2) * sizeof *foldA);
    return CUDNN_STATUS_SUCCESS;
}

struct wd_transform_attr wd_transform_attr(const struct cudnnTensorTransformStruct *transform)
{
    struct wd_transform_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.direction = transform->direction;
    for (int d = 0; d < CUDNN_DIM_MAX; ++d) {
        attr.before[d] = transform->before[d];
        attr.after[d] = transform->after[d];
    }
    for (int d = 0; d < CUDNN_DIM_MAX - 2; ++d) {
        attr.fold[d] = transform->fold[d] > 1 ? (int64_t)transform->fold[d] : 1;
    }
    return attr;
}

cudnnStatus_t cudnnInitTransformDest(const cudnnTensorTransformDescriptor_t transformDesc,
                                     const cudnnTensorDescriptor_t srcDesc,
                                     cudnnTensorDescriptor_t destDesc, size_t *destSizeInBytes)
{
    const struct wd_tensor *source;
    struct wd_tensor target;
    struct wd_transform_attr attr;
    int64_t dim[WD_MAX_RANK] = {0};
    int dims[WD_MAX_RANK];
    WD_DESC(transformDesc, WD_DESC_TRANSFORM);
    WD_DESC_SET(srcDesc, WD_DESC_TENSOR);
    WD_DESC(destDesc, WD_DESC_TENSOR);
    source = &srcDesc->tensor;
    WD_ARG(transformDesc->rank == 0 || transformDesc->rank == source->rank,
           CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "srcDesc has %d dimensions, transformDesc %d",
           source->rank, transformDesc->rank);
    WD_ARG(source->vect_count == 1 && transformDesc->format != CUDNN_TENSOR_NCHW_VECT_C,
           CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
           "srcDesc or the format of transformDesc has vectors of channels");
    attr = wd_transform_attr(transformDesc);
    wd_transform_dims(&attr, source->rank, source->dim, dim);
    for (int d = 0; d < source->rank; ++d) {
        WD_ARG(dim[d] >= 1, CUDNN_STATUS_BAD_PARAM,
               "padding of transformDesc leaves %lld of dim[%d]=%lld of srcDesc", (long long)dim[d],
               d, (long long)source->dim[d]);
        WD_ARG(
            dim[d] <= INT_MAX, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
            "transformDesc makes %lld of dim[%d]=%lld of srcDesc, more than the API's int can say",
            (long long)dim[d], d, (long long)source->dim[d]);
        dims[d] = (int)dim[d];
    }
    WD_TRY(wd_tensor_fill(__func__, &target, transformDesc->format, source->dtype, source->rank,
                          dims, "destDesc", NULL, NULL));
    destDesc->tensor = target;
    destDesc->declared_dtype = target.dtype;
    destDesc->declared_format = transformDesc->format;
    destDesc->head.set = 1;
    if (destSizeInBytes) *destSizeInBytes = (size_t)wd_tensor_extent(&target);
    return CUDNN_STATUS_SUCCESS;
}
