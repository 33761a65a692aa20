/* SPDX-License-Identifier: Apache-2.0
 *
 * How many segments the GPU engines of reduce cut an output into, for devices that are only described: as many as are
 * worth it and the device has blocks for, waves that are full, and clusters where there is little. What blocks then
 * read is reduce_blocks_test.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "ops/reduce/reduce_gpu.h"
#include "reduce_devices.h"

enum {
    TURNS = 500000,
    LITTLE = 2 << 20,        /* bytes of x, up to which clusters join segments */
    AT_ONCE = 4,             /* blocks of 256 threads a processor */
    BLOCK_BYTES = 128 << 10, /* that pay for another */
    BETTER = 25,             /* percent that another wave is to fill more */
    OUTPUTS = 3,
};

/* Places of a device's waves that blocks fill, in percent. */
static int64_t filled(int64_t blocks, int64_t wave)
{
    return 100 * blocks / (wd_ceil_div(blocks, wave) * wave);
}

static void test_fill(void **state)
{
    int more = 0, most = 0;
    (void)state;
    srand(2);
    for (int turn = 0; turn < TURNS; ++turn) {
        const int64_t wave = any(2, 2000), tiles = any(1, 1 << any(0, 13));
        const int64_t segments = wd_reduce_gpu_fill(tiles, wave), blocks = tiles * segments;
        const int64_t waves = wd_ceil_div(blocks, wave), own = filled(blocks, wave);
        assert_true(segments >= 1 && (segments == 1 || waves <= 3));
        /* no more of them are as many waves; more waves are not so much fuller, and one was so much emptier */
        if (segments > 1) assert_true(blocks + tiles > waves * wave);
        for (int64_t other = 1; other <= 3 && tiles <= wave; ++other) {
            const int64_t its = filled(other * wave / tiles * tiles, wave);
            if (other > waves) assert_true(its < own + BETTER);
            if (other < waves) assert_true(own >= its + (other == 1 ? BETTER : 0));
        }
        more += waves == 2 && segments > 1, most += waves == 3 && segments > 1;
    }
    assert_true(more > TURNS / 100 && most > TURNS / 500);
    /* 64 of 528 places: 8 segments have 512; 300 would leave 228 of them, 400 have no better */
    assert_int_equal(wd_reduce_gpu_fill(64, 528), 8);
    assert_int_equal(wd_reduce_gpu_fill(300, 528), 3);
    assert_int_equal(wd_reduce_gpu_fill(400, 528), 1);
    assert_int_equal(wd_reduce_gpu_fill(528, 528), 1);
    assert_int_equal(wd_reduce_gpu_fill(1000000, 528), 1);
}

/* As many segments as are worth it, of no more than so many blocks, or all but that many. */
static void check_segments(int64_t segments, int64_t tiles, int64_t worth, int64_t blocks)
{
    assert_in_range(segments, 1, wd_most(worth, 1));
    assert_true(segments == 1 || segments * tiles <= blocks);
    assert_true(segments == wd_most(worth, 1) || (segments + 1) * tiles > blocks);
}

static void test_cut(void **state)
{
    int clusters = 0, filling = 0, limited = 0;
    (void)state;
    srand(3);
    for (int turn = 0; turn < TURNS; ++turn) {
        const struct wd_device *device = &devices[any(0, DEVICES - 1)];
        const int64_t processors = device->multiprocessors, tiles = any(1, 1 << any(0, 12));
        const int64_t worth = any(0, (int64_t)1 << any(0, 14)), blocks = any(AT_ONCE, 16);
        const bool fills = any(0, 1), joins = device->cooperative && device->capability >= 90;
        const struct wd_reduce_space s = {.total = any(1, (int64_t)1 << any(0, 35)),
                                          .bytes = 1 << any(1, 3),
                                          .outputs = OUTPUTS,
                                          .state = any(0, 1) ? 8 : 16};
        const struct wd_reduce_cut cut = wd_reduce_gpu_cut(&s, device, tiles, worth, blocks, fills);
        const int64_t bytes = s.total * s.bytes, at_once = AT_ONCE * processors;
        const int64_t most = wd_clamp(bytes / BLOCK_BYTES, at_once, blocks * processors);
        const int64_t scratch = wd_reduce_gpu_workspace(&s, &cut);
        assert_true(cut.cluster == 1 || cut.cluster == cut.segments);
        assert_int_equal(scratch,
                         cut.segments > cut.cluster ? cut.segments * OUTPUTS * s.state : 0);
        if (bytes <= LITTLE && joins) {
            const int64_t alone = wd_most(wd_least(worth, at_once / tiles), 1);
            assert_true(cut.cluster == wd_least(wd_power_up(alone + 1) / 2, 8));
            assert_true(cut.segments == cut.cluster);
            clusters += cut.cluster > 1;
            continue;
        }
        assert_int_equal(cut.cluster, 1);
        if (bytes <= LITTLE) {
            check_segments(cut.segments, tiles, worth, at_once);
        } else if (tiles >= at_once) {
            assert_int_equal(cut.segments, 1);
        } else if (!fills || most < blocks * processors) {
            check_segments(cut.segments, tiles, worth, most);
            limited += most > at_once && most < blocks * processors;
        } else {
            const int64_t full = wd_reduce_gpu_fill(tiles, most);
            assert_int_equal(cut.segments, wd_most(wd_least(full, worth), 1));
            filling += cut.segments > 1;
        }
    }
    assert_true(clusters > TURNS / 10 && filling > TURNS / 20 && limited > TURNS / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
