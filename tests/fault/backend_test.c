/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend API with every allocation failing in turn: from descriptors over heuristics, plan and
 * its text to execution, on a CPU handle. Each failure must answer that host memory ran out, leave
 * nothing behind, and not hinder the next attempt. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cudnn.h"

static cudnnHandle_t handle;

enum { MADE_MAX = 40 };
struct attempt {
    cudnnBackendDescriptor_t made[MADE_MAX];
    int count;
    cudnnStatus_t status; /* the first failure */
};

static cudnnBackendDescriptor_t make(struct attempt *attempt, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t desc = NULL;
    if (attempt->status) return NULL;
    attempt->status = cudnnBackendCreateDescriptor(type, &desc);
    if (!attempt->status) attempt->made[attempt->count++] = desc;
    return desc;
}

static void set(struct attempt *attempt, cudnnBackendDescriptor_t desc, int attribute, int type,
                int64_t count, const void *values)
{
    if (attempt->status) return;
    attempt->status = cudnnBackendSetAttribute(desc, (cudnnBackendAttributeName_t)attribute,
                                               (cudnnBackendAttributeType_t)type, count, values);
}

static void set_ref(struct attempt *attempt, cudnnBackendDescriptor_t desc, int attribute,
                    cudnnBackendDescriptor_t ref)
{
    set(attempt, desc, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &ref);
}

static void finalize(struct attempt *attempt, cudnnBackendDescriptor_t desc)
{
    if (!attempt->status) attempt->status = cudnnBackendFinalize(desc);
}

static cudnnBackendDescriptor_t tensor(struct attempt *attempt, int64_t uid, int64_t size,
                                       bool is_virtual)
{
    const int64_t dims[2] = {3, size}, strides[2] = {size, 1}, alignment = 4;
    cudnnBackendDescriptor_t desc = make(attempt, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(attempt, desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2, dims);
    set(attempt, desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    set(attempt, desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(attempt, desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(attempt, desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    finalize(attempt, desc);
    return desc;
}

static cudnnBackendDescriptor_t negate(struct attempt *attempt, cudnnBackendDescriptor_t x,
                                       cudnnBackendDescriptor_t y)
{
    const int mode = CUDNN_POINTWISE_NEG;
    cudnnBackendDescriptor_t pointwise = make(attempt, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t op = make(attempt, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(attempt, pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    finalize(attempt, pointwise);
    set_ref(attempt, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    set_ref(attempt, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_ref(attempt, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    finalize(attempt, op);
    return op;
}

/* A plan for -(-x) of 3 x size elements, its text, a plan from the text, both executed. The size
 * makes every attempt's graph a new one, so that the plan cache cannot help. */
static cudnnStatus_t whole(int64_t size)
{
    struct attempt attempt = {.count = 0};
    struct attempt *a = &attempt;
    float *data = malloc(sizeof *data * 9 * (size_t)size + 768); /* the workspace is rounded up */
    void *pointers[2] = {data, data + 3 * size};
    void *workspace = data + (6 * size + 63) / 64 * 64;
    const int64_t uids[2] = {1, 3};
    const int mode = CUDNN_HEUR_MODE_A;
    static char text[16384];
    int64_t length = 0;
    cudnnBackendDescriptor_t middle, ops[2], graph, heuristics, config, plan, again, pack;
    ops[0] = tensor(a, 1, size, false);
    middle = tensor(a, 2, size, true);
    ops[0] = negate(a, ops[0], middle);
    ops[1] = negate(a, middle, tensor(a, 3, size, false));
    graph = make(a, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(a, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2, ops);
    set(a, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finalize(a, graph);
    heuristics = make(a, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_ref(a, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(a, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finalize(a, heuristics);
    config = make(a, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!a->status) {
        a->status = cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &config);
    }
    plan = make(a, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set_ref(a, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    finalize(a, plan);
    if (!a->status) {
        a->status = cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                             CUDNN_TYPE_CHAR, sizeof text, &length, text);
    }
    again = make(a, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(a, again, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length, text);
    set(a, again, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finalize(a, again);
    pack = make(a, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(a, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 2, uids);
    set(a, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2, pointers);
    set(a, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finalize(a, pack);
    for (int64_t i = 0; i < 3 * size; ++i) data[i] = (float)i;
    if (!a->status) a->status = cudnnBackendExecute(handle, plan, pack);
    if (!a->status) a->status = cudnnBackendExecute(handle, again, pack);
    if (!a->status) {
        for (int64_t i = 0; i < 3 * size; ++i) {
            if (data[3 * size + i] != (float)i) fail_msg("element %d is wrong", (int)i);
        }
    }
    for (int i = 0; i < a->count; ++i) {
        assert_int_equal(cudnnBackendDestroyDescriptor(a->made[i]), CUDNN_STATUS_SUCCESS);
    }
    free(data);
    return a->status;
}

static void test_every_allocation(void **state)
{
    uint64_t allocations;
    uint64_t failed = 0;
    uint64_t before;
    uint64_t a_plan;
    (void)state;
    assert_int_equal(whole(200), CUDNN_STATUS_SUCCESS);
    wd_alloc_fail_at(0);
    before = wd_alloc_bytes();
    assert_int_equal(whole(201), CUDNN_STATUS_SUCCESS);
    allocations = wd_alloc_fail_at(0);
    /* what stays is the plan, in the cache */
    a_plan = wd_alloc_bytes() - before;
    assert_true(allocations > 30);
    for (uint64_t n = 1; n <= allocations; ++n) {
        char text[512] = "";
        cudnnStatus_t status;
        before = wd_alloc_bytes();
        wd_alloc_fail_at(n);
        status = whole(300 + (int64_t)n);
        wd_alloc_fail_at(0);
        cudnnGetLastErrorString(text, sizeof text);
        if (status != CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) {
            fail_msg("allocation %d failed, the answer was %s: %s", (int)n,
                     cudnnGetErrorString(status), text);
        }
        assert_non_null(strstr(text, "memory"));
        assert_true(wd_alloc_bytes() == before || wd_alloc_bytes() == before + a_plan);
        failed += 1;
    }
    assert_int_equal(whole(1000), CUDNN_STATUS_SUCCESS);
    printf("%d allocations failed in turn\n", (int)failed);
}

static int setup(void **state)
{
    (void)state;
    setenv("WARPDNN_DEVICE", "cpu", 1);
    return cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
