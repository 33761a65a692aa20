/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the embedded images and finds kernels in them. A module and a kernel are published once for each
 * compute capability, by an atomic store under one lock, and read without it from then on; libraries are
 * never unloaded, since other threads may be launching from them until the process ends. The driver
 * keeps a copy of an image, so that what was unpacked for it is freed. */
#include "gpu/module.h"

#include <pthread.h>

#include "base/alloc.h"
#include "gpu/image.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Of its own: under the other, images are unpacked and compiled from PTX, seconds that whoever creates a
 * handle must not wait for. */
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

/* What the driver is handed under its name for modules without images. */
static const char stand_in[] = "no image";

enum { NO_HOST_MEMORY = -1 };

/* Blocks of a cluster that every device with clusters takes. */
enum { CLUSTER_OF_ALL = 8 };

int wd_module_place(int capability)
{
    static int capabilities[WD_MODULE_PLACES];
    int place = 0;
    pthread_mutex_lock(&places_lock);
    while (place < WD_MODULE_PLACES && capabilities[place] != 0 &&
           capabilities[place] != capability)
        place += 1;
    if (place < WD_MODULE_PLACES) capabilities[place] = capability;
    pthread_mutex_unlock(&places_lock);
    return place < WD_MODULE_PLACES ? place : -1;
}

/* Fails with what was being loaded, and for which device. Outside the lock: whoever listens to
 * errors may call the library. */
