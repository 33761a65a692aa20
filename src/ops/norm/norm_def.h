/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of batch normalization (Ioffe and Szegedy 2015, arXiv:1502.03167). For every
 * parameter, over the N elements that share it:
 *
 *     mean = sum x / N           var = sum (x - mean)^2 / N     inv_std = 1 / sqrt(var + epsilon)
 *     xhat = (x - mean) inv_std  v = scale xhat + bias [+ z]    y = alpha act(v) + beta y
 *     running = (1 - factor) running + factor new, where new is mean or var N / (N - 1)
 *
 * and with g = dy act'(v):
 *
 *     dbias = sum g    dscale = sum g xhat    dz = g
 *     dx = scale inv_std (g - (dbias + xhat dscale) / N)
 *
 * The statistics take two readings of x: the mean from sums of x - x[0], so that a common offset
 * costs no digits, then the squares around that mean, with the correction for the mean's own
 * rounding (Chan, Golub and LeVeque 1983). What the rounding of the mean cuts off is kept and used
 * for y. */
#include "ops/pointwise/pointwise_def.h"

/* Coordinates of element `term` of parameter `param`. */
WD_FN void WD_NAME(norm_at)(const struct norm_space *s, int64_t param, int64_t term, int64_t *at)
{
    for (int i = s->param_rank - 1; i >= 0; --i) {
        int64_t dim = s->dim[s->param_axis[i]];
        at[s->param_axis[i]] = param % dim;
        param /= dim;
    }
    for (int i = s->rank - s->param_rank - 1; i >= 0; --i) {
        int64_t dim = s->dim[s->term_axis[i]];
        at[s->term_axis[i]] = term % dim;
        term /= dim;
    }
}

WD_FN int64_t WD_NAME(norm_param_of)(const struct norm_space *s, const int64_t *at)
{
    int64_t param = 0;
    for (int i = 0; i < s->param_rank; ++i) {
        param = param * s->dim[s->param_axis[i]] + at[s->param_axis[i]];
    }
    return param;
}

/* The elements of a range of parameters as one row: in the order of x's strides where the range is
 * all, else with the parameter fastest. Gives coordinates and the parameter within the range. */
WD_FN int64_t WD_NAME(norm_walk)(const struct norm_space *s, int64_t element, int64_t *at)
{
    if (s->count != s->params) {
        int64_t param = element % s->count;
        WD_NAME(norm_at)(s, s->first + param, element / s->count, at);
        return param;
    }
    for (int i = s->rank - 1; i >= 0; --i) {
        at[s->axis[i]] = element % s->dim[s->axis[i]];
        element /= s->dim[s->axis[i]];
    }
    return WD_NAME(norm_param_of)(s, at);
}

/* The element's place in the reserve space. */
WD_FN int64_t WD_NAME(norm_reserve_index)(const struct norm_space *s, const int64_t *at)
{
    int64_t index = 0;
    for (int i = 0; i < s->rank; ++i) index = index * s->dim[s->axis[i]] + at[s->axis[i]];
    return index;
}

WD_FN WD_ACC WD_NAME(norm_param)(const struct wd_view *v, const int64_t *at)
{
    return WD_NAME(wd_view_load)(v, wd_view_broadcast_offset(v, at));
}

WD_FN WD_ACC *WD_NAME(norm_state)(void *state, const struct norm_space *s, int which)
{
    return (WD_ACC *)state + which * s->count;
}

WD_FN WD_ACC WD_NAME(norm_element)(const struct wd_view *x, const struct norm_space *s,
                                   int64_t param, int64_t term)
{
    int64_t at[WD_MAX_RANK];
    WD_NAME(norm_at)(s, s->first + param, term, at);
    return WD_NAME(wd_view_load)(x, wd_view_offset(x, at));
}

/* ---- Statistics ---- */

struct WD_NAME(norm_mean_state) {
    WD_ACC sum;
};

WD_FN void WD_NAME(norm_mean_init)(struct WD_NAME(norm_mean_state) * s)
{
    s->sum = (WD_ACC)0;
}

WD_FN void WD_NAME(norm_mean_term)(const struct norm_stats_args *a, int64_t item, int64_t term,
                                   struct WD_NAME(norm_mean_state) * s)
{
    s->sum += WD_NAME(norm_element)(&a->x, &a->space, item, term) -
              WD_NAME(norm_element)(&a->x, &a->space, item, 0);
}

