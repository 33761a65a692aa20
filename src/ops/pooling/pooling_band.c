/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes of lines: all of an image, or several, where that is small; else cut along whichever axis adds
 * least to what is read twice. */
#include "ops/pooling/pooling_band.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/pooling/pooling_sheet_cut.h"

enum {
    SHEET_ROWS_LEAST = 4, /* of a thread: rows of windows overlap */
    LANES_FEW = 8,        /* lanes read and write whole lines of the cache */
    LANES_BUSY = 192,     /* of a block */
};

struct cut {
    int64_t parts[3]; /* of each axis of what is made */
    int64_t images;
    int64_t bytes;
    int64_t moved; /* bytes, by a box: read and written */
    int64_t made;  /* elements */
};

/* Lays out `count` of `full` elements of each axis, of `unit` parts each, from `at` on: pitches are those
 * of memory modulo `align`. Returns the end. */
static int64_t lay(struct pool_band_part *part, int64_t at, int64_t images, const int64_t *count,
                   const int64_t *full, int64_t unit, int64_t align, int whole)
{
    const int64_t row = full[2] * unit, plane = full[1] * row, image = full[0] * plane;
    const int64_t line = count[2] * unit;
    int64_t span = line; /* of what has been laid out so far */
    int64_t longest = line;
    int64_t pitch, lines;
    memset(part, 0, sizeof *part);
    part->at = (uint32_t)at;
    part->whole = (uint32_t)whole;
    pitch = whole >= 1 ? row : wd_pool_round_up(span, align) + 2 * align + row % align;
    part->pitch[2] = (uint32_t)pitch;
    span += (count[1] - 1) * pitch;
    if (whole >= 1) longest = span;
    pitch = whole >= 2 ? plane : wd_pool_round_up(span, align) + 2 * align + plane % align;
    part->pitch[1] = (uint32_t)pitch;
    span += (count[0] - 1) * pitch;
    if (whole >= 2) longest = span;
    pitch = whole >= 3 ? image : wd_pool_round_up(span, align) + 2 * align + image % align;
    part->pitch[0] = (uint32_t)pitch;
    span += (images - 1) * pitch;
    if (whole >= 3) longest = span;
    /* few lanes: what a line takes first is done for several of them at once */
    lines = whole >= 3 ? 1 : images * (whole >= 2 ? 1 : count[0] * (whole >= 1 ? 1 : count[1]));
    for (part->lanes = 5; part->lanes > 0; part->lanes -= 1) {
        const int64_t half = (int64_t)1 << (part->lanes - 1);
        if (half * align < longest + align && (half < LANES_FEW || half * lines < LANES_BUSY)) {
            break;
        }
    }
    return wd_pool_round_up(span + 2 * align, align);
}

/* Elements that `windows` windows in a row reach over, and windows over `elements`. */
static int64_t reach(const struct wd_pool_shape *s, int axis, int64_t windows)
{
    return wd_least((windows - 1) * s->stride[axis] + s->window[axis], s->image[axis]);
}

static int64_t over(const struct wd_pool_shape *s, int axis, int64_t elements)
{
    return wd_least((elements + s->window[axis] - 2) / s->stride[axis] + 1, s->windows[axis]);
}

static bool is_columns(enum wd_pool_band_work work)
{
    return work >= WD_POOL_COLUMNS_FORWARD;
}

static bool is_pairs(enum wd_pool_band_work work)
{
    return work == WD_POOL_BAND_PAIRS || work == WD_POOL_SHEET_PAIRS;
}

static bool is_spread(enum wd_pool_band_work work)
{
    return work == WD_POOL_BAND_SPREAD || work == WD_POOL_COLUMNS_SPREAD;
}

