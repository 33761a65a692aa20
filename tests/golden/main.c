/* SPDX-License-Identifier: Apache-2.0
 *
 * golden record LIB | golden compare RECORD LIB | golden list: runs the case list on a libcudnn in
 * worker processes. The parent never opens a library; case i belongs to worker i mod the number of
 * workers; a worker that crashes, hangs or loses its device is started again behind the case that
 * did it, so that one bad case costs one line.
 */
#define _GNU_SOURCE
#include "golden.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 32, CASE_SECONDS = 30, START_SECONDS = 90 };

struct job {
    pid_t pid;
    int fd;
    bool done;
    int starts, futile;
    long reached;
    struct gd_slot *slot;
};

static const char *library;
static bool noisy;

void gd_walk(void)
{
#define AREA(f) f();
#include "areas.def"
#undef AREA
}

static void worker(struct job *job, int index)
{
    gd_run.worker = index;
    gd_run.slot = job->slot;
    gd_run.fd = job->fd;
    gd_run.first = job->starts ? job->slot->current + 1 : 0;
    gd_run.next = 0;
    if (gd_run.device == GD_CPU) setenv("WARPDNN_DEVICE", "cpu", 1);
    int stderr_fd = dup(2), null_fd = open("/dev/null", O_WRONLY);
    if (gd_memory_init(gd_run.device) || gd_load(library)) _exit(GD_EXIT_INIT);
    job->slot->version = lib.GetVersion();
    snprintf(job->slot->device, sizeof job->slot->device, "%s", gd_device_name());
    if (gd_run.device != GD_NONE) {
        cudnnStatus_t s = lib.Create(&gd_run.handle);
        if (s != CUDNN_STATUS_SUCCESS) {
            char text[512] = "";
            lib.GetLastErrorString(text, sizeof text);
            fprintf(stderr, "golden: cudnnCreate answers %d: %s\n", (int)s, text);
            _exit(GD_EXIT_INIT);
        }
    }
    /* Libraries under test may log each refused call there. */
    if (!noisy && null_fd >= 0) dup2(null_fd, 2);
    gd_walk();
    dup2(stderr_fd, 2);
    if (gd_check_maps(library)) _exit(GD_EXIT_WRONG);
    if (gd_run.handle) lib.Destroy(gd_run.handle);
    _exit(0);
}

static void start(struct job *job, int index)
{
    fflush(NULL);
    job->slot->busy = 0;
    job->slot->started = (long)time(NULL);
    job->pid = fork();
    if (job->pid == 0) worker(job, index);
    job->starts++;
}

/* The line of a case that ended its worker. */
static void obituary(struct job *job, const char *how, int code)
{
    char line[512];
    struct gd_slot *slot = job->slot;
    gd_run.slot = slot;
    gd_run.fd = job->fd;
    if (gd_run.compare) snprintf(line, sizeof line, "F %s %d\t%s", how, code, slot->name);
    else snprintf(line, sizeof line, "%s %s!%d", slot->name, how, code);
    gd_answer(line);
    slot->busy = 0;
}

/* A worker ended: keeps its last words and starts it again unless it is through. False when it
 * has failed three times without reaching another case, or found the wrong library. */
static bool reap(struct job *job, int index, int status)
{
    bool killed = WIFSIGNALED(status);
    int code = killed ? WTERMSIG(status) : WEXITSTATUS(status);
    struct gd_slot *slot = job->slot;
    if (slot->busy) {
        obituary(job, killed && code == SIGKILL ? "hang" : "crash", code);
    } else if (!killed && (code == 0 || code == GD_EXIT_WRONG)) {
        job->done = true;
        return code == 0;
    } else if (killed || code != GD_EXIT_AGAIN) {
        fprintf(stderr, "golden: worker %d ended with %s %d after '%s'\n", index,
                killed ? "signal" : "status", code, slot->name);
    }
    job->futile = slot->current == job->reached ? job->futile + 1 : 0;
    job->reached = slot->current;
    if (job->futile < 3) {
        start(job, index);
        return true;
    }
    job->done = true;
    return false;
}

/* Runs all workers to their ends; 0, or -1 when one of them could not do its part. */
static int run_jobs(struct job *jobs, int n)
{
    int rc = 0;
    for (int i = 0; i < n; i++) start(&jobs[i], i);
    for (;;) {
        int status, open = 0;
        for (int i = 0; i < n; i++) open += !jobs[i].done;
        pid_t pid = open ? waitpid(-1, &status, WNOHANG) : -1;
        if (pid < 0) return rc;
        for (int i = 0; i < n && pid > 0; i++)
            if (jobs[i].pid == pid && !jobs[i].done && !reap(&jobs[i], i, status)) rc = -1;
        if (pid > 0) continue;
        usleep(10000);
        long now = (long)time(NULL);
        for (int i = 0; i < n; i++) {
            int limit = jobs[i].slot->busy ? CASE_SECONDS : START_SECONDS;
            if (!jobs[i].done && now - jobs[i].slot->started > limit) kill(jobs[i].pid, SIGKILL);
        }
    }
}

struct line {
    long index;
    char *text;
};

static int by_index(const void *a, const void *b)
{
    long x = ((const struct line *)a)->index, y = ((const struct line *)b)->index;
    return x < y ? -1 : x > y;
}

