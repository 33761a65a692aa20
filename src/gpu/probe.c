/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine has, found out once a process and kept: no GPU (the CPU may serve), a GPU that
 * can be used, or one that cannot and why. A child of a process that had found a GPU is refused, for
 * the driver does not work across a fork. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu/device.h"
#include "gpu/gpu.h"

#ifndef WD_WITH_CUDA
#define WD_WITH_CUDA 0
#endif

/* The CUDA version that the kernels were compiled with, times 1000. Its machine code runs on every
 * driver of the same major version. */
#ifndef WD_CUDA_VERSION
#define WD_CUDA_VERSION 13000
#endif
enum { NEEDED_VERSION = WD_CUDA_VERSION / 1000 * 1000 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
    enum wd_gpu_state state;
    pid_t process;
    char why[768];
} found;

static void conclude(enum wd_gpu_state state, const char *format, ...) WD_PRINTF(2, 3);

static void conclude(enum wd_gpu_state state, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(found.why, sizeof found.why, format, list);
    va_end(list);
    found.state = state;
}

static void conclude_init_failed(CUresult result)
{
    const char *name = wd_driver_error_name(result);
    switch (result) {
    case CUDA_ERROR_NO_DEVICE:
        conclude(WD_GPU_NONE, "the CUDA driver %s finds no device (cuInit: %s)", wd_driver_path(),
                 name);
        return;
    case CUDA_ERROR_STUB_LIBRARY:
        conclude(WD_GPU_NONE, "%s is a stub to link with, not a CUDA driver (cuInit: %s)",
                 wd_driver_path(), name);
        return;
    case CUDA_ERROR_NOT_INITIALIZED:
        conclude(
            WD_GPU_UNUSABLE,
            "cuInit: %s (%d): was this process forked from one that had used CUDA? Start worker "
            "processes by spawn, or fork before the first use of CUDA",
            name, result);
        return;
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        conclude(WD_GPU_UNUSABLE,
                 "cuInit: %s (%d): the driver library %s and the kernel module are of different "
                 "versions; needed is one version of both",
                 name, result, wd_driver_path());
        return;
    default:
        conclude(WD_GPU_UNUSABLE, "cuInit: %s (%d): initialising the CUDA driver %s", name, result,
                 wd_driver_path());
    }
}

/* At least one device must be able to run our kernels; a handle asks again for its own. */
static void conclude_covered(int count)
{
    const struct wd_device *first = wd_device_at(0);
    for (int i = 0; wd_device_at(i); ++i) {
        if (wd_device_at(i)->capability >= WD_CUDA_MIN_CAPABILITY) {
            conclude(WD_GPU_READY, "%d CUDA device(s)", count);
            return;
        }
    }
    conclude(WD_GPU_UNUSABLE,
             "device 0 of %d has compute capability %d.%d; needed is %d.%d or newer", count,
             first->capability / 10, first->capability % 10, WD_CUDA_MIN_CAPABILITY / 10,
             WD_CUDA_MIN_CAPABILITY % 10);
}

static void probe(void)
{
    const char *function = NULL;
    CUresult result;
    int version = 0;
    int count = 0;
    found.process = getpid();
    if (!wd_driver_open(WD_DRIVER_LOAD)) {
        conclude(wd_driver_is_named() ? WD_GPU_UNUSABLE : WD_GPU_NONE,
                 wd_driver_is_named() ? "the CUDA driver that WARPDNN_CUDA_DRIVER names cannot be "
                                        "opened: %s"
                                      : "there is no CUDA driver: %s",
                 wd_driver_open_error());
        return;
    }
    if (!wd_cu.cuInit || !wd_cu.cuDriverGetVersion || !wd_cu.cuDeviceGetCount) {
        conclude(WD_GPU_UNUSABLE, "%s is not a CUDA driver: it has no function %s",
                 wd_driver_path(), wd_driver_missing());
        return;
    }
    result = wd_cu.cuInit(0);
    if (result != CUDA_SUCCESS) {
        conclude_init_failed(result);
        return;
    }
    result = wd_cu.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_DEVICE) {
        conclude(WD_GPU_UNUSABLE, "cuDeviceGetCount: %s (%d): counting the devices",
                 wd_driver_error_name(result), result);
        return;
    }
    if (count == 0) {
        conclude(WD_GPU_NONE, "the CUDA driver %s finds no device", wd_driver_path());
        return;
    }
    result = wd_cu.cuDriverGetVersion(&version);
    if (result != CUDA_SUCCESS) {
        conclude(WD_GPU_UNUSABLE, "cuDriverGetVersion: %s (%d): asking the driver for its version",
                 wd_driver_error_name(result), result);
        return;
    }
    if (version < NEEDED_VERSION) {
        conclude(WD_GPU_UNUSABLE,
                 "the CUDA driver is for CUDA %d.%d; needed is a driver for CUDA %d.%d or newer "
                 "(this library was built with CUDA %d.%d)",
                 version / 1000, version % 1000 / 10, NEEDED_VERSION / 1000,
                 NEEDED_VERSION % 1000 / 10, WD_CUDA_VERSION / 1000, WD_CUDA_VERSION % 1000 / 10);
        return;
    }
    if (wd_driver_missing()) {
        conclude(WD_GPU_UNUSABLE, "the CUDA driver (for CUDA %d.%d) has no function %s",
                 version / 1000, version % 1000 / 10, wd_driver_missing());
        return;
    }
    result = wd_devices_read(count, &function);
    if (result != CUDA_SUCCESS) {
        conclude(WD_GPU_UNUSABLE, "%s: %s (%d): reading the facts of %d device(s)", function,
                 wd_driver_error_name(result), result, count);
        return;
    }
    conclude_covered(count);
}

bool wd_gpu_context_is_current(void)
{
    CUcontext current = NULL;
    return wd_driver_open(WD_DRIVER_IF_LOADED) && wd_cu.cuCtxGetCurrent &&
           wd_cu.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != NULL;
}

/* A library without kernels serves a driver that a test names, whose kernels are its own; else it
 * stays away from the driver, and refuses only a caller who is using a GPU already. */
static enum wd_gpu_state probe_without_kernels(const char **why)
{
    if (wd_gpu_context_is_current()) {
        *why = "a CUDA context is current, but this library was built without CUDA; needed is a "
               "build with nvcc, or WARPDNN_DEVICE=cpu to run on host memory";
        return WD_GPU_UNUSABLE;
    }
    *why = "this library was built without CUDA";
    return WD_GPU_NONE;
}

enum wd_gpu_state wd_gpu_probe(const char **why)
{
    const char *ignored;
    if (!why) why = &ignored;
    if (!WD_WITH_CUDA && !wd_driver_is_named()) return probe_without_kernels(why);
    pthread_once(&once, probe);
    *why = found.why;
    if (found.state == WD_GPU_READY && found.process != getpid()) {
        *why =
            "this process was forked from one that had initialised CUDA already, and a CUDA "
            "driver cannot be used across a fork; start worker processes by spawn, or fork before "
            "the first handle is made";
        return WD_GPU_UNUSABLE;
    }
    return found.state;
}
