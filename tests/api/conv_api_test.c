/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the convolution calls; what their descriptors answer; and that workspace
 * queries and the lists of Get and Find tell the truth. */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "support/refusal.h"

static int pad[8] = {1, 2, 3, 1, 1, 1, 1, 1};
static int stride[8] = {1, 2, 1, 1, 1, 1, 1, 1};
static int dilation[8] = {1, 1, 2, 1, 1, 1, 1, 1};
static const float one = 1.0f;
static const float zero = 0.0f;
static cudnnConvolutionDescriptor_t fake;
static const cudnnConvolutionMode_t cross = CUDNN_CROSS_CORRELATION;
static const cudnnDataType_t fp32 = CUDNN_DATA_FLOAT;

static void descriptor_rows(void)
{
    int bad[2] = {1, 0};
    int negative[2] = {1, -1};
    cudnnConvolutionDescriptor_t c = NULL;
    cudnnConvolutionMode_t mode;
    cudnnConvolutionMode_t no_mode = (cudnnConvolutionMode_t)2;
    cudnnDataType_t type;
    cudnnDataType_t no_type = CUDNN_DATA_INT8;
    cudnnMathType_t math;
    cudnnReorderType_t reorder;
    int v[8];
    cudnnCreateConvolutionDescriptor(&c);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateConvolutionDescriptor, convDesc,
            cudnnCreateConvolutionDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyConvolutionDescriptor, convDesc,
            cudnnDestroyConvolutionDescriptor(fake));
#define SET2(status, argument, ...)                                                                \
    REFUSED(status, cudnnSetConvolution2dDescriptor, argument,                                     \
            cudnnSetConvolution2dDescriptor(__VA_ARGS__))
    SET2(BAD_PARAM_NULL_POINTER, convDesc, NULL, 0, 0, 1, 1, 1, 1, cross, fp32);
    SET2(BAD_PARAM, convDesc, fake, 0, 0, 1, 1, 1, 1, cross, fp32);
    SET2(BAD_PARAM, pad_h, c, -1, 0, 1, 1, 1, 1, cross, fp32);
    SET2(BAD_PARAM, pad_w, c, 0, INT_MIN, 1, 1, 1, 1, cross, fp32);
    SET2(BAD_PARAM, u, c, 0, 0, 0, 1, 1, 1, cross, fp32);
    SET2(BAD_PARAM, v, c, 0, 0, 1, -1, 1, 1, cross, fp32);
    SET2(BAD_PARAM, dilation_h, c, 0, 0, 1, 1, 0, 1, cross, fp32);
    SET2(BAD_PARAM, dilation_w, c, 0, 0, 1, 1, 1, -2, cross, fp32);
    SET2(BAD_PARAM, mode, c, 0, 0, 1, 1, 1, 1, no_mode, fp32);
    SET2(BAD_PARAM, mode, c, 0, 0, 1, 1, 1, 1, (cudnnConvolutionMode_t)-1, fp32);
    SET2(BAD_PARAM, computeType, c, 0, 0, 1, 1, 1, 1, cross, no_type);
    SET2(BAD_PARAM, computeType, c, 0, 0, 1, 1, 1, 1, cross, (cudnnDataType_t)99);
#define SETN(status, argument, ...)                                                                \
    REFUSED(status, cudnnSetConvolutionNdDescriptor, argument,                                     \
            cudnnSetConvolutionNdDescriptor(__VA_ARGS__))
    SETN(BAD_PARAM_NULL_POINTER, convDesc, NULL, 2, pad, stride, dilation, cross, fp32);
    SETN(BAD_PARAM, convDesc, fake, 2, pad, stride, dilation, cross, fp32);
    SETN(BAD_PARAM, arrayLength, c, -1, pad, stride, dilation, cross, fp32);
    SETN(NOT_SUPPORTED_SHAPE, arrayLength, c, 7, pad, stride, dilation, cross, fp32);
    SETN(BAD_PARAM_NULL_POINTER, padA, c, 2, NULL, stride, dilation, cross, fp32);
    SETN(BAD_PARAM, padA, c, 2, negative, stride, dilation, cross, fp32);
    SETN(BAD_PARAM_NULL_POINTER, filterStrideA, c, 2, pad, NULL, dilation, cross, fp32);
    SETN(BAD_PARAM, filterStrideA, c, 2, pad, bad, dilation, cross, fp32);
    SETN(BAD_PARAM_NULL_POINTER, dilationA, c, 2, pad, stride, NULL, cross, fp32);
    SETN(BAD_PARAM, dilationA, c, 2, pad, stride, bad, cross, fp32);
    SETN(BAD_PARAM, mode, c, 2, pad, stride, dilation, no_mode, fp32);
    SETN(BAD_PARAM, computeType, c, 2, pad, stride, dilation, cross, no_type);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolution2dDescriptor, convDesc,
            cudnnGetConvolution2dDescriptor(NULL, v, v, v, v, v, v, &mode, &type));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionNdDescriptor, convDesc,
            cudnnGetConvolutionNdDescriptor(NULL, 2, v, v, v, v, &mode, &type));
    REFUSED(BAD_PARAM, cudnnGetConvolutionNdDescriptor, arrayLengthRequested,
            cudnnGetConvolutionNdDescriptor(c, -1, v, v, v, v, &mode, &type));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnGetConvolutionNdDescriptor, arrayLengthRequested,
            cudnnGetConvolutionNdDescriptor(c, 7, v, v, v, v, &mode, &type));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetConvolutionMathType, convDesc,
            cudnnSetConvolutionMathType(NULL, CUDNN_DEFAULT_MATH));
    REFUSED(BAD_PARAM, cudnnSetConvolutionMathType, mathType,
            cudnnSetConvolutionMathType(c, (cudnnMathType_t)4));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionMathType, convDesc,
            cudnnGetConvolutionMathType(NULL, &math));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionMathType, mathType,
            cudnnGetConvolutionMathType(c, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetConvolutionGroupCount, convDesc,
            cudnnSetConvolutionGroupCount(NULL, 1));
    REFUSED(BAD_PARAM, cudnnSetConvolutionGroupCount, groupCount,
            cudnnSetConvolutionGroupCount(c, 0));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionGroupCount, convDesc,
            cudnnGetConvolutionGroupCount(NULL, v));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionGroupCount, groupCount,
            cudnnGetConvolutionGroupCount(c, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnSetConvolutionReorderType, convDesc,
            cudnnSetConvolutionReorderType(NULL, CUDNN_NO_REORDER));
    REFUSED(BAD_PARAM, cudnnSetConvolutionReorderType, reorderType,
            cudnnSetConvolutionReorderType(c, (cudnnReorderType_t)2));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionReorderType, convDesc,
            cudnnGetConvolutionReorderType(NULL, &reorder));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionReorderType, reorderType,
            cudnnGetConvolutionReorderType(c, NULL));
    cudnnDestroyConvolutionDescriptor(c);
}

