/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling: descriptors, the output's dims, forward and backward. */
#include <limits.h>
#include <string.h>

#include "api/api.h"

enum { FORWARD_X, FORWARD_Y };
enum { BACKWARD_Y, BACKWARD_DY, BACKWARD_X, BACKWARD_DX };
enum { ALPHA, BETA };

enum { MAX_SPATIAL = CUDNN_DIM_MAX - 2 };

struct cudnnPoolingStruct {
    struct wd_descriptor head;
    int32_t mode; /* cudnnPoolingMode_t */
    int32_t propagate_nan;
    int32_t spatial;
    int32_t window[MAX_SPATIAL]; /* beyond `spatial`: 0 */
    int32_t pad[MAX_SPATIAL];    /* negative: the image is cropped */
    int32_t stride[MAX_SPATIAL];
};

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *poolingDesc)
{
    return WD_DESC_CREATE(WD_DESC_POOLING, poolingDesc);
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t poolingDesc)
{
    return WD_DESC_DESTROY(WD_DESC_POOLING, poolingDesc);
}

static cudnnStatus_t set(const char *function, cudnnPoolingDescriptor_t descriptor, int mode,
                         int propagate_nan, int spatial, const int *window,
                         const char *window_names, const int *pad, const int *stride,
                         const char *stride_names)
{
    char name[WD_ELEMENT_NAME_SIZE];
    struct cudnnPoolingStruct filled = {.head = {.type = WD_DESC_POOLING, .set = 1}};
    if (mode < CUDNN_POOLING_MAX || mode > CUDNN_POOLING_MAX_DETERMINISTIC) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnPoolingMode_t",
                          mode);
    }
    if (propagate_nan != CUDNN_NOT_PROPAGATE_NAN && propagate_nan != CUDNN_PROPAGATE_NAN) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "maxpoolingNanOpt=%d is no cudnnNanPropagation_t", propagate_nan);
    }
    for (int s = 0; s < spatial; ++s) {
        if (window[s] <= 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s=%d is not positive",
                              wd_element_name(window_names, s, name), window[s]);
        }
        if (stride[s] <= 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s=%d is not positive",
                              wd_element_name(stride_names, s, name), stride[s]);
        }
        filled.window[s] = window[s];
        filled.pad[s] = pad[s];
        filled.stride[s] = stride[s];
    }
    filled.mode = mode;
    filled.propagate_nan = propagate_nan;
    filled.spatial = spatial;
    *descriptor = filled;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                          cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight,
                                          int windowWidth, int verticalPadding,
                                          int horizontalPadding, int verticalStride,
                                          int horizontalStride)
{
    int window[2] = {windowHeight, windowWidth};
    int pad[2] = {verticalPadding, horizontalPadding};
    int stride[2] = {verticalStride, horizontalStride};
    WD_DESC(poolingDesc, WD_DESC_POOLING);
    return set(__func__, poolingDesc, (int)mode, (int)maxpoolingNanOpt, 2, window,
               "windowHeight windowWidth", pad, stride, "verticalStride horizontalStride");
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                          const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t maxpoolingNanOpt, int nbDims,
                                          const int windowDimA[], const int paddingA[],
                                          const int strideA[])
{
    WD_DESC(poolingDesc, WD_DESC_POOLING);
    WD_ARG(nbDims > 0, CUDNN_STATUS_BAD_PARAM, "nbDims=%d is not positive", nbDims);
    WD_ARG(nbDims <= MAX_SPATIAL, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "nbDims=%d is more than the %d dimensions that a tensor has behind n and c", nbDims,
           MAX_SPATIAL);
    WD_ARG(windowDimA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "windowDimA is null");
    WD_ARG(paddingA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "paddingA is null");
    WD_ARG(strideA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "strideA is null");
    return set(__func__, poolingDesc, (int)mode, (int)maxpoolingNanOpt, nbDims, windowDimA,
               "windowDimA", paddingA, strideA, "strideA");
}

