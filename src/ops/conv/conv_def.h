/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of convolution, after Dumoulin and Visin, "A guide to convolution arithmetic for
 * deep learning" (2016). With filter k in group g, pixel h(o, t) = stride o - pad + dilation t (t
 * from the far end of the filter in mode CONVOLUTION, as it stands in CROSS_CORRELATION), and
 * pixels outside the image left out:
 *
 *     fprop  y[n,k,o]  = sum over c, t of x[n, gC/G + c, h(o,t)] w[k,c,t]
 *     dgrad  dx[n,c,h] = sum over k of c's group, t of w[k, c - gC/G, t] dy[n,k,o], h(o,t) = h
 *     wgrad  dw[k,c,t] = sum over n, o of x[n, gC/G + c, h(o,t)] dy[n,k,o]
 *     bias   db[k]     = sum over n, o of dy[n,k,o]
 *     fused  y = activation(alpha1 fprop + alpha2 z + b)
 *
 * Each is a reduction whose terms are runs of `chunk` products, so that finding the first place of
 * a run costs little; each output is gathered by one item, so that nothing is added atomically. */
#include "ops/pointwise/pointwise_def.h"

struct WD_NAME(conv_fprop_state) {
    WD_ACC sum;
};
struct WD_NAME(conv_fused_state) {
    WD_ACC sum;
};
struct WD_NAME(conv_dgrad_state) {
    WD_ACC sum;
};
struct WD_NAME(conv_wgrad_state) {
    WD_ACC sum;
};
struct WD_NAME(bias_grad_state) {
    WD_ACC sum;
};

WD_OUTLINE WD_ACC WD_NAME(conv_load_any)(const struct conv_view *v, int64_t offset)
{
    return WD_NAME(wd_load)(v->data, v->dtype, offset);
}

WD_FN WD_ACC WD_NAME(conv_load)(const struct conv_view *v, int64_t offset)
{
    if (v->dtype == CUDNN_DATA_FLOAT) return (WD_ACC)((const float *)v->data)[offset];
    return WD_NAME(conv_load_any)(v, offset);
}

WD_OUTLINE void WD_NAME(conv_store_any)(const struct conv_view *v, int64_t offset, WD_ACC value)
{
    WD_NAME(wd_store)(v->data, v->dtype, offset, value);
}

/* alpha * sum + beta * old, the old value untouched where beta is 0. */
WD_OUTLINE void WD_NAME(conv_store)(const struct conv_args *a, const struct conv_view *v,
                                    int64_t offset, WD_ACC sum)
{
    WD_ACC value = (WD_ACC)a->alpha * sum;
    if (a->wraps) {
        conv_store_int32(a, v, offset, (int64_t)sum);
        return;
    }
    if (a->beta != 0.0) value += (WD_ACC)a->beta * WD_NAME(conv_load)(v, offset);
    WD_NAME(conv_store_any)(v, offset, value);
}

WD_FN int64_t WD_NAME(conv_chunk_end)(const struct conv_args *a, int64_t first)
{
    return first + a->chunk < a->products ? first + a->chunk : a->products;
}

/* Item (n, k, o) of y as its parts. */
WD_FN void WD_NAME(conv_output_item)(const struct conv_args *a, int64_t item, int64_t *n,
                                     int64_t *k, int64_t *out)
{
    conv_point(&item, a->output, out);
    *k = conv_digit(&item, a->groups * a->group_filters);
    *n = item;
}

/* One run of products (c, t) of y's item. */
WD_OUTLINE WD_ACC WD_NAME(conv_fprop_run)(const struct conv_args *a, int64_t item, int64_t term)
{
    int64_t out[CONV_SPATIAL];
    int64_t tap[CONV_SPATIAL];
    int64_t pixel[CONV_SPATIAL];
    int64_t n;
    int64_t k;
    int64_t i = term * a->chunk;
    int64_t end = WD_NAME(conv_chunk_end)(a, i);
    int64_t c = i;
    int64_t first;
    WD_ACC sum = 0;
    WD_NAME(conv_output_item)(a, item, &n, &k, out);
    first = k / a->group_filters * a->group_channels;
    conv_point(&c, a->filter, tap);
    for (; i < end; ++i) {
        if (conv_pixel(a, out, tap, pixel)) {
            sum += WD_NAME(conv_load)(&a->x, conv_offset(&a->x, n, first + c, pixel)) *
                   WD_NAME(conv_load)(&a->w, conv_filter_offset(a, k, c, tap));
        }
        c += conv_next(a->filter, tap);
    }
    return sum;
}

