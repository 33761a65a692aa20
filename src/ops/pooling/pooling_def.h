/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of pooling. Window o of an image covers, along each spatial dimension, the elements
 * o * stride - pad .. o * stride - pad + window - 1 as far as the image reaches; padding itself is
 * never a candidate of a maximum and counts as zeros for an average:
 *
 *     max          y = the largest element of the window
 *     average      y = sum of its elements / n, n being the size of the window (include padding) or
 *                  of its part within the image (exclude padding)
 *     y = alpha * y + beta * y_before
 *
 * backward, in gather form: every dx sums over the windows that cover it, in row-major order,
 *
 *     max          dy where the element is the first of the window's largest in row-major order
 *     average      dy / n
 *
 * NaN: where it is propagated it is larger than any number, the first one wins; where it is not, it
 * is no candidate. A maximum without candidates is the lowest finite value of the type and passes no
 * gradient on; an average over nothing is 0.
 *
 * Passes: pool_forward (item: a window, serial), pool_forward_long (the same as a reduction),
 * pool_argmax and pool_argmax_long (where each window's maximum is), pool_backward (item: an element
 * of dx). */

/* What has been seen of a window: the largest element and its place, -1 before the first candidate;
 * or the sum. */
struct WD_NAME(pool_state) {
    WD_ACC value;
    int64_t place;
};

/* Whether (value, place) beats the largest so far. Holds in any order of the elements. */
WD_FN int WD_NAME(pool_beats)(const struct wd_pool_attr *p, WD_ACC value, int64_t place,
                              const struct WD_NAME(pool_state) * t)
{
    if (value != value && !p->propagate_nan) return 0;
    if (t->place < 0) return 1;
    if (value != value || t->value != t->value) {
        return value != value && (t->value == t->value || place < t->place);
    }
    return value > t->value || (value == t->value && place < t->place);
}

WD_FN void WD_NAME(pool_take)(const struct wd_pool_attr *p, WD_ACC value, int64_t place,
                              struct WD_NAME(pool_state) * t)
{
    if (!pool_is_max(p)) {
        t->value += value;
    } else if (WD_NAME(pool_beats)(p, value, place, t)) {
        t->value = value;
        t->place = place;
    }
}

/* Visits the whole window at `window` (coordinates of y), row by row. Returns how many elements of
 * the image it covers. */
WD_FN int64_t WD_NAME(pool_scan)(const struct pool_args *a, const int64_t *window,
                                 struct WD_NAME(pool_state) * t)
{
    const int spatial = a->attr.spatial;
    const int64_t step = a->x.stride[spatial + 1] * a->x.vect_count;
    int64_t low[WD_MAX_SPATIAL];
    int64_t high[WD_MAX_SPATIAL];
    int64_t at[WD_MAX_RANK];
    int64_t covered = pool_window(&a->attr, a->x.dim + 2, window + 2, low, high);
    t->value = 0;
    t->place = -1;
    if (covered == 0) return 0;
    at[0] = window[0];
    at[1] = window[1];
    for (int s = 0; s < spatial; ++s) at[2 + s] = low[s];
    do {
        int64_t offset = wd_view_offset(&a->x, at);
        int64_t place = pool_place(a->x.dim + 2, spatial, at + 2);
        for (int64_t i = low[spatial - 1]; i < high[spatial - 1]; ++i) {
            WD_NAME(pool_take)(&a->attr, WD_NAME(wd_view_load)(&a->x, offset), place, t);
            offset += step;
            place += 1;
        }
        /* pool_next over the dimensions before the last: the row has been taken */
    } while (pool_next(spatial - 1, low, high, at + 2));
    return covered;
}

/* n of an average. */
WD_FN WD_ACC WD_NAME(pool_divisor)(const struct wd_pool_attr *p, int64_t covered)
{
    WD_ACC n = 1;
    if (p->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING) return (WD_ACC)covered;
    for (int s = 0; s < p->spatial; ++s) n *= (WD_ACC)p->window[s];
    return n;
}

