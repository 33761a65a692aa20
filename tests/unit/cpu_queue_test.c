/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU queue's scratch: what an execution was given stays its own until its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "cpu/cpu.h"

static bool all(const char *data, char byte, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i)
        if (data[i] != byte) return false;
    return true;
}

static void test_scratch(void **state)
{
    static const size_t sizes[] = {100, 5000, 1, 300000, 64};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    struct wd_queue *queue = NULL;
    uint64_t empty, after = 0;
    (void)state;
    assert_int_equal(wd_cpu_queue_create(&queue), 0);
    empty = wd_alloc_bytes();
    for (int round = 0; round < 4; ++round) {
        char *data[COUNT];
        assert_int_equal(queue->ops->begin(queue), 0);
        for (int i = 0; i < COUNT; ++i) {
            assert_int_equal(queue->ops->scratch(queue, sizes[i], (void **)&data[i]), 0);
            assert_int_equal((uintptr_t)data[i] % 256, 0);
            memset(data[i], i + 1, sizes[i]);
        }
        for (int i = 0; i < COUNT; ++i) assert_true(all(data[i], (char)(i + 1), sizes[i]));
        queue->ops->end(queue);
        /* one block remains, and serves all of the next execution */
        if (round == 1) after = wd_alloc_bytes();
        if (round > 1) assert_int_equal(wd_alloc_bytes(), after);
    }
    assert_true(after > empty + 300000 && after < empty + 2 * 300000);
    wd_cpu_queue_destroy(queue);
}

static void test_refusal(void **state)
{
    struct wd_queue *queue = NULL;
    void *data = NULL, *more = NULL;
    (void)state;
    assert_int_equal(wd_cpu_queue_create(&queue), 0);
    assert_int_equal(queue->ops->begin(queue), 0);
    assert_int_equal(queue->ops->scratch(queue, 1000, &data), 0);
    memset(data, 7, 1000);
    assert_int_equal(queue->ops->scratch(queue, SIZE_MAX - 1, &more),
                     CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    assert_true(all(data, 7, 1000));
    queue->ops->end(queue);
    wd_cpu_queue_destroy(queue);
    assert_int_equal(wd_alloc_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
