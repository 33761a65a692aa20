/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch of norm_clusters' kernels, for the engines of the backend's norms and of batch norm. */
#ifndef WD_OPS_NORM_NORM_CLUSTERS_H
#define WD_OPS_NORM_NORM_CLUSTERS_H

#include "ops/norm/norm_clusters_args.h"
#include "ops/norm/norm_gpu.h"

/* Of two blocks a processor (norm_halves_clusters.c). */
extern const struct wd_kernel_table wd_norm_halves_kernels;
cudnnStatus_t norm_halves_launch(struct wd_queue *queue, const struct wd_share_cut *c,
                                 const struct norm_clusters_args *a, int type);

/* Emits the kernel for data of a type of norm_gpu.h. */
cudnnStatus_t norm_clusters_launch(struct wd_queue *queue, const struct wd_share_cut *c,
                                   const struct norm_clusters_args *a, int type);

#endif