static cudnnStatus_t load_failed(const struct wd_gpu_queue *queue, CUresult result,
                                 const char *function, const struct wd_kernel *kernel)
{
    const struct wd_device *device = queue->base.device;
    const struct wd_module *module = kernel->module;
    const struct wd_image_row *row = wd_image_find(module, device->capability);
    WD_REQUIRE(result != NO_HOST_MEMORY, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory to unpack module %s (%s)", module->name, row ? row->arch : "");
    return wd_driver_fail(
        result, function,
        "loading kernel %s of module %s (%s) for device %d of compute capability %d.%d",
        kernel->symbol, module->name, row ? row->arch : stand_in, device->ordinal,
        device->capability / 10, device->capability % 10);
}

/* Under the lock and relaxed, as load_kernel. */
static CUresult load_library(const struct wd_gpu_queue *queue, struct wd_module *module,
                             const char **called)
{
    const struct wd_image_row *row = wd_image_find(module, queue->base.device->capability);
    void *image = NULL;
    CUlibrary library = NULL;
    CUresult result;
    if (row) {
        *called = "unpacking";
        result = wd_image_unpack(module, row, &image);
        if (result != CUDA_SUCCESS) return result;
    } else if (module->image != module->image_end) {
        *called = "choosing an image";
        return wd_image_is_whole(module) ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
    }
    *called = "cuLibraryLoadData";
    result =
        wd_cu.cuLibraryLoadData(&library, image ? image : stand_in, NULL, NULL, 0, NULL, NULL, 0);
    wd_free(image);
    if (result == CUDA_SUCCESS) module->library[queue->place] = library;
    return result;
}

/* `called` is what failed. */
static CUresult load_kernel(const struct wd_gpu_queue *queue, struct wd_kernel *kernel,
                            const char **called)
{
    struct wd_module *module = kernel->module;
    CUkernel function = NULL;
    CUresult result = CUDA_SUCCESS;
    if (kernel->function[queue->place]) return CUDA_SUCCESS;
    if (!module->library[queue->place]) result = load_library(queue, module, called);
    if (result != CUDA_SUCCESS) return result;
    *called = "cuLibraryGetKernel";
    result = wd_cu.cuLibraryGetKernel(&function, module->library[queue->place], kernel->symbol);
    if (result != CUDA_SUCCESS) return result;
    __atomic_store_n(&kernel->function[queue->place], (void *)function, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

static cudnnStatus_t load(const struct wd_gpu_queue *queue, struct wd_kernel *kernel)
{
    const char *called = "cuThreadExchangeStreamCaptureMode";
    CUstreamCaptureMode mode;
    CUresult result;
    WD_REQUIRE(kernel->module->image != kernel->module->image_end || wd_driver_is_named(),
               CUDNN_STATUS_NOT_SUPPORTED,
               "module %s holds no kernels: this library was built without CUDA",
               kernel->module->name);
    result = wd_capture_relax(&mode);
    if (result != CUDA_SUCCESS) return load_failed(queue, result, called, kernel);
    pthread_mutex_lock(&lock);
    result = load_kernel(queue, kernel, &called);
    pthread_mutex_unlock(&lock);
    wd_capture_restore(mode);
    return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS
                                  : load_failed(queue, result, called, kernel);
}

/* Beyond 48 KiB, what it declares included, a kernel must be allowed its shared memory, device by
 * device. Whoever asks for any is allowed all that the device has, at once: the limit costs nothing, and
 * threads that want different amounts cannot take it from each other. One bit a device remembers it. */
static cudnnStatus_t allow_shared(const struct wd_gpu_queue *queue, struct wd_kernel *kernel,
                                  uint32_t bytes)
{
    const struct wd_device *device = queue->base.device;
    CUkernel function = kernel->function[queue->place];
    uint64_t bit = (uint64_t)1 << (device->ordinal & 63);
    int fixed = 0;
    int64_t most;
    if (__atomic_load_n(&kernel->shared_allowed, __ATOMIC_ACQUIRE) & bit)
        return CUDNN_STATUS_SUCCESS;
    WD_CU_TRY(cuKernelGetAttribute,
              (&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function, queue->device),
              "asking for the shared memory of kernel %s", kernel->symbol);
    most = device->shared_per_block - fixed;
    WD_REQUIRE(bytes <= most, CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT,
               "kernel %s needs %u bytes of dynamic shared memory and device %d offers %lld",
               kernel->symbol, bytes, device->ordinal, (long long)most);
    WD_CU_TRY(cuKernelSetAttribute,
              (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)most, function, queue->device),
              "allowing kernel %s %lld bytes of dynamic shared memory on device %d", kernel->symbol,
              (long long)most, device->ordinal);
    __atomic_fetch_or(&kernel->shared_allowed, bit, __ATOMIC_RELEASE);
    return CUDNN_STATUS_SUCCESS;
}

/* Likewise clusters of more blocks than all devices that have clusters take. */
static cudnnStatus_t allow_large_clusters(const struct wd_gpu_queue *queue,
                                          struct wd_kernel *kernel, uint32_t cluster)
{
    const struct wd_device *device = queue->base.device;
    uint64_t bit = (uint64_t)1 << (device->ordinal & 63);
    if (__atomic_load_n(&kernel->large_clusters_allowed, __ATOMIC_ACQUIRE) & bit)
        return CUDNN_STATUS_SUCCESS;
    WD_CU_TRY(cuKernelSetAttribute,
              (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
               kernel->function[queue->place], queue->device),
              "allowing kernel %s clusters of %u blocks on device %d", kernel->symbol, cluster,
              device->ordinal);
    __atomic_fetch_or(&kernel->large_clusters_allowed, bit, __ATOMIC_RELEASE);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_kernel_get(const struct wd_gpu_queue *queue, const struct wd_launch *launch,
                            CUkernel *function)
{
    struct wd_kernel *kernel = launch->kernel;
    void **found = &kernel->function[queue->place];
    *function = (CUkernel)__atomic_load_n(found, __ATOMIC_ACQUIRE);
    if (!*function) {
        WD_TRY(load(queue, kernel));
        *function = (CUkernel)__atomic_load_n(found, __ATOMIC_ACQUIRE);
    }
    if (launch->cluster > CLUSTER_OF_ALL)
        WD_TRY(allow_large_clusters(queue, kernel, launch->cluster));
    if (launch->shared > 0) return allow_shared(queue, kernel, launch->shared);
    return CUDNN_STATUS_SUCCESS;
}
