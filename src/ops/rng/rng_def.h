/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of random tensors. Element i (the logical index, the last dimension fastest,
 * whatever the strides) has the random number r(i) = philox(seed, offset, i) of 32 bits:
 *
 *     Bernoulli   y = 1 where r(i) < probability * 2^32, else 0
 *     uniform     y = low + (high - low) * r(i) / 2^32
 *     normal      y = mean + deviation * sqrt(-2 ln((r(j) + 1) / 2^32)) * cos(2 pi r(j + 1) / 2^32)
 *                 for even i = j, and the sine for odd i = j + 1
 *
 * in double, rounded to the type of y.
 *
 * Pass: rng (item: the four elements of a block of random numbers; or, where elements share a byte,
 * those of a byte of y). */

WD_FN void WD_NAME(rng)(const struct rng_args *a, int64_t item)
{
    const uint64_t seed = rng_integer(a->seed, a->seed_dtype, a->seed_value);
    const uint64_t offset = rng_integer(a->offset, a->offset_dtype, a->offset_value);
    const int64_t count = wd_view_count(&a->y);
    const int shared = wd_dtype_bits(a->y.dtype) < 8;
    int64_t at[WD_MAX_RANK];
    uint32_t number[4];
    if (!shared) wd_philox(seed, offset, (uint64_t)item, number);
    for (int i = 0; i < a->per_item; ++i) {
        int64_t index = item * a->per_item + i;
        int64_t place;
        if (index >= count) return;
        if (shared) { /* y is packed: the place in memory counts, and tells the logical index */
            place = index;
            wd_unravel_along(a->order, a->y.dim, a->y.rank, place, at);
            index = 0;
            for (int d = 0; d < a->y.rank; ++d) index = index * a->y.dim[d] + at[d];
            wd_philox(seed, offset, (uint64_t)(index / 4), number);
        } else {
            wd_unravel(a->y.dim, a->y.rank, index, at);
            place = wd_view_offset(&a->y, at);
        }
        wd_store_f64(a->y.data, a->y.dtype, place, rng_value(&a->attr, number, (int)(index & 3)));
    }
}
