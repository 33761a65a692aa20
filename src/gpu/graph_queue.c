/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph queue: what is emitted becomes one chain of nodes in a CUDA graph. An execution that
 * fails takes its nodes out again. One thread at a time. */
#include "gpu/chain.h"

/* A node that was added becomes the chain's last; one that cannot be remembered goes again. */
static cudnnStatus_t add_last(struct wd_gpu_graph_queue *queue, CUgraphNode node,
                              CUgraphNodeType type)
{
    cudnnStatus_t status = wd_chain_append(queue, node, type);
    if (status != CUDNN_STATUS_SUCCESS) {
        wd_cu.cuGraphDestroyNode(node);
        return status;
    }
    queue->last = node;
    queue->base.emitted += 1;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t add_kernel(struct wd_queue *base, const struct wd_launch *launch)
{
    struct wd_gpu_graph_queue *queue = wd_graph_queue_of(base);
    CUgraphNode last = queue->last;
    CUgraphNode node = NULL;
    CUDA_KERNEL_NODE_PARAMS params;
    void *values[WD_MAX_PARAMS] = {NULL};
    for (int i = 0; i < launch->param_count; ++i) values[i] = (void *)launch->param[i];
    WD_TRY(wd_chain_kernel_params(queue, launch, values, &params));
    WD_CU_TRY(
        cuGraphAddKernelNode, (&node, queue->graph, &last, last != NULL, &params),
        "adding kernel %s (grid %u %u %u, block %u %u %u, %u bytes of shared memory) to a graph",
        launch->kernel->symbol, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
        launch->block[1], launch->block[2], launch->shared);
    WD_TRY(add_last(queue, node, CU_GRAPH_NODE_TYPE_KERNEL));
    if (launch->cluster > 1) {
        CUlaunchAttributeValue cluster = {.clusterDim = {launch->cluster, 1, 1}};
        WD_CU_TRY(cuGraphKernelNodeSetAttribute,
                  (node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster),
                  "giving kernel %s clusters of %u blocks in a graph", launch->kernel->symbol,
                  launch->cluster);
    }
    if (launch->meets) {
        CUlaunchAttributeValue meets = {.cooperative = 1};
        WD_CU_TRY(cuGraphKernelNodeSetAttribute, (node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &meets),
                  "letting the blocks of kernel %s meet in a graph", launch->kernel->symbol);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t add_fill(struct wd_queue *base, void *data, int byte, size_t bytes)
{
    struct wd_gpu_graph_queue *queue = wd_graph_queue_of(base);
    CUDA_MEMSET_NODE_PARAMS params = wd_chain_fill_params(data, byte, bytes);
    CUgraphNode last = queue->last;
    CUgraphNode node = NULL;
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    WD_CU_TRY(cuGraphAddMemsetNode,
              (&node, queue->graph, &last, last != NULL, &params, wd_chain_stream(queue)->context),
              "adding the filling of %zu bytes at %p to a graph", bytes, data);
    return add_last(queue, node, CU_GRAPH_NODE_TYPE_MEMSET);
}

static cudnnStatus_t add_copy_piece(struct wd_gpu_graph_queue *queue, const CUDA_MEMCPY3D *params)
{
    CUgraphNode last = queue->last;
    CUgraphNode node = NULL;
    WD_CU_TRY(cuGraphAddMemcpyNode,
              (&node, queue->graph, &last, last != NULL, params, wd_chain_stream(queue)->context),
              "adding a copy of %zu bytes to a graph", params->WidthInBytes);
    return add_last(queue, node, CU_GRAPH_NODE_TYPE_MEMCPY);
}

static cudnnStatus_t add_copy(struct wd_queue *base, void *to, const void *from, size_t bytes)
{
    return wd_chain_copy(base, to, from, bytes, add_copy_piece);
}

static const struct wd_queue_ops graph_ops = {
    .begin = wd_chain_begin,
    .end = wd_chain_end,
    .kernel = add_kernel,
    .fill = add_fill,
    .copy = add_copy,
    .scratch = wd_chain_scratch,
    .counters = wd_chain_counters,
};

cudnnStatus_t wd_gpu_graph_queue_init(struct wd_gpu_graph_queue *queue,
                                      struct wd_queue *stream_queue, cudaGraph_t graph)
{
    return wd_chain_init(queue, &graph_ops, stream_queue, graph);
}

cudnnStatus_t wd_gpu_graph_queue_fini(struct wd_gpu_graph_queue *queue, cudnnStatus_t status)
{
    const struct wd_chain_node *nodes = queue->nodes;
    if (wd_patch_queue_is(queue)) {
        if (status == CUDNN_STATUS_SUCCESS) status = wd_patch_queue_finish(queue);
    } else if (status != CUDNN_STATUS_SUCCESS) {
        /* an execution that failed leaves no half of itself behind */
        for (size_t i = queue->count; i-- > 0;) wd_cu.cuGraphDestroyNode(nodes[i].node);
    }
    wd_chain_free(queue);
    return status;
}
