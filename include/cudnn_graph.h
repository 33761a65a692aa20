/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_graph.h - the ground floor of the API: version, status codes, handle, log, the types that
 * everything shares, and the backend API, which describes computations as graphs.
 *
 * Conventions of the whole API, which the single functions do not repeat:
 *
 * Status   A function answers SUCCESS, or a status as precise as possible with a text for
 *          cudnnGetLastErrorString(); then its outputs are untouched and nothing was started. Where
 *          a description names a category (BAD_PARAM), a finer code of it may be the answer. A
 *          pointer that must not be NULL and is gives BAD_PARAM_NULL_POINTER, a value outside its
 *          enumeration BAD_PARAM, a combination that no engine takes NOT_SUPPORTED.
 * Data     Pointers to tensors, filters, workspaces and reserve spaces are device pointers on a
 *          GPU handle and host pointers on a CPU handle. They are aligned to their elements (else
 *          BAD_PARAM_MISALIGNED_POINTER); workspaces best to 256 bytes. Descriptors, sizes and
 *          results of queries are in host memory.
 * Scaling  alpha and beta blend a result into what the output holds: out = alpha * result + beta *
 *          out. They point to host memory: to a double for double data, to a float for all other.
 *          With beta 0 the output is not read, so it may be uninitialised or NaN.
 * Order    On a GPU, work is put on the handle's stream and the call returns; data must stay valid
 *          until the stream has passed. Descriptors are read during the call alone. Nothing is
 *          allocated and nothing waits, so calls can be captured into CUDA graphs unless stated
 *          otherwise. On the CPU, calls are complete on return.
 * Threads  One thread at a time uses a handle or changes a descriptor; different ones are
 *          independent, and finished descriptors can be read by many threads. The last-error text
 *          belongs to the thread.
 * Repeats  The same call on the same data gives the same bits, on every run, unless the engine's
 *          notes or the algorithm's determinism say otherwise.
 * Strides  are counted in elements. Unless stated otherwise any strides are accepted, and an output
 *          may overlap an input only as described.
 */
#ifndef CUDNN_GRAPH_H_
#define CUDNN_GRAPH_H_

#include <stddef.h>
#include <stdint.h>

#include "cudnn_version.h"

/*
 * Types of the CUDA toolkit that appear in signatures. With a toolkit on the include path they come
 * from its headers; without one, or where WARPDNN_NO_CUDA_HEADERS is defined, compatible
 * declarations stand here, and the toolkit's own may still follow later in the same source file.
 * (library_types.h holds plain enums and nothing of the runtime, so it is used where it is found:
 * C has no way to declare an enum twice.)
 */
#if defined(__has_include)
#if __has_include(<library_types.h>)
#include <library_types.h>
#endif
#if !defined(WARPDNN_NO_CUDA_HEADERS)
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif
#endif
#endif

#if !defined(__DRIVER_TYPES_H__)
typedef struct CUstream_st *cudaStream_t;
typedef struct CUgraph_st *cudaGraph_t;
#endif

#if !defined(__LIBRARY_TYPES_H__)
typedef enum libraryPropertyType_t {
    MAJOR_VERSION = 0,
    MINOR_VERSION = 1,
    PATCH_LEVEL = 2
} libraryPropertyType;
#if !defined(__cplusplus)
typedef enum libraryPropertyType_t libraryPropertyType_t;
#endif
#endif

/* The calling convention of every function. */
#ifndef CUDNNWINAPI
#ifdef _WIN32
#define CUDNNWINAPI __stdcall
#else
#define CUDNNWINAPI
#endif
#endif

/*
 * Marks what cuDNN 9 regards as legacy. It is silent unless CUDNN_WARN_DEPRECATED is defined before
 * the first include. WarpDNN implements and maintains the legacy API like the rest.
 */
#if !defined(CUDNN_WARN_DEPRECATED)
#define CUDNN_DEPRECATED
#define CUDNN_DEPRECATED_ENUM
#elif defined(__GNUC__) || defined(__clang__)
#define CUDNN_DEPRECATED __attribute__((deprecated))
#define CUDNN_DEPRECATED_ENUM __attribute__((deprecated))
#elif defined(_MSC_VER)
#define CUDNN_DEPRECATED __declspec(deprecated)
#define CUDNN_DEPRECATED_ENUM __declspec(deprecated)
#else
#define CUDNN_DEPRECATED
#define CUDNN_DEPRECATED_ENUM
#endif

/* The level of this part of the API; all parts are released together. */
#define CUDNN_GRAPH_MAJOR 9
#define CUDNN_GRAPH_MINOR 19
#define CUDNN_GRAPH_PATCH 0
#if CUDNN_GRAPH_MAJOR != CUDNN_MAJOR || CUDNN_GRAPH_MINOR != CUDNN_MINOR ||                        \
    CUDNN_GRAPH_PATCH != CUDNN_PATCHLEVEL
#error "cudnn_graph.h and cudnn_version.h come from different releases"
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

/* ---- Version --------------------------------------------------------------------------------- */

/*
 * The API level that the library answers for, 91900 here, in the form of CUDNN_VERSION. Frameworks
 * choose features and workarounds by it, so WARPDNN_CUDNN_VERSION in the environment can replace
 * it. Any thread, no handle.
 */
size_t CUDNNWINAPI cudnnGetVersion(void);

/*
 * The newest architecture that this level of the API knows, as major * 100 + minor * 10 of its
 * compute capability (1210). A newer GPU may still work. Any thread, no handle.
 */
size_t CUDNNWINAPI cudnnGetMaxDeviceVersion(void);

/*
 * The CUDA version that the library was built for, in the form of CUDART_VERSION (13000 is 13.0);
 * 0 in a build without CUDA. It says nothing of the driver. Any thread, no handle.
 */
size_t CUDNNWINAPI cudnnGetCudartVersion(void);

/* ---- Status ---------------------------------------------------------------------------------- */

/*
 * What a call answers. The thousands are the category, the rest the precise reason: use the macros
 * below to take a status apart, for a later release may answer a finer code of the same category.
 * A function that fails has changed none of its outputs.
 */
typedef enum {
    /* 0: done */
    CUDNN_STATUS_SUCCESS = 0,

    /* 1000: the library or its surroundings */
    /* no usable device or driver; the text says what was found and needed */
    CUDNN_STATUS_NOT_INITIALIZED = 1001,
    CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
    CUDNN_STATUS_VERSION_MISMATCH CUDNN_DEPRECATED_ENUM = 1002, /* older name of the one above */
    CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH = 1003, /* a stored plan is from another version */
    CUDNN_STATUS_DEPRECATED = 1004,
    CUDNN_STATUS_LICENSE_ERROR = 1005, /* never answered by WarpDNN */
    CUDNN_STATUS_RUNTIME_IN_PROGRESS = 1006,
    CUDNN_STATUS_RUNTIME_FP_OVERFLOW = 1007,
    CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008, /* a module of the library could not be loaded */

    /* 2000: the caller's arguments */
    CUDNN_STATUS_BAD_PARAM = 2000,
    /* the name of BAD_PARAM before release 9 */
    CUDNN_STATUS_INVALID_VALUE CUDNN_DEPRECATED_ENUM = 2001,
    CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
    CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2003, /* not a multiple of the element size */
    CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004,      /* a backend descriptor is used too early */
    CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND = 2005,
    CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006, /* a buffer, workspace or count is too small */
    CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH = 2007,
    CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008, /* the shapes of two tensors do not fit */
    CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES = 2009,
    CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE = 2010, /* a backend attribute has another type */
    /* the CUDA graph was not made from this plan */
    CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH = 2011,
    CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE = 2012,

    /* 3000: legal, but no engine does it here */
    CUDNN_STATUS_NOT_SUPPORTED = 3000,
    CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN = 3001,
    CUDNN_STATUS_NOT_SUPPORTED_SHAPE = 3002,
    CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE = 3003,
    CUDNN_STATUS_NOT_SUPPORTED_LAYOUT = 3004,
    CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER = 3005,
    CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART = 3006,
    CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH = 3007,
    CUDNN_STATUS_ARCH_MISMATCH CUDNN_DEPRECATED_ENUM = 3007, /* older name of the one above */
    CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008,
    /* older name of the one above */
    CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING CUDNN_DEPRECATED_ENUM = 3008,
    CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE = 3009,
    CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT = 3010,
    CUDNN_STATUS_NOT_SUPPORTED_PADDING = 3011,
    CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM = 3012,
    CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API = 3013,
    CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE = 3014,

    /* 4000: a fault or a shortage inside */
    CUDNN_STATUS_INTERNAL_ERROR = 4000,
    CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED = 4001,
    CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE = 4002,
    CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,   /* out of host memory */
    CUDNN_STATUS_ALLOC_FAILED CUDNN_DEPRECATED_ENUM = 4003,      /* older name of the one above */
    CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004, /* out of device memory */
    CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM = 4005,
    CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED = 4006,
    CUDNN_STATUS_MAPPING_ERROR CUDNN_DEPRECATED_ENUM = 4006, /* older name of the one above */

    /* 5000: the device or a library below */
    CUDNN_STATUS_EXECUTION_FAILED = 5000,
    CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER = 5001, /* the text quotes the driver's error */
    CUDNN_STATUS_EXECUTION_FAILED_CUBLAS = 5002,
    CUDNN_STATUS_EXECUTION_FAILED_CUDART = 5003,
    CUDNN_STATUS_EXECUTION_FAILED_CURAND = 5004,
} cudnnStatus_t;

