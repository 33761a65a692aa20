/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and opens the CPU module: at WARPDNN_CPU_MODULE if that is set ("" means none), else beside
 * this library. It stays open for good, since its threads may be running at exit. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "cpu/cpu.h"
#include "build_id.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct wd_cpu_module *module;
static char reason[512];

static bool default_path(char *path, size_t size)
{
    Dl_info info;
    const char *slash;
    int length;
    if (!dladdr(&once, &info) || !info.dli_fname) return false;
    slash = strrchr(info.dli_fname, '/');
    length = slash ? (int)(slash - info.dli_fname + 1) : 0;
    return snprintf(path, size, "%.*slibwarpdnn_cpu.so", length, info.dli_fname) < (int)size;
}

static void load(void)
{
    typedef const struct wd_cpu_module *(*entry_fn)(int threads);
    char path[2048];
    const char *named = wd_env()->cpu_module;
    void *library;
    void *symbol;
    entry_fn entry;
    const struct wd_cpu_module *found;
    if (named && !*named) {
        snprintf(reason, sizeof reason, "WARPDNN_CPU_MODULE is empty");
        return;
    }
    if (named ? snprintf(path, sizeof path, "%s", named) >= (int)sizeof path
              : !default_path(path, sizeof path)) {
        snprintf(reason, sizeof reason, "the path of the library cannot be told");
        return;
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *said = dlerror();
        snprintf(reason, sizeof reason, "%s", said ? said : path);
        return;
    }
    symbol = dlsym(library, "warpdnn_cpu_module");
    if (!symbol) {
        snprintf(reason, sizeof reason, "%s has no entry warpdnn_cpu_module", path);
        return;
    }
    memcpy(&entry, &symbol, sizeof entry);
    found = entry(wd_env()->threads);
    if (!found || strcmp(found->build_id, WD_BUILD_ID) != 0) {
        snprintf(reason, sizeof reason, "%s is of another build (%s, this is %s)", path,
                 found ? found->build_id : "none", WD_BUILD_ID);
        return;
    }
    module = found;
}

static void load_and_say(void)
{
    load();
    if (module) return;
    wd_log(CUDNN_SEV_WARNING, CUDNN_STATUS_SUCCESS,
           "no CPU module, the definitions serve on one thread: %s", reason);
}

const struct wd_cpu_module *wd_cpu_module(const char **why)
{
    pthread_once(&once, load_and_say);
    if (why) *why = reason;
    return module;
}