static void lay_out(const struct wd_pool_shape *s, enum wd_pool_band_work work, struct cut *cut,
                    struct pool_band_args *a)
{
    const bool forward = wd_pool_makes_windows(work);
    const int64_t *total = forward ? s->windows : s->image;
    const int64_t unit = s->inner * s->size;
    const int64_t sum = s->size == 8 ? 8 : 4;
    int64_t made[3], windows[3], under[3];
    int whole = 0;
    int64_t end;
    int64_t count = cut->images * s->inner;
    for (int d = 2; d >= 0; --d) {
        made[d] = wd_ceil_div(total[d], cut->parts[d]);
        if (made[d] == total[d] && whole == 2 - d) whole = 3 - d;
    }
    for (int d = 0; d < 3; ++d) {
        const bool all = 2 - d < whole;
        windows[d] = all ? s->windows[d] : forward ? made[d] : over(s, d, made[d]);
        under[d] = all ? s->image[d] : reach(s, d, windows[d]);
        count *= made[d];
    }
    cut->made = count;
    if (forward) {
        end = lay(&a->from, 0, cut->images, under, s->image, unit, 16, whole);
    } else if (is_pairs(work)) {
        end = lay(&a->from, 0, cut->images, windows, s->windows, unit, 16, whole);
    } else {
        end = lay(&a->from, 0, cut->images, under, s->image, unit, 16, whole);
        end += lay(&a->shares, end, cut->images, windows, s->windows, unit, 16, whole);
    }
    cut->moved = end + count * s->size;
    if (work == WD_POOL_SHEET_MAXIMA) {
        /* dx where x was, and a byte for each window */
        const int64_t x = a->shares.at,
                      dx = lay(&a->to, 0, cut->images, made, total, unit, 16, whole);
        if (dx > x) {
            a->shares.at = (uint32_t)dx;
            end += dx - x;
        }
        a->sheet_places = (uint32_t)end;
        end += wd_pool_round_up(cut->images * windows[1] * windows[2] * s->inner, 16);
        cut->moved +=
            WD_POOL_WINDOW_BYTES * cut->images * windows[1] * windows[2] * s->inner +
            2 * WD_POOL_COLUMN_BYTES *
                wd_pool_round_up(cut->images * (made[2] / 2 + 1) * s->inner, POOL_SHEET_MAXIMA);
    } else if (is_columns(work)) {
        /* long columns: what a thread finds out first takes as long as so many bytes */
        cut->moved +=
            WD_POOL_COLUMN_BYTES *
            wd_pool_round_up(cut->images * (is_pairs(work) ? made[2] / 2 + 1 : made[2]) * s->inner,
                             POOL_SHEET_THREADS);
        if (work == WD_POOL_SHEET_PAIRS)
            end += lay(&a->to, end, cut->images, made, total, unit, 16, whole);
    }
    cut->bytes = end;
    if (work == WD_POOL_BAND_SCATTER) {
        int64_t sums = lay(&a->to, end, cut->images, made, s->image, s->inner, 16 / s->size, whole);
        a->sums_bytes = (uint32_t)wd_pool_round_up(sums * sum, 16);
        cut->bytes += a->sums_bytes;
    }
    a->tile_outer = (uint32_t)cut->images;
    for (int d = 0; d < 3; ++d) {
        struct pool_band_axis *x = &a->axis[d];
        x->outs = (int32_t)made[d];
        x->over = (int32_t)windows[d];
        x->classes = (int32_t)wd_least(wd_ceil_div(s->window[d], s->stride[d]), windows[d]);
        if (work == WD_POOL_BAND_SCATTER) {
            x->by_class = wd_fastdiv_of((uint32_t)wd_ceil_div(windows[d], x->classes));
        }
    }
}

static int64_t blocks_of(const struct wd_pool_shape *s, const struct cut *cut)
{
    return wd_ceil_div(s->outer, cut->images) * cut->parts[0] * cut->parts[1] * cut->parts[2];
}

/* Whether what boxes stage begins within the tensors, if only at their ends. Callers may leave out windows: over
 * a box behind the last one there are none, and where the next ones would begin nothing is to be read. */
static bool begins_inside(const struct wd_pool_shape *s, const struct cut *cut)
{
    for (int d = 0; d < 3; ++d) {
        const int64_t made = wd_ceil_div(s->image[d], cut->parts[d]);
        const int64_t last = (wd_ceil_div(s->image[d], made) - 1) * made;
        const int64_t before = last + s->pad[d] - s->window[d];
        const int64_t low = before < 0 ? 0 : before / s->stride[d] + 1;
        if (low > s->windows[d] || low * s->stride[d] - s->pad[d] > s->image[d]) return false;
    }
    return true;
}