cudnnStatus_t cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t poolingDesc,
                                          cudnnPoolingMode_t *mode,
                                          cudnnNanPropagation_t *maxpoolingNanOpt,
                                          int *windowHeight, int *windowWidth, int *verticalPadding,
                                          int *horizontalPadding, int *verticalStride,
                                          int *horizontalStride)
{
    WD_DESC(poolingDesc, WD_DESC_POOLING);
    if (mode) *mode = (cudnnPoolingMode_t)poolingDesc->mode;
    if (maxpoolingNanOpt) *maxpoolingNanOpt = (cudnnNanPropagation_t)poolingDesc->propagate_nan;
    if (windowHeight) *windowHeight = poolingDesc->window[0];
    if (windowWidth) *windowWidth = poolingDesc->window[1];
    if (verticalPadding) *verticalPadding = poolingDesc->pad[0];
    if (horizontalPadding) *horizontalPadding = poolingDesc->pad[1];
    if (verticalStride) *verticalStride = poolingDesc->stride[0];
    if (horizontalStride) *horizontalStride = poolingDesc->stride[1];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t poolingDesc,
                                          int nbDimsRequested, cudnnPoolingMode_t *mode,
                                          cudnnNanPropagation_t *maxpoolingNanOpt, int *nbDims,
                                          int windowDimA[], int paddingA[], int strideA[])
{
    WD_DESC(poolingDesc, WD_DESC_POOLING);
    WD_ARG(nbDimsRequested <= MAX_SPATIAL, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "nbDimsRequested=%d is more than the %d dimensions that a tensor has behind n and c",
           nbDimsRequested, MAX_SPATIAL);
    for (int s = 0; s < nbDimsRequested; ++s) {
        if (windowDimA) windowDimA[s] = poolingDesc->window[s];
        if (paddingA) paddingA[s] = poolingDesc->pad[s];
        if (strideA) strideA[s] = poolingDesc->stride[s];
    }
    if (mode) *mode = (cudnnPoolingMode_t)poolingDesc->mode;
    if (maxpoolingNanOpt) *maxpoolingNanOpt = (cudnnNanPropagation_t)poolingDesc->propagate_nan;
    if (nbDims) *nbDims = poolingDesc->spatial;
    return CUDNN_STATUS_SUCCESS;
}

/* 1 + floor((image + 2 * pad - window) / stride) along each spatial dimension. */
static cudnnStatus_t output_dims(const char *function, const struct cudnnPoolingStruct *pooling,
                                 const struct cudnnTensorStruct *input, int rank, int *result)
{
    const struct wd_tensor *x = &input->tensor;
    int64_t dim[WD_MAX_RANK];
    if (x->rank != rank || pooling->spatial != rank - 2) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%d output dims asked for, but poolingDesc has a window of %d dimensions "
                          "and inputTensorDesc has %d dims",
                          rank, pooling->spatial, x->rank);
    }
    for (int d = 0; d < rank; ++d) {
        int64_t slack = 0;
        dim[d] = x->dim[d];
        if (d >= 2) {
            slack = x->dim[d] + 2 * (int64_t)pooling->pad[d - 2] - pooling->window[d - 2];
            dim[d] = 1 + slack / pooling->stride[d - 2];
        }
        if (slack < 0) {
            return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                              "window[%d]=%d of poolingDesc is more than the image's %lld of "
                              "inputTensorDesc with a padding of %d on both sides",
                              d - 2, pooling->window[d - 2], (long long)x->dim[d],
                              pooling->pad[d - 2]);
        }
        if (dim[d] > INT_MAX) {
            return wd_fail_in(
                function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                "output dim[%d]=%lld, from poolingDesc and inputTensorDesc, does not fit "
                "the API's int",
                d, (long long)dim[d]);
        }
    }
    for (int d = 0; d < rank; ++d) result[d] = (int)dim[d];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                                const cudnnTensorDescriptor_t inputTensorDesc,
                                                int *n, int *c, int *h, int *w)
{
    int dims[4];
    WD_DESC_SET(poolingDesc, WD_DESC_POOLING);
    WD_DESC_SET(inputTensorDesc, WD_DESC_TENSOR);
    WD_ARG(n != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "n is null");
    WD_ARG(c != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "c is null");
    WD_ARG(h != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "h is null");
    WD_ARG(w != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "w is null");
    WD_TRY(output_dims(__func__, poolingDesc, inputTensorDesc, 4, dims));
    *n = dims[0];
    *c = dims[1];
    *h = dims[2];
    *w = dims[3];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                                const cudnnTensorDescriptor_t inputTensorDesc,
                                                int nbDims, int outputTensorDimA[])
{
    WD_DESC_SET(poolingDesc, WD_DESC_POOLING);
    WD_DESC_SET(inputTensorDesc, WD_DESC_TENSOR);
    WD_ARG(outputTensorDimA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
           "outputTensorDimA is null");
    WD_ARG(
        poolingDesc->spatial + 2 == nbDims && inputTensorDesc->tensor.rank == nbDims,
        CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
        "nbDims=%d, but poolingDesc has a window of %d dimensions and inputTensorDesc has %d dims",
        nbDims, poolingDesc->spatial, inputTensorDesc->tensor.rank);
    return output_dims(__func__, poolingDesc, inputTensorDesc, nbDims, outputTensorDimA);
}

