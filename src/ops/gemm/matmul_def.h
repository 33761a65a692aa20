/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of matmul: for every batch entry
 *
 *     c[m, n] = alpha * sum over k of a[m, k] * b[k, n] + beta * c[m, n]
 *
 * The last two dimensions are the matrices', all before them are batches, in which a and b repeat
 * where their extent is 1. Sizes may be overridden per batch entry: k beyond its override adds
 * nothing, and c beyond m or n holds the padding value. One reduction, an element of c an item. */

struct WD_NAME(matmul_state) {
    WD_ACC sum;
};

WD_FN void WD_NAME(matmul_init)(struct WD_NAME(matmul_state) * s)
{
    s->sum = 0;
}

/* The override of this batch entry, or `size` where there is none. */
WD_FN int64_t WD_NAME(matmul_size)(const struct wd_view *v, const int64_t *at, int64_t size)
{
    if (v->rank == 0) return size;
    return (int64_t)WD_NAME(wd_view_load)(v, wd_view_broadcast_offset(v, at));
}

WD_FN void WD_NAME(matmul_term)(const struct matmul_args *a, int64_t item, int64_t k,
                                struct WD_NAME(matmul_state) * s)
{
    int64_t at[WD_MAX_RANK];
    int rank = a->c.rank;
    int64_t row;
    int64_t column;
    WD_ACC left;
    wd_unravel(a->c.dim, rank, item, at);
    row = at[rank - 2];
    column = at[rank - 1];
    if (a->k.rank > 0) {
        at[rank - 2] = at[rank - 1] = 0;
        if (k >= WD_NAME(matmul_size)(&a->k, at, k + 1)) return;
        at[rank - 2] = row;
    }
    at[rank - 1] = k;
    left = WD_NAME(wd_view_load)(&a->a, wd_view_broadcast_offset(&a->a, at));
    at[rank - 2] = k;
    at[rank - 1] = column;
    s->sum += left * WD_NAME(wd_view_load)(&a->b, wd_view_broadcast_offset(&a->b, at));
}

WD_FN void WD_NAME(matmul_combine)(const struct matmul_args *a, struct WD_NAME(matmul_state) * s,
                                   const struct WD_NAME(matmul_state) * from)
{
    (void)a;
    s->sum += from->sum;
}

WD_FN void WD_NAME(matmul_finish)(const struct matmul_args *a, int64_t item,
                                  const struct WD_NAME(matmul_state) * s)
{
    int64_t at[WD_MAX_RANK];
    int rank = a->c.rank;
    int64_t offset;
    int64_t row;
    int64_t column;
    wd_unravel(a->c.dim, rank, item, at);
    offset = wd_view_offset(&a->c, at);
    row = at[rank - 2];
    column = at[rank - 1];
    at[rank - 2] = at[rank - 1] = 0;
    if (row >= WD_NAME(matmul_size)(&a->m, at, row + 1) ||
        column >= WD_NAME(matmul_size)(&a->n, at, column + 1)) {
        WD_NAME(wd_view_store)(&a->c, offset, (WD_ACC)a->padding);
        return;
    }
    WD_NAME(wd_view_blend)(&a->c, offset, s->sum, a->alpha, a->beta);
}
