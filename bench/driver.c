/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the CUDA driver and looks up the functions of driver.def. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct driver cu;

bool driver_open(void)
{
    static const struct {
        const char *name;
        size_t offset;
        bool needed;
    } functions[] = {
#define CU(name, exported, parameters) {#exported, offsetof(struct driver, name), true},
#define CU_MAYBE(name, exported, parameters) {#exported, offsetof(struct driver, name), false},
#include "driver.def"
    };
    const char *path = getenv("WARPDNN_CUDA_DRIVER");
    void *library;
    if (!path || !*path) path = "libcuda.so.1";
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "there is no CUDA driver (%s); --cpu runs on the CPU\n", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
        void *address = dlsym(library, functions[i].name);
        if (!address && functions[i].needed) {
            fprintf(stderr, "the CUDA driver %s has no %s\n", path, functions[i].name);
            return false;
        }
        memcpy((char *)&cu + functions[i].offset, &address, sizeof address);
    }
    return true;
}

const char *driver_error(CUresult result)
{
    const char *name = NULL;
    if (cu.cuGetErrorName && cu.cuGetErrorName(result, &name) == 0 && name) return name;
    return "unknown CUDA error";
}

void driver_check(CUresult result, const char *what)
{
    if (result == 0) return;
    fprintf(stderr, "\n%s: %s (%d)\n", what, driver_error(result), result);
    if (bench_row[0]) fprintf(stderr, "in %s, %s\n", bench_row, bench_whose);
    bench_give_up();
}
