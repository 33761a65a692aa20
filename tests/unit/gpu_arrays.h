/* SPDX-License-Identifier: Apache-2.0
 *
 * A handle of the fake driver with arrays, and executions that go through scratch in three pieces: the
 * fake driver lets streams and graphs take turns piece by piece, so that scratch which is shared wrongly
 * gives wrong values. */
#ifndef WD_TESTS_UNIT_GPU_ARRAYS_H
#define WD_TESTS_UNIT_GPU_ARRAYS_H

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

static inline int start(void **state)
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

static inline int finish(void **state)
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

static inline void clear_y(void)
{
    for (int k = 0; k < ARRAYS; ++k) memset(y[k], 0, COUNT * sizeof *y[k]);
}

static inline void check_y(int k)
{
    for (int i = 0; i < COUNT; ++i) {
        float expected = 2.0f * (float)(i + 1000 * k) + 3.0f;
        if (y[k][i] != expected) fail_msg("y[%d][%d] is %g, not %g", k, i, y[k][i], expected);
    }
}

static inline CUstream new_stream(void)
{
    CUstream stream = NULL;
    assert_int_equal(fake->cuStreamCreate(&stream, FAKECUDA_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
}

static inline void run_on(CUstream stream, int k)
{
    assert_int_equal(wd_gpu_queue_set_stream(queue, stream), OK);
    assert_int_equal(run_through_scratch(queue, y[k], x[k], COUNT), OK);
}

#endif