#define CUDNN_STATUS_FULL_ERROR_CODE(category, specific) ((cudnnStatus_t)((category) + (specific)))
#define CUDNN_STATUS_CATEGORY(status) ((status) / 1000 * 1000)
#define CUDNN_STATUS_SPECIFIC_ERROR(status) ((status) % 1000)

/*
 * The name of a status as written in this header, such as "CUDNN_STATUS_BAD_PARAM"; for a number
 * that is no status, a constant text that says so. Never NULL, never to be freed. Any thread.
 */
const char *CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t status);

/*
 * Copies the text of the calling thread's latest failure: the function, the argument, its value
 * and the rule that it breaks. Reading it clears it.
 *   message   receives at most max_size bytes, always ended by a 0; "" where nothing has failed;
 *             may be NULL
 *   max_size  in bytes; the text is cut to fit
 */
void CUDNNWINAPI cudnnGetLastErrorString(char *message, size_t max_size);

/*
 * One part of the version that cudnnGetVersion() answers.
 *   type   MAJOR_VERSION, MINOR_VERSION or PATCH_LEVEL
 *   value  receives it: 9, 19, 0
 * BAD_PARAM for any other type. Any thread, no handle.
 */
cudnnStatus_t CUDNNWINAPI cudnnGetProperty(libraryPropertyType type, int *value);

/*
 * Whether the parts of the library belong together. cuDNN's own is made of several libraries that
 * may be mixed up; WarpDNN is one, so it always answers SUCCESS. Any thread.
 */
cudnnStatus_t CUDNNWINAPI cudnnGraphVersionCheck(void);

/* ---- Handle ---------------------------------------------------------------------------------- */

struct cudnnContext;

/* A handle binds calls to one device, and there to a stream. See cudnnCreate(). */
typedef struct cudnnContext *cudnnHandle_t;

/*
 * Creates a handle. It belongs for life to the GPU whose CUDA context is current (to device 0's
 * primary context where none is), or to the CPU: WARPDNN_DEVICE=auto|gpu|cpu decides, and auto
 * takes the CPU only where there is no driver or no device.
 *   handle  receives the handle, on the default stream; release it with cudnnDestroy()
 * NOT_INITIALIZED where the device cannot be used: the text names what was found and what is
 * needed. Cheap, and safe from any thread; kernels are loaded when first used.
 */
cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t *handle);

/*
 * Releases a handle; NULL does nothing. Work that it has put on a stream, and CUDA graphs that
 * captured such work, stay valid and run on. Descriptors do not belong to a handle and live on as
 * well. No other thread may be using the handle.
 */
cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t handle);

/*
 * Puts all further work of the handle on a stream of its device.
 *   streamId  NULL for the default stream; it must outlive its use here. On a CPU handle any value
 *             is accepted and means nothing.
 * BAD_PARAM_STREAM_MISMATCH where the stream belongs to another context than the handle. Legal
 * while the stream is being captured: later calls become nodes of the captured graph.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId);

/* Answers the stream that cudnnSetStream() gave, NULL for the default stream and on the CPU. */
cudnnStatus_t CUDNNWINAPI cudnnGetStream(cudnnHandle_t handle, cudaStream_t *streamId);

typedef struct cudnnRuntimeTag_t cudnnRuntimeTag_t CUDNN_DEPRECATED;

/* How cudnnQueryRuntimeError() looks. */
typedef enum {
    CUDNN_ERRQUERY_RAWCODE = 0,     /* read what is there, whatever the stream does */
    CUDNN_ERRQUERY_NONBLOCKING = 1, /* answer RUNTIME_IN_PROGRESS while the stream is busy */
    CUDNN_ERRQUERY_BLOCKING = 2,    /* wait for the stream first */
} cudnnErrQueryMode_t;

/*
 * Asks for errors that kernels of cuDNN report after a call has returned, such as an overflow in
 * persistent batch normalization.
 *   rstatus  receives the status found, SUCCESS where there is none
 *   mode     whether to wait for the handle's work first
 *   tag      reserved, NULL
 * WarpDNN's kernels report nothing that way, so *rstatus is SUCCESS at once, in any mode; failures
 * of the device appear in the next call that meets them.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnQueryRuntimeError(cudnnHandle_t handle,
                                                                  cudnnStatus_t *rstatus,
                                                                  cudnnErrQueryMode_t mode,
                                                                  cudnnRuntimeTag_t *tag);

/* ---- Log ------------------------------------------------------------------------------------- */

/* How grave a log message is. cudnnSetCallback() takes a mask of the three below FATAL. */
typedef enum {
    CUDNN_SEV_FATAL = 0,
    CUDNN_SEV_ERROR = 1,   /* a call has failed */
    CUDNN_SEV_WARNING = 2, /* it works, but not as well as it could */
    CUDNN_SEV_INFO = 3,    /* what is called, and which engine runs */
} cudnnSeverity_t;

#define CUDNN_SEV_ERROR_EN (1U << CUDNN_SEV_ERROR)
#define CUDNN_SEV_WARNING_EN (1U << CUDNN_SEV_WARNING)
#define CUDNN_SEV_INFO_EN (1U << CUDNN_SEV_INFO)

/* What a log message is about. Filled for each message, valid during the callback only. */
typedef struct cudnnDebugStruct {
    unsigned int cudnn_version; /* as cudnnGetVersion() answers */
    cudnnStatus_t cudnnStatus;  /* the status of the call, where the message is of a failure */
    unsigned int time_sec;      /* since 1970, UTC */
    unsigned int time_usec;     /* the fraction, in microseconds */
    unsigned int time_delta;    /* seconds since the library was first used */
    cudnnHandle_t handle;       /* the handle, or NULL */
    cudaStream_t stream;        /* its stream, or NULL */
    unsigned long long pid;     /* process id */
    unsigned long long tid;     /* thread id */
    int cudaDeviceId;           /* the device's ordinal, -1 for none */
    int reserved[15];           /* 0 */
} cudnnDebug_t;

/*
 * Receives log messages: their severity, the pointer given to cudnnSetCallback(), the
 * circumstances, and the text, which ends with a 0 and is valid during the call. It runs on the
 * thread that made the API call, must be safe for threads, and must not call into the library.
 */
typedef void (*cudnnCallback_t)(cudnnSeverity_t severity, void *udata, const cudnnDebug_t *dbg,
                                const char *message);

/*
 * Has log messages delivered to a function, in addition to the destination of CUDNN_LOGDEST_DBG;
 * one callback a process.
 *   mask   CUDNN_SEV_ERROR_EN, CUDNN_SEV_WARNING_EN or CUDNN_SEV_INFO_EN; a level brings those
 *          above it, and errors always come
 *   udata  handed to every call, may be NULL
 *   fptr   the function; NULL removes it
 * Any thread, no handle. Messages under way on other threads may still reach the old callback.
 */
cudnnStatus_t CUDNNWINAPI cudnnSetCallback(unsigned int mask, void *udata, cudnnCallback_t fptr);

/*
 * Answers what cudnnSetCallback() was last given, the mask with the levels that it brings; a mask
 * of 0 and NULLs where it never was. A NULL argument is refused with BAD_PARAM. Any thread, no
 * handle.
 */
cudnnStatus_t CUDNNWINAPI cudnnGetCallback(unsigned int *mask, void **udata, cudnnCallback_t *fptr);

/* ---- Shared types ---------------------------------------------------------------------------- */

/* The most dimensions that a tensor can have, batch and channels included. */
#define CUDNN_DIM_MAX 8

