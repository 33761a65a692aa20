/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream queue: what is emitted goes to the handle's stream at once. One thread at a time. A
 * launch costs one table lookup and one test above the driver's own launch. */
#include "base/alloc.h"
#include "gpu/module.h"

static cudnnStatus_t begin(struct wd_queue *base)
{
    const char *function = NULL;
    CUresult result = wd_context_enter(wd_gpu_queue_of(base), &function);
    if (result == CUDA_SUCCESS) return CUDNN_STATUS_SUCCESS;
    return wd_driver_fail(result, function, "entering the context of the handle (device %d)",
                          base->device->ordinal);
}

static void end(struct wd_queue *base)
{
    struct wd_gpu_queue *queue = wd_gpu_queue_of(base);
    if (queue->held) wd_arena_give(&queue->held);
    wd_context_leave(queue);
}

static cudnnStatus_t launch_failed(CUresult result, const char *function,
                                   const struct wd_launch *launch)
{
    return wd_driver_fail(
        result, function,
        "launching kernel %s (grid %u %u %u, block %u %u %u, cluster %u, %u bytes "
        "of shared memory)",
        launch->kernel->symbol, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
        launch->block[1], launch->block[2], launch->cluster, launch->shared);
}

static CUresult launch_with(const struct wd_gpu_queue *queue, const struct wd_launch *launch,
                            bool overlaps, CUfunction function, void **params)
{
    CUlaunchAttribute attributes[3];
    unsigned count = 0;
    CUlaunchConfig config = {
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = launch->shared,
        .hStream = queue->stream,
        .attrs = attributes,
    };
    if (launch->cluster > 1) {
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                  .value.clusterDim = {launch->cluster, 1, 1}};
    }
    if (launch->meets) {
        attributes[count++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    }
    if (overlaps) {
        attributes[count++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                .value.programmaticStreamSerializationAllowed = 1};
    }
    config.numAttrs = count;
    return wd_cu.cuLaunchKernelEx(&config, function, params, NULL);
}

enum {
    OVERLAP_CAPABILITY = 90, /* programmatic dependent launches exist from here on */
    /* Where it has been measured that blocks which meet are there all at once or not at all even if they may begin early, and where two such grids
     * that had a part of their blocks there each would wait for ever (ops/norm/README.md, Blocks that meet). */
    OVERLAP_OF_MEETINGS = 90,
};

static bool may_overlap(const struct wd_device *device, const struct wd_launch *launch)
{
    if (launch->meets) return launch->overlaps && device->capability == OVERLAP_OF_MEETINGS;
    return launch->overlaps && device->capability >= OVERLAP_CAPABILITY;
}

