/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend API as a program uses it, on a CPU handle: from descriptors to execution, results
 * against plain loops, descriptors destroyed in any order, plans written to texts and restored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BE_FAIL fail_msg
#include "support/backend_build.h"
#include "warpdnn.h"

static cudnnHandle_t handle;

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

static int after(void **state)
{
    (void)state;
    be_free_all();
    return 0;
}

static void run(be_desc plan, int count, const int64_t *uids, void *const *data)
{
    int64_t bytes = be_workspace(plan);
    void *workspace = bytes ? aligned_alloc(256, (size_t)(bytes + 255) / 256 * 256) : NULL;
    be_desc pack = be_pack(count, uids, data, workspace);
    be_expect(cudnnBackendExecute(handle, plan, pack), "execute");
    free(workspace);
}

static void fill(float *data, int count, int seed)
{
    for (int i = 0; i < count; ++i) data[i] = (float)((i * 7 + seed * 13) % 17 - 8) / 4.0f;
}

static void near(const float *got, const float *expected, int count)
{
    for (int i = 0; i < count; ++i) {
        if (got[i] - expected[i] > 1e-5f || expected[i] - got[i] > 1e-5f) {
            fail_msg("element %d is %g, expected %g", i, (double)got[i], (double)expected[i]);
        }
    }
}

static const int64_t dims4[4] = {2, 3, 4, 5};
static const int64_t channel4[4] = {1, 3, 1, 1};

static void test_pointwise_add(void **state)
{
    float x[120], b[3] = {0.5f, -1.0f, 2.0f}, y[120], expected[120];
    be_desc op = be_pointwise(CUDNN_POINTWISE_ADD, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0),
                              be_tensor(2, CUDNN_DATA_FLOAT, 4, channel4, 0), NULL,
                              be_tensor(3, CUDNN_DATA_FLOAT, 4, dims4, 0));
    (void)state;
    fill(x, 120, 1);
    for (int i = 0; i < 120; ++i) expected[i] = x[i] + b[i / 20 % 3];
    run(be_plan_of(handle, 1, &op), 3, (int64_t[]){1, 2, 3}, (void *[]){x, b, y});
    near(y, expected, 120);
}

static void test_pointwise_alphas(void **state)
{
    float x[120], b[120], y[120], expected[120];
    float alpha1 = 3.0f;
    double alpha2 = -0.5;
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    (void)state;
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
               be_pointwise_desc(CUDNN_POINTWISE_ADD));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
               be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
               be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
               be_tensor(3, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1, &alpha1);
    be_set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_DOUBLE, 1, &alpha2);
    be_final(op);
    fill(x, 120, 1);
    fill(b, 120, 2);
    for (int i = 0; i < 120; ++i) expected[i] = 3.0f * x[i] - 0.5f * b[i];
    run(be_plan_of(handle, 1, &op), 3, (int64_t[]){3, 1, 2}, (void *[]){y, x, b});
    near(y, expected, 120);
}

static void test_pointwise_backward(void **state)
{
    float x[120], dy[120], dx[120], expected[120];
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    (void)state;
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
               be_pointwise_desc(CUDNN_POINTWISE_RELU_BWD));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
               be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC,
               be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC,
               be_tensor(3, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_final(op);
    fill(x, 120, 1);
    fill(dy, 120, 2);
    for (int i = 0; i < 120; ++i) expected[i] = x[i] > 0.0f ? dy[i] : 0.0f;
    run(be_plan_of(handle, 1, &op), 3, (int64_t[]){1, 2, 3}, (void *[]){x, dy, dx});
    near(dx, expected, 120);
}

