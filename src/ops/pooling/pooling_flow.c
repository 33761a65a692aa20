/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of columns that are about as many as a block's threads: of a row's part, or of several images whose
 * rows are short. */
#include "ops/pooling/pooling_flow.h"

#include <string.h>

#include "base/sizes.h"

enum {
    THREADS = 256,         /* that compute; twice as many where neighbours share much */
    STEP_BYTES = 12 << 10, /* four steps each of four blocks are in flight */
    STEP_UNITS = 16,
    SPAN_LEAST = 16,         /* units of a tile that is cut from an image */
    TILES_MOST = 8,          /* of a block */
    TILES_EACH = 4,          /* of a processor, that such cuts are to make */
    RESULTS_LEAST = 1 << 16, /* below, boxes are sooner there */
    ROW_MOST = 1 << 27,      /* elements of a row */
};

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Pairs of elements of an axis of dx, as they lie in the padded image. */
static int64_t pairs_of(const struct wd_pool_shape *s, int axis)
{
    return (s->image[axis] + s->pad[axis] % 2 + 1) / 2;
}

static void set_part(struct pool_flow_part *part, const struct wd_pool_shape *s,
                     const int64_t *extent, int64_t per, int64_t span, int64_t off_h, int64_t off_w)
{
    part->rows = (int32_t)extent[1];
    part->pixels = (int32_t)extent[2];
    part->elements = (int32_t)(extent[2] * s->inner);
    part->per = (int32_t)per;
    part->span = (int32_t)span;
    part->off[0] = (int32_t)off_h;
    part->off[1] = (int32_t)off_w;
    part->total = (uint32_t)(s->outer * extent[1] * extent[2] * s->inner);
}

/* The most elements of a row that a tile needs: its columns may begin and end within a pixel. */
static int64_t line_of(const struct pool_flow_part *part, const struct wd_pool_shape *s,
                       int64_t columns)
{
    return wd_least(columns * part->per + (part->per + part->span - 2) * s->inner, part->elements);
}

/* Lays a part of a step out from `at` on. Returns the end. */
static int64_t lay(struct pool_flow_part *part, const struct wd_pool_shape *s, int64_t at,
                   int64_t columns, int64_t images, int64_t units, bool whole)
{
    const int64_t row = part->elements * s->size, rows = units * part->per;
    const int64_t line = line_of(part, s, columns) * s->size;
    int64_t span;
    part->at = (uint32_t)at;
    part->whole = whole;
    part->pitch = (uint32_t)(whole ? row : round_up(line, 16) + 32 + row % 16);
    span = whole ? rows * row : (rows - 1) * part->pitch + line;
    part->image_pitch = (uint32_t)(round_up(span, 16) + 32 + row * part->rows % 16);
    return at + round_up((images - 1) * part->image_pitch + span + 32, 16);
}

static void set_axis(struct pool_flow_axis *x, const struct wd_pool_shape *s, int axis,
                     int64_t outs)
{
    x->image = (int32_t)s->image[axis];
    x->windows = (int32_t)s->windows[axis];
    x->pad = (int32_t)s->pad[axis];
    x->outs = (int32_t)outs;
}

