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

/* Whether what is made are windows of what is staged: averages backward at a stride of 1 are, too. */
static bool makes_windows(enum wd_pool_band_work work)
{
    return work == WD_POOL_BAND_FORWARD || work == WD_POOL_BAND_SPREAD;
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
    } else if (work == WD_POOL_BAND_PAIRS) {
        end = lay(&a->from, 0, cut->images, windows, s->windows, unit, 16, whole);
    } else {
        end = lay(&a->from, 0, cut->images, under, s->image, unit, 16, whole);
        end += lay(&a->shares, end, cut->images, windows, s->windows, unit, 16, whole);
    }
    cut->moved = end + count * s->size;
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
        x->classes = (int32_t)wd_least(wd_ceil_div(s->window[d], s->stride[d]), windows[d]);
        x->by_class = wd_fastdiv_of((uint32_t)wd_ceil_div(windows[d], x->classes));
    }
}

static int64_t blocks_of(const struct wd_pool_shape *s, enum wd_pool_band_work work,
                         const struct cut *cut)
{
    (void)work;
    return wd_ceil_div(s->outer, cut->images) * cut->parts[0] * cut->parts[1] * cut->parts[2];
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
    const struct wd_pool_shape *s = work == WD_POOL_BAND_SPREAD ? &turned : shape;
    struct pool_band_args *a = &band->args;
    struct cut cut;
    const int64_t *total = makes_windows(work) ? s->windows : s->image;
    memset(band, 0, sizeof *band);
    band->threads = POOL_BAND_THREADS;
    if (!fit(s, work, BYTES, &cut, a)) {
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
    /* whole images together */
    while (cut.parts[0] * cut.parts[1] * cut.parts[2] == 1 && cut.images < s->outer) {
        struct cut next = cut;
        struct pool_band_args of_next = *a;
        next.images = wd_least(2 * cut.images, s->outer);
        lay_out(s, work, &next, &of_next);
        if (next.bytes > BYTES ||
            blocks_of(s, work, &next) < (int64_t)BLOCKS_EACH * device->multiprocessors) {
            break;
        }
        cut = next;
        *a = of_next;
    }
    band->blocks = blocks_of(s, work, &cut);
    band->bytes = cut.bytes;
    a->inner = (uint32_t)s->inner;
    a->by_inner = wd_fastdiv_of(a->inner);
    a->outer = (uint32_t)s->outer;
    a->mode = wd_pool_mode(s);
    a->exclude = s->exclude;
    a->inverse = s->inverse;
    a->lowest = s->lowest;
    a->from.total =
        (uint32_t)(s->outer * (work == WD_POOL_BAND_PAIRS ? wd_pool_windows(s) : wd_pool_image(s)));
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
            int64_t items = work == WD_POOL_BAND_PAIRS ? x->outs / 2 + 1 : x->outs;
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
