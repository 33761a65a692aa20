/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the queries about algorithms and workspaces, and that what they and the lists
 * of Get and Find answer is true. */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/conv_world.h"

static const float one = 1.0f;
static const float zero = 0.0f;
static const cudnnConvolutionMode_t cross = CUDNN_CROSS_CORRELATION;
static const cudnnDataType_t fp32 = CUDNN_DATA_FLOAT;
static const cudnnConvolutionFwdAlgo_t fwd = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
static const cudnnConvolutionBwdDataAlgo_t bwd = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
static const cudnnConvolutionBwdFilterAlgo_t bwf = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

static void query_rows(const struct conv_world *s)
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
#define LIST(function, first, second, third, A, B_, C, BAD_A, BAD_C, P)                            \
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
    LIST(cudnnGetConvolutionForwardAlgorithm_v7, srcDesc, filterDesc, destDesc, x, s->w, y, x_c4,
         s->y_k5->desc, f);
    LIST(cudnnFindConvolutionForwardAlgorithm, xDesc, wDesc, yDesc, x, s->w, y, x_c4, s->y_k5->desc,
         f);
    LIST(cudnnGetConvolutionBackwardDataAlgorithm_v7, filterDesc, diffDesc, gradDesc, s->w, y, x,
         s->w_c4, x_c4, d);
    LIST(cudnnFindConvolutionBackwardDataAlgorithm, wDesc, dyDesc, dxDesc, s->w, y, x, s->w_c4,
         x_c4, d);
    LIST(cudnnGetConvolutionBackwardFilterAlgorithm_v7, srcDesc, diffDesc, gradDesc, x, y, s->w,
         x_c4, s->w_c4, g);
    LIST(cudnnFindConvolutionBackwardFilterAlgorithm, xDesc, dyDesc, dwDesc, x, y, s->w, x_c4,
         s->w_c4, g);
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
    FEX(BAD_PARAM_SHAPE_MISMATCH, yDesc, h, X, W, s->conv, OF(y_many), 8, &n, f);
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
    DEX(BAD_PARAM, convDesc, h, W, Y, conv_fake(), X, 8, &n, d);
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
#define SIZE(function, first, second, third, A, B_, C, BAD_A, ALGO, COUNT)                         \
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
    REFUSED(NOT_SUPPORTED, function, algo, function(h, A, B_, s->conv, C, COUNT, &bytes));         \
    REFUSED(BAD_PARAM_NULL_POINTER, function, sizeInBytes,                                         \
            function(h, A, B_, s->conv, C, ALGO, NULL))
    SIZE(cudnnGetConvolutionForwardWorkspaceSize, xDesc, wDesc, yDesc, x, s->w, y, x_c4, fwd,
         CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
    SIZE(cudnnGetConvolutionBackwardDataWorkspaceSize, wDesc, dyDesc, dxDesc, s->w, y, x, s->w_c4,
         bwd, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
    SIZE(cudnnGetConvolutionBackwardFilterWorkspaceSize, xDesc, dyDesc, gradDesc, x, y, s->w, x_c4,
         bwf, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
    REFUSED(BAD_PARAM_SHAPE_MISMATCH, cudnnGetConvolutionForwardWorkspaceSize, yDesc,
            cudnnGetConvolutionForwardWorkspaceSize(h, x, s->w, s->conv, y_many, fwd, &bytes));
}

/* wgrad over a large image with few weights: the definition reduces in segments, so that memory is
 * not always 0. */
static void truth_case(int n, int c, int k, int image, int filter)
{
    cudnnHandle_t h = harness_handle;
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
    cudnnCreateFilterDescriptor(&wd);
    cudnnCreateConvolutionDescriptor(&conv);
    cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, cross, fp32);
    cudnnSetFilter4dDescriptor(wd, fp32, CUDNN_TENSOR_NCHW, k, c, filter, filter);
    x = conv_plain(fp32, n, c, image, image);
    w = conv_plain(fp32, k, c, filter, filter);
    y = conv_plain(fp32, n, k, image - filter + 1, image - filter + 1);
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

/* Find brings tensors of its own: where the host cannot hold them it says so, and does not try. */
static void find_beyond_memory(void)
{
    cudnnHandle_t h = harness_handle;
    cudnnFilterDescriptor_t w = NULL;
    cudnnConvolutionDescriptor_t conv = NULL;
    cudnnTensorDescriptor_t x = NULL;
    cudnnConvolutionFwdAlgoPerf_t perf[8];
    char text[512];
    int n = 0;
    if (!case_begin("Find beyond the memory")) return;
    cudnnCreateFilterDescriptor(&w);
    cudnnCreateConvolutionDescriptor(&conv);
    cudnnCreateTensorDescriptor(&x);
    cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, cross, fp32);
    cudnnSetFilter4dDescriptor(w, fp32, CUDNN_TENSOR_NCHW, 1, 1, 1, 1);
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, fp32, 1 << 10, 1, 1 << 20, 1 << 10);
    if (cudnnFindConvolutionForwardAlgorithm(h, x, w, conv, x, 8, &n, perf) !=
        CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) {
        case_fail("two tensors of 4 TiB are no failure to allocate");
    }
    cudnnGetLastErrorString(text, sizeof text);
    if (!strstr(text, "the 3 tensors take 8796093022212 bytes, the host has ")) {
        case_fail("the text is: %s", text);
    }
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyConvolutionDescriptor(conv);
    cudnnDestroyFilterDescriptor(w);
    case_end();
}

int main(int argc, char **argv)
{
    struct conv_world world;
    harness_start(argc, argv);
    if (case_begin("convolution queries")) {
        conv_world_begin(&world);
        query_rows(&world);
        conv_world_end(&world);
    }
    truth_case(2, 3, 4, 9, 3);
    truth_case(9, 1, 1, 256, 1);
    if (!harness_on_gpu) find_beyond_memory();
    refusal_report();
    return harness_finish();
}
