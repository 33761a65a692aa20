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
 * Pass: transform (item: an element of the destination). */

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
