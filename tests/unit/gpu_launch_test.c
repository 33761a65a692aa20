/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel launches of the stream queue on the fake driver: shapes, clusters and shared memory, modules
 * that are loaded once, and what the driver refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "gpu/gpu.h"
#include "support/gpu_kernels.h"
#include "unit/gpu_images.h"

static const cudnnStatus_t OK = CUDNN_STATUS_SUCCESS;

static int start(void **state)
{
    (void)state;
    fake->fakecuda_reset();
    gpu_kernels_reset();
    wd_last_error_clear();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    return fake->fakecuda_report() == 0 && wd_alloc_bytes() == 0 && wd_gpu_scratch_bytes() == 0
               ? 0
               : -1;
}

static cudnnStatus_t launch_with(struct wd_queue *queue, struct wd_kernel *kernel, uint32_t grid,
                                 uint32_t cluster, uint32_t shared)
{
    struct line_args args = {NULL, NULL, 0, 0};
    struct line_size size = {0};
    struct wd_launch launch = line_launch(kernel, &args, &size);
    cudnnStatus_t status;
    launch.grid[0] = grid;
    launch.cluster = cluster;
    launch.shared = shared;
    assert_int_equal(queue->ops->begin(queue), OK);
    status = queue->ops->kernel(queue, &launch);
    queue->ops->end(queue);
    return status;
}

static void test_launch_shapes(void **state)
{
    struct wd_queue *queue[2] = {NULL, NULL};
    struct fakecuda_launch seen;
    CUcontext context;
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue[0]), OK);
    assert_int_equal(fake->cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    fake->cuCtxSetCurrent(context);
    assert_int_equal(wd_gpu_queue_create(&queue[1]), OK);
    fake->cuCtxSetCurrent(NULL);
    fake->fakecuda_kernel_shared("test_line", 1024);

    assert_int_equal(launch_with(queue[0], &line_kernel, 8, 0, 0), OK);
    assert_int_equal(fake->fakecuda_calls("cuKernelSetAttribute"), 0);
    /* 48 KiB with what the kernel has itself are to be had without asking, and this is more */
    assert_int_equal(launch_with(queue[0], &line_kernel, 8, 4, 48 << 10), OK);
    fake->fakecuda_kernel_launch("test_line", &seen);
    assert_int_equal(seen.cluster, 4);
    assert_int_equal(seen.grid[0], 8);
    assert_int_equal(seen.shared, 48 << 10);

    /* it is asked for once a device, whatever the amounts */
    assert_int_equal(launch_with(queue[0], &line_kernel, 8, 0, 100 << 10), OK);
    assert_int_equal(launch_with(queue[0], &line_kernel, 8, 2, 200 << 10), OK);
    assert_int_equal(launch_with(queue[0], &line_kernel, 8, 0, 60 << 10), OK);
    assert_int_equal(fake->fakecuda_calls("cuKernelSetAttribute"), 1);
    assert_int_equal(launch_with(queue[1], &line_kernel, 8, 0, 100 << 10), OK);
    assert_int_equal(fake->fakecuda_calls("cuKernelSetAttribute"), 2);
    fake->fakecuda_kernel_launch("test_line", &seen);
    assert_int_equal(seen.shared, 100 << 10);

    line_kernel.shared_allowed = 0;
    assert_int_equal(launch_with(queue[0], &line_kernel, 8, 0, 227 << 10),
                     CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT);
    assert_non_null(strstr(wd_last_error(), "232448"));
    assert_non_null(strstr(wd_last_error(), "231424"));

    /* loaded once for both devices */
    assert_int_equal(fake->fakecuda_calls("cuLibraryLoadData"), 1);
    assert_int_equal(fake->fakecuda_calls("cuLibraryGetKernel"), 1);
    assert_int_equal(launch_with(queue[1], &other_kernel, 1, 0, 0), OK);
    assert_int_equal(fake->fakecuda_calls("cuLibraryLoadData"), 1);
    assert_int_equal(fake->fakecuda_calls("cuLibraryGetKernel"), 2);

    assert_int_equal(launch_with(queue[0], &absent_kernel, 1, 0, 0),
                     CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(), "cuLibraryGetKernel: CUDA_ERROR_NOT_FOUND (500)"));
    assert_non_null(strstr(wd_last_error(), "test_absent"));
    wd_gpu_queue_destroy(queue[0]);
    wd_gpu_queue_destroy(queue[1]);
    fake->cuDevicePrimaryCtxRelease(1);
}