static void test_by_value_and_select(void **state)
{
    static const int64_t one[4] = {1, 1, 1, 1};
    float x[120], y[120], expected[120];
    float limit = 0.25f;
    unsigned char mask[120];
    /* mask = x > limit; y = mask ? x : limit */
    be_desc tx = be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0);
    be_desc tlimit = be_tensor(2, CUDNN_DATA_FLOAT, 4, one, BE_BY_VALUE);
    be_desc tmask = be_tensor(3, CUDNN_DATA_BOOLEAN, 4, dims4, 0);
    be_desc ty = be_tensor(4, CUDNN_DATA_FLOAT, 4, dims4, 0);
    be_desc ops[2] = {
        be_pointwise(CUDNN_POINTWISE_BINARY_SELECT, tx, tlimit, tmask, ty),
        be_pointwise(CUDNN_POINTWISE_CMP_GT, tx, tlimit, NULL, tmask),
    };
    (void)state;
    fill(x, 120, 3);
    for (int i = 0; i < 120; ++i) expected[i] = x[i] > limit ? x[i] : limit;
    /* given in the wrong order: the graph sorts them */
    run(be_plan_of(handle, 2, ops), 4, (int64_t[]){1, 2, 3, 4}, (void *[]){x, &limit, mask, y});
    near(y, expected, 120);
}

static void test_conv_bias_relu(void **state)
{
    static const int64_t xd[4] = {1, 2, 5, 5}, wd[4] = {3, 2, 3, 3}, bd[4] = {1, 3, 1, 1};
    static const int64_t yd[4] = {1, 3, 5, 5};
    float x[50], w[54], b[3] = {0.5f, -2.0f, 1.0f}, y[75], expected[75];
    be_desc conv_y = be_tensor(10, CUDNN_DATA_FLOAT, 4, yd, BE_VIRTUAL);
    be_desc bias_y = be_tensor(11, CUDNN_DATA_FLOAT, 4, yd, BE_VIRTUAL);
    be_desc ops[3] = {
        be_conv_forward(be_conv_desc(2, 1, 1, 1), be_tensor(1, CUDNN_DATA_FLOAT, 4, xd, 0),
                        be_tensor(2, CUDNN_DATA_FLOAT, 4, wd, 0), conv_y),
        be_pointwise(CUDNN_POINTWISE_ADD, conv_y, be_tensor(3, CUDNN_DATA_FLOAT, 4, bd, 0), NULL,
                     bias_y),
        be_pointwise(CUDNN_POINTWISE_RELU_FWD, bias_y, NULL, NULL,
                     be_tensor(4, CUDNN_DATA_FLOAT, 4, yd, 0)),
    };
    (void)state;
    fill(x, 50, 1);
    fill(w, 54, 2);
    for (int k = 0; k < 3; ++k) {
        for (int at = 0; at < 25; ++at) {
            float sum = b[k];
            for (int i = 0; i < 18; ++i) {
                int h = at / 5 + i % 9 / 3 - 1;
                int q = at % 5 + i % 3 - 1;
                if (h < 0 || h > 4 || q < 0 || q > 4) continue;
                sum += x[i / 9 * 25 + h * 5 + q] * w[k * 18 + i];
            }
            expected[k * 25 + at] = sum > 0.0f ? sum : 0.0f;
        }
    }
    run(be_plan_of(handle, 3, ops), 4, (int64_t[]){1, 2, 3, 4}, (void *[]){x, w, b, y});
    near(y, expected, 75);
}

static void test_matmul_then_max(void **state)
{
    static const int64_t ad[3] = {2, 3, 4}, bd[3] = {2, 4, 5}, cd[3] = {2, 3, 5}, rd[3] = {2, 3, 1};
    float a[24], b[40], row[6], expected[6];
    be_desc c = be_tensor(3, CUDNN_DATA_FLOAT, 3, cd, BE_VIRTUAL);
    be_desc ops[2] = {
        be_matmul(be_tensor(1, CUDNN_DATA_FLOAT, 3, ad, 0),
                  be_tensor(2, CUDNN_DATA_FLOAT, 3, bd, 0), c),
        be_reduction(CUDNN_REDUCE_TENSOR_MAX, c, be_tensor(4, CUDNN_DATA_FLOAT, 3, rd, 0)),
    };
    (void)state;
    fill(a, 24, 1);
    fill(b, 40, 2);
    for (int r = 0; r < 6; ++r) {
        expected[r] = -1e30f;
        for (int n = 0; n < 5; ++n) {
            float sum = 0.0f;
            for (int k = 0; k < 4; ++k) sum += a[r * 4 + k] * b[r / 3 * 20 + k * 5 + n];
            if (sum > expected[r]) expected[r] = sum;
        }
    }
    run(be_plan_of(handle, 2, ops), 3, (int64_t[]){1, 2, 4}, (void *[]){a, b, row});
    near(row, expected, 6);
}

