/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts of norm_groups, see norm_groups_cut.h. By columns a share that fits the shared memory of a
 * cluster is read once, by the smallest cluster of which a processor has two blocks, so that one loads
 * while another writes. No state. */
#include "ops/norm/norm_groups_cut.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_gpu.h"
#include "ops/norm/norm_groups_args.h"

enum {
    WARP = 32,
    RUN = NORM_GROUPS_RUN,
    BLOCK_RESERVED = 1024, /* shared memory that a block costs besides its own */
    COLUMN_FIXED = 27648,  /* that kernels have besides what they keep, forward ... */
    COLUMN_FIXED_BACKWARD = 19456,
    RESIDENT = 2,        /* blocks of a processor that read once, if it can be */
    PLANE_THREADS = 256, /* of blocks that read twice, or are of columns */
    /* blocks that a processor has at once of those that read twice: their registers say so */
    PLANE_BLOCKS = 4,
    COLUMN_BLOCKS = 3,
    SPLIT_TURNS = 8,   /* eights of a thread that pay for a segment */
    CHANNELS_MAX = 64, /* of a segment that is read twice */
    PLANE_PART = 512,  /* elements of a channel that are worth a part */
    TEAM_LEAST = 8,    /* threads that load neighbours */
    WIDE = 128,        /* bytes of a tile's row: a line, ... */
    NARROW = 64,       /* ... and what is still worth it: single sectors are not, for batch norm */
};

/* The fewest segments, of up to `most`, with which the last wave of blocks leaves little undone. */
static int64_t segments_for(int64_t blocks, int64_t wave, int64_t most)
{
    double best = 0.0;
    int64_t segments = 1;
    most = wd_clamp(4 * wave / blocks, 1, wd_most(1, most));
    for (int64_t n = 1; n <= most; ++n) {
        double used = (double)(blocks * n) / (double)(wd_ceil_div(blocks * n, wave) * wave);
        if (used <= best * 1.05) continue;
        best = used;
        segments = n;
    }
    return segments;
}

/* ---- Planes ---- */

static int64_t channels_of(const struct norm_groups_cut *c, const struct norm_groups_shape *s)
{
    return c->by_channels ? c->part : s->each;
}

/* Which segments of a share: channels, unless each of a few channels is worth several. */
static void cut_planes(struct norm_groups_cut *c, const struct norm_groups_shape *s)
{
    c->by_channels = c->segments > 1 &&
                     (s->each > CHANNELS_MAX || s->plane < c->segments * PLANE_PART) &&
                     (s->each >= c->segments || s->plane < c->segments * RUN);
    if (c->by_channels) c->part = wd_ceil_div(s->each, c->segments);
    else c->part = wd_ceil_div(wd_ceil_div(s->plane, c->segments), RUN) * RUN;
}

/* Teams by which a segment takes the fewest turns, the larger the better. */
static void make_teams(struct norm_groups_cut *c, const struct norm_groups_shape *s)
{
    int64_t eights = wd_ceil_div(c->by_channels ? s->plane : c->part, RUN);
    int64_t least = wd_least(wd_least(TEAM_LEAST, wd_power_up(eights)), c->width);
    int64_t best = INT64_MAX;
    for (int64_t team = least; team <= c->width; team *= 2) {
        int64_t turns = wd_ceil_div(eights, team);
        int64_t all = turns * wd_ceil_div(channels_of(c, s), c->width / team);
        if (all > best) continue;
        best = all;
        c->team = team;
        c->turns = turns;
    }
}

static int64_t table_bytes(const struct norm_groups_cut *c, const struct norm_groups_shape *s)
{
    if (s->arrays < 2 || c->team <= WARP) return 0;
    return channels_of(c, s) * (c->team / WARP) * (int64_t)sizeof(struct norm_groups_sums);
}

static void segment_planes(struct norm_groups_cut *c, const struct norm_groups_shape *s,
                           int64_t segments)
{
    c->segments = segments;
    cut_planes(c, s);
    make_teams(c, s);
    c->shared = table_bytes(c, s);
}

static int64_t room(const struct wd_device *device, int64_t resident, int64_t fixed)
{
    int64_t each = device->shared_per_processor / resident - BLOCK_RESERVED;
    return wd_least(each, device->shared_per_block) - fixed;
}

static void split_planes(struct norm_groups_cut *c, const struct norm_groups_shape *s,
                         const struct wd_device *device)
{
    int64_t shares = s->samples * s->groups;
    int64_t eights = s->each * wd_ceil_div(s->plane, RUN);
    int64_t wave = (int64_t)device->multiprocessors * PLANE_BLOCKS;
    int64_t segments;
    c->threads = c->width = PLANE_THREADS;
    segments = segments_for(shares, wave, wd_ceil_div(eights, SPLIT_TURNS * c->threads));
    if (s->each > CHANNELS_MAX) segments = wd_most(segments, wd_ceil_div(s->each, CHANNELS_MAX));
    segment_planes(c, s, segments);
    c->segments = wd_ceil_div(c->by_channels ? s->each : s->plane, c->part);
    c->blocks = shares * c->segments;
}

