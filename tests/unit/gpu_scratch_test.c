/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch of streams on the fake driver: what is shared, what never is, what is bounded and what is
 * zeroed. Scratch of captures: gpu_capture_test.c. */
#include "base/board.h"
#include "gpu_arrays.h"

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
        for (int w = 0; w < WD_BOARD_BYTES / 4; ++w) {
            assert_int_equal(counters[i][WD_COUNTERS_BYTES / 4 + w], 0);
        }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_streams, start, finish),
        cmocka_unit_test_setup_teardown(test_stream_address_reused, start, finish),
        cmocka_unit_test_setup_teardown(test_interleaved_on_one_stream, start, finish),
        cmocka_unit_test_setup_teardown(test_limits, start, finish),
        cmocka_unit_test_setup_teardown(test_counters, start, finish),
        cmocka_unit_test_setup_teardown(test_many_streams, start, finish),
        cmocka_unit_test_setup_teardown(test_streams_in_turn, start, finish),
        cmocka_unit_test_setup_teardown(test_large_arenas, start, finish),
    };
    fake_open();
    fake->cuInit(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
