/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of random tensors, written out a second time, apart from the library's: element by element
 * from (seed, offset, logical index); and what draws and judges a tensor of them. Used by rng_test.c and
 * rng_runs_test.c. */
#ifndef TESTS_OPS_RNG_CASE_H
#define TESTS_OPS_RNG_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "node_run.h"

struct rng_distribution {
    int kind;    /* cudnnRngDistribution_t */
    double a, b; /* probability; minimum and maximum; mean and deviation */
};

/* Whether numbers of a type are made of 16 bits. */
bool rng_is_coarse(int type);

/* Element i, of the types that rng_test.c has. `excess` is by how many of its
 * 2^13 places the radius of a coarse normal number is another one's. */
double rng_expected_of(const struct rng_distribution *d, int type, uint64_t seed, uint64_t offset,
                       int64_t i, double excess);
double rng_expected(const struct rng_distribution *d, int type, uint64_t seed, uint64_t offset,
                    int64_t i);

extern const char *const rng_kind_name[];

/* Descriptors, not finalized; the operation without a seed or an offset. */
be_desc rng_open(const struct rng_distribution *d);
be_desc rng_op_open(be_desc rng, be_desc y);
/* Every value of y. */
void rng_judge(const struct rng_distribution *d, const struct tensor *y, uint64_t seed,
               uint64_t offset);
/* Between case_begin and case_end: draws a tensor, `odd` elements off its alignment, and judges it. */
void rng_draw(const struct rng_distribution *d, int type, int rank, const int *dim,
              enum layout layout, int odd);

#endif
