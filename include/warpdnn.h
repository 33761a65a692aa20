/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn.h - the extensions of WarpDNN to the cuDNN API: which device a handle belongs to, memory
 * that works on either kind of device, which engine ran, and statistics of the process. Programs
 * that must also run on other implementations of the API do without this header.
 *
 * Failures answer a status and a text, as everywhere: see cudnnGetLastErrorString(). One thread at
 * a time uses a handle.
 */
#ifndef WARPDNN_H_
#define WARPDNN_H_

#include <stddef.h>
#include <stdint.h>

#include "cudnn_graph.h"

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC visibility push(default)
#endif

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Devices --------------------------------------------------------------------------------- */

typedef enum {
    WARPDNN_DEVICE_CPU = 0, /* pointers are host pointers, calls are synchronous */
    WARPDNN_DEVICE_GPU = 1  /* pointers are device pointers, work is ordered on the stream */
} warpdnnDevice_t;

/*
 * Answers the device that the handle was created on and keeps for life. The environment variable
 * WARPDNN_DEVICE=auto|gpu|cpu, read by cudnnCreate, decides which kind that is.
 *   device   receives the kind
 *   ordinal  receives the CUDA device ordinal, -1 on the CPU; may be NULL
 * BAD_PARAM_NULL_POINTER where handle or device is NULL.
 */
cudnnStatus_t CUDNNWINAPI warpdnnGetDevice(cudnnHandle_t handle, warpdnnDevice_t *device,
                                           int *ordinal);

/* ---- Memory ---------------------------------------------------------------------------------- */

/*
 * The five functions below let a program be written once for both devices. They are conveniences,
 * not a fast path: an allocator of your own serves as well, on the GPU any pointer of the CUDA
 * runtime or driver does.
 */

/*
 * Allocates memory that the handle's device can use, aligned for every type, with undefined
 * contents.
 *   bytes  may be 0; what *ptr then holds can be freed and nothing else
 *   ptr    receives the address; release it with warpdnnFree()
 * INTERNAL_ERROR_HOST_ALLOCATION_FAILED or INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED when out of
 * memory.
 */
cudnnStatus_t CUDNNWINAPI warpdnnMalloc(cudnnHandle_t handle, size_t bytes, void **ptr);

/*
 * Releases what warpdnnMalloc gave on a handle of the same device, after the work that the handle's
 * stream has in flight. NULL is accepted and does nothing.
 */
cudnnStatus_t CUDNNWINAPI warpdnnFree(cudnnHandle_t handle, void *ptr);

/*
 * Copies bytes from src to dst, each of which may be host or device memory. The copy is ordered
 * after the work on the handle's stream and is complete on return. The ranges must not overlap.
 * BAD_PARAM_NULL_POINTER where a pointer is NULL and bytes is not 0. Illegal in a stream capture.
 */
cudnnStatus_t CUDNNWINAPI warpdnnMemcpy(cudnnHandle_t handle, void *dst, const void *src,
                                        size_t bytes);

/*
 * Sets each of the bytes from ptr on to the low 8 bits of byte, ordered on the handle's stream.
 * BAD_PARAM_NULL_POINTER where ptr is NULL and bytes is not 0.
 */
cudnnStatus_t CUDNNWINAPI warpdnnMemset(cudnnHandle_t handle, void *ptr, int byte, size_t bytes);

/*
 * Waits until everything that was emitted on the handle's stream has finished; immediate on the
 * CPU. EXECUTION_FAILED_CUDA_DRIVER, with the driver's words in the text, where work has failed.
 */
cudnnStatus_t CUDNNWINAPI warpdnnSynchronize(cudnnHandle_t handle);

/* ---- What is this, what ran ------------------------------------------------------------------ */

/*
 * The library's own version and the API level that it implements, as in
 * "WarpDNN 0.1.0 (cuDNN API 9.19.0)". Constant, never NULL, any thread.
 */
const char *CUDNNWINAPI warpdnnGetVersionString(void);

/*
 * Identifies one build: two libraries with the same id were built from the same sources, with the
 * same build type and sanitizers (whether kernels for a GPU are in it makes no difference). The CPU module must have the id of the library that opens it. Constant, never NULL,
 * any thread.
 */
const char *CUDNNWINAPI warpdnnGetBuildId(void);

/*
 * Answers which engine ran the last call that executed something on this handle; where a plan has
 * several, their names are joined by '+'. *name is "" before the first such call, and stays valid
 * until the next call on the handle.
 */
cudnnStatus_t CUDNNWINAPI warpdnnGetLastEngine(cudnnHandle_t handle, const char **name);

/* Counts since the process began, over all handles. New members take the place of reserved ones. */
typedef struct warpdnnStatistics {
    uint64_t plan_hits;       /* plans that were found in the cache */
    uint64_t plan_misses;     /* plans that had to be built */
    uint64_t plans_alive;     /* plans that the cache and descriptors hold now */
    uint64_t executions;      /* plans executed, of either API */
    uint64_t kernels_emitted; /* kernels, memsets and host functions put into queues */
    uint64_t host_bytes;      /* host memory that the library holds now */
    uint64_t scratch_bytes;   /* device memory that the scratch arenas hold now */
    uint64_t reserved[9];     /* 0 */
} warpdnnStatistics_t;

/*
 * Fills *out with a snapshot; the members are read one after another, so they may be a few calls
 * apart. Any thread, at any time. BAD_PARAM_NULL_POINTER where out is NULL.
 */
cudnnStatus_t CUDNNWINAPI warpdnnGetStatistics(warpdnnStatistics_t *out);

#if defined(__cplusplus)
}
#endif

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC visibility pop
#endif

#endif
