/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that run as pieces, through the backend API on the fake driver: what heuristics offer and in
 * which order, how many kernels an execution is, what it needs of workspace, its line in the log, and
 * that a plan comes back from its text as it was. Kernels of engines compute nothing there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BE_FAIL fail_msg
#include "support/backend_build.h"
#include "support/fakecuda.h"
#include "warpdnn.h"

enum { COUNT = 120, CHAIN = 302, BEST = 0, NODE_BY_NODE = 1 };

static cudnnHandle_t handle;
static CUcontext context;
static const int64_t dims[4] = {2, 3, 4, 5};
static float *x, *y;
static char logged[2][1024];
static int lines;

static int start(void **state)
{
    (void)state;
    fake->fakecuda_reset();
    fake->cuInit(0);
    if (fake->cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return -1;
    fake->cuCtxSetCurrent(context);
    if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) return -1;
    if (warpdnnMalloc(handle, (COUNT + 4) * sizeof *x, (void **)&x)) return -1;
    if (warpdnnMalloc(handle, (COUNT + 4) * sizeof *y, (void **)&y)) return -1;
    return 0;
}

static int finish(void **state)
{
    (void)state;
    be_free_all();
    warpdnnFree(handle, x);
    warpdnnFree(handle, y);
    if (cudnnDestroy(handle) != CUDNN_STATUS_SUCCESS) return -1;
    fake->cuCtxSetCurrent(NULL);
    fake->cuDevicePrimaryCtxRelease(0);
    return fake->fakecuda_report() == 0 ? 0 : -1;
}

/* Three nodes from uid 1 to uid 4; the middle one of a mode. */
static be_desc three_nodes(int mode)
{
    be_desc a = be_tensor(2, CUDNN_DATA_FLOAT, 4, dims, BE_VIRTUAL);
    be_desc b = be_tensor(3, CUDNN_DATA_FLOAT, 4, dims, BE_VIRTUAL);
    be_desc ops[3];
    ops[0] = be_pointwise(CUDNN_POINTWISE_NEG, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims, BE_PLAIN),
                          NULL, NULL, a);
    ops[1] = be_pointwise(mode, a, NULL, NULL, b);
    ops[2] = be_pointwise(CUDNN_POINTWISE_RELU_FWD, b, NULL, NULL,
                          be_tensor(4, CUDNN_DATA_FLOAT, 4, dims, BE_PLAIN));
    return be_graph(handle, 3, ops);
}

static int64_t offered(be_desc graph, int mode, int64_t *ids)
{
    be_desc heuristics = be_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    be_desc configs[4];
    int64_t count = 0;
    be_set_ref(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    be_set_enum(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    be_final(heuristics);
    for (int i = 0; i < 4; ++i) configs[i] = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    be_expect(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 4, &count, configs),
              "results");
    for (int i = 0; i < count; ++i) {
        be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        be_expect(cudnnBackendGetAttribute(configs[i], CUDNN_ATTR_ENGINECFG_ENGINE,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &engine),
                  "engine");
        be_expect(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
                                           1, NULL, &ids[i]),
                  "index");
    }
    return count;
}

static void test_heuristics(void **state)
{
    int64_t ids[4];
    (void)state;
    assert_int_equal(offered(three_nodes(CUDNN_POINTWISE_ABS), CUDNN_HEUR_MODE_A, ids), 2);
    assert_int_equal(ids[0], CHAIN);
    assert_int_equal(ids[1], NODE_BY_NODE);
    assert_int_equal(offered(three_nodes(CUDNN_POINTWISE_ABS), CUDNN_HEUR_MODE_FALLBACK, ids), 1);
    assert_int_equal(ids[0], NODE_BY_NODE);
    /* a mode that no chain does */
    assert_int_equal(offered(three_nodes(CUDNN_POINTWISE_SIN), CUDNN_HEUR_MODE_A, ids), 1);
    assert_int_equal(ids[0], NODE_BY_NODE);
}

static void expect_run(be_desc plan, int64_t workspace, uint64_t kernels, const char *engines)
{
    void *room = NULL;
    const char *name = NULL;
    be_desc pack;
    assert_int_equal(be_workspace(plan), workspace);
    if (workspace > 0) be_expect(warpdnnMalloc(handle, (size_t)workspace, &room), "workspace");
    pack = be_pack(2, (int64_t[]){1, 4}, (void *[]){x, y}, room);
    fake->fakecuda_launches();
    be_expect(cudnnBackendExecute(handle, plan, pack), "execute");
    assert_int_equal(fake->fakecuda_launches(), kernels);
    be_expect(warpdnnGetLastEngine(handle, &name), "last engine");
    assert_string_equal(name, engines);
    if (room) be_expect(warpdnnFree(handle, room), "free");
}

