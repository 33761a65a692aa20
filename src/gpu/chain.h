/* SPDX-License-Identifier: Apache-2.0
 *
 * What the graph queue and the patch queue share: the chain of nodes, and the driver's parameters
 * of a node from what an engine emits. Both use the stream queue's context and its list of scratch,
 * so a stream queue serves one of them or an execution of its own at a time. */
#ifndef WD_GPU_CHAIN_H
#define WD_GPU_CHAIN_H

#include "gpu/module.h"

union wd_node_params {
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_MEMCPY3D copy;
};

/* What a node becomes and what it was, with the kernels' parameters behind it. */
struct wd_node_change {
    union wd_node_params after;
    union wd_node_params before;
    void *after_values[WD_MAX_PARAMS];
    void *before_values[WD_MAX_PARAMS];
    size_t value_size[WD_MAX_PARAMS];
    int value_count;
};

/* The array behind wd_gpu_graph_queue.nodes. */
struct wd_chain_node {
    CUgraphNode node;
    CUgraphNodeType type;
    struct wd_node_change *change; /* patch only */
};

static inline struct wd_gpu_graph_queue *wd_graph_queue_of(struct wd_queue *base)
{
    return (struct wd_gpu_graph_queue *)base;
}

static inline struct wd_gpu_queue *wd_chain_stream(const struct wd_gpu_graph_queue *queue)
{
    return wd_gpu_queue_of(queue->stream_queue);
}

/* The queue over `graph` with these operations, its chain empty. */
cudnnStatus_t wd_chain_init(struct wd_gpu_graph_queue *queue, const struct wd_queue_ops *ops,
                            struct wd_queue *stream_queue, cudaGraph_t graph);
cudnnStatus_t wd_chain_append(struct wd_gpu_graph_queue *queue, CUgraphNode node,
                              CUgraphNodeType type);
void wd_chain_free(struct wd_gpu_graph_queue *queue);

/* Queue operations that both have. */
cudnnStatus_t wd_chain_begin(struct wd_queue *base);
void wd_chain_end(struct wd_queue *base);
cudnnStatus_t wd_chain_scratch(struct wd_queue *base, size_t bytes, void **data);
cudnnStatus_t wd_chain_counters(struct wd_queue *base, void **data);

/* `values` becomes the node's list of parameters, which the driver copies. */
cudnnStatus_t wd_chain_kernel_params(const struct wd_gpu_graph_queue *queue,
                                     const struct wd_launch *launch, void **values,
                                     CUDA_KERNEL_NODE_PARAMS *params);
CUDA_MEMSET_NODE_PARAMS wd_chain_fill_params(void *data, int byte, size_t bytes);

/* Emits a copy as one node, or as several where it is larger than a node can be. */
cudnnStatus_t wd_chain_copy(struct wd_queue *base, void *to, const void *from, size_t bytes,
                            cudnnStatus_t (*emit)(struct wd_gpu_graph_queue *queue,
                                                  const CUDA_MEMCPY3D *params));

/* The end of a patch queue whose execution emitted all it had. */
cudnnStatus_t wd_patch_queue_finish(struct wd_gpu_graph_queue *queue);
bool wd_patch_queue_is(const struct wd_gpu_graph_queue *queue);

#endif