/*
 * The type of an element in memory, or of an intermediate result (a compute type). Sub-byte types
 * are packed two to a byte, the first element in the low four bits.
 */
typedef enum {
    CUDNN_DATA_FLOAT = 0,  /* fp32: IEEE 754 binary32 */
    CUDNN_DATA_DOUBLE = 1, /* fp64: IEEE 754 binary64 */
    CUDNN_DATA_HALF = 2,   /* fp16: IEEE 754 binary16 */
    CUDNN_DATA_INT8 = 3,
    CUDNN_DATA_INT32 = 4,
    CUDNN_DATA_INT8x4 CUDNN_DEPRECATED_ENUM = 5, /* int8, 4 channels to a vector (NCHW_VECT_C) */
    CUDNN_DATA_UINT8 = 6,
    CUDNN_DATA_UINT8x4 CUDNN_DEPRECATED_ENUM = 7, /* uint8, 4 channels to a vector (NCHW_VECT_C) */
    CUDNN_DATA_INT8x32 CUDNN_DEPRECATED_ENUM = 8, /* int8, 32 channels to a vector (NCHW_VECT_C) */
    CUDNN_DATA_BFLOAT16 = 9,                      /* bf16: the upper half of fp32 */
    CUDNN_DATA_INT64 = 10,
    CUDNN_DATA_BOOLEAN = 11,            /* 1 byte, 0 or 1 */
    CUDNN_DATA_FP8_E4M3 = 12,           /* 4 exponent bits, no infinity, largest 448 */
    CUDNN_DATA_FP8_E5M2 = 13,           /* 5 exponent bits, largest 57344 */
    CUDNN_DATA_FAST_FLOAT_FOR_FP8 = 14, /* compute type: fp32, may be accumulated in fewer bits */
    CUDNN_DATA_FP8_E8M0 = 15,           /* a power of two; scales of blocks */
    CUDNN_DATA_FP4_E2M1 = 16,           /* values 0 0.5 1 1.5 2 3 4 6 and their negatives */
    CUDNN_DATA_INT4 = 17,               /* -8 to 7 */
    CUDNN_DATA_UINT4 = 18,              /* 0 to 15 */
    CUDNN_DATA_UINT32 = 19,
    CUDNN_DATA_COMPLEX_FP32 = 20, /* two fp32: real, imaginary */
    CUDNN_DATA_COMPLEX_FP64 = 21, /* two fp64: real, imaginary */
} cudnnDataType_t;

/*
 * Which arithmetic a legacy operation may use. A graph has no math type; its engines say in their
 * numerical notes what they do.
 */
typedef enum {
    CUDNN_DEFAULT_MATH = 0,   /* tensor cores where exact for the type; tf32 for fp32 data */
    CUDNN_TENSOR_OP_MATH = 1, /* tensor cores allowed */
    CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2, /* and fp32 data may be rounded to fp16 */
    CUDNN_FMA_MATH = 3,                        /* no tensor cores, no tf32 */
} cudnnMathType_t;

/* What maximum, minimum and rectifiers make of a NaN. */
typedef enum {
    CUDNN_NOT_PROPAGATE_NAN CUDNN_DEPRECATED_ENUM = 0, /* a NaN loses every comparison */
    CUDNN_PROPAGATE_NAN CUDNN_DEPRECATED_ENUM = 1,     /* a NaN input gives a NaN output */
} cudnnNanPropagation_t;

/*
 * The order of a 4-D tensor's dimensions in memory, slowest first; the dimensions themselves are
 * always counted N, C, H, W. With more dimensions the spatial ones stand in place of H and W.
 */
typedef enum {
    CUDNN_TENSOR_NCHW = 0,        /* strides (C*H*W, H*W, W, 1) */
    CUDNN_TENSOR_NHWC = 1,        /* strides (H*W*C, 1, W*C, C) */
    CUDNN_TENSOR_NCHW_VECT_C = 2, /* NCHW of vectors of 4 or 32 channels */
} cudnnTensorFormat_t;

/* Whether an int8x32 filter and its bias go through the order that some kernels of cuDNN want. */
typedef enum {
    CUDNN_DEFAULT_REORDER = 0, /* they are in the natural order */
    CUDNN_NO_REORDER = 1,      /* cudnnReorderFilterAndBias() has been applied */
} cudnnReorderType_t CUDNN_DEPRECATED;

/* Which way the filter runs over the input. */
typedef enum {
    CUDNN_CONVOLUTION = 0,       /* flipped in all spatial dimensions: x[p + R-1 - r] */
    CUDNN_CROSS_CORRELATION = 1, /* as deep learning means it: x[p + r] */
} cudnnConvolutionMode_t;

/* y = f(x) of cudnnSetActivationDescriptor(), whose coefficient is called coef here. */
typedef enum {
    CUDNN_ACTIVATION_SIGMOID = 0,      /* 1 / (1 + exp(-x)) */
    CUDNN_ACTIVATION_RELU = 1,         /* max(0, x) */
    CUDNN_ACTIVATION_TANH = 2,         /* tanh(x) */
    CUDNN_ACTIVATION_CLIPPED_RELU = 3, /* min(max(0, x), coef) */
    CUDNN_ACTIVATION_ELU = 4,          /* x > 0 ? x : coef * (exp(x) - 1) */
    CUDNN_ACTIVATION_IDENTITY = 5,     /* x; for fused convolutions only */
    CUDNN_ACTIVATION_SWISH = 6,        /* x / (1 + exp(-beta * x)), beta is set on its own */
} cudnnActivationMode_t CUDNN_DEPRECATED;

/* How the elements a_i that fall on one output element become its value. */
typedef enum {
    CUDNN_REDUCE_TENSOR_ADD = 0, /* sum of a_i */
    CUDNN_REDUCE_TENSOR_MUL = 1, /* product of a_i */
    CUDNN_REDUCE_TENSOR_MIN = 2,
    CUDNN_REDUCE_TENSOR_MAX = 3,
    CUDNN_REDUCE_TENSOR_AMAX = 4,         /* maximum of |a_i| */
    CUDNN_REDUCE_TENSOR_AVG = 5,          /* sum / count */
    CUDNN_REDUCE_TENSOR_NORM1 = 6,        /* sum of |a_i| */
    CUDNN_REDUCE_TENSOR_NORM2 = 7,        /* square root of the sum of squares */
    CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS = 8, /* product of the a_i that are not 0 */
} cudnnReduceTensorOp_t;

/*
 * The gradient of a sample whose labels cannot fit into its time steps, so that its loss is
 * infinite.
 */
typedef enum {
    CUDNN_CTC_ZERO_OOB_GRADIENTS = 0, /* is set to 0 */
    CUDNN_CTC_SKIP_OOB_GRADIENTS = 1, /* is left as the buffer was */
} cudnnCTCGradMode_t;

/* A rational number; pooling windows and strides of the backend API are given so. */
typedef struct cudnnFractionStruct {
    int64_t numerator;
    int64_t denominator;
} cudnnFraction_t;

/* ---- Backend API ----------------------------------------------------------------------------- */

/* A node of the backend API: a set of typed attributes. Made by cudnnBackendCreateDescriptor(). */
typedef void *cudnnBackendDescriptor_t;

/*
 * What a backend descriptor describes: things of the graph (tensors, operations and their
 * parameters), of the choice (engines, configurations, heuristics), or of the run (plans, variant
 * packs).
 */
typedef enum {
    CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
    CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1,
    CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
    CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
    CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
    CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
    CUDNN_BACKEND_INTERMEDIATE_INFO_DESCRIPTOR = 6,
    CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR = 7,
    CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR = 8,
    CUDNN_BACKEND_LAYOUT_INFO_DESCRIPTOR = 9,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
    CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
    CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR = 14,
    CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
    CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
    CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
    CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18,
    CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
    CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR = 20,
    CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21,
    CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
    CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR = 23,
    CUDNN_BACKEND_RESAMPLE_DESCRIPTOR = 24,
    CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR = 25,
    CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR = 26,
    CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR = 27,
    CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR = 28,
    CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR = 29,
    CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR = 30,
    CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31,
    CUDNN_BACKEND_RNG_DESCRIPTOR = 32,
    CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR = 33,
    CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR = 34,
    CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR = 35,
    CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR = 36,
    CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR = 37,
    CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR = 38,
    CUDNN_BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR = 39,
    CUDNN_BACKEND_OPERATION_CONTRACT_BAND_MATRIX_DESCRIPTOR = 40,
    CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR = 41,
    CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR = 42,
    CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR = 43,
} cudnnBackendDescriptorType_t;