WD_FN void WD_NAME(conv_fprop_init)(struct WD_NAME(conv_fprop_state) * s)
{
    s->sum = 0;
}

WD_FN void WD_NAME(conv_fprop_term)(const struct conv_args *a, int64_t item, int64_t term,
                                    struct WD_NAME(conv_fprop_state) * s)
{
    s->sum += WD_NAME(conv_fprop_run)(a, item, term);
}

WD_FN void WD_NAME(conv_fprop_combine)(const struct conv_args *a,
                                       struct WD_NAME(conv_fprop_state) * into,
                                       const struct WD_NAME(conv_fprop_state) * from)
{
    (void)a;
    into->sum += from->sum;
}

WD_FN void WD_NAME(conv_fprop_finish)(const struct conv_args *a, int64_t item,
                                      const struct WD_NAME(conv_fprop_state) * s)
{
    int64_t out[CONV_SPATIAL];
    int64_t n;
    int64_t k;
    WD_NAME(conv_output_item)(a, item, &n, &k, out);
    WD_NAME(conv_store)(a, &a->y, conv_offset(&a->y, n, k, out), s->sum);
}

WD_FN void WD_NAME(conv_fused_init)(struct WD_NAME(conv_fused_state) * s)
{
    s->sum = 0;
}

WD_FN void WD_NAME(conv_fused_term)(const struct conv_args *a, int64_t item, int64_t term,
                                    struct WD_NAME(conv_fused_state) * s)
{
    s->sum += WD_NAME(conv_fprop_run)(a, item, term);
}

WD_FN void WD_NAME(conv_fused_combine)(const struct conv_args *a,
                                       struct WD_NAME(conv_fused_state) * into,
                                       const struct WD_NAME(conv_fused_state) * from)
{
    (void)a;
    into->sum += from->sum;
}

/* z may be y itself: each element is read before it is written, by the same item. */
WD_FN void WD_NAME(conv_fused_finish)(const struct conv_args *a, int64_t item,
                                      const struct WD_NAME(conv_fused_state) * s)
{
    int64_t out[CONV_SPATIAL];
    int64_t n;
    int64_t k;
    WD_ACC value = (WD_ACC)a->alpha * s->sum;
    WD_NAME(conv_output_item)(a, item, &n, &k, out);
    if (a->has_z) {
        value += (WD_ACC)a->beta * WD_NAME(conv_load)(&a->z, conv_offset(&a->z, n, k, out));
    }
    value += WD_NAME(conv_load)(&a->b, conv_bias_offset(a, k));
    if (a->activation.mode != CUDNN_POINTWISE_IDENTITY) {
        value = WD_NAME(pw_forward)(&a->activation, value);
    }
    WD_NAME(conv_store_any)(&a->y, conv_offset(&a->y, n, k, out), value);
}

WD_FN void WD_NAME(conv_dgrad_init)(struct WD_NAME(conv_dgrad_state) * s)
{
    s->sum = 0;
}

/* One run of products (k, t) of dx's item (n, c, h). */
WD_OUTLINE void WD_NAME(conv_dgrad_term)(const struct conv_args *a, int64_t item, int64_t term,
                                         struct WD_NAME(conv_dgrad_state) * s)
{
    int64_t pixel[CONV_SPATIAL];
    int64_t tap[CONV_SPATIAL];
    int64_t out[CONV_SPATIAL];
    int64_t i = term * a->chunk;
    int64_t end = WD_NAME(conv_chunk_end)(a, i);
    int64_t k = i;
    int64_t c;
    WD_ACC sum = 0;
    conv_point(&item, a->image, pixel);
    c = conv_digit(&item, a->group_channels);
    conv_point(&k, a->filter, tap);
    k += conv_digit(&item, a->groups) * a->group_filters;
    for (; i < end; ++i) {
        if (conv_seen_from(a, pixel, tap, out)) {
            sum += WD_NAME(conv_load)(&a->w, conv_filter_offset(a, k, c, tap)) *
                   WD_NAME(conv_load)(&a->y, conv_offset(&a->y, item, k, out));
        }
        k += conv_next(a->filter, tap);
    }
    s->sum += sum;
}

WD_FN void WD_NAME(conv_dgrad_combine)(const struct conv_args *a,
                                       struct WD_NAME(conv_dgrad_state) * into,
                                       const struct WD_NAME(conv_dgrad_state) * from)
{
    (void)a;
    into->sum += from->sum;
}

