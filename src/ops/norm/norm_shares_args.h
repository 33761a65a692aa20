/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_shares kernels, shared by host and device: group and instance norm, channels first, of
 * shares (what has a mean: a row of `of`) that a few threads hold in registers and that end with it.
 *
 *   whole   a share is whole units; `of.lanes` threads have one, a block `of.groups` of them
 *   beside  planes of instance norm: a warp has several neighbours, whole units together, and some
 *           lanes each of them
 *   walk    gradients: several blocks (`of.cluster`) have a share, each `of.share` units of it, and go from share to share
 *           as norm_rows_args.h says of rows by posts */
#ifndef WD_OPS_NORM_SHARES_ARGS_H
#define WD_OPS_NORM_SHARES_ARGS_H

#include "ops/norm/norm_kept_args.h"

enum {
    NORM_SHARES_COLUMNS = 32,     /* of a thread that has a part of a share of whole units */
    NORM_SHARES_LONGEST = 8192,   /* elements of such a share */
    NORM_SHARES_WARPS_MOST = 8,   /* of a block */
    NORM_SHARES_PLANE = 64,       /* elements of planes that lie beside each other, at most, */
    NORM_SHARES_UNITS = 2,        /* units of a lane's columns there, */
    NORM_SHARES_WARPS = 4,        /* and warps of a block */
    NORM_SHARES_WALK_UNITS = 4,   /* units of a lane's columns where several blocks have a share, */
    NORM_SHARES_WALK_WARPS = 16,  /* warps of a block, */
    NORM_SHARES_WALK_BLOCKS = 32, /* and blocks of a share, at most */
    NORM_SHARES_WALK_COPIES =
        8, /* of what is said of a share: some still read that of earlier ones */
};

struct norm_shares_args {
    struct norm_rows_args of; /* scale and bias in fp32, a number a channel */
    struct wd_fastdiv by_plane;
    struct wd_fastdiv by_groups;
    struct wd_fastdiv by_lanes;
    struct norm_kept_sums *found; /* of each share, for dscale and dbias; null: neither is wanted */
    uint32_t each;                /* channels of a share */
    uint32_t slices;              /* strips of a channel, of which each is left in `found` (walk) */
};

#endif
