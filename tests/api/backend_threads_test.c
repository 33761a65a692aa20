/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads and the backend API: one finalized plan executed by several threads on handles of their
 * own, while others build the same graph and read the plan's attributes. For the thread sanitizer;
 * the values are checked as well. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define BE_FAIL fail_msg
#include "support/backend_build.h"

enum { THREADS = 4, ROUNDS = 200, COUNT = 120 };

static const int64_t dims4[4] = {2, 3, 4, 5};
static be_desc plan;
static be_desc op;

/* Descriptors of its own, for the helpers of the test keep one list. Null where a step failed. */
static be_desc another_plan(cudnnHandle_t handle)
{
    const int64_t index = 0;
    be_desc d[4] = {NULL};
    cudnnStatus_t bad = 0;
    bad |= cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &d[0]);
    bad |= cudnnBackendSetAttribute(d[0], CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
    bad |= cudnnBackendSetAttribute(d[0], CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                    &handle);
    bad |= cudnnBackendFinalize(d[0]);
    bad |= cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &d[1]);
    bad |= cudnnBackendSetAttribute(d[1], CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d[0]);
    bad |=
        cudnnBackendSetAttribute(d[1], CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    bad |= cudnnBackendFinalize(d[1]);
    bad |= cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &d[2]);
    bad |= cudnnBackendSetAttribute(d[2], CUDNN_ATTR_ENGINECFG_ENGINE,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d[1]);
    bad |= cudnnBackendFinalize(d[2]);
    bad |= cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &d[3]);
    bad |= cudnnBackendSetAttribute(d[3], CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d[2]);
    bad |= cudnnBackendFinalize(d[3]);
    for (int i = 0; i < 3; ++i) cudnnBackendDestroyDescriptor(d[i]);
    if (!bad) return d[3];
    cudnnBackendDestroyDescriptor(d[3]);
    return NULL;
}

static void *work(void *argument)
{
    float x[COUNT], y[COUNT];
    const int64_t uids[2] = {1, 2};
    void *pointers[2] = {x, y};
    cudnnHandle_t handle = NULL;
    be_desc pack = NULL;
    intptr_t wrong = 0;
    float first = (float)(intptr_t)argument;
    if (cudnnCreate(&handle)) return (void *)1;
    cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 2, uids);
    cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2,
                             pointers);
    wrong += cudnnBackendFinalize(pack) != CUDNN_STATUS_SUCCESS;
    for (int round = 0; round < ROUNDS; ++round) {
        int64_t bytes = -1;
        be_desc own = round % 8 == 0 ? another_plan(handle) : plan;
        for (int i = 0; i < COUNT; ++i) x[i] = first + (float)(i + round);
        wrong += own == NULL;
        wrong += cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, NULL, &bytes) != 0;
        wrong += bytes != 0;
        wrong += cudnnBackendExecute(handle, own, pack) != CUDNN_STATUS_SUCCESS;
        for (int i = 0; i < COUNT; ++i) wrong += y[i] != -x[i];
        if (own != plan) cudnnBackendDestroyDescriptor(own);
    }
    cudnnBackendDestroyDescriptor(pack);
    cudnnDestroy(handle);
    return (void *)wrong;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    cudnnHandle_t handle;
    (void)state;
    assert_int_equal(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
    op = be_pointwise(CUDNN_POINTWISE_NEG, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN), NULL,
                      NULL, be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN));
    plan = be_plan_of(handle, 1, &op);
    for (intptr_t t = 0; t < THREADS; ++t) {
        assert_int_equal(pthread_create(&threads[t], NULL, work, (void *)(1000 * t)), 0);
    }
    for (int t = 0; t < THREADS; ++t) {
        void *wrong = NULL;
        pthread_join(threads[t], &wrong);
        assert_null(wrong);
    }
    be_free_all();
    assert_int_equal(cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    setenv("WARPDNN_DEVICE", "cpu", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
