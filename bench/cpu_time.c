/* SPDX-License-Identifier: Apache-2.0
 *
 * How a call is timed on the host: the clock, or the time of the processors, around each run. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { RUNS_MIN = 5, RUNS_MAX = 2000, THREADS_MAX = 256 };

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cpu_now(void)
{
    if (bench_options.processor) return read_clock(CLOCK_PROCESS_CPUTIME_ID) / bench_threads();
    return read_clock(CLOCK_MONOTONIC);
}

int bench_threads(void)
{
    const char *named = getenv("WARPDNN_THREADS");
    long count = named ? strtol(named, NULL, 10) : 0;
    if (count <= 0) count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : (int)count;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct timing cpu_time(cudnnStatus_t (*call)(void *context), void *context)
{
    static double time[RUNS_MAX];
    struct timing timing = {0};
    double seconds = bench_options.seconds > 0.0 ? bench_options.seconds : 0.3;
    double end;
    bench_check(call(context), "the call that is timed");
    end = read_clock(CLOCK_MONOTONIC) + seconds;
    while (timing.runs < RUNS_MAX &&
           (timing.runs < RUNS_MIN || read_clock(CLOCK_MONOTONIC) < end)) {
        double start = cpu_now();
        cudnnStatus_t status = call(context);
        time[timing.runs++] = cpu_now() - start;
        bench_check(status, "the call that is timed");
    }
    qsort(time, (size_t)timing.runs, sizeof *time, by_time);
    timing.best = time[0];
    timing.median = time[timing.runs / 2];
    return timing;
}
