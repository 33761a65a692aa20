/* SPDX-License-Identifier: Apache-2.0
 *
 * The legacy algorithms of convolution: what each enumerator means, the workspace it needs, and the
 * lists that Get and Find answer. An enumerator names its engines for good, so that what was
 * answered and what runs agree:
 *
 *     IMPLICIT_GEMM, BWD_DATA_ALGO_0, BWD_FILTER_ALGO_0   the best engine whose scratch fits the
 *                                                         library's arena: no workspace
 *     DIRECT                                              the definition
 *     all others                                          the best engine
 *
 * Get and Find list each different plan once, under the first of BEST, LEAN, DIRECT that means it.
 * Find times them by running them: wall clock around runs in a row, the queue idle before and after. */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "api/conv.h"
#include "base/alloc.h"
#include "gpu/gpu.h"

enum meaning { BEST, LEAN, DIRECT, MEANINGS };

enum {
    LEAN_SCRATCH_MAX = 8 << 20, /* what the arenas give at most */
    CANDIDATES_MAX = 16,
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
    int engine[MEANINGS]; /* of the rows, in the order in which they were listed */
    int count;
    struct result results[MEANINGS];
};

int wd_conv_algorithm_count(enum wd_op op)
{
    switch (op) {
    case WD_OP_CONV_DGRAD: return CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
    case WD_OP_CONV_WGRAD: return CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
    default: return CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    }
}

static enum meaning meaning_of(enum wd_op op, int algorithm)
{
    if (algorithm == 0) return LEAN; /* the first enumerator of all three directions */
    if (op == WD_OP_CONV_DGRAD || op == WD_OP_CONV_WGRAD) return BEST;
    return algorithm == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT ? DIRECT : BEST;
}

/* The enumerator under which a meaning is listed; -1: none in this direction. */
static int algorithm_of(enum wd_op op, enum meaning meaning)
{
    if (meaning == LEAN) return 0;
    if (op == WD_OP_CONV_DGRAD) return meaning == BEST ? CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 : -1;
    if (op == WD_OP_CONV_WGRAD) return meaning == BEST ? CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 : -1;
    return meaning == BEST ? CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
                           : CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
}

static cudnnStatus_t workspace_of(const char *function, cudnnHandle_t handle,
                                  struct wd_single *single, int engine, size_t *bytes)
{
    single->graph.engine = engine;
    return wd_run_workspace(function, handle, single, bytes);
}

/* Leaves in the graph the first engine whose scratch the arena can give. */
static cudnnStatus_t choose_lean(const char *function, cudnnHandle_t handle,
                                 struct wd_single *single)
{
    int ids[CANDIDATES_MAX];
    int count;
    size_t bytes;
    WD_TRY(workspace_of(function, handle, single, 0, &bytes));
    if (bytes <= LEAN_SCRATCH_MAX) return CUDNN_STATUS_SUCCESS;
    count = wd_plan_candidates(handle->queue->device, &single->graph, ids, CANDIDATES_MAX, NULL);
    for (int i = 0; i < count && i < CANDIDATES_MAX; ++i) {
        WD_TRY(workspace_of(function, handle, single, ids[i], &bytes));
        if (bytes <= LEAN_SCRATCH_MAX) return CUDNN_STATUS_SUCCESS;
    }
    return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED,
                      "no engine does this convolution with %d bytes of scratch",
                      (int)LEAN_SCRATCH_MAX);
}

/* The forward query answers for this call too, though its engines are others: where the caller's
 * workspace is too small for the best, leaves in the graph the first that it suffices for. */
static cudnnStatus_t choose_fused(const char *function, cudnnHandle_t handle,
                                  struct wd_single *single, size_t given, bool *from_arena)
{
    int ids[CANDIDATES_MAX];
    int count;
    size_t bytes;
    WD_TRY(workspace_of(function, handle, single, 0, &bytes));
    if (bytes <= given) return CUDNN_STATUS_SUCCESS;
    count = wd_plan_candidates(handle->queue->device, &single->graph, ids, CANDIDATES_MAX, NULL);
    for (int i = 0; i < count && i < CANDIDATES_MAX; ++i) {
        WD_TRY(workspace_of(function, handle, single, ids[i], &bytes));
        if (bytes <= given) return CUDNN_STATUS_SUCCESS;
    }
    *from_arena = true;
    return choose_lean(function, handle, single);
}