static void test_heuristics(void **state)
{
    static const int modes[] = {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B,
                                CUDNN_HEUR_MODE_FALLBACK};
    float x[120], y[120];
    be_desc op = be_pointwise(CUDNN_POINTWISE_NEG, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0),
                              NULL, NULL, be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_desc graph = be_graph(handle, 1, &op);
    int64_t limit = 0;
    (void)state;
    fill(x, 120, 4);
    be_expect(cudnnBackendGetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                       CUDNN_TYPE_INT64, 1, NULL, &limit),
              "global count");
    assert_true(limit > 100);
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; ++m) {
        be_desc heuristics = be_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        be_desc configs[8];
        int64_t count = -1, again = -1, bytes = -1, index = -1, notes = -1, knobs = -1;
        int numerical[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
        be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        be_set_ref(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
        be_set_enum(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, modes[m]);
        be_final(heuristics);
        be_expect(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL),
                  "count of results");
        assert_in_range(count, 1, 8);
        for (int i = 0; i < 8; ++i) configs[i] = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        be_expect(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 8, &again, configs),
                  "results");
        assert_int_equal(again, count);
        be_expect(cudnnBackendGetAttribute(configs[0], CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, NULL, &bytes),
                  "workspace of a configuration");
        assert_int_equal(bytes, 0);
        be_expect(cudnnBackendGetAttribute(configs[0], CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &knobs, NULL),
                  "knobs");
        assert_int_equal(knobs, 0);
        be_expect(cudnnBackendGetAttribute(configs[0], CUDNN_ATTR_ENGINECFG_ENGINE,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &engine),
                  "engine of a configuration");
        be_expect(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
                                           1, NULL, &index),
                  "index");
        assert_in_range(index, 1, limit - 1);
        be_expect(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                           CUDNN_TYPE_NUMERICAL_NOTE,
                                           CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &notes, numerical),
                  "notes");
        be_expect(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                           CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT,
                                           &notes, NULL),
                  "behaviour notes without an array");
        assert_int_equal(notes, 0);
        memset(y, 0, sizeof y);
        run(be_plan(handle, configs[0]), 2, (int64_t[]){1, 2}, (void *[]){x, y});
        for (int i = 0; i < 120; ++i) assert_true(y[i] == -x[i]);
    }
}

static void test_engine_by_number(void **state)
{
    be_desc op = be_pointwise(CUDNN_POINTWISE_NEG, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0),
                              NULL, NULL, be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_desc graph = be_graph(handle, 1, &op);
    int64_t limit = 0;
    int works = 0;
    (void)state;
    be_expect(cudnnBackendGetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                       CUDNN_TYPE_INT64, 1, NULL, &limit),
              "global count");
    /* as a caller does that tries them all */
    for (int64_t index = 0; index < limit; ++index) {
        be_desc engine;
        cudnnStatus_t status;
        assert_int_equal(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine), 0);
        be_set_ref(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
        be_set_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
        status = cudnnBackendFinalize(engine);
        works += status == CUDNN_STATUS_SUCCESS;
        if (index < 2) assert_int_equal(status, CUDNN_STATUS_SUCCESS);
        if (status != CUDNN_STATUS_SUCCESS) assert_int_equal(CUDNN_STATUS_CATEGORY(status), 3000);
        cudnnBackendDestroyDescriptor(engine);
    }
    assert_in_range(works, 3, 20);
}

static be_desc restore(cudnnHandle_t on, const char *text, int64_t length)
{
    be_desc plan = be_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    be_set(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length, text);
    if (on) be_set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &on);
    return plan;
}

