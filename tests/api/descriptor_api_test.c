/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors whose calls compute nothing: local response normalization, the parameters of
 * normalization; what getters of tensor descriptors want; the levels of the log callback. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "support/refusal.h"

static unsigned char bytes[64];

static void lrn_rows(cudnnLRNDescriptor_t l, cudnnTensorDescriptor_t t)
{
    cudnnLRNDescriptor_t fake = (cudnnLRNDescriptor_t)(void *)bytes;
    unsigned n;
    double v;
#define SET(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSetLRNDescriptor, argument, cudnnSetLRNDescriptor(__VA_ARGS__))
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateLRNDescriptor, normDesc,
            cudnnCreateLRNDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyLRNDescriptor, lrnDesc, cudnnDestroyLRNDescriptor(fake));
    REFUSED(BAD_PARAM, cudnnDestroyLRNDescriptor, lrnDesc,
            cudnnDestroyLRNDescriptor((cudnnLRNDescriptor_t)(void *)t));
    SET(BAD_PARAM_NULL_POINTER, normDesc, NULL, 5, 1.0, 1.0, 1.0);
    SET(BAD_PARAM, normDesc, fake, 5, 1.0, 1.0, 1.0);
    SET(BAD_PARAM, lrnN, l, 0, 1.0, 1.0, 1.0);
    SET(BAD_PARAM, lrnN, l, CUDNN_LRN_MAX_N + 1, 1.0, 1.0, 1.0);
    SET(BAD_PARAM, lrnBeta, l, 5, 1.0, 0.009, 1.0);
    SET(BAD_PARAM, lrnBeta, l, 5, 1.0, -1.0, 1.0);
    SET(BAD_PARAM, lrnBeta, l, 5, 1.0, (double)NAN, 1.0);
    SET(BAD_PARAM, lrnK, l, 5, 1.0, 1.0, 0.9e-5);
    SET(BAD_PARAM, lrnK, l, 5, 1.0, 1.0, (double)NAN);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetLRNDescriptor, normDesc,
            cudnnGetLRNDescriptor(NULL, &n, &v, &v, &v));
    REFUSED(BAD_PARAM, cudnnGetLRNDescriptor, normDesc,
            cudnnGetLRNDescriptor(fake, &n, &v, &v, &v));
}

static void norm_rows(cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t b,
                      cudnnTensorDescriptor_t m)
{
    cudnnTensorDescriptor_t fake = (cudnnTensorDescriptor_t)(void *)bytes;
    cudnnTensorDescriptor_t unset = NULL;
    const cudnnNormMode_t mode = CUDNN_NORM_PER_CHANNEL;
    cudnnCreateTensorDescriptor(&unset);
#define DERIVE(status, argument, ...)                                                              \
    REFUSED(status, cudnnDeriveNormTensorDescriptor, argument,                                     \
            cudnnDeriveNormTensorDescriptor(__VA_ARGS__))
    DERIVE(BAD_PARAM_NULL_POINTER, derivedNormScaleBiasDesc, NULL, m, x, mode, 1);
    DERIVE(BAD_PARAM, derivedNormScaleBiasDesc, fake, m, x, mode, 1);
    DERIVE(BAD_PARAM_NULL_POINTER, derivedNormMeanVarDesc, b, NULL, x, mode, 1);
    DERIVE(BAD_PARAM, derivedNormMeanVarDesc, b, fake, x, mode, 1);
    DERIVE(BAD_PARAM_NULL_POINTER, xDesc, b, m, NULL, mode, 1);
    DERIVE(BAD_PARAM, xDesc, b, m, unset, mode, 1);
    DERIVE(BAD_PARAM, mode, b, m, x, (cudnnNormMode_t)2, 1);
    DERIVE(BAD_PARAM, mode, b, m, x, (cudnnNormMode_t)-1, 1);
    DERIVE(NOT_SUPPORTED, groupCnt, b, m, x, mode, 2);
    DERIVE(NOT_SUPPORTED, groupCnt, b, m, x, mode, 0);
    cudnnDestroyTensorDescriptor(unset);
}

static void getter_rows(cudnnTensorDescriptor_t t)
{
    static const char *const names[8] = {"n",       "c",       "h",       "w",
                                         "nStride", "cStride", "hStride", "wStride"};
    cudnnDataType_t type;
    int v[8];
    REFUSED(
        BAD_PARAM_NULL_POINTER, cudnnGetTensor4dDescriptor, dataType,
        cudnnGetTensor4dDescriptor(t, NULL, v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7));
    for (int i = 0; i < 8; ++i) {
        int *p[8];
        for (int k = 0; k < 8; ++k) p[k] = k == i ? NULL : &v[k];
        if (refusal_begin("cudnnGetTensor4dDescriptor", names[i], __LINE__)) {
            refusal_end("cudnnGetTensor4dDescriptor", names[i], CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                        cudnnGetTensor4dDescriptor(t, &type, p[0], p[1], p[2], p[3], p[4], p[5],
                                                   p[6], p[7]));
        }
    }
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetTensorNdDescriptor, nbDims,
            cudnnGetTensorNdDescriptor(t, 4, &type, NULL, v, v + 4));
    REFUSED(BAD_PARAM, cudnnSetTensorNdDescriptorEx, format,
            cudnnSetTensorNdDescriptorEx(t, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_FLOAT, 9, v));
}

