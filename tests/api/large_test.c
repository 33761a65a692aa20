/* SPDX-License-Identifier: Apache-2.0
 *
 * Offsets beyond 2^31 on the CPU: small tensors whose elements lie very far apart, in mappings of
 * which only the touched pages exist. Each call answers there what it answers on packed tensors, for
 * each dimension that can be the far one; and tensors of more than 2^31 elements are said right. A
 * machine that gives no such mappings skips. */
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cudnn.h"
#include "warpdnn.h"

#if defined(__SANITIZE_THREAD__)
#define WITH_SHADOW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_SHADOW 1
#endif
#endif
#ifndef WITH_SHADOW
#define WITH_SHADOW 0
#endif

enum { N = 3, C = 4, H = 3, W = 5, COUNT = N * C * H * W, TENSORS = 4 };
static const int dims[4] = {N, C, H, W};
static const int packed[4] = {C * H * W, H *W, W, 1};

static cudnnHandle_t handle;
static int passed, failed, skipped;

static void due(bool good, const char *what, int far)
{
    char text[512] = "";
    passed += good;
    failed += !good;
    if (good) return;
    cudnnGetLastErrorString(text, sizeof text);
    printf("FAIL %s, far dimension %d; last error: %s\n", what, far, text);
}

/* x, dy and two outputs, laid out alike. */
struct scene {
    cudnnTensorDescriptor_t image, channel;
    int stride[4];
    size_t bytes;
    float *data[TENSORS];
    float weights[C * C * 9], params[4][C], grads[C * C * 9];
};

static cudnnFilterDescriptor_t filter;
static cudnnConvolutionDescriptor_t conv;
static cudnnPoolingDescriptor_t pooling;
static cudnnActivationDescriptor_t activation;
static cudnnOpTensorDescriptor_t op;
static cudnnReduceTensorDescriptor_t reduce;
static const float one = 1.0f, zero = 0.0f, two = 2.0f;

static int64_t offset_of(const struct scene *s, int i)
{
    return (int64_t)(i / (C * H * W)) * s->stride[0] + (int64_t)(i / (H * W) % C) * s->stride[1] +
           (int64_t)(i / W % H) * s->stride[2] + (int64_t)(i % W) * s->stride[3];
}

static bool open_scene(struct scene *s, const int *stride)
{
    int64_t last;
    memset(s, 0, sizeof *s);
    memcpy(s->stride, stride, sizeof s->stride);
    last = offset_of(s, COUNT - 1);
    s->bytes = ((size_t)last + 1) * sizeof(float);
    for (int t = 0; t < TENSORS; ++t) {
        void *data = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (data == MAP_FAILED) return false;
        s->data[t] = data;
        for (int i = 0; i < COUNT; ++i) {
            s->data[t][offset_of(s, i)] = t < 2 ? (float)((i * 7 + t * 3) % 11 - 5) : -77.0f;
        }
    }
    for (int i = 0; i < C * C * 9; ++i) s->weights[i] = (float)(i * 5 % 7 - 3);
    for (int p = 0; p < 4; ++p)
        for (int c = 0; c < C; ++c) s->params[p][c] = (float)(1 + p + c);
    return cudnnCreateTensorDescriptor(&s->image) == 0 &&
           cudnnCreateTensorDescriptor(&s->channel) == 0 &&
           cudnnSetTensorNdDescriptor(s->image, CUDNN_DATA_FLOAT, 4, dims, stride) == 0 &&
           cudnnSetTensor4dDescriptor(s->channel, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, C, 1,
                                      1) == 0;
}

static void close_scene(struct scene *s)
{
    for (int t = 0; t < TENSORS; ++t)
        if (s->data[t]) munmap(s->data[t], s->bytes);
    if (s->image) cudnnDestroyTensorDescriptor(s->image);
    if (s->channel) cudnnDestroyTensorDescriptor(s->channel);
}

enum { CALLS = 19 };
static const char *const names[CALLS] = {
    "cudnnSetTensor",
    "cudnnScaleTensor",
    "cudnnAddTensor",
    "cudnnTransformTensor",
    "cudnnOpTensor",
    "cudnnActivationForward",
    "cudnnActivationBackward",
    "cudnnSoftmaxForward",
    "cudnnSoftmaxBackward",
    "cudnnPoolingForward",
    "cudnnPoolingBackward",
    "cudnnReduceTensor",
    "cudnnBatchNormalizationForwardInference",
    "cudnnBatchNormalizationForwardTraining",
    "cudnnBatchNormalizationBackward",
    "cudnnConvolutionForward",
    "cudnnConvolutionBackwardData",
    "cudnnConvolutionBackwardFilter",
    "cudnnConvolutionBackwardBias",
};

