/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream queue on the fake driver: contexts and their balance, several devices and handles,
 * streams, memory, threads, and the end of a process (launches: gpu_launch_test.c). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "gpu/gpu.h"
#include "support/gpu_kernels.h"

enum { COUNT = 1000 };

static const cudnnStatus_t OK = CUDNN_STATUS_SUCCESS;

static int start(void **state)
{
    (void)state;
    fake->fakecuda_reset();
    gpu_kernels_reset();
    wd_last_error_clear();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    fake->fakecuda_set_deferred(0);
    return fake->fakecuda_report() == 0 && wd_alloc_bytes() == 0 && wd_gpu_scratch_bytes() == 0
               ? 0
               : -1;
}

/* Device arrays x (0, 1, 2, ...) and y; the fake driver's memory can be read from the host. */
static void make_arrays(struct wd_queue *queue, float **x, float **y)
{
    float values[COUNT];
    for (int i = 0; i < COUNT; ++i) values[i] = (float)i;
    assert_int_equal(wd_gpu_malloc(queue, sizeof values, (void **)x), OK);
    assert_int_equal(wd_gpu_malloc(queue, sizeof values, (void **)y), OK);
    assert_int_equal(wd_gpu_copy(queue, *x, values, sizeof values), OK);
}

static void check_and_free(struct wd_queue *queue, float *x, float *y)
{
    float values[COUNT];
    assert_int_equal(wd_gpu_copy(queue, values, y, sizeof values), OK);
    for (int i = 0; i < COUNT; ++i) assert_true(values[i] == 2.0f * (float)i + 3.0f);
    assert_int_equal(wd_gpu_free(queue, x), OK);
    assert_int_equal(wd_gpu_free(queue, y), OK);
}

static void run_both_ways(struct wd_queue *queue)
{
    float *x, *y;
    make_arrays(queue, &x, &y);
    assert_int_equal(run_line(queue, y, x, COUNT), OK);
    check_and_free(queue, x, y);
    make_arrays(queue, &x, &y);
    assert_int_equal(run_through_scratch(queue, y, x, COUNT), OK);
    check_and_free(queue, x, y);
}

static void test_primary_context(void **state)
{
    struct wd_queue *queue = NULL;
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    assert_int_equal(fake->fakecuda_primary_references(0), 1);
    assert_int_equal(fake->fakecuda_stack_depth(), 0);
    assert_int_equal(queue->device->kind, WD_GPU);
    assert_int_equal(queue->device->ordinal, 0);
    assert_int_equal(queue->device->capability, 90);
    assert_int_equal(queue->device->multiprocessors, 132);
    assert_int_equal(queue->device->shared_per_block, 232448);
    assert_int_equal(queue->device->shared_per_processor, 233472);
    assert_int_equal(queue->device->l2_bytes, 62914560);
    assert_int_equal(queue->device->memory_bytes, 1 << 30);
    assert_true(queue->device->cooperative);
    run_both_ways(queue);
    assert_int_equal(fake->fakecuda_stack_depth(), 0);
    assert_int_equal(queue->emitted, 4);
    assert_true(wd_gpu_scratch_bytes() > 0);
    wd_gpu_queue_destroy(queue);
    assert_int_equal(fake->fakecuda_primary_references(0), 0);
}

