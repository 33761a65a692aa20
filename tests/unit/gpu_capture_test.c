/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch and captures on the fake driver: what is shared, what never is, who owns it and when it
 * goes. Most executions go through scratch in three pieces, and the fake driver lets streams and
 * graphs take turns piece by piece, so that scratch which is shared wrongly gives wrong values. */
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

enum { COUNT = 500, ARRAYS = 8 };

static const cudnnStatus_t OK = CUDNN_STATUS_SUCCESS;

/* A handle on device 0's primary context, kept current, with device arrays. */
static struct wd_queue *queue;
static CUcontext context;
static float *x[ARRAYS], *y[ARRAYS];

static int start(void **state)
{
    float values[COUNT];
    (void)state;
    fake->fakecuda_reset();
    gpu_kernels_reset();
    if (fake->cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return -1;
    fake->cuCtxSetCurrent(context);
    if (wd_gpu_queue_create(&queue) != OK) return -1;
    for (int k = 0; k < ARRAYS; ++k) {
        for (int i = 0; i < COUNT; ++i) values[i] = (float)(i + 1000 * k);
        if (wd_gpu_malloc(queue, sizeof values, (void **)&x[k]) != OK) return -1;
        if (wd_gpu_malloc(queue, sizeof values, (void **)&y[k]) != OK) return -1;
        if (wd_gpu_copy(queue, x[k], values, sizeof values) != OK) return -1;
    }
    return 0;
}

static int finish(void **state)
{
    (void)state;
    fake->fakecuda_set_deferred(0);
    for (int k = 0; k < ARRAYS; ++k) {
        fake->cuMemFree((CUdeviceptr)(uintptr_t)x[k]);
        fake->cuMemFree((CUdeviceptr)(uintptr_t)y[k]);
    }
    wd_gpu_queue_destroy(queue);
    fake->cuCtxSetCurrent(NULL);
    fake->cuDevicePrimaryCtxRelease(0);
    if (fake->fakecuda_report() != 0) return -1;
    if (wd_alloc_bytes() == 0 && wd_gpu_scratch_bytes() == 0) return 0;
    fprintf(stderr, "%llu bytes of host memory and %llu of scratch are left\n",
            (unsigned long long)wd_alloc_bytes(), (unsigned long long)wd_gpu_scratch_bytes());
    return -1;
}

static void clear_y(void)
{
    for (int k = 0; k < ARRAYS; ++k) memset(y[k], 0, COUNT * sizeof *y[k]);
}

static void check_y(int k)
{
    for (int i = 0; i < COUNT; ++i) {
        float expected = 2.0f * (float)(i + 1000 * k) + 3.0f;
        if (y[k][i] != expected) fail_msg("y[%d][%d] is %g, not %g", k, i, y[k][i], expected);
    }
}

static CUstream new_stream(void)
{
    CUstream stream = NULL;
    assert_int_equal(fake->cuStreamCreate(&stream, FAKECUDA_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
}

static void run_on(CUstream stream, int k)
{
    assert_int_equal(wd_gpu_queue_set_stream(queue, stream), OK);
    assert_int_equal(run_through_scratch(queue, y[k], x[k], COUNT), OK);
}

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

/* One stream reuses its arena; two never share, even where both have work waiting. */
static void test_two_streams(void **state)
{
    CUstream a = new_stream(), b = new_stream();
    void *at_a;
    (void)state;
    fake->fakecuda_set_deferred(1);
    clear_y();
    run_on(a, 0);
    at_a = through_scratch_at;
    run_on(b, 1);
    assert_ptr_not_equal(through_scratch_at, at_a);
    run_on(a, 2);
    assert_ptr_equal(through_scratch_at, at_a);
    run_on(b, 3);
    run_on(NULL, 4);
    assert_ptr_not_equal(through_scratch_at, at_a);
    assert_int_equal(fake->cuCtxSynchronize(), CUDA_SUCCESS);
    for (int k = 0; k < 5; ++k) check_y(k);
    assert_int_equal(wd_gpu_scratch_bytes(), 3 << 20);
    fake->cuStreamDestroy_v2(a);
    fake->cuStreamDestroy_v2(b);
}

/* A stream that takes the address of a destroyed one, whose work still waits. */
static void test_stream_address_reused(void **state)
{
    CUstream a = new_stream(), b;
    void *at_a;
    (void)state;
    fake->fakecuda_set_deferred(1);
    clear_y();
    run_on(a, 0);
    at_a = through_scratch_at;
    fake->cuStreamDestroy_v2(a);
    b = new_stream();
    assert_ptr_equal(a, b);
    run_on(b, 1);
    assert_ptr_not_equal(through_scratch_at, at_a);
    fake->cuCtxSynchronize();
    check_y(0);
    check_y(1);
    fake->cuStreamDestroy_v2(b);
}

/* Two executions of two handles that interleave on one stream. */
static void test_interleaved_on_one_stream(void **state)
{
    struct wd_queue *other = NULL;
    void *first = NULL, *second = NULL, *third = NULL;
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&other), OK);
    for (int round = 0; round < 3; ++round) { /* with new arenas and with old ones */
        assert_int_equal(queue->ops->begin(queue), OK);
        assert_int_equal(queue->ops->scratch(queue, 1000, &first), OK);
        assert_int_equal(other->ops->begin(other), OK);
        assert_int_equal(other->ops->scratch(other, 1000, &second), OK);
        assert_ptr_not_equal(first, second);
        queue->ops->end(queue);
        assert_int_equal(queue->ops->begin(queue), OK);
        assert_int_equal(queue->ops->scratch(queue, 100000, &first), OK);
        /* apart from what the other still holds */
        assert_true((char *)first + 100000 <= (char *)second ||
                    (char *)second + 1000 <= (char *)first);
        queue->ops->end(queue);
        other->ops->end(other);
    }
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(queue->ops->scratch(queue, 1000, &third), OK);
    assert_true(third == first || third == second); /* memory is used again */
    queue->ops->end(queue);
    assert_int_equal(wd_gpu_scratch_bytes(), 2 << 20);
    wd_gpu_queue_destroy(other);
}

/* Counters are zeros, also when they are first asked for in a capture, and no two of what may run at
 * the same time have the same. */
static void test_counters(void **state)
{
    CUstream a = new_stream(), b = new_stream();
    CUgraph graph = NULL;
    uint32_t *counters[4] = {NULL};
    void *scratch = NULL;
    (void)state;
    for (int i = 0; i < 4; ++i) {
        CUstream stream = i % 2 ? b : a;
        assert_int_equal(wd_gpu_queue_set_stream(queue, (cudaStream_t)stream), OK);
        if (i == 3) {
            assert_int_equal(fake->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                             0);
        }
        assert_int_equal(queue->ops->begin(queue), OK);
        if (i == 1) assert_int_equal(queue->ops->scratch(queue, 1 << 20, &scratch), OK);
        assert_int_equal(queue->ops->counters(queue, (void **)&counters[i]), OK);
        if (i == 1) assert_ptr_equal(counters[i], (char *)scratch + (1 << 20));
        queue->ops->end(queue);
        for (int w = 0; w < WD_COUNTERS_BYTES / 4; ++w) assert_int_equal(counters[i][w] << 1, 0);
        counters[i][5] = (uint32_t)1 << 31;
    }
    assert_int_equal(fake->cuStreamEndCapture(b, &graph), CUDA_SUCCESS);
    assert_int_equal(fake->cuGraphDestroy(graph), CUDA_SUCCESS);
    assert_ptr_equal(counters[2], counters[0]);
    assert_int_equal(counters[0][5], (uint32_t)1 << 31);
    assert_ptr_not_equal(counters[1], counters[0]);
    assert_ptr_not_equal(counters[3], counters[0]);
    assert_ptr_not_equal(counters[3], counters[1]);
    assert_int_equal(wd_gpu_queue_set_stream(queue, NULL), OK);
    fake->cuStreamDestroy_v2(a);
    fake->cuStreamDestroy_v2(b);
}

static void test_limits(void **state)
{
    enum { MIB = 1 << 20 };
    char *data[8];
    void *more = NULL;
    (void)state;
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(queue->ops->scratch(queue, 8 * MIB + 1, &more),
                     CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    assert_non_null(strstr(wd_last_error(), "8388609"));
    assert_non_null(strstr(wd_last_error(), "8388608"));
    assert_int_equal(queue->ops->scratch(queue, SIZE_MAX, &more),
                     CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    for (int i = 0; i < 8; ++i) {
        assert_int_equal(queue->ops->scratch(queue, MIB - 100, (void **)&data[i]), OK);
        assert_int_equal((uintptr_t)data[i] % 256, 0);
        memset(data[i], i, MIB - 100);
    }
    assert_int_equal(queue->ops->scratch(queue, 1, &more),
                     CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    for (int i = 0; i < 8; ++i) {
        assert_int_equal(data[i][0], i);
        assert_int_equal(data[i][MIB - 101], i);
    }
    queue->ops->end(queue);
    /* the next execution starts anew */
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(queue->ops->scratch(queue, 8 * MIB, &more), OK);
    memset(more, 1, 8 * MIB);
    queue->ops->end(queue);
}

/* Streams that come and go leave bounded memory behind. */
static void test_many_streams(void **state)
{
    uint64_t most = 0;
    (void)state;
    for (int i = 0; i < 300; ++i) {
        CUstream stream = new_stream();
        run_on(stream, 0);
        check_y(0);
        fake->cuStreamDestroy_v2(stream);
        if (wd_gpu_scratch_bytes() > most) most = wd_gpu_scratch_bytes();
    }
    assert_int_equal(most, (uint64_t)256 << 20);
}

/* Streams that stay keep what they have: no call of theirs allocates. */
static void test_streams_in_turn(void **state)
{
    enum { STREAMS = 100 };
    CUstream streams[STREAMS];
    uint64_t made;
    (void)state;
    for (int i = 0; i < STREAMS; ++i) streams[i] = new_stream();
    for (int i = 0; i < STREAMS; ++i) run_on(streams[i], 0);
    made = fake->fakecuda_calls("cuMemAlloc");
    assert_true(made >= STREAMS);
    for (int round = 0; round < 3; ++round)
        for (int i = 0; i < STREAMS; ++i) run_on(streams[i], 0);
    assert_int_equal(fake->fakecuda_calls("cuMemAlloc"), made);
    assert_int_equal(wd_gpu_scratch_bytes(), (uint64_t)STREAMS << 20);
    for (int i = 0; i < STREAMS; ++i) fake->cuStreamDestroy_v2(streams[i]);
}

/* Large arenas give way too, as many as it takes. */
static void test_large_arenas(void **state)
{
    enum { MIB = 1 << 20 };
    void *data = NULL;
    (void)state;
    for (int i = 0; i < 256; ++i) {
        CUstream stream = new_stream();
        run_on(stream, 0);
        fake->cuStreamDestroy_v2(stream);
    }
    assert_int_equal(wd_gpu_scratch_bytes(), (uint64_t)256 << 20);
    assert_int_equal(wd_gpu_queue_set_stream(queue, NULL), OK);
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(queue->ops->scratch(queue, 8 * MIB, &data), OK);
    memset(data, 1, 8 * MIB);
    queue->ops->end(queue);
    assert_int_equal(wd_gpu_scratch_bytes(), (uint64_t)256 << 20);
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
        cmocka_unit_test_setup_teardown(test_two_streams, start, finish),
        cmocka_unit_test_setup_teardown(test_stream_address_reused, start, finish),
        cmocka_unit_test_setup_teardown(test_interleaved_on_one_stream, start, finish),
        cmocka_unit_test_setup_teardown(test_limits, start, finish),
        cmocka_unit_test_setup_teardown(test_counters, start, finish),
        cmocka_unit_test_setup_teardown(test_many_streams, start, finish),
        cmocka_unit_test_setup_teardown(test_streams_in_turn, start, finish),
        cmocka_unit_test_setup_teardown(test_large_arenas, start, finish),
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
