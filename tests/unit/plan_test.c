/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans and their execution on the CPU: sums of workspace that no machine has, workspaces that are
 * not aligned, plans of many tensors, what the statistics count, and looking for a driver. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BE_FAIL fail_msg
#include "base/alloc.h"
#include "graph/json.h"
#include "plan/plan.h"
#include "support/backend_build.h"
#include "support/fakecuda.h"
#include "warpdnn.h"

static cudnnHandle_t handle;
static const int64_t dims[3] = {2, 3, 4};
enum { COUNT = 24 };

/* Looks for a library that may be there already: counted on their way to the loader. */
static _Atomic int looks;

void *dlopen(const char *name, int flags)
{
    void *symbol = dlsym(RTLD_NEXT, "dlopen");
    void *(*next)(const char *name, int flags);
    memcpy(&next, &symbol, sizeof next);
    if (flags & RTLD_NOLOAD) looks += 1;
    return next(name, flags);
}

/* x0 -> x1 -> ... by identity, all but the ends virtual, each of `count` doubles. Where `back` is set
 * that many sums follow, which read from the last to the first what came before. */
static cudnnStatus_t plan_of_chain(int chain, int back, int64_t count, struct wd_plan **plan)
{
    enum { NODES_MAX = 40 };
    int nodes = chain + back;
    struct wd_node node[NODES_MAX];
    struct wd_tensor tensor[NODES_MAX + 1];
    struct wd_single single;
    struct wd_device device = {.kind = WD_CPU, .ordinal = -1, .multiprocessors = 1};
    struct wd_graph graph = {node, tensor, nodes, nodes + 1, 0};
    memset(&single, 0, sizeof single);
    memset(tensor, 0, sizeof tensor);
    wd_single_init(&single, WD_OP_POINTWISE);
    single.node.attr.pointwise.mode = CUDNN_POINTWISE_IDENTITY;
    single.node.attr.pointwise.compute = CUDNN_DATA_DOUBLE;
    for (int n = 0; n <= nodes; ++n) {
        tensor[n] = (struct wd_tensor){.uid = n + 1,
                                       .dtype = CUDNN_DATA_DOUBLE,
                                       .rank = 1,
                                       .vect_count = 1,
                                       .flags = n > 0 && n < nodes ? WD_VIRTUAL : 0,
                                       .dim = {count},
                                       .stride = {1}};
        if (n == nodes) break;
        node[n] = single.node;
        node[n].slot[0] = (int16_t)n;
        if (n >= chain) {
            node[n].attr.pointwise.mode = CUDNN_POINTWISE_ADD;
            node[n].slot[1] = (int16_t)(2 * chain - n - 1);
        }
        for (int s = 0; s < wd_op_info(WD_OP_POINTWISE)->slot_count; ++s) {
            if (wd_op_info(WD_OP_POINTWISE)->outputs >> s & 1u) node[n].slot[s] = (int16_t)(n + 1);
        }
    }
    return wd_plan_create(&device, &graph, plan);
}

