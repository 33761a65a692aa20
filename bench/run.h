/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs problems: one after the other, each in both libraries. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "problem.h"
#include "result.h"

/* Handles of the libraries that are open, on the device that is open. False with a text where ours
 * refuses; a peer that refuses is left out, with a text. */
bool run_open(void);
void run_close(void);
/* The handle of a library, or null. */
cudnnHandle_t run_handle(const struct library *library);

/* Plans a row, scaled down to --limit; false where the family does not know the call. */
bool run_plan(const struct family *family, struct problem *problem, struct task *task);
/* Whether --only takes it. */
bool run_wanted(const struct task *task);
/* Problems in place of a family's list, if --problems says so: read, or the program ends with a text. */
struct problem_list {
    const struct problem *problems;
    int count;
};
void own_read(void);
struct problem_list own_or_listed(const struct family *family);
/* The listed problems of a family that are wanted, then the random ones; each once. */
void run_family(const struct family *family);

#endif
