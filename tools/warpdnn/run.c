/* SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn run: starts a command so that its libcudnn is ours, waits for it, and says what it ran
 * on.
 *
 * How ours gets there: LD_PRELOAD by its absolute name. A library of the name libcudnn.so.9 is then
 * in the process before anything else, and the loader answers with it whatever asks for that name:
 * programs linked to it, whatever their RPATH, and dlopen("libcudnn.so.9"). LD_LIBRARY_PATH leads
 * to it too, for dlopen("libcudnn.so"). What opens another file by its path gets that file; the
 * watch sees it. The checker is preloaded second. Both variables are inherited, so they hold for
 * whatever the command starts.
 *
 * The command keeps our process group, terminal and standard streams. Signals that somebody sends
 * to us go on to it (those of the terminal reach it by themselves), its stops are ours, and we end
 * as it ended. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "place.h"
#include "text.h"
#include "tool.h"
#include "watch.h"

enum { LOOK_FIRST_MS = 4, LOOK_LAST_MS = 1000, REPORT_ROOM = 64 << 10 }; /* the last in bytes */

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH};

struct job {
    struct place place;
    const char *device;
    bool check, quiet;
    char **command;
    char folder[256]; /* of the report, "" where there is none */
    char *report;
    sigset_t signals, before;
    struct sigaction child_before;
    pid_t child;
    bool seen_stopped;
};

static const char help[] =
    "warpdnn run [--device auto|gpu|cpu] [--check] [--quiet] [--] COMMAND [ARGUMENTS]\n\n"
    "Runs COMMAND, and whatever it starts, on WarpDNN, and says on stderr whether WarpDNN did the "
    "work.\n\n"
    "  --device D  where handles compute (WARPDNN_DEVICE)\n"
    "  --check     fail with 125 where COMMAND succeeds but WarpDNN did not do its work, or "
    "another\n"
    "              cuDNN may have worked too\n"
    "  --quiet     say only what is wrong\n\n"
    "The exit status is the command's (where a signal ends it, we end by that signal); 125 where\n"
    "warpdnn fails, 126 where COMMAND cannot be executed, 127 where it is not there.\n";

static int fail(const char *format, ...) TOOL_PRINTF(1, 2);