static long collect(struct job *jobs, int n, char ***out)
{
    struct line *lines = NULL;
    long count = 0, cap = 0;
    for (int i = 0; i < n; i++) {
        FILE *f = fdopen(dup(jobs[i].fd), "r");
        char *text = NULL;
        size_t room = 0;
        rewind(f);
        while (getline(&text, &room, f) > 0) {
            text[strcspn(text, "\n")] = 0;
            char *tab = strchr(text, '\t');
            if (!tab) continue;
            if (count == cap) {
                cap = cap ? 2 * cap : 1024;
                lines = realloc(lines, (size_t)cap * sizeof *lines);
            }
            lines[count++] = (struct line){atol(text), strdup(tab + 1)};
        }
        free(text);
        fclose(f);
    }
    if (count) qsort(lines, (size_t)count, sizeof *lines, by_index);
    *out = malloc((size_t)(count + 1) * sizeof **out);
    for (long i = 0; i < count; i++) (*out)[i] = lines[i].text;
    free(lines);
    return count;
}

static int usage(void)
{
    fprintf(stderr,
            "golden record LIB [--device none|cpu|gpu] [--out FILE] [--only PATTERN] [--jobs N]\n"
            "golden compare RECORD LIB [--device none|cpu|gpu] [--only PATTERN] [--jobs N]\n"
            "golden list [--device none|cpu|gpu] [--only PATTERN]\n"
            "--noisy lets the library write to stderr\n");
    return 2;
}

static const char *const device_names[] = {"none", "cpu", "gpu"};

static int write_record(const char *path, char **lines, long n, const struct gd_slot *slot)
{
    FILE *f = path ? fopen(path, "w") : stdout;
    if (!f) {
        fprintf(stderr, "golden: cannot write %s\n", path);
        return 1;
    }
    fprintf(f, "# SPDX-License-Identifier: Apache-2.0\n");
    fprintf(f, "# %ld answers of libcudnn %zu, device %s (%s); README.md says how to read them\n",
            n, slot->version, device_names[gd_run.device], slot->device);
    for (long i = 0; i < n; i++) fprintf(f, "%s\n", lines[i]);
    if (path) fclose(f);
    fprintf(stderr, "%ld cases recorded\n", n);
    return 0;
}

int main(int argc, char **argv)
{
    const char *out = NULL, *record = NULL;
    char rerun[512];
    int jobs_n = 0, at = 2;
    if (argc < 2) return usage();
    gd_run.list = strcmp(argv[1], "list") == 0;
    gd_run.compare = strcmp(argv[1], "compare") == 0;
    if (!gd_run.list && !gd_run.compare && strcmp(argv[1], "record")) return usage();
    if (gd_run.compare && at < argc) record = argv[at++];
    if (!gd_run.list && at < argc) library = argv[at++];
    for (; at < argc; at++) {
        if (strcmp(argv[at], "--list") == 0) {
            gd_run.list = true;
            continue;
        }
        if (strcmp(argv[at], "--noisy") == 0) {
            noisy = true;
            continue;
        }
        if (at + 1 == argc) return usage();
        const char *value = argv[at + 1];
        if (strcmp(argv[at], "--device") == 0) {
            int d = GD_NONE;
            while (d <= GD_GPU && strcmp(device_names[d], value)) d++;
            if (d > GD_GPU) return usage();
            gd_run.device = (enum gd_device)d;
        } else if (strcmp(argv[at], "--only") == 0) {
            gd_run.only = value;
        } else if (strcmp(argv[at], "--out") == 0) {
            out = value;
        } else if (strcmp(argv[at], "--jobs") == 0) {
            jobs_n = atoi(value);
        } else {
            return usage();
        }
        at++;
    }
    if (gd_run.list) {
        gd_walk();
        return 0;
    }
    if (!library || (gd_run.compare && !record)) return usage();
    gd_reexec(library, argv);
    if (gd_run.compare && gd_record_read(record)) return 1;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (jobs_n <= 0) jobs_n = cores < 1 ? 1 : cores > 12 ? 12 : (int)cores;
    if (jobs_n > WORKERS_MAX) jobs_n = WORKERS_MAX;
    gd_run.workers = jobs_n;

    struct gd_slot *slots = mmap(NULL, WORKERS_MAX * sizeof *slots, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct job jobs[WORKERS_MAX] = {0};
    if (slots == MAP_FAILED) return 1;
    for (int i = 0; i < jobs_n; i++) {
        jobs[i].slot = &slots[i];
        jobs[i].slot->current = jobs[i].reached = -1;
        jobs[i].fd = memfd_create("golden", 0); /* outlives the worker that writes to it */
        if (jobs[i].fd < 0) {
            fprintf(stderr, "golden: no memory for the answers\n");
            return 1;
        }
    }
    int rc = run_jobs(jobs, jobs_n);
    char **lines;
    long n = collect(jobs, jobs_n, &lines);
    if (gd_run.compare) {
        /* The workers marked what they saw in their own copies: walk once more here. */
        struct gd_run saved = gd_run;
        gd_run.workers = 1;
        gd_run.worker = 1;
        gd_run.next = 0;
        gd_walk();
        gd_run = saved;
        snprintf(rerun, sizeof rerun, "%s compare %s %s --device %s", argv[0], record, library,
                 device_names[gd_run.device]);
        if (rc) printf("FAIL the library could not be asked everything: see above\n");
        rc |= gd_report(lines, n, rerun, rc != 0);
    } else if (n == 0) {
        fprintf(stderr, "golden: nothing was recorded\n");
        rc = 1;
    } else {
        rc |= write_record(out, lines, n, &slots[0]);
    }
    for (long i = 0; i < n; i++) free(lines[i]);
    free(lines);
    return rc ? 1 : 0;
}
