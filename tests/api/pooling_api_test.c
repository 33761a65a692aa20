/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the pooling calls, and what their descriptors answer. */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "support/refusal.h"

static int window[8] = {2, 3, 2, 1, 1, 1, 1, 1};
static int pad[8] = {0, 1, 0, 0, 0, 0, 0, 0};
static int stride[8] = {2, 1, 1, 1, 1, 1, 1, 1};
static const float one = 1.0f;
static cudnnPoolingDescriptor_t fake;

#define MAX_NAN CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN

static void descriptor_rows(void)
{
    int zero[2] = {2, 0};
    cudnnPoolingDescriptor_t p = NULL;
    cudnnPoolingMode_t mode;
    cudnnNanPropagation_t nan;
    int v[8];
    cudnnPoolingMode_t no_mode = (cudnnPoolingMode_t)4;
    cudnnNanPropagation_t no_nan = (cudnnNanPropagation_t)2;
    cudnnCreatePoolingDescriptor(&p);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreatePoolingDescriptor, poolingDesc,
            cudnnCreatePoolingDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyPoolingDescriptor, poolingDesc,
            cudnnDestroyPoolingDescriptor(fake));
#define SET2(status, argument, ...)                                                                \
    REFUSED(status, cudnnSetPooling2dDescriptor, argument, cudnnSetPooling2dDescriptor(__VA_ARGS__))
    SET2(BAD_PARAM_NULL_POINTER, poolingDesc, NULL, MAX_NAN, 2, 2, 0, 0, 1, 1);
    SET2(BAD_PARAM, poolingDesc, fake, MAX_NAN, 2, 2, 0, 0, 1, 1);
    SET2(BAD_PARAM, mode, p, no_mode, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 1, 1);
    SET2(BAD_PARAM, mode, p, (cudnnPoolingMode_t)-1, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 1, 1);
    SET2(BAD_PARAM, maxpoolingNanOpt, p, CUDNN_POOLING_MAX, no_nan, 2, 2, 0, 0, 1, 1);
    SET2(BAD_PARAM, windowHeight, p, MAX_NAN, 0, 2, 0, 0, 1, 1);
    SET2(BAD_PARAM, windowWidth, p, MAX_NAN, 2, -1, 0, 0, 1, 1);
    SET2(BAD_PARAM, verticalStride, p, MAX_NAN, 2, 2, 0, 0, 0, 1);
    SET2(BAD_PARAM, horizontalStride, p, MAX_NAN, 2, 2, 0, 0, 1, INT_MIN);
#define SETN(status, argument, ...)                                                                \
    REFUSED(status, cudnnSetPoolingNdDescriptor, argument, cudnnSetPoolingNdDescriptor(__VA_ARGS__))
    SETN(BAD_PARAM_NULL_POINTER, poolingDesc, NULL, MAX_NAN, 2, window, pad, stride);
    SETN(BAD_PARAM, mode, p, no_mode, CUDNN_PROPAGATE_NAN, 2, window, pad, stride);
    SETN(BAD_PARAM, maxpoolingNanOpt, p, CUDNN_POOLING_MAX, no_nan, 2, window, pad, stride);
    SETN(BAD_PARAM, nbDims, p, MAX_NAN, 0, window, pad, stride);
    SETN(BAD_PARAM, nbDims, p, MAX_NAN, -1, window, pad, stride);
    SETN(NOT_SUPPORTED_SHAPE, nbDims, p, MAX_NAN, 7, window, pad, stride);
    SETN(NOT_SUPPORTED_SHAPE, nbDims, p, MAX_NAN, INT_MAX, window, pad, stride);
    SETN(BAD_PARAM_NULL_POINTER, windowDimA, p, MAX_NAN, 2, NULL, pad, stride);
    SETN(BAD_PARAM, windowDimA, p, MAX_NAN, 2, zero, pad, stride);
    SETN(BAD_PARAM_NULL_POINTER, paddingA, p, MAX_NAN, 2, window, NULL, stride);
    SETN(BAD_PARAM_NULL_POINTER, strideA, p, MAX_NAN, 2, window, pad, NULL);
    SETN(BAD_PARAM, strideA, p, MAX_NAN, 2, window, pad, zero);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetPooling2dDescriptor, poolingDesc,
            cudnnGetPooling2dDescriptor(NULL, &mode, &nan, v, v, v, v, v, v));
    REFUSED(BAD_PARAM, cudnnGetPooling2dDescriptor, poolingDesc,
            cudnnGetPooling2dDescriptor(fake, &mode, &nan, v, v, v, v, v, v));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetPoolingNdDescriptor, poolingDesc,
            cudnnGetPoolingNdDescriptor(NULL, 2, &mode, &nan, v, v, v, v));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnGetPoolingNdDescriptor, nbDimsRequested,
            cudnnGetPoolingNdDescriptor(p, 7, &mode, &nan, v, v, v, v));
    cudnnDestroyPoolingDescriptor(p);
}

