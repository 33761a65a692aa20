/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the resample passes, shared by host and device, and the geometry of windows, which
 * needs no accumulator: all of it in whole units of 1 / unit[s] pixels, so it is exact. */
#ifndef WD_OPS_RESAMPLE_ARGS_H
#define WD_OPS_RESAMPLE_ARGS_H

#include "base/view.h"
#include "graph/attr.h"

struct resample_args {
    struct wd_view x;   /* the image */
    struct wd_view y;   /* forward: the output; backward: its gradient dy */
    struct wd_view idx; /* where the maxima are, as in resample_place */
    struct wd_view dx;  /* backward: the image's gradient */
    double alpha;
    double beta;
    int64_t first_window;  /* item 0 of a window pass, as a logical index of y */
    int64_t first_element; /* item 0 of an image pass, as a logical index of dx */
    int64_t *places; /* by window from first_window on: the same as idx, where there is none */
    int32_t has_idx;
    int32_t unused;
    struct wd_resample_attr attr;
};

/* a / b rounded down, b positive. */
WD_FN int64_t resample_floor(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b < 0 ? q - 1 : q;
}

/* Twice the centre of window o, in units: the pixel k covers k .. k + 1. */
WD_FN int64_t resample_centre(const struct wd_resample_attr *p, int s, int64_t o)
{
    return 2 * (o * p->stride[s] - p->pad_before[s]) + p->window[s];
}

/* The width of the triangle of a bilinear window, in units: at least two pixels. */
WD_FN int64_t resample_width(const struct wd_resample_attr *p, int s)
{
    return p->window[s] > 2 * p->unit[s] ? p->window[s] : 2 * p->unit[s];
}

/* The pixels low .. high-1 that count in window o along dimension s, padding included; both ends
 * rise with o. */
WD_FN void resample_range(const struct wd_resample_attr *p, int s, int64_t o, int64_t *low,
                          int64_t *high)
{
    const int64_t u = p->unit[s];
    const int64_t centre = resample_centre(p, s, o);
    if (p->mode == CUDNN_RESAMPLE_NEAREST) {
        *low = resample_floor(centre, 2 * u);
        *high = *low + 1;
    } else if (p->mode == CUDNN_RESAMPLE_BILINEAR) {
        const int64_t w = resample_width(p, s);
        *low = resample_floor(centre - w - u, 2 * u) + 1;
        *high = -resample_floor(-(centre + w - u), 2 * u);
    } else {
        const int64_t start = o * p->stride[s] - p->pad_before[s];
        *low = -resample_floor(-start, u);
        *high = -resample_floor(-(start + p->window[s]), u);
    }
}

/* As many pixels of the image as a range can have. */
WD_FN int64_t resample_extent(const struct wd_resample_attr *p, int s, int64_t image)
{
    int64_t extent = (p->window[s] - 1) / p->unit[s] + 1;
    if (p->mode == CUDNN_RESAMPLE_NEAREST) extent = 1;
    if (p->mode == CUDNN_RESAMPLE_BILINEAR) extent = (resample_width(p, s) - 1) / p->unit[s] + 1;
    return extent < image ? extent : image;
}

/* The weights of the pixels from .. to-1 of window o together, before the division by resample_norm.
 * Of a triangle w / 2 - |distance| they are the sums of odd numbers on either side of its middle;
 * unsigned, so that parts may be larger than the whole. */
WD_FN int64_t resample_weights(const struct wd_resample_attr *p, int s, int64_t o, int64_t from,
                               int64_t to)
{
    if (to <= from) return 0;
    if (p->mode != CUDNN_RESAMPLE_BILINEAR) return to - from;
    {
        const uint64_t u = (uint64_t)p->unit[s];
        const uint64_t w = (uint64_t)resample_width(p, s);
        const int64_t centre = resample_centre(p, s, o);
        int64_t middle = resample_floor(centre + p->unit[s], 2 * p->unit[s]);
        uint64_t a = (uint64_t)from;
        uint64_t b = (uint64_t)to;
        uint64_t m;
        if (middle < from) middle = from;
        if (middle > to) middle = to;
        m = (uint64_t)middle;
        return (int64_t)((m - a) * (w - (uint64_t)centre) + u * (m * m - a * a) +
                         (b - m) * (w + (uint64_t)centre) - u * (b * b - m * m));
    }
}

/* What the sum of window o is divided by, one factor a dimension. */
WD_FN int64_t resample_norm(const struct wd_resample_attr *p, int s, int64_t image, int64_t o)
{
    int64_t low;
    int64_t high;
    resample_range(p, s, o, &low, &high);
    if (p->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING) {
        if (low < 0) low = 0;
        if (high > image) high = image;
    }
    return resample_weights(p, s, o, low, high);
}

