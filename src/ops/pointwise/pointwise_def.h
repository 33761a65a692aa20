/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of pointwise: for every element of y
 *
 *     y = alpha * mode(alpha1 * x, alpha2 * b, t) + beta * y
 *
 * where x, b and t repeat along dimensions in which they have extent 1. One map pass; an item is an
 * element, or for types below a byte the elements of one byte, in the order of y's memory. In backward modes x is the forward input, b is dy, and t the forward output where the caller
 * has it (sigmoid, tanh, elu use it); sources: the derivative of each forward formula. */

/* x below the lower clip continues with a slope (leaky relu), above the upper clip is flat. A NaN
 * fails every comparison: it becomes the lower clip unless it is to be propagated. */
WD_FN WD_ACC WD_NAME(pw_relu)(const struct wd_pointwise_attr *p, WD_ACC x)
{
    WD_ACC low = (WD_ACC)p->lower_clip;
    WD_ACC high = (WD_ACC)p->upper_clip;
    if (x != x) return p->propagate_nan ? x : low;
    if (!(x > low)) x = p->lower_slope != 0.0 ? low + (WD_ACC)p->lower_slope * (x - low) : low;
    return x > high ? high : x;
}

/* dy where x is between the clips, dy times the slope below, and 0 elsewhere: where nothing passes,
 * a NaN in dy does not either, and a NaN in x lets nothing pass. */
WD_FN WD_ACC WD_NAME(pw_relu_back)(const struct wd_pointwise_attr *p, WD_ACC x, WD_ACC dy)
{
    if (x > (WD_ACC)p->lower_clip) return x > (WD_ACC)p->upper_clip ? (WD_ACC)0 : dy;
    return x == x && p->lower_slope != 0.0 ? (WD_ACC)p->lower_slope * dy : (WD_ACC)0;
}

WD_FN WD_ACC WD_NAME(pw_sigmoid)(WD_ACC x)
{
    /* of a number that is not positive, so that exp does not overflow */
    WD_ACC e = WD_M(exp)(x >= 0 ? -x : x);
    return (x >= 0 ? (WD_ACC)1 : e) / ((WD_ACC)1 + e);
}

WD_FN WD_ACC WD_NAME(pw_softplus)(WD_ACC x)
{
    return (x > 0 ? x : (WD_ACC)0) + WD_M(log1p)(WD_M(exp)(x > 0 ? -x : x));
}

/* The tanh form of gelu: inner = sqrt(2/pi) (x + 0.044715 x^3). */
WD_FN WD_ACC WD_NAME(pw_gelu_inner)(WD_ACC x)
{
    return (WD_ACC)0.79788456080286535588 * (x + (WD_ACC)0.044715 * x * x * x);
}

WD_FN WD_ACC WD_NAME(pw_gelu_tanh_grad)(WD_ACC x)
{
    WD_ACC t = WD_M(tanh)(WD_NAME(pw_gelu_inner)(x));
    WD_ACC inner = (WD_ACC)0.79788456080286535588 * ((WD_ACC)1 + (WD_ACC)0.134145 * x * x);
    if (t * t == (WD_ACC)1) return t > 0 ? (WD_ACC)1 : (WD_ACC)0; /* inner may be infinite there */
    return (WD_ACC)0.5 * ((WD_ACC)1 + t) + (WD_ACC)0.5 * x * ((WD_ACC)1 - t * t) * inner;
}

WD_FN WD_ACC WD_NAME(pw_gelu_grad)(WD_ACC x)
{
    WD_ACC cdf = (WD_ACC)0.5 * ((WD_ACC)1 + WD_M(erf)(x * (WD_ACC)0.70710678118654752440));
    return cdf + x * (WD_ACC)0.39894228040143267794 * WD_M(exp)((WD_ACC)-0.5 * x * x);
}

