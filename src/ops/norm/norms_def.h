/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of the backend's normalizations (Ba, Kiros and Hinton 2016, arXiv:1607.06450, for
 * layer norm; Ulyanov et al. 2016, arXiv:1607.08022, instance norm; Ioffe and Szegedy 2015, batch
 * norm; Wu and He 2018, arXiv:1803.08494, group norm; Zhang and Sennrich 2019, arXiv:1910.07467, RMS
 * norm) and of batch norm's statistics taken apart. They differ in which N elements share statistics:
 *
 *     mean = sum x / N           var = sum (x - mean)^2 / N     inv_std = 1 / sqrt(var + epsilon)
 *     xhat = (x - mean) inv_std  y = scale xhat + bias
 *     out = (1 - factor) in + factor new, where new is mean or var N / (N - 1)
 *
 * with a mean of 0 in RMS norm. Where scale spreads over x in its own way, backward is
 *
 *     dbias = sum dy             dscale = sum dy xhat            over what shares a parameter
 *     a = sum scale dy           b = sum scale dy xhat           over what shares statistics
 *     dx = inv_std (scale dy - (a + xhat b) / N)                 without a in RMS norm
 *
 * The statistics take two readings of x, as in norm_def.h: sums of x - x[0], then squares around the
 * mean with the correction for its rounding (Chan, Golub and LeVeque 1983), and what the rounding
 * cuts off is kept for y. */

NORMS_CALLED WD_ACC WD_NAME(norms_read)(const struct wd_view *v, int64_t offset)
{
    return WD_NAME(wd_view_load)(v, offset);
}

NORMS_CALLED void WD_NAME(norms_write)(const struct wd_view *v, int64_t offset, WD_ACC value)
{
    WD_NAME(wd_view_store)(v, offset, value);
}

/* Coordinates of element `term` of item `item`. */
WD_FN void WD_NAME(norms_at)(const struct norms_space *s, int64_t item, int64_t term, int64_t *at)
{
    for (int i = s->rank - 1; i >= 0; --i) {
        int d = s->axis[i];
        at[d] = item % s->keep[d] * s->term[d] + term % s->term[d];
        item /= s->keep[d];
        term /= s->term[d];
    }
}

/* Coordinates of an element counted in the order of memory. */
WD_FN void WD_NAME(norms_walk)(const struct norms_space *s, int64_t element, int64_t *at)
{
    for (int i = s->rank - 1; i >= 0; --i) {
        int d = s->axis[i];
        int64_t dim = s->keep[d] * s->term[d];
        at[d] = element % dim;
        element /= dim;
    }
}

WD_FN int64_t WD_NAME(norms_item_of)(const struct norms_space *s, const int64_t *at)
{
    int64_t item = 0;
    for (int i = 0; i < s->rank; ++i) {
        int d = s->axis[i];
        item = item * s->keep[d] + at[d] / s->term[d];
    }
    return item;
}

/* Where the statistics of the item that holds an element lie in a tensor of them. */
WD_FN int64_t WD_NAME(norms_stat_offset)(const struct norms_space *s, const struct wd_view *v,
                                         const int64_t *at)
{
    int64_t own[WD_MAX_RANK];
    for (int d = 0; d < s->rank; ++d) own[d] = at[d] / s->term[d];
    return wd_view_offset(v, own);
}

WD_FN WD_ACC WD_NAME(norms_load)(const struct wd_view *v, const int64_t *at)
{
    return WD_NAME(norms_read)(v, wd_view_offset(v, at));
}

/* A parameter, which repeats along what it does not vary in; 0 where there is none. */
WD_FN WD_ACC WD_NAME(norms_param)(const struct wd_view *v, const int64_t *at)
{
    return WD_NAME(norms_read)(v, wd_view_broadcast_offset(v, at));
}

WD_FN WD_ACC *WD_NAME(norms_state)(void *state, const struct norms_space *s, int which)
{
    return (WD_ACC *)state + which * s->items;
}

WD_FN WD_ACC WD_NAME(norms_element)(const struct norms_stats_args *a, int64_t item, int64_t term)
{
    int64_t at[WD_MAX_RANK];
    WD_NAME(norms_at)(&a->space, item, term, at);
    return WD_NAME(norms_load)(&a->x, at);
}

/* ---- Statistics ---- */

struct WD_NAME(norms_mean_state) {
    WD_ACC sum;
};

