/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the library, its checker and the bench from the folder of the running program. What lies
 * there under the right name may still be another libcudnn (bin/../lib of a system), so the file is
 * asked who it is. WARPDNN_FROM_BIN_* are the installed folders, relative to the program's. */
#include "place.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf_file.h"
#include "text.h"

/* The installed layout first, then the build tree's. */
static const char *const library_folders[] = {WARPDNN_FROM_BIN_LIBRARY, "../lib"};
static const char *const bench_folders[] = {WARPDNN_FROM_BIN_LIBEXEC, "../bench"};

static char *executable_in(const char *bin, const char *folder, const char *name)
{
    char *path = text_make("%s/%s/%s", bin, folder, name);
    char *real = access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
    free(path);
    return real;
}

static char *readable(char *path)
{
    char *real = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;
    free(path);
    return real;
}

bool place_find(struct place *place)
{
    char program[PATH_MAX];
    struct text looked = {0};
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash;
    memset(place, 0, sizeof *place);
    program[length > 0 ? length : 0] = '\0';
    place->tool = text_copy(program);
    slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    for (int i = 0; i < 2 && !place->library; ++i) {
        char *path = text_make("%s/%s/libcudnn.so.9", program, library_folders[i]);
        struct elf_facts facts;
        if (elf_read(path, &facts) && facts.warpdnn) {
            place->library = realpath(path, NULL);
            place->folder = text_copy(path);
            *strrchr(place->folder, '/') = '\0';
        }
        text_add(&looked, "%s%s (%s)", looked.length ? ", " : "", path,
                 facts.loadable ? "not WarpDNN" : facts.why);
        free(path);
    }
    if (place->folder) {
        char *real = realpath(place->folder, NULL);
        if (real) {
            free(place->folder);
            place->folder = real;
        }
        place->checker = readable(text_make("%s/libwarpdnn_run.so", place->folder));
    }
    for (int i = 0; i < 2 && !place->bench; ++i) {
        place->bench = executable_in(program, bench_folders[i], "warpdnn_bench");
    }
    place->looked = looked.data;
    return place->library != NULL;
}

void place_free(struct place *place)
{
    free(place->tool);
    free(place->library);
    free(place->folder);
    free(place->checker);
    free(place->bench);
    free(place->looked);
    memset(place, 0, sizeof *place);
}
