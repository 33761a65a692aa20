/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_groups kernels, shared by host and device. x is [samples][channels][plane]
 * (planes) or [samples][plane][channels] (columns) in memory; channels are `groups` times `each`
 * neighbours, and those of one group and sample are a share: what has a mean.
 *
 * A share is cut into `segments`. Whole (columns alone): they are the blocks of a cluster, which keep
 * what they read in shared memory. Else they are blocks by themselves that leave what they found in
 * scratch, and other kernels go on from there.
 *
 *   planes   a block has `width` threads a share; these are teams of `team` threads, a channel each.
 *            Segments are some of the channels, or of each channel some elements
 *   columns  a block has `tile` columns, a thread eight of them and every `rows`th row. Segments are
 *            rows; whole, tiles are of whole groups
 *
 * A thread's eight elements are neighbours (`runs`) or lie apart by as many as there are threads side
 * by side. */
#ifndef WD_OPS_NORM_GROUPS_ARGS_H
#define WD_OPS_NORM_GROUPS_ARGS_H

#include "ops/norm/norm_rows_args.h"

enum {
    NORM_GROUPS_RUN = 8,
    NORM_GROUPS_THREADS = 512,        /* of a block by planes, at most */
    NORM_GROUPS_COLUMN_THREADS = 256, /* of a block by columns */
    NORM_GROUPS_TILE = 256,           /* columns of a block, at most */
    NORM_GROUPS_CLUSTER = 8,          /* segments of a share that is read once, at most */
    NORM_GROUPS_FINISH_THREADS = 256, /* of the kernels that join what blocks found */
    NORM_GROUPS_PARAMS = 8,           /* channels of a block that adds up dscale and dbias */
};

/* What a share keeps between kernels. Forward: xhat = (x - first) * second + third. Backward: a / n,
 * b / n. */
struct norm_groups_numbers {
    float first;
    float second;
    float third;
    float unused;
};

/* What a segment found. */
struct norm_groups_part {
    double count;
    double mean;
    double squares;
};
struct norm_groups_sums {
    float dy;
    float dy_xhat;
};

struct norm_groups_args {
    const void *x;
    const void *dy; /* backward */
    void *y;        /* backward: dx */
    struct norm_rows_param scale;
    struct norm_rows_param bias;   /* forward */
    struct norm_rows_param dscale; /* backward */
    struct norm_rows_param dbias;
    const float *given_mean; /* by share */
    const float *given_inv_std;
    float *mean; /* that are wanted; null: not */
    float *inv_std;
    struct norm_groups_numbers *numbers; /* scratch, by share */
    struct norm_groups_part *parts;      /* scratch: [samples][slices][units] */
    struct norm_groups_sums *sums;       /* scratch: [samples][slices][channels] */
    int64_t shares;
    double epsilon;
    float inverse; /* of the elements of a share */
    uint32_t samples;
    uint32_t channels;
    uint32_t plane;
    uint32_t groups;
    uint32_t each;
    uint32_t segments;
    uint32_t slices;      /* segments that have something of the same channel, or unit */
    uint32_t units;       /* parts of a slice: groups, by columns channels */
    uint32_t by_channels; /* planes: segments are channels */
    uint32_t part;        /* of a segment: channels, elements of each plane, or rows */
    uint32_t width;       /* planes: threads of a share, or its segment */
    uint32_t team;
    uint32_t tile;  /* columns */
    uint32_t tiles; /* columns: blocks side by side */
    uint32_t rows;  /* columns: of a block at a time */
    uint32_t runs;
    uint32_t turns; /* planes: eights of a thread in a channel */
    uint32_t lanes; /* finish: threads of a share */
    int32_t streaming;
};

#endif
