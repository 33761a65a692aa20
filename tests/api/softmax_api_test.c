/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the softmax calls. */
#include <stddef.h>

#include "support/refusal.h"

static const float one = 1.0f;

#define X x->desc, x->data
#define Y y->desc, y->data
#define DY dy->desc, dy->data
#define DX dx->desc, dx->data
#define KIND CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL

static void rows(void)
{
    static const int dims[4] = {2, 3, 4, 5};
    static const int other[4] = {2, 3, 5, 4};
    cudnnHandle_t h = harness_handle;
    cudnnSoftmaxAlgorithm_t log_form = CUDNN_SOFTMAX_LOG;
    cudnnSoftmaxMode_t instance = CUDNN_SOFTMAX_MODE_INSTANCE;
    cudnnTensorDescriptor_t no_t = NULL;
    struct tensor *x = tensor_input(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW, -1, 1);
    struct tensor *wrong = tensor_input(CUDNN_DATA_FLOAT, 4, other, LAYOUT_NCHW, -1, 1);
    struct tensor *half = tensor_input(CUDNN_DATA_HALF, 4, dims, LAYOUT_NCHW, -1, 1);
    struct tensor *nhwc = tensor_input(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NHWC, -1, 1);
    struct tensor *whole = tensor_input(CUDNN_DATA_INT8, 4, dims, LAYOUT_NCHW, -9, 9);
    struct tensor *whole_y = tensor_output(CUDNN_DATA_INT8, 4, dims, LAYOUT_NCHW);
    struct tensor *dy = tensor_input(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW, -1, 1);
    struct tensor *y = tensor_output(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW);
    struct tensor *dx = tensor_output(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW);
    char *odd_x = (char *)x->data + 1;
    char *odd_y = (char *)y->data + 1;
    cudnnCreateTensorDescriptor(&no_t);
    refusal_guard();
#define FWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSoftmaxForward, argument, cudnnSoftmaxForward(__VA_ARGS__))
    FWD(BAD_PARAM_NULL_POINTER, handle, NULL, KIND, &one, X, &one, Y);
    FWD(BAD_PARAM, handle, (cudnnHandle_t)(void *)no_t, KIND, &one, X, &one, Y);
    FWD(BAD_PARAM, algo, h, (cudnnSoftmaxAlgorithm_t)3, instance, &one, X, &one, Y);
    FWD(BAD_PARAM, algo, h, (cudnnSoftmaxAlgorithm_t)-1, instance, &one, X, &one, Y);
    FWD(BAD_PARAM, mode, h, log_form, (cudnnSoftmaxMode_t)2, &one, X, &one, Y);
    FWD(BAD_PARAM, mode, h, log_form, (cudnnSoftmaxMode_t)-1, &one, X, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, alpha, h, KIND, NULL, X, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, xDesc, h, KIND, &one, NULL, x->data, &one, Y);
    FWD(BAD_PARAM, xDesc, h, KIND, &one, no_t, x->data, &one, Y);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, KIND, &one, wrong->desc, wrong->data, &one, Y);
    FWD(BAD_PARAM, xDesc, h, KIND, &one, half->desc, half->data, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, x, h, KIND, &one, x->desc, NULL, &one, Y);
    FWD(BAD_PARAM_MISALIGNED_POINTER, x, h, KIND, &one, x->desc, odd_x, &one, Y);
    FWD(BAD_PARAM_NULL_POINTER, beta, h, KIND, &one, X, NULL, Y);
    FWD(BAD_PARAM_NULL_POINTER, yDesc, h, KIND, &one, X, &one, NULL, y->data);
    FWD(BAD_PARAM, yDesc, h, KIND, &one, X, &one, no_t, y->data);
    FWD(BAD_PARAM_NULL_POINTER, y, h, KIND, &one, X, &one, y->desc, NULL);
    FWD(BAD_PARAM_MISALIGNED_POINTER, y, h, KIND, &one, X, &one, y->desc, odd_y);
    FWD(BAD_PARAM, y, h, KIND, &one, nhwc->desc, y->data, &one, Y);
    FWD(NOT_SUPPORTED_DATA_TYPE, xDesc, h, KIND, &one, whole->desc, whole->data, &one,
        whole_y->desc, whole_y->data);
#define BWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSoftmaxBackward, argument, cudnnSoftmaxBackward(__VA_ARGS__))
    BWD(BAD_PARAM_NULL_POINTER, handle, NULL, KIND, &one, X, DY, &one, DX);
    BWD(BAD_PARAM, algo, h, (cudnnSoftmaxAlgorithm_t)3, instance, &one, X, DY, &one, DX);
    BWD(BAD_PARAM, mode, h, log_form, (cudnnSoftmaxMode_t)2, &one, X, DY, &one, DX);
    BWD(BAD_PARAM_NULL_POINTER, alpha, h, KIND, NULL, X, DY, &one, DX);
    BWD(BAD_PARAM_NULL_POINTER, yDesc, h, KIND, &one, NULL, x->data, DY, &one, DX);
    BWD(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, KIND, &one, wrong->desc, wrong->data, DY, &one, DX);
    BWD(BAD_PARAM, yDesc, h, KIND, &one, half->desc, half->data, DY, &one, DX);
    BWD(BAD_PARAM, yDesc, h, KIND, &one, nhwc->desc, nhwc->data, DY, &one, DX);
    BWD(BAD_PARAM_NULL_POINTER, y, h, KIND, &one, x->desc, NULL, DY, &one, DX);
    BWD(BAD_PARAM_NULL_POINTER, dyDesc, h, KIND, &one, X, NULL, dy->data, &one, DX);
    BWD(BAD_PARAM, dyDesc, h, KIND, &one, X, no_t, dy->data, &one, DX);
    BWD(BAD_PARAM_NULL_POINTER, dy, h, KIND, &one, X, dy->desc, NULL, &one, DX);
    BWD(BAD_PARAM_NULL_POINTER, beta, h, KIND, &one, X, DY, NULL, DX);
    BWD(BAD_PARAM_NULL_POINTER, dxDesc, h, KIND, &one, X, DY, &one, NULL, dx->data);
    BWD(BAD_PARAM_SHAPE_MISMATCH, dxDesc, h, KIND, &one, X, DY, &one, wrong->desc, dx->data);
    BWD(BAD_PARAM, dxDesc, h, KIND, &one, X, DY, &one, half->desc, dx->data);
    BWD(BAD_PARAM_NULL_POINTER, dx, h, KIND, &one, X, DY, &one, dx->desc, NULL);
    BWD(BAD_PARAM, dx, h, KIND, &one, X, dy->desc, dx->data, &one, nhwc->desc, dx->data);
    BWD(BAD_PARAM, dx, h, KIND, &one, y->desc, dx->data, DY, &one, nhwc->desc, dx->data);
    BWD(NOT_SUPPORTED_DATA_TYPE, dyDesc, h, KIND, &one, whole->desc, whole->data, whole->desc,
        whole->data, &one, whole_y->desc, whole_y->data);
    cudnnDestroyTensorDescriptor(no_t);
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    if (case_begin("softmax tensors")) {
        rows();
        case_end();
    }
    refusal_report();
    return harness_finish();
}
