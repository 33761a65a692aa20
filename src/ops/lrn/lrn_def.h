/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of local response normalization across channels (Krizhevsky, Sutskever, Hinton,
 * 2012) and of divisive normalization within a channel (after Jarrett, Kavukcuoglu, Ranzato, LeCun,
 * 2009). W(i) is the window of n channels around i, or of n pixels in each of d spatial dimensions,
 * as far as the tensor reaches; from the coefficients A, B, K of the descriptor,
 *
 *     lrn       s_i = K + A / n sum_{j in W(i)} x_j^2                  y_i = x_i s_i^-B
 *     divisive  s_i = K + A / n^d sum_{j in W(i)} (x_j - means_i)^2    y_i = x_i s_i^-B
 *     y = alpha * y + beta * y_before
 *
 * and backward, with c = A / n or A / n^d and the sums over the i whose windows have j in them,
 *
 *     lrn       dx_j = dy_j s_j^-B + x_j sum_i h_i
 *     divisive  dx_j = dy_j s_j^-B + sum_i (x_j - means_i) h_i
 *               dmeans_i = -h_i sum_{j in W(i)} (x_j - means_i)
 *               h_i = -2 B c dy_i x_i s_i^(-B-1)
 *
 * both blended by alpha and beta. What lies outside of the tensor counts as 0.
 *
 * Passes: lrn_forward, lrn_backward, divnorm_forward (item: an element), divnorm_share (item: an
 * element i; h_i goes to the scratch), divnorm_backward (item: an element). */

/* s of LRN at `at`, in channel c. */
WD_FN WD_ACC WD_NAME(lrn_strength)(const struct lrn_args *a, const int64_t *at, int64_t c)
{
    int64_t offset = wd_view_offset(&a->x, at) - at[1] * a->x.stride[1];
    int64_t low, high;
    WD_ACC sum = 0;
    lrn_window(&a->attr, c, a->x.dim[1], 0, &low, &high);
    for (int64_t j = low; j < high; ++j) {
        WD_ACC x = WD_NAME(wd_view_load)(&a->x, offset + j * a->x.stride[1]);
        sum += x * x;
    }
    return (WD_ACC)a->attr.k + (WD_ACC)(a->attr.alpha / a->attr.window) * sum;
}

WD_FN void WD_NAME(lrn_forward)(const struct lrn_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC x, s;
    wd_unravel(a->y.dim, a->y.rank, item, at);
    x = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at));
    s = WD_NAME(lrn_strength)(a, at, at[1]);
    WD_NAME(wd_view_blend)
    (&a->y, wd_view_offset(&a->y, at), x * WD_M(pow)(s, -(WD_ACC)a->attr.beta), a->alpha, a->beta);
}

WD_FN void WD_NAME(lrn_backward)(const struct lrn_args *a, int64_t item)
{
    const WD_ACC exponent = -(WD_ACC)a->attr.beta;
    int64_t at[WD_MAX_RANK];
    int64_t low, high, x_offset, dy_offset;
    WD_ACC x, direct, h = 0;
    wd_unravel(a->dx.dim, a->dx.rank, item, at);
    x_offset = wd_view_offset(&a->x, at) - at[1] * a->x.stride[1];
    dy_offset = wd_view_offset(&a->y, at) - at[1] * a->y.stride[1];
    x = WD_NAME(wd_view_load)(&a->x, x_offset + at[1] * a->x.stride[1]);
    direct = WD_NAME(wd_view_load)(&a->y, dy_offset + at[1] * a->y.stride[1]) *
             WD_M(pow)(WD_NAME(lrn_strength)(a, at, at[1]), exponent);
    lrn_window(&a->attr, at[1], a->x.dim[1], 1, &low, &high);
    for (int64_t i = low; i < high; ++i) {
        WD_ACC s = WD_NAME(lrn_strength)(a, at, i);
        h += WD_NAME(wd_view_load)(&a->y, dy_offset + i * a->y.stride[1]) *
             WD_NAME(wd_view_load)(&a->x, x_offset + i * a->x.stride[1]) *
             WD_M(pow)(s, exponent - 1);
    }
    h *= (WD_ACC)(-2 * a->attr.beta * a->attr.alpha / a->attr.window);
    WD_NAME(wd_view_blend)
    (&a->dx, wd_view_offset(&a->dx, at), direct + x * h, a->alpha, a->beta);
}

/* A / n^d. */
WD_FN WD_ACC WD_NAME(divnorm_factor)(const struct divnorm_args *a)
{
    double factor = a->attr.alpha;
    for (int d = 2; d < a->x.rank; ++d) factor /= a->attr.window;
    return (WD_ACC)factor;
}

/* What the window around `at` deviates from the mean there: the sum, and that of the squares. */
WD_FN WD_ACC WD_NAME(divnorm_deviations)(const struct divnorm_args *a, const int64_t *at,
                                         WD_ACC *squares)
{
    int64_t low[WD_MAX_RANK], high[WD_MAX_RANK], j[WD_MAX_RANK];
    WD_ACC mean = WD_NAME(wd_view_load)(&a->means, wd_view_offset(&a->x, at));
    WD_ACC sum = 0;
    *squares = 0;
    j[0] = at[0];
    j[1] = at[1];
    for (int d = 2; d < a->x.rank; ++d) {
        lrn_window(&a->attr, at[d], a->x.dim[d], 0, low + d, high + d);
        j[d] = low[d];
    }
    do {
        WD_ACC t = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, j)) - mean;
        sum += t;
        *squares += t * t;
    } while (lrn_next(a->x.rank - 2, low + 2, high + 2, j + 2));
    return sum;
}