/*
 * The C type of an attribute's elements, as they lie behind arrayOfElements. The enumerations are
 * passed as themselves.
 */
typedef enum {
    CUDNN_TYPE_HANDLE = 0,                                 /* cudnnHandle_t */
    CUDNN_TYPE_DATA_TYPE = 1,                              /* cudnnDataType_t */
    CUDNN_TYPE_BOOLEAN = 2,                                /* bool */
    CUDNN_TYPE_INT64 = 3,                                  /* int64_t */
    CUDNN_TYPE_FLOAT = 4,                                  /* float */
    CUDNN_TYPE_DOUBLE = 5,                                 /* double */
    CUDNN_TYPE_VOID_PTR = 6,                               /* void * */
    CUDNN_TYPE_CONVOLUTION_MODE = 7,                       /* cudnnConvolutionMode_t */
    CUDNN_TYPE_HEUR_MODE = 8,                              /* cudnnBackendHeurMode_t */
    CUDNN_TYPE_KNOB_TYPE = 9,                              /* cudnnBackendKnobType_t */
    CUDNN_TYPE_NAN_PROPOGATION CUDNN_DEPRECATED_ENUM = 10, /* cudnnNanPropagation_t */
    CUDNN_TYPE_NUMERICAL_NOTE = 11,                        /* cudnnBackendNumericalNote_t */
    CUDNN_TYPE_LAYOUT_TYPE = 12,                           /* cudnnBackendLayoutType_t */
    CUDNN_TYPE_ATTRIB_NAME = 13,                           /* cudnnBackendAttributeName_t */
    CUDNN_TYPE_POINTWISE_MODE = 14,                        /* cudnnPointwiseMode_t */
    CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,                    /* cudnnBackendDescriptor_t */
    CUDNN_TYPE_GENSTATS_MODE = 16,                         /* cudnnGenStatsMode_t */
    CUDNN_TYPE_BN_FINALIZE_STATS_MODE = 17,                /* cudnnBnFinalizeStatsMode_t */
    CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18,               /* cudnnReduceTensorOp_t */
    CUDNN_TYPE_BEHAVIOR_NOTE = 19,                         /* cudnnBackendBehaviorNote_t */
    CUDNN_TYPE_TENSOR_REORDERING_MODE = 20,                /* cudnnBackendTensorReordering_t */
    CUDNN_TYPE_RESAMPLE_MODE = 21,                         /* cudnnResampleMode_t */
    CUDNN_TYPE_PADDING_MODE = 22,                          /* cudnnPaddingMode_t */
    CUDNN_TYPE_INT32 = 23,                                 /* int32_t */
    CUDNN_TYPE_CHAR = 24,                                  /* char */
    CUDNN_TYPE_SIGNAL_MODE = 25,                           /* cudnnSignalMode_t */
    CUDNN_TYPE_FRACTION = 26,                              /* cudnnFraction_t */
    CUDNN_TYPE_NORM_MODE = 27,                             /* cudnnBackendNormMode_t */
    CUDNN_TYPE_NORM_FWD_PHASE = 28,                        /* cudnnBackendNormFwdPhase_t */
    CUDNN_TYPE_RNG_DISTRIBUTION = 29,                      /* cudnnRngDistribution_t */
    CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE = 30,               /* cudnnMoeGroupedMatmulMode_t */
} cudnnBackendAttributeType_t;

/*
 * The attributes, by the descriptor that they belong to. Behind each stands its type and count as
 * for cudnnBackendSetAttribute() (in) and cudnnBackendGetAttribute() (out), the count where it is
 * not 1: INT64 x n means n elements of CUDNN_TYPE_INT64. Attributes named *DESC take a finalized
 * descriptor.
 */
