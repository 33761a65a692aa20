/* SPDX-License-Identifier: Apache-2.0
 *
 * A case and its answers: which cases this worker runs, the tokens that a case notes, and the line
 * that is written of them. README.md says how a line reads.
 */
#define _GNU_SOURCE
#include "golden.h"

#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct gd_run gd_run;
const struct gd_tol gd_exact = {0, 0};

enum { SAMPLES = 24 };

bool gd_match(const char *pattern, const char *name)
{
    if (!pattern) return true;
    if (strpbrk(pattern, "*?[")) return fnmatch(pattern, name, 0) == 0;
    return strstr(name, pattern) != NULL;
}

static bool begin(bool host, const char *fmt, va_list ap)
{
    vsnprintf(gd_run.name, sizeof gd_run.name, fmt, ap);
    if (host != (gd_run.device == GD_NONE) || !gd_match(gd_run.only, gd_run.name)) return false;
    if (gd_run.compare) gd_record_mark(gd_run.name);
    long index = gd_run.next++;
    if (gd_run.list) {
        puts(gd_run.name);
        return false;
    }
    if (index % gd_run.workers != gd_run.worker || index < gd_run.first || gd_run.broken)
        return false;
    struct gd_slot *slot = gd_run.slot;
    snprintf(slot->name, sizeof slot->name, "%s", gd_run.name);
    slot->current = index;
    slot->started = (long)time(NULL);
    slot->busy = 1;
    gd_run.tokens = 0;
    gd_run.refusal[0] = 0;
    return true;
}

bool gd_case(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool run = begin(false, fmt, ap);
    va_end(ap);
    return run;
}

bool gd_host_case(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool run = begin(true, fmt, ap);
    va_end(ap);
    return run;
}

const char *gd_case_name(void)
{
    return gd_run.name;
}

cudnnHandle_t gd_handle(void)
{
    return gd_run.handle;
}

/* One write a line, so that lines of a worker that dies are whole. */
void gd_answer(const char *line)
{
    size_t n = strlen(line) + 32;
    char *text = malloc(n);
    int len = snprintf(text, n, "%ld\t%s\n", gd_run.slot->current, line);
    for (int at = 0; at < len;) {
        ssize_t done = write(gd_run.fd, text + at, (size_t)(len - at));
        if (done <= 0) break;
        at += (int)done;
    }
    free(text);
}

void gd_end(void)
{
    int error = gd_sync();
    size_t stray = gd_workspace_stray();
    if (error) {
        gd_run.broken = true;
        gd_int("device_error", error);
    } else if (stray) {
        gd_int("workspace.stray", (long long)stray);
    }
    if (gd_run.compare) {
        gd_judge();
    } else {
        size_t n = strlen(gd_run.name) + 2;
        for (int i = 0; i < gd_run.tokens; i++)
            n += strlen(gd_run.token[i].key) + strlen(gd_run.token[i].text) + 2;
        char *line = malloc(n), *at = line;
        at += sprintf(at, "%s", gd_run.name);
        for (int i = 0; i < gd_run.tokens; i++)
            at += sprintf(at, " %s%c%s", gd_run.token[i].key, gd_run.token[i].kind,
                          gd_run.token[i].text);
        gd_answer(line);
        free(line);
    }
    for (int i = 0; i < gd_run.tokens; i++) free(gd_run.token[i].text);
    gd_run.tokens = 0;
    gd_tens_reset();
    gd_run.slot->busy = 0;
    if (gd_run.broken) _exit(GD_EXIT_AGAIN);
}

static struct gd_token *note(const char *key, char kind, const char *text)
{
    if (gd_run.tokens == GD_TOKENS) {
        fprintf(stderr, "golden: too many answers in %s\n", gd_run.name);
        abort();
    }
    for (int i = 0; i < gd_run.tokens; i++) {
        if (strcmp(gd_run.token[i].key, key) == 0) { /* answers are found by their keys */
            fprintf(stderr, "golden: %s is noted twice in %s\n", key, gd_run.name);
            abort();
        }
    }
    struct gd_token *t = &gd_run.token[gd_run.tokens++];
    memset(t, 0, sizeof *t);
    snprintf(t->key, sizeof t->key, "%s", key);
    t->kind = kind;
    t->text = malloc(strlen(text) + 1);
    strcpy(t->text, text);
    return t;
}

cudnnStatus_t gd_status(const char *key, cudnnStatus_t status)
{
    char text[32];
    snprintf(text, sizeof text, "%d", (int)status);
    note(key, '!', text);
    /* The comparison asks for the text of a plain refusal; a text can be read once only. */
    if (gd_run.compare && status == CUDNN_STATUS_NOT_SUPPORTED && !gd_run.refusal[0])
        lib.GetLastErrorString(gd_run.refusal, sizeof gd_run.refusal);
    return status;
}

cudnnStatus_t gd_setup(const char *key, cudnnStatus_t status)
{
    /* A loop may prepare several things under one key: the first failure is kept. */
    bool known = false;
    for (int i = 0; i < gd_run.tokens; i++) known |= strcmp(gd_run.token[i].key, key) == 0;
    return status == CUDNN_STATUS_SUCCESS || known ? status : gd_status(key, status);
}