static be_desc plan_by(int mode, int64_t engine)
{
    return be_plan(handle, be_config(be_engine(three_nodes(mode), engine)));
}

static const char by_node[] = "pointwise_vector+pointwise_vector+pointwise_vector";

static void test_execute(void **state)
{
    (void)state;
    expect_run(plan_by(CUDNN_POINTWISE_ABS, BEST), 0, 1, "pointwise_chain");
    expect_run(plan_by(CUDNN_POINTWISE_ABS, CHAIN), 0, 1, "pointwise_chain");
    expect_run(plan_by(CUDNN_POINTWISE_ABS, NODE_BY_NODE), 1024, 3, by_node);
    expect_run(plan_by(CUDNN_POINTWISE_SIN, BEST), 1024, 3, by_node);
    /* the engine for chains, where there is none */
    {
        be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        char text[1024];
        be_set_ref(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, three_nodes(CUDNN_POINTWISE_SIN));
        be_set_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CHAIN);
        assert_int_equal(cudnnBackendFinalize(engine), CUDNN_STATUS_NOT_SUPPORTED);
        cudnnGetLastErrorString(text, sizeof text);
        assert_non_null(strstr(text, "no engine takes pointwise"));
    }
}

static void test_text(void **state)
{
    be_desc plan = plan_by(CUDNN_POINTWISE_ABS, CHAIN);
    be_desc restored = be_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    static char text[8192];
    int64_t length = 0;
    (void)state;
    be_expect(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                       CUDNN_TYPE_CHAR, sizeof text, &length, text),
              "text");
    be_set(restored, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length, text);
    be_set(restored, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    expect_run(be_final(restored), 0, 1, "pointwise_chain");
}

static void listen(cudnnSeverity_t severity, void *udata, const cudnnDebug_t *debug,
                   const char *text)
{
    (void)udata;
    (void)debug;
    if (severity != CUDNN_SEV_INFO || !strstr(text, "cudnnBackendExecute: ")) return;
    if (lines < 2) snprintf(logged[lines], sizeof logged[0], "%s", text);
    lines += 1;
}

static void test_log(void **state)
{
    (void)state;
    lines = 0;
    assert_int_equal(cudnnSetCallback(CUDNN_SEV_INFO_EN, NULL, listen), 0);
    expect_run(plan_by(CUDNN_POINTWISE_ABS, BEST), 0, 1, "pointwise_chain");
    assert_int_equal(cudnnSetCallback(0, NULL, NULL), 0);
    assert_int_equal(lines, 1);
    assert_non_null(strstr(logged[0], ": pointwise+pointwise+pointwise on the GPU by "
                                      "pointwise_chain, workspace 0 bytes, x fp32[2,3,4,5] "
                                      "strides [60,20,5,1], y fp32[2,3,4,5] strides [60,20,5,1]"));
}

static void test_pointers(void **state)
{
    be_desc plan = plan_by(CUDNN_POINTWISE_ABS, BEST);
    (void)state;
    assert_int_equal(
        cudnnBackendExecute(handle, plan, be_pack(2, (int64_t[]){1, 4}, (void *[]){x, NULL}, NULL)),
        CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(
        cudnnBackendExecute(handle, plan,
                            be_pack(2, (int64_t[]){1, 4}, (void *[]){(char *)x + 2, y}, NULL)),
        CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
    be_expect(cudnnBackendExecute(handle, plan,
                                  be_pack(2, (int64_t[]){1, 4}, (void *[]){x + 1, y + 2}, NULL)),
              "execute at elements");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_heuristics, start, finish),
        cmocka_unit_test_setup_teardown(test_execute, start, finish),
        cmocka_unit_test_setup_teardown(test_text, start, finish),
        cmocka_unit_test_setup_teardown(test_log, start, finish),
        cmocka_unit_test_setup_teardown(test_pointers, start, finish),
    };
    setenv("WARPDNN_ENGINES", "*", 1);
    setenv("WARPDNN_DEVICE", "gpu", 1);
    fake_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
