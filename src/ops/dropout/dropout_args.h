/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the dropout passes, shared by host and device. */
#ifndef WD_OPS_DROPOUT_ARGS_H
#define WD_OPS_DROPOUT_ARGS_H

#include "base/philox.h"
#include "base/view.h"

struct dropout_args {
    struct wd_view x; /* backward: dy */
    struct wd_view y; /* backward: dx */
    struct wd_random_state *state;
    uint8_t *mask;      /* bit i % 8 of byte i / 8: element i was kept */
    int64_t count;      /* elements */
    uint64_t threshold; /* an element is kept where its number is not below: probability * 2^32 */
    uint64_t seed;      /* of a new state */
    double scale;       /* 1 / (1 - probability) */
};

#endif
