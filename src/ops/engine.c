/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of engines, and the small functions that all engines use. The table is fixed but for
 * the CPU module's rows, which appear at once when the first plan for a CPU has loaded it. */
#include "ops/engine.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "cpu/cpu.h"

#define WD_ENGINE(id, name) extern const struct wd_engine wd_engine_##name;
#define WD_CPU_ENGINE(id, name)
#include "ops/engines.def"
#undef WD_ENGINE
#undef WD_CPU_ENGINE

static const struct wd_engine_row rows[] = {
#define WD_ENGINE(id, name) {id, &wd_engine_##name},
#define WD_CPU_ENGINE(id, name) {id, NULL},
#include "ops/engines.def"
#undef WD_ENGINE
#undef WD_CPU_ENGINE
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const char untried_word[] = "untried"; /* in WARPDNN_ENGINES: engines that are untried */

typedef const void *(*module_lookup)(int id);
static _Atomic(module_lookup) cpu_module;

int wd_engine_rows(void)
{
    return ROWS;
}

struct wd_engine_row wd_engine_row(int index)
{
    struct wd_engine_row row = rows[index];
    module_lookup lookup = atomic_load_explicit(&cpu_module, memory_order_acquire);
    if (!row.engine && lookup) row.engine = lookup(row.id);
    return row;
}

const struct wd_engine *wd_engine_by_id(int id)
{
    for (int i = 0; i < ROWS; ++i)
        if (rows[i].id == id) return wd_engine_row(i).engine;
    return NULL;
}

int wd_engine_id_limit(void)
{
    int highest = 0;
    for (int i = 0; i < ROWS; ++i)
        if (rows[i].id > highest) highest = rows[i].id;
    return highest + 1;
}

int wd_engine_id(const struct wd_engine *engine)
{
    for (int i = 0; i < ROWS; ++i)
        if (wd_engine_row(i).engine == engine) return rows[i].id;
    return 0;
}

void wd_engine_set_cpu_module(const void *(*engine_by_id)(int id))
{
    atomic_store_explicit(&cpu_module, engine_by_id, memory_order_release);
}

void wd_engines_prepare(enum wd_device_kind kind)
{
    const struct wd_cpu_module *module;
    if (kind != WD_CPU || atomic_load_explicit(&cpu_module, memory_order_relaxed)) return;
    module = wd_cpu_module(NULL);
    if (module) wd_engine_set_cpu_module(module->engine_by_id);
}

bool wd_reject(struct wd_reason *reason, cudnnStatus_t status, const char *format, ...)
{
    va_list arguments;
    reason->status = status;
    va_start(arguments, format);
    vsnprintf(reason->text, sizeof reason->text, format, arguments);
    va_end(arguments);
    return false;
}

/* The next pattern of the list at *at (names with commas between), without room an empty one. */
static bool next_pattern(const char **at, char *pattern, size_t size)
{
    const size_t length = strcspn(*at, ",");
    if (**at == '\0') return false;
    memcpy(pattern, *at, length < size ? length : 0);
    pattern[length < size ? length : 0] = '\0';
    *at += length + ((*at)[length] == ',');
    return true;
}

/* Whether the list names the engine: patterns of fnmatch(3). An untried engine goes before others and would
 * hide them from tests of all: `*` does not name it, the word `untried` does. */
static bool is_named(const struct wd_engine *engine, const char *list)
{
    char pattern[128];
    while (next_pattern(&list, pattern, sizeof pattern)) {
        if (engine->untried && strcmp(pattern, "*") == 0) continue;
        if (engine->untried && strcmp(pattern, untried_word) == 0) return true;
        if (fnmatch(pattern, engine->name, 0) == 0) return true;
    }
    return false;
}

static bool is_wanted(const struct wd_engine *engine, struct wd_reason *reason)
{
    const char *list = wd_env()->engines;
    if (engine->last_resort) return true;
    if (engine->untried) {
        WD_NEED(list && is_named(engine, list), reason, NOT_SUPPORTED,
                "has not run on a device yet; WARPDNN_ENGINES=%s would let it", engine->name);
        return true;
    }
    WD_NEED(!list || is_named(engine, list), reason, NOT_SUPPORTED,
            "is not among WARPDNN_ENGINES=%s", list);
    return true;
}

bool wd_engines_unknown(enum wd_device_kind kind, char *pattern, size_t size)
{
    const char *at = wd_env()->engines;
    while (at && next_pattern(&at, pattern, size)) {
        bool known = strcmp(pattern, "none") == 0 || strcmp(pattern, untried_word) == 0;
        for (int i = 0; i < wd_engine_rows() && !known; ++i) {
            const struct wd_engine *engine = wd_engine_row(i).engine;
            known = engine && engine->device == kind && fnmatch(pattern, engine->name, 0) == 0;
        }
        if (!known) return true;
    }
    return false;
}

bool wd_engine_takes(const struct wd_engine *engine, const struct wd_problem *problem,
                     struct wd_reason *reason)
{
    if (engine->op != problem->node->op) {
        return wd_reject(reason, CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "does %s, not %s",
                         wd_op_info(engine->op)->name, wd_op_info(problem->node->op)->name);
    }
    if (engine->device != problem->device->kind) {
        return wd_reject(reason, CUDNN_STATUS_NOT_SUPPORTED, "runs on the %s, not on the %s",
                         engine->device == WD_CPU ? "CPU" : "GPU",
                         problem->device->kind == WD_CPU ? "CPU" : "GPU");
    }
    if (engine->takes_pieces != (problem->piece != NULL)) {
        return wd_reject(reason, CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "%s",
                         problem->piece ? "does one operation at a time"
                                        : "does several operations at once, not one");
    }
    if (!is_wanted(engine, reason)) return false;
    return !engine->match || engine->match(problem, reason);
}

const struct wd_tensor *wd_call_tensor(const struct wd_call *call, int slot)
{
    return wd_slot(call->problem.graph, call->problem.node, slot);
}

struct wd_view wd_call_view(const struct wd_call *call, int slot)
{
    int index = call->problem.node->slot[slot];
    if (index < 0) return (struct wd_view){.vect_count = 1};
    return wd_call_tensor_view(call, index);
}

struct wd_view wd_call_tensor_view(const struct wd_call *call, int index)
{
    const struct wd_tensor *tensor = &call->problem.graph->tensors[index];
    struct wd_view view = {.vect_count = 1};
    view.data = call->data[index];
    view.dtype = tensor->dtype;
    view.rank = tensor->rank;
    view.vect_count = tensor->vect_count;
    view.vect_dim = tensor->vect_dim;
    for (int d = 0; d < tensor->rank; ++d) {
        view.dim[d] = tensor->dim[d];
        view.stride[d] = tensor->stride[d];
    }
    if (tensor->flags & WD_BY_VALUE) {
        view.value = view.data ? wd_load_f64(view.data, view.dtype, 0) : 0.0;
        view.data = NULL;
    }
    return view;
}

const void *wd_call_prepared(const struct wd_call *call, wd_prepare_fn prepare, void *own)
{
    if (call->prepared && call->prepared_by == prepare) return call->prepared;
    prepare(&call->problem, own);
    return own;
}

/* The compute type of a node, and whether it sums products of its elements. */
static int compute_type(const struct wd_node *node, bool *sums)
{
    *sums = true;
    switch (node->op) {
    case WD_OP_POINTWISE: *sums = false; return node->attr.pointwise.compute;
    case WD_OP_CONV_FPROP:
    case WD_OP_CONV_DGRAD:
    case WD_OP_CONV_WGRAD:
    case WD_OP_CONV_FUSED: return node->attr.conv.compute;
    case WD_OP_REDUCE: return node->attr.reduce.compute;
    case WD_OP_MATMUL: return node->attr.matmul.compute;
    case WD_OP_NORM_INFERENCE:
    case WD_OP_NORM_TRAINING:
    case WD_OP_NORM_BACKWARD:
    case WD_OP_GEN_STATS:
    case WD_OP_BN_FINALIZE:
    case WD_OP_BN_BWD_WEIGHTS: return node->attr.norms.compute;
    default: *sums = false; return CUDNN_DATA_FLOAT;
    }
}

enum wd_acc wd_problem_acc(const struct wd_problem *problem)
{
    int dtypes[WD_MAX_SLOTS];
    int count = 0;
    bool sums;
    if (compute_type(problem->node, &sums) == CUDNN_DATA_DOUBLE) return WD_ACC_F64;
    for (int i = 0; i < wd_op_info(problem->node->op)->slot_count; ++i) {
        const struct wd_tensor *tensor = wd_slot(problem->graph, problem->node, i);
        if (!tensor || (tensor->flags & (WD_OPAQUE | WD_BY_VALUE))) continue;
        if (sums && wd_dtype_is_integer(tensor->dtype)) return WD_ACC_F64;
        dtypes[count++] = tensor->dtype;
    }
    return wd_acc_for(dtypes, count);
}
