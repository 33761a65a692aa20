/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes plans (a cover of the graph, and for each of its pieces the first row that takes it) and
 * executes them. Pure but for the counters of the statistics, and for what has been warned of. */
#include "plan/plan.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "plan/workspace.h"

static _Atomic uint64_t executions;
static _Atomic uint64_t emitted;
static _Atomic uint64_t alive;
static _Atomic uint64_t warned; /* a bit an operation */
_Static_assert(WD_OP_COUNT <= 64, "an operation has its bit in warned");

/* Takes an engine for a node or a piece: the one asked for, or the first that takes it. On failure the last
 * error lists what each engine said. */
static cudnnStatus_t choose(const struct wd_problem *problem, int wanted,
                            const struct wd_engine **chosen)
{
    char said[WD_ERROR_TEXT_SIZE / 2] = "";
    size_t length = 0;
    cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < wd_engine_rows(); ++i) {
        struct wd_engine_row row = wd_engine_row(i);
        struct wd_reason reason;
        if (!row.engine || row.engine->op != problem->node->op) continue;
        if (row.engine->device != problem->device->kind) continue;
        if (row.engine->takes_pieces != (problem->piece != NULL)) continue;
        if (wanted > WD_ENGINE_NODE_BY_NODE && row.id != wanted) continue;
        if (row.engine->last_resort && !wd_env()->last_resort) {
            wd_reject(&reason, CUDNN_STATUS_NOT_SUPPORTED, "refused by WARPDNN_LAST_RESORT=0");
        } else if (wd_engine_takes(row.engine, problem, &reason)) {
            *chosen = row.engine;
            return CUDNN_STATUS_SUCCESS;
        }
        status = reason.status;
        if (length < sizeof said) {
            length += (size_t)snprintf(said + length, sizeof said - length, "%s%s: %s",
                                       length ? "; " : "", row.engine->name, reason.text);
        }
    }
    return wd_fail(status, "no engine takes %s on the %s%s%s", wd_op_info(problem->node->op)->name,
                   problem->device->kind == WD_CPU ? "CPU" : "GPU", length ? ": " : "", said);
}

static void add_name(struct wd_plan *plan, const char *name)
{
    size_t length = strlen(plan->name);
    snprintf(plan->name + length, sizeof plan->name - length, "%s%s", length ? "+" : "", name);
}

static cudnnStatus_t make_step(struct wd_plan *plan, int p)
{
    struct wd_step *step = &plan->steps[p];
    int32_t last = plan->cover.order[plan->cover.begin[p + 1] - 1];
    step->problem = wd_cover_problem(&plan->cover, &plan->device, plan->graph, p);
    step->scalar_offset = plan->cover.scalar_offset[last];
    WD_TRY(choose(&step->problem, plan->graph->engine, &step->engine));
    if (step->engine->workspace) step->workspace_bytes = step->engine->workspace(&step->problem);
    if (step->engine->prepare) {
        step->prepared = wd_alloc(step->engine->prepared_bytes);
        WD_REQUIRE(step->prepared, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no host memory for what %s prepares (%zu bytes)", step->engine->name,
                   step->engine->prepared_bytes);
        step->engine->prepare(&step->problem, step->prepared);
    }
    plan->notes |= step->engine->notes;
    plan->last_resort |= step->engine->last_resort;
    add_name(plan, step->engine->name);
    plan->step_count += 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_plan_create(const struct wd_device *device, const struct wd_graph *graph,
                             struct wd_plan **result)
{
    struct wd_plan *plan = NULL;
    cudnnStatus_t status = wd_graph_validate(graph);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    plan = wd_alloc(sizeof *plan);
    if (plan) {
        atomic_fetch_add_explicit(&alive, 1, memory_order_relaxed);
        plan->references = 1;
        plan->device = *device;
        plan->graph = wd_graph_copy(graph);
        plan->steps = wd_alloc(sizeof *plan->steps * (size_t)graph->node_count);
        plan->virtual_offset = wd_alloc(sizeof *plan->virtual_offset * (size_t)graph->tensor_count);
    }
    if (!plan || !plan->graph || !plan->steps || !plan->virtual_offset) {
        status = wd_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                         "no host memory for a plan of %d operations", graph->node_count);
        goto fail;
    }
    status = wd_cover_make(&plan->device, plan->graph, &plan->cover);
    for (int p = 0; p < plan->cover.piece_count && status == CUDNN_STATUS_SUCCESS; ++p) {
        status = make_step(plan, p);
    }
    if (status == CUDNN_STATUS_SUCCESS) status = wd_plan_book_workspace(plan);
    if (status != CUDNN_STATUS_SUCCESS) goto fail;
    *result = plan;
    return CUDNN_STATUS_SUCCESS;
fail:
    wd_plan_destroy(plan);
    return status;
}

