/* SPDX-License-Identifier: Apache-2.0
 *
 * How the engines bn_grid cut x, for devices that are only described: every unit has a thread, what is
 * kept has room, and blocks that meet are there at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "ops/norm/bn_grid_cut.h"
#include "unit/devices.h"

enum { TURNS = 20000 };

static const struct wd_device devices[] = {DEVICE_NEW(90, 132), DEVICE_OLD(108), DEVICE_SMALL(28)};

static struct wd_bn_gpu_space space(int64_t outer, int64_t params, int64_t inner)
{
    return (struct wd_bn_gpu_space){outer, params, inner, outer * params * inner};
}

/* What kernels take as given: threads that join sums, and where a block's lie. */
static void check_said(const struct wd_bn_grid_cut *c)
{
    struct bn_grid_args a = {.bn = {.terms = 2}};
    wd_bn_grid_say(&a, c);
    assert_true(a.shares >= 1 && a.shares * a.items <= (uint32_t)c->threads);
    assert_true(a.items == 1 || a.column_shares >= 1);
    assert_true(a.readers >= 1 && a.readers <= a.blocks);
    assert_true(a.readers * a.items <= (uint32_t)c->threads);
    assert_true(!a.few || (int64_t)a.copies * a.items * a.span == c->width);
    assert_true(!a.planes || (int64_t)a.lanes * a.runs * BN_GRID_UNIT <= BN_GRID_AREA);
    assert_true(!(a.few && a.planes));
}

static void check(const struct wd_bn_grid_cut *c, int size, int arrays,
                  const struct wd_device *device)
{
    const struct wd_bn_gpu_space *s = &c->space;
    int64_t runs = c->width / c->unit;
    int64_t columns = c->plane > 1 ? s->inner : c->width;
    int64_t groups = c->groups / c->samples; /* of a sample */
    int64_t slices = c->lanes * c->blocks;
    int64_t rows = c->held * slices + c->rows; /* of registers and of the ring */
    int64_t each = BN_GRID_EACH(arrays);
    int64_t round = arrays * c->slots * BN_GRID_UNIT + c->masks * c->threads; /* bytes */
    assert_true(c->unit * size == BN_GRID_UNIT && c->width % BN_RUN == 0);
    assert_true(c->threads % 32 == 0 && c->threads <= BN_GRID_THREADS);
    assert_true(c->lanes >= 1 && c->lanes * runs <= c->threads);
    /* a thread an item and, where an item is no whole row, a column */
    assert_true(c->items <= c->threads && (c->items == 1 || c->width <= c->threads));
    /* all parameters, all columns, all rows but what is less than one */
    assert_int_equal(groups * c->samples, c->groups);
    assert_true(groups * c->items >= s->params && (groups - 1) * c->items < s->params);
    assert_true(groups * columns >= c->pitch);
    assert_int_equal(rows, s->total / c->pitch * c->plane);
    assert_true(rows * c->width * groups + c->pitch > s->total);
    assert_true(s->total - rows / c->plane * c->pitch < BN_GRID_THREADS * BN_RUN);
    assert_true(c->rounds * slices >= c->rows);
    assert_true((c->rounds - 1) * slices < wd_most(c->rows, 1));
    /* what registers hold is beside what does not fit the ring, and all threads have it */
    assert_true(c->held == 0 || (c->held == c->holds && c->meets && c->rows > 0));
    assert_true(c->columns == 0 || (c->width == c->columns && c->items == c->columns));
    assert_true(c->width % (c->items * c->span) == 0);
    assert_true(c->kept >= 0 && c->kept <= c->rounds);
    assert_true(c->shared <= device->shared_per_block);
    assert_true(c->slots >= c->threads && c->kept <= c->parts * each);
    assert_true(c->shared >= BN_GRID_AREA + c->parts * each * round +
                                 c->beside * each * c->slots * BN_GRID_UNIT +
                                 c->items * BN_GRID_UNIT);
    assert_true(c->parts >= 1 && (!c->adds || c->beside >= 1));
    check_said(c);
    if (c->meets) {
        assert_true(device->grids_meet && c->groups * c->blocks <= device->multiprocessors);
    } else {
        assert_true(c->blocks <= (device->cooperative ? 8 : 1) &&
                    (c->blocks & (c->blocks - 1)) == 0);
    }
}

