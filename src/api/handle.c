/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles: the choice of device, streams; and the extensions of warpdnn.h. A handle belongs to one
 * device for life and to one thread at a time. */
#include <stdatomic.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "base/env.h"
#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "build_id.h"

/* Which device a new handle gets; the rules of DESIGN: auto means the CPU only where there is no
 * driver or no device, for the caller may hold device pointers otherwise. */
static cudnnStatus_t choose_device(enum wd_device_kind *kind)
{
    const struct wd_env *env = wd_env();
    const char *why = "";
    enum wd_gpu_state state;
    WD_REQUIRE(env->device != WD_CHOOSE_INVALID, CUDNN_STATUS_NOT_INITIALIZED,
               "WARPDNN_DEVICE=\"%s\" is none of auto, gpu, cpu", env->device_text);
    *kind = WD_CPU;
    if (env->device == WD_CHOOSE_CPU) return CUDNN_STATUS_SUCCESS;
    state = wd_gpu_probe(&why);
    WD_REQUIRE(state != WD_GPU_UNUSABLE, CUDNN_STATUS_NOT_INITIALIZED, "%s", why);
    WD_REQUIRE(state == WD_GPU_READY || env->device == WD_CHOOSE_AUTO, CUDNN_STATUS_NOT_INITIALIZED,
               "WARPDNN_DEVICE=gpu, but %s", why);
    if (state == WD_GPU_READY) *kind = WD_GPU;
    return CUDNN_STATUS_SUCCESS;
}

/* Once a process, when somebody listens. */
static void warn_of_environment(enum wd_device_kind kind)
{
    static atomic_bool said;
    char pattern[128];
    if (!wd_log_wanted(CUDNN_SEV_WARNING) || atomic_exchange(&said, true)) return;
    if (wd_env()->ignored) {
        wd_log(CUDNN_SEV_WARNING, CUDNN_STATUS_SUCCESS, "environment: %s", wd_env()->ignored);
    }
    if (wd_engines_unknown(kind, pattern, sizeof pattern)) {
        wd_log(CUDNN_SEV_WARNING, CUDNN_STATUS_SUCCESS,
               "environment: %s in WARPDNN_ENGINES names no engine on the %s", pattern,
               kind == WD_CPU ? "CPU" : "GPU");
    }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    struct cudnnContext *own;
    enum wd_device_kind kind = WD_CPU;
    cudnnStatus_t status;
    WD_ARG(handle != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "handle is null");
    wd_log_enter(__func__);
    WD_TRY(wd_pass_in(__func__, choose_device(&kind)));
    own = wd_alloc(sizeof *own);
    WD_ARG(own != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
           "no host memory for a handle");
    status = kind == WD_GPU ? wd_gpu_queue_create(&own->queue) : wd_cpu_queue_create(&own->queue);
    if (status != CUDNN_STATUS_SUCCESS) {
        wd_free(own);
        return wd_pass_in(__func__, status);
    }
    wd_engines_prepare(kind);
    warn_of_environment(kind);
    own->magic = WD_HANDLE_MAGIC;
    *handle = own;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    if (!handle) return CUDNN_STATUS_SUCCESS;
    WD_HANDLE(handle);
    handle->magic = 0;
    if (handle->queue->device->kind == WD_GPU) wd_gpu_queue_destroy(handle->queue);
    else wd_cpu_queue_destroy(handle->queue);
    wd_free(handle);
    wd_log_set_context(NULL);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId)
{
    WD_HANDLE(handle);
    /* a CPU handle runs everything at once: streams mean nothing to it */
    if (handle->queue->device->kind == WD_CPU) return CUDNN_STATUS_SUCCESS;
    return wd_pass_in(__func__, wd_gpu_queue_set_stream(handle->queue, streamId));
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *streamId)
{
    WD_HANDLE(handle);
    WD_ARG(streamId != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "streamId is null");
    *streamId = handle->queue->device->kind == WD_CPU ? NULL : wd_gpu_queue_stream(handle->queue);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t warpdnnGetDevice(cudnnHandle_t handle, warpdnnDevice_t *device, int *ordinal)
{
    WD_HANDLE(handle);
    WD_ARG(device != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "device is null");
    *device = handle->queue->device->kind == WD_CPU ? WARPDNN_DEVICE_CPU : WARPDNN_DEVICE_GPU;
    if (ordinal) *ordinal = handle->queue->device->ordinal;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t warpdnnMalloc(cudnnHandle_t handle, size_t bytes, void **ptr)
{
    WD_HANDLE(handle);
    WD_ARG(ptr != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "ptr is null");
    if (handle->queue->device->kind == WD_GPU) {
        /* no bytes are legal here, and give something to free; the driver refuses them */
        return wd_pass_in(__func__, wd_gpu_malloc(handle->queue, bytes ? bytes : 1, ptr));
    }
    *ptr = wd_alloc(bytes);
    WD_ARG(*ptr != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
           "no host memory for %zu bytes", bytes);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t warpdnnFree(cudnnHandle_t handle, void *ptr)
{
    WD_HANDLE(handle);
    if (handle->queue->device->kind == WD_GPU) {
        return wd_pass_in(__func__, wd_gpu_free(handle->queue, ptr));
    }
    wd_free(ptr);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t warpdnnMemcpy(cudnnHandle_t handle, void *dst, const void *src, size_t bytes)
{
    WD_HANDLE(handle);
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    WD_ARG(dst != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "dst is null");
    WD_ARG(src != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "src is null");
    if (handle->queue->device->kind == WD_GPU) {
        return wd_pass_in(__func__, wd_gpu_copy(handle->queue, dst, src, bytes));
    }
    memmove(dst, src, bytes);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t warpdnnMemset(cudnnHandle_t handle, void *ptr, int byte, size_t bytes)
{
    struct wd_queue *queue;
    uint64_t before;
    cudnnStatus_t status;
    WD_HANDLE(handle);
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    WD_ARG(ptr != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "ptr is null");
    queue = handle->queue;
    before = queue->emitted;
    status = queue->ops->begin(queue);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = queue->ops->fill(queue, ptr, byte, bytes);
        queue->ops->end(queue);
    }
    wd_plan_count_emitted(queue->emitted - before);
    return wd_pass_in(__func__, status);
}

cudnnStatus_t warpdnnSynchronize(cudnnHandle_t handle)
{
    WD_HANDLE(handle);
    if (handle->queue->device->kind == WD_CPU) return CUDNN_STATUS_SUCCESS;
    return wd_pass_in(__func__, wd_gpu_queue_synchronize(handle->queue));
}

cudnnStatus_t warpdnnGetLastEngine(cudnnHandle_t handle, const char **name)
{
    WD_HANDLE(handle);
    WD_ARG(name != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "name is null");
    *name = handle->last_engine;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t warpdnnGetStatistics(warpdnnStatistics_t *out)
{
    struct wd_plan_statistics plans = wd_plan_statistics();
    WD_ARG(out != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "out is null");
    memset(out, 0, sizeof *out);
    out->plan_hits = plans.hits;
    out->plan_misses = plans.misses;
    out->plans_alive = wd_plans_alive();
    out->executions = plans.executions;
    out->kernels_emitted = wd_plan_emitted();
    out->host_bytes = wd_alloc_bytes();
    out->scratch_bytes = wd_gpu_scratch_bytes();
    return CUDNN_STATUS_SUCCESS;
}

const char *warpdnnGetVersionString(void)
{
    return "WarpDNN " WD_VERSION " (cuDNN API 9.19.0)";
}

const char *warpdnnGetBuildId(void)
{
    return WD_BUILD_ID;
}
