/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of algorithms that Get and Find answer: each different plan once, under the first
 * enumerator of listed_algorithm that comes to it. Find times the plans by running them: wall clock
 * around runs in a row, the queue idle before and after. */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "api/conv.h"
#include "base/alloc.h"
#include "base/env.h"
#include "gpu/gpu.h"

enum {
    LISTED = 3,      /* plans at most */
    LAST_RESORT = 2, /* the place of the definition among them */
    RUNS_MAX = 10,
    FILL_BYTE = 0x3c, /* a modest normal number in every type */
};
static const double run_budget = 0.02; /* seconds */

/* One row of a result list; the three public structs have this layout. */
struct result {
    int algorithm;
    cudnnStatus_t status;
    float time; /* milliseconds, -1: not measured */
    size_t memory;
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
    int reserved[3];
};
_Static_assert(sizeof(struct result) == sizeof(cudnnConvolutionFwdAlgoPerf_t) &&
                   sizeof(struct result) == sizeof(cudnnConvolutionBwdDataAlgoPerf_t) &&
                   sizeof(struct result) == sizeof(cudnnConvolutionBwdFilterAlgoPerf_t) &&
                   offsetof(struct result, math) ==
                       offsetof(cudnnConvolutionFwdAlgoPerf_t, mathType) &&
                   offsetof(struct result, memory) ==
                       offsetof(cudnnConvolutionFwdAlgoPerf_t, memory),
               "the public result structs are laid out like struct result");

/* What a result list is made from. */
struct search {
    const char *function;
    cudnnHandle_t handle;
    struct wd_single single;
    int engine[LISTED]; /* of the rows, in order */
    int count;
    struct result results[LISTED];
};

/* The enumerators under which plans are listed: the best, the best without a workspace, the
 * definition; -1: none in this direction. */
static int listed_algorithm(enum wd_op op, int place)
{
    static const int forward[LISTED] = {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                        CUDNN_CONVOLUTION_FWD_ALGO_DIRECT};
    static const int data[LISTED] = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                     CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, -1};
    static const int filter[LISTED] = {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, -1};
    return op == WD_OP_CONV_DGRAD   ? data[place]
           : op == WD_OP_CONV_WGRAD ? filter[place]
                                    : forward[place];
}

/* Lists the plan that an algorithm comes to, unless it is listed already. */
static cudnnStatus_t list(struct search *search, int place)
{
    int algorithm = listed_algorithm(search->single.node.op, place);
    struct result *result = &search->results[search->count];
    const struct wd_plan *plan;
    bool from_arena;
    bool fma = search->single.node.attr.conv.math == CUDNN_FMA_MATH;
    int engine;
    uint32_t notes;
    if (algorithm < 0) return CUDNN_STATUS_SUCCESS;
    if (place == LAST_RESORT && !wd_env()->last_resort) return CUDNN_STATUS_SUCCESS;
    memset(result, 0, sizeof *result);
    result->algorithm = algorithm;
    result->time = -1.0F;
    WD_TRY(wd_conv_algorithm(search->function, search->handle, &search->single, algorithm,
                             &result->memory, &from_arena));
    WD_TRY(
        wd_pass_single(search->function, &search->single,
                       wd_plan_get(search->handle->queue->device, &search->single.graph, &plan)));
    engine = wd_engine_id(plan->steps[0].engine);
    notes = plan->notes;
    wd_plan_release(plan);
    for (int i = 0; i < search->count; ++i) {
        if (search->engine[i] == engine && search->results[i].memory <= result->memory) {
            return CUDNN_STATUS_SUCCESS;
        }
    }
    result->determinism = notes >> CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC & 1U
                              ? CUDNN_NON_DETERMINISTIC
                              : CUDNN_DETERMINISTIC;
    result->math = notes >> CUDNN_NUMERICAL_NOTE_TENSOR_CORE & 1U ? CUDNN_TENSOR_OP_MATH
                   : fma                                          ? CUDNN_FMA_MATH
                                                                  : CUDNN_DEFAULT_MATH;
    search->engine[search->count++] = engine;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t begin_search(struct search *search, cudnnHandle_t handle,
                                  const struct wd_conv_call *call, int requested,
                                  const int *returned, const void *results)
{
    search->function = call->function;
    search->handle = handle;
    search->count = 0;
    WD_TRY(wd_check_handle(call->function, handle));
    WD_TRY(wd_conv_build(call, &search->single));
    if (requested < 1) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM,
                          "requestedAlgoCount=%d is not positive", requested);
    }
    if (!returned || !results) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null",
                          returned ? "perfResults" : "returnedAlgoCount");
    }
    for (int place = 0; place < LISTED; ++place) WD_TRY(list(search, place));
    return CUDNN_STATUS_SUCCESS;
}

