/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the answers of a case with the recorded ones: statuses and integers exactly, sizes by
 * rule, values within the tolerance that the case computed. What may differ on purpose stands in
 * differences.def and is counted. One verdict line a case: "M" when it matched, "E" when differences
 * with a reason were excused and the rest matched, "U" when after the excuses nothing was left that
 * had been compared, each with the rules and exceptions that it took ("E r1 e17"); "S reason" or
 * "F text".
 */
#define _GNU_SOURCE
#include "golden.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING(...)
enum rule {
#define RULE(id, reason) RULE_##id,
#define CASE NOTHING
#define NOT_BUILT NOTHING
#include "differences.def"
#undef RULE
    RULES
};

static const struct {
    const char *id, *reason;
} rules[] = {
#define RULE(id, reason) {#id, reason},
#include "differences.def"
#undef RULE
#undef CASE
};

static const struct {
    const char *pattern, *key, *reason;
} exceptions[] = {
#define RULE NOTHING
#define CASE(pattern, key, reason) {pattern, key, reason},
#include "differences.def"
#undef CASE
#undef NOT_BUILT
    {NULL, NULL, NULL}};

static const struct {
    const char *pattern, *function;
} not_built[] = {
#define CASE NOTHING
#define NOT_BUILT(pattern, function) {pattern, #function},
#include "differences.def"
#undef RULE
#undef CASE
#undef NOT_BUILT
    {NULL, NULL}};
#undef NOTHING

struct entry {
    char *name, *rest;
    bool seen;
};
static struct entry *entries;
static long entries_n;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

int gd_record_read(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "golden: cannot read %s\n", path);
        return -1;
    }
    char *line = NULL;
    size_t room = 0;
    long cap = 0;
    while (getline(&line, &room, f) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (!*line || *line == '#') continue;
        if (entries_n == cap) {
            cap = cap ? 2 * cap : 1024;
            entries = realloc(entries, (size_t)cap * sizeof *entries);
        }
        char *copy = strdup(line), *blank = strchr(copy, ' ');
        if (blank) *blank++ = 0;
        entries[entries_n++] = (struct entry){copy, blank ? blank : copy + strlen(copy), false};
    }
    free(line);
    fclose(f);
    qsort(entries, (size_t)entries_n, sizeof *entries, by_name);
    return entries_n ? 0 : -1;
}

static struct entry *find(const char *name)
{
    struct entry key = {(char *)name, NULL, false};
    return bsearch(&key, entries, (size_t)entries_n, sizeof *entries, by_name);
}

void gd_record_mark(const char *name)
{
    struct entry *e = find(name);
    if (e) e->seen = true;
}

/* ---- one case ---- */

struct verdict {
    bool rule[RULES], exception[GD_COUNT(exceptions)]; /* those that were needed */
    int agreed;                                        /* answers that were compared and hold */
    char text[512]; /* the first difference; empty when there is none */
};

/* Whether a key is in a list of patterns, "set|get?|dims". */
static bool is_listed(const char *list, const char *key)
{
    char pattern[64];
    for (const char *p = list; *p; p += *p == '|') {
        size_t n = strcspn(p, "|");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, p);
        if (fnmatch(pattern, key, 0) == 0) return true;
        p += n;
    }
    return false;
}

static void differs(struct verdict *v, const char *key, const char *want, const char *got)
{
    for (int i = 0; exceptions[i].pattern; i++) {
        if (fnmatch(exceptions[i].pattern, gd_run.name, 0) == 0 &&
            is_listed(exceptions[i].key, key)) {
            v->exception[i] = true;
            return;
        }
    }
    if (!v->text[0])
        snprintf(v->text, sizeof v->text, "%s: recorded %.160s, got %.160s", key, want, got);
}

static bool near(double want, double got, double abs, double rel)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (want == got) return true;
    if (isinf(want) || isinf(got)) return false;
    return fabs(want - got) <= abs + rel * fmax(fabs(want), fabs(got));
}

static void agrees(struct verdict *v, bool same, const char *key, const char *want, const char *got)
{
    if (same) v->agreed++;
    else differs(v, key, want, got);
}

