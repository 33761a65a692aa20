/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of resampling. Pixel k of a dimension covers k .. k + 1; window o begins at
 * o * stride - pad_before and is `window` long, each of them a fraction. Along every dimension some
 * pixels of the padded image count in window o, with weights:
 *
 *     max, average   those with start <= k < start + window, weight 1
 *     nearest        the one in which the window's centre lies, weight 1
 *     bilinear       those whose middle is less than half of w = max(window, 2) from the centre,
 *                    weight w / 2 - distance: a triangle over the window
 *
 *     max            y = the largest of them, idx = its place in the window, row by row
 *     otherwise      y = sum(weight * value) / sum(weight), weights multiplied over dimensions
 *     y = alpha * y + beta * y_before
 *
 * A pixel of the padding is 0, minus infinity, or the nearest one of the image, as the padding mode
 * says. An average that excludes padding leaves it out of both sums; minus infinity is no candidate
 * of a maximum. Backward, in gather form, every dx collects
 *
 *     max            dy of the windows whose maximum it is
 *     otherwise      dy * weight / sum(weight) of the windows in which it counts
 *
 * and where padding repeats the edge, the shares of the padding that repeats it.
 *
 * NaN: where it is propagated it is larger than any number, the first one wins; where it is not, it
 * is no candidate. A maximum without candidates is minus infinity (the lowest value of an integer),
 * its place 0. An average over nothing is 0.
 *
 * Passes: resample_forward (item: a window, serial), resample_forward_long (the same as a
 * reduction), resample_backward (item: an element of dx). The gradient of a maximum without an index
 * tensor runs one of the first two before, for the places alone. */

/* What has been seen of a window: the largest value and its place, -1 before the first candidate;
 * or the weighted sum. */
struct WD_NAME(resample_state) {
    WD_ACC value;
    int64_t place;
};

/* Whether (value, place) beats the largest so far. Holds in any order of the elements. */
WD_FN int WD_NAME(resample_beats)(const struct wd_resample_attr *p, WD_ACC value, int64_t place,
                                  const struct WD_NAME(resample_state) * t)
{
    if (value != value && !p->propagate_nan) return 0;
    if (t->place < 0) return 1;
    if (value != value || t->value != t->value) {
        return value != value && (t->value == t->value || place < t->place);
    }
    return value > t->value || (value == t->value && place < t->place);
}

WD_FN void WD_NAME(resample_offer)(const struct wd_resample_attr *p, WD_ACC value, int64_t place,
                                   struct WD_NAME(resample_state) * t)
{
    if (!WD_NAME(resample_beats)(p, value, place, t)) return;
    t->value = value;
    t->place = place;
}

/* Takes pixel `at` of the image (spatial coordinates), with all of the padding of the window at
 * `window` that stands for it. */
WD_FN void WD_NAME(resample_take)(const struct resample_args *a, const int64_t *window,
                                  const int64_t *at, struct WD_NAME(resample_state) * t)
{
    const struct wd_resample_attr *p = &a->attr;
    int64_t from[WD_MAX_RANK];
    int64_t place = 0;
    WD_ACC weight = 1;
    WD_ACC value;
    from[0] = window[0];
    from[1] = window[1];
    for (int s = 0; s < p->spatial; ++s) {
        const int64_t o = window[2 + s];
        int64_t low;
        int64_t high;
        int64_t first;
        int64_t last;
        from[2 + s] = at[s];
        resample_range(p, s, o, &low, &high);
        resample_span(p, s, a->x.dim[2 + s], o, at[s], &first, &last);
        place = place * (high - low) + (first - low);
        weight *= (WD_ACC)resample_weights(p, s, o, first, last);
    }
    value = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, from));
    if (p->mode == CUDNN_RESAMPLE_MAXPOOL) WD_NAME(resample_offer)(p, value, place, t);
    else t->value += weight * value;
}

