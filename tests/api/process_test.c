/* SPDX-License-Identifier: Apache-2.0
 *
 * The library as a guest in a process: logs that cannot be written, closed standard streams, forks,
 * exits at bad moments, loading and unloading, nonsense in the environment. Each case runs a role of
 * process_roles.c in a process of its own, which must end well within its time, and whose standard
 * output and error must stay empty unless the case asks for the log there. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/process_roles.h"
#include "cudnn.h"
#include "warpdnn.h"

/* clang's OpenMP runtime under the thread sanitizer, alone or ended in the middle of a loop, is
 * reported for races of its own; these cases are about processes, and threads_test.c about threads. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_THREAD_SANITIZER 1
#endif
#endif
#ifndef WITH_THREAD_SANITIZER
#define WITH_THREAD_SANITIZER 0
#endif

enum streams { OPEN, OUT_CLOSED, BOTH_CLOSED, OUT_FULL };

static char folder[] = "/tmp/warpdnn_process_XXXXXX";
static char program[4096];
static char long_text[3001];
static int passed, failed;
static char output[1 << 16], told[4096];

static void read_all(int fd, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got = 1;
    char rest[4096];
    while (got > 0) {
        bool full = length + 1 >= size;
        got = read(fd, full ? rest : text + length, full ? sizeof rest : size - 1 - length);
        if (got > 0 && !full) length += (size_t)got;
    }
    text[length] = '\0';
    close(fd);
}

/* Settings replace all of ours that the environment has. */
static void set_environment(const char *const *settings)
{
    static char names[64][128];
    int count = 0;
    for (char **entry = environ; *entry && count < 64; ++entry) {
        if (strncmp(*entry, "WARPDNN_", 8) != 0 && strncmp(*entry, "CUDNN_", 6) != 0) continue;
        snprintf(names[count++], sizeof names[0], "%.*s", (int)strcspn(*entry, "="), *entry);
    }
    for (int i = 0; i < count; ++i) unsetenv(names[i]);
    setenv("WARPDNN_DEVICE", "cpu", 1);
    for (int i = 0; settings[i]; i += 2) setenv(settings[i], settings[i + 1], 1);
}

static void become(const char *role, enum streams streams, const char *const *settings, int out,
                   int tell)
{
    int full;
    alarm(60);
    dup2(out, 1);
    dup2(out, 2);
    dup2(tell, PROCESS_TELL);
    for (int fd = PROCESS_TELL + 1; fd < 256; ++fd) close(fd);
    if (streams == OUT_CLOSED || streams == BOTH_CLOSED) close(1);
    if (streams == BOTH_CLOSED) close(2);
    if (streams == OUT_FULL) {
        full = open("/dev/full", O_WRONLY);
        dup2(full, 1);
        close(full);
    }
    set_environment(settings);
    /* processes that end in the middle hold what they hold: leaks are for other tests */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    execl(program, program, "--role", role, (char *)NULL);
    _exit(2);
}

/* Runs a role; `printed` is what its standard streams must hold, null: nothing at all. The settings
 * are names and values in turn, closed by a null. */
static void run(const char *name, const char *role, enum streams streams, const char *printed,
                const char *const *settings)
{
    int out[2], tell[2];
    int status = -1;
    pid_t child;
    bool good;
    if (pipe(out) || pipe(tell)) exit(1);
    fflush(NULL);
    child = fork();
    if (child == 0) become(role, streams, settings, out[1], tell[1]);
    close(out[1]);
    close(tell[1]);
    read_all(out[0], output, sizeof output);
    read_all(tell[0], told, sizeof told);
    good = child > 0 && waitpid(child, &status, 0) == child && status == 0 && !*told;
    good = good && (printed ? strstr(output, printed) != NULL : !*output);
    passed += good;
    failed += !good;
    if (good) return;
    printf("FAIL %s: role %s ends with %#x, tells \"%s\" and prints \"%.2000s\"\n", name, role,
           (unsigned)status, told, output);
    for (int i = 0; settings[i]; i += 2) printf("  %s=%.200s\n", settings[i], settings[i + 1]);
}
#define RUN(name, role, streams, printed, ...)                                                     \
    run(name, role, streams, printed, (const char *const[]){__VA_ARGS__, NULL})
#define PLAIN "TEST_ENGINE", engine

/* What the CPU should be computing with: there may be no module in this build. */
static const char *engine = "def";
static char library_path[4096], module_path[4096];

static bool find_files(void)
{
    __typeof__(&cudnnCreate) entry = cudnnCreate;
    const char *slash;
    Dl_info info;
    void *address;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    memcpy(&address, &entry, sizeof address);
    if (length <= 0 || !dladdr(address, &info) || !realpath(info.dli_fname, library_path)) {
        return false;
    }
    slash = strrchr(info.dli_fname, '/');
    snprintf(module_path, sizeof module_path, "%.*slibwarpdnn_cpu.so",
             slash ? (int)(slash - info.dli_fname + 1) : 0, info.dli_fname);
    if (access(module_path, R_OK) == 0) engine = "module";
    return mkdtemp(folder) != NULL;
}