/* All arguments but memory and scalars; false where shared memory is too small, or tiles share too much. */
static bool plan(const struct wd_device *device, const struct wd_pool_shape *s,
                 enum wd_pool_flow_work work, struct pool_flow_args *a)
{
    const bool pairs = work == WD_POOL_FLOW_PAIRS || work == WD_POOL_FLOW_MAXIMA;
    const bool maxima = work == WD_POOL_FLOW_MAXIMA;
    const int64_t more = maxima || s->stride[1] == 1 ? 2 : 1; /* units beyond a tile's */
    const int64_t *outs = s->image;
    int64_t row, units, threads = THREADS, strips, columns, images, spans, steps, bytes, tile_units;
    memset(a, 0, sizeof *a);
    switch (work) {
    case WD_POOL_FLOW_SPREAD:
        set_part(&a->from, s, s->windows, 1, 3, s->pad[1] - 2, s->pad[2] - 2);
        break;
    case WD_POOL_FLOW_PAIRS:
        set_part(&a->from, s, s->windows, 1, 2, s->pad[1] / 2 - 1, s->pad[2] / 2 - 1);
        break;
    default:
        set_part(&a->from, s, s->image, 2, 5, -2 - s->pad[1] % 2, -2 - s->pad[2] % 2);
        set_part(&a->shares, s, s->windows, 1, 2, s->pad[1] / 2 - 2, s->pad[2] / 2 - 1);
    }
    row = (pairs ? pairs_of(s, 2) : outs[2]) * s->inner;
    units = pairs ? pairs_of(s, 1) : outs[1];
    strips = wd_ceil_div(row, threads);
    if (strips > 1 && !maxima) {
        /* a quarter and more is read again by the next tile */
        const int64_t again = (a->from.span - a->from.per) * s->inner;
        if (4 * again > threads * a->from.per) threads *= 2;
        strips = wd_ceil_div(row, threads);
    }
    if (strips > 1 && (a->from.span - a->from.per) * s->inner > threads * a->from.per) return false;
    columns = wd_ceil_div(row, strips);
    strips = wd_ceil_div(row, columns);
    images = strips > 1 ? 1 : wd_least(threads / columns, s->outer);
    while (images > 1 &&
           wd_ceil_div(s->outer, images) < (int64_t)TILES_EACH * device->multiprocessors) {
        images = (images + 1) / 2;
    }
    tile_units = units;
    while (tile_units >= 2 * SPAN_LEAST &&
           wd_ceil_div(s->outer, images) * strips * wd_ceil_div(units, tile_units) <
               (int64_t)TILES_EACH * device->multiprocessors) {
        tile_units = (tile_units + 1) / 2;
    }
    spans = wd_ceil_div(units, tile_units);
    tile_units = wd_ceil_div(units, spans);
    bytes = line_of(&a->from, s, columns) * a->from.per * images * s->size;
    if (maxima) bytes += line_of(&a->shares, s, columns) * images * s->size;
    steps = wd_most(1, wd_least(STEP_UNITS, STEP_BYTES / bytes));
    steps = wd_ceil_div(tile_units + more, steps);
    a->units =
        (int32_t)round_up(wd_ceil_div(tile_units + more, steps), more == 2 && !maxima ? 2 : 1);
    a->steps = (uint32_t)wd_ceil_div(tile_units + more, a->units);
    bytes = lay(&a->from, s, 0, columns, images, a->units, strips == 1);
    if (maxima) bytes = lay(&a->shares, s, bytes, columns, images, a->units, strips == 1);
    a->slot = (uint32_t)bytes;
    a->outer = (uint32_t)s->outer;
    a->images = (uint32_t)images;
    a->inner = (uint32_t)s->inner;
    a->tiles = (uint32_t)(wd_ceil_div(s->outer, images) * strips * spans);
    a->threads = (uint32_t)threads;
    a->row_columns = (uint32_t)row;
    a->all_units = (int32_t)units;
    a->tile_units = (int32_t)tile_units;
    a->by_inner = wd_fastdiv_of(a->inner);
    a->by_columns = wd_fastdiv_of((uint32_t)columns);
    a->by_strips = wd_fastdiv_of((uint32_t)strips);
    a->by_spans = wd_fastdiv_of((uint32_t)wd_ceil_div(units, tile_units));
    a->mode = wd_pool_mode(s);
    a->exclude = s->exclude;
    a->inverse = (float)s->inverse;
    set_axis(&a->high, s, 1, outs[1]);
    set_axis(&a->wide, s, 2, outs[2]);
    return POOL_FLOW_SLOTS * bytes <= device->shared_per_block;
}

