/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of local response and divisive normalization. (Their descriptor's rows are in
 * descriptor_api_test.c.) */
#include <stddef.h>

#include "support/refusal.h"

static const float one = 1.0f;
static int something[4] = {2, 3, 5, 6};
static cudnnLRNDescriptor_t fake;

#define ACROSS CUDNN_LRN_CROSS_CHANNEL_DIM1
#define WITHIN CUDNN_DIVNORM_PRECOMPUTED_MEANS
#define X x->desc, x->data
#define Y y->desc, y->data
#define DY dy->desc, dy->data
#define DX dx->desc, dx->data

/* The tensors of both functions, and what may stand in their places wrongly. */
struct world {
    cudnnLRNDescriptor_t lrn;
    cudnnTensorDescriptor_t unset;
    struct tensor *x, *x_c4, *x_half, *x_int8, *x_3d, *x_5d, *means, *temp, *temp2, *y, *y_half,
        *y_input, *dy, *dx, *dx_half, *dmeans;
};

static void open(struct world *w)
{
    static const int dim[4] = {2, 3, 5, 6}, more[4] = {2, 4, 5, 6}, dim3[3] = {2, 3, 30};
    static const int dim5[5] = {2, 3, 5, 6, 1};
    cudnnCreateLRNDescriptor(&w->lrn);
    cudnnCreateTensorDescriptor(&w->unset);
    w->x = tensor_input(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW, -1, 1);
    w->x_c4 = tensor_input(CUDNN_DATA_FLOAT, 4, more, LAYOUT_NCHW, -1, 1);
    w->x_half = tensor_input(CUDNN_DATA_HALF, 4, dim, LAYOUT_NCHW, -1, 1);
    w->x_int8 = tensor_input(CUDNN_DATA_INT8, 4, dim, LAYOUT_NCHW, -9, 9);
    w->x_3d = tensor_input(CUDNN_DATA_FLOAT, 3, dim3, LAYOUT_NCHW, -1, 1);
    w->x_5d = tensor_input(CUDNN_DATA_FLOAT, 5, dim5, LAYOUT_NCHW, -1, 1);
    w->means = tensor_input(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW, -1, 1);
    w->temp = tensor_output(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW);
    w->temp2 = tensor_output(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW);
    w->y = tensor_output(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW);
    w->y_half = tensor_output(CUDNN_DATA_HALF, 4, dim, LAYOUT_NCHW);
    w->y_input = tensor_input(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW, -1, 1);
    w->dy = tensor_input(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW, -1, 1);
    w->dx = tensor_output(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW);
    w->dx_half = tensor_output(CUDNN_DATA_HALF, 4, dim, LAYOUT_NCHW);
    w->dmeans = tensor_output(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NCHW);
    refusal_guard();
}

static void close(struct world *w)
{
    cudnnDestroyLRNDescriptor(w->lrn);
    cudnnDestroyTensorDescriptor(w->unset);
}