/* Whether pixels of the padding stand for those of the edge. */
WD_FN int resample_repeats(const struct wd_resample_attr *p)
{
    return p->padding == CUDNN_EDGE_VAL_PAD && p->mode != CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
}

/* The part of a range that is within the image, low .. high-1; repeated edges lie there as well. */
WD_FN void resample_clip(const struct wd_resample_attr *p, int64_t image, int64_t *low,
                         int64_t *high)
{
    if (*high <= *low) return;
    if (resample_repeats(p)) { /* whatever is beyond an edge is that edge */
        *high -= 1;
        *low = *low < 0 ? 0 : *low < image ? *low : image - 1;
        *high = (*high < 0 ? 0 : *high < image ? *high : image - 1) + 1;
    } else {
        if (*low < 0) *low = 0;
        if (*high > image) *high = image;
    }
}

/* The pixels first .. last-1 of window o that are, or stand for, pixel k of the image. */
WD_FN void resample_span(const struct wd_resample_attr *p, int s, int64_t image, int64_t o,
                         int64_t k, int64_t *first, int64_t *last)
{
    const int repeats = resample_repeats(p);
    resample_range(p, s, o, first, last);
    if (*first < k && !(repeats && k == 0)) *first = k;
    if (*last > k + 1 && !(repeats && k == image - 1)) *last = k + 1;
}

/* The place, row by row, of the first pixel of the box low .. high-1 that is none of the image; -1
 * where there is none. */
WD_FN int64_t resample_first_outside(int spatial, const int64_t *image, const int64_t *low,
                                     const int64_t *high)
{
    int64_t place = -1;
    int64_t row = 1;
    for (int s = spatial - 1; s >= 0; --s) {
        if (high[s] <= low[s]) return -1;
        if (low[s] < 0 || low[s] >= image[s]) place = 0; /* the row that the window begins with */
        else if (place < 0 && high[s] > image[s]) place = (image[s] - low[s]) * row;
        row *= high[s] - low[s];
    }
    return place;
}

/* The next point of the box low .. high-1, the last dimension fastest; 0 after the last one. */
WD_FN int resample_next(int spatial, const int64_t *low, const int64_t *high, int64_t *at)
{
    for (int s = spatial - 1; s >= 0; --s) {
        if (++at[s] < high[s]) return 1;
        at[s] = low[s];
    }
    return 0;
}

/* The pixel at place `place` (row by row, padding included) of the window at `window`, coordinates
 * of y; where padding repeats the edge, the pixel that is repeated. 0 where it is no pixel. */
WD_FN int resample_pixel(const struct wd_resample_attr *p, const int64_t *image,
                         const int64_t *window, int64_t place, int64_t *pixel)
{
    for (int s = p->spatial - 1; s >= 0; --s) {
        int64_t low;
        int64_t high;
        resample_range(p, s, window[2 + s], &low, &high);
        if (high <= low) return 0;
        pixel[s] = low + place % (high - low);
        place /= high - low;
        if (pixel[s] >= 0 && pixel[s] < image[s]) continue;
        if (p->padding != CUDNN_EDGE_VAL_PAD) return 0;
        pixel[s] = pixel[s] < 0 ? 0 : image[s] - 1;
    }
    return place == 0;
}

/* The windows first .. last-1 along s whose range has a pixel that is `from` .. `to`. */
WD_FN void resample_windows_over(const struct wd_resample_attr *p, int s, int64_t windows,
                                 int64_t from, int64_t to, int64_t *first, int64_t *last)
{
    int64_t low;
    int64_t high;
    int64_t below = 0;
    int64_t above = windows;
    while (below < above) { /* the first one that ends behind `from` */
        int64_t o = below + (above - below) / 2;
        resample_range(p, s, o, &low, &high);
        if (high > from) above = o;
        else below = o + 1;
    }
    *first = below;
    above = windows;
    while (below < above) { /* the first one that begins behind `to` */
        int64_t o = below + (above - below) / 2;
        resample_range(p, s, o, &low, &high);
        if (low > to) above = o;
        else below = o + 1;
    }
    *last = below;
}

/* The windows first .. last-1 along s in which pixel k of the image, or padding that stands for it,
 * counts. */
WD_FN void resample_over(const struct wd_resample_attr *p, int s, int64_t image, int64_t windows,
                         int64_t k, int64_t *first, int64_t *last)
{
    /* of an edge that is repeated, everything behind it as well */
    const int repeats = resample_repeats(p);
    const int64_t from = repeats && k == 0 ? -(INT64_MAX / 2) : k;
    const int64_t to = repeats && k == image - 1 ? INT64_MAX / 2 : k;
    resample_windows_over(p, s, windows, from, to, first, last);
}

#endif
