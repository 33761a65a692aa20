/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes of lines: all of an image, or several, where that is small; else cut along whichever axis adds
 * least to what is read twice. */
#include "ops/pooling/pooling_band.h"

#include <string.h>

#include "base/sizes.h"

enum {
    BYTES = 54 << 10, /* of a block's shared memory: four blocks a processor */
    BYTES_LARGE =
        110 << 10,   /* or two, of twice the threads, where small boxes read too much twice */
    BLOCKS_EACH = 4, /* blocks of a processor that joining images leaves */
    SHEET_COLUMN_BYTES = 20,  /* that take as long to move as a thread what it finds out first */
    SHEET_WINDOW_BYTES = 16,  /* maxima: finding one */
    BYTES_MAXIMA = 110 << 10, /* two blocks: at edges windows are looked through again */
    SHEET_ROWS_LEAST = 4,     /* of a thread: rows of windows overlap */
    SHEET_LEAST = 9,          /* results of a channel that a box had better have */
    WIDTHS_FEW = 10,          /* columns of what is made that may be cheapest whole */
    BYTES_LEAST = 8 << 10,    /* of sheets where there is little to do */
    BYTES_SHEET = 44 << 10,   /* five blocks a processor: there is but little to compute */
};

struct cut {
    int64_t parts[3]; /* of each axis of what is made */
    int64_t images;
    int64_t bytes;
    int64_t moved; /* bytes, by a box: read and written */
    int64_t made;  /* elements */
};

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Lays out `count` of `full` elements of each axis, of `unit` parts each, from `at` on: pitches are those
 * of memory modulo `align`. Returns the end. */