WD_FN void WD_NAME(norms_mean_init)(struct WD_NAME(norms_mean_state) * s)
{
    s->sum = (WD_ACC)0;
}

WD_FN void WD_NAME(norms_mean_term)(const struct norms_stats_args *a, int64_t item, int64_t term,
                                    struct WD_NAME(norms_mean_state) * s)
{
    s->sum += WD_NAME(norms_element)(a, item, term) - WD_NAME(norms_element)(a, item, 0);
}

WD_FN void WD_NAME(norms_mean_combine)(const struct norms_stats_args *a,
                                       struct WD_NAME(norms_mean_state) * into,
                                       const struct WD_NAME(norms_mean_state) * from)
{
    (void)a;
    into->sum += from->sum;
}

WD_FN void WD_NAME(norms_mean_finish)(const struct norms_stats_args *a, int64_t item,
                                      const struct WD_NAME(norms_mean_state) * s)
{
    WD_NAME(norms_state)
    (a->state, &a->space, NORMS_MEAN)[item] =
        WD_NAME(norms_element)(a, item, 0) + s->sum / (WD_ACC)a->space.terms;
}

struct WD_NAME(norms_var_state) {
    WD_ACC sum; /* of differences from the rounded mean: not quite zero */
    WD_ACC squares;
};

WD_FN void WD_NAME(norms_var_init)(struct WD_NAME(norms_var_state) * s)
{
    s->sum = (WD_ACC)0;
    s->squares = (WD_ACC)0;
}

WD_FN void WD_NAME(norms_var_term)(const struct norms_stats_args *a, int64_t item, int64_t term,
                                   struct WD_NAME(norms_var_state) * s)
{
    WD_ACC d = WD_NAME(norms_element)(a, item, term) -
               WD_NAME(norms_state)(a->state, &a->space, NORMS_MEAN)[item];
    s->sum += d;
    s->squares += d * d;
}

WD_FN void WD_NAME(norms_var_combine)(const struct norms_stats_args *a,
                                      struct WD_NAME(norms_var_state) * into,
                                      const struct WD_NAME(norms_var_state) * from)
{
    (void)a;
    into->sum += from->sum;
    into->squares += from->squares;
}

/* With factor 1 the old average is not read: it may hold anything. `at` are coordinates in the
 * averages' own dims. */
WD_FN void WD_NAME(norms_average)(const struct wd_view *in, const struct wd_view *out,
                                  const int64_t *at, WD_ACC value, double factor)
{
    WD_ACC result = factor != 0.0 ? (WD_ACC)factor * value : (WD_ACC)0;
    if (factor != 1.0) result += (WD_ACC)(1.0 - factor) * WD_NAME(norms_load)(in, at);
    WD_NAME(norms_write)(out, wd_view_offset(out, at), result);
}

/* Keeps what was found of an item; `squares` around the mean, which is `whole` and `rest`. */
WD_FN void WD_NAME(norms_keep)(const struct norms_stats_args *a, int64_t item, WD_ACC whole,
                               WD_ACC rest, WD_ACC squares)
{
    WD_ACC n = (WD_ACC)a->space.terms;
    WD_ACC inv_std = (WD_ACC)1 / WD_M(sqrt)(squares / n + (WD_ACC)a->epsilon);
    int64_t at[WD_MAX_RANK];
    WD_NAME(norms_state)(a->state, &a->space, NORMS_MEAN)[item] = whole;
    WD_NAME(norms_state)(a->state, &a->space, NORMS_REST)[item] = rest;
    WD_NAME(norms_state)(a->state, &a->space, NORMS_INV_STD)[item] = inv_std;
    WD_NAME(norms_at)(&a->space, item, 0, at);
    for (int d = 0; d < a->space.rank; ++d) at[d] /= a->space.term[d];
    if (a->mean.data) WD_NAME(norms_write)(&a->mean, wd_view_offset(&a->mean, at), whole);
    if (a->inv_std.data) {
        WD_NAME(norms_write)(&a->inv_std, wd_view_offset(&a->inv_std, at), inv_std);
    }
    if (a->out_mean.data) {
        WD_NAME(norms_average)(&a->in_mean, &a->out_mean, at, whole, a->factor);
    }
    if (a->out_var.data) {
        /* the unbiased estimate; of one element there is none, and its variance is 0 */
        WD_NAME(norms_average)
        (&a->in_var, &a->out_var, at, squares / (a->space.terms > 1 ? n - (WD_ACC)1 : n),
         a->factor);
    }
}

