/* SPDX-License-Identifier: Apache-2.0
 *
 * What the probe answers in each state of a machine, each in a process of its own, for it looks once
 * a process. The library's kernels are a stand-in's, so that a build without CUDA is tested too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/status.h"
#include "gpu/gpu.h"
#include "support/fakecuda.h"

struct expectation {
    const char *variable, *value; /* of the environment */
    enum wd_gpu_state state;
    const char *text[3]; /* each must be in `why` */
};

static const struct expectation expectations[] = {
    {"FAKECUDA_DEVICES", "2", WD_GPU_READY, {"2 CUDA device"}},
    {"FAKECUDA_DEVICES", "0", WD_GPU_NONE, {"no device"}},
    {"FAKECUDA_INIT", "100", WD_GPU_NONE, {"no device", "CUDA_ERROR_NO_DEVICE"}},
    {"FAKECUDA_INIT", "34", WD_GPU_NONE, {"stub"}},
    {"FAKECUDA_INIT", "304", WD_GPU_UNUSABLE, {"cuInit", "CUDA_ERROR_OPERATING_SYSTEM", "304"}},
    {"FAKECUDA_INIT", "803", WD_GPU_UNUSABLE, {"different versions"}},
    {"FAKECUDA_INIT", "3", WD_GPU_UNUSABLE, {"forked", "spawn"}},
    {"FAKECUDA_VERSION", "11080", WD_GPU_UNUSABLE, {"CUDA 11.8", "needed", "or newer"}},
    {"FAKECUDA_VERSION", "13020", WD_GPU_READY, {""}},
    {"FAKECUDA_CAPABILITY", "75", WD_GPU_UNUSABLE, {"7.5", "needed is 8.0"}},
    {"FAKECUDA_CAPABILITY", "80", WD_GPU_READY, {""}},
    {"FAKECUDA_CAPABILITY", "120", WD_GPU_READY, {""}},
    {"WARPDNN_CUDA_DRIVER",
     "/nowhere/libcuda.so.1",
     WD_GPU_UNUSABLE,
     {"/nowhere", "cannot be opened"}},
    {"WARPDNN_CUDA_DRIVER",
     "libm.so.6",
     WD_GPU_UNUSABLE,
     {"libm.so.6", "not a CUDA driver", "cuInit"}},
};

static void in_state(void *data)
{
    const struct expectation *expected = data;
    const char *why = NULL;
    struct wd_queue *queue = NULL;
    setenv(expected->variable, expected->value, 1);
    fake_check(wd_gpu_probe(&why) == expected->state);
    for (int i = 0; i < 3 && expected->text[i]; ++i) fake_check(strstr(why, expected->text[i]));
    fake_check(wd_gpu_probe(NULL) == expected->state);
    if (expected->state == WD_GPU_READY) {
        fake_check(wd_gpu_queue_create(&queue) == CUDNN_STATUS_SUCCESS);
        wd_gpu_queue_destroy(queue);
    } else {
        fake_check(wd_gpu_queue_create(&queue) == CUDNN_STATUS_NOT_INITIALIZED);
        fake_check(queue == NULL);
        fake_check(strcmp(wd_last_error(), why) == 0);
    }
    fake_check(fake->fakecuda_report() == 0);
}

static void test_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; ++i) {
        assert_true(fake_in_child(in_state, (void *)&expectations[i]));
    }
}

/* Each driver call of the probe fails in turn: never ready, never a crash, the function named. */
static void with_fault(void *data)
{
    uint64_t n = *(uint64_t *)data;
    const char *why = NULL;
    enum wd_gpu_state state;
    fake->fakecuda_fail_at(n, CUDA_ERROR_UNKNOWN);
    state = wd_gpu_probe(&why);
    /* a lookup that fails is made up for by the exported name */
    if (!fake->fakecuda_failed() || !strcmp(fake->fakecuda_failed(), "cuGetProcAddress")) {
        fake_check(state == WD_GPU_READY);
        if (!fake->fakecuda_failed()) exit(3);
        return;
    }
    fake_check(state == WD_GPU_UNUSABLE);
    fake_check(strstr(why, fake->fakecuda_failed()) == why);
    fake_check(strstr(why, "CUDA_ERROR_UNKNOWN (999)"));
}

static void test_faults(void **state)
{
    uint64_t n = 0;
    int ended = 0;
    (void)state;
    while (!ended) {
        int status = 0;
        pid_t child;
        n += 1;
        assert_true(n < 500);
        fflush(NULL);
        child = fork();
        if (child == 0) {
            with_fault(&n);
            exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        ended = WEXITSTATUS(status) == 3;
        assert_true(ended || WEXITSTATUS(status) == 0);
    }
    assert_true(n > 20); /* so many calls at least were made to fail */
}

/* A child of a process that has found a GPU is refused; one of a process that has not is served. */
static void used_before_fork(void *data)
{
    int status = 0;
    pid_t child;
    (void)data;
    fake_check(wd_gpu_probe(NULL) == WD_GPU_READY);
    child = fork();
    if (child == 0) {
        const char *why = NULL;
        struct wd_queue *queue = NULL;
        fake_check(wd_gpu_probe(&why) == WD_GPU_UNUSABLE);
        fake_check(strstr(why, "forked"));
        fake_check(wd_gpu_queue_create(&queue) == CUDNN_STATUS_NOT_INITIALIZED);
        _exit(0);
    }
    fake_check(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    fake_check(wd_gpu_probe(NULL) == WD_GPU_READY);
}

static void test_fork(void **state)
{
    (void)state;
    assert_true(fake_in_child(used_before_fork, NULL));
}

static void current_context(void *data)
{
    CUcontext context;
    (void)data;
    fake_check(!wd_gpu_context_is_current());
    fake_check(fake->cuInit(0) == CUDA_SUCCESS);
    fake_check(!wd_gpu_context_is_current());
    fake_check(fake->cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS);
    fake_check(fake->cuCtxSetCurrent(context) == CUDA_SUCCESS);
    fake_check(wd_gpu_context_is_current());
    fake_check(fake->cuCtxSetCurrent(NULL) == CUDA_SUCCESS);
    fake_check(!wd_gpu_context_is_current());
    fake_check(fake->cuDevicePrimaryCtxRelease(1) == CUDA_SUCCESS);
    fake_check(fake->fakecuda_report() == 0);
}

static void test_current_context(void **state)
{
    (void)state;
    assert_true(fake_in_child(current_context, NULL));
}

/* Without a driver named and with none installed, or none in a build without kernels. */
static void no_driver(void *data)
{
    const char *why = NULL;
    (void)data;
    unsetenv("WARPDNN_CUDA_DRIVER");
    fake_check(!wd_gpu_context_is_current());
    fake_check(wd_gpu_owns_pointer(NULL, &why) == 0);
    if (wd_gpu_probe(&why) != WD_GPU_NONE) {
        fprintf(stderr, "a driver is installed here: %s\n", why);
        return;
    }
    fake_check(strstr(why, "there is no CUDA driver") || strstr(why, "built without CUDA") ||
               strstr(why, "finds no device"));
}

static void test_no_driver(void **state)
{
    (void)state;
    assert_true(fake_in_child(no_driver, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),    cmocka_unit_test(test_faults),
        cmocka_unit_test(test_fork),      cmocka_unit_test(test_current_context),
        cmocka_unit_test(test_no_driver),
    };
    fake_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
