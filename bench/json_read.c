/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a run that json.c wrote, or any JSON with such rows: a plain recursive reader that keeps the
 * device, and of each row what a comparison needs. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "result.h"

enum { DEPTH_MAX = 16, STRING_MAX = 512, FILE_MAX = 64 << 20 };

struct reader {
    const char *path;
    const char *at;
    const char *begin;
    const char *wrong; /* what, at the first fault */
    struct old_run *run;
    struct result row; /* under way */
    bool in_rows;
    double marked; /* "warpdnn_bench": which form of ours it is; 0: it is none */
    int room;
};

static bool value(struct reader *r, const char *key, int depth);

static void space(struct reader *r)
{
    while (isspace((unsigned char)*r->at)) r->at += 1;
}

static bool fault(struct reader *r, const char *what)
{
    if (!r->wrong) r->wrong = what;
    return false;
}

static bool take(struct reader *r, char c)
{
    space(r);
    if (*r->at != c) return false;
    r->at += 1;
    return true;
}

static bool string(struct reader *r, char out[STRING_MAX])
{
    size_t n = 0;
    if (!take(r, '"')) return fault(r, "a string is wanted");
    while (*r->at && *r->at != '"') {
        char c = *r->at++;
        if (c == '\\') {
            c = *r->at;
            if (!c) break;
            r->at += 1;
            if (c == 'n') c = '\n';
            else if (c == 't') c = '\t';
            else if (c == 'u') c = '?'; /* control characters: of no use here */
        }
        if (n < STRING_MAX - 1) out[n++] = c;
    }
    out[n] = 0;
    return take(r, '"') || fault(r, "a string has no end");
}

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

static void keep_string(struct reader *r, const char *key, const char *text, int depth)
{
    if (depth == 1 && !strcmp(key, "device")) {
        copy(r->run->device, sizeof r->run->device, text);
    }
    if (depth == 1 && !strcmp(key, "time")) copy(r->run->time, sizeof r->run->time, text);
    if (!r->in_rows) return;
    if (!strcmp(key, "family")) copy(r->row.family, sizeof r->row.family, text);
    if (!strcmp(key, "problem")) copy(r->row.problem, sizeof r->row.problem, text);
    if (!strcmp(key, "engine")) copy(r->row.engine, sizeof r->row.engine, text);
}

static void keep_number(struct reader *r, const char *key, double x, int depth)
{
    if (depth == 1 && !strcmp(key, "warpdnn_bench")) r->marked = x;
    if (r->in_rows && !strcmp(key, "ours_us")) r->row.ours = x * 1e-6;
}

static bool keep_row(struct reader *r)
{
    struct old_run *run = r->run;
    if (run->count == r->room) {
        int room = 2 * r->room + 64;
        struct result *more = realloc(run->rows, (size_t)room * sizeof *more);
        if (!more) return fault(r, "no memory");
        run->rows = more;
        r->room = room;
    }
    run->rows[run->count++] = r->row;
    return true;
}

static bool object(struct reader *r, const char *key, int depth)
{
    char name[STRING_MAX];
    bool is_row = depth == 2 && !strcmp(key, "rows");
    r->at += 1;
    if (is_row) {
        memset(&r->row, 0, sizeof r->row);
        r->in_rows = true;
    }
    if (!take(r, '}')) {
        do {
            space(r);
            if (!string(r, name)) return false;
            if (!take(r, ':')) return fault(r, "a ':' is wanted");
            if (!value(r, name, depth + 1)) return false;
        } while (take(r, ','));
        if (!take(r, '}')) return fault(r, "a '}' is wanted");
    }
    if (!is_row) return true;
    r->in_rows = false;
    return keep_row(r);
}

static bool array(struct reader *r, const char *key, int depth)
{
    r->at += 1;
    if (take(r, ']')) return true;
    do {
        if (!value(r, key, depth + 1)) return false;
    } while (take(r, ','));
    return take(r, ']') || fault(r, "a ']' is wanted");
}

static bool value(struct reader *r, const char *key, int depth)
{
    char text[STRING_MAX];
    char *end;
    double x;
    if (depth > DEPTH_MAX) return fault(r, "it is nested too deep");
    space(r);
    if (*r->at == '{') return object(r, key, depth);
    if (*r->at == '[') return array(r, key, depth);
    if (*r->at == '"') {
        if (!string(r, text)) return false;
        keep_string(r, key, text, depth);
        return true;
    }
    for (int i = 0; i < 3; ++i) {
        static const char *const words[] = {"null", "true", "false"};
        if (strncmp(r->at, words[i], strlen(words[i])) != 0) continue;
        r->at += strlen(words[i]);
        return true;
    }
    x = strtod(r->at, &end);
    /* strtod knows more numbers than JSON */
    if (end == r->at || !strchr("-0123456789", *r->at) || x - x != 0.0) {
        return fault(r, "a value is wanted");
    }
    r->at = end;
    keep_number(r, key, x, depth);
    return true;
}

/* The whole of it, which may come through a pipe. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0;
    size_t room = 0;
    size_t got;
    while (file && size < FILE_MAX) {
        if (size + 1 >= room) {
            char *more = realloc(text, room = 2 * room + 65536);
            if (!more) break;
            text = more;
        }
        got = fread(text + size, 1, room - 1 - size, file);
        size += got;
        text[size] = 0;
        if (got == 0) break;
    }
    if (!file || !text || ferror(file) || size >= FILE_MAX) {
        fprintf(stderr, "cannot read %s: %s\n", path,
                strerror(size >= FILE_MAX ? EFBIG
                         : errno          ? errno
                                          : ENOMEM));
        free(text);
        text = NULL;
    }
    if (file) fclose(file);
    return text;
}

bool json_read(const char *path, struct old_run *run)
{
    char *text = read_file(path);
    struct reader r = {.path = path, .at = text, .begin = text, .run = run};
    bool good;
    memset(run, 0, sizeof *run);
    if (!text) return false;
    good = value(&r, "", 0);
    if (good) space(&r);
    if (good && *r.at) good = fault(&r, "there is more behind its end");
    if (good && r.marked == 0.0) good = fault(&r, "it is no run of warpdnn_bench");
    if (good && r.marked != 2.0)
        good = fault(&r, "it is of another version, which timed otherwise");
    if (!good) {
        int line = 1;
        for (const char *c = r.begin; c < r.at; ++c) line += *c == '\n';
        fprintf(stderr, "%s:%d: %s\n", path, line, r.wrong);
        free(run->rows);
        run->rows = NULL;
        run->count = 0;
    }
    free(text);
    return good;
}
