/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_ops.h - tensors and the layers that are not convolutions: layout changes,
 * element-wise operations, reductions, softmax, pooling, activation, normalization, dropout,
 * spatial transformer.
 */
#ifndef CUDNN_OPS_H_
#define CUDNN_OPS_H_

#include <stdint.h>

#include "cudnn_version.h"

#include "cudnn_graph.h"

/* The level of this part of the API; all parts are released together. */
#define CUDNN_OPS_MAJOR 9
#define CUDNN_OPS_MINOR 19
#define CUDNN_OPS_PATCH 0
#if CUDNN_OPS_MAJOR != CUDNN_MAJOR || CUDNN_OPS_MINOR != CUDNN_MINOR ||                            \
    CUDNN_OPS_PATCH != CUDNN_PATCHLEVEL
#error "cudnn_ops.h and cudnn_version.h come from different releases"
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

/* ---- Shared ---------------------------------------------------------------------------------- */

/* Whether an algorithm gives the same bits on every run. */
typedef enum {
    CUDNN_NON_DETERMINISTIC = 0,
    CUDNN_DETERMINISTIC = 1,
} cudnnDeterminism_t;

/* As cudnnGraphVersionCheck(): always SUCCESS here. */
cudnnStatus_t CUDNNWINAPI cudnnOpsVersionCheck(void);

/* ---- Tensor descriptors ---------------------------------------------------------------------- */

/* The shape, strides and type of a tensor; it holds no data. */
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;

/*
 * Creates a tensor descriptor with nothing set; release it with cudnnDestroyTensorDescriptor().
 * INTERNAL_ERROR_HOST_ALLOCATION_FAILED when out of memory.
 */
cudnnStatus_t CUDNNWINAPI cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensorDesc);

/* Releases a tensor descriptor; NULL does nothing. Calls that have returned no longer need it. */
cudnnStatus_t CUDNNWINAPI cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc);

/*
 * Describes a packed 4-D tensor: n images of c channels, h rows and w columns, with the strides of
 * the format. For NCHW_VECT_C, c counts single channels and must be a multiple of the vector's
 * length.
 * BAD_PARAM where a dimension is not positive, the format or type unknown, or the type no vector
 * where the format wants one.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                     cudnnTensorFormat_t format,
                                                     cudnnDataType_t dataType, int n, int c, int h,
                                                     int w);

/*
 * Describes a 4-D tensor with strides of any order and gaps, counted in elements: element (i, j,
 * k, l) lies at i * nStride + j * cStride + k * hStride + l * wStride. Elements of an output must
 * not coincide. BAD_PARAM where a dimension is not positive, or a stride is 0 and its dimension not
 * 1.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                                       cudnnDataType_t dataType, int n, int c,
                                                       int h, int w, int nStride, int cStride,
                                                       int hStride, int wStride);

/*
 * Answers what a descriptor holds of its first four dimensions; strides in elements. BAD_PARAM
 * where a pointer is NULL.
 */
cudnnStatus_t CUDNNWINAPI cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                                                     cudnnDataType_t *dataType, int *n, int *c,
                                                     int *h, int *w, int *nStride, int *cStride,
                                                     int *hStride, int *wStride);

/*
 * Describes a tensor of nbDims dimensions with strides in elements. Fewer than 4 dimensions are
 * legal, but most layers want 4 at least: fill up with 1.
 *   nbDims   2 to CUDNN_DIM_MAX
 *   dimA     nbDims sizes, all positive: N, C, then the spatial ones, slowest first
 *   strideA  nbDims strides; where one is negative the pointer is to the element whose indices are
 *            all 0, and memory before it is used
 * BAD_PARAM for a size that is not positive, a stride of 0 of more than one element, and fewer than
 * 2 dimensions, NOT_SUPPORTED for more than CUDNN_DIM_MAX.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                     cudnnDataType_t dataType, int nbDims,
                                                     const int dimA[], const int strideA[]);

/*
 * Describes a packed tensor of nbDims dimensions in the given format; NHWC puts the channels
 * innermost, whatever the number of spatial dimensions. Limits as for
 * cudnnSetTensorNdDescriptor().
 */
cudnnStatus_t CUDNNWINAPI cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                                       cudnnTensorFormat_t format,
                                                       cudnnDataType_t dataType, int nbDims,
                                                       const int dimA[]);

/*
 * Answers what a descriptor holds.
 *   nbDimsRequested  the room in dimA and strideA, at most CUDNN_DIM_MAX
 *   nbDims           receives the number of dimensions, which may be larger; not NULL
 */
cudnnStatus_t CUDNNWINAPI cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                                                     int nbDimsRequested, cudnnDataType_t *dataType,
                                                     int *nbDims, int dimA[], int strideA[]);

/* The bytes from the first to past the last element, gaps included: what an allocation needs. */
cudnnStatus_t CUDNNWINAPI cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensorDesc,
                                                    size_t *size);

/* ---- Filter descriptors ---------------------------------------------------------------------- */

/* The shape, order and type of a convolution's filter. Filters are always packed. */
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t CUDNN_DEPRECATED;

/* Creates a filter descriptor with nothing set; release it with cudnnDestroyFilterDescriptor(). */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateFilterDescriptor(
    cudnnFilterDescriptor_t *filterDesc);

/* Releases a filter descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyFilterDescriptor(
    cudnnFilterDescriptor_t filterDesc);

/*
 * Describes a 2-D filter: k output channels, c input channels (of one group), h rows, w columns.
 *   format  NCHW stores it as k, c, h, w; NHWC as k, h, w, c; NCHW_VECT_C in vectors of channels
 * BAD_PARAM where a size is not positive, the format or type unknown.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetFilter4dDescriptor(
    cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType, cudnnTensorFormat_t format, int k,
    int c, int h, int w);

/*
 * Answers what a 4-D filter descriptor holds. BAD_PARAM where it has another number of dimensions.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFilter4dDescriptor(
    const cudnnFilterDescriptor_t filterDesc, cudnnDataType_t *dataType,
    cudnnTensorFormat_t *format, int *k, int *c, int *h, int *w);

/*
 * Describes a filter of nbDims dimensions: filterDimA = K, C / groups, then the spatial sizes;
 * nbDims is 3 to CUDNN_DIM_MAX. BAD_PARAM where a size is not positive.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetFilterNdDescriptor(
    cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType, cudnnTensorFormat_t format,
    int nbDims, const int filterDimA[]);

/*
 * Answers what a filter descriptor holds; nbDimsRequested sizes are written to filterDimA, zeros
 * beyond those of the filter, and nbDims receives how many it has. BAD_PARAM where nbDimsRequested
 * is not positive.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFilterNdDescriptor(
    const cudnnFilterDescriptor_t filterDesc, int nbDimsRequested, cudnnDataType_t *dataType,
    cudnnTensorFormat_t *format, int *nbDims, int filterDimA[]);

/* The size of the filter's data. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFilterSizeInBytes(
    const cudnnFilterDescriptor_t filterDesc, size_t *size);

/* ---- Layout changes -------------------------------------------------------------------------- */