/* The fewest parts that fit `limit`; false where none do. */
static bool fit(const struct wd_pool_shape *s, enum wd_pool_band_work work, int64_t limit,
                struct cut *cut, struct pool_band_args *a)
{
    const int64_t *total = wd_pool_makes_windows(work) ? s->windows : s->image;
    *cut = (struct cut){.parts = {1, 1, 1}, .images = 1};
    lay_out(s, work, cut, a);
    while (cut->bytes > limit) {
        struct cut best = {.bytes = 0};
        for (int d = 0; d < 3; ++d) {
            struct cut next = *cut;
            next.parts[d] = wd_least(next.parts[d] + 1 + next.parts[d] / 4, total[d]);
            if (next.parts[d] == cut->parts[d]) continue;
            /* equal parts: no more of them than there are */
            next.parts[d] = wd_ceil_div(total[d], wd_ceil_div(total[d], next.parts[d]));
            if (next.parts[d] == cut->parts[d]) next.parts[d] = total[d];
            lay_out(s, work, &next, a);
            if (best.bytes && next.moved * best.made >= best.moved * next.made) continue;
            best = next;
        }
        if (!best.bytes) return false;
        *cut = best;
    }
    lay_out(s, work, cut, a);
    return true;
}

/* Sheets: a box of so many rows and columns of one image. */
static bool fit_sheet(const struct wd_device *device, const struct wd_pool_shape *s,
                      enum wd_pool_band_work work, struct cut *cut, struct pool_band_args *a)
{
    const int64_t *total = wd_pool_makes_windows(work) ? s->windows : s->image;
    struct wd_pool_sheet best;
    if (!wd_pool_sheet_of(device, s, work, &best)) return false;
    *cut = (struct cut){
        .parts = {1, wd_ceil_div(total[1], best.rows), wd_ceil_div(total[2], best.columns)},
        .images = 1};
    lay_out(s, work, cut, a);
    return true;
}

/* Averages backward as windows over dy, one around each element of dx. */
static struct wd_pool_shape over_gradient(const struct wd_pool_shape *s)
{
    struct wd_pool_shape over = *s;
    for (int d = 0; d < 3; ++d) {
        over.image[d] = s->windows[d];
        over.windows[d] = s->image[d];
        over.pad[d] = s->window[d] - 1 - s->pad[d];
    }
    return over;
}

/* A thread has a column, or a part of its rows where there are few: how many of them. */
static int64_t share_sheet(const struct wd_pool_shape *s, enum wd_pool_band_work work,
                           const struct cut *cut, struct wd_pool_band *band)
{
    struct pool_band_args *a = &band->args;
    const bool maxima = work == WD_POOL_SHEET_MAXIMA, pairs = is_pairs(work) || maxima;
    const int64_t threads = maxima ? POOL_SHEET_MAXIMA : POOL_SHEET_THREADS;
    const int64_t items[2] = {pairs ? a->axis[1].outs / 2 + 1 : a->axis[1].outs,
                              pairs ? a->axis[2].outs / 2 + 1 : a->axis[2].outs};
    const int64_t columns = cut->images * items[1] * s->inner;
    const int64_t parts = wd_most(1, threads / columns);
    const int64_t each =
        wd_most(wd_ceil_div(items[0], parts), wd_least(items[0], SHEET_ROWS_LEAST));
    const int64_t all = columns * wd_ceil_div(items[0], each);
    const int64_t rounds = wd_ceil_div(all, threads);
    band->threads = (uint32_t)wd_pool_round_up(wd_ceil_div(all, rounds), 32);
    a->sheet_rows = (int32_t)each;
    a->sheet_windows = (uint32_t)a->axis[1].over;
    a->axis[1].by_window = wd_fastdiv_of((uint32_t)wd_ceil_div(a->axis[1].over, each));
    a->axis[2].by_window = wd_fastdiv_of((uint32_t)a->axis[2].over);
    return each;
}

