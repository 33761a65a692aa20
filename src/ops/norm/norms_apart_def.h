/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of batch norm's statistics taken apart, a part of norms_def.h, which includes it: the sums
 * of a channel, statistics of sums, and the weights of the backward pass
 *
 *     dx = eq_dy_scale dy + eq_x_scale x + eq_bias
 *
 * of which mean, var and inv_std are those of norms_def.h. */

/* GEN_STATS: the sum and the sum of squares of each channel. */
struct WD_NAME(norms_channels_state) {
    WD_ACC sum;
    WD_ACC squares;
};

WD_FN void WD_NAME(norms_channels_init)(struct WD_NAME(norms_channels_state) * s)
{
    s->sum = (WD_ACC)0;
    s->squares = (WD_ACC)0;
}

WD_FN void WD_NAME(norms_channels_term)(const struct norms_channels_args *a, int64_t item,
                                        int64_t term, struct WD_NAME(norms_channels_state) * s)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC x;
    WD_NAME(norms_at)(&a->space, item, term, at);
    x = WD_NAME(norms_load)(&a->x, at);
    s->sum += x;
    s->squares += x * x;
}

WD_FN void WD_NAME(norms_channels_combine)(const struct norms_channels_args *a,
                                           struct WD_NAME(norms_channels_state) * into,
                                           const struct WD_NAME(norms_channels_state) * from)
{
    (void)a;
    into->sum += from->sum;
    into->squares += from->squares;
}

WD_FN void WD_NAME(norms_channels_finish)(const struct norms_channels_args *a, int64_t item,
                                          const struct WD_NAME(norms_channels_state) * s)
{
    int64_t at[WD_MAX_RANK] = {0};
    at[1] = item;
    WD_NAME(norms_write)(&a->sum, wd_view_offset(&a->sum, at), s->sum);
    WD_NAME(norms_write)(&a->sq_sum, wd_view_offset(&a->sq_sum, at), s->squares);
}

/* BN_BWD_WEIGHTS: dscale and dbias, and dx as eq_dy_scale dy + eq_x_scale x + eq_bias. */
struct WD_NAME(norms_weights_state) {
    WD_ACC dy;
    WD_ACC dy_xhat;
};

WD_FN void WD_NAME(norms_weights_init)(struct WD_NAME(norms_weights_state) * s)
{
    s->dy = (WD_ACC)0;
    s->dy_xhat = (WD_ACC)0;
}

WD_FN void WD_NAME(norms_weights_term)(const struct norms_weights_args *a, int64_t item,
                                       int64_t term, struct WD_NAME(norms_weights_state) * s)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC dy;
    WD_NAME(norms_at)(&a->space, item, term, at);
    dy = WD_NAME(norms_load)(&a->dy, at);
    s->dy += dy;
    s->dy_xhat += dy * ((WD_NAME(norms_load)(&a->x, at) - WD_NAME(norms_param)(&a->mean, at)) *
                        WD_NAME(norms_param)(&a->inv_std, at));
}

WD_FN void WD_NAME(norms_weights_combine)(const struct norms_weights_args *a,
                                          struct WD_NAME(norms_weights_state) * into,
                                          const struct WD_NAME(norms_weights_state) * from)
{
    (void)a;
    into->dy += from->dy;
    into->dy_xhat += from->dy_xhat;
}

WD_FN void WD_NAME(norms_store)(const struct wd_view *v, const int64_t *at, WD_ACC value)
{
    if (v->data) WD_NAME(norms_write)(v, wd_view_offset(v, at), value);
}

WD_FN void WD_NAME(norms_weights_finish)(const struct norms_weights_args *a, int64_t item,
                                         const struct WD_NAME(norms_weights_state) * s)
{
    WD_ACC n = (WD_ACC)a->space.terms;
    int64_t at[WD_MAX_RANK] = {0};
    WD_ACC inv_std;
    WD_ACC factor;
    WD_ACC slope;
    at[1] = item;
    inv_std = WD_NAME(norms_load)(&a->inv_std, at);
    factor = WD_NAME(norms_load)(&a->scale, at) * inv_std;
    slope = inv_std * s->dy_xhat / n;
    WD_NAME(norms_store)(&a->dscale, at, s->dy_xhat);
    WD_NAME(norms_store)(&a->dbias, at, s->dy);
    WD_NAME(norms_store)(&a->eq_dy_scale, at, factor);
    WD_NAME(norms_store)(&a->eq_x_scale, at, -factor * slope);
    WD_NAME(norms_store)
    (&a->eq_bias, at, factor * (WD_NAME(norms_load)(&a->mean, at) * slope - s->dy / n));
}

/* BN_FINALIZE: statistics of sums, and y as eq_scale x + eq_bias. Inference takes the averages, which
 * stay as they are. The difference of squares is taken in double by the engine's choice of WD_ACC. */
WD_FN void WD_NAME(norms_finalize)(const struct norms_finalize_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK] = {0};
    WD_ACC mean;
    WD_ACC var;
    WD_ACC inv_std;
    WD_ACC eq_scale;
    wd_unravel(a->scale.dim, a->scale.rank, item, at);
    if (a->training) {
        WD_ACC n = (WD_ACC)a->count;
        mean = WD_NAME(norms_load)(&a->sum, at) / n;
        var = WD_NAME(norms_load)(&a->sq_sum, at) / n - mean * mean;
        if (var < (WD_ACC)0) var = (WD_ACC)0;
        if (a->out_mean.data) {
            WD_NAME(norms_average)(&a->in_mean, &a->out_mean, at, mean, a->factor);
        }
        if (a->out_var.data) {
            WD_NAME(norms_average)
            (&a->in_var, &a->out_var, at, a->count > 1.0 ? var * (n / (n - (WD_ACC)1)) : var,
             a->factor);
        }
    } else {
        mean = WD_NAME(norms_load)(&a->in_mean, at);
        var = WD_NAME(norms_load)(&a->in_var, at);
        WD_NAME(norms_store)(&a->out_mean, at, mean);
        WD_NAME(norms_store)(&a->out_var, at, var);
    }
    inv_std = (WD_ACC)1 / WD_M(sqrt)(var + (WD_ACC)a->epsilon);
    eq_scale = WD_NAME(norms_load)(&a->scale, at) * inv_std;
    WD_NAME(norms_store)(&a->mean, at, mean);
    WD_NAME(norms_store)(&a->inv_std, at, inv_std);
    WD_NAME(norms_store)(&a->eq_scale, at, eq_scale);
    WD_NAME(norms_store)
    (&a->eq_bias, at, WD_NAME(norms_load)(&a->bias, at) - mean * eq_scale);
}