typedef enum {
    /* POINTWISE descriptor: a mode and its parameters */
    CUDNN_ATTR_POINTWISE_MODE = 0,                                  /* in: POINTWISE_MODE */
    CUDNN_ATTR_POINTWISE_MATH_PREC = 1,                             /* in: DATA_TYPE */
    CUDNN_ATTR_POINTWISE_NAN_PROPAGATION CUDNN_DEPRECATED_ENUM = 2, /* in: NAN_PROPOGATION */
    CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP = 3,                       /* in: DOUBLE */
    CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP = 4,                       /* in: DOUBLE */
    CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE = 5,                 /* in: DOUBLE */
    CUDNN_ATTR_POINTWISE_ELU_ALPHA = 6,                             /* in: DOUBLE */
    CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA = 7,                         /* in: DOUBLE */
    CUDNN_ATTR_POINTWISE_SWISH_BETA = 8,                            /* in: DOUBLE */
    CUDNN_ATTR_POINTWISE_AXIS = 9,                                  /* in: INT64 */

    /* CONVOLUTION descriptor; one entry a spatial dimension */
    CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100,      /* in: DATA_TYPE */
    CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101,      /* in: CONVOLUTION_MODE */
    CUDNN_ATTR_CONVOLUTION_DILATIONS = 102,      /* in: INT64 x n */
    CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103, /* in: INT64 x n */
    CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104,  /* in: INT64 x n */
    CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105,   /* in: INT64 x n */
    CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106,   /* in: INT64 */

    /* ENGINEHEUR descriptor: candidates for a graph */
    CUDNN_ATTR_ENGINEHEUR_MODE = 200,            /* in: HEUR_MODE */
    CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,         /* out: BACKEND_DESCRIPTOR x n */
    CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET = 203, /* in: INT32; a hint, no effect */
    CUDNN_ATTR_ENGINEHEUR_DEVICEPROP = 204,      /* in: BACKEND_DESCRIPTOR */

    /* ENGINECFG descriptor: an engine with its knobs turned */
    CUDNN_ATTR_ENGINECFG_ENGINE = 300,             /* in, out: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO = 301,  /* out: BACKEND_DESCRIPTOR x n */
    CUDNN_ATTR_ENGINECFG_KNOB_CHOICES = 302,       /* in, out: BACKEND_DESCRIPTOR x n */
    CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE = 303,     /* out: INT64 */
    CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED = 304, /* out: INT32 */

    /* EXECUTION_PLAN descriptor: what is executed. RUN_ONLY_INTERMEDIATE_UIDS is kept and read back,
     * but without effect: our plans compute no intermediate that could be run alone (COMPUTED_ is
     * empty), so every execution runs the whole plan. */
    CUDNN_ATTR_EXECUTION_PLAN_HANDLE CUDNN_DEPRECATED_ENUM = 400, /* in: HANDLE */
    CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,                /* in, out: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,               /* out: INT64 */
    CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS = 403,   /* out: INT64 x n */
    CUDNN_ATTR_EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS = 404,   /* in: INT64 x n */
    CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION = 405,          /* in, out: CHAR x n */
    CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE = 406,                 /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP = 407,                   /* in: BACKEND_DESCRIPTOR */

    /* INTERMEDIATE_INFO descriptor */
    CUDNN_ATTR_INTERMEDIATE_INFO_UNIQUE_ID = 500,            /* out: INT64 */
    CUDNN_ATTR_INTERMEDIATE_INFO_SIZE = 501,                 /* out: INT64 */
    CUDNN_ATTR_INTERMEDIATE_INFO_DEPENDENT_DATA_UIDS = 502,  /* out: INT64 x n */
    CUDNN_ATTR_INTERMEDIATE_INFO_DEPENDENT_ATTRIBUTES = 503, /* out: ATTRIB_NAME x n */

    /* KNOB_CHOICE descriptor: a knob turned */
    CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE = 600,  /* in, out: KNOB_TYPE */
    CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE = 601, /* in, out: INT64 */

    /* OPERATION_CONVOLUTION_FORWARD: y = alpha * conv(x, w) + beta * y */
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,     /* in: FLOAT */
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701,      /* in: FLOAT */
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,         /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_CONVOLUTION_BACKWARD_DATA: dx = alpha * gradient + beta * dx */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,     /* in: FLOAT */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707,      /* in: FLOAT */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,        /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_CONVOLUTION_BACKWARD_FILTER: dw = alpha * gradient + beta * dw */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,     /* in: FLOAT */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713,      /* in: FLOAT */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,        /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_POINTWISE: y = f(alpha1 * x, alpha2 * b, t); DX, DY for gradients */
    CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1 = 754,        /* in: FLOAT */
    CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2 = 755,        /* in: FLOAT */
    CUDNN_ATTR_OPERATION_POINTWISE_DXDESC = 756,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_POINTWISE_DYDESC = 757,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758,         /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_GEN_STATS: sums over a tensor */
    CUDNN_ATTR_OPERATION_GENSTATS_MODE = 770,      /* in: GENSTATS_MODE */
    CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC = 771, /* in: DATA_TYPE */
    CUDNN_ATTR_OPERATION_GENSTATS_XDESC = 772,     /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC = 773,   /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC = 774, /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_BN_FINALIZE_STATISTICS: sums become statistics, scale and bias */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE = 780,             /* in: BN_FINALIZE_STATS_MODE */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC = 781,              /* in: DATA_TYPE */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC = 782,             /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC = 783,          /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC = 784,             /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC = 785,              /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC = 786, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC = 787,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC = 788, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC = 789,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC = 790,           /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC = 791,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC = 792,             /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC = 793,              /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC = 794,          /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC = 795,              /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC = 796,   /* in: BACKEND_DESCRIPTOR */

    /* OPERATIONGRAPH descriptor: what is to be computed */
    CUDNN_ATTR_OPERATIONGRAPH_HANDLE CUDNN_DEPRECATED_ENUM = 800, /* in: HANDLE */
    CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,                          /* in: BACKEND_DESCRIPTOR x n */
    CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT = 802,          /* out: INT64 */
    CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED = 803,     /* in: BOOLEAN */
    CUDNN_ATTR_OPERATIONGRAPH_IS_SAME_TOPOLOGY = 804,             /* in: BOOLEAN */

    /* TENSOR descriptor; dimensions and strides in elements */
    CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,       /* in: INT64 */
    CUDNN_ATTR_TENSOR_DATA_TYPE = 901,            /* in: DATA_TYPE */
    CUDNN_ATTR_TENSOR_DIMENSIONS = 902,           /* in, out: INT64 x n */
    CUDNN_ATTR_TENSOR_STRIDES = 903,              /* in: INT64 x n */
    CUDNN_ATTR_TENSOR_VECTOR_COUNT = 904,         /* in: INT64 */
    CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION = 905, /* in: INT64 */
    CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,            /* in: INT64 */
    CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,           /* in: BOOLEAN */
    CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,          /* in: BOOLEAN */
    CUDNN_ATTR_TENSOR_REORDERING_MODE = 909,      /* in: TENSOR_REORDERING_MODE */
    CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC = 913,   /* in: BACKEND_DESCRIPTOR x n */

    /* VARIANT_PACK descriptor: what a run works on */
    CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,          /* in: INT64 x n */
    CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,       /* in: VOID_PTR x n */
    CUDNN_ATTR_VARIANT_PACK_INTERMEDIATES = 1002,       /* in: VOID_PTR x n */
    CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,           /* in: VOID_PTR */
    CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS = 1010, /* in: INT64 x n */
    CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES = 1011,     /* in: VOID_PTR */
    CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES = 1012,    /* in: VOID_PTR */

    /* LAYOUT_INFO descriptor: what an engine likes */
    CUDNN_ATTR_LAYOUT_INFO_TENSOR_UID = 1100, /* out: INT64 */
    CUDNN_ATTR_LAYOUT_INFO_TYPES = 1101,      /* out: LAYOUT_TYPE x n */

    /* KNOB_INFO descriptor: a knob and its range */
    CUDNN_ATTR_KNOB_INFO_TYPE = 1200,          /* out: KNOB_TYPE */
    CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE = 1201, /* out: INT64 */
    CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE = 1202, /* out: INT64 */
    CUDNN_ATTR_KNOB_INFO_STRIDE = 1203,        /* out: INT64 */

    /* ENGINE descriptor: one way to compute a graph */
    CUDNN_ATTR_ENGINE_OPERATION_GRAPH = 1300,             /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301,                /* in, out: INT64 */
    CUDNN_ATTR_ENGINE_KNOB_INFO = 1302,                   /* out: BACKEND_DESCRIPTOR x n */
    CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,              /* out: NUMERICAL_NOTE x n */
    CUDNN_ATTR_ENGINE_LAYOUT_INFO = 1304,                 /* out: BACKEND_DESCRIPTOR x n */
    CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE = 1305,               /* out: BEHAVIOR_NOTE x n */
    CUDNN_ATTR_ENGINE_SM_COUNT_TARGET = 1306,             /* in: INT32; a hint, no effect */
    CUDNN_ATTR_ENGINE_DEVICEPROP = 1307,                  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_ENGINE_DISABLE_CLUSTER_COOPERATIVE = 1308, /* in: BOOLEAN */

    /* MATMUL descriptor */
    CUDNN_ATTR_MATMUL_COMP_TYPE = 1500,     /* in: DATA_TYPE */
    CUDNN_ATTR_MATMUL_PADDING_VALUE = 1503, /* in: DOUBLE */

    /* OPERATION_MATMUL: C = A * B, batched */
    CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523,  /* in: BACKEND_DESCRIPTOR */
    /* in: INT64 */
    CUDNN_ATTR_OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT CUDNN_DEPRECATED_ENUM = 1524,
    CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC = 1525, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC = 1526, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC = 1527, /* in: BACKEND_DESCRIPTOR */

    /* REDUCTION descriptor */
    CUDNN_ATTR_REDUCTION_OPERATOR = 1600,         /* in: REDUCTION_OPERATOR_TYPE */
    CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601,        /* in: DATA_TYPE */
    CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC = 1602, /* in: BOOLEAN */

    /* OPERATION_REDUCTION: y is x reduced where its size is 1 */
    CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612,  /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_BN_BWD_WEIGHTS: gradients of scale and bias, and coefficients for that of x */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC = 1620,        /* in: DATA_TYPE */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC = 1621,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC = 1622,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC = 1623,    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC = 1624,           /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC = 1625,          /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC = 1626,   /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC = 1627,    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC = 1628, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC = 1629,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS = 1630,          /* in: BACKEND_DESCRIPTOR */

    /* RESAMPLE descriptor; one entry a spatial dimension */
    CUDNN_ATTR_RESAMPLE_MODE = 1700,            /* in: RESAMPLE_MODE */
    CUDNN_ATTR_RESAMPLE_COMP_TYPE = 1701,       /* in: DATA_TYPE */
    CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS = 1702,    /* in: INT64 */
    CUDNN_ATTR_RESAMPLE_POST_PADDINGS = 1703,   /* in: FRACTION x n */
    CUDNN_ATTR_RESAMPLE_PRE_PADDINGS = 1704,    /* in: FRACTION x n */
    CUDNN_ATTR_RESAMPLE_STRIDES = 1705,         /* in: FRACTION x n */
    CUDNN_ATTR_RESAMPLE_WINDOW_DIMS = 1706,     /* in: FRACTION x n */
    CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION = 1707, /* in: NAN_PROPOGATION */
    CUDNN_ATTR_RESAMPLE_PADDING_MODE = 1708,    /* in: PADDING_MODE */

    /* OPERATION_RESAMPLE_FWD: pooling and interpolation */
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC = 1710,   /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC = 1711,   /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC = 1712, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA CUDNN_DEPRECATED_ENUM = 1713, /* in: DOUBLE */
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA CUDNN_DEPRECATED_ENUM = 1714,  /* in: DOUBLE */
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC = 1716, /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_RESAMPLE_BWD: their gradients */
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC = 1720,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC = 1721,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC = 1722, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA CUDNN_DEPRECATED_ENUM = 1723, /* in: DOUBLE */
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA CUDNN_DEPRECATED_ENUM = 1724,  /* in: DOUBLE */
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC = 1725,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC = 1726, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_YDESC = 1727, /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_CONCAT: tensors one behind another */
    CUDNN_ATTR_OPERATION_CONCAT_AXIS = 1800,          /* in: INT64 */
    CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS = 1801,   /* in: BACKEND_DESCRIPTOR x n */
    CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX = 1802, /* in: INT64 */
    CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC = 1803,   /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_SIGNAL: a flag between kernels */
    CUDNN_ATTR_OPERATION_SIGNAL_MODE = 1900,     /* in: SIGNAL_MODE */
    CUDNN_ATTR_OPERATION_SIGNAL_FLAGDESC = 1901, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SIGNAL_VALUE = 1902,    /* in: INT64 */
    CUDNN_ATTR_OPERATION_SIGNAL_XDESC = 1903,    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SIGNAL_YDESC = 1904,    /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_PAGED_CACHE_LOAD: keys or values gathered from pages */
    CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC = 1950,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC = 1951,           /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC = 1952,   /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC = 1953, /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_NORM_FORWARD; modes in cudnnBackendNormMode_t */
    CUDNN_ATTR_OPERATION_NORM_FWD_MODE = 2000,                     /* in: NORM_MODE */
    CUDNN_ATTR_OPERATION_NORM_FWD_PHASE = 2001,                    /* in: NORM_FWD_PHASE */
    CUDNN_ATTR_OPERATION_NORM_FWD_XDESC = 2002,                    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC = 2003,                /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC = 2004,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC = 2005,               /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC = 2006,                /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC = 2007,             /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC = 2008,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC = 2009,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC = 2010,   /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC = 2011, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC = 2012,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_YDESC = 2013,                    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS = 2014,          /* in: BACKEND_DESCRIPTOR x n */

    /* OPERATION_NORM_BACKWARD */
    CUDNN_ATTR_OPERATION_NORM_BWD_MODE = 2100,              /* in: NORM_MODE */
    CUDNN_ATTR_OPERATION_NORM_BWD_XDESC = 2101,             /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC = 2102,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC = 2103, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC = 2104,            /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC = 2105,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC = 2106,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC = 2107,       /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC = 2108,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC = 2109,            /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS = 2110,   /* in: BACKEND_DESCRIPTOR x n */

    /* OPERATION_RESHAPE: other dimensions, the same elements in order */
    CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201, /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_EXPAND_BAND_MATRIX: a stored band becomes a matrix */
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_XDESC = 2250,           /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC = 2251,           /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_LOWER_BANDWIDTH = 2252, /* in: INT64 */
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_UPPER_BANDWIDTH = 2253, /* in: INT64 */
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_AXIS = 2254,            /* in: INT64 */
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_PAD_VALUE = 2255,
    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_KV_TOKEN_OFFSET_DESC = 2256,
    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_SPECULATIVE_MASK_DESC = 2257,

    /* OPERATION_CONTRACT_BAND_MATRIX: a matrix becomes its band */
    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_XDESC = 2270,           /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_YDESC = 2271,           /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_LOWER_BANDWIDTH = 2272, /* in: INT64 */
    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_UPPER_BANDWIDTH = 2273, /* in: INT64 */
    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_AXIS = 2274,            /* in: INT64 */
    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_PAD_VALUE = 2275,
    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MAX_TOKEN_VALUE = 2276,

    /* RNG descriptor: a distribution */
    CUDNN_ATTR_RNG_DISTRIBUTION = 2300,                   /* in: RNG_DISTRIBUTION */
    CUDNN_ATTR_RNG_NORMAL_DIST_MEAN = 2301,               /* in: DOUBLE */
    CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION = 2302, /* in: DOUBLE */
    CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM = 2303,           /* in: DOUBLE */
    CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM = 2304,           /* in: DOUBLE */
    CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY = 2305,     /* in: DOUBLE */

    /* OPERATION_RNG: y is filled with random numbers */
    CUDNN_ATTR_OPERATION_RNG_YDESC = 2310,       /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RNG_SEED = 2311,        /* in: BACKEND_DESCRIPTOR or INT64 */
    CUDNN_ATTR_OPERATION_RNG_DESC = 2312,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC = 2313, /* in: BACKEND_DESCRIPTOR */

    /* KERNEL_CACHE descriptor */
    CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH = 2400,            /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED = 2401, /* out: BOOLEAN */
    CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION = 2402,        /* in, out: CHAR x n */

    /* OPERATION_BLOCK_SCALE_QUANTIZE: y and one scale a block from x */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC = 2500,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC = 2501,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC = 2502, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC = 2503,  /* in: DATA_TYPE */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE = 2504, /* in: INT32 */

    /* OPERATION_BLOCK_SCALE_DEQUANTIZE: y from x and one scale a block */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC = 2600,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC = 2601, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC = 2602,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC = 2603,  /* in: DATA_TYPE */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE = 2604, /* in: INT32 x n */
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE = 2605,  /* in: BOOLEAN */

    /* DEVICEPROP descriptor: a device that need not be present */
    CUDNN_ATTR_DEVICEPROP_DEVICE_ID = 2700,           /* in: INT32 */
    CUDNN_ATTR_DEVICEPROP_HANDLE = 2701,              /* in: HANDLE */
    CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION = 2702, /* in, out: CHAR x n */

    /* OPERATION_SDPA_FWD: attention */
    CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC = 2800,            /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC = 2801,            /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC = 2802,            /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC = 2803,            /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC = 2804,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC = 2805,        /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC = 2806,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC = 2807, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC = 2808, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC = 2809,    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC = 2810,   /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_SDPA_BWD: its gradients */
    CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC = 2851,          /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC = 2852,          /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC = 2853,          /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC = 2854,          /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC = 2855,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC = 2856,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC = 2857,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_KVDESC = 2858, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC = 2859,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC = 2860,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC = 2861,         /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC = 2862,        /* in: BACKEND_DESCRIPTOR */

    /* OPERATION_MOE_GROUPED_MATMUL: each token by the weights of its expert */
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE = 2900,        /* in: MOE_GROUPED_MATMUL_MODE */
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MATH_PREC = 2901,   /* in: DATA_TYPE */
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC = 2902,  /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC = 2903, /* in: BACKEND_DESCRIPTOR */
    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC = 2904,
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC = 2905,      /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_INDEX_DESC = 2906, /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_KS_DESC = 2907,    /* in: BACKEND_DESCRIPTOR */
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOP_K = 2908,            /* in: INT32 */
} cudnnBackendAttributeName_t;