/* How cudnnTransformTensorEx() pads, folds and reorders. */
typedef struct cudnnTensorTransformStruct *cudnnTensorTransformDescriptor_t CUDNN_DEPRECATED;

typedef enum {
    CUDNN_TRANSFORM_FOLD = 0,   /* spatial blocks become channels */
    CUDNN_TRANSFORM_UNFOLD = 1, /* and back */
} cudnnFoldingDirection_t;

/*
 * Creates a transform descriptor that changes nothing; release it with
 * cudnnDestroyTensorTransformDescriptor().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t *transformDesc);

/* Releases a transform descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transformDesc);

/*
 * Describes a transform of tensors with nbDims dimensions: first padding, then folding, then the
 * order of the destination.
 *   padBeforeA, padAfterA  nbDims counts of zeros to add at the ends of each dimension (negative:
 *                          elements to cut off); NULL for none
 *   foldA                  nbDims - 2 block lengths of the spatial dimensions, 1 to leave one
 *                          alone; NULL for none
 *   direction              whether to fold or to undo a fold
 * BAD_PARAM where nbDims, the format or a fold is out of range.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transformDesc, const uint32_t nbDims,
    const cudnnTensorFormat_t destFormat, const int32_t padBeforeA[], const int32_t padAfterA[],
    const uint32_t foldA[], const cudnnFoldingDirection_t direction);

/*
 * Answers what a transform descriptor holds; the arrays have room for nbDimsRequested entries
 * (foldA for two fewer) and may be NULL.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transformDesc, uint32_t nbDimsRequested,
    cudnnTensorFormat_t *destFormat, int32_t padBeforeA[], int32_t padAfterA[], uint32_t foldA[],
    cudnnFoldingDirection_t *direction);

/*
 * Works out the packed tensor that a transform of srcDesc gives. Folding pads first, unfolding last;
 * channels are padded on the folded side, as many times as a block has elements.
 *   destDesc         is set to it
 *   destSizeInBytes  receives its size; may be NULL
 * A part of a block counts as a whole one, filled up with zeros. BAD_PARAM where padding leaves
 * nothing, NOT_SUPPORTED_LAYOUT for vectors of channels.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnInitTransformDest(
    const cudnnTensorTransformDescriptor_t transformDesc, const cudnnTensorDescriptor_t srcDesc,
    cudnnTensorDescriptor_t destDesc, size_t *destSizeInBytes);

/*
 * y = alpha * x + beta * y, from one layout or type to another; the dimensions of both are equal.
 * alpha and beta are double where x is fp64, else float (as observed).
 * x and y must not overlap, unless they are the same tensor. BAD_PARAM_SHAPE_MISMATCH, or
 * NOT_SUPPORTED for a pair of types without a conversion.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnTransformTensor(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xDesc, const void *x,
    const void *beta, const cudnnTensorDescriptor_t yDesc, void *y);

/*
 * dest = alpha * transform(src) + beta * dest. destDesc has the dims that cudnnInitTransformDest()
 * gives, any strides, and any type that there is a conversion to; alpha and beta are double where
 * src is fp64, else float. Padding is filled with zeros. Folding, the channels of a block's first
 * pixel come first, then those of the next along the last dimension. The data must not overlap.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnTransformTensorEx(
    cudnnHandle_t handle, const cudnnTensorTransformDescriptor_t transDesc, const void *alpha,
    const cudnnTensorDescriptor_t srcDesc, const void *srcData, const void *beta,
    const cudnnTensorDescriptor_t destDesc, void *destData);

/* As cudnnTransformTensorEx(), for filters. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnTransformFilter(
    cudnnHandle_t handle, const cudnnTensorTransformDescriptor_t transDesc, const void *alpha,
    const cudnnFilterDescriptor_t srcDesc, const void *srcData, const void *beta,
    const cudnnFilterDescriptor_t destDesc, void *destData);

/* ---- Element-wise operations ----------------------------------------------------------------- */

/* The parameters of cudnnOpTensor(). */
typedef struct cudnnOpTensorStruct *cudnnOpTensorDescriptor_t CUDNN_DEPRECATED;

/* a stands for alpha1 * A, b for alpha2 * B. */
typedef enum {
    CUDNN_OP_TENSOR_ADD = 0, /* a + b */
    CUDNN_OP_TENSOR_MUL = 1, /* a * b */
    CUDNN_OP_TENSOR_MIN = 2,
    CUDNN_OP_TENSOR_MAX = 3,
    CUDNN_OP_TENSOR_SQRT = 4, /* sqrt(a); B is not used */
    CUDNN_OP_TENSOR_NOT = 5,  /* 1 - a; B is not used */
} cudnnOpTensorOp_t;

/*
 * Sets every element of y to one value; gaps between elements stay.
 *   valuePtr  host memory: a double or an int32_t for y of that type, else a float (as observed)
 * BAD_PARAM_NULL_POINTER, or BAD_PARAM where y is not described.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yDesc,
                                         void *y, const void *valuePtr);

/*
 * y = alpha * y.
 *   alpha  host memory, a float (double for double data)
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnScaleTensor(cudnnHandle_t handle,
                                                            const cudnnTensorDescriptor_t yDesc,
                                                            void *y, const void *alpha);

/*
 * C = alpha * A + beta * C. Each dimension of A equals that of C or is 1 and is then repeated, as
 * for a bias of shape 1, C, 1, 1. At most 5 dimensions in cuDNN; any number here. BAD_PARAM or
 * BAD_PARAM_SHAPE_MISMATCH where the shapes do not suit.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnAddTensor(cudnnHandle_t handle, const void *alpha,
                                                          const cudnnTensorDescriptor_t aDesc,
                                                          const void *A, const void *beta,
                                                          const cudnnTensorDescriptor_t cDesc,
                                                          void *C);

/* Creates an op-tensor descriptor; release it with cudnnDestroyOpTensorDescriptor(). */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateOpTensorDescriptor(
    cudnnOpTensorDescriptor_t *opTensorDesc);

