/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_wide kernels, shared by host and device. All blocks are there at once, and
 * each has `share` units of every row: a thread a run of neighbours every so many, or singles where
 * rows lie off the boundaries. They work on `batch` rows, which are all, and meet once. */
#ifndef WD_OPS_NORM_WIDE_ARGS_H
#define WD_OPS_NORM_WIDE_ARGS_H

#include "ops/norm/norm_rows_args.h"

enum {
    NORM_WIDE_THREADS = 512, /* of a block */
    NORM_WIDE_THREADS_BACKWARD = 256,
    NORM_WIDE_BATCH = 8,    /* rows, at most: a warp has one of them */
    NORM_WIDE_BLOCKS = 160, /* at most: what a warp reads at once of them */
};

struct norm_wide_args {
    struct norm_rows_args of; /* no `ahead` or `ring`; one partial row at most */
    void *parts;              /* [batch][blocks] of sixteen bytes */
    uint32_t *counter;
    uint32_t batch;
    uint32_t row_units; /* of a row in the ring */
};

#endif