/*
 * y = f(x), f(x, b) or f(x, b, t), element by element, with broadcast of dimensions of size 1. The
 * attributes POINTWISE_* hold the parameters: lower clip l and upper clip u, slope s, alpha, beta.
 * The *_BWD modes compute dx from dy and the forward input x.
 */
typedef enum {
    /* arithmetic */
    CUDNN_POINTWISE_ADD = 0, /* alpha1 * x + alpha2 * b */
    CUDNN_POINTWISE_MUL = 1, /* x * b */
    CUDNN_POINTWISE_MIN = 2,
    CUDNN_POINTWISE_MAX = 3,
    CUDNN_POINTWISE_SQRT = 4,
    CUDNN_POINTWISE_ADD_SQUARE = 5, /* x + b * b */
    CUDNN_POINTWISE_DIV = 6,        /* x / b */
    CUDNN_POINTWISE_MOD = 7,        /* the remainder of x / b, with the sign of x */
    CUDNN_POINTWISE_POW = 8,        /* x to the power of b */
    CUDNN_POINTWISE_SUB = 9,        /* alpha1 * x - alpha2 * b */
    CUDNN_POINTWISE_ABS = 10,
    CUDNN_POINTWISE_CEIL = 11,
    CUDNN_POINTWISE_COS = 12,
    CUDNN_POINTWISE_EXP = 13,
    CUDNN_POINTWISE_FLOOR = 14,
    CUDNN_POINTWISE_LOG = 15,   /* natural */
    CUDNN_POINTWISE_NEG = 16,   /* -x */
    CUDNN_POINTWISE_RSQRT = 17, /* 1 / sqrt(x) */
    CUDNN_POINTWISE_SIN = 18,
    CUDNN_POINTWISE_TAN = 19,
    CUDNN_POINTWISE_ERF = 20,
    CUDNN_POINTWISE_IDENTITY = 21,   /* x, converted to the type of y */
    CUDNN_POINTWISE_RECIPROCAL = 22, /* 1 / x */
    CUDNN_POINTWISE_ATAN2 = 23,      /* atan2(x, b) */

    /* activations */
    CUDNN_POINTWISE_RELU_FWD = 100, /* l + s * (x - l) below l, u above u, else x */
    CUDNN_POINTWISE_TANH_FWD = 101,
    CUDNN_POINTWISE_SIGMOID_FWD = 102,  /* 1 / (1 + exp(-x)) */
    CUDNN_POINTWISE_ELU_FWD = 103,      /* x > 0 ? x : alpha * (exp(x) - 1) */
    CUDNN_POINTWISE_GELU_FWD = 104,     /* x / 2 * (1 + erf(x / sqrt(2))) */
    CUDNN_POINTWISE_SOFTPLUS_FWD = 105, /* log(1 + exp(beta * x)) / beta */
    CUDNN_POINTWISE_SWISH_FWD = 106,    /* x / (1 + exp(-beta * x)) */
    /* x / 2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
    CUDNN_POINTWISE_GELU_APPROX_TANH_FWD = 107,

    /* their gradients */
    CUDNN_POINTWISE_RELU_BWD = 200,
    CUDNN_POINTWISE_TANH_BWD = 201,
    CUDNN_POINTWISE_SIGMOID_BWD = 202,
    CUDNN_POINTWISE_ELU_BWD = 203,
    CUDNN_POINTWISE_GELU_BWD = 204,
    CUDNN_POINTWISE_SOFTPLUS_BWD = 205,
    CUDNN_POINTWISE_SWISH_BWD = 206,
    CUDNN_POINTWISE_GELU_APPROX_TANH_BWD = 207,

    /* comparisons; y is 1 or 0 */
    CUDNN_POINTWISE_CMP_EQ = 300,
    CUDNN_POINTWISE_CMP_NEQ = 301,
    CUDNN_POINTWISE_CMP_GT = 302,
    CUDNN_POINTWISE_CMP_GE = 303,
    CUDNN_POINTWISE_CMP_LT = 304,
    CUDNN_POINTWISE_CMP_LE = 305,

    /* logic on boolean */
    CUDNN_POINTWISE_LOGICAL_AND = 400,
    CUDNN_POINTWISE_LOGICAL_OR = 401,
    CUDNN_POINTWISE_LOGICAL_NOT = 402,

    /* the rest */
    CUDNN_POINTWISE_GEN_INDEX = 501,     /* the index of the element along POINTWISE_AXIS */
    CUDNN_POINTWISE_BINARY_SELECT = 601, /* t ? x : b */
} cudnnPointwiseMode_t;

