/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the libcudnn to be asked, by absolute path and privately, and makes sure that it is the
 * one that answers: NVIDIA's library is a front that opens seven others by name, and another
 * cuDNN may stand on the loader's path. So its own folder goes first on that path, and every
 * pointer and every mapped cuDNN library is checked to lie there.
 */
#define _GNU_SOURCE
#include "golden.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gd_lib lib;

static void folder_of(const char *path, char out[PATH_MAX])
{
    if (!realpath(path, out)) snprintf(out, PATH_MAX, "%s", path);
    char *slash = strrchr(out, '/');
    if (slash) *slash = 0;
}

void gd_reexec(const char *path, char **argv)
{
    char folder[PATH_MAX], value[PATH_MAX + 4096];
    folder_of(path, folder);
    const char *old = getenv("LD_LIBRARY_PATH");
    size_t n = strlen(folder);
    if (old && strncmp(old, folder, n) == 0 && (old[n] == 0 || old[n] == ':')) return;
    snprintf(value, sizeof value, "%s%s%s", folder, old && *old ? ":" : "", old ? old : "");
    setenv("LD_LIBRARY_PATH", value, 1);
    execv("/proc/self/exe", argv); /* on failure go on without: gd_check_maps() decides */
}

int gd_load(const char *path)
{
    static const char *const names[] = {
#define API(name) "cudnn" #name,
#include "api.def"
#undef API
    };
    void **slots = (void **)&lib;
    char full[PATH_MAX], folder[PATH_MAX], where[PATH_MAX];
    if (!realpath(path, full)) {
        fprintf(stderr, "golden: no such library: %s\n", path);
        return -1;
    }
    void *so = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        fprintf(stderr, "golden: %s\n", dlerror());
        return -1;
    }
    folder_of(full, folder);
    _Static_assert(sizeof lib == sizeof names, "one pointer a name");
    for (int i = 0; i < GD_COUNT(names); i++) {
        slots[i] = dlsym(so, names[i]);
        Dl_info info;
        if (!slots[i] || !dladdr(slots[i], &info)) {
            fprintf(stderr, "golden: %s has no %s\n", full, names[i]);
            return -1;
        }
        folder_of(info.dli_fname, where);
        if (strcmp(where, folder)) {
            fprintf(stderr, "golden: %s came from %s, not from %s\n", names[i], info.dli_fname,
                    folder);
            return -1;
        }
    }
    return 0;
}

int gd_check_maps(const char *path)
{
    char folder[PATH_MAX], where[PATH_MAX], line[PATH_MAX + 128];
    folder_of(path, folder);
    FILE *f = fopen("/proc/self/maps", "r");
    int rc = 0;
    while (f && !rc && fgets(line, sizeof line, f)) {
        char *file = strchr(line, '/');
        if (!file || !strstr(file, "/libcudnn")) continue;
        file[strcspn(file, "\n")] = 0;
        folder_of(file, where);
        if (strcmp(where, folder)) {
            fprintf(stderr, "golden: %s is loaded beside the library in %s\n", file, folder);
            rc = -1;
        }
    }
    if (f) fclose(f);
    return rc;
}
