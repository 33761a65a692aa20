/* SPDX-License-Identifier: Apache-2.0
 *
 * The patch queue: walks a chain that a graph queue wrote and collects what each node shall become.
 * Nothing is changed before the whole chain has matched, and a change that fails takes back those
 * before it. One thread at a time. */
#include <string.h>

#include "base/alloc.h"
#include "gpu/chain.h"

/* The node that comes next, which must be of this type. */
static cudnnStatus_t next_node(struct wd_gpu_graph_queue *queue, CUgraphNodeType type,
                               const char *what, struct wd_chain_node **node)
{
    struct wd_chain_node *nodes = queue->nodes;
    WD_REQUIRE(queue->position < queue->count, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "the graph has %zu nodes, and the plan goes on with %s", queue->count, what);
    *node = &nodes[queue->position];
    WD_REQUIRE((*node)->type == type, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "node %zu of the graph is of type %d, and the plan has %s there", queue->position,
               (*node)->type, what);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t make_change(struct wd_chain_node *node, size_t extra,
                                 struct wd_node_change **out)
{
    *out = wd_alloc(sizeof **out + extra);
    WD_REQUIRE(*out, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no %zu bytes of host memory to patch a node of a graph", sizeof **out + extra);
    node->change = *out;
    return CUDNN_STATUS_SUCCESS;
}

static void passed(struct wd_gpu_graph_queue *queue)
{
    queue->position += 1;
    queue->base.emitted += 1;
}

static cudnnStatus_t check_cluster(const struct wd_chain_node *node, const struct wd_launch *launch,
                                   size_t position)
{
    CUlaunchAttributeValue cluster = {.pad = {0}};
    unsigned int wanted = launch->cluster > 1 ? launch->cluster : 1;
    unsigned int there;
    WD_CU_TRY(cuGraphKernelNodeGetAttribute,
              (node->node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster),
              "reading node %zu of a graph", position);
    there = cluster.clusterDim.x > 1 ? cluster.clusterDim.x : 1;
    WD_REQUIRE(there == wanted, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "node %zu of the graph runs in clusters of %u blocks, kernel %s of the plan in %u",
               position, there, launch->kernel->symbol, wanted);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_meeting(const struct wd_chain_node *node, const struct wd_launch *launch,
                                   size_t position)
{
    CUlaunchAttributeValue meets = {.pad = {0}};
    WD_CU_TRY(cuGraphKernelNodeGetAttribute, (node->node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &meets),
              "reading node %zu of a graph", position);
    WD_REQUIRE((meets.cooperative != 0) == launch->meets,
               CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "the blocks of node %zu of the graph %s, those of kernel %s of the plan %s",
               position, meets.cooperative ? "meet" : "do not meet", launch->kernel->symbol,
               launch->meets ? "do" : "do not");
    return CUDNN_STATUS_SUCCESS;
}

/* A node names its function as the driver likes: by the kernel, or by the context's form of it. */
static cudnnStatus_t check_function(const struct wd_chain_node *node,
                                    const struct wd_launch *launch, CUkernel kernel,
                                    size_t position)
{
    CUDA_KERNEL_NODE_PARAMS there = {0};
    CUfunction function = NULL;
    WD_CU_TRY(cuGraphKernelNodeGetParams, (node->node, &there), "reading node %zu of a graph",
              position);
    WD_CU_TRY(cuKernelGetFunction, (&function, kernel), "looking for kernel %s in the context",
              launch->kernel->symbol);
    WD_REQUIRE((there.kern && there.kern == kernel) ||
                   (there.func && (there.func == function || there.func == (CUfunction)kernel)),
               CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "node %zu of the graph runs another function than kernel %s of the plan", position,
               launch->kernel->symbol);
    WD_TRY(check_cluster(node, launch, position));
    return check_meeting(node, launch, position);
}

static cudnnStatus_t patch_kernel(struct wd_queue *base, const struct wd_launch *launch)
{
    enum { ALIGN = 64 };
    struct wd_gpu_graph_queue *queue = wd_graph_queue_of(base);
    CUDA_KERNEL_NODE_PARAMS params;
    struct wd_chain_node *node = NULL;
    struct wd_node_change *change;
    size_t extra = ALIGN;
    char *values;
    WD_TRY(next_node(queue, CU_GRAPH_NODE_TYPE_KERNEL, launch->kernel->symbol, &node));
    WD_TRY(wd_chain_kernel_params(queue, launch, NULL, &params));
    WD_TRY(check_function(node, launch, params.kern, queue->position));
    for (int i = 0; i < launch->param_count; ++i) {
        extra += 2 * ((launch->param_size[i] + ALIGN - 1) / ALIGN * ALIGN);
    }
    WD_TRY(make_change(node, extra, &change));
    values = (char *)(((uintptr_t)(change + 1) + ALIGN - 1) / ALIGN * ALIGN);
    change->value_count = launch->param_count;
    for (int i = 0; i < launch->param_count; ++i) {
        size_t size = launch->param_size[i];
        size_t room = (size + ALIGN - 1) / ALIGN * ALIGN;
        change->value_size[i] = size;
        change->after_values[i] = memcpy(values, launch->param[i], size);
        change->before_values[i] = values + room;
        values += 2 * room;
    }
    params.kernelParams = change->after_values;
    change->after.kernel = params;
    passed(queue);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t patch_fill(struct wd_queue *base, void *data, int byte, size_t bytes)
{
    struct wd_gpu_graph_queue *queue = wd_graph_queue_of(base);
    struct wd_chain_node *node = NULL;
    struct wd_node_change *change = NULL;
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    WD_TRY(next_node(queue, CU_GRAPH_NODE_TYPE_MEMSET, "a fill", &node));
    WD_TRY(make_change(node, 0, &change));
    change->after.fill = wd_chain_fill_params(data, byte, bytes);
    passed(queue);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t patch_copy_piece(struct wd_gpu_graph_queue *queue, const CUDA_MEMCPY3D *params)
{
    struct wd_chain_node *node = NULL;
    struct wd_node_change *change;
    WD_TRY(next_node(queue, CU_GRAPH_NODE_TYPE_MEMCPY, "a copy", &node));
    WD_TRY(make_change(node, 0, &change));
    change->after.copy = *params;
    passed(queue);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t patch_copy(struct wd_queue *base, void *to, const void *from, size_t bytes)
{
    return wd_chain_copy(base, to, from, bytes, patch_copy_piece);
}

static const struct wd_queue_ops patch_ops = {
    .begin = wd_chain_begin,
    .end = wd_chain_end,
    .kernel = patch_kernel,
    .fill = patch_fill,
    .copy = patch_copy,
    .scratch = wd_chain_scratch,
    .counters = wd_chain_counters,
};

static CUresult read_node(const struct wd_chain_node *node, const char **function)
{
    struct wd_node_change *change = node->change;
    CUresult result;
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        *function = "cuGraphKernelNodeGetParams";
        result = wd_cu.cuGraphKernelNodeGetParams(node->node, &change->before.kernel);
        if (result != CUDA_SUCCESS) return result;
        /* the node's own copy of the values goes with the next change */
        for (int i = 0; i < change->value_count; ++i) {
            memcpy(change->before_values[i], change->before.kernel.kernelParams[i],
                   change->value_size[i]);
        }
        change->before.kernel.kernelParams = change->before_values;
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        *function = "cuGraphMemsetNodeGetParams";
        return wd_cu.cuGraphMemsetNodeGetParams(node->node, &change->before.fill);
    default:
        *function = "cuGraphMemcpyNodeGetParams";
        return wd_cu.cuGraphMemcpyNodeGetParams(node->node, &change->before.copy);
    }
}

static CUresult write_node(const struct wd_chain_node *node, const union wd_node_params *params,
                           const char **function)
{
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        *function = "cuGraphKernelNodeSetParams";
        return wd_cu.cuGraphKernelNodeSetParams(node->node, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        *function = "cuGraphMemsetNodeSetParams";
        return wd_cu.cuGraphMemsetNodeSetParams(node->node, &params->fill);
    default:
        *function = "cuGraphMemcpyNodeSetParams";
        return wd_cu.cuGraphMemcpyNodeSetParams(node->node, &params->copy);
    }
}

static cudnnStatus_t apply_changes(const struct wd_gpu_graph_queue *queue)
{
    const struct wd_chain_node *nodes = queue->nodes;
    const char *function = NULL;
    CUresult result;
    size_t done;
    for (done = 0; done < queue->count; ++done) {
        result = read_node(&nodes[done], &function);
        if (result == CUDA_SUCCESS)
            result = write_node(&nodes[done], &nodes[done].change->after, &function);
        if (result != CUDA_SUCCESS) goto fail;
    }
    return CUDNN_STATUS_SUCCESS;

fail:
    for (size_t i = done; i-- > 0;) {
        const char *ignored;
        write_node(&nodes[i], &nodes[i].change->before, &ignored);
    }
    return wd_driver_fail(result, function, "patching node %zu of a graph of %zu", done,
                          queue->count);
}

/* The chain's nodes in order: one root, and one node after each but the last. */
static cudnnStatus_t collect_chain(struct wd_gpu_graph_queue *queue)
{
    CUgraphNode node = NULL;
    CUgraphNodeType type;
    size_t all = 0;
    size_t count = 1;
    WD_CU_TRY(cuGraphGetNodes, (queue->graph, NULL, &all), "counting the nodes of a graph");
    if (all == 0) return CUDNN_STATUS_SUCCESS;
    WD_CU_TRY(cuGraphGetRootNodes, (queue->graph, NULL, &count), "counting the roots of a graph");
    WD_REQUIRE(count == 1, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "the graph has %zu roots; needed is the one chain that a plan was written as",
               count);
    WD_CU_TRY(cuGraphGetRootNodes, (queue->graph, &node, &count), "reading the root of a graph");
    for (;;) {
        WD_CU_TRY(cuGraphNodeGetType, (node, &type), "reading node %zu of a graph", queue->count);
        WD_TRY(wd_chain_append(queue, node, type));
        count = 0;
        WD_CU_TRY(cuGraphNodeGetDependentNodes, (node, NULL, &count),
                  "counting what follows node %zu of a graph", queue->count - 1);
        if (count == 0) break;
        WD_REQUIRE(
            count == 1, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
            "%zu nodes follow node %zu of the graph; needed is the one chain that a plan was "
            "written as",
            count, queue->count - 1);
        WD_CU_TRY(cuGraphNodeGetDependentNodes, (node, &node, &count),
                  "reading what follows node %zu of a graph", queue->count - 1);
    }
    WD_REQUIRE(queue->count == all, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "%zu of the graph's %zu nodes form a chain; needed is the one chain that a plan was "
               "written as",
               queue->count, all);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_gpu_patch_queue_init(struct wd_gpu_graph_queue *queue,
                                      struct wd_queue *stream_queue, cudaGraph_t graph)
{
    cudnnStatus_t status;
    WD_TRY(wd_chain_init(queue, &patch_ops, stream_queue, graph));
    status = collect_chain(queue);
    if (status != CUDNN_STATUS_SUCCESS) wd_chain_free(queue);
    return status;
}

bool wd_patch_queue_is(const struct wd_gpu_graph_queue *queue)
{
    return queue->base.ops == &patch_ops;
}

cudnnStatus_t wd_patch_queue_finish(struct wd_gpu_graph_queue *queue)
{
    cudnnStatus_t status;
    WD_REQUIRE(queue->position == queue->count, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "the graph has %zu nodes, the plan %zu", queue->count, queue->position);
    WD_TRY(wd_chain_begin(&queue->base));
    status = apply_changes(queue);
    wd_chain_end(&queue->base);
    return status;
}