/* What becomes of a window of the input. Two names of the average have one value. */
typedef enum {
    CUDNN_RESAMPLE_NEAREST = 0,
    CUDNN_RESAMPLE_BILINEAR = 1,
    CUDNN_RESAMPLE_AVGPOOL = 2,
    CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING = 2, /* divided by the whole window's size */
    CUDNN_RESAMPLE_MAXPOOL = 3,
    CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING = 4, /* divided by the elements inside the image */
} cudnnResampleMode_t;

/* What a resampling window reads outside the image. */
typedef enum {
    CUDNN_ZERO_PAD = 0,     /* 0 */
    CUDNN_NEG_INF_PAD = 1,  /* minus infinity, so that it never is the maximum */
    CUDNN_EDGE_VAL_PAD = 2, /* the nearest element inside */
} cudnnPaddingMode_t;

/* What a signal operation does with its flag. */
typedef enum {
    CUDNN_SIGNAL_SET = 0,  /* writes the value once its input is ready */
    CUDNN_SIGNAL_WAIT = 1, /* holds its output back until the flag has the value */
} cudnnSignalMode_t;

typedef enum {
    CUDNN_GENSTATS_SUM_SQSUM = 0, /* the sum and the sum of squares, per channel */
} cudnnGenStatsMode_t;

/* What the sums of a batch become: see OPERATION_BN_FINALIZE_*. */
typedef enum {
    CUDNN_BN_FINALIZE_STATISTICS_TRAINING = 0,  /* also updates the running statistics */
    CUDNN_BN_FINALIZE_STATISTICS_INFERENCE = 1, /* scale and bias from the running statistics */
} cudnnBnFinalizeStatsMode_t;

/* Over what mean and variance are taken, for an input N, C, spatial. */
typedef enum {
    CUDNN_LAYER_NORM = 0,     /* all but N */
    CUDNN_INSTANCE_NORM = 1,  /* the spatial dimensions */
    CUDNN_BATCH_NORM = 2,     /* N and the spatial dimensions */
    CUDNN_GROUP_NORM = 3,     /* the spatial dimensions and a group of channels */
    CUDNN_RMS_NORM = 4,       /* as LAYER, by the root mean square, the mean is not removed */
    CUDNN_ADA_LAYER_NORM = 5, /* as LAYER, with scale and bias per sample */
} cudnnBackendNormMode_t;

typedef enum {
    CUDNN_NORM_FWD_INFERENCE = 0, /* only y is computed */
    CUDNN_NORM_FWD_TRAINING = 1,  /* mean and inverse variance are written too */
} cudnnBackendNormFwdPhase_t;

/* What the random numbers of an RNG operation follow; see RNG_*. */
typedef enum {
    CUDNN_RNG_DISTRIBUTION_BERNOULLI = 0,
    CUDNN_RNG_DISTRIBUTION_UNIFORM = 1,
    CUDNN_RNG_DISTRIBUTION_NORMAL = 2,
} cudnnRngDistribution_t;

/* How the rows of tokens meet the experts of a grouped matrix product. */
typedef enum {
    CUDNN_MOE_GROUPED_MATMUL_MODE_NONE = 0,    /* tokens are sorted by expert already */
    CUDNN_MOE_GROUPED_MATMUL_MODE_GATHER = 1,  /* rows are gathered by token index on reading */
    CUDNN_MOE_GROUPED_MATMUL_MODE_SCATTER = 2, /* rows are scattered by token index on writing */
} cudnnMoeGroupedMatmulMode_t;

/* An order of elements inside a tensor that strides cannot say. */
typedef enum {
    CUDNN_TENSOR_REORDERING_NONE = 0,
    CUDNN_TENSOR_REORDERING_INT8x32 = 1,  /* the filter order of cudnnReorderFilterAndBias() */
    CUDNN_TENSOR_REORDERING_F16x16 = 2,   /* the same idea for 16-bit filters */
    CUDNN_TENSOR_REORDERING_F8_128x4 = 3, /* scales of blocks, in tiles of 128 x 4 */
} cudnnBackendTensorReordering_t;

/*
 * How candidates are chosen for a graph. WarpDNN's model is quick, so A, B and INSTANT give the
 * same list, best first.
 */
typedef enum {
    CUDNN_HEUR_MODE_INSTANT = 0,
    CUDNN_HEUR_MODE_B = 1,
    CUDNN_HEUR_MODE_FALLBACK = 2, /* what always works, whatever the speed */
    CUDNN_HEUR_MODE_A = 3,
    CUDNN_HEUR_MODES_COUNT = 4, /* how many modes there are */
} cudnnBackendHeurMode_t;

/* What an engine does to numbers. Callers filter by these, so they are true. */
typedef enum {
    CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,
    /* inputs are rounded to fewer bits, as fp32 to tf32 */
    CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,
    /* sums are kept in fewer bits than asked */
    CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2,
    CUDNN_NUMERICAL_NOTE_FFT = 3,
    CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4, /* two runs may differ in the last bits */
    CUDNN_NUMERICAL_NOTE_WINOGRAD = 5,
    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 = 6,
    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 = 7,
    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 = 8,
    CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP = 9,
    CUDNN_NUMERICAL_NOTE_TYPE_COUNT = 10, /* how many notes there are */
} cudnnBackendNumericalNote_t;

/* What an engine demands or offers beside numbers. */
typedef enum {
    CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION = 0, /* never said by WarpDNN */
    CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER = 1,
    CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER = 2,
    /* cudnnBackendPopulateCudaGraph() works */
    CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API = 3,
    CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY = 4, /* never said by WarpDNN */
    CUDNN_BEHAVIOR_NOTE_TYPE_COUNT = 5,          /* how many notes there are */
} cudnnBackendBehaviorNote_t;

/*
 * The parameters of an engine that a caller may turn. Which knobs an engine has, and their ranges,
 * is in its knob infos; the values mean something to the engine alone.
 */
