/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend API on a GPU handle of the fake driver: plans executed on the handle's stream, written
 * into a CUDA graph, patched there with other pointers, and what a device change refuses. */
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

enum { COUNT = 120 };

static cudnnHandle_t handle;
static CUcontext context;
static const int64_t dims4[4] = {2, 3, 4, 5};
static float *data[4]; /* x, y, and another pair */

static void upload(float *to, float start)
{
    float values[COUNT];
    for (int i = 0; i < COUNT; ++i) values[i] = start + (float)i;
    be_expect(warpdnnMemcpy(handle, to, values, sizeof values), "copy");
}

static void check_negated(const float *from, float start)
{
    float values[COUNT];
    be_expect(warpdnnMemcpy(handle, values, from, sizeof values), "copy");
    for (int i = 0; i < COUNT; ++i) {
        if (values[i] != -(start + (float)i)) {
            fail_msg("element %d is %g, not %g", i, (double)values[i], (double)-(start + (float)i));
        }
    }
}

static int start(void **state)
{
    (void)state;
    fake->fakecuda_reset();
    fake->cuInit(0);
    if (fake->cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return -1;
    fake->cuCtxSetCurrent(context);
    if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) return -1;
    for (int i = 0; i < 4; ++i) {
        if (warpdnnMalloc(handle, COUNT * sizeof(float), (void **)&data[i])) return -1;
    }
    upload(data[0], 1.0f);
    upload(data[2], 1000.0f);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    be_free_all();
    for (int i = 0; i < 4; ++i) warpdnnFree(handle, data[i]);
    if (cudnnDestroy(handle) != CUDNN_STATUS_SUCCESS) return -1;
    fake->cuCtxSetCurrent(NULL);
    fake->cuDevicePrimaryCtxRelease(0);
    return fake->fakecuda_report() == 0 ? 0 : -1;
}

/* y = -(-(-x)): three nodes, two of them into the workspace. */
static be_desc three_nodes(void)
{
    be_desc x = be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN);
    be_desc a = be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, BE_VIRTUAL);
    be_desc b = be_tensor(3, CUDNN_DATA_FLOAT, 4, dims4, BE_VIRTUAL);
    be_desc y = be_tensor(4, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN);
    be_desc ops[3] = {be_pointwise(CUDNN_POINTWISE_NEG, x, NULL, NULL, a),
                      be_pointwise(CUDNN_POINTWISE_NEG, a, NULL, NULL, b),
                      be_pointwise(CUDNN_POINTWISE_NEG, b, NULL, NULL, y)};
    return be_plan_of(handle, 3, ops);
}

static be_desc pack_of(float *x, float *y, void *workspace)
{
    return be_pack(2, (int64_t[]){1, 4}, (void *[]){x, y}, workspace);
}

static void test_execute(void **state)
{
    be_desc plan = three_nodes();
    void *workspace = NULL;
    (void)state;
    be_expect(warpdnnMalloc(handle, (size_t)be_workspace(plan), &workspace), "workspace");
    be_expect(cudnnBackendExecute(handle, plan, pack_of(data[0], data[1], workspace)), "execute");
    check_negated(data[1], 1.0f);
    be_expect(warpdnnFree(handle, workspace), "free");
}