/* The lowest finite value of a type. */
WD_FN WD_ACC WD_NAME(pool_lowest)(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_INT8: return (WD_ACC)-128;
    case CUDNN_DATA_UINT8: return (WD_ACC)0;
    case CUDNN_DATA_INT32: return (WD_ACC)-2147483648.0;
    case CUDNN_DATA_HALF: return (WD_ACC)-65504;
    case CUDNN_DATA_BFLOAT16: return (WD_ACC)-3.38953138925153547590470800371487866880e38;
#if WD_ACC_IS_DOUBLE
    case CUDNN_DATA_DOUBLE: return -DBL_MAX;
#endif
    default: return (WD_ACC)-FLT_MAX;
    }
}

WD_FN void WD_NAME(pool_put)(const struct pool_args *a, const int64_t *window, int64_t covered,
                             const struct WD_NAME(pool_state) * t)
{
    WD_ACC value = t->value;
    if (pool_is_max(&a->attr)) {
        if (t->place < 0) value = WD_NAME(pool_lowest)(a->y.dtype);
    } else {
        value = covered > 0 ? value / WD_NAME(pool_divisor)(&a->attr, covered) : (WD_ACC)0;
    }
    WD_NAME(wd_view_blend)(&a->y, wd_view_offset(&a->y, window), value, a->alpha, a->beta);
}

WD_FN void WD_NAME(pool_forward)(const struct pool_args *a, int64_t item)
{
    struct WD_NAME(pool_state) t;
    int64_t window[WD_MAX_RANK];
    int64_t covered;
    wd_unravel(a->y.dim, a->y.rank, item, window);
    covered = WD_NAME(pool_scan)(a, window, &t);
    WD_NAME(pool_put)(a, window, covered, &t);
}

WD_FN void WD_NAME(pool_argmax)(const struct pool_args *a, int64_t item)
{
    struct WD_NAME(pool_state) t;
    int64_t window[WD_MAX_RANK];
    wd_unravel(a->y.dim, a->y.rank, a->first_window + item, window);
    WD_NAME(pool_scan)(a, window, &t);
    a->argmax[item] = t.place;
}

/* The reductions: term k is the k-th element of a box as large as the largest part of a window that
 * lies in the image, put where this window's part begins; beyond its end there is nothing. */
WD_FN void WD_NAME(pool_term)(const struct pool_args *a, const int64_t *window, int64_t term,
                              struct WD_NAME(pool_state) * t)
{
    const int spatial = a->attr.spatial;
    int64_t low[WD_MAX_SPATIAL];
    int64_t high[WD_MAX_SPATIAL];
    int64_t at[WD_MAX_RANK];
    pool_window(&a->attr, a->x.dim + 2, window + 2, low, high);
    at[0] = window[0];
    at[1] = window[1];
    for (int s = spatial - 1; s >= 0; --s) {
        int64_t image = a->x.dim[2 + s];
        int64_t extent = a->attr.window[s] < image ? a->attr.window[s] : image;
        at[2 + s] = low[s] + term % extent;
        term /= extent;
        if (at[2 + s] >= high[s]) return;
    }
    WD_NAME(pool_take)
    (&a->attr, WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at)),
     pool_place(a->x.dim + 2, spatial, at + 2), t);
}

WD_FN void WD_NAME(pool_join)(const struct pool_args *a, struct WD_NAME(pool_state) * into,
                              const struct WD_NAME(pool_state) * from)
{
    if (!pool_is_max(&a->attr)) into->value += from->value;
    else if (from->place >= 0) WD_NAME(pool_take)(&a->attr, from->value, from->place, into);
}

struct WD_NAME(pool_forward_long_state) {
    struct WD_NAME(pool_state) t;
};

WD_FN void WD_NAME(pool_forward_long_init)(struct WD_NAME(pool_forward_long_state) * state)
{
    state->t.value = 0;
    state->t.place = -1;
}

WD_FN void WD_NAME(pool_forward_long_term)(const struct pool_args *a, int64_t item, int64_t term,
                                           struct WD_NAME(pool_forward_long_state) * state)
{
    int64_t window[WD_MAX_RANK];
    wd_unravel(a->y.dim, a->y.rank, item, window);
    WD_NAME(pool_term)(a, window, term, &state->t);
}

