/* SPDX-License-Identifier: Apache-2.0
 *
 * How large the boxes of sheets are, whose results are put together in shared memory. A pure function. */
#ifndef WD_OPS_POOLING_SHEET_CUT_H
#define WD_OPS_POOLING_SHEET_CUT_H

#include "ops/pooling/pooling_band.h"

/* Bytes of a block's shared memory, and what depends on them, of bands as well. */
enum {
    WD_POOL_BYTES_LARGE =
        110 << 10, /* two blocks, of twice the threads, where small boxes read too much twice */
    WD_POOL_BYTES_BAND = 54 << 10,  /* four blocks a processor */
    WD_POOL_BYTES_SHEET = 44 << 10, /* five blocks a processor: there is but little to compute */
    WD_POOL_BLOCKS_EACH = 4,        /* blocks of a processor that joining images leaves */
    WD_POOL_COLUMN_BYTES = 20, /* that take as long to move as a thread what it finds out first */
    WD_POOL_WINDOW_BYTES = 16, /* maxima: finding one */
};

/* Elements of each tensor that a sheet of one image has, and what it costs, as lay_out() says it. */
struct wd_pool_sheet {
    int64_t rows; /* of what is made */
    int64_t columns;
    int64_t bytes;
    int64_t moved;
};

static inline int64_t wd_pool_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* The box that moves least for what it makes; false where none fits. */
bool wd_pool_sheet_of(const struct wd_device *device, const struct wd_pool_shape *s,
                      enum wd_pool_band_work work, struct wd_pool_sheet *best);

#endif
