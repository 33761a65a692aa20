/* SPDX-License-Identifier: Apache-2.0
 *
 * The chain of nodes that the graph and the patch queue work on. One thread at a time. */
#include "gpu/chain.h"

#include "base/alloc.h"

enum {
    FIRST_NODES = 16,
    COPY_MAX = 1 << 30, /* a node's copy is one row, and rows are shorter than 2 GiB */
};

/* Appends to the chain; its capacity is the power of two at or above its length. */
cudnnStatus_t wd_chain_append(struct wd_gpu_graph_queue *queue, CUgraphNode node,
                              CUgraphNodeType type)
{
    struct wd_chain_node *nodes = queue->nodes;
    size_t count = queue->count;
    bool full = count == 0 || (count >= FIRST_NODES && (count & (count - 1)) == 0);
    if (full) {
        size_t capacity = count == 0 ? FIRST_NODES : 2 * count;
        struct wd_chain_node *grown = wd_alloc(capacity * sizeof *grown);
        WD_REQUIRE(grown, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no %zu bytes of host memory for the nodes of a graph",
                   capacity * sizeof *grown);
        for (size_t i = 0; i < count; ++i) grown[i] = nodes[i];
        wd_free(nodes);
        nodes = grown;
        queue->nodes = nodes;
    }
    nodes[count] = (struct wd_chain_node){node, type, NULL};
    queue->count = count + 1;
    return CUDNN_STATUS_SUCCESS;
}

void wd_chain_free(struct wd_gpu_graph_queue *queue)
{
    struct wd_chain_node *nodes = queue->nodes;
    for (size_t i = 0; i < queue->count; ++i) wd_free(nodes[i].change);
    wd_free(nodes);
    queue->nodes = NULL;
    queue->count = 0;
}

cudnnStatus_t wd_chain_init(struct wd_gpu_graph_queue *queue, const struct wd_queue_ops *ops,
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

cudnnStatus_t wd_chain_begin(struct wd_queue *base)
{
    struct wd_queue *stream_queue = wd_graph_queue_of(base)->stream_queue;
    return stream_queue->ops->begin(stream_queue);
}

void wd_chain_end(struct wd_queue *base)
{
    struct wd_queue *stream_queue = wd_graph_queue_of(base)->stream_queue;
    stream_queue->ops->end(stream_queue);
}

/* Always new memory: what the chain held before a patch may be at work in an instance of the graph,
 * and stays the graph's until it dies. */
cudnnStatus_t wd_chain_scratch(struct wd_queue *base, size_t bytes, void **data)
{
    struct wd_gpu_graph_queue *queue = wd_graph_queue_of(base);
    struct wd_gpu_queue *stream_queue = wd_chain_stream(queue);
    struct wd_arena_key key = {stream_queue->context_id, 0, wd_arena_capture_id()};
    return wd_arena_take(&stream_queue->held, &key, queue->graph, bytes, data);
}

cudnnStatus_t wd_chain_counters(struct wd_queue *base, void **data)
{
    struct wd_gpu_graph_queue *queue = wd_graph_queue_of(base);
    struct wd_gpu_queue *stream_queue = wd_chain_stream(queue);
    struct wd_arena_key key = {stream_queue->context_id, 0, wd_arena_capture_id()};
    return wd_arena_counters(&stream_queue->held, &key, queue->graph, data);
}

cudnnStatus_t wd_chain_kernel_params(const struct wd_gpu_graph_queue *queue,
                                     const struct wd_launch *launch, void **values,
                                     CUDA_KERNEL_NODE_PARAMS *params)
{
    CUkernel kernel;
    WD_TRY(wd_kernel_get(wd_chain_stream(queue), launch, &kernel));
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
        .ctx = wd_chain_stream(queue)->context,
    };
    return CUDNN_STATUS_SUCCESS;
}

CUDA_MEMSET_NODE_PARAMS wd_chain_fill_params(void *data, int byte, size_t bytes)
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
cudnnStatus_t wd_chain_copy(struct wd_queue *base, void *to, const void *from, size_t bytes,
                            cudnnStatus_t (*emit)(struct wd_gpu_graph_queue *queue,
                                                  const CUDA_MEMCPY3D *params))
{
    size_t done = 0;
    while (done < bytes) {
        size_t piece = bytes - done < COPY_MAX ? bytes - done : COPY_MAX;
        CUDA_MEMCPY3D params = copy_params((char *)to + done, (const char *)from + done, piece);
        WD_TRY(emit(wd_graph_queue_of(base), &params));
        done += piece;
    }
    return CUDNN_STATUS_SUCCESS;
}
