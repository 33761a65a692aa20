/* SPDX-License-Identifier: Apache-2.0
 *
 * How the sampler's grids are cut into tiles for windows, images into tiles of gradients, and into launches:
 * whatever the shape it comes to an end, a place or an element is in one tile, and a tile is no larger than
 * what its threads keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "ops/spatial/spatial_vector.h"

enum { TURNS = 20000, SECONDS = 120 /* a cut that has no end must not hold up the others */ };

/* The capacities and rooms of the engines: places of a tile, elements of a window. */
static const struct {
    int64_t capacity;
    int64_t room;
} sizes[] = {
    {8 * WINDOW_THREADS, SAMPLE_ROOM},
    {4 * WINDOW_THREADS, SLOPE_ROOM},
    {2 * WINDOW_THREADS, SLOPE_ROOM},
    {WINDOW_THREADS, SLOPE_ROOM},
};

static struct sampler_vector_args plane(int64_t height, int64_t width, int64_t rows,
                                        int64_t columns)
{
    return (struct sampler_vector_args){.height = (int32_t)height,
                                        .width = (int32_t)width,
                                        .rows = (int32_t)rows,
                                        .columns = (int32_t)columns};
}

static void check_size(const struct sampler_vector_args *a, int64_t capacity, int64_t room,
                       int64_t bytes, int64_t unit)
{
    struct sampler_cut cut = {0};
    const int64_t window = wd_sampler_cut_places(&cut, a, capacity, room, bytes, unit);
    const int64_t across = cut.by_column.divisor;
    const int64_t tiles = cut.by_tile.divisor;
    assert_true(cut.width >= 1 && cut.height >= 1 && across >= 1 && window >= 1);
    assert_true((int64_t)cut.width * cut.height <= capacity);
    assert_int_equal(cut.by_width.divisor, cut.width);
    assert_int_equal(tiles % across, 0);
    assert_true(across * cut.width >= a->columns);
    assert_true(tiles / across * cut.height >= a->rows);
    /* all but the last that are beside or below each other have places: none is launched for nothing */
    assert_true(across <= a->columns && tiles / across <= a->rows);
    assert_true(tiles <= SPATIAL_ITEMS_MAX);
}

static void check(int64_t height, int64_t width, int64_t rows, int64_t columns)
{
    const struct sampler_vector_args a = plane(height, width, rows, columns);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        for (int64_t bytes = 2; bytes <= 4; bytes += 2) {
            check_size(&a, sizes[i].capacity, sizes[i].room, bytes, 1);
            check_size(&a, sizes[i].capacity, sizes[i].room, bytes, 32 / bytes);
        }
    }
}

/* Rows that more than 32 tiles of some places share, and windows that have room nowhere. */
static void test_long(void **state)
{
    static const int64_t shapes[][2] = {{3840, 3840}, {64, 4096},   {4096, 64},   {64, 7000},
                                        {7000, 64},   {4500, 4500}, {8, 10000},   {10000, 8},
                                        {1, 1 << 24}, {1 << 24, 1}, {4096, 4096}, {16, 1 << 20}};
    const size_t count = sizeof shapes / sizeof shapes[0];
    (void)state;
    alarm(SECONDS);
    for (size_t x = 0; x < count; ++x) {
        for (size_t y = 0; y < count; ++y) {
            check(shapes[x][0], shapes[x][1], shapes[y][0], shapes[y][1]);
        }
    }
}

/* Rows of whole sectors are cut between sectors, also where that takes lower tiles. */
static void test_sectors(void **state)
{
    static const int64_t sides[][2] = {{112, 112}, {64, 64}, {96, 96}, {224, 224}, {64, 128}};
    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; ++i) {
        const struct sampler_vector_args a =
            plane(sides[i][0], sides[i][0], sides[i][1], sides[i][1]);
        struct sampler_cut cut = {0};
        const int64_t window =
            wd_sampler_cut_places(&cut, &a, 8 * WINDOW_THREADS, SAMPLE_ROOM, 2, 16);
        assert_int_equal(cut.width % 16, 0);
        assert_true(window <= SAMPLE_ROOM && cut.width * cut.height >= 4 * WINDOW_THREADS);
    }
}