static void output_rows(void)
{
    static const int dims5[5] = {2, 3, 6, 6, 6};
    cudnnPoolingDescriptor_t p = NULL;
    cudnnPoolingDescriptor_t unset = NULL;
    cudnnPoolingDescriptor_t wide = NULL;
    cudnnTensorDescriptor_t t = NULL;
    cudnnTensorDescriptor_t t5 = NULL;
    cudnnTensorDescriptor_t no_t = NULL;
    int v[8];
    cudnnCreatePoolingDescriptor(&p);
    cudnnCreatePoolingDescriptor(&unset);
    cudnnCreatePoolingDescriptor(&wide);
    cudnnCreateTensorDescriptor(&t);
    cudnnCreateTensorDescriptor(&t5);
    cudnnCreateTensorDescriptor(&no_t);
    cudnnSetPooling2dDescriptor(p, MAX_NAN, 2, 2, 0, 0, 2, 2);
    cudnnSetPooling2dDescriptor(wide, MAX_NAN, 9, 2, 1, 0, 2, 2);
    cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 6, 6);
    cudnnSetTensorNdDescriptorEx(t5, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, dims5);
#define OUT2(status, argument, ...)                                                                \
    REFUSED(status, cudnnGetPooling2dForwardOutputDim, argument,                                   \
            cudnnGetPooling2dForwardOutputDim(__VA_ARGS__))
    OUT2(BAD_PARAM_NULL_POINTER, poolingDesc, NULL, t, v, v, v, v);
    OUT2(BAD_PARAM, poolingDesc, fake, t, v, v, v, v);
    OUT2(BAD_PARAM, poolingDesc, unset, t, v, v, v, v);
    OUT2(BAD_PARAM_SHAPE_MISMATCH, poolingDesc, wide, t, v, v, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, inputTensorDesc, p, NULL, v, v, v, v);
    OUT2(BAD_PARAM, inputTensorDesc, p, no_t, v, v, v, v);
    OUT2(BAD_PARAM_SHAPE_MISMATCH, inputTensorDesc, p, t5, v, v, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, n, p, t, NULL, v, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, c, p, t, v, NULL, v, v);
    OUT2(BAD_PARAM_NULL_POINTER, h, p, t, v, v, NULL, v);
    OUT2(BAD_PARAM_NULL_POINTER, w, p, t, v, v, v, NULL);
