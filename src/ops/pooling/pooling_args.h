/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pooling passes, shared by host and device, and the geometry of windows, which
 * needs no accumulator. */
#ifndef WD_OPS_POOLING_ARGS_H
#define WD_OPS_POOLING_ARGS_H

#include <float.h>

#include "base/view.h"
#include "graph/attr.h"

struct pool_args {
    struct wd_view x;  /* forward and maximum: the image */
    struct wd_view y;  /* forward: the output; backward: its gradient dy */
    struct wd_view dx; /* backward: the image's gradient */
    double alpha;
    double beta;
    int64_t first_window;  /* item 0 of a window pass, as a logical index of y */
    int64_t first_element; /* item 0 of an image pass, as a logical index of dx */
    int64_t *argmax;       /* by window from first_window on: its maximum's place, see pool_place */
    struct wd_pool_attr attr;
};

WD_FN int pool_is_max(const struct wd_pool_attr *p)
{
    return p->mode == CUDNN_POOLING_MAX || p->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

/* Where the window at output coordinates `at` lies in the image: low .. high-1 along each spatial
 * dimension. Returns how many elements of the image it covers. */
WD_FN int64_t pool_window(const struct wd_pool_attr *p, const int64_t *image, const int64_t *at,
                          int64_t *low, int64_t *high)
{
    int64_t covered = 1;
    for (int s = 0; s < p->spatial; ++s) {
        int64_t start = at[s] * p->stride[s] - p->pad_before[s];
        int64_t end = start + p->window[s];
        low[s] = start > 0 ? start : 0;
        high[s] = end < image[s] ? end : image[s];
        covered *= high[s] > low[s] ? high[s] - low[s] : 0;
    }
    return covered;
}

/* The windows that cover the image element `at`: first .. last-1 along each spatial dimension. */
WD_FN int64_t pool_windows_over(const struct wd_pool_attr *p, const int64_t *windows,
                                const int64_t *at, int64_t *first, int64_t *last)
{
    int64_t count = 1;
    for (int s = 0; s < p->spatial; ++s) {
        int64_t from = at[s] + p->pad_before[s]; /* within the padded image */
        int64_t before = from - p->window[s];    /* a window from here or earlier ends too soon */
        int64_t end = from < 0 ? 0 : from / p->stride[s] + 1;
        first[s] = before < 0 ? 0 : before / p->stride[s] + 1;
        last[s] = end < windows[s] ? end : windows[s];
        count *= last[s] > first[s] ? last[s] - first[s] : 0;
    }
    return count;
}

/* An element's row-major index in the image: its place. */
WD_FN int64_t pool_place(const int64_t *dim, int spatial, const int64_t *at)
{
    int64_t place = 0;
    for (int s = 0; s < spatial; ++s) place = place * dim[s] + at[s];
    return place;
}

/* The next point of the box low .. high-1, the last dimension fastest; 0 after the last one. */
WD_FN int pool_next(int spatial, const int64_t *low, const int64_t *high, int64_t *at)
{
    for (int s = spatial - 1; s >= 0; --s) {
        if (++at[s] < high[s]) return 1;
        at[s] = low[s];
    }
    return 0;
}

#endif