static void test_workspace_sum(void **state)
{
    struct wd_plan *plan = NULL;
    (void)state;
    assert_int_equal(plan_of_chain(3, 0, 100, &plan), 0);
    assert_int_equal(plan->workspace, 2 * 1024);
    wd_plan_destroy(plan);
    /* 2^59 bytes each, two at a time, however long the chain is */
    assert_int_equal(plan_of_chain(20, 0, (int64_t)1 << 56, &plan), 0);
    assert_int_equal(plan->workspace, 2 * ((int64_t)1 << 59));
    wd_plan_destroy(plan);
    /* where sums go back along it, all that they read and one more: fifteen fit, sixteen do not */
    assert_int_equal(plan_of_chain(14, 13, (int64_t)1 << 56, &plan), 0);
    assert_int_equal(plan->workspace, 15 * ((int64_t)1 << 59));
    wd_plan_destroy(plan);
    plan = NULL;
    assert_int_equal(plan_of_chain(15, 14, (int64_t)1 << 56, &plan),
                     CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
    assert_non_null(strstr(wd_last_error(), "virtual tensor uid 17 of 576460752303423488 bytes"));
    assert_non_null(strstr(wd_last_error(), "more than 2^63 - 1 bytes"));
    assert_null(plan);
}

static be_desc real(int64_t uid)
{
    return be_tensor(uid, CUDNN_DATA_FLOAT, 3, dims, BE_PLAIN);
}

static be_desc within(int64_t uid)
{
    return be_tensor(uid, CUDNN_DATA_FLOAT, 3, dims, BE_VIRTUAL);
}

/* y = ---x, of uids 1 and 4. */
static be_desc negate_thrice(void)
{
    be_desc a = within(2), b = within(3), ops[3];
    ops[0] = be_pointwise(CUDNN_POINTWISE_NEG, real(1), NULL, NULL, a);
    ops[1] = be_pointwise(CUDNN_POINTWISE_NEG, a, NULL, NULL, b);
    ops[2] = be_pointwise(CUDNN_POINTWISE_NEG, b, NULL, NULL, real(4));
    return be_plan_of(handle, 3, ops);
}

static cudnnStatus_t run(be_desc plan, float *x, float *y, void *workspace)
{
    return cudnnBackendExecute(handle, plan,
                               be_pack(2, (int64_t[]){1, 4}, (void *[]){x, y}, workspace));
}

static void test_workspace_alignment(void **state)
{
    static _Alignas(256) char room[4096];
    float x[COUNT] = {1}, y[COUNT] = {0};
    be_desc plan = negate_thrice();
    char text[1024];
    (void)state;
    for (int off = 0; off < 64; ++off) {
        cudnnStatus_t due = off % 16 ? CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER : 0;
        assert_int_equal(run(plan, x, y, room + off), due);
        cudnnGetLastErrorString(text, sizeof text);
        if (due) assert_non_null(strstr(text, "CUDNN_ATTR_VARIANT_PACK_WORKSPACE 0x"));
        if (due) assert_non_null(strstr(text, "is not aligned to 16 bytes"));
    }
    assert_true(y[0] == -1.0f);
    be_free_all();
}

/* More tensors than an execution has room for on its stack; two threads at once. */
enum { NODES = 90, ROUNDS = 50 };
static be_desc long_plan;
static _Atomic int wrong;

static void *run_long(void *data)
{
    cudnnHandle_t own = NULL;
    char *workspace = aligned_alloc(256, (size_t)be_workspace(long_plan));
    float salt = *(const float *)data;
    if (cudnnCreate(&own)) wrong += 1;
    for (int i = 0; i < ROUNDS; ++i) {
        float x[COUNT], y[COUNT];
        for (int k = 0; k < COUNT; ++k) x[k] = salt + (float)(i + k);
        if (cudnnBackendExecute(
                own, long_plan,
                be_pack(2, (int64_t[]){1, NODES + 1}, (void *[]){x, y}, workspace))) {
            wrong += 1;
        }
        for (int k = 0; k < COUNT; ++k) wrong += x[k] != y[k];
    }
    be_free_all();
    cudnnDestroy(own);
    free(workspace);
    return NULL;
}

static void test_many_tensors(void **state)
{
    static const float salt[2] = {1000.0f, 5000.0f};
    pthread_t thread[2];
    be_desc ops[NODES], x = real(1);
    float pointer[COUNT];
    char text[1024];
    (void)state;
    for (int n = 0; n < NODES; ++n) {
        be_desc y = n == NODES - 1 ? real(n + 2) : within(n + 2);
        ops[n] = be_pointwise(CUDNN_POINTWISE_NEG, x, NULL, NULL, y);
        x = y;
    }
    long_plan = be_plan_of(handle, NODES, ops);
    assert_int_equal(be_workspace(long_plan), 2 * 256); /* of two tensors that take turns */
    assert_int_equal(cudnnBackendExecute(handle, long_plan,
                                         be_pack(1, (int64_t[]){1}, (void *[]){pointer}, pointer)),
                     CUDNN_STATUS_BAD_PARAM);
    cudnnGetLastErrorString(text, sizeof text);
    assert_non_null(strstr(text, "unique id 91 of the plan is missing"));
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(pthread_create(&thread[i], NULL, run_long, (void *)(uintptr_t)&salt[i]),
                         0);
    }
    for (int i = 0; i < 2; ++i) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(wrong, 0);
    be_free_all();
}

