/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of driver.h. */
#include "support/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *driver;

void *driver_symbol(const char *name)
{
    void *address = dlsym(driver, name);
    if (!address) {
        printf("the driver has no %s\n0 passed, 1 failed\n", name);
        exit(1);
    }
    return address;
}

void driver_open(void)
{
    typedef int (*fn_init)(unsigned flags);
    typedef int (*fn_retain)(void **context, int device);
    typedef int (*fn_set)(void *context);
    const char *path = getenv("WARPDNN_CUDA_DRIVER");
    void *context = NULL;
    driver = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        printf("no CUDA driver: %s\n0 passed, 1 failed\n", dlerror());
        exit(1);
    }
    DRIVER(fn_init, "cuInit")(0);
    /* a handle retains the primary context but leaves none current */
    DRIVER(fn_retain, "cuDevicePrimaryCtxRetain")(&context, 0);
    DRIVER(fn_set, "cuCtxSetCurrent")(context);
}
