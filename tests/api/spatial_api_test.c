/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of spatial transformers. */
#include <limits.h>
#include <stddef.h>

#include "support/refusal.h"

static int dims[4] = {2, 3, 5, 6};
static const float one = 1.0f;
static cudnnSpatialTransformerDescriptor_t fake;

static void descriptor_rows(void)
{
    static const int zero[4] = {2, 3, 0, 6}, negative[4] = {2, -3, 5, 6};
    cudnnSpatialTransformerDescriptor_t st = NULL;
    cudnnCreateSpatialTransformerDescriptor(&st);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateSpatialTransformerDescriptor, stDesc,
            cudnnCreateSpatialTransformerDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroySpatialTransformerDescriptor, stDesc,
            cudnnDestroySpatialTransformerDescriptor(fake));
#define SET(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSetSpatialTransformerNdDescriptor, argument,                              \
            cudnnSetSpatialTransformerNdDescriptor(__VA_ARGS__))
#define BILINEAR CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT
    SET(BAD_PARAM_NULL_POINTER, stDesc, NULL, BILINEAR, 4, dims);
    SET(BAD_PARAM, stDesc, fake, BILINEAR, 4, dims);
    SET(BAD_PARAM, samplerType, st, (cudnnSamplerType_t)1, CUDNN_DATA_FLOAT, 4, dims);
    SET(BAD_PARAM, samplerType, st, (cudnnSamplerType_t)-1, CUDNN_DATA_FLOAT, 4, dims);
    SET(BAD_PARAM, dataType, st, CUDNN_SAMPLER_BILINEAR, (cudnnDataType_t)-1, 4, dims);
    SET(BAD_PARAM, dataType, st, CUDNN_SAMPLER_BILINEAR, (cudnnDataType_t)99, 4, dims);
    SET(NOT_SUPPORTED_DATA_TYPE, dataType, st, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_INT8, 4, dims);
    SET(BAD_PARAM, dataType, st, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_INT32, 4, dims);
    SET(BAD_PARAM, nbDims, st, BILINEAR, 0, dims);
    SET(BAD_PARAM, nbDims, st, BILINEAR, INT_MIN, dims);
    SET(NOT_SUPPORTED_SHAPE, nbDims, st, BILINEAR, 3, dims);
    SET(NOT_SUPPORTED_SHAPE, nbDims, st, BILINEAR, 5, dims);
    SET(BAD_PARAM_NULL_POINTER, dimA, st, BILINEAR, 4, NULL);
    SET(BAD_PARAM, dimA, st, BILINEAR, 4, zero);
    SET(BAD_PARAM, dimA, st, BILINEAR, 4, negative);
    cudnnDestroySpatialTransformerDescriptor(st);
}

static void grid_rows(void)
{
    static const int grid_dim[4] = {2, 5, 6, 2}, theta_dim[3] = {2, 2, 3};
    cudnnHandle_t h = harness_handle;
    cudnnSpatialTransformerDescriptor_t st = NULL;
    cudnnSpatialTransformerDescriptor_t unset = NULL;
    struct tensor *theta, *grid, *dgrid, *dtheta;
    if (!case_begin("grid tensors")) return;
    cudnnCreateSpatialTransformerDescriptor(&st);
    cudnnCreateSpatialTransformerDescriptor(&unset);
    cudnnSetSpatialTransformerNdDescriptor(st, BILINEAR, 4, dims);
    theta = tensor_input(CUDNN_DATA_FLOAT, 3, theta_dim, LAYOUT_NCHW, -1, 1);
    grid = tensor_output(CUDNN_DATA_FLOAT, 4, grid_dim, LAYOUT_NCHW);
    dgrid = tensor_input(CUDNN_DATA_FLOAT, 4, grid_dim, LAYOUT_NCHW, -1, 1);
    dtheta = tensor_output(CUDNN_DATA_FLOAT, 3, theta_dim, LAYOUT_NCHW);
    refusal_guard();
#define GEN(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSpatialTfGridGeneratorForward, argument,                                  \
            cudnnSpatialTfGridGeneratorForward(__VA_ARGS__))
    GEN(BAD_PARAM_NULL_POINTER, handle, NULL, st, theta->data, grid->data);
    GEN(BAD_PARAM, handle, (cudnnHandle_t)(void *)dims, st, theta->data, grid->data);
    GEN(BAD_PARAM_NULL_POINTER, stDesc, h, NULL, theta->data, grid->data);
    GEN(BAD_PARAM, stDesc, h, fake, theta->data, grid->data);
    GEN(BAD_PARAM, stDesc, h, unset, theta->data, grid->data);
    GEN(BAD_PARAM_NULL_POINTER, theta, h, st, NULL, grid->data);
    GEN(BAD_PARAM_MISALIGNED_POINTER, theta, h, st, (char *)theta->data + 2, grid->data);
    GEN(BAD_PARAM_NULL_POINTER, grid, h, st, theta->data, NULL);
    GEN(BAD_PARAM_MISALIGNED_POINTER, grid, h, st, theta->data, (char *)grid->data + 1);
    GEN(BAD_PARAM, grid, h, st, theta->data, theta->data);
