/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of divisive normalization by blocks that have whole rows of a plane: how planes are cut. */
#include <string.h>

#include "base/sizes.h"
#include "ops/lrn/divnorm_vector.h"

enum {
    WARP = 32,
    BLOCKS = 3, /* of a processor */
    BYTES_OWN =
        1536, /* of a block, bound of what kernels and the system have beside what is asked for */
    ROWS_LEAST = 8, /* of results of a block, where planes are cut */
    BLOCK_LEAST =
        64, /* quads of results, or planes are so small that a block had better have some */
    MARGIN =
        2, /* quads beside a part: of those whose shares its results have, and of their windows */
    PARTS_MOST = 64,
    TOGETHER = 16, /* threads whose pairs are read at once */
    FLOAT_BYTES = 4,
    QUAD = DIVNORM_QUAD, /* the kernels' word */
    DOWN = DIVNORM_DOWN,
};

/* Results beside all that shares are made of, below which tiles are left to others. */
static const double PART_LEAST = 0.5;

static int64_t rounded(int64_t rows)
{
    return wd_ceil_div(rows, DOWN) * DOWN;
}

/* Rows that a block with so many rows of results stores, or has room for, in all. Threads add up eight rows at a time,
 * of which the last ones may be no results. */
static int64_t all_rows(int64_t height, int64_t rows, int32_t around)
{
    const int64_t shares = rows + around;
    return 2 * rounded(wd_least(height, shares)) + shares +
           wd_most(shares + rows, rounded(rows) + around);
}

/* Sets what such a block stores; returns how many floats. */
static int64_t stores(struct divnorm_sheet_args *s, int64_t rows, int32_t around)
{
    const int64_t shares = rows + around;
    s->sums_rows = (int32_t)rounded(wd_least(s->height, shares));
    s->sums = s->sums_rows * s->pitch;
    s->shares = (int32_t)(shares * s->pitch);
    return QUAD + all_rows(s->height, rows, around) * s->pitch;
}

/* Quads that a block of a plane that is cut into parts stores of a row. */
static int64_t stored_quads(int64_t quads, int64_t parts)
{
    return wd_ceil_div(quads, parts) + (parts > 1 ? 2 * MARGIN : 0);
}

/* Threads of a row: as many as it has parts, or more, if these take no warp more: some of them are idle, but those that
 * read at once meet in no bank. */
static int64_t row_lanes(int64_t least, int64_t wanted, int64_t rows, int64_t threads)
{
    const bool fits = wanted * rows <= threads &&
                      wd_ceil_div(wanted * rows, WARP) == wd_ceil_div(least * rows, WARP);
    return fits ? wanted : least;
}

static int64_t pitch_of(int64_t stored)
{
    return (stored + 1) * QUAD;
}

/* Rows of results of a block, as many as it has room for: equal ones. 0 where they are too few. */
static int64_t rows_of(int64_t height, int64_t stored, int32_t around, int64_t room)
{
    const int64_t all = (room / FLOAT_BYTES - QUAD) / pitch_of(stored);
    /* without rounding up, where rows with those around them are not, or are, the plane's */
    int64_t most = wd_most((all - 4 * around) / 5, (all - 2 * height - 2 * around) / 3);
    int64_t segments;
    most = wd_least(most, height);
    while (most > 0 && all_rows(height, most, around) > all) most -= 1;
    if (most <= 0) return 0;
    segments = wd_ceil_div(height, most);
    /* were they too few already with less segments than there is room for */
    if (segments > 1 && wd_ceil_div(height, segments - 1) <= ROWS_LEAST) return 0;
    return wd_ceil_div(height, segments);
}