static cudnnStatus_t emit_kernel(struct wd_queue *base, const struct wd_launch *launch)
{
    struct wd_gpu_queue *queue = wd_gpu_queue_of(base);
    void *params[WD_MAX_PARAMS];
    CUkernel kernel;
    CUresult result;
    bool overlaps;
    WD_TRY(wd_kernel_get(queue, launch, &kernel));
    for (int i = 0; i < launch->param_count; ++i) params[i] = (void *)launch->param[i];
    base->emitted += 1;
    overlaps = may_overlap(base->device, launch);
    if (launch->cluster > 1 || launch->meets || overlaps) {
        result = launch_with(queue, launch, overlaps, (CUfunction)kernel, params);
        if (result != CUDA_SUCCESS) return launch_failed(result, "cuLaunchKernelEx", launch);
        return CUDNN_STATUS_SUCCESS;
    }
    result = wd_cu.cuLaunchKernel((CUfunction)kernel, launch->grid[0], launch->grid[1],
                                  launch->grid[2], launch->block[0], launch->block[1],
                                  launch->block[2], launch->shared, queue->stream, params, NULL);
    if (result != CUDA_SUCCESS) return launch_failed(result, "cuLaunchKernel", launch);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit_fill(struct wd_queue *base, void *data, int byte, size_t bytes)
{
    struct wd_gpu_queue *queue = wd_gpu_queue_of(base);
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    base->emitted += 1;
    WD_CU_TRY(cuMemsetD8Async,
              ((CUdeviceptr)(uintptr_t)data, (unsigned char)byte, bytes, queue->stream),
              "filling %zu bytes at %p with 0x%02x", bytes, data, (unsigned)byte & 0xff);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t emit_copy(struct wd_queue *base, void *to, const void *from, size_t bytes)
{
    struct wd_gpu_queue *queue = wd_gpu_queue_of(base);
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    base->emitted += 1;
    WD_CU_TRY(cuMemcpyDtoDAsync,
              ((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, queue->stream),
              "copying %zu bytes from %p to %p", bytes, from, to);
    return CUDNN_STATUS_SUCCESS;
}

/* The one handle that is another stream on each thread. */
enum { PER_THREAD_STREAM = 2 };
static _Thread_local char this_thread;

/* What orders the work that goes to the stream now, and the graph that it goes into, if any. */
static cudnnStatus_t find_key(const struct wd_gpu_queue *queue, size_t bytes,
                              struct wd_arena_key *key, CUgraph *graph)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long stream_id = 0;
    cuuint64_t capture_id = 0;
    *graph = NULL;
    WD_CU_TRY(cuStreamGetCaptureInfo, (queue->stream, &status, &capture_id, graph, NULL, NULL),
              "taking %zu bytes of scratch", bytes);
    WD_REQUIRE(
        status != CU_STREAM_CAPTURE_STATUS_INVALIDATED, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
        "taking %zu bytes of scratch: the capture of the stream was invalidated before", bytes);
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) {
        capture_id = 0;
        *graph = NULL;
        WD_CU_TRY(cuStreamGetId, (queue->stream, &stream_id), "taking %zu bytes of scratch", bytes);
    } else {
        /* the driver gives no id while it captures; the handle cannot be used anew before its end */
        stream_id = (uintptr_t)queue->stream == PER_THREAD_STREAM
                        ? (unsigned long long)(uintptr_t)&this_thread
                        : (unsigned long long)(uintptr_t)queue->stream;
    }
    *key = (struct wd_arena_key){queue->context_id, stream_id, capture_id};
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t take_scratch(struct wd_queue *base, size_t bytes, void **data)
{
    struct wd_gpu_queue *queue = wd_gpu_queue_of(base);
    struct wd_arena_key key;
    CUgraph graph;
    WD_TRY(find_key(queue, bytes, &key, &graph));
    return wd_arena_take(&queue->held, &key, graph, bytes, data);
}

static cudnnStatus_t take_counters(struct wd_queue *base, void **data)
{
    struct wd_gpu_queue *queue = wd_gpu_queue_of(base);
    struct wd_arena_key key = {0};
    CUgraph graph = NULL;
    /* those of an arena that the execution has cost no further question to the driver */
    if (!queue->held) WD_TRY(find_key(queue, WD_COUNTERS_BYTES, &key, &graph));
    return wd_arena_counters(&queue->held, &key, graph, data);
}

static const struct wd_queue_ops stream_ops = {
    .begin = begin,
    .end = end,
    .kernel = emit_kernel,
    .fill = emit_fill,
    .copy = emit_copy,
    .scratch = take_scratch,
    .counters = take_counters,
};

/* The context that a new handle belongs to: the current one, or device 0's primary context. */
static cudnnStatus_t choose_context(struct wd_gpu_queue *queue)
{
    CUresult result = wd_cu.cuCtxGetCurrent(&queue->context);
    if (result != CUDA_SUCCESS) {
        return wd_driver_fail(result, "cuCtxGetCurrent", "looking for the current context");
    }
    if (queue->context) {
        WD_CU_TRY(cuCtxGetDevice, (&queue->device), "asking for the current context's device");
        return CUDNN_STATUS_SUCCESS;
    }
    WD_CU_TRY(cuDeviceGet, (&queue->device, 0), "choosing device 0, for no context is current");
    WD_CU_TRY(cuDevicePrimaryCtxRetain, (&queue->context, queue->device),
              "retaining the primary context of device 0, for no context is current");
    queue->owns_primary = true;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t describe(struct wd_gpu_queue *queue)
{
    const struct wd_device *device = wd_device_find(queue->device);
    unsigned long long id = 0;
    WD_REQUIRE(device, CUDNN_STATUS_NOT_INITIALIZED,
               "the current context belongs to CUDA device %d, which is none of those that the "
               "driver counts",
               queue->device);
    WD_REQUIRE(device->capability >= WD_CUDA_MIN_CAPABILITY, CUDNN_STATUS_NOT_INITIALIZED,
               "device %d has compute capability %d.%d; needed is %d.%d or newer", device->ordinal,
               device->capability / 10, device->capability % 10, WD_CUDA_MIN_CAPABILITY / 10,
               WD_CUDA_MIN_CAPABILITY % 10);
    queue->place = wd_module_place(device->capability);
    WD_REQUIRE(queue->place >= 0, CUDNN_STATUS_NOT_INITIALIZED,
               "device %d has compute capability %d.%d, and this process uses devices of %d others",
               device->ordinal, device->capability / 10, device->capability % 10, WD_MODULE_PLACES);
    WD_CU_TRY(cuCtxGetId, (queue->context, &id), "asking for the id of the handle's context");
    queue->base.ops = &stream_ops;
    queue->base.device = device;
    queue->context_id = id;
    return wd_arena_open_context(id);
}

cudnnStatus_t wd_gpu_queue_create(struct wd_queue **out)
{
    const char *why = NULL;
    struct wd_gpu_queue *queue;
    cudnnStatus_t status;
    WD_REQUIRE(wd_gpu_probe(&why) == WD_GPU_READY, CUDNN_STATUS_NOT_INITIALIZED, "%s", why);
    queue = wd_alloc(sizeof *queue);
    WD_REQUIRE(queue, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no %zu bytes of host memory for a GPU queue", sizeof *queue);
    status = choose_context(queue);
    if (status != CUDNN_STATUS_SUCCESS) goto fail;
    status = describe(queue);
    if (status != CUDNN_STATUS_SUCCESS) goto fail;
    *out = &queue->base;
    return CUDNN_STATUS_SUCCESS;

fail:
    if (queue->owns_primary) wd_cu.cuDevicePrimaryCtxRelease(queue->device);
    wd_free(queue);
    /* a driver that answers out of memory says so; any other trouble is that there is no GPU */
    return status == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER ? CUDNN_STATUS_NOT_INITIALIZED
                                                               : status;
}

/* Silent whatever the driver answers: at the end of a process it may be gone already, and a context
 * that its owner has destroyed took our memory with it. */
void wd_gpu_queue_destroy(struct wd_queue *base)
{
    struct wd_gpu_queue *queue = wd_gpu_queue_of(base);
    const char *ignored;
    bool usable;
    if (!queue) return;
    if (queue->held) wd_arena_give(&queue->held);
    usable = wd_context_enter(queue, &ignored) == CUDA_SUCCESS;
    wd_arena_close_context(queue->context_id, usable);
    if (usable) wd_context_leave(queue);
    if (queue->owns_primary) wd_cu.cuDevicePrimaryCtxRelease(queue->device);
    wd_free(queue);
}

/* The null stream and its two explicit names belong to whatever context is current. */
static bool is_default_stream(CUstream stream)
{
    return (uintptr_t)stream <= PER_THREAD_STREAM;
}

static cudnnStatus_t check_stream(const struct wd_gpu_queue *queue, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUcontext context = NULL;
    CUresult result;
    if (!is_default_stream(stream)) {
        WD_CU_TRY(cuStreamGetCtx, (stream, &context), "asking for the context of stream %p",
                  (void *)stream);
        WD_REQUIRE(context == queue->context, CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH,
                   "stream %p belongs to context %p; needed is a stream of the handle's context %p "
                   "(device %d)",
                   (void *)stream, (void *)context, (void *)queue->context,
                   queue->base.device->ordinal);
    }
    result = wd_cu.cuStreamIsCapturing(stream, &status);
    /* the legacy stream cannot be asked while another stream captures, and may yet be wanted later */
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return CUDNN_STATUS_SUCCESS;
    if (result != CUDA_SUCCESS) {
        return wd_driver_fail(result, "cuStreamIsCapturing", "setting stream %p", (void *)stream);
    }
    WD_REQUIRE(status != CU_STREAM_CAPTURE_STATUS_INVALIDATED, CUDNN_STATUS_BAD_PARAM,
               "stream %p is in a capture that was invalidated; needed is a stream that captures "
               "validly or not at all",
               (void *)stream);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_gpu_queue_set_stream(struct wd_queue *base, cudaStream_t stream)
{
    struct wd_gpu_queue *queue = wd_gpu_queue_of(base);
    cudnnStatus_t status;
    WD_TRY(begin(base));
    status = check_stream(queue, stream);
    end(base);
    if (status == CUDNN_STATUS_SUCCESS) queue->stream = stream;
    return status;
}

cudaStream_t wd_gpu_queue_stream(const struct wd_queue *base)
{
    return ((const struct wd_gpu_queue *)base)->stream;
}

static cudnnStatus_t synchronize(const struct wd_gpu_queue *queue)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    WD_CU_TRY(cuStreamIsCapturing, (queue->stream, &status), "waiting for stream %p",
              (void *)queue->stream);
    WD_REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE, CUDNN_STATUS_BAD_PARAM,
               "stream %p is being captured and cannot be waited for", (void *)queue->stream);
    WD_CU_TRY(cuStreamSynchronize, (queue->stream), "waiting for stream %p", (void *)queue->stream);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_gpu_queue_synchronize(struct wd_queue *base)
{
    cudnnStatus_t status;
    WD_TRY(begin(base));
    status = synchronize(wd_gpu_queue_of(base));
    end(base);
    return status;
}