/* ---- Columns ---- */

static void segment_columns(struct norm_groups_cut *c, const struct norm_groups_shape *s,
                            int64_t tile, int64_t segments)
{
    int64_t across = wd_ceil_div(tile, RUN);
    c->tile = tile;
    c->tiles = wd_ceil_div(s->channels, tile);
    c->segments = segments;
    c->part = wd_ceil_div(s->plane, segments);
    c->rows = wd_least(NORM_GROUPS_COLUMN_THREADS / across, c->part);
    c->threads = wd_ceil_div(across * c->rows, WARP) * WARP;
    c->turns = wd_ceil_div(c->part, c->rows);
    c->shared = c->turns * c->threads * s->arrays * RUN * s->size;
    c->blocks = s->samples * c->tiles * segments;
}

static int64_t column_room(const struct norm_groups_shape *s, int64_t resident,
                           const struct wd_device *device)
{
    return room(device, resident, s->arrays < 2 ? COLUMN_FIXED : COLUMN_FIXED_BACKWARD);
}

/* Columns that a tile is a multiple of: whole groups, and runs where rows are. */
static int64_t tile_unit(const struct norm_groups_shape *s)
{
    return s->channels % RUN == 0 ? wd_lcm(s->each, RUN) : s->each;
}

/* The widest tiles of at least `least` columns that clusters keep, as many columns in each. */
static bool fit_columns(struct norm_groups_cut *c, const struct norm_groups_shape *s, int64_t least,
                        int64_t segments, const struct wd_device *device)
{
    int64_t unit = tile_unit(s);
    int64_t most = wd_least(s->channels, NORM_GROUPS_TILE / unit * unit);
    for (int64_t tile = most; tile > 0 && tile >= wd_least(least, most); tile -= unit) {
        int64_t tiles = wd_ceil_div(s->channels, tile);
        int64_t even = wd_ceil_div(wd_ceil_div(s->channels, tiles), unit) * unit;
        segment_columns(c, s, even, segments);
        if (c->shared <= column_room(s, RESIDENT, device)) return true;
    }
    return false;
}

static bool whole_columns(struct norm_groups_cut *c, const struct norm_groups_shape *s,
                          const struct wd_device *device)
{
    int64_t unit = tile_unit(s);
    int64_t cluster = wd_norm_cluster_max(device);
    int64_t enough = (int64_t)device->multiprocessors * RESIDENT;
    int64_t narrow = NARROW / s->size;
    int64_t segments = 1;
    if (unit > NORM_GROUPS_TILE) return false;
    while (segments <= cluster && !fit_columns(c, s, WIDE / s->size, segments, device)) {
        segments *= 2;
    }
    if (segments > cluster && !fit_columns(c, s, narrow, cluster, device)) return false;
    while (c->blocks < enough && c->tile / 2 / unit * unit >= narrow) {
        segment_columns(c, s, c->tile / 2 / unit * unit, c->segments);
    }
    while (c->blocks < enough && 2 * c->segments <= cluster && c->turns >= 2 * SPLIT_TURNS) {
        segment_columns(c, s, c->tile, 2 * c->segments);
    }
    /* rows of other widths fill threads otherwise, which may keep a little more */
    return c->shared <= column_room(s, 1, device);
}

static void split_columns(struct norm_groups_cut *c, const struct norm_groups_shape *s,
                          const struct wd_device *device)
{
    int64_t tiles = wd_ceil_div(s->channels, NORM_GROUPS_TILE);
    int64_t tile = wd_ceil_div(wd_ceil_div(s->channels, tiles), RUN) * RUN;
    int64_t wave = (int64_t)device->multiprocessors * COLUMN_BLOCKS;
    tile = wd_least(tile, s->channels);
    segment_columns(c, s, tile, 1);
    segment_columns(c, s, tile, segments_for(c->blocks, wave, wd_ceil_div(c->turns, SPLIT_TURNS)));
    segment_columns(c, s, tile, wd_ceil_div(s->plane, c->part));
    c->shared = 0;
}

struct norm_groups_cut norm_groups_cut(const struct norm_groups_shape *s, bool keeps,
                                       const struct wd_device *device)
{
    struct norm_groups_cut c;
    memset(&c, 0, sizeof c);
    c.width = c.team = c.tile = c.tiles = c.rows = 1;
    c.whole = keeps && s->columns && whole_columns(&c, s, device);
    if (!c.whole && s->columns) split_columns(&c, s, device);
    if (!c.whole && !s->columns) split_planes(&c, s, device);
    return c;
}