static void give(const struct search *search, int requested, int *returned, void *results)
{
    *returned = search->count < requested ? search->count : requested;
    memcpy(results, search->results, sizeof search->results[0] * (size_t)*returned);
}

static cudnnStatus_t get(const struct wd_conv_call *call, cudnnHandle_t handle, int requested,
                         int *returned, void *results)
{
    struct search search;
    WD_TRY(begin_search(&search, handle, call, requested, returned, results));
    give(&search, requested, returned, results);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t wait(cudnnHandle_t handle)
{
    if (handle->queue->device->kind == WD_CPU) return CUDNN_STATUS_SUCCESS;
    return wd_gpu_queue_synchronize(handle->queue);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds of `runs` runs in a row. */
static cudnnStatus_t time_runs(struct search *search, const struct result *result, int runs,
                               void *workspace, double *taken)
{
    double start;
    WD_TRY(wd_pass_in(search->function, wait(search->handle)));
    start = seconds();
    for (int i = 0; i < runs; ++i) {
        WD_TRY(wd_conv_run(search->function, search->handle, &search->single, result->algorithm,
                           workspace, result->memory));
    }
    WD_TRY(wd_pass_in(search->function, wait(search->handle)));
    *taken = seconds() - start;
    return CUDNN_STATUS_SUCCESS;
}

/* The first run loads and warms up; where it alone is long it has to do. */
static cudnnStatus_t measure(struct search *search, struct result *result, void *workspace)
{
    double taken;
    int runs;
    WD_TRY(time_runs(search, result, 1, workspace, &taken));
    if (taken > 10.0 * run_budget) {
        result->time = (float)(1e3 * taken);
        return CUDNN_STATUS_SUCCESS;
    }
    runs = taken * RUNS_MAX > run_budget ? (int)(run_budget / taken) + 1 : RUNS_MAX;
    WD_TRY(time_runs(search, result, runs, workspace, &taken));
    result->time = (float)(1e3 * taken / runs);
    return CUDNN_STATUS_SUCCESS;
}

/* Fastest first, what did not run last; equal ones stay in order. */
static void sort(struct search *search)
{
    for (int i = 1; i < search->count; ++i) {
        struct result moving = search->results[i];
        int at = i;
        while (at > 0 && moving.status == CUDNN_STATUS_SUCCESS &&
               (search->results[at - 1].status != CUDNN_STATUS_SUCCESS ||
                search->results[at - 1].time > moving.time)) {
            search->results[at] = search->results[at - 1];
            --at;
        }
        search->results[at] = moving;
    }
}

static void measure_all(struct search *search, void *workspace, size_t workspace_bytes)
{
    for (int i = 0; i < search->count; ++i) {
        struct result *result = &search->results[i];
        if (result->memory > workspace_bytes) {
            result->status = CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
        } else {
            result->status = measure(search, result, workspace);
        }
    }
    sort(search);
}

/* Success where one of them ran, or none was given its workspace; else why one did not. */
static cudnnStatus_t verdict(const struct search *search)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    for (int i = search->count - 1; i >= 0; --i) {
        cudnnStatus_t own = search->results[i].status;
        if (own == CUDNN_STATUS_SUCCESS) return own;
        if (own != CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT) status = own;
    }
    return status;
}

static cudnnStatus_t find_ex(const struct wd_conv_call *call, cudnnHandle_t handle, int requested,
                             int *returned, void *results, void *workspace, size_t workspace_bytes)
{
    struct search search;
    WD_TRY(begin_search(&search, handle, call, requested, returned, results));
    WD_TRY(wd_conv_check_data(call));
    measure_all(&search, workspace, workspace ? workspace_bytes : 0);
    WD_TRY(verdict(&search));
    give(&search, requested, returned, results);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t allocate(cudnnHandle_t handle, size_t bytes, void **data)
{
    struct wd_queue *queue = handle->queue;
    cudnnStatus_t status;
    *data = NULL;
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    if (queue->device->kind == WD_GPU) {
        WD_TRY(wd_gpu_malloc(queue, bytes, data));
    } else {
        *data = wd_alloc(bytes);
        WD_REQUIRE(*data != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no host memory for %zu bytes", bytes);
    }
    WD_TRY(queue->ops->begin(queue));
    status = queue->ops->fill(queue, *data, FILL_BYTE, bytes);
    queue->ops->end(queue);
    return status;
}

static void release(cudnnHandle_t handle, void *data)
{
    if (handle->queue->device->kind == WD_GPU) (void)wd_gpu_free(handle->queue, data);
    else wd_free(data);
}

/* On the host an allocation beyond the memory that there is succeeds, and ends the process when it is
 * filled: asked for before. */
static cudnnStatus_t check_room(const struct search *search, int tensors)
{
    const struct wd_device *device = search->handle->queue->device;
    int64_t bytes = 0;
    if (device->kind != WD_CPU || device->memory_bytes <= 0) return CUDNN_STATUS_SUCCESS;
    for (int t = 0; t < tensors; ++t) {
        int64_t own = wd_tensor_extent(&search->single.tensors[t]);
        if (__builtin_add_overflow(bytes, own, &bytes)) bytes = INT64_MAX;
    }
    if (bytes <= device->memory_bytes) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(search->function, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                      "the %d tensors take %lld bytes, the host has %lld in all", tensors,
                      (long long)bytes, (long long)device->memory_bytes);
}

/* The same on tensors of our own. */
static cudnnStatus_t find(const struct wd_conv_call *call, cudnnHandle_t handle, int requested,
                          int *returned, void *results)
{
    enum { TENSORS = 3 };
    struct search search;
    size_t workspace_bytes = 0;
    void *workspace = NULL;
    cudnnStatus_t status;
    WD_TRY(begin_search(&search, handle, call, requested, returned, results));
    for (int i = 0; i < search.count; ++i) {
        if (search.results[i].memory > workspace_bytes) workspace_bytes = search.results[i].memory;
    }
    WD_TRY(check_room(&search, TENSORS));
    for (int t = 0; t < TENSORS; ++t) search.single.data[t] = NULL;
    for (int t = 0; t < TENSORS; ++t) {
        status = allocate(handle, (size_t)wd_tensor_extent(&search.single.tensors[t]),
                          &search.single.data[t]);
        if (status != CUDNN_STATUS_SUCCESS) {
            wd_pass_in(call->function, status);
            goto done;
        }
    }
    /* without room for it the plans that need none are still measured */
    if (allocate(handle, workspace_bytes, &workspace) != CUDNN_STATUS_SUCCESS) workspace_bytes = 0;
    measure_all(&search, workspace, workspace_bytes);
    status = verdict(&search);
    if (status == CUDNN_STATUS_SUCCESS) give(&search, requested, returned, results);
done:
    release(handle, workspace);
    for (int t = 0; t < TENSORS; ++t) release(handle, search.single.data[t]);
    return status;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnFilterDescriptor_t filterDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t destDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {WD_CONV_QUERY(FPROP, srcDesc, filterDesc, destDesc)};
    return get(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {WD_CONV_QUERY(DGRAD, gradDesc, filterDesc, diffDesc)};
    return get(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnFilterDescriptor_t gradDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {WD_CONV_QUERY(WGRAD, srcDesc, gradDesc, diffDesc)};
    return get(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {WD_CONV_QUERY(FPROP, xDesc, wDesc, yDesc)};
    return find(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {WD_CONV_QUERY(DGRAD, dxDesc, wDesc, dyDesc)};
    return find(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {WD_CONV_QUERY(WGRAD, xDesc, dwDesc, dyDesc)};
    return find(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnFilterDescriptor_t wDesc, const void *w, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t yDesc, void *y, const int requestedAlgoCount,
    int *returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t *perfResults, void *workSpace,
    size_t workSpaceSizeInBytes)
{
    struct wd_conv_call call = {WD_CONV_QUERY(FPROP, xDesc, wDesc, yDesc), WD_CONV_DATA(x, w, y)};
    return find_ex(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults, workSpace,
                   workSpaceSizeInBytes);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const void *w,
    const cudnnTensorDescriptor_t dyDesc, const void *dy,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc, void *dx,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes)
{
    struct wd_conv_call call = {WD_CONV_QUERY(DGRAD, dxDesc, wDesc, dyDesc),
                                WD_CONV_DATA(dx, w, dy)};
    return find_ex(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults, workSpace,
                   workSpaceSizeInBytes);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnTensorDescriptor_t dyDesc, const void *y,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc, void *dw,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes)
{
    struct wd_conv_call call = {WD_CONV_QUERY(WGRAD, xDesc, dwDesc, dyDesc),
                                WD_CONV_DATA(x, dw, y)};
    return find_ex(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults, workSpace,
                   workSpaceSizeInBytes);
}