void wd_plan_destroy(struct wd_plan *plan)
{
    if (!plan) return;
    atomic_fetch_sub_explicit(&alive, 1, memory_order_relaxed);
    for (int p = 0; plan->steps && p < plan->cover.piece_count; ++p) {
        wd_free(plan->steps[p].prepared);
    }
    wd_cover_free(&plan->cover);
    wd_free(plan->graph);
    wd_free(plan->steps);
    wd_free(plan->virtual_offset);
    wd_free(plan->key);
    wd_free(plan);
}

/* Ids of the engines that take a problem, best first, as wd_plan_candidates does. */
static int takers(const struct wd_problem *problem, int *ids, int limit, struct wd_reason *reason)
{
    int count = 0;
    for (int i = 0; i < wd_engine_rows(); ++i) {
        struct wd_engine_row row = wd_engine_row(i);
        if (!row.engine || row.engine->op != problem->node->op) continue;
        if (row.engine->device != problem->device->kind) continue;
        if (row.engine->takes_pieces != (problem->piece != NULL)) continue;
        if (row.engine->last_resort && !wd_env()->last_resort) continue;
        if (!wd_engine_takes(row.engine, problem, reason)) continue;
        if (count < limit) ids[count] = row.id;
        count += 1;
    }
    return count;
}

/* The same of a graph of several nodes. */
static int candidates_of_several(const struct wd_device *device, const struct wd_graph *graph,
                                 int *ids, int limit, struct wd_reason *reason)
{
    struct wd_cover cover;
    int count = 0;
    cudnnStatus_t status = wd_cover_make(device, graph, &cover);
    if (status == CUDNN_STATUS_SUCCESS && cover.piece_count == 1) {
        struct wd_problem problem = wd_cover_problem(&cover, device, graph, 0);
        count = takers(&problem, ids, limit, reason);
    } else if (status == CUDNN_STATUS_SUCCESS && cover.piece_count < graph->node_count) {
        for (int p = 0; p < cover.piece_count && status == CUDNN_STATUS_SUCCESS; ++p) {
            struct wd_problem problem = wd_cover_problem(&cover, device, graph, p);
            const struct wd_engine *engine;
            status = choose(&problem, WD_ENGINE_BEST, &engine);
        }
        count = status == CUDNN_STATUS_SUCCESS;
        if (count && limit > 0) ids[0] = WD_ENGINE_BEST;
    }
    wd_cover_free(&cover);
    for (int n = 0; n < graph->node_count && status == CUDNN_STATUS_SUCCESS; ++n) {
        struct wd_problem problem = {.graph = graph, .node = &graph->nodes[n], .device = device};
        const struct wd_engine *engine;
        status = choose(&problem, WD_ENGINE_BEST, &engine);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        wd_reject(reason, status, "%.150s", wd_last_error());
        return count;
    }
    if (count < limit) ids[count] = WD_ENGINE_NODE_BY_NODE;
    return count + 1;
}