WD_OUTLINE WD_ACC WD_NAME(pw_forward)(const struct wd_pointwise_attr *p, WD_ACC x)
{
    switch (p->mode) {
    case CUDNN_POINTWISE_RELU_FWD: return WD_NAME(pw_relu)(p, x);
    case CUDNN_POINTWISE_TANH_FWD: return WD_M(tanh)(x);
    case CUDNN_POINTWISE_SIGMOID_FWD: return WD_NAME(pw_sigmoid)(x);
    case CUDNN_POINTWISE_ELU_FWD: return x > 0 ? x : (WD_ACC)p->elu_alpha * WD_M(expm1)(x);
    case CUDNN_POINTWISE_GELU_FWD:
        return (WD_ACC)0.5 * x * ((WD_ACC)1 + WD_M(erf)(x * (WD_ACC)0.70710678118654752440));
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
        return (WD_ACC)0.5 * x * ((WD_ACC)1 + WD_M(tanh)(WD_NAME(pw_gelu_inner)(x)));
    case CUDNN_POINTWISE_SOFTPLUS_FWD: {
        WD_ACC beta = (WD_ACC)p->softplus_beta;
        return WD_NAME(pw_softplus)(beta * x) / beta;
    }
    default: return x * WD_NAME(pw_sigmoid)((WD_ACC)p->swish_beta * x); /* swish */
    }
}

/* d mode / d x at x; y is the forward output where has_y. */
WD_OUTLINE WD_ACC WD_NAME(pw_gradient)(const struct wd_pointwise_attr *p, WD_ACC x, int has_y,
                                       WD_ACC y)
{
    switch (p->mode) {
    case CUDNN_POINTWISE_RELU_BWD: return WD_NAME(pw_relu_back)(p, x, (WD_ACC)1);
    case CUDNN_POINTWISE_TANH_BWD: {
        WD_ACC t = has_y ? y : WD_M(tanh)(x);
        return (WD_ACC)1 - t * t;
    }
    case CUDNN_POINTWISE_SIGMOID_BWD: {
        WD_ACC s = has_y ? y : WD_NAME(pw_sigmoid)(x);
        return s * ((WD_ACC)1 - s);
    }
    case CUDNN_POINTWISE_ELU_BWD:
        if (has_y) return y >= 0 ? (WD_ACC)1 : y + (WD_ACC)p->elu_alpha;
        return x > 0 ? (WD_ACC)1 : (WD_ACC)p->elu_alpha * WD_M(exp)(x);
    case CUDNN_POINTWISE_GELU_BWD: return WD_NAME(pw_gelu_grad)(x);
    case CUDNN_POINTWISE_GELU_APPROX_TANH_BWD: return WD_NAME(pw_gelu_tanh_grad)(x);
    case CUDNN_POINTWISE_SOFTPLUS_BWD: return WD_NAME(pw_sigmoid)((WD_ACC)p->softplus_beta * x);
    default: { /* swish */
        WD_ACC beta = (WD_ACC)p->swish_beta;
        WD_ACC s = WD_NAME(pw_sigmoid)(beta * x);
        return s + beta * x * s * ((WD_ACC)1 - s);
    }
    }
}

/* The smaller or larger of two; a NaN wins where it is to be propagated and loses where not. */
WD_FN WD_ACC WD_NAME(pw_extreme)(WD_ACC x, WD_ACC b, int want_max, int propagate_nan)
{
    if (x != x) return propagate_nan ? x : b;
    if (b != b) return propagate_nan ? b : x;
    return (x > b) == (want_max != 0) ? x : b;
}

WD_OUTLINE WD_ACC WD_NAME(pw_binary)(const struct wd_pointwise_attr *p, WD_ACC x, WD_ACC b)
{
    switch (p->mode) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_ADD_SQUARE: return x + b * b;
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_MAX: return WD_NAME(pw_extreme)(x, b, 1, p->propagate_nan);
    case CUDNN_POINTWISE_MIN: return WD_NAME(pw_extreme)(x, b, 0, p->propagate_nan);
    case CUDNN_POINTWISE_MOD: return WD_M(fmod)(x, b);
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_POW: return WD_M(pow)(x, b);
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_ATAN2: return WD_M(atan2)(x, b);
    case CUDNN_POINTWISE_CMP_EQ: return (WD_ACC)(x == b);
    case CUDNN_POINTWISE_CMP_NEQ: return (WD_ACC)(x != b);
    case CUDNN_POINTWISE_CMP_GT: return (WD_ACC)(x > b);
    case CUDNN_POINTWISE_CMP_GE: return (WD_ACC)(x >= b);
    case CUDNN_POINTWISE_CMP_LT: return (WD_ACC)(x < b);
    case CUDNN_POINTWISE_CMP_LE: return (WD_ACC)(x <= b);
    case CUDNN_POINTWISE_LOGICAL_AND: return (WD_ACC)(x != 0 && b != 0);
    default: return (WD_ACC)(x != 0 || b != 0); /* LOGICAL_OR */
    }
}

