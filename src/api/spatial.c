/* SPDX-License-Identifier: Apache-2.0
 *
 * Spatial transformers: descriptors, grid generator and sampler, forward and backward. */
#include <string.h>

#include "api/api.h"

enum { GRID_IN, GRID_OUT };
enum { FORWARD_X, FORWARD_GRID, FORWARD_Y };
enum { BACKWARD_X, BACKWARD_DY, BACKWARD_GRID, BACKWARD_DX, BACKWARD_DGRID };
enum { ALPHA, BETA, ALPHA_GRID, BETA_GRID };

struct cudnnSpatialTransformerStruct {
    struct wd_descriptor head;
    int32_t sampler; /* cudnnSamplerType_t */
    int32_t dtype;   /* of all tensors */
    int64_t dim[4];  /* N, C, H, W of the output */
};

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t *stDesc)
{
    return WD_DESC_CREATE(WD_DESC_SPATIAL, stDesc);
}

cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t stDesc)
{
    return WD_DESC_DESTROY(WD_DESC_SPATIAL, stDesc);
}

cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t stDesc,
                                                     cudnnSamplerType_t samplerType,
                                                     cudnnDataType_t dataType, const int nbDims,
                                                     const int dimA[])
{
    int dtype = (int)dataType;
    WD_DESC(stDesc, WD_DESC_SPATIAL);
    WD_ARG((int)samplerType == CUDNN_SAMPLER_BILINEAR, CUDNN_STATUS_BAD_PARAM,
           "samplerType=%d is no cudnnSamplerType_t", (int)samplerType);
    /* as recorded: int8 is not supported, other types are no arguments at all */
    WD_ARG(dtype == CUDNN_DATA_FLOAT || dtype == CUDNN_DATA_DOUBLE || dtype == CUDNN_DATA_HALF ||
               dtype == CUDNN_DATA_BFLOAT16,
           dtype == CUDNN_DATA_INT8 ? CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE : CUDNN_STATUS_BAD_PARAM,
           "dataType=%d (%s) is none of fp64, fp32, fp16, bf16", dtype, wd_dtype_name(dtype));
    WD_ARG(nbDims > 0, CUDNN_STATUS_BAD_PARAM, "nbDims=%d is not positive", nbDims);
    WD_ARG(nbDims == 4, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
           "nbDims=%d is not 4; there are 2-D transforms only", nbDims);
    WD_ARG(dimA != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "dimA is null");
    for (int d = 0; d < 4; ++d) {
        WD_ARG(dimA[d] > 0, CUDNN_STATUS_BAD_PARAM, "dimA[%d]=%d is not positive", d, dimA[d]);
    }
    stDesc->sampler = (int32_t)samplerType;
    stDesc->dtype = dtype;
    for (int d = 0; d < 4; ++d) stDesc->dim[d] = dimA[d];
    stDesc->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

static struct wd_tensor packed(int dtype, int rank, const int64_t *dim)
{
    struct wd_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.dtype = dtype;
    tensor.rank = rank;
    tensor.vect_count = 1;
    tensor.vect_dim = 1;
    memcpy(tensor.dim, dim, sizeof *dim * (size_t)rank);
    wd_strides_nchw(dim, rank, tensor.stride);
    return tensor;
}

/* The grid that a descriptor means, N x H x W x 2. */
static struct wd_tensor grid_tensor(const struct cudnnSpatialTransformerStruct *st)
{
    int64_t dim[4] = {st->dim[0], st->dim[2], st->dim[3], 2};
    return packed(st->dtype, 4, dim);
}

static struct wd_tensor theta_tensor(const struct cudnnSpatialTransformerStruct *st)
{
    int64_t dim[3] = {st->dim[0], 2, 3};
    return packed(st->dtype, 3, dim);
}

cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle,
                                                 const cudnnSpatialTransformerDescriptor_t stDesc,
                                                 const void *theta, void *grid)
{
    struct wd_single single;
    struct wd_tensor from;
    struct wd_tensor to;
    WD_HANDLE(handle);
    WD_DESC_SET(stDesc, WD_DESC_SPATIAL);
    WD_ARG(theta != grid || !theta, CUDNN_STATUS_BAD_PARAM, "theta and grid are the same memory");
    from = theta_tensor(stDesc);
    to = grid_tensor(stDesc);
    wd_single_init(&single, WD_OP_GRID_FORWARD);
    single.attr_desc = "stDesc";
    single.node.attr.spatial.sampler = stDesc->sampler;
    wd_single_bind(&single, GRID_IN, &from, theta, "theta");
    wd_single_bind(&single, GRID_OUT, &to, grid, "grid");
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                  const cudnnSpatialTransformerDescriptor_t stDesc,
                                                  const void *dgrid, void *dtheta)
{
    struct wd_single single;
    struct wd_tensor from;
    struct wd_tensor to;
    WD_HANDLE(handle);
    WD_DESC_SET(stDesc, WD_DESC_SPATIAL);
    WD_ARG(dgrid != dtheta || !dgrid, CUDNN_STATUS_BAD_PARAM,
           "dgrid and dtheta are the same memory");
    from = grid_tensor(stDesc);
    to = theta_tensor(stDesc);
    wd_single_init(&single, WD_OP_GRID_BACKWARD);
    single.attr_desc = "stDesc";
    single.node.attr.spatial.sampler = stDesc->sampler;
    wd_single_bind(&single, GRID_IN, &from, dgrid, "dgrid");
    wd_single_bind(&single, GRID_OUT, &to, dtheta, "dtheta");
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

/* The output (or its gradient) is what the descriptor says. */
static cudnnStatus_t check_output(const char *function,
                                  const struct cudnnSpatialTransformerStruct *st,
                                  const struct cudnnTensorStruct *output, const char *name)
{
    const struct wd_tensor *tensor = &output->tensor;
    char text[160];
    bool fits = tensor->rank == 4;
    for (int d = 0; fits && d < 4; ++d) fits = tensor->dim[d] == st->dim[d];
    if (!fits) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%s (%s) is not the output of stDesc, [%lld,%lld,%lld,%lld]", name,
                          wd_tensor_text(tensor, text, sizeof text), (long long)st->dim[0],
                          (long long)st->dim[1], (long long)st->dim[2], (long long)st->dim[3]);
    }
    if (tensor->dtype != st->dtype) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s is %s, but stDesc is %s", name,
                          wd_dtype_name(tensor->dtype), wd_dtype_name(st->dtype));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle,
                                           cudnnSpatialTransformerDescriptor_t stDesc,
                                           const void *alpha, const cudnnTensorDescriptor_t xDesc,
                                           const void *x, const void *grid, const void *beta,
                                           cudnnTensorDescriptor_t yDesc, void *y)
{
    struct wd_single single;
    struct wd_tensor places;
    WD_HANDLE(handle);
    WD_DESC_SET(stDesc, WD_DESC_SPATIAL);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(yDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_TRY(check_output(__func__, stDesc, yDesc, "yDesc"));
    WD_ARG(y == NULL || (y != x && y != grid), CUDNN_STATUS_BAD_PARAM,
           "y is the memory of %s; a sampler has no in-place form", y == x ? "x" : "grid");
    places = grid_tensor(stDesc);
    wd_single_init(&single, WD_OP_SAMPLER_FORWARD);
    single.attr_desc = "stDesc";
    single.node.attr.spatial.sampler = stDesc->sampler;
    WD_BIND(&single, FORWARD_X, xDesc, x);
    wd_single_bind(&single, FORWARD_GRID, &places, grid, "grid");
    WD_BIND(&single, FORWARD_Y, yDesc, y);
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, yDesc->tensor.dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, yDesc->tensor.dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                            cudnnSpatialTransformerDescriptor_t stDesc,
                                            const void *alpha, const cudnnTensorDescriptor_t xDesc,
                                            const void *x, const void *beta,
                                            const cudnnTensorDescriptor_t dxDesc, void *dx,
                                            const void *alphaDgrid,
                                            const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                            const void *grid, const void *betaDgrid, void *dgrid)
{
    struct wd_single single;
    struct wd_tensor places;
    int dtype;
    WD_HANDLE(handle);
    WD_DESC_SET(stDesc, WD_DESC_SPATIAL);
    WD_DESC_SET(xDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dxDesc, WD_DESC_TENSOR);
    WD_DESC_SET(dyDesc, WD_DESC_TENSOR);
    WD_ARG(alpha != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is null");
    WD_ARG(beta != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "beta is null");
    WD_ARG(alphaDgrid != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alphaDgrid is null");
    WD_ARG(betaDgrid != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "betaDgrid is null");
    WD_TRY(check_output(__func__, stDesc, dyDesc, "dyDesc"));
    WD_ARG(dx == NULL || (dx != x && dx != dy && dx != grid && dx != dgrid), CUDNN_STATUS_BAD_PARAM,
           "dx is the memory of %s",
           dx == x      ? "x"
           : dx == dy   ? "dy"
           : dx == grid ? "grid"
                        : "dgrid");
    WD_ARG(dgrid == NULL || (dgrid != x && dgrid != dy && dgrid != grid), CUDNN_STATUS_BAD_PARAM,
           "dgrid is the memory of %s",
           dgrid == x    ? "x"
           : dgrid == dy ? "dy"
                         : "grid");
    dtype = dxDesc->tensor.dtype;
    places = grid_tensor(stDesc);
    wd_single_init(&single, WD_OP_SAMPLER_BACKWARD);
    single.attr_desc = "stDesc";
    single.node.attr.spatial.sampler = stDesc->sampler;
    WD_BIND(&single, BACKWARD_X, xDesc, x);
    WD_BIND(&single, BACKWARD_DY, dyDesc, dy);
    wd_single_bind(&single, BACKWARD_GRID, &places, grid, "grid");
    WD_BIND(&single, BACKWARD_DX, dxDesc, dx);
    wd_single_bind(&single, BACKWARD_DGRID, &places, dgrid, "dgrid");
    wd_single_scalar(&single, ALPHA, wd_scalar(alpha, dtype));
    wd_single_scalar(&single, BETA, wd_scalar(beta, dtype));
    wd_single_scalar(&single, ALPHA_GRID, wd_scalar(alphaDgrid, dtype));
    wd_single_scalar(&single, BETA_GRID, wd_scalar(betaDgrid, dtype));
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}