bool wd_pool_band_of(const struct wd_device *device, const struct wd_pool_shape *shape,
                     enum wd_pool_band_work work, int64_t rows, struct wd_pool_band *band)
{
    const struct wd_pool_shape turned = over_gradient(shape);
    const struct wd_pool_shape *s = is_spread(work) ? &turned : shape;
    const int64_t limit =
        wd_pool_makes_windows(work) || !is_columns(work) ? WD_POOL_BYTES_BAND : WD_POOL_BYTES_SHEET;
    struct pool_band_args *a = &band->args;
    struct cut cut;
    const int64_t *total = wd_pool_makes_windows(work) ? s->windows : s->image;
    memset(band, 0, sizeof *band);
    band->threads = POOL_BAND_THREADS;
    if (is_columns(work)) {
        if (!fit_sheet(device, s, work, &cut, a)) return false;
    } else if (!fit(s, work, limit, &cut, a)) {
        if (!fit(s, work, wd_least(WD_POOL_BYTES_LARGE, device->shared_per_block), &cut, a))
            return false;
        band->threads = 2 * POOL_BAND_THREADS;
    } else if (cut.parts[2] > 1) {
        struct cut large;
        struct pool_band_args of_large = *a;
        if (fit(s, work, wd_least(WD_POOL_BYTES_LARGE, device->shared_per_block), &large,
                &of_large) &&
            large.moved * cut.made * 10 < cut.moved * large.made * 9) {
            cut = large;
            *a = of_large;
            band->threads = 2 * POOL_BAND_THREADS;
        }
    }
    if (!wd_pool_makes_windows(work) && !begins_inside(s, &cut)) return false;
    /* whole images together */
    while (cut.parts[0] * cut.parts[1] * cut.parts[2] == 1 && cut.images < s->outer) {
        struct cut next = cut;
        struct pool_band_args of_next = *a;
        next.images = wd_least(2 * cut.images, s->outer);
        lay_out(s, work, &next, &of_next);
        if (next.bytes > limit ||
            blocks_of(s, &next) < (int64_t)WD_POOL_BLOCKS_EACH * device->multiprocessors) {
            break;
        }
        cut = next;
        *a = of_next;
    }
    band->blocks = blocks_of(s, &cut);
    band->bytes = cut.bytes;
    if (is_columns(work)) rows = share_sheet(s, work, &cut, band);
    a->inner = (uint32_t)s->inner;
    a->by_inner = wd_fastdiv_of(a->inner);
    a->outer = (uint32_t)s->outer;
    a->mode = wd_pool_mode(s);
    a->exclude = s->exclude;
    a->inverse = s->inverse;
    a->lowest = s->lowest;
    a->from.total = (uint32_t)(s->outer * (is_pairs(work) ? wd_pool_windows(s) : wd_pool_image(s)));
    a->shares.total = (uint32_t)(s->outer * wd_pool_windows(s));
    for (int d = 0; d < 3; ++d) {
        struct pool_band_axis *x = &a->axis[d];
        x->image = (int32_t)s->image[d];
        x->windows = (int32_t)s->windows[d];
        x->size = (int32_t)s->window[d];
        x->stride = (int32_t)s->stride[d];
        x->pad = (int32_t)s->pad[d];
        x->cover_image = (int32_t)shape->image[d];
        x->cover_pad = (int32_t)shape->pad[d];
        if (work != WD_POOL_BAND_SCATTER) {
            const bool pairs = is_pairs(work) || work == WD_POOL_SHEET_MAXIMA;
            int64_t items = pairs ? x->outs / 2 + 1 : x->outs;
            x->by_class = wd_fastdiv_of((uint32_t)wd_ceil_div(items, d == 1 ? rows : 1));
        }
        x->by_tiles = wd_fastdiv_of((uint32_t)wd_ceil_div(total[d], x->outs));
        x->by_stride = wd_fastdiv_of((uint32_t)s->stride[d]);
    }
    return true;
}

void wd_pool_band_call(const struct wd_device *device, const struct wd_pool_shape *shape,
                       enum wd_pool_band_work work, int64_t rows, const struct wd_pool_memory *m,
                       const struct wd_pool_way *way, struct wd_pool_band *band)
{
    struct pool_band_args *a = &band->args;
    if (m->prepared && m->prepared_by == way) *band = *(const struct wd_pool_band *)m->prepared;
    else wd_pool_band_of(device, shape, work, rows, band);
    a->x = m->x;
    a->dy = m->dy;
    a->out = m->out;
    a->alpha = m->alpha;
    a->beta = m->beta;
    a->scales = m->alpha != 0.0;
    a->blends = m->beta != 0.0;
    a->streaming = m->streaming;
}
