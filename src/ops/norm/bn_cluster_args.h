/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the bn_cluster kernels, shared by host and device. A group is what a cluster of blocks
 * holds in its shared memory: the planes of one parameter, or by columns (inner is 1) a stripe of
 * neighbours. Either way it is rows of units, of 8, 4 or 1 elements, one row an outer index; a block
 * has `share` of the group's units, row after row. */
#ifndef WD_OPS_NORM_BN_CLUSTER_ARGS_H
#define WD_OPS_NORM_BN_CLUSTER_ARGS_H

#include "ops/norm/bn_vector_args.h"

enum {
    BN_CLUSTER_COLUMNS = 128,      /* of a stripe at most, and no fewer threads in its blocks */
    BN_CLUSTER_MOST = 8,           /* blocks of a cluster */
    BN_CLUSTER_SLOTS = 4,          /* channels of a block that walks, at most */
    BN_CLUSTER_WALK_THREADS = 256, /* each warp adds up all the block's sums: more are slower */
};

/* What a column's statistics take of a block's shared memory besides its elements. */
#define BN_CLUSTER_EXTRA(columns, threads) ((columns) * (48 + (threads) / 32 * 8))

struct bn_cluster_args {
    struct bn_vector_args bn;
    int64_t pitch;            /* elements from row to row */
    uint32_t cluster;         /* blocks of a group */
    uint32_t units;           /* of a group */
    uint32_t share;           /* of a block: by columns whole rows */
    uint32_t columns;         /* of a group: parameters */
    uint32_t slots;           /* of a block that walks: channels that it holds */
    double inverse;           /* likewise: of the elements of a channel */
    struct wd_fastdiv by_row; /* units of a group's row; by columns a power of two up to 32 */
};

#endif
