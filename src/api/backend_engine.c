/* SPDX-License-Identifier: Apache-2.0
 *
 * Finalizing operation graphs, engines, engine configurations and heuristics: from what to compute
 * to plans, each with its notes and its workspace. Plans come from the cache, so asking for the same
 * graph again costs a hash and a compare. */
#include <stdio.h>

#include "api/backend.h"
#include "base/alloc.h"

enum {
    CANDIDATES_MAX = 64,
    ENGINE_WGRAD_LEGACY = 20, /* the number that old callers ask for */
};

static void destroy_graph(struct wd_built *built)
{
    struct wd_built_graph *graph = (struct wd_built_graph *)built;
    wd_built_release(&graph->opgraph->base);
    wd_free(graph);
}

cudnnStatus_t wd_built_graph_create(struct wd_opgraph *opgraph, const struct wd_device *device,
                                    struct wd_built_graph **result)
{
    struct wd_built_graph *graph = wd_alloc(sizeof *graph);
    WD_REQUIRE(graph != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory for an operation graph");
    atomic_init(&graph->base.references, 1);
    graph->base.destroy = destroy_graph;
    graph->opgraph = opgraph;
    graph->has_device = device != NULL;
    if (device) graph->device = *device;
    *result = graph;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_finalize_opgraph(struct wd_desc *desc, struct wd_built **built)
{
    cudnnHandle_t handle = wd_desc_pointer(desc, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    struct wd_opgraph *opgraph;
    struct wd_built_graph *graph;
    cudnnStatus_t status;
    if (handle) WD_TRY(wd_handle_validate("CUDNN_ATTR_OPERATIONGRAPH_HANDLE", handle));
    WD_TRY(wd_opgraph_build(desc, &opgraph));
    status = wd_built_graph_create(opgraph, handle ? handle->queue->device : NULL, &graph);
    if (status != CUDNN_STATUS_SUCCESS) {
        wd_built_release(&opgraph->base);
        return status;
    }
    *built = &graph->base;
    return wd_desc_put_int(desc, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64,
                           wd_engine_id_limit());
}

cudnnStatus_t wd_backend_device(const struct wd_desc *properties,
                                const struct wd_built_graph *graph, const char *what,
                                struct wd_device *device)
{
    if (properties) {
        *device = ((const struct wd_built_device *)properties->built)->device;
        return CUDNN_STATUS_SUCCESS;
    }
    WD_REQUIRE(graph->has_device, CUDNN_STATUS_BAD_PARAM,
               "neither %s nor CUDNN_ATTR_OPERATIONGRAPH_HANDLE of the operation graph was set",
               what);
    *device = graph->device;
    return CUDNN_STATUS_SUCCESS;
}

static void destroy_engine(struct wd_built *built)
{
    struct wd_built_engine *engine = (struct wd_built_engine *)built;
    wd_plan_release(engine->plan);
    wd_built_release(&engine->opgraph->base);
    wd_free(engine);
}

/* The engine that a plan is asked for, where a caller says `id`. */
static int plan_engine(const struct wd_graph *graph, int64_t id)
{
    bool wgrad = graph->node_count == 1 && graph->nodes[0].op == WD_OP_CONV_WGRAD;
    return id == ENGINE_WGRAD_LEGACY && wgrad ? WD_ENGINE_BEST : (int)id;
}

static cudnnStatus_t make_plan(const struct wd_opgraph *opgraph, const struct wd_device *device,
                               int64_t id, const struct wd_plan **plan)
{
    struct wd_graph graph = opgraph->graph;
    wd_engines_prepare(device->kind);
    WD_REQUIRE(id >= 0, CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_ENGINE_GLOBAL_INDEX=%lld is negative",
               (long long)id);
    WD_REQUIRE(id < wd_engine_id_limit(), CUDNN_STATUS_NOT_SUPPORTED,
               "CUDNN_ATTR_ENGINE_GLOBAL_INDEX=%lld is not below %d", (long long)id,
               wd_engine_id_limit());
    graph.engine = plan_engine(&graph, id);
    WD_REQUIRE(graph.engine <= WD_ENGINE_NODE_BY_NODE || wd_engine_by_id(graph.engine) != NULL,
               CUDNN_STATUS_NOT_SUPPORTED,
               "CUDNN_ATTR_ENGINE_GLOBAL_INDEX=%lld is that of no engine", (long long)id);
    return wd_plan_get(device, &graph, plan);
}

static cudnnStatus_t put_notes(struct wd_desc *desc, const struct wd_plan *plan)
{
    union wd_cell cells[32];
    int64_t count = 0;
    for (int note = 0; note < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; ++note) {
        if (plan->notes >> note & 1u) cells[count++].i = note;
    }
    WD_TRY(wd_desc_put(desc, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, count,
                       cells));
    cells[0].i = CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API;
    return wd_desc_put(desc, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                       plan->device.kind == WD_GPU ? 1 : 0, cells);
}

cudnnStatus_t wd_finalize_engine(struct wd_desc *desc, struct wd_built **built)
{
    const struct wd_desc *graph_desc = wd_desc_ref(desc, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    const struct wd_built_graph *graph = (const struct wd_built_graph *)graph_desc->built;
    int64_t id = wd_desc_int(desc, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    struct wd_built_engine *engine = NULL;
    const struct wd_plan *plan = NULL;
    struct wd_device device;
    cudnnStatus_t status;
    WD_TRY(wd_backend_device(wd_desc_ref(desc, CUDNN_ATTR_ENGINE_DEVICEPROP), graph,
                             "CUDNN_ATTR_ENGINE_DEVICEPROP", &device));
    WD_TRY(make_plan(graph->opgraph, &device, id, &plan));
    status = put_notes(desc, plan);
    if (status != CUDNN_STATUS_SUCCESS) goto fail;
    engine = wd_alloc(sizeof *engine);
    if (!engine) {
        status = wd_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                         "no host memory for an engine");
        goto fail;
    }
    atomic_init(&engine->base.references, 1);
    engine->base.destroy = destroy_engine;
    engine->opgraph = graph->opgraph;
    wd_built_retain(&graph->opgraph->base);
    engine->device = device;
    engine->plan = plan;
    engine->id = (int)id;
    *built = &engine->base;
    return CUDNN_STATUS_SUCCESS;
fail:
    wd_plan_release(plan);
    return status;
}

cudnnStatus_t wd_finalize_config(struct wd_desc *desc, struct wd_built **built)
{
    const struct wd_desc *engine = wd_desc_ref(desc, CUDNN_ATTR_ENGINECFG_ENGINE);
    const struct wd_value *knobs = wd_desc_value(desc, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    const struct wd_plan *plan = ((const struct wd_built_engine *)engine->built)->plan;
    WD_REQUIRE(knobs->count == 0, CUDNN_STATUS_NOT_SUPPORTED,
               "CUDNN_ATTR_ENGINECFG_KNOB_CHOICES: engine %s has no knobs, %lld were chosen",
               plan->name, (long long)knobs->count);
    WD_TRY(wd_desc_put_int(desc, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                           plan->workspace));
    *built = wd_built_retain(engine->built);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_config_create(struct wd_desc *graph, struct wd_desc *properties, int64_t id,
                               struct wd_desc **result)
{
    struct wd_desc *engine = NULL;
    struct wd_desc *config = NULL;
    struct wd_built *built = NULL;
    union wd_cell cell = {.ref = graph};
    cudnnStatus_t status = wd_desc_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    status = wd_desc_put(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         1, &cell);
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    status = wd_desc_put_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, id);
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    if (properties) {
        cell.ref = properties;
        status = wd_desc_put(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                             &cell);
        if (status != CUDNN_STATUS_SUCCESS) goto done;
    }
    status = wd_finalize_engine(engine, &built);
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    wd_desc_seal(engine, built);
    status = wd_desc_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config);
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    cell.ref = engine;
    status =
        wd_desc_put(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &cell);
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    status = wd_finalize_config(config, &built);
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    wd_desc_seal(config, built);
    *result = config;
    config = NULL;
done:
    wd_desc_release(engine);
    wd_desc_release(config);
    return status;
}

static bool is_last_resort(int id)
{
    const struct wd_engine *engine = wd_engine_by_id(id);
    return engine && engine->last_resort;
}

/* Engines that compute with less than the inputs' precision; callers filter by these notes. */
static bool is_inexact(int id)
{
    const uint32_t notes =
        1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    const struct wd_engine *engine = wd_engine_by_id(id);
    return engine && (engine->notes & notes);
}

/* What a mode offers, of all that runs, best first: FALLBACK the one that always runs; the others
 * what is fast, and one without tensor cores for callers that refuse them; the last resort only
 * where nothing else runs. */
static int choose(int64_t mode, const int *ids, int count, int *chosen)
{
    int kept = 0;
    bool exact = false;
    if (mode == CUDNN_HEUR_MODE_FALLBACK) {
        chosen[0] = ids[count - 1];
        return 1;
    }
    for (int i = 0; i < count; ++i) {
        if (is_last_resort(ids[i])) continue;
        chosen[kept++] = ids[i];
        exact |= !is_inexact(ids[i]);
    }
    if (!exact) {
        for (int i = 0; i < count && !exact; ++i) {
            if (!is_last_resort(ids[i]) || is_inexact(ids[i])) continue;
            chosen[kept++] = ids[i];
            exact = true;
        }
    }
    if (kept == 0) chosen[kept++] = ids[0];
    return kept;
}

cudnnStatus_t wd_finalize_heuristics(struct wd_desc *desc, struct wd_built **built)
{
    struct wd_desc *graph_desc = wd_desc_ref(desc, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    struct wd_desc *properties = wd_desc_ref(desc, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
    const struct wd_built_graph *graph = (const struct wd_built_graph *)graph_desc->built;
    int64_t mode = wd_desc_int(desc, CUDNN_ATTR_ENGINEHEUR_MODE);
    union wd_cell results[CANDIDATES_MAX];
    struct wd_reason reason;
    struct wd_device device;
    int ids[CANDIDATES_MAX];
    int chosen[CANDIDATES_MAX];
    int count;
    int made = 0;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    (void)built;
    WD_TRY(wd_backend_device(properties, graph, "CUDNN_ATTR_ENGINEHEUR_DEVICEPROP", &device));
    count = wd_plan_candidates(&device, &graph->opgraph->graph, ids, CANDIDATES_MAX, &reason);
    WD_REQUIRE(count > 0, reason.status, "engine heuristics: no engine runs this graph: %s",
               reason.text);
    if (count > CANDIDATES_MAX) count = CANDIDATES_MAX;
    count = choose(mode, ids, count, chosen);
    for (; made < count && status == CUDNN_STATUS_SUCCESS; ++made) {
        results[made].ref = NULL;
        status = wd_config_create(graph_desc, properties, chosen[made], &results[made].ref);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = wd_desc_put(desc, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                             made, results);
    }
    while (made > 0) wd_desc_release(results[--made].ref);
    return status;
}
