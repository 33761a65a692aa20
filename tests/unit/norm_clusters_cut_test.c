/* SPDX-License-Identifier: Apache-2.0
 *
 * How norm_clusters cuts shares, for devices that are only described: every unit has a thread, what is kept fits registers
 * and shared memory, clusters are no larger than the device surely takes, and what others do as well is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "ops/norm/norm_clusters_cut.h"
#include "unit/devices.h"

enum {
    MB = (1 << 20) / NORM_ROWS_UNIT, /* in units */
    QUAD = NORM_CLUSTERS_THREADS * NORM_CLUSTERS_QUAD,
};

static void check(const struct norm_clusters_cut *c, const struct wd_device *device)
{
    int64_t kept = (c->quads - NORM_CLUSTERS_HELD + c->dy_quads) * QUAD * NORM_ROWS_UNIT;
    assert_true(c->cluster == 4 || c->cluster == 8 || c->cluster == 16);
    assert_true(c->cluster <= 8 || (device->multiprocessors > 120 && device->capability < 120));
    assert_true(c->part * c->cluster >= c->units);
    assert_true(c->part % QUAD == 0);
    assert_true(c->quads >= NORM_CLUSTERS_HELD && c->quads * QUAD <= wd_most(c->part, 2 * QUAD));
    assert_true(c->dy_quads >= 0 && c->dy_quads <= c->quads);
    if (!c->backward) assert_int_equal(c->dy_quads, 0);
    assert_int_equal(c->shared, kept);
    assert_true(c->shared + NORM_CLUSTERS_FIXED <= device->shared_per_block);
    assert_true(c->clusters >= 1 && c->clusters <= c->shares);
    assert_true(c->clusters * c->cluster <= device->multiprocessors);
}

static void test_all(void **state)
{
    static const struct wd_device devices[] = {DEVICE_NEW(90, 132), DEVICE_NEW(90, 114),
                                               DEVICE_NEW(100, 148), DEVICE_NEW(90, 16),
                                               DEVICE_NEW(120, 170)};
    int taken = 0;
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; ++d) {
        for (int64_t units = MB / 4; units <= 20 * MB; units += units / 7 + 3) {
            for (int64_t shares = 1; shares <= 600; shares += shares / 3 + 1) {
                for (int backward = 0; backward < 2; ++backward) {
                    struct norm_clusters_cut c = {
                        .shares = shares, .units = units, .backward = backward != 0};
                    if (!norm_clusters_cut(&c, &devices[d])) continue;
                    check(&c, &devices[d]);
                    taken += 1;
                }
            }
        }
    }
    assert_true(taken > 1000);
}

/* What is measured on an H200. */
static void test_chosen(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132), h100 = DEVICE_NEW(90, 114);
    struct norm_clusters_cut c = {.shares = 64, .units = 4 * MB};
    (void)state;
    assert_true(norm_clusters_cut(&c, &h200)); /* 4 MB: all of it stays */
    assert_int_equal(c.cluster, 16);
    assert_int_equal(c.quads * QUAD, c.part);
    assert_int_equal(c.clusters, 7);
    c.backward = true;
    assert_true(norm_clusters_cut(&c, &h200));
    assert_int_equal(c.dy_quads, 1);
    assert_true(norm_clusters_cut(&c, &h100)); /* half of it stays */
    assert_int_equal(c.cluster, 8);
    assert_true(c.quads * QUAD < c.part);
}

static void test_refused(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132), old = DEVICE_OLD(108);
    struct norm_clusters_cut c = {.shares = 64, .units = 4 * MB};
    (void)state;
    assert_false(norm_clusters_cut(&c, &old)); /* no clusters */
    c.units = MB / 2;
    assert_false(norm_clusters_cut(&c, &h200)); /* small */
    c.units += 1;
    assert_true(norm_clusters_cut(&c, &h200));
    c.units = 17 * MB;
    assert_false(norm_clusters_cut(&c, &h200)); /* most would be read twice */
    c.units = 4 * MB;
    c.shares = 4;
    assert_false(norm_clusters_cut(&c, &h200)); /* processors without work */
    c.shares = 8;
    assert_false(norm_clusters_cut(&c, &h200)); /* a second turn of one */
    c.shares = 5;
    assert_true(norm_clusters_cut(&c, &h200));
    c.shares = (int64_t)INT32_MAX / (4 * MB) + 1;
    assert_false(norm_clusters_cut(&c, &h200)); /* 2^31 units */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