WD_OUTLINE WD_ACC WD_NAME(pw_unary)(const struct wd_pointwise_attr *p, WD_ACC x)
{
    switch (p->mode) {
    case CUDNN_POINTWISE_ABS: return WD_M(fabs)(x);
    case CUDNN_POINTWISE_CEIL: return WD_M(ceil)(x);
    case CUDNN_POINTWISE_COS: return WD_M(cos)(x);
    case CUDNN_POINTWISE_EXP: return WD_M(exp)(x);
    case CUDNN_POINTWISE_FLOOR: return WD_M(floor)(x);
    case CUDNN_POINTWISE_LOG: return WD_M(log)(x);
    case CUDNN_POINTWISE_NEG: return -x;
    case CUDNN_POINTWISE_RSQRT: return (WD_ACC)1 / WD_M(sqrt)(x);
    case CUDNN_POINTWISE_SIN: return WD_M(sin)(x);
    case CUDNN_POINTWISE_SQRT: return WD_M(sqrt)(x);
    case CUDNN_POINTWISE_TAN: return WD_M(tan)(x);
    case CUDNN_POINTWISE_ERF: return WD_M(erf)(x);
    case CUDNN_POINTWISE_RECIPROCAL: return (WD_ACC)1 / x;
    case CUDNN_POINTWISE_LOGICAL_NOT: return (WD_ACC)(x == 0);
    case WD_POINTWISE_ONE_MINUS: return (WD_ACC)1 - x;
    default: return x; /* IDENTITY */
    }
}

/* mode(x, b, t), x and b already times their factors; `has_t` says whether a backward mode has the
 * forward output in t. Every mode but GEN_INDEX. */
WD_OUTLINE WD_ACC WD_NAME(pw_value)(const struct wd_pointwise_attr *p, WD_ACC x, WD_ACC b, WD_ACC t,
                                    int has_t)
{
    if (p->mode == CUDNN_POINTWISE_BINARY_SELECT) return t != 0 ? x : b;
    if (p->mode >= CUDNN_POINTWISE_RELU_FWD && p->mode < CUDNN_POINTWISE_RELU_BWD)
        return WD_NAME(pw_forward)(p, x);
    if (p->mode == CUDNN_POINTWISE_RELU_BWD) return WD_NAME(pw_relu_back)(p, x, b);
    if (p->mode >= CUDNN_POINTWISE_RELU_BWD && p->mode < CUDNN_POINTWISE_CMP_EQ)
        return b * WD_NAME(pw_gradient)(p, x, has_t, t);
    if (wd_pointwise_operands(p->mode) == 2) return WD_NAME(pw_binary)(p, x, b);
    return WD_NAME(pw_unary)(p, x);
}

WD_FN void WD_NAME(pw_element)(const struct pointwise_args *a, const int64_t *at)
{
    const struct wd_pointwise_attr *p = &a->attr;
    WD_ACC x;
    WD_ACC b;
    WD_ACC t;
    WD_ACC value;
    x = (WD_ACC)a->alpha1 * WD_NAME(wd_view_load)(&a->x, wd_view_broadcast_offset(&a->x, at));
    b = (WD_ACC)a->alpha2 * WD_NAME(wd_view_load)(&a->b, wd_view_broadcast_offset(&a->b, at));
    t = WD_NAME(wd_view_load)(&a->t, wd_view_broadcast_offset(&a->t, at));
    if (p->mode == CUDNN_POINTWISE_GEN_INDEX) value = (WD_ACC)at[p->axis];
    else value = WD_NAME(pw_value)(p, x, b, t, a->has_t);
    WD_NAME(wd_view_blend)(&a->y, wd_view_offset(&a->y, at), value, a->alpha, a->beta);
}

WD_FN void WD_NAME(pointwise)(const struct pointwise_args *a, int64_t item)
{
    int64_t count = wd_view_count(&a->y);
    int64_t at[WD_MAX_RANK];
    for (int64_t i = item * a->per_item; i < (item + 1) * a->per_item && i < count; ++i) {
        wd_unravel_along(a->order, a->y.dim, a->y.rank, i, at);
        WD_NAME(pw_element)(a, at);
    }
}