/* Releases an op-tensor descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyOpTensorDescriptor(
    cudnnOpTensorDescriptor_t opTensorDesc);

/*
 * Chooses the operation of cudnnOpTensor(), the type it is computed in, and what minimum and
 * maximum make of a NaN. BAD_PARAM for values outside the enumerations.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetOpTensorDescriptor(
    cudnnOpTensorDescriptor_t opTensorDesc, cudnnOpTensorOp_t opTensorOp,
    cudnnDataType_t opTensorCompType, cudnnNanPropagation_t opTensorNanOpt);

/* Answers what an op-tensor descriptor holds. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetOpTensorDescriptor(
    const cudnnOpTensorDescriptor_t opTensorDesc, cudnnOpTensorOp_t *opTensorOp,
    cudnnDataType_t *opTensorCompType, cudnnNanPropagation_t *opTensorNanOpt);

/*
 * C = op(alpha1 * A, alpha2 * B) + beta * C, element by element. The dimensions of B equal those
 * of A or are 1 and are then repeated; A and C have equal dimensions. C may be A or B where their
 * layouts are equal. BAD_PARAM_SHAPE_MISMATCH, or NOT_SUPPORTED for a combination of types.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnOpTensor(
    cudnnHandle_t handle, const cudnnOpTensorDescriptor_t opTensorDesc, const void *alpha1,
    const cudnnTensorDescriptor_t aDesc, const void *A, const void *alpha2,
    const cudnnTensorDescriptor_t bDesc, const void *B, const void *beta,
    const cudnnTensorDescriptor_t cDesc, void *C);

/* ---- Reductions ------------------------------------------------------------------------------ */

/* The parameters of cudnnReduceTensor(). */
typedef struct cudnnReduceTensorStruct *cudnnReduceTensorDescriptor_t CUDNN_DEPRECATED;

/* Whether a reduction also answers where the value was found (minimum, maximum and AMAX only). */
typedef enum {
    CUDNN_REDUCE_TENSOR_NO_INDICES = 0,
    CUDNN_REDUCE_TENSOR_FLATTENED_INDICES = 1, /* position among the reduced elements */
} cudnnReduceTensorIndices_t CUDNN_DEPRECATED;

/* The type of such indices, unsigned. Only 32 bits are supported by cuDNN. */
typedef enum {
    CUDNN_32BIT_INDICES = 0,
    CUDNN_64BIT_INDICES = 1,
    CUDNN_16BIT_INDICES = 2,
    CUDNN_8BIT_INDICES = 3,
} cudnnIndicesType_t CUDNN_DEPRECATED;

/* Creates a reduce descriptor; release it with cudnnDestroyReduceTensorDescriptor(). */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateReduceTensorDescriptor(
    cudnnReduceTensorDescriptor_t *reduceTensorDesc);

/* Releases a reduce descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyReduceTensorDescriptor(
    cudnnReduceTensorDescriptor_t reduceTensorDesc);

/*
 * Chooses the operator, the type it is computed in, what minimum and maximum make of a NaN, and
 * whether and how indices are answered. BAD_PARAM for values outside the enumerations.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetReduceTensorDescriptor(
    cudnnReduceTensorDescriptor_t reduceTensorDesc, cudnnReduceTensorOp_t reduceTensorOp,
    cudnnDataType_t reduceTensorCompType, cudnnNanPropagation_t reduceTensorNanOpt,
    cudnnReduceTensorIndices_t reduceTensorIndices, cudnnIndicesType_t reduceTensorIndicesType);

/* Answers what a reduce descriptor holds. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetReduceTensorDescriptor(
    const cudnnReduceTensorDescriptor_t reduceTensorDesc, cudnnReduceTensorOp_t *reduceTensorOp,
    cudnnDataType_t *reduceTensorCompType, cudnnNanPropagation_t *reduceTensorNanOpt,
    cudnnReduceTensorIndices_t *reduceTensorIndices, cudnnIndicesType_t *reduceTensorIndicesType);

/*
 * The bytes of indices that cudnnReduceTensor() writes for A reduced to C; 0 where none are
 * wanted, or where the operator picks no element.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetReductionIndicesSize(
    cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t reduceTensorDesc,
    const cudnnTensorDescriptor_t aDesc, const cudnnTensorDescriptor_t cDesc, size_t *sizeInBytes);

/* The workspace that cudnnReduceTensor() needs for A reduced to C; may be 0. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetReductionWorkspaceSize(
    cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t reduceTensorDesc,
    const cudnnTensorDescriptor_t aDesc, const cudnnTensorDescriptor_t cDesc, size_t *sizeInBytes);

/*
 * C = alpha * reduce(A) + beta * C. Each dimension of C is that of A, or 1: then A is reduced over
 * it. The result is the same on every run. Infinities and NaNs go through as the operator says.
 *   indices    device memory of cudnnGetReductionIndicesSize() bytes, or NULL where that is 0;
 *              written for MIN, MAX and AMAX
 *   workspace  device memory of cudnnGetReductionWorkspaceSize() bytes
 * BAD_PARAM_SHAPE_MISMATCH, BAD_PARAM_SIZE_INSUFFICIENT, NOT_SUPPORTED for a combination of types.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnReduceTensor(
    cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t reduceTensorDesc, void *indices,
    size_t indicesSizeInBytes, void *workspace, size_t workspaceSizeInBytes, const void *alpha,
    const cudnnTensorDescriptor_t aDesc, const void *A, const void *beta,
    const cudnnTensorDescriptor_t cDesc, void *C);

/* ---- Activation ------------------------------------------------------------------------------ */

/* An activation function and its coefficients. */
typedef struct cudnnActivationStruct *cudnnActivationDescriptor_t CUDNN_DEPRECATED;

/* Creates an activation descriptor; release it with cudnnDestroyActivationDescriptor(). */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateActivationDescriptor(
    cudnnActivationDescriptor_t *activationDesc);

