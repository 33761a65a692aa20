/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch of norm_clusters' forward kernels of two blocks a processor. No state. */
#include "ops/norm/norm_clusters.h"

#define WD_KERNELS_MODULE norm_halves_clusters
#define WD_KERNELS_ROWS "ops/norm/norm_halves_clusters_kernels.def"
#define WD_KERNELS_TABLE const struct wd_kernel_table wd_norm_halves_kernels
#include "ops/kernels_host.inc"

cudnnStatus_t norm_halves_launch(struct wd_queue *queue, const struct wd_share_cut *c,
                                 const struct norm_clusters_args *a, int type)
{
    return wd_emit_cluster_kernel(queue, &kernel_rows[type], c->clusters * c->cluster,
                                  WD_SHARE_THREADS / 2, a->cut.cluster, (uint32_t)c->shared, a);
}
