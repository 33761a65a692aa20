/* SPDX-License-Identifier: Apache-2.0
 *
 * The queues that work on a CUDA graph. The graph queue adds what is emitted as one chain of nodes.
 * The patch queue walks such a chain and collects what each node shall become; nothing is changed
 * before the whole chain has matched, and a change that fails takes back those before it.
 *
 * Both use the stream queue's context and its list of scratch, so a stream queue serves one of them
 * or an execution of its own at a time. */
#include <string.h>

#include "base/alloc.h"
#include "gpu/module.h"

enum {
    FIRST_NODES = 16,
    COPY_MAX = 1 << 30, /* a node's copy is one row, and rows are shorter than 2 GiB */
};

union node_params {
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_MEMCPY3D copy;
};

/* What a node becomes and what it was, with the kernels' parameters behind it. */
struct change {
    union node_params after;
    union node_params before;
    void *after_values[WD_MAX_PARAMS];
    void *before_values[WD_MAX_PARAMS];
    size_t value_size[WD_MAX_PARAMS];
    int value_count;
};

struct chain_node {
    CUgraphNode node;
    CUgraphNodeType type;
    struct change *change; /* patch only */
};

static struct wd_gpu_graph_queue *graph_queue_of(struct wd_queue *base)
{
    return (struct wd_gpu_graph_queue *)base;
}

static struct wd_gpu_queue *stream_queue_of(const struct wd_gpu_graph_queue *queue)
{
    return wd_gpu_queue_of(queue->stream_queue);
}

/* Appends to the chain; its capacity is the power of two at or above its length. */
static cudnnStatus_t append(struct wd_gpu_graph_queue *queue, CUgraphNode node,
                            CUgraphNodeType type)
{
    struct chain_node *nodes = queue->nodes;
    size_t count = queue->count;
    bool full = count == 0 || (count >= FIRST_NODES && (count & (count - 1)) == 0);
    if (full) {
        size_t capacity = count == 0 ? FIRST_NODES : 2 * count;
        struct chain_node *grown = wd_alloc(capacity * sizeof *grown);
        WD_REQUIRE(grown, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no %zu bytes of host memory for the nodes of a graph",
                   capacity * sizeof *grown);
        for (size_t i = 0; i < count; ++i) grown[i] = nodes[i];
        wd_free(nodes);
        nodes = grown;
        queue->nodes = nodes;
    }
    nodes[count] = (struct chain_node){node, type, NULL};
    queue->count = count + 1;
    return CUDNN_STATUS_SUCCESS;
}

/* The parts that both queues share. */

static cudnnStatus_t begin(struct wd_queue *base)
{
    struct wd_queue *stream_queue = graph_queue_of(base)->stream_queue;
    return stream_queue->ops->begin(stream_queue);
}

static void end(struct wd_queue *base)
{
    struct wd_queue *stream_queue = graph_queue_of(base)->stream_queue;
    stream_queue->ops->end(stream_queue);
}

/* Always new memory: what the chain held before a patch may be at work in an instance of the graph,
 * and stays the graph's until it dies. */
static cudnnStatus_t take_scratch(struct wd_queue *base, size_t bytes, void **data)
{
    struct wd_gpu_graph_queue *queue = graph_queue_of(base);
    struct wd_gpu_queue *stream_queue = stream_queue_of(queue);
    struct wd_arena_key key = {stream_queue->context_id, 0, wd_arena_capture_id()};
    return wd_arena_take(&stream_queue->held, &key, queue->graph, bytes, data);
}

static cudnnStatus_t kernel_params(const struct wd_gpu_graph_queue *queue,
                                   const struct wd_launch *launch, void **values,
                                   CUDA_KERNEL_NODE_PARAMS *params)
{
    CUkernel kernel;
    WD_TRY(wd_kernel_get(stream_queue_of(queue), launch, &kernel));
    *params = (CUDA_KERNEL_NODE_PARAMS){
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = launch->shared,
        .kernelParams = values,
        .kern = kernel,
        .ctx = stream_queue_of(queue)->context,
    };
    return CUDNN_STATUS_SUCCESS;
}

static CUDA_MEMSET_NODE_PARAMS fill_params(void *data, int byte, size_t bytes)
{
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = (CUdeviceptr)(uintptr_t)data,
        .value = (unsigned char)byte,
        .elementSize = 1,
        .width = bytes,
        .height = 1,
    };
}