/* Releases an activation descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyActivationDescriptor(
    cudnnActivationDescriptor_t activationDesc);

/*
 * Chooses the function.
 *   reluNanOpt  what the rectifiers make of a NaN
 *   coef        the ceiling of CLIPPED_RELU, the alpha of ELU; not used by the others
 * BAD_PARAM for values outside the enumerations.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetActivationDescriptor(
    cudnnActivationDescriptor_t activationDesc, cudnnActivationMode_t mode,
    cudnnNanPropagation_t reluNanOpt, double coef);

/* Answers what cudnnSetActivationDescriptor() was given. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetActivationDescriptor(
    const cudnnActivationDescriptor_t activationDesc, cudnnActivationMode_t *mode,
    cudnnNanPropagation_t *reluNanOpt, double *coef);

/* Sets the beta of ACTIVATION_SWISH, 1 until then. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetActivationDescriptorSwishBeta(
    cudnnActivationDescriptor_t activationDesc, double swish_beta);

/* Answers the beta of ACTIVATION_SWISH. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetActivationDescriptorSwishBeta(
    cudnnActivationDescriptor_t activationDesc, double *swish_beta);

/*
 * y = alpha * f(x) + beta * y. x and y have equal dimensions; y may be x where their strides are
 * equal too. BAD_PARAM for ACTIVATION_IDENTITY, BAD_PARAM_SHAPE_MISMATCH, NOT_SUPPORTED for a
 * type.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnActivationForward(
    cudnnHandle_t handle, cudnnActivationDescriptor_t activationDesc, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const cudnnTensorDescriptor_t yDesc, void *y);

/*
 * dx = alpha * dy * f'(x) + beta * dx, from the forward output y and input x; the same descriptor
 * as forward. dx may be dy where their strides are equal. All four have equal dimensions.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnActivationBackward(
    cudnnHandle_t handle, cudnnActivationDescriptor_t activationDesc, const void *alpha,
    const cudnnTensorDescriptor_t yDesc, const void *y, const cudnnTensorDescriptor_t dyDesc,
    const void *dy, const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const cudnnTensorDescriptor_t dxDesc, void *dx);

/* ---- Softmax --------------------------------------------------------------------------------- */

/* How the exponentials are computed; x_i runs over one group of elements. */
typedef enum {
    CUDNN_SOFTMAX_FAST = 0,     /* exp(x_i) / sum exp(x_j), overflows for large x */
    CUDNN_SOFTMAX_ACCURATE = 1, /* the maximum is subtracted first */
    CUDNN_SOFTMAX_LOG = 2,      /* x_i - log(sum exp(x_j)), also with the maximum out */
} cudnnSoftmaxAlgorithm_t;

/* What a group is. */
typedef enum {
    CUDNN_SOFTMAX_MODE_INSTANCE = 0, /* one image: C, H and W together */
    CUDNN_SOFTMAX_MODE_CHANNEL = 1,  /* one pixel: over C */
} cudnnSoftmaxMode_t;

/*
 * y = alpha * softmax(x) + beta * y, any strides. x and y have equal dimensions; y may be x where
 * their strides are equal. BAD_PARAM_SHAPE_MISMATCH, NOT_SUPPORTED for a type.
 */
cudnnStatus_t CUDNNWINAPI cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                              cudnnSoftmaxMode_t mode, const void *alpha,
                                              const cudnnTensorDescriptor_t xDesc, const void *x,
                                              const void *beta, const cudnnTensorDescriptor_t yDesc,
                                              void *y);

/*
 * dx = alpha * d + beta * dx, from the forward output y: d_i = y_i * (dy_i - sum y_j dy_j), or for
 * the logarithm d_i = dy_i - exp(y_i) * sum dy_j. dx may be dy where their strides are equal.
 */
cudnnStatus_t CUDNNWINAPI cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                               cudnnSoftmaxMode_t mode, const void *alpha,
                                               const cudnnTensorDescriptor_t yDesc, const void *y,
                                               const cudnnTensorDescriptor_t dyDesc, const void *dy,
                                               const void *beta,
                                               const cudnnTensorDescriptor_t dxDesc, void *dx);

/* ---- Pooling --------------------------------------------------------------------------------- */

/* A pooling mode, window, padding and stride. */
typedef struct cudnnPoolingStruct *cudnnPoolingDescriptor_t CUDNN_DEPRECATED;

/* What becomes of a window. */
typedef enum {
    CUDNN_POOLING_MAX = 0,                           /* the largest element */
    CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1, /* sum / size of the window */
    CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2, /* sum / elements inside the image */
    CUDNN_POOLING_MAX_DETERMINISTIC = 3, /* as MAX; gradients are the same on every run */
} cudnnPoolingMode_t CUDNN_DEPRECATED;

/* Creates a pooling descriptor; release it with cudnnDestroyPoolingDescriptor(). */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreatePoolingDescriptor(
    cudnnPoolingDescriptor_t *poolingDesc);

