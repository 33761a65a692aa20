/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of random tensors. Element i (the logical index, the last dimension fastest,
 * whatever the strides) is made of bits of philox(seed, offset): of block i / 8 where it is Bernoulli's
 * or y's elements have at most two bytes, h(i) being its number i % 8 of 16 bits; else of block i / 4,
 * r(i) being its number i % 4 of 32.
 *
 *     Bernoulli   y = 1 where (h(i) * 2^16 + lower bits) < probability * 2^32, else 0
 *     uniform     y = low + (high - low) * (h(i) + 1/2) / 2^16, or (high - low) * r(i) / 2^32
 *     normal      y = mean + deviation * sqrt(-2 ln u) * cos(angle), even i, and the sine, odd i,
 *                 of u from the pair's first number and the angle from its second; of 16 bits a pair are i and
 *                 i + 2 of four, see rng_value
 *
 * rounded to the type of y. rng_args.h and rng_numbers.h say how bits become numbers, bit for bit.
 *
 * Pass: rng (item: the elements of a block of random bits; or, where elements share a byte, those of
 * a byte of y). */

WD_FN void WD_NAME(rng)(const struct rng_args *a, int64_t item)
{
    const uint64_t seed = rng_integer(a->seed, a->seed_dtype, a->seed_value);
    const uint64_t offset = rng_integer(a->offset, a->offset_dtype, a->offset_value);
    const int64_t count = wd_view_count(&a->y);
    const int shared = wd_dtype_bits(a->y.dtype) < 8;
    const int in_block = rng_block_elements(a->how);
    int64_t at[WD_MAX_RANK];
    uint32_t number[4];
    uint32_t second[4];
    for (int i = 0; i < a->per_item; ++i) {
        int64_t index = item * a->per_item + i;
        int64_t place;
        if (index >= count) return;
        if (shared) { /* y is packed: the place in memory counts, and tells the logical index */
            place = index;
            wd_unravel_along(a->order, a->y.dim, a->y.rank, place, at);
            index = 0;
            for (int d = 0; d < a->y.rank; ++d) index = index * a->y.dim[d] + at[d];
        } else {
            wd_unravel(a->y.dim, a->y.rank, index, at);
            place = wd_view_offset(&a->y, at);
        }
        if (shared || i == 0) {
            const uint64_t block = (uint64_t)(index / in_block);
            wd_philox(seed, offset, block, number);
            wd_philox(seed, offset, block + WD_PHILOX_SECOND, second);
        }
        wd_store_f64(a->y.data, a->y.dtype, place,
                     rng_value(a, number, second, (int)(index % in_block)));
    }
}
