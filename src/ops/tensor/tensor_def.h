/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of transforms of tensors: padding (or cutting), folding of blocks of pixels into
 * channels and back, and conversion of layout and type, in one pass.
 *
 *     dest = alpha * (src where transform_source says, or 0) + beta * dest_before
 *
 * Folding pads first: pixel (h, w) of the padded image, in blocks of (R, S), goes to pixel (h / R,
 * w / S) and to the channels from ((h % R) S + w % S) C on. Unfolding is its inverse, padded last.
 * Channels are padded where they are folded, R S times as many: before the first phase and behind
 * the last one.
 * Blocks that are filled in part are filled up with zeros.
 *
 * Concatenation: y at (.., first + i, ..) is x at (.., i, ..), for each input x in turn, which begins
 * along the axis where the one before it ends. Reshape: the k-th element of y in the order of its
 * memory is the k-th of x in the order of its own.
 *
 * Passes: transform (item: an element of the destination); concat (item: an element of x; or, where
 * several elements share a byte, a byte of y, of which those of x are written), reshape (item: an
 * element of y, or a byte of it). */

WD_FN void WD_NAME(transform)(const struct transform_args *a, int64_t item)
{
    int64_t to[WD_MAX_RANK];
    int64_t from[WD_MAX_RANK];
    WD_ACC value = 0;
    wd_unravel_along(a->order, a->dest.dim, a->dest.rank, item, to);
    if (transform_source(a, to, from)) {
        value = WD_NAME(wd_view_load)(&a->src, wd_view_offset(&a->src, from));
    }
    WD_NAME(wd_view_blend)(&a->dest, wd_view_offset(&a->dest, to), value, a->alpha, a->beta);
}

WD_FN void WD_NAME(concat)(const struct move_args *a, int64_t item)
{
    int64_t at[WD_MAX_RANK];
    if (a->per_item == 1) {
        int64_t from;
        wd_unravel_along(a->order_y, a->x.dim, a->x.rank, item, at);
        from = wd_view_offset(&a->x, at);
        at[a->axis] += a->first;
        move_element(a, from, wd_view_offset(&a->y, at));
        return;
    }
    for (int i = 0; i < a->per_item; ++i) {
        const int64_t to = item * a->per_item + i; /* y is packed: also its offset */
        if (to >= wd_view_count(&a->y)) return;
        wd_unravel_along(a->order_y, a->y.dim, a->y.rank, to, at);
        at[a->axis] -= a->first;
        if (at[a->axis] < 0 || at[a->axis] >= a->x.dim[a->axis]) continue;
        move_element(a, wd_view_offset(&a->x, at), to);
    }
}

WD_FN void WD_NAME(reshape)(const struct move_args *a, int64_t item)
{
    const int64_t count = wd_view_count(&a->y);
    for (int i = 0; i < a->per_item && item * a->per_item + i < count; ++i) {
        const int64_t k = item * a->per_item + i;
        int64_t from[WD_MAX_RANK];
        int64_t to[WD_MAX_RANK];
        wd_unravel_along(a->order_x, a->x.dim, a->x.rank, k, from);
        wd_unravel_along(a->order_y, a->y.dim, a->y.rank, k, to);
        move_element(a, wd_view_offset(&a->x, from), wd_view_offset(&a->y, to));
    }
}