static void output_rows(void)
{
    static const int dims5[5] = {2, 3, 6, 6, 6};
    cudnnConvolutionDescriptor_t c = NULL;
    cudnnConvolutionDescriptor_t unset = NULL;
    cudnnTensorDescriptor_t x = NULL, x_small = NULL, x5 = NULL, x_c4 = NULL, no_x = NULL;
    cudnnFilterDescriptor_t w = NULL, no_w = NULL, w5 = NULL;
    int v[8];
    cudnnCreateConvolutionDescriptor(&c);
    cudnnCreateConvolutionDescriptor(&unset);
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&x_small);
    cudnnCreateTensorDescriptor(&x5);
    cudnnCreateTensorDescriptor(&x_c4);
    cudnnCreateTensorDescriptor(&no_x);
    cudnnCreateFilterDescriptor(&w);
    cudnnCreateFilterDescriptor(&no_w);
    cudnnCreateFilterDescriptor(&w5);
    cudnnSetConvolution2dDescriptor(c, 0, 0, 1, 1, 1, 1, cross, fp32);
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, fp32, 2, 3, 6, 6);
    cudnnSetTensor4dDescriptor(x_small, CUDNN_TENSOR_NCHW, fp32, 2, 3, 2, 6);
    cudnnSetTensor4dDescriptor(x_c4, CUDNN_TENSOR_NCHW, fp32, 2, 4, 6, 6);
    cudnnSetTensorNdDescriptorEx(x5, CUDNN_TENSOR_NCHW, fp32, 5, dims5);
    cudnnSetFilter4dDescriptor(w, fp32, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
    cudnnSetFilterNdDescriptor(w5, fp32, CUDNN_TENSOR_NCHW, 5, dims5);
#define OUT2(status, argument, ...)                                                                \
    REFUSED(status, cudnnGetConvolution2dForwardOutputDim, argument,                               \
            cudnnGetConvolution2dForwardOutputDim(__VA_ARGS__))
    OUT2(BAD_PARAM_NULL_POINTER, convDesc, NULL, x, w, v, v, v, v);
    OUT2(BAD_PARAM, convDesc, unset, x, w, v, v, v, v);
    OUT2(BAD_PARAM, convDesc, fake, x, w, v, v, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, inputTensorDesc, c, NULL, w, v, v, v, v);
    OUT2(BAD_PARAM, inputTensorDesc, c, no_x, w, v, v, v, v);
    OUT2(BAD_PARAM_SHAPE_MISMATCH, inputTensorDesc, c, x_small, w, v, v, v, v);
    OUT2(BAD_PARAM_SHAPE_MISMATCH, inputTensorDesc, c, x_c4, w, v, v, v, v);
    OUT2(BAD_PARAM_SHAPE_MISMATCH, inputTensorDesc, c, x5, w, v, v, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, filterDesc, c, x, NULL, v, v, v, v);
    OUT2(BAD_PARAM, filterDesc, c, x, no_w, v, v, v, v);
    OUT2(BAD_PARAM_SHAPE_MISMATCH, filterDesc, c, x, w5, v, v, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, n, c, x, w, NULL, v, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, c, c, x, w, v, NULL, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, h, c, x, w, v, v, NULL, v);
    OUT2(BAD_PARAM_NULL_POINTER, w, c, x, w, v, v, v, NULL);
#define OUTN(status, argument, ...)                                                                \
    REFUSED(status, cudnnGetConvolutionNdForwardOutputDim, argument,                               \
            cudnnGetConvolutionNdForwardOutputDim(__VA_ARGS__))
    OUTN(BAD_PARAM_NULL_POINTER, convDesc, NULL, x, w, 4, v);
    OUTN(BAD_PARAM, convDesc, unset, x, w, 4, v);
    OUTN(BAD_PARAM_NULL_POINTER, inputTensorDesc, c, NULL, w, 4, v);
    OUTN(BAD_PARAM_SHAPE_MISMATCH, inputTensorDesc, c, x_small, w, 4, v);
    OUTN(BAD_PARAM_NULL_POINTER, filterDesc, c, x, NULL, 4, v);
    OUTN(BAD_PARAM_SHAPE_MISMATCH, filterDesc, c, x, w5, 4, v);
    OUTN(BAD_PARAM, nbDims, c, x, w, 5, v);
    OUTN(BAD_PARAM, nbDims, c, x, w, -1, v);
    OUTN(BAD_PARAM_NULL_POINTER, tensorOuputDimA, c, x, w, 4, NULL);
    cudnnDestroyConvolutionDescriptor(c);
    cudnnDestroyConvolutionDescriptor(unset);
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyTensorDescriptor(x_small);
    cudnnDestroyTensorDescriptor(x5);
    cudnnDestroyTensorDescriptor(x_c4);
    cudnnDestroyTensorDescriptor(no_x);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyFilterDescriptor(no_w);
    cudnnDestroyFilterDescriptor(w5);
}