typedef enum {
    CUDNN_KNOB_TYPE_SPLIT_K CUDNN_DEPRECATED_ENUM = 0,
    CUDNN_KNOB_TYPE_SWIZZLE = 1,
    CUDNN_KNOB_TYPE_TILE_SIZE = 2,
    CUDNN_KNOB_TYPE_USE_TEX CUDNN_DEPRECATED_ENUM = 3,
    CUDNN_KNOB_TYPE_EDGE = 4,
    CUDNN_KNOB_TYPE_KBLOCK CUDNN_DEPRECATED_ENUM = 5,
    CUDNN_KNOB_TYPE_LDGA CUDNN_DEPRECATED_ENUM = 6,
    CUDNN_KNOB_TYPE_LDGB CUDNN_DEPRECATED_ENUM = 7,
    CUDNN_KNOB_TYPE_CHUNK_K CUDNN_DEPRECATED_ENUM = 8,
    CUDNN_KNOB_TYPE_SPLIT_H CUDNN_DEPRECATED_ENUM = 9,
    CUDNN_KNOB_TYPE_WINO_TILE CUDNN_DEPRECATED_ENUM = 10,
    CUDNN_KNOB_TYPE_MULTIPLY = 11,
    CUDNN_KNOB_TYPE_SPLIT_K_BUF = 12,
    CUDNN_KNOB_TYPE_TILEK = 13,
    CUDNN_KNOB_TYPE_STAGES = 14,
    CUDNN_KNOB_TYPE_REDUCTION_MODE = 15,
    CUDNN_KNOB_TYPE_CTA_SPLIT_K_MODE CUDNN_DEPRECATED_ENUM = 16,
    CUDNN_KNOB_TYPE_SPLIT_K_SLC = 17,
    CUDNN_KNOB_TYPE_IDX_MODE = 18,
    CUDNN_KNOB_TYPE_SLICED CUDNN_DEPRECATED_ENUM = 19,
    CUDNN_KNOB_TYPE_SPLIT_RS CUDNN_DEPRECATED_ENUM = 20,
    CUDNN_KNOB_TYPE_SINGLEBUFFER CUDNN_DEPRECATED_ENUM = 21,
    CUDNN_KNOB_TYPE_LDGC CUDNN_DEPRECATED_ENUM = 22,
    CUDNN_KNOB_TYPE_SPECFILT = 23,
    CUDNN_KNOB_TYPE_KERNEL_CFG = 24,
    CUDNN_KNOB_TYPE_WORKSPACE = 25,
    CUDNN_KNOB_TYPE_TILE_CGA CUDNN_DEPRECATED_ENUM = 26,
    CUDNN_KNOB_TYPE_TILE_CGA_M = 27,
    CUDNN_KNOB_TYPE_TILE_CGA_N = 28,
    CUDNN_KNOB_TYPE_BLOCK_SIZE = 29,
    CUDNN_KNOB_TYPE_OCCUPANCY = 30,
    CUDNN_KNOB_TYPE_ARRAY_SIZE_PER_THREAD = 31,
    CUDNN_KNOB_TYPE_NUM_C_PER_BLOCK CUDNN_DEPRECATED_ENUM = 32,
    CUDNN_KNOB_TYPE_SPLIT_COLS = 33,
    CUDNN_KNOB_TYPE_TILE_ROWS = 34,
    CUDNN_KNOB_TYPE_TILE_COLS = 35,
    CUDNN_KNOB_TYPE_LOAD_SIZE = 36,
    CUDNN_KNOB_TYPE_CTA_COUNT = 37,
    CUDNN_KNOB_TYPE_STREAM_K = 38,
    CUDNN_KNOB_TYPE_SPLIT_P_SLC = 39,
    CUDNN_KNOB_TYPE_TILE_M = 40,
    CUDNN_KNOB_TYPE_TILE_N = 41,
    CUDNN_KNOB_TYPE_WARP_SPEC_CFG = 42,
    CUDNN_KNOB_TYPE_SWAP_AB = 43,
    CUDNN_KNOB_TYPE_COUNTS = 44, /* how many knob types there are */
} cudnnBackendKnobType_t;

/* The layout that an engine likes best for a tensor. */
typedef enum {
    CUDNN_LAYOUT_TYPE_PREFERRED_NCHW = 0,
    CUDNN_LAYOUT_TYPE_PREFERRED_NHWC = 1,
    CUDNN_LAYOUT_TYPE_PREFERRED_PAD4CK = 2, /* C and K padded to multiples of 4 */
    CUDNN_LAYOUT_TYPE_PREFERRED_PAD8CK = 3, /* C and K padded to multiples of 8 */
    CUDNN_LAYOUT_TYPE_COUNT = 4,            /* how many layouts there are */
} cudnnBackendLayoutType_t;

/*
 * Creates an empty descriptor of the given type.
 *   descriptor  receives it; release it with cudnnBackendDestroyDescriptor()
 * NOT_SUPPORTED for a type that this level does not know, BAD_PARAM_NULL_POINTER where descriptor
 * is NULL. Any thread.
 */
cudnnStatus_t CUDNNWINAPI cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                                       cudnnBackendDescriptor_t *descriptor);

/*
 * Releases a descriptor, finalized or not; NULL is refused. Others that refer to it keep what they
 * took from it when they were finalized. No other thread may be using it.
 */
cudnnStatus_t CUDNNWINAPI cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor);

/*
 * Empties a descriptor, as if newly created. Kept for programs of the time when callers owned the
 * memory.
 */
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnBackendInitialize(
    cudnnBackendDescriptor_t descriptor);

/*
 * Gives an attribute its value. The elements are copied; descriptors among them are referred to,
 * and must be finalized where the attribute takes part in a computation.
 *   attributeType    the type of the elements, as listed at the attribute's name
 *   elementCount     how many there are, 0 or more
 *   arrayOfElements  the elements, in host memory
 * BAD_PARAM where the attribute does not belong to the descriptor or cannot be set,
 * BAD_PARAM_NOT_FINALIZED, BAD_PARAM_ATTRIBUTE_TYPE, BAD_PARAM_OUT_OF_BOUND; a finalized
 * descriptor is refused. One thread at a time.
 */
cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attributeName,
                                                   cudnnBackendAttributeType_t attributeType,
                                                   int64_t elementCount,
                                                   const void *arrayOfElements);

/*
 * Reads an attribute of a finalized descriptor. With a count of 0 it only tells how many elements
 * there are. Where the elements are descriptors, the caller creates them, of the right type and
 * not finalized, and puts them into the array: their contents are filled in.
 *   requestedElementCount  the room in arrayOfElements, in elements
 *   elementCount           receives the number that exists; may be NULL
 *   arrayOfElements        receives as many as fit; may be NULL where none are wanted
 * BAD_PARAM, BAD_PARAM_NOT_FINALIZED, BAD_PARAM_ATTRIBUTE_TYPE, BAD_PARAM_SIZE_INSUFFICIENT.
 * Finalized descriptors can be read by many threads at once.
 */
cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attributeName,
                                                   cudnnBackendAttributeType_t attributeType,
                                                   int64_t requestedElementCount,
                                                   int64_t *elementCount, void *arrayOfElements);

/*
 * Checks that the attributes are complete and fit together, and freezes them. For heuristics it
 * finds the candidates; for an execution plan it chooses kernels and books the workspace, without
 * device allocation, synchronisation or compilation.
 * BAD_PARAM and its finer codes where the description is wrong, NOT_SUPPORTED and its finer codes
 * where it is legal and no engine takes it: the text quotes what each engine said.
 */
cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor);

/*
 * Runs a plan on the handle's stream: no allocation, no synchronisation, legal in a stream
 * capture.
 *   executionPlan  finalized, of the handle's device
 *   variantPack    finalized: the data pointer of each unique id, and the workspace. By-value
 *                  tensors are read from host memory during the call; everything else must stay
 *                  valid until the stream has passed.
 * BAD_PARAM where an id is missing, BAD_PARAM_MISALIGNED_POINTER, BAD_PARAM_SIZE_INSUFFICIENT,
 * EXECUTION_FAILED_CUDA_DRIVER. A plan can be run by many threads at once, each with a handle of
 * its own.
 */
cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t handle,
                                              cudnnBackendDescriptor_t executionPlan,
                                              cudnnBackendDescriptor_t variantPack);

/*
 * Adds the nodes of a plan to a CUDA graph instead of running them.
 *   graph  created and empty; the caller adds it to a larger one or instantiates it
 * NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API on a CPU handle, and for engines without the behavior note.
 * The data pointers are those of the variant pack until cudnnBackendUpdateCudaGraph().
 */
cudnnStatus_t CUDNNWINAPI cudnnBackendPopulateCudaGraph(cudnnHandle_t handle,
                                                        cudnnBackendDescriptor_t executionPlan,
                                                        cudnnBackendDescriptor_t variantPack,
                                                        cudaGraph_t graph);

/*
 * Gives a graph made by cudnnBackendPopulateCudaGraph() the pointers of another variant pack of
 * the same plan, in place, so that its executable graph can be updated.
 * BAD_PARAM_CUDA_GRAPH_MISMATCH where the graph's nodes are not those of the plan; the graph is
 * then unchanged.
 */
cudnnStatus_t CUDNNWINAPI cudnnBackendUpdateCudaGraph(cudnnHandle_t handle,
                                                      cudnnBackendDescriptor_t executionPlan,
                                                      cudnnBackendDescriptor_t variantPack,
                                                      cudaGraph_t graph);

#if defined(__cplusplus)
}
#endif

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#pragma GCC visibility pop
#endif

#endif
