/* SPDX-License-Identifier: Apache-2.0
 *
 * libwarpdnn_run.so, which `warpdnn run` preloads beside the library: as a process ends it appends
 * one line to the file that WARPDNN_RUN_REPORT names: process id, operations that WarpDNN executed
 * (-1: not known), the program, and the telling files that are mapped (maps.h), separated by tabs.
 * It does nothing else, and nothing at all without the variable. One write a line, so that the
 * lines of many processes do not mix. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "warpdnn.h"

#include "maps.h"

enum { LINE_SIZE = 16384 };

static char report_path[4096];
static pid_t process;
static cudnnStatus_t (*statistics)(warpdnnStatistics_t *);

struct line {
    char text[LINE_SIZE];
    size_t length;
};

static void append(struct line *line, const char *string)
{
    size_t bytes = strlen(string);
    if (line->length + bytes + 2 > sizeof line->text) return;
    memcpy(line->text + line->length, string, bytes);
    line->length += bytes;
}

static void append_path(void *user, const char *path)
{
    struct line *line = (struct line *)user;
    if (line->length + strlen(path) + 3 > sizeof line->text) return;
    append(line, "\t");
    append(line, path);
}

/* A forked child is not asked: another thread of its parent may have held the library's lock. */
static long long executions(void)
{
    warpdnnStatistics_t now;
    if (!statistics || getpid() != process) return -1;
    return statistics(&now) == CUDNN_STATUS_SUCCESS ? (long long)now.executions : -1;
}

/* As the process begins: programs write over their environment. */
__attribute__((constructor)) static void remember(void)
{
    const char *path = getenv("WARPDNN_RUN_REPORT");
    void *symbol = dlsym(RTLD_DEFAULT, "warpdnnGetStatistics");
    memcpy(&statistics, &symbol, sizeof statistics);
    process = getpid();
    if (path && strlen(path) < sizeof report_path) memcpy(report_path, path, strlen(path) + 1);
}

__attribute__((destructor)) static void report(void)
{
    struct line line = {.length = 0};
    char head[64];
    char program[4096];
    ssize_t length;
    int file;
    if (!report_path[0]) return;
    file = open(report_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) return; /* `warpdnn run` is over */
    snprintf(head, sizeof head, "%ld\t%lld\t", (long)getpid(), executions());
    append(&line, head);
    length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    append(&line, program);
    maps_each("/proc/self/maps", append_path, &line);
    line.text[line.length++] = '\n';
    if (write(file, line.text, line.length) < 0) { /* nobody is left to be told */
    }
    close(file);
}
