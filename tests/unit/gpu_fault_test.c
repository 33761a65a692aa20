/* SPDX-License-Identifier: Apache-2.0
 *
 * Every driver call and every allocation fails in turn, in the life of a handle from creation to
 * destruction, plain and in a capture: a precise status and a text that names the call, nothing
 * leaked, and everything works again afterwards. */
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

enum { COUNT = 200 };

static const cudnnStatus_t OK = CUDNN_STATUS_SUCCESS;

static float values[COUNT];

static cudnnStatus_t work(struct wd_queue *queue, float *x, float *y)
{
    struct line_args args = {y, x, 2, 3};
    struct line_size size = {COUNT};
    struct wd_launch launch = line_launch(&other_kernel, &args, &size);
    float back[COUNT];
    void *counters = NULL;
    cudnnStatus_t status;
    WD_TRY(wd_gpu_queue_set_stream(queue, (cudaStream_t)2));
    WD_TRY(wd_gpu_copy(queue, x, values, sizeof values));
    WD_TRY(run_through_scratch(queue, y, x, COUNT));
    launch.shared = 64 << 10;
    launch.cluster = 2;
    WD_TRY(queue->ops->begin(queue));
    status = queue->ops->kernel(queue, &launch);
    if (status == OK) status = queue->ops->counters(queue, &counters);
    launch.cluster = 1;
    launch.meets = true;
    if (status == OK) status = queue->ops->kernel(queue, &launch);
    if (status == OK) status = queue->ops->copy(queue, x, y, sizeof values);
    queue->ops->end(queue);
    if (status != OK) return status;
    WD_TRY(wd_gpu_copy(queue, back, x, sizeof back));
    for (int i = 0; i < COUNT; ++i) assert_true(back[i] == 2.0f * (float)i + 3.0f);
    return wd_gpu_queue_synchronize(queue);
}

static cudnnStatus_t whole_life(void)
{
    struct wd_queue *queue = NULL;
    float *x = NULL, *y = NULL;
    cudnnStatus_t status, freed;
    WD_TRY(wd_gpu_queue_create(&queue));
    status = wd_gpu_malloc(queue, sizeof values, (void **)&x);
    if (status == OK) status = wd_gpu_malloc(queue, sizeof values, (void **)&y);
    if (status == OK) status = work(queue, x, y);
    freed = wd_gpu_free(queue, x);
    if (status == OK) status = freed;
    freed = wd_gpu_free(queue, y);
    if (status == OK) status = freed;
    wd_gpu_queue_destroy(queue);
    return status;
}

/* A capture around the library's work; what the test does itself goes on whatever fails. */
struct scene {
    CUcontext context;
    CUstream stream;
    CUdeviceptr x, y;
};

static void open_scene(struct scene *scene)
{
    assert_int_equal(fake->cuDevicePrimaryCtxRetain(&scene->context, 0), CUDA_SUCCESS);
    fake->cuCtxSetCurrent(scene->context);
    assert_int_equal(fake->cuMemAlloc(&scene->x, sizeof values), CUDA_SUCCESS);
    assert_int_equal(fake->cuMemAlloc(&scene->y, sizeof values), CUDA_SUCCESS);
    assert_int_equal(fake->cuStreamCreate(&scene->stream, 0), CUDA_SUCCESS);
    assert_int_equal(fake->cuStreamBeginCapture_v2(scene->stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     0);
    fake->cuCtxSetCurrent(NULL);
}

static void close_scene(struct scene *scene)
{
    struct wd_queue *queue = NULL;
    CUgraph graph = NULL;
    assert_int_equal(fake->cuStreamEndCapture(scene->stream, &graph), CUDA_SUCCESS);
    assert_int_equal(fake->cuGraphDestroy(graph), CUDA_SUCCESS);
    fake->cuStreamDestroy_v2(scene->stream);
    fake->cuMemFree(scene->x);
    fake->cuMemFree(scene->y);
    assert_int_equal(wd_gpu_queue_create(&queue), OK); /* takes back what graphs let go */
    wd_gpu_queue_destroy(queue);
    fake->cuCtxSetCurrent(NULL);
    fake->cuDevicePrimaryCtxRelease(0);
}

static struct scene scene;

static cudnnStatus_t captured_life(void)
{
    struct wd_queue *queue = NULL;
    cudnnStatus_t status;
    WD_TRY(wd_gpu_queue_create(&queue));
    status = wd_gpu_queue_set_stream(queue, scene.stream);
    if (status == OK) {
        status = run_through_scratch(queue, (float *)(uintptr_t)scene.y,
                                     (float *)(uintptr_t)scene.x, COUNT);
    }
    wd_gpu_queue_destroy(queue);
    return status;
}

/* Calls whose failure is for nobody: what they give back is given back all the same, and the work
 * is done. A context that cannot be entered at the very end is taken for destroyed. */
static bool is_silent(const char *function)
{
    static const char *const silent[] = {"cuStreamDestroy",
                                         "cuCtxPopCurrent",
                                         "cuDevicePrimaryCtxRelease",
                                         "cuMemFree",
                                         "cuThreadExchangeStreamCaptureMode",
                                         "cuCtxPushCurrent",
                                         "cuCtxGetCurrent"};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; ++i)
        if (!strcmp(function, silent[i])) return true;
    return false;
}

