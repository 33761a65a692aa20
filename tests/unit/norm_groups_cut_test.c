/* SPDX-License-Identifier: Apache-2.0
 *
 * How group and instance norms are cut into blocks, for devices that are only described: whatever the
 * shape, every element has a thread, what is kept has room, and the chip has work; and what is read
 * once stays so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "ops/norm/norm_groups_args.h"
#include "ops/norm/norm_groups_cut.h"
#include "ops/norm/norm_kept_args.h"
#include "ops/norm/norm_kept_cut.h"
#include "unit/devices.h"

enum { RUN = NORM_GROUPS_RUN, TURNS = 20000 };

static const struct wd_device devices[] = {DEVICE_NEW(90, 132), DEVICE_OLD(108)};

static struct norm_groups_shape image(int64_t samples, int64_t channels, int64_t groups,
                                      int64_t plane, int size, int arrays, bool columns)
{
    return (struct norm_groups_shape){.samples = samples,
                                      .channels = channels,
                                      .plane = plane,
                                      .groups = groups,
                                      .each = channels / groups,
                                      .size = size,
                                      .arrays = arrays,
                                      .columns = columns};
}

static void check_planes(const struct norm_groups_shape *s, const struct norm_groups_cut *c)
{
    int64_t elements = c->by_channels ? s->plane : c->part;
    int64_t side = c->threads / c->width;
    assert_true(c->threads <= NORM_GROUPS_THREADS && c->threads % 32 == 0);
    assert_true(c->threads % c->width == 0 && c->width % c->team == 0);
    assert_true(side == 1 || (c->width <= 32 && c->segments == 1));
    assert_true(c->segments * c->part >= (c->by_channels ? s->each : s->plane));
    assert_true(c->by_channels || c->segments == 1 || c->part % RUN == 0);
    assert_true(c->turns * c->team * RUN >= elements);
    assert_true(c->blocks == wd_ceil_div(s->samples * s->groups, side) * c->segments);
    assert_true(!c->whole && c->width == c->threads && c->shared < 48 << 10);
}

static void check_columns(const struct norm_groups_shape *s, const struct norm_groups_cut *c)
{
    int64_t across = wd_ceil_div(c->tile, RUN);
    assert_true(c->threads <= NORM_GROUPS_COLUMN_THREADS && c->threads % 32 == 0);
    assert_true(c->tile <= NORM_GROUPS_TILE && c->tile * c->tiles >= s->channels);
    assert_true(s->channels % RUN != 0 || c->tile % RUN == 0);
    assert_true(across * c->rows <= c->threads);
    assert_true(c->segments * c->part >= s->plane && c->turns * c->rows >= c->part);
    assert_true(c->blocks == s->samples * c->tiles * c->segments);
    if (c->whole) {
        assert_true(c->tile % s->each == 0);
        assert_true(c->shared >= c->turns * c->threads * RUN * s->size * s->arrays);
    } else {
        assert_true(c->shared == 0);
    }
}

static void check(const struct norm_groups_shape *s, bool keeps, const struct wd_device *device)
{
    struct norm_groups_cut c = norm_groups_cut(s, keeps, device);
    assert_true(c.shared + (s->columns ? 26624 : 512) <= device->shared_per_block);
    assert_true(keeps || !c.whole);
    if (c.whole) {
        int64_t most = device->cooperative ? NORM_GROUPS_CLUSTER : 1;
        assert_true(c.segments <= most && (c.segments & (c.segments - 1)) == 0);
    }
    if (s->columns) check_columns(s, &c);
    else check_planes(s, &c);
}

static int64_t any(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

/* One number after the other: in which order a call takes its arguments is the compiler's matter. */
static struct norm_groups_shape any_image(int plane_bits)
{
    int64_t each = any(1, 1 << any(0, 10));
    int64_t groups = any(1, 1 << any(0, 8));
    int64_t samples = any(1, 1 << any(0, 8));
    int64_t plane = any(1, (int64_t)1 << any(0, plane_bits));
    int size = (int)any(1, 2) * 2;
    int arrays = (int)any(1, 2);
    return image(samples, each * groups, groups, plane, size, arrays, any(0, 1));
}

static void test_random(void **state)
{
    (void)state;
    srand(1);
    for (int turn = 0; turn < TURNS; ++turn) {
        struct norm_groups_shape s = any_image(22);
        check(&s, any(0, 3) > 0, &devices[turn % 2]);
    }
}

/* One reading of columns that fit a cluster; else enough blocks for all processors. */
static void test_choices(void **state)
{
    const struct wd_device *h200 = &devices[0];
    struct norm_groups_shape s;
    struct norm_groups_cut c;
    (void)state;
    s = image(8, 640, 32, 64 * 64, 2, 2, true);
    c = norm_groups_cut(&s, true, h200);
    assert_true(c.whole && c.segments == 8 && c.tile == 40);
    s = image(2, 32, 32, 128 * 128 * 128, 2, 1, false);
    c = norm_groups_cut(&s, true, h200);
    assert_true(!c.whole && c.blocks >= 2 * h200->multiprocessors);
    s = image(1, 128, 32, 1024 * 1024, 2, 2, true);
    c = norm_groups_cut(&s, true, h200);
    assert_true(!c.whole && c.blocks >= 2 * h200->multiprocessors);
}