/* Leaves in the graph the engine of last resort. */
static cudnnStatus_t choose_direct(const char *function, cudnnHandle_t handle,
                                   struct wd_single *single)
{
    enum wd_device_kind kind = handle->queue->device->kind;
    for (int i = 0; i < wd_engine_rows(); ++i) {
        struct wd_engine_row row = wd_engine_row(i);
        if (!row.engine || row.engine->op != single->node.op || row.engine->device != kind)
            continue;
        if (!row.engine->last_resort) continue;
        single->graph.engine = row.id;
        return CUDNN_STATUS_SUCCESS;
    }
    return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED, "%s has no definition on this device",
                      wd_op_info(single->node.op)->name);
}

cudnnStatus_t wd_conv_run(const char *function, cudnnHandle_t handle, struct wd_single *single,
                          int algorithm, void *workspace, size_t workspace_bytes)
{
    bool from_arena;
    int64_t given = workspace_bytes > INT64_MAX ? INT64_MAX : (int64_t)workspace_bytes;
    WD_TRY(wd_conv_algorithm(function, handle, single, algorithm, NULL, &from_arena));
    if (single->node.op == WD_OP_CONV_FUSED && meaning_of(single->node.op, algorithm) == BEST) {
        WD_TRY(
            choose_fused(function, handle, single, workspace ? workspace_bytes : 0, &from_arena));
    }
    if (from_arena) return wd_run(function, handle, single, NULL, WD_WORKSPACE_ARENA);
    return wd_run(function, handle, single, workspace, given);
}

cudnnStatus_t wd_conv_algorithm(const char *function, cudnnHandle_t handle,
                                struct wd_single *single, int algorithm, size_t *bytes,
                                bool *from_arena)
{
    int limit = wd_conv_algorithm_count(single->node.op);
    enum meaning meaning;
    if (algorithm < 0 || algorithm >= limit) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "algo=%d is not within the %d algorithms of this direction", algorithm,
                          limit);
    }
    meaning = meaning_of(single->node.op, algorithm);
    single->graph.engine = 0;
    if (meaning == LEAN) WD_TRY(choose_lean(function, handle, single));
    if (meaning == DIRECT) WD_TRY(choose_direct(function, handle, single));
    *from_arena = meaning == LEAN;
    if (!bytes) return CUDNN_STATUS_SUCCESS;
    if (meaning != LEAN) return wd_run_workspace(function, handle, single, bytes);
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