static void launch(CUgraph graph)
{
    CUgraphExec exec = NULL;
    assert_int_equal(fake->cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    assert_int_equal(fake->cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
    assert_int_equal(fake->cuStreamSynchronize(NULL), CUDA_SUCCESS);
    assert_int_equal(fake->cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

static void test_populate_and_update(void **state)
{
    be_desc plan = three_nodes();
    be_desc op =
        be_pointwise(CUDNN_POINTWISE_ABS, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN), NULL,
                     NULL, be_tensor(4, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN));
    be_desc other = be_plan_of(handle, 1, &op);
    CUgraph graph = NULL;
    void *workspace = NULL;
    float zero[COUNT] = {0};
    (void)state;
    be_expect(warpdnnMalloc(handle, (size_t)be_workspace(plan), &workspace), "workspace");
    assert_int_equal(fake->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    be_expect(warpdnnMemcpy(handle, data[1], zero, sizeof zero), "copy");
    be_expect(cudnnBackendPopulateCudaGraph(handle, plan, pack_of(data[0], data[1], workspace),
                                            (cudaGraph_t)graph),
              "populate");
    launch(graph);
    check_negated(data[1], 1.0f);
    /* the same chain with other pointers */
    be_expect(cudnnBackendUpdateCudaGraph(handle, plan, pack_of(data[2], data[3], workspace),
                                          (cudaGraph_t)graph),
              "update");
    launch(graph);
    check_negated(data[3], 1000.0f);
    /* another plan's chain is not this one */
    assert_int_equal(cudnnBackendUpdateCudaGraph(
                         handle, other, pack_of(data[0], data[1], workspace), (cudaGraph_t)graph),
                     CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
    launch(graph);
    check_negated(data[3], 1000.0f);
    assert_int_equal(
        cudnnBackendPopulateCudaGraph(handle, plan, pack_of(data[0], data[1], workspace), NULL),
        CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(cudnnBackendPopulateCudaGraph(handle, plan, pack_of(data[0], NULL, workspace),
                                                   (cudaGraph_t)graph),
                     CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(fake->cuGraphDestroy(graph), CUDA_SUCCESS);
    be_expect(warpdnnFree(handle, workspace), "free");
}

static int warnings, infos;
static char warned[512];

static void listen(cudnnSeverity_t severity, void *udata, const cudnnDebug_t *debug,
                   const char *text)
{
    (void)udata;
    if (debug->handle != handle) return;
    if (severity == CUDNN_SEV_WARNING) {
        warnings += 1;
        snprintf(warned, sizeof warned, "%s", text);
    }
    if (severity == CUDNN_SEV_INFO && strstr(text, "cudnnBackendPopulateCudaGraph: ")) infos += 1;
}

/* The definitions serve on a GPU, slowly: said once an operation. A graph is filled by the function
 * that fills it. */
static void test_reports(void **state)
{
    be_desc plan = three_nodes();
    CUgraph graph = NULL;
    void *workspace = NULL;
    (void)state;
    be_expect(warpdnnMalloc(handle, (size_t)be_workspace(plan), &workspace), "workspace");
    assert_int_equal(fake->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    be_expect(cudnnSetCallback(CUDNN_SEV_INFO_EN | CUDNN_SEV_WARNING_EN, NULL, listen), "callback");
    be_expect(cudnnBackendPopulateCudaGraph(handle, plan, pack_of(data[0], data[1], workspace),
                                            (cudaGraph_t)graph),
              "populate");
    for (int i = 0; i < 3; ++i) {
        be_expect(cudnnBackendExecute(handle, plan, pack_of(data[0], data[1], workspace)),
                  "execute");
    }
    be_expect(cudnnSetCallback(0, NULL, NULL), "callback");
    assert_int_equal(warnings, 1);
    assert_string_equal(warned, "pointwise runs on an engine of last resort (pointwise_def) on the "
                                "GPU, expect it to be slow");
    assert_int_equal(infos, 3); /* a line a node */
    assert_int_equal(fake->cuGraphDestroy(graph), CUDA_SUCCESS);
    be_expect(warpdnnFree(handle, workspace), "free");
}

static void test_notes(void **state)
{
    be_desc op =
        be_pointwise(CUDNN_POINTWISE_ABS, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN), NULL,
                     NULL, be_tensor(4, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN));
    be_desc engine = be_engine(be_graph(handle, 1, &op), 0);
    int notes[8];
    int64_t count = -1;
    (void)state;
    be_expect(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                       CUDNN_TYPE_BEHAVIOR_NOTE, 8, &count, notes),
              "notes");
    assert_int_equal(count, 1);
    assert_int_equal(notes[0], CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API);
}

static void text_of(be_desc properties, char *text, int64_t size)
{
    int64_t count = 0;
    be_expect(cudnnBackendGetAttribute(be_final(properties),
                                       CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                       size, &count, text),
              "the text of a device");
    text[count] = '\0';
}

/* A device by its number alone has the facts that its handle tells, and serves for planning. */
static void test_device_by_id(void **state)
{
    char by_handle[1024], by_id[1024];
    int32_t id = 0;
    be_desc one = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_desc other = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_desc none = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    be_desc op =
        be_pointwise(CUDNN_POINTWISE_ABS, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN), NULL,
                     NULL, be_tensor(4, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN));
    (void)state;
    be_set(one, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    be_set(other, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
    text_of(one, by_handle, sizeof by_handle - 1);
    text_of(other, by_id, sizeof by_id - 1);
    assert_string_equal(by_handle, by_id);
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
    be_set_ref(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, be_final(graph));
    be_set_ref(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, other);
    be_set_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
    be_final(engine);
    for (int i = 0; i < 2; ++i) {
        id = i ? -1 : 4096;
        be_set(none, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
        assert_int_equal(cudnnBackendFinalize(none), CUDNN_STATUS_BAD_PARAM);
        cudnnGetLastErrorString(by_id, sizeof by_id);
        assert_non_null(
            strstr(by_id, i ? "DEVICEPROP_DEVICE_ID=-1 is that" : "_DEVICE_ID=4096 is that"));
    }
}

/* Makes a plan of its text, for the handle's device or for one that is described. */
static cudnnStatus_t restore(const char *text, be_desc properties)
{
    be_desc plan = be_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    be_set(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           (int64_t)strlen(text), text);
    if (properties) be_set_ref(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
    else be_set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    return cudnnBackendFinalize(plan);
}

/* A plan that may have launches which a device has not is none for it, but the other way round. */
static void test_launches(void **state)
{
    static const char meets[] = ",\"grids_meet\":1";
    char device[1024], text[8192];
    int64_t count = 0;
    be_desc own = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_desc without = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_desc op =
        be_pointwise(CUDNN_POINTWISE_ABS, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN), NULL,
                     NULL, be_tensor(4, CUDNN_DATA_FLOAT, 4, dims4, BE_PLAIN));
    char *at;
    (void)state;
    be_set(own, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    text_of(own, device, sizeof device - 1);
    at = strstr(device, meets);
    assert_non_null(at);
    at[strlen(meets) - 1] = '0';
    be_set(without, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           (int64_t)strlen(device), device);
    be_final(without);
    be_expect(cudnnBackendGetAttribute(be_plan_of(handle, 1, &op),
                                       CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                       CUDNN_TYPE_CHAR, sizeof text - 1, &count, text),
              "the text of a plan");
    text[count] = '\0';
    assert_int_equal(restore(text, NULL), 0);
    assert_int_equal(restore(text, without), CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH);
    cudnnGetLastErrorString(device, sizeof device);
    assert_non_null(strstr(device, "grids that meet, the handle has a GPU"));
    at = strstr(text, meets);
    assert_non_null(at);
    at[strlen(meets) - 1] = '0';
    assert_int_equal(restore(text, NULL), 0);
    assert_int_equal(restore(text, without), 0);
    memmove(at, at + strlen(meets), strlen(at + strlen(meets)) + 1); /* as it once was */
    assert_int_equal(restore(text, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_execute, start, finish),
        cmocka_unit_test_setup_teardown(test_populate_and_update, start, finish),
        cmocka_unit_test_setup_teardown(test_notes, start, finish),
        cmocka_unit_test_setup_teardown(test_reports, start, finish),
        cmocka_unit_test_setup_teardown(test_device_by_id, start, finish),
        cmocka_unit_test_setup_teardown(test_launches, start, finish),
    };
    fake_open();
    setenv("WARPDNN_DEVICE", "gpu", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