/* Copies a file, with the first `count` places of a text in it spoilt. */
static bool copy_file(const char *from, const char *to, const char *spoilt, int *count)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    struct stat facts;
    char *data = NULL;
    bool good = in && out && stat(from, &facts) == 0 &&
                (data = malloc((size_t)facts.st_size)) != NULL &&
                fread(data, 1, (size_t)facts.st_size, in) == (size_t)facts.st_size;
    *count = 0;
    while (good && spoilt) {
        char *at = memmem(data, (size_t)facts.st_size, spoilt, strlen(spoilt));
        if (!at) break;
        at[0] = at[0] == 'x' ? 'y' : 'x';
        *count += 1;
    }
    good = good && fwrite(data, 1, (size_t)facts.st_size, out) == (size_t)facts.st_size;
    free(data);
    if (in) fclose(in);
    if (out && fclose(out)) good = false;
    return good;
}

static void in_folder(char *path, const char *name)
{
    snprintf(path, 256, "%s/%s", folder, name);
}

static bool holds(const char *path, const char *text)
{
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(output, 1, sizeof output - 1, file) : 0;
    output[length] = '\0';
    if (file) fclose(file);
    return strstr(output, text) != NULL;
}

static void expect(bool good, const char *what)
{
    passed += good;
    failed += !good;
    if (!good) printf("FAIL %s\n", what);
}

static void logs(void)
{
    char path[256];
    static const char *const nowhere[] = {"/dev/full", "/nonexistent/folder/log", "/", "",
                                          long_text};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; ++i) {
        RUN("a log that cannot be written", "compute", OPEN, NULL, PLAIN, "CUDNN_LOGLEVEL_DBG", "3",
            "CUDNN_LOGDEST_DBG", nowhere[i]);
    }
    in_folder(path, "log");
    RUN("a log", "compute", OPEN, NULL, PLAIN, "CUDNN_LOGLEVEL_DBG", "3", "CUDNN_LOGDEST_DBG",
        path);
    expect(holds(path, "cudnnConvolutionForward: "), "the log holds the convolution");
    expect(holds(path, "cudnnSetStream: handle is null"), "the log holds the refusal");
    RUN("a level without a destination", "compute", OPEN, NULL, PLAIN, "CUDNN_LOGLEVEL_DBG", "3");
    RUN("the log on stdout", "compute", OPEN, "! warpdnn ", PLAIN, "CUDNN_LOGLEVEL_DBG", "3",
        "CUDNN_LOGDEST_DBG", "stdout");
    RUN("the log on a full stdout", "compute", OUT_FULL, NULL, PLAIN, "CUDNN_LOGLEVEL_DBG", "3",
        "CUDNN_LOGDEST_DBG", "stdout");
    RUN("the log on a closed stdout", "compute", OUT_CLOSED, NULL, PLAIN, "CUDNN_LOGLEVEL_DBG", "3",
        "CUDNN_LOGDEST_DBG", "stdout");
    RUN("the log on a closed stderr", "compute", BOTH_CLOSED, NULL, PLAIN, "CUDNN_LOGLEVEL_DBG",
        "3", "CUDNN_LOGDEST_DBG", "stderr");
    RUN("closed streams", "compute", BOTH_CLOSED, NULL, PLAIN);
    RUN("no level", "compute", OPEN, NULL, PLAIN, "CUDNN_LOGDEST_DBG", "stdout");
    RUN("a level beyond", "compute", OPEN, NULL, PLAIN, "CUDNN_LOGLEVEL_DBG", "99",
        "CUDNN_LOGDEST_DBG", "stdout");
    RUN("a level that is none", "compute", OPEN, NULL, PLAIN, "CUDNN_LOGLEVEL_DBG", "loud",
        "CUDNN_LOGDEST_DBG", "stdout");
}

static void ends(void)
{
    RUN("fork before the first use", "fork_first", OPEN, NULL, PLAIN);
    RUN("fork after use", "fork_later", OPEN, NULL, PLAIN);
    RUN("fork after use with many threads", "fork_later", OPEN, NULL, PLAIN, "WARPDNN_THREADS",
        "7");
    for (int i = 0; i < 20; ++i) RUN("exit while others compute", "exit_busy", OPEN, NULL, PLAIN);
    RUN("the main thread leaves first", "main_leaves", OPEN, NULL, PLAIN);
    RUN("use in exit handlers and destructors", "exit_order", OPEN, NULL, PLAIN);
    RUN("exit with everything alive", "leave_all", OPEN, NULL, PLAIN);
}

