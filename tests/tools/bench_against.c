/* SPDX-License-Identifier: Apache-2.0
 *
 * The comparison of --against alone, on rows that the arguments make: bench_against_test.py compiles it
 * with the bench's against.c, json_read.c, output.c and result.c, for measured times are never the same twice.
 *
 *     bench_against OLD.json NOISE DEVICE [FAMILY PROBLEM MICROSECONDS]...
 *
 * The exit status is the comparison's, 9 where the older run cannot be read, 8 where it does not fit;
 * standard error has a line for each row that would be timed again. */
#include <stdlib.h>

#include "../../bench/bench.h"
#include "../../bench/result.h"

struct options bench_options;

int main(int argc, char **argv)
{
    static struct old_run old;
    if (argc < 4 || !json_read(argv[1], &old)) return 9;
    bench_options.noise = strtod(argv[2], NULL);
    snprintf(run_facts.device, sizeof run_facts.device, "%s", argv[3]);
    if (!against_fits(&old)) return 8;
    for (int i = 4; i + 2 < argc; i += 3) {
        struct result row = {.verdict = RIGHT};
        snprintf(row.family, sizeof row.family, "%s", argv[i]);
        snprintf(row.problem, sizeof row.problem, "%s", argv[i + 1]);
        snprintf(row.engine, sizeof row.engine, "an_engine");
        row.ours = strtod(argv[i + 2], NULL) * 1e-6;
        if (against_is_slower(&row)) fprintf(stderr, "again: %s\n", row.problem);
        result_add(&row);
    }
    return (int)against_compare(&old, bench_options.noise);
}
