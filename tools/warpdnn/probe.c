/* SPDX-License-Identifier: Apache-2.0
 *
 * A child process, a pipe, a deadline. The child is its own process group, which is killed whole:
 * what it starts must not outlive it. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAID_MAX = 1 << 20, GRACE_MS = 1000, PIPE_HOLDS = 32768 };

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* In the child, before its work. */
static void settle(int input)
{
    struct rlimit none = {0, 0};
    int nowhere = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    dup2(input >= 0 ? input : nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
}

/* Reads until the end of the pipe, or the deadline; false at the deadline. */
static bool listen_to(struct probe *probe, int from, long long deadline)
{
    char bytes[4096];
    for (;;) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        long long left = deadline - now_ms();
        ssize_t got;
        if (left <= 0) return false;
        if (poll(&ready, 1, (int)left) <= 0) continue;
        got = read(from, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        if (probe->said.length < SAID_MAX) text_add_bytes(&probe->said, bytes, (size_t)got);
    }
}

/* True when the child has ended by the deadline. It stays a zombie, so that its number is its own. */
static bool ends_by(pid_t child, long long deadline)
{
    struct timespec nap = {0, 2000000};
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        int got = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((got == 0 && info.si_pid == child) || (got < 0 && errno != EINTR)) return true;
        if (now_ms() >= deadline) return false;
        nanosleep(&nap, NULL);
    }
}

static void finish(struct probe *probe, pid_t child, int from)
{
    long long deadline = now_ms() + (long long)probe->seconds * 1000;
    int status = 0;
    bool in_time = listen_to(probe, from, deadline) && ends_by(child, deadline);
    close(from);
    kill(-child, SIGKILL); /* with what it started */
    kill(child, SIGKILL);  /* should it not have made its group yet */
    if (!in_time && !ends_by(child, now_ms() + GRACE_MS)) {
        probe->end = PROBE_STUCK;
        return;
    }
    waitpid(child, &status, 0);
    probe->end = !in_time ? PROBE_EXPIRED : WIFSIGNALED(status) ? PROBE_CRASHED : PROBE_DONE;
    probe->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

void probe_call(struct probe *probe, probe_fn fn, void *arg, int seconds)
{
    int ends[2];
    pid_t child;
    *probe = (struct probe){.end = PROBE_BROKEN, .seconds = seconds};
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        FILE *out = fdopen(ends[1], "w");
        int result;
        settle(-1);
        if (!out) _exit(EXIT_FAILURE);
        setvbuf(out, NULL, _IOLBF, 0); /* what was said before a crash is kept */
        result = fn(out, arg);
        fflush(out);
        _exit(result);
    }
    close(ends[1]);
    if (child < 0) close(ends[0]);
    else finish(probe, child, ends[0]);
}

/* The reading end of a pipe that holds the text, which must fit; -1 where there is none. */
static int pipe_with(const char *text)
{
    size_t length = strlen(text);
    int ends[2];
    if (length > PIPE_HOLDS || pipe2(ends, O_CLOEXEC) != 0) return -1;
    if (write(ends[1], text, length) != (ssize_t)length) {
        close(ends[0]);
        ends[0] = -1;
    }
    close(ends[1]);
    return ends[0];
}

void probe_command(struct probe *probe, char *const argv[], const char *input, int seconds)
{
    int script = pipe_with(input);
    int ends[2];
    pid_t child;
    *probe = (struct probe){.end = PROBE_BROKEN, .seconds = seconds};
    if (script < 0) return;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        close(script);
        return;
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        settle(script);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execv(argv[0], argv);
        dprintf(STDERR_FILENO, "%s\n", strerror(errno));
        _exit(127);
    }
    close(script);
    close(ends[1]);
    if (child < 0) close(ends[0]);
    else finish(probe, child, ends[0]);
}

void probe_free(struct probe *probe)
{
    text_free(&probe->said);
}

void probe_say(FILE *out, const char *key, const char *format, ...)
{
    char value[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(value, sizeof value, format, list);
    va_end(list);
    for (char *c = value; *c; ++c) {
        if (*c == '\n' || *c == '\t' || *c == '\r') *c = ' ';
    }
    fprintf(out, "%s\t%s\n", key, value);
}

char *probe_nth(const struct probe *probe, const char *key, int n)
{
    const char *line = text_of(&probe->said);
    size_t length = strlen(key);
    while (*line) {
        size_t size = strcspn(line, "\n");
        if (size > length && strncmp(line, key, length) == 0 && line[length] == '\t' && n-- == 0) {
            return text_make("%.*s", (int)(size - length - 1), line + length + 1);
        }
        line += size + (line[size] == '\n');
    }
    return NULL;
}

char *probe_value(const struct probe *probe, const char *key)
{
    char *value = probe_nth(probe, key, 0);
    return value ? value : text_copy("");
}

long long probe_number(const struct probe *probe, const char *key, long long otherwise)
{
    char *value = probe_nth(probe, key, 0);
    char *end = value;
    long long number = value ? strtoll(value, &end, 10) : otherwise;
    if (value && end == value) number = otherwise;
    free(value);
    return number;
}

char *probe_ending(const struct probe *probe)
{
    switch (probe->end) {
    case PROBE_DONE: return text_make("ends with status %d", probe->code);
    case PROBE_CRASHED: return text_make("crashes (%s)", strsignal(probe->code));
    case PROBE_EXPIRED: return text_make("does not answer within %d s", probe->seconds);
    case PROBE_STUCK:
        return text_make("does not answer within %d s, and cannot be killed: it hangs inside the "
                         "kernel",
                         probe->seconds);
    case PROBE_BROKEN: break;
    }
    return text_copy("could not be started");
}