/* With the queue's context current, nothing is pushed; with another, it is, and popped again. */
static void test_push_and_pop(void **state)
{
    struct wd_queue *queue = NULL;
    CUcontext own, other, now;
    float *x, *y;
    (void)state;
    assert_int_equal(fake->cuDevicePrimaryCtxRetain(&own, 1), CUDA_SUCCESS);
    assert_int_equal(fake->cuDevicePrimaryCtxRetain(&other, 0), CUDA_SUCCESS);
    fake->cuCtxSetCurrent(own);
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    assert_int_equal(queue->device->ordinal, 1);
    assert_int_equal(fake->fakecuda_primary_references(1), 1); /* the caller's alone */
    make_arrays(queue, &x, &y);
    assert_int_equal(run_line(queue, y, x, COUNT), OK);
    assert_int_equal(fake->fakecuda_calls("cuCtxPushCurrent"), 0);
    assert_int_equal(fake->fakecuda_calls("cuCtxPopCurrent"), 0);

    fake->cuCtxSetCurrent(other);
    assert_int_equal(run_through_scratch(queue, y, x, COUNT), OK);
    assert_int_equal(fake->fakecuda_calls("cuCtxPushCurrent"), 1);
    assert_int_equal(fake->fakecuda_calls("cuCtxPopCurrent"), 1);
    fake->cuCtxGetCurrent(&now);
    assert_ptr_equal(now, other);

    fake->cuCtxSetCurrent(NULL);
    check_and_free(queue, x, y);
    assert_int_equal(fake->fakecuda_calls("cuCtxPushCurrent"),
                     fake->fakecuda_calls("cuCtxPopCurrent"));

    /* begins nest */
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(fake->fakecuda_stack_depth(), 1);
    queue->ops->end(queue);
    assert_int_equal(fake->fakecuda_stack_depth(), 1);
    queue->ops->end(queue);
    assert_int_equal(fake->fakecuda_stack_depth(), 0);
    wd_gpu_queue_destroy(queue);
    fake->cuDevicePrimaryCtxRelease(0);
    fake->cuDevicePrimaryCtxRelease(1);
}

static void test_two_contexts(void **state)
{
    struct wd_queue *queue[2] = {NULL, NULL};
    CUcontext context[2];
    void *scratch[2];
    (void)state;
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(fake->cuInit(0), CUDA_SUCCESS);
        assert_int_equal(fake->cuCtxCreate_v2(&context[i], 0, 0), CUDA_SUCCESS);
        assert_int_equal(wd_gpu_queue_create(&queue[i]), OK);
        fake->cuCtxSetCurrent(NULL);
    }
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < 2; ++i) {
            run_both_ways(queue[i]);
            scratch[i] = through_scratch_at;
        }
    assert_ptr_not_equal(scratch[0], scratch[1]);
    wd_gpu_queue_destroy(queue[0]);
    run_both_ways(queue[1]);
    wd_gpu_queue_destroy(queue[1]);
    for (int i = 0; i < 2; ++i) fake->cuCtxDestroy_v2(context[i]);
}

/* A handle whose context was destroyed first: silent, and nothing of the dead context is touched. */
static void test_context_destroyed_first(void **state)
{
    struct wd_queue *queue = NULL;
    CUcontext context;
    float *x, *y;
    (void)state;
    fake->cuCtxCreate_v2(&context, 0, 1);
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    make_arrays(queue, &x, &y);
    assert_int_equal(run_through_scratch(queue, y, x, COUNT), OK);
    check_and_free(queue, x, y);
    fake->cuCtxDestroy_v2(context);
    assert_int_equal(run_line(queue, NULL, NULL, 0), CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(), "CUDA_ERROR_CONTEXT_IS_DESTROYED"));
    wd_gpu_queue_destroy(queue);
}

