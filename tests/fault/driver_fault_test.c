/* SPDX-License-Identifier: Apache-2.0
 *
 * Every legacy call on a GPU handle of the fake driver, with every driver call and every host
 * allocation failing in turn. Each take is a process of its own, so that kernels are loaded and
 * plans are made in it: the call that fails says so with a precise status and a text, nothing is
 * left behind, and asked again it does its work. What ran before the failing driver call may have
 * written to the outputs; nothing may where host memory ran out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "fault/calls.h"
#include "support/fakecuda.h"

enum { TAKES_MAX = 400, ALLOCATION = -1 };

/* What a child is told, and tells. */
static struct take {
    int number; /* of the row */
    int place;  /* which driver call or allocation fails, from 1 */
    int result; /* what the driver call answers; ALLOCATION: an allocation fails */
    bool was_reached;
    bool was_silent;
} * take;

static char text[1024]; /* the last error: reading it clears it */

/* What they give back is given back all the same, or nothing of the work depends on it. */
static bool is_silent(const char *function)
{
    static const char *const silent[] = {"cuCtxPopCurrent", "cuDevicePrimaryCtxRelease",
                                         "cuMemFree",       "cuThreadExchangeStreamCaptureMode",
                                         "cuCtxGetCurrent", "cuCtxPushCurrent"};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; ++i)
        if (!strcmp(function, silent[i])) return true;
    return false;
}

static void complain(const struct fault_call *call, const char *failed, cudnnStatus_t status,
                     const char *wrong)
{
    if (!*text) cudnnGetLastErrorString(text, sizeof text);
    fprintf(stderr, "%s, place %d (%s), answers %s: %s; last error: %s\n", call->name, take->place,
            failed, cudnnGetErrorString(status), wrong, text);
    fflush(NULL);
    _Exit(1);
}

static bool is_due(cudnnStatus_t status)
{
    switch (take->result) {
    case ALLOCATION: return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    default:
        return status == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER ||
               status == CUDNN_STATUS_NOT_INITIALIZED; /* of cudnnCreate */
    }
}

static void check_answer(const struct fault_call *call, struct scene *scene, const char *failed,
                         cudnnStatus_t status)
{
    cudnnGetLastErrorString(text, sizeof text);
    if (!is_due(status)) complain(call, failed, status, "another status is due");
    if (strncmp(text, "cudnn", 5) != 0 && strncmp(text, "warpdnn", 7) != 0) {
        complain(call, failed, status, "the text does not begin with a function");
    }
    if (!strstr(text, take->result == ALLOCATION ? "host memory" : failed)) {
        complain(call, failed, status, "the text does not say what failed");
    }
    if (take->result == ALLOCATION && !scene_untouched(scene)) {
        complain(call, failed, status, "an output was written to");
    }
}

static void play(void *data)
{
    const struct fault_call *call = fault_call_at(take->number);
    struct scene scene;
    unsigned char *first, *second;
    const char *wrong;
    char failed[64] = "an allocation";
    cudnnStatus_t status;
    (void)data;
    wrong = scene_open(&scene, take->number, 0);
    if (!wrong) wrong = scene_prepare(&scene, call);
    if (wrong) complain(call, "nothing", CUDNN_STATUS_SUCCESS, wrong);
    first = malloc(FAULT_OUTPUTS * scene.bytes);
    second = malloc(FAULT_OUTPUTS * scene.bytes);
    fake_check(first && second);

    if (take->result == ALLOCATION) wd_alloc_fail_at((uint64_t)take->place);
    else fake->fakecuda_fail_at((uint64_t)take->place, take->result);
    status = call->run(&scene);
    if (take->result == ALLOCATION) {
        take->was_reached = wd_alloc_fail_at(0) >= (uint64_t)take->place;
    } else {
        const char *name = fake->fakecuda_failed();
        take->was_reached = name != NULL;
        snprintf(failed, sizeof failed, "%s", name ? name : "nothing");
        fake->fakecuda_fail_at(0, 0);
    }
    if (status) check_answer(call, &scene, failed, status);
    take->was_silent = take->was_reached && !status;
    if (take->was_silent && !call->falls_back && !is_silent(failed)) {
        complain(call, failed, status, "nobody said so");
    }

    wrong = scene_read(&scene, first);
    if (!wrong) wrong = scene_prepare(&scene, call);
    if (!wrong && call->run(&scene)) wrong = "it fails a second time";
    if (!wrong) wrong = scene_read(&scene, second);
    if (wrong) complain(call, failed, status, wrong);
    if (!status && memcmp(first, second, FAULT_OUTPUTS * scene.bytes) != 0) {
        complain(call, failed, status, "a second run has other results");
    }
    wrong = scene_close(&scene);
    if (wrong) complain(call, failed, status, wrong);
    free(first);
    free(second);
    if (fake->fakecuda_report() != 0) complain(call, failed, status, "something is left behind");
}

static void each_place(int number, int result, long *failures)
{
    for (int place = 1; place < TAKES_MAX; ++place) {
        *take = (struct take){.number = number, .place = place, .result = result};
        if (!fake_in_child(play, NULL)) {
            fail_msg("%s, place %d", fault_call_at(number)->name, place);
        }
        if (!take->was_reached) return;
        *failures += 1;
    }
    fail_msg("%s has no end", fault_call_at(number)->name);
}

/* Quick runs, under sanitizers, take every fifth row. */
static void each_call(int result, const char *what)
{
    bool quick = getenv("WARPDNN_TEST_QUICK") != NULL;
    long failures = 0;
    int calls = 0;
    for (int i = 0; fault_call_at(i); ++i) {
        if (quick && i % 5 != 0) continue;
        each_place(i, result, &failures);
        calls += 1;
    }
    printf("%d calls: %ld times %s failed\n", calls, failures, what);
    assert_true(failures > 2 * calls);
}

static void test_driver_calls(void **state)
{
    (void)state;
    each_call(CUDA_ERROR_UNKNOWN, "a driver call");
}

static void test_device_memory(void **state)
{
    (void)state;
    each_call(CUDA_ERROR_OUT_OF_MEMORY, "a driver call for want of memory");
}

static void test_host_memory(void **state)
{
    (void)state;
    each_call(ALLOCATION, "an allocation");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver_calls),
        cmocka_unit_test(test_device_memory),
        cmocka_unit_test(test_host_memory),
    };
    take = mmap(NULL, sizeof *take, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (take == MAP_FAILED) return 1;
    setenv("WARPDNN_DEVICE", "gpu", 1);
    setenv("FAKECUDA_DEVICES", "1", 1);
    fake_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
