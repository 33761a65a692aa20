/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory for callers of the library, and whose memory a pointer is. A queue belongs to one
 * thread at a time; the rest is the driver's to keep apart. */
#include "gpu/context.h"

static cudnnStatus_t enter(struct wd_queue *base, const char *doing)
{
    const char *function = NULL;
    CUresult result = wd_context_enter(wd_gpu_queue_of(base), &function);
    if (result == CUDA_SUCCESS) return CUDNN_STATUS_SUCCESS;
    return wd_driver_fail(result, function, "%s on device %d", doing, base->device->ordinal);
}

cudnnStatus_t wd_gpu_malloc(struct wd_queue *base, size_t bytes, void **data)
{
    const char *function = NULL;
    CUresult result;
    WD_NOT_NULL(data);
    WD_REQUIRE(bytes > 0, CUDNN_STATUS_BAD_PARAM, "bytes=0: needed is at least one byte");
    WD_TRY(enter(base, "allocating memory"));
    result = wd_relaxed_alloc(bytes, data, &function);
    wd_context_leave(wd_gpu_queue_of(base));
    if (result == CUDA_SUCCESS) return CUDNN_STATUS_SUCCESS;
    return wd_driver_fail(result, function, "allocating %zu bytes", bytes);
}

cudnnStatus_t wd_gpu_free(struct wd_queue *base, void *data)
{
    const char *function = NULL;
    CUresult result;
    if (!data) return CUDNN_STATUS_SUCCESS;
    WD_TRY(enter(base, "freeing memory"));
    result = wd_relaxed_free(data, &function);
    wd_context_leave(wd_gpu_queue_of(base));
    if (result == CUDA_SUCCESS) return CUDNN_STATUS_SUCCESS;
    return wd_driver_fail(result, function, "freeing %p", data);
}

static cudnnStatus_t copy(const struct wd_gpu_queue *queue, void *to, const void *from,
                          size_t bytes)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    WD_CU_TRY(cuStreamIsCapturing, (queue->stream, &status), "copying %zu bytes", bytes);
    WD_REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE, CUDNN_STATUS_BAD_PARAM,
               "copying %zu bytes waits for stream %p, which is being captured", bytes,
               (void *)queue->stream);
    WD_CU_TRY(cuMemcpyAsync,
              ((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, queue->stream),
              "copying %zu bytes from %p to %p", bytes, from, to);
    WD_CU_TRY(cuStreamSynchronize, (queue->stream), "waiting for the copy of %zu bytes", bytes);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_gpu_copy(struct wd_queue *base, void *to, const void *from, size_t bytes)
{
    cudnnStatus_t status;
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    WD_NOT_NULL(to);
    WD_NOT_NULL(from);
    WD_TRY(enter(base, "copying memory"));
    status = copy(wd_gpu_queue_of(base), to, from, bytes);
    wd_context_leave(wd_gpu_queue_of(base));
    return status;
}

bool wd_gpu_driver_is_loaded(void)
{
    return wd_driver_open(WD_DRIVER_IF_LOADED);
}

int wd_gpu_owns_pointer(struct wd_queue *base, const void *data)
{
    enum { TYPE, MANAGED, ORDINAL, COUNT };
    CUpointer_attribute wanted[COUNT] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                         CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                         CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned int type = 0;
    int managed = 0;
    int ordinal = -1;
    void *values[COUNT] = {&type, &managed, &ordinal};
    CUresult result;
    if (!wd_driver_open(WD_DRIVER_IF_LOADED)) return base ? -1 : 0;
    if (!wd_cu.cuPointerGetAttributes) return -1;
    result = wd_cu.cuPointerGetAttributes(COUNT, wanted, values, (CUdeviceptr)(uintptr_t)data);
    /* a process that never initialised CUDA has no device memory */
    if (result == CUDA_ERROR_NOT_INITIALIZED) return 0;
    if (result == CUDA_ERROR_INVALID_VALUE) return 0; /* a pointer that CUDA has never seen */
    if (result != CUDA_SUCCESS) return -1;
    if (!base) return type == CU_MEMORYTYPE_DEVICE && !managed;
    if (managed || type == CU_MEMORYTYPE_HOST) return 1; /* mapped for every device */
    if (type != CU_MEMORYTYPE_DEVICE) return 0;
    /* another device's memory can be used where peer access is on, which cannot be asked for */
    return ordinal == wd_gpu_queue_of(base)->device ? 1 : -1;
}