static void lrn_rows(void)
{
    struct world w;
    if (!case_begin("lrn tensors")) return;
    open(&w);
    {
        cudnnHandle_t h = harness_handle;
        cudnnLRNDescriptor_t l = w.lrn;
        cudnnLRNMode_t no_mode = (cudnnLRNMode_t)1;
        struct tensor *x = w.x, *y = w.y, *dy = w.dy, *dx = w.dx;
        char *odd_x = (char *)x->data + 1, *odd_y = (char *)y->data + 2;
        char *odd_dy = (char *)dy->data + 3, *odd_dx = (char *)dx->data + 1;
#define FWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnLRNCrossChannelForward, argument, cudnnLRNCrossChannelForward(__VA_ARGS__))
        FWD(BAD_PARAM_NULL_POINTER, handle, NULL, l, ACROSS, &one, X, &one, Y);
        FWD(BAD_PARAM, handle, (cudnnHandle_t)(void *)something, l, ACROSS, &one, X, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, normDesc, h, NULL, ACROSS, &one, X, &one, Y);
        FWD(BAD_PARAM, normDesc, h, fake, ACROSS, &one, X, &one, Y);
        FWD(BAD_PARAM, lrnMode, h, l, no_mode, &one, X, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, alpha, h, l, ACROSS, NULL, X, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, xDesc, h, l, ACROSS, &one, NULL, x->data, &one, Y);
        FWD(BAD_PARAM, xDesc, h, l, ACROSS, &one, w.unset, x->data, &one, Y);
        FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, l, ACROSS, &one, w.x_c4->desc, w.x_c4->data, &one,
            Y);
        FWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, l, ACROSS, &one, w.x_3d->desc, w.x_3d->data, &one,
            Y);
        FWD(BAD_PARAM, xDesc, h, l, ACROSS, &one, w.x_half->desc, w.x_half->data, &one, Y);
        FWD(NOT_SUPPORTED_DATA_TYPE, xDesc, h, l, ACROSS, &one, w.x_int8->desc, w.x_int8->data,
            &one, w.x_int8->desc, y->data);
        FWD(BAD_PARAM_NULL_POINTER, x, h, l, ACROSS, &one, x->desc, NULL, &one, Y);
        FWD(BAD_PARAM_MISALIGNED_POINTER, x, h, l, ACROSS, &one, x->desc, odd_x, &one, Y);
        FWD(BAD_PARAM_NULL_POINTER, beta, h, l, ACROSS, &one, X, NULL, Y);
        FWD(BAD_PARAM_NULL_POINTER, yDesc, h, l, ACROSS, &one, X, &one, NULL, y->data);
        FWD(BAD_PARAM, yDesc, h, l, ACROSS, &one, X, &one, w.unset, y->data);
        FWD(BAD_PARAM, yDesc, h, l, ACROSS, &one, X, &one, w.y_half->desc, y->data);
        FWD(BAD_PARAM_NULL_POINTER, y, h, l, ACROSS, &one, X, &one, y->desc, NULL);
        FWD(BAD_PARAM_MISALIGNED_POINTER, y, h, l, ACROSS, &one, X, &one, y->desc, odd_y);
        FWD(BAD_PARAM, y, h, l, ACROSS, &one, X, &one, y->desc, x->data);
        y = w.y_input;
#define BWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnLRNCrossChannelBackward, argument,                                        \
            cudnnLRNCrossChannelBackward(__VA_ARGS__))
        BWD(BAD_PARAM_NULL_POINTER, handle, NULL, l, ACROSS, &one, Y, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, normDesc, h, NULL, ACROSS, &one, Y, DY, X, &one, DX);
        BWD(BAD_PARAM, normDesc, h, fake, ACROSS, &one, Y, DY, X, &one, DX);
        BWD(BAD_PARAM, lrnMode, h, l, no_mode, &one, Y, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, alpha, h, l, ACROSS, NULL, Y, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, yDesc, h, l, ACROSS, &one, NULL, y->data, DY, X, &one, DX);
        BWD(BAD_PARAM, yDesc, h, l, ACROSS, &one, w.unset, y->data, DY, X, &one, DX);
        BWD(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, l, ACROSS, &one, w.x_c4->desc, y->data, DY, X, &one,
            DX);
        BWD(BAD_PARAM_NULL_POINTER, y, h, l, ACROSS, &one, y->desc, NULL, DY, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, dyDesc, h, l, ACROSS, &one, Y, NULL, dy->data, X, &one, DX);
        BWD(BAD_PARAM, dyDesc, h, l, ACROSS, &one, Y, w.x_half->desc, dy->data, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, dy, h, l, ACROSS, &one, Y, dy->desc, NULL, X, &one, DX);
        BWD(BAD_PARAM_MISALIGNED_POINTER, dy, h, l, ACROSS, &one, Y, dy->desc, odd_dy, X, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, xDesc, h, l, ACROSS, &one, Y, DY, NULL, x->data, &one, DX);
        BWD(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, l, ACROSS, &one, Y, DY, w.x_c4->desc, w.x_c4->data,
            &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, x, h, l, ACROSS, &one, Y, DY, x->desc, NULL, &one, DX);
        BWD(BAD_PARAM_NULL_POINTER, beta, h, l, ACROSS, &one, Y, DY, X, NULL, DX);
        BWD(BAD_PARAM_NULL_POINTER, dxDesc, h, l, ACROSS, &one, Y, DY, X, &one, NULL, dx->data);
        BWD(BAD_PARAM, dxDesc, h, l, ACROSS, &one, Y, DY, X, &one, w.dx_half->desc, dx->data);
        BWD(BAD_PARAM_NULL_POINTER, dx, h, l, ACROSS, &one, Y, DY, X, &one, dx->desc, NULL);
        BWD(BAD_PARAM_MISALIGNED_POINTER, dx, h, l, ACROSS, &one, Y, DY, X, &one, dx->desc, odd_dx);
        BWD(BAD_PARAM, dx, h, l, ACROSS, &one, Y, DY, X, &one, dx->desc, x->data);
        BWD(BAD_PARAM, dx, h, l, ACROSS, &one, Y, DY, X, &one, dx->desc, dy->data);
        BWD(BAD_PARAM, dx, h, l, ACROSS, &one, Y, DY, X, &one, dx->desc, y->data);
    }
    close(&w);
    case_end();
}