static cudnnStatus_t expected_status(const char *failed, CUresult result)
{
    static const char *const creation[] = {"cuCtxGetCurrent", "cuDeviceGet",
                                           "cuDevicePrimaryCtxRetain", "cuCtxGetId"};
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    }
    for (size_t i = 0; i < sizeof creation / sizeof creation[0]; ++i)
        if (!strcmp(failed, creation[i])) return CUDNN_STATUS_NOT_INITIALIZED;
    return CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
}

/* All that must be so again between two lives. */
static void check_nothing_left(const char *failed)
{
    int problems = fake->fakecuda_report();
    if (problems != 0) fail_msg("%d problems after %s failed", problems, failed);
    if (wd_alloc_bytes() != 0) fail_msg("host memory is left after %s failed", failed);
    assert_int_equal(wd_gpu_scratch_bytes(), 0);
}

static void each_call_fails(cudnnStatus_t (*life)(void), bool captured, CUresult result)
{
    uint64_t n;
    for (n = 1; n < 1000; ++n) {
        cudnnStatus_t status;
        const char *failed;
        char name[64];
        gpu_kernels_reset();
        if (captured) open_scene(&scene);
        fake->fakecuda_fail_at(n, result);
        status = life();
        failed = fake->fakecuda_failed();
        snprintf(name, sizeof name, "%s", failed ? failed : "nothing");
        fake->fakecuda_fail_at(0, 0);
        if (captured) close_scene(&scene);
        check_nothing_left(name);
        if (!failed) {
            assert_int_equal(status, OK);
            break;
        }
        if (status == OK) {
            if (!is_silent(name)) fail_msg("%s failed, and nobody said so", name);
            continue;
        }
        if (status != expected_status(name, result) && strcmp(name, "cuCtxGetCurrent") != 0) {
            fail_msg("%s failed: status %d: %s", name, (int)status, wd_last_error());
        }
        if (strstr(wd_last_error(), name) != wd_last_error()) {
            fail_msg("%s failed, but: %s", name, wd_last_error());
        }
    }
    assert_true(n > 15 && n < 1000);
}

static void test_calls(void **state)
{
    (void)state;
    each_call_fails(whole_life, false, CUDA_ERROR_UNKNOWN);
    each_call_fails(whole_life, false, CUDA_ERROR_OUT_OF_MEMORY);
    each_call_fails(whole_life, false, CUDA_ERROR_DEINITIALIZED);
}

static void test_calls_in_capture(void **state)
{
    (void)state;
    each_call_fails(captured_life, true, CUDA_ERROR_UNKNOWN);
    each_call_fails(captured_life, true, CUDA_ERROR_OUT_OF_MEMORY);
}

static void each_allocation_fails(cudnnStatus_t (*life)(void), bool captured)
{
    cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR;
    uint64_t n;
    for (n = 1; n < 100 && status != OK; ++n) {
        gpu_kernels_reset();
        if (captured) open_scene(&scene);
        wd_alloc_fail_at(n);
        status = life();
        wd_alloc_fail_at(0);
        if (captured) close_scene(&scene);
        check_nothing_left("an allocation");
        if (status == OK) continue;
        assert_int_equal(status, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
        assert_non_null(strstr(wd_last_error(), "host memory"));
    }
    assert_int_equal(status, OK);
    assert_true(n > 3);
}

static void test_allocations(void **state)
{
    (void)state;
    each_allocation_fails(whole_life, false);
    each_allocation_fails(captured_life, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_calls_in_capture),
        cmocka_unit_test(test_allocations),
    };
    for (int i = 0; i < COUNT; ++i) values[i] = (float)i;
    fake_open();
    fake->cuInit(0);
    if (wd_gpu_probe(NULL) != WD_GPU_READY) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
