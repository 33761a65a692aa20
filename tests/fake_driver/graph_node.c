/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's nodes of graphs: kernels, fills and copies, added, read and set, each checked as
 * when it is launched. */
#include <string.h>

#include "fake_driver/internal.h"

static CUresult check_node(CUgraphNode node, CUgraphNodeType type)
{
    if (node && node->mark == MARK_NODE && node->type == type) return CUDA_SUCCESS;
    return fake_problem(CUDA_ERROR_INVALID_HANDLE, "%p is no node of type %d", (void *)node, type);
}

static CUresult kernel_node_work(const CUDA_KERNEL_NODE_PARAMS *params, unsigned int cluster,
                                 unsigned int meets, struct CUgraphNode_st *work)
{
    struct fakecuda_launch launch = {{params->gridDimX, params->gridDimY, params->gridDimZ},
                                     {params->blockDimX, params->blockDimY, params->blockDimZ},
                                     cluster,
                                     params->sharedMemBytes,
                                     meets,
                                     0};
    CUcontext context = params->func || !params->ctx ? fake_current() : params->ctx;
    if (!context || context->mark != MARK_CONTEXT) {
        return fake_problem(CUDA_ERROR_INVALID_CONTEXT, "a kernel node has no context");
    }
    return fake_kernel_work(params->func ? params->func : (CUfunction)params->kern, &launch,
                            params->kernelParams, context, work);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct CUgraphNode_st work = {.mark = MARK_NODE};
    CUresult result = fake_begin("cuGraphAddKernelNode", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_check_graph(graph);
    if (result == CUDA_SUCCESS) result = kernel_node_work(params, 1, 0, &work);
    if (result == CUDA_SUCCESS) result = fake_graph_append(graph, after, count, &work, node);
    return fake_end(result);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult result = fake_begin("cuGraphKernelNodeGetParams", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_node(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result == CUDA_SUCCESS) {
        *params = (CUDA_KERNEL_NODE_PARAMS){
            .gridDimX = node->launch.grid[0],
            .gridDimY = node->launch.grid[1],
            .gridDimZ = node->launch.grid[2],
            .blockDimX = node->launch.block[0],
            .blockDimY = node->launch.block[1],
            .blockDimZ = node->launch.block[2],
            .sharedMemBytes = node->launch.shared,
            .kernelParams = node->params,
            .kern = node->kernel,
            .ctx = node->context,
        };
    }
    return fake_end(result);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct CUgraphNode_st work = {.mark = MARK_NODE};
    CUresult result = fake_begin("cuGraphKernelNodeSetParams", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_node(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result == CUDA_SUCCESS) {
        result = kernel_node_work(params, node->launch.cluster, node->launch.meets, &work);
    }
    if (result == CUDA_SUCCESS) {
        node->kernel = work.kernel;
        node->launch = work.launch;
        node->context = work.context;
        memcpy(node->values, work.values, sizeof node->values);
        memcpy(node->params, work.params, sizeof node->params);
        fake_rebase_params(node, &work);
    }
    return fake_end(result);
}

static bool is_attribute(CUlaunchAttributeID attribute)
{
    return attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
           attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                       CUlaunchAttributeValue *value)
{
    CUresult result = fake_begin("cuGraphKernelNodeGetAttribute", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_node(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result == CUDA_SUCCESS && !is_attribute(attribute)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        value->cooperative = (int)node->launch.meets;
    } else if (result == CUDA_SUCCESS) {
        unsigned int cluster = node->launch.cluster;
        value->clusterDim.x = cluster > 1 ? cluster : 0;
        value->clusterDim.y = value->clusterDim.z = cluster > 1;
    }
    return fake_end(result);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                       const CUlaunchAttributeValue *value)
{
    CUresult result = fake_begin("cuGraphKernelNodeSetAttribute", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_node(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result == CUDA_SUCCESS && !is_attribute(attribute)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        node->launch.meets = value->cooperative != 0;
    } else if (result == CUDA_SUCCESS) {
        node->launch.cluster = value->clusterDim.x;
    }
    return fake_end(result);
}

static CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS *params)
{
    if (params->elementSize == 1 && params->height == 1 && params->value <= 255 &&
        fake_memory_is_valid((void *)(uintptr_t)params->dst, params->width, false)) {
        return CUDA_SUCCESS;
    }
    return fake_problem(CUDA_ERROR_INVALID_VALUE, "a fill node of %zu bytes at %p", params->width,
                        (void *)(uintptr_t)params->dst);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
                              CUcontext context)
{
    struct CUgraphNode_st work = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    CUresult result = fake_begin("cuGraphAddMemsetNode", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_check_graph(graph);
    if (result == CUDA_SUCCESS) result = check_fill(params);
    work.context = context;
    work.fill = *params;
    if (result == CUDA_SUCCESS) result = fake_graph_append(graph, after, count, &work, node);
    return fake_end(result);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params)
{
    CUresult result = fake_begin("cuGraphMemsetNodeGetParams", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_node(node, CU_GRAPH_NODE_TYPE_MEMSET);
    if (result == CUDA_SUCCESS) *params = node->fill;
    return fake_end(result);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    CUresult result = fake_begin("cuGraphMemsetNodeSetParams", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_node(node, CU_GRAPH_NODE_TYPE_MEMSET);
    if (result == CUDA_SUCCESS) result = check_fill(params);
    if (result == CUDA_SUCCESS) node->fill = *params;
    return fake_end(result);
}

static CUresult check_transfer(const CUDA_MEMCPY3D *params)
{
    if (params->srcMemoryType == CU_MEMORYTYPE_DEVICE &&
        params->dstMemoryType == CU_MEMORYTYPE_DEVICE && params->Height == 1 &&
        params->Depth == 1 && params->WidthInBytes < INT32_MAX &&
        params->srcPitch >= params->WidthInBytes && params->dstPitch >= params->WidthInBytes &&
        params->srcHeight >= 1 && params->dstHeight >= 1 &&
        fake_memory_is_valid((void *)(uintptr_t)params->dstDevice, params->WidthInBytes, false) &&
        fake_memory_is_valid((void *)(uintptr_t)params->srcDevice, params->WidthInBytes, false)) {
        return CUDA_SUCCESS;
    }
    return fake_problem(CUDA_ERROR_INVALID_VALUE, "a copy node of %zu bytes", params->WidthInBytes);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const CUDA_MEMCPY3D *params, CUcontext context)
{
    struct CUgraphNode_st work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    CUresult result = fake_begin("cuGraphAddMemcpyNode", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_check_graph(graph);
    if (result == CUDA_SUCCESS) result = check_transfer(params);
    work.context = context;
    work.transfer = *params;
    if (result == CUDA_SUCCESS) result = fake_graph_append(graph, after, count, &work, node);
    return fake_end(result);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *params)
{
    CUresult result = fake_begin("cuGraphMemcpyNodeGetParams", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_node(node, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (result == CUDA_SUCCESS) *params = node->transfer;
    return fake_end(result);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
    CUresult result = fake_begin("cuGraphMemcpyNodeSetParams", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_node(node, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (result == CUDA_SUCCESS) result = check_transfer(params);
    if (result == CUDA_SUCCESS) node->transfer = *params;
    return fake_end(result);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    CUresult result = fake_begin("cuGraphNodeGetType", CALL_PLAIN);
    if (result == CUDA_SUCCESS && (!node || node->mark != MARK_NODE)) {
        result = fake_problem(CUDA_ERROR_INVALID_HANDLE, "%p is no node", (void *)node);
    }
    if (result == CUDA_SUCCESS) *type = node->type;
    return fake_end(result);
}
