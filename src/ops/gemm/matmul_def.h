/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of matmul: for every batch entry
 *
 *     c[m, n] = alpha * sum over k of a[m, k] * b[k, n] + beta * c[m, n]
 *
 * The last two dimensions are the matrices', all before them are batches. Where a or b has fewer
 * batch entries than c, each serves a run of neighbours: 1 serves all, H/G entries G (grouped heads). Sizes may be overridden per batch entry: k beyond its override adds
 * nothing, and c beyond m or n holds the padding value. One reduction, an element of c an item. */

struct WD_NAME(matmul_state) {
    WD_ACC sum;
};

WD_FN void WD_NAME(matmul_init)(struct WD_NAME(matmul_state) * s)
{
    s->sum = 0;
}

/* Offset of row, column in the matrix that serves c's batch entry at[]. */
WD_FN int64_t WD_NAME(matmul_offset)(const struct wd_view *v, const struct wd_view *c,
                                     const int64_t *at, int64_t row, int64_t column)
{
    int64_t own[WD_MAX_RANK];
    for (int d = 0; d < c->rank - 2; ++d) own[d] = at[d] / (c->dim[d] / v->dim[d]);
    own[c->rank - 2] = row;
    own[c->rank - 1] = column;
    return wd_view_offset(v, own);
}

/* The override of this batch entry, or `size` where there is none. */
WD_FN int64_t WD_NAME(matmul_size)(const struct matmul_args *a, const struct wd_view *v,
                                   const int64_t *at, int64_t size)
{
    if (v->rank == 0) return size;
    return (int64_t)WD_NAME(wd_view_load)(v, WD_NAME(matmul_offset)(v, &a->c, at, 0, 0));
}

WD_FN void WD_NAME(matmul_term)(const struct matmul_args *a, int64_t item, int64_t k,
                                struct WD_NAME(matmul_state) * s)
{
    int64_t at[WD_MAX_RANK] = {0};
    int64_t left;
    int64_t right;
    wd_unravel(a->c.dim, a->c.rank, item, at);
    if (k >= WD_NAME(matmul_size)(a, &a->k, at, k + 1)) return;
    left = WD_NAME(matmul_offset)(&a->a, &a->c, at, at[a->c.rank - 2], k);
    right = WD_NAME(matmul_offset)(&a->b, &a->c, at, k, at[a->c.rank - 1]);
    s->sum += WD_NAME(wd_view_load)(&a->a, left) * WD_NAME(wd_view_load)(&a->b, right);
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
    int64_t at[WD_MAX_RANK] = {0};
    int64_t row;
    int64_t column;
    int64_t offset;
    wd_unravel(a->c.dim, a->c.rank, item, at);
    row = at[a->c.rank - 2];
    column = at[a->c.rank - 1];
    offset = wd_view_offset(&a->c, at);
    if (row >= WD_NAME(matmul_size)(a, &a->m, at, row + 1) ||
        column >= WD_NAME(matmul_size)(a, &a->n, at, column + 1)) {
        WD_NAME(wd_view_store)(&a->c, offset, (WD_ACC)a->padding);
        return;
    }
    WD_NAME(wd_view_blend)(&a->c, offset, s->sum, a->alpha, a->beta);
}
