/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts of norm_kept, see norm_kept_cut.h: of the ways to give a panel threads and blocks the one that
 * should take the least time. A processor moves so many bytes a nanosecond, and nothing while a block
 * that it has alone adds up its panel. No state. */
#include "ops/norm/norm_kept_cut.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_gpu.h"
#include "ops/norm/norm_kept_args.h"

enum {
    WARP = 32,
    BYTES = 16,               /* of a run */
    BLOCK_RESERVED = 1024,    /* shared memory that a block costs besides its own */
    PLANE_FIXED = 640,        /* that kernels have besides what is dynamic, by planes ... */
    COLUMN_FIXED = 15872,     /* ... and by columns */
    LINE = 16,                /* bytes of a channel in the table of planes */
    PAIR = 16,                /* of a value that blocks exchange */
    THREADS_LEAST = 64,       /* of a block that has one share */
    PROCESSOR_THREADS = 1024, /* that the registers allow */
    PROCESSOR_BLOCKS = 32,    /* that a processor has at most */
    COLUMN_THREADS = 448,     /* where columns of a run are of several groups ... */
    BACKWARD_THREADS = 384,   /* ... and of columns in backward: their registers say so */
    SMALL_RUNS = 128,         /* of a share that others lie beside */
    BESIDE_BYTES = 16384,     /* of a panel of several shares, about */
    BESIDE_THREADS = 256,
    BESIDE_ELEMENTS = 16, /* of a lane, about */
    BESIDE_PANELS = 8,    /* of a processor, before they grow */
    CHANNEL_STEPS = 8,    /* of a lane in a channel, about, backward */
    SLOTS = 8,            /* of a thread where a block may have more of them */
    PART_PROCESSORS = 16, /* of a part of the chip, at least: a cluster stays within one */
    SPEED = 32,           /* bytes a nanosecond of a processor */
    MEET = 1500,          /* ns from the last element's arrival to the first one's leaving */
    MEET_CLUSTER = 1000,  /* more, where blocks of a cluster do */
};

static int64_t power_above(int64_t n)
{
    int64_t power = 1;
    while (power < n) power *= 2;
    return power;
}