static int64_t any(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

/* Sides whose product has at most so many bits. */
static void any_sides(int bits, int64_t *a, int64_t *b)
{
    const int first = (int)any(0, bits);
    *a = any(1, (int64_t)1 << first);
    *b = any(1, (int64_t)1 << (bits - first));
}

static void test_random(void **state)
{
    (void)state;
    srand(1);
    alarm(SECONDS);
    for (int turn = 0; turn < TURNS; ++turn) {
        int64_t height, width, rows, columns;
        any_sides((int)any(0, 26), &height, &width);
        any_sides((int)any(0, 25), &rows, &columns);
        check(height, width, rows, columns);
    }
}

/* ---- Tiles of gradients ---- */

/* Whether `count` tiles of 1 << log2 are as many as a side needs. */
static void check_side(uint32_t count, int log2, int64_t side)
{
    const int64_t each = (int64_t)1 << log2;
    assert_true(count * each >= side && (count - 1) * each < side);
}

static void check_tiles(const struct sampler_vector_args *a)
{
    assert_true(a->lanes_log2 >= 0 && a->across_log2 >= 0 && a->chunk >= 1);
    check_side(a->by_column.divisor, a->lanes_log2, a->width);
    check_side(a->by_row.divisor, a->across_log2, a->height);
    assert_true((int64_t)a->by_chunk.divisor * a->chunk >= a->channels);
    assert_true((int64_t)(a->by_chunk.divisor - 1) * a->chunk < a->channels);
}

static void check_gradients(struct sampler_vector_args a, int64_t images)
{
    const int64_t places = images * a.rows * a.columns;
    int64_t blocks;
    int threads;
    wd_sampler_cut_little(&a, images, 132);
    check_tiles(&a);
    /* a thread an element, and room for four of its channels at a time; more of them only where there are blocks enough */
    threads = 1 << (a.lanes_log2 + a.across_log2);
    blocks = images * a.by_column.divisor * a.by_row.divisor * a.by_chunk.divisor;
    assert_true(threads <= SAMPLER_LITTLE_THREADS && a.chunk % 4 == 0);
    assert_true(a.chunk == 4 || blocks >= 16 * 132);
    /* all of them, unless the image is smaller */
    assert_true(threads == SAMPLER_LITTLE_THREADS || a.by_column.divisor * a.by_row.divisor == 1);
    for (int turn = 0; turn < 16; ++turn) {
        const int area_log2 = 5 + turn % 4;
        const int64_t sums = SAMPLER_REGION_SUMS >> turn / 4;
        int64_t framed;
        wd_sampler_cut_regions(&a, area_log2, sums);
        check_tiles(&a);
        assert_true(a.lanes_log2 + a.across_log2 <= area_log2);
        framed = (((int64_t)1 << a.lanes_log2) + 2) * (((int64_t)1 << a.across_log2) + 2);
        assert_true(framed * (a.chunk | 1) <= sums ||
                    (a.chunk == 1 && framed <= SAMPLER_REGION_SUMS));
    }
    /* threads that share a place are of one warp, and have channels; few places alone are shared */
    wd_sampler_share(&a, places, 132);
    assert_true(a.sharing_log2 >= 0 && a.sharing_log2 <= 5);
    assert_true(a.sharing_log2 == 0 || a.channels >> a.sharing_log2 >= 1);
    assert_true(a.sharing_log2 == 0 || places << (a.sharing_log2 - 1) < 1024 * 132);
}

/* Tiles of one size, of images that are no smaller. */
static bool check_affine(struct sampler_vector_args a, int64_t images)
{
    const bool mapped = wd_sampler_cut_affine(&a, images, 132);
    if (!mapped) return false;
    assert_true(a.width >= AFFINE_LEAST_WIDTH && a.height >= AFFINE_LEAST_HEIGHT);
    assert_true(a.rows > 1 && a.columns > 1 && a.channels <= AFFINE_CHANNELS);
    assert_true((int64_t)a.by_column.divisor * AFFINE_WIDTH >= a.width);
    assert_true((int64_t)a.by_row.divisor * AFFINE_HEIGHT >= a.height);
    assert_true((int64_t)(a.by_column.divisor - 1) * AFFINE_WIDTH < a.width);
    assert_true((int64_t)(a.by_row.divisor - 1) * AFFINE_HEIGHT < a.height);
    return true;
}

static void test_gradients(void **state)
{
    int mapped = 0;
    (void)state;
    srand(2);
    for (int turn = 0; turn < TURNS; ++turn) {
        int64_t height, width, rows, columns;
        struct sampler_vector_args a;
        any_sides((int)any(0, 26), &height, &width);
        any_sides((int)any(0, 25), &rows, &columns);
        a = plane(height, width, rows, columns);
        a.channels = (int32_t)any(1, 1 << any(0, 12));
        check_gradients(a, any(1, 1 << any(0, 8)));
        a.channels = (int32_t)any(1, 4);
        a.x.column = a.y.column = a.pairs = 1;
        mapped += check_affine(a, any(1, 1 << any(0, 8)));
    }
    assert_true(mapped > TURNS / 100);
}

/* A launch takes as many images as can be counted, and one however many threads it has. */
static void test_images(void **state)
{
    const int64_t tiles[] = {1, 1000, 1 << 20, 1 << 21, (1 << 21) + 1, 1 << 23};
    (void)state;
    assert_int_equal(wd_spatial_images(0), SPATIAL_ITEMS_MAX);
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; ++i) {
        const int64_t threads = tiles[i] * GATHER_THREADS;
        const int64_t most = wd_spatial_images(threads);
        assert_true(most >= 1);
        assert_true(most == 1 || most * threads <= SPATIAL_ITEMS_MAX);
        assert_true((most + 1) * threads > SPATIAL_ITEMS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long),   cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_random), cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
