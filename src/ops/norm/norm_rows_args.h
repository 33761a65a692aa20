/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_rows kernels, shared by host and device. x is [rows][length] without gaps; a
 * unit is sixteen bytes of a row, aligned, or where rows do not begin on boundaries as many elements.
 *
 * A row has `lanes` threads of each block of its cluster (a cluster of one block: all of them), a block
 * `share` units of the row, a lane every `lanes`-th of these (off the boundaries a warp a strip of
 * them, of which a lane has every 32nd, but gradients of fp32; likewise where bulk copies bring them). A block has `groups` rows side by side,
 * and walks on by `step`; `ahead` rows of a group are on their way while it has one, in a ring of
 * `ring` places; of held rows one, whose place is free as soon as it is looked at.
 *
 * Rows off the boundaries: `step` is such that a group's rows all begin equally far behind one; units are
 * the whole ones between a row's first and last boundary. Of those that are drawn every `classes`-th begins equally far
 * behind one, and a block has rows of one such class.
 *
 * Sums of lanes go through the warp, sums of warps through shared memory or that of the cluster. Where
 * a cluster would be too large, the blocks of a row are only all there at once, and leave one another
 * their sums in memory (`posts`).
 * Backward, a thread adds up what its columns give to dscale and dbias over its rows; a block (or its
 * share of a cluster) leaves one row of these in `partial`. */
#ifndef WD_OPS_NORM_ROWS_ARGS_H
#define WD_OPS_NORM_ROWS_ARGS_H

#include <stdint.h>

enum {
    NORM_ROWS_UNIT = 16,         /* bytes */
    NORM_ROWS_THREADS = 1024,    /* of a block, at most */
    NORM_ROWS_CLUSTER_MAX = 8,   /* blocks of a row, ... */
    NORM_ROWS_BULK_CLUSTER = 16, /* ... of one that comes by bulk copies, forward */
    NORM_ROWS_GROUPS = 15,       /* of more than a warp in a block, at most: barriers */
    NORM_ROWS_AHEAD_MAX = 6,     /* rows */
    NORM_ROWS_COPIES = 4,      /* of what is said of a row: some still read that of earlier ones */
    NORM_ROWS_POST = 4,        /* words of a block's post: a sector */
    NORM_ROWS_POSTING = 64,    /* blocks of a row by posts, at most: a lane reads two */
    NORM_ROWS_SLICES_MAX = 16, /* of groups, side by side in adding them up */
    NORM_ROWS_FEW_COLUMNS = 8, /* of a thread, where a block has a row and others add up columns */
    NORM_ROWS_TILE = 32,       /* columns of a block that adds partial sums, at least */
    NORM_ROWS_ODD_ROOM = 4640, /* bytes of a warp beside a held row off the boundaries */
    NORM_ROWS_FINISH = 1024,   /* threads of it, at most */
    NORM_ROWS_SLICES = 32,     /* partial sums side by side there, at most */
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
    uint64_t
        *posts; /* [blocks][copies][words]: for blocks of a row that are no cluster; null: none */
    uint32_t *
        counters; /* of these, one a row's blocks, WD_COUNTER_WORDS apart; what rows are drawn from */
    int64_t rows;
    int64_t step;
    uint32_t first; /* plain: blocks that ask for the parameters early; of gradients by strips:
                     * clusters that have most of the rows, */
    uint32_t early; /* how many these are, */
    uint32_t
        later; /* and rows of each cluster after them; forward rows that are drawn: of each before (more
               * than there are: none is drawn) */
    float epsilon;
    float inverse; /* of the length */
    float by_left; /* of the columns of a block's last warp */
    uint32_t length;
    uint32_t lanes;
    uint32_t share;
    uint32_t groups;
    uint32_t cluster;
    uint32_t partials;
    uint32_t ahead;
    uint32_t ring;
    uint32_t lag; /* of rows that blocks have or share: turns from looking at a row to putting it */
    int32_t centered; /* not RMS norm */
    int32_t streaming;
    int32_t late;     /* held rows: the next is asked for when the sums of one are there */
    int32_t apart;    /* y lies differently within units than x: written by elements */
    uint32_t classes; /* rows off the boundaries that are drawn; `step` is of blocks then */
};

#endif