static int64_t lcm(int64_t a, int64_t b)
{
    int64_t x = a;
    int64_t y = b;
    while (y > 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Blocks of a processor; 0: one is too large. */
static int64_t resident(const struct norm_kept_cut *c, int64_t fixed,
                        const struct wd_device *device)
{
    int64_t all = c->shared + fixed;
    if (all > device->shared_per_block) return 0;
    return wd_least(wd_least(device->shared_per_processor / (all + BLOCK_RESERVED),
                             PROCESSOR_THREADS / c->threads),
                    PROCESSOR_BLOCKS);
}

static int64_t clusters_at_once(int64_t cluster, int64_t each, const struct wd_device *device)
{
    int64_t parts = wd_most(1, device->multiprocessors / PART_PROCESSORS);
    if (cluster <= 2) return device->multiprocessors * each / cluster;
    return parts * (PART_PROCESSORS * each / cluster);
}

/* Takes the cut if it fits, and should be faster than the best so far. `waste` is what every byte
 * costs more than one of a whole line. */
static void offer(struct norm_kept_cut *best, struct norm_kept_cut *c, int64_t fixed, double waste,
                  const struct norm_groups_shape *s, const struct wd_device *device)
{
    int64_t each = resident(c, fixed, device);
    int64_t most;
    int64_t turns;
    double bytes;
    double meet = c->cluster > 1 ? MEET + MEET_CLUSTER : MEET;
    double turn;
    if (each == 0) return;
    most = wd_most(1, clusters_at_once(c->cluster, each, device));
    turns = wd_ceil_div(c->panels, most);
    c->clusters = wd_ceil_div(c->panels, turns);
    each = wd_least(each, wd_ceil_div(c->clusters * c->cluster, device->multiprocessors));
    bytes = (double)s->samples * (double)s->channels * (double)s->plane * s->size;
    bytes = waste * bytes * (s->arrays + 1) / (double)(c->panels * c->cluster) / SPEED;
    turn = each * bytes > bytes + meet ? each * bytes : bytes + meet;
    c->cost = turns * turn + meet;
    if (best->cost > 0.0 && best->cost <= c->cost) return;
    *best = *c;
}

/* ---- Planes ---- */

/* What blocks need to know of channels: a table of formulas, and backward what was summed of them, by
 * lanes side by side, and pieces of a channel side by side where channels are few. */
static void give_tables(struct norm_kept_cut *c, const struct norm_groups_shape *s,
                        int64_t channels)
{
    int64_t vector = s->plane % (BYTES / s->size) == 0 ? BYTES / s->size : 1;
    c->lines = channels + 1; /* the last run looks one further */
    c->pieces = 1;
    c->shared = c->space * BYTES * s->arrays + c->lines * LINE;
    if (s->arrays == 1) return;
    c->lanes = power_above(wd_ceil_div(s->plane, vector * CHANNEL_STEPS));
    c->lanes = wd_least(c->lanes, WARP);
    while (c->lanes == WARP && c->pieces * WARP * channels < c->threads &&
           s->plane >= 2 * c->pieces * WARP * vector) {
        c->pieces *= 2;
    }
    c->shared += c->lines * c->pieces * (int64_t)sizeof(struct norm_kept_sums);
}

static void offer_planes(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                         int64_t cluster, int64_t threads, const struct wd_device *device)
{
    struct norm_kept_cut c = {.way = NORM_KEPT_ODD, .cluster = cluster, .threads = threads};
    int64_t run = BYTES / s->size;
    if (s->plane % run == 0) c.way = NORM_KEPT_EVEN;
    c.tile = c.tiles = c.across = c.rows = c.beside = c.lanes = 1;
    c.panels = s->samples * s->groups;
    c.length = s->each * s->plane;
    c.part = wd_ceil_div(wd_ceil_div(c.length, run), cluster);
    c.slots = wd_ceil_div(c.part, threads);
    c.space = c.part;
    give_tables(&c, s, wd_least(s->each, c.part * run / s->plane + 2));
    offer(best, &c, PLANE_FIXED, 1.0, s, device);
}

static void offer_beside(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                         const struct wd_device *device)
{
    struct norm_kept_cut c = {.way = NORM_KEPT_BESIDE_ODD, .cluster = 1};
    int64_t run = BYTES / s->size;
    int64_t shares = s->samples * s->groups;
    int64_t size = s->each * s->plane;
    int64_t unit = lcm(size, run) / size; /* shares after which runs begin again */
    int64_t most = wd_ceil_div(shares, BESIDE_PANELS * device->multiprocessors);
    if (s->plane % run == 0) c.way = NORM_KEPT_BESIDE_EVEN;
    c.tile = c.tiles = c.across = c.rows = 1;
    c.lanes = wd_least(power_above(wd_ceil_div(size, BESIDE_ELEMENTS)), WARP);
    c.beside = wd_least(wd_most(1, BESIDE_BYTES / (size * s->size)), wd_most(most, WARP / c.lanes));
    c.beside = wd_ceil_div(c.beside, unit) * unit;
    c.threads = wd_clamp(wd_ceil_div(c.beside * c.lanes, WARP) * WARP, WARP, BESIDE_THREADS);
    c.panels = wd_ceil_div(shares, c.beside);
    c.length = c.beside * size;
    c.part = wd_ceil_div(c.length, run);
    c.slots = wd_ceil_div(c.part, c.threads);
    c.space = c.part;
    give_tables(&c, s, c.beside * s->each);
    offer(best, &c, PLANE_FIXED, 1.0, s, device);
}

static void cut_planes(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                       const struct wd_device *device)
{
    int64_t runs = wd_ceil_div(s->each * s->plane, BYTES / s->size);
    if (runs < SMALL_RUNS) {
        offer_beside(best, s, device);
        return;
    }
    for (int64_t cluster = 1; cluster <= wd_norm_cluster_max(device); cluster *= 2) {
        int64_t threads = power_above(wd_ceil_div(wd_ceil_div(runs, cluster), SLOTS));
        offer_planes(best, s, cluster, wd_clamp(threads, THREADS_LEAST, NORM_KEPT_THREADS), device);
    }
}

/* ---- Columns ---- */

static void offer_columns(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                          int64_t tile, int64_t cluster, const struct wd_device *device)
{
    struct norm_kept_cut c = {.cluster = cluster, .tile = tile};
    int64_t run = BYTES / s->size;
    int64_t bytes = tile * s->size;
    int64_t most;
    double waste = bytes >= s->channels * s->size ? 1.0
                   : bytes % 32 != 0              ? 1.25
                   : bytes < 64                   ? 1.2
                   : bytes < 128                  ? 1.1
                                                  : 1.05;
    c.way = s->each % run == 0 ? NORM_KEPT_ONE : s->each >= run ? NORM_KEPT_TWO : NORM_KEPT_EACH;
    most = s->arrays > 1            ? BACKWARD_THREADS
           : c.way == NORM_KEPT_ONE ? NORM_KEPT_THREADS
                                    : COLUMN_THREADS;
    c.beside = c.lanes = c.length = c.pieces = c.lines = 1;
    c.tiles = s->channels / tile;
    c.across = wd_ceil_div(tile, run);
    c.panels = s->samples * c.tiles;
    c.part = wd_ceil_div(s->plane, cluster);
    c.rows = wd_least(most / c.across, wd_most(1, wd_ceil_div(c.part, 4)));
    c.threads = wd_ceil_div(c.rows * c.across, WARP) * WARP;
    c.slots = wd_ceil_div(c.part, c.rows);
    c.space = c.slots * c.threads;
    c.shared = c.space * BYTES * s->arrays + 2 * PAIR * (tile / s->each) * cluster;
    offer(best, &c, COLUMN_FIXED, waste, s, device);
}

static void cut_columns(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                        const struct wd_device *device)
{
    int64_t run = BYTES / s->size;
    int64_t unit = s->channels % run == 0 ? lcm(s->each, run) : s->each;
    for (int64_t tile = unit; tile <= wd_least(s->channels, NORM_KEPT_TILE); tile += unit) {
        if (s->channels % tile != 0) continue;
        for (int64_t cluster = 1; cluster <= wd_norm_cluster_max(device); cluster *= 2) {
            offer_columns(best, s, tile, cluster, device);
        }
    }
}

bool norm_kept_cut(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                   const struct wd_device *device)
{
    memset(best, 0, sizeof *best);
    if (s->columns) cut_columns(best, s, device);
    else cut_planes(best, s, device);
    return best->cost > 0.0;
}
