/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_adv.h - layers over sequences: recurrent networks, multi-head attention, and the CTC loss.
 */
#ifndef CUDNN_ADV_H_
#define CUDNN_ADV_H_

#include <stdint.h>

#include "cudnn_version.h"

#include "cudnn_ops.h"

/* The level of this part of the API; all parts are released together. */
#define CUDNN_ADV_MAJOR 9
#define CUDNN_ADV_MINOR 19
#define CUDNN_ADV_PATCH 0
#if CUDNN_ADV_MAJOR != CUDNN_MAJOR || CUDNN_ADV_MINOR != CUDNN_MINOR ||                            \
    CUDNN_ADV_PATCH != CUDNN_PATCHLEVEL
#error "cudnn_adv.h and cudnn_version.h come from different releases"
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

/* As cudnnGraphVersionCheck(): always SUCCESS here. */
cudnnStatus_t CUDNNWINAPI cudnnAdvVersionCheck(void);

typedef enum {
    CUDNN_FWD_MODE_INFERENCE = 0, /* nothing is kept for a backward pass; no dropout */
    CUDNN_FWD_MODE_TRAINING = 1,  /* the reserve space is written */
} cudnnForwardMode_t;

typedef enum {
    CUDNN_WGRAD_MODE_ADD = 0, /* gradients are added to what the buffer holds */
    CUDNN_WGRAD_MODE_SET = 1, /* gradients replace what the buffer holds */
} cudnnWgradMode_t;

/* ---- Recurrent networks: descriptors --------------------------------------------------------- */

/* The structure of a recurrent network, and the layout of its sequences. */
typedef struct cudnnRNNStruct *cudnnRNNDescriptor_t;

/* The layout of a batch of sequences. */
typedef struct cudnnRNNDataStruct *cudnnRNNDataDescriptor_t;

/*
 * The cell. W are input weights, R recurrent weights, b their biases (one of the two may be
 * missing), s the logistic function, * element by element.
 */
typedef enum {
    CUDNN_RNN_RELU = 0, /* h' = max(0, W x + R h + b) */
    CUDNN_RNN_TANH = 1, /* h' = tanh(W x + R h + b) */
    CUDNN_LSTM = 2,     /* i f o = s(..), g = tanh(..); c' = f * c + i * g; h' = o * tanh(c') */
    CUDNN_GRU = 3,      /* r i = s(..), n = tanh(W x + b + r * (R h + b)); h' = (1-i) * n + i * h */
} cudnnRNNMode_t;

/* How many biases a gate has. */
typedef enum {
    CUDNN_RNN_NO_BIAS = 0,
    CUDNN_RNN_SINGLE_INP_BIAS = 1, /* with W x */
    CUDNN_RNN_DOUBLE_BIAS = 2,     /* one with each */
    CUDNN_RNN_SINGLE_REC_BIAS = 3, /* with R h */
} cudnnRNNBiasMode_t;

typedef enum {
    CUDNN_UNIDIRECTIONAL = 0,
    CUDNN_BIDIRECTIONAL = 1, /* a second network runs backwards, outputs are concatenated */
} cudnnDirectionMode_t;

/* What the first layer does with its input. */
typedef enum {
    CUDNN_LINEAR_INPUT = 0, /* multiplies it by W */
    CUDNN_SKIP_INPUT = 1,   /* takes it as it is; the input size is the hidden size */
} cudnnRNNInputMode_t;

/*
 * How a network is run; the results are the same within rounding. WarpDNN chooses by itself and
 * takes any.
 */
typedef enum {
    CUDNN_RNN_ALGO_STANDARD = 0,
    CUDNN_RNN_ALGO_PERSIST_STATIC = 1,
    CUDNN_RNN_ALGO_PERSIST_DYNAMIC = 2,
    CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H = 3,
    CUDNN_RNN_ALGO_COUNT = 4, /* how many there are */
} cudnnRNNAlgo_t;

/* Whether the cell state of an LSTM is clipped. */
typedef enum {
    CUDNN_RNN_CLIP_NONE = 0,
    CUDNN_RNN_CLIP_MINMAX = 1,
} cudnnRNNClipMode_t;

/* How sequences of different lengths lie in memory. */
typedef enum {
    CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0, /* time, batch, vector; short ones are padded */
    /* time, batch, vector; sorted by length, no padding */
    CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED = 1,
    CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED = 2, /* batch, time, vector; short ones are padded */
} cudnnRNNDataLayout_t;

