/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens libcuda.so.1, or the library that WARPDNN_CUDA_DRIVER names, and looks up every
 * function of driver.def: through the driver's own lookup where it has one, which knows the forms
 * by version, else by the exported name. The library is never closed, for other parts of the process
 * may use it and its threads outlive ours. */
#include "gpu/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"

struct wd_driver wd_cu;

/* The once-table and what guards its making. `ready` is read without the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool ready;
static const char *missing;
static char open_error[512];

typedef void (*any_function)(void);
typedef CUresult (*get_proc_address)(const char *symbol, void **function, int version,
                                     cuuint64_t flags, int *found);

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises that this works. */
static any_function as_function(void *address)
{
    any_function function;
    memcpy(&function, &address, sizeof function);
    return function;
}

static any_function resolve(void *library, get_proc_address lookup, const char *name,
                            const char *exported, int version)
{
    void *address = NULL;
    int found = 0;
    if (!lookup || lookup(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) !=
                       CUDA_SUCCESS) {
        address = NULL;
    }
    if (!address) address = dlsym(library, exported);
    if (!address && !missing) missing = name;
    return as_function(address);
}

static void resolve_all(void *library)
{
    get_proc_address lookup = (get_proc_address)as_function(dlsym(library, "cuGetProcAddress_v2"));
#define WD_CU_FUNCTION(name, exported, version, parameters)                                        \
    wd_cu.name = (CUresult(*) parameters)resolve(library, lookup, #name, #exported, version);
#include "gpu/driver.def"
}

const char *wd_driver_path(void)
{
    return wd_driver_is_named() ? wd_env()->cuda_driver : "libcuda.so.1";
}

bool wd_driver_is_named(void)
{
    return wd_env()->cuda_driver != NULL;
}

const char *wd_driver_missing(void)
{
    return missing;
}

const char *wd_driver_open_error(void)
{
    return open_error;
}

/* How many libraries the process has loaded so far: the first row that is shown knows. */
static int count_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds) {
        *(unsigned long long *)loads = info->dlpi_adds;
    }
    return 1;
}

bool wd_driver_open(enum wd_driver_open how)
{
    static unsigned long long absent_at; /* loads when the driver was last looked for in vain */
    int flags = RTLD_NOW | RTLD_LOCAL | (how == WD_DRIVER_IF_LOADED ? RTLD_NOLOAD : 0);
    unsigned long long loads = 0;
    void *library;
    if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) return true;
    if (how == WD_DRIVER_IF_LOADED) {
        dl_iterate_phdr(count_loads, &loads);
        if (loads && loads == __atomic_load_n(&absent_at, __ATOMIC_RELAXED)) return false;
    }
    pthread_mutex_lock(&lock);
    if (!ready) {
        library = dlopen(wd_driver_path(), flags);
        if (library) {
            resolve_all(library);
            __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
        } else if (how == WD_DRIVER_LOAD) {
            const char *text = dlerror();
            snprintf(open_error, sizeof open_error, "%s", text ? text : "unknown reason");
        } else {
            __atomic_store_n(&absent_at, loads, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&lock);
    return __atomic_load_n(&ready, __ATOMIC_ACQUIRE);
}

const char *wd_driver_error_name(CUresult result)
{
    static const struct {
        CUresult code;
        const char *name;
    } known[] = {
#define WD_CU_ERROR(code, value) {code, #code},
#include "gpu/driver.def"
    };
    const char *name = NULL;
    if (wd_cu.cuGetErrorName && wd_cu.cuGetErrorName(result, &name) == CUDA_SUCCESS && name) {
        return name;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
        if (known[i].code == result) return known[i].name;
    return "unknown CUDA error";
}

static cudnnStatus_t status_of(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED: return CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
    default: return CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
    }
}

cudnnStatus_t wd_driver_fail(CUresult result, const char *function, const char *format, ...)
{
    char doing[512];
    va_list list;
    va_start(list, format);
    vsnprintf(doing, sizeof doing, format, list);
    va_end(list);
    return wd_fail(status_of(result), "%s: %s (%d): %s", function, wd_driver_error_name(result),
                   result, doing);
}