#define OUTN(status, argument, ...)                                                                \
    REFUSED(status, cudnnGetPoolingNdForwardOutputDim, argument,                                   \
            cudnnGetPoolingNdForwardOutputDim(__VA_ARGS__))
    OUTN(BAD_PARAM_NULL_POINTER, poolingDesc, NULL, t, 4, v);
    OUTN(BAD_PARAM, poolingDesc, unset, t, 4, v);
    OUTN(BAD_PARAM_SHAPE_MISMATCH, poolingDesc, wide, t, 4, v);
    OUTN(BAD_PARAM_NULL_POINTER, inputTensorDesc, p, NULL, 4, v);
    OUTN(BAD_PARAM_SHAPE_MISMATCH, inputTensorDesc, p, t5, 4, v);
    OUTN(BAD_PARAM_SHAPE_MISMATCH, inputTensorDesc, p, t5, 5, v);
    OUTN(BAD_PARAM_SHAPE_MISMATCH, nbDims, p, t, 3, v);
    OUTN(BAD_PARAM_SHAPE_MISMATCH, nbDims, p, t, -1, v);
    OUTN(BAD_PARAM_SHAPE_MISMATCH, nbDims, p, t, INT_MIN, v);
    OUTN(BAD_PARAM_NULL_POINTER, outputTensorDimA, p, t, 4, NULL);
    cudnnDestroyPoolingDescriptor(p);
    cudnnDestroyPoolingDescriptor(unset);
    cudnnDestroyPoolingDescriptor(wide);
    cudnnDestroyTensorDescriptor(t);
    cudnnDestroyTensorDescriptor(t5);
    cudnnDestroyTensorDescriptor(no_t);
}

#define X x->desc, x->data
#define Y y->desc, y->data
#define DY dy->desc, dy->data
#define DX dx->desc, dx->data

static void compute_rows(void)
{
    static const int image[4] = {2, 3, 6, 6};
    static const int more[4] = {2, 4, 6, 6};
    static const int out[4] = {2, 3, 3, 3};
    static const int many[4] = {2, 3, 4, 3};
    static const int image3[3] = {2, 3, 36};
    cudnnHandle_t h = harness_handle;
    cudnnPoolingDescriptor_t p = NULL;
    cudnnPoolingDescriptor_t average = NULL;
    cudnnPoolingDescriptor_t unset = NULL;
    cudnnTensorDescriptor_t no_t = NULL;
    if (!case_begin("pooling tensors")) return;
    cudnnCreatePoolingDescriptor(&p);
    cudnnCreatePoolingDescriptor(&average);
    cudnnCreatePoolingDescriptor(&unset);
    cudnnCreateTensorDescriptor(&no_t);
    cudnnSetPooling2dDescriptor(p, MAX_NAN, 2, 2, 0, 0, 2, 2);
    cudnnSetPooling2dDescriptor(average, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2);
    {
        struct tensor *x = tensor_input(CUDNN_DATA_FLOAT, 4, image, LAYOUT_NCHW, -1, 1);
        struct tensor *x_c4 = tensor_input(CUDNN_DATA_FLOAT, 4, more, LAYOUT_NCHW, -1, 1);
        struct tensor *x_3d = tensor_input(CUDNN_DATA_FLOAT, 3, image3, LAYOUT_NCHW, -1, 1);
        struct tensor *x_half = tensor_input(CUDNN_DATA_HALF, 4, image, LAYOUT_NCHW, -1, 1);
        struct tensor *x_nhwc = tensor_input(CUDNN_DATA_FLOAT, 4, image, LAYOUT_NHWC, -1, 1);
        struct tensor *x_int8 = tensor_input(CUDNN_DATA_INT8, 4, image, LAYOUT_NCHW, -9, 9);
        struct tensor *y = tensor_output(CUDNN_DATA_FLOAT, 4, out, LAYOUT_NCHW);
        struct tensor *y_many = tensor_output(CUDNN_DATA_FLOAT, 4, many, LAYOUT_NCHW);
        struct tensor *dy = tensor_input(CUDNN_DATA_FLOAT, 4, out, LAYOUT_NCHW, -1, 1);
        struct tensor *dy_nhwc = tensor_input(CUDNN_DATA_FLOAT, 4, out, LAYOUT_NHWC, -1, 1);
        struct tensor *dy_int8 = tensor_input(CUDNN_DATA_INT8, 4, out, LAYOUT_NCHW, -9, 9);
        struct tensor *dx = tensor_output(CUDNN_DATA_FLOAT, 4, image, LAYOUT_NCHW);
        struct tensor *dx_int8 = tensor_output(CUDNN_DATA_INT8, 4, image, LAYOUT_NCHW);
        char *odd_x = (char *)x->data + 1;
        char *odd_y = (char *)y->data + 2;
        refusal_guard();
#define FWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnPoolingForward, argument, cudnnPoolingForward(__VA_ARGS__))
        FWD(BAD_PARAM_NULL_POINTER, handle, NULL, p, &one, X, &one, Y);
        FWD(BAD_PARAM, handle, (cudnnHandle_t)(void *)window, p, &one, X, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, poolingDesc, h, NULL, &one, X, &one, Y);
        FWD(BAD_PARAM, poolingDesc, h, fake, &one, X, &one, Y);
        FWD(BAD_PARAM, poolingDesc, h, unset, &one, X, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, alpha, h, p, NULL, X, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, xDesc, h, p, &one, NULL, x->data, &one, Y);
        FWD(BAD_PARAM, xDesc, h, p, &one, no_t, x->data, &one, Y);
        FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, p, &one, x_c4->desc, x_c4->data, &one, Y);
        FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, p, &one, x_3d->desc, x_3d->data, &one, Y);
        FWD(BAD_PARAM, xDesc, h, p, &one, x_half->desc, x_half->data, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, x, h, p, &one, x->desc, NULL, &one, Y);
        FWD(BAD_PARAM_MISALIGNED_POINTER, x, h, p, &one, x->desc, odd_x, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, beta, h, p, &one, X, NULL, Y);
        FWD(BAD_PARAM_NULL_POINTER, yDesc, h, p, &one, X, &one, NULL, y->data);
        FWD(BAD_PARAM, yDesc, h, p, &one, X, &one, no_t, y->data);
        FWD(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, p, &one, X, &one, y_many->desc, y_many->data);
        FWD(BAD_PARAM_NULL_POINTER, y, h, p, &one, X, &one, y->desc, NULL);
        FWD(BAD_PARAM_MISALIGNED_POINTER, y, h, p, &one, X, &one, y->desc, odd_y);
        FWD(BAD_PARAM, y, h, p, &one, X, &one, y->desc, x->data);
