/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and opens the CPU module: at WARPDNN_CPU_MODULE if that is set ("" means none), else beside
 * this library. It stays open for good, since its threads may be running at exit. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "cpu/cpu.h"
#include "build_id.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct wd_cpu_module *module;
static char reason[512];
static const char load_address[] = "here"; /* in the library's own file */

enum { PATH_SIZE = 4096 };

static bool module_beside(const char *library, char *path, size_t size)
{
    const char *slash = strrchr(library, '/');
    int length = slash ? (int)(slash - library + 1) : 0;
    return snprintf(path, size, "%.*slibwarpdnn_cpu.so", length, library) < (int)size;
}

/* The file that this code is mapped from, by its absolute name. */
static bool mapped_file(char *name, size_t size)
{
    char line[PATH_SIZE + 128];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        unsigned long begin = 0, end = 0;
        char *path = strchr(line, '/');
        if (!path || sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
        if ((uintptr_t)load_address < begin || (uintptr_t)load_address >= end) continue;
        path[strcspn(path, "\n")] = '\0';
        found = snprintf(name, size, "%s", path) < (int)size;
    }
    if (maps) fclose(maps);
    return found;
}

/* Beside the library by the name that it was opened by, or, where that name is a link from another
 * folder, beside the file itself. A relative name was meant from a folder that may not be the
 * current one any more, so then the mapped file answers. */
static bool default_path(char *path, size_t size)
{
    Dl_info info;
    char file[PATH_SIZE];
    if (!dladdr(load_address, &info) || !info.dli_fname) return false;
    if (info.dli_fname[0] != '/') {
        if (mapped_file(file, sizeof file)) return module_beside(file, path, size);
        return module_beside(info.dli_fname, path, size);
    }
    if (!module_beside(info.dli_fname, path, size)) return false;
    if (access(path, F_OK) == 0 || !realpath(info.dli_fname, file)) return true;
    return module_beside(file, path, size);
}

static void load(void)
{
    typedef const struct wd_cpu_module *(*entry_fn)(int threads, char *(*error_text)(void));
    char path[PATH_SIZE];
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
    found = entry(wd_env()->threads, wd_last_error_text);
    if (!found || strcmp(found->build_id, WD_BUILD_ID) != 0) {
        snprintf(reason, sizeof reason, "%s is of another build (%s, this is %s)", path,
                 found ? found->build_id : "none", WD_BUILD_ID);
        return;
    }
    module = found;
}

const struct wd_cpu_module *wd_cpu_module(const char **why)
{
    static atomic_bool said;
    pthread_once(&once, load);
    /* after the once: the listener may call the library */
    if (!module && !atomic_exchange(&said, true)) {
        wd_log(CUDNN_SEV_WARNING, CUDNN_STATUS_SUCCESS,
               "no CPU module, the definitions serve on one thread: %s", reason);
    }
    if (why) *why = reason;
    return module;
}
