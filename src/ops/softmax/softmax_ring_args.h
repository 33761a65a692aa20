/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the kernels that keep a ring of rows in shared memory, shared by host and device.
 *
 * A team of `rows.cluster` blocks has rows team, team + teams, ...: each block the same part of every
 * one, in one of `slots` places of its shared memory. While one row is loaded, what an earlier one
 * comes to goes round the team, and a still earlier one is stored. The last warp of a block carries
 * what the blocks tell each other, the others compute. */
#ifndef WD_OPS_SOFTMAX_RING_ARGS_H
#define WD_OPS_SOFTMAX_RING_ARGS_H

#include "ops/softmax/softmax_vector_args.h"

enum {
    SOFTMAX_RING_THREADS = 512, /* of a block, at most */
    SOFTMAX_RING_SLOTS = 8,     /* at most */
    SOFTMAX_RING_DELAY = 2,     /* turns from a row's sums to its results */
    SOFTMAX_RING_KEPT = 4,      /* turns that what was told is kept */
};

struct softmax_ring_args {
    struct softmax_vector_args rows; /* `runs`: of a block's part; `cluster`: blocks of a team */
    uint32_t *counters;              /* SOFTMAX_RING_DELAY of each team */
    uint32_t teams;
    uint32_t slots;
    int32_t apart; /* the tensors lie differently on the boundaries: element by element, shift 0 */
};

#endif
