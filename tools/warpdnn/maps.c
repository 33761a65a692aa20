/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /proc/PID/maps line by line through a buffer on the stack. */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 8192 };

static bool is_telling(const char *path)
{
    static const char *const names[] = {"/libcudnn", "/libwarpdnn_cpu.", "/libcuda."};
    const char *base = strrchr(path, '/');
    for (size_t i = 0; i < sizeof names / sizeof names[0] && base; ++i) {
        if (strncmp(base, names[i], strlen(names[i])) == 0) return strstr(base, ".so") != NULL;
    }
    return false;
}

/* One line, without its end; `last` is the path that was told before. */
static void look_at(char *line, char *last, maps_found found, void *user)
{
    static const char deleted[] = " (deleted)";
    char *path = strchr(line, '/');
    size_t length;
    if (!path || !is_telling(path)) return;
    length = strlen(path);
    if (length > sizeof deleted && strcmp(path + length - sizeof deleted + 1, deleted) == 0) {
        path[length - sizeof deleted + 1] = '\0';
    }
    if (strcmp(path, last) == 0) return;
    memcpy(last, path, strlen(path) + 1);
    found(user, path);
}

bool maps_each(const char *maps, maps_found found, void *user)
{
    char line[LINE_SIZE];
    char last[LINE_SIZE] = "";
    size_t held = 0;
    int file = open(maps, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    for (;;) {
        char *begin = line, *end;
        ssize_t got = read(file, line + held, sizeof line - 1 - held);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        held += (size_t)got;
        line[held] = '\0';
        while ((end = strchr(begin, '\n')) != NULL) {
            *end = '\0';
            look_at(begin, last, found, user);
            begin = end + 1;
        }
        held -= (size_t)(begin - line);
        memmove(line, begin, held);
        if (held == sizeof line - 1) held = 0; /* no line of the kernel's is that long */
    }
    close(file);
    return true;
}