#define BACK(status, argument, ...)                                                                \
    REFUSED(status, cudnnSpatialTfGridGeneratorBackward, argument,                                 \
            cudnnSpatialTfGridGeneratorBackward(__VA_ARGS__))
    BACK(BAD_PARAM_NULL_POINTER, handle, NULL, st, dgrid->data, dtheta->data);
    BACK(BAD_PARAM_NULL_POINTER, stDesc, h, NULL, dgrid->data, dtheta->data);
    BACK(BAD_PARAM, stDesc, h, unset, dgrid->data, dtheta->data);
    BACK(BAD_PARAM_NULL_POINTER, dgrid, h, st, NULL, dtheta->data);
    BACK(BAD_PARAM_MISALIGNED_POINTER, dgrid, h, st, (char *)dgrid->data + 2, dtheta->data);
    BACK(BAD_PARAM_NULL_POINTER, dtheta, h, st, dgrid->data, NULL);
    BACK(BAD_PARAM_MISALIGNED_POINTER, dtheta, h, st, dgrid->data, (char *)dtheta->data + 3);
    BACK(BAD_PARAM, dtheta, h, st, dgrid->data, dgrid->data);
    cudnnDestroySpatialTransformerDescriptor(st);
    cudnnDestroySpatialTransformerDescriptor(unset);
    case_end();
}

#define X x->desc, x->data
#define Y y->desc, y->data
#define DY dy->desc, dy->data
#define DX dx->desc, dx->data
#define GRID grid->data
#define DGRID dgrid->data

