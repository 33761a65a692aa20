/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes plans (one engine a node, the first row that takes it) and executes them. Pure but for the
 * counters of the statistics, and for what has been warned of. */
#include "plan/plan.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "plan/workspace.h"

enum { ENGINE_NODE_BY_NODE = 1 };

static _Atomic uint64_t executions;
static _Atomic uint64_t emitted;
static _Atomic uint64_t alive;
static _Atomic uint64_t warned; /* a bit an operation */
_Static_assert(WD_OP_COUNT <= 64, "an operation has its bit in warned");

/* Takes an engine for a node: the one asked for, or the first that takes it. On failure the last
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
        if (wanted > ENGINE_NODE_BY_NODE && row.id != wanted) continue;
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

cudnnStatus_t wd_plan_create(const struct wd_device *device, const struct wd_graph *graph,
                             struct wd_plan **result)
{
    struct wd_plan *plan = NULL;
    cudnnStatus_t status = wd_graph_validate(graph);
    int scalars = 0;
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
    for (int n = 0; n < graph->node_count; ++n) {
        struct wd_step *step = &plan->steps[n];
        step->problem = (struct wd_problem){plan->graph, &plan->graph->nodes[n], &plan->device};
        status = choose(&step->problem, graph->engine, &step->engine);
        if (status != CUDNN_STATUS_SUCCESS) goto fail;
        step->scalar_offset = scalars;
        scalars += wd_op_info(step->problem.node->op)->scalar_count;
        if (step->engine->workspace) {
            step->workspace_bytes = step->engine->workspace(&step->problem);
        }
        plan->notes |= step->engine->notes;
        plan->last_resort |= step->engine->last_resort;
        add_name(plan, step->engine->name);
        plan->step_count += 1;
    }
    status = wd_plan_book_workspace(plan);
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
    wd_free(plan->graph);
    wd_free(plan->steps);
    wd_free(plan->virtual_offset);
    wd_free(plan->key);
    wd_free(plan);
}

int wd_plan_candidates(const struct wd_device *device, const struct wd_graph *graph, int *ids,
                       int limit, struct wd_reason *reason)
{
    struct wd_reason ignored;
    int count = 0;
    wd_engines_prepare(device->kind);
    if (!reason) reason = &ignored;
    if (graph->node_count > 1) {
        for (int n = 0; n < graph->node_count; ++n) {
            struct wd_problem problem = {graph, &graph->nodes[n], device};
            const struct wd_engine *engine;
            cudnnStatus_t status = choose(&problem, 0, &engine);
            if (status == CUDNN_STATUS_SUCCESS) continue;
            wd_reject(reason, status, "%.150s", wd_last_error());
            return 0;
        }
        if (limit > 0) ids[0] = ENGINE_NODE_BY_NODE;
        return 1;
    }
    wd_reject(reason, CUDNN_STATUS_NOT_SUPPORTED, "no engine does %s here",
              wd_op_info(graph->nodes[0].op)->name);
    for (int i = 0; i < wd_engine_rows(); ++i) {
        struct wd_engine_row row = wd_engine_row(i);
        struct wd_problem problem = {graph, &graph->nodes[0], device};
        if (!row.engine || row.engine->op != problem.node->op) continue;
        if (row.engine->device != device->kind) continue;
        if (row.engine->last_resort && !wd_env()->last_resort) continue;
        if (!wd_engine_takes(row.engine, &problem, reason)) continue;
        if (count < limit) ids[count] = row.id;
        count += 1;
    }
    return count;
}

/* A real tensor of more than no elements needs a pointer. */
static cudnnStatus_t check_pointers(const struct wd_step *step, void *const *data)
{
    const struct wd_node *node = step->problem.node;
    const struct wd_op_info *info = wd_op_info(node->op);
    for (int s = 0; s < info->slot_count; ++s) {
        const struct wd_tensor *tensor = wd_slot(step->problem.graph, node, s);
        char slot[24];
        char name[96];
        if (!tensor) continue;
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
    for (int n = 0; n < plan->step_count; ++n) WD_TRY(check_pointers(&plan->steps[n], data));
    for (int n = 0; n < plan->step_count; ++n) {
        const struct wd_step *step = &plan->steps[n];
        struct wd_call call = {
            .problem = step->problem,
            .data = data,
            .scalars = bindings->scalars + step->scalar_offset,
            .workspace = workspace ? workspace + step->workspace_offset : NULL,
        };
        WD_TRY(step->engine->emit(&call, queue));
    }
    return CUDNN_STATUS_SUCCESS;
}

/* One line a step: function, operation, device, engine, workspace, and each tensor by its slot. */
static void log_execution(const struct wd_plan *plan, cudnnStatus_t status)
{
    for (int n = 0; n < plan->step_count; ++n) {
        const struct wd_step *step = &plan->steps[n];
        enum wd_op op = step->problem.node->op;
        char tensors[WD_ERROR_TEXT_SIZE] = "";
        size_t length = 0;
        for (int s = 0; s < wd_op_info(op)->slot_count && length < sizeof tensors; ++s) {
            const struct wd_tensor *tensor = wd_slot(plan->graph, step->problem.node, s);
            char name[24];
            char text[192];
            int wrote;
            if (!tensor) continue;
            wd_op_slot_name(op, s, name);
            wrote = snprintf(tensors + length, sizeof tensors - length, ", %s %s", name,
                             wd_tensor_text(tensor, text, sizeof text));
            length += wrote > 0 ? (size_t)wrote : 0;
        }
        wd_log(CUDNN_SEV_INFO, status, "%s: %s on the %s by %s, workspace %lld bytes%s",
               wd_log_function(), wd_op_info(op)->name, plan->device.kind == WD_CPU ? "CPU" : "GPU",
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
