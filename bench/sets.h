/* SPDX-License-Identifier: Apache-2.0
 *
 * The sets of the CPU: convolutions and products of matrices against sgemm at 2048^3 on the same
 * threads, memory-bound calls against a plain vector copy of as many bytes, counting each input once
 * read and each output once written. */
#ifndef BENCH_SETS_H
#define BENCH_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench.h"

extern cudnnHandle_t sets_handle; /* on the CPU */

/* A timed row. `work` is FLOP where `products`, else bytes. */
struct row {
    char set[24];
    char name[32];
    char problem[64];
    char engine[64];
    bool products;
    bool counted; /* takes part in the set's mean */
    double work;
    double copy; /* bytes a second of a copy of this size, for memory-bound rows */
    struct timing timing;
};
void sets_add(const struct row *row);
/* Elements of the handle's device, random in [-0.5, 0.5). */
float *sets_floats(int64_t count);
/* Whether --only takes this row. */
bool sets_wanted(const char *set, const char *name, const char *problem);

void sets_convolutions(void);
void sets_matmul(void);
void sets_memory(void);

/* Runs the sets that are asked for, prints their tables, and adds them to the rows of the run. */
void sets_run(void);

#endif
