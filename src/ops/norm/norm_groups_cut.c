/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts of norm_groups, see norm_groups_cut.h: segments of which the last wave of blocks leaves little
 * undone. No state. */
#include "ops/norm/norm_groups_cut.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_gpu.h"
#include "ops/norm/norm_groups_args.h"

enum {
    WARP = 32,
    RUN = NORM_GROUPS_RUN,
    PLANE_THREADS = 256,
    /* blocks that a processor has at once: their registers say so */
    PLANE_BLOCKS = 4,
    COLUMN_BLOCKS = 3,
    SPLIT_TURNS = 8,   /* eights of a thread that pay for a segment */
    CHANNELS_MAX = 64, /* of a segment */
    PLANE_PART = 512,  /* elements of a channel that are worth a part */
    TEAM_LEAST = 8,    /* threads that load neighbours */
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
    c->blocks = s->samples * c->tiles * segments;
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
}

struct norm_groups_cut norm_groups_cut(const struct norm_groups_shape *s,
                                       const struct wd_device *device)
{
    struct norm_groups_cut c;
    memset(&c, 0, sizeof c);
    c.width = c.team = c.tile = c.tiles = c.rows = 1;
    if (s->columns) split_columns(&c, s, device);
    else split_planes(&c, s, device);
    return c;
}
