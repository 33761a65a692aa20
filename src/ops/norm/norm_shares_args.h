/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_shares kernels, shared by host and device: group and instance norm, channels first, of
 * shares (what has a mean: a row of `of`) that a few threads hold in registers and that end with it.
 *
 *   whole   a share is whole units; `of.lanes` threads have one, a block `of.groups` of them
 *   beside  planes of instance norm: a warp has several neighbours, whole units together, and some
 *           lanes each of them */
#ifndef WD_OPS_NORM_SHARES_ARGS_H
#define WD_OPS_NORM_SHARES_ARGS_H

#include "base/fastdiv.h"
#include "ops/norm/norm_rows_args.h"

enum {
    NORM_SHARES_COLUMNS = 32,   /* of a thread that has a part of a share of whole units */
    NORM_SHARES_LONGEST = 8192, /* elements of such a share */
    NORM_SHARES_PLANE = 64,     /* elements of planes that lie beside each other, at most, */
    NORM_SHARES_UNITS = 2,      /* units of a lane's columns there, */
    NORM_SHARES_WARPS = 4,      /* and warps of a block */
};

struct norm_shares_args {
    struct norm_rows_args of; /* scale and bias in fp32, a number a channel */
    struct wd_fastdiv by_plane;
    struct wd_fastdiv by_groups;
    struct wd_fastdiv by_lanes;
    uint32_t each; /* channels of a share */
};

#endif
