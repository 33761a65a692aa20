/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the softmax_clusters kernels, shared by host and device: long rows, each a share of a cluster (ops/shares.h). */
#ifndef WD_OPS_SOFTMAX_CLUSTERS_ARGS_H
#define WD_OPS_SOFTMAX_CLUSTERS_ARGS_H

#include "ops/shares.h"

struct softmax_clusters_args {
    const void *x;            /* backward: y */
    const void *dy;           /* backward */
    void *y;                  /* backward: dx */
    struct wd_share_args cut; /* all of a row stays, of dy as well */
    int32_t log;
};

#endif
