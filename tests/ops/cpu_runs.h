/* SPDX-License-Identifier: Apache-2.0
 *
 * The main function of a test of the CPU module's engines: without arguments the program runs itself
 * with 1, 2 and 64 threads (all cases with two, whatever WARPDNN_TEST_SAMPLE says; WARPDNN_TEST_QUICK
 * with the others, which are there to see that the cut by threads is right) and adds the counts up. */
#ifndef TESTS_OPS_CPU_RUNS_H
#define TESTS_OPS_CPU_RUNS_H

#include <stdbool.h>

/* Answers main's status. `run_cases` is one run. `digests`: each run prints a line `digest WORD`, and
 * all must say the same. Skipped on a GPU and where there is no module. */
int cpu_runs(int argc, char **argv, bool digests, int (*run_cases)(int argc, char **argv));
/* Why there is nothing to test, or null: another device, or no module beside the library. A module that
 * is there but does not serve is a failure, for then no engine is reached. */
const char *cpu_runs_nothing_to_test(void);
/* Says that it is skipped; for a reason of the test's own. */
int cpu_runs_skipped(const char *why);

/* Where 64 spinning threads would take hours. */
static inline bool cpu_runs_in_thread_sanitizer(void)
{
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return true;
#endif
#endif
    return false;
}

#endif
