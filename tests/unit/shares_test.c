/* SPDX-License-Identifier: Apache-2.0
 *
 * How shares are cut over clusters, for devices that are only described: every unit has a thread, what is kept fits registers
 * and shared memory, clusters are no larger than the device surely takes, and what others do as well is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/queue.h"
#include "base/sizes.h"
#include "ops/shares.h"
#include "unit/devices.h"

enum {
    MB = (1 << 20) / WD_SHARE_UNIT,          /* in units */
    QUAD = WD_SHARE_THREADS * WD_SHARE_QUAD, /* of a processor */
};

static void check(const struct wd_share_cut *c, const struct wd_device *device)
{
    int64_t each = c->halves ? 2 : 1, quad = QUAD / each; /* blocks of a processor */
    int64_t kept = (c->quads - WD_SHARE_HELD + c->second_quads) * quad * WD_SHARE_UNIT;
    if (c->meets) {
        /* of four blocks to half of the chip; the first tensor stays */
        assert_true(c->may_meet && !c->halves && device->grids_meet);
        assert_true(c->cluster >= 4 && 2 * c->cluster <= device->multiprocessors);
        assert_true(c->quads * quad >= c->part);
    } else {
        assert_true(c->cluster <= 16 && (c->cluster & (c->cluster - 1)) == 0);
        assert_true(c->cluster >= (c->halves ? 4 : 1));
        assert_true(c->cluster <= 8 || (device->multiprocessors > 120 && device->capability < 120));
    }
    assert_true(c->part * c->cluster >= c->units);
    assert_true(c->part % quad == 0);
    assert_true(c->quads >= WD_SHARE_HELD && c->quads * quad <= wd_most(c->part, 2 * quad));
    assert_true(c->second_quads >= 0 && c->second_quads <= c->quads);
    if (!c->two) assert_int_equal(c->second_quads, 0);
    assert_int_equal(c->shared, kept);
    assert_true(c->shared + WD_SHARE_FIXED <= device->shared_per_block);
    /* a block costs a KiB besides its own */
    assert_true(each * (c->shared + WD_SHARE_FIXED + 1024) <= device->shared_per_processor);
    if (c->halves) {
        assert_true(c->quads * quad >= c->part);
        assert_int_equal(c->second_quads, c->two ? c->quads : 0);
    }
    assert_true(c->clusters >= 1 && c->clusters <= c->shares);
    assert_true(c->clusters * c->cluster <= each * device->multiprocessors);
}

static void test_all(void **state)
{
    static const struct wd_device devices[] = {DEVICE_NEW(90, 132),  DEVICE_NEW(90, 114),
                                               DEVICE_NEW(100, 148), DEVICE_NEW(90, 16),
                                               DEVICE_NEW(120, 170), DEVICE_NEWER(120, 170)};
    int taken = 0, teams = 0;
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; ++d) {
        for (int64_t units = 3 * MB / 32; units <= 20 * MB; units += units / 7 + 3) {
            for (int64_t shares = 1; shares <= 600; shares += shares / 3 + 1) {
                for (int way = 0; way < 8; ++way) {
                    struct wd_share_cut c = {.shares = shares,
                                             .units = units,
                                             .two = way % 2 != 0,
                                             .halves = way / 2 == 1,
                                             .may_halve = way / 2 == 3,
                                             .may_meet = way / 2 >= 2};
                    if (!wd_share_cut(&c, &devices[d])) continue;
                    check(&c, &devices[d]);
                    /* chosen where it was measured alone */
                    if (c.halves && c.may_halve) assert_int_equal(devices[d].capability, 90);
                    taken += 1;
                    teams += c.meets;
                }
            }
        }
    }
    assert_true(taken > 1000 && teams > 100);
}

/* Teams where clusters do not hold the first tensor: measured on an H200, fp32 shares of 8 MB. Of 4 MB clusters win. */
static void test_teams(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132);
    struct wd_share_cut c = {.shares = 64, .units = 8 * MB, .may_meet = true};
    (void)state;
    assert_true(wd_share_cut(&c, &h200));
    assert_true(c.meets && c.cluster == 32 && c.clusters == 4);
    c = (struct wd_share_cut){.shares = 64, .units = 8 * MB, .may_meet = true, .two = true};
    assert_true(wd_share_cut(&c, &h200));
    assert_true(c.meets && c.cluster == 64 && c.clusters == 2 && c.second_quads == c.quads);
    for (int two = 0; two < 2; ++two) {
        c = (struct wd_share_cut){.shares = 64, .units = 4 * MB, .may_meet = true, .two = two};
        assert_true(wd_share_cut(&c, &h200));
        assert_false(c.meets);
    }
}

