/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of cases, a line each: WARPDNN_ENGINES as it was, the program's name and the case's, with tabs
 * between. WARPDNN_TEST_CASES names the list whose cases alone run; to the one that
 * WARPDNN_TEST_LAUNCHES names each case adds its line on the fake driver, with its seconds and the
 * kernels that it launched behind (tests/gpu/small_list.py chooses among those). One thread. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/harness_internal.h"

enum { TEXT = 65536 };

static const char *engines;
static const char *program;
struct listed {
    char *name;
    bool met;
};
static struct listed *listed; /* this program's cases */
static int listed_count;
static bool lists;
static FILE *launches;
static int (*take_launched)(char *, int);
static double began;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

static void read_list(const char *path)
{
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s: no list of cases at %s\n0 passed, 1 failed\n", program, path);
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        char *name = strchr(line, '\t');
        char *case_name = name ? strchr(name + 1, '\t') : NULL;
        if (line[0] == '#' || !case_name) continue;
        *name++ = *case_name++ = '\0';
        case_name[strcspn(case_name, "\t\n")] = '\0';
        if (strcmp(line, engines) != 0 || strcmp(name, program) != 0) continue;
        if (listed_count % 64 == 0)
            listed = realloc(listed, (size_t)(listed_count + 64) * sizeof *listed);
        if (!listed) abort();
        listed[listed_count++] = (struct listed){strdup(case_name), false};
    }
    fclose(file);
    if (listed_count > 0) qsort(listed, (size_t)listed_count, sizeof *listed, by_name);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

bool list_start(const char *path_of_program)
{
    const char *path = getenv("WARPDNN_TEST_CASES");
    const char *record = getenv("WARPDNN_TEST_LAUNCHES");
    const char *driver_path = getenv("WARPDNN_CUDA_DRIVER");
    void *driver = driver_path ? dlopen(driver_path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    const char *slash = strrchr(path_of_program, '/');
    engines = getenv("WARPDNN_ENGINES");
    if (!engines) engines = "";
    program = slash ? slash + 1 : path_of_program;
    lists = path != NULL;
    if (path) read_list(path);
    if (record && driver) {
        void *address = dlsym(driver, "fakecuda_take_launched");
        memcpy(&take_launched, &address, sizeof take_launched);
        if (take_launched) launches = fopen(record, "a");
    }
    return lists;
}

bool list_wants(char *case_name)
{
    struct listed key = {case_name, false};
    struct listed *found = NULL;
    if (!lists) return true;
    if (listed_count > 0)
        found = bsearch(&key, listed, (size_t)listed_count, sizeof *listed, by_name);
    if (found) found->met = true;
    return found != NULL;
}

void list_case_begins(void)
{
    char text[1];
    if (!launches) return;
    take_launched(text, 0); /* what ran between cases */
    began = now();
}

void list_case_ends(const char *case_name)
{
    static char text[TEXT];
    double seconds = now() - began;
    if (!launches) return;
    if (take_launched(text, TEXT) >= TEXT) abort();
    if (!text[0]) return;
    fprintf(launches, "%s\t%s\t%s\t%.4f\t%s\n", engines, program, case_name, seconds, text);
    fflush(launches);
    text[0] = '\0';
}

int list_finish(void)
{
    int missing = 0;
    for (int i = 0; i < listed_count; ++i) {
        if (!listed[i].met) printf("FAIL %s: listed, and there is no such case\n", listed[i].name);
        missing += !listed[i].met;
        free(listed[i].name);
    }
    free(listed);
    listed = NULL;
    listed_count = 0;
    if (launches) fclose(launches);
    launches = NULL;
    return missing;
}