WD_FN void WD_NAME(norms_var_finish)(const struct norms_stats_args *a, int64_t item,
                                     const struct WD_NAME(norms_var_state) * s)
{
    WD_ACC mean = WD_NAME(norms_state)(a->state, &a->space, NORMS_MEAN)[item];
    WD_ACC rest = s->sum / (WD_ACC)a->space.terms;
    WD_ACC squares = s->squares - s->sum * rest;
    WD_ACC whole = mean + rest;
    if (squares < (WD_ACC)0) squares = (WD_ACC)0;
    WD_NAME(norms_keep)(a, item, whole, rest - (whole - mean), squares);
}

struct WD_NAME(norms_square_state) {
    WD_ACC squares;
};

WD_FN void WD_NAME(norms_square_init)(struct WD_NAME(norms_square_state) * s)
{
    s->squares = (WD_ACC)0;
}

WD_FN void WD_NAME(norms_square_term)(const struct norms_stats_args *a, int64_t item, int64_t term,
                                      struct WD_NAME(norms_square_state) * s)
{
    WD_ACC x = WD_NAME(norms_element)(a, item, term);
    s->squares += x * x;
}

WD_FN void WD_NAME(norms_square_combine)(const struct norms_stats_args *a,
                                         struct WD_NAME(norms_square_state) * into,
                                         const struct WD_NAME(norms_square_state) * from)
{
    (void)a;
    into->squares += from->squares;
}

WD_FN void WD_NAME(norms_square_finish)(const struct norms_stats_args *a, int64_t item,
                                        const struct WD_NAME(norms_square_state) * s)
{
    WD_NAME(norms_keep)(a, item, (WD_ACC)0, (WD_ACC)0, s->squares);
}

/* ---- Forward ---- */

/* The inverse deviation that an element is normalized by, and xhat. */
WD_FN WD_ACC WD_NAME(norms_inv_std)(const struct norms_space *s, const void *state,
                                    const struct wd_view *inv_std, int64_t item, const int64_t *at)
{
    if (!state) return WD_NAME(norms_read)(inv_std, WD_NAME(norms_stat_offset)(s, inv_std, at));
    return ((const WD_ACC *)state)[NORMS_INV_STD * s->items + item];
}

WD_FN WD_ACC WD_NAME(norms_xhat)(const struct norms_space *s, const void *state,
                                 const struct wd_view *x, const struct wd_view *mean,
                                 const struct wd_view *inv_std, int64_t item, const int64_t *at)
{
    WD_ACC v = WD_NAME(norms_load)(x, at);
    if (state) {
        const WD_ACC *own = (const WD_ACC *)state + item;
        v = (v - own[NORMS_MEAN * s->items]) - own[NORMS_REST * s->items];
    } else if (mean->data) {
        v -= WD_NAME(norms_read)(mean, WD_NAME(norms_stat_offset)(s, mean, at));
    }
    return v * WD_NAME(norms_inv_std)(s, state, inv_std, item, at);
}

WD_FN void WD_NAME(norms_apply)(const struct norms_apply_args *a, int64_t element)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC xhat;
    WD_NAME(norms_walk)(&a->space, element, at);
    xhat = WD_NAME(norms_xhat)(&a->space, a->state, &a->x, &a->mean, &a->inv_std,
                               WD_NAME(norms_item_of)(&a->space, at), at);
    /* y may lie over x, which has been read */
    WD_NAME(norms_write)
    (&a->y, wd_view_offset(&a->y, at),
     WD_NAME(norms_param)(&a->scale, at) * xhat + WD_NAME(norms_param)(&a->bias, at));
}

/* ---- Backward ---- */

struct WD_NAME(norms_sums_state) {
    WD_ACC sum;
    WD_ACC xhat;
};

WD_FN void WD_NAME(norms_sums_init)(struct WD_NAME(norms_sums_state) * s)
{
    s->sum = (WD_ACC)0;
    s->xhat = (WD_ACC)0;
}

WD_FN void WD_NAME(norms_sums_add)(const struct norms_grad_args *a, int64_t item, const int64_t *at,
                                   WD_ACC g, struct WD_NAME(norms_sums_state) * s)
{
    s->sum += g;
    s->xhat += g * WD_NAME(norms_xhat)(&a->space, a->state, &a->x, &a->mean, &a->inv_std, item, at);
}