/* The channels of tests/ops/norm_teams_test.c, and turns of teams that they take. */
static void test_teams_turns(void **state)
{
    static const struct wd_device few = DEVICE_NEW(90, 40), h200 = DEVICE_NEW(90, 132);
    static const struct {
        const struct wd_device *device;
        int64_t shares, bytes, turns[2];
    } rows[] = {
        {&few, 13, 2 * 660 * 644 * 4, {5, 5}},   {&few, 5, 2 * 1280 * 520 * 2, {2, 2}},
        {&few, 5, 1410 * 1000 * 2, {2, 2}},      {&few, 3, 1101 * 804 * 4, {1, 1}},
        {&h200, 22, 2 * 1100 * 640 * 4, {4, 8}}, {&h200, 11, 2 * 2200 * 648 * 2, {2, 4}},
        {&h200, 9, 2210 * 1304 * 2, {2, 3}},     {&h200, 9, 1610 * 1204 * 4, {3, 3}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        for (int two = 0; two < 2; ++two) {
            struct wd_share_cut c = {.shares = rows[i].shares,
                                     .units = rows[i].bytes / WD_SHARE_UNIT,
                                     .two = two,
                                     .may_meet = true};
            assert_true(wd_share_cut(&c, rows[i].device));
            assert_true(c.meets);
            assert_int_equal(wd_ceil_div(c.shares, c.clusters), rows[i].turns[two]);
        }
    }
}

/* The random shares of norm_teams_test.c and norm_groups_teams_test.c. */
static void test_teams_random(void **state)
{
    static const struct wd_device few = DEVICE_NEW(90, 40), h200 = DEVICE_NEW(90, 132);
    static const struct {
        const struct wd_device *device;
        int64_t shares, units;
    } rows[] = {{&few, 13, 205000},  {&few, 5, 165000},   {&few, 3, 215000},
                {&h200, 22, 345000}, {&h200, 11, 350000}, {&h200, 9, 470000}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        /* dims take some away: fewer than 9 images times 400 rows times 16 channels */
        for (int64_t units = rows[i].units - 6400; units <= rows[i].units / 16 * 17; units += 97) {
            for (int two = 0; two < 2; ++two) {
                struct wd_share_cut c = {
                    .shares = rows[i].shares, .units = units, .two = two, .may_meet = true};
                assert_true(wd_share_cut(&c, rows[i].device) && c.meets);
            }
        }
    }
}

/* By a block alone, or two, what these hold: measured on an H200, batch norm fp32 64x512x28x28, fp16 256x512x28x28, fp32 1x64x1x65536. */
static void test_few_blocks(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132);
    static const struct {
        int64_t shares, bytes, cluster, clusters;
    } rows[] = {{512, 200704, 1, 128}, {512, 401408, 2, 64}, {64, 262144, 2, 64},
                {132, 294912, 1, 132}, {66, 294928, 2, 66},  {30, 540672, 4, 30}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        struct wd_share_cut c = {.shares = rows[i].shares, .units = rows[i].bytes / WD_SHARE_UNIT};
        assert_true(wd_share_cut(&c, &h200));
        assert_int_equal(c.cluster, rows[i].cluster);
        assert_int_equal(c.clusters, rows[i].clusters);
        assert_true(c.quads * QUAD >= c.part);
    }
}

