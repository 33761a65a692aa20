/* SPDX-License-Identifier: Apache-2.0
 *
 * The cut of shares.h. No state. */
#include "ops/shares.h"

#include "base/queue.h"
#include "base/sizes.h"

enum {
    CLUSTER_CAPABILITY = 90,
    HALVES_CAPABILITY =
        90, /* alone, where one tensor is read: elsewhere not measured, and there is no image of it (cmake/cuda.cmake) */
    LEAST_CLUSTER = 4,     /* but for shares that fewer blocks, of one a processor, hold */
    PAIR = 2,              /* blocks that need no part of the chip to have room for them */
    FEW_LEAST = 512 << 10, /* bytes of a share: few of fewer other ways are as fast with */
    CLUSTER_MAX = 8,       /* that every device with clusters takes */
    PARTS = 8,             /* of a chip, in one of which a cluster is */
    PART_PROCESSORS = 16,  /* of a part, about */
    QUADS_MOST = 32,       /* of a thread: of more, most would be read twice */
    BLOCK_RESERVED = 1024, /* bytes of shared memory that a block costs besides its own */
    FULL = 20,             /* of 32 clusters that could be there on average are, at least, ... */
    FULL_FEW = 23,         /* ... of single blocks and pairs */
    FULL_OF = 32,
    IDLE_OF = 4, /* blocks of a cluster one may have nothing */
};

/* What it takes to join, and to begin again, as quads that a block moves, and when teams are chosen. Measured on an H200, norm_clusters, clusters and teams,
 * us: fp32 shares of 8 MB, of which clusters hold half, 361 and 328, with a second tensor 640 and 553; 4 MB, which they hold, 155 and 165. */
static const double CLUSTER_JOIN = 0.7, TEAM_JOIN = 6.0, TEAMS_PAY = 0.95;

int64_t wd_share_most_blocks(const struct wd_device *device)
{
    bool large = device->capability / 10 == 9 || device->capability / 10 == 10;
    if (!device->cooperative || device->capability < CLUSTER_CAPABILITY) return 1;
    if (!large || device->multiprocessors <= PARTS * (WD_SHARE_BLOCKS - 1)) return CLUSTER_MAX;
    return WD_SHARE_BLOCKS;
}

/* Measured on an H200: 7 of 16 blocks, 15 of 8, 30 of 4, 66 of 2. More than there are only wait. */
static int64_t clusters_at_once(int64_t cluster, const struct wd_device *device)
{
    int64_t halves;
    if (cluster <= PAIR) return wd_most(1, device->multiprocessors / cluster);
    halves = wd_most(2, 2 * device->multiprocessors / PART_PROCESSORS - 1);
    return wd_most(1, halves * (PART_PROCESSORS / cluster) / 2);
}

/* Units of a block's quad. */
static int64_t quad_units(const struct wd_share_cut *c)
{
    return WD_SHARE_THREADS / (c->halves ? 2 : 1) * WD_SHARE_QUAD;
}

/* Whether what has to stay does: the first tensor if that can be, of halves both. */
static bool stays(const struct wd_share_cut *c)
{
    return c->part <= c->quads * quad_units(c) &&
           (!c->halves || !c->two || c->second_quads == c->quads);
}

/* Cuts a share over a cluster of blocks. */
static void share_out(struct wd_share_cut *c, int64_t cluster, const struct wd_device *device)
{
    int64_t quad = quad_units(c);
    int64_t most =
        c->halves ? device->shared_per_processor / 2 - BLOCK_RESERVED : device->shared_per_block;
    int64_t room = (most - WD_SHARE_FIXED) / (quad * WD_SHARE_UNIT);
    int64_t quads = wd_ceil_div(c->units, cluster * quad);
    c->cluster = cluster;
    c->part = quads * quad;
    c->quads = wd_clamp(quads, WD_SHARE_HELD, WD_SHARE_HELD + room);
    room -= c->quads - WD_SHARE_HELD;
    c->second_quads = c->two ? wd_least(c->quads, room) : 0;
    c->shared = (c->quads - WD_SHARE_HELD + c->second_quads) * quad * WD_SHARE_UNIT;
    c->clusters = wd_least(c->shares, (c->halves ? 2 : 1) * clusters_at_once(cluster, device));
}

/* Whether a cut has more processors at work in the average turn, of one block each; or as many, and more of the second tensor stays,
 * or two blocks share a processor in more phases. Measured on an H200, us: backward of batch norm fp32 64x256x56x56 by 8 blocks 187,
 * by 16 167; softmax of 64 rows of 1 MB by 8 halves 49.1, by 16 47.9. */
static bool is_better(const struct wd_share_cut *c, const struct wd_share_cut *than,
                      const struct wd_device *device)
{
    int64_t turns = wd_ceil_div(c->shares, clusters_at_once(c->cluster, device));
    int64_t turns_of_it = wd_ceil_div(than->shares, clusters_at_once(than->cluster, device));
    int64_t more = c->cluster * turns_of_it - than->cluster * turns;
    if (more != 0) return more > 0;
    if (c->halves) return c->cluster > than->cluster;
    return c->second_quads * than->quads > than->second_quads * c->quads;
}

/* Whether of a cluster's blocks few have nothing, since parts are whole quads. */
static bool most_work(const struct wd_share_cut *c)
{
    return IDLE_OF * wd_ceil_div(c->units, c->part) >= (IDLE_OF - 1) * c->cluster;
}

/* Whether enough of the clusters that there are room for have a share in the average turn. Measured on an H200, us, by blocks and other engines:
 * batch norm training fp32 64x96x28x28 (0.73 of the blocks) 15.7 and 21.4, 64x140x28x28 (by pairs 0.71) 27.4 and 25.1. */
