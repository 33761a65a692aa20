/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of the backend API in one library. */
#include "compose.h"

#include <stdlib.h>
#include <string.h>

enum { MADE_MAX = 192, OPERATIONS_MAX = 8, CONFIGS_MAX = 16, VIRTUAL_UID = 1000 };
typedef cudnnBackendDescriptor_t descriptor;

struct composed {
    descriptor made[MADE_MAX];
    int count;
    descriptor operations[OPERATIONS_MAX];
    int operation_count;
    int64_t virtuals;
    descriptor plan;
    descriptor pack; /* of the pointers it was made for */
    void *packed[OPERANDS_MAX];
    cudnnStatus_t status;
};

static descriptor make(struct session *s, cudnnBackendDescriptorType_t type)
{
    struct composed *c = s->composed;
    descriptor made = NULL;
    if (c->status == CUDNN_STATUS_SUCCESS && c->count == MADE_MAX) {
        c->status = CUDNN_STATUS_INTERNAL_ERROR;
    }
    if (c->status == CUDNN_STATUS_SUCCESS) {
        c->status = s->library->BackendCreateDescriptor(type, &made);
        if (c->status == CUDNN_STATUS_SUCCESS) c->made[c->count++] = made;
    }
    return made;
}

static void set(struct session *s, descriptor d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    struct composed *c = s->composed;
    if (c->status != CUDNN_STATUS_SUCCESS) return;
    c->status = s->library->BackendSetAttribute(d, name, type, count, values);
}

static void refer(struct session *s, descriptor d, cudnnBackendAttributeName_t name, descriptor to)
{
    set(s, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
}

static descriptor finalize(struct session *s, descriptor d)
{
    struct composed *c = s->composed;
    if (c->status == CUDNN_STATUS_SUCCESS) c->status = s->library->BackendFinalize(d);
    return d;
}

void compose_begin(struct session *s)
{
    s->composed = calloc(1, sizeof *s->composed);
    if (!s->composed) abort();
}

static descriptor tensor(struct session *s, const struct operand *o, cudnnDataType_t type,
                         int64_t uid, int64_t alignment, bool is_virtual)
{
    descriptor d = make(s, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dims[DIMS_MAX];
    int64_t strides[DIMS_MAX];
    for (int r = 0; r < o->rank; ++r) {
        dims[r] = o->dims[r];
        strides[r] = o->strides[r];
    }
    set(s, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(s, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, o->rank, dims);
    set(s, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, o->rank, strides);
    set(s, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(s, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (is_virtual) {
        set(s, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    }
    return finalize(s, d);
}

descriptor compose_operand(struct session *s, const struct task *task, int i)
{
    const struct operand *o = &task->operand[i];
    int64_t alignment = task->problem->odd ? (int64_t)type_bytes(o->type) : 16;
    return tensor(s, o, o->type, i + 1, alignment, false);
}

descriptor compose_virtual(struct session *s, const struct task *task, int i)
{
    return tensor(s, &task->operand[i], task_compute(task), VIRTUAL_UID + s->composed->virtuals++,
                  16, true);
}

void compose_pointwise(struct session *s, const struct task *task, cudnnPointwiseMode_t mode,
                       descriptor x, descriptor b, descriptor dy, descriptor y)
{
    struct composed *c = s->composed;
    descriptor how = make(s, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    descriptor op;
    cudnnDataType_t compute = task_compute(task);
    set(s, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(s, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    finalize(s, how);
    op = make(s, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (dy) {
        refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy);
        refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, y);
    } else {
        refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    }
    finalize(s, op);
    if (c->operation_count < OPERATIONS_MAX) c->operations[c->operation_count++] = op;
    else c->status = CUDNN_STATUS_INTERNAL_ERROR;
}

/* The configurations that a mode of the heuristics names. */
static int ask(struct session *s, descriptor graph, cudnnBackendHeurMode_t mode,
               descriptor configs[CONFIGS_MAX])
{
    struct composed *c = s->composed;
    descriptor heuristics = make(s, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t found = 0;
    refer(s, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(s, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finalize(s, heuristics);
    for (int i = 0; i < CONFIGS_MAX; ++i) configs[i] = make(s, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (c->status == CUDNN_STATUS_SUCCESS) {
        c->status = s->library->BackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX,
                                                    &found, configs);
    }
    if (c->status == CUDNN_STATUS_SUCCESS) return found < CONFIGS_MAX ? (int)found : CONFIGS_MAX;
    return 0;
}

static bool try_config(struct session *s, descriptor config)
{
    struct composed *c = s->composed;
    c->status = CUDNN_STATUS_SUCCESS;
    c->plan = make(s, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(s, c->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->handle);
    refer(s, c->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    finalize(s, c->plan);
    return c->status == CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t compose_plan(struct session *s)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    struct composed *c = s->composed;
    descriptor graph = make(s, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    descriptor configs[CONFIGS_MAX];
    bool planned = false;
    int64_t bytes = 0;
    set(s, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->handle);
    set(s, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, c->operation_count,
        c->operations);
    finalize(s, graph);
    if (c->status != CUDNN_STATUS_SUCCESS) return c->status;
    for (int m = 0; !planned && m < 2; ++m) {
        int count;
        c->status = CUDNN_STATUS_SUCCESS;
        count = ask(s, graph, modes[m], configs);
        for (int i = 0; !planned && i < count; ++i) planned = try_config(s, configs[i]);
    }
    if (!planned) {
        return c->status == CUDNN_STATUS_SUCCESS ? CUDNN_STATUS_NOT_SUPPORTED : c->status;
    }
    c->status = s->library->BackendGetAttribute(c->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                CUDNN_TYPE_INT64, 1, NULL, &bytes);
    s->workspace_bytes = (size_t)bytes;
    return c->status;
}

/* A variant pack for each set of pointers: kept while the pointers are the same. */
cudnnStatus_t composed_run(struct session *s, const struct task *task, void *const *at)
{
    struct composed *c = s->composed;
    int64_t uids[OPERANDS_MAX];
    for (int i = 0; i < task->count; ++i) uids[i] = i + 1;
    if (!c->pack || memcmp(c->packed, at, (size_t)task->count * sizeof *at) != 0) {
        if (c->pack) {
            s->library->BackendDestroyDescriptor(c->pack);
            c->count -= 1; /* it was made last */
        }
        c->status = CUDNN_STATUS_SUCCESS;
        c->pack = make(s, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        memcpy(c->packed, at, (size_t)task->count * sizeof *at);
        set(s, c->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, task->count, uids);
        set(s, c->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, task->count,
            c->packed);
        set(s, c->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &s->workspace);
        finalize(s, c->pack);
        if (c->status != CUDNN_STATUS_SUCCESS) return c->status;
    }
    return s->library->BackendExecute(s->handle, c->plan, c->pack);
}

void composed_free(struct session *s)
{
    struct composed *c = s->composed;
    if (!c) return;
    while (c->count > 0) s->library->BackendDestroyDescriptor(c->made[--c->count]);
    free(c);
    s->composed = NULL;
}