/* What is measured on an H200. */
static void test_chosen(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132), h100 = DEVICE_NEW(90, 114);
    struct wd_share_cut c = {.shares = 64, .units = 4 * MB};
    (void)state;
    assert_true(wd_share_cut(&c, &h200)); /* 4 MB: all of it stays */
    assert_int_equal(c.cluster, 16);
    assert_int_equal(c.quads * QUAD, c.part);
    assert_int_equal(c.clusters, 7);
    c.two = true;
    assert_true(wd_share_cut(&c, &h200));
    assert_int_equal(c.second_quads, 1);
    assert_true(wd_share_cut(&c, &h100)); /* half of it stays */
    assert_int_equal(c.cluster, 8);
    assert_true(c.quads * QUAD < c.part);
    c = (struct wd_share_cut){.shares = 64, .units = MB, .halves = true};
    assert_true(wd_share_cut(&c, &h200)); /* as much work by 8 blocks as by 16 */
    assert_int_equal(c.cluster, 16);
    assert_int_equal(c.clusters, 14);
    for (int shares = 15; shares <= 30; shares += 7) {
        /* by 8 blocks one turn, two, two; by 16 three, four, five */
        c = (struct wd_share_cut){.shares = shares, .units = MB, .halves = true};
        assert_true(wd_share_cut(&c, &h200));
        assert_int_equal(c.cluster, shares == 22 ? 16 : 8);
    }
    c = (struct wd_share_cut){.shares = 38, .units = 3 * MB / 2 + 1};
    assert_true(wd_share_cut(&c, &h200)); /* of 16 blocks 3 had nothing */
    assert_int_equal(c.cluster, 8);
    c.shares = 6;
    assert_false(wd_share_cut(&c, &h200)); /* 8 hold a share, and are few */
    c = (struct wd_share_cut){.shares = 64, .units = 2 * MB, .halves = true};
    assert_true(wd_share_cut(&c, &h200));
    c.two = true;
    assert_false(wd_share_cut(&c, &h200)); /* halves have no room for both */
    c.halves = false;
    assert_true(wd_share_cut(&c, &h200));
}

/* Halves of one tensor, where clusters of four and more hold it: measured on an H200. */
static void test_halves(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132);
    static const struct {
        int64_t shares, bytes;
        bool two, halves;
    } rows[] = {{64, 2 << 20, false, true},  {64, 1769472, false, true},
                {256, 802816, false, true},  {128, 512 << 10, false, false},
                {512, 200704, false, false}, {64, 4 << 20, false, false},
                {64, 2 << 20, true, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        struct wd_share_cut c = {.shares = rows[i].shares,
                                 .units = rows[i].bytes / WD_SHARE_UNIT,
                                 .two = rows[i].two,
                                 .may_halve = true,
                                 .may_meet = true};
        assert_true(wd_share_cut(&c, &h200));
        assert_int_equal(c.halves, rows[i].halves);
    }
    /* softmax's gradients of 251 KB a row: as tests/ops/softmax_shapes_test.c has them, and too few */
    for (int shares = 31; shares <= 47; shares += 16) {
        struct wd_share_cut c = {
            .shares = shares, .units = 16032, .two = true, .halves = true, .least = 240 << 10};
        assert_int_equal(wd_share_cut(&c, &h200), shares == 47);
        if (shares == 47) assert_true(c.cluster >= 4);
    }
}

static void test_refused(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132), old = DEVICE_OLD(108);
    struct wd_share_cut c = {.shares = 64, .units = 4 * MB};
    (void)state;
    assert_false(wd_share_cut(&c, &old)); /* no clusters */
    c.units = MB / 2;
    c.least = 512 << 10;
    assert_false(wd_share_cut(&c, &h200)); /* small */
    c.units += 1;
    assert_true(wd_share_cut(&c, &h200));
    c.units = MB / 8;
    c.least = 0;
    c.shares = 47;
    assert_false(wd_share_cut(&c, &h200)); /* two blocks each are few, and more are not asked for */
    c.units = 17 * MB;
    assert_false(wd_share_cut(&c, &h200)); /* most would be read twice */
    c.units = 4 * MB;
    c.shares = 4;
    assert_false(wd_share_cut(&c, &h200)); /* processors without work */
    c.shares = 8;
    assert_false(wd_share_cut(&c, &h200)); /* a second turn of one */
    c.shares = 5;
    assert_true(wd_share_cut(&c, &h200));
    c.shares = 0;
    assert_false(wd_share_cut(&c, &h200));
    c.shares = (int64_t)INT32_MAX / (4 * MB) + 1;
    assert_false(wd_share_cut(&c, &h200)); /* 2^31 units */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),          cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_teams),        cmocka_unit_test(test_teams_turns),
        cmocka_unit_test(test_teams_random), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_few_blocks),   cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
