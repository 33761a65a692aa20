/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking something that may crash or hang: in a child process with a time limit. The child says
 * `key<TAB>value` lines. Nothing here waits longer than the limit and a second. */
#ifndef WARPDNN_TOOL_PROBE_H
#define WARPDNN_TOOL_PROBE_H

#include <stdio.h>

#include "text.h"

enum probe_end {
    PROBE_DONE,    /* the child ended by itself; `code` is its exit status */
    PROBE_CRASHED, /* a signal ended it; `code` is the signal */
    PROBE_EXPIRED, /* it ran past its limit and was killed */
    PROBE_STUCK,   /* and does not even die: it waits inside the kernel */
    PROBE_BROKEN   /* it could not be started */
};

struct probe {
    enum probe_end end;
    int code;
    int seconds; /* the limit */
    struct text said;
};

typedef int (*probe_fn)(FILE *out, void *arg);

/* Runs fn in a child, whose standard streams lead nowhere; what it writes to `out` is kept. */
void probe_call(struct probe *probe, probe_fn fn, void *arg, int seconds);
/* Runs a program with `input` on its standard input; what it writes is kept. */
void probe_command(struct probe *probe, char *const argv[], const char *input, int seconds);
void probe_free(struct probe *probe);

/* What a child says; line ends and tabs in the value become blanks. */
void probe_say(FILE *out, const char *key, const char *format, ...) TOOL_PRINTF(3, 4);

/* The value of the first line with this key, "" where there is none; or the nth of several (from
 * 0), null where there are fewer. Free the answer. */
char *probe_value(const struct probe *probe, const char *key);
char *probe_nth(const struct probe *probe, const char *key, int n);
long long probe_number(const struct probe *probe, const char *key, long long otherwise);

/* How it ended, in words: "crashes (Segmentation fault)", "does not answer within 20 s". */
char *probe_ending(const struct probe *probe);

#endif