/* The auxFlags of cudnnSetRNNDescriptor_v8(): whether unpacked layouts are allowed. */
#define CUDNN_RNN_PADDED_IO_DISABLED 0
#define CUDNN_RNN_PADDED_IO_ENABLED (1U << 0)

/* Creates an RNN descriptor with nothing set; release it with cudnnDestroyRNNDescriptor(). */
cudnnStatus_t CUDNNWINAPI cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *rnnDesc);

/* Releases an RNN descriptor; NULL does nothing. */
cudnnStatus_t CUDNNWINAPI cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnnDesc);

/*
 * Describes a network.
 *   dataType, mathPrec  the type of data and weights, and the type it is computed in
 *   inputSize    I, the length of an input vector; hiddenSize: H, of a hidden state
 *   projSize     P, of a projected LSTM output, up to H; H means no projection
 *   numLayers    L; a bidirectional network has 2 L pseudo-layers
 *   dropoutDesc  applied between layers; may be NULL
 *   auxFlags     CUDNN_RNN_PADDED_IO_DISABLED or _ENABLED
 * BAD_PARAM for values out of range, NOT_SUPPORTED for a combination of types.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo, cudnnRNNMode_t cellMode,
    cudnnRNNBiasMode_t biasMode, cudnnDirectionMode_t dirMode, cudnnRNNInputMode_t inputMode,
    cudnnDataType_t dataType, cudnnDataType_t mathPrec, cudnnMathType_t mathType, int32_t inputSize,
    int32_t hiddenSize, int32_t projSize, int32_t numLayers, cudnnDropoutDescriptor_t dropoutDesc,
    uint32_t auxFlags);

/* Answers what an RNN descriptor holds. Pointers may be NULL for what is not wanted. */
cudnnStatus_t CUDNNWINAPI cudnnGetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t *algo, cudnnRNNMode_t *cellMode,
    cudnnRNNBiasMode_t *biasMode, cudnnDirectionMode_t *dirMode, cudnnRNNInputMode_t *inputMode,
    cudnnDataType_t *dataType, cudnnDataType_t *mathPrec, cudnnMathType_t *mathType,
    int32_t *inputSize, int32_t *hiddenSize, int32_t *projSize, int32_t *numLayers,
    cudnnDropoutDescriptor_t *dropoutDesc, uint32_t *auxFlags);

/* As cudnnRNNSetClip_v9(), and says what clipping makes of a NaN. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnRNNSetClip_v8(cudnnRNNDescriptor_t rnnDesc,
                                                              cudnnRNNClipMode_t clipMode,
                                                              cudnnNanPropagation_t clipNanOpt,
                                                              double lclip, double rclip);

/* Answers what cudnnRNNSetClip_v8() or _v9() was given. Pointers may be NULL. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnRNNGetClip_v8(cudnnRNNDescriptor_t rnnDesc,
                                                              cudnnRNNClipMode_t *clipMode,
                                                              cudnnNanPropagation_t *clipNanOpt,
                                                              double *lclip, double *rclip);

/*
 * Has the cell state of an LSTM clipped to lclip..rclip after each step, forward and in the
 * gradients. NaNs stay. BAD_PARAM where the descriptor is no LSTM's, or lclip > rclip, or a bound
 * is no number.
 */
cudnnStatus_t CUDNNWINAPI cudnnRNNSetClip_v9(cudnnRNNDescriptor_t rnnDesc,
                                             cudnnRNNClipMode_t clipMode, double lclip,
                                             double rclip);

/* Answers what cudnnRNNSetClip_v9() was given. Pointers may be NULL. */
cudnnStatus_t CUDNNWINAPI cudnnRNNGetClip_v9(cudnnRNNDescriptor_t rnnDesc,
                                             cudnnRNNClipMode_t *clipMode, double *lclip,
                                             double *rclip);

/*
 * Creates an RNN data descriptor with nothing set; release it with
 * cudnnDestroyRNNDataDescriptor().
 */
cudnnStatus_t CUDNNWINAPI cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *rnnDataDesc);

/* Releases an RNN data descriptor; NULL does nothing. */
cudnnStatus_t CUDNNWINAPI cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc);