/* Releases a pooling descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyPoolingDescriptor(
    cudnnPoolingDescriptor_t poolingDesc);

/*
 * Describes a 2-D pooling, in pixels. Padding is virtual: it is no candidate for a maximum, and 0
 * for an average; negative, it takes as many pixels away. A maximum over padding alone is the lowest
 * finite number. BAD_PARAM where a window or stride is not positive or a mode unknown.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetPooling2dDescriptor(
    cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t mode,
    cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight, int windowWidth, int verticalPadding,
    int horizontalPadding, int verticalStride, int horizontalStride);

/*
 * Answers what a 2-D pooling descriptor holds. BAD_PARAM where it has another number of
 * dimensions.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetPooling2dDescriptor(
    const cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t *mode,
    cudnnNanPropagation_t *maxpoolingNanOpt, int *windowHeight, int *windowWidth,
    int *verticalPadding, int *horizontalPadding, int *verticalStride, int *horizontalStride);

/*
 * Describes a pooling over nbDims spatial dimensions; rules as for cudnnSetPooling2dDescriptor().
 *   nbDims  without N and C: 2 for images, 3 for volumes
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetPoolingNdDescriptor(
    cudnnPoolingDescriptor_t poolingDesc, const cudnnPoolingMode_t mode,
    const cudnnNanPropagation_t maxpoolingNanOpt, int nbDims, const int windowDimA[],
    const int paddingA[], const int strideA[]);

/*
 * Answers what a pooling descriptor holds; the arrays have room for nbDimsRequested entries,
 * nbDims receives how many there are.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetPoolingNdDescriptor(
    const cudnnPoolingDescriptor_t poolingDesc, int nbDimsRequested, cudnnPoolingMode_t *mode,
    cudnnNanPropagation_t *maxpoolingNanOpt, int *nbDims, int windowDimA[], int paddingA[],
    int strideA[]);

/*
 * The output's dimensions for an input: n and c are the input's, and for each spatial size
 *   out = 1 + (in + 2 * padding - window) / stride, rounded down
 * BAD_PARAM where the descriptors do not go together or an output would be empty.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetPooling2dForwardOutputDim(
    const cudnnPoolingDescriptor_t poolingDesc, const cudnnTensorDescriptor_t inputTensorDesc,
    int *n, int *c, int *h, int *w);

/*
 * As cudnnGetPooling2dForwardOutputDim(), for any number of dimensions.
 *   nbDims             of the input, N and C included
 *   outputTensorDimA   receives nbDims sizes
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetPoolingNdForwardOutputDim(
    const cudnnPoolingDescriptor_t poolingDesc, const cudnnTensorDescriptor_t inputTensorDesc,
    int nbDims, int outputTensorDimA[]);

/*
 * y = alpha * pool(x) + beta * y. Of equal maxima the first in memory order of the window counts
 * for the gradient. BAD_PARAM where y has other dimensions than
 * cudnnGetPoolingNdForwardOutputDim() says, NOT_SUPPORTED for a type.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnPoolingForward(
    cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const cudnnTensorDescriptor_t yDesc, void *y);

/*
 * dx = alpha * gradient + beta * dx, from the forward input x and output y and the gradient dy:
 * for a maximum, dy goes to the element that was the largest; for an average it is shared out
 * evenly over what the forward pass counted.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnPoolingBackward(
    cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc, const void *alpha,
    const cudnnTensorDescriptor_t yDesc, const void *y, const cudnnTensorDescriptor_t dyDesc,
    const void *dy, const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const cudnnTensorDescriptor_t dxDesc, void *dx);

/* ---- Batch normalization --------------------------------------------------------------------- */

/* The least epsilon that batch normalization accepts. */
#define CUDNN_BN_MIN_EPSILON 0.0

/* Over what mean and variance are taken, and so the shape of scale, bias and statistics. */
typedef enum {
    CUDNN_BATCHNORM_PER_ACTIVATION = 0, /* over N: 1, C, H, W */
    CUDNN_BATCHNORM_SPATIAL = 1,        /* over N, H and W: 1, C, 1, 1 */
    /* as SPATIAL, may hold the data on chip; same results */
    CUDNN_BATCHNORM_SPATIAL_PERSISTENT = 2,
} cudnnBatchNormMode_t CUDNN_DEPRECATED;

/* What is fused behind the normalization; the activation is a rectifier. */
typedef enum {
    CUDNN_BATCHNORM_OPS_BN = 0,                /* y = BN(x) */
    CUDNN_BATCHNORM_OPS_BN_ACTIVATION = 1,     /* y = f(BN(x)) */
    CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION = 2, /* y = f(BN(x) + z) */
} cudnnBatchNormOps_t CUDNN_DEPRECATED;

/*
 * Sets derivedBnDesc to the shape of scale, bias and statistics for an input and mode; the type is
 * float, or double for double data.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDeriveBNTensorDescriptor(
    cudnnTensorDescriptor_t derivedBnDesc, const cudnnTensorDescriptor_t xDesc,
    cudnnBatchNormMode_t mode);

/*
 * y = alpha * (scale * (x - mean) / sqrt(variance + epsilon) + bias) + beta * y, with given
 * statistics.
 *   bnScaleBiasMeanVarDesc  as cudnnDeriveBNTensorDescriptor() gives it, for the four that follow
 *   estimatedMean, estimatedVariance  the running statistics of training
 *   epsilon  at least CUDNN_BN_MIN_EPSILON, the same as in training
 * BAD_PARAM where shapes, mode or epsilon do not suit. Formula: Ioffe and Szegedy, 2015.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t yDesc,
    void *y, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, const void *estimatedMean, const void *estimatedVariance, double epsilon);

/*
 * As inference, with the mean and the (biased) variance of the batch itself, over m elements a
 * channel.
 *   exponentialAverageFactor  f in  running = running * (1 - f) + batch * f;  1 / (1 + n) in call
 *                             n gives the plain average. Any finite number is taken
 *   resultRunningMean, resultRunningVariance  updated; the variance takes m / (m - 1) of the
 *       batch's; each may be NULL
 *   resultSaveMean, resultSaveInvVariance  receive mean and 1 / sqrt(variance + epsilon) for the
 *       backward pass; both may be NULL
 * BAD_PARAM also where the two running or the two saved statistics are one memory.
 * x, y and the rest as for cudnnBatchNormalizationForwardInference().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t yDesc,
    void *y, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean, void *resultSaveInvVariance);

/*
 * The gradients of cudnnBatchNormalizationForwardTraining(): with xhat = (x - mean) * invstd
 *   dbias = sum dy,  dscale = sum dy * xhat
 *   dx = scale * invstd * (dy - dbias / m - xhat * dscale / m)
 *   alphaDataDiff, betaDataDiff    blend into dx
 *   alphaParamDiff, betaParamDiff  blend into the two parameter gradients
 *   savedMean, savedInvVariance    from the forward pass; both NULL to compute them again
 * x, dy and dx have equal dimensions; dx may be dy where their strides are equal.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alphaDataDiff,
    const void *betaDataDiff, const void *alphaParamDiff, const void *betaParamDiff,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t dyDesc,
    const void *dy, const cudnnTensorDescriptor_t dxDesc, void *dx,
    const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScale, void *dBnScaleResult,
    void *dBnBiasResult, double epsilon, const void *savedMean, const void *savedInvVariance);

/*
 * The workspace that cudnnBatchNormalizationForwardTrainingEx() needs for these descriptors; may
 * be 0. zDesc may be NULL without an addition, activationDesc without an activation.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc,
    const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes);

/* The workspace that cudnnBatchNormalizationBackwardEx() needs for these descriptors; may be 0. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
    const cudnnTensorDescriptor_t dxDesc, const cudnnTensorDescriptor_t dBnScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes);

/*
 * The reserve space that carries what the forward pass leaves for the backward pass, such as which
 * elements the activation let through; may be 0.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes);

/*
 * As cudnnBatchNormalizationForwardTraining(), with an activation and an addition fused behind it.
 *   zDesc, zData    added before the activation, shaped as y; only for BN_ADD_ACTIVATION
 *   activationDesc  a rectifier; only for the modes with an activation
 *   workspace       of the size that the query answers, free after the call's work
 *   reserveSpace    of the size that the query answers, kept unchanged until the backward pass
 * BAD_PARAM_SIZE_INSUFFICIENT where a size is below what the queries answer. Any mode, type and
 * layout runs here; cuDNN takes fp16 NHWC in the persistent mode only for some.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t zDesc, const void *zData, const cudnnTensorDescriptor_t yDesc,
    void *yData, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean, void *resultSaveInvVariance,
    cudnnActivationDescriptor_t activationDesc, void *workspace, size_t workSpaceSizeInBytes,
    void *reserveSpace, size_t reserveSpaceSizeInBytes);

/*
 * The gradients of cudnnBatchNormalizationForwardTrainingEx(), from the same arguments.
 *   yData    the forward output, for the modes with an activation
 *   bnBiasData  the bias, for the modes with an activation
 *   dzData   receives the gradient of z; only for BN_ADD_ACTIVATION
 *   reserveSpace  as the forward pass left it
 * The rest as for cudnnBatchNormalizationBackward().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t yDesc, const void *yData, const cudnnTensorDescriptor_t dyDesc,
    const void *dyData, const cudnnTensorDescriptor_t dzDesc, void *dzData,
    const cudnnTensorDescriptor_t dxDesc, void *dxData,
    const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScaleData, const void *bnBiasData,
    void *dBnScaleData, void *dBnBiasData, double epsilon, const void *savedMean,
    const void *savedInvVariance, cudnnActivationDescriptor_t activationDesc, void *workSpace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes);

/* ---- Normalization, the newer interface ------------------------------------------------------ */

