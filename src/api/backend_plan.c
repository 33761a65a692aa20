/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution plans of the backend API: made from a configuration or restored from a text, executed
 * on a handle, written into a CUDA graph or patched into one. Executing allocates nothing: the
 * pointers of an execution are on the stack, or, of more than LOCAL_TENSORS tensors, in room that
 * the plan has. Only threads that execute such a plan at the same moment find that room taken, and
 * allocate theirs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/backend.h"
#include "base/alloc.h"
#include "base/env.h"
#include "gpu/gpu.h"
#include "graph/norms.h"

enum { LOCAL_TENSORS = 64 };

static void destroy_plan(struct wd_built *built)
{
    struct wd_built_plan *plan = (struct wd_built_plan *)built;
    wd_plan_release(plan->plan);
    wd_built_release(&plan->opgraph->base);
    wd_free(plan->room);
    wd_free(plan);
}

static int compare_uids(const void *a, const void *b)
{
    int64_t left = ((const struct wd_uid_entry *)a)->uid;
    int64_t right = ((const struct wd_uid_entry *)b)->uid;
    return left < right ? -1 : left > right;
}

static cudnnStatus_t build(const struct wd_built_engine *engine, struct wd_built **result)
{
    const struct wd_graph *graph = &engine->opgraph->graph;
    struct wd_built_plan *plan =
        wd_alloc(sizeof *plan + sizeof plan->uids[0] * (size_t)graph->tensor_count);
    if (plan && graph->tensor_count > LOCAL_TENSORS) {
        plan->room = wd_alloc(sizeof plan->room[0] * (size_t)graph->tensor_count);
        if (!plan->room) {
            wd_free(plan);
            plan = NULL;
        }
    }
    WD_REQUIRE(plan != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory for an execution plan");
    atomic_init(&plan->base.references, 1);
    plan->base.destroy = destroy_plan;
    plan->opgraph = engine->opgraph;
    wd_built_retain(&engine->opgraph->base);
    plan->plan = wd_plan_retain(engine->plan);
    plan->id = engine->id;
    for (int t = 0; t < graph->tensor_count; ++t) {
        if (graph->tensors[t].flags & WD_VIRTUAL) continue;
        plan->uids[plan->uid_count++] = (struct wd_uid_entry){graph->tensors[t].uid, t};
    }
    for (int n = 0; n < graph->node_count; ++n) {
        int first = wd_norm_first_peer(graph->nodes[n].op);
        plan->has_peers |= first >= 0 && graph->nodes[n].slot[first] >= 0;
    }
    qsort(plan->uids, (size_t)plan->uid_count, sizeof plan->uids[0], compare_uids);
    *result = &plan->base;
    return CUDNN_STATUS_SUCCESS;
}

/* Whether a plan made for one device runs on another, which may have launches that the plan could not
 * count on, but not the other way round. CPUs differ in speed only. */
static bool same_device(const struct wd_device *plan, const struct wd_device *device)
{
    if (plan->kind == WD_CPU && device->kind == WD_CPU) return true;
    return plan->kind == device->kind && plan->capability == device->capability &&
           plan->multiprocessors == device->multiprocessors &&
           plan->shared_per_block == device->shared_per_block &&
           (device->cooperative || !plan->cooperative) && (device->grids_meet || !plan->grids_meet);
}

/* What of launches tells devices of one kind apart. */
static const char *launches(const struct wd_device *device)
{
    if (device->grids_meet)
        return device->cooperative ? "clusters and grids that meet" : "grids that meet";
    return device->cooperative ? "clusters" : "plain grids";
}

static cudnnStatus_t check_device(const struct wd_device *plan, const struct wd_device *device,
                                  const char *what)
{
    WD_REQUIRE(
        same_device(plan, device), CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH,
        "execution plan: made for a %s of capability %d with %d processors and %s, the %s has "
        "a %s of capability %d with %d and %s",
        plan->kind == WD_CPU ? "CPU" : "GPU", plan->capability, plan->multiprocessors,
        launches(plan), what, device->kind == WD_CPU ? "CPU" : "GPU", device->capability,
        device->multiprocessors, launches(device));
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t plan_for(struct wd_desc *desc, const struct wd_desc *config,
                              const struct wd_device *device, struct wd_built **built)
{
    const struct wd_built_engine *engine = (const struct wd_built_engine *)config->built;
    if (device) WD_TRY(check_device(&engine->device, device, "given device"));
    WD_TRY(wd_desc_put_int(desc, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                           engine->plan->workspace));
    return build(engine, built);
}

cudnnStatus_t wd_finalize_plan(struct wd_desc *desc, struct wd_built **built)
{
    const struct wd_value *text =
        wd_desc_value(desc, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    const struct wd_desc *properties = wd_desc_ref(desc, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
    const struct wd_desc *config = wd_desc_ref(desc, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    cudnnHandle_t handle = wd_desc_pointer(desc, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
    const struct wd_device *device = NULL;
    union wd_cell restored;
    cudnnStatus_t status;
    if (properties) device = &((const struct wd_built_device *)properties->built)->device;
    if (handle) {
        WD_TRY(wd_handle_validate("CUDNN_ATTR_EXECUTION_PLAN_HANDLE", handle));
        device = handle->queue->device;
    }
    if (text->count == 0) {
        WD_REQUIRE(config != NULL, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                   "neither CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG nor "
                   "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION was set");
        return plan_for(desc, config, device, built);
    }
    WD_REQUIRE(config == NULL, CUDNN_STATUS_BAD_PARAM,
               "both CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG and "
               "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION were set");
    WD_TRY(wd_plan_restore(text, device, &restored.ref));
    status = plan_for(desc, restored.ref, device, built);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = wd_desc_put(desc, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &restored);
    }
    wd_desc_release(restored.ref);
    return status;
}

void wd_plan_text(const struct wd_built_plan *plan, struct wd_text *text)
{
    wd_text_add(text, "{\"warpdnn_plan\":1,\"device\":");
    wd_device_write(text, &plan->plan->device);
    wd_text_add(text, ",\"engine\":%d,\"graph\":", plan->id);
    wd_graph_write(text, &plan->opgraph->graph, plan->opgraph->scalars);
    wd_text_add(text, "}");
}

/* An OPERATIONGRAPH descriptor for a graph that has no operation descriptors any more. Takes the
 * opgraph over, also on failure. */
static cudnnStatus_t graph_descriptor(struct wd_opgraph *opgraph, const struct wd_device *device,
                                      struct wd_desc **result)
{
    struct wd_desc *desc = NULL;
    struct wd_built_graph *graph;
    cudnnStatus_t status = wd_desc_create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &desc);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = wd_desc_put_int(desc, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                 CUDNN_TYPE_INT64, wd_engine_id_limit());
    }
    if (status == CUDNN_STATUS_SUCCESS) status = wd_built_graph_create(opgraph, device, &graph);
    if (status != CUDNN_STATUS_SUCCESS) {
        wd_desc_release(desc);
        wd_built_release(&opgraph->base);
        return status;
    }
    wd_desc_seal(desc, &graph->base);
    *result = desc;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_plan_restore(const struct wd_value *value, const struct wd_device *device,
                              struct wd_desc **config)
{
    struct wd_reader reader = wd_reader_start((const char *)value->cells, (size_t)value->count);
    struct wd_device made_for = {0};
    struct wd_opgraph *opgraph;
    struct wd_desc *graph;
    cudnnStatus_t status;
    int64_t id;
    wd_read_token(&reader, '{');
    wd_read_key(&reader, "warpdnn_plan");
    WD_REQUIRE(wd_read_int(&reader, 0, 1000000) == 1 || reader.failed,
               CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH,
               "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION was written by a version that this "
               "one does not know");
    wd_read_token(&reader, ',');
    wd_read_key(&reader, "device");
    wd_device_read(&reader, &made_for);
    wd_read_token(&reader, ',');
    wd_read_key(&reader, "engine");
    id = wd_read_int(&reader, 0, INT32_MAX);
    wd_read_token(&reader, ',');
    wd_read_key(&reader, "graph");
    WD_TRY(wd_reader_status(&reader, "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION"));
    if (device) WD_TRY(check_device(&made_for, device, "handle"));
    WD_TRY(wd_graph_read(&reader, &opgraph));
    wd_read_token(&reader, '}');
    wd_read_end(&reader);
    status = wd_reader_status(&reader, "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION");
    if (status != CUDNN_STATUS_SUCCESS) {
        wd_built_release(&opgraph->base);
        return status;
    }
    WD_TRY(graph_descriptor(opgraph, device ? device : &made_for, &graph));
    status = wd_config_create(graph, NULL, id, config);
    wd_desc_release(graph);
    return status;
}

/* Under WARPDNN_CHECK=1, and on CPU handles while a driver is loaded: do the pointers lie where the
 * handle computes? */
static cudnnStatus_t check_places(cudnnHandle_t handle, const struct wd_graph *graph,
                                  void *const *data)
{
    bool on_cpu = handle->queue->device->kind == WD_CPU;
    if (on_cpu && !wd_gpu_driver_is_loaded()) return CUDNN_STATUS_SUCCESS;
    for (int t = 0; t < graph->tensor_count; ++t) {
        int owned;
        if (!data[t] || (graph->tensors[t].flags & (WD_VIRTUAL | WD_BY_VALUE))) continue;
        owned = wd_gpu_owns_pointer(on_cpu ? NULL : handle->queue, data[t]);
        WD_REQUIRE(owned < 0 || (owned == 1) != on_cpu, CUDNN_STATUS_BAD_PARAM,
                   "CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS: %p of unique id %lld is %s memory, the "
                   "handle computes on the %s",
                   data[t], (long long)graph->tensors[t].uid, owned ? "device" : "host",
                   on_cpu ? "CPU" : "GPU");
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Batch norm's statistics are those of one device. Buffers of peers on it have nothing to tell; one on
 * another device would be waited for in vain, and is refused. */
static cudnnStatus_t check_peers(cudnnHandle_t handle, const struct wd_graph *graph,
                                 void *const *data)
{
    if (handle->queue->device->kind == WD_CPU) return CUDNN_STATUS_SUCCESS;
    for (int n = 0; n < graph->node_count; ++n) {
        const struct wd_node *node = &graph->nodes[n];
        int first = wd_norm_first_peer(node->op);
        for (int i = 0; first >= 0 && i < WD_NORM_PEERS_MAX; ++i) {
            int t = node->slot[first + i];
            if (t < 0 || !data[t] || (graph->tensors[t].flags & WD_VIRTUAL)) continue;
            WD_REQUIRE(wd_gpu_owns_pointer(handle->queue, data[t]) == 1, CUDNN_STATUS_NOT_SUPPORTED,
                       "CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS: %p of unique id %lld, the buffer of "
                       "peer %d, is not memory of the handle's device; statistics of several "
                       "devices are not exchanged",
                       data[t], (long long)graph->tensors[t].uid, i);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

/* What a tensor's pointer is before the pack has given one, which may be null. */
static char unbound;

/* Puts the pack's pointers where the plan's tensors are. Ids that the plan does not know are left
 * alone: callers pass what the whole of their graph needs. */
static cudnnStatus_t bind(const struct wd_built_plan *plan, const struct wd_desc *pack, void **data)
{
    const struct wd_value *uids = wd_desc_value(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const struct wd_value *pointers = wd_desc_value(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    int found = 0;
    for (int t = 0; t < plan->opgraph->graph.tensor_count; ++t) data[t] = NULL;
    for (int u = 0; u < plan->uid_count; ++u) data[plan->uids[u].tensor] = &unbound;
    for (int64_t i = 0; i < uids->count; ++i) {
        int low = 0;
        int high = plan->uid_count;
        while (low < high) {
            int middle = (low + high) / 2;
            if (plan->uids[middle].uid < uids->cells[i].i) low = middle + 1;
            else high = middle;
        }
        if (low == plan->uid_count || plan->uids[low].uid != uids->cells[i].i) continue;
        data[plan->uids[low].tensor] = pointers->cells[i].p;
        found += 1;
    }
    if (found == plan->uid_count) return CUDNN_STATUS_SUCCESS;
    for (int u = 0; u < plan->uid_count; ++u) {
        WD_REQUIRE(data[plan->uids[u].tensor] != &unbound, CUDNN_STATUS_BAD_PARAM,
                   "unique id %lld of the plan is missing in CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS",
                   (long long)plan->uids[u].uid);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* The pointers by their unique ids; the plan knows slots only. */
static cudnnStatus_t check_pointers(const struct wd_built_plan *plan, void *const *data)
{
    for (int u = 0; u < plan->uid_count; ++u) {
        int t = plan->uids[u].tensor;
        const struct wd_tensor *tensor = &plan->opgraph->graph.tensors[t];
        char name[96];
        if (wd_pointer_serves(tensor, data[t])) continue;
        snprintf(name, sizeof name, "CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS: that of unique id %lld",
                 (long long)plan->uids[u].uid);
        return wd_pointer_validate(tensor, data[t], name);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_workspace(const struct wd_plan *plan, const void *workspace)
{
    WD_REQUIRE(workspace || plan->workspace == 0, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
               "CUDNN_ATTR_VARIANT_PACK_WORKSPACE is null, the plan (%s) needs %lld bytes",
               plan->name, (long long)plan->workspace);
    WD_REQUIRE(plan->workspace == 0 || (uintptr_t)workspace % WD_WORKSPACE_ALIGNMENT == 0,
               CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
               "CUDNN_ATTR_VARIANT_PACK_WORKSPACE %p is not aligned to %d bytes", workspace,
               (int)WD_WORKSPACE_ALIGNMENT);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t execute(cudnnHandle_t handle, const struct wd_built_plan *plan,
                             const struct wd_desc *pack, struct wd_queue *queue, void **data)
{
    struct wd_bindings bindings = {
        .data = data,
        .scalars = plan->opgraph->scalars,
        .workspace = wd_desc_pointer(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE),
        .workspace_bytes = plan->plan->workspace,
        .checked = true,
    };
    WD_TRY(bind(plan, pack, data));
    if (wd_env()->check || handle->queue->device->kind == WD_CPU) {
        WD_TRY(check_places(handle, &plan->opgraph->graph, data));
    }
    if (plan->has_peers) WD_TRY(check_peers(handle, &plan->opgraph->graph, data));
    WD_TRY(check_pointers(plan, data));
    WD_TRY(check_workspace(plan->plan, bindings.workspace));
    WD_TRY(wd_plan_execute(plan->plan, queue, &bindings));
    memcpy(handle->last_engine, plan->plan->name, sizeof handle->last_engine);
    return CUDNN_STATUS_SUCCESS;
}

/* What execute, populate and update check alike. */
static cudnnStatus_t check_arguments(cudnnHandle_t handle, const struct wd_desc *plan,
                                     const struct wd_desc *pack)
{
    WD_TRY(wd_desc_check_final(plan, "executionPlan", CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
    WD_TRY(wd_desc_check_final(pack, "variantPack", CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
    WD_TRY(check_device(&((const struct wd_built_plan *)plan->built)->plan->device,
                        handle->queue->device, "handle"));
    WD_REQUIRE(!wd_desc_has(pack, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS),
               CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE,
               "CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS: other shapes "
               "(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES) "
               "and strides are not implemented yet");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t run(cudnnHandle_t handle, const struct wd_desc *plan_desc,
                         const struct wd_desc *pack, struct wd_queue *queue)
{
    struct wd_built_plan *plan = (struct wd_built_plan *)plan_desc->built;
    int tensors = plan->opgraph->graph.tensor_count;
    void *local[LOCAL_TENSORS];
    void **own;
    cudnnStatus_t status;
    if (tensors <= LOCAL_TENSORS) return execute(handle, plan, pack, queue, local);
    if (!atomic_exchange_explicit(&plan->room_taken, true, memory_order_acquire)) {
        status = execute(handle, plan, pack, queue, plan->room);
        atomic_store_explicit(&plan->room_taken, false, memory_order_release);
        return status;
    }
    own = wd_alloc(sizeof own[0] * (size_t)tensors);
    WD_REQUIRE(own != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory for %d tensors", tensors);
    status = execute(handle, plan, pack, queue, own);
    wd_free(own);
    return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack)
{
    cudnnStatus_t status;
    WD_HANDLE(handle);
    status = check_arguments(handle, executionPlan, variantPack);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = run(handle, executionPlan, variantPack, handle->queue);
    }
    return wd_pass_in(__func__, status);
}

/* Populate and update differ in the queue alone. */
static cudnnStatus_t into_graph(cudnnHandle_t handle, const struct wd_desc *plan,
                                const struct wd_desc *pack, cudaGraph_t graph, bool update)
{
    struct wd_gpu_graph_queue queue;
    WD_TRY(check_arguments(handle, plan, pack));
    WD_REQUIRE(handle->queue->device->kind == WD_GPU,
               CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API,
               "the handle computes on the CPU, which has no CUDA graphs");
    WD_REQUIRE(graph != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "graph is null");
    memset(&queue, 0, sizeof queue);
    if (update) WD_TRY(wd_gpu_patch_queue_init(&queue, handle->queue, graph));
    else WD_TRY(wd_gpu_graph_queue_init(&queue, handle->queue, graph));
    return wd_gpu_graph_queue_fini(&queue, run(handle, plan, pack, &queue.base));
}

cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t handle,
                                            cudnnBackendDescriptor_t executionPlan,
                                            cudnnBackendDescriptor_t variantPack, cudaGraph_t graph)
{
    WD_HANDLE(handle);
    return wd_pass_in(__func__, into_graph(handle, executionPlan, variantPack, graph, false));
}

cudnnStatus_t cudnnBackendUpdateCudaGraph(cudnnHandle_t handle,
                                          cudnnBackendDescriptor_t executionPlan,
                                          cudnnBackendDescriptor_t variantPack, cudaGraph_t graph)
{
    WD_HANDLE(handle);
    return wd_pass_in(__func__, into_graph(handle, executionPlan, variantPack, graph, true));
}