/* Takes the padding that has a value of its own. */
WD_FN void WD_NAME(resample_pad)(const struct resample_args *a, const int64_t *window,
                                 struct WD_NAME(resample_state) * t)
{
    const struct wd_resample_attr *p = &a->attr;
    int64_t low[WD_MAX_SPATIAL];
    int64_t high[WD_MAX_SPATIAL];
    int64_t place;
    if (p->padding == CUDNN_EDGE_VAL_PAD || p->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING) {
        return;
    }
    for (int s = 0; s < p->spatial; ++s) {
        resample_range(p, s, window[2 + s], &low[s], &high[s]);
    }
    place = resample_first_outside(p->spatial, a->x.dim + 2, low, high);
    if (place < 0) return;
    if (p->mode == CUDNN_RESAMPLE_MAXPOOL) {
        if (p->padding == CUDNN_ZERO_PAD) WD_NAME(resample_offer)(p, (WD_ACC)0, place, t);
    } else if (p->padding == CUDNN_NEG_INF_PAD) {
        t->value += (WD_ACC)-INFINITY;
    }
}

/* Visits the whole window at `window`, row by row. */
WD_FN void WD_NAME(resample_scan)(const struct resample_args *a, const int64_t *window,
                                  struct WD_NAME(resample_state) * t)
{
    int64_t low[WD_MAX_SPATIAL];
    int64_t high[WD_MAX_SPATIAL];
    int64_t at[WD_MAX_SPATIAL];
    t->value = 0;
    t->place = -1;
    for (int s = 0; s < a->attr.spatial; ++s) {
        resample_range(&a->attr, s, window[2 + s], &low[s], &high[s]);
        resample_clip(&a->attr, a->x.dim[2 + s], &low[s], &high[s]);
        if (high[s] <= low[s]) return;
        at[s] = low[s];
    }
    do {
        WD_NAME(resample_take)(a, window, at, t);
    } while (resample_next(a->attr.spatial, low, high, at));
}

/* Window `item` has been seen: writes y and idx, or where backward needs it the maximum's place. */
WD_FN void WD_NAME(resample_put)(const struct resample_args *a, int64_t item, const int64_t *window,
                                 const struct WD_NAME(resample_state) * t)
{
    WD_ACC value = t->value;
    if (a->places) {
        a->places[item] = t->place < 0 ? 0 : t->place;
        return;
    }
    if (a->attr.mode == CUDNN_RESAMPLE_MAXPOOL) {
        if (t->place < 0) value = (WD_ACC)-INFINITY;
        if (a->has_idx) {
            wd_store_f64(a->idx.data, a->idx.dtype, wd_view_offset(&a->idx, window),
                         t->place < 0 ? 0.0 : (double)t->place);
        }
    } else {
        WD_ACC norm = 1;
        for (int s = 0; s < a->attr.spatial; ++s) {
            norm *= (WD_ACC)resample_norm(&a->attr, s, a->x.dim[2 + s], window[2 + s]);
        }
        value = norm > 0 ? value / norm : (WD_ACC)0;
    }
    WD_NAME(wd_view_blend)(&a->y, wd_view_offset(&a->y, window), value, a->alpha, a->beta);
}

WD_FN void WD_NAME(resample_forward)(const struct resample_args *a, int64_t item)
{
    struct WD_NAME(resample_state) t;
    int64_t window[WD_MAX_RANK];
    wd_unravel(a->y.dim, a->y.rank, a->first_window + item, window);
    WD_NAME(resample_scan)(a, window, &t);
    WD_NAME(resample_pad)(a, window, &t);
    WD_NAME(resample_put)(a, item, window, &t);
}

/* The reductions: term k is the k-th pixel of a box as large as a window's part of the image can be,
 * put where this window's part begins; beyond its end there is nothing. */
WD_FN void WD_NAME(resample_term)(const struct resample_args *a, const int64_t *window,
                                  int64_t term, struct WD_NAME(resample_state) * t)
{
    int64_t at[WD_MAX_SPATIAL];
    for (int s = a->attr.spatial - 1; s >= 0; --s) {
        const int64_t extent = resample_extent(&a->attr, s, a->x.dim[2 + s]);
        int64_t low;
        int64_t high;
        resample_range(&a->attr, s, window[2 + s], &low, &high);
        resample_clip(&a->attr, a->x.dim[2 + s], &low, &high);
        at[s] = low + term % extent;
        term /= extent;
        if (at[s] >= high) return;
    }
    WD_NAME(resample_take)(a, window, at, t);
}

WD_FN void WD_NAME(resample_join)(const struct resample_args *a,
                                  struct WD_NAME(resample_state) * into,
                                  const struct WD_NAME(resample_state) * from)
{
    if (a->attr.mode != CUDNN_RESAMPLE_MAXPOOL) into->value += from->value;
    else if (from->place >= 0) {
        WD_NAME(resample_offer)(&a->attr, from->value, from->place, into);
    }
}