/* As cudnnBatchNormMode_t. */
typedef enum {
    CUDNN_NORM_PER_ACTIVATION = 0, /* over N: 1, C, H, W */
    CUDNN_NORM_PER_CHANNEL = 1,    /* over N, H and W: 1, C, 1, 1 */
} cudnnNormMode_t CUDNN_DEPRECATED;

/* As cudnnBatchNormOps_t. */
typedef enum {
    CUDNN_NORM_OPS_NORM = 0,                /* y = norm(x) */
    CUDNN_NORM_OPS_NORM_ACTIVATION = 1,     /* y = f(norm(x)) */
    CUDNN_NORM_OPS_NORM_ADD_ACTIVATION = 2, /* y = f(norm(x) + z) */
} cudnnNormOps_t CUDNN_DEPRECATED;

/* The results are the same. */
typedef enum {
    CUDNN_NORM_ALGO_STANDARD = 0,
    CUDNN_NORM_ALGO_PERSIST = 1, /* may hold the data on chip */
} cudnnNormAlgo_t CUDNN_DEPRECATED;

/*
 * Sets the two descriptors of scale and bias, and of mean and variance, for an input and mode.
 * groupCnt must be 1, here as in all functions below.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDeriveNormTensorDescriptor(
    cudnnTensorDescriptor_t derivedNormScaleBiasDesc,
    cudnnTensorDescriptor_t derivedNormMeanVarDesc, const cudnnTensorDescriptor_t xDesc,
    cudnnNormMode_t mode, int groupCnt);

/* The workspace that cudnnNormalizationForwardTraining() needs; may be 0. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetNormalizationForwardTrainingWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc,
    const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t normScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t normMeanVarDesc,
    size_t *sizeInBytes, int groupCnt);

/* The workspace that cudnnNormalizationBackward() needs; may be 0. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetNormalizationBackwardWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
    const cudnnTensorDescriptor_t dxDesc, const cudnnTensorDescriptor_t dNormScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t normMeanVarDesc,
    size_t *sizeInBytes, int groupCnt);

/* The reserve space that carries what the forward pass leaves for the backward pass; may be 0. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetNormalizationTrainingReserveSpaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes, int groupCnt);

/*
 * As cudnnBatchNormalizationForwardInference(), with the fused forms of cudnnNormOps_t; z and
 * activationDesc are used where normOps says so and may be NULL elsewhere. BAD_PARAM for a
 * groupCnt other than 1, NOT_SUPPORTED for an algo that there is not.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnNormalizationForwardInference(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void *alpha, const void *beta, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnTensorDescriptor_t normScaleBiasDesc, const void *normScale, const void *normBias,
    const cudnnTensorDescriptor_t normMeanVarDesc, const void *estimatedMean,
    const void *estimatedVariance, const cudnnTensorDescriptor_t zDesc, const void *z,
    cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t yDesc, void *y,
    double epsilon, int groupCnt);

/*
 * As cudnnBatchNormalizationForwardTrainingEx(), with statistics described on their own. epsilon
 * may be 0.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void *alpha, const void *beta, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t normScaleBiasDesc, const void *normScale, const void *normBias,
    double exponentialAverageFactor, const cudnnTensorDescriptor_t normMeanVarDesc,
    void *resultRunningMean, void *resultRunningVariance, double epsilon, void *resultSaveMean,
    void *resultSaveInvVariance, cudnnActivationDescriptor_t activationDesc,
    const cudnnTensorDescriptor_t zDesc, const void *zData, const cudnnTensorDescriptor_t yDesc,
    void *yData, void *workspace, size_t workSpaceSizeInBytes, void *reserveSpace,
    size_t reserveSpaceSizeInBytes, int groupCnt);

/* As cudnnBatchNormalizationBackwardEx(), with statistics described on their own. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnNormalizationBackward(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t yDesc, const void *yData, const cudnnTensorDescriptor_t dyDesc,
    const void *dyData, const cudnnTensorDescriptor_t dzDesc, void *dzData,
    const cudnnTensorDescriptor_t dxDesc, void *dxData,
    const cudnnTensorDescriptor_t dNormScaleBiasDesc, const void *normScaleData,
    const void *normBiasData, void *dNormScaleData, void *dNormBiasData, double epsilon,
    const cudnnTensorDescriptor_t normMeanVarDesc, const void *savedMean,
    const void *savedInvVariance, cudnnActivationDescriptor_t activationDesc, void *workSpace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes, int groupCnt);

/* ---- Local response and divisive normalization ----------------------------------------------- */