/*
 * Describes a batch of sequences.
 *   maxSeqLength    T, at least the longest; batchSize: N; vectorSize: the length of a vector
 *   seqLengthArray  host memory, batchSize lengths from 0 to T; not increasing where packed
 *   paddingFill     host memory, one element that fills the padding of outputs; NULL leaves it
 *                   alone
 * BAD_PARAM for values out of range.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
                                                    cudnnDataType_t dataType,
                                                    cudnnRNNDataLayout_t layout, int maxSeqLength,
                                                    int batchSize, int vectorSize,
                                                    const int seqLengthArray[], void *paddingFill);

/* Answers what an RNN data descriptor holds; at most arrayLengthRequested lengths are written. */
cudnnStatus_t CUDNNWINAPI cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
                                                    cudnnDataType_t *dataType,
                                                    cudnnRNNDataLayout_t *layout, int *maxSeqLength,
                                                    int *batchSize, int *vectorSize,
                                                    int arrayLengthRequested, int seqLengthArray[],
                                                    void *paddingFill);

/* ---- Recurrent networks: sizes, weights, execution ------------------------------------------- */

/*
 * Compiles kernels for RNN_ALGO_PERSIST_DYNAMIC in cuDNN. WarpDNN compiles nothing at run time: it
 * only checks its arguments.
 */
cudnnStatus_t CUDNNWINAPI cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                               int miniBatch);

/*
 * The workspace of a forward or backward call, and the reserve space that carries what a training
 * pass leaves for its backward passes (0 for inference), for sequences as xDesc describes them.
 * Either pointer may be NULL.
 */
cudnnStatus_t CUDNNWINAPI cudnnGetRNNTempSpaceSizes(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
    cudnnRNNDataDescriptor_t xDesc, size_t *workSpaceSize, size_t *reserveSpaceSize);

/* The bytes of all weights and biases of a network, which lie in one buffer. */
cudnnStatus_t CUDNNWINAPI cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle,
                                                     cudnnRNNDescriptor_t rnnDesc,
                                                     size_t *weightSpaceSize);

/*
 * Finds one matrix and its bias inside the weight buffer.
 *   pseudoLayer     layer, or for bidirectional networks 2 * layer + direction
 *   linLayerID      the gate: its W in the order of the cell (LSTM i f g o: 0-3; GRU r i n: 0-2),
 *                   then its R in the same order; for LSTM 8 is the projection
 *   mDesc, mAddr    receive the matrix: 1, rows, columns; the address is NULL where there is none
 *   bDesc, bAddr    receive the bias: 1, rows, 1; likewise
 *   weightSpace     the buffer, or NULL: the addresses are then offsets
 * BAD_PARAM for ids out of range.
 */
cudnnStatus_t CUDNNWINAPI cudnnGetRNNWeightParams(cudnnHandle_t handle,
                                                  cudnnRNNDescriptor_t rnnDesc, int32_t pseudoLayer,
                                                  size_t weightSpaceSize, const void *weightSpace,
                                                  int32_t linLayerID, cudnnTensorDescriptor_t mDesc,
                                                  void **mAddr, cudnnTensorDescriptor_t bDesc,
                                                  void **bAddr);

/*
 * Runs the network over a batch of sequences, on the handle's stream.
 *   devSeqLengths  device memory, lengths as in the descriptors; may be NULL, as the latter serve
 *   x, y    input (vectors of I) and output (of P, times 2 where bidirectional) as described
 *   hDesc   2 L or L, N, P: initial hx (NULL for 0) and final hy (NULL where not wanted)
 *   cDesc   the same with H: cell states of an LSTM
 *   weightSpace, workSpace, reserveSpace  of the sizes that the queries answer; the reserve is
 *       NULL for inference
 * BAD_PARAM_SHAPE_MISMATCH, BAD_PARAM_SIZE_INSUFFICIENT, NOT_SUPPORTED for a combination of types.
 */
cudnnStatus_t CUDNNWINAPI cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                          cudnnForwardMode_t fwdMode, const int32_t devSeqLengths[],
                                          cudnnRNNDataDescriptor_t xDesc, const void *x,
                                          cudnnRNNDataDescriptor_t yDesc, void *y,
                                          cudnnTensorDescriptor_t hDesc, const void *hx, void *hy,
                                          cudnnTensorDescriptor_t cDesc, const void *cx, void *cy,
                                          size_t weightSpaceSize, const void *weightSpace,
                                          size_t workSpaceSize, void *workSpace,
                                          size_t reserveSpaceSize, void *reserveSpace);

