/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of the backend API in one library. */
#include "compose.h"

#include <stdlib.h>
#include <string.h>

enum { MADE_MAX = 192, OPERATIONS_MAX = 8, CONFIGS_MAX = 16, VALUES_MAX = 2 };
enum { VIRTUAL_UID = 1000, VALUE_UID = 2000 };
typedef cudnnBackendDescriptor_t descriptor;

struct composed {
    descriptor made[MADE_MAX];
    int count;
    descriptor operations[OPERATIONS_MAX];
    int operation_count;
    int64_t virtuals;
    float values[VALUES_MAX]; /* given by value */
    int value_count;
    descriptor plan;
    descriptor pack; /* of the pointers it was made for */
    void *packed[OPERANDS_MAX];
    cudnnStatus_t status;
};

descriptor compose_make(struct session *s, cudnnBackendDescriptorType_t type)
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

void compose_set(struct session *s, descriptor d, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    struct composed *c = s->composed;
    if (c->status != CUDNN_STATUS_SUCCESS) return;
    c->status = s->library->BackendSetAttribute(d, name, type, count, values);
}

void compose_refer(struct session *s, descriptor d, cudnnBackendAttributeName_t name, descriptor to)
{
    compose_set(s, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
}

descriptor compose_finalize(struct session *s, descriptor d)
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

enum tensor_kind { PLAIN, VIRTUAL, BY_VALUE };

static descriptor tensor(struct session *s, const struct operand *o, cudnnDataType_t type,
                         int64_t uid, int64_t alignment, enum tensor_kind kind)
{
    descriptor d = compose_make(s, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const bool yes = true;
    int64_t dims[DIMS_MAX];
    int64_t strides[DIMS_MAX];
    for (int r = 0; r < o->rank; ++r) {
        dims[r] = o->dims[r];
        strides[r] = o->strides[r];
    }
    compose_set(s, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    compose_set(s, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, o->rank, dims);
    compose_set(s, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, o->rank, strides);
    compose_set(s, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    compose_set(s, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (kind == VIRTUAL) {
        compose_set(s, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    }
    if (kind == BY_VALUE) {
        compose_set(s, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    }
    return compose_finalize(s, d);
}

descriptor compose_operand(struct session *s, const struct task *task, int i)
{
    const struct operand *o = &task->operand[i];
    int64_t alignment = task->problem->odd ? (int64_t)type_bytes(o->type) : 16;
    return tensor(s, o, o->type, i + 1, alignment, PLAIN);
}

descriptor compose_virtual(struct session *s, const struct task *task, int i)
{
    return tensor(s, &task->operand[i], task_compute(task), VIRTUAL_UID + s->composed->virtuals++,
                  16, VIRTUAL);
}

descriptor compose_value(struct session *s, float value)
{
    static const struct operand one = {
        .rank = 4, .dims = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}, .count = 1};
    struct composed *c = s->composed;
    descriptor d;
    if (c->value_count == VALUES_MAX) {
        c->status = CUDNN_STATUS_INTERNAL_ERROR;
        return NULL;
    }
    c->values[c->value_count] = value;
    d = tensor(s, &one, CUDNN_DATA_FLOAT, VALUE_UID + c->value_count++, 16, BY_VALUE);
    return d;
}

void compose_pointwise(struct session *s, const struct task *task, cudnnPointwiseMode_t mode,
                       descriptor x, descriptor b, descriptor dy, descriptor y)
{
    descriptor how = compose_make(s, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    descriptor op;
    cudnnDataType_t compute = task_compute(task);
    compose_set(s, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    compose_set(s, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    compose_finalize(s, how);
    op = compose_make(s, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    compose_refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    compose_refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) compose_refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (dy) {
        compose_refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy);
        compose_refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, y);
    } else {
        compose_refer(s, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    }
    compose_operation(s, op);
}

void compose_operation(struct session *s, descriptor op)
{
    struct composed *c = s->composed;
    compose_finalize(s, op);
    if (c->operation_count < OPERATIONS_MAX) c->operations[c->operation_count++] = op;
    else c->status = CUDNN_STATUS_INTERNAL_ERROR;
}

/* The configurations that a mode of the heuristics names. */
static int ask(struct session *s, descriptor graph, cudnnBackendHeurMode_t mode,
               descriptor configs[CONFIGS_MAX])
{
    struct composed *c = s->composed;
    descriptor heuristics = compose_make(s, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t found = 0;
    compose_refer(s, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    compose_set(s, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    compose_finalize(s, heuristics);
    for (int i = 0; i < CONFIGS_MAX; ++i)
        configs[i] = compose_make(s, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
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
    c->plan = compose_make(s, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    compose_set(s, c->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->handle);
    compose_refer(s, c->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    compose_finalize(s, c->plan);
    return c->status == CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t compose_plan(struct session *s)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    struct composed *c = s->composed;
    descriptor graph = compose_make(s, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    descriptor configs[CONFIGS_MAX];
    bool planned = false;
    int64_t bytes = 0;
    compose_set(s, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->handle);
    compose_set(s, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                c->operation_count, c->operations);
    compose_finalize(s, graph);
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

static cudnnStatus_t pack(struct session *s, const struct task *task, void *const *at)
{
    struct composed *c = s->composed;
    int64_t uids[OPERANDS_MAX + VALUES_MAX];
    void *pointers[OPERANDS_MAX + VALUES_MAX];
    int count = 0;
    if (c->pack) {
        s->library->BackendDestroyDescriptor(c->pack);
        c->count -= 1; /* it was made last */
    }
    for (int i = 0; i < task->count; ++i) {
        uids[count] = i + 1;
        pointers[count++] = c->packed[i] = at[i];
    }
    for (int i = 0; i < c->value_count; ++i) {
        uids[count] = VALUE_UID + i;
        pointers[count++] = &c->values[i];
    }
    c->status = CUDNN_STATUS_SUCCESS;
    c->pack = compose_make(s, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    compose_set(s, c->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids);
    compose_set(s, c->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                pointers);
    compose_set(s, c->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                &s->workspace);
    compose_finalize(s, c->pack);
    return c->status;
}

/* A variant pack is kept while the pointers are the same. */
cudnnStatus_t composed_run(struct session *s, const struct task *task, void *const *at)
{
    struct composed *c = s->composed;
    if (!c->pack || memcmp(c->packed, at, (size_t)task->count * sizeof *at) != 0) {
        cudnnStatus_t status = pack(s, task, at);
        if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    return s->library->BackendExecute(s->handle, c->plan, c->pack);
}

int composed_operations(const struct session *s)
{
    return s->composed ? s->composed->operation_count : 0;
}

void composed_free(struct session *s)
{
    struct composed *c = s->composed;
    if (!c) return;
    while (c->count > 0) s->library->BackendDestroyDescriptor(c->made[--c->count]);
    free(c);
    s->composed = NULL;
}