/* Clusters of more blocks than all devices with clusters take: allowed once a kernel and device. */
static void test_large_clusters(void **state)
{
    struct fakecuda_launch seen;
    struct wd_queue *queue = NULL;
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    assert_int_equal(launch_with(queue, &line_kernel, 16, 8, 0), OK);
    assert_int_equal(fake->fakecuda_calls("cuKernelSetAttribute"), 0);
    assert_int_equal(launch_with(queue, &line_kernel, 32, 16, 0), OK);
    fake->fakecuda_kernel_launch("test_line", &seen);
    assert_int_equal(seen.cluster, 16);
    assert_int_equal(launch_with(queue, &line_kernel, 16, 16, 0), OK);
    assert_int_equal(fake->fakecuda_calls("cuKernelSetAttribute"), 1);
    /* no device takes more, and a grid is whole clusters */
    assert_int_equal(launch_with(queue, &line_kernel, 32, 32, 0),
                     CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_int_equal(launch_with(queue, &line_kernel, 24, 16, 0),
                     CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(), "cluster 16"));
    wd_gpu_queue_destroy(queue);
    assert_int_equal(fake->fakecuda_report(), 2);
    fake->fakecuda_reset();
}

/* Blocks that meet: the driver is told, and refuses more of them than there is room for. */
static void test_meetings(void **state)
{
    struct wd_queue *queue = NULL;
    struct fakecuda_launch seen;
    struct line_args args = {NULL, NULL, 0, 0};
    struct line_size size = {0};
    struct wd_launch launch = line_launch(&line_kernel, &args, &size);
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    launch.meets = true;
    launch.grid[0] = 132;
    launch.shared = 200 << 10;
    assert_int_equal(queue->ops->begin(queue), OK);
    assert_int_equal(queue->ops->kernel(queue, &launch), OK);
    fake->fakecuda_kernel_launch("test_line", &seen);
    assert_int_equal(seen.meets, 1);
    assert_int_equal(seen.overlaps, 0);
    launch.overlaps = true; /* all at once, but early */
    assert_int_equal(queue->ops->kernel(queue, &launch), OK);
    fake->fakecuda_kernel_launch("test_line", &seen);
    assert_true(seen.meets && seen.overlaps);
    launch.grid[0] = 133;
    assert_int_equal(queue->ops->kernel(queue, &launch), CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(), "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"));
    queue->ops->end(queue);
    wd_gpu_queue_destroy(queue);
    assert_int_equal(fake->fakecuda_report(), 1);
    fake->fakecuda_reset();
}

/* A launch that the driver refuses says what was launched; the fake driver counts it as illegal. */
static void test_launch_refused(void **state)
{
    struct wd_queue *queue = NULL;
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    assert_int_equal(launch_with(queue, &line_kernel, 0, 0, 0),
                     CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(), "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1): "
                                            "launching kernel test_line (grid 0 1 1, block 128"));
    assert_int_equal(launch_with(queue, &line_kernel, 3, 2, 0),
                     CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    assert_non_null(strstr(wd_last_error(), "cuLaunchKernelEx: CUDA_ERROR_INVALID_CLUSTER_SIZE"));
    wd_gpu_queue_destroy(queue);
    assert_int_equal(fake->fakecuda_report(), 2);
}

