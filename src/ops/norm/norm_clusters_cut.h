/* SPDX-License-Identifier: Apache-2.0
 *
 * How norm_clusters cuts shares over blocks, and its launch: for the engines of the backend's norms and of batch norm. */
#ifndef WD_OPS_NORM_NORM_CLUSTERS_CUT_H
#define WD_OPS_NORM_NORM_CLUSTERS_CUT_H

#include "ops/norm/norm_clusters_args.h"
#include "ops/norm/norm_gpu.h"

struct norm_clusters_cut {
    int64_t shares; /* given, as are ... */
    int64_t units;  /* of a share, ... */
    bool backward;
    int64_t cluster;
    int64_t part; /* units of a block */
    int64_t quads;
    int64_t dy_quads;
    int64_t shared;   /* bytes */
    int64_t clusters; /* of a launch */
};

/* False where shares are too small, too large or too few for the device, which has no clusters perhaps. A pure function. */
bool norm_clusters_cut(struct norm_clusters_cut *c, const struct wd_device *device);

/* What a cut says of the arguments: with the plan, not in a call. */
void norm_clusters_say(const struct norm_clusters_cut *c, struct norm_clusters_args *a);

/* Emits the kernel for data of a type of norm_gpu.h (norm_clusters.c). */
cudnnStatus_t norm_clusters_launch(struct wd_queue *queue, const struct norm_clusters_cut *c,
                                   const struct norm_clusters_args *a, int type);

#endif
