/* SPDX-License-Identifier: Apache-2.0
 *
 * The device of a run: context, memory, copies, the copy rate. */
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "gpu_time.h"

enum { ALIGNMENT = 512 };
static const size_t mib = (size_t)1 << 20;

struct device device;
static CUdevice handle; /* of the driver */
static char *slab;
static size_t slab_bytes;
static size_t slab_used;
static void *flush;
static size_t flush_bytes;

static CUdeviceptr address(const void *data)
{
    return (CUdeviceptr)(uintptr_t)data;
}

bool device_open_gpu(int ordinal)
{
    CUcontext context;
    CUresult result;
    int value = 0;
    int count = 0;
    if (!driver_open()) return false;
    result = cu.cuInit(0);
    if (result == 0) result = cu.cuDeviceGetCount(&count);
    if (result != 0 || count == 0) {
        fprintf(stderr, "no CUDA device: %s; --cpu runs on the CPU\n",
                result ? driver_error(result) : "the driver counts none");
        return false;
    }
    if (ordinal >= count) {
        fprintf(stderr, "--device %d: there are %d\n", ordinal, count);
        return false;
    }
    device.gpu = true;
    device.ordinal = ordinal;
    driver_check(cu.cuDeviceGet(&handle, ordinal), "the device");
    driver_check(cu.cuDeviceGetName(device.name, sizeof device.name, handle), "its name");
    driver_check(cu.cuDriverGetVersion(&device.driver_version), "the driver's version");
    driver_check(cu.cuDeviceGetAttribute(&value, CU_ATTRIBUTE_L2_CACHE_SIZE, handle), "its L2");
    device.l2 = (size_t)value;
    driver_check(cu.cuDeviceGetAttribute(&value, CU_ATTRIBUTE_CAPABILITY_MAJOR, handle), "major");
    device.capability = 10 * value;
    driver_check(cu.cuDeviceGetAttribute(&value, CU_ATTRIBUTE_CAPABILITY_MINOR, handle), "minor");
    device.capability += value;
    driver_check(cu.cuDeviceTotalMem(&device.memory, handle), "its memory");
    driver_check(cu.cuDevicePrimaryCtxRetain(&context, handle), "a context");
    driver_check(cu.cuCtxSetCurrent(context), "the context");
    driver_check(cu.cuStreamCreate(&device.stream, CU_STREAM_NON_BLOCKING), "a stream");
    return true;
}

void device_open_cpu(void)
{
    char line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    device.gpu = false;
    device.ordinal = -1;
    snprintf(device.name, sizeof device.name, "CPU");
    while (info && fgets(line, sizeof line, info)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(device.name, sizeof device.name, "%.100s, %d threads", colon + 2, bench_threads());
        break;
    }
    if (info) fclose(info);
    device.memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

void device_close(void)
{
    device_free(slab);
    device_free(flush);
    slab = NULL;
    flush = NULL;
    if (!device.gpu) return;
    cu.cuStreamDestroy(device.stream);
    cu.cuCtxSetCurrent(NULL);
    cu.cuDevicePrimaryCtxRelease(handle);
}

static void *try_alloc(size_t bytes)
{
    CUdeviceptr data = 0;
    if (!device.gpu) return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    return cu.cuMemAlloc(&data, bytes) == 0 ? (void *)(uintptr_t)data : NULL;
}

void *device_alloc(size_t bytes)
{
    void *data = try_alloc(bytes ? bytes : 1);
    if (data) return data;
    fprintf(stderr, "\nno device memory for %zu bytes\n", bytes);
    bench_give_up();
}

void device_free(void *data)
{
    if (!data) return;
    if (device.gpu) cu.cuMemFree(address(data));
    else free(data);
}

bool device_reserve(size_t bytes)
{
    slab_used = 0;
    if (bytes <= slab_bytes) return true;
    device_free(slab);
    slab = NULL;
    slab_bytes = 0;
    if (bytes > device.memory / 10 * 9) return false;
    slab = try_alloc(bytes);
    if (slab) slab_bytes = bytes;
    return slab != NULL;
}

void *device_take(size_t bytes)
{
    size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *at = slab + slab_used;
    if (whole > slab_bytes - slab_used) return NULL;
    slab_used += whole;
    return at;
}

void device_upload(void *to, const void *from, size_t bytes)
{
    device_copy(to, from, bytes);
    device_sync();
}

void device_download(void *to, const void *from, size_t bytes)
{
    device_copy(to, from, bytes);
    device_sync();
}

void device_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 0) return;
    if (!device.gpu) memcpy(to, from, bytes);
    else driver_check(cu.cuMemcpyAsync(address(to), address(from), bytes, device.stream), "a copy");
}

void device_set(void *to, int byte, size_t bytes)
{
    if (bytes == 0) return;
    if (!device.gpu) {
        memset(to, byte, bytes);
        return;
    }
    driver_check(cu.cuMemsetD8Async(address(to), (unsigned char)byte, bytes, device.stream),
                 "a fill");
}

void device_sync(void)
{
    if (device.gpu) driver_check(cu.cuStreamSynchronize(device.stream), "the stream");
}

void device_flush_l2(void)
{
    if (!flush) {
        flush_bytes = 256 * mib > device.memory / 8 ? device.memory / 8 : 256 * mib;
        flush = device_alloc(flush_bytes);
    }
    device_set(flush, 0, flush_bytes);
}

void device_measure_copy(void)
{
    enum { REPEATS_MIN = 10, REPEATS_MAX = 1000 };
    size_t bytes = 1024 * mib;
    char *to;
    char *from;
    double end;
    if (!device.gpu) return;
    while (bytes > device.memory / 8 || !device_reserve(2 * bytes)) bytes /= 2;
    from = device_take(bytes);
    to = device_take(bytes);
    device_set(from, 0x3c, bytes);
    /* long enough for the clocks to rise */
    end = clock_now() + 0.4;
    for (int i = 0; i < REPEATS_MIN || (i < REPEATS_MAX && clock_now() < end); ++i) {
        double rate = 2.0 * (double)bytes / copy_time(to, from, bytes);
        if (rate > device.copy) device.copy = rate;
    }
}

size_t host_memory_used(void)
{
    char line[128];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        if (sscanf(line, "VmRSS: %zu", &kib) == 1) break;
    }
    if (status) fclose(status);
    return kib * 1024;
}

size_t device_memory_used(void)
{
    size_t unused = 0;
    size_t total = 0;
    if (!device.gpu || !cu.cuMemGetInfo || cu.cuMemGetInfo(&unused, &total) != 0) return 0;
    return total - unused;
}