static char *text_of(be_desc desc, cudnnBackendAttributeName_t attribute, int64_t *length)
{
    int64_t again = -1;
    char *text;
    be_expect(cudnnBackendGetAttribute(desc, attribute, CUDNN_TYPE_CHAR, 0, length, NULL),
              "length of the text");
    text = calloc((size_t)*length + 1, 1);
    be_expect(cudnnBackendGetAttribute(desc, attribute, CUDNN_TYPE_CHAR, *length, &again, text),
              "text");
    assert_int_equal(again, *length);
    return text;
}

static void test_plan_text(void **state)
{
    float x[120], y[120];
    be_desc op = be_pointwise(CUDNN_POINTWISE_RELU_FWD, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0),
                              NULL, NULL, be_tensor(-2, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_desc plan = be_plan_of(handle, 1, &op);
    be_desc config = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t length = 0, index = -1;
    char *text = text_of(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, &length);
    char *twice;
    int64_t length_twice = 0;
    (void)state;
    be_free_all();
    plan = be_final(restore(handle, text, length));
    config = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    be_expect(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &config),
              "configuration of a restored plan");
    be_expect(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &engine),
              "engine of a restored plan");
    be_expect(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                       NULL, &index),
              "index");
    assert_int_equal(index, 0);
    fill(x, 120, 5);
    run(plan, 2, (int64_t[]){1, -2}, (void *[]){x, y});
    for (int i = 0; i < 120; ++i) assert_true(y[i] == (x[i] > 0.0f ? x[i] : 0.0f));
    twice = text_of(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, &length_twice);
    assert_string_equal(text, twice);
    /* cut anywhere, it is refused */
    for (int64_t cut = 1; cut < length; ++cut) {
        be_desc broken;
        assert_int_equal(
            cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &broken), 0);
        be_set(broken, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, cut, text);
        assert_int_equal(cudnnBackendFinalize(broken), CUDNN_STATUS_BAD_PARAM);
        cudnnBackendDestroyDescriptor(broken);
    }
    free(twice);
    free(text);
}

static void test_plan_text_versions(void **state)
{
    static const struct {
        const char *text;
        cudnnStatus_t status;
    } rows[] = {
        {"", CUDNN_STATUS_BAD_PARAM},
        {"{}", CUDNN_STATUS_BAD_PARAM},
        {"{\"warpdnn_plan\":2,\"device\":{}}", CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH},
        {"{\"warpdnn_plan\":1,\"device\":{\"kind\":\"tpu\"}}", CUDNN_STATUS_BAD_PARAM},
        {"{\"warpdnn_plan\":1,\"device\":{\"kind\":\"gpu\",\"ordinal\":0,\"capability\":90,"
         "\"multiprocessors\":132,\"shared_per_block\":1,\"shared_per_processor\":1,\"l2_bytes\":1,"
         "\"memory_bytes\":1,\"cooperative\":1},\"engine\":0,\"graph\":{}}",
         CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH},
        {"[[[[[[[[[[[[[[[[[[[[", CUDNN_STATUS_BAD_PARAM},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        int64_t length = (int64_t)strlen(rows[i].text);
        be_desc plan = restore(handle, length ? rows[i].text : "\0", length ? length : 1);
        assert_int_equal(cudnnBackendFinalize(plan), rows[i].status);
    }
}