struct WD_NAME(resample_forward_long_state) {
    struct WD_NAME(resample_state) t;
};

WD_FN void WD_NAME(resample_forward_long_init)(struct WD_NAME(resample_forward_long_state) * state)
{
    state->t.value = 0;
    state->t.place = -1;
}

WD_FN void WD_NAME(resample_forward_long_term)(const struct resample_args *a, int64_t item,
                                               int64_t term,
                                               struct WD_NAME(resample_forward_long_state) * state)
{
    int64_t window[WD_MAX_RANK];
    wd_unravel(a->y.dim, a->y.rank, a->first_window + item, window);
    WD_NAME(resample_term)(a, window, term, &state->t);
}

WD_FN void WD_NAME(resample_forward_long_combine)(
    const struct resample_args *a, struct WD_NAME(resample_forward_long_state) * into,
    const struct WD_NAME(resample_forward_long_state) * from)
{
    WD_NAME(resample_join)(a, &into->t, &from->t);
}

WD_FN void WD_NAME(resample_forward_long_finish)(const struct resample_args *a, int64_t item,
                                                 const struct WD_NAME(resample_forward_long_state) *
                                                     state)
{
    struct WD_NAME(resample_state) t = state->t;
    int64_t window[WD_MAX_RANK];
    wd_unravel(a->y.dim, a->y.rank, a->first_window + item, window);
    WD_NAME(resample_pad)(a, window, &t);
    WD_NAME(resample_put)(a, item, window, &t);
}

/* What the window at `window` hands to the element at `at` of dx. */
WD_FN WD_ACC WD_NAME(resample_share)(const struct resample_args *a, const int64_t *window,
                                     const int64_t *at)
{
    const struct wd_resample_attr *p = &a->attr;
    WD_ACC share = WD_NAME(wd_view_load)(&a->y, wd_view_offset(&a->y, window));
    if (p->mode == CUDNN_RESAMPLE_MAXPOOL) {
        int64_t pixel[WD_MAX_SPATIAL];
        int64_t place;
        if (a->has_idx) {
            place =
                (int64_t)wd_load_f64(a->idx.data, a->idx.dtype, wd_view_offset(&a->idx, window));
        } else {
            int64_t index = 0;
            for (int d = 0; d < a->y.rank; ++d) index = index * a->y.dim[d] + window[d];
            place = a->places[index - a->first_window];
        }
        if (!resample_pixel(p, a->dx.dim + 2, window, place, pixel)) return (WD_ACC)0;
        for (int s = 0; s < p->spatial; ++s) {
            if (pixel[s] != at[2 + s]) return (WD_ACC)0;
        }
        return share;
    }
    for (int s = 0; s < p->spatial; ++s) {
        const int64_t o = window[2 + s];
        int64_t first;
        int64_t last;
        resample_span(p, s, a->dx.dim[2 + s], o, at[2 + s], &first, &last);
        if (last <= first) return (WD_ACC)0;
        share = share * (WD_ACC)resample_weights(p, s, o, first, last) /
                (WD_ACC)resample_norm(p, s, a->dx.dim[2 + s], o);
    }
    return share;
}

WD_FN void WD_NAME(resample_backward)(const struct resample_args *a, int64_t item)
{
    const struct wd_resample_attr *p = &a->attr;
    int64_t at[WD_MAX_RANK];
    int64_t window[WD_MAX_RANK];
    int64_t first[WD_MAX_SPATIAL];
    int64_t last[WD_MAX_SPATIAL];
    int64_t windows = 1;
    WD_ACC sum = 0;
    wd_unravel(a->dx.dim, a->dx.rank, a->first_element + item, at);
    window[0] = at[0];
    window[1] = at[1];
    for (int s = 0; s < p->spatial; ++s) {
        resample_over(p, s, a->dx.dim[2 + s], a->y.dim[2 + s], at[2 + s], &first[s], &last[s]);
        windows *= last[s] > first[s];
        window[2 + s] = first[s];
    }
    if (windows > 0) {
        do {
            sum += WD_NAME(resample_share)(a, window, at);
        } while (resample_next(p->spatial, first, last, window + 2));
    }
    WD_NAME(wd_view_blend)(&a->dx, wd_view_offset(&a->dx, at), sum, a->alpha, a->beta);
}
