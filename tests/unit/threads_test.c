/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads in the library at once, each with a handle of its own: the first calls of the process
 * together, mixed operations on one plan cache (hits, misses and evictions), backend descriptors, a
 * callback that comes and goes while there is much to report, handles made and destroyed, and the
 * last error of each thread. All results are checked; the thread sanitizer runs it too. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/backend_build.h"
#include "warpdnn.h"

enum { THREADS = 8 };

/* What went wrong in any thread: cmocka's own asserts belong to the main one. */
static _Atomic int problems;
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition) && atomic_fetch_add(&problems, 1) < 5)                                    \
            printf("line %d: %s does not hold\n", __LINE__, #condition);                           \
    } while (0)

struct worker {
    pthread_t thread;
    int number;
    cudnnHandle_t handle;
};

static pthread_barrier_t start_line;

/* Runs `work` in all threads at once and waits for them. */
static void run_all(void *(*work)(void *worker))
{
    static struct worker workers[THREADS];
    assert_int_equal(pthread_barrier_init(&start_line, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){.number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    pthread_barrier_destroy(&start_line);
    assert_int_equal(problems, 0);
}

static bool is_quick(void)
{
    return getenv("WARPDNN_TEST_QUICK") != NULL;
}

static const float one = 1.0f, zero = 0.0f;

/* ---- the first calls of the process, and handles that come and go ---- */

static void *make_handles(void *data)
{
    struct worker *worker = data;
    int rounds = is_quick() ? 40 : 200;
    pthread_barrier_wait(&start_line);
    for (int i = 0; i < rounds; ++i) {
        cudnnHandle_t a = NULL, b = NULL;
        warpdnnStatistics_t statistics;
        float x[12], y[12];
        cudnnTensorDescriptor_t desc = NULL;
        CHECK(cudnnCreate(&a) == CUDNN_STATUS_SUCCESS);
        CHECK(cudnnCreate(&b) == CUDNN_STATUS_SUCCESS);
        CHECK(cudnnCreateTensorDescriptor(&desc) == CUDNN_STATUS_SUCCESS);
        CHECK(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 3, 2, 2) ==
              CUDNN_STATUS_SUCCESS);
        for (int k = 0; k < 12; ++k) x[k] = (float)(k + worker->number);
        CHECK(cudnnTransformTensor(i % 2 ? a : b, &one, desc, x, &zero, desc, y) ==
              CUDNN_STATUS_SUCCESS);
        for (int k = 0; k < 12; ++k) CHECK(x[k] == y[k]);
        CHECK(cudnnDestroyTensorDescriptor(desc) == CUDNN_STATUS_SUCCESS);
        CHECK(cudnnDestroy(a) == CUDNN_STATUS_SUCCESS);
        CHECK(warpdnnGetStatistics(&statistics) == CUDNN_STATUS_SUCCESS);
        CHECK(cudnnDestroy(b) == CUDNN_STATUS_SUCCESS);
    }
    return NULL;
}

static void test_handles(void **state)
{
    (void)state;
    run_all(make_handles);
}

/* ---- mixed operations on one plan cache ---- */

/* Each thread walks through SPAN shapes and shares all but STEP of them with the next one. */
enum { CACHE_PLANS = 4096, SPAN = 1600, STEP = 800, OPERATIONS = 6, H = 3, W_MAX = 1300 };

struct buffers {
    cudnnTensorDescriptor_t image, line, point;
    cudnnActivationDescriptor_t activation;
    cudnnOpTensorDescriptor_t op;
    cudnnPoolingDescriptor_t pooling;
    cudnnReduceTensorDescriptor_t reduce;
    float x[H * W_MAX], y[H * W_MAX];
};

static struct buffers *make_buffers(void)
{
    struct buffers *b = calloc(1, sizeof *b);
    if (!b) exit(1);
    be_expect(cudnnCreateTensorDescriptor(&b->image), "create");
    be_expect(cudnnCreateTensorDescriptor(&b->line), "create");
    be_expect(cudnnCreateTensorDescriptor(&b->point), "create");
    be_expect(cudnnCreateActivationDescriptor(&b->activation), "create");
    be_expect(cudnnCreateOpTensorDescriptor(&b->op), "create");
    be_expect(cudnnCreatePoolingDescriptor(&b->pooling), "create");
    be_expect(cudnnCreateReduceTensorDescriptor(&b->reduce), "create");
    be_expect(cudnnSetTensor4dDescriptor(b->point, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1),
              "set");
    be_expect(cudnnSetActivationDescriptor(b->activation, CUDNN_ACTIVATION_RELU,
                                           CUDNN_PROPAGATE_NAN, 0.0),
              "set");
    be_expect(cudnnSetOpTensorDescriptor(b->op, CUDNN_OP_TENSOR_MAX, CUDNN_DATA_FLOAT,
                                         CUDNN_PROPAGATE_NAN),
              "set");
    be_expect(cudnnSetPooling2dDescriptor(b->pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, H, 1,
                                          0, 0, 1, 1),
              "set");
    be_expect(cudnnSetReduceTensorDescriptor(b->reduce, CUDNN_REDUCE_TENSOR_MIN, CUDNN_DATA_FLOAT,
                                             CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                             CUDNN_32BIT_INDICES),
              "set");
    return b;
}

static void free_buffers(struct buffers *b)
{
    CHECK(cudnnDestroyTensorDescriptor(b->image) == 0);
    CHECK(cudnnDestroyTensorDescriptor(b->line) == 0);
    CHECK(cudnnDestroyTensorDescriptor(b->point) == 0);
    CHECK(cudnnDestroyActivationDescriptor(b->activation) == 0);
    CHECK(cudnnDestroyOpTensorDescriptor(b->op) == 0);
    CHECK(cudnnDestroyPoolingDescriptor(b->pooling) == 0);
    CHECK(cudnnDestroyReduceTensorDescriptor(b->reduce) == 0);
    free(b);
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

/* Operation `which` on an image of H x w: small whole numbers, so that every result is exact. */
static cudnnStatus_t call(struct buffers *b, cudnnHandle_t handle, int which)
{
    static const float two = 2.0f;
    switch (which) {
    case 0:
        return cudnnActivationForward(handle, b->activation, &one, b->image, b->x, &zero, b->image,
                                      b->y);
    case 1: return cudnnAddTensor(handle, &two, b->image, b->x, &one, b->image, b->y);
    case 2:
        return cudnnOpTensor(handle, b->op, &one, b->image, b->x, &one, b->image, b->y, &zero,
                             b->image, b->y);
    case 3:
        return cudnnPoolingForward(handle, b->pooling, &one, b->image, b->x, &zero, b->line, b->y);
    case 4:
        return cudnnReduceTensor(handle, b->reduce, NULL, 0, NULL, 0, &one, b->image, b->x, &zero,
                                 b->point, b->y);
    default: return cudnnSetTensor(handle, b->image, b->y, &two);
    }
}

static float expected(const struct buffers *b, int which, int w, int i, float before)
{
    float least = b->x[0];
    switch (which) {
    case 0: return larger(b->x[i], 0.0f);
    case 1: return 2.0f * b->x[i] + before;
    case 2: return larger(b->x[i], before);
    case 3: return larger(b->x[i], larger(b->x[i + w], b->x[i + 2 * w]));
    case 4:
        for (int k = 1; k < H * w; ++k) least = b->x[k] < least ? b->x[k] : least;
        return least;
    default: return 2.0f;
    }
}

static float start_of(int i)
{
    return (float)(i % 5);
}

static void one_operation(struct buffers *b, cudnnHandle_t handle, int shape, int salt)
{
    int which = shape % OPERATIONS;
    int w = 1 + shape / OPERATIONS;
    int outputs = which == 3 ? w : which == 4 ? 1 : H * w;
    CHECK(cudnnSetTensor4dDescriptor(b->image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, H, w) ==
          0);
    CHECK(cudnnSetTensor4dDescriptor(b->line, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, w) ==
          0);
    for (int i = 0; i < H * w; ++i) {
        b->x[i] = (float)((i * 7 + salt) % 23 - 11);
        b->y[i] = start_of(i);
    }
    CHECK(call(b, handle, which) == CUDNN_STATUS_SUCCESS);
    for (int i = 0; i < H * w; ++i) {
        float due = i < outputs ? expected(b, which, w, i, start_of(i)) : start_of(i);
        if (b->y[i] == due) continue;
        CHECK(!"a result is wrong");
        return;
    }
}

static void *mix(void *data)
{
    struct worker *worker = data;
    struct buffers *b = make_buffers();
    CHECK(cudnnCreate(&worker->handle) == CUDNN_STATUS_SUCCESS);
    pthread_barrier_wait(&start_line);
    /* a stride without a common factor with SPAN visits every shape once, each thread in its order */
    for (int i = 0; i < SPAN; ++i) {
        int at = (int)((int64_t)i * (7 + 2 * worker->number) * 3 % SPAN);
        one_operation(b, worker->handle, worker->number * STEP + (at + i / 2) % SPAN,
                      worker->number);
        /* and a favourite of all of them */
        if (i % 4 == 0) one_operation(b, worker->handle, 30 + i % 3, i);
    }
    CHECK(cudnnDestroy(worker->handle) == CUDNN_STATUS_SUCCESS);
    free_buffers(b);
    return NULL;
}

static void test_plan_cache(void **state)
{
    warpdnnStatistics_t before, after, later;
    uint64_t calls;
    (void)state;
    assert_int_equal(warpdnnGetStatistics(&before), 0);
    run_all(mix);
    assert_int_equal(warpdnnGetStatistics(&after), 0);
    calls = after.executions - before.executions;
    printf("%d executions, %d hits, %d misses, %d plans alive, %d KiB\n", (int)calls,
           (int)(after.plan_hits - before.plan_hits), (int)(after.plan_misses - before.plan_misses),
           (int)after.plans_alive, (int)(after.host_bytes >> 10));
    assert_int_equal(calls, THREADS * (SPAN + SPAN / 4));
    assert_int_equal(after.plan_hits - before.plan_hits + after.plan_misses - before.plan_misses,
                     calls);
    assert_true(after.plan_misses - before.plan_misses > CACHE_PLANS);
    assert_true(after.plan_hits - before.plan_hits > THREADS * SPAN / 8);
    assert_true(after.plans_alive <= CACHE_PLANS && after.plans_alive > CACHE_PLANS / 2);
    if (is_quick()) return;
    /* once more: what the cache holds is bounded */
    run_all(mix);
    assert_int_equal(warpdnnGetStatistics(&later), 0);
    assert_true(later.plans_alive <= CACHE_PLANS);
    assert_true(later.host_bytes < after.host_bytes + after.host_bytes / 4);
}

/* ---- backend descriptors ---- */

static void *backend(void *data)
{
    struct worker *worker = data;
    int rounds = is_quick() ? 10 : 60;
    cudnnHandle_t handle = NULL;
    CHECK(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
    pthread_barrier_wait(&start_line);
    for (int i = 0; i < rounds; ++i) {
        enum { COUNT = 60 };
        /* half of the graphs are those of other threads too */
        const int64_t dims[3] = {3, 4, i % 2 ? 5 : 1 + worker->number % 5};
        const int64_t uids[2] = {1, 3};
        int count = (int)(dims[0] * dims[1] * dims[2]);
        float x[COUNT], y[COUNT];
        void *pointers[2] = {x, y};
        be_desc middle = be_tensor(2, CUDNN_DATA_FLOAT, 3, dims, BE_VIRTUAL);
        be_desc ops[2], plan;
        void *workspace;
        int64_t bytes;
        ops[0] =
            be_pointwise(CUDNN_POINTWISE_NEG, be_tensor(1, CUDNN_DATA_FLOAT, 3, dims, BE_PLAIN),
                         NULL, NULL, middle);
        ops[1] = be_pointwise(CUDNN_POINTWISE_RELU_FWD, middle, NULL, NULL,
                              be_tensor(3, CUDNN_DATA_FLOAT, 3, dims, BE_PLAIN));
        plan = be_plan_of(handle, 2, ops);
        bytes = be_workspace(plan);
        workspace = aligned_alloc(256, (size_t)(bytes + 256) / 256 * 256);
        for (int k = 0; k < count; ++k) x[k] = (float)(k % 9 - 4 + i % 3);
        be_expect(cudnnBackendExecute(handle, plan, be_pack(2, uids, pointers, workspace)),
                  "execute");
        for (int k = 0; k < count; ++k) CHECK(y[k] == larger(-x[k], 0.0f));
        free(workspace);
        be_free_all();
    }
    CHECK(cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS);
    return NULL;
}

static void test_backend(void **state)
{
    (void)state;
    run_all(backend);
}

/* ---- reports: a callback that comes and goes, and the last error of each thread ---- */

static _Atomic long reports, spoilt;
static int udata_a, udata_b;

static void listen(cudnnSeverity_t severity, void *udata, const cudnnDebug_t *debug,
                   const char *text)
{
    atomic_fetch_add(&reports, 1);
    /* the two callbacks' data never meet the other's mask */
    if (udata == &udata_a && severity != CUDNN_SEV_ERROR) atomic_fetch_add(&spoilt, 1);
    if (udata != &udata_a && udata != &udata_b) atomic_fetch_add(&spoilt, 1);
    if (!debug || !text || !strlen(text)) atomic_fetch_add(&spoilt, 1);
}

static void set_and_unset(int rounds)
{
    for (int i = 0; i < rounds; ++i) {
        unsigned mask = 0;
        void *udata = NULL;
        cudnnCallback_t callback = NULL;
        switch (i % 3) {
        case 0: CHECK(cudnnSetCallback(CUDNN_SEV_ERROR_EN, &udata_a, listen) == 0); break;
        case 1:
            CHECK(cudnnSetCallback(CUDNN_SEV_ERROR_EN | CUDNN_SEV_INFO_EN | CUDNN_SEV_WARNING_EN,
                                   &udata_b, listen) == 0);
            break;
        default: CHECK(cudnnSetCallback(0, NULL, NULL) == 0);
        }
        CHECK(cudnnGetCallback(&mask, &udata, &callback) == 0);
        CHECK(i % 3 == 2 ? callback == NULL && !udata : callback == listen);
    }
}

static void *report(void *data)
{
    struct worker *worker = data;
    struct buffers *b = make_buffers();
    int rounds = is_quick() ? 200 : 2000;
    CHECK(cudnnCreate(&worker->handle) == CUDNN_STATUS_SUCCESS);
    pthread_barrier_wait(&start_line);
    if (worker->number == 0) set_and_unset(rounds);
    for (int i = 0; worker->number > 0 && i < rounds; ++i) {
        char text[512] = "", number[32];
        int value = -(worker->number * 1000000 + i);
        CHECK(cudnnSetTensor4dDescriptor(b->image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, value, 1,
                                         1) == CUDNN_STATUS_BAD_PARAM);
        if (i % 5 == 0) one_operation(b, worker->handle, 40 + i % 8, i); /* an information */
        snprintf(number, sizeof number, "=%d ", value);
        cudnnGetLastErrorString(text, sizeof text);
        CHECK(strstr(text, number) != NULL);
        CHECK(strstr(text, "cudnnSetTensor4dDescriptor: ") == text);
    }
    CHECK(cudnnDestroy(worker->handle) == CUDNN_STATUS_SUCCESS);
    free_buffers(b);
    return NULL;
}

static void test_reports(void **state)
{
    char text[64] = "?";
    (void)state;
    cudnnGetLastErrorString(text, sizeof text); /* what the main thread said before */
    assert_int_equal(cudnnSetCallback(CUDNN_SEV_ERROR_EN, &udata_a, listen), 0);
    run_all(report);
    assert_int_equal(cudnnSetCallback(0, NULL, NULL), 0);
    assert_true(reports > 0);
    assert_int_equal(spoilt, 0);
    cudnnGetLastErrorString(text, sizeof text);
    assert_string_equal(text, ""); /* none of theirs */
    printf("%ld reports\n", (long)reports);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_plan_cache),
        cmocka_unit_test(test_backend),
        cmocka_unit_test(test_reports),
    };
    setenv("WARPDNN_DEVICE", "cpu", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