static warpdnnStatistics_t statistics(void)
{
    warpdnnStatistics_t now;
    assert_int_equal(warpdnnGetStatistics(&now), 0);
    return now;
}

static void test_statistics(void **state)
{
    static _Alignas(256) char room[4096];
    float x[COUNT] = {1}, y[COUNT] = {0};
    be_desc plan = be_pointwise(CUDNN_POINTWISE_CEIL, real(1), NULL, NULL, real(4));
    cudnnTensorDescriptor_t desc = NULL;
    const char *name = NULL;
    char last[256];
    static const float one = 1.0f, zero = 0.0f;
    warpdnnStatistics_t before = statistics(), after;
    (void)state;
    be_plan_of(handle, 1, &plan);
    assert_int_equal(statistics().plans_alive, before.plans_alive + 1);
    plan = negate_thrice();
    before = statistics();
    assert_int_equal(run(plan, x, y, room), 0);
    after = statistics();
    assert_int_equal(after.executions - before.executions, 1);
    assert_int_equal(after.kernels_emitted - before.kernels_emitted, 3); /* the handle lives */
    assert_int_equal(warpdnnGetLastEngine(handle, &name), 0);
    snprintf(last, sizeof last, "%s", name);
    assert_true(strlen(last) > 0);
    /* what fails counts as nothing */
    assert_int_equal(run(plan, x, y, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(cudnnCreateTensorDescriptor(&desc), 0);
    assert_int_equal(
        cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, COUNT), 0);
    assert_int_equal(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL,
                                         &one, desc, x, &zero, desc, NULL),
                     CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(statistics().executions, after.executions);
    assert_int_equal(warpdnnGetLastEngine(handle, &name), 0);
    assert_string_equal(name, last);
    assert_int_equal(cudnnDestroyTensorDescriptor(desc), 0);
    be_free_all();
}

/* The gradient of gelu's tanh form, far out, where its terms overflow: 0 and 1. */
static void test_gelu_far_out(void **state)
{
    static const float far[COUNT] = {1e20f, -1e20f, 3e38f, -3e38f, 1e13f, -1e13f, 20.0f, -20.0f};
    float dy[COUNT], dx[COUNT] = {0};
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    (void)state;
    for (int i = 0; i < COUNT; ++i) dy[i] = 2.0f;
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
               be_pointwise_desc(CUDNN_POINTWISE_GELU_APPROX_TANH_BWD));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, real(1));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, real(2));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, real(3));
    be_final(op);
    for (int engine = 0; engine < 3; ++engine) {
        be_desc candidate = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        static const int64_t ids[3] = {0, 100, 230};
        be_set_ref(candidate, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, be_graph(handle, 1, &op));
        be_set_int(candidate, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, ids[engine]);
        if (cudnnBackendFinalize(candidate) != 0) continue; /* no CPU module */
        memset(dx, 0, sizeof dx);
        be_expect(cudnnBackendExecute(handle, be_plan(handle, be_config(candidate)),
                                      be_pack(3, (int64_t[]){1, 2, 3},
                                              (void *[]){(void *)(uintptr_t)far, dy, dx}, NULL)),
                  "execute");
        for (int i = 0; i < 8; ++i) {
            if (dx[i] != (i % 2 ? 0.0f : 2.0f)) {
                fail_msg("engine %d: at %g the gradient is %g", (int)ids[engine], (double)far[i],
                         (double)dx[i]);
            }
        }
    }
    be_free_all();
}

/* A CPU call asks whether a driver came; it looks for one only after libraries did. */
static void test_driver_looks(void **state)
{
    static _Alignas(256) char room[4096];
    float x[COUNT] = {1}, y[COUNT] = {0};
    be_desc plan = negate_thrice();
    char path[4096];
    int before;
    (void)state;
    assert_int_equal(run(plan, x, y, room), 0);
    before = looks;
    for (int i = 0; i < 5; ++i) assert_int_equal(run(plan, x, y, room), 0);
    assert_int_equal(looks, before);
    fake_path(path, sizeof path); /* any library that is new */
    assert_non_null(dlopen(path, RTLD_NOW | RTLD_LOCAL));
    assert_int_equal(run(plan, x, y, room), 0);
    assert_int_equal(run(plan, x, y, room), 0);
    assert_int_equal(looks, before + 1);
    be_free_all();
}

