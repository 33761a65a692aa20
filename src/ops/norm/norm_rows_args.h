/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_rows kernels, shared by host and device. x is [rows][length] without gaps.
 * A row has `lanes` threads of each block of its cluster (a cluster of one block: all of them), a
 * lane eight columns: a run of neighbours, or singles that lie `lanes` apart. A block has `groups`
 * rows side by side, and walks on by `step`.
 *
 * Sums of lanes go through the warp, sums of warps through shared memory, sums of blocks through the
 * shared memory of the cluster. Backward, a thread adds up what its columns give to dscale and dbias
 * over its rows; a block (or its share of a cluster) leaves one row of these in `partial`. */
#ifndef WD_OPS_NORM_ROWS_ARGS_H
#define WD_OPS_NORM_ROWS_ARGS_H

#include <stdint.h>

enum {
    NORM_ROWS_COLUMNS = 8,     /* of a lane */
    NORM_ROWS_THREADS = 1024,  /* of a block, at most */
    NORM_ROWS_BESIDE = 512,    /* of a block that has several rows side by side, at most */
    NORM_ROWS_CLUSTER_MAX = 8, /* blocks of a row */
    NORM_ROWS_AT_ONCE = 4,     /* rows of a thread, at most */
    NORM_ROWS_AHEAD = 4,   /* sixteen bytes of a thread that are on their way, where it has runs */
    NORM_ROWS_GROUPS = 8,  /* of more than a warp in a block, at most */
    NORM_ROWS_TILE = 32,   /* columns of a block that adds partial sums */
    NORM_ROWS_SLICES = 32, /* partial sums side by side there, at most */
};

/* Types of parameters, and places among kernels of three types. */
enum { NORM_ROWS_F32, NORM_ROWS_F16, NORM_ROWS_BF16, NORM_ROWS_TYPES };

struct norm_rows_param {
    void *data; /* null: none */
    int32_t type;
    int32_t unused;
};

struct norm_rows_args {
    const void *x;
    const void *dy; /* backward */
    void *y;        /* backward: dx */
    struct norm_rows_param scale;
    struct norm_rows_param bias;   /* forward */
    struct norm_rows_param dscale; /* backward */
    struct norm_rows_param dbias;
    const float *given_mean; /* statistics that are given; the mean is null in RMS norm */
    const float *given_inv_std;
    float *mean; /* statistics that are wanted; null: not */
    float *inv_std;
    float
        *partial; /* [partials][2][length]: dscale, dbias; null: there is but one, and it is all */
    int64_t rows;
    int64_t step;
    float epsilon;
    float inverse; /* of the length */
    uint32_t length;
    uint32_t lanes;
    uint32_t groups;
    uint32_t cluster;
    uint32_t partials;
    int32_t centered; /* not RMS norm */
    int32_t streaming;
    int32_t unused;
};

#endif