void gd_note(const char *key, long long v)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", v);
    note(key, '?', text);
}

void gd_int(const char *key, long long v)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", v);
    note(key, '=', text);
}

void gd_ints(const char *key, int n, const int *v)
{
    char text[512];
    int at = 0;
    text[0] = 0;
    for (int i = 0; i < n && at < (int)sizeof text - 16; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", i ? "," : "", v[i]);
    note(key, '=', text);
}

void gd_size(const char *key, size_t v)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", v);
    note(key, '~', text);
}

void gd_real(const char *key, double v, double rel)
{
    char text[64];
    snprintf(text, sizeof text, "%.17g", v);
    note(key, ':', text)->tol = (struct gd_tol){0, rel};
}

void gd_text(const char *key, const char *text)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text ? text : "(null)");
    for (char *p = copy; *p; p++)
        if (*p == ' ' || *p == '\t' || *p == '\n') *p = '_';
    note(key, '"', copy);
}

static bool poisoned(const struct gd_tens *t, const unsigned char *e, size_t size)
{
    if (t->type == CUDNN_DATA_INT8 || t->type == CUDNN_DATA_UINT8)
        return false; /* the pattern is an ordinary value of these types */
    for (size_t i = 0; i < size; i++)
        if (e[i] != GD_POISON) return false;
    return true;
}

/* Bytes of guards and gaps that no longer hold the pattern. Clears the elements as it goes. */
static size_t stray_bytes(struct gd_tens *t, size_t size)
{
    size_t stray = 0, total = t->bytes + 2 * GD_GUARD;
    for (size_t i = 0; i < t->count; i++)
        memset(t->host + GD_GUARD + gd_offset(t, i) * size, GD_POISON, size);
    for (size_t i = 0; i < total; i++) stray += t->host[i] != GD_POISON;
    return stray;
}

bool gd_out(struct gd_tens *t, struct gd_tol tol)
{
    int error = gd_sync();
    if (error) {
        gd_run.broken = true;
        return false;
    }
    gd_fetch(t);
    size_t size = gd_elsize(t->type), step = (t->count + SAMPLES - 1) / SAMPLES;
    if (step > 1 && step % 2 == 0) step++; /* an odd step walks through every dim */
    const char *format = t->type == CUDNN_DATA_DOUBLE     ? "%.17g"
                         : t->type == CUDNN_DATA_HALF     ? "%.6g"
                         : t->type == CUDNN_DATA_BFLOAT16 ? "%.5g"
                         : t->type == CUDNN_DATA_FLOAT    ? "%.9g"
                                                          : "%.0f";
    char text[64 + (SAMPLES + 2) * 26];
    char list[(SAMPLES + 2) * 26];
    size_t unwritten = 0, nonfinite = 0;
    double sum = 0, magnitude = 0;
    int at = 0;
    list[0] = 0;
    for (size_t i = 0; i < t->count; i++) {
        const unsigned char *e = t->host + GD_GUARD + gd_offset(t, i) * size;
        bool untouched = poisoned(t, e, size);
        double v = gd_get(t->type, e);
        if (untouched) {
            unwritten++;
        } else if (!isfinite(v)) {
            nonfinite++;
        } else {
            sum += v;
            magnitude += fabs(v);
        }
        if (i % step) continue;
        at += snprintf(list + at, sizeof list - (size_t)at, "%s", i ? "," : "");
        if (untouched) at += snprintf(list + at, sizeof list - (size_t)at, "P");
        else if (isnan(v)) at += snprintf(list + at, sizeof list - (size_t)at, "nan");
        else at += snprintf(list + at, sizeof list - (size_t)at, format, v);
    }
    snprintf(text, sizeof text, "%s/%zu/%zu/%zu/%.17g/%s", gd_type_name(t->type), t->count,
             unwritten, nonfinite, sum, list);
    struct gd_token *token = note(t->name, '@', text);
    token->tol = tol;
    token->slack = (double)t->count * tol.abs + tol.rel * magnitude + 1e-14 * magnitude;
    size_t stray = stray_bytes(t, size);
    if (stray) {
        char key[32];
        snprintf(key, sizeof key, "%s.stray", t->name);
        gd_int(key, (long long)stray);
    }
    return true;
}

bool gd_ran(const char *key, cudnnStatus_t status)
{
    gd_status(key, status);
    if (status != CUDNN_STATUS_SUCCESS) return false;
    if (gd_sync()) {
        gd_run.broken = true;
        return false;
    }
    return true;
}

struct gd_tol gd_sum_tol(cudnnDataType_t out, cudnnDataType_t acc, double n, double mean)
{
    double u = gd_roundoff(acc), uo = gd_roundoff(out);
    return (struct gd_tol){2 * (n + 2) * u * (n + 2) * mean, 2 * uo + 4 * u};
}

struct gd_tol gd_map_tol(cudnnDataType_t out, cudnnDataType_t acc, double ulps, double scale)
{
    double u = gd_roundoff(acc), uo = gd_roundoff(out);
    return (struct gd_tol){2 * u * scale, 2 * uo + 4 * ulps * u};
}