static void copies(void)
{
    char library[256], module[256], other[256];
    int count;
    in_folder(library, "libcudnn_copy.so");
    in_folder(module, "libwarpdnn_cpu.so");
    in_folder(other, "other_module.so");
    expect(copy_file(library_path, library, NULL, &count), "the library is copied");
    RUN("a copy without a module", "reopen", OPEN, NULL, PLAIN, "TEST_COPY", library);
    if (!strcmp(engine, "def")) return;
    expect(copy_file(module_path, other, warpdnnGetBuildId(), &count) && count > 0,
           "the module is copied, with another build id");
    RUN("a module of another build", "compute", OPEN, NULL, "TEST_ENGINE", "def",
        "WARPDNN_CPU_MODULE", other);
    expect(copy_file(module_path, module, NULL, &count), "the module is copied");
    RUN("a copy with its module", "reopen", OPEN, NULL, PLAIN, "TEST_COPY", library);
}

static void settings(void)
{
    static const char *const threads[] = {
        "-3", "99999999", "9999999999999999999", "many", "2x", "", "0", "1", "3", "64"};
    static const char text_file[] = WD_SOURCE_DIR "/CMakeLists.txt";
    const char *const no_module[] = {"/nonexistent/module.so", "/", "libm.so.6", "", text_file};
    static const char *const no_device[] = {"foo", "CPU", "cpu ", " "};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; ++i) {
        RUN("threads", "compute", OPEN, NULL, PLAIN, "WARPDNN_THREADS", threads[i]);
    }
    for (size_t i = 0; i < sizeof no_module / sizeof no_module[0]; ++i) {
        RUN("a module that is none", "compute", OPEN, NULL, "TEST_ENGINE", "def",
            "WARPDNN_CPU_MODULE", no_module[i]);
    }
    for (size_t i = 0; i < sizeof no_device / sizeof no_device[0]; ++i) {
        RUN("a device that is none", "refused", OPEN, NULL, "WARPDNN_DEVICE", no_device[i],
            "TEST_TEXT", "WARPDNN_DEVICE=\"");
    }
    RUN("a device that is none, named", "refused", OPEN, NULL, "WARPDNN_DEVICE", "foo", "TEST_TEXT",
        "\"foo\" is none of auto, gpu, cpu");
    RUN("no device", "refused", OPEN, NULL, "WARPDNN_DEVICE", "", "TEST_TEXT",
        "/nonexistent/driver.so", "WARPDNN_CUDA_DRIVER", "/nonexistent/driver.so");
    RUN("no engine", "compute", OPEN, NULL, PLAIN, "WARPDNN_ENGINES", "");
    RUN("a number that is none", "compute", OPEN, "WARPDNN_THREADS=many is ignored", PLAIN,
        "WARPDNN_THREADS", "many", "CUDNN_LOGLEVEL_DBG", "2", "CUDNN_LOGDEST_DBG", "stdout");
    RUN("an engine that is none", "compute", OPEN, "pool_fast* in WARPDNN_ENGINES names no engine",
        PLAIN, "WARPDNN_ENGINES", "none,untried,*_cpu,conv_*,pool_fast*", "CUDNN_LOGLEVEL_DBG", "2",
        "CUDNN_LOGDEST_DBG", "stdout");
    RUN("a device that is long", "refused", OPEN, NULL, "WARPDNN_DEVICE", long_text, "TEST_TEXT",
        "is none of auto, gpu, cpu");
    RUN("a driver that is none", "refused", OPEN, NULL, "WARPDNN_DEVICE", "auto", "TEST_TEXT",
        "/nonexistent/driver.so", "WARPDNN_CUDA_DRIVER", "/nonexistent/driver.so");
    RUN("plans before a handle", "plan_first", OPEN, NULL, PLAIN);
    RUN("no last resort", "no_last_resort", OPEN, NULL, PLAIN, "WARPDNN_LAST_RESORT", "0");
    RUN("no last resort, no module", "no_last_resort", OPEN, NULL, "TEST_ENGINE", "def",
        "WARPDNN_LAST_RESORT", "0", "WARPDNN_CPU_MODULE", "");
    RUN("all of it", "compute", OPEN, NULL, PLAIN, "WARPDNN_CHECK", "maybe", "WARPDNN_LAST_RESORT",
        "never", "WARPDNN_CUDNN_VERSION", "one", "WARPDNN_THREADS", "%s%n", "CUDNN_LOGLEVEL_DBG",
        "-1", "CUDNN_LOGDEST_DBG", "%s%n");
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--role")) return process_role(argv[2]);
    if (WITH_THREAD_SANITIZER) {
        printf("0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    memset(long_text, 'a', sizeof long_text - 1);
    if (!find_files()) {
        printf("0 passed, 1 failed\n");
        return 1;
    }
    logs();
    ends();
    settings();
    copies();
    expect(access(long_text, F_OK) != 0, "no file of a log that is too long");
    if (snprintf(output, sizeof output, "rm -rf %s", folder) > 0 && system(output) != 0)
        failed += 1;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
