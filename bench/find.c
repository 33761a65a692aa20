/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the two libraries are: ours beside the program, in a build folder or installed; the peer
 * inside PyTorch's package, in the usual folders of packages or where python3 says. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

static const char reexec_mark[] = "WARPDNN_BENCH_PEER";

static bool is_there(const char *path)
{
    return access(path, R_OK) == 0;
}

bool library_find_ours(const char *named, char path[PATH_MAX])
{
    static const char *const places[] = {
        "../lib/libcudnn.so.9", /* in a build folder */
#ifdef BENCH_INSTALLED_LIBRARY
        BENCH_INSTALLED_LIBRARY "/libcudnn.so.9",
#endif
        "../lib/warpdnn/libcudnn.so.9",
        "../../lib/warpdnn/libcudnn.so.9",
    };
    char folder[PATH_MAX];
    ssize_t length;
    if (named) {
        snprintf(path, PATH_MAX, "%s", named);
        if (is_there(path)) return true;
        fprintf(stderr, "--ours: no such library: %s\n", named);
        return false;
    }
    length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0) length = 0;
    folder[length] = 0;
    if (strrchr(folder, '/')) *strrchr(folder, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i) {
        snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - 64, folder, places[i]);
        if (is_there(path)) return true;
    }
    fprintf(stderr, "WarpDNN's libcudnn.so.9 is not beside %s: name it with --ours\n", folder);
    return false;
}

/* The first that a pattern of the shell's matches. */
static bool match(const char *pattern, char path[PATH_MAX])
{
    glob_t found;
    bool any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc > 0;
    if (any) snprintf(path, PATH_MAX, "%s", found.gl_pathv[0]);
    globfree(&found);
    return any;
}

/* Modules of the folder that we were started in are left alone. */
static bool ask_python(char path[PATH_MAX])
{
    char folder[PATH_MAX - 32] = "";
    FILE *pipe = popen("python3 -c 'import sys; sys.path[:] = [p for p in sys.path if p]; "
                       "import nvidia.cudnn as m; print(list(m.__path__)[0])' 2>/dev/null",
                       "r");
    if (!pipe) return false;
    if (!fgets(folder, sizeof folder, pipe)) folder[0] = 0;
    pclose(pipe);
    folder[strcspn(folder, "\n")] = 0;
    if (!folder[0]) return false;
    snprintf(path, PATH_MAX, "%s/lib/libcudnn.so.9", folder);
    return is_there(path);
}

bool library_find_peer(const char *named, char path[PATH_MAX])
{
    static const char *const roots[] = {
        "/usr/local/lib/python3*",
        "/usr/lib/python3*",
        "/opt/*/lib/python3*",
        "/opt/*/envs/*/lib/python3*",
    };
    const char *environment[] = {getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX")};
    char pattern[PATH_MAX];
    if (named) {
        snprintf(path, PATH_MAX, "%s", named);
        if (is_there(path)) return true;
        fprintf(stderr, "--peer: no such library: %s\n", named);
        return false;
    }
    for (int i = 0; i < 2; ++i) {
        if (!environment[i] || strpbrk(environment[i], "*?[")) continue;
        snprintf(pattern, sizeof pattern,
                 "%s/lib/python3*/site-packages/nvidia/cudnn/lib/libcudnn.so.9", environment[i]);
        if (match(pattern, path)) return true;
    }
    if (ask_python(path)) return true; /* the python3 that runs PyTorch here */
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; ++i) {
        snprintf(pattern, sizeof pattern, "%s/*-packages/nvidia/cudnn/lib/libcudnn.so.9", roots[i]);
        if (match(pattern, path)) return true;
    }
    return false;
}

void library_reexec(const char *path, char **argv)
{
    enum { FOLDERS = 16 };
    char folder[PATH_MAX];
    char pattern[PATH_MAX + 16];
    char value[FOLDERS * PATH_MAX];
    const char *old = getenv("LD_LIBRARY_PATH");
    const char *done = getenv(reexec_mark);
    size_t length;
    glob_t found;
    if (!realpath(path, folder)) return;
    *strrchr(folder, '/') = 0;
    if (done && !strcmp(done, folder)) return;
    length = (size_t)snprintf(value, sizeof value, "%s", folder);
    /* what cuDNN needs of CUDA lies in the packages beside its own: nvidia/X/lib */
    snprintf(pattern, sizeof pattern, "%.*s/../../*/lib", PATH_MAX - 32, folder);
    if (strstr(folder, "/nvidia/cudnn/lib") && glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && i < FOLDERS - 4; ++i) {
            length +=
                (size_t)snprintf(value + length, sizeof value - length, ":%s", found.gl_pathv[i]);
            if (length >= sizeof value) return;
        }
        globfree(&found);
    }
    snprintf(value + length, sizeof value - length, "%s%s", old && *old ? ":" : "", old ? old : "");
    setenv("LD_LIBRARY_PATH", value, 1);
    setenv(reexec_mark, folder, 1);
    execv("/proc/self/exe", argv); /* on failure go on without: the verification decides */
}