static int64_t lay(struct pool_band_part *part, int64_t at, int64_t images, const int64_t *count,
                   const int64_t *full, int64_t unit, int64_t align, int whole)
{
    const int64_t row = full[2] * unit, plane = full[1] * row, image = full[0] * plane;
    const int64_t line = count[2] * unit;
    int64_t span = line; /* of what has been laid out so far */
    int64_t longest = line;
    int64_t pitch;
    memset(part, 0, sizeof *part);
    part->at = (uint32_t)at;
    part->whole = (uint32_t)whole;
    pitch = whole >= 1 ? row : round_up(span, align) + 2 * align + row % align;
    part->pitch[2] = (uint32_t)pitch;
    span += (count[1] - 1) * pitch;
    if (whole >= 1) longest = span;
    pitch = whole >= 2 ? plane : round_up(span, align) + 2 * align + plane % align;
    part->pitch[1] = (uint32_t)pitch;
    span += (count[0] - 1) * pitch;
    if (whole >= 2) longest = span;
    pitch = whole >= 3 ? image : round_up(span, align) + 2 * align + image % align;
    part->pitch[0] = (uint32_t)pitch;
    span += (images - 1) * pitch;
    if (whole >= 3) longest = span;
    for (part->lanes = 32; part->lanes > 1 && part->lanes / 2 * align >= longest + align;) {
        part->lanes /= 2;
    }
    return round_up(span + 2 * align, align);
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

static bool is_sheet(enum wd_pool_band_work work)
{
    return work >= WD_POOL_SHEET_SPREAD;
}

static bool is_pairs(enum wd_pool_band_work work)
{
    return work == WD_POOL_BAND_PAIRS || work == WD_POOL_SHEET_PAIRS;
}

static bool is_spread(enum wd_pool_band_work work)
{
    return work == WD_POOL_BAND_SPREAD || work == WD_POOL_SHEET_SPREAD;
}

/* Whether what is made are windows of what is staged: averages backward at a stride of 1 are, too. */
static bool makes_windows(enum wd_pool_band_work work)
{
    return work == WD_POOL_BAND_FORWARD || is_spread(work);
}

static void lay_out(const struct wd_pool_shape *s, enum wd_pool_band_work work, struct cut *cut,
                    struct pool_band_args *a)
{
    const bool forward = makes_windows(work);
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
        end += round_up(cut->images * windows[1] * windows[2] * s->inner, 16);
        cut->moved += SHEET_WINDOW_BYTES * cut->images * windows[1] * windows[2] * s->inner +
                      2 * SHEET_COLUMN_BYTES *
                          round_up(cut->images * (made[2] / 2 + 1) * s->inner, POOL_SHEET_MAXIMA);
    } else if (is_sheet(work)) {
        /* long columns: what a thread finds out first takes as long as so many bytes */
        cut->moved +=
            SHEET_COLUMN_BYTES *
            round_up(cut->images * (is_pairs(work) ? made[2] / 2 + 1 : made[2]) * s->inner,
                     POOL_SHEET_THREADS);
        end += lay(&a->to, end, cut->images, made, total, unit, 16, whole);
    }
    cut->bytes = end;
    if (work == WD_POOL_BAND_SCATTER) {
        int64_t sums = lay(&a->to, end, cut->images, made, s->image, s->inner, 16 / s->size, whole);
        a->sums_bytes = (uint32_t)round_up(sums * sum, 16);
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
    const int64_t *total = makes_windows(work) ? s->windows : s->image;
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

/* Elements of each tensor that a sheet of one image has, and what it costs, as lay_out() says it. */
struct sheet {
    int64_t rows; /* of what is made */
    int64_t columns;
    int64_t bytes;
    int64_t moved;
};

/* Bytes of shared memory of lines that are all of a row, or parts of rows. */
static int64_t lines_bytes(int64_t rows, int64_t columns, int64_t full, int64_t unit, bool all)
{
    const int64_t line = columns * unit;
    const int64_t pitch = all ? full * unit : round_up(line, 16) + 32 + full * unit % 16;
    return round_up(line + (rows - 1) * pitch + 32, 16);
}

/* Lays a sheet out as far as choosing one takes: strides are known here. */
static void measure(const struct wd_pool_shape *s, enum wd_pool_band_work work, struct sheet *sheet)
{
    const bool spread = work == WD_POOL_SHEET_SPREAD;
    const int64_t *total = spread ? s->windows : s->image;
    const int64_t unit = s->inner * s->size;
    const bool wide = sheet->columns == total[2], all = wide && sheet->rows == total[1];
    const int64_t pairs = sheet->columns / 2 + 1;
    int64_t made[2] = {sheet->rows, sheet->columns}, over[2], under[2], dx, end;
    for (int d = 0; d < 2; ++d) {
        const int64_t least = (made[d] + 1) / 2 + 1;
        const bool whole = d ? wide : all;
        over[d] = spread ? made[d] : whole ? s->windows[d + 1] : wd_least(least, s->windows[d + 1]);
        under[d] = wd_least(spread ? over[d] + 2 : 2 * over[d] + 1, s->image[d + 1]);
        if (whole) under[d] = s->image[d + 1];
    }
    dx = lines_bytes(made[0], made[1], total[2], unit, wide);
    if (spread) {
        end = lines_bytes(under[0], under[1], s->image[2], unit, wide);
    } else {
        end = lines_bytes(over[0], over[1], s->windows[2], unit, wide);
    }
    if (work == WD_POOL_SHEET_MAXIMA) {
        const int64_t windows = over[0] * over[1] * s->inner;
        const int64_t x = lines_bytes(under[0], under[1], s->image[2], unit, wide);
        sheet->bytes = wd_most(x, dx) + end + round_up(windows, 16);
        sheet->moved = x + end + SHEET_WINDOW_BYTES * windows +
                       2 * SHEET_COLUMN_BYTES * round_up(pairs * s->inner, POOL_SHEET_MAXIMA);
    } else {
        const int64_t columns = (spread ? sheet->columns : pairs) * s->inner;
        sheet->bytes = end + dx;
        sheet->moved = end + SHEET_COLUMN_BYTES * round_up(columns, POOL_SHEET_THREADS);
    }
    sheet->moved += made[0] * made[1] * unit;
}

/* Of equal parts that are at most `most`, the longest. */
static int64_t part_of(int64_t total, int64_t most)
{
    return most >= total ? total : wd_ceil_div(total, wd_ceil_div(total, most));
}

/* The most rows of so many columns that fit; false where none do. */
static bool fit_rows(const struct wd_pool_shape *s, enum wd_pool_band_work work, int64_t limit,
                     struct sheet *sheet)
{
    const int64_t total = work == WD_POOL_SHEET_SPREAD ? s->windows[1] : s->image[1];
    const int64_t few = wd_least(3, total), many = wd_least(11, total);
    int64_t rows = few, bytes;
    sheet->rows = few;
    measure(s, work, sheet);
    bytes = sheet->bytes;
    if (many > few && bytes < limit) {
        sheet->rows = many;
        measure(s, work, sheet);
        rows += (limit - bytes) * (many - few) / wd_most(sheet->bytes - bytes, 1);
    }
    for (rows = wd_least(rows, total); rows > 0; rows = sheet->rows - 1) {
        sheet->rows = part_of(total, rows);
        measure(s, work, sheet);
        if (sheet->bytes <= limit) return true;
    }
    return false;
}

/* Whether `next` costs less than the best so far, which it then is. */
static bool is_better(const struct sheet *next, struct sheet *best)
{
    if (best->bytes &&
        next->moved * (best->rows * best->columns) >= best->moved * (next->rows * next->columns)) {
        return false;
    }
    *best = *next;
    return true;
}

/* Rows in a part less than the best has, by as many columns as fit. */
static void fit_taller(const struct wd_pool_shape *s, enum wd_pool_band_work work, int64_t limit,
                       struct sheet *best)
{
    const int64_t *total = work == WD_POOL_SHEET_SPREAD ? s->windows : s->image;
    struct sheet next = *best;
    if (best->rows == total[1] || best->columns == 1) return;
    next.rows = wd_ceil_div(total[1], wd_ceil_div(total[1], best->rows) - 1);
    measure(s, work, &next);
    next.columns = part_of(total[2], wd_most(next.columns * limit / next.bytes, 1));
    measure(s, work, &next);
    if (next.bytes > limit && next.columns > 1) {
        next.columns = part_of(total[2], next.columns - 1);
        measure(s, work, &next);
    }
    if (next.bytes <= limit) is_better(&next, best);
}

/* Boxes whose columns are about as many as threads; then wider ones as long as they cost less, or else narrower
 * ones. */
static bool fit_width(const struct wd_pool_shape *s, enum wd_pool_band_work work, int64_t limit,
                      struct sheet *best)
{
    static const int quarters[] = {4, 8, 12, 16, 32, 1 << 20, 2, 1};
    const bool spread = work == WD_POOL_SHEET_SPREAD;
    const int64_t total = spread ? s->windows[2] : s->image[2];
    const int64_t threads = work == WD_POOL_SHEET_MAXIMA ? POOL_SHEET_MAXIMA : POOL_SHEET_THREADS;
    const int64_t each = wd_most(threads, s->inner);
    const int narrower = 6, ways = sizeof quarters / sizeof *quarters;
    int64_t before = 0, tall = 0;
    best->bytes = 0;
    for (int i = 0; i < ways; ++i) {
        const int64_t columns = quarters[i] * each / (4 * s->inner);
        struct sheet next;
        next.columns = part_of(total, wd_most(spread ? columns : 2 * (columns - 1), 1));
        if (next.columns == before) continue;
        before = next.columns;
        if (fit_rows(s, work, limit, &next) && is_better(&next, best)) {
            if (i == 0) {
                fit_taller(s, work, limit, best);
                tall = best->columns;
            }
        } else if (i >= narrower) {
            break;
        } else {
            i = i <= 1 ? narrower - 1 : ways;
        }
    }
    if (total <= WIDTHS_FEW && best->columns < total) {
        struct sheet next = {.columns = total};
        if (fit_rows(s, work, limit, &next)) is_better(&next, best);
    }
    if (best->bytes && best->columns != tall) fit_taller(s, work, limit, best);
    return best->bytes > 0;
}

static bool fit_sheet(const struct wd_device *device, const struct wd_pool_shape *s,
                      enum wd_pool_band_work work, struct cut *cut, struct pool_band_args *a)
{
    const int64_t *total = makes_windows(work) ? s->windows : s->image;
    const int64_t most = wd_least(work == WD_POOL_SHEET_MAXIMA ? BYTES_MAXIMA : BYTES_SHEET,
                                  device->shared_per_block);
    const int64_t large = wd_least(BYTES_LARGE, device->shared_per_block);
    struct sheet best = {.rows = total[1], .columns = total[2]};
    int64_t limit;
    measure(s, work, &best);
    limit = s->outer * best.bytes / ((int64_t)BLOCKS_EACH * device->multiprocessors);
    limit = wd_least(wd_most(limit, BYTES_LEAST), most);
    /* of many channels few results fit, which read much twice */
    if (best.bytes > limit &&
        (!fit_width(s, work, limit, &best) || best.rows * best.columns < SHEET_LEAST) &&
        !fit_width(s, work, large, &best)) {
        return false;
    }
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

bool wd_pool_band_of(const struct wd_device *device, const struct wd_pool_shape *shape,
                     enum wd_pool_band_work work, int64_t rows, struct wd_pool_band *band)
{
    const struct wd_pool_shape turned = over_gradient(shape);
    const struct wd_pool_shape *s = is_spread(work) ? &turned : shape;
    const int64_t limit = is_sheet(work) ? BYTES_SHEET : BYTES;
    struct pool_band_args *a = &band->args;
    struct cut cut;
    const int64_t *total = makes_windows(work) ? s->windows : s->image;
    memset(band, 0, sizeof *band);
    band->threads = POOL_BAND_THREADS;
    if (is_sheet(work)) {
        if (!fit_sheet(device, s, work, &cut, a)) return false;
    } else if (!fit(s, work, limit, &cut, a)) {
        if (!fit(s, work, wd_least(BYTES_LARGE, device->shared_per_block), &cut, a)) return false;
        band->threads = 2 * POOL_BAND_THREADS;
    } else if (cut.parts[2] > 1) {
        struct cut large;
        struct pool_band_args of_large = *a;
        if (fit(s, work, wd_least(BYTES_LARGE, device->shared_per_block), &large, &of_large) &&
            large.moved * cut.made * 10 < cut.moved * large.made * 9) {
            cut = large;
            *a = of_large;
            band->threads = 2 * POOL_BAND_THREADS;
        }
    }
    if (!makes_windows(work) && !begins_inside(s, &cut)) return false;
    /* whole images together */
    while (cut.parts[0] * cut.parts[1] * cut.parts[2] == 1 && cut.images < s->outer) {
        struct cut next = cut;
        struct pool_band_args of_next = *a;
        next.images = wd_least(2 * cut.images, s->outer);
        lay_out(s, work, &next, &of_next);
        if (next.bytes > limit ||
            blocks_of(s, &next) < (int64_t)BLOCKS_EACH * device->multiprocessors) {
            break;
        }
        cut = next;
        *a = of_next;
    }
    band->blocks = blocks_of(s, &cut);
    band->bytes = cut.bytes;
    if (is_sheet(work)) {
        /* a thread has a column, or a part of its rows where there are few */
        const bool maxima = work == WD_POOL_SHEET_MAXIMA, pairs = is_pairs(work) || maxima;
        const int64_t threads = maxima ? POOL_SHEET_MAXIMA : POOL_SHEET_THREADS;
        const int64_t items[2] = {pairs ? a->axis[1].outs / 2 + 1 : a->axis[1].outs,
                                  pairs ? a->axis[2].outs / 2 + 1 : a->axis[2].outs};
        const int64_t columns = cut.images * items[1] * s->inner;
        const int64_t parts = wd_most(1, threads / columns);
        const int64_t each =
            wd_most(wd_ceil_div(items[0], parts), wd_least(items[0], SHEET_ROWS_LEAST));
        const int64_t all = columns * wd_ceil_div(items[0], each);
        const int64_t rounds = wd_ceil_div(all, threads);
        band->threads = (uint32_t)round_up(wd_ceil_div(all, rounds), 32);
        a->sheet_rows = (int32_t)each;
        a->sheet_windows = (uint32_t)a->axis[1].over;
        a->axis[1].by_window = wd_fastdiv_of((uint32_t)wd_ceil_div(a->axis[1].over, each));
        a->axis[2].by_window = wd_fastdiv_of((uint32_t)a->axis[2].over);
        rows = each;
    }
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

void wd_pool_band_fill(struct wd_pool_band *band, const struct wd_pool_memory *m)
{
    struct pool_band_args *a = &band->args;
    a->x = m->x;
    a->dy = m->dy;
    a->out = m->out;
    a->alpha = m->alpha;
    a->beta = m->beta;
    a->scales = m->alpha != 0.0;
    a->blends = m->beta != 0.0;
    a->streaming = m->streaming;
}