/*
 * The gradients by input and initial states, after cudnnRNNForward() in training mode with the
 * same descriptors.
 *   y, dy          the forward output and its gradient; dx receives the input's
 *   dhy, dcy       gradients of the final states; NULL for 0
 *   dhx, dcx       receive the gradients of the initial states; NULL where not wanted
 *   reserveSpace   as the forward pass left it; it is changed, for cudnnRNNBackwardWeights_v8()
 */
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, const int32_t devSeqLengths[],
    cudnnRNNDataDescriptor_t yDesc, const void *y, const void *dy, cudnnRNNDataDescriptor_t xDesc,
    void *dx, cudnnTensorDescriptor_t hDesc, const void *hx, const void *dhy, void *dhx,
    cudnnTensorDescriptor_t cDesc, const void *cx, const void *dcy, void *dcx,
    size_t weightSpaceSize, const void *weightSpace, size_t workSpaceSize, void *workSpace,
    size_t reserveSpaceSize, void *reserveSpace);

/*
 * The gradients by weights and biases, added to dweightSpace, which is laid out like the weights.
 * Comes after cudnnRNNBackwardData_v8() with the same reserve space. addGrad must be
 * WGRAD_MODE_ADD: clear the buffer first.
 */
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnWgradMode_t addGrad,
    const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t xDesc, const void *x,
    cudnnTensorDescriptor_t hDesc, const void *hx, cudnnRNNDataDescriptor_t yDesc, const void *y,
    size_t weightSpaceSize, void *dweightSpace, size_t workSpaceSize, void *workSpace,
    size_t reserveSpaceSize, void *reserveSpace);

/* ---- Multi-head attention -------------------------------------------------------------------- */

/* The layout of a batch of beams of sequences, for multi-head attention. */
typedef struct cudnnSeqDataStruct *cudnnSeqDataDescriptor_t CUDNN_DEPRECATED;

/*
 * The parameters of multi-head attention: for each head i
 *   h_i = softmax(scale * (Wk_i k)' (Wq_i q)) applied to Wv_i v,  out = sum of Wo_i h_i
 * with biases where enabled. Formula: Vaswani and others, 2017.
 */
typedef struct cudnnAttnStruct *cudnnAttnDescriptor_t CUDNN_DEPRECATED;

/* How many axes sequence data has: time, batch, beam, vector. */
#define CUDNN_SEQDATA_DIM_COUNT 4

/* The places of the axes in dimA. */
typedef enum {
    CUDNN_SEQDATA_TIME_DIM = 0,
    CUDNN_SEQDATA_BATCH_DIM = 1,
    CUDNN_SEQDATA_BEAM_DIM = 2,
    CUDNN_SEQDATA_VECT_DIM = 3,
} cudnnSeqDataAxis_t;

/*
 * The flags of attnMode: whether the beams of a query share one key and value sequence or have one
 * each, and whether the projections have biases.
 */
#define CUDNN_ATTN_QUERYMAP_ALL_TO_ONE 0
#define CUDNN_ATTN_QUERYMAP_ONE_TO_ONE (1U << 0)
#define CUDNN_ATTN_DISABLE_PROJ_BIASES 0
#define CUDNN_ATTN_ENABLE_PROJ_BIASES (1U << 1)

/* How many kinds of weights there are. */
#define CUDNN_ATTN_WKIND_COUNT 8

/*
 * The weight and bias tensors that cudnnGetMultiHeadAttnWeights() finds: of the input projections
 * of queries, keys and values, and of the output projection.
 */
typedef enum {
    CUDNN_MH_ATTN_Q_WEIGHTS = 0,
    CUDNN_MH_ATTN_K_WEIGHTS = 1,
    CUDNN_MH_ATTN_V_WEIGHTS = 2,
    CUDNN_MH_ATTN_O_WEIGHTS = 3,
    CUDNN_MH_ATTN_Q_BIASES = 4,
    CUDNN_MH_ATTN_K_BIASES = 5,
    CUDNN_MH_ATTN_V_BIASES = 6,
    CUDNN_MH_ATTN_O_BIASES = 7,
} cudnnMultiHeadAttnWeightKind_t;

