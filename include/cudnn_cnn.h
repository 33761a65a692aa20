/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_cnn.h - convolutions: forward, gradients of data, filter and bias, the choice of
 * an algorithm, and the fused operations around them.
 */
#ifndef CUDNN_CNN_H_
#define CUDNN_CNN_H_

#include <stdint.h>

#include "cudnn_version.h"

#include "cudnn_ops.h"

/* The level of this part of the API; all parts are released together. */
#define CUDNN_CNN_MAJOR 9
#define CUDNN_CNN_MINOR 19
#define CUDNN_CNN_PATCH 0
#if CUDNN_CNN_MAJOR != CUDNN_MAJOR || CUDNN_CNN_MINOR != CUDNN_MINOR ||                            \
    CUDNN_CNN_PATCH != CUDNN_PATCHLEVEL
#error "cudnn_cnn.h and cudnn_version.h come from different releases"
#endif

/*
 * These declarations name deprecated types, but only their users shall be warned; and they are
 * exported wherever they are defined, whatever -fvisibility says.
 */
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC visibility push(default)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

#if defined(__cplusplus)
extern "C" {
#endif

/* As cudnnGraphVersionCheck(): always SUCCESS here. */
cudnnStatus_t CUDNNWINAPI cudnnCnnVersionCheck(void);

/* ---- Convolution descriptors ----------------------------------------------------------------- */

/*
 * Padding, strides, dilation, groups and arithmetic of a convolution. With x of shape N, C, H, W,
 * a filter w of shape K, C/G, R, S and one such triple a spatial dimension, the output is
 *   y[n, k, p, q] = sum over c, r, s of x[n, c', p * stride + r * dilation - pad, ...] * w[k, c,
 *       r, s]
 * in cross-correlation mode, for the C/G input channels c' of k's group; pixels outside x are 0.
 */
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t CUDNN_DEPRECATED;

/*
 * Creates a convolution descriptor: one group, default math, the shape not set. Release it with
 * cudnnDestroyConvolutionDescriptor().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateConvolutionDescriptor(
    cudnnConvolutionDescriptor_t *convDesc);

/* Releases a convolution descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyConvolutionDescriptor(
    cudnnConvolutionDescriptor_t convDesc);

/*
 * Describes a 2-D convolution, in pixels; leaves math type, groups and reordering as they are.
 *   pad_h, pad_w            zeros added at both ends, 0 or more
 *   u, v                    strides of rows and columns, 1 or more
 *   dilation_h, dilation_w  distance between filter elements, 1 for a dense filter
 *   computeType             the type that products are summed in
 * BAD_PARAM for a value out of range.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolution2dDescriptor(
    cudnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w, int u, int v, int dilation_h,
    int dilation_w, cudnnConvolutionMode_t mode, cudnnDataType_t computeType);

/*
 * Answers what a 2-D convolution descriptor holds. BAD_PARAM where it has another number of
 * dimensions.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolution2dDescriptor(
    const cudnnConvolutionDescriptor_t convDesc, int *pad_h, int *pad_w, int *u, int *v,
    int *dilation_h, int *dilation_w, cudnnConvolutionMode_t *mode, cudnnDataType_t *computeType);

/*
 * Describes a convolution over arrayLength spatial dimensions, as
 * cudnnSetConvolution2dDescriptor() does for two.
 *   arrayLength  the dimensions without N and C, CUDNN_DIM_MAX - 2 at most
 * BAD_PARAM for a value out of range, NOT_SUPPORTED for too many dimensions.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionNdDescriptor(
    cudnnConvolutionDescriptor_t convDesc, int arrayLength, const int padA[],
    const int filterStrideA[], const int dilationA[], cudnnConvolutionMode_t mode,
    cudnnDataType_t computeType);

/*
 * Answers what a convolution descriptor holds; the arrays have room for arrayLengthRequested
 * entries, arrayLength receives how many there are.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionNdDescriptor(
    const cudnnConvolutionDescriptor_t convDesc, int arrayLengthRequested, int *arrayLength,
    int padA[], int strideA[], int dilationA[], cudnnConvolutionMode_t *mode,
    cudnnDataType_t *computeType);

/* Chooses the arithmetic; see cudnnMathType_t. FMA_MATH keeps fp32 exact. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionMathType(
    cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t mathType);

/* Answers the math type. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionMathType(
    cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t *mathType);

/*
 * Splits input and output channels into groups that do not mix; both counts must be multiples. As
 * many groups as channels is a depthwise convolution. BAD_PARAM where groupCount is not positive.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionGroupCount(
    cudnnConvolutionDescriptor_t convDesc, int groupCount);

/* Answers the number of groups, 1 until set. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionGroupCount(
    cudnnConvolutionDescriptor_t convDesc, int *groupCount);

/* Says whether an int8x32 filter has gone through cudnnReorderFilterAndBias(). */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionReorderType(
    cudnnConvolutionDescriptor_t convDesc, cudnnReorderType_t reorderType);

/* Answers the reorder type, DEFAULT_REORDER until set. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionReorderType(
    cudnnConvolutionDescriptor_t convDesc, cudnnReorderType_t *reorderType);

/*
 * The output's dimensions for an input and a filter: n is the input's, c the filter's K, and for
 * each spatial size
 *   out = 1 + (in + 2 * pad - ((filter - 1) * dilation + 1)) / stride, rounded down
 * BAD_PARAM where the descriptors do not go together or an output would be empty.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolution2dForwardOutputDim(
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t inputTensorDesc,
    const cudnnFilterDescriptor_t filterDesc, int *n, int *c, int *h, int *w);

/*
 * As cudnnGetConvolution2dForwardOutputDim(), for any number of dimensions.
 *   nbDims            of the input, N and C included
 *   tensorOuputDimA   receives nbDims sizes
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionNdForwardOutputDim(
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t inputTensorDesc,
    const cudnnFilterDescriptor_t filterDesc, int nbDims, int tensorOuputDimA[]);

/* ---- Forward --------------------------------------------------------------------------------- */

/*
 * One answer of cudnnGetConvolutionForwardAlgorithm_v7() or
 * cudnnFindConvolutionForwardAlgorithm().
 */
typedef struct cudnnConvolutionFwdAlgoPerfStruct {
    cudnnConvolutionFwdAlgo_t algo; /* what the answer is about */
    cudnnStatus_t status;           /* SUCCESS where it can run; else the rest means nothing */
    float time;                     /* milliseconds: measured by Find, predicted by Get */
    size_t memory;                  /* workspace in bytes */
    cudnnDeterminism_t determinism; /* whether two runs give the same bits */
    cudnnMathType_t mathType;       /* what to set to get this answer */
    int reserved[3];                /* 0 */
} cudnnConvolutionFwdAlgoPerf_t CUDNN_DEPRECATED;

/* How many answers the two queries below can give. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardAlgorithmMaxCount(
    cudnnHandle_t handle, int *count);

/*
 * Ranks the algorithms for a convolution, by prediction: nothing runs. The same answer on every
 * call.
 *   srcDesc, filterDesc, convDesc, destDesc  the convolution, as in cudnnConvolutionForward()
 *   requestedAlgoCount  the room in perfResults, at least 1
 *   returnedAlgoCount   receives how many were written, best first
 * BAD_PARAM where the descriptors do not go together.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnFilterDescriptor_t filterDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t destDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t *perfResults);

/*
 * As cudnnGetConvolutionForwardAlgorithm_v7(), by measuring. It allocates data of its own, waits
 * for the device, and is illegal in a stream capture. Algorithms that cannot run follow at the end
 * with their status.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t *perfResults);

/*
 * As cudnnFindConvolutionForwardAlgorithm(), on the caller's data and workspace. y is overwritten.
 * Algorithms that need more than workSpaceSizeInBytes answer BAD_PARAM_SIZE_INSUFFICIENT.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnFilterDescriptor_t wDesc, const void *w, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t yDesc, void *y, const int requestedAlgoCount,
    int *returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t *perfResults, void *workSpace,
    size_t workSpaceSizeInBytes);

/*
 * The workspace that cudnnConvolutionForward() needs with this algorithm; may be 0. NOT_SUPPORTED
 * where the algorithm cannot run this convolution.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
    cudnnConvolutionFwdAlgo_t algo, size_t *sizeInBytes);

/*
 * y = alpha * conv(x, w) + beta * y; the formula is at cudnnConvolutionDescriptor_t.
 *   algo       any that the queries above answer with SUCCESS
 *   workSpace  of the size that cudnnGetConvolutionForwardWorkspaceSize() answers; NULL for 0
 *   yDesc      dimensions as cudnnGetConvolutionNdForwardOutputDim() says, any strides
 *   alpha      and beta: double where y is fp64, int32 where y is int32 (as observed), else float;
 *              int32 arithmetic wraps around
 * x, w and y must not overlap. BAD_PARAM_SHAPE_MISMATCH, BAD_PARAM_SIZE_INSUFFICIENT,
 * NOT_SUPPORTED for a combination of types.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnFilterDescriptor_t wDesc, const void *w, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const cudnnTensorDescriptor_t yDesc, void *y);

/*
 * y = f(alpha1 * conv(x, w) + alpha2 * z + bias).
 *   zDesc, z        dimensions of y; z may be y; with alpha2 = 0 it is not read
 *   biasDesc, bias  1, K, 1, 1
 *   activationDesc  ACTIVATION_RELU or ACTIVATION_IDENTITY, the latter without any NaN rule
 * The rest as for cudnnConvolutionForward(). int8 outputs are rounded to even and saturated.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnFilterDescriptor_t wDesc, const void *w, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes,
    const void *alpha2, const cudnnTensorDescriptor_t zDesc, const void *z,
    const cudnnTensorDescriptor_t biasDesc, const void *bias,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t yDesc, void *y);

/*
 * Brings an int8x32 filter, and the bias if reorderBias is not 0, into the order that
 * CUDNN_NO_REORDER promises. The descriptor is that of the filter, before and after. Source and
 * destination must not overlap. NOT_SUPPORTED for other filters.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnReorderFilterAndBias(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc, cudnnReorderType_t reorderType,
    const void *filterData, void *reorderedFilterData, int reorderBias, const void *biasData,
    void *reorderedBiasData);

/*
 * Writes for each output pixel the input elements that its window covers, zeros outside the image,
 * so that a convolution becomes a matrix product: colBuffer has C * R * S rows of N * P * Q
 * columns, packed, of x's type. One group only.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnIm2Col(cudnnHandle_t handle,
                                                       const cudnnTensorDescriptor_t xDesc,
                                                       const void *x,
                                                       const cudnnFilterDescriptor_t wDesc,
                                                       const cudnnConvolutionDescriptor_t convDesc,
                                                       void *colBuffer);

/* ---- Backward data --------------------------------------------------------------------------- */

/* One answer about an algorithm for the gradient of the data; see cudnnConvolutionFwdAlgoPerf_t. */
typedef struct cudnnConvolutionBwdDataAlgoPerfStruct {
    cudnnConvolutionBwdDataAlgo_t algo;
    cudnnStatus_t status;
    float time;
    size_t memory;
    cudnnDeterminism_t determinism;
    cudnnMathType_t mathType;
    int reserved[3];
} cudnnConvolutionBwdDataAlgoPerf_t CUDNN_DEPRECATED;

/* How many answers the two queries below can give. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataAlgorithmMaxCount(
    cudnnHandle_t handle, int *count);

/*
 * Ranks the algorithms for cudnnConvolutionBackwardData(), by prediction; diffDesc is dy, gradDesc
 * dx. See cudnnGetConvolutionForwardAlgorithm_v7().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t *perfResults);

/*
 * Ranks the algorithms for cudnnConvolutionBackwardData(), by measuring; see
 * cudnnFindConvolutionForwardAlgorithm().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t *perfResults);

/* The same on the caller's data and workspace; dx is overwritten. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const void *w,
    const cudnnTensorDescriptor_t dyDesc, const void *dy,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc, void *dx,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes);

/* The workspace that cudnnConvolutionBackwardData() needs with this algorithm; may be 0. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t *sizeInBytes);

/*
 * dx = alpha * gradient + beta * dx of cudnnConvolutionForward() by x: every input pixel gathers
 * dy * w over all windows that covered it. Also known as transposed convolution. Pixels that no
 * window covers become 0.
 *   convDesc   as in the forward call; dyDesc has the forward output's dimensions, dxDesc the
 *              input's
 *   workSpace  of the size that cudnnGetConvolutionBackwardDataWorkspaceSize() answers; NULL for 0
 * BAD_PARAM_SHAPE_MISMATCH, BAD_PARAM_SIZE_INSUFFICIENT, NOT_SUPPORTED for a combination of types.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t wDesc, const void *w,
    const cudnnTensorDescriptor_t dyDesc, const void *dy,
    const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionBwdDataAlgo_t algo,
    void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const cudnnTensorDescriptor_t dxDesc, void *dx);

/*
 * Works out how a gradient of the data with strides above 1 becomes one with stride 1: the strides
 * are folded into channels. The first group of descriptors is given; the eight others, created by
 * the caller, are set: the folded problem, and the transforms of filter, dy and dx that lead to it
 * and back. Channels and filters are filled up towards multiples of 8. The handle is not looked at
 * and may be NULL. NOT_SUPPORTED where folding does not apply: a stride above 1 together with a
 * dilation, groups or the mode CONVOLUTION.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFoldedConvBackwardDataDescriptors(
    const cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t gradDesc, const cudnnTensorFormat_t transformFormat,
    cudnnFilterDescriptor_t foldedFilterDesc, cudnnTensorDescriptor_t paddedDiffDesc,
    cudnnConvolutionDescriptor_t foldedConvDesc, cudnnTensorDescriptor_t foldedGradDesc,
    cudnnTensorTransformDescriptor_t filterFoldTransDesc,
    cudnnTensorTransformDescriptor_t diffPadTransDesc,
    cudnnTensorTransformDescriptor_t gradFoldTransDesc,
    cudnnTensorTransformDescriptor_t gradUnfoldTransDesc);

/* ---- Backward filter and bias ---------------------------------------------------------------- */

/*
 * One answer about an algorithm for the gradient of the filter; see cudnnConvolutionFwdAlgoPerf_t.
 */
typedef struct cudnnConvolutionBwdFilterAlgoPerfStruct {
    cudnnConvolutionBwdFilterAlgo_t algo;
    cudnnStatus_t status;
    float time;
    size_t memory;
    cudnnDeterminism_t determinism;
    cudnnMathType_t mathType;
    int reserved[3];
} cudnnConvolutionBwdFilterAlgoPerf_t CUDNN_DEPRECATED;

/* How many answers the two queries below can give. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(
    cudnnHandle_t handle, int *count);

/*
 * Ranks the algorithms for cudnnConvolutionBackwardFilter(), by prediction; srcDesc is x, diffDesc
 * dy, gradDesc dw. See cudnnGetConvolutionForwardAlgorithm_v7().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnFilterDescriptor_t gradDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t *perfResults);

/*
 * Ranks the algorithms for cudnnConvolutionBackwardFilter(), by measuring; see
 * cudnnFindConvolutionForwardAlgorithm().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t *perfResults);

/* The same on the caller's data and workspace; y is the gradient dy, dw is overwritten. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnTensorDescriptor_t dyDesc, const void *y,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc, void *dw,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes);

/* The workspace that cudnnConvolutionBackwardFilter() needs with this algorithm; may be 0. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t gradDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *sizeInBytes);

/*
 * dw = alpha * gradient + beta * dw of cudnnConvolutionForward() by w: each filter element gathers
 * x * dy over all images and windows, in a fixed order.
 *   convDesc   as in the forward call; xDesc and dyDesc have the forward dimensions
 *   workSpace  of the size that cudnnGetConvolutionBackwardFilterWorkspaceSize() answers; NULL for
 *              0
 * BAD_PARAM_SHAPE_MISMATCH, BAD_PARAM_SIZE_INSUFFICIENT, NOT_SUPPORTED for a combination of types.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnTensorDescriptor_t dyDesc, const void *dy,
    const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionBwdFilterAlgo_t algo,
    void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const cudnnFilterDescriptor_t dwDesc, void *dw);

/*
 * db = alpha * (sum of dy over N and the spatial dimensions) + beta * db, in a fixed order; dbDesc
 * is 1, K, 1, 1.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardBias(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t dyDesc, const void *dy,
    const void *beta, const cudnnTensorDescriptor_t dbDesc, void *db);

/* ---- Fused operations ------------------------------------------------------------------------ */

/*
 * The legacy way to run fused operations around a convolution and batch norm: a plan is made from
 * a pack of constant parameters (descriptors, and how pointers are aligned), and run with a pack
 * of variant ones (pointers, scalars).
 */
typedef struct cudnnFusedOpsConstParamStruct *cudnnFusedOpsConstParamPack_t CUDNN_DEPRECATED;
typedef struct cudnnFusedOpsVariantParamStruct *cudnnFusedOpsVariantParamPack_t CUDNN_DEPRECATED;
typedef struct cudnnFusedOpsPlanStruct *cudnnFusedOpsPlan_t CUDNN_DEPRECATED;

/* The patterns that can be planned. */
typedef enum {
    /* conv(f(x * scale + bias)), with sums for BN */
    CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS = 0,
    CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD = 1,      /* the gradient of its filter */
    CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING = 2,  /* the sums become scale and bias */
    CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE = 3, /* scale and bias from running statistics */
    CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION = 4,   /* f(conv(x) * scale + bias + z) */
    /* f(x * s + b + z * s' + b'), and where f is on */
    CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK = 5,
    CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM = 6, /* the gradients of that, up to batch norm */
} cudnnFusedOps_t CUDNN_DEPRECATED;

/*
 * What cudnnSetFusedOpsConstParamPackAttribute() sets. *DESC are descriptors, *_PLACEHOLDER say
 * how a pointer that comes with the variant pack is aligned (cudnnFusedOpsPointerPlaceHolder_t).
 */
typedef enum {
    /* input, before the convolution */
    CUDNN_PARAM_XDESC = 0, /* tensor */
    CUDNN_PARAM_XDATA_PLACEHOLDER = 1,
    CUDNN_PARAM_BN_MODE = 2,             /* cudnnBatchNormMode_t */
    CUDNN_PARAM_BN_EQSCALEBIAS_DESC = 3, /* tensor: scale and bias of x */
    CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER = 4,
    CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER = 5,
    CUDNN_PARAM_ACTIVATION_DESC = 6, /* activation */

    /* convolution */
    CUDNN_PARAM_CONV_DESC = 7, /* convolution */
    CUDNN_PARAM_WDESC = 8,     /* filter */
    CUDNN_PARAM_WDATA_PLACEHOLDER = 9,
    CUDNN_PARAM_DWDESC = 10, /* filter */
    CUDNN_PARAM_DWDATA_PLACEHOLDER = 11,
    CUDNN_PARAM_YDESC = 12, /* tensor */
    CUDNN_PARAM_YDATA_PLACEHOLDER = 13,
    CUDNN_PARAM_DYDESC = 14, /* tensor */
    CUDNN_PARAM_DYDATA_PLACEHOLDER = 15,

    /* statistics and batch norm */
    CUDNN_PARAM_YSTATS_DESC = 16, /* tensor: sums of y */
    CUDNN_PARAM_YSUM_PLACEHOLDER = 17,
    CUDNN_PARAM_YSQSUM_PLACEHOLDER = 18,
    CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC = 19, /* tensor */
    CUDNN_PARAM_BN_SCALE_PLACEHOLDER = 20,
    CUDNN_PARAM_BN_BIAS_PLACEHOLDER = 21,
    CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER = 22,
    CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER = 23,
    CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER = 24,
    CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER = 25,

    /* residual */
    CUDNN_PARAM_ZDESC = 26, /* tensor */
    CUDNN_PARAM_ZDATA_PLACEHOLDER = 27,
    CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC = 28, /* tensor: scale and bias of z */
    CUDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER = 29,
    CUDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER = 30,

    /* gradients */
    CUDNN_PARAM_ACTIVATION_BITMASK_DESC = 31, /* tensor: one bit an element */
    CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER = 32,
    CUDNN_PARAM_DXDESC = 33, /* tensor */
    CUDNN_PARAM_DXDATA_PLACEHOLDER = 34,
    CUDNN_PARAM_DZDESC = 35, /* tensor */
    CUDNN_PARAM_DZDATA_PLACEHOLDER = 36,
    CUDNN_PARAM_BN_DSCALE_PLACEHOLDER = 37,
    CUDNN_PARAM_BN_DBIAS_PLACEHOLDER = 38,
} cudnnFusedOpsConstParamLabel_t CUDNN_DEPRECATED;

/* What a plan may assume of a pointer. */
typedef enum {
    CUDNN_PTR_NULL = 0,         /* it will be NULL */
    CUDNN_PTR_ELEM_ALIGNED = 1, /* it will be aligned to its elements */
    CUDNN_PTR_16B_ALIGNED = 2,  /* it will be aligned to 16 bytes */
} cudnnFusedOpsPointerPlaceHolder_t CUDNN_DEPRECATED;

/*
 * What cudnnSetFusedOpsVariantParamPackAttribute() sets: PTR_* are device pointers, given as they
 * are; the scalars are given by a pointer to host memory.
 */
typedef enum {
    CUDNN_PTR_XDATA = 0,
    CUDNN_PTR_BN_EQSCALE = 1,
    CUDNN_PTR_BN_EQBIAS = 2,
    CUDNN_PTR_WDATA = 3,
    CUDNN_PTR_DWDATA = 4,
    CUDNN_PTR_YDATA = 5,
    CUDNN_PTR_DYDATA = 6,
    CUDNN_PTR_YSUM = 7,
    CUDNN_PTR_YSQSUM = 8,
    CUDNN_PTR_WORKSPACE = 9, /* of the size that cudnnMakeFusedOpsPlan() answers */
    CUDNN_PTR_BN_SCALE = 10,
    CUDNN_PTR_BN_BIAS = 11,
    CUDNN_PTR_BN_SAVED_MEAN = 12,
    CUDNN_PTR_BN_SAVED_INVSTD = 13,
    CUDNN_PTR_BN_RUNNING_MEAN = 14,
    CUDNN_PTR_BN_RUNNING_VAR = 15,
    CUDNN_PTR_ZDATA = 16,
    CUDNN_PTR_BN_Z_EQSCALE = 17,
    CUDNN_PTR_BN_Z_EQBIAS = 18,
    CUDNN_PTR_ACTIVATION_BITMASK = 19,
    CUDNN_PTR_DXDATA = 20,
    CUDNN_PTR_DZDATA = 21,
    CUDNN_PTR_BN_DSCALE = 22,
    CUDNN_PTR_BN_DBIAS = 23,
    CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES = 100, /* size_t */
    CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT = 101,  /* int64_t: elements behind each sum */
    CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR = 102,       /* double */
    CUDNN_SCALAR_DOUBLE_BN_EPSILON = 103,              /* double */
} cudnnFusedOpsVariantParamLabel_t CUDNN_DEPRECATED;

/*
 * Creates a pack of constant parameters for a pattern; release it with
 * cudnnDestroyFusedOpsConstParamPack().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsConstParamPack(
    cudnnFusedOpsConstParamPack_t *constPack, cudnnFusedOps_t ops);

/* Releases a pack of constant parameters; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyFusedOpsConstParamPack(
    cudnnFusedOpsConstParamPack_t constPack);

/*
 * Sets one constant parameter.
 *   param  host memory: a descriptor, or a pointer to a placeholder or mode, as the label says;
 *          NULL unsets. A descriptor's contents are copied.
 * BAD_PARAM where the pattern has no such parameter.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetFusedOpsConstParamPackAttribute(
    cudnnFusedOpsConstParamPack_t constPack, cudnnFusedOpsConstParamLabel_t paramLabel,
    const void *param);

/*
 * Answers one constant parameter.
 *   param   where to write it: a descriptor that the caller has created, or a placeholder or mode
 *   isNULL  receives 1 where the parameter is not set; param is then left alone
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFusedOpsConstParamPackAttribute(
    const cudnnFusedOpsConstParamPack_t constPack, cudnnFusedOpsConstParamLabel_t paramLabel,
    void *param, int *isNULL);

/*
 * Creates a pack of variant parameters for a pattern; release it with
 * cudnnDestroyFusedOpsVariantParamPack().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsVariantParamPack(
    cudnnFusedOpsVariantParamPack_t *varPack, cudnnFusedOps_t ops);

/* Releases a pack of variant parameters; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyFusedOpsVariantParamPack(
    cudnnFusedOpsVariantParamPack_t varPack);

/*
 * Sets one pointer, or one scalar from the host memory that ptr points to. BAD_PARAM where the
 * pattern has no such parameter.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetFusedOpsVariantParamPackAttribute(
    cudnnFusedOpsVariantParamPack_t varPack, cudnnFusedOpsVariantParamLabel_t paramLabel,
    void *ptr);

/* Answers one pointer or scalar, written to the host memory that ptr points to. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFusedOpsVariantParamPackAttribute(
    const cudnnFusedOpsVariantParamPack_t varPack, cudnnFusedOpsVariantParamLabel_t paramLabel,
    void *ptr);

/* Creates an empty plan for a pattern; release it with cudnnDestroyFusedOpsPlan(). */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsPlan(cudnnFusedOpsPlan_t *plan,
                                                                   cudnnFusedOps_t ops);

/* Releases a plan; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyFusedOpsPlan(cudnnFusedOpsPlan_t plan);

/*
 * Plans a pattern with a pack of constant parameters of the same pattern, which may be changed or
 * released afterwards.
 *   workspaceSizeInBytes  receives what cudnnFusedOpsExecute() needs
 * BAD_PARAM where parameters are missing or do not go together, NOT_SUPPORTED where no engine runs
 * them.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnMakeFusedOpsPlan(
    cudnnHandle_t handle, cudnnFusedOpsPlan_t plan, const cudnnFusedOpsConstParamPack_t constPack,
    size_t *workspaceSizeInBytes);

/*
 * Runs a plan on the handle's stream with the pointers and scalars of a pack of the same pattern.
 * BAD_PARAM where a pointer is missing or is not aligned as its placeholder promised.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFusedOpsExecute(
    cudnnHandle_t handle, const cudnnFusedOpsPlan_t plan, cudnnFusedOpsVariantParamPack_t varPack);

#if defined(__cplusplus)
}
#endif

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#pragma GCC visibility pop
#endif

#endif
