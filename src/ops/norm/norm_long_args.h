/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_long kernels, shared by host and device. x is [rows][length] without gaps. Over
 * rows, a block is groups of `lanes` threads, each of which has a segment of a row; a thread has eight
 * columns at once, a run of neighbours or singles that lie `lanes` apart. What is found of a row's
 * segments goes to memory and is joined in their order. Over columns, a block has `across` threads side
 * by side and the others below them, and walks down the rows of its slab; it leaves one row of what
 * they give to dscale and dbias. */
#ifndef WD_OPS_NORM_LONG_ARGS_H
#define WD_OPS_NORM_LONG_ARGS_H

#include "ops/norm/norm_rows_args.h"

enum {
    NORM_LONG_THREADS = 256,
    NORM_LONG_COLUMNS = 8, /* of a thread, at once */
    NORM_LONG_WARP = 32,
};

/* Of a row: xhat = (x - mean) * inv_std + shift, where shift makes up for the rounding of the mean. */
struct norm_long_numbers {
    float mean;
    float inv_std;
    float shift;
    float unused;
};

struct norm_long_args {
    struct norm_rows_args of;          /* tensors and sizes; `lanes` and `partial` too */
    double *parts;                     /* three, of sums two, of each segment */
    struct norm_long_numbers *numbers; /* null: the statistics are given */
    float *sums;                       /* two a row */
    int64_t slab;                      /* rows */
    uint32_t segment;                  /* columns */
    uint32_t segments;
    uint32_t across;
    uint32_t tiles; /* of columns */
};

#endif
