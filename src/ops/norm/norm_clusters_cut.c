/* SPDX-License-Identifier: Apache-2.0
 *
 * The cut of norm_clusters_cut.h (norm_clusters.c has the launch). No state. */
#include "ops/norm/norm_clusters_cut.h"

#include "base/sizes.h"

enum {
    UNIT = NORM_ROWS_UNIT,  /* bytes */
    SHARE_MOST = 512 << 10, /* bytes that other ways are as fast with */
    QUADS_MOST = 32,        /* of a thread: of more, most would be read twice */
    FULL = 5,               /* of 8 clusters that could be there on average are, at least */
    FULL_OF = 8,
    PART_PROCESSORS = 16, /* of a part of the chip, about, in which a cluster stays */
};

/* Cuts a share over a cluster of blocks. Answers whether x stays. */
static bool share_out(struct norm_clusters_cut *c, int64_t cluster, const struct wd_device *device)
{
    int64_t quad = NORM_CLUSTERS_THREADS * NORM_CLUSTERS_QUAD; /* units of a block */
    int64_t room = (device->shared_per_block - NORM_CLUSTERS_FIXED) / (quad * UNIT);
    int64_t quads = wd_ceil_div(c->units, cluster * quad);
    c->cluster = cluster;
    c->part = quads * quad;
    c->quads = wd_clamp(quads, NORM_CLUSTERS_HELD, NORM_CLUSTERS_HELD + room);
    room -= c->quads - NORM_CLUSTERS_HELD;
    c->dy_quads = c->backward ? wd_least(c->quads, room) : 0;
    c->shared = (c->quads - NORM_CLUSTERS_HELD + c->dy_quads) * quad * UNIT;
    return c->quads >= quads;
}

/* Measured on an H200: 7 of 16 blocks, 15 of 8, 30 of 4. More than there are only wait. */
static int64_t clusters_at_once(int64_t cluster, const struct wd_device *device)
{
    int64_t halves = wd_most(2, 2 * device->multiprocessors / PART_PROCESSORS - 1);
    return wd_most(1, halves * (PART_PROCESSORS / cluster) / 2);
}

bool norm_clusters_cut(struct norm_clusters_cut *c, const struct wd_device *device)
{
    int64_t most = wd_norm_cluster_most(device);
    int64_t cluster = NORM_CLUSTERS_BLOCKS / 4;
    int64_t at_once;
    if (most < NORM_CLUSTERS_BLOCKS / 2 || c->units * UNIT <= SHARE_MOST) return false;
    if (c->shares * c->units > INT32_MAX) return false;
    while (!share_out(c, cluster, device) && cluster < most) cluster *= 2;
    if (c->part > NORM_CLUSTERS_THREADS * NORM_CLUSTERS_QUAD * QUADS_MOST) return false;
    at_once = clusters_at_once(c->cluster, device);
    c->clusters = wd_least(c->shares, at_once);
    return FULL_OF * c->shares >= FULL * at_once * wd_ceil_div(c->shares, at_once);
}

void norm_clusters_say(const struct norm_clusters_cut *c, struct norm_clusters_args *a)
{
    a->shares = (uint32_t)c->shares;
    a->cluster = (uint32_t)c->cluster;
    a->units = (uint32_t)c->units;
    a->part = (uint32_t)c->part;
    a->quads = (uint32_t)c->quads;
    a->dy_quads = (uint32_t)c->dy_quads;
}