WD_FN void WD_NAME(norm_mean_combine)(const struct norm_stats_args *a,
                                      struct WD_NAME(norm_mean_state) * into,
                                      const struct WD_NAME(norm_mean_state) * from)
{
    (void)a;
    into->sum += from->sum;
}

WD_FN void WD_NAME(norm_mean_finish)(const struct norm_stats_args *a, int64_t item,
                                     const struct WD_NAME(norm_mean_state) * s)
{
    WD_NAME(norm_state)
    (a->state, &a->space, NORM_MEAN)[item] =
        WD_NAME(norm_element)(&a->x, &a->space, item, 0) + s->sum / (WD_ACC)a->space.terms;
}

struct WD_NAME(norm_var_state) {
    WD_ACC sum; /* of differences from the rounded mean: not quite zero */
    WD_ACC squares;
};

WD_FN void WD_NAME(norm_var_init)(struct WD_NAME(norm_var_state) * s)
{
    s->sum = (WD_ACC)0;
    s->squares = (WD_ACC)0;
}

WD_FN void WD_NAME(norm_var_term)(const struct norm_stats_args *a, int64_t item, int64_t term,
                                  struct WD_NAME(norm_var_state) * s)
{
    WD_ACC d = WD_NAME(norm_element)(&a->x, &a->space, item, term) -
               WD_NAME(norm_state)(a->state, &a->space, NORM_MEAN)[item];
    s->sum += d;
    s->squares += d * d;
}

WD_FN void WD_NAME(norm_var_combine)(const struct norm_stats_args *a,
                                     struct WD_NAME(norm_var_state) * into,
                                     const struct WD_NAME(norm_var_state) * from)
{
    (void)a;
    into->sum += from->sum;
    into->squares += from->squares;
}

/* With factor 1 the old average is not read (a blend with 0): it may hold anything. */
WD_FN void WD_NAME(norm_running)(const struct wd_view *running, int64_t offset, WD_ACC value,
                                 double factor)
{
    WD_NAME(wd_view_blend)(running, offset, value, factor, 1.0 - factor);
}

WD_FN void WD_NAME(norm_var_finish)(const struct norm_stats_args *a, int64_t item,
                                    const struct WD_NAME(norm_var_state) * s)
{
    WD_ACC *mean = WD_NAME(norm_state)(a->state, &a->space, NORM_MEAN);
    WD_ACC n = (WD_ACC)a->space.terms;
    WD_ACC rest = s->sum / n;
    WD_ACC squares = s->squares - s->sum * rest;
    WD_ACC whole = mean[item] + rest;
    WD_ACC inv_std;
    int64_t at[WD_MAX_RANK];
    if (squares < (WD_ACC)0) squares = (WD_ACC)0;
    inv_std = (WD_ACC)1 / WD_M(sqrt)(squares / n + (WD_ACC)a->epsilon);
    rest -= whole - mean[item];
    mean[item] = whole;
    WD_NAME(norm_state)(a->state, &a->space, NORM_REST)[item] = rest;
    WD_NAME(norm_state)(a->state, &a->space, NORM_INV_STD)[item] = inv_std;
    WD_NAME(norm_at)(&a->space, a->space.first + item, 0, at);
    if (a->saved_mean.data) {
        WD_NAME(wd_view_store)(&a->saved_mean, wd_view_broadcast_offset(&a->saved_mean, at), whole);
        WD_NAME(wd_view_store)
        (&a->saved_inv_std, wd_view_broadcast_offset(&a->saved_inv_std, at), inv_std);
    }
    if (a->running_mean.data) {
        WD_NAME(norm_running)
        (&a->running_mean, wd_view_broadcast_offset(&a->running_mean, at), whole, a->factor);
    }
    if (a->running_var.data) {
        /* the unbiased estimate; of one element there is none, and its variance is 0 */
        WD_NAME(norm_running)
        (&a->running_var, wd_view_broadcast_offset(&a->running_var, at),
         squares / (a->space.terms > 1 ? n - (WD_ACC)1 : n), a->factor);
    }
}

