/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether outputs are right: all elements up to some millions, above that many stretches of them. */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "problem.h"
#include "result.h"

/* Memory of the operands, as the call sees it, by library: 0 ours, 1 the peer's. */
struct buffers {
    void *at[OPERANDS_MAX];
};

/* Puts fresh inputs and poisoned outputs into a buffer set. */
void buffers_fill(const struct task *task, const struct buffers *buffers, unsigned which);

/* Runs ours, then the peer where it is not null, on equal inputs in the same memory, and compares; and
 * a small problem with the family's computation in double precision. Writes verdict and note. */
void check_problem(const struct task *task, struct session *mine, struct session *theirs,
                   const struct buffers buffers[2], struct result *result);

#endif
