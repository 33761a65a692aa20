/* SPDX-License-Identifier: Apache-2.0
 *
 * How planes are cut into threads and channels into chunks, for devices that are only described: every pixel of
 * every channel is one thread's, and chunks are as long as what is read twice wants them, where there are threads enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "devices.h"
#include "ops/lrn/lrn_host.h"

enum {
    TURNS = 3000,
    WARP = 32,
    FEW = 1024,              /* threads of a processor: as short chunks as there are */
    SHORTEST = 16,           /* else; of about 24 */
    ELEMENTS_MOST = 1 << 18, /* of a random problem, for the time it takes */
};

static const int processors[] = {132, 114, 148, 2};

static int64_t any(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

static void test_chunks(void **state)
{
    int whole = 0, cut = 0, least = 0;
    (void)state;
    srand(1);
    for (int turn = 0; turn < TURNS; ++turn) {
        const bool backward = turn % 2 == 0;
        const int64_t channels = any(1, 1 << any(0, 10)), threads = any(1, 1 << any(0, 21));
        const int64_t around = any(0, 15) * (backward ? 2 : 1), count = processors[any(0, 3)];
        const int64_t chunk = wd_lrn_chunk(channels, threads, around, backward, count);
        assert_in_range(chunk, 1, channels);
        assert_true(threads * wd_ceil_div(channels, chunk) <= LRN_ITEMS_MAX);
        if (threads * channels < FEW / 2 * count) {
            assert_int_equal(chunk, wd_least(channels, 4));
        } else if (threads >= FEW * count) {
            /* a chunk reads at most a quarter more, or is about as short as any */
            assert_true(chunk == channels || chunk >= SHORTEST);
            assert_true(chunk == channels || chunk >= 4 * around);
        }
        whole += chunk == channels && channels > SHORTEST;
        cut += chunk < channels && chunk > 4;
        least += chunk == 4 && channels > 4;
    }
    assert_true(whole > TURNS / 20 && cut > TURNS / 20 && least > TURNS / 20);
}

static void test_choices(void **state)
{
    (void)state;
    /* 32 x 64 x 112 x 112, runs of four: the longer the window, the longer a chunk */
    assert_int_equal(wd_lrn_chunk(64, 32 * 3136, 0, false, 132), 22);
    assert_int_equal(wd_lrn_chunk(64, 32 * 3136, 15, false, 132), 64);
    assert_int_equal(wd_lrn_chunk(64, 32 * 6272, 18, true, 132), 64);
    /* but of few threads not so long that processors have none */
    assert_int_equal(wd_lrn_chunk(64, 16 * 3136, 15, false, 132), 32);
    assert_int_equal(wd_lrn_chunk(64, 196, 15, false, 132), 4);
    /* as many threads as a launch may have: no second chunk, however many processors */
    assert_int_equal(wd_lrn_chunk(1000, LRN_ITEMS_MAX, 4, false, 1 << 20), 1000);
    assert_int_equal(wd_lrn_chunk(1000, LRN_ITEMS_MAX / 2 + 1, 0, true, 1 << 20), 1000);
}

/* Threads, as the kernels find their pixels and channels (lrn_planes.cuh). */
static void take(const struct lrn_vector_args *a, int64_t threads, int64_t images, int64_t run,
                 bool spreads, unsigned char *taken)
{
    for (uint32_t item = 0; item < threads; ++item) {
        const int64_t of_plane = item % a->by_run.divisor, apart = a->by_spread.divisor;
        const int64_t chunk = item / a->by_run.divisor % a->by_chunk.divisor;
        const int64_t image = item / a->by_run.divisor / a->by_chunk.divisor;
        const int64_t first = !spreads   ? of_plane * run
                              : run == 1 ? of_plane
                                         : of_plane / apart * run * apart + of_plane % apart;
        assert_true(image < images);
        for (int64_t v = 0; v < run; ++v) {
            const int64_t pixel = first + v * (spreads ? apart : 1);
            if (pixel >= a->plane) continue;
            for (int64_t c = chunk * a->chunk; c < (chunk + 1) * a->chunk && c < a->channels; ++c) {
                taken[(image * a->channels + c) * a->plane + pixel] += 1;
            }
        }
    }
}

static void test_planes(void **state)
{
    int pairs = 0, vain = 0;
    (void)state;
    srand(2);
    for (int turn = 0; turn < TURNS / 4; ++turn) {
        const struct wd_device device = DEVICE_NEW(90, processors[any(0, 3)]);
        const int64_t run = turn % 2 == 0 ? LRN_SPREAD : (int64_t)1 << any(0, 2);
        const bool spreads = run == 1 || turn % 2 == 0;
        const int64_t plane = spreads ? any(1, 1 << any(0, 12)) : run * any(1, 1 << any(0, 9));
        const int64_t channels = any(1, 1 << any(0, 7));
        const int64_t images = any(1, wd_most(ELEMENTS_MOST / (plane * channels), 1));
        const struct wd_tensor x = {.rank = 4, .dim = {images, channels, plane, 1}};
        struct lrn_vector_args a = {.channels = (int32_t)channels, .window = (int32_t)any(1, 16)};
        const int64_t threads = wd_lrn_cut_planes(&x, &device, run, spreads, &a);
        const int64_t count = images * channels * plane;
        unsigned char *taken = calloc((size_t)count, 1);
        int64_t once = 0;
        assert_non_null(taken);
        assert_int_equal(a.count, threads);
        take(&a, threads, images, run, spreads, taken);
        for (int64_t i = 0; i < count; ++i) once += taken[i] == 1;
        free(taken);
        assert_int_equal(once, count);
        if (!spreads || run == 1 || !wd_lrn_has_pairs(plane)) continue;
        /* a warp has one plane's, and pixels that are neighbours */
        assert_int_equal(a.by_spread.divisor, WARP);
        assert_int_equal(a.by_run.divisor % WARP, 0);
        assert_true((int64_t)a.by_run.divisor * run <= plane + plane / 16);
        pairs += 1, vain += (int64_t)a.by_run.divisor * run > plane + WARP;
    }
    assert_true(pairs > TURNS / 100 && vain > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_planes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