static void compare_values(struct verdict *v, const struct gd_token *t, const char *want)
{
    char type[2][16];
    size_t count[2], unwritten[2], nonfinite[2];
    double sum[2];
    int at[2];
    const char *text[2] = {want, t->text};
    for (int i = 0; i < 2; i++) {
        if (sscanf(text[i], "%15[^/]/%zu/%zu/%zu/%lg/%n", type[i], &count[i], &unwritten[i],
                   &nonfinite[i], &sum[i], &at[i]) != 5) {
            differs(v, t->key, want, t->text);
            return;
        }
    }
    if (strcmp(type[0], type[1]) || count[0] != count[1] || unwritten[0] != unwritten[1] ||
        nonfinite[0] != nonfinite[1]) {
        differs(v, t->key, want, t->text);
        return;
    }
    const char *p = want + at[0], *q = t->text + at[1];
    for (size_t i = 0; *p && *q; i++) {
        char a[40], b[40];
        size_t n = strcspn(p, ","), m = strcspn(q, ",");
        snprintf(a, sizeof a, "%.*s", (int)n, p);
        snprintf(b, sizeof b, "%.*s", (int)m, q);
        bool same = strcmp(a, b) == 0 ||
                    (*a != 'P' && *b != 'P' && near(atof(a), atof(b), t->tol.abs, t->tol.rel));
        if (!same) {
            char key[64], left[80];
            snprintf(key, sizeof key, "%s", t->key);
            snprintf(left, sizeof left, "sample %zu = %s", i, a);
            char right[120];
            snprintf(right, sizeof right, "%s (allowed %.3g + %.3g relative)", b, t->tol.abs,
                     t->tol.rel);
            differs(v, key, left, right);
            return;
        }
        p += n + (p[n] == ',');
        q += m + (q[m] == ',');
    }
    if (!near(sum[0], sum[1], t->slack, 1e-12)) {
        char left[64], right[96];
        snprintf(left, sizeof left, "sum %.9g", sum[0]);
        snprintf(right, sizeof right, "%.9g (allowed %.3g)", sum[1], t->slack);
        differs(v, t->key, left, right);
        return;
    }
    v->agreed++;
}

/* Whether the case may meet a function that is not built yet, and its refusal says so. */
static bool is_not_built(int status)
{
    char wanted[128];
    if (status != CUDNN_STATUS_NOT_SUPPORTED) return false;
    for (int i = 0; not_built[i].pattern; i++) {
        snprintf(wanted, sizeof wanted, "%s: not implemented yet", not_built[i].function);
        if (fnmatch(not_built[i].pattern, gd_run.name, 0) == 0 &&
            strcmp(wanted, gd_run.refusal) == 0)
            return true;
    }
    return false;
}

static void compare_status(struct verdict *v, const char *key, int want, int got)
{
    char a[16], b[16];
    if (want == got) {
        v->agreed++;
        return;
    }
    if (want / 1000 == 3 && got == 0) {
        v->rule[RULE_supports_more] = true;
    } else if (want % 1000 == 0 && want / 1000 == got / 1000 && want) {
        v->rule[RULE_finer_status] = true;
        v->agreed++; /* in the category */
    } else if (want == 0 && is_not_built(got)) {
        v->rule[RULE_not_built_yet] = true;
    } else {
        snprintf(a, sizeof a, "%d", want);
        snprintf(b, sizeof b, "%d", got);
        differs(v, key, a, b);
    }
}

static const struct gd_token *token_of(const char *key)
{
    for (int i = 0; i < gd_run.tokens; i++)
        if (strcmp(gd_run.token[i].key, key) == 0) return &gd_run.token[i];
    return NULL;
}

static void compare_token(struct verdict *v, const char *key, char kind, const char *want)
{
    const struct gd_token *t = token_of(key);
    if (kind == '?') return;
    if (!t) {
        /* A status that is only kept on failure, and what follows a success of theirs. */
        if (kind == '!') compare_status(v, key, atoi(want), 0);
        else if (!v->rule[RULE_not_built_yet]) differs(v, key, want, "nothing");
        return;
    }
    if (kind != t->kind) {
        differs(v, key, want, t->text);
        return;
    }
    switch (kind) {
    case '!': compare_status(v, key, atoi(want), atoi(t->text)); break;
    case '~':
        if (strcmp(want, t->text)) v->rule[RULE_free_size] = true;
        else v->agreed++;
        break;
    case ':': agrees(v, near(atof(want), atof(t->text), 0, t->tol.rel), key, want, t->text); break;
    case '@': compare_values(v, t, want); break;
    default: agrees(v, strcmp(want, t->text) == 0, key, want, t->text);
    }
}