static void sampler_rows(void)
{
    static const int image[4] = {2, 3, 4, 7}, more[4] = {2, 4, 4, 7}, less[4] = {1, 3, 4, 7};
    static const int wide[4] = {2, 3, 5, 7}, image3[3] = {2, 3, 28}, places[4] = {2, 5, 6, 2};
    cudnnHandle_t h = harness_handle;
    cudnnSpatialTransformerDescriptor_t st = NULL;
    cudnnSpatialTransformerDescriptor_t half = NULL;
    cudnnSpatialTransformerDescriptor_t unset = NULL;
    cudnnTensorDescriptor_t no_t = NULL;
    struct tensor *x, *x_c4, *x_n1, *x_3d, *x_half, *y, *y_wide, *dy, *grid, *dx, *dx_c4, *dgrid;
    if (!case_begin("sampler tensors")) return;
    cudnnCreateSpatialTransformerDescriptor(&st);
    cudnnCreateSpatialTransformerDescriptor(&half);
    cudnnCreateSpatialTransformerDescriptor(&unset);
    cudnnCreateTensorDescriptor(&no_t);
    cudnnSetSpatialTransformerNdDescriptor(st, BILINEAR, 4, dims);
    cudnnSetSpatialTransformerNdDescriptor(half, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_HALF, 4, dims);
    x = tensor_input(CUDNN_DATA_FLOAT, 4, image, LAYOUT_NCHW, -1, 1);
    x_c4 = tensor_input(CUDNN_DATA_FLOAT, 4, more, LAYOUT_NCHW, -1, 1);
    x_n1 = tensor_input(CUDNN_DATA_FLOAT, 4, less, LAYOUT_NCHW, -1, 1);
    x_3d = tensor_input(CUDNN_DATA_FLOAT, 3, image3, LAYOUT_NCHW, -1, 1);
    x_half = tensor_input(CUDNN_DATA_HALF, 4, image, LAYOUT_NCHW, -1, 1);
    y = tensor_output(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW);
    y_wide = tensor_output(CUDNN_DATA_FLOAT, 4, wide, LAYOUT_NCHW);
    dy = tensor_input(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW, -1, 1);
    grid = tensor_input(CUDNN_DATA_FLOAT, 4, places, LAYOUT_NCHW, -1, 1);
    dx = tensor_output(CUDNN_DATA_FLOAT, 4, image, LAYOUT_NCHW);
    dx_c4 = tensor_output(CUDNN_DATA_FLOAT, 4, more, LAYOUT_NCHW);
    dgrid = tensor_output(CUDNN_DATA_FLOAT, 4, places, LAYOUT_NCHW);
    refusal_guard();
#define FWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSpatialTfSamplerForward, argument,                                        \
            cudnnSpatialTfSamplerForward(__VA_ARGS__))
    FWD(BAD_PARAM_NULL_POINTER, handle, NULL, st, &one, X, GRID, &one, Y);
    FWD(BAD_PARAM, handle, (cudnnHandle_t)(void *)dims, st, &one, X, GRID, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, stDesc, h, NULL, &one, X, GRID, &one, Y);
    FWD(BAD_PARAM, stDesc, h, fake, &one, X, GRID, &one, Y);
    FWD(BAD_PARAM, stDesc, h, unset, &one, X, GRID, &one, Y);
    FWD(BAD_PARAM, stDesc, h, half, &one, X, GRID, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, alpha, h, st, NULL, X, GRID, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, xDesc, h, st, &one, NULL, x->data, GRID, &one, Y);
    FWD(BAD_PARAM, xDesc, h, st, &one, no_t, x->data, GRID, &one, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, st, &one, x_c4->desc, x_c4->data, GRID, &one, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, st, &one, x_n1->desc, x_n1->data, GRID, &one, Y);
    FWD(NOT_SUPPORTED_SHAPE, xDesc, h, st, &one, x_3d->desc, x_3d->data, GRID, &one, Y);
    FWD(BAD_PARAM, xDesc, h, st, &one, x_half->desc, x_half->data, GRID, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, x, h, st, &one, x->desc, NULL, GRID, &one, Y);
    FWD(BAD_PARAM_MISALIGNED_POINTER, x, h, st, &one, x->desc, (char *)x->data + 1, GRID, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, grid, h, st, &one, X, NULL, &one, Y);
    FWD(BAD_PARAM_MISALIGNED_POINTER, grid, h, st, &one, X, (char *)grid->data + 2, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, beta, h, st, &one, X, GRID, NULL, Y);
    FWD(BAD_PARAM_NULL_POINTER, yDesc, h, st, &one, X, GRID, &one, NULL, y->data);
    FWD(BAD_PARAM, yDesc, h, st, &one, X, GRID, &one, no_t, y->data);
    FWD(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, st, &one, X, GRID, &one, y_wide->desc, y_wide->data);
    FWD(BAD_PARAM_NULL_POINTER, y, h, st, &one, X, GRID, &one, y->desc, NULL);
    FWD(BAD_PARAM_MISALIGNED_POINTER, y, h, st, &one, X, GRID, &one, y->desc, (char *)y->data + 2);
    FWD(BAD_PARAM, y, h, st, &one, X, GRID, &one, y->desc, x->data);
    FWD(BAD_PARAM, y, h, st, &one, X, GRID, &one, y->desc, grid->data);
