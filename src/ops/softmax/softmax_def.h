/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of softmax. Over each row of x (the channels of a position, or an instance), with m
 * its largest element,
 *
 *     FAST, ACCURATE   y = exp(x - m) / sum exp(x - m)
 *     LOG              y = (x - m) - log(sum exp(x - m))
 *     y = alpha * y + beta * y_before
 *
 * and from the forward output y and its gradient dy
 *
 *     FAST, ACCURATE   dx = y * (dy - sum y * dy)
 *     LOG              dx = dy - exp(y) * sum dy
 *
 * m cancels out: it is there so that exp does not overflow. FAST is allowed to do without it; here it
 * does not, for a wrong result is not worth the saving. Minus infinity is a probability of 0; a row
 * of nothing else, or with a NaN or plus infinity in it, is NaN throughout, as the formula says.
 *
 * Two ways to the same result: softmax_rows and softmax_gradient_rows do a row an item; for few long
 * rows the reductions softmax_max, softmax_sum and softmax_gradient_sum leave a row's statistics in
 * `stats` for softmax_forward and softmax_backward, an element an item. Either way an element of x,
 * y or dy is read before the element of the output in its place is written, so both run in place. */

WD_FN WD_ACC WD_NAME(softmax_value)(int algorithm, WD_ACC x, WD_ACC max, WD_ACC sum)
{
    if (algorithm == CUDNN_SOFTMAX_LOG) return (x - max) - WD_M(log)(sum);
    return WD_M(exp)(x - max) / sum;
}

/* What the sum of the backward pass adds. */
WD_FN WD_ACC WD_NAME(softmax_term)(int algorithm, WD_ACC y, WD_ACC dy)
{
    return algorithm == CUDNN_SOFTMAX_LOG ? dy : y * dy;
}

WD_FN WD_ACC WD_NAME(softmax_gradient)(int algorithm, WD_ACC y, WD_ACC dy, WD_ACC sum)
{
    if (algorithm == CUDNN_SOFTMAX_LOG) return dy - WD_M(exp)(y) * sum;
    return y * (dy - sum);
}

WD_FN WD_ACC WD_NAME(softmax_load)(const struct softmax_args *a, const struct wd_view *v,
                                   int64_t row, int64_t k)
{
    int64_t at[WD_MAX_RANK];
    softmax_at(a->attr.mode, v, row, k, at);
    return WD_NAME(wd_view_load)(v, wd_view_offset(v, at));
}

WD_FN void WD_NAME(softmax_rows)(const struct softmax_args *a, int64_t row)
{
    const int64_t length = softmax_length(a->attr.mode, a->x.dim, a->x.rank);
    WD_ACC max = -(WD_ACC)INFINITY;
    double sum = 0.0; /* in double: there is no tree here to keep the error of a long row small */
    for (int64_t k = 0; k < length; ++k) {
        WD_ACC x = WD_NAME(softmax_load)(a, &a->x, row, k);
        if (x > max) max = x;
    }
    for (int64_t k = 0; k < length; ++k) {
        sum += (double)WD_M(exp)(WD_NAME(softmax_load)(a, &a->x, row, k) - max);
    }
    for (int64_t k = 0; k < length; ++k) {
        WD_ACC x = WD_NAME(softmax_load)(a, &a->x, row, k);
        int64_t at[WD_MAX_RANK];
        softmax_at(a->attr.mode, &a->y, row, k, at);
        WD_NAME(wd_view_blend)
        (&a->y, wd_view_offset(&a->y, at),
         WD_NAME(softmax_value)(a->attr.algorithm, x, max, (WD_ACC)sum), a->alpha, a->beta);
    }
}

WD_FN void WD_NAME(softmax_gradient_rows)(const struct softmax_args *a, int64_t row)
{
    const int64_t length = softmax_length(a->attr.mode, a->y.dim, a->y.rank);
    double sum = 0.0;
    for (int64_t k = 0; k < length; ++k) {
        sum += (double)WD_NAME(softmax_term)(a->attr.algorithm,
                                             WD_NAME(softmax_load)(a, &a->y, row, k),
                                             WD_NAME(softmax_load)(a, &a->dy, row, k));
    }
    for (int64_t k = 0; k < length; ++k) {
        WD_ACC dx =
            WD_NAME(softmax_gradient)(a->attr.algorithm, WD_NAME(softmax_load)(a, &a->y, row, k),
                                      WD_NAME(softmax_load)(a, &a->dy, row, k), (WD_ACC)sum);
        int64_t at[WD_MAX_RANK];
        softmax_at(a->attr.mode, &a->dx, row, k, at);
        WD_NAME(wd_view_blend)(&a->dx, wd_view_offset(&a->dx, at), dx, a->alpha, a->beta);
    }
}

struct WD_NAME(softmax_max_state) {
    WD_ACC max;
};