static bool is_full(const struct wd_share_cut *c, const struct wd_device *device)
{
    int64_t at_once = clusters_at_once(c->cluster, device);
    int64_t full = c->cluster <= PAIR ? FULL_FEW : FULL;
    return FULL_OF * c->shares >= full * at_once * wd_ceil_div(c->shares, at_once);
}

static bool cut_clusters(struct wd_share_cut *c, const struct wd_device *device)
{
    int64_t most = wd_share_most_blocks(device);
    int64_t cluster = c->halves ? LEAST_CLUSTER : 1;
    int64_t few = c->units * WD_SHARE_UNIT > FEW_LEAST ? LEAST_CLUSTER : PAIR;
    if (most < CLUSTER_MAX || c->units * WD_SHARE_UNIT <= c->least) return false;
    if (c->shares <= 0 || c->shares * c->units > INT32_MAX) return false;
    share_out(c, cluster, device);
    while (!stays(c) && cluster < most) share_out(c, cluster *= 2, device);
    if (c->halves && !stays(c)) return false;
    if (c->part > quad_units(c) * QUADS_MOST) return false;
    /* by the fewest blocks that hold a share; of few shares by some more */
    while (cluster < few && !is_full(c, device)) share_out(c, cluster *= 2, device);
    if (!is_full(c, device)) return false;
    most = cluster <= PAIR ? PAIR : most;
    while (cluster < most) {
        struct wd_share_cut larger = *c;
        share_out(&larger, cluster *= 2, device);
        if (most_work(&larger) && is_better(&larger, c, device)) *c = larger;
    }
    return true;
}

/* What a block moves in all turns, in quads. What is read again of the second tensor by clusters counts half where the cache
 * may have it. */
static double cost(const struct wd_share_cut *c, int64_t at_once, const struct wd_device *device)
{
    int64_t quads = c->part / quad_units(c);
    int64_t again = quads - wd_least(c->quads, quads);
    int64_t second = c->two ? quads - wd_least(c->second_quads, quads) : 0;
    bool cached = !c->meets && at_once * c->units * WD_SHARE_UNIT <= device->l2_bytes / 2;
    double moved = (double)(quads * (c->two ? 3 : 2) + again);
    moved += (double)second * (cached ? 0.5 : 1.0);
    return (moved + (c->meets ? TEAM_JOIN : CLUSTER_JOIN)) *
           (double)wd_ceil_div(c->shares, at_once);
}

/* The team of least cost of those that hold the first tensor. False where there is none. */
static bool cut_teams(struct wd_share_cut *c, const struct wd_device *device)
{
    struct wd_share_cut best = {.cluster = 0};
    double least = 0;
    for (int64_t team = LEAST_CLUSTER; team <= device->multiprocessors / 2; ++team) {
        struct wd_share_cut one = *c;
        double all;
        one.meets = true;
        share_out(&one, team, device);
        one.clusters = wd_least(one.shares, device->multiprocessors / team);
        if (!stays(&one) || !most_work(&one)) continue;
        all = cost(&one, device->multiprocessors / team, device);
        if (best.cluster > 0 && all >= least) continue;
        best = one;
        least = all;
    }
    if (best.cluster > 0) *c = best;
    return best.cluster > 0;
}

static bool cut(struct wd_share_cut *c, const struct wd_device *device)
{
    struct wd_share_cut teams = *c, halves = *c;
    bool clusters = cut_clusters(c, device);
    halves.halves = true;
    /* of clusters of four and more, measured on an H200, norm_clusters forward, us: 64 shares of 2 MB 83.8 and 80.5, of 1.7 MB 72.8 and 67.1;
     * by pairs or blocks alone whole ones win: 128 of 512 KB 38.9 and 50.4, 256 of 392 KB 60.3 and 63.6 */
    if (clusters && c->may_halve && !c->two && c->cluster >= LEAST_CLUSTER &&
        device->capability == HALVES_CAPABILITY && cut_clusters(&halves, device)) {
        *c = halves;
        return true;
    }
    if (!clusters || !c->may_meet || c->halves || !device->grids_meet) return clusters;
    /* what clusters hold they have sooner, measured */
    if (stays(c) || !cut_teams(&teams, device)) return true;
    if (cost(&teams, device->multiprocessors / teams.cluster, device) <
        TEAMS_PAY * cost(c, clusters_at_once(c->cluster, device), device))
        *c = teams;
    return true;
}

bool wd_share_cut(struct wd_share_cut *c, const struct wd_device *device)
{
    if (!cut(c, device)) return false;
    /* as many shares for each, where these are many: measured on an H200, norm_clusters, us: 256 shares of 320 KB by 66 pairs and by 64 51.0 and 50.2, 512
     * of 392 KB 124.8 and 123.9, 196 KB with a second tensor 89.7 and 89.0; larger clusters, which are few, lose by it: 32 of 2 MB 43.1 and 44.2 */
    if (c->cluster <= PAIR)
        c->clusters = wd_ceil_div(c->shares, wd_ceil_div(c->shares, c->clusters));
    return true;
}

struct wd_share_args wd_share_args_of(const struct wd_share_cut *c)
{
    return (struct wd_share_args){
        .shares = (uint32_t)c->shares,
        .cluster = (uint32_t)c->cluster,
        .units = (uint32_t)c->units,
        .part = (uint32_t)c->part,
        .quads = (uint32_t)c->quads,
        .second_quads = (uint32_t)c->second_quads,
    };
}
