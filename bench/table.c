/* SPDX-License-Identifier: Apache-2.0
 *
 * The table on standard output: a line a row as it is measured, at the end the means of each family and
 * the rows that miss a target. */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "output.h"
#include "result.h"

enum { FAMILIES_MAX = 64 };

void table_header(void)
{
    fprintf(output_text(), "%-10s %-58s %-26s %9s %9s %6s %9s %6s %8s\n", "family", "problem",
            "engine", "ours us", "floor us", "/floor", "peer us", "/peer", "host us");
}

static const char *short_status(cudnnStatus_t status)
{
    const char *name = ours.GetErrorString(status);
    return strncmp(name, "CUDNN_STATUS_", 13) ? name : name + 13;
}

static void number(char *text, size_t size, double x, const char *format, const char *none)
{
    if (x > 0.0) snprintf(text, size, format, x);
    else snprintf(text, size, "%s", none);
}

void table_row(const struct result *r)
{
    char mine[24];
    char over[16];
    char theirs[24];
    char ratio[16];
    char host[16];
    number(mine, sizeof mine, r->ours * 1e6, "%.2f", r->host > 0.0 ? "-" : "refused");
    number(over, sizeof over, result_over_floor(r), "%.2f", "-");
    number(theirs, sizeof theirs, r->peer * 1e6, "%.2f", "-");
    number(ratio, sizeof ratio, result_ratio(r), "%.2f", "-");
    number(host, sizeof host, r->host * 1e6, "%.2f", "-");
    fprintf(output_text(), "%-10s %-58s %-26.26s %9s %9.2f %6s %9s %6s %8s", r->family, r->problem,
            r->engine, mine, r->floor * 1e6, over, theirs, ratio, host);
    if (r->pieces > 1) fprintf(output_text(), "  %d launches", r->pieces);
    if (r->verdict == WRONG) fprintf(output_text(), "  WRONG");
    if (r->ours > 0.0 && run_facts.copy > 0.0 && !r->captured)
        fprintf(output_text(), "  ours uncaptured");
    if (r->peer > 0.0 && !r->peer_captured) fprintf(output_text(), "  peer uncaptured");
    if (r->peer_present && r->peer_status != CUDNN_STATUS_SUCCESS) {
        fprintf(output_text(), "  peer %s", short_status(r->peer_status));
    }
    if (r->note[0]) fprintf(output_text(), "  %s", r->note);
    fputc('\n', output_text());
    fflush(output_text());
}

static void mean_cell(const char *family, enum selection selection)
{
    struct mean m = result_mean(family, selection);
    if (m.rows) fprintf(output_text(), " %6.2f %7.2f %4d", m.mean, m.worst, m.rows);
    else fprintf(output_text(), " %6s %7s %4s", "-", "-", "0");
}

static void print_means(const char *const *names, int families)
{
    char why[320];
    fprintf(output_text(), "\n%-12s %-19s  %-19s  %-19s  %-19s\n", "", "/floor, 64 MB and up",
            "/floor, all", "/peer, under 1 MB", "/peer, all");
    fprintf(output_text(), "%-12s", "family");
    for (int i = 0; i < 4; ++i) fprintf(output_text(), " %6s %7s %4s ", "mean", "worst", "rows");
    for (int i = 0; i <= families; ++i) {
        const char *family = i < families ? names[i] : NULL;
        if (!family && families == 1) break;
        fprintf(output_text(), "\n%-12s", family ? family : "all");
        for (int s = LARGE_OVER_FLOOR; s <= ALL_RATIO; ++s) {
            mean_cell(family, (enum selection)s);
            fputc(' ', output_text());
        }
    }
    fputc('\n', output_text());
    for (int i = 0; i < families; ++i) {
        if (!result_mean_miss(names[i], why, sizeof why)) continue;
        fprintf(output_text(), "%s: %s\n", names[i], why);
    }
}

void table_summary(bool means)
{
    const char *names[FAMILIES_MAX];
    int families = result_families(names, FAMILIES_MAX);
    int misses = 0;
    char why[320];
    if (!families) return;
    if (means) print_means(names, families);
    for (int i = 0; i < result_count(); ++i) {
        const struct result *r = result_at(i);
        if (!result_miss(r, why, sizeof why)) continue;
        if (misses++ == 0) fprintf(output_text(), "\nRows that miss a target:\n");
        fprintf(output_text(), "  %s %s: %s\n", r->family, r->problem, why);
    }
    if (misses) return;
    if (bench_options.cpu)
        fprintf(output_text(), "\nNo row is wrong; targets are those of a GPU.\n");
    else fprintf(output_text(), "\nNo row misses a target.\n");
}
