/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernels the cases of a test have launched: the fake driver knows. A kernel that none has is
 * a failure, for then nothing judges it on a GPU either. */
#ifndef TESTS_OPS_LAUNCHED_H
#define TESTS_OPS_LAUNCHED_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver/fakecuda.h"
#include "support/harness.h"

/* For the end of main, where all cases ran; of kernels by symbol. Nothing where the driver is not the
 * fake one, or engines are switched off. */
static inline void check_launched(int argc, const char *const *symbols, int count)
{
    const char *path = getenv("WARPDNN_CUDA_DRIVER");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void (*launch_of)(const char *, struct fakecuda_launch *) = NULL;
    void *address = driver ? dlsym(driver, "fakecuda_kernel_launch") : NULL;
    memcpy(&launch_of, &address, sizeof launch_of);
    if (!launch_of || argc > 1 || !harness_all_engines) return;
    for (int i = 0; i < count; ++i) {
        struct fakecuda_launch launch = {{0}, {0}, 0, 0, 0};
        if (!case_begin("kernel %s is launched", symbols[i])) continue;
        launch_of(symbols[i], &launch);
        if (launch.grid[0] == 0) case_fail("no case ran it");
        case_end();
    }
}

#endif