/*
 * Creates a sequence data descriptor with nothing set; release it with
 * cudnnDestroySeqDataDescriptor().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateSeqDataDescriptor(
    cudnnSeqDataDescriptor_t *seqDataDesc);

/* Releases a sequence data descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroySeqDataDescriptor(
    cudnnSeqDataDescriptor_t seqDataDesc);

/*
 * Describes packed sequences.
 *   nbDims  CUDNN_SEQDATA_DIM_COUNT
 *   dimA    the size of each axis, by cudnnSeqDataAxis_t
 *   axes    the order of the axes in memory, slowest first; the vector must be last
 *   seqLengthArray  host memory: the length of each sequence, batch * beam of them
 *   paddingFill     must be NULL
 * BAD_PARAM, NOT_SUPPORTED for a combination that has no meaning.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetSeqDataDescriptor(
    cudnnSeqDataDescriptor_t seqDataDesc, cudnnDataType_t dataType, int nbDims, const int dimA[],
    const cudnnSeqDataAxis_t axes[], size_t seqLengthArraySize, const int seqLengthArray[],
    void *paddingFill);

/*
 * Answers what a sequence data descriptor holds; at most nbDimsRequested sizes and axes and
 * seqLengthSizeRequested lengths are written.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetSeqDataDescriptor(
    const cudnnSeqDataDescriptor_t seqDataDesc, cudnnDataType_t *dataType, int *nbDims,
    int nbDimsRequested, int dimA[], cudnnSeqDataAxis_t axes[], size_t *seqLengthArraySize,
    size_t seqLengthSizeRequested, int seqLengthArray[], void *paddingFill);

/*
 * Creates an attention descriptor with nothing set; release it with cudnnDestroyAttnDescriptor().
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateAttnDescriptor(
    cudnnAttnDescriptor_t *attnDesc);

/* Releases an attention descriptor; NULL does nothing. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyAttnDescriptor(
    cudnnAttnDescriptor_t attnDesc);

/*
 * Describes multi-head attention.
 *   attnMode   CUDNN_ATTN_QUERYMAP_* | CUDNN_ATTN_*_PROJ_BIASES
 *   smScaler   the scale before the softmax, 0 or more
 *   attnDropoutDesc, postDropoutDesc  on the softmax and on the output; may be NULL
 *   qSize, kSize, vSize          lengths of the vectors that come in
 *   q-, k-, v-, oProjSize        lengths after the projections; 0 for none
 *   qoMaxSeqLength, kvMaxSeqLength, maxBatchSize, maxBeamSize  bounds for all later calls
 * BAD_PARAM for values out of range, NOT_SUPPORTED for a combination of types.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetAttnDescriptor(
    cudnnAttnDescriptor_t attnDesc, unsigned int attnMode, int nHeads, double smScaler,
    cudnnDataType_t dataType, cudnnDataType_t computePrec, cudnnMathType_t mathType,
    cudnnDropoutDescriptor_t attnDropoutDesc, cudnnDropoutDescriptor_t postDropoutDesc, int qSize,
    int kSize, int vSize, int qProjSize, int kProjSize, int vProjSize, int oProjSize,
    int qoMaxSeqLength, int kvMaxSeqLength, int maxBatchSize, int maxBeamSize);

/* Answers what an attention descriptor holds. Pointers may be NULL for what is not wanted. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetAttnDescriptor(
    cudnnAttnDescriptor_t attnDesc, unsigned int *attnMode, int *nHeads, double *smScaler,
    cudnnDataType_t *dataType, cudnnDataType_t *computePrec, cudnnMathType_t *mathType,
    cudnnDropoutDescriptor_t *attnDropoutDesc, cudnnDropoutDescriptor_t *postDropoutDesc,
    int *qSize, int *kSize, int *vSize, int *qProjSize, int *kProjSize, int *vProjSize,
    int *oProjSize, int *qoMaxSeqLength, int *kvMaxSeqLength, int *maxBatchSize, int *maxBeamSize);

/*
 * The sizes of weights, workspace and reserve space, for the bounds of the descriptor. With NULL
 * for the reserve space the workspace is that of inference.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetMultiHeadAttnBuffers(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc, size_t *weightSizeInBytes,
    size_t *workSpaceSizeInBytes, size_t *reserveSpaceSizeInBytes);

/*
 * Finds one kind of weights inside the weight buffer: wDesc receives heads, rows and columns with
 * their strides, wAddr the address (an offset where weights is NULL).
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetMultiHeadAttnWeights(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc,
    cudnnMultiHeadAttnWeightKind_t wKind, size_t weightSizeInBytes, const void *weights,
    cudnnTensorDescriptor_t wDesc, void **wAddr);

/*
 * Runs multi-head attention.
 *   currIdx   the time step to compute, for inference; -1 for all
 *   loWinIdx, hiWinIdx   host memory: for each query time step the keys from lo to below hi count
 *   devSeqLengthsQO, devSeqLengthsKV  device memory, the lengths of the sequences
 *   residuals  added to the output; may be NULL
 *   reserveSpace  NULL and 0 for inference
 * BAD_PARAM_SIZE_INSUFFICIENT, BAD_PARAM_SHAPE_MISMATCH, NOT_SUPPORTED for a combination of types.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnForward(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc, int currIdx, const int loWinIdx[],
    const int hiWinIdx[], const int devSeqLengthsQO[], const int devSeqLengthsKV[],
    const cudnnSeqDataDescriptor_t qDesc, const void *queries, const void *residuals,
    const cudnnSeqDataDescriptor_t kDesc, const void *keys, const cudnnSeqDataDescriptor_t vDesc,
    const void *values, const cudnnSeqDataDescriptor_t oDesc, void *out, size_t weightSizeInBytes,
    const void *weights, size_t workSpaceSizeInBytes, void *workSpace,
    size_t reserveSpaceSizeInBytes, void *reserveSpace);

/*
 * The gradients by queries, keys and values, after cudnnMultiHeadAttnForward() with a reserve
 * space, the same arguments and windows. The gradient of the residuals is dout itself.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnBackwardData(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc, const int loWinIdx[],
    const int hiWinIdx[], const int devSeqLengthsDQDO[], const int devSeqLengthsDKDV[],
    const cudnnSeqDataDescriptor_t doDesc, const void *dout, const cudnnSeqDataDescriptor_t dqDesc,
    void *dqueries, const void *queries, const cudnnSeqDataDescriptor_t dkDesc, void *dkeys,
    const void *keys, const cudnnSeqDataDescriptor_t dvDesc, void *dvalues, const void *values,
    size_t weightSizeInBytes, const void *weights, size_t workSpaceSizeInBytes, void *workSpace,
    size_t reserveSpaceSizeInBytes, void *reserveSpace);

/*
 * The gradients by weights and biases, added to or written to dweights as addGrad says; after
 * cudnnMultiHeadAttnBackwardData() with the same reserve space.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnBackwardWeights(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc, cudnnWgradMode_t addGrad,
    const cudnnSeqDataDescriptor_t qDesc, const void *queries, const cudnnSeqDataDescriptor_t kDesc,
    const void *keys, const cudnnSeqDataDescriptor_t vDesc, const void *values,
    const cudnnSeqDataDescriptor_t doDesc, const void *dout, size_t weightSizeInBytes,
    const void *weights, void *dweights, size_t workSpaceSizeInBytes, void *workSpace,
    size_t reserveSpaceSizeInBytes, void *reserveSpace);

/* ---- CTC loss -------------------------------------------------------------------------------- */

