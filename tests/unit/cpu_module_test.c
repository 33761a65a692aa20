/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the library looks for its CPU module: beside itself, whatever name it was opened by. Each
 * case opens the library, built beside this program's folder, in a process of its own. */
#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "warpdnn.h"

static char library_folder[PATH_MAX]; /* of libcudnn.so.9 */
static char folder[] = "/tmp/warpdnn_module_XXXXXX";

static unsigned warnings;
static __typeof__(&cudnnCreate) create;

/* A listener that calls the library: it must not find a lock held. */
static void listen(cudnnSeverity_t severity, void *udata, const cudnnDebug_t *debug,
                   const char *text)
{
    cudnnHandle_t handle = NULL;
    (void)debug;
    (void)udata;
    if (severity != CUDNN_SEV_WARNING || !strstr(text, "no CPU module")) return;
    warnings += 1;
    if (create(&handle) != 0) warnings += 100;
}

static void *look_up(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol) _exit(20);
    return symbol;
}

/* Opens the library by `name`, moves to another folder, makes a handle: answers the warnings. */
static int open_and_count(const char *name)
{
    __typeof__(&cudnnSetCallback) set_callback;
    cudnnHandle_t handle = NULL;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!library) {
        printf("%s\n", dlerror());
        return 21;
    }
    symbol = look_up(library, "cudnnCreate");
    memcpy(&create, &symbol, sizeof create);
    symbol = look_up(library, "cudnnSetCallback");
    memcpy(&set_callback, &symbol, sizeof set_callback);
    if (chdir("/") || set_callback(CUDNN_SEV_WARNING_EN, NULL, listen)) return 22;
    if (create(&handle)) return 23;
    return (int)warnings;
}

static void expect(const char *work_folder, const char *name, int warnings_due)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        if (chdir(work_folder)) _exit(24);
        _exit(open_and_count(name));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), warnings_due);
}

static void test_own_name(void **state)
{
    char name[PATH_MAX + 32];
    (void)state;
    snprintf(name, sizeof name, "%s/libcudnn.so.9", library_folder);
    expect("/", name, 0);
}

static void test_link(void **state)
{
    char name[PATH_MAX + 32], link_name[128];
    (void)state;
    snprintf(name, sizeof name, "%s/libcudnn.so.9", library_folder);
    snprintf(link_name, sizeof link_name, "%s/libcudnn.so.9", folder);
    assert_int_equal(symlink(name, link_name), 0);
    expect("/", link_name, 0);
    expect(folder, "./libcudnn.so.9", 0); /* both at once */
    assert_int_equal(unlink(link_name), 0);
}

static void test_relative(void **state)
{
    (void)state;
    expect(library_folder, "./libcudnn.so.9", 0);
}

/* Without it there is one warning, given where the listener may make handles. */
static void test_absent(void **state)
{
    char name[PATH_MAX + 32];
    (void)state;
    snprintf(name, sizeof name, "%s/libcudnn.so.9", library_folder);
    setenv("WARPDNN_CPU_MODULE", "/nowhere/libwarpdnn_cpu.so", 1);
    expect("/", name, 1);
    unsetenv("WARPDNN_CPU_MODULE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_name),
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_relative),
        cmocka_unit_test(test_absent),
    };
    char own[PATH_MAX] = "", module[PATH_MAX + 32];
    int failed;
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0) return 1;
    *strrchr(own, '/') = '\0';
    strncat(own, "/../lib", sizeof own - strlen(own) - 1);
    if (!realpath(own, library_folder) || !mkdtemp(folder)) return 1;
    snprintf(module, sizeof module, "%s/libwarpdnn_cpu.so", library_folder);
    setenv("WARPDNN_DEVICE", "cpu", 1);
    unsetenv("WARPDNN_CPU_MODULE");
    if (access(module, F_OK) != 0) { /* a build without OpenMP or OpenBLAS has none */
        printf("this build has no CPU module: nothing to find\n");
        rmdir(folder);
        return 0;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