/* s of a sum of squares. */
WD_FN WD_ACC WD_NAME(divnorm_strength)(const struct divnorm_args *a, WD_ACC squares)
{
    return (WD_ACC)a->attr.k + WD_NAME(divnorm_factor)(a) * squares;
}

WD_FN void WD_NAME(divnorm_forward)(const struct divnorm_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC x, s;
    wd_unravel(a->y.dim, a->y.rank, item, at);
    x = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at));
    WD_NAME(divnorm_deviations)(a, at, &s);
    s = WD_NAME(divnorm_strength)(a, s);
    WD_NAME(wd_view_blend)
    (&a->y, wd_view_offset(&a->y, at), x * WD_M(pow)(s, -(WD_ACC)a->attr.beta), a->alpha, a->beta);
}

/* The scratch holds one number an element, of the accumulator's precision: where its elements have 16
 * bits, the upper half of a float goes to one and the lower half to the other. */
WD_FN void WD_NAME(divnorm_keep)(const struct divnorm_args *a, int64_t offset, WD_ACC value)
{
    if (a->x.dtype == CUDNN_DATA_DOUBLE) {
        ((double *)a->temp)[offset] = (double)value;
    } else if (a->x.dtype == CUDNN_DATA_FLOAT) {
        ((float *)a->temp)[offset] = (float)value;
    } else {
        uint32_t bits = WD_FLOAT_TO_BITS((float)value);
        ((uint16_t *)a->temp)[offset] = (uint16_t)(bits >> 16);
        ((uint16_t *)a->temp2)[offset] = (uint16_t)(bits & 0xffffu);
    }
}

WD_FN WD_ACC WD_NAME(divnorm_kept)(const struct divnorm_args *a, int64_t offset)
{
    if (a->x.dtype == CUDNN_DATA_DOUBLE) return (WD_ACC)((const double *)a->temp)[offset];
    if (a->x.dtype == CUDNN_DATA_FLOAT) return (WD_ACC)((const float *)a->temp)[offset];
    return (WD_ACC)WD_BITS_TO_FLOAT((uint32_t)((const uint16_t *)a->temp)[offset] << 16 |
                                    ((const uint16_t *)a->temp2)[offset]);
}

WD_FN void WD_NAME(divnorm_share)(const struct divnorm_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK];
    int64_t offset;
    WD_ACC share, s;
    wd_unravel(a->x.dim, a->x.rank, item, at);
    WD_NAME(divnorm_deviations)(a, at, &s);
    s = WD_NAME(divnorm_strength)(a, s);
    offset = wd_view_offset(&a->x, at);
    share = WD_NAME(wd_view_load)(&a->y, wd_view_offset(&a->y, at)) *
            WD_NAME(wd_view_load)(&a->x, offset) * WD_M(pow)(s, -(WD_ACC)a->attr.beta - 1);
    WD_NAME(divnorm_keep)
    (a, offset, share * (-2 * (WD_ACC)a->attr.beta * WD_NAME(divnorm_factor)(a)));
}

WD_FN void WD_NAME(divnorm_backward)(const struct divnorm_args *a, int64_t item)
{
    int64_t low[WD_MAX_RANK], high[WD_MAX_RANK], at[WD_MAX_RANK], i[WD_MAX_RANK];
    int64_t offset;
    WD_ACC x, s, deviations, direct, sum = 0;
    wd_unravel(a->x.dim, a->x.rank, item, at);
    offset = wd_view_offset(&a->x, at);
    x = WD_NAME(wd_view_load)(&a->x, offset);
    deviations = WD_NAME(divnorm_deviations)(a, at, &s);
    direct = WD_NAME(wd_view_load)(&a->y, wd_view_offset(&a->y, at)) *
             WD_M(pow)(WD_NAME(divnorm_strength)(a, s), -(WD_ACC)a->attr.beta);
    i[0] = at[0];
    i[1] = at[1];
    for (int d = 2; d < a->x.rank; ++d) {
        lrn_window(&a->attr, at[d], a->x.dim[d], 1, low + d, high + d);
        i[d] = low[d];
    }
    do {
        int64_t seen = wd_view_offset(&a->x, i);
        sum += (x - WD_NAME(wd_view_load)(&a->means, seen)) * WD_NAME(divnorm_kept)(a, seen);
    } while (lrn_next(a->x.rank - 2, low + 2, high + 2, i + 2));
    WD_NAME(wd_view_blend)
    (&a->dx, wd_view_offset(&a->dx, at), direct + sum, a->alpha, a->beta);
    if (a->dmeans.data) {
        WD_NAME(wd_view_blend)
        (&a->dmeans, wd_view_offset(&a->dmeans, at), -deviations * WD_NAME(divnorm_kept)(a, offset),
         a->alpha, a->beta);
    }
}