/* What the CTC loss takes as its input. */
typedef enum {
    CUDNN_LOSS_NORMALIZATION_NONE = 0,    /* probabilities */
    CUDNN_LOSS_NORMALIZATION_SOFTMAX = 1, /* activations; a softmax is applied first */
} cudnnLossNormalizationMode_t;

/*
 * Creates a CTC loss descriptor with nothing set; release it with cudnnDestroyCTCLossDescriptor().
 */
cudnnStatus_t CUDNNWINAPI cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t *ctcLossDesc);

/* Releases a CTC loss descriptor; NULL does nothing. */
cudnnStatus_t CUDNNWINAPI cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t ctcLossDesc);

/*
 * Sets the compute type, which must be float. The input is taken as probabilities, and the
 * gradients of samples whose loss is infinite are set to 0.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor(
    cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType);

/*
 * As cudnnSetCTCLossDescriptor(), and says whether the input is normalized, and what becomes of
 * the gradients of samples whose loss is infinite: NOT_PROPAGATE_NAN sets them to 0, PROPAGATE_NAN
 * leaves them alone.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptorEx(
    cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType,
    cudnnLossNormalizationMode_t normMode, cudnnNanPropagation_t gradMode);

/*
 * As cudnnSetCTCLossDescriptorEx(), and bounds the labels' length: needed for the calls ending in
 * _v8, which cannot see the labels.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor_v8(
    cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t compType,
    cudnnLossNormalizationMode_t normMode, cudnnNanPropagation_t gradMode, int maxLabelLength);

/*
 * As cudnnSetCTCLossDescriptor_v8(), with the treatment of infinite losses by its own enumeration.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                       cudnnDataType_t compType,
                                                       cudnnLossNormalizationMode_t normMode,
                                                       cudnnCTCGradMode_t ctcGradMode,
                                                       int maxLabelLength);

/* Answers what cudnnSetCTCLossDescriptor() was given. Pointers may be NULL. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor(
    cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t *compType);

/* Answers what cudnnSetCTCLossDescriptorEx() was given. Pointers may be NULL. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptorEx(
    cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t *compType,
    cudnnLossNormalizationMode_t *normMode, cudnnNanPropagation_t *gradMode);

/* Answers what cudnnSetCTCLossDescriptor_v8() was given. Pointers may be NULL. */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor_v8(
    cudnnCTCLossDescriptor_t ctcLossDesc, cudnnDataType_t *compType,
    cudnnLossNormalizationMode_t *normMode, cudnnNanPropagation_t *gradMode, int *maxLabelLength);

