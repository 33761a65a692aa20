/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the bn_grid kernels, shared by host and device. Memory is rows of `pitch` elements, a
 * multiple of the number of parameters and of what one load brings, a unit of 16 bytes. Groups of
 * blocks, which are all there at once, have `runs` units of every row each; a block has every
 * `blocks`-th slice of `lanes` rows, a thread one row of every such slice: a round. */
#ifndef WD_OPS_NORM_BN_GRID_ARGS_H
#define WD_OPS_NORM_BN_GRID_ARGS_H

#include "ops/norm/bn_vector_args.h"

enum {
    BN_GRID_THREADS = 512,
    BN_GRID_UNIT = 16,       /* bytes */
    BN_GRID_AREA = 16 << 10, /* of shared memory, for what threads and blocks join */
};

struct bn_grid_args {
    struct bn_vector_args bn;
    uint32_t *counters; /* one a group, BN_GRID_APART words apart */
    double *sums;       /* two a parameter (by `items`) of each block */
    int64_t pitch;      /* elements of a row */
    uint32_t rows;      /* whole ones; what is behind them is less than a row */
    uint32_t runs;      /* units of a group's row */
    uint32_t lanes;     /* rows of a slice */
    uint32_t blocks;    /* of a group */
    uint32_t rounds;    /* of the thread that has most */
    uint32_t kept;      /* of these, those whose units stay in shared memory */
    uint32_t items;     /* sums that blocks exchange: columns of a group, or parameters if fewer */
    uint32_t together;  /* rows of partial sums that are joined at once */
    uint32_t
        half_warp; /* lanes of a warp that have the same columns differ by this and more, or 32 */
};

#endif
