/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution descriptors: invalid arguments, and what they answer. */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "support/refusal.h"

static int pad[8] = {1, 2, 3, 1, 1, 1, 1, 1};
static int stride[8] = {1, 2, 1, 1, 1, 1, 1, 1};
static int dilation[8] = {1, 1, 2, 1, 1, 1, 1, 1};
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

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    fake = (cudnnConvolutionDescriptor_t)(void *)pad;
    descriptor_rows();
    output_rows();
    answers();
    refusal_report();
    return harness_finish();
}
