/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets a run against an older one, row by row: what became slower by more than the noise is named. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "result.h"

static const struct result *find(const struct old_run *run, const struct result *row)
{
    for (int i = 0; i < run->count; ++i) {
        const struct result *old = &run->rows[i];
        if (!strcmp(old->family, row->family) && !strcmp(old->problem, row->problem)) return old;
    }
    return NULL;
}

static const struct old_run *older; /* that rows are compared with as they are measured */

bool against_fits(const struct old_run *run)
{
    older = run;
    if (!strcmp(run->device, run_facts.device)) return true;
    fprintf(stderr, "the older run was on '%s', this one is on '%s': their times do not compare\n",
            run->device, run_facts.device);
    return false;
}

bool against_is_slower(const struct result *row)
{
    const struct result *old = older ? find(older, row) : NULL;
    return old && old->ours > 0.0 && row->ours > old->ours * (1.0 + bench_options.noise / 100.0);
}

bool against_compare(const struct old_run *run, double noise)
{
    FILE *out = bench_options.json && !strcmp(bench_options.json, "-") ? stderr : stdout;
    double allowed = 1.0 + noise / 100.0;
    double sum = 0.0;
    int compared = 0;
    int faster = 0;
    int slower = 0;
    int unknown = 0;
    for (int i = 0; i < result_count(); ++i) {
        const struct result *row = result_at(i);
        const struct result *old = find(run, row);
        double ratio;
        if (!old || old->ours <= 0.0) {
            unknown += 1;
            continue;
        }
        if (row->ours <= 0.0) {
            fprintf(out, "%s%s %s: ran before, is refused now\n",
                    slower++ ? "  " : "\nSlower than before:\n  ", row->family, row->problem);
            continue;
        }
        ratio = row->ours / old->ours;
        sum += log(ratio);
        compared += 1;
        faster += ratio < 1.0 / allowed;
        if (ratio <= allowed) continue;
        fprintf(out, "%s%s %s: %.2f us, was %.2f (%+.1f%%)%s%s\n",
                slower++ ? "  " : "\nSlower than before:\n  ", row->family, row->problem,
                row->ours * 1e6, old->ours * 1e6, 100.0 * (ratio - 1.0),
                strcmp(row->engine, old->engine) ? "; engine was " : "",
                strcmp(row->engine, old->engine) ? old->engine : "");
    }
    fprintf(out,
            "\nAgainst the older run: %d rows, %d slower, %d faster by more than %g%%, geometric "
            "mean %.3f of its time; %d rows are new\n",
            compared, slower, faster, noise, compared ? exp(sum / compared) : 1.0, unknown);
    return slower == 0;
}
