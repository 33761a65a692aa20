/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_clusters kernels, shared by host and device: group and instance norm, channels first, of large
 * shares (what has a mean), instance norm's gradients, and batch norm's of planes, of which a channel is a share. A unit is
 * sixteen bytes. A share is rows of `by_row` units, `jump` more units apart: one row, but for batch norm.
 *
 * Shares lie in clusters, or teams, as ops/shares.h says. */
#ifndef WD_OPS_NORM_CLUSTERS_ARGS_H
#define WD_OPS_NORM_CLUSTERS_ARGS_H

#include "ops/norm/norm_kept_args.h"
#include "ops/shares.h"

enum {
    NORM_CLUSTERS_EACH = 128, /* channels of a share, at most: their formulas are tabled */
};

struct norm_clusters_args {
    const void *x;
    const void *dy; /* backward */
    void *y;        /* backward: dx */
    struct norm_rows_param scale;
    struct norm_rows_param bias;
    const float *given_mean; /* backward, by share; null: 0 */
    const float *given_inv_std;
    float *mean; /* forward, that are wanted; null: not */
    float *inv_std;
    struct norm_kept_sums *found; /* each share's; null: none wanted, or added up here */
    double epsilon;
    double inverse;      /* of the elements of a share */
    double factor;       /* batch norm, forward: of the running averages */
    double less;         /* 1 / (elements of a share - 1), or of one 1 */
    double alpha_param;  /* backward, where these are added up here: of dscale and dbias, ... */
    double beta_param;   /* ... and of what they were */
    float *running_mean; /* batch norm; null: not */
    float *running_var;
    float *dscale; /* backward, that are added up here; null: not */
    float *dbias;
    struct wd_fastdiv by_plane; /* units of a channel */
    struct wd_fastdiv by_row;
    uint32_t stride; /* units from share to share, of less than 2^31 in all */
    uint32_t jump;
    uint32_t batch;    /* batch norm: the saved mean of an infinity is one */
    uint32_t each;     /* channels of a share */
    uint32_t groups;   /* shares of a sample */
    uint32_t together; /* backward: shares of a channel, added up by their cluster; else 1 */
    uint32_t *board;   /* of teams; null: clusters */
    struct wd_share_args cut;
};

#endif