WD_FN void WD_NAME(pool_forward_long_combine)(const struct pool_args *a,
                                              struct WD_NAME(pool_forward_long_state) * into,
                                              const struct WD_NAME(pool_forward_long_state) * from)
{
    WD_NAME(pool_join)(a, &into->t, &from->t);
}

WD_FN void WD_NAME(pool_forward_long_finish)(const struct pool_args *a, int64_t item,
                                             const struct WD_NAME(pool_forward_long_state) * state)
{
    int64_t window[WD_MAX_RANK];
    int64_t low[WD_MAX_SPATIAL];
    int64_t high[WD_MAX_SPATIAL];
    wd_unravel(a->y.dim, a->y.rank, item, window);
    WD_NAME(pool_put)
    (a, window, pool_window(&a->attr, a->x.dim + 2, window + 2, low, high), &state->t);
}

struct WD_NAME(pool_argmax_long_state) {
    struct WD_NAME(pool_state) t;
};

WD_FN void WD_NAME(pool_argmax_long_init)(struct WD_NAME(pool_argmax_long_state) * state)
{
    state->t.value = 0;
    state->t.place = -1;
}

WD_FN void WD_NAME(pool_argmax_long_term)(const struct pool_args *a, int64_t item, int64_t term,
                                          struct WD_NAME(pool_argmax_long_state) * state)
{
    int64_t window[WD_MAX_RANK];
    wd_unravel(a->y.dim, a->y.rank, a->first_window + item, window);
    WD_NAME(pool_term)(a, window, term, &state->t);
}

WD_FN void WD_NAME(pool_argmax_long_combine)(const struct pool_args *a,
                                             struct WD_NAME(pool_argmax_long_state) * into,
                                             const struct WD_NAME(pool_argmax_long_state) * from)
{
    WD_NAME(pool_join)(a, &into->t, &from->t);
}

WD_FN void WD_NAME(pool_argmax_long_finish)(const struct pool_args *a, int64_t item,
                                            const struct WD_NAME(pool_argmax_long_state) * state)
{
    a->argmax[item] = state->t.place;
}

/* What window `window` hands to the element at `place`. */
WD_FN WD_ACC WD_NAME(pool_share)(const struct pool_args *a, const int64_t *window, int64_t place)
{
    WD_ACC dy = WD_NAME(wd_view_load)(&a->y, wd_view_offset(&a->y, window));
    int64_t low[WD_MAX_SPATIAL];
    int64_t high[WD_MAX_SPATIAL];
    if (!pool_is_max(&a->attr)) {
        return dy / WD_NAME(pool_divisor)(
                        &a->attr, pool_window(&a->attr, a->dx.dim + 2, window + 2, low, high));
    }
    if (a->argmax) {
        int64_t index = pool_place(a->y.dim, a->y.rank, window) - a->first_window;
        return a->argmax[index] == place ? dy : (WD_ACC)0;
    } else {
        struct WD_NAME(pool_state) t;
        WD_NAME(pool_scan)(a, window, &t);
        return t.place == place ? dy : (WD_ACC)0;
    }
}

WD_FN void WD_NAME(pool_backward)(const struct pool_args *a, int64_t item)
{
    const int spatial = a->attr.spatial;
    int64_t at[WD_MAX_RANK];
    int64_t first[WD_MAX_SPATIAL];
    int64_t last[WD_MAX_SPATIAL];
    int64_t window[WD_MAX_RANK];
    int64_t place;
    WD_ACC sum = 0;
    wd_unravel(a->dx.dim, a->dx.rank, a->first_element + item, at);
    place = pool_place(a->dx.dim + 2, spatial, at + 2);
    if (pool_windows_over(&a->attr, a->y.dim + 2, at + 2, first, last) > 0) {
        window[0] = at[0];
        window[1] = at[1];
        for (int s = 0; s < spatial; ++s) window[2 + s] = first[s];
        do {
            sum += WD_NAME(pool_share)(a, window, place);
        } while (pool_next(spatial, first, last, window + 2));
    }
    WD_NAME(wd_view_blend)(&a->dx, wd_view_offset(&a->dx, at), sum, a->alpha, a->beta);
}