/* A tensor whose numbers are more than the API's int can say: the getters refuse, and leave what
 * the caller has as it is. */
static void getters_write_all_or_nothing(cudnnTensorDescriptor_t t)
{
    enum { KEPT = -7 };
    cudnnDataType_t type = (cudnnDataType_t)KEPT;
    int v[9], none = 0;
    for (int i = 0; i < 9; ++i) v[i] = KEPT;
    if (cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 3, 70000, 70000, 1)) {
        return;
    }
    REFUSED(
        NOT_SUPPORTED_SHAPE, cudnnGetTensor4dDescriptor, nStride,
        cudnnGetTensor4dDescriptor(t, &type, v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7));
    REFUSED(NOT_SUPPORTED_SHAPE, cudnnGetTensorNdDescriptor, strideA,
            cudnnGetTensorNdDescriptor(t, 4, &type, v + 8, v, v + 4));
    if (!case_begin("getters/all or nothing")) return;
    for (int i = 0; i < 9; ++i)
        if (v[i] != KEPT) case_fail("value %d was written: %d", i, v[i]);
    if ((int)type != KEPT) case_fail("the type was written: %d", (int)type);
    /* what is not asked for need not fit */
    if (cudnnGetTensorNdDescriptor(t, 4, &type, &none, v, NULL) || v[1] != 70000 || none != 4) {
        case_fail("dims alone are refused");
    }
    case_end();
}

/* A descriptor begins with coefficients, and a refused Set leaves the old ones. */
static void lrn_values(cudnnLRNDescriptor_t l)
{
    unsigned n = 0;
    double v[3] = {0};
    if (!case_begin("lrn/values")) return;
    if (cudnnGetLRNDescriptor(l, &n, v, v + 1, v + 2) || n != 5 || v[0] != 1e-4 || v[1] != 0.75 ||
        v[2] != 2.0) {
        case_fail("begins with %u %g %g %g", n, v[0], v[1], v[2]);
    }
    if (cudnnSetLRNDescriptor(l, CUDNN_LRN_MAX_N, -1.0, CUDNN_LRN_MIN_BETA, CUDNN_LRN_MIN_K)) {
        case_fail("the limits themselves are refused");
    }
    if (cudnnSetLRNDescriptor(l, 3, 1.0, 1.0, 0.0) != CUDNN_STATUS_BAD_PARAM) {
        case_fail("lrnK=0 is not refused");
    }
    if (cudnnGetLRNDescriptor(l, &n, v, v + 1, v + 2) || n != CUDNN_LRN_MAX_N || v[0] != -1.0 ||
        v[1] != CUDNN_LRN_MIN_BETA || v[2] != CUDNN_LRN_MIN_K) {
        case_fail("after a refused Set: %u %g %g %g", n, v[0], v[1], v[2]);
    }
    if (cudnnGetLRNDescriptor(l, NULL, NULL, NULL, NULL)) case_fail("nothing can be asked for");
    case_end();
}

static void expect_tensor(const char *what, cudnnTensorDescriptor_t t, cudnnDataType_t type,
                          const int *dims)
{
    cudnnDataType_t got_type = CUDNN_DATA_INT8;
    int rank = 0;
    int d[8] = {0};
    int s[8] = {0};
    cudnnStatus_t status = cudnnGetTensorNdDescriptor(t, 8, &got_type, &rank, d, s);
    if (status || rank != 5 || got_type != type || memcmp(d, dims, 5 * sizeof *d) || s[4] != 1) {
        case_fail("%s: status %d, %d dimensions, type %d, %d x %d x %d x %d x %d, stride %d", what,
                  (int)status, rank, (int)got_type, d[0], d[1], d[2], d[3], d[4], s[4]);
    }
}

static void norm_values(cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t b,
                        cudnnTensorDescriptor_t m)
{
    static const int dims[5] = {2, 3, 4, 5, 6};
    static const int channel[5] = {1, 3, 1, 1, 1};
    static const int activation[5] = {1, 3, 4, 5, 6};
    if (!case_begin("norm/values")) return;
    for (int mode = CUDNN_NORM_PER_ACTIVATION; mode <= CUDNN_NORM_PER_CHANNEL; ++mode) {
        const int *wanted = mode == CUDNN_NORM_PER_CHANNEL ? channel : activation;
        cudnnSetTensorNdDescriptorEx(x, CUDNN_TENSOR_NHWC, CUDNN_DATA_BFLOAT16, 5, dims);
        if (cudnnDeriveNormTensorDescriptor(b, m, x, (cudnnNormMode_t)mode, 1)) {
            case_fail("mode %d is refused", mode);
        }
        expect_tensor("scale and bias", b, CUDNN_DATA_FLOAT, wanted);
        expect_tensor("mean and variance", m, CUDNN_DATA_FLOAT, wanted);
        cudnnSetTensorNdDescriptorEx(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 5, dims);
        if (cudnnDeriveNormTensorDescriptor(x, m, x, (cudnnNormMode_t)mode, 1)) {
            case_fail("mode %d is refused where x is a result", mode);
        }
        expect_tensor("in place of x", x, CUDNN_DATA_DOUBLE, wanted);
        expect_tensor("mean and variance of it", m, CUDNN_DATA_DOUBLE, wanted);
    }
    case_end();
}