static cudnnStatus_t call_norm(struct scene *s, int which, float *x, float *dy, float *y)
{
    switch (which) {
    case 12:
        return cudnnBatchNormalizationForwardInference(
            handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, s->image, x, s->image, y, s->channel,
            s->params[0], s->params[1], s->params[2], s->params[3], 1e-3);
    case 13:
        return cudnnBatchNormalizationForwardTraining(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero,
                                                      s->image, x, s->image, y, s->channel,
                                                      s->params[0], s->params[1], 0.5, s->params[2],
                                                      s->params[3], 1e-3, s->grads, s->grads + C);
    default:
        return cudnnBatchNormalizationBackward(
            handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, s->image, x, s->image, dy,
            s->image, y, s->channel, s->params[0], s->grads, s->grads + C, 1e-3, NULL, NULL);
    }
}

static cudnnStatus_t call_conv(struct scene *s, int which, float *x, float *dy, float *y)
{
    switch (which) {
    case 15:
        return cudnnConvolutionForward(handle, &one, s->image, x, filter, s->weights, conv,
                                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &zero,
                                       s->image, y);
    case 16:
        return cudnnConvolutionBackwardData(handle, &one, filter, s->weights, s->image, dy, conv,
                                            CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, NULL, 0, &zero,
                                            s->image, y);
    case 17:
        return cudnnConvolutionBackwardFilter(handle, &one, s->image, x, s->image, dy, conv,
                                              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, NULL, 0, &zero,
                                              filter, s->grads);
    default:
        return cudnnConvolutionBackwardBias(handle, &one, s->image, dy, &zero, s->channel,
                                            s->grads);
    }
}

static cudnnStatus_t call(struct scene *s, int which)
{
    float *x = s->data[0], *dy = s->data[1], *y = s->data[2], *other = s->data[3];
    cudnnTensorDescriptor_t t = s->image;
    switch (which) {
    case 0: return cudnnSetTensor(handle, t, y, &two);
    case 1: return cudnnScaleTensor(handle, t, y, &two);
    case 2: return cudnnAddTensor(handle, &two, t, x, &one, t, y);
    case 3: return cudnnTransformTensor(handle, &two, t, x, &zero, t, y);
    case 4: return cudnnOpTensor(handle, op, &one, t, x, &two, t, dy, &zero, t, y);
    case 5: return cudnnActivationForward(handle, activation, &one, t, x, &zero, t, y);
    case 6:
        return cudnnActivationBackward(handle, activation, &one, t, x, t, dy, t, x, &zero, t, y);
    case 7:
        return cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                                   t, x, &zero, t, y);
    case 8:
        return cudnnSoftmaxBackward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
                                    &one, t, x, t, dy, &zero, t, y);
    case 9: return cudnnPoolingForward(handle, pooling, &one, t, x, &zero, t, y);
    case 10:
        if (cudnnPoolingForward(handle, pooling, &one, t, x, &zero, t, other)) return 1;
        return cudnnPoolingBackward(handle, pooling, &one, t, other, t, dy, t, x, &zero, t, y);
    case 11:
        return cudnnReduceTensor(handle, reduce, NULL, 0, NULL, 0, &one, t, x, &zero, s->channel,
                                 s->grads);
    case 12:
    case 13:
    case 14: return call_norm(s, which, x, dy, y);
    default: return call_conv(s, which, x, dy, y);
    }
}

static bool near(float a, float b)
{
    return a == b || fabsf(a - b) <= 1e-5f * (1.0f + fabsf(b));
}

static bool same(const struct scene *a, const struct scene *b)
{
    bool good = true;
    for (int t = 0; t < TENSORS; ++t) {
        for (int i = 0; i < COUNT; ++i) {
            good &= near(a->data[t][offset_of(a, i)], b->data[t][offset_of(b, i)]);
        }
    }
    for (int i = 0; i < C * C * 9; ++i) good &= near(a->grads[i], b->grads[i]);
    for (int i = 0; i < C; ++i) good &= near(a->params[2][i], b->params[2][i]);
    return good;
}

static bool changed(const struct scene *s)
{
    bool moved = false;
    for (int i = 0; i < COUNT; ++i) moved |= s->data[2][offset_of(s, i)] != -77.0f;
    for (int i = 0; i < C * C * 9; ++i) moved |= s->grads[i] != 0.0f;
    return moved;
}

static void one_far(int far)
{
    for (int which = 0; which < CALLS; ++which) {
        struct scene near_scene, far_scene;
        int stride[4];
        bool far_there;
        bool near_there;
        memcpy(stride, packed, sizeof stride);
        /* an odd stride: what lies there is aligned to its elements and to no more */
        stride[far] = INT_MAX;
        far_there = open_scene(&far_scene, stride);
        near_there = open_scene(&near_scene, packed); /* both are closed in any case */
        if (!far_there || !near_there) {
            skipped += 1;
        } else {
            bool ran = call(&near_scene, which) == 0 && call(&far_scene, which) == 0;
            due(ran && same(&near_scene, &far_scene) && changed(&far_scene), names[which], far);
        }
        close_scene(&near_scene);
        close_scene(&far_scene);
    }
}

