/* SPDX-License-Identifier: Apache-2.0
 *
 * Entering and leaving a queue's context. Belongs to the thread that uses the queue. */
#include "gpu/context.h"

CUresult wd_context_enter(struct wd_gpu_queue *queue, const char **function)
{
    CUcontext current = NULL;
    CUresult result;
    if (queue->depth > 0) {
        queue->depth += 1;
        return CUDA_SUCCESS;
    }
    *function = "cuCtxGetCurrent";
    result = wd_cu.cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS) return result;
    queue->pushed = current != queue->context;
    if (queue->pushed) {
        *function = "cuCtxPushCurrent";
        result = wd_cu.cuCtxPushCurrent(queue->context);
        if (result != CUDA_SUCCESS) return result;
    }
    queue->depth = 1;
    return CUDA_SUCCESS;
}

void wd_context_leave(struct wd_gpu_queue *queue)
{
    CUcontext ignored;
    queue->depth -= 1;
    /* a pop fails only with the process's CUDA as a whole, and then there is nothing to restore */
    if (queue->depth == 0 && queue->pushed) wd_cu.cuCtxPopCurrent(&ignored);
}

CUresult wd_capture_relax(CUstreamCaptureMode *before)
{
    *before = CU_STREAM_CAPTURE_MODE_RELAXED;
    return wd_cu.cuThreadExchangeStreamCaptureMode(before);
}

void wd_capture_restore(CUstreamCaptureMode before)
{
    CUstreamCaptureMode mode = before;
    if (wd_cu.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS) return;
    /* a driver call may report what an earlier one did wrong, and then go through */
    mode = before;
    wd_cu.cuThreadExchangeStreamCaptureMode(&mode);
}

CUresult wd_relaxed_alloc(size_t bytes, void **data, const char **function)
{
    CUstreamCaptureMode mode;
    CUdeviceptr address = 0;
    CUresult result;
    *function = "cuThreadExchangeStreamCaptureMode";
    result = wd_capture_relax(&mode);
    if (result != CUDA_SUCCESS) return result;
    *function = "cuMemAlloc";
    result = wd_cu.cuMemAlloc(&address, bytes);
    wd_capture_restore(mode);
    if (result == CUDA_SUCCESS) *data = (void *)(uintptr_t)address;
    return result;
}

CUresult wd_relaxed_free(void *data, const char **function)
{
    CUstreamCaptureMode mode;
    CUresult result;
    *function = "cuThreadExchangeStreamCaptureMode";
    result = wd_capture_relax(&mode);
    if (result != CUDA_SUCCESS) return result;
    *function = "cuMemFree";
    result = wd_cu.cuMemFree((CUdeviceptr)(uintptr_t)data);
    wd_capture_restore(mode);
    return result;
}

/* On a stream of its own, which no capture forbids and nothing else waits for. */
static CUresult zero_apart(void *data, size_t bytes, const char **function)
{
    CUstream stream = NULL;
    CUresult result;
    *function = "cuStreamCreate";
    result = wd_cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) return result;
    *function = "cuMemsetD8Async";
    result = wd_cu.cuMemsetD8Async((CUdeviceptr)(uintptr_t)data, 0, bytes, stream);
    if (result == CUDA_SUCCESS) {
        *function = "cuStreamSynchronize";
        result = wd_cu.cuStreamSynchronize(stream);
    }
    wd_cu.cuStreamDestroy(stream);
    return result;
}

CUresult wd_relaxed_zero(void *data, size_t bytes, const char **function)
{
    CUstreamCaptureMode mode;
    CUresult result;
    *function = "cuThreadExchangeStreamCaptureMode";
    result = wd_capture_relax(&mode);
    if (result != CUDA_SUCCESS) return result;
    result = zero_apart(data, bytes, function);
    wd_capture_restore(mode);
    return result;
}
