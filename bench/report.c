/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the rows of a run and prints them, as a table with geometric means or as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { ROWS_MAX = 1024 };
static struct row rows[ROWS_MAX];
static int row_count;

void report_add(const struct row *row)
{
    if (row_count == ROWS_MAX) return;
    rows[row_count++] = *row;
    fprintf(stderr, "\r\033[K%s %s %s: %.3f ms", row->set, row->name, row->problem,
            row->timing.best * 1e3);
}

static double percent(const struct row *row, const struct reference *reference)
{
    double full = row->products ? reference->sgemm : row->copy;
    return full > 0.0 ? 100.0 * row->work / row->timing.best / full : 0.0;
}

static double rate(const struct row *row)
{
    return row->work / row->timing.best * 1e-9;
}

/* Geometric mean and worst of the counted rows of a set with this name. */
struct summary {
    double mean;
    double worst;
    int rows;
};

static struct summary summarise(const struct row *like, const struct reference *reference)
{
    struct summary s = {0.0, INFINITY, 0};
    for (int i = 0; i < row_count; ++i) {
        double p;
        if (!rows[i].counted || strcmp(rows[i].set, like->set) != 0) continue;
        if (like->products && strcmp(rows[i].name, like->name) != 0) continue;
        p = percent(&rows[i], reference);
        s.mean += log(p);
        if (p < s.worst) s.worst = p;
        s.rows += 1;
    }
    s.mean = s.rows ? exp(s.mean / s.rows) : 0.0;
    return s;
}

/* Whether row i is the first that its summary covers. */
static bool leads(int i)
{
    if (!rows[i].counted) return false;
    for (int j = 0; j < i; ++j) {
        if (rows[j].counted && !strcmp(rows[j].set, rows[i].set) &&
            (!rows[i].products || !strcmp(rows[j].name, rows[i].name))) {
            return false;
        }
    }
    return true;
}

static void print_table(const struct reference *reference)
{
    bool products = false;
    bool bytes = false;
    for (int i = 0; i < row_count; ++i) {
        products |= rows[i].products;
        bytes |= !rows[i].products;
    }
    for (int kind = 1; kind >= 0; --kind) {
        if (!(kind ? products : bytes)) continue;
        printf("%-12s %-17s %-34s %9s %9s %9s %6s  %s\n", "set", "call", "problem", "best ms",
               "median", kind ? "GFLOP/s" : "GB/s", kind ? "%sgemm" : "%copy", "engine");
        for (int i = 0; i < row_count; ++i) {
            const struct row *r = &rows[i];
            if (r->products != (kind == 1)) continue;
            printf("%-12s %-17s %-34s %9.3f %9.3f %9.1f %6.1f  %s\n", r->set, r->name, r->problem,
                   r->timing.best * 1e3, r->timing.median * 1e3, rate(r), percent(r, reference),
                   r->engine);
        }
        printf("\n");
    }
    if (bench_options.processor) printf("times are of the processors, spread over the threads\n");
    if (products) {
        printf("sgemm 2048^3: %.1f GFLOP/s, %d threads, OpenBLAS %s\n", reference->sgemm * 1e-9,
               reference->threads, reference->core[0] ? reference->core : "absent");
    }
    if (bytes) printf("vector copies of each row's size, %d threads\n", reference->threads);
    for (int i = 0; i < row_count; ++i) {
        struct summary s;
        if (!leads(i)) continue;
        s = summarise(&rows[i], reference);
        printf("%-12s %-17s geometric mean %5.1f%%, worst %5.1f%%, of %d\n", rows[i].set,
               rows[i].products ? rows[i].name : "", s.mean, s.worst, s.rows);
    }
}

static void print_json(const struct reference *reference)
{
    printf("{\n  \"version\": \"%s\",\n  \"threads\": %d,\n", warpdnnGetVersionString(),
           reference->threads);
    printf("  \"sgemm_gflops\": %.3f,\n  \"openblas_core\": \"%s\",\n", reference->sgemm * 1e-9,
           reference->core);
    printf("  \"time\": \"%s\",\n", bench_options.processor ? "processors" : "clock");
    printf("  \"rows\": [");
    for (int i = 0; i < row_count; ++i) {
        const struct row *r = &rows[i];
        printf(
            "%s\n    {\"set\": \"%s\", \"call\": \"%s\", \"problem\": \"%s\", \"engine\": \"%s\", "
            "\"best_ms\": %.6f, \"median_ms\": %.6f, \"runs\": %d, \"%s\": %.3f, "
            "\"copy_gbs\": %.3f, \"percent\": %.2f, \"counted\": %s}",
            i ? "," : "", r->set, r->name, r->problem, r->engine, r->timing.best * 1e3,
            r->timing.median * 1e3, r->timing.runs, r->products ? "gflops" : "gbs", rate(r),
            r->copy * 1e-9, percent(r, reference), r->counted ? "true" : "false");
    }
    printf("\n  ],\n  \"summaries\": [");
    for (int i = 0, first = 1; i < row_count; ++i) {
        struct summary s;
        if (!leads(i)) continue;
        s = summarise(&rows[i], reference);
        printf("%s\n    {\"set\": \"%s\", \"call\": \"%s\", \"mean\": %.2f, \"worst\": %.2f, "
               "\"rows\": %d}",
               first ? "" : ",", rows[i].set, rows[i].products ? rows[i].name : "", s.mean, s.worst,
               s.rows);
        first = 0;
    }
    printf("\n  ]\n}\n");
}

void report_print(void)
{
    bool products = false;
    bool bytes = false;
    const struct reference *reference = NULL;
    fprintf(stderr, "\r\033[K");
    for (int i = 0; i < row_count; ++i) {
        products |= rows[i].products;
        bytes |= !rows[i].products;
    }
    if (products || bytes) reference = bench_reference_sgemm();
    if (!reference) {
        printf("no problem matches\n");
        return;
    }
    if (bench_options.json) print_json(reference);
    else print_table(reference);
}
