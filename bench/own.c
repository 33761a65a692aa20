/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems of a file in place of a family's list (--problems): lines as the lists have them, so that a list itself is
 * such a file. What a line says wrongly ends the program before anything is measured. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "run.h"

enum { LINE_MOST = 512, ODD_MOST = 15 };
static const double elements_most = 1e11;

static struct problem_list own;

/* Where a line is, and what of it has not been read. */
struct line {
    const char *path;
    int number;
    char *rest;
};

static _Noreturn void __attribute__((format(printf, 2, 3)))
refuse(const struct line *line, const char *format, ...)
{
    va_list more;
    fprintf(stderr, "%s:%d: ", line->path, line->number);
    va_start(more, format);
    vfprintf(stderr, format, more);
    va_end(more);
    fputc('\n', stderr);
    exit(EXIT_CANNOT_RUN);
}

static char *skip_spaces(char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The next word, up to a comma or the bracket; null behind the last one. */
static char *next_word(struct line *line)
{
    char *word;
    char *end;
    char *last;
    if (!line->rest) return NULL;
    word = skip_spaces(line->rest);
    end = word + strcspn(word, ",)");
    if (!*end) refuse(line, "PROBLEM(...) has no end");
    line->rest = *end == ',' ? end + 1 : NULL;
    if (*end == ')' && *skip_spaces(end + 1)) refuse(line, "what follows PROBLEM(...)?");
    *end = 0;
    for (last = end; last > word && strchr(" \t", last[-1]);) *--last = 0;
    return word;
}

static char *want_word(struct line *line, const char *what)
{
    char *word = next_word(line);
    if (!word || !*word) refuse(line, "%s is missing", what);
    return word;
}

static int number_of(const struct line *line, const char *word, const char *what, int least,
                     int most)
{
    char *end;
    long value;
    errno = 0;
    value = strtol(word, &end, 10);
    if (*word && !*end && errno == 0 && value >= least && value <= most) return (int)value;
    refuse(line, "%s is a whole number from %d to %d, not '%s'", what, least, most, word);
}

/* The list's own text, which outlives the file. */
static const char *call_of(const struct line *line, const struct family *family, const char *word)
{
    for (int i = 0; i < family->count; ++i)
        if (!strcmp(family->problems[i].call, word)) return family->problems[i].call;
    fprintf(stderr, "%s:%d: %s has no call '%s'; it has", line->path, line->number, family->name,
            word);
    for (int i = 0; i < family->count; ++i) {
        bool before = false;
        for (int j = 0; j < i && !before; ++j)
            before = !strcmp(family->problems[i].call, family->problems[j].call);
        if (!before) fprintf(stderr, " %s", family->problems[i].call);
    }
    fputc('\n', stderr);
    exit(EXIT_CANNOT_RUN);
}

static cudnnDataType_t type_of(const struct line *line, const char *word)
{
    static const struct {
        const char *name;
        enum bench_type type;
    } types[] = {{"FP64", FP64}, {"FP32", FP32}, {"FP16", FP16},
                 {"BF16", BF16}, {"INT8", INT8}, {"INT32", INT32}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i)
        if (!strcmp(types[i].name, word)) return (cudnnDataType_t)types[i].type;
    refuse(line, "a type is FP64, FP32, FP16, BF16, INT8 or INT32, not '%s'", word);
}

static struct problem problem_of(struct line *line, const struct family *family)
{
    static const char *const dims[DIMS_MAX] = {"N", "C", "D", "H", "W"};
    struct problem p;
    double elements = 1.0;
    const char *word;
    memset(&p, 0, sizeof p);
    p.call = call_of(line, family, want_word(line, "the call"));
    p.type = type_of(line, want_word(line, "the type"));
    word = want_word(line, "the layout");
    if (strcmp(word, "NCHW") != 0 && strcmp(word, "NHWC") != 0) {
        refuse(line, "a layout is NCHW or NHWC, not '%s'", word);
    }
    p.layout = !strcmp(word, "NHWC") ? NHWC : NCHW;
    for (int d = 0; d < DIMS_MAX; ++d) {
        p.dims[d] = number_of(line, want_word(line, dims[d]), dims[d], 1, INT_MAX / 8);
        elements *= p.dims[d];
    }
    if (elements > elements_most) {
        refuse(line, "%.0f elements, at most %.0f are taken", elements, elements_most);
    }
    p.odd = number_of(line, want_word(line, "odd"), "odd", 0, ODD_MOST);
    for (int i = 0; (word = next_word(line)); ++i) {
        const struct parameter *parameter = i < PARAMETERS_MAX ? &family->parameter[i] : NULL;
        if (!parameter) refuse(line, "more than %d parameters", PARAMETERS_MAX);
        p.p[i] = number_of(line, word, parameter->name ? parameter->name : "what is no parameter",
                           parameter->least, parameter->most);
    }
    for (int i = 0; i < PARAMETERS_MAX; ++i) {
        const struct parameter *parameter = &family->parameter[i];
        if (p.p[i] < parameter->least) refuse(line, "%s is missing", parameter->name);
    }
    return p;
}

void own_read(void)
{
    static const char begins[] = "PROBLEM(";
    const struct family *family = families[0];
    const char *path = bench_options.problems;
    char text[LINE_MOST];
    struct problem *problems = NULL;
    struct line line = {path, 0, NULL};
    FILE *file;
    if (!path) return;
    for (int f = 0; f < family_count; ++f)
        if (!strcmp(families[f]->name, bench_options.family)) family = families[f];
    file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
        exit(EXIT_CANNOT_RUN);
    }
    while (fgets(text, sizeof text, file)) {
        char *word = skip_spaces(text);
        struct problem *more;
        line.number += 1;
        if (strlen(text) + 1 == sizeof text)
            refuse(&line, "a line of %d bytes and more", LINE_MOST);
        if (!*word || strchr("/*#", *word)) continue; /* a comment */
        if (strncmp(word, begins, sizeof begins - 1) != 0) {
            refuse(&line, "a line is PROBLEM(call, FP32, NCHW, N, C, D, H, W, odd, parameters), or "
                          "begins with /, * or #");
        }
        line.rest = word + sizeof begins - 1;
        more = realloc(problems, (size_t)(own.count + 1) * sizeof *problems);
        if (!more) bench_give_up();
        problems = more;
        problems[own.count++] = problem_of(&line, family);
    }
    if (ferror(file)) {
        fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
        exit(EXIT_CANNOT_RUN);
    }
    fclose(file);
    own.problems = problems;
}

struct problem_list own_or_listed(const struct family *family)
{
    if (bench_options.problems) return own;
    return (struct problem_list){family->problems, family->count};
}