/* ---- What is read once ---- */

static void check_kept(const struct norm_groups_shape *s, const struct norm_kept_cut *c,
                       const struct wd_device *device)
{
    int64_t run = 16 / s->size;
    assert_true(c->threads % 32 == 0 && c->threads <= NORM_KEPT_THREADS);
    assert_true(c->shared + 640 <= device->shared_per_block);
    assert_true(c->teams >= 1 && c->teams <= c->panels);
    assert_true(c->meets || c->blocks == 1 || (device->cooperative && c->blocks <= 16));
    if (c->meets) { /* all are there at once */
        int64_t each = device->shared_per_processor / (c->shared + 1024);
        assert_true(device->grids_meet && c->teams * c->blocks <= each * device->multiprocessors);
        assert_true(c->teams * c->blocks * c->threads <= 2048 * (int64_t)device->multiprocessors);
    }
    assert_true((c->way == NORM_KEPT_COLUMNS) == s->columns);
    if (s->columns) {
        assert_true(c->tile * c->tiles == s->channels && c->tile % s->each == 0);
        assert_true(c->across * run >= c->tile && c->across * c->rows <= c->threads);
        assert_true(c->panels == s->samples * c->tiles && c->part * c->blocks >= s->plane);
        assert_true(c->meets || c->slots * c->rows >= c->part);
    } else {
        assert_true(c->panels * c->beside >= s->samples * s->groups);
        assert_true(c->length == c->beside * s->each * s->plane);
        assert_true(c->blocks * c->part * run >= c->length && c->slots * c->threads >= c->part);
        assert_true(c->way != NORM_KEPT_EVEN || s->plane % run == 0);
    }
    assert_true(c->shared >= c->space * 16 * s->arrays);
}

/* Planes that fit a block are never read twice. */
static void test_kept_random(void **state)
{
    enum { FITS = 64 << 10 };
    (void)state;
    srand(2);
    for (int turn = 0; turn < TURNS / 4; ++turn) {
        const struct wd_device *device = &devices[turn % 2];
        struct norm_groups_shape s = any_image(18);
        struct norm_kept_cut c;
        bool takes = norm_kept_cut(&c, &s, device);
        if (takes) check_kept(&s, &c, device);
        if (!s.columns && s.each * s.plane * s.size * s.arrays <= FITS) assert_true(takes);
    }
}

/* What would silently be read twice were it declined. */
static void test_kept(void **state)
{
    static const struct {
        int64_t samples, channels, groups, plane;
        int64_t blocks; /* least and most: one block, or one cluster */
        enum norm_kept_way way;
        int size, arrays;
        bool columns, either; /* either: devices without clusters take it too */
    } list[] = {
        {8, 320, 32, 128 * 128, 8, NORM_KEPT_EVEN, 2, 1, false, false},
        {8, 320, 32, 128 * 128, 8, NORM_KEPT_EVEN, 2, 2, false, false},
        {8, 320, 32, 64 * 64, 8, NORM_KEPT_EVEN, 2, 1, false, true},
        {8, 640, 32, 64 * 64, 8, NORM_KEPT_EVEN, 2, 2, false, false},
        {256, 2048, 2048, 49, 1, NORM_KEPT_BESIDE, 2, 1, false, true},
        {256, 2048, 2048, 49, 1, NORM_KEPT_BESIDE, 2, 2, false, true},
        {256, 2048, 2048, 49, 1, NORM_KEPT_BESIDE, 4, 1, false, true},
        {256, 2048, 2048, 49, 1, NORM_KEPT_BESIDE, 4, 2, false, true},
        {214, 251 * 247, 251, 1, 1, NORM_KEPT_BESIDE, 2, 1, false, true},
        {32, 256, 32, 55 * 57, 8, NORM_KEPT_ODD, 2, 1, false, true},
        {8, 640, 32, 64 * 64, 8, NORM_KEPT_COLUMNS, 2, 1, true, false},
        {8, 320, 32, 32 * 32, 8, NORM_KEPT_COLUMNS, 2, 2, true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        for (int d = 0; d < (list[i].either ? 2 : 1); ++d) {
            struct norm_groups_shape s =
                image(list[i].samples, list[i].channels, list[i].groups, list[i].plane,
                      list[i].size, list[i].arrays, list[i].columns);
            struct norm_kept_cut c;
            assert_true(norm_kept_cut(&c, &s, &devices[d]));
            check_kept(&s, &c, &devices[d]);
            assert_int_equal(c.way, list[i].way);
            assert_true(c.meets || c.blocks <= list[i].blocks);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_kept_random),
        cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