/* ---- Forward ---- */

WD_FN WD_ACC WD_NAME(norm_activate)(const struct wd_norm_attr *attr, WD_ACC v)
{
    if (attr->ops == CUDNN_BATCHNORM_OPS_BN) return v;
    if (attr->activation.mode == CUDNN_POINTWISE_IDENTITY) return v;
    return WD_NAME(pw_forward)(&attr->activation, v);
}

WD_FN WD_ACC WD_NAME(norm_derivative)(const struct wd_norm_attr *attr, WD_ACC v)
{
    struct wd_pointwise_attr backward = attr->activation;
    backward.mode += CUDNN_POINTWISE_RELU_BWD - CUDNN_POINTWISE_RELU_FWD;
    return WD_NAME(pw_gradient)(&backward, v, 0, (WD_ACC)0);
}

WD_FN void WD_NAME(norm_infer)(const struct norm_infer_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC inv_std;
    WD_ACC v;
    wd_unravel(a->x.dim, a->x.rank, item, at);
    inv_std = (WD_ACC)1 / WD_M(sqrt)(WD_NAME(norm_param)(&a->var, at) + (WD_ACC)a->attr.epsilon);
    v = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at)) - WD_NAME(norm_param)(&a->mean, at);
    v = WD_NAME(norm_param)(&a->scale, at) * (v * inv_std) + WD_NAME(norm_param)(&a->bias, at);
    if (a->z.data) v += WD_NAME(wd_view_load)(&a->z, wd_view_offset(&a->z, at));
    WD_NAME(wd_view_blend)
    (&a->y, wd_view_offset(&a->y, at), WD_NAME(norm_activate)(&a->attr, v), a->alpha, a->beta);
}

/* One element: returns v, for the reserve space. */
WD_FN WD_ACC WD_NAME(norm_train_element)(const struct norm_train_args *a, int64_t element)
{
    const struct norm_space *s = &a->space;
    int64_t at[WD_MAX_RANK];
    int64_t param = WD_NAME(norm_walk)(s, element, at);
    const WD_ACC *state = (const WD_ACC *)a->state + param;
    WD_ACC v = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at));
    v = (v - state[NORM_MEAN * s->count]) - state[NORM_REST * s->count];
    v = WD_NAME(norm_param)(&a->scale, at) * (v * state[NORM_INV_STD * s->count]) +
        WD_NAME(norm_param)(&a->bias, at);
    if (a->z.data) v += WD_NAME(wd_view_load)(&a->z, wd_view_offset(&a->z, at));
    WD_NAME(wd_view_blend)
    (&a->y, wd_view_offset(&a->y, at), WD_NAME(norm_activate)(&a->attr, v), a->alpha, a->beta);
    return v;
}

/* An item is one element, or the eight that share a byte of the reserve space, which holds elements
 * in the order of the walk: a range that is not all has none. */
WD_FN void WD_NAME(norm_train)(const struct norm_train_args *a, int64_t item)
{
    if (wd_norm_reserve_kind(&a->attr) == WD_RESERVE_BITS) {
        int64_t all = a->space.params * a->space.terms;
        uint32_t bits = 0;
        for (int i = 0; i < 8 && item * 8 + i < all; ++i) {
            WD_ACC v = WD_NAME(norm_train_element)(a, item * 8 + i);
            if (WD_NAME(norm_derivative)(&a->attr, v) != (WD_ACC)0) bits |= 1u << i;
        }
        ((uint8_t *)a->reserve)[item] = (uint8_t)bits;
    } else {
        WD_ACC v = WD_NAME(norm_train_element)(a, item);
        if (a->reserve) ((WD_ACC *)a->reserve)[item] = WD_NAME(norm_derivative)(&a->attr, v);
    }
}

/* ---- Backward ---- */

/* dy through the activation. */
WD_FN WD_ACC WD_NAME(norm_incoming)(const struct norm_grad_args *a, const int64_t *at)
{
    WD_ACC dy = WD_NAME(wd_view_load)(&a->dy, wd_view_offset(&a->dy, at));
    int64_t i;
    if (!a->reserve) return dy;
    i = WD_NAME(norm_reserve_index)(&a->space, at);
    if (wd_norm_reserve_kind(&a->attr) == WD_RESERVE_VALUES) {
        return dy * ((const WD_ACC *)a->reserve)[i];
    }
    return ((const uint8_t *)a->reserve)[i / 8] >> (i % 8) & 1 ? dy : (WD_ACC)0;
}