bool wd_divnorm_cut_sheet(struct divnorm_sheet_args *s, const struct divnorm_vector_args *a,
                          int64_t planes, int64_t threads, const struct wd_device *device,
                          struct wd_divnorm_launch *l)
{
    const int64_t quads = a->width / QUAD;
    const int32_t around = a->window - 1;
    const int64_t room =
        wd_least(device->shared_per_processor / BLOCKS, device->shared_per_block) - BYTES_OWN;
    int64_t parts = 0, rows = 0, segments, stored, turns, lanes, pairs;
    double best = PART_LEAST;
    memset(s, 0, sizeof *s);
    s->height = a->height;
    s->width = a->width;
    /* the cut that has most results of what it makes shares of, and threads for all pairs of a row */
    for (int64_t n = 1; n <= wd_least(quads, PARTS_MOST); ++n) {
        const int64_t across = stored_quads(quads, n);
        const double part_across = (double)quads / (double)(across * n);
        int64_t down;
        double part;
        if (2 * across > threads || part_across <= best) continue;
        if ((n - 1) * wd_ceil_div(quads, n) >= quads) continue; /* the last would have none */
        down = rows_of(s->height, across, around, room);
        if (down == 0) continue;
        part = part_across * (double)s->height /
               (double)(s->height + (wd_ceil_div(s->height, down) - 1) * around);
        if (part <= best) continue;
        best = part;
        parts = n;
        rows = down;
    }
    if (parts == 0) return false;
    stored = stored_quads(quads, parts);
    s->pitch = (int32_t)pitch_of(stored);
    l->shared = (uint32_t)(stores(s, rows, around) * FLOAT_BYTES);
    segments = wd_ceil_div(a->height, rows);
    s->quads = (int32_t)wd_ceil_div(quads, parts);
    if (rows * s->quads < BLOCK_LEAST ||
        planes * parts * segments < (int64_t)BLOCKS * device->multiprocessors)
        return false;
    s->lead = parts > 1 ? MARGIN : 0;
    /* threads have the same columns in all turns, and as many rows in each of them as go up */
    turns = wd_ceil_div(wd_least(a->height, rows + around), threads / stored);
    s->rows_at_once = (int32_t)wd_ceil_div(wd_least(a->height, rows + around), turns);
    s->chunks_at_once = (int32_t)wd_least(threads / (2 * stored), s->sums_rows / DOWN);
    lanes = row_lanes(stored, stored + 1, s->rows_at_once, threads); /* with the quad of zeros */
    pairs = row_lanes(2 * stored, wd_ceil_div(2 * stored, TOGETHER) * TOGETHER, s->chunks_at_once,
                      threads);
    l->threads =
        (uint32_t)(wd_ceil_div(wd_most(s->rows_at_once * lanes, s->chunks_at_once * pairs), WARP) *
                   WARP);
    l->blocks = planes * segments * parts;
    s->rows = (int32_t)rows;
    s->by_quad = wd_fastdiv_of((uint32_t)lanes);
    s->by_pair = wd_fastdiv_of((uint32_t)pairs);
    s->by_part = wd_fastdiv_of((uint32_t)parts);
    s->by_segment = wd_fastdiv_of((uint32_t)segments);
    s->by_channel = a->by_channel;
    s->x = a->x, s->means = a->means, s->dy = a->dy, s->out = a->out, s->dmeans = a->dmeans;
    s->in = a->in, s->to = a->to;
    s->in_row = (int64_t)a->in.row * FLOAT_BYTES;
    s->to_row = (int64_t)a->to.row * FLOAT_BYTES;
    s->in_step = s->in_row * s->rows_at_once;
    s->to_step = s->to_row * s->rows_at_once;
    s->step = s->pitch * s->rows_at_once;
    s->to_means = a->means ? (int64_t)(uintptr_t)a->means - (int64_t)(uintptr_t)a->x : 0;
    s->to_dy = (int64_t)(uintptr_t)a->dy - (int64_t)(uintptr_t)a->x;
    s->to_dmeans = a->dmeans ? (int64_t)(uintptr_t)a->dmeans - (int64_t)(uintptr_t)a->out : 0;
    s->single = a->single;
    s->power = a->power;
    s->asks = parts == 1 && a->in.row == a->width;
    return true;
}
