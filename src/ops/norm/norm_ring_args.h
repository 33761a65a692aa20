/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_ring kernels, shared by host and device: group and instance norm of images,
 * read once and written once, with copies under way all the time.
 *
 *   columns  x is [samples][plane][channels]; a panel is a sample, a row of it all channels
 *   planes   x is [samples][channels][plane]; a panel is a group of a sample, a row one run of it
 *
 * A team of `blocks` that are all there at once has a panel at a time, each `part` rows of it, which are
 * one stretch of memory; teams walk over panels. A thread has a run of 16 bytes of every `rows`th row. What
 * it reads passes through a ring in shared memory of `ring` places a thread, longer than a panel's share:
 * as a run is written, its place is asked for what comes a ring's length later, in whatever panel that is.
 * With `lag` the ring has room for a second panel: then a panel is written after the next one has been
 * summed, and nobody waits for what blocks tell each other. A panel that is longer than the ring passes
 * through it twice, but for what stays.
 *
 * Blocks post what they found of each group (gpu/device/post.cuh); one of them, the same for a group
 * throughout, adds up what all have posted, and posts what follows. */
#ifndef WD_OPS_NORM_RING_ARGS_H
#define WD_OPS_NORM_RING_ARGS_H

#include "base/fastdiv.h"
#include "ops/norm/norm_rows_args.h"

enum {
    NORM_RING_THREADS = 480, /* of a block that have runs, at most */
    NORM_RING_BATCH = 2,     /* runs of a thread that are waited for together */
    NORM_RING_COPIES = 2, /* of what is posted of a panel: some still read that of the one before */
    NORM_RING_POST = 4,   /* words of a post: two numbers, each in two */
    NORM_RING_FINISH = 32, /* channels of a block that adds up dscale and dbias */
};

struct norm_ring_sums {
    float dy;
    float dy_xhat;
};

struct norm_ring_args {
    const void *x;
    const void *dy; /* backward */
    void *y;        /* backward: dx */
    struct norm_rows_param scale;
    struct norm_rows_param bias;   /* forward */
    struct norm_rows_param dscale; /* backward */
    struct norm_rows_param dbias;
    const float *given_mean; /* backward, by group of a sample */
    const float *given_inv_std;
    float *mean; /* forward, that are wanted; null: not */
    float *inv_std;
    struct norm_ring_sums *sums; /* backward: [rows][channels]; null: not wanted */
    uint64_t *posts;             /* [teams][copies][groups][blocks + 1][words] */
    uint32_t *counters;
    double epsilon;
    double inverse; /* of the elements of a group of a sample */
    struct wd_fastdiv by_each;
    struct wd_fastdiv by_plane;
    uint32_t panels;
    uint32_t teams;
    uint32_t blocks; /* of a team */
    uint32_t height; /* rows of a panel */
    uint32_t width;  /* elements of a row */
    uint32_t channels;
    uint32_t groups; /* of a panel */
    uint32_t each;   /* channels of a group */
    uint32_t cycle;  /* planes: groups of a sample */
    uint32_t plane;  /* planes: runs of a channel */
    uint32_t lines;  /* planes: channels of a block, at most */
    uint32_t lanes;  /* planes, backward: that add up a channel, or a piece of it */
    uint32_t pieces; /* planes, backward: of a channel */
    uint32_t slices; /* planes, backward: blocks that may have something of the same channel */
    uint32_t sum_rows;
    uint32_t part;   /* rows of a block */
    uint32_t across; /* runs of a row */
    uint32_t rows;   /* of a block at a time */
    uint32_t ring;   /* places of a thread, of one tensor: whole batches */
    uint32_t keep;   /* batches of a panel that stay, at most */
    uint32_t lag;
    uint32_t ahead;   /* batches under way, at most */
    uint32_t threads; /* that have runs; one warp more exchanges */
    uint32_t runs;    /* 16 bytes at a time, where they lie so */
    int32_t streaming;
};

#endif
