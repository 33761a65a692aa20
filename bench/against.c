/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets a run against an older one, row by row: what became slower by more than the noise is named. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "output.h"
#include "result.h"

static bool is_same(const struct result *a, const struct result *b)
{
    return !strcmp(a->family, b->family) && !strcmp(a->problem, b->problem);
}

static const struct result *find(const struct old_run *run, const struct result *row)
{
    for (int i = 0; i < run->count; ++i) {
        if (is_same(&run->rows[i], row)) return &run->rows[i];
    }
    return NULL;
}

static const struct old_run *older; /* that rows are compared with as they are measured */

bool against_fits(const struct old_run *run)
{
    const char *time = bench_options.processor ? "processors" : "clock";
    older = run;
    if (strcmp(run->device, run_facts.device) != 0) {
        fprintf(stderr,
                "the older run was on '%s', this one is on '%s': their times do not compare\n",
                run->device, run_facts.device);
        return false;
    }
    if (run->time[0] && strcmp(run->time, time) != 0) {
        fprintf(stderr,
                "the older run took the time of the %s, this one that of the %s: they do not "
                "compare (--processor-time)\n",
                run->time, time);
        return false;
    }
    return true;
}

static bool is_slower(const struct result *row, const struct result *old, double noise)
{
    return row->ours > old->ours * (1.0 + noise / 100.0);
}

bool against_is_slower(const struct result *row)
{
    const struct result *old = older ? find(older, row) : NULL;
    return old && old->ours > 0.0 && is_slower(row, old, bench_options.noise);
}

/* Rows of the older run, which ran there, that this one has not. */
static int count_missing(const struct old_run *run)
{
    int missing = 0;
    for (int i = 0; i < run->count; ++i) {
        bool here = run->rows[i].ours <= 0.0;
        for (int k = 0; k < result_count() && !here; ++k) {
            here = is_same(&run->rows[i], result_at(k));
        }
        missing += !here;
    }
    return missing;
}

static void name_slower(FILE *out, const struct result *row, const struct result *old, bool first)
{
    fprintf(out, "%s%s %s: ", first ? "\nSlower than before:\n  " : "  ", row->family,
            row->problem);
    if (row->ours <= 0.0) {
        fprintf(out, "ran before, is refused now\n");
        return;
    }
    fprintf(out, "%.2f us, was %.2f (%+.1f%%)%s%s\n", row->ours * 1e6, old->ours * 1e6,
            100.0 * (row->ours / old->ours - 1.0),
            strcmp(row->engine, old->engine) ? "; engine was " : "",
            strcmp(row->engine, old->engine) ? old->engine : "");
}

enum against against_compare(const struct old_run *run, double noise)
{
    FILE *out = output_text();
    double sum = 0.0;
    int compared = 0;
    int refused = 0;
    int faster = 0;
    int slower = 0;
    int unknown = 0;
    for (int i = 0; i < result_count(); ++i) {
        const struct result *row = result_at(i);
        const struct result *old = find(run, row);
        if (!old || !(old->ours > 0.0)) {
            unknown += 1;
            continue;
        }
        if (row->ours > 0.0) {
            sum += log(row->ours / old->ours);
            compared += 1;
            faster += is_slower(old, row, noise);
        } else {
            refused += 1;
        }
        if (row->ours <= 0.0 || is_slower(row, old, noise)) {
            name_slower(out, row, old, slower == 0);
            slower += 1;
        }
    }
    fprintf(out,
            "\nAgainst the older run: %d rows, %d slower, %d faster by more than %g%%, geometric "
            "mean %.3f of its time; %d rows are new, %d of the older run are not in this one\n",
            compared, slower, faster, noise, compared ? exp(sum / compared) : 1.0, unknown,
            count_missing(run));
    if (compared + refused == 0) return AGAINST_NOTHING;
    return slower ? AGAINST_SLOWER : AGAINST_FINE;
}