/* Lists what a meaning comes to, unless that is listed already. */
static cudnnStatus_t list(struct search *search, enum meaning meaning)
{
    int algorithm = algorithm_of(search->single.node.op, meaning);
    struct result *result = &search->results[search->count];
    const struct wd_plan *plan;
    bool from_arena;
    bool fma = search->single.node.attr.conv.math == CUDNN_FMA_MATH;
    int engine;
    uint32_t notes;
    if (algorithm < 0) return CUDNN_STATUS_SUCCESS;
    memset(result, 0, sizeof *result);
    result->algorithm = algorithm;
    result->time = -1.0F;
    WD_TRY(wd_conv_algorithm(search->function, search->handle, &search->single, algorithm,
                             &result->memory, &from_arena));
    WD_TRY(wd_pass_in(search->function,
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
    for (int m = 0; m < MEANINGS; ++m) WD_TRY(list(search, (enum meaning)m));
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
    WD_TRY(wait(search->handle));
    start = seconds();
    for (int i = 0; i < runs; ++i) {
        WD_TRY(wd_conv_run(search->function, search->handle, &search->single, result->algorithm,
                           workspace, result->memory));
    }
    WD_TRY(wait(search->handle));
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

/* Success where one of them ran; else why the first did not. */
static cudnnStatus_t verdict(const struct search *search)
{
    cudnnStatus_t status = search->results[0].status;
    if (status == CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT) {
        return CUDNN_STATUS_SUCCESS;
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
    for (int t = 0; t < TENSORS; ++t) search.single.data[t] = NULL;
    for (int t = 0; t < TENSORS; ++t) {
        status = allocate(handle, (size_t)wd_tensor_extent(&search.single.tensors[t]),
                          &search.single.data[t]);
        if (status != CUDNN_STATUS_SUCCESS) goto done;
    }
    /* without room for it the plans that need none are still measured */
    if (allocate(handle, workspace_bytes, &workspace) != CUDNN_STATUS_SUCCESS) workspace_bytes = 0;
    measure_all(&search, workspace, workspace_bytes);
    status = verdict(&search);
    if (status == CUDNN_STATUS_SUCCESS) give(&search, requested, returned, results);
done:
    release(handle, workspace);
    for (int t = 0; t < TENSORS; ++t) release(handle, search.single.data[t]);
    return wd_pass_in(call->function, status);
}

static cudnnStatus_t workspace_size(const struct wd_conv_call *call, cudnnHandle_t handle,
                                    int algorithm, size_t *bytes)
{
    struct wd_single single;
    bool from_arena;
    WD_TRY(wd_check_handle(call->function, handle));
    WD_TRY(wd_conv_build(call, &single));
    if (!bytes) {
        return wd_fail_in(call->function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                          "sizeInBytes is null");
    }
    return wd_conv_algorithm(call->function, handle, &single, algorithm, bytes, &from_arena);
}

static cudnnStatus_t max_count(const char *function, cudnnHandle_t handle, enum wd_op op,
                               int *count)
{
    WD_TRY(wd_check_handle(function, handle));
    if (!count) return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "count is null");
    *count = wd_conv_algorithm_count(op);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int *count)
{
    return max_count(__func__, handle, WD_OP_CONV_FPROP, count);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int *count)
{
    return max_count(__func__, handle, WD_OP_CONV_DGRAD, count);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int *count)
{
    return max_count(__func__, handle, WD_OP_CONV_WGRAD, count);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnFilterDescriptor_t filterDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t destDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {
        __func__,  WD_OP_CONV_FPROP, srcDesc,    filterDesc, destDesc, convDesc,
        "srcDesc", "filterDesc",     "destDesc", NULL,       NULL,     NULL};
    return get(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {
        __func__,   WD_OP_CONV_DGRAD, gradDesc,   filterDesc, diffDesc, convDesc,
        "gradDesc", "filterDesc",     "diffDesc", NULL,       NULL,     NULL};
    return get(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnFilterDescriptor_t gradDesc, const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {
        __func__,  WD_OP_CONV_WGRAD, srcDesc,    gradDesc, diffDesc, convDesc,
        "srcDesc", "gradDesc",       "diffDesc", NULL,     NULL,     NULL};
    return get(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {__func__, WD_OP_CONV_FPROP, xDesc,   wDesc, yDesc, convDesc,
                                "xDesc",  "wDesc",          "yDesc", NULL,  NULL,  NULL};
    return find(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {__func__, WD_OP_CONV_DGRAD, dxDesc,   wDesc, dyDesc, convDesc,
                                "dxDesc", "wDesc",          "dyDesc", NULL,  NULL,   NULL};
    return find(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc,
    const int requestedAlgoCount, int *returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t *perfResults)
{
    struct wd_conv_call call = {__func__, WD_OP_CONV_WGRAD, xDesc,    dwDesc, dyDesc, convDesc,
                                "xDesc",  "dwDesc",         "dyDesc", NULL,   NULL,   NULL};
    return find(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnFilterDescriptor_t wDesc, const void *w, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t yDesc, void *y, const int requestedAlgoCount,
    int *returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t *perfResults, void *workSpace,
    size_t workSpaceSizeInBytes)
{
    struct wd_conv_call call = {__func__, WD_OP_CONV_FPROP, xDesc,   wDesc, yDesc, convDesc,
                                "xDesc",  "wDesc",          "yDesc", x,     w,     y};
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
    struct wd_conv_call call = {__func__, WD_OP_CONV_DGRAD, dxDesc,   wDesc, dyDesc, convDesc,
                                "dxDesc", "wDesc",          "dyDesc", dx,    w,      dy};
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
    struct wd_conv_call call = {__func__, WD_OP_CONV_WGRAD, xDesc,    dwDesc, dyDesc, convDesc,
                                "xDesc",  "dwDesc",         "dyDesc", x,      dw,     y};
    return find_ex(&call, handle, requestedAlgoCount, returnedAlgoCount, perfResults, workSpace,
                   workSpaceSizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
    cudnnConvolutionFwdAlgo_t algo, size_t *sizeInBytes)
{
    struct wd_conv_call call = {__func__, WD_OP_CONV_FPROP, xDesc,   wDesc, yDesc, convDesc,
                                "xDesc",  "wDesc",          "yDesc", NULL,  NULL,  NULL};
    return workspace_size(&call, handle, (int)algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t *sizeInBytes)
{
    struct wd_conv_call call = {__func__, WD_OP_CONV_DGRAD, dxDesc,   wDesc, dyDesc, convDesc,
                                "dxDesc", "wDesc",          "dyDesc", NULL,  NULL,   NULL};
    return workspace_size(&call, handle, (int)algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t gradDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *sizeInBytes)
{
    struct wd_conv_call call = {__func__, WD_OP_CONV_WGRAD, xDesc,    gradDesc, dyDesc, convDesc,
                                "xDesc",  "gradDesc",       "dyDesc", NULL,     NULL,   NULL};
    return workspace_size(&call, handle, (int)algo, sizeInBytes);
}
