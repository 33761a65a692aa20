/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the CPU's sets, printed as tables with geometric means. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sets.h"

#include "output.h"
#include "result.h"
#include "run.h"

enum { ROWS_MAX = 1024 };
cudnnHandle_t sets_handle;
static struct row rows[ROWS_MAX];
static int row_count;

void sets_add(const struct row *row)
{
    if (row_count == ROWS_MAX) return;
    rows[row_count++] = *row;
    if (!isatty(STDERR_FILENO)) return;
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
    FILE *out = output_text();
    bool products = false;
    bool bytes = false;
    for (int i = 0; i < row_count; ++i) {
        products |= rows[i].products;
        bytes |= !rows[i].products;
    }
    for (int kind = 1; kind >= 0; --kind) {
        if (!(kind ? products : bytes)) continue;
        fprintf(out, "%-12s %-17s %-34s %9s %9s %9s %6s  %s\n", "set", "call", "problem", "best ms",
                "median", kind ? "GFLOP/s" : "GB/s", kind ? "%sgemm" : "%copy", "engine");
        for (int i = 0; i < row_count; ++i) {
            const struct row *r = &rows[i];
            if (r->products != (kind == 1)) continue;
            fprintf(out, "%-12s %-17s %-34s %9.3f %9.3f %9.1f %6.1f  %s\n", r->set, r->name,
                    r->problem, r->timing.best * 1e3, r->timing.median * 1e3, rate(r),
                    percent(r, reference), r->engine);
        }
        fputc('\n', out);
    }
    if (bench_options.processor)
        fprintf(out, "times are of the processors, spread over the threads\n");
    if (products) {
        fprintf(out, "sgemm 2048^3: %.1f GFLOP/s, %d threads, OpenBLAS %s\n",
                reference->sgemm * 1e-9, reference->threads,
                reference->core[0] ? reference->core : "absent");
    }
    if (bytes) fprintf(out, "vector copies of each row's size, %d threads\n", reference->threads);
    for (int i = 0; i < row_count; ++i) {
        struct summary s;
        if (!leads(i)) continue;
        s = summarise(&rows[i], reference);
        fprintf(out, "%-12s %-17s geometric mean %5.1f%%, worst %5.1f%%, of %d\n", rows[i].set,
                rows[i].products ? rows[i].name : "", s.mean, s.worst, s.rows);
    }
}

/* The same row among the rows of the run: its floor is what the reference would take. */
static void add_result(const struct row *row, const struct reference *reference)
{
    struct result r = {.runs = row->timing.runs, .sets = 1, .limit = 0.0};
    double full = row->products ? reference->sgemm : row->copy;
    snprintf(r.family, sizeof r.family, "%s", row->set);
    snprintf(r.problem, sizeof r.problem, "%s %s", row->name, row->problem);
    snprintf(r.engine, sizeof r.engine, "%s", row->engine);
    r.bytes = row->products ? 0.0 : row->work;
    r.ours = row->timing.best;
    r.floor = full > 0.0 ? row->work / full : 0.0;
    result_add(&r);
}

static void report(void)
{
    const struct reference *reference;
    if (row_count == 0) return;
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
    reference = bench_reference_sgemm();
    print_table(reference);
    for (int i = 0; i < row_count; ++i) add_result(&rows[i], reference);
}

bool sets_wanted(const char *set, const char *name, const char *problem)
{
    char text[160];
    snprintf(text, sizeof text, "%s %s %s", set, name, problem);
    return bench_wanted(text);
}

float *sets_floats(int64_t count)
{
    static uint64_t state = 1;
    size_t bytes = (size_t)count * sizeof(float);
    float *host = malloc(bytes);
    void *data;
    if (!host) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        bench_give_up();
    }
    for (int64_t i = 0; i < count; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        host[i] = (float)(state >> 40) * 0x1p-24F - 0.5F;
    }
    bench_check(ours.Malloc(sets_handle, bytes, &data), "memory");
    bench_check(ours.Memcpy(sets_handle, data, host, bytes), "copy");
    free(host);
    return data;
}

void sets_run(void)
{
    sets_handle = run_handle(&ours);
    if (bench_options.conv) sets_convolutions();
    if (bench_options.matmul) sets_matmul();
    if (bench_options.memory) sets_memory();
    report();
}