static void divisive_rows(void)
{
    struct world w;
    if (!case_begin("divisive tensors")) return;
    open(&w);
    {
        cudnnHandle_t h = harness_handle;
        cudnnLRNDescriptor_t l = w.lrn;
        cudnnDivNormMode_t no_mode = (cudnnDivNormMode_t)1;
        struct tensor *x = w.x, *y = w.y, *dx = w.dx;
        void *m = w.means->data, *t = w.temp->data, *t2 = w.temp2->data, *dy = w.dy->data;
        void *dm = w.dmeans->data;
        char *odd_x = (char *)x->data + 1, *odd_m = (char *)m + 2, *odd_t = (char *)t + 1;
        char *odd_t2 = (char *)t2 + 3, *odd_y = (char *)y->data + 2, *odd_dy = (char *)dy + 2;
        char *odd_dm = (char *)dm + 1;
#define DIV(status, argument, ...)                                                                 \
    REFUSED(status, cudnnDivisiveNormalizationForward, argument,                                   \
            cudnnDivisiveNormalizationForward(__VA_ARGS__))
        DIV(BAD_PARAM_NULL_POINTER, handle, NULL, l, WITHIN, &one, X, m, t, t2, &one, Y);
        DIV(BAD_PARAM_NULL_POINTER, normDesc, h, NULL, WITHIN, &one, X, m, t, t2, &one, Y);
        DIV(BAD_PARAM, normDesc, h, fake, WITHIN, &one, X, m, t, t2, &one, Y);
        DIV(BAD_PARAM, mode, h, l, no_mode, &one, X, m, t, t2, &one, Y);
        DIV(BAD_PARAM_NULL_POINTER, alpha, h, l, WITHIN, NULL, X, m, t, t2, &one, Y);
        DIV(BAD_PARAM_NULL_POINTER, xDesc, h, l, WITHIN, &one, NULL, x->data, m, t, t2, &one, Y);
        DIV(BAD_PARAM, xDesc, h, l, WITHIN, &one, w.unset, x->data, m, t, t2, &one, Y);
        DIV(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, l, WITHIN, &one, w.x_5d->desc, x->data, m, t, t2,
            &one, Y);
        DIV(BAD_PARAM, xDesc, h, l, WITHIN, &one, w.x_3d->desc, x->data, m, t, t2, &one,
            w.x_3d->desc, y->data);
        DIV(NOT_SUPPORTED_DATA_TYPE, xDesc, h, l, WITHIN, &one, w.x_int8->desc, x->data, m, t, t2,
            &one, w.x_int8->desc, y->data);
        DIV(BAD_PARAM_NULL_POINTER, x, h, l, WITHIN, &one, x->desc, NULL, m, t, t2, &one, Y);
        DIV(BAD_PARAM_MISALIGNED_POINTER, x, h, l, WITHIN, &one, x->desc, odd_x, m, t, t2, &one, Y);
        DIV(BAD_PARAM_MISALIGNED_POINTER, means, h, l, WITHIN, &one, X, odd_m, t, t2, &one, Y);
        DIV(BAD_PARAM_NULL_POINTER, temp, h, l, WITHIN, &one, X, m, NULL, t2, &one, Y);
        DIV(BAD_PARAM_MISALIGNED_POINTER, temp, h, l, WITHIN, &one, X, m, odd_t, t2, &one, Y);
        DIV(BAD_PARAM, temp, h, l, WITHIN, &one, X, m, x->data, t2, &one, Y);
        DIV(BAD_PARAM, temp, h, l, WITHIN, &one, X, m, m, t2, &one, Y);
        DIV(BAD_PARAM_NULL_POINTER, temp2, h, l, WITHIN, &one, X, m, t, NULL, &one, Y);
        DIV(BAD_PARAM_MISALIGNED_POINTER, temp2, h, l, WITHIN, &one, X, m, t, odd_t2, &one, Y);
        DIV(BAD_PARAM, temp2, h, l, WITHIN, &one, X, m, t, t, &one, Y);
        DIV(BAD_PARAM, temp2, h, l, WITHIN, &one, X, m, t, x->data, &one, Y);
        DIV(BAD_PARAM_NULL_POINTER, beta, h, l, WITHIN, &one, X, m, t, t2, NULL, Y);
        DIV(BAD_PARAM_NULL_POINTER, yDesc, h, l, WITHIN, &one, X, m, t, t2, &one, NULL, y->data);
        DIV(BAD_PARAM, yDesc, h, l, WITHIN, &one, X, m, t, t2, &one, w.y_half->desc, y->data);
        DIV(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, l, WITHIN, &one, X, m, t, t2, &one, w.x_c4->desc,
            y->data);
        DIV(BAD_PARAM_NULL_POINTER, y, h, l, WITHIN, &one, X, m, t, t2, &one, y->desc, NULL);
        DIV(BAD_PARAM_MISALIGNED_POINTER, y, h, l, WITHIN, &one, X, m, t, t2, &one, y->desc, odd_y);
        DIV(BAD_PARAM, y, h, l, WITHIN, &one, X, m, t, t2, &one, y->desc, x->data);
        DIV(BAD_PARAM, y, h, l, WITHIN, &one, X, m, t, t2, &one, y->desc, m);
        DIV(BAD_PARAM, y, h, l, WITHIN, &one, X, m, t, t2, &one, y->desc, t2);
#define DBACK(status, argument, ...)                                                               \
    REFUSED(status, cudnnDivisiveNormalizationBackward, argument,                                  \
            cudnnDivisiveNormalizationBackward(__VA_ARGS__))
        DBACK(BAD_PARAM_NULL_POINTER, handle, NULL, l, WITHIN, &one, X, m, dy, t, t2, &one, DX, dm);
        DBACK(BAD_PARAM_NULL_POINTER, normDesc, h, NULL, WITHIN, &one, X, m, dy, t, t2, &one, DX,
              dm);
        DBACK(BAD_PARAM, mode, h, l, no_mode, &one, X, m, dy, t, t2, &one, DX, dm);
        DBACK(BAD_PARAM_NULL_POINTER, alpha, h, l, WITHIN, NULL, X, m, dy, t, t2, &one, DX, dm);
        DBACK(BAD_PARAM_NULL_POINTER, xDesc, h, l, WITHIN, &one, NULL, x->data, m, dy, t, t2, &one,
              DX, dm);
        DBACK(BAD_PARAM_SHAPE_MISMATCH, xDesc, h, l, WITHIN, &one, w.x_c4->desc, w.x_c4->data, m,
              dy, t, t2, &one, DX, dm);
        DBACK(BAD_PARAM_NULL_POINTER, x, h, l, WITHIN, &one, x->desc, NULL, m, dy, t, t2, &one, DX,
              dm);
        DBACK(BAD_PARAM_MISALIGNED_POINTER, means, h, l, WITHIN, &one, X, odd_m, dy, t, t2, &one,
              DX, dm);
        DBACK(BAD_PARAM_NULL_POINTER, dy, h, l, WITHIN, &one, X, m, NULL, t, t2, &one, DX, dm);
        DBACK(BAD_PARAM_MISALIGNED_POINTER, dy, h, l, WITHIN, &one, X, m, odd_dy, t, t2, &one, DX,
              dm);
        DBACK(BAD_PARAM_NULL_POINTER, temp, h, l, WITHIN, &one, X, m, dy, NULL, t2, &one, DX, dm);
        DBACK(BAD_PARAM, temp, h, l, WITHIN, &one, X, m, dy, dy, t2, &one, DX, dm);
        DBACK(BAD_PARAM_NULL_POINTER, temp2, h, l, WITHIN, &one, X, m, dy, t, NULL, &one, DX, dm);
        DBACK(BAD_PARAM, temp2, h, l, WITHIN, &one, X, m, dy, t, t, &one, DX, dm);
        DBACK(BAD_PARAM_NULL_POINTER, beta, h, l, WITHIN, &one, X, m, dy, t, t2, NULL, DX, dm);
        DBACK(BAD_PARAM_NULL_POINTER, dXdMeansDesc, h, l, WITHIN, &one, X, m, dy, t, t2, &one, NULL,
              dx->data, dm);
        DBACK(BAD_PARAM, dXdMeansDesc, h, l, WITHIN, &one, X, m, dy, t, t2, &one, w.dx_half->desc,
              dx->data, dm);
        DBACK(BAD_PARAM_SHAPE_MISMATCH, dXdMeansDesc, h, l, WITHIN, &one, X, m, dy, t, t2, &one,
              w.x_c4->desc, dx->data, dm);
        DBACK(BAD_PARAM_NULL_POINTER, dx, h, l, WITHIN, &one, X, m, dy, t, t2, &one, dx->desc, NULL,
              dm);
        DBACK(BAD_PARAM, dx, h, l, WITHIN, &one, X, m, dy, t, t2, &one, dx->desc, x->data, dm);
        DBACK(BAD_PARAM, dx, h, l, WITHIN, &one, X, m, dy, t, t2, &one, dx->desc, dy, dm);
        DBACK(BAD_PARAM, dx, h, l, WITHIN, &one, X, m, dy, t, t2, &one, dx->desc, t, dm);
        DBACK(BAD_PARAM, dMeans, h, l, WITHIN, &one, X, m, dy, t, t2, &one, DX, dx->data);
        DBACK(BAD_PARAM, dMeans, h, l, WITHIN, &one, X, m, dy, t, t2, &one, DX, m);
        DBACK(BAD_PARAM_MISALIGNED_POINTER, dMeans, h, l, WITHIN, &one, X, m, dy, t, t2, &one, DX,
              odd_dm);
    }
    close(&w);
    case_end();
}

/* Strides of 0 leave the scratch without a place an element. */
static void strides(void)
{
    static const int dim[4] = {2, 3, 5, 6}, flat[4] = {90, 30, 6, 0};
    cudnnTensorDescriptor_t broadcast = NULL;
    struct world w;
    if (!case_begin("divisive strides")) return;
    open(&w);
    cudnnCreateTensorDescriptor(&broadcast);
    if (cudnnSetTensorNdDescriptor(broadcast, CUDNN_DATA_FLOAT, 4, dim, flat) ==
        CUDNN_STATUS_SUCCESS) {
        REFUSED(NOT_SUPPORTED_LAYOUT, cudnnDivisiveNormalizationForward, xDesc,
                cudnnDivisiveNormalizationForward(harness_handle, w.lrn, WITHIN, &one, broadcast,
                                                  w.x->data, NULL, w.temp->data, w.temp2->data,
                                                  &one, w.y->desc, w.y->data));
    }
    cudnnDestroyTensorDescriptor(broadcast);
    close(&w);
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    fake = (cudnnLRNDescriptor_t)(void *)something;
    lrn_rows();
    divisive_rows();
    strides();
    refusal_report();
    return harness_finish();
}
