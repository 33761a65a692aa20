/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens libfakecuda.so, from the environment's FAKECUDA or from beside the test program. */
#include "support/fakecuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake_functions functions;
const struct fake_functions *const fake = &functions;

void fake_path(char *path, size_t size)
{
    const char *named = getenv("FAKECUDA");
    char program[3072];
    ssize_t length;
    char *slash;
    if (named) {
        snprintf(path, size, "%s", named);
        return;
    }
    length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    snprintf(path, size, "%s/libfakecuda.so", program);
}

static void *look_up(void *library, const char *name)
{
    void *address = dlsym(library, name);
    if (!address) {
        fprintf(stderr, "the fake driver has no %s\n", name);
        exit(2);
    }
    return address;
}

void fake_open(void)
{
    char path[4096];
    void *library;
    void *address;
    fake_path(path, sizeof path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "the fake driver cannot be opened: %s\n", dlerror());
        exit(2);
    }
    setenv("WARPDNN_CUDA_DRIVER", path, 1);
    setenv("WARPDNN_ENGINES", "none", 0); /* the definitions: other kernels have no twins */
#define FAKE(result, name, parameters)                                                             \
    address = look_up(library, #name);                                                             \
    memcpy(&functions.name, &address, sizeof address);
#include "fake_driver/fakecuda.def"
#define WD_CU_FUNCTION(name, exported, version, parameters)                                        \
    address = look_up(library, #exported);                                                         \
    memcpy(&functions.name, &address, sizeof address);
#include "gpu/driver.def"
}

void fake_child_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: in a child process: %s does not hold\n", file, line, condition);
    fflush(NULL);
    _exit(1);
}

int fake_in_child(void (*test)(void *data), void *data)
{
    int status = 0;
    pid_t child;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        test(data);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 0;
    if (WIFSIGNALED(status)) fprintf(stderr, "the child died of signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
