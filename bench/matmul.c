/* SPDX-License-Identifier: Apache-2.0
 *
 * Times the products of problems_matmul.def through the backend API, in single precision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sets.h"

enum { DESCRIPTORS_MAX = 16, A = 0, B = 1, C = 2, OPERANDS = 3 };

struct product {
    cudnnBackendDescriptor_t made[DESCRIPTORS_MAX];
    int count;
    cudnnBackendDescriptor_t plan;
    cudnnBackendDescriptor_t pack;
};

static const struct problem {
    int batch, m, n, k, turned_a, turned_b;
} problems[] = {
#define WD_MATMUL(batch, M, N, K, turned_a, turned_b) {batch, M, N, K, turned_a, turned_b},
#include "problems_matmul.def"
#undef WD_MATMUL
};

static cudnnStatus_t run(void *context)
{
    struct product *p = context;
    return ours.BackendExecute(sets_handle, p->plan, p->pack);
}

static cudnnBackendDescriptor_t make(struct product *p, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t descriptor = NULL;
    bench_check(ours.BackendCreateDescriptor(type, &descriptor), "a backend descriptor");
    p->made[p->count++] = descriptor;
    return descriptor;
}

static void set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    bench_check(ours.BackendSetAttribute(descriptor, name, type, count, values), "an attribute");
}

static void refer(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                  cudnnBackendDescriptor_t to)
{
    set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
}

static cudnnBackendDescriptor_t finish(cudnnBackendDescriptor_t descriptor)
{
    bench_check(ours.BackendFinalize(descriptor), "finalize");
    return descriptor;
}

static cudnnBackendDescriptor_t matrices(struct product *p, int64_t uid, int64_t batch,
                                         int64_t rows, int64_t columns, int turned)
{
    cudnnBackendDescriptor_t t = make(p, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const int64_t dims[3] = {batch, rows, columns};
    const int64_t strides[3] = {rows * columns, turned ? 1 : columns, turned ? rows : 1};
    const int64_t alignment = 16;
    const int dtype = CUDNN_DATA_FLOAT;
    set(t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &dtype);
    set(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, dims);
    set(t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 3, strides);
    set(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    return finish(t);
}

/* The plan of engine 0 for the product. */
static void plan(struct product *p, const struct problem *problem)
{
    cudnnBackendDescriptor_t a =
        matrices(p, 1, problem->batch, problem->m, problem->k, problem->turned_a);
    cudnnBackendDescriptor_t b =
        matrices(p, 2, problem->batch, problem->k, problem->n, problem->turned_b);
    cudnnBackendDescriptor_t c = matrices(p, 3, problem->batch, problem->m, problem->n, 0);
    cudnnBackendDescriptor_t matmul = make(p, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnBackendDescriptor_t op = make(p, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    cudnnBackendDescriptor_t graph = make(p, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnnBackendDescriptor_t engine = make(p, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t config = make(p, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    const int compute = CUDNN_DATA_FLOAT;
    const int64_t index = 0;
    p->plan = make(p, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(matmul, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    refer(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, finish(matmul));
    refer(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    refer(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    refer(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    refer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, finish(op));
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &sets_handle);
    refer(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, finish(graph));
    set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    refer(config, CUDNN_ATTR_ENGINECFG_ENGINE, finish(engine));
    set(p->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &sets_handle);
    refer(p->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, finish(config));
    finish(p->plan);
}

static void time_problem(const struct problem *problem)
{
    struct row row = {.set = "matmul", .products = true, .counted = true};
    struct product p = {.count = 0};
    const int64_t uids[OPERANDS] = {1, 2, 3};
    void *data[OPERANDS];
    void *workspace = NULL;
    int64_t bytes = 0;
    const char *engine;
    snprintf(row.name, sizeof row.name, "product");
    snprintf(row.problem, sizeof row.problem, "%d of %dx%dx%d%s%s", problem->batch, problem->m,
             problem->n, problem->k, problem->turned_a ? " A'" : "",
             problem->turned_b ? " B'" : "");
    if (!sets_wanted(row.set, row.name, row.problem)) return;
    row.work = 2.0 * problem->batch * problem->m * (double)problem->n * problem->k;
    data[A] = sets_floats((int64_t)problem->batch * problem->m * problem->k);
    data[B] = sets_floats((int64_t)problem->batch * problem->k * problem->n);
    data[C] = sets_floats((int64_t)problem->batch * problem->m * problem->n);
    plan(&p, problem);
    bench_check(ours.BackendGetAttribute(p.plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                         CUDNN_TYPE_INT64, 1, NULL, &bytes),
                "the workspace query");
    bench_check(ours.Malloc(sets_handle, (size_t)bytes, &workspace), "workspace");
    p.pack = make(&p, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(p.pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, OPERANDS, uids);
    set(p.pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, OPERANDS, data);
    set(p.pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finish(p.pack);
    row.timing = cpu_time(run, &p);
    ours.GetLastEngine(sets_handle, &engine);
    snprintf(row.engine, sizeof row.engine, "%s", engine);
    sets_add(&row);
    while (p.count > 0) ours.BackendDestroyDescriptor(p.made[--p.count]);
    for (int o = A; o < OPERANDS; ++o) ours.Free(sets_handle, data[o]);
    ours.Free(sets_handle, workspace);
}

void sets_matmul(void)
{
    for (size_t i = 0; i < sizeof problems / sizeof problems[0] && !bench_is_stopped(); ++i) {
        time_problem(&problems[i]);
    }
    bench_reference_sgemm();
}