WD_FN WD_ACC WD_NAME(norm_inv_std)(const struct norm_grad_args *a, int64_t param, const int64_t *at)
{
    if (a->saved) return WD_NAME(norm_param)(&a->saved_inv_std, at);
    return WD_NAME(norm_state)(a->state, &a->space, NORM_INV_STD)[param];
}

WD_FN WD_ACC WD_NAME(norm_xhat)(const struct norm_grad_args *a, int64_t param, const int64_t *at)
{
    WD_ACC x = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at));
    if (a->saved) x -= WD_NAME(norm_param)(&a->saved_mean, at);
    else
        x = (x - WD_NAME(norm_state)(a->state, &a->space, NORM_MEAN)[param]) -
            WD_NAME(norm_state)(a->state, &a->space, NORM_REST)[param];
    return x * WD_NAME(norm_inv_std)(a, param, at);
}

struct WD_NAME(norm_sums_state) {
    WD_ACC dy;
    WD_ACC dy_xhat;
};

WD_FN void WD_NAME(norm_sums_init)(struct WD_NAME(norm_sums_state) * s)
{
    s->dy = (WD_ACC)0;
    s->dy_xhat = (WD_ACC)0;
}

WD_FN void WD_NAME(norm_sums_term)(const struct norm_grad_args *a, int64_t item, int64_t term,
                                   struct WD_NAME(norm_sums_state) * s)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC dy;
    WD_NAME(norm_at)(&a->space, a->space.first + item, term, at);
    dy = WD_NAME(norm_incoming)(a, at);
    s->dy += dy;
    s->dy_xhat += dy * WD_NAME(norm_xhat)(a, item, at);
}

WD_FN void WD_NAME(norm_sums_combine)(const struct norm_grad_args *a,
                                      struct WD_NAME(norm_sums_state) * into,
                                      const struct WD_NAME(norm_sums_state) * from)
{
    (void)a;
    into->dy += from->dy;
    into->dy_xhat += from->dy_xhat;
}

WD_FN void WD_NAME(norm_sums_finish)(const struct norm_grad_args *a, int64_t item,
                                     const struct WD_NAME(norm_sums_state) * s)
{
    int64_t at[WD_MAX_RANK];
    WD_NAME(norm_at)(&a->space, a->space.first + item, 0, at);
    WD_NAME(norm_state)(a->state, &a->space, NORM_SUM_DY)[item] = s->dy;
    WD_NAME(norm_state)(a->state, &a->space, NORM_SUM_DY_XHAT)[item] = s->dy_xhat;
    WD_NAME(wd_view_blend)
    (&a->dscale, wd_view_broadcast_offset(&a->dscale, at), s->dy_xhat, a->alpha_param,
     a->beta_param);
    WD_NAME(wd_view_blend)
    (&a->dbias, wd_view_broadcast_offset(&a->dbias, at), s->dy, a->alpha_param, a->beta_param);
}

WD_FN void WD_NAME(norm_grad)(const struct norm_grad_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK];
    int64_t param = WD_NAME(norm_walk)(&a->space, item, at);
    WD_ACC dy = WD_NAME(norm_incoming)(a, at);
    WD_ACC common = WD_NAME(norm_state)(a->state, &a->space, NORM_SUM_DY)[param] +
                    WD_NAME(norm_xhat)(a, param, at) *
                        WD_NAME(norm_state)(a->state, &a->space, NORM_SUM_DY_XHAT)[param];
    WD_ACC dx = WD_NAME(norm_param)(&a->scale, at) * WD_NAME(norm_inv_std)(a, param, at) *
                (dy - common / (WD_ACC)a->space.terms);
    /* dx may lie over x or dy, dz over dy: all has been read */
    WD_NAME(wd_view_blend)(&a->dx, wd_view_offset(&a->dx, at), dx, a->alpha_data, a->beta_data);
    if (a->dz.data) WD_NAME(wd_view_store)(&a->dz, wd_view_offset(&a->dz, at), dy);
}
