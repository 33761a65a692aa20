/* SPDX-License-Identifier: Apache-2.0
 *
 * See pooling_sheet_cut.h. No state. */
#include "ops/pooling/pooling_sheet_cut.h"

#include "base/sizes.h"

enum {
    BYTES_MAXIMA = 110 << 10, /* two blocks: at edges windows are looked through again */
    SHEET_LEAST = 9,          /* results of a channel that a box had better have */
    WIDTHS_FEW = 10,          /* columns of what is made that may be cheapest whole */
    BYTES_LEAST = 8 << 10,    /* of sheets where there is little to do */
};

/* Bytes of shared memory of lines that are all of a row, or parts of rows. */
static int64_t lines_bytes(int64_t rows, int64_t columns, int64_t full, int64_t unit, bool all)
{
    const int64_t line = columns * unit;
    const int64_t pitch = all ? full * unit : wd_pool_round_up(line, 16) + 32 + full * unit % 16;
    return wd_pool_round_up(line + (rows - 1) * pitch + 32, 16);
}

/* Lays a sheet out as far as choosing one takes: strides are known here. */
static void measure(const struct wd_pool_shape *s, enum wd_pool_band_work work,
                    struct wd_pool_sheet *sheet)
{
    const bool windows = wd_pool_makes_windows(work);
    const int64_t *total = windows ? s->windows : s->image;
    const int64_t unit = s->inner * s->size;
    const bool wide = sheet->columns == total[2], all = wide && sheet->rows == total[1];
    const int64_t pairs = sheet->columns / 2 + 1;
    int64_t made[2] = {sheet->rows, sheet->columns}, over[2], under[2], end;
    for (int d = 0; d < 2; ++d) {
        const int64_t least = (made[d] + 1) / 2 + 1;
        const bool whole = d ? wide : all;
        over[d] = windows ? made[d]
                  : whole ? s->windows[d + 1]
                          : wd_least(least, s->windows[d + 1]);
        under[d] = windows ? (over[d] - 1) * s->stride[d + 1] + 3 : 2 * over[d] + 1;
        under[d] = wd_least(under[d], s->image[d + 1]);
        if (whole) under[d] = s->image[d + 1];
    }
    if (windows) {
        end = lines_bytes(under[0], under[1], s->image[2], unit, wide);
    } else {
        end = lines_bytes(over[0], over[1], s->windows[2], unit, wide);
    }
    if (work == WD_POOL_SHEET_MAXIMA) {
        const int64_t places = over[0] * over[1] * s->inner;
        const int64_t x = lines_bytes(under[0], under[1], s->image[2], unit, wide);
        const int64_t dx = lines_bytes(made[0], made[1], total[2], unit, wide);
        sheet->bytes = wd_most(x, dx) + end + wd_pool_round_up(places, 16);
        sheet->moved =
            x + end + WD_POOL_WINDOW_BYTES * places +
            2 * WD_POOL_COLUMN_BYTES * wd_pool_round_up(pairs * s->inner, POOL_SHEET_MAXIMA);
    } else {
        const int64_t columns = (windows ? sheet->columns : pairs) * s->inner;
        sheet->bytes = end;
        if (!windows) sheet->bytes += lines_bytes(made[0], made[1], total[2], unit, wide);
        sheet->moved = end + WD_POOL_COLUMN_BYTES * wd_pool_round_up(columns, POOL_SHEET_THREADS);
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
                     struct wd_pool_sheet *sheet)
{
    const int64_t total = wd_pool_makes_windows(work) ? s->windows[1] : s->image[1];
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
static bool is_better(const struct wd_pool_sheet *next, struct wd_pool_sheet *best)
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
                       struct wd_pool_sheet *best)
{
    const int64_t *total = wd_pool_makes_windows(work) ? s->windows : s->image;
    struct wd_pool_sheet next = *best;
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
                      struct wd_pool_sheet *best)
{
    static const int quarters[] = {4, 8, 12, 16, 32, 1 << 20, 2, 1};
    const bool windows = wd_pool_makes_windows(work);
    const int64_t total = windows ? s->windows[2] : s->image[2];
    const int64_t threads = work == WD_POOL_SHEET_MAXIMA ? POOL_SHEET_MAXIMA : POOL_SHEET_THREADS;
    const int64_t each = wd_most(threads, s->inner);
    const int narrower = 6, ways = sizeof quarters / sizeof *quarters;
    int64_t before = 0, tall = 0;
    best->bytes = 0;
    for (int i = 0; i < ways; ++i) {
        const int64_t columns = quarters[i] * each / (4 * s->inner);
        struct wd_pool_sheet next;
        next.columns = part_of(total, wd_most(windows ? columns : 2 * (columns - 1), 1));
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
        struct wd_pool_sheet next = {.columns = total};
        if (fit_rows(s, work, limit, &next)) is_better(&next, best);
    }
    if (best->bytes && best->columns != tall) fit_taller(s, work, limit, best);
    return best->bytes > 0;
}

bool wd_pool_sheet_of(const struct wd_device *device, const struct wd_pool_shape *s,
                      enum wd_pool_band_work work, struct wd_pool_sheet *best)
{
    const int64_t *total = wd_pool_makes_windows(work) ? s->windows : s->image;
    const int64_t most = wd_least(work == WD_POOL_SHEET_MAXIMA  ? BYTES_MAXIMA
                                  : wd_pool_makes_windows(work) ? WD_POOL_BYTES_BAND
                                                                : WD_POOL_BYTES_SHEET,
                                  device->shared_per_block);
    const int64_t large = wd_least(WD_POOL_BYTES_LARGE, device->shared_per_block);
    int64_t limit;
    *best = (struct wd_pool_sheet){.rows = total[1], .columns = total[2]};
    measure(s, work, best);
    limit = s->outer * best->bytes / ((int64_t)WD_POOL_BLOCKS_EACH * device->multiprocessors);
    limit = wd_least(wd_most(limit, BYTES_LEAST), most);
    if (best->bytes <= limit) return true;
    /* of many channels few results fit, which read much twice */
    return (fit_width(s, work, limit, best) && best->rows * best->columns >= SHEET_LEAST) ||
           fit_width(s, work, large, best);
}
