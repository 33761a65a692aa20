/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of a test of CPU engines with several numbers of threads, see cpu_runs.h. */
#include "cpu_runs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudnn.h"

struct counts {
    long passed, failed;
};

/* Runs the program with a number of threads, passes its output on, adds its counts, and takes the
 * digest that it says. */
static void run_self(const char *program, int threads, struct counts *counts, char *said)
{
    char command[1024];
    char line[4096] = "";
    struct counts more = {0, 0};
    FILE *output;
    snprintf(command, sizeof command, "%s WARPDNN_THREADS=%d '%s'",
             threads == 2 ? "" : "WARPDNN_TEST_QUICK=1", threads, program);
    printf("with %d threads:\n", threads);
    fflush(stdout);
    output = popen(command, "r");
    while (output && fgets(line, sizeof line, output)) {
        fputs(line, stdout);
        sscanf(line, "digest %31s", said);
    }
    if (sscanf(line, "%ld passed, %ld failed", &more.passed, &more.failed) != 2) more.failed = 1;
    if (!output || (pclose(output) != 0 && more.failed == 0)) more.failed = 1;
    counts->passed += more.passed;
    counts->failed += more.failed;
}

const char *cpu_runs_nothing_to_test(void)
{
    const char *device = getenv("WARPDNN_DEVICE");
    const char *module = getenv("WARPDNN_CPU_MODULE");
    cudnnStatus_t (*entry)(cudnnHandle_t *) = cudnnCreate;
    Dl_info info;
    void *address;
    char path[2048];
    const char *slash;
    if (device && !strcmp(device, "gpu")) return "the handle is a GPU's";
    if (module) return *module ? NULL : "WARPDNN_CPU_MODULE is empty";
    memcpy(&address, &entry, sizeof address);
    if (!dladdr(address, &info)) return NULL;
    slash = strrchr(info.dli_fname, '/');
    snprintf(path, sizeof path, "%.*slibwarpdnn_cpu.so",
             slash ? (int)(slash - info.dli_fname + 1) : 0, info.dli_fname);
    return access(path, R_OK) == 0 ? NULL : "this build has no CPU module";
}

int cpu_runs_skipped(const char *why)
{
    printf("no CPU engines: %s\n0 passed, 0 failed, 1 skipped\n", why);
    return 0;
}

int cpu_runs(int argc, char **argv, bool digests, int (*run_cases)(int argc, char **argv))
{
    static const int threads[] = {1, 2, 64};
    const char *why = cpu_runs_nothing_to_test();
    struct counts counts = {0, 0};
    char first[32] = "none";
    if (why) return cpu_runs_skipped(why);
    if (argc > 1 || getenv("WARPDNN_THREADS")) return run_cases(argc, argv);
    unsetenv("WARPDNN_TEST_SAMPLE");
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; ++i) {
        char said[32] = "";
        run_self(argv[0], threads[i], &counts, said);
        if (i == 0 && said[0]) memcpy(first, said, sizeof first);
        if (!digests || !strcmp(said, first)) continue;
        printf("FAIL: with %d threads digest %s, with one %s\n", threads[i], said, first);
        counts.failed += 1;
    }
    printf("%ld passed, %ld failed\n", counts.passed, counts.failed);
    return counts.failed != 0;
}