WD_FN void WD_NAME(softmax_max_init)(struct WD_NAME(softmax_max_state) * t)
{
    t->max = -(WD_ACC)INFINITY;
}

WD_FN void WD_NAME(softmax_max_term)(const struct softmax_args *a, int64_t row, int64_t k,
                                     struct WD_NAME(softmax_max_state) * t)
{
    WD_ACC x = WD_NAME(softmax_load)(a, &a->x, row, k);
    if (x > t->max) t->max = x;
}

WD_FN void WD_NAME(softmax_max_combine)(const struct softmax_args *a,
                                        struct WD_NAME(softmax_max_state) * into,
                                        const struct WD_NAME(softmax_max_state) * from)
{
    (void)a;
    if (from->max > into->max) into->max = from->max;
}

WD_FN void WD_NAME(softmax_max_finish)(const struct softmax_args *a, int64_t row,
                                       const struct WD_NAME(softmax_max_state) * t)
{
    a->stats[2 * row] = (double)t->max;
}

struct WD_NAME(softmax_sum_state) {
    WD_ACC sum;
};

WD_FN void WD_NAME(softmax_sum_init)(struct WD_NAME(softmax_sum_state) * t)
{
    t->sum = 0;
}

WD_FN void WD_NAME(softmax_sum_term)(const struct softmax_args *a, int64_t row, int64_t k,
                                     struct WD_NAME(softmax_sum_state) * t)
{
    WD_ACC max = (WD_ACC)a->stats[2 * row];
    t->sum += WD_M(exp)(WD_NAME(softmax_load)(a, &a->x, row, k) - max);
}

WD_FN void WD_NAME(softmax_sum_combine)(const struct softmax_args *a,
                                        struct WD_NAME(softmax_sum_state) * into,
                                        const struct WD_NAME(softmax_sum_state) * from)
{
    (void)a;
    into->sum += from->sum;
}

WD_FN void WD_NAME(softmax_sum_finish)(const struct softmax_args *a, int64_t row,
                                       const struct WD_NAME(softmax_sum_state) * t)
{
    a->stats[2 * row + 1] = (double)t->sum;
}

struct WD_NAME(softmax_gradient_sum_state) {
    WD_ACC sum;
};

WD_FN void WD_NAME(softmax_gradient_sum_init)(struct WD_NAME(softmax_gradient_sum_state) * t)
{
    t->sum = 0;
}

WD_FN void WD_NAME(softmax_gradient_sum_term)(const struct softmax_args *a, int64_t row, int64_t k,
                                              struct WD_NAME(softmax_gradient_sum_state) * t)
{
    t->sum += WD_NAME(softmax_term)(a->attr.algorithm, WD_NAME(softmax_load)(a, &a->y, row, k),
                                    WD_NAME(softmax_load)(a, &a->dy, row, k));
}

WD_FN void WD_NAME(softmax_gradient_sum_combine)(const struct softmax_args *a,
                                                 struct WD_NAME(softmax_gradient_sum_state) * into,
                                                 const struct WD_NAME(softmax_gradient_sum_state) *
                                                     from)
{
    (void)a;
    into->sum += from->sum;
}

WD_FN void WD_NAME(softmax_gradient_sum_finish)(const struct softmax_args *a, int64_t row,
                                                const struct WD_NAME(softmax_gradient_sum_state) *
                                                    t)
{
    a->stats[2 * row] = (double)t->sum;
}

WD_FN void WD_NAME(softmax_forward)(const struct softmax_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK] = {0};
    const double *stats;
    WD_ACC x;
    wd_unravel(a->y.dim, a->y.rank, item, at);
    stats = a->stats + 2 * softmax_row(a->attr.mode, &a->y, at);
    x = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at));
    WD_NAME(wd_view_blend)
    (&a->y, wd_view_offset(&a->y, at),
     WD_NAME(softmax_value)(a->attr.algorithm, x, (WD_ACC)stats[0], (WD_ACC)stats[1]), a->alpha,
     a->beta);
}

WD_FN void WD_NAME(softmax_backward)(const struct softmax_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK] = {0};
    WD_ACC sum;
    WD_ACC y;
    WD_ACC dy;
    wd_unravel(a->dx.dim, a->dx.rank, item, at);
    sum = (WD_ACC)a->stats[2 * softmax_row(a->attr.mode, &a->dx, at)];
    y = WD_NAME(wd_view_load)(&a->y, wd_view_offset(&a->y, at));
    dy = WD_NAME(wd_view_load)(&a->dy, wd_view_offset(&a->dy, at));
    WD_NAME(wd_view_blend)
    (&a->dx, wd_view_offset(&a->dx, at), WD_NAME(softmax_gradient)(a->attr.algorithm, y, dy, sum),
     a->alpha, a->beta);
}