int wd_plan_candidates(const struct wd_device *device, const struct wd_graph *graph, int *ids,
                       int limit, struct wd_reason *reason)
{
    struct wd_problem problem = {.graph = graph, .node = &graph->nodes[0], .device = device};
    struct wd_reason ignored;
    wd_engines_prepare(device->kind);
    if (!reason) reason = &ignored;
    if (graph->node_count > 1) return candidates_of_several(device, graph, ids, limit, reason);
    wd_reject(reason, CUDNN_STATUS_NOT_SUPPORTED, "no engine does %s here",
              wd_op_info(graph->nodes[0].op)->name);
    return takers(&problem, ids, limit, reason);
}

/* Whether the tensor in a slot of the step's node lies within the piece only. */
static bool is_hidden(const struct wd_plan *plan, const struct wd_node *node, int slot)
{
    int t = node->slot[slot];
    return (plan->graph->tensors[t].flags & WD_VIRTUAL) && plan->virtual_offset[t] < 0;
}

/* A real tensor of more than no elements needs a pointer. */
static cudnnStatus_t check_pointers(const struct wd_plan *plan, const struct wd_node *node,
                                    void *const *data)
{
    const struct wd_op_info *info = wd_op_info(node->op);
    for (int s = 0; s < info->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(plan->graph, node, s);
        char slot[24];
        char name[96];
        if (!tensor || is_hidden(plan, node, s)) continue;
        if (wd_pointer_serves(tensor, data[node->slot[s]])) continue;
        wd_op_slot_name(node->op, s, slot);
        snprintf(name, sizeof name, "%s: the pointer of tensor %s", info->name, slot);
        return wd_pointer_validate(tensor, data[node->slot[s]], name);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t run_steps(const struct wd_plan *plan, struct wd_queue *queue,
                               const struct wd_bindings *bindings)
{
    char *workspace = bindings->workspace;
    void **data = bindings->data;
    void *scratch;
    if (plan->workspace > 0 && bindings->workspace_bytes == WD_WORKSPACE_ARENA) {
        WD_TRY(queue->ops->scratch(queue, (size_t)plan->workspace, &scratch));
        workspace = scratch;
    } else if (plan->workspace > 0) {
        WD_REQUIRE(bindings->workspace_bytes >= plan->workspace,
                   CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                   "workspace of %lld bytes given, engine %s needs %lld",
                   (long long)bindings->workspace_bytes, plan->name, (long long)plan->workspace);
        WD_REQUIRE(workspace != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                   "workspace is null, engine %s needs %lld bytes", plan->name,
                   (long long)plan->workspace);
        WD_REQUIRE((uintptr_t)workspace % WD_WORKSPACE_ALIGNMENT == 0,
                   CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                   "workspace %p is not aligned to %d bytes", (void *)workspace,
                   (int)WD_WORKSPACE_ALIGNMENT);
    }
    for (int t = 0; t < plan->graph->tensor_count; ++t) {
        if (plan->virtual_offset[t] >= 0) data[t] = workspace + plan->virtual_offset[t];
    }
    for (int n = 0; n < plan->graph->node_count && !bindings->checked; ++n) {
        WD_TRY(check_pointers(plan, &plan->graph->nodes[plan->cover.order[n]], data));
    }
    for (int n = 0; n < plan->step_count; ++n) {
        const struct wd_step *step = &plan->steps[n];
        struct wd_call call = {
            .problem = step->problem,
            .data = data,
            .scalars = bindings->scalars + step->scalar_offset,
            .workspace = workspace ? workspace + step->workspace_offset : NULL,
            .graph_scalars = bindings->scalars,
            .scalar_offset = plan->cover.scalar_offset,
            .prepared = step->prepared,
            .prepared_by = step->engine->prepare,
        };
        WD_TRY(step->engine->emit(&call, queue));
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Writes behind `length` characters of text what fits, and returns the length then. */
static size_t append(char *text, size_t size, size_t length, const char *before, const char *word)
{
    int wrote;
    if (length >= size) return length;
    wrote = snprintf(text + length, size - length, "%s%s", before, word);
    return length + (wrote > 0 ? (size_t)wrote : 0);
}

/* One line a step: function, operations, device, engine, workspace, and each tensor that lies in
 * memory by its slot. */
static void log_execution(const struct wd_plan *plan, cudnnStatus_t status)
{
    for (int p = 0; p < plan->step_count; ++p) {
        const struct wd_step *step = &plan->steps[p];
        char ops[256] = "";
        char tensors[WD_ERROR_TEXT_SIZE] = "";
        size_t named = 0;
        size_t length = 0;
        for (int i = 0; i < wd_problem_count(&step->problem); ++i) {
            const struct wd_node *node = wd_problem_node(&step->problem, i);
            const struct wd_op_info *info = wd_op_info(node->op);
            named = append(ops, sizeof ops, named, named ? "+" : "", info->name);
            for (int s = 0; s < info->slot_count && length < sizeof tensors; ++s) {
                const struct wd_tensor *tensor = wd_slot(plan->graph, node, s);
                char name[24];
                char text[192];
                if (!tensor || is_hidden(plan, node, s)) continue;
                wd_op_slot_name(node->op, s, name);
                length = append(tensors, sizeof tensors, length, ", ", name);
                length = append(tensors, sizeof tensors, length, " ",
                                wd_tensor_text(tensor, text, sizeof text));
            }
        }
        wd_log(CUDNN_SEV_INFO, status, "%s: %s on the %s by %s, workspace %lld bytes%s",
               wd_log_function(), ops, plan->device.kind == WD_CPU ? "CPU" : "GPU",
               step->engine->name, (long long)plan->workspace, tensors);
    }
}

/* Once a process and operation, when somebody listens. */
static void warn_last_resort(const struct wd_plan *plan)
{
    for (int n = 0; n < plan->step_count; ++n) {
        const struct wd_step *step = &plan->steps[n];
        enum wd_op op = step->problem.node->op;
        uint64_t bit = (uint64_t)1 << op;
        if (!step->engine->last_resort || (atomic_fetch_or(&warned, bit) & bit)) continue;
        wd_log(CUDNN_SEV_WARNING, CUDNN_STATUS_SUCCESS,
               "%s runs on an engine of last resort (%s) on the GPU, expect it to be slow",
               wd_op_info(op)->name, step->engine->name);
    }
}

cudnnStatus_t wd_plan_execute(const struct wd_plan *plan, struct wd_queue *queue,
                              const struct wd_bindings *bindings)
{
    uint64_t before = queue->emitted;
    cudnnStatus_t status = queue->ops->begin(queue);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = run_steps(plan, queue, bindings);
        queue->ops->end(queue);
    }
    wd_plan_count_emitted(queue->emitted - before);
    if (status == CUDNN_STATUS_SUCCESS) {
        atomic_fetch_add_explicit(&executions, 1, memory_order_relaxed);
    }
    /* on the CPU the definitions are ordinary engines, and the missing module has its own warning */
    if (plan->last_resort && plan->device.kind == WD_GPU && wd_log_wanted(CUDNN_SEV_WARNING)) {
        warn_last_resort(plan);
    }
    if (wd_log_wanted(CUDNN_SEV_INFO)) log_execution(plan, status);
    return status;
}

uint64_t wd_plan_executions(void)
{
    return atomic_load_explicit(&executions, memory_order_relaxed);
}

uint64_t wd_plans_alive(void)
{
    return atomic_load_explicit(&alive, memory_order_relaxed);
}

uint64_t wd_plan_emitted(void)
{
    return atomic_load_explicit(&emitted, memory_order_relaxed);
}

void wd_plan_count_emitted(uint64_t count)
{
    atomic_fetch_add_explicit(&emitted, count, memory_order_relaxed);
}