static void test_any_order_of_destruction(void **state)
{
    float x[120], y[120];
    be_desc plan, pack, made[BE_MAX];
    int count;
    (void)state;
    fill(x, 120, 6);
    /* first to last, last to first, and from the middle */
    for (int turn = 0; turn < 3; ++turn) {
        be_desc op = be_pointwise(CUDNN_POINTWISE_ABS, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0),
                                  NULL, NULL, be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, 0));
        plan = be_plan_of(handle, 1, &op);
        pack = be_pack(2, (int64_t[]){1, 2}, (void *[]){x, y}, NULL);
        count = 0;
        for (int i = 0; i < be_count; ++i) {
            if (be_made[i] != plan && be_made[i] != pack) made[count++] = be_made[i];
        }
        be_count = 0;
        for (int i = 0; i < count; ++i) {
            int at = turn == 0 ? i : turn == 1 ? count - 1 - i : (i + count / 2) % count;
            assert_int_equal(cudnnBackendDestroyDescriptor(made[at]), CUDNN_STATUS_SUCCESS);
        }
        memset(y, 0, sizeof y);
        assert_int_equal(cudnnBackendExecute(handle, plan, pack), CUDNN_STATUS_SUCCESS);
        for (int i = 0; i < 120; ++i) assert_true(y[i] == (x[i] < 0.0f ? -x[i] : x[i]));
        cudnnBackendDestroyDescriptor(plan);
        cudnnBackendDestroyDescriptor(pack);
    }
}

static void test_plan_outlives_handle(void **state)
{
    float x[120], y[120];
    cudnnHandle_t first;
    be_desc op, plan;
    (void)state;
    assert_int_equal(cudnnCreate(&first), CUDNN_STATUS_SUCCESS);
    op = be_pointwise(CUDNN_POINTWISE_ABS, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0), NULL, NULL,
                      be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, 0));
    plan = be_plan_of(first, 1, &op);
    assert_int_equal(cudnnDestroy(first), CUDNN_STATUS_SUCCESS);
    fill(x, 120, 7);
    run(plan, 2, (int64_t[]){1, 2}, (void *[]){x, y});
    for (int i = 0; i < 120; ++i) assert_true(y[i] == (x[i] < 0.0f ? -x[i] : x[i]));
}

static void test_device_properties(void **state)
{
    be_desc op = be_pointwise(CUDNN_POINTWISE_ABS, be_tensor(1, CUDNN_DATA_FLOAT, 4, dims4, 0),
                              NULL, NULL, be_tensor(2, CUDNN_DATA_FLOAT, 4, dims4, 0));
    be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_desc device = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_desc restored = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_desc heuristics = be_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    be_desc config = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    be_desc plan = be_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    be_desc cache = be_make(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR);
    float x[120], y[120];
    int64_t length = 0;
    char *text;
    (void)state;
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
    be_final(graph);
    be_set_ref(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    be_set_enum(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
    /* for no device there is no answer */
    assert_int_equal(cudnnBackendFinalize(heuristics), CUDNN_STATUS_BAD_PARAM);
    be_set(device, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    be_final(device);
    text = text_of(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, &length);
    be_set(restored, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length, text);
    be_final(restored);
    free(text);
    be_set_ref(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, restored);
    be_final(heuristics);
    be_expect(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &config),
              "results");
    be_final(cache);
    text = text_of(cache, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION, &length);
    cache = be_make(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR);
    be_set(cache, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length, text);
    be_final(cache);
    free(text);
    be_set_ref(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    be_set_ref(plan, CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE, cache);
    be_final(plan);
    fill(x, 120, 8);
    run(plan, 2, (int64_t[]){1, 2}, (void *[]){x, y});
    for (int i = 0; i < 120; ++i) assert_true(y[i] == (x[i] < 0.0f ? -x[i] : x[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_pointwise_add, after),
        cmocka_unit_test_teardown(test_pointwise_alphas, after),
        cmocka_unit_test_teardown(test_pointwise_backward, after),
        cmocka_unit_test_teardown(test_by_value_and_select, after),
        cmocka_unit_test_teardown(test_conv_bias_relu, after),
        cmocka_unit_test_teardown(test_matmul_then_max, after),
        cmocka_unit_test_teardown(test_heuristics, after),
        cmocka_unit_test_teardown(test_engine_by_number, after),
        cmocka_unit_test_teardown(test_plan_text, after),
        cmocka_unit_test_teardown(test_plan_text_versions, after),
        cmocka_unit_test_teardown(test_any_order_of_destruction, after),
        cmocka_unit_test_teardown(test_plan_outlives_handle, after),
        cmocka_unit_test_teardown(test_device_properties, after),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