/* 2^31 + 1 elements and more: sizes are right, what an int cannot say is refused. */
static void sizes(void)
{
    cudnnTensorDescriptor_t desc;
    size_t bytes = 0;
    int n, c, h, w, t[4];
    cudnnDataType_t type;
    due(cudnnCreateTensorDescriptor(&desc) == 0, "create", -1);
    due(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8, 1, 1, 3, 715827883) ==
            0,
        "2^31 + 1 elements", -1);
    due(cudnnGetTensorSizeInBytes(desc, &bytes) == 0 && bytes == ((size_t)1 << 31) + 1, "size", -1);
    due(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 2, 65536, 32768,
                                   2) == 0,
        "2^33 elements", -1);
    due(cudnnGetTensorSizeInBytes(desc, &bytes) == 0 && bytes == (size_t)1 << 36, "size", -1);
    due(cudnnGetTensor4dDescriptor(desc, &type, &n, &c, &h, &w, &t[0], &t[1], &t[2], &t[3]) ==
            CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
        "a stride beyond int", -1);
    due(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, INT_MAX, INT_MAX, 2,
                                   2) == CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
        "2^64 elements", -1);
    due(cudnnDestroyTensorDescriptor(desc) == 0, "destroy", -1);
}

/* More than 2^31 bytes that take the memory of two windows: one lies behind all but the last place,
 * which has its own. What follows the tensor there tells whether anything was written beyond. */
static void whole(void)
{
    enum { WINDOW = 1 << 26, WINDOWS = 33 };
    const size_t count = ((size_t)1 << 31) + 1;
    const float three = 3.0f;
    cudnnTensorDescriptor_t desc;
    bool good = true;
    int file = memfd_create("window", MFD_CLOEXEC);
    signed char *data = mmap(NULL, (size_t)WINDOW * WINDOWS, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED || file < 0 || ftruncate(file, WINDOW)) {
        skipped += 1;
        return;
    }
    for (int i = 0; i + 1 < WINDOWS; ++i) {
        good &= mmap(data + (size_t)i * WINDOW, WINDOW, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    }
    due(good, "the windows are mapped", -1);
    good = cudnnCreateTensorDescriptor(&desc) == 0 &&
           cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8, 1, 1, 3,
                                      (int)(count / 3)) == 0 &&
           cudnnSetTensor(handle, desc, data, &three) == 0;
    due(good, "cudnnSetTensor of 2^31 + 1 elements", -1);
    for (size_t i = 0; good && i < WINDOW; ++i) good = data[i] == 3;
    due(good && data[count - 1] == 3 && data[count] == 0, "all of them are set and no more", -1);
    due(cudnnDestroyTensorDescriptor(desc) == 0, "destroy", -1);
    munmap(data, (size_t)WINDOW * WINDOWS);
    close(file);
}

int main(void)
{
    setenv("WARPDNN_DEVICE", "cpu", 1);
    due(cudnnCreate(&handle) == 0, "cudnnCreate", -1);
    due(cudnnCreateFilterDescriptor(&filter) == 0 && cudnnCreateConvolutionDescriptor(&conv) == 0 &&
            cudnnCreatePoolingDescriptor(&pooling) == 0 &&
            cudnnCreateActivationDescriptor(&activation) == 0 &&
            cudnnCreateOpTensorDescriptor(&op) == 0 &&
            cudnnCreateReduceTensorDescriptor(&reduce) == 0,
        "create", -1);
    cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, C, C, 3, 3);
    cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                    CUDNN_DATA_FLOAT);
    cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1);
    cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0);
    cudnnSetOpTensorDescriptor(op, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN);
    cudnnSetReduceTensorDescriptor(reduce, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                   CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                   CUDNN_32BIT_INDICES);
    sizes();
    /* the thread sanitizer keeps a shadow of every mapping, several times its size */
    for (int far = 0; far < 4 && !WITH_SHADOW; ++far) one_far(far);
    if (getenv("WARPDNN_TEST_QUICK")) skipped += 1;
    else whole();
    cudnnDestroyReduceTensorDescriptor(reduce);
    cudnnDestroyOpTensorDescriptor(op);
    cudnnDestroyActivationDescriptor(activation);
    cudnnDestroyPoolingDescriptor(pooling);
    cudnnDestroyConvolutionDescriptor(conv);
    cudnnDestroyFilterDescriptor(filter);
    due(cudnnDestroy(handle) == 0, "cudnnDestroy", -1);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
