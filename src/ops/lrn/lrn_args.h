/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the passes of local response and divisive normalization, shared by host and device,
 * and the geometry of their windows, which needs no accumulator. */
#ifndef WD_OPS_LRN_ARGS_H
#define WD_OPS_LRN_ARGS_H

#include "base/view.h"
#include "graph/attr.h"

struct lrn_args {
    struct wd_view x;
    struct wd_view y; /* forward: the output; backward: its gradient dy */
    struct wd_view dx;
    double alpha;
    double beta;
    struct wd_lrn_attr attr;
};

struct divnorm_args {
    struct wd_view x;
    struct wd_view means; /* without data: 0 */
    struct wd_view y;     /* forward: the output; backward: its gradient dy */
    struct wd_view dx;
    struct wd_view dmeans; /* without data: not wanted */
    void *temp;            /* laid out as x */
    void *temp2;
    double alpha;
    double beta;
    struct wd_lrn_attr attr;
};

/* Along one dimension the window around `at` is low .. high-1, clipped to the extent; `mirrored`: the
 * elements that have `at` in their windows. Of an even window the longer part lies behind. */
WD_FN void lrn_window(const struct wd_lrn_attr *p, int64_t at, int64_t extent, int mirrored,
                      int64_t *low, int64_t *high)
{
    int64_t back = (p->window - 1) / 2;
    int64_t ahead = p->window - 1 - back;
    int64_t first = at - (mirrored ? ahead : back);
    int64_t last = at + (mirrored ? back : ahead);
    *low = first > 0 ? first : 0;
    *high = last < extent ? last + 1 : extent;
}

/* The next point of the box low .. high-1, the last dimension fastest; 0 after the last one. */
WD_FN int lrn_next(int spatial, const int64_t *low, const int64_t *high, int64_t *at)
{
    for (int s = spatial - 1; s >= 0; --s) {
        if (++at[s] < high[s]) return 1;
        at[s] = low[s];
    }
    return 0;
}

#endif