#define BWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnPoolingBackward, argument, cudnnPoolingBackward(__VA_ARGS__))
        BWD(BAD_PARAM_NULL_POINTER, handle, NULL, p, &one, Y, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, poolingDesc, h, NULL, &one, Y, DY, X, &one, DX);
        BWD(BAD_PARAM, poolingDesc, h, unset, &one, Y, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, alpha, h, p, NULL, Y, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, yDesc, h, p, &one, NULL, y->data, DY, X, &one, DX);
        BWD(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, p, &one, X, DY, X, &one, DX);
        BWD(BAD_PARAM, yDesc, h, p, &one, dy_nhwc->desc, y->data, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, y, h, p, &one, y->desc, NULL, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, dyDesc, h, p, &one, Y, NULL, dy->data, X, &one, DX);
        BWD(BAD_PARAM, dyDesc, h, p, &one, Y, no_t, dy->data, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, dy, h, p, &one, Y, dy->desc, NULL, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, dy, h, average, &one, Y, dy->desc, NULL, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, xDesc, h, p, &one, Y, DY, NULL, x->data, &one, DX);
        BWD(BAD_PARAM, xDesc, h, p, &one, Y, DY, x_nhwc->desc, x_nhwc->data, &one, DX);
        BWD(BAD_PARAM, xDesc, h, p, &one, Y, DY, x_half->desc, x_half->data, &one, DX);
        BWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, p, &one, Y, DY, x_c4->desc, x_c4->data, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, x, h, p, &one, Y, DY, x->desc, NULL, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, beta, h, p, &one, Y, DY, X, NULL, DX);
        BWD(BAD_PARAM_NULL_POINTER, dxDesc, h, p, &one, Y, DY, X, &one, NULL, dx->data);
        BWD(BAD_PARAM_NULL_POINTER, dx, h, p, &one, Y, DY, X, &one, dx->desc, NULL);
        BWD(BAD_PARAM, dx, h, p, &one, Y, DY, X, &one, dx->desc, x->data);
        BWD(BAD_PARAM, dx, h, p, &one, Y, DY, X, &one, dx->desc, dy->data);
        BWD(BAD_PARAM, dx, h, p, &one, Y, DY, X, &one, dx->desc, y->data);
        BWD(NOT_SUPPORTED_DATA_TYPE, dyDesc, h, p, &one, dy_int8->desc, dy_int8->data,
            dy_int8->desc, dy_int8->data, x_int8->desc, x_int8->data, &one, dx_int8->desc,
            dx_int8->data);
    }
    cudnnDestroyPoolingDescriptor(p);
    cudnnDestroyPoolingDescriptor(average);
    cudnnDestroyPoolingDescriptor(unset);
    cudnnDestroyTensorDescriptor(no_t);
    case_end();
}