static CUDA_MEMCPY3D copy_params(void *to, const void *from, size_t bytes)
{
    return (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = (CUdeviceptr)(uintptr_t)from,
        .srcPitch = bytes,
        .srcHeight = 1,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = (CUdeviceptr)(uintptr_t)to,
        .dstPitch = bytes,
        .dstHeight = 1,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
}

/* Emits a copy as nodes of at most COPY_MAX bytes. */
static cudnnStatus_t emit_copy_pieces(struct wd_queue *base, void *to, const void *from,
                                      size_t bytes,
                                      cudnnStatus_t (*emit)(struct wd_gpu_graph_queue *queue,
                                                            const CUDA_MEMCPY3D *params))
{
    size_t done = 0;
    while (done < bytes) {
        size_t piece = bytes - done < COPY_MAX ? bytes - done : COPY_MAX;
        CUDA_MEMCPY3D params = copy_params((char *)to + done, (const char *)from + done, piece);
        WD_TRY(emit(graph_queue_of(base), &params));
        done += piece;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* The graph queue. */

/* A node that was added becomes the chain's last; one that cannot be remembered goes again. */
static cudnnStatus_t add_last(struct wd_gpu_graph_queue *queue, CUgraphNode node,
                              CUgraphNodeType type)
{
    cudnnStatus_t status = append(queue, node, type);
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
    struct wd_gpu_graph_queue *queue = graph_queue_of(base);
    CUgraphNode last = queue->last;
    CUgraphNode node = NULL;
    CUDA_KERNEL_NODE_PARAMS params;
    void *values[WD_MAX_PARAMS] = {NULL};
    for (int i = 0; i < launch->param_count; ++i) values[i] = (void *)launch->param[i];
    WD_TRY(kernel_params(queue, launch, values, &params));
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
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t add_fill(struct wd_queue *base, void *data, int byte, size_t bytes)
{
    struct wd_gpu_graph_queue *queue = graph_queue_of(base);
    CUDA_MEMSET_NODE_PARAMS params = fill_params(data, byte, bytes);
    CUgraphNode last = queue->last;
    CUgraphNode node = NULL;
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    WD_CU_TRY(cuGraphAddMemsetNode,
              (&node, queue->graph, &last, last != NULL, &params, stream_queue_of(queue)->context),
              "adding the filling of %zu bytes at %p to a graph", bytes, data);
    return add_last(queue, node, CU_GRAPH_NODE_TYPE_MEMSET);
}

static cudnnStatus_t add_copy_piece(struct wd_gpu_graph_queue *queue, const CUDA_MEMCPY3D *params)
{
    CUgraphNode last = queue->last;
    CUgraphNode node = NULL;
    WD_CU_TRY(cuGraphAddMemcpyNode,
              (&node, queue->graph, &last, last != NULL, params, stream_queue_of(queue)->context),
              "adding a copy of %zu bytes to a graph", params->WidthInBytes);
    return add_last(queue, node, CU_GRAPH_NODE_TYPE_MEMCPY);
}

static cudnnStatus_t add_copy(struct wd_queue *base, void *to, const void *from, size_t bytes)
{
    return emit_copy_pieces(base, to, from, bytes, add_copy_piece);
}

static const struct wd_queue_ops graph_ops = {
    .begin = begin,
    .end = end,
    .kernel = add_kernel,
    .fill = add_fill,
    .copy = add_copy,
    .scratch = take_scratch,
};

/* The patch queue. */

/* The node that comes next, which must be of this type. */
static cudnnStatus_t next_node(struct wd_gpu_graph_queue *queue, CUgraphNodeType type,
                               const char *what, struct chain_node **node)
{
    struct chain_node *nodes = queue->nodes;
    WD_REQUIRE(queue->position < queue->count, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "the graph has %zu nodes, and the plan goes on with %s", queue->count, what);
    *node = &nodes[queue->position];
    WD_REQUIRE((*node)->type == type, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "node %zu of the graph is of type %d, and the plan has %s there", queue->position,
               (*node)->type, what);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t make_change(struct chain_node *node, size_t extra, struct change **out)
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

static cudnnStatus_t check_cluster(const struct chain_node *node, const struct wd_launch *launch,
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

/* A node names its function as the driver likes: by the kernel, or by the context's form of it. */
static cudnnStatus_t check_function(const struct chain_node *node, const struct wd_launch *launch,
                                    CUkernel kernel, size_t position)
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
    return check_cluster(node, launch, position);
}

static cudnnStatus_t patch_kernel(struct wd_queue *base, const struct wd_launch *launch)
{
    enum { ALIGN = 64 };
    struct wd_gpu_graph_queue *queue = graph_queue_of(base);
    CUDA_KERNEL_NODE_PARAMS params;
    struct chain_node *node;
    struct change *change;
    size_t extra = ALIGN;
    char *values;
    WD_TRY(next_node(queue, CU_GRAPH_NODE_TYPE_KERNEL, launch->kernel->symbol, &node));
    WD_TRY(kernel_params(queue, launch, NULL, &params));
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
    struct wd_gpu_graph_queue *queue = graph_queue_of(base);
    struct chain_node *node;
    struct change *change;
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    WD_TRY(next_node(queue, CU_GRAPH_NODE_TYPE_MEMSET, "a fill", &node));
    WD_TRY(make_change(node, 0, &change));
    change->after.fill = fill_params(data, byte, bytes);
    passed(queue);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t patch_copy_piece(struct wd_gpu_graph_queue *queue, const CUDA_MEMCPY3D *params)
{
    struct chain_node *node;
    struct change *change;
    WD_TRY(next_node(queue, CU_GRAPH_NODE_TYPE_MEMCPY, "a copy", &node));
    WD_TRY(make_change(node, 0, &change));
    change->after.copy = *params;
    passed(queue);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t patch_copy(struct wd_queue *base, void *to, const void *from, size_t bytes)
{
    return emit_copy_pieces(base, to, from, bytes, patch_copy_piece);
}

static const struct wd_queue_ops patch_ops = {
    .begin = begin,
    .end = end,
    .kernel = patch_kernel,
    .fill = patch_fill,
    .copy = patch_copy,
    .scratch = take_scratch,
};

static CUresult read_node(const struct chain_node *node, const char **function)
{
    struct change *change = node->change;
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

static CUresult write_node(const struct chain_node *node, const union node_params *params,
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
    const struct chain_node *nodes = queue->nodes;
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
        WD_TRY(append(queue, node, type));
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

static void free_nodes(struct wd_gpu_graph_queue *queue)
{
    struct chain_node *nodes = queue->nodes;
    for (size_t i = 0; i < queue->count; ++i) wd_free(nodes[i].change);
    wd_free(nodes);
    queue->nodes = NULL;
    queue->count = 0;
}

static cudnnStatus_t init(struct wd_gpu_graph_queue *queue, const struct wd_queue_ops *ops,
                          struct wd_queue *stream_queue, cudaGraph_t graph)
{
    WD_NOT_NULL(graph);
    *queue = (struct wd_gpu_graph_queue){
        .base = {ops, stream_queue->device, 0},
        .stream_queue = stream_queue,
        .graph = graph,
    };
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_gpu_graph_queue_init(struct wd_gpu_graph_queue *queue,
                                      struct wd_queue *stream_queue, cudaGraph_t graph)
{
    return init(queue, &graph_ops, stream_queue, graph);
}

cudnnStatus_t wd_gpu_patch_queue_init(struct wd_gpu_graph_queue *queue,
                                      struct wd_queue *stream_queue, cudaGraph_t graph)
{
    cudnnStatus_t status;
    WD_TRY(init(queue, &patch_ops, stream_queue, graph));
    status = collect_chain(queue);
    if (status != CUDNN_STATUS_SUCCESS) free_nodes(queue);
    return status;
}

static cudnnStatus_t finish_patch(struct wd_gpu_graph_queue *queue)
{
    cudnnStatus_t status;
    WD_REQUIRE(queue->position == queue->count, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
               "the graph has %zu nodes, the plan %zu", queue->count, queue->position);
    WD_TRY(begin(&queue->base));
    status = apply_changes(queue);
    end(&queue->base);
    return status;
}

cudnnStatus_t wd_gpu_graph_queue_fini(struct wd_gpu_graph_queue *queue, cudnnStatus_t status)
{
    const struct chain_node *nodes = queue->nodes;
    if (queue->base.ops == &patch_ops) {
        if (status == CUDNN_STATUS_SUCCESS) status = finish_patch(queue);
    } else if (status != CUDNN_STATUS_SUCCESS) {
        /* an execution that failed leaves no half of itself behind */
        for (size_t i = queue->count; i-- > 0;) wd_cu.cuGraphDestroyNode(nodes[i].node);
    }
    free_nodes(queue);
    return status;
}