static int64_t any(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

static void test_random(void **state)
{
    int taken = 0;
    (void)state;
    srand(1);
    for (int turn = 0; turn < TURNS; ++turn) {
        const struct wd_device *device = &devices[turn % 3];
        int size = 1 << any(1, 3), arrays = (int)any(1, 2);
        struct wd_bn_grid_cut c = {.space = space(any(1, 1 << any(0, 16)), any(1, 1 << any(0, 10)),
                                                  any(1, 1 << any(0, 7))),
                                   .samples = 1};
        if (turn % 2) c.space = space(c.space.outer, c.space.params, 1);
        if (turn % 5 == 0) c.space = space(any(1, 64), c.space.params, 8 * any(1, 1000));
        if (any(0, 1)) c.adds = arrays == 1;
        if (any(0, 1)) c.masks = arrays == 2 ? 4 : 0; /* bytes of a thread */
        if (!wd_bn_grid_cut(&c, size, arrays, device)) continue;
        check(&c, size, arrays, device);
        taken += 1;
    }
    assert_true(taken > TURNS / 2);
}

/* Channels last, of several samples, by teams of blocks that have some columns each; registers hold some. */
static struct wd_bn_grid_cut any_samples(int arrays)
{
    struct wd_bn_grid_cut c = {.samples = any(1, 1 << any(0, 5))};
    int64_t plane = any(1, 1 << any(0, 17));
    c.columns = BN_RUN * any(1, 1 << any(0, 6));
    c.columns = wd_least(c.columns, BN_GRID_COLUMNS);
    c.space = space(plane, wd_most(c.columns, BN_RUN * any(1, 128)), 1);
    if (any(0, 3)) c.holds = BN_GRID_HELD_SAMPLES(arrays);
    return c;
}

static void test_samples(void **state)
{
    int taken = 0, meeting = 0, held = 0, several = 0;
    (void)state;
    srand(2);
    for (int turn = 0; turn < TURNS; ++turn) {
        const struct wd_device *device = &devices[turn % 3];
        int arrays = (int)any(1, 2);
        struct wd_bn_grid_cut c = any_samples(arrays);
        if (!wd_bn_grid_cut(&c, 2, arrays, device)) continue;
        check(&c, 2, arrays, device);
        taken += 1, meeting += c.meets, held += c.held > 0;
        several += c.samples > 1 && c.groups > c.samples && c.held > 0;
    }
    assert_true(taken > TURNS / 2 && meeting > TURNS / 8);
    assert_true(held > TURNS / 32 && several > TURNS / 64);
}

static void test_choices(void **state)
{
    const struct wd_device *h200 = &devices[0];
    struct wd_bn_grid_cut c = {.space = space(256 * 56 * 56, 64, 1), .samples = 1};
    (void)state;
    /* a group of all blocks */
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    assert_true(c.meets && c.groups == 1 && c.blocks > 120);
    c.space = space(256 * 7 * 7, 2048, 1);
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    assert_true(c.meets && c.groups == 8 && c.blocks == 16);
    /* small: narrow clusters */
    c.space = space(2 * 28 * 28, 64, 1);
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    assert_true(!c.meets && c.groups == 4 && c.blocks > 1 && c.kept == c.rounds);
    /* likewise, by rows of all columns: no more threads than these */
    c.space = space(2 * 56, 148, 1);
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    assert_true(!c.meets && c.groups == 1 && c.threads == 320 && c.blocks == 4 && c.rounds == 2);
    /* per activation: by blocks that hold their columns alone, not by clusters */
    c.space = space(256, 64 * 56 * 56, 1);
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    assert_true(!c.meets && c.blocks == 1 && c.width == 128 && c.kept == c.rounds);
    check(&c, 2, 1, h200);
    /* planes of 49: several to a group */
    c.space = space(256, 2048, 49);
    assert_true(wd_bn_grid_cut(&c, 4, 1, h200));
    assert_true(!c.meets && c.items > 1 && c.plane == 1);
    /* large planes: one to a group */
    c.space = space(64, 256, 56 * 56);
    assert_true(wd_bn_grid_cut(&c, 4, 1, h200));
    assert_true(c.items == 1 && c.plane > 1 && c.groups == 256);
    /* planes that share units */
    c.space = space(64, 256, 57 * 55);
    assert_false(wd_bn_grid_cut(&c, 4, 1, h200));
    /* samples side by side, each of four teams */
    c = (struct wd_bn_grid_cut){.space = space(128 * 128, 320, 1), .columns = 80, .samples = 4};
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    assert_true(c.meets && c.groups == 16 && c.items == 80 && c.blocks == 8);
    assert_true(wd_bn_grid_has_board(&c));
    check(&c, 2, 1, h200);
    /* registers hold some of what shared memory does not keep ... */
    int64_t rows = c.rows, rounds = c.rounds;
    c.holds = 7;
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    assert_true(c.held == 7 && c.rows == rows - 7 * c.lanes * c.blocks && c.rounds == rounds - 7);
    check(&c, 2, 1, h200);
    /* ... and nothing where it keeps all */
    c.space = space(32 * 32, 320, 1);
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    assert_true(c.held == 0 && c.kept == c.rounds);
}

/* Who joins sums: of three channels each thread its own columns first; no more threads than have something to add. */
static void test_shares(void **state)
{
    const struct wd_device *h200 = &devices[0];
    struct wd_bn_grid_cut c = {.space = space(128 * 224 * 224, 3, 1), .samples = 1};
    struct bn_grid_args a = {.bn = {.terms = c.space.outer}};
    (void)state;
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    wd_bn_grid_say(&a, &c);
    assert_true(a.few && !a.planes && a.items == 3 && a.copies == 8);
    assert_true(wd_bn_grid_has_board(&c) && a.readers * BN_GRID_SEEN(false) >= a.blocks &&
                a.readers < 10);
    /* as many channels as a unit has elements are single columns; more of them than that are not few */
    c.space = space(128 * 224 * 224, 8, 1);
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    wd_bn_grid_say(&a, &c);
    assert_true(!a.few && a.copies == 1);
    c.space = space(63 * 111 * 113, 61, 1);
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    wd_bn_grid_say(&a, &c);
    assert_true(!a.few && a.copies == 8 && a.column_shares == 1);
    /* planes side by side */
    c.space = space(256, 2048, 49);
    assert_true(wd_bn_grid_cut(&c, 4, 1, h200));
    wd_bn_grid_say(&a, &c);
    assert_true(a.planes && !a.few && a.items == 8 && a.span == 49);
    /* smaller than a unit, or one alone */
    c.space = space(1000, 2048, 3);
    assert_true(wd_bn_grid_cut(&c, 2, 1, h200));
    wd_bn_grid_say(&a, &c);
    assert_true(!a.planes);
    c.space = space(64, 256, 56 * 56);
    assert_true(wd_bn_grid_cut(&c, 4, 1, h200));
    wd_bn_grid_say(&a, &c);
    assert_true(!a.planes && a.items == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