WD_FN void WD_NAME(norms_sums_term)(const struct norms_grad_args *a, int64_t item, int64_t term,
                                    struct WD_NAME(norms_sums_state) * s)
{
    int64_t at[WD_MAX_RANK];
    WD_NAME(norms_at)(&a->space, item, term, at);
    WD_NAME(norms_sums_add)
    (a, item, at, WD_NAME(norms_param)(&a->scale, at) * WD_NAME(norms_load)(&a->dy, at), s);
}

WD_FN void WD_NAME(norms_sums_combine)(const struct norms_grad_args *a,
                                       struct WD_NAME(norms_sums_state) * into,
                                       const struct WD_NAME(norms_sums_state) * from)
{
    (void)a;
    into->sum += from->sum;
    into->xhat += from->xhat;
}

WD_FN void WD_NAME(norms_sums_finish)(const struct norms_grad_args *a, int64_t item,
                                      const struct WD_NAME(norms_sums_state) * s)
{
    WD_NAME(norms_state)(a->sums, &a->space, NORMS_SUM)[item] = s->sum;
    WD_NAME(norms_state)(a->sums, &a->space, NORMS_SUM_XHAT)[item] = s->xhat;
}

/* The gradients of the parameters: the same sums without the scale, over what shares one. */
struct WD_NAME(norms_params_state) {
    struct WD_NAME(norms_sums_state) sums;
};

WD_FN void WD_NAME(norms_params_init)(struct WD_NAME(norms_params_state) * s)
{
    WD_NAME(norms_sums_init)(&s->sums);
}

WD_FN void WD_NAME(norms_params_term)(const struct norms_grad_args *a, int64_t item, int64_t term,
                                      struct WD_NAME(norms_params_state) * s)
{
    int64_t at[WD_MAX_RANK];
    WD_NAME(norms_at)(&a->params, item, term, at);
    WD_NAME(norms_sums_add)
    (a, WD_NAME(norms_item_of)(&a->space, at), at, WD_NAME(norms_load)(&a->dy, at), &s->sums);
}

WD_FN void WD_NAME(norms_params_combine)(const struct norms_grad_args *a,
                                         struct WD_NAME(norms_params_state) * into,
                                         const struct WD_NAME(norms_params_state) * from)
{
    WD_NAME(norms_sums_combine)(a, &into->sums, &from->sums);
}

WD_FN void WD_NAME(norms_params_finish)(const struct norms_grad_args *a, int64_t item,
                                        const struct WD_NAME(norms_params_state) * s)
{
    /* a parameter's coordinates are those that its first element has along what it varies in */
    int64_t at[WD_MAX_RANK];
    for (int i = a->params.rank - 1; i >= 0; --i) {
        int d = a->params.axis[i];
        at[d] = item % a->params.keep[d];
        item /= a->params.keep[d];
    }
    if (a->dscale.data) {
        WD_NAME(norms_write)(&a->dscale, wd_view_offset(&a->dscale, at), s->sums.xhat);
    }
    if (a->dbias.data) {
        WD_NAME(norms_write)(&a->dbias, wd_view_offset(&a->dbias, at), s->sums.sum);
    }
}

WD_FN void WD_NAME(norms_grad)(const struct norms_grad_args *a, int64_t element)
{
    const struct norms_space *s = &a->space;
    const WD_ACC *sums = (const WD_ACC *)a->sums;
    int64_t at[WD_MAX_RANK];
    int64_t item;
    WD_ACC common;
    WD_ACC g;
    WD_NAME(norms_walk)(s, element, at);
    item = WD_NAME(norms_item_of)(s, at);
    common = WD_NAME(norms_xhat)(s, a->state, &a->x, &a->mean, &a->inv_std, item, at) *
             sums[NORMS_SUM_XHAT * s->items + item];
    if (a->centered) common += sums[NORMS_SUM * s->items + item];
    g = WD_NAME(norms_param)(&a->scale, at) * WD_NAME(norms_load)(&a->dy, at);
    /* dx may lie over x or dy, which have been read */
    WD_NAME(norms_write)
    (&a->dx, wd_view_offset(&a->dx, at),
     WD_NAME(norms_inv_std)(s, a->state, &a->inv_std, item, at) * (g - common / (WD_ACC)s->terms));
}

#include "ops/norm/norms_apart_def.h"
