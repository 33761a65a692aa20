/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a libcudnn privately and makes sure that it is the one that answers: NVIDIA's is a front that
 * opens seven others by name, and with stand-ins on the loader's path those names could lead to us,
 * or ours to them. So every pointer, and at the end every mapped cuDNN library, must lie in the folder
 * that was asked for; and only ours has warpdnn's own functions. */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct library ours = {.label = "ours"};
struct library peer = {.label = "peer"};

struct symbol {
    const char *name;
    bool is_ours;
    size_t offset; /* of the pointer in struct library */
};

static const struct symbol symbols[] = {
#define API(name) {"cudnn" #name, false, offsetof(struct library, name)},
#define OURS(name) {"warpdnn" #name, true, offsetof(struct library, name)},
#include "library.def"
};

static void folder_of(const char *path, char folder[PATH_MAX])
{
    char *slash;
    if (!realpath(path, folder)) snprintf(folder, PATH_MAX, "%s", path);
    slash = strrchr(folder, '/');
    if (slash) *slash = 0;
}

static bool take(struct library *library, void *opened, const struct symbol *symbol, bool is_ours)
{
    char where[PATH_MAX];
    Dl_info info;
    void *address = dlsym(opened, symbol->name);
    if (symbol->is_ours && !is_ours) {
        if (!address) return true;
        fprintf(stderr,
                "%s is to be the peer, but has %s: it is a WarpDNN; --peer names another, "
                "--no-peer none\n",
                library->path, symbol->name);
        return false;
    }
    if (!address || !dladdr(address, &info)) {
        fprintf(stderr, "%s has no %s: %s\n", library->path, symbol->name,
                symbol->is_ours ? "it is not WarpDNN" : "it is no cuDNN 9");
        return false;
    }
    folder_of(info.dli_fname, where);
    if (strcmp(where, library->folder) != 0) {
        fprintf(stderr, "%s of %s came from %s\n", symbol->name, library->path, info.dli_fname);
        return false;
    }
    memcpy((char *)library + symbol->offset, &address, sizeof address);
    return true;
}

bool library_open(struct library *library, const char *path, bool is_ours)
{
    struct timespec before;
    struct timespec after;
    void *opened;
    size_t version;
    if (!realpath(path, library->path)) {
        fprintf(stderr, "no such library: %s\n", path);
        return false;
    }
    folder_of(library->path, library->folder);
    clock_gettime(CLOCK_MONOTONIC, &before);
    opened = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (!opened) {
        fprintf(stderr, "cannot open %s: %s\n", library->path, dlerror());
        return false;
    }
    library->open_seconds =
        (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
        if (!take(library, opened, &symbols[i], is_ours)) return false;
    }
    version = library->GetVersion();
    if (version / 10000 != 9) {
        fprintf(stderr, "%s answers that it is version %zu: it is no cuDNN 9\n", library->path,
                version);
        return false;
    }
    library->open = true;
    return true;
}

bool library_verify_maps(void)
{
    char line[PATH_MAX + 128];
    char where[PATH_MAX];
    bool right = true;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && right && fgets(line, sizeof line, maps)) {
        char *file = strchr(line, '/');
        if (!file || !strstr(file, "/libcudnn")) continue;
        file[strcspn(file, "\n")] = 0;
        folder_of(file, where);
        if ((ours.open && !strcmp(where, ours.folder)) ||
            (peer.open && !strcmp(where, peer.folder))) {
            continue;
        }
        fprintf(stderr, "%s is loaded, which lies beside neither library that was opened\n", file);
        right = false;
    }
    if (maps) fclose(maps);
    return right;
}