#define BWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSpatialTfSamplerBackward, argument,                                       \
            cudnnSpatialTfSamplerBackward(__VA_ARGS__))
    BWD(BAD_PARAM_NULL_POINTER, handle, NULL, st, &one, X, &one, DX, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, stDesc, h, NULL, &one, X, &one, DX, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM, stDesc, h, unset, &one, X, &one, DX, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM, stDesc, h, half, &one, X, &one, DX, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, alpha, h, st, NULL, X, &one, DX, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, xDesc, h, st, &one, NULL, x->data, &one, DX, &one, DY, GRID, &one,
        DGRID);
    BWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, st, &one, x_c4->desc, x_c4->data, &one, DX, &one, DY,
        GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, x, h, st, &one, x->desc, NULL, &one, DX, &one, DY, GRID, &one,
        DGRID);
    BWD(BAD_PARAM_NULL_POINTER, beta, h, st, &one, X, NULL, DX, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, dxDesc, h, st, &one, X, &one, NULL, dx->data, &one, DY, GRID, &one,
        DGRID);
    BWD(BAD_PARAM, dxDesc, h, st, &one, X, &one, no_t, dx->data, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM_SHAPE_MISMATCH, dxDesc, h, st, &one, X, &one, dx_c4->desc, dx_c4->data, &one, DY,
        GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, dx, h, st, &one, X, &one, dx->desc, NULL, &one, DY, GRID, &one,
        DGRID);
    BWD(BAD_PARAM, dx, h, st, &one, X, &one, dx->desc, x->data, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM, dx, h, st, &one, X, &one, dx->desc, dy->data, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM, dx, h, st, &one, X, &one, dx->desc, grid->data, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM, dx, h, st, &one, X, &one, dx->desc, dgrid->data, &one, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, alphaDgrid, h, st, &one, X, &one, DX, NULL, DY, GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, dyDesc, h, st, &one, X, &one, DX, &one, NULL, dy->data, GRID, &one,
        DGRID);
    BWD(BAD_PARAM_SHAPE_MISMATCH, dyDesc, h, st, &one, X, &one, DX, &one, y_wide->desc, dy->data,
        GRID, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, dy, h, st, &one, X, &one, DX, &one, dy->desc, NULL, GRID, &one,
        DGRID);
    BWD(BAD_PARAM_NULL_POINTER, grid, h, st, &one, X, &one, DX, &one, DY, NULL, &one, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, betaDgrid, h, st, &one, X, &one, DX, &one, DY, GRID, NULL, DGRID);
    BWD(BAD_PARAM_NULL_POINTER, dgrid, h, st, &one, X, &one, DX, &one, DY, GRID, &one, NULL);
    BWD(BAD_PARAM_MISALIGNED_POINTER, dgrid, h, st, &one, X, &one, DX, &one, DY, GRID, &one,
        (char *)dgrid->data + 1);
    BWD(BAD_PARAM, dgrid, h, st, &one, X, &one, DX, &one, DY, GRID, &one, grid->data);
    BWD(BAD_PARAM, dgrid, h, st, &one, X, &one, DX, &one, DY, GRID, &one, dy->data);
    BWD(BAD_PARAM, dgrid, h, st, &one, X, &one, DX, &one, DY, GRID, &one, x->data);
    cudnnDestroySpatialTransformerDescriptor(st);
    cudnnDestroySpatialTransformerDescriptor(half);
    cudnnDestroySpatialTransformerDescriptor(unset);
    cudnnDestroyTensorDescriptor(no_t);
    case_end();
}

/* A descriptor of null is destroyed; one may be set anew, and a refused set changes nothing. */
static void answers(void)
{
    static const int grid_dim[4] = {2, 5, 6, 2}, theta_dim[3] = {2, 2, 3}, zero[4] = {0, 1, 1, 1};
    cudnnSpatialTransformerDescriptor_t st = NULL;
    struct tensor *theta, *grid;
    if (!case_begin("spatial answers")) return;
    cudnnCreateSpatialTransformerDescriptor(&st);
    theta = tensor_input(CUDNN_DATA_FLOAT, 3, theta_dim, LAYOUT_NCHW, -1, 1);
    grid = tensor_output(CUDNN_DATA_FLOAT, 4, grid_dim, LAYOUT_NCHW);
    if (cudnnDestroySpatialTransformerDescriptor(NULL) != CUDNN_STATUS_SUCCESS ||
        cudnnSetSpatialTransformerNdDescriptor(st, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_DOUBLE, 4,
                                               dims) != CUDNN_STATUS_SUCCESS ||
        cudnnSetSpatialTransformerNdDescriptor(st, BILINEAR, 4, dims) != CUDNN_STATUS_SUCCESS ||
        cudnnSetSpatialTransformerNdDescriptor(st, BILINEAR, 4, zero) == CUDNN_STATUS_SUCCESS ||
        cudnnSpatialTfGridGeneratorForward(harness_handle, st, theta->data, grid->data) !=
            CUDNN_STATUS_SUCCESS) {
        case_fail("what was set last does not count");
    }
    cudnnDestroySpatialTransformerDescriptor(st);
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    fake = (cudnnSpatialTransformerDescriptor_t)(void *)dims;
    descriptor_rows();
    grid_rows();
    sampler_rows();
    answers();
    refusal_report();
    return harness_finish();
}
