/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that the library under test may touch: one arena a worker, handed out in order and given
 * back as a whole at the end of a case. On a GPU it comes from the CUDA driver, opened at run time
 * so that the program needs no toolkit library; on the CPU it is plain memory.
 */
#define _GNU_SOURCE
#include "golden.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef unsigned long long device_ptr;

/* The few driver entry points, by their versioned names. */
static struct {
    int (*Init)(unsigned);
    int (*DeviceGet)(int *, int);
    int (*DeviceGetName)(char *, int, int);
    int (*PrimaryRetain)(void **, int);
    int (*SetCurrent)(void *);
    int (*Alloc)(device_ptr *, size_t);
    int (*CopyIn)(device_ptr, const void *, size_t);
    int (*CopyOut)(void *, device_ptr, size_t);
    int (*Set8)(device_ptr, unsigned char, size_t);
    int (*Sync)(void);
} cu;

static const char *const cu_names[] = {
    "cuInit",          "cuDeviceGet",     "cuDeviceGetName", "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent", "cuMemAlloc_v2",   "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2",
    "cuMemsetD8_v2",   "cuCtxSynchronize"};

static enum gd_device device;
static char device_name[96] = "none";
static char *arena;
static size_t arena_used;
static const size_t arena_size = (size_t)640 << 20;

static int fail(const char *what, int code)
{
    fprintf(stderr, "golden: %s failed with driver error %d\n", what, code);
    return -1;
}

static int init_gpu(void)
{
    void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        fprintf(stderr, "golden: no CUDA driver: %s\n", dlerror());
        return -1;
    }
    void **slots = (void **)&cu;
    _Static_assert(sizeof cu == sizeof cu_names, "one pointer a name");
    for (int i = 0; i < GD_COUNT(cu_names); i++) {
        slots[i] = dlsym(so, cu_names[i]);
        if (!slots[i]) {
            fprintf(stderr, "golden: the CUDA driver has no %s\n", cu_names[i]);
            return -1;
        }
    }
    int rc, dev = 0;
    void *context = NULL;
    device_ptr p = 0;
    if ((rc = cu.Init(0))) return fail("cuInit", rc);
    if ((rc = cu.DeviceGet(&dev, 0))) return fail("cuDeviceGet", rc);
    cu.DeviceGetName(device_name, (int)sizeof device_name, dev);
    if ((rc = cu.PrimaryRetain(&context, dev))) return fail("cuDevicePrimaryCtxRetain", rc);
    if ((rc = cu.SetCurrent(context))) return fail("cuCtxSetCurrent", rc);
    if ((rc = cu.Alloc(&p, arena_size))) return fail("cuMemAlloc", rc);
    arena = (char *)(uintptr_t)p;
    return 0;
}

int gd_memory_init(enum gd_device kind)
{
    device = kind;
    if (kind == GD_GPU) return init_gpu();
    if (kind == GD_CPU) snprintf(device_name, sizeof device_name, "CPU");
    arena = mmap(NULL, arena_size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return arena == MAP_FAILED ? -1 : 0;
}

const char *gd_device_name(void)
{
    return device_name;
}

void *gd_alloc(size_t bytes)
{
    size_t need = (bytes + 511) / 512 * 512;
    if (need > arena_size - arena_used) return NULL;
    void *p = arena + arena_used;
    arena_used += need;
    return p;
}

static struct {
    char *base;
    size_t bytes;
} workspaces[16];
static int workspaces_n;

void *gd_workspace(size_t bytes)
{
    char *base =
        bytes && workspaces_n < GD_COUNT(workspaces) ? gd_alloc(bytes + 2 * GD_GUARD) : NULL;
    if (!base) return NULL;
    gd_fill_bytes(base, GD_POISON, GD_GUARD);
    gd_fill_bytes(base + GD_GUARD + bytes, GD_POISON, GD_GUARD);
    workspaces[workspaces_n].base = base;
    workspaces[workspaces_n++].bytes = bytes;
    return base + GD_GUARD;
}

size_t gd_workspace_stray(void)
{
    unsigned char guard[2 * GD_GUARD];
    size_t stray = 0;
    while (workspaces_n) {
        const char *base = workspaces[--workspaces_n].base;
        memset(guard, GD_POISON, sizeof guard);
        gd_download(guard, base, GD_GUARD);
        gd_download(guard + GD_GUARD, base + GD_GUARD + workspaces[workspaces_n].bytes, GD_GUARD);
        for (size_t i = 0; i < sizeof guard; i++) stray += guard[i] != GD_POISON;
    }
    return stray;
}

void gd_alloc_reset(void)
{
    arena_used = 0;
}

void gd_upload(void *dst, const void *src, size_t bytes)
{
    if (device == GD_GPU) cu.CopyIn((uintptr_t)dst, src, bytes);
    else memcpy(dst, src, bytes);
}

void gd_download(void *dst, const void *src, size_t bytes)
{
    if (device == GD_GPU) cu.CopyOut(dst, (uintptr_t)src, bytes);
    else memcpy(dst, src, bytes);
}

void gd_fill_bytes(void *dst, int byte, size_t bytes)
{
    if (device == GD_GPU) cu.Set8((uintptr_t)dst, (unsigned char)byte, bytes);
    else memset(dst, byte, bytes);
}

int gd_sync(void)
{
    return device == GD_GPU ? cu.Sync() : 0;
}