static struct wd_pool_attr pool_attr(const struct cudnnPoolingStruct *pooling)
{
    struct wd_pool_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.spatial = pooling->spatial;
    attr.mode = pooling->mode;
    attr.propagate_nan = pooling->propagate_nan;
    for (int s = 0; s < pooling->spatial; ++s) {
        attr.window[s] = pooling->window[s];
        attr.pad_before[s] = attr.pad_after[s] = pooling->pad[s];
        attr.stride[s] = pooling->stride[s];
    }
    return attr;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc,
                                  const void *alpha, const cudnnTensorDescriptor_t xDesc,
                                  const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t yDesc, void *y)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(poolingDesc, WD_DESC_POOLING);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_ARG(x == NULL || x != y, CUDNN_STATUS_BAD_PARAM,
           "x and y are the same memory; windows may overlap, so pooling has no in-place form");
    wd_single_init(&single, WD_OP_POOL_FORWARD);
    single.attr_desc = "poolingDesc";
    single.node.attr.pool = pool_attr(poolingDesc);
    WD_BIND(&single, FORWARD_X, xDesc, x);
    WD_BIND(&single, FORWARD_Y, yDesc, y);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, yDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, yDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

/* The API wants a tensor and its gradient to be laid out alike. */
static cudnnStatus_t check_alike(const char *function, const struct cudnnTensorStruct *tensor,
                                 const char *name, const struct cudnnTensorStruct *gradient,
                                 const char *gradient_name)
{
    char a[160];
    char b[160];
    if (!wd_tensor_same_dims(&tensor->tensor, &gradient->tensor)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "the dims of %s (%s) differ from those of %s (%s)", name,
                          wd_tensor_text(&tensor->tensor, a, sizeof a), gradient_name,
                          wd_tensor_text(&gradient->tensor, b, sizeof b));
    }
    if (!wd_tensor_same_layout(&tensor->tensor, &gradient->tensor)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "the strides of %s (%s) differ from those of %s (%s)", name,
                          wd_tensor_text(&tensor->tensor, a, sizeof a), gradient_name,
                          wd_tensor_text(&gradient->tensor, b, sizeof b));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc,
                                   const void *alpha, const cudnnTensorDescriptor_t yDesc,
                                   const void *y, const cudnnTensorDescriptor_t dyDesc,
                                   const void *dy, const cudnnTensorDescriptor_t xDesc,
                                   const void *x, const void *beta,
                                   const cudnnTensorDescriptor_t dxDesc, void *dx)
{
    struct wd_single single;
    WD_HANDLE(handle);
    WD_DESC_SET(poolingDesc, WD_DESC_POOLING);
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dyDesc, WD_DESC_TENSOR);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dxDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_TRY(check_alike(__func__, yDesc, "yDesc", dyDesc, "dyDesc"));
    WD_TRY(check_alike(__func__, xDesc, "xDesc", dxDesc, "dxDesc"));
    WD_ARG(dx == NULL || (dx != dy && dx != x && dx != y), CUDNN_STATUS_BAD_PARAM,
           "dx is the memory of %s; windows may overlap, so pooling has no in-place form",
           dx == dy  ? "dy"
           : dx == x ? "x"
                     : "y");
    wd_single_init(&single, WD_OP_POOL_BACKWARD);
    single.attr_desc = "poolingDesc";
    single.node.attr.pool = pool_attr(poolingDesc);
    /* an average needs dy only, but its x and y belong to the call and to its checks */
    if (y || poolingDesc->mode == CUDNN_POOLING_MAX ||
        poolingDesc->mode == CUDNN_POOLING_MAX_DETERMINISTIC) {
        WD_BIND(&single, BACKWARD_Y, yDesc, y);
    }
    WD_BIND(&single, BACKWARD_DY, dyDesc, dy);
    if (x || poolingDesc->mode == CUDNN_POOLING_MAX ||
        poolingDesc->mode == CUDNN_POOLING_MAX_DETERMINISTIC) {
        WD_BIND(&single, BACKWARD_X, xDesc, x);
    }
    WD_BIND(&single, BACKWARD_DX, dxDesc, dx);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, dxDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, dxDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}
