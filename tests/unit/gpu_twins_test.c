/* SPDX-License-Identifier: Apache-2.0
 *
 * Definitions through the GPU's host side: a small one of the test's own is emitted to a stream
 * queue and run by its twins, and every family's kernels are known to the fake driver. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "gpu/gpu.h"
#include "support/fakecuda.h"

struct twin_args {
    double *y;
    const double *x;
    int64_t terms;
};

/* where a real module's images would be: none, so the end is the beginning */
extern const unsigned char wd_images_gpu_twins[];
const unsigned char wd_images_gpu_twins[1] = {0};
extern const unsigned char wd_images_gpu_twins_end[1] __attribute__((alias("wd_images_gpu_twins")));

#define WD_DEF_MODULE gpu_twins
#define WD_DEF_BODY "unit/gpu_twins_def.h"
#define WD_DEF_PASSES "unit/gpu_twins_passes.def"
extern const struct wd_pass wd_pass_twin_map, wd_pass_twin_sum;
#include "ops/definition_host.inc"

static const cudnnStatus_t OK = CUDNN_STATUS_SUCCESS;

static double *device_doubles(struct wd_queue *queue, int64_t count)
{
    double *data = NULL;
    assert_int_equal(wd_gpu_malloc(queue, (size_t)count * sizeof *data, (void **)&data), OK);
    return data;
}

static void run_map(struct wd_queue *queue, enum wd_acc acc, int64_t items)
{
    struct twin_args args = {device_doubles(queue, items), device_doubles(queue, items), 0};
    double *x = (double *)args.x;
    for (int64_t i = 0; i < items; ++i) x[i] = (double)i;
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(wd_emit_map(queue, &wd_pass_twin_map, acc, &args, items), OK);
    queue->ops->end(queue);
    for (int64_t i = 0; i < items; ++i) assert_true(args.y[i] == 2.0 * (double)i + 1.0);
    wd_gpu_free(queue, args.y);
    wd_gpu_free(queue, x);
}

/* Rows of small integers, whose sums are exact in both accumulators. */
static void run_reduce(struct wd_queue *queue, enum wd_acc acc, int64_t items, int64_t terms)
{
    struct twin_args args = {device_doubles(queue, 2 * items), device_doubles(queue, items * terms),
                             terms};
    double *x = (double *)args.x;
    int64_t bytes = wd_pass_scratch(&wd_pass_twin_sum, acc, items, terms);
    void *scratch = NULL;
    uint64_t launches;
    for (int64_t i = 0; i < items * terms; ++i) x[i] = (double)(i % 7);
    fake->fakecuda_launches();
    assert_int_equal(queue->ops->begin(queue), OK);
    if (bytes > 0) assert_int_equal(queue->ops->scratch(queue, (size_t)bytes, &scratch), OK);
    assert_int_equal(wd_emit_reduce(queue, &wd_pass_twin_sum, acc, &args, items, terms, scratch),
                     OK);
    queue->ops->end(queue);
    launches = fake->fakecuda_launches();
    assert_int_equal(launches, bytes > 0 ? 2 : 1);
    for (int64_t i = 0; i < items; ++i) {
        double sum = 0, largest = 0;
        for (int64_t k = 0; k < terms; ++k) {
            double value = x[i * terms + k];
            sum += value;
            if (value > largest) largest = value;
        }
        assert_true(args.y[2 * i] == sum);
        assert_true(args.y[2 * i + 1] == largest);
    }
    wd_gpu_free(queue, args.y);
    wd_gpu_free(queue, x);
}

static void test_passes(void **state)
{
    struct wd_queue *queue = NULL;
    (void)state;
    fake->fakecuda_register_pass(&wd_pass_twin_map);
    fake->fakecuda_register_pass(&wd_pass_twin_sum);
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    for (int acc = WD_ACC_F32; acc <= WD_ACC_F64; ++acc) {
        run_map(queue, (enum wd_acc)acc, 1);
        run_map(queue, (enum wd_acc)acc, 1000);
        run_reduce(queue, (enum wd_acc)acc, 1, 1);
        run_reduce(queue, (enum wd_acc)acc, 13, 17);
        run_reduce(queue, (enum wd_acc)acc, 300, 1025);
        run_reduce(queue, (enum wd_acc)acc, 3, 100000); /* in segments */
    }
    wd_gpu_queue_destroy(queue);
    assert_int_equal(fake->fakecuda_report(), 0);
}

/* A kernel that nobody registered is not found: a twin cannot be forgotten in silence. */
static void test_unregistered(void **state)
{
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    (void)state;
    assert_int_equal(fake->cuLibraryLoadData(&library, "x", NULL, NULL, 0, NULL, NULL, 0), 0);
    assert_int_equal(fake->cuLibraryGetKernel(&kernel, library, "wd_nothing_def"),
                     CUDA_ERROR_NOT_FOUND);
    assert_int_equal(fake->cuLibraryGetKernel(&kernel, library, "wd_pointwise_def"), 0);
}

/* Every family that has passes is in the fake driver's list. */
static void test_families(void **state)
{
    char list[8192] = "";
    glob_t found;
    FILE *file = fopen(WD_SOURCE_DIR "/tests/fake_driver/passes.def", "r");
    (void)state;
    if (!file) skip(); /* the sources are not on this machine */
    list[fread(list, 1, sizeof list - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(glob(WD_SOURCE_DIR "/src/ops/*/*_passes.def", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 0);
    for (size_t i = 0; i < found.gl_pathc; ++i) {
        const char *path = strstr(found.gl_pathv[i], "/src/ops/") + 5;
        if (!strstr(list, path)) fail_msg("%s is not in tests/fake_driver/passes.def", path);
    }
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_unregistered),
        cmocka_unit_test(test_families),
    };
    fake_open();
    fake->cuInit(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