/* The limits of cudnnSetLRNDescriptor(). */
#define CUDNN_LRN_MIN_N 1
#define CUDNN_LRN_MAX_N 16
#define CUDNN_LRN_MIN_K 1e-5
#define CUDNN_LRN_MIN_BETA 0.01

/* The window and coefficients of local response and divisive normalization. */
typedef struct cudnnLRNStruct *cudnnLRNDescriptor_t;

typedef enum {
    CUDNN_LRN_CROSS_CHANNEL_DIM1 = 0, /* the window runs over channels, dimension 1 */
} cudnnLRNMode_t;

typedef enum {
    CUDNN_DIVNORM_PRECOMPUTED_MEANS = 0, /* the caller gives the means, or none for 0 */
} cudnnDivNormMode_t;

/*
 * Creates an LRN descriptor with n = 5, alpha = 1e-4, beta = 0.75, k = 2; release it with
 * cudnnDestroyLRNDescriptor().
 */
cudnnStatus_t CUDNNWINAPI cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t *normDesc);

/* Releases an LRN descriptor; NULL does nothing. */
cudnnStatus_t CUDNNWINAPI cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t lrnDesc);

/*
 * Sets the coefficients of the formulas below.
 *   lrnN  the window's width in channels (LRN) or pixels of each spatial dimension (divisive),
 *         CUDNN_LRN_MIN_N to CUDNN_LRN_MAX_N; an even window has one element more behind than
 *         before
 *   lrnBeta, lrnK  at least CUDNN_LRN_MIN_BETA, CUDNN_LRN_MIN_K
 * BAD_PARAM outside these limits.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned int lrnN,
                                                double lrnAlpha, double lrnBeta, double lrnK);

/* Answers what an LRN descriptor holds. Pointers may be NULL for what is not wanted. */
cudnnStatus_t CUDNNWINAPI cudnnGetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned int *lrnN,
                                                double *lrnAlpha, double *lrnBeta, double *lrnK);

/*
 * y_c = alpha * x_c / (k + lrnAlpha / n * s)^lrnBeta + beta * y_c, where s is the sum of squares
 * of x at the same pixel over the n channels around c. x and y have equal dimensions and types
 * (fp64, fp32, fp16, bf16), any strides, and no memory in common. Formula: Krizhevsky, Sutskever and
 * Hinton, 2012, with alpha divided by n.
 */
cudnnStatus_t CUDNNWINAPI cudnnLRNCrossChannelForward(cudnnHandle_t handle,
                                                      cudnnLRNDescriptor_t normDesc,
                                                      cudnnLRNMode_t lrnMode, const void *alpha,
                                                      const cudnnTensorDescriptor_t xDesc,
                                                      const void *x, const void *beta,
                                                      const cudnnTensorDescriptor_t yDesc, void *y);

/*
 * dx = alpha * gradient + beta * dx of cudnnLRNCrossChannelForward(), from its x and y and the
 * gradient dy; all of equal dimensions.
 */
cudnnStatus_t CUDNNWINAPI cudnnLRNCrossChannelBackward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc, cudnnLRNMode_t lrnMode, const void *alpha,
    const cudnnTensorDescriptor_t yDesc, const void *y, const cudnnTensorDescriptor_t dyDesc,
    const void *dy, const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const cudnnTensorDescriptor_t dxDesc, void *dx);

/*
 * Normalization within each channel, blended into y by alpha and beta: y_i = x_i / (k + lrnAlpha /
 * n^d * s)^lrnBeta, where s is the sum of (x_j - means_i)^2 over the window of n pixels in each of
 * the d spatial dimensions around i. 4 or 5 dimensions, any strides but 0.
 *   means        shaped as x; NULL for 0
 *   temp, temp2  scratch, each shaped as x; contents lost
 * Nothing that is written shares memory with anything else. After Jarrett, Kavukcuoglu, Ranzato and
 * LeCun, 2009.
 */
cudnnStatus_t CUDNNWINAPI cudnnDivisiveNormalizationForward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc, cudnnDivNormMode_t mode, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x, const void *means, void *temp, void *temp2,
    const void *beta, const cudnnTensorDescriptor_t yDesc, void *y);

/*
 * The gradients of cudnnDivisiveNormalizationForward(), by x and by the means, both blended by alpha
 * and beta.
 *   dy      shaped as x
 *   dMeans  shaped as dx; NULL where it is not wanted
 *   temp, temp2  scratch, each shaped as x; contents lost
 */
cudnnStatus_t CUDNNWINAPI cudnnDivisiveNormalizationBackward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc, cudnnDivNormMode_t mode, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x, const void *means, const void *dy,
    void *temp, void *temp2, const void *beta, const cudnnTensorDescriptor_t dXdMeansDesc, void *dx,
    void *dMeans);

/* ---- Dropout --------------------------------------------------------------------------------- */

/* A dropout probability and where its random state lies. */
typedef struct cudnnDropoutStruct *cudnnDropoutDescriptor_t;

/* Creates a dropout descriptor; release it with cudnnDestroyDropoutDescriptor(). */
cudnnStatus_t CUDNNWINAPI cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t *dropoutDesc);

/* Releases a dropout descriptor, not the state memory, which is the caller's; NULL does nothing. */
cudnnStatus_t CUDNNWINAPI cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc);

/*
 * The bytes of the random state that cudnnSetDropoutDescriptor() wants; the same for every use on
 * the handle's device.
 */
cudnnStatus_t CUDNNWINAPI cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *sizeInBytes);

/*
 * The bytes that carry the mask of an input from cudnnDropoutForward() to cudnnDropoutBackward().
 */
cudnnStatus_t CUDNNWINAPI cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t xdesc,
                                                          size_t *sizeInBytes);

/*
 * Sets the probability and starts the random state from a seed, on the handle's stream.
 *   dropout  the probability that an element becomes 0, from 0 to 1
 *   states   device memory of stateSizeInBytes, which the descriptor refers to from then on; NULL
 *            leaves the state alone (enough for a probability of 0 and for inference)
 * BAD_PARAM for a probability out of range, BAD_PARAM_SIZE_INSUFFICIENT for too few bytes.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                    cudnnHandle_t handle, float dropout,
                                                    void *states, size_t stateSizeInBytes,
                                                    unsigned long long seed);

/*
 * As cudnnSetDropoutDescriptor(), with a state that was saved from another descriptor: states is
 * taken as it is, and nothing is written.
 */