bool wd_pool_flow_takes(const struct wd_device *device, const struct wd_pool_shape *s,
                        enum wd_pool_flow_work work, struct wd_reason *reason)
{
    const bool runs = s->pixels && s->inner % (16 / s->size) == 0;
    struct pool_flow_args a;
    WD_NEED(s->size != 8, reason, NOT_SUPPORTED_DATA_TYPE, "fp64: boxes have it");
    WD_NEED(s->image[0] == 1 && s->windows[0] == 1 && s->window[0] == 1 && s->window[1] == 3 &&
                s->window[2] == 3 && s->stride[1] == s->stride[2] && s->stride[1] <= 2,
            reason, NOT_SUPPORTED_SHAPE, "not windows of 3x3 that overlap in a plane");
    WD_NEED(s->windows[1] * s->windows[2] > 1, reason, NOT_SUPPORTED_SHAPE, "one window");
    /* planes take 1.2 to 1.8 times as long as by walks, runs 1.4 to 1.6 */
    WD_NEED(work != WD_POOL_FLOW_MAXIMA || (s->stride[1] == 2 && s->pixels && !runs), reason,
            NOT_SUPPORTED_SHAPE, "maxima of windows at every element, of planes, or of whole runs");
    WD_NEED(work != WD_POOL_FLOW_SPREAD || !runs, reason, NOT_SUPPORTED_SHAPE,
            "pixels of whole runs, of which a thread may have several");
    for (int d = 1; d < 3; ++d) {
        WD_NEED(s->pad[d] >= 0 && s->pad[d] < 3, reason, NOT_SUPPORTED_SHAPE,
                "the padding is negative, or as large as a window");
    }
    WD_NEED(s->outer * wd_pool_image(s) >= RESULTS_LEAST &&
                wd_most(s->image[2], s->windows[2]) * s->inner <= ROW_MOST,
            reason, NOT_SUPPORTED_SHAPE, "fewer than %d results, or rows of more than %d elements",
            RESULTS_LEAST, ROW_MOST);
    WD_NEED(wd_pool_tile_fits(device, s), reason, NOT_SUPPORTED_SHAPE, "not with what is blended");
    WD_NEED(plan(device, s, work, &a), reason, NOT_SUPPORTED_SHAPE,
            "%lld channels: neighbours are too far apart", (long long)s->inner);
    return true;
}

/* Of averages all blocks with as many tiles, so that the processor that has most of them has as few as can be,
 * a block's beginning being half a tile's work (as many blocks as are resident: 1.07 of the time); of maxima as
 * many blocks as are there at once, which deal tiles out evenly (0.86 of the time of all with as many). */
static int64_t blocks_of(const struct wd_device *device, const struct wd_kernel_row *row,
                         enum wd_pool_flow_work work, const struct pool_flow_args *a)
{
    const int64_t threads = a->threads + POOL_FLOW_COPIERS;
    int64_t best = a->tiles;
    int64_t least = INT64_MAX;
    if (work == WD_POOL_FLOW_MAXIMA) {
        const int64_t shared = POOL_FLOW_SLOTS * (int64_t)a->slot + 1024;
        int64_t at_once = 65536 / (threads * row->registers);
        at_once = wd_least(at_once, device->shared_per_processor / shared);
        return wd_least(a->tiles, wd_most(at_once, 1) * device->multiprocessors);
    }
    for (int64_t each = 1; each <= TILES_MOST; ++each) {
        const int64_t blocks = wd_ceil_div(a->tiles, each);
        const int64_t most = wd_ceil_div(blocks, device->multiprocessors) * (2 * each + 1);
        if (most < least) {
            least = most;
            best = blocks;
        }
    }
    return best;
}

cudnnStatus_t wd_pool_flow_emit(struct wd_queue *queue, struct wd_kernel_row *row,
                                const struct wd_pool_shape *s, enum wd_pool_flow_work work,
                                const struct wd_pool_memory *m)
{
    struct pool_flow_args a;
    plan(queue->device, s, work, &a);
    a.x = s->backward && !s->max ? m->dy : m->x;
    a.dy = m->dy;
    a.out = m->out;
    a.alpha = (float)m->alpha;
    return wd_emit_kernel(queue, row, blocks_of(queue->device, row, work, &a),
                          a.threads + POOL_FLOW_COPIERS, POOL_FLOW_SLOTS * a.slot, &a);
}
