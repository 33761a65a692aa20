/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the softmax_clusters kernels, shared by host and device: long rows, each a share of a cluster (ops/shares.h). */
#ifndef WD_OPS_SOFTMAX_CLUSTERS_ARGS_H
#define WD_OPS_SOFTMAX_CLUSTERS_ARGS_H

#include "ops/shares.h"

struct softmax_clusters_args {
    const void *x;  /* backward: y */
    const void *dy; /* backward */
    void *y;        /* backward: dx */
    uint32_t shares;
    uint32_t cluster;
    uint32_t units; /* of a share, of less than 2^31 in all */
    uint32_t part;
    uint32_t quads; /* backward of dy as well: all stays */
    int32_t log;
};

#endif
