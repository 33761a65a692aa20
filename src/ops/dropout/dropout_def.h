/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of dropout with probability p. Element i (the logical index, the last dimension
 * fastest, whatever the strides) has a random number r of 32 bits, wd_philox_chance i % 8 of block i / 8
 * of (seed, offset):
 *
 *     kept        where r >= p * 2^32
 *     y  = x / (1 - p) where kept, else 0
 *     dx = dy / (1 - p) where kept, else 0
 *
 * p = 0 keeps everything, p = 1 nothing. The mask is one bit an element in the reserve space; an item
 * is a byte of it, eight elements. A dropped NaN is 0. A state that was never set up makes y NaN, for
 * there is no other way to tell the caller.
 *
 * Passes: dropout_init (a new state), dropout_forward, dropout_advance (one item, after
 * dropout_forward: the next call draws other numbers), dropout_backward. */

WD_FN void WD_NAME(dropout_init)(const struct dropout_args *a, int64_t item)
{
    (void)item;
    wd_random_state_set(a->state, a->seed);
}

WD_FN void WD_NAME(dropout_advance)(const struct dropout_args *a, int64_t item)
{
    (void)item;
    if (wd_random_state_holds(a->state)) a->state->offset += 1;
}

/* y = scale * x where kept, else 0, for one element. */
WD_FN void WD_NAME(dropout_put)(const struct dropout_args *a, int64_t index, int kept)
{
    int64_t at[WD_MAX_RANK];
    WD_ACC value = 0;
    if (kept) {
        wd_unravel(a->x.dim, a->x.rank, index, at);
        value = (WD_ACC)a->scale * WD_NAME(wd_view_load)(&a->x, wd_view_offset(&a->x, at));
    }
    wd_unravel(a->y.dim, a->y.rank, index, at);
    WD_NAME(wd_view_store)(&a->y, wd_view_offset(&a->y, at), value);
}

WD_FN void WD_NAME(dropout_poison)(const struct dropout_args *a, int64_t index)
{
    int64_t at[WD_MAX_RANK];
    wd_unravel(a->y.dim, a->y.rank, index, at);
    WD_NAME(wd_view_store)(&a->y, wd_view_offset(&a->y, at), (WD_ACC)NAN);
}

WD_FN void WD_NAME(dropout_forward)(const struct dropout_args *a, int64_t item)
{
    const int holds = wd_random_state_holds(a->state);
    uint32_t mask = 0;
    uint32_t number[4];
    uint32_t second[4];
    wd_philox(a->state->seed, a->state->offset, (uint64_t)item, number);
    wd_philox(a->state->seed, a->state->offset, (uint64_t)item + WD_PHILOX_SECOND, second);
    for (int i = 0; i < 8 && item * 8 + i < a->count; ++i) {
        const int kept = holds && (uint64_t)wd_philox_chance(number, second, i) >= a->threshold;
        if (kept) mask |= 1u << i;
        if (holds) WD_NAME(dropout_put)(a, item * 8 + i, kept);
        else WD_NAME(dropout_poison)(a, item * 8 + i);
    }
    a->mask[item] = (uint8_t)mask;
}

WD_FN void WD_NAME(dropout_backward)(const struct dropout_args *a, int64_t item)
{
    const uint32_t mask = a->mask[item];
    for (int i = 0; i < 8 && item * 8 + i < a->count; ++i) {
        WD_NAME(dropout_put)(a, item * 8 + i, (int)(mask >> i & 1u));
    }
}
