/* SPDX-License-Identifier: Apache-2.0
 *
 * Xid lines: what NVIDIA's kernel module wrote to the kernel's log about a device, where the log
 * may be read. `--kernel-log FILE` reads a saved one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>

#include "doctor.h"

static const char area[] = "kernel log";

enum { READ_ALL = 3, SIZE_OF_BUFFER = 10, NUMBERS = 1024, TOLD_MAX = 16 };
static const size_t log_max = (size_t)256 << 20;

static const struct meaning {
    int number;
    enum verdict verdict;
    const char *words, *advice;
} meanings[] = {
#define XID(number, verdict, words, advice) {number, verdict, words, advice},
#include "xid.def"
};

/* The lines of the log, freed by the caller; null with the reason in errno. */
static char *read_kernel(void)
{
    int size = klogctl(SIZE_OF_BUFFER, NULL, 0);
    char *bytes;
    int got;
    if (size <= 0) return NULL;
    bytes = (char *)tool_resize(NULL, (size_t)size + 1);
    got = klogctl(READ_ALL, bytes, size);
    if (got < 0) {
        int error = errno;
        free(bytes);
        errno = error;
        return NULL;
    }
    bytes[got] = '\0';
    return bytes;
}

static char *read_file(const char *path)
{
    struct text text = {0};
    char bytes[65536];
    size_t got;
    FILE *file = fopen(path, "re");
    if (!file) return NULL;
    while ((got = fread(bytes, 1, sizeof bytes, file)) > 0 && text.length < log_max) {
        for (size_t i = 0; i < got; ++i) {
            if (!bytes[i]) bytes[i] = ' ';
        }
        text_add_bytes(&text, bytes, got);
    }
    if (ferror(file)) {
        text_free(&text);
        fclose(file);
        errno = EIO;
        return NULL;
    }
    fclose(file);
    return text.data ? text.data : text_copy("");
}

struct seen {
    int count;
    const char *last; /* the line's text from "Xid" on */
    int length;
};

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, ...": its number, 0 where the line is another. */
static int xid_of(const char *line, size_t size, const char **text)
{
    const char *at = memmem(line, size, "NVRM: Xid (", 11);
    const char *end = line + size;
    long number;
    if (!at) return 0;
    *text = at + strlen("NVRM: ");
    while (at < end && *at != ')') at += 1;
    while (at < end && (*at < '0' || *at > '9')) at += 1;
    number = at < end ? strtol(at, NULL, 10) : 0;
    return number > 0 && number < NUMBERS ? (int)number : 0;
}

static void judge(struct doctor *doctor, int number, const struct seen *seen)
{
    enum verdict verdict = NOTE;
    const char *words = "of no meaning known here",
               *advice = "NVIDIA's list of Xid errors says more";
    struct finding *finding;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; ++i) {
        if (meanings[i].number != number) continue;
        verdict = meanings[i].verdict;
        words = meanings[i].words;
        advice = meanings[i].advice;
    }
    finding = report_add(&doctor->report, verdict, area, "kernel_log.xid",
                         "Xid %d, %s; %d times since the log begins, last: %.*s", number, words,
                         seen->count, seen->length < 200 ? seen->length : 200, seen->last);
    finding_advise(finding, "%s", advice);
    finding_number(finding, "xid", number);
    finding_number(finding, "count", seen->count);
}

void doctor_kernel_log(struct doctor *doctor)
{
    struct seen *seen;
    char *log = doctor->kernel_log ? read_file(doctor->kernel_log) : read_kernel();
    int told = 0;
    struct finding *finding;
    if (!log) {
        finding = report_add(&doctor->report, doctor->kernel_log ? WARNING : NOTE, area,
                             "kernel_log.closed", "not known: %s cannot be read (%s)",
                             doctor->kernel_log ? doctor->kernel_log : "the kernel's log",
                             strerror(errno));
        finding_advise(finding, "as root: dmesg > FILE, then `warpdnn doctor --kernel-log FILE`");
        return;
    }
    seen = (struct seen *)tool_resize(NULL, NUMBERS * sizeof *seen);
    memset(seen, 0, NUMBERS * sizeof *seen);
    for (const char *line = log; *line;) {
        size_t size = strcspn(line, "\n");
        const char *text = NULL;
        int number = xid_of(line, size, &text);
        if (number) {
            seen[number].count += 1;
            seen[number].last = text;
            seen[number].length = (int)(line + size - text);
        }
        line += size + (line[size] == '\n');
    }
    for (int i = 0; i < NUMBERS; ++i) {
        if (seen[i].count && told++ < TOLD_MAX) judge(doctor, i, &seen[i]);
    }
    if (!told)
        report_add(&doctor->report, FINE, area, "kernel_log.xid", "no Xid in %s",
                   doctor->kernel_log ? doctor->kernel_log : "the kernel's log");
    free(seen);
    free(log);
}