/* The convolution that the rows below start from: 2x3x6x6, four 3x3 filters, no padding. */
struct world {
    cudnnHandle_t h;
    cudnnConvolutionDescriptor_t conv, unset, conv1, grouped;
    cudnnFilterDescriptor_t w, w_none, w_half, w_c4, w5;
    cudnnTensorDescriptor_t none;
    cudnnActivationDescriptor_t relu, relu_unset;
    struct tensor *x, *x_half, *x_c4, *x3, *x_small;
    struct tensor *y, *y_many, *y_k5, *y_n3, *y_half, *y_nhwc;
    struct tensor *filter, *b, *b_bad, *col;
    char *workspace;
};

static const cudnnConvolutionFwdAlgo_t fwd = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
static const cudnnConvolutionBwdDataAlgo_t bwd = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
static const cudnnConvolutionBwdFilterAlgo_t bwf = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

static struct tensor *plain(cudnnDataType_t type, int n, int c, int h, int w)
{
    int dim[4] = {n, c, h, w};
    return tensor_inout(type, 4, dim, LAYOUT_NCHW, -1, 1);
}

static void world_begin(struct world *s)
{
    static const int w5[5] = {4, 3, 3, 3, 3};
    static const int x3[3] = {2, 3, 36};
    static const int y[4] = {2, 4, 4, 4};
    memset(s, 0, sizeof *s);
    s->h = harness_handle;
    cudnnCreateConvolutionDescriptor(&s->conv);
    cudnnCreateConvolutionDescriptor(&s->unset);
    cudnnCreateConvolutionDescriptor(&s->conv1);
    cudnnCreateConvolutionDescriptor(&s->grouped);
    cudnnSetConvolution2dDescriptor(s->conv, 0, 0, 1, 1, 1, 1, cross, fp32);
    cudnnSetConvolution2dDescriptor(s->grouped, 0, 0, 1, 1, 1, 1, cross, fp32);
    cudnnSetConvolutionGroupCount(s->grouped, 3);
    cudnnSetConvolutionNdDescriptor(s->conv1, 1, pad, stride, dilation, cross, fp32);
    cudnnCreateFilterDescriptor(&s->w);
    cudnnCreateFilterDescriptor(&s->w_none);
    cudnnCreateFilterDescriptor(&s->w_half);
    cudnnCreateFilterDescriptor(&s->w_c4);
    cudnnCreateFilterDescriptor(&s->w5);
    cudnnSetFilter4dDescriptor(s->w, fp32, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
    cudnnSetFilter4dDescriptor(s->w_half, CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
    cudnnSetFilter4dDescriptor(s->w_c4, fp32, CUDNN_TENSOR_NCHW, 4, 4, 3, 3);
    cudnnSetFilterNdDescriptor(s->w5, fp32, CUDNN_TENSOR_NCHW, 5, w5);
    cudnnCreateTensorDescriptor(&s->none);
    cudnnCreateActivationDescriptor(&s->relu);
    cudnnCreateActivationDescriptor(&s->relu_unset);
    cudnnSetActivationDescriptor(s->relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0);
    s->x = plain(fp32, 2, 3, 6, 6);
    s->x_half = plain(CUDNN_DATA_HALF, 2, 3, 6, 6);
    s->x_c4 = plain(fp32, 2, 4, 6, 6);
    s->x_small = plain(fp32, 2, 3, 2, 6);
    s->x3 = tensor_input(fp32, 3, x3, LAYOUT_NCHW, -1, 1);
    s->y = plain(fp32, 2, 4, 4, 4);
    s->y_many = plain(fp32, 2, 4, 5, 4);
    s->y_k5 = plain(fp32, 2, 5, 4, 4);
    s->y_n3 = plain(fp32, 3, 4, 4, 4);
    s->y_half = plain(CUDNN_DATA_HALF, 2, 4, 4, 4);
    s->y_nhwc = tensor_inout(fp32, 4, y, LAYOUT_NHWC, -1, 1);
    s->filter = plain(fp32, 4, 3, 3, 3);
    s->b = plain(fp32, 1, 4, 1, 1);
    s->b_bad = plain(fp32, 1, 5, 1, 1);
    s->col = tensor_bytes(2 * 4 * 4 * 27 * 4);
    refusal_guard();
}

static void world_end(struct world *s)
{
    cudnnDestroyConvolutionDescriptor(s->conv);
    cudnnDestroyConvolutionDescriptor(s->unset);
    cudnnDestroyConvolutionDescriptor(s->conv1);
    cudnnDestroyConvolutionDescriptor(s->grouped);
    cudnnDestroyFilterDescriptor(s->w);
    cudnnDestroyFilterDescriptor(s->w_none);
    cudnnDestroyFilterDescriptor(s->w_half);
    cudnnDestroyFilterDescriptor(s->w_c4);
    cudnnDestroyFilterDescriptor(s->w5);
    cudnnDestroyTensorDescriptor(s->none);
    cudnnDestroyActivationDescriptor(s->relu);
    cudnnDestroyActivationDescriptor(s->relu_unset);
    case_end();
}

#define X s->x->desc, s->x->data
#define W s->w, s->filter->data
#define Y s->y->desc, s->y->data
#define OF(t) s->t->desc, s->t->data
#define NO_WORK NULL, 0

static void forward_rows(const struct world *s)
{
    char *odd = (char *)s->y->data + 1;
    cudnnHandle_t h = s->h;
    cudnnConvolutionFwdAlgo_t lean = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    cudnnConvolutionFwdAlgo_t above = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    cudnnConvolutionFwdAlgo_t below = (cudnnConvolutionFwdAlgo_t)-1;
#define FWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnConvolutionForward, argument, cudnnConvolutionForward(__VA_ARGS__))
    FWD(BAD_PARAM_NULL_POINTER, handle, NULL, &one, X, W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, handle, (cudnnHandle_t)(void *)fake, &one, X, W, s->conv, fwd, NO_WORK, &zero,
        Y);
    FWD(BAD_PARAM_NULL_POINTER, alpha, h, NULL, X, W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, xDesc, h, &one, NULL, s->x->data, W, s->conv, fwd, NO_WORK, &zero,
        Y);
    FWD(BAD_PARAM, xDesc, h, &one, s->none, s->x->data, W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, xDesc, h, &one, OF(x_half), W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, &one, OF(x_c4), W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, &one, OF(x3), W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, &one, OF(x_small), W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, x, h, &one, s->x->desc, NULL, W, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_MISALIGNED_POINTER, x, h, &one, s->x->desc, odd, W, s->conv, lean, NO_WORK, &zero,
        Y);
    FWD(BAD_PARAM_NULL_POINTER, wDesc, h, &one, X, NULL, s->filter->data, s->conv, fwd, NO_WORK,
        &zero, Y);
    FWD(BAD_PARAM, wDesc, h, &one, X, s->w_none, s->filter->data, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, wDesc, h, &one, X, s->w_half, s->filter->data, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, wDesc, h, &one, X, s->w_c4, s->filter->data, s->conv, fwd,
        NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, wDesc, h, &one, X, s->w5, s->filter->data, s->conv, fwd, NO_WORK,
        &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, w, h, &one, X, s->w, NULL, s->conv, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, convDesc, h, &one, X, W, NULL, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, convDesc, h, &one, X, W, fake, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, convDesc, h, &one, X, W, s->unset, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, convDesc, h, &one, X, W, s->conv1, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, convDesc, h, &one, X, W, s->grouped, fwd, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, algo, h, &one, X, W, s->conv, above, NO_WORK, &zero, Y);
    FWD(BAD_PARAM, algo, h, &one, X, W, s->conv, below, NO_WORK, &zero, Y);
    FWD(BAD_PARAM_NULL_POINTER, beta, h, &one, X, W, s->conv, fwd, NO_WORK, NULL, Y);
    FWD(BAD_PARAM_NULL_POINTER, yDesc, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, NULL,
        s->y->data);
    FWD(BAD_PARAM, yDesc, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, OF(y_half));
    FWD(NOT_SUPPORTED_SHAPE, yDesc, h, &one, X, W, s->conv, fwd, NO_WORK, &zero, OF(y_many));
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
    FUSED(BAD_PARAM, algo, h, &one, X, W, s->conv, above, NO_WORK, &one, Z, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, alpha2, HEAD, NULL, Z, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, zDesc, HEAD, &one, NULL, s->y_nhwc->data, B, s->relu, Y);
    FUSED(BAD_PARAM_SHAPE_MISMATCH, zDesc, HEAD, &one, OF(y_many), B, s->relu, Y);
    FUSED(BAD_PARAM, zDesc, HEAD, &one, s->y_nhwc->desc, s->y->data, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, z, HEAD, &one, s->y_nhwc->desc, NULL, B, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, biasDesc, HEAD, &one, Z, NULL, s->b->data, s->relu, Y);
    FUSED(BAD_PARAM_SHAPE_MISMATCH, biasDesc, HEAD, &one, Z, OF(b_bad), s->relu, Y);
    FUSED(BAD_PARAM_SHAPE_MISMATCH, biasDesc, HEAD, &one, Z, OF(x3), s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, bias, HEAD, &one, Z, s->b->desc, NULL, s->relu, Y);
    FUSED(BAD_PARAM_NULL_POINTER, activationDesc, HEAD, &one, Z, B, NULL, Y);
    FUSED(BAD_PARAM, activationDesc, HEAD, &one, Z, B, s->relu_unset, Y);
    FUSED(NOT_SUPPORTED_SHAPE, yDesc, HEAD, &one, Z, B, s->relu, OF(y_many));
    FUSED(BAD_PARAM_NULL_POINTER, y, HEAD, &one, Z, B, s->relu, s->y->desc, NULL);
    FUSED(BAD_PARAM, y, HEAD, &one, Z, B, s->relu, s->y->desc, s->x->data);
}

static void backward_rows(const struct world *s)
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
    DATA(BAD_PARAM, wDesc, h, &one, s->w_half, s->filter->data, Y, s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_SHAPE_MISMATCH, wDesc, h, &one, s->w_c4, s->filter->data, Y, s->conv, bwd,
         NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, w, h, &one, s->w, NULL, Y, s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, dyDesc, h, &one, W, NULL, s->y->data, s->conv, bwd, NO_WORK, &zero,
         X);
    DATA(BAD_PARAM_SHAPE_MISMATCH, dyDesc, h, &one, W, OF(y_k5), s->conv, bwd, NO_WORK, &zero, X);
    DATA(NOT_SUPPORTED_SHAPE, dyDesc, h, &one, W, OF(y_many), s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, dy, h, &one, W, s->y->desc, NULL, s->conv, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, convDesc, h, &one, W, Y, NULL, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM, convDesc, h, &one, W, Y, s->unset, bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM, algo, h, &one, W, Y, s->conv, no_bwd, NO_WORK, &zero, X);
    DATA(BAD_PARAM_NULL_POINTER, beta, h, &one, W, Y, s->conv, bwd, NO_WORK, NULL, X);
    DATA(BAD_PARAM_NULL_POINTER, dxDesc, h, &one, W, Y, s->conv, bwd, NO_WORK, &zero, NULL,
         s->x->data);
    DATA(BAD_PARAM, dxDesc, h, &one, W, Y, s->conv, bwd, NO_WORK, &zero, OF(x_half));
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
    FILTER(NOT_SUPPORTED_SHAPE, dyDesc, h, &one, X, OF(y_many), s->conv, bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM_SHAPE_MISMATCH, dyDesc, h, &one, X, OF(y_n3), s->conv, bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM_NULL_POINTER, dy, h, &one, X, s->y->desc, NULL, s->conv, bwf, NO_WORK, &zero,
           W);
    FILTER(BAD_PARAM, convDesc, h, &one, X, Y, s->unset, bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM, algo, h, &one, X, Y, s->conv, no_bwf, NO_WORK, &zero, W);
    FILTER(BAD_PARAM_NULL_POINTER, beta, h, &one, X, Y, s->conv, bwf, NO_WORK, NULL, W);
    FILTER(BAD_PARAM_NULL_POINTER, dwDesc, h, &one, X, Y, s->conv, bwf, NO_WORK, &zero, NULL,
           s->filter->data);
    FILTER(BAD_PARAM, dwDesc, h, &one, X, Y, s->conv, bwf, NO_WORK, &zero, s->w_half,
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
}

static void layout_rows(const struct world *s)
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

static void query_rows(const struct world *s)
{
    cudnnHandle_t h = s->h;
    cudnnConvolutionFwdAlgoPerf_t f[8];
    cudnnConvolutionBwdDataAlgoPerf_t d[8];
    cudnnConvolutionBwdFilterAlgoPerf_t g[8];
    cudnnTensorDescriptor_t x = s->x->desc;
    cudnnTensorDescriptor_t y = s->y->desc;
    cudnnTensorDescriptor_t y_many = s->y_many->desc;
    cudnnTensorDescriptor_t x_c4 = s->x_c4->desc;
    int n;
    size_t bytes;
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionForwardAlgorithmMaxCount, handle,
            cudnnGetConvolutionForwardAlgorithmMaxCount(NULL, &n));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionForwardAlgorithmMaxCount, count,
            cudnnGetConvolutionForwardAlgorithmMaxCount(h, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionBackwardDataAlgorithmMaxCount, handle,
            cudnnGetConvolutionBackwardDataAlgorithmMaxCount(NULL, &n));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionBackwardDataAlgorithmMaxCount, count,
            cudnnGetConvolutionBackwardDataAlgorithmMaxCount(h, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionBackwardFilterAlgorithmMaxCount, handle,
            cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(NULL, &n));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetConvolutionBackwardFilterAlgorithmMaxCount, count,
            cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(h, NULL));
    /* the same rows for Get and Find, whose arguments are alike but for the pointers of Ex */
#define LIST(function, A, B_, C, BAD_A, BAD_C, P)                                                  \
    REFUSED(BAD_PARAM_NULL_POINTER, function, handle,                                              \
            function(NULL, A, B_, s->conv, C, 8, &n, P));                                          \
    REFUSED(BAD_PARAM_NULL_POINTER, function, first, function(h, NULL, B_, s->conv, C, 8, &n, P)); \
    REFUSED(BAD_PARAM_SHAPE_MISMATCH, function, first,                                             \
            function(h, BAD_A, B_, s->conv, C, 8, &n, P));                                         \
    REFUSED(BAD_PARAM_NULL_POINTER, function, second, function(h, A, NULL, s->conv, C, 8, &n, P)); \
    REFUSED(BAD_PARAM, function, convDesc, function(h, A, B_, s->unset, C, 8, &n, P));             \
    REFUSED(BAD_PARAM_NULL_POINTER, function, convDesc, function(h, A, B_, NULL, C, 8, &n, P));    \
    REFUSED(BAD_PARAM_NULL_POINTER, function, third, function(h, A, B_, s->conv, NULL, 8, &n, P)); \
    REFUSED(BAD_PARAM_SHAPE_MISMATCH, function, third,                                             \
            function(h, A, B_, s->conv, BAD_C, 8, &n, P));                                         \
    REFUSED(BAD_PARAM, function, requestedAlgoCount, function(h, A, B_, s->conv, C, 0, &n, P));    \
    REFUSED(BAD_PARAM_NULL_POINTER, function, returnedAlgoCount,                                   \
            function(h, A, B_, s->conv, C, 8, NULL, P));                                           \
    REFUSED(BAD_PARAM_NULL_POINTER, function, perfResults,                                         \
            function(h, A, B_, s->conv, C, 8, &n, NULL))
    LIST(cudnnGetConvolutionForwardAlgorithm_v7, x, s->w, y, x_c4, s->y_k5->desc, f);
    LIST(cudnnFindConvolutionForwardAlgorithm, x, s->w, y, x_c4, s->y_k5->desc, f);
    LIST(cudnnGetConvolutionBackwardDataAlgorithm_v7, s->w, y, x, s->w_c4, x_c4, d);
    LIST(cudnnFindConvolutionBackwardDataAlgorithm, s->w, y, x, s->w_c4, x_c4, d);
    LIST(cudnnGetConvolutionBackwardFilterAlgorithm_v7, x, y, s->w, x_c4, s->w_c4, g);
    LIST(cudnnFindConvolutionBackwardFilterAlgorithm, x, y, s->w, x_c4, s->w_c4, g);
#define EX(function, status, argument, ...)                                                        \
    REFUSED(status, function, argument, function(__VA_ARGS__))
#define FEX(status, argument, ...)                                                                 \
    EX(cudnnFindConvolutionForwardAlgorithmEx, status, argument, __VA_ARGS__, NULL, 0)
    FEX(BAD_PARAM_NULL_POINTER, handle, NULL, X, W, s->conv, Y, 8, &n, f);
    FEX(BAD_PARAM_NULL_POINTER, xDesc, h, NULL, s->x->data, W, s->conv, Y, 8, &n, f);
    FEX(BAD_PARAM_NULL_POINTER, x, h, x, NULL, W, s->conv, Y, 8, &n, f);
    FEX(BAD_PARAM_NULL_POINTER, wDesc, h, X, NULL, s->filter->data, s->conv, Y, 8, &n, f);
    FEX(BAD_PARAM_NULL_POINTER, w, h, X, s->w, NULL, s->conv, Y, 8, &n, f);
    FEX(BAD_PARAM, convDesc, h, X, W, s->unset, Y, 8, &n, f);
    FEX(BAD_PARAM_NULL_POINTER, yDesc, h, X, W, s->conv, NULL, s->y->data, 8, &n, f);
    FEX(NOT_SUPPORTED_SHAPE, yDesc, h, X, W, s->conv, OF(y_many), 8, &n, f);
    FEX(BAD_PARAM_NULL_POINTER, y, h, X, W, s->conv, y, NULL, 8, &n, f);
    FEX(BAD_PARAM, requestedAlgoCount, h, X, W, s->conv, Y, -1, &n, f);
    FEX(BAD_PARAM_NULL_POINTER, returnedAlgoCount, h, X, W, s->conv, Y, 8, NULL, f);
    FEX(BAD_PARAM_NULL_POINTER, perfResults, h, X, W, s->conv, Y, 8, &n, NULL);
#define DEX(status, argument, ...)                                                                 \
    EX(cudnnFindConvolutionBackwardDataAlgorithmEx, status, argument, __VA_ARGS__, NULL, 0)
    DEX(BAD_PARAM_NULL_POINTER, handle, NULL, W, Y, s->conv, X, 8, &n, d);
    DEX(BAD_PARAM_NULL_POINTER, wDesc, h, NULL, s->filter->data, Y, s->conv, X, 8, &n, d);
    DEX(BAD_PARAM_NULL_POINTER, w, h, s->w, NULL, Y, s->conv, X, 8, &n, d);
    DEX(BAD_PARAM_NULL_POINTER, dyDesc, h, W, NULL, s->y->data, s->conv, X, 8, &n, d);
    DEX(BAD_PARAM_NULL_POINTER, dy, h, W, y, NULL, s->conv, X, 8, &n, d);
    DEX(BAD_PARAM, convDesc, h, W, Y, fake, X, 8, &n, d);
    DEX(BAD_PARAM_NULL_POINTER, dxDesc, h, W, Y, s->conv, NULL, s->x->data, 8, &n, d);
    DEX(BAD_PARAM_NULL_POINTER, dx, h, W, Y, s->conv, x, NULL, 8, &n, d);
    DEX(BAD_PARAM, requestedAlgoCount, h, W, Y, s->conv, X, 0, &n, d);
    DEX(BAD_PARAM_NULL_POINTER, returnedAlgoCount, h, W, Y, s->conv, X, 8, NULL, d);
    DEX(BAD_PARAM_NULL_POINTER, perfResults, h, W, Y, s->conv, X, 8, &n, NULL);
#define GEX(status, argument, ...)                                                                 \
    EX(cudnnFindConvolutionBackwardFilterAlgorithmEx, status, argument, __VA_ARGS__, NULL, 0)
    GEX(BAD_PARAM_NULL_POINTER, handle, NULL, X, Y, s->conv, W, 8, &n, g);
    GEX(BAD_PARAM_NULL_POINTER, xDesc, h, NULL, s->x->data, Y, s->conv, W, 8, &n, g);
    GEX(BAD_PARAM_NULL_POINTER, x, h, x, NULL, Y, s->conv, W, 8, &n, g);
    GEX(BAD_PARAM_NULL_POINTER, dyDesc, h, X, NULL, s->y->data, s->conv, W, 8, &n, g);
    GEX(BAD_PARAM_NULL_POINTER, y, h, X, y, NULL, s->conv, W, 8, &n, g);
    GEX(BAD_PARAM_NULL_POINTER, convDesc, h, X, Y, NULL, W, 8, &n, g);
    GEX(BAD_PARAM_NULL_POINTER, dwDesc, h, X, Y, s->conv, NULL, s->filter->data, 8, &n, g);
    GEX(BAD_PARAM_NULL_POINTER, dw, h, X, Y, s->conv, s->w, NULL, 8, &n, g);
    GEX(BAD_PARAM, requestedAlgoCount, h, X, Y, s->conv, W, INT_MIN, &n, g);
    GEX(BAD_PARAM_NULL_POINTER, returnedAlgoCount, h, X, Y, s->conv, W, 8, NULL, g);
    GEX(BAD_PARAM_NULL_POINTER, perfResults, h, X, Y, s->conv, W, 8, &n, NULL);
#define SIZE(function, A, B_, C, BAD_A, ALGO, COUNT)                                               \
    REFUSED(BAD_PARAM_NULL_POINTER, function, handle,                                              \
            function(NULL, A, B_, s->conv, C, ALGO, &bytes));                                      \
    REFUSED(BAD_PARAM_NULL_POINTER, function, first,                                               \
            function(h, NULL, B_, s->conv, C, ALGO, &bytes));                                      \
    REFUSED(BAD_PARAM_SHAPE_MISMATCH, function, first,                                             \
            function(h, BAD_A, B_, s->conv, C, ALGO, &bytes));                                     \
    REFUSED(BAD_PARAM_NULL_POINTER, function, second,                                              \
            function(h, A, NULL, s->conv, C, ALGO, &bytes));                                       \
    REFUSED(BAD_PARAM, function, convDesc, function(h, A, B_, s->unset, C, ALGO, &bytes));         \
    REFUSED(BAD_PARAM_NULL_POINTER, function, third,                                               \
            function(h, A, B_, s->conv, NULL, ALGO, &bytes));                                      \
    REFUSED(BAD_PARAM, function, algo, function(h, A, B_, s->conv, C, COUNT, &bytes));             \
    REFUSED(BAD_PARAM_NULL_POINTER, function, sizeInBytes,                                         \
            function(h, A, B_, s->conv, C, ALGO, NULL))
    SIZE(cudnnGetConvolutionForwardWorkspaceSize, x, s->w, y, x_c4, fwd,
         CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
    SIZE(cudnnGetConvolutionBackwardDataWorkspaceSize, s->w, y, x, s->w_c4, bwd,
         CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
    SIZE(cudnnGetConvolutionBackwardFilterWorkspaceSize, x, y, s->w, x_c4, bwf,
         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnGetConvolutionForwardWorkspaceSize, yDesc,
            cudnnGetConvolutionForwardWorkspaceSize(h, x, s->w, s->conv, y_many, fwd, &bytes));
}

/* What was set comes back, and setting the geometry leaves the rest; dims of the output. */
static void answers(void)
{
    cudnnConvolutionDescriptor_t c = NULL;
    cudnnTensorDescriptor_t x = NULL;
    cudnnFilterDescriptor_t w = NULL;
    cudnnConvolutionMode_t mode = cross;
    cudnnDataType_t type = fp32;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    cudnnReorderType_t reorder = CUDNN_DEFAULT_REORDER;
    int p[6], q[6], r[6], v[8], n = 0, groups = 0;
    int huge = INT_MAX;
    if (!case_begin("convolution answers")) return;
    cudnnCreateConvolutionDescriptor(&c);
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateFilterDescriptor(&w);
    if (cudnnDestroyConvolutionDescriptor(NULL) != CUDNN_STATUS_SUCCESS)
        case_fail("destroy of null");
    cudnnSetConvolutionMathType(c, CUDNN_FMA_MATH);
    cudnnSetConvolutionGroupCount(c, 3);
    cudnnSetConvolutionReorderType(c, CUDNN_NO_REORDER);
    if (cudnnSetConvolutionNdDescriptor(c, 3, pad, stride, dilation, CUDNN_CONVOLUTION,
                                        CUDNN_DATA_HALF) != CUDNN_STATUS_SUCCESS ||
        cudnnSetConvolution2dDescriptor(c, 9, 9, 0, 9, 9, 9, cross, fp32) == CUDNN_STATUS_SUCCESS ||
        cudnnGetConvolutionNdDescriptor(c, 6, &n, p, q, r, &mode, &type) != CUDNN_STATUS_SUCCESS ||
        n != 3 || memcmp(p, pad, 3 * sizeof *p) || memcmp(q, stride, 3 * sizeof *q) ||
        memcmp(r, dilation, 3 * sizeof *r) || mode != CUDNN_CONVOLUTION ||
        type != CUDNN_DATA_HALF) {
        case_fail("what was set does not come back");
    }
    cudnnGetConvolutionMathType(c, &math);
    cudnnGetConvolutionGroupCount(c, &groups);
    cudnnGetConvolutionReorderType(c, &reorder);
    if (math != CUDNN_FMA_MATH || groups != 3 || reorder != CUDNN_NO_REORDER) {
        case_fail("setting the geometry changed math type %d, groups %d or reorder type %d",
                  (int)math, groups, (int)reorder);
    }
    cudnnSetConvolution2dDescriptor(c, 1, 2, 2, 3, 2, 1, cross, fp32);
    if (cudnnGetConvolution2dDescriptor(c, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &mode,
                                        &type) != CUDNN_STATUS_SUCCESS ||
        v[0] != 1 || v[1] != 2 || v[2] != 2 || v[3] != 3 || v[4] != 2 || v[5] != 1 ||
        mode != cross) {
        case_fail("the two dimensions do not come back");
    }
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 5, 6, 8, 9);
    cudnnSetFilter4dDescriptor(w, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 9, 2, 3, 3);
    if (cudnnGetConvolution2dForwardOutputDim(c, x, w, &v[0], &v[1], &v[2], &v[3]) !=
            CUDNN_STATUS_SUCCESS ||
        v[0] != 5 || v[1] != 9 || v[2] != 3 || v[3] != 4) {
        case_fail("output dims %d %d %d %d", v[0], v[1], v[2], v[3]);
    }
    /* the padded image is larger than an int can say */
    cudnnSetConvolution2dDescriptor(c, huge, 0, 1, 1, 1, 1, cross, fp32);
    if (cudnnGetConvolution2dForwardOutputDim(c, x, w, &v[0], &v[1], &v[2], &v[3]) !=
        CUDNN_STATUS_NOT_SUPPORTED_SHAPE) {
        case_fail("an output of 2^32 rows is not refused");
    }
    cudnnDestroyConvolutionDescriptor(c);
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyFilterDescriptor(w);
    case_end();
}

/* wgrad over a large image with few weights: the definition reduces in segments, so that memory is
 * not always 0. */
static void truth_case(int n, int c, int k, int image, int filter)
{
    cudnnHandle_t h = harness_handle;
    struct world s;
    cudnnFilterDescriptor_t wd = NULL;
    cudnnConvolutionDescriptor_t conv = NULL;
    struct tensor *x, *w, *y;
    cudnnConvolutionFwdAlgoPerf_t f[8], fx[8];
    cudnnConvolutionBwdDataAlgoPerf_t d[8], dx[8];
    cudnnConvolutionBwdFilterAlgoPerf_t g[8], gx[8];
    int counts[6] = {0};
    int most = 0;
    size_t bytes = 0;
    void *work = NULL;
    enum { ROOM = 1 << 26 };
    if (!case_begin("truth of Get and Find %d %d %d %d %d", n, c, k, image, filter)) return;
    (void)s;
    cudnnCreateFilterDescriptor(&wd);
    cudnnCreateConvolutionDescriptor(&conv);
    cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, cross, fp32);
    cudnnSetFilter4dDescriptor(wd, fp32, CUDNN_TENSOR_NCHW, k, c, filter, filter);
    x = plain(fp32, n, c, image, image);
    w = plain(fp32, k, c, filter, filter);
    y = plain(fp32, n, k, image - filter + 1, image - filter + 1);
    warpdnnMalloc(h, ROOM, &work);
    if (cudnnGetConvolutionForwardAlgorithmMaxCount(h, &most) || most < 1) case_fail("max count");
    if (cudnnGetConvolutionForwardAlgorithm_v7(h, x->desc, wd, conv, y->desc, 8, &counts[0], f) ||
        cudnnGetConvolutionBackwardDataAlgorithm_v7(h, wd, y->desc, conv, x->desc, 8, &counts[1],
                                                    d) ||
        cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, x->desc, y->desc, conv, wd, 8, &counts[2],
                                                      g)) {
        case_fail("Get is refused");
    }
    if (cudnnFindConvolutionForwardAlgorithm(h, x->desc, wd, conv, y->desc, 8, &counts[3], fx) ||
        cudnnFindConvolutionBackwardDataAlgorithm(h, wd, y->desc, conv, x->desc, 8, &counts[4],
                                                  dx) ||
        cudnnFindConvolutionBackwardFilterAlgorithm(h, x->desc, y->desc, conv, wd, 8, &counts[5],
                                                    gx)) {
        case_fail("Find is refused");
    }
