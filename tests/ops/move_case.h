/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of concatenation and reshape share. */
#ifndef TESTS_OPS_MOVE_CASE_H
#define TESTS_OPS_MOVE_CASE_H

#include "node_run.h"

enum { MOVE_TYPES = 8 };
extern const int move_types[MOVE_TYPES];

be_desc concat_open(int count, const be_desc *x, be_desc y, int64_t axis);
be_desc reshape_open(be_desc x, be_desc y);

/* Whether y holds its own old values, and those of the inputs side by side. */
void concat_check(int count, struct tensor *const *x, const struct tensor *y, int axis);

#endif
