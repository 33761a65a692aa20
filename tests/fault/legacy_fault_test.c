/* SPDX-License-Identifier: Apache-2.0
 *
 * Every legacy call on a CPU handle with every host allocation failing in turn: it says that host
 * memory ran out, leaves its outputs alone, leaves nothing behind, and does its work when asked
 * again. A call that succeeds without that memory has done all of its work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "fault/calls.h"
#include "plan/plan.h"

enum { TAKES_MAX = 60 };

struct counts {
    long calls, failures, fallbacks;
};

static void expect(const struct fault_call *call, int take, const char *wrong)
{
    if (wrong) fail_msg("%s, allocation %d: %s", call->name, take, wrong);
}

static void check_answer(const struct fault_call *call, int take, cudnnStatus_t status)
{
    char text[1024] = "";
    cudnnGetLastErrorString(text, sizeof text);
    if (status != CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) {
        fail_msg("%s, allocation %d: %s: %s", call->name, take, cudnnGetErrorString(status), text);
    }
    if (!strstr(text, "no host memory")) expect(call, take, "the text says nothing of memory");
    if (strncmp(text, "cudnn", 5) != 0 && strncmp(text, "warpdnn", 7) != 0) {
        fail_msg("%s, allocation %d: the text does not begin with a function: %s", call->name, take,
                 text);
    }
}

/* One take: the call with allocation `take` failing, and once more with none. Answers the status of
 * the first; `kept` is what the library still holds afterwards. */
static cudnnStatus_t play(const struct fault_call *call, int number, int take, bool *was_reached,
                          int64_t *kept)
{
    struct scene scene;
    int64_t before;
    cudnnStatus_t status;
    uint64_t made;
    unsigned char *first, *second;
    wd_plan_cache_clear();
    before = (int64_t)wd_alloc_bytes();
    expect(call, take, scene_open(&scene, number, take));
    first = malloc(FAULT_OUTPUTS * scene.bytes);
    second = malloc(FAULT_OUTPUTS * scene.bytes);
    assert_true(first && second);
    expect(call, take, scene_prepare(&scene, call));
    wd_alloc_fail_at((uint64_t)take);
    status = call->run(&scene);
    made = wd_alloc_fail_at(0);
    *was_reached = take > 0 && made >= (uint64_t)take;
    if (status) {
        check_answer(call, take, status);
        if (!scene_untouched(&scene)) expect(call, take, "it failed and wrote to an output");
    }
    expect(call, take, scene_read(&scene, first));
    expect(call, take, scene_prepare(&scene, call));
    if (call->run(&scene) != CUDNN_STATUS_SUCCESS) expect(call, take, "it fails a second time");
    expect(call, take, scene_read(&scene, second));
    if (!status && memcmp(first, second, FAULT_OUTPUTS * scene.bytes) != 0) {
        expect(call, take, "it succeeded, but a second run has other results");
    }
    expect(call, take, scene_close(&scene));
    free(first);
    free(second);
    *kept = (int64_t)wd_alloc_bytes() - before;
    return status;
}

/* What a take leaves behind are its plans, in a cache that had none: as much as a take without failures. */
static void each_allocation(int number, struct counts *counts)
{
    const struct fault_call *call = fault_call_at(number);
    int64_t plans, kept;
    bool was_reached = true;
    int take;
    assert_int_equal(play(call, number, 0, &was_reached, &plans), CUDNN_STATUS_SUCCESS);
    for (take = 1, was_reached = true; was_reached && take < TAKES_MAX; ++take) {
        cudnnStatus_t status = play(call, number, take, &was_reached, &kept);
        if (kept != plans) {
            fail_msg("%s, allocation %d: %d bytes are kept, not %d", call->name, take, (int)kept,
                     (int)plans);
        }
        if (!was_reached) assert_int_equal(status, CUDNN_STATUS_SUCCESS);
        else if (status) counts->failures += 1;
        else if (call->falls_back) counts->fallbacks += 1;
        else fail_msg("%s, allocation %d failed: nobody said so", call->name, take);
    }
    assert_true(take < TAKES_MAX);
    counts->calls += 1;
}

static void play_rows(const struct fault_calls *list, int least)
{
    struct counts counts = {0, 0, 0};
    int number = 0;
    while (fault_call_at(number) != &list->rows[0]) number += 1;
    for (int i = 0; i < list->count; ++i) each_allocation(number + i, &counts);
    printf("%ld calls: %ld allocations failed, %ld of them without harm\n", counts.calls,
           counts.failures + counts.fallbacks, counts.fallbacks);
    assert_true(counts.failures >= least);
}

static void test_descriptors(void **state)
{
    (void)state;
    play_rows(&fault_descriptor_calls, fault_descriptor_calls.count);
}

static void test_convolution(void **state)
{
    (void)state;
    play_rows(&fault_conv_calls, 4 * fault_conv_calls.count);
}

static void test_norm(void **state)
{
    (void)state;
    play_rows(&fault_norm_calls, 4 * fault_norm_calls.count);
}

static void test_image(void **state)
{
    (void)state;
    play_rows(&fault_image_calls, 4 * fault_image_calls.count);
}

static void test_elementwise(void **state)
{
    (void)state;
    play_rows(&fault_elementwise_calls, 3 * fault_elementwise_calls.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors), cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_norm),        cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_image),
    };
    setenv("WARPDNN_DEVICE", "cpu", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
