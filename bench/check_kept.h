/* SPDX-License-Identifier: Apache-2.0
 *
 * What is read back of outputs to be compared, and how far off an element is: whole tensors, of large
 * ones stretches. An element may be off by the rounding of its type (both sides round once more where it
 * is narrow), and by the rounding of the arithmetic, which grows with the root of the number of terms,
 * relative to the size of what the output holds. */
#ifndef BENCH_CHECK_KEPT_H
#define BENCH_CHECK_KEPT_H

#include "check.h"

enum { WHOLE_MAX = 8 << 20 }; /* bytes of a tensor that is read whole */

struct kept {
    unsigned char *data;
    int64_t count; /* elements */
};

static inline bool is_output(const struct operand *o)
{
    return o->role == OUTPUT || o->role == BOTH;
}

/* From the device; all of it if `whole`. The caller frees the data, which is null without memory. */
void kept_read(const struct operand *o, const void *at, bool whole, struct kept *kept);
/* As doubles, in the order of memory or (of whole tensors) of the dims; the caller frees them. */
double *kept_decode(const struct operand *o, const struct kept *kept, bool logical);
/* The position in memory of element i of what was read. */
int64_t kept_position(const struct operand *o, const struct kept *kept, int64_t i);

/* The root mean square of what is finite. */
double kept_rms(const double *values, int64_t count);
/* How many tolerances an element is off, in a tensor of this root mean square; up to 1 is right. */
double kept_off_by(const struct task *task, const struct operand *o, double mine, double right,
                   double rms);

/* Of a large problem of planes (problem.h): elements in which two libraries differ against reference()
 * of the planes that they are in. `bad` counts those in which each library is wrong; the worst of the
 * first one's is in `why`. False where it cannot be said. */
bool check_planes(const struct task *task, const struct buffers *buffers,
                  struct kept (*kept)[OPERANDS_MAX], int64_t bad[2], int64_t *differing, char *why,
                  size_t size);

#endif
