/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the embedded fatbins and finds kernels in them. A module and a kernel are published once, by
 * an atomic store under one lock, and read without it from then on; libraries are never unloaded,
 * since other threads may be launching from them until the process ends. */
#include "gpu/module.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Fails with what was being loaded, and for which device. Outside the lock: whoever listens to
 * errors may call the library. */
static cudnnStatus_t load_failed(const struct wd_gpu_queue *queue, CUresult result,
                                 const char *function, const struct wd_kernel *kernel)
{
    const struct wd_device *device = queue->base.device;
    const struct wd_module *module = kernel->module;
    return wd_driver_fail(
        result, function,
        "loading kernel %s of module %s (%zu bytes) for device %d of compute capability %d.%d",
        kernel->symbol, module->name, (size_t)(module->image_end - module->image), device->ordinal,
        device->capability / 10, device->capability % 10);
}

/* Under the lock and relaxed, as load_kernel. */
static CUresult load_library(struct wd_module *module)
{
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED; /* no copy of the embedded image */
    void *value = (void *)1;
    CUlibrary library = NULL;
    CUresult result =
        wd_cu.cuLibraryLoadData(&library, module->image, NULL, NULL, 0, &option, &value, 1);
    if (result == CUDA_SUCCESS) module->library = library;
    return result;
}

/* `called` is the driver's function that failed. */
static CUresult load_kernel(struct wd_kernel *kernel, const char **called)
{
    CUkernel function = NULL;
    CUresult result = CUDA_SUCCESS;
    if (kernel->function) return CUDA_SUCCESS;
    *called = "cuLibraryLoadData";
    if (!kernel->module->library) result = load_library(kernel->module);
    if (result != CUDA_SUCCESS) return result;
    *called = "cuLibraryGetKernel";
    result = wd_cu.cuLibraryGetKernel(&function, kernel->module->library, kernel->symbol);
    if (result != CUDA_SUCCESS) return result;
    __atomic_store_n(&kernel->function, (void *)function, __ATOMIC_RELEASE);
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
    result = load_kernel(kernel, &called);
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
    CUkernel function = kernel->function;
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

cudnnStatus_t wd_kernel_get(const struct wd_gpu_queue *queue, const struct wd_launch *launch,
                            CUkernel *function)
{
    struct wd_kernel *kernel = launch->kernel;
    *function = (CUkernel)__atomic_load_n(&kernel->function, __ATOMIC_ACQUIRE);
    if (!*function) {
        WD_TRY(load(queue, kernel));
        *function = (CUkernel)__atomic_load_n(&kernel->function, __ATOMIC_ACQUIRE);
    }
    if (launch->shared > 0) return allow_shared(queue, kernel, launch->shared);
    return CUDNN_STATUS_SUCCESS;
}