/* Each fact of a device that engines may look at makes for another plan, and passes through its text. */
static void test_device_facts(void **state)
{
    static const struct wd_device facts = {
        WD_GPU, 0, 90, 132, 232448, 233472, 62914560, (int64_t)1 << 37, true, true};
    enum { FACTS = 10 };
    struct wd_device device[FACTS + 1];
    const struct wd_plan *plan[FACTS + 1];
    struct wd_single single;
    struct wd_tensor tensor = {.dtype = CUDNN_DATA_FLOAT,
                               .rank = 4,
                               .vect_count = 1,
                               .dim = {2, 3, 4, 1},
                               .stride = {12, 4, 1, 1}};
    uint64_t before;
    (void)state;
    for (int i = 0; i <= FACTS; ++i) device[i] = facts;
    device[1].kind = WD_CPU;
    device[2].ordinal = 1;
    device[3].capability = 80;
    device[4].multiprocessors = 131;
    device[5].shared_per_block -= 1024;
    device[6].shared_per_processor -= 1024;
    device[7].l2_bytes -= 1024;
    device[8].memory_bytes -= 1024;
    device[9].cooperative = false;
    device[10].grids_meet = false;
    wd_single_init(&single, WD_OP_SOFTMAX_FORWARD);
    single.node.attr.softmax.algorithm = CUDNN_SOFTMAX_ACCURATE;
    wd_single_scalar(&single, 0, 1.0);
    for (int slot = 0; slot < 2; ++slot) wd_single_bind(&single, slot, &tensor, NULL, NULL);
    for (int i = 0; i <= FACTS; ++i) {
        assert_int_equal(wd_plan_get(&device[i], &single.graph, &plan[i]), 0);
        for (int k = 0; k < i; ++k) assert_ptr_not_equal(plan[i], plan[k]);
    }
    before = wd_plan_statistics().hits;
    for (int i = 0; i <= FACTS; ++i) {
        const struct wd_plan *again = NULL;
        struct wd_text text = {0};
        struct wd_reader reader;
        struct wd_device read = {0};
        wd_device_write(&text, &device[i]);
        reader = wd_reader_start(text.data, text.length);
        wd_device_read(&reader, &read);
        wd_read_end(&reader);
        assert_int_equal(wd_reader_status(&reader, "device"), 0);
        assert_int_equal(wd_plan_get(&read, &single.graph, &again), 0);
        assert_ptr_equal(again, plan[i]);
        wd_plan_release(again);
        wd_plan_release(plan[i]);
        wd_free(text.data);
    }
    assert_int_equal(wd_plan_statistics().hits, before + FACTS + 1);
}

/* Texts that do not say whether grids meet: they do where clusters are launched. */
static void test_device_text_without(void **state)
{
    (void)state;
    for (int clusters = 0; clusters < 2; ++clusters) {
        struct wd_device device = {.kind = WD_GPU, .multiprocessors = 1, .cooperative = clusters};
        struct wd_text text = {0};
        struct wd_reader reader;
        char *end;
        wd_device_write(&text, &device);
        end = strstr(text.data, ",\"grids_meet\"");
        assert_non_null(end);
        memcpy(end, "}", 2);
        reader = wd_reader_start(text.data, strlen(text.data));
        wd_device_read(&reader, &device);
        wd_read_end(&reader);
        assert_int_equal(wd_reader_status(&reader, "device"), 0);
        assert_int_equal(device.grids_meet, clusters);
        wd_free(text.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workspace_sum), cmocka_unit_test(test_workspace_alignment),
        cmocka_unit_test(test_many_tensors),  cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_gelu_far_out),  cmocka_unit_test(test_driver_looks),
        cmocka_unit_test(test_device_facts),  cmocka_unit_test(test_device_text_without),
    };
    int failed;
    setenv("WARPDNN_DEVICE", "cpu", 1);
    if (cudnnCreate(&handle) != 0) return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    cudnnDestroy(handle);
    return failed;
}
