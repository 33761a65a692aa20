/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps one record for each process that was seen with a libcudnn file. Frameworks open their own
 * libcudnn.so.9 by its path and then use the one that was there before, so that another file is
 * mapped tells little. NVIDIA's opens its parts (libcudnn_ops.so.9 and the like) when it is first
 * used: it may have worked where they are mapped. A library that has no parts may have worked where
 * ours executed nothing. */
#include "watch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf_file.h"
#include "maps.h"
#include "text.h"

enum { OTHERS_MAX = 16, TOLD_MAX = 5 };

struct process {
    pid_t id;
    char *program;
    bool ours;            /* our library is mapped */
    bool busy;            /* so is what a handle opens: the CPU module, or the CUDA driver */
    bool reported;        /* the checker's line is there */
    long long executions; /* of ours; -1 where not known */
    char *others[OTHERS_MAX];
    int count;
    bool parts; /* of another cuDNN are mapped */
    bool alone; /* another library is mapped that needs no parts */
};

struct watch {
    pid_t root;
    char *ours;
    char *lines;
    struct process *processes;
    int count;
};

struct watch *watch_create(pid_t root, const char *ours, const char *lines)
{
    struct watch *watch = (struct watch *)tool_resize(NULL, sizeof *watch);
    *watch = (struct watch){.root = root, .ours = text_copy(ours), .lines = text_copy(lines)};
    return watch;
}

void watch_destroy(struct watch *watch)
{
    for (int i = 0; i < watch->count; ++i) {
        struct process *p = &watch->processes[i];
        for (int k = 0; k < p->count; ++k) free(p->others[k]);
        free(p->program);
    }
    free(watch->processes);
    free(watch->ours);
    free(watch->lines);
    free(watch);
}

static struct process *record_of(struct watch *watch, pid_t id)
{
    struct process *p;
    for (int i = watch->count; i-- > 0;) {
        if (watch->processes[i].id == id) return &watch->processes[i];
    }
    watch->processes = (struct process *)tool_resize(
        watch->processes, (size_t)(watch->count + 1) * sizeof *watch->processes);
    p = &watch->processes[watch->count++];
    *p = (struct process){.id = id, .executions = -1};
    return p;
}

/* ---- What is mapped ---- */

struct finding_in {
    struct watch *watch;
    pid_t id;
};

static void note_file(struct watch *watch, pid_t id, const char *path)
{
    struct process *p = record_of(watch, id);
    if (strcmp(path, watch->ours) == 0) {
        p->ours = true;
        return;
    }
    if (!text_starts(text_base(path), "libcudnn")) {
        p->busy = true;
        return;
    }
    if (text_starts(text_base(path), "libcudnn_")) p->parts = true;
    for (int i = 0; i < p->count; ++i) {
        if (strcmp(p->others[i], path) == 0) return;
    }
    if (p->count < OTHERS_MAX) p->others[p->count++] = text_copy(path);
    if (!p->alone) p->alone = !file_holds(path, "libcudnn_graph");
}

static void note_mapped(void *user, const char *path)
{
    struct finding_in *in = (struct finding_in *)user;
    note_file(in->watch, in->id, path);
}

