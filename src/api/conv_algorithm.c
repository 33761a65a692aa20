/* SPDX-License-Identifier: Apache-2.0
 *
 * The legacy algorithms of convolution: what each enumerator means and the workspace it needs. An
 * enumerator names its engines for good, so that what was answered and what runs agree:
 *
 *     IMPLICIT_GEMM, BWD_DATA_ALGO_0, BWD_FILTER_ALGO_0   the best engine whose scratch fits the
 *                                                         library's arena: no workspace
 *     DIRECT                                              the definition
 *     all others                                          the best engine */
#include "api/conv.h"

enum meaning { BEST, LEAN, DIRECT };

enum {
    LEAN_SCRATCH_MAX = 8 << 20,       /* what the arenas of a GPU give at most */
    LEAN_HOST_SCRATCH_MAX = 64 << 20, /* the CPU queue's block grows: more than any engine wants */
    CANDIDATES_MAX = 16,
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

static cudnnStatus_t workspace_of(const char *function, cudnnHandle_t handle,
                                  struct wd_single *single, int engine, size_t *bytes)
{
    single->graph.engine = engine;
    return wd_run_workspace(function, handle, single, bytes);
}

/* Leaves in the graph the first engine for which a workspace of `given` bytes suffices, or else the
 * scratch that the library has; says which of the two. */
static cudnnStatus_t choose_fitting(const char *function, cudnnHandle_t handle,
                                    struct wd_single *single, size_t given, bool *from_arena)
{
    size_t scratch =
        handle->queue->device->kind == WD_CPU ? LEAN_HOST_SCRATCH_MAX : LEAN_SCRATCH_MAX;
    int ids[CANDIDATES_MAX] = {0};
    int count;
    size_t bytes;
    /* the best first, by its short way */
    WD_TRY(workspace_of(function, handle, single, 0, &bytes));
    *from_arena = bytes > given;
    if (bytes <= given || bytes <= scratch) return CUDNN_STATUS_SUCCESS;
    count = wd_plan_candidates(handle->queue->device, &single->graph, ids, CANDIDATES_MAX, NULL);
    for (int i = 0; i < count && i < CANDIDATES_MAX; ++i) {
        WD_TRY(workspace_of(function, handle, single, ids[i], &bytes));
        *from_arena = bytes > given;
        if (bytes <= given || bytes <= scratch) return CUDNN_STATUS_SUCCESS;
    }
    return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED,
                      "no engine does this convolution with %zu bytes of scratch", scratch);
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
    bool from_arena = false;
    WD_TRY(wd_conv_algorithm(function, handle, single, algorithm, NULL, &from_arena));
    if (single->node.op == WD_OP_CONV_FUSED && meaning_of(single->node.op, algorithm) == BEST) {
        /* sized by the forward query, which answered for other engines */
        WD_TRY(
            choose_fitting(function, handle, single, workspace ? workspace_bytes : 0, &from_arena));
    }
    if (from_arena) return wd_run(function, handle, single, NULL, WD_WORKSPACE_ARENA);
    return wd_run(function, handle, single, workspace, wd_bytes_given(workspace_bytes));
}

cudnnStatus_t wd_conv_algorithm(const char *function, cudnnHandle_t handle,
                                struct wd_single *single, int algorithm, size_t *bytes,
                                bool *from_arena)
{
    int limit = wd_conv_algorithm_count(single->node.op);
    enum meaning meaning;
    if (algorithm < 0 || algorithm >= limit) {
        return wd_fail_in(function, CUDNN_STATUS_NOT_SUPPORTED,
                          "algo=%d is not within the %d algorithms of this direction", algorithm,
                          limit);
    }
    meaning = meaning_of(single->node.op, algorithm);
    single->graph.engine = 0;
    if (meaning == LEAN) WD_TRY(choose_fitting(function, handle, single, 0, from_arena));
    if (meaning == DIRECT) WD_TRY(choose_direct(function, handle, single));
    *from_arena = meaning == LEAN;
    if (!bytes) return CUDNN_STATUS_SUCCESS;
    if (meaning != LEAN) return wd_run_workspace(function, handle, single, bytes);
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
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

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
    cudnnConvolutionFwdAlgo_t algo, size_t *sizeInBytes)
{
    struct wd_conv_call call = {WD_CONV_QUERY(FPROP, xDesc, wDesc, yDesc)};
    return workspace_size(&call, handle, (int)algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t *sizeInBytes)
{
    struct wd_conv_call call = {WD_CONV_QUERY(DGRAD, dxDesc, wDesc, dyDesc)};
    return workspace_size(&call, handle, (int)algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t gradDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *sizeInBytes)
{
    struct wd_conv_call call = {WD_CONV_QUERY(WGRAD, xDesc, gradDesc, dyDesc)};
    return workspace_size(&call, handle, (int)algo, sizeInBytes);
}