static void test_load_failures(void **state)
{
    static const struct {
        CUresult result;
        cudnnStatus_t status;
    } cases[] = {
        {CUDA_ERROR_NO_BINARY_FOR_GPU, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH},
        {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH},
        {CUDA_ERROR_OUT_OF_MEMORY, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED},
        {CUDA_ERROR_INVALID_IMAGE, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER},
    };
    struct wd_queue *queue = NULL;
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fake->fakecuda_fail_function("cuLibraryLoadData", cases[i].result);
        assert_int_equal(launch_with(queue, &line_kernel, 1, 0, 0), cases[i].status);
        assert_non_null(strstr(wd_last_error(), "cuLibraryLoadData: CUDA_ERROR_"));
        assert_non_null(strstr(wd_last_error(), "module test (no image) for device 0 of compute "
                                                "capability 9.0"));
    }
    fake->fakecuda_fail_function(NULL, 0);
    /* a failure is not remembered */
    assert_int_equal(launch_with(queue, &line_kernel, 1, 0, 0), OK);
    wd_gpu_queue_destroy(queue);
}

static void expect_failed(struct wd_queue *queue, struct wd_kernel *kernel, cudnnStatus_t status,
                          const char *const *words)
{
    uint64_t loaded = fake->fakecuda_calls("cuLibraryLoadData");
    wd_last_error_clear();
    assert_int_equal(launch_with(queue, kernel, 1, 0, 0), status);
    for (; *words; ++words)
        if (!strstr(wd_last_error(), *words))
            fail_msg("\"%s\" lacks \"%s\"", wd_last_error(), *words);
    assert_int_equal(fake->fakecuda_calls("cuLibraryLoadData"), loaded);
    assert_int_equal(wd_gpu_scratch_bytes(), 0);
}

/* An image that none of the device's is, or that is damaged, or for which there is no memory: told
 * before the driver is asked, and the next launch tries again. */
static void test_image_failures(void **state)
{
    static const char *const older[] = {"sm_80", NULL};
    static const char *const usual[] = {"sm_80", "sm_90a", "compute_90", NULL};
    static const char *const choosing[] = {"choosing an image: CUDA_ERROR_NO_BINARY_FOR_GPU",
                                           "test_line of module made (no image) for device 0",
                                           NULL};
    static const char *const table[] = {"choosing an image: CUDA_ERROR_INVALID_IMAGE",
                                        "module made (no image)", NULL};
    static const char *const unpacking[] = {"unpacking: CUDA_ERROR_INVALID_IMAGE",
                                            "test_line of module made (sm_90a) for device 0", NULL};
    struct made_images images;
    struct wd_module module = made_module(&images, older);
    struct wd_kernel kernel = {&module, "test_line", {NULL}, 0, 0};
    struct wd_queue *queue = NULL;
    (void)state;
    assert_int_equal(wd_gpu_queue_create(&queue), OK);
    expect_failed(queue, &kernel, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, choosing);
    module = made_module(&images, usual);
    images.rows[2].packed = UINT64_MAX;
    expect_failed(queue, &kernel, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, table);
    images.rows[2].packed = MADE_PACKED;
    images.head.hash ^= 1;
    expect_failed(queue, &kernel, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, unpacking);
    images.head.hash ^= 1;
#if WD_WITH_CUDA
    {
        static const char *const memory[] = {"no host memory to unpack module made (sm_90a)", NULL};
        uint64_t alive = wd_alloc_bytes();
        wd_alloc_fail_at(1);
        expect_failed(queue, &kernel, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, memory);
        wd_alloc_fail_at(0);
        assert_int_equal(wd_alloc_bytes(), alive);
    }
#else
    module.image_end = module.image; /* nothing unpacks images in a build without CUDA */
#endif
    assert_int_equal(launch_with(queue, &kernel, 1, 0, 0), OK);
    assert_int_equal(launch_with(queue, &kernel, 1, 0, 0), OK);
    assert_int_equal(fake->fakecuda_calls("cuLibraryLoadData"), 1);
    wd_gpu_queue_destroy(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_launch_shapes, start, finish),
        cmocka_unit_test_setup_teardown(test_large_clusters, start, finish),
        cmocka_unit_test_setup_teardown(test_meetings, start, finish),
        cmocka_unit_test_setup_teardown(test_launch_refused, start, finish),
        cmocka_unit_test_setup_teardown(test_load_failures, start, finish),
        cmocka_unit_test_setup_teardown(test_image_failures, start, finish),
    };
    fake_open();
    fake->cuInit(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
