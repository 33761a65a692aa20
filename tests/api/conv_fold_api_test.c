/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of tensor transform descriptors and of the folding of a gradient of the data. */
#include "support/refusal.h"

static void transform_rows(void)
{
    static const int dims[4] = {2, 8, 6, 6};
    static const int cut[4] = {0, -8, 0, 0};
    static const unsigned huge[2] = {1u << 20, 1u << 20};
    int v[8];
    unsigned u[8];
    size_t bytes;
    cudnnTensorFormat_t format;
    cudnnFoldingDirection_t direction;
    const cudnnFoldingDirection_t fold = CUDNN_TRANSFORM_FOLD;
    const cudnnFoldingDirection_t unfold = CUDNN_TRANSFORM_UNFOLD;
    cudnnTensorTransformDescriptor_t t = NULL;
    cudnnTensorDescriptor_t x = NULL, y = NULL, none = NULL, x5 = NULL, vect = NULL;
    static const int dims5[5] = {2, 8, 6, 6, 6};
    static const int ones[5] = {1, 1, 1, 1, 1};
    static const uint32_t most[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    static const int32_t padded[5] = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    cudnnCreateTensorTransformDescriptor(&t);
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&x5);
    cudnnCreateTensorDescriptor(&y);
    cudnnCreateTensorDescriptor(&none);
    cudnnCreateTensorDescriptor(&vect);
    cudnnSetTensorNdDescriptorEx(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, dims);
    cudnnSetTensorNdDescriptorEx(x5, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, dims5);
    cudnnSetTensorNdDescriptorEx(vect, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 4, dims);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateTensorTransformDescriptor, transformDesc,
            cudnnCreateTensorTransformDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyTensorTransformDescriptor, transformDesc,
            cudnnDestroyTensorTransformDescriptor((cudnnTensorTransformDescriptor_t)(void *)x));
#define SET(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSetTensorTransformDescriptor, argument,                                   \
            cudnnSetTensorTransformDescriptor(__VA_ARGS__))
    SET(BAD_PARAM_NULL_POINTER, transformDesc, NULL, 4, CUDNN_TENSOR_NCHW, NULL, NULL, NULL, fold);
    SET(BAD_PARAM, nbDims, t, 1, CUDNN_TENSOR_NCHW, NULL, NULL, NULL, fold);
    SET(NOT_SUPPORTED_SHAPE, nbDims, t, 9, CUDNN_TENSOR_NCHW, NULL, NULL, NULL, fold);
    SET(NOT_SUPPORTED_LAYOUT, destFormat, t, 4, (cudnnTensorFormat_t)3, NULL, NULL, NULL, fold);
    SET(NOT_SUPPORTED_LAYOUT, destFormat, t, 4, (cudnnTensorFormat_t)-1, NULL, NULL, NULL, fold);
#define GET(status, argument, ...)                                                                 \
    REFUSED(status, cudnnGetTensorTransformDescriptor, argument,                                   \
            cudnnGetTensorTransformDescriptor(__VA_ARGS__))
    GET(BAD_PARAM_NULL_POINTER, transformDesc, NULL, 4, &format, v, v, u, &direction);
    GET(BAD_PARAM, nbDimsRequested, t, 2, &format, v, v, u, &direction);
    GET(BAD_PARAM, nbDimsRequested, t, 9, &format, v, v, u, &direction);