static void test_streams(void **state)
{
    struct wd_queue *queue = NULL;
    CUcontext context, other;
    CUstream own, foreign, invalid;
    CUgraph graph = NULL;
    CUdeviceptr unsafe;
    (void)state;
    assert_int_equal(fake->cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    fake->cuCtxCreate_v2(&other, 0, 0);
    fake->cuStreamCreate(&foreign, 0);
    fake->cuCtxSetCurrent(context);
    fake->cuStreamCreate(&own, 0);
    fake->cuStreamCreate(&invalid, FAKECUDA_STREAM_NON_BLOCKING);
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    assert_null(wd_gpu_queue_stream(queue));

    assert_int_equal(wd_gpu_queue_set_stream(queue, own), OK);
    assert_ptr_equal(wd_gpu_queue_stream(queue), own);
    run_both_ways(queue);
    assert_int_equal(wd_gpu_queue_synchronize(queue), OK);

    assert_int_equal(wd_gpu_queue_set_stream(queue, foreign),
                     CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH);
    assert_non_null(strstr(wd_last_error(), "belongs to context"));
    assert_ptr_equal(wd_gpu_queue_stream(queue), own);

    /* the three names of default streams fit every context */
    for (uintptr_t i = 0; i <= 2; ++i) {
        assert_int_equal(wd_gpu_queue_set_stream(queue, (CUstream)i), OK);
        run_both_ways(queue);
    }

    /* a capture that was invalidated: refused, with nothing changed */
    assert_int_equal(fake->cuStreamBeginCapture_v2(invalid, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    assert_int_equal(fake->cuMemAlloc(&unsafe, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(wd_gpu_queue_set_stream(queue, invalid), CUDNN_STATUS_BAD_PARAM);
    assert_non_null(strstr(wd_last_error(), "invalidated"));
    assert_ptr_equal(wd_gpu_queue_stream(queue), (CUstream)2);
    assert_int_equal(fake->cuStreamEndCapture(invalid, &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_null(graph);
    fake->fakecuda_reset(); /* the unsafe call was meant */

    /* while a stream captures it cannot be waited for, and does not notice that we asked */
    assert_int_equal(fake->cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    assert_int_equal(wd_gpu_queue_set_stream(queue, own), OK);
    assert_int_equal(wd_gpu_queue_synchronize(queue), CUDNN_STATUS_BAD_PARAM);
    assert_non_null(strstr(wd_last_error(), "captured"));
    assert_int_equal(wd_gpu_copy(queue, &graph, &graph, 1), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(fake->cuStreamEndCapture(own, &graph), CUDA_SUCCESS);
    fake->cuGraphDestroy(graph);

    wd_gpu_queue_destroy(queue);
    fake->cuStreamDestroy_v2(own);
    fake->cuStreamDestroy_v2(foreign);
    fake->cuStreamDestroy_v2(invalid);
    fake->cuCtxSetCurrent(NULL);
    fake->cuCtxDestroy_v2(other);
    fake->cuDevicePrimaryCtxRelease(0);
}

static void test_memory(void **state)
{
    struct wd_queue *queue[2] = {NULL, NULL};
    CUcontext context;
    CUdeviceptr managed;
    void *data = NULL, *pinned = NULL, *there = NULL;
    char host[64] = "bytes", back[64];
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue[0]), OK);
    assert_int_equal(fake->cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    fake->cuCtxSetCurrent(context);
    assert_int_equal(wd_gpu_queue_create(&queue[1]), OK);

    assert_int_equal(wd_gpu_malloc(queue[0], 0, &data), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(wd_gpu_malloc(queue[0], 64, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(wd_gpu_malloc(queue[0], (size_t)1 << 40, &data),
                     CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    assert_non_null(strstr(wd_last_error(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"));
    assert_non_null(strstr(wd_last_error(), "1099511627776"));
    assert_null(data);

    assert_int_equal(wd_gpu_malloc(queue[0], 64, &data), OK);
    assert_int_equal(wd_gpu_malloc(queue[1], 64, &there), OK);
    assert_int_equal(wd_gpu_copy(queue[0], data, host, 64), OK);
    assert_int_equal(wd_gpu_copy(queue[0], there, data, 64), OK);
    assert_int_equal(wd_gpu_copy(queue[1], back, there, 64), OK);
    assert_memory_equal(host, back, 64);
    assert_int_equal(wd_gpu_copy(queue[0], NULL, host, 0), OK);
    assert_int_equal(wd_gpu_copy(queue[0], NULL, host, 1), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);

    assert_int_equal(fake->cuMemAllocManaged(&managed, 64, 1), CUDA_SUCCESS);
    assert_int_equal(fake->cuMemAllocHost_v2(&pinned, 64), CUDA_SUCCESS);
    assert_int_equal(wd_gpu_owns_pointer(queue[0], data), 1);
    assert_int_equal(wd_gpu_owns_pointer(queue[0], (char *)data + 63), 1);
    assert_int_equal(wd_gpu_owns_pointer(queue[0], there), -1);
    assert_int_equal(wd_gpu_owns_pointer(queue[1], there), 1);
    assert_int_equal(wd_gpu_owns_pointer(queue[0], host), 0);
    assert_int_equal(wd_gpu_owns_pointer(queue[0], (void *)(uintptr_t)managed), 1);
    assert_int_equal(wd_gpu_owns_pointer(queue[0], pinned), 1);
    assert_int_equal(wd_gpu_owns_pointer(NULL, data), 1);
    assert_int_equal(wd_gpu_owns_pointer(NULL, host), 0);
    assert_int_equal(wd_gpu_owns_pointer(NULL, pinned), 0);
    assert_int_equal(wd_gpu_owns_pointer(NULL, (void *)(uintptr_t)managed), 0);
    fake->fakecuda_fail_function("cuPointerGetAttributes", CUDA_ERROR_UNKNOWN);
    assert_int_equal(wd_gpu_owns_pointer(queue[0], data), -1);
    fake->fakecuda_fail_function(NULL, 0);

    assert_int_equal(wd_gpu_free(queue[0], NULL), OK);
    assert_int_equal(wd_gpu_free(queue[0], data), OK);
    assert_int_equal(wd_gpu_free(queue[0], there), OK); /* from another context is fine */
    fake->cuMemFree(managed);
    fake->cuMemFreeHost(pinned);
    wd_gpu_queue_destroy(queue[0]);
    wd_gpu_queue_destroy(queue[1]);
    fake->cuCtxSetCurrent(NULL);
    fake->cuDevicePrimaryCtxRelease(1);
}

/* Fills and copies of nothing are no work; those beyond an allocation are the driver's to refuse. */
static void test_fill_and_copy(void **state)
{
    struct wd_queue *queue = NULL;
    unsigned char *data = NULL, back[300];
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    assert_int_equal(wd_gpu_malloc(queue, sizeof back, (void **)&data), OK);
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(queue->ops->fill(queue, data, 0x1234, sizeof back), OK);
    assert_int_equal(queue->ops->fill(queue, data + 100, 7, 100), OK);
    assert_int_equal(queue->ops->copy(queue, data, data + 150, 50), OK);
    assert_int_equal(queue->emitted, 3);
    assert_int_equal(queue->ops->fill(queue, NULL, 0, 0), OK);
    assert_int_equal(queue->ops->copy(queue, NULL, NULL, 0), OK);
    assert_int_equal(queue->emitted, 3);
    queue->ops->end(queue);
    assert_int_equal(wd_gpu_copy(queue, back, data, sizeof back), OK);
    for (int i = 0; i < 300; ++i)
        assert_int_equal(back[i], i < 50 || (i >= 100 && i < 200) ? 7 : 0x34);
    assert_int_equal(wd_gpu_free(queue, data), OK);
    wd_gpu_queue_destroy(queue);
}

/* Handles made, used and destroyed by many threads at once, on the default stream all of them. */
static void *thread_body(void *data)
{
    struct wd_queue *queue = NULL;
    float values[COUNT], *x = NULL, *y = NULL;
    long bad = 0;
    (void)data;
    for (int i = 0; i < COUNT; ++i) values[i] = (float)i;
    for (int round = 0; round < 20; ++round) {
        bad += wd_gpu_queue_create(&queue) != OK;
        bad += wd_gpu_malloc(queue, sizeof values, (void **)&x) != OK;
        bad += wd_gpu_malloc(queue, sizeof values, (void **)&y) != OK;
        bad += wd_gpu_copy(queue, x, values, sizeof values) != OK;
        for (int i = 0; i < 5; ++i) bad += run_through_scratch(queue, y, x, COUNT) != OK;
        bad += y[COUNT - 1] != 2.0f * (COUNT - 1) + 3.0f;
        bad += wd_gpu_free(queue, x) != OK;
        bad += wd_gpu_free(queue, y) != OK;
        wd_gpu_queue_destroy(queue);
        bad += fake->fakecuda_stack_depth() != 0;
    }
    return (void *)bad;
}

static void test_threads(void **state)
{
    enum { THREADS = 8 };
    pthread_t thread[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; ++i) {
        assert_int_equal(pthread_create(&thread[i], NULL, thread_body, NULL), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        void *bad;
        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
    assert_int_equal(fake->fakecuda_calls("cuLibraryLoadData"), 1);
}

/* The first use of the library by many threads at once, each making a handle. */
static void first_use(void *data)
{
    enum { THREADS = 8 };
    pthread_t thread[THREADS];
    (void)data;
    for (int i = 0; i < THREADS; ++i) pthread_create(&thread[i], NULL, thread_body, NULL);
    for (int i = 0; i < THREADS; ++i) {
        void *bad;
        pthread_join(thread[i], &bad);
        fake_check(!bad);
    }
    fake_check(fake->fakecuda_calls("cuInit") == 1);
    fake_check(fake->fakecuda_report() == 0);
}

/* At exit the driver may be gone before the handles are. */
static struct wd_queue *left_behind;

static void destroy_left_behind(void)
{
    fake->fakecuda_deinitialize();
    wd_last_error_clear();
    wd_gpu_queue_destroy(left_behind);
    if (wd_last_error()[0]) fake_child_failed(__FILE__, __LINE__, "silence");
    if (wd_gpu_queue_create(&left_behind) == OK) fake_child_failed(__FILE__, __LINE__, "refusal");
}

static void exit_with_handle(void *data)
{
    float *x = NULL, *y = NULL;
    (void)data;
    atexit(destroy_left_behind);
    fake_check(wd_gpu_queue_create(&left_behind) == OK);
    gpu_kernels_reset();
    fake_check(wd_gpu_malloc(left_behind, COUNT * sizeof *x, (void **)&x) == OK);
    fake_check(wd_gpu_malloc(left_behind, COUNT * sizeof *y, (void **)&y) == OK);
    fake_check(run_through_scratch(left_behind, y, x, COUNT) == OK);
}

static int in_children(void)
{
    const struct {
        const char *name;
        void (*test)(void *data);
    } tests[] = {{"first use by threads", first_use}, {"exit with a handle", exit_with_handle}};
    for (int i = 0; i < 2; ++i) {
        if (!fake_in_child(tests[i].test, NULL)) {
            fprintf(stderr, "%s failed\n", tests[i].name);
            return 1;
        }
    }
    return 0;
}

static int children_failed;

static void test_children(void **state)
{
    (void)state;
    assert_int_equal(children_failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children),
        cmocka_unit_test_setup_teardown(test_primary_context, start, finish),
        cmocka_unit_test_setup_teardown(test_push_and_pop, start, finish),
        cmocka_unit_test_setup_teardown(test_two_contexts, start, finish),
        cmocka_unit_test_setup_teardown(test_context_destroyed_first, start, finish),
        cmocka_unit_test_setup_teardown(test_streams, start, finish),
        cmocka_unit_test_setup_teardown(test_memory, start, finish),
        cmocka_unit_test_setup_teardown(test_fill_and_copy, start, finish),
        cmocka_unit_test_setup_teardown(test_threads, start, finish),
    };
    fake_open();
    gpu_kernels_reset();
    children_failed = in_children(); /* before this process uses the library */
    fake->cuInit(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
