/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch of captures on the fake driver: what is shared, what never is, who owns it and when it goes.
 * Scratch of streams: gpu_scratch_test.c. */
#include "gpu_arrays.h"

/* Captures executions 'first' .. 'last' on a stream and makes an instance of the graph. */
static CUgraphExec capture(CUstream stream, int first, int last)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    assert_int_equal(fake->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    for (int k = first; k <= last; ++k) run_on(stream, k);
    assert_int_equal(fake->cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    assert_int_equal(fake->cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    assert_int_equal(fake->cuGraphDestroy(graph), CUDA_SUCCESS);
    return exec;
}

/* Two captured graphs, replayed at once; each owns its scratch. */
static void test_two_graphs(void **state)
{
    CUstream stream = new_stream();
    CUgraphExec a = capture(stream, 0, 1);
    CUgraphExec b = capture(stream, 2, 3);
    (void)state;
    assert_int_equal(wd_gpu_scratch_bytes(), 2 << 20);
    for (int round = 0; round < 3; ++round) {
        clear_y();
        fake->fakecuda_run_together(a, b);
        for (int k = 0; k < 4; ++k) check_y(k);
    }
    /* and while the stream itself works */
    fake->fakecuda_set_deferred(1);
    clear_y();
    run_on(stream, 4);
    fake->cuGraphLaunch(a, NULL);
    fake->cuGraphLaunch(b, (CUstream)2);
    fake->cuCtxSynchronize();
    for (int k = 0; k < 5; ++k) check_y(k);
    assert_int_equal(wd_gpu_scratch_bytes(), 3 << 20);
    fake->cuGraphExecDestroy(a);
    fake->cuGraphExecDestroy(b);
    fake->cuStreamDestroy_v2(stream);
}

/* Two branches of one capture run at once too. */
static void test_branches(void **state)
{
    CUstream a = new_stream(), b = new_stream();
    CUevent fork_event, join_event;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    void *at_a;
    (void)state;
    fake->cuEventCreate(&fork_event, 0);
    fake->cuEventCreate(&join_event, 0);
    assert_int_equal(fake->cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    run_on(a, 0);
    at_a = through_scratch_at;
    fake->cuEventRecord(fork_event, a);
    fake->cuStreamWaitEvent(b, fork_event, 0);
    run_on(b, 1);
    assert_ptr_not_equal(through_scratch_at, at_a);
    run_on(a, 2);
    assert_ptr_equal(through_scratch_at, at_a);
    fake->cuEventRecord(join_event, b);
    fake->cuStreamWaitEvent(a, join_event, 0);
    run_on(a, 3);
    assert_ptr_equal(through_scratch_at, at_a);
    assert_int_equal(fake->cuStreamEndCapture(a, &graph), CUDA_SUCCESS);
    fake->cuGraphInstantiateWithFlags(&exec, graph, 0);
    clear_y();
    fake->cuGraphLaunch(exec, NULL);
    for (int k = 0; k < 4; ++k) check_y(k);
    fake->cuGraphExecDestroy(exec);
    fake->cuGraphDestroy(graph);
    fake->cuEventDestroy_v2(fork_event);
    fake->cuEventDestroy_v2(join_event);
    fake->cuStreamDestroy_v2(a);
    fake->cuStreamDestroy_v2(b);
}

/* The handle goes before the graph is replayed; the graph's scratch stays until the graph goes, and
 * comes back to the next handle. */
static void test_handle_destroyed_first(void **state)
{
    CUstream stream = new_stream();
    CUgraphExec exec = capture(stream, 0, 2);
    size_t before;
    (void)state;
    wd_gpu_queue_destroy(queue);
    before = fake->fakecuda_bytes();
    clear_y();
    fake->cuGraphLaunch(exec, stream);
    fake->cuGraphLaunch(exec, stream);
    for (int k = 0; k < 3; ++k) check_y(k);
    fake->cuGraphExecDestroy(exec);
    assert_int_equal(fake->fakecuda_bytes(), before); /* the destructor frees nothing itself */
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    run_on(stream, 5);
    check_y(5);
    assert_int_equal(fake->fakecuda_bytes(), before); /* it was used again */
    fake->cuStreamDestroy_v2(stream);
    assert_int_equal(wd_gpu_queue_set_stream(queue, NULL), OK);
}

/* Graph, instances and clones share the scratch; the last one frees it. */
static void test_last_instance(void **state)
{
    CUstream stream = new_stream();
    CUgraph graph = NULL;
    CUgraphExec exec[2];
    void *scratch;
    (void)state;
    fake->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    run_on(stream, 0);
    scratch = through_scratch_at;
    fake->cuStreamEndCapture(stream, &graph);
    fake->cuGraphInstantiateWithFlags(&exec[0], graph, 0);
    fake->cuGraphInstantiateWithFlags(&exec[1], graph, 0);
    fake->cuGraphDestroy(graph);
    fake->cuGraphExecDestroy(exec[0]);
    run_on(stream, 1);
    assert_ptr_not_equal(through_scratch_at, scratch);
    clear_y();
    fake->cuGraphLaunch(exec[1], stream);
    check_y(0);
    fake->cuGraphExecDestroy(exec[1]);
    fake->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    run_on(stream, 2);
    assert_ptr_equal(through_scratch_at, scratch); /* free again, and clean for a graph */
    fake->cuStreamEndCapture(stream, &graph);
    fake->cuGraphDestroy(graph);
    assert_int_equal(wd_gpu_scratch_bytes(), 2 << 20);
    fake->cuStreamDestroy_v2(stream);
    assert_int_equal(wd_gpu_queue_set_stream(queue, NULL), OK);
}

/* A capture that somebody invalidates between executions: an error, no leak, and the stream goes on
 * afterwards. */
static void test_invalidated(void **state)
{
    CUstream stream = new_stream();
    CUgraph graph = NULL;
    CUdeviceptr unsafe;
    (void)state;
    fake->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    run_on(stream, 0);
    assert_int_equal(fake->cuMemAlloc(&unsafe, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(run_through_scratch(queue, y[1], x[1], COUNT),
                     CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(), "invalidated"));
    assert_int_equal(run_line(queue, y[1], x[1], COUNT), CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
    fake->cuStreamEndCapture(stream, &graph);
    fake->fakecuda_reset(); /* the unsafe call was meant */
    run_on(stream, 2);
    check_y(2);
    fake->cuStreamDestroy_v2(stream);
    assert_int_equal(wd_gpu_queue_set_stream(queue, NULL), OK);
}

/* The legacy stream cannot work while a stream captures that it waits for. */
static void test_legacy_during_capture(void **state)
{
    CUstream stream = NULL;
    CUgraph graph = NULL;
    (void)state;
    fake->cuStreamCreate(&stream, 0);
    fake->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(run_through_scratch(queue, y[0], x[0], COUNT),
                     CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(),
                           "cuStreamGetCaptureInfo: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT (906)"));
    assert_int_equal(wd_gpu_queue_set_stream(queue, NULL), OK);
    fake->cuStreamEndCapture(stream, &graph);
    fake->cuStreamDestroy_v2(stream);
}

/* The library's very first call happens while a stream captures, in every mode of capture. */
static void first_call(void *data)
{
    CUstreamCaptureMode mode = *(int *)data;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUdeviceptr in, out;
    const size_t bytes = COUNT * sizeof(float);
    float *from, *to;
    fake_check(fake->cuInit(0) == CUDA_SUCCESS);
    fake_check(fake->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    fake->cuCtxSetCurrent(context);
    fake_check(fake->cuMemAlloc(&in, bytes) == CUDA_SUCCESS);
    fake_check(fake->cuMemAlloc(&out, bytes) == CUDA_SUCCESS);
    from = (float *)(uintptr_t)in;
    to = (float *)(uintptr_t)out;
    for (int i = 0; i < COUNT; ++i) from[i] = (float)i;
    fake->cuStreamCreate(&stream, 0);
    fake_check(fake->cuStreamBeginCapture_v2(stream, mode) == CUDA_SUCCESS);
    gpu_kernels_reset();
    fake_check(wd_gpu_probe(NULL) == WD_GPU_READY);
    fake_check(wd_gpu_queue_create(&queue) == OK);
    fake_check(wd_gpu_queue_set_stream(queue, stream) == OK);
    fake_check(run_through_scratch(queue, to, from, COUNT) == OK);
    wd_gpu_queue_destroy(queue);
    fake_check(fake->cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    fake_check(to[0] != to[0]);
    fake_check(fake->cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    fake_check(fake->cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
    for (int i = 0; i < COUNT; ++i) fake_check(to[i] == 2.0f * (float)i + 3.0f);
    fake->cuGraphExecDestroy(exec);
    fake->cuGraphDestroy(graph);
    fake->cuStreamDestroy_v2(stream);
    fake->cuMemFree(in);
    fake->cuMemFree(out);
    fake_check(wd_gpu_queue_create(&queue) == OK); /* brings the graph's scratch home */
    wd_gpu_queue_destroy(queue);
    fake->cuCtxSetCurrent(NULL);
    fake->cuDevicePrimaryCtxRelease(0);
    fake_check(fake->fakecuda_report() == 0);
    fake_check(wd_gpu_scratch_bytes() == 0);
}

static int first_call_failed;

static void test_first_call(void **state)
{
    (void)state;
    assert_int_equal(first_call_failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_call),
        cmocka_unit_test_setup_teardown(test_two_graphs, start, finish),
        cmocka_unit_test_setup_teardown(test_branches, start, finish),
        cmocka_unit_test_setup_teardown(test_handle_destroyed_first, start, finish),
        cmocka_unit_test_setup_teardown(test_last_instance, start, finish),
        cmocka_unit_test_setup_teardown(test_invalidated, start, finish),
        cmocka_unit_test_setup_teardown(test_legacy_during_capture, start, finish),
    };
    fake_open();
    for (int mode = 0; mode < 3; ++mode) first_call_failed += !fake_in_child(first_call, &mode);
    fake->cuInit(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