#define DEST(status, argument, ...)                                                                \
    REFUSED(status, cudnnInitTransformDest, argument, cudnnInitTransformDest(__VA_ARGS__))
    DEST(BAD_PARAM_NULL_POINTER, transformDesc, NULL, x, y, &bytes);
    DEST(BAD_PARAM_NULL_POINTER, srcDesc, t, NULL, y, &bytes);
    DEST(BAD_PARAM, srcDesc, t, none, y, &bytes);
    DEST(NOT_SUPPORTED_LAYOUT, srcDesc, t, vect, y, &bytes);
    DEST(BAD_PARAM_NULL_POINTER, destDesc, t, x, NULL, &bytes);
    cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NCHW, cut, NULL, NULL, fold);
    DEST(BAD_PARAM, srcDesc, t, x, y, &bytes);
    DEST(BAD_PARAM_SHAPE_MISMATCH, srcDesc, t, x5, y, &bytes);
    cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NCHW, NULL, NULL, huge, fold);
    DEST(NOT_SUPPORTED_SHAPE, transformDesc, t, x, y, &bytes);
    /* numbers that only look small after they have overflowed */
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1);
    cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NCHW, NULL, NULL, most, fold);
    DEST(NOT_SUPPORTED_SHAPE, transformDesc, t, x, y, &bytes);
    cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NCHW, NULL, NULL, most, unfold);
    DEST(NOT_SUPPORTED_SHAPE, transformDesc, t, x, y, &bytes);
    cudnnSetTensorNdDescriptorEx(x5, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, ones);
    cudnnSetTensorTransformDescriptor(t, 5, CUDNN_TENSOR_NCHW, padded, padded, most, unfold);
    DEST(NOT_SUPPORTED_SHAPE, transformDesc, t, x5, y, &bytes);
    cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NCHW_VECT_C, NULL, NULL, NULL, unfold);
    DEST(NOT_SUPPORTED_LAYOUT, transformDesc, t, x, y, &bytes);
    cudnnDestroyTensorTransformDescriptor(t);
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyTensorDescriptor(x5);
    cudnnDestroyTensorDescriptor(y);
    cudnnDestroyTensorDescriptor(none);
    cudnnDestroyTensorDescriptor(vect);
}

static cudnnConvolutionDescriptor_t convolution(int dilation, int groups,
                                                cudnnConvolutionMode_t mode)
{
    cudnnConvolutionDescriptor_t c = NULL;
    cudnnCreateConvolutionDescriptor(&c);
    cudnnSetConvolution2dDescriptor(c, dilation, dilation, 2, 2, dilation, dilation, mode,
                                    CUDNN_DATA_FLOAT);
    cudnnSetConvolutionGroupCount(c, groups);
    return c;
}