static void extents(cudnnTensorDescriptor_t t)
{
    size_t size = 0;
    if (!case_begin("tensor/negative_strides")) return;
    cudnnSetTensor4dDescriptorEx(t, CUDNN_DATA_HALF, 2, 3, 4, 5, -60, 20, 5, -1);
    if (cudnnGetTensorSizeInBytes(t, &size) || size != 240) case_fail("%zu bytes of 240", size);
    cudnnSetTensor4dDescriptorEx(t, CUDNN_DATA_HALF, 2, 1, 1, 3, -10, 1, 1, 2);
    if (cudnnGetTensorSizeInBytes(t, &size) || size != 30) case_fail("%zu bytes of 30", size);
    case_end();
}

static unsigned heard;

static void CUDNNWINAPI listen(cudnnSeverity_t severity, void *udata, const cudnnDebug_t *debug,
                               const char *text)
{
    (void)udata;
    (void)debug;
    (void)text;
    heard |= 1u << severity;
}

/* Each mask, what it comes to, and whether errors and information arrive. */
static void levels(void)
{
    const int dims[4] = {1, 1, 1, 1};
    struct tensor *y;
    const float one = 1.0f;
    if (!case_begin("log/levels")) return;
    y = tensor_inout(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW, 0, 1);
    for (unsigned mask = 0; mask < 32; ++mask) {
        unsigned wanted = mask & CUDNN_SEV_INFO_EN      ? 14
                          : mask & CUDNN_SEV_WARNING_EN ? 6
                                                        : CUDNN_SEV_ERROR_EN;
        unsigned got = 0;
        void *udata = NULL;
        cudnnCallback_t function = NULL;
        heard = 0;
        cudnnSetCallback(mask, bytes, listen);
        cudnnGetCallback(&got, &udata, &function);
        cudnnScaleTensor(harness_handle, y->desc, y->data, &one);
        cudnnScaleTensor(harness_handle, NULL, y->data, &one);
        cudnnSetCallback(0, NULL, NULL);
        if (got != wanted || udata != bytes || function != listen) {
            case_fail("mask %u comes to %u, not %u", mask, got, wanted);
        }
        /* a GPU handle may warn of an engine of last resort */
        if ((heard & ~CUDNN_SEV_WARNING_EN) != (wanted & ~CUDNN_SEV_WARNING_EN)) {
            case_fail("mask %u: severities 0x%x were heard", mask, heard);
        }
    }
    heard = 0;
    cudnnScaleTensor(harness_handle, NULL, y->data, &one);
    if (heard) case_fail("a callback that was removed is called");
    case_end();
}

static void nothing_to_destroy(void)
{
    if (!case_begin("destroy/null")) return;
    if (cudnnDestroy(NULL)) case_fail("cudnnDestroy");
    if (cudnnDestroyLRNDescriptor(NULL)) case_fail("cudnnDestroyLRNDescriptor");
    if (cudnnDestroyTensorDescriptor(NULL)) case_fail("cudnnDestroyTensorDescriptor");
    /* of what is not built yet too */
    if (cudnnDestroyRNNDescriptor(NULL)) case_fail("cudnnDestroyRNNDescriptor");
    if (cudnnDestroyRNNDataDescriptor(NULL)) case_fail("cudnnDestroyRNNDataDescriptor");
    if (cudnnDestroySeqDataDescriptor(NULL)) case_fail("cudnnDestroySeqDataDescriptor");
    if (cudnnDestroyAttnDescriptor(NULL)) case_fail("cudnnDestroyAttnDescriptor");
    if (cudnnDestroyCTCLossDescriptor(NULL)) case_fail("cudnnDestroyCTCLossDescriptor");
    case_end();
}

int main(int argc, char **argv)
{
    cudnnLRNDescriptor_t l = NULL;
    cudnnTensorDescriptor_t t[3] = {NULL};
    harness_start(argc, argv);
    cudnnCreateLRNDescriptor(&l);
    for (int i = 0; i < 3; ++i) cudnnCreateTensorDescriptor(&t[i]);
    cudnnSetTensor4dDescriptor(t[0], CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 5);
    lrn_rows(l, t[0]);
    norm_rows(t[0], t[1], t[2]);
    getter_rows(t[0]);
    getters_write_all_or_nothing(t[0]);
    cudnnSetTensor4dDescriptor(t[0], CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 5);
    lrn_values(l);
    norm_values(t[0], t[1], t[2]);
    extents(t[0]);
    levels();
    nothing_to_destroy();
    cudnnDestroyLRNDescriptor(l);
    for (int i = 0; i < 3; ++i) cudnnDestroyTensorDescriptor(t[i]);
    refusal_report();
    return harness_finish();
}
