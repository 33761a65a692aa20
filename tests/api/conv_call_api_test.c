/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the calls that compute: forward, fused, the gradients, im2col, reordering. */
#include "api/conv_world.h"

static const float one = 1.0f;
static const float zero = 0.0f;
static const cudnnConvolutionFwdAlgo_t fwd = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
static const cudnnConvolutionBwdDataAlgo_t bwd = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
static const cudnnConvolutionBwdFilterAlgo_t bwf = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

static void forward_rows(const struct conv_world *s)
{
    char *odd = (char *)s->y->data + 1;
    cudnnHandle_t h = s->h;
    cudnnConvolutionFwdAlgo_t lean = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    cudnnConvolutionFwdAlgo_t above = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    cudnnConvolutionFwdAlgo_t below = (cudnnConvolutionFwdAlgo_t)-1;
#define FWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnConvolutionForward, argument, cudnnConvolutionForward(__VA_ARGS__))
    FWD(BAD_PARAM_NULL_POINTER, handle, NULL, &one, X, W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, handle, (cudnnHandle_t)(void *)conv_fake(), &one, X, W, s->conv, fwd, NO_WORK,
        &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, alpha, h, NULL, X, W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, xDesc, h, &one, NULL, s->x->data, W, s->conv, fwd, NO_WORK, &zero,
        Y);
    FWD(BAD_PARAM, xDesc, h, &one, s->none, s->x->data, W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(NOT_SUPPORTED_DATA_TYPE, xDesc, h, &one, OF(x_half), W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, &one, OF(x_c4), W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, &one, OF(x3), W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, &one, OF(x_small), W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, x, h, &one, s->x->desc, NULL, W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_MISALIGNED_POINTER, x, h, &one, s->x->desc, odd, W, s->conv, lean, NO_WORK, &zero,
        Y);
    FWD(BAD_PARAM_NULL_POINTER, wDesc, h, &one, X, NULL, s->filter->data, s->conv, fwd, NO_WORK,
        &zero, Y);
    FWD(BAD_PARAM, wDesc, h, &one, X, s->w_none, s->filter->data, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(NOT_SUPPORTED_DATA_TYPE, wDesc, h, &one, X, s->w_half, s->filter->data, s->conv, fwd,
        NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, wDesc, h, &one, X, s->w_c4, s->filter->data, s->conv, fwd,
        NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, wDesc, h, &one, X, s->w5, s->filter->data, s->conv, fwd, NO_WORK,
        &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, w, h, &one, X, s->w, NULL, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, convDesc, h, &one, X, W, NULL, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, convDesc, h, &one, X, W, conv_fake(), fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, convDesc, h, &one, X, W, s->unset, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, convDesc, h, &one, X, W, s->conv1, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, convDesc, h, &one, X, W, s->grouped, fwd, NO_WORK, &zero, Y);
    FWD(NOT_SUPPORTED, algo, h, &one, X, W, s->conv, above, NO_WORK, &zero, Y);
    FWD(NOT_SUPPORTED, algo, h, &one, X, W, s->conv, below, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, beta, h, &one, X, W, s->conv, fwd, NO_WORK, NULL, Y);
    FWD(BAD_PARAM_NULL_POINTER, yDesc, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, NULL,
        s->y->data);
    FWD(NOT_SUPPORTED_DATA_TYPE, yDesc, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, OF(y_half));
    FWD(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, OF(y_many));
    FWD(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, OF(y_k5));
    FWD(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, OF(y_n3));
    FWD(BAD_PARAM_NULL_POINTER, y, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, s->y->desc, NULL);
    FWD(BAD_PARAM, y, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, s->y->desc, s->x->data);
    FWD(BAD_PARAM, y, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, s->y->desc, s->filter->data);
#define FUSED(status, argument, ...)                                                               \
    REFUSED(status, cudnnConvolutionBiasActivationForward, argument,                               \
            cudnnConvolutionBiasActivationForward(__VA_ARGS__))
#define Z OF(y_nhwc)
#define B OF(b)
#define HEAD h, &one, X, W, s->conv, fwd, NO_WORK
    FUSED(BAD_PARAM_NULL_POINTER, handle, NULL, &one, X, W, s->conv, fwd, NO_WORK, &one, Z, B,
          s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, alpha1, h, NULL, X, W, s->conv, fwd, NO_WORK, &one, Z, B, s->relu,
          Y);
    FUSED(BAD_PARAM_NULL_POINTER, xDesc, h, &one, NULL, s->x->data, W, s->conv, fwd, NO_WORK, &one,
          Z, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, x, h, &one, s->x->desc, NULL, W, s->conv, fwd, NO_WORK, &one, Z,
          B, s->relu, Y);
    FUSED(BAD_PARAM_SHAPE_MISMATCH, wDesc, h, &one, X, s->w_c4, s->filter->data, s->conv, fwd,
          NO_WORK, &one, Z, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, w, h, &one, X, s->w, NULL, s->conv, fwd, NO_WORK, &one, Z, B,
          s->relu, Y);
    FUSED(BAD_PARAM, convDesc, h, &one, X, W, s->unset, fwd, NO_WORK, &one, Z, B, s->relu, Y);
    FUSED(NOT_SUPPORTED, algo, h, &one, X, W, s->conv, above, NO_WORK, &one, Z, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, alpha2, HEAD, NULL, Z, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, zDesc, HEAD, &one, NULL, s->y_nhwc->data, B, s->relu, Y);
    FUSED(BAD_PARAM_SHAPE_MISMATCH, zDesc, HEAD, &one, OF(y_many), B, s->relu, Y);
    FUSED(BAD_PARAM, zDesc, HEAD, &one, s->y_nhwc->desc, s->y->data, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, z, HEAD, &one, s->y_nhwc->desc, NULL, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, biasDesc, HEAD, &one, Z, NULL, s->b->data, s->relu, Y);
    FUSED(BAD_PARAM_SHAPE_MISMATCH, biasDesc, HEAD, &one, Z, OF(b_bad), s->relu, Y);
    FUSED(BAD_PARAM_SHAPE_MISMATCH, biasDesc, HEAD, &one, Z, OF(x3), s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, bias, HEAD, &one, Z, s->b->desc, NULL, s->relu, Y);
    FUSED(BAD_PARAM, bias, HEAD, &one, Z, s->b->desc, s->y->data, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, activationDesc, HEAD, &one, Z, B, NULL, Y);
    FUSED(BAD_PARAM, activationDesc, HEAD, &one, Z, B, s->relu_unset, Y);
    FUSED(BAD_PARAM_SHAPE_MISMATCH, yDesc, HEAD, &one, Z, B, s->relu, OF(y_many));
    FUSED(BAD_PARAM_NULL_POINTER, y, HEAD, &one, Z, B, s->relu, s->y->desc, NULL);
    FUSED(BAD_PARAM, y, HEAD, &one, Z, B, s->relu, s->y->desc, s->x->data);
}

static void backward_rows(const struct conv_world *s)
{
    cudnnHandle_t h = s->h;
    cudnnConvolutionBwdDataAlgo_t no_bwd = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
    cudnnConvolutionBwdFilterAlgo_t no_bwf = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
#define DATA(status, argument, ...)                                                                \
    REFUSED(status, cudnnConvolutionBackwardData, argument,                                        \
            cudnnConvolutionBackwardData(__VA_ARGS__))
    DATA(BAD_PARAM_NULL_POINTER, handle, NULL, &one, W, Y, s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, alpha, h, NULL, W, Y, s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, wDesc, h, &one, NULL, s->filter->data, Y, s->conv, bwd, NO_WORK,
         &zero, X);
    DATA(NOT_SUPPORTED_DATA_TYPE, wDesc, h, &one, s->w_half, s->filter->data, Y, s->conv, bwd,
         NO_WORK, &zero, X);
    DATA(BAD_PARAM_SHAPE_MISMATCH, wDesc, h, &one, s->w_c4, s->filter->data, Y, s->conv, bwd,
         NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, w, h, &one, s->w, NULL, Y, s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, dyDesc, h, &one, W, NULL, s->y->data, s->conv, bwd, NO_WORK, &zero,
         X);
    DATA(BAD_PARAM_SHAPE_MISMATCH, dyDesc, h, &one, W, OF(y_k5), s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_SHAPE_MISMATCH, dyDesc, h, &one, W, OF(y_many), s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, dy, h, &one, W, s->y->desc, NULL, s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, convDesc, h, &one, W, Y, NULL, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM, convDesc, h, &one, W, Y, s->unset, bwd, NO_WORK, &zero, X);
    DATA(NOT_SUPPORTED, algo, h, &one, W, Y, s->conv, no_bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, beta, h, &one, W, Y, s->conv, bwd, NO_WORK, NULL, X);
    DATA(BAD_PARAM_NULL_POINTER, dxDesc, h, &one, W, Y, s->conv, bwd, NO_WORK, &zero, NULL,
         s->x->data);
    DATA(NOT_SUPPORTED_DATA_TYPE, dxDesc, h, &one, W, Y, s->conv, bwd, NO_WORK, &zero, OF(x_half));
    DATA(BAD_PARAM_SHAPE_MISMATCH, dxDesc, h, &one, W, Y, s->conv, bwd, NO_WORK, &zero, OF(x_c4));
    DATA(BAD_PARAM_NULL_POINTER, dx, h, &one, W, Y, s->conv, bwd, NO_WORK, &zero, s->x->desc, NULL);
    DATA(BAD_PARAM, dx, h, &one, W, Y, s->conv, bwd, NO_WORK, &zero, s->x->desc, s->y->data);
#define FILTER(status, argument, ...)                                                              \
    REFUSED(status, cudnnConvolutionBackwardFilter, argument,                                      \
            cudnnConvolutionBackwardFilter(__VA_ARGS__))
    FILTER(BAD_PARAM_NULL_POINTER, handle, NULL, &one, X, Y, s->conv, bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM_NULL_POINTER, alpha, h, NULL, X, Y, s->conv, bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM_NULL_POINTER, xDesc, h, &one, NULL, s->x->data, Y, s->conv, bwf, NO_WORK,
           &zero, W);
    FILTER(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, &one, OF(x_c4), Y, s->conv, bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM_NULL_POINTER, x, h, &one, s->x->desc, NULL, Y, s->conv, bwf, NO_WORK, &zero,
           W);
    FILTER(BAD_PARAM_NULL_POINTER, dyDesc, h, &one, X, NULL, s->y->data, s->conv, bwf, NO_WORK,
           &zero, W);
    FILTER(BAD_PARAM_SHAPE_MISMATCH, dyDesc, h, &one, X, OF(y_many), s->conv, bwf, NO_WORK, &zero,
           W);
    FILTER(BAD_PARAM_SHAPE_MISMATCH, dyDesc, h, &one, X, OF(y_n3), s->conv, bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM_NULL_POINTER, dy, h, &one, X, s->y->desc, NULL, s->conv, bwf, NO_WORK, &zero,
           W);
    FILTER(BAD_PARAM, convDesc, h, &one, X, Y, s->unset, bwf, NO_WORK, &zero, W);
    FILTER(NOT_SUPPORTED, algo, h, &one, X, Y, s->conv, no_bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM_NULL_POINTER, beta, h, &one, X, Y, s->conv, bwf, NO_WORK, NULL, W);
    FILTER(BAD_PARAM_NULL_POINTER, dwDesc, h, &one, X, Y, s->conv, bwf, NO_WORK, &zero, NULL,
           s->filter->data);
    FILTER(NOT_SUPPORTED_DATA_TYPE, dwDesc, h, &one, X, Y, s->conv, bwf, NO_WORK, &zero, s->w_half,
           s->filter->data);
    FILTER(BAD_PARAM_NULL_POINTER, dw, h, &one, X, Y, s->conv, bwf, NO_WORK, &zero, s->w, NULL);
    FILTER(BAD_PARAM, dw, h, &one, X, Y, s->conv, bwf, NO_WORK, &zero, s->w, s->x->data);
#define BIAS(status, argument, ...)                                                                \
    REFUSED(status, cudnnConvolutionBackwardBias, argument,                                        \
            cudnnConvolutionBackwardBias(__VA_ARGS__))
    BIAS(BAD_PARAM_NULL_POINTER, handle, NULL, &one, Y, &zero, OF(b));
    BIAS(BAD_PARAM_NULL_POINTER, alpha, h, NULL, Y, &zero, OF(b));
    BIAS(BAD_PARAM_NULL_POINTER, dyDesc, h, &one, NULL, s->y->data, &zero, OF(b));
    BIAS(BAD_PARAM, dyDesc, h, &one, OF(y_half), &zero, OF(b));
    BIAS(BAD_PARAM_NULL_POINTER, dy, h, &one, s->y->desc, NULL, &zero, OF(b));
    BIAS(BAD_PARAM_NULL_POINTER, beta, h, &one, Y, NULL, OF(b));
    BIAS(BAD_PARAM_NULL_POINTER, dbDesc, h, &one, Y, &zero, NULL, s->b->data);
    BIAS(BAD_PARAM, dbDesc, h, &one, Y, &zero, s->none, s->b->data);
    BIAS(BAD_PARAM_SHAPE_MISMATCH, dbDesc, h, &one, Y, &zero, OF(b_bad));
    BIAS(BAD_PARAM_SHAPE_MISMATCH, dbDesc, h, &one, Y, &zero, OF(y_k5));
    BIAS(BAD_PARAM_NULL_POINTER, db, h, &one, Y, &zero, s->b->desc, NULL);
    BIAS(BAD_PARAM, db, h, &one, Y, &zero, s->b->desc, s->y->data);
}

static void layout_rows(const struct conv_world *s)
{
    cudnnHandle_t h = s->h;
    cudnnFilterDescriptor_t w32 = NULL, w32_k8 = NULL, w32_nchw = NULL;
    cudnnReorderType_t yes = CUDNN_DEFAULT_REORDER;
    void *from = s->x->data;
    void *to = s->y->data;
    cudnnCreateFilterDescriptor(&w32);
    cudnnCreateFilterDescriptor(&w32_k8);
    cudnnCreateFilterDescriptor(&w32_nchw);
    cudnnSetFilter4dDescriptor(w32, CUDNN_DATA_INT8x32, CUDNN_TENSOR_NCHW_VECT_C, 32, 32, 1, 1);
    cudnnSetFilter4dDescriptor(w32_k8, CUDNN_DATA_INT8x32, CUDNN_TENSOR_NCHW_VECT_C, 8, 32, 1, 1);
    cudnnSetFilter4dDescriptor(w32_nchw, CUDNN_DATA_INT8x32, CUDNN_TENSOR_NCHW, 32, 1, 1, 1);
#define COL(status, argument, ...) REFUSED(status, cudnnIm2Col, argument, cudnnIm2Col(__VA_ARGS__))
    COL(BAD_PARAM_NULL_POINTER, handle, NULL, X, s->w, s->conv, s->col->data);
    COL(BAD_PARAM_NULL_POINTER, xDesc, h, NULL, s->x->data, s->w, s->conv, s->col->data);
    COL(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, OF(x_c4), s->w, s->conv, s->col->data);
    COL(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, OF(x3), s->w, s->conv, s->col->data);
    COL(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, OF(x_small), s->w, s->conv, s->col->data);
    COL(BAD_PARAM_NULL_POINTER, x, h, s->x->desc, NULL, s->w, s->conv, s->col->data);
    COL(BAD_PARAM_NULL_POINTER, wDesc, h, X, NULL, s->conv, s->col->data);
    COL(BAD_PARAM_SHAPE_MISMATCH, wDesc, h, X, s->w5, s->conv, s->col->data);
    COL(BAD_PARAM_NULL_POINTER, convDesc, h, X, s->w, NULL, s->col->data);
    COL(BAD_PARAM, convDesc, h, X, s->w, s->unset, s->col->data);
    COL(BAD_PARAM_SHAPE_MISMATCH, convDesc, h, X, s->w, s->conv1, s->col->data);
    COL(BAD_PARAM_NULL_POINTER, colBuffer, h, X, s->w, s->conv, NULL);
    COL(BAD_PARAM, colBuffer, h, X, s->w, s->conv, s->x->data);
#define REORDER(status, argument, ...)                                                             \
    REFUSED(status, cudnnReorderFilterAndBias, argument, cudnnReorderFilterAndBias(__VA_ARGS__))
    REORDER(BAD_PARAM_NULL_POINTER, handle, NULL, w32, yes, from, to, 0, NULL, NULL);
    REORDER(BAD_PARAM_NULL_POINTER, filterDesc, h, NULL, yes, from, to, 0, NULL, NULL);
    REORDER(NOT_SUPPORTED_DATA_TYPE, filterDesc, h, s->w, yes, from, to, 0, NULL, NULL);
    REORDER(NOT_SUPPORTED_LAYOUT, filterDesc, h, w32_nchw, yes, from, to, 0, NULL, NULL);
    REORDER(NOT_SUPPORTED_SHAPE, filterDesc, h, w32_k8, yes, from, to, 0, NULL, NULL);
    REORDER(BAD_PARAM, reorderType, h, w32, (cudnnReorderType_t)5, from, to, 0, NULL, NULL);
    REORDER(BAD_PARAM_NULL_POINTER, filterData, h, w32, yes, NULL, to, 0, NULL, NULL);
    REORDER(BAD_PARAM, filterData, h, w32, yes, from, from, 0, NULL, NULL);
    REORDER(BAD_PARAM_NULL_POINTER, reorderedFilterData, h, w32, yes, from, NULL, 0, NULL, NULL);
    REORDER(BAD_PARAM_NULL_POINTER, biasData, h, w32, yes, from, to, 1, NULL, s->b->data);
    REORDER(BAD_PARAM, biasData, h, w32, yes, from, to, 1, s->b->data, s->b->data);
    REORDER(BAD_PARAM_NULL_POINTER, reorderedBiasData, h, w32, yes, from, to, 1, s->b->data, NULL);
    cudnnDestroyFilterDescriptor(w32);
    cudnnDestroyFilterDescriptor(w32_k8);
    cudnnDestroyFilterDescriptor(w32_nchw);
}

int main(int argc, char **argv)
{
    struct conv_world world;
    harness_start(argc, argv);
    if (case_begin("convolution tensors")) {
        conv_world_begin(&world);
        forward_rows(&world);
        backward_rows(&world);
        layout_rows(&world);
        conv_world_end(&world);
    }
    refusal_report();
    return harness_finish();
}
