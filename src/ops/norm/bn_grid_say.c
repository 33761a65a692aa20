/* SPDX-License-Identifier: Apache-2.0
 *
 * What the arguments of the kernels of bn_grid say of a cut (bn_grid_cut.h). No state. */
#include <math.h>

#include "base/sizes.h"
#include "ops/norm/bn_grid_cut.h"

enum {
    WARP = 32,
    SUM_BYTES = 16, /* of an item of a block */
};

/* Whether a ring that is gone through more than once is shorter than what waits count with. */
static bool too_shallow(const struct wd_bn_grid_cut *c)
{
    int64_t all = wd_ceil_div(c->rounds, BN_GRID_EACH(c->arrays));
    return (c->parts < BN_GRID_AHEAD && c->parts < all) ||
           (c->adds && c->beside < BN_GRID_AHEAD && c->beside < all);
}

/* Threads that join sums: no more than have any, since they meet once for each halving. */
static void say_shares(struct bn_grid_args *a, const struct wd_bn_grid_cut *c)
{
    int64_t shares = c->threads / c->items;
    int64_t rows = wd_least(a->half_warp < WARP ? c->threads / WARP : c->lanes, a->together);
    int64_t each = !c->meets                 ? 1
                   : wd_bn_grid_has_board(c) ? BN_GRID_SEEN(a->members > 0)
                                             : BN_GRID_FETCHED;
    a->few = a->span == 1 && a->copies > 1 && c->items > 1 && c->items <= c->unit;
    a->planes = c->items > 1 && a->copies == 1 && c->span >= c->unit && a->bn.lead == 0;
    a->shares = (uint32_t)wd_least(shares, (int64_t)a->span * a->copies);
    a->column_shares = (uint32_t)wd_least(c->threads / c->width, rows);
    a->readers = (uint32_t)wd_least(shares, wd_ceil_div(c->blocks, each));
}

void wd_bn_grid_say(struct bn_grid_args *a, const struct wd_bn_grid_cut *c)
{
    int64_t runs = c->width / c->unit;
    a->pitch = (uint32_t)(c->pitch / c->unit);
    a->width = c->plane > 1 ? (uint32_t)runs : a->pitch;
    a->jump = c->plane > 1 ? (uint32_t)(a->pitch - c->plane * runs) : 0;
    a->stride = (uint32_t)((c->plane > 1 ? c->space.inner : c->width) / c->unit);
    a->all_rows = (uint32_t)(c->held * c->lanes * c->blocks + c->rows);
    a->units = (uint32_t)(a->all_rows * (c->pitch / c->unit));
    a->clips = a->bn.keeps_nan || a->bn.wide_high < INFINITY;
    a->by_plane = wd_fastdiv_of((uint32_t)c->plane);
    a->rows = (uint32_t)c->rows;
    a->runs = (uint32_t)runs;
    a->lanes = (uint32_t)c->lanes;
    a->blocks = (uint32_t)c->blocks;
    a->held = (uint32_t)c->held;
    a->rounds = (uint32_t)c->rounds;
    a->parts = (uint32_t)c->parts;
    a->stays = c->kept < c->rounds ? (uint32_t)(c->parts - wd_least(c->parts, BN_GRID_AHEAD)) : 0;
    a->beside = (uint32_t)c->beside;
    a->shallow = too_shallow(c);
    a->slots = (uint32_t)c->slots;
    a->round_bytes = (uint32_t)wd_bn_grid_round_bytes(c);
    a->items = (uint32_t)c->items;
    a->span = (uint32_t)c->span;
    a->copies = (uint32_t)(c->width / (c->items * c->span));
    a->together = (uint32_t)wd_most(BN_GRID_AREA / (c->width * SUM_BYTES), 1);
    a->half_warp =
        runs < WARP && (runs & (runs - 1)) == 0 && a->copying == 0 ? (uint32_t)runs : WARP;
    a->shown = (uint32_t)(c->shared - c->items * SUM_BYTES);
    say_shares(a, c);
    a->sample = (uint32_t)(c->space.total / c->unit);
    a->by_blocks = wd_fastdiv_of(a->blocks);
    a->by_members = wd_fastdiv_of(wd_most(a->members, 1));
    a->by_ranges = wd_fastdiv_of((uint32_t)(c->groups / c->samples));
    a->by_runs = wd_fastdiv_of(a->runs);
    a->by_items = wd_fastdiv_of(a->items);
    a->by_columns = wd_fastdiv_of((uint32_t)c->width);
    a->by_span = wd_fastdiv_of(a->span);
    a->inv_terms = 1.0 / (double)a->bn.terms;
    a->inv_less = 1.0 / (double)wd_most(a->bn.terms - 1, 1);
}