/* What was set comes back; a refused set changes nothing; dims of the output. */
static void answers(void)
{
    cudnnPoolingDescriptor_t p = NULL;
    cudnnTensorDescriptor_t t = NULL;
    cudnnPoolingMode_t mode;
    cudnnNanPropagation_t nan;
    int w[6], q[6], s[6], n = 0;
    int d[8];
    if (!case_begin("pooling answers")) return;
    cudnnCreatePoolingDescriptor(&p);
    cudnnCreateTensorDescriptor(&t);
    if (cudnnDestroyPoolingDescriptor(NULL) != CUDNN_STATUS_SUCCESS) case_fail("destroy of null");
    if (cudnnSetPoolingNdDescriptor(p, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
                                    CUDNN_PROPAGATE_NAN, 3, window, pad,
                                    stride) != CUDNN_STATUS_SUCCESS ||
        cudnnSetPooling2dDescriptor(p, MAX_NAN, 0, 1, 1, 1, 1, 1) == CUDNN_STATUS_SUCCESS ||
        cudnnGetPoolingNdDescriptor(p, 6, &mode, &nan, &n, w, q, s) != CUDNN_STATUS_SUCCESS ||
        mode != CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING || nan != CUDNN_PROPAGATE_NAN ||
        n != 3 || memcmp(w, window, 3 * sizeof *w) || memcmp(q, pad, 3 * sizeof *q) ||
        memcmp(s, stride, 3 * sizeof *s)) {
        case_fail("what was set does not come back");
    }
    if (cudnnGetPooling2dDescriptor(p, NULL, NULL, &d[0], &d[1], &d[2], &d[3], &d[4], &d[5]) !=
            CUDNN_STATUS_SUCCESS ||
        d[0] != 2 || d[1] != 3 || d[2] != 0 || d[3] != 1 || d[4] != 2 || d[5] != 1) {
        case_fail("the first two dimensions do not come back");
    }
    cudnnSetPooling2dDescriptor(p, MAX_NAN, 3, 2, 1, 0, 2, 3);
    cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 5, 7, 8, 9);
    if (cudnnGetPooling2dForwardOutputDim(p, t, &d[0], &d[1], &d[2], &d[3]) !=
            CUDNN_STATUS_SUCCESS ||
        d[0] != 5 || d[1] != 7 || d[2] != 4 || d[3] != 3) {
        case_fail("output dims %d %d %d %d", d[0], d[1], d[2], d[3]);
    }
    cudnnDestroyPoolingDescriptor(p);
    cudnnDestroyTensorDescriptor(t);
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    fake = (cudnnPoolingDescriptor_t)(void *)window;
    descriptor_rows();
    output_rows();
    compute_rows();
    answers();
    refusal_report();
    return harness_finish();
}
