/* SPDX-License-Identifier: Apache-2.0
 *
 * How a call is timed on the host: wall clock around each run. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

enum { RUNS_MIN = 5, RUNS_MAX = 2000 };

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct timing bench_time(cudnnStatus_t (*call)(void *context), void *context)
{
    static double time[RUNS_MAX];
    struct timing timing = {0};
    double end;
    bench_check(call(context), "the call that is timed");
    end = bench_now() + bench_options.seconds;
    while (timing.runs < RUNS_MAX && (timing.runs < RUNS_MIN || bench_now() < end)) {
        double start = bench_now();
        cudnnStatus_t status = call(context);
        time[timing.runs++] = bench_now() - start;
        bench_check(status, "the call that is timed");
    }
    qsort(time, (size_t)timing.runs, sizeof *time, by_time);
    timing.best = time[0];
    timing.median = time[timing.runs / 2];
    return timing;
}
