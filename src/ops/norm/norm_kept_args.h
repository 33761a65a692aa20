/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_kept kernels, shared by host and device: group and instance norm of what stays
 * in the shared memory of a block or cluster from its one reading to its one writing.
 *
 * A panel is what a cluster has at a time: clusters walk over panels, and the next panel comes into the
 * places of this one as they are written from. A thread has up to `slots` runs of 16 bytes of it, in
 * words of its own that only its block looks at.
 *
 *   planes   x is [samples][channels][plane]; a share (what has a mean) is one stretch of memory. A
 *            panel is one share, its `part` runs a block; or several shares one after the other, of
 *            one block
 *   columns  x is [samples][plane][channels]; a panel is `tile` channels of one sample: whole groups.
 *            A block has `part` rows of it, a thread the same columns of every `rows`th row */
#ifndef WD_OPS_NORM_KEPT_ARGS_H
#define WD_OPS_NORM_KEPT_ARGS_H

#include "base/fastdiv.h"
#include "ops/norm/norm_rows_args.h"

enum {
    NORM_KEPT_THREADS = 384,
    NORM_KEPT_CLUSTER = 8,       /* blocks of a panel, at most */
    NORM_KEPT_BESIDE_RUNS = 128, /* of a share that others lie beside, less than that */
    NORM_KEPT_FINISH = 8,  /* channels of a block that adds up dscale and dbias: a sector or two */
    NORM_KEPT_BATCHES = 4, /* parts of a panel that are waited for one after the other */
};

/* Backward: what was found of a channel, or of a piece of it. */
struct norm_kept_sums {
    float dy;
    float dy_xhat;
};

struct norm_kept_args {
    const void *x;
    const void *dy; /* backward */
    void *y;        /* backward: dx */
    struct norm_rows_param scale;
    struct norm_rows_param bias;   /* forward */
    struct norm_rows_param dscale; /* backward */
    struct norm_rows_param dbias;
    const float *given_mean; /* backward, by share */
    const float *given_inv_std;
    float *mean; /* forward, that are wanted; null: not */
    float *inv_std;
    struct norm_kept_sums *sums; /* scratch of backward */
    int64_t panels;
    int64_t total; /* elements of x */
    double epsilon;
    double inverse; /* of the elements of a share */
    struct wd_fastdiv by_plane;
    struct wd_fastdiv by_each;
    uint32_t *counters; /* null: blocks of a panel are a cluster */
    void *values;       /* scratch of blocks that meet */
    uint32_t teams;     /* of blocks in the launch */
    uint32_t blocks;    /* of a panel */
    uint32_t channels;
    uint32_t plane;
    uint32_t groups;
    uint32_t each;   /* channels of a group */
    uint32_t length; /* planes: elements of a panel */
    uint32_t beside; /* planes: shares of a panel */
    uint32_t lanes;  /* of each, where there are several; backward of a channel */
    uint32_t pieces; /* backward, planes: of a channel, each of which has `lanes` */
    uint32_t lines;  /* backward, planes: channels of a block that there is a table for */
    uint32_t slices; /* backward: blocks that may have something of the same channel */
    uint32_t samples;
    uint32_t part; /* of a block: planes runs, columns rows */
    uint32_t slots;
    uint32_t tile; /* columns */
    uint32_t tiles;
    uint32_t across; /* runs of a tile's row */
    uint32_t rows;   /* of a block at a time */
    uint32_t runs;   /* 16 bytes at a time, where they lie so */
    uint32_t shift;  /* planes: elements of x before the first from a boundary of 16 bytes */
    uint32_t space;  /* runs of a block in shared memory, of one tensor */
    int32_t streaming;
};

#endif