/* Splits "key kind text" at the first character that is no part of a key. */
static char *split(char *token, char *kind)
{
    size_t n = strspn(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    *kind = token[n];
    token[n] = 0;
    return *kind ? token + n + 1 : token + n;
}

static void write_uses(const struct verdict *v, char *line, size_t size)
{
    bool excused = false, any;
    size_t at;
    for (int i = 0; i < RULES; i++) excused |= v->rule[i] && i != RULE_free_size;
    for (int i = 0; i < GD_COUNT(exceptions); i++) excused |= v->exception[i];
    any = excused || v->rule[RULE_free_size];
    at = (size_t)snprintf(line, size, "%s", any && !v->agreed ? "U" : excused ? "E" : "M");
    for (int i = 0; i < RULES; i++)
        if (v->rule[i] && at < size) at += (size_t)snprintf(line + at, size - at, " r%d", i);
    for (int i = 0; i < GD_COUNT(exceptions); i++)
        if (v->exception[i] && at < size) at += (size_t)snprintf(line + at, size - at, " e%d", i);
}

void gd_judge(void)
{
    struct entry *e = find(gd_run.name);
    struct verdict v = {0};
    char line[640], seen[GD_TOKENS] = {0};
    if (!e) {
        gd_answer("S not recorded");
        return;
    }
    char *copy = strdup(e->rest), *save = NULL;
    if (strncmp(copy, "crash!", 6) == 0 || strncmp(copy, "hang!", 5) == 0) {
        v.rule[RULE_no_crash] = true;
    } else {
        for (char *token = strtok_r(copy, " ", &save); token; token = strtok_r(NULL, " ", &save)) {
            char kind;
            char *text = split(token, &kind);
            const struct gd_token *t = token_of(token);
            if (t) seen[t - gd_run.token] = 1;
            compare_token(&v, token, kind, text);
        }
        /* Failures and strays of ours that the record knows nothing of. */
        for (int i = 0; i < gd_run.tokens; i++) {
            const struct gd_token *t = &gd_run.token[i];
            if (seen[i]) continue;
            if (t->kind == '!' && !v.rule[RULE_supports_more])
                compare_status(&v, t->key, 0, atoi(t->text));
            else if (strstr(t->key, ".stray") || strcmp(t->key, "device_error") == 0)
                differs(&v, t->key, "nothing", t->text);
        }
    }
    free(copy);
    if (v.text[0]) snprintf(line, sizeof line, "F %s", v.text);
    else write_uses(&v, line, sizeof line);
    char answer[1024];
    snprintf(answer, sizeof answer, "%s\t%s", line, gd_run.name);
    gd_answer(answer);
}

/* ---- all cases ---- */

int gd_report(char **lines, long n, const char *rerun, long failed)
{
    long matched = 0, excused = 0, uncompared = 0, skipped = 0;
    long by_rule[RULES] = {0}, excepted[GD_COUNT(exceptions)] = {0};
    for (long i = 0; i < n; i++) {
        char *name = strchr(lines[i], '\t');
        if (name) *name++ = 0;
        switch (lines[i][0]) {
        case 'M':
        case 'E':
        case 'U':
            matched += lines[i][0] == 'M';
            excused += lines[i][0] == 'E';
            uncompared += lines[i][0] == 'U';
            for (char *use = strchr(lines[i], ' '); use; use = strchr(use + 1, ' ')) {
                if (use[1] == 'r') by_rule[atoi(use + 2)]++;
                else excepted[atoi(use + 2)]++;
            }
            break;
        case 'S': skipped++; break;
        default:
            failed++;
            printf("FAIL %s: %s\n     %s --only '%s'\n", name ? name : "?", lines[i] + 2, rerun,
                   name ? name : "*");
        }
    }
    if (!gd_run.only)
        for (long i = 0; i < entries_n; i++)
            if (!entries[i].seen) {
                failed++;
                printf("FAIL %s: recorded, but no longer in the list\n", entries[i].name);
            }
    for (int i = 0; i < RULES; i++)
        if (by_rule[i])
            printf("differs by rule %s (%s): %ld cases\n", rules[i].id, rules[i].reason,
                   by_rule[i]);
    for (int i = 0; exceptions[i].pattern; i++)
        if (excepted[i])
            printf("differs by case %s %s (%s): %ld cases\n", exceptions[i].pattern,
                   exceptions[i].key, exceptions[i].reason, excepted[i]);
    printf("%ld matched, %ld excused (differences with a reason, the rest matched), %ld uncompared "
           "(nothing left to compare), %ld not recorded\n",
           matched, excused, uncompared, skipped);
    printf("%ld passed, %ld failed, %ld skipped\n", matched + excused, failed,
           uncompared + skipped);
    return failed ? 1 : 0;
}