/* Answers what cudnnSetCTCLossDescriptor_v9() was given. Pointers may be NULL. */
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                       cudnnDataType_t *compType,
                                                       cudnnLossNormalizationMode_t *normMode,
                                                       cudnnCTCGradMode_t *ctcGradMode,
                                                       int *maxLabelLength);

/*
 * The workspace of cudnnCTCLoss(), with labels and lengths in host memory as there. gradientsDesc
 * may be NULL where only costs are wanted.
 */
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t probsDesc,
    const cudnnTensorDescriptor_t gradientsDesc, const int *labels, const int *labelLengths,
    const int *inputLengths, cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc,
    size_t *sizeInBytes);

/* The workspace of cudnnCTCLoss_v8(), for the longest labels that the descriptor allows. */
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossWorkspaceSize_v8(
    cudnnHandle_t handle, cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc,
    const cudnnTensorDescriptor_t probsDesc, const cudnnTensorDescriptor_t gradientsDesc,
    size_t *sizeInBytes);

/*
 * The negative logarithm of the probability that a network's output spells the labels, summed over
 * all alignments, and its gradient. Label 0 is the blank.
 *   probsDesc, probs          T, N, A: time, batch, alphabet; see cudnnLossNormalizationMode_t
 *   hostLabels                host memory: the labels of all samples, one after another
 *   hostLabelLengths, hostInputLengths  host memory, N of each; lengths up to T
 *   costs                     receives N losses
 *   gradientsDesc, gradients  receive the gradient by the input; NULL for costs only
 * BAD_PARAM for labels or lengths out of range, BAD_PARAM_SIZE_INSUFFICIENT. Formula: Graves,
 * Fernandez, Gomez and Schmidhuber, 2006.
 */
cudnnStatus_t CUDNNWINAPI cudnnCTCLoss(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t probsDesc, const void *probs,
    const int hostLabels[], const int hostLabelLengths[], const int hostInputLengths[], void *costs,
    const cudnnTensorDescriptor_t gradientsDesc, void *gradients, cudnnCTCLossAlgo_t algo,
    cudnnCTCLossDescriptor_t ctcLossDesc, void *workspace, size_t workSpaceSizeInBytes);

/*
 * As cudnnCTCLoss(), with labels and lengths in device memory, so that it can be captured. Lengths
 * are not checked on the host.
 */
cudnnStatus_t CUDNNWINAPI cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                                          cudnnCTCLossDescriptor_t ctcLossDesc,
                                          const cudnnTensorDescriptor_t probsDesc,
                                          const void *probs, const int labels[],
                                          const int labelLengths[], const int inputLengths[],
                                          void *costs, const cudnnTensorDescriptor_t gradientsDesc,
                                          void *gradients, size_t workSpaceSizeInBytes,
                                          void *workspace);

#if defined(__cplusplus)
}
#endif

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#pragma GCC visibility pop
#endif

#endif
