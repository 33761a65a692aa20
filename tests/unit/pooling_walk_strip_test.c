/* SPDX-License-Identifier: Apache-2.0
 *
 * The strips of pooling's walks: whatever there is, they have a row at least and no more than there are; they are short
 * where most of the chip is idle, and long where it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/pooling/pooling_walk.h"

enum { LEAST = 8, RESIDENT = 1024 };

static const struct wd_device device = {.kind = WD_GPU, .multiprocessors = 132};

static void test_bounds(void **state)
{
    static const int64_t across[] = {1, 31, 1000, 33792, 135168, 135169, 10000000};
    (void)state;
    for (size_t a = 0; a < sizeof across / sizeof *across; ++a) {
        for (int64_t rows = 1; rows <= 300; ++rows) {
            const int64_t strip = wd_pool_walk_strip(&device, across[a], rows, LEAST, RESIDENT);
            assert_true(strip >= 1 && strip <= rows);
        }
    }
}

/* A few threads: each row, or nearly, has one of its own. */
static void test_idle(void **state)
{
    (void)state;
    assert_true(wd_pool_walk_strip(&device, 64, 56, LEAST, RESIDENT) <= 2);
    assert_true(wd_pool_walk_strip(&device, 400, 56, LEAST, RESIDENT) <= 2);
}

/* A quarter of the threads that there is room for: no strip is shorter than is worth it. */
static void test_busy(void **state)
{
    (void)state;
    for (int64_t rows = LEAST; rows <= 300; ++rows) {
        const int64_t across = (int64_t)RESIDENT * device.multiprocessors / 4;
        assert_true(wd_pool_walk_strip(&device, across, rows, LEAST, RESIDENT) >= LEAST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