static int fail(const char *format, ...)
{
    va_list list;
    fputs("warpdnn run: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return EXIT_OURS;
}

/* ---- Arguments ---- */

/* -1 to go on, else the exit status. */
static int read_arguments(struct job *job, int argc, char **argv)
{
    int i;
    for (i = 1; i < argc && argv[i][0] == '-'; ++i) {
        const char *arg = argv[i];
        if (strcmp(arg, "--") == 0) {
            i += 1;
            break;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (strcmp(arg, "--check") == 0) job->check = true;
        else if (strcmp(arg, "--quiet") == 0 || strcmp(arg, "-q") == 0) job->quiet = true;
        else if (text_starts(arg, "--device=")) job->device = arg + strlen("--device=");
        else if (strcmp(arg, "--device") == 0) {
            if (i + 1 == argc) return fail("--device needs a value: auto, gpu or cpu");
            job->device = argv[++i];
        } else {
            return fail("unknown option '%s' (put -- before a command that begins with a dash)",
                        arg);
        }
    }
    if (job->device && strcmp(job->device, "auto") != 0 && strcmp(job->device, "gpu") != 0 &&
        strcmp(job->device, "cpu") != 0) {
        return fail("--device %s: must be auto, gpu or cpu", job->device);
    }
    if (i >= argc) return fail("no command is given; `warpdnn run --help` says more");
    job->command = argv + i;
    return -1;
}

/* ---- The command's environment ---- */

static void set_front(const char *name, const char *front)
{
    const char *old = getenv(name);
    size_t length = strlen(front);
    char *joined;
    if (old && strncmp(old, front, length) == 0 && (!old[length] || old[length] == ':')) return;
    joined = old && *old ? text_make("%s:%s", front, old) : text_copy(front);
    setenv(name, joined, 1);
    free(joined);
}

/* False where LD_PRELOAD cannot say the name: blanks and colons separate its entries. */
static bool can_be_preloaded(const char *path)
{
    return !strpbrk(path, " \t:;");
}

/* What is not kept of LD_PRELOAD: another libcudnn, and the checker of a `warpdnn run` around us. */
static bool is_replaced(const struct job *job, const char *entry)
{
    return text_starts(text_base(entry), "libcudnn") ||
           (job->place.checker && job->report && strcmp(entry, job->place.checker) == 0);
}

/* LD_PRELOAD: what was there stays in front, for sanitizers' runtimes must come first and ours
 * defines the API's names only. */
static void set_preload(const struct job *job)
{
    const char *rest = getenv("LD_PRELOAD");
    struct text preload = {0};
    while (rest && *rest) {
        size_t length = strcspn(rest, ": ");
        char *entry = text_make("%.*s", (int)length, rest);
        if (*entry && !is_replaced(job, entry)) text_add(&preload, "%s:", entry);
        free(entry);
        rest += length + (rest[length] != '\0');
    }
    text_add(&preload, "%s", job->place.library);
    if (job->place.checker && job->report) text_add(&preload, ":%s", job->place.checker);
    setenv("LD_PRELOAD", text_of(&preload), 1);
    text_free(&preload);
}

static void set_environment(const struct job *job)
{
    set_preload(job);
    set_front("LD_LIBRARY_PATH", job->place.folder);
    if (job->report) setenv("WARPDNN_RUN_REPORT", job->report, 1);
    if (job->device) setenv("WARPDNN_DEVICE", job->device, 1);
}

static void remove_report(struct job *job)
{
    if (job->report) unlink(job->report);
    if (job->folder[0]) rmdir(job->folder);
    free(job->report);
}

/* A file for the checkers' lines; without one only /proc is watched. */
static void make_report(struct job *job)
{
    const char *top = getenv("TMPDIR");
    int file;
    if (!top || top[0] != '/' || strlen(top) > 200) top = "/tmp";
    snprintf(job->folder, sizeof job->folder, "%s/warpdnn-run-XXXXXX", top);
    if (!mkdtemp(job->folder)) {
        fail("no folder can be made in %s (%s): reports of processes as they end are missing", top,
             strerror(errno));
        job->folder[0] = '\0';
        return;
    }
    job->report = text_make("%s/report", job->folder);
    file = open(job->report, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    /* who ends can tell nobody that there is no room; where a file system cannot say, there may be */
    if (file < 0 || (fallocate(file, FALLOC_FL_KEEP_SIZE, 0, REPORT_ROOM) != 0 &&
                     (errno == ENOSPC || errno == EDQUOT))) {
        fail("no file can be written in %s (%s): reports of processes as they end are missing", top,
             strerror(errno));
        remove_report(job);
        job->folder[0] = '\0';
        job->report = NULL;
    }
    if (file >= 0) close(file);
}

/* Where another `warpdnn run` is around us, it wants our checkers' lines too. */
static void hand_on_report(const struct job *job)
{
    const char *outer = getenv("WARPDNN_RUN_REPORT");
    struct text lines = {0};
    char bytes[4096];
    size_t got;
    FILE *from = outer && job->report ? fopen(job->report, "re") : NULL;
    int to = from ? open(outer, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    while (to >= 0 && (got = fread(bytes, 1, sizeof bytes, from)) > 0) {
        text_add_bytes(&lines, bytes, got);
    }
    if (lines.length && write(to, lines.data, lines.length) < 0) {
        fail("%s: %s", outer, strerror(errno));
    }
    if (to >= 0) close(to);
    if (from) fclose(from);
    text_free(&lines);
}

/* ---- The command ---- */

/* In the child: becomes the command, or tells the parent why not. */
static void become(const struct job *job, int tell)
{
    int error;
    sigaction(SIGCHLD, &job->child_before, NULL);
    sigprocmask(SIG_SETMASK, &job->before, NULL);
    set_environment(job);
    execvp(job->command[0], job->command);
    error = errno;
    while (write(tell, &error, sizeof error) < 0 && errno == EINTR) {
    }
    _exit(EXIT_OURS);
}

/* The exit status of a command that was not started, -1 where it was. */
static int start(struct job *job)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    int ends[2], error = 0;
    ssize_t got;
    sigemptyset(&job->signals);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; ++i) {
        sigaddset(&job->signals, passed_on[i]);
    }
    sigaddset(&job->signals, SIGCHLD);
    sigaction(SIGCHLD, &plain, &job->child_before); /* an ignored one would reap the command */
    sigprocmask(SIG_BLOCK, &job->signals, &job->before);
    if (pipe2(ends, O_CLOEXEC) != 0) return fail("no pipe: %s", strerror(errno));
    job->child = fork();
    if (job->child < 0) return fail("no process: %s", strerror(errno));
    if (job->child == 0) become(job, ends[1]);
    close(ends[1]);
    do got = read(ends[0], &error, sizeof error);
    while (got < 0 && errno == EINTR);
    close(ends[0]);
    if (got != (ssize_t)sizeof error) return -1;
    waitpid(job->child, NULL, 0);
    fail("%s: %s", job->command[0], strerror(error));
    return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

/* True when the command has ended, with its status. */
static bool has_ended(struct job *job, int *status)
{
    pid_t got;
    while ((got = waitpid(job->child, status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (WIFSTOPPED(*status)) raise(SIGSTOP); /* our shell sees what the command did */
        else if (!WIFCONTINUED(*status)) return true;
    }
    return got < 0 && errno == ECHILD;
}

static int wait_for(struct job *job, struct watch *watch)
{
    long interval = LOOK_FIRST_MS;
    int status = 0;
    while (!has_ended(job, &status)) {
        struct timespec limit = {interval / 1000, interval % 1000 * 1000000};
        siginfo_t info;
        int signal = sigtimedwait(&job->signals, &info, &limit);
        if (signal > 0 && signal != SIGCHLD) {
            /* the terminal's own signals (SI_KERNEL) go to the whole group */
            if (info.si_code <= 0) kill(job->child, signal);
            continue;
        }
        if (signal < 0 && errno == EAGAIN) {
            watch_look(watch);
            if (interval < LOOK_LAST_MS) interval = interval * 2;
            if (interval > LOOK_LAST_MS) interval = LOOK_LAST_MS;
        }
    }
    return status;
}

/* Ends this process by the signal that ended the command, without a second core dump. */
static void end_by(int signal)
{
    sigset_t one;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    prctl(PR_SET_DUMPABLE, 0);
    sigaction(signal, &plain, NULL);
    sigemptyset(&one);
    sigaddset(&one, signal);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(signal);
}

static int conclude(struct job *job, struct watch *watch, int status)
{
    bool good = watch_conclude(watch, job->quiet);
    hand_on_report(job);
    remove_report(job);
    if (WIFSIGNALED(status)) {
        fflush(NULL);
        end_by(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    if (job->check && !good) {
        fail("--check: the command did not run on WarpDNN alone");
        if (WEXITSTATUS(status) == 0) return EXIT_OURS;
    }
    return WEXITSTATUS(status);
}

int command_run(int argc, char **argv)
{
    struct job job = {.check = false};
    struct watch *watch;
    int result = read_arguments(&job, argc, argv);
    if (result >= 0) return result;
    if (!place_find(&job.place)) {
        result = fail("the library is missing; looked for: %s", job.place.looked);
        goto done;
    }
    if (!can_be_preloaded(job.place.library)) {
        result = fail("%s: LD_PRELOAD cannot name a file with a blank or a colon in its path; "
                      "install WarpDNN elsewhere",
                      job.place.library);
        goto done;
    }
    if (job.place.checker && !can_be_preloaded(job.place.checker)) {
        free(job.place.checker);
        job.place.checker = NULL;
    }
    if (!job.place.checker) {
        fail("libwarpdnn_run.so is missing beside the library: processes are only watched from "
             "outside");
    }
    make_report(&job);
    result = start(&job);
    if (result >= 0) {
        remove_report(&job);
        goto done;
    }
    watch = watch_create(job.child, job.place.library, job.report ? job.report : "");
    result = wait_for(&job, watch);
    result = conclude(&job, watch, result);
    watch_destroy(watch);
done:
    place_free(&job.place);
    return result;
}