#define CHECK(list, found, count, query, ...)                                                      \
    for (int i = 0; i < (count); ++i) {                                                            \
        if ((list)[i].status != CUDNN_STATUS_SUCCESS) case_fail(#list ": status");                 \
        if ((list)[i].determinism != CUDNN_DETERMINISTIC) case_fail(#list ": not deterministic");  \
        if (query(h, __VA_ARGS__, (list)[i].algo, &bytes) || bytes != (list)[i].memory)            \
            case_fail(#list ": memory %zu, the query answers %zu", (list)[i].memory, bytes);       \
        if ((found) && (!((list)[i].time > 0.0f) || (i && (list)[i - 1].time > (list)[i].time)))   \
            case_fail(#list ": time %g out of order", (double)(list)[i].time);                     \
        for (int j = 0; j < i; ++j)                                                                \
            if ((list)[i].algo == (list)[j].algo) case_fail(#list ": an algorithm twice");         \
    }                                                                                              \
    if ((count) < 1) case_fail(#list ": empty")
    CHECK(f, 0, counts[0], cudnnGetConvolutionForwardWorkspaceSize, x->desc, wd, conv, y->desc);
    CHECK(d, 0, counts[1], cudnnGetConvolutionBackwardDataWorkspaceSize, wd, y->desc, conv,
          x->desc);
    CHECK(g, 0, counts[2], cudnnGetConvolutionBackwardFilterWorkspaceSize, x->desc, y->desc, conv,
          wd);
    CHECK(fx, 1, counts[3], cudnnGetConvolutionForwardWorkspaceSize, x->desc, wd, conv, y->desc);
    CHECK(dx, 1, counts[4], cudnnGetConvolutionBackwardDataWorkspaceSize, wd, y->desc, conv,
          x->desc);
    CHECK(gx, 1, counts[5], cudnnGetConvolutionBackwardFilterWorkspaceSize, x->desc, y->desc, conv,
          wd);
    if (counts[0] != counts[3] || counts[1] != counts[4] || counts[2] != counts[5]) {
        case_fail("Get and Find list different algorithms");
    }
    /* with room on the caller's buffers, and with none: what needs a workspace then says so, last */
    if (cudnnFindConvolutionBackwardFilterAlgorithmEx(h, x->desc, x->data, y->desc, y->data, conv,
                                                      wd, w->data, 8, &counts[5], gx, work, ROOM)) {
        case_fail("FindEx is refused");
    }
    CHECK(gx, 1, counts[5], cudnnGetConvolutionBackwardFilterWorkspaceSize, x->desc, y->desc, conv,
          wd);
    if (cudnnFindConvolutionBackwardFilterAlgorithmEx(h, x->desc, x->data, y->desc, y->data, conv,
                                                      wd, w->data, 8, &counts[5], gx, NULL, 0)) {
        case_fail("FindEx without a workspace is refused");
    }
    for (int i = 0; i < counts[5]; ++i) {
        bool fits = gx[i].memory == 0;
        if (fits != (gx[i].status == CUDNN_STATUS_SUCCESS) || fits != (gx[i].time > 0.0f)) {
            case_fail("memory %zu has status %d, time %g without a workspace", gx[i].memory,
                      (int)gx[i].status, (double)gx[i].time);
        }
    }
    for (int i = 0; i < counts[2]; ++i) {
        cudnnStatus_t status;
        if (g[i].memory == 0) continue;
        status =
            cudnnConvolutionBackwardFilter(h, &one, x->desc, x->data, y->desc, y->data, conv,
                                           g[i].algo, work, g[i].memory - 1, &zero, wd, w->data);
        if (status != CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT)
            case_fail("a byte less is accepted");
        status = cudnnConvolutionBackwardFilter(h, &one, x->desc, x->data, y->desc, y->data, conv,
                                                g[i].algo, NULL, g[i].memory, &zero, wd, w->data);
        if (status != CUDNN_STATUS_BAD_PARAM_NULL_POINTER)
            case_fail("a null workspace is accepted");
    }
    if (cudnnGetConvolutionForwardAlgorithm_v7(h, x->desc, wd, conv, y->desc, 1, &counts[0], f) ||
        counts[0] != 1) {
        case_fail("one result asked for, %d given", counts[0]);
    }
    warpdnnFree(h, work);
    cudnnDestroyFilterDescriptor(wd);
    cudnnDestroyConvolutionDescriptor(conv);
    case_end();
}

int main(int argc, char **argv)
{
    struct world world;
    harness_start(argc, argv);
    fake = (cudnnConvolutionDescriptor_t)(void *)pad;
    descriptor_rows();
    output_rows();
    if (case_begin("convolution tensors")) {
        world_begin(&world);
        forward_rows(&world);
        backward_rows(&world);
        layout_rows(&world);
        query_rows(&world);
        world_end(&world);
    }
    answers();
    truth_case(2, 3, 4, 9, 3);
    truth_case(9, 1, 1, 256, 1);
    refusal_report();
    return harness_finish();
}