static void look_at(struct watch *watch, pid_t id)
{
    struct finding_in in = {watch, id};
    char name[64], program[4096];
    int before = watch->count;
    ssize_t length;
    snprintf(name, sizeof name, "/proc/%ld/maps", (long)id);
    maps_each(name, note_mapped, &in);
    if (watch->count == before) return;
    snprintf(name, sizeof name, "/proc/%ld/exe", (long)id);
    length = readlink(name, program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    record_of(watch, id)->program = text_copy(program);
}

/* The parent of a process, 0 where it is gone. Its name may hold blanks and brackets. */
static pid_t parent_of(pid_t id)
{
    char name[64], line[512];
    const char *after;
    long parent = 0;
    size_t got;
    FILE *file;
    snprintf(name, sizeof name, "/proc/%ld/stat", (long)id);
    file = fopen(name, "re");
    if (!file) return 0;
    got = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[got] = '\0';
    after = strrchr(line, ')');
    if (after && strlen(after) > 4) parent = strtol(after + 4, NULL, 10);
    return (pid_t)parent;
}

struct pair {
    pid_t id, parent;
};

void watch_look(struct watch *watch)
{
    struct pair *all = NULL;
    pid_t *family = (pid_t *)tool_resize(NULL, sizeof *family);
    int count = 0, members = 1;
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    family[0] = watch->root;
    while (folder && (entry = readdir(folder)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        all = (struct pair *)tool_resize(all, (size_t)(count + 1) * sizeof *all);
        all[count].id = (pid_t)strtol(entry->d_name, NULL, 10);
        all[count].parent = parent_of(all[count].id);
        count += 1;
    }
    if (folder) closedir(folder);
    for (int i = 0; i < members; ++i) {
        look_at(watch, family[i]);
        for (int k = 0; k < count; ++k) {
            if (all[k].parent != family[i]) continue;
            family = (pid_t *)tool_resize(family, (size_t)(members + 1) * sizeof *family);
            family[members++] = all[k].id;
        }
    }
    free(all);
    free(family);
}

/* ---- The checkers' lines ---- */

static void read_line(struct watch *watch, char *line)
{
    struct process *p;
    char *rest = line, *field;
    long id = strtol(strsep(&rest, "\t"), NULL, 10);
    long long executions;
    if (!rest || id <= 0) return;
    executions = strtoll(strsep(&rest, "\t"), NULL, 10);
    if (!rest) return;
    p = record_of(watch, (pid_t)id);
    p->reported = true;
    if (executions > p->executions) p->executions = executions;
    free(p->program);
    p->program = text_copy(strsep(&rest, "\t"));
    while ((field = strsep(&rest, "\t")) != NULL) note_file(watch, (pid_t)id, field);
}

static void read_lines(struct watch *watch)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    FILE *file = fopen(watch->lines, "re");
    if (!file) return;
    while ((length = getline(&line, &size, file)) > 0) {
        if (line[length - 1] != '\n') break; /* cut off: its writer was killed */
        line[length - 1] = '\0';
        read_line(watch, line);
    }
    free(line);
    fclose(file);
}

/* ---- What to say ---- */

static const char *name_of(const struct process *p)
{
    return p->program && *p->program ? text_base(p->program) : "a program";
}

static bool may_have_worked_elsewhere(const struct process *p)
{
    bool idle = p->executions == 0 || (p->reported && !p->ours);
    return p->parts || (p->alone && idle);
}

static void tell_workers(const struct watch *watch)
{
    int told = 0, left = 0;
    for (int i = 0; i < watch->count; ++i) {
        const struct process *p = &watch->processes[i];
        if (p->executions <= 0) continue;
        if (told++ >= TOLD_MAX) left += 1;
        else {
            fprintf(stderr,
                    "warpdnn run: WarpDNN did the work of %s (process %ld): %lld operation%s\n",
                    name_of(p), (long)p->id, p->executions, p->executions == 1 ? "" : "s");
        }
    }
    if (left) fprintf(stderr, "warpdnn run: and of %d more processes\n", left);
}

static void tell_others(const struct watch *watch, bool worrying, bool quiet)
{
    int told = 0;
    for (int i = 0; i < watch->count; ++i) {
        const struct process *p = &watch->processes[i];
        if (p->count == 0 || may_have_worked_elsewhere(p) != worrying) continue;
        if (!worrying && (quiet || p->executions < 0)) continue;
        if (told++ >= TOLD_MAX) continue;
        fprintf(stderr,
                worrying
                    ? "warpdnn run: another cuDNN may have worked in %s (process %ld):"
                    : "warpdnn run: %s (process %ld) opened another cuDNN too, and did not use it:",
                name_of(p), (long)p->id);
        for (int k = 0; k < p->count; ++k) {
            struct elf_facts facts;
            bool copy = elf_read(p->others[k], &facts) && facts.warpdnn;
            fprintf(stderr, " %s%s", p->others[k], copy ? " (another copy of WarpDNN)" : "");
        }
        fputc('\n', stderr);
    }
    if (worrying && told) {
        fputs("warpdnn run: it is opened by its path, or linked by the names of its parts; "
              "docs/running.md says what helps\n",
              stderr);
    }
}

/* Why nothing is known to have run on ours. */
static void tell_idle(const struct watch *watch)
{
    int loaded = 0, silent = 0;
    const struct process *first_silent = NULL;
    for (int i = 0; i < watch->count; ++i) {
        const struct process *p = &watch->processes[i];
        loaded += p->ours;
        if (p->ours && p->executions < 0 && p->busy) {
            silent += 1;
            if (!first_silent) first_silent = p;
        }
    }
    if (silent) {
        fprintf(
            stderr,
            "warpdnn run: WarpDNN was loaded into %s (process %ld), which ended without a report "
            "(killed, forked, or by _exit): what it executed is not known\n",
            name_of(first_silent), (long)first_silent->id);
    } else if (!watch->lines[0]) {
        fputs("warpdnn run: without reports it is not known what WarpDNN executed\n", stderr);
    } else if (loaded) {
        fprintf(stderr, "warpdnn run: WarpDNN was loaded into %d process%s and executed nothing\n",
                loaded, loaded == 1 ? "" : "es");
    } else {
        fputs("warpdnn run: no process was seen with WarpDNN: statically linked and set-user-id "
              "programs ignore LD_PRELOAD, and what is killed at once leaves no report\n",
              stderr);
    }
}

bool watch_conclude(struct watch *watch, bool quiet)
{
    bool worked = false, elsewhere = false;
    read_lines(watch);
    for (int i = 0; i < watch->count; ++i) {
        worked = worked || watch->processes[i].executions > 0;
        elsewhere = elsewhere || may_have_worked_elsewhere(&watch->processes[i]);
    }
    if (worked && !quiet) tell_workers(watch);
    if (!worked) tell_idle(watch);
    tell_others(watch, false, quiet);
    tell_others(watch, true, quiet);
    return worked && !elsewhere;
}
