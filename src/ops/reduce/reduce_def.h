/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of reduce: for every element of y, over the n elements of x that fall on it,
 *
 *     y = alpha * r + beta * y
 *
 *     ADD sum x           AVG   sum x / n     NORM1 sum |x|     NORM2 sqrt(sum x^2)
 *     MUL product of x    MUL_NO_ZEROS  product of those that are not 0
 *     MIN, MAX            AMAX  max |x|
 *
 * and for the last three the index of the first element that has the value, counted along the
 * reduced dimensions, the last one fastest. Where NaN is to be propagated, MIN, MAX and AMAX give
 * NaN as soon as there is one, at the first of them; else NaN only where there is nothing else. */

struct WD_NAME(reduce_state) {
    WD_ACC value;
    int64_t index; /* of value, or of any term seen; -1: none yet */
};

WD_FN void WD_NAME(reduce_init)(struct WD_NAME(reduce_state) * s)
{
    s->value = (WD_ACC)0;
    s->index = -1;
}

/* Whether value v at index i takes the place of s, for MIN, MAX and AMAX. */
WD_FN int WD_NAME(reduce_wins)(const struct reduce_args *a, const struct WD_NAME(reduce_state) * s,
                               WD_ACC v, int64_t i)
{
    int s_nan = s->value != s->value;
    int v_nan = v != v;
    if (s_nan && v_nan) return i < s->index;
    if (s_nan) return !a->attr.propagate_nan;
    if (v_nan) return a->attr.propagate_nan;
    if (v == s->value) return i < s->index;
    return a->attr.op == CUDNN_REDUCE_TENSOR_MIN ? v < s->value : v > s->value;
}

/* Takes up a value, or what another state has made of several. */
WD_FN void WD_NAME(reduce_take)(const struct reduce_args *a, struct WD_NAME(reduce_state) * s,
                                WD_ACC v, int64_t i)
{
    if (s->index < 0) {
        s->value = v;
        s->index = i;
        return;
    }
    switch (a->attr.op) {
    case CUDNN_REDUCE_TENSOR_MUL:
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: s->value *= v; return;
    case CUDNN_REDUCE_TENSOR_MIN:
    case CUDNN_REDUCE_TENSOR_MAX:
    case CUDNN_REDUCE_TENSOR_AMAX:
        if (WD_NAME(reduce_wins)(a, s, v, i)) {
            s->value = v;
            s->index = i;
        }
        return;
    default: s->value += v; return;
    }
}

WD_FN void WD_NAME(reduce_term)(const struct reduce_args *a, int64_t item, int64_t term,
                                struct WD_NAME(reduce_state) * s)
{
    int64_t at[WD_MAX_RANK];
    int64_t rest = term;
    WD_ACC v;
    wd_unravel(a->y.dim, a->y.rank, item, at);
    for (int i = a->axes - 1; i >= 0; --i) {
        at[a->axis[i]] = rest % a->x.dim[a->axis[i]];
        rest /= a->x.dim[a->axis[i]];
    }
    v = WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at));
    switch (a->attr.op) {
    case CUDNN_REDUCE_TENSOR_AMAX:
    case CUDNN_REDUCE_TENSOR_NORM1: v = WD_M(fabs)(v); break;
    case CUDNN_REDUCE_TENSOR_NORM2: v *= v; break;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
        if (v == 0) v = (WD_ACC)1;
        break;
    default: break;
    }
    WD_NAME(reduce_take)(a, s, v, term);
}

WD_FN void WD_NAME(reduce_combine)(const struct reduce_args *a, struct WD_NAME(reduce_state) * into,
                                   const struct WD_NAME(reduce_state) * from)
{
    if (from->index >= 0) WD_NAME(reduce_take)(a, into, from->value, from->index);
}

WD_FN void WD_NAME(reduce_store_index)(const struct reduce_args *a, int64_t item, int64_t index)
{
    switch (a->attr.index_type) {
    case CUDNN_64BIT_INDICES: ((uint64_t *)a->indices)[item] = (uint64_t)index; return;
    case CUDNN_16BIT_INDICES: ((uint16_t *)a->indices)[item] = (uint16_t)index; return;
    case CUDNN_8BIT_INDICES: ((uint8_t *)a->indices)[item] = (uint8_t)index; return;
    default: ((uint32_t *)a->indices)[item] = (uint32_t)index; return;
    }
}

WD_FN void WD_NAME(reduce_finish)(const struct reduce_args *a, int64_t item,
                                  const struct WD_NAME(reduce_state) * s)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC r = s->value;
    if (a->attr.op == CUDNN_REDUCE_TENSOR_AVG) r /= (WD_ACC)a->terms;
    if (a->attr.op == CUDNN_REDUCE_TENSOR_NORM2) r = WD_M(sqrt)(r);
    wd_unravel(a->y.dim, a->y.rank, item, at);
    WD_NAME(wd_view_blend)(&a->y, wd_view_offset(&a->y, at), r, a->alpha, a->beta);
    if (a->indices) WD_NAME(reduce_store_index)(a, item, s->index);
}