cudnnStatus_t CUDNNWINAPI cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                        cudnnHandle_t handle, float dropout,
                                                        void *states, size_t stateSizeInBytes,
                                                        unsigned long long seed);

/* Answers what a dropout descriptor holds. Pointers may be NULL for what is not wanted. */
cudnnStatus_t CUDNNWINAPI cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                    cudnnHandle_t handle, float *dropout,
                                                    void **states, unsigned long long *seed);

/*
 * y = mask * x / (1 - dropout): each element is kept with probability 1 - dropout, by random
 * numbers that depend on the seed, on how many elements the state has served, and on the element's
 * index, and on nothing else: strides and device do not matter. The state moves on with each call,
 * also in replays of a captured graph.
 *   reserveSpace  receives the mask; of cudnnDropoutGetReserveSpaceSize() bytes
 * x and y have equal dimensions; y may be x where their strides are equal.
 */
cudnnStatus_t CUDNNWINAPI cudnnDropoutForward(cudnnHandle_t handle,
                                              const cudnnDropoutDescriptor_t dropoutDesc,
                                              const cudnnTensorDescriptor_t xdesc, const void *x,
                                              const cudnnTensorDescriptor_t ydesc, void *y,
                                              void *reserveSpace, size_t reserveSpaceSizeInBytes);

/*
 * dx = mask * dy / (1 - dropout), with the mask that the forward pass left. dx may be dy where
 * their strides are equal. The random state is not touched.
 */
cudnnStatus_t CUDNNWINAPI cudnnDropoutBackward(cudnnHandle_t handle,
                                               const cudnnDropoutDescriptor_t dropoutDesc,
                                               const cudnnTensorDescriptor_t dydesc, const void *dy,
                                               const cudnnTensorDescriptor_t dxdesc, void *dx,
                                               void *reserveSpace, size_t reserveSpaceSizeInBytes);

/* ---- Spatial transformer --------------------------------------------------------------------- */

/* The shape of a spatial transformer's output. */
typedef struct cudnnSpatialTransformerStruct *cudnnSpatialTransformerDescriptor_t;

typedef enum {
    CUDNN_SAMPLER_BILINEAR = 0, /* weighted by distance, 0 outside the image */
} cudnnSamplerType_t;

/*
 * Creates a spatial transformer descriptor; release it with
 * cudnnDestroySpatialTransformerDescriptor().
 */
cudnnStatus_t CUDNNWINAPI cudnnCreateSpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t *stDesc);

/* Releases a spatial transformer descriptor; NULL does nothing. */
cudnnStatus_t CUDNNWINAPI cudnnDestroySpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t stDesc);

/*
 * Describes the output.
 *   dataType  of all tensors: fp64, fp32, fp16 or bf16
 *   nbDims    4: only 2-D transforms exist
 *   dimA      N, C, H, W of the output
 * BAD_PARAM or NOT_SUPPORTED for anything else.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t stDesc, cudnnSamplerType_t samplerType,
    cudnnDataType_t dataType, const int nbDims, const int dimA[]);

/*
 * Where each output pixel looks in its input: grid = theta * (u, v, 1), u and v running from -1 to
 * 1 over the output's columns and rows, corners included; -1 where there is only one.
 *   theta  device memory, N x 2 x 3, packed: one affine transform an image
 *   grid   receives N x H x W x 2, packed: column, then row, -1 to 1 over the input
 * Formula: Jaderberg, Simonyan, Zisserman and Kavukcuoglu, 2015.
 */
cudnnStatus_t CUDNNWINAPI cudnnSpatialTfGridGeneratorForward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t stDesc, const void *theta,
    void *grid);

/*
 * dtheta (N x 2 x 3), from the gradient of the grid: the sum over all pixels of dgrid times (u, v,
 * 1).
 */
cudnnStatus_t CUDNNWINAPI cudnnSpatialTfGridGeneratorBackward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t stDesc, const void *dgrid,
    void *dtheta);

/*
 * y = alpha * sample(x, grid) + beta * y: each pixel of y is the bilinear mean of the four of x
 * around its grid point, pixels outside x counting as 0. y is as the descriptor says; N and C of x
 * and y are equal. Any strides. Where a coordinate is NaN or infinite y is NaN.
 */
cudnnStatus_t CUDNNWINAPI cudnnSpatialTfSamplerForward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x, const void *grid, const void *beta,
    cudnnTensorDescriptor_t yDesc, void *y);

/*
 * The gradients of cudnnSpatialTfSamplerForward(): dx blended by alpha and beta, dgrid by
 * alphaDgrid and betaDgrid, both the same on every run. No output shares memory with an input.
 * Where the sampler is not smooth, at whole pixels, the derivative is that of the cell on the right
 * and below.
 */
cudnnStatus_t CUDNNWINAPI cudnnSpatialTfSamplerBackward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const cudnnTensorDescriptor_t dxDesc, void *dx, const void *alphaDgrid,
    const cudnnTensorDescriptor_t dyDesc, const void *dy, const void *grid, const void *betaDgrid,
    void *dgrid);

/* ---- Algorithm names of the layers above ----------------------------------------------------- */

/*
 * The names by which a forward convolution's algorithm is asked for. Each stands for fixed engines
 * of WarpDNN, not for the method in its name.
 */
typedef enum {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
    CUDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT = 4,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING = 5,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7,
    CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8, /* how many there are */
} cudnnConvolutionFwdAlgo_t;

/*
 * The same for the gradient of the data. ALGO_0 may be non-deterministic in cuDNN; here all give
 * the same bits on every run.
 */
typedef enum {
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT = 2,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING = 3,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD = 4,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED = 5,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT = 6, /* how many there are */
} cudnnConvolutionBwdDataAlgo_t;

/* The same for the gradient of the filter. */
typedef enum {
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 = 0,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT = 2,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 = 3,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD = 4,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED = 5,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING = 6,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT = 7, /* how many there are */
} cudnnConvolutionBwdFilterAlgo_t;

/* The parameters of the CTC loss; its functions are in cudnn_adv.h. */
typedef struct cudnnCTCLossStruct *cudnnCTCLossDescriptor_t;

/* Both give the same bits on every run here. */
typedef enum {
    CUDNN_CTC_LOSS_ALGO_DETERMINISTIC = 0,
    CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC = 1,
} cudnnCTCLossAlgo_t;

#if defined(__cplusplus)
}
#endif

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#pragma GCC visibility pop
#endif

#endif