static void fold_rows(void)
{
    cudnnHandle_t h = harness_handle;
    const cudnnTensorFormat_t to = CUDNN_TENSOR_NHWC;
    cudnnConvolutionDescriptor_t c = convolution(1, 1, CUDNN_CROSS_CORRELATION);
    cudnnConvolutionDescriptor_t dilated = convolution(2, 1, CUDNN_CROSS_CORRELATION);
    cudnnConvolutionDescriptor_t grouped = convolution(1, 2, CUDNN_CROSS_CORRELATION);
    cudnnConvolutionDescriptor_t flipped = convolution(1, 1, CUDNN_CONVOLUTION);
    cudnnConvolutionDescriptor_t fc = NULL;
    cudnnFilterDescriptor_t w = NULL, w_half = NULL, w_g2 = NULL, fw = NULL;
    cudnnTensorDescriptor_t dy = NULL, dy_n3 = NULL, dx = NULL, fdy = NULL, fdx = NULL;
    cudnnTensorTransformDescriptor_t t = NULL;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int rank = -1;
    int v[8];
    cudnnCreateConvolutionDescriptor(&fc);
    cudnnCreateFilterDescriptor(&w);
    cudnnCreateFilterDescriptor(&w_half);
    cudnnCreateFilterDescriptor(&w_g2);
    cudnnCreateFilterDescriptor(&fw);
    cudnnCreateTensorDescriptor(&dy);
    cudnnCreateTensorDescriptor(&dy_n3);
    cudnnCreateTensorDescriptor(&dx);
    cudnnCreateTensorDescriptor(&fdy);
    cudnnCreateTensorDescriptor(&fdx);
    cudnnCreateTensorTransformDescriptor(&t);
    cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 6, 3, 3);
    cudnnSetFilter4dDescriptor(w_half, CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW, 4, 6, 3, 3);
    cudnnSetFilter4dDescriptor(w_g2, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
    cudnnSetTensor4dDescriptor(dx, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 6, 8, 8);
    cudnnSetTensor4dDescriptor(dy, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 4, 4);
    cudnnSetTensor4dDescriptor(dy_n3, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 3, 4, 4, 4);
#define FOLD(status, argument, ...)                                                                \
    REFUSED(status, cudnnGetFoldedConvBackwardDataDescriptors, argument,                           \
            cudnnGetFoldedConvBackwardDataDescriptors(h, __VA_ARGS__))
#define OUT fw, fdy, fc, fdx, t, t, t, t
    FOLD(BAD_PARAM_NULL_POINTER, filterDesc, NULL, dy, c, dx, to, OUT);
    FOLD(BAD_PARAM, filterDesc, fw, dy, c, dx, to, OUT);
    FOLD(NOT_SUPPORTED_DATA_TYPE, filterDesc, w_half, dy, c, dx, to, OUT);
    FOLD(BAD_PARAM_SHAPE_MISMATCH, filterDesc, w_g2, dy, c, dx, to, OUT);
    FOLD(BAD_PARAM_NULL_POINTER, diffDesc, w, NULL, c, dx, to, OUT);
    FOLD(BAD_PARAM_SHAPE_MISMATCH, diffDesc, w, dy_n3, c, dx, to, OUT);
    FOLD(BAD_PARAM_NULL_POINTER, convDesc, w, dy, NULL, dx, to, OUT);
    FOLD(BAD_PARAM, convDesc, w, dy, fc, dx, to, OUT);
    FOLD(NOT_SUPPORTED, convDesc, w, dy, dilated, dx, to, OUT);
    FOLD(NOT_SUPPORTED, convDesc, w_g2, dy, grouped, dx, to, OUT);
    FOLD(NOT_SUPPORTED, convDesc, w, dy, flipped, dx, to, OUT);
    FOLD(BAD_PARAM_NULL_POINTER, gradDesc, w, dy, c, NULL, to, OUT);
    FOLD(NOT_SUPPORTED_LAYOUT, transformFormat, w, dy, c, dx, CUDNN_TENSOR_NCHW_VECT_C, OUT);
    FOLD(NOT_SUPPORTED_LAYOUT, transformFormat, w, dy, c, dx, (cudnnTensorFormat_t)-1, OUT);
    FOLD(BAD_PARAM_NULL_POINTER, foldedFilterDesc, w, dy, c, dx, to, NULL, fdy, fc, fdx, t, t, t,
         t);
    FOLD(BAD_PARAM_NULL_POINTER, paddedDiffDesc, w, dy, c, dx, to, fw, NULL, fc, fdx, t, t, t, t);
    FOLD(BAD_PARAM_NULL_POINTER, foldedConvDesc, w, dy, c, dx, to, fw, fdy, NULL, fdx, t, t, t, t);
    FOLD(BAD_PARAM_NULL_POINTER, foldedGradDesc, w, dy, c, dx, to, fw, fdy, fc, NULL, t, t, t, t);
    FOLD(BAD_PARAM_NULL_POINTER, filterFoldTransDesc, w, dy, c, dx, to, fw, fdy, fc, fdx, NULL, t,
         t, t);
    FOLD(BAD_PARAM_NULL_POINTER, diffPadTransDesc, w, dy, c, dx, to, fw, fdy, fc, fdx, t, NULL, t,
         t);
    FOLD(BAD_PARAM_NULL_POINTER, gradFoldTransDesc, w, dy, c, dx, to, fw, fdy, fc, fdx, t, t, NULL,
         t);
    FOLD(BAD_PARAM_NULL_POINTER, gradUnfoldTransDesc, w, dy, c, dx, to, fw, fdy, fc, fdx, t, t, t,
         NULL);
    if (case_begin("a refused folding sets nothing")) {
        cudnnGetTensorNdDescriptor(fdx, 8, &type, &rank, v, v);
        if (rank != 0) case_fail("foldedGradDesc has %d dimensions", rank);
        if (cudnnGetFoldedConvBackwardDataDescriptors(NULL, w, dy, c, dx, to, OUT) !=
            CUDNN_STATUS_SUCCESS) {
            case_fail("a null handle is refused");
        }
        case_end();
    }
    cudnnDestroyConvolutionDescriptor(c);
    cudnnDestroyConvolutionDescriptor(dilated);
    cudnnDestroyConvolutionDescriptor(grouped);
    cudnnDestroyConvolutionDescriptor(flipped);
    cudnnDestroyConvolutionDescriptor(fc);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyFilterDescriptor(w_half);
    cudnnDestroyFilterDescriptor(w_g2);
    cudnnDestroyFilterDescriptor(fw);
    cudnnDestroyTensorDescriptor(dy);
    cudnnDestroyTensorDescriptor(dy_n3);
    cudnnDestroyTensorDescriptor(dx);
    cudnnDestroyTensorDescriptor(fdy);
    cudnnDestroyTensorDescriptor(fdx);
    cudnnDestroyTensorTransformDescriptor(t);
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    transform_rows();
    fold_rows();
    refusal_report();
    return harness_finish();
}