WD_FN void WD_NAME(conv_dgrad_finish)(const struct conv_args *a, int64_t item,
                                      const struct WD_NAME(conv_dgrad_state) * s)
{
    int64_t pixel[CONV_SPATIAL];
    int64_t c;
    conv_point(&item, a->image, pixel);
    c = conv_digit(&item, a->groups * a->group_channels);
    WD_NAME(conv_store)(a, &a->x, conv_offset(&a->x, item, c, pixel), s->sum);
}

WD_FN void WD_NAME(conv_wgrad_init)(struct WD_NAME(conv_wgrad_state) * s)
{
    s->sum = 0;
}

/* One run of products (n, o) of dw's item (k, c, t). */
WD_OUTLINE void WD_NAME(conv_wgrad_term)(const struct conv_args *a, int64_t item, int64_t term,
                                         struct WD_NAME(conv_wgrad_state) * s)
{
    int64_t tap[CONV_SPATIAL];
    int64_t out[CONV_SPATIAL];
    int64_t pixel[CONV_SPATIAL];
    int64_t i = term * a->chunk;
    int64_t end = WD_NAME(conv_chunk_end)(a, i);
    int64_t n = i;
    int64_t c;
    WD_ACC sum = 0;
    conv_point(&item, a->filter, tap);
    c = conv_digit(&item, a->group_channels);
    c += item / a->group_filters * a->group_channels;
    conv_point(&n, a->output, out);
    for (; i < end; ++i) {
        if (conv_pixel(a, out, tap, pixel)) {
            sum += WD_NAME(conv_load)(&a->x, conv_offset(&a->x, n, c, pixel)) *
                   WD_NAME(conv_load)(&a->y, conv_offset(&a->y, n, item, out));
        }
        n += conv_next(a->output, out);
    }
    s->sum += sum;
}

WD_FN void WD_NAME(conv_wgrad_combine)(const struct conv_args *a,
                                       struct WD_NAME(conv_wgrad_state) * into,
                                       const struct WD_NAME(conv_wgrad_state) * from)
{
    (void)a;
    into->sum += from->sum;
}

WD_FN void WD_NAME(conv_wgrad_finish)(const struct conv_args *a, int64_t item,
                                      const struct WD_NAME(conv_wgrad_state) * s)
{
    int64_t tap[CONV_SPATIAL];
    int64_t c;
    conv_point(&item, a->filter, tap);
    c = conv_digit(&item, a->group_channels);
    WD_NAME(conv_store)(a, &a->w, conv_offset(&a->w, item, c, tap), s->sum);
}

WD_FN void WD_NAME(bias_grad_init)(struct WD_NAME(bias_grad_state) * s)
{
    s->sum = 0;
}

WD_FN void WD_NAME(bias_grad_term)(const struct conv_args *a, int64_t item, int64_t term,
                                   struct WD_NAME(bias_grad_state) * s)
{
    int64_t out[CONV_SPATIAL];
    int64_t i = term * a->chunk;
    int64_t end = WD_NAME(conv_chunk_end)(a, i);
    int64_t n = i;
    WD_ACC sum = 0;
    conv_point(&n, a->output, out);
    for (; i < end; ++i) {
        sum += WD_NAME(conv_load)(&a->y, conv_offset(&a->y, n, item, out));
        n += conv_next(a->output, out);
    }
    s->sum += sum;
}

WD_FN void WD_NAME(bias_grad_combine)(const struct conv_args *a,
                                      struct WD_NAME(bias_grad_state) * into,
                                      const struct WD_NAME(bias_grad_state) * from)
{
    (void)a;
    into->sum += from->sum;
}

WD_FN void WD_NAME(bias_grad_finish)(const struct conv_args *a, int64_t item,
                                     const struct WD_NAME(bias_grad_state) * s)
{
    WD_NAME(conv_store)(a, &a->b, conv_bias_offset(a, item), s->sum);
}

/* One element of the matrix whose row is (c, t) and whose column is (n, o); 0 in the padding. */
WD_FN void WD_NAME(im2col)(const struct conv_args *a, int64_t item)
{
    int64_t tap[CONV_SPATIAL];
    int64_t out[CONV_SPATIAL];
    int64_t pixel[CONV_SPATIAL];
    int64_t i = item;
    int64_t n;
    WD_ACC value = 0;
    conv_point(&i, a->output, out);
    n = conv_digit(&i, a->batch);
    conv_point(&i, a->filter, tap);
    if (conv_pixel(a, out, tap, pixel)) {
        value = WD_NAME(conv_load)(&a->x, conv_offset(&a->x, n, i, pixel));
    }
    WD_NAME(conv_store_any)(&a->y, item, value);
}
