/* SPDX-License-Identifier: Apache-2.0
 *
 * How divisive normalization is cut into walks, for devices that are only described: every run of every
 * row has one lane that stores it, and strips that are side by side in a warp have places in its rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "ops/lrn/divnorm_vector.h"
#include "devices.h"

enum {
    TURNS = 3000,
    WARP = 32,
    PHASES = 4,             /* rows of a group (divnorm_walk.cuh) */
    ELEMENTS_MOST = 1 << 20 /* of a random problem, for the time it takes */
};

/* The kernels, as they are launched. */
#define WD_KERNEL(symbol, args, of_block, of_thread, ...)                                          \
    {{NULL, #symbol, {NULL}, 0, 0}, sizeof(args), of_block, of_thread},
static const struct wd_kernel_row rows[] = {
#include "ops/lrn/divnorm_vector_kernels.def"
};
#undef WD_KERNEL

static const struct {
    const char *kernel;
    int dtype;
    int window;
    int columns; /* of a lane */
} kinds[] = {
    {"divnorm_walk_forward_f32_5", CUDNN_DATA_FLOAT, 5, 4},
    {"divnorm_walk_forward_f32_9", CUDNN_DATA_FLOAT, 9, 4},
    {"divnorm_walk_forward_f16_5", CUDNN_DATA_HALF, 5, 8},
    {"divnorm_walk_forward_bf16_5", CUDNN_DATA_BFLOAT16, 5, 8},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const int processors[] = {132, 114, 148, 2};

static const struct wd_kernel_row *row_of(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        if (strcmp(rows[i].kernel.symbol, name) == 0) return &rows[i];
    }
    return NULL;
}

static bool cut_for(struct divnorm_walk_args *w, int kind, int64_t planes, int64_t height,
                    int64_t width, const struct wd_device *device)
{
    const int window = kinds[kind].window;
    const struct divnorm_vector_args a = {.window = window,
                                          .back = (window - 1) / 2,
                                          .ahead = window - 1 - (window - 1) / 2,
                                          .height = (int32_t)height,
                                          .width = (int32_t)width};
    const struct wd_kernel_row *row = row_of(kinds[kind].kernel);
    assert_non_null(row);
    return wd_divnorm_cut_walk(w, &a, row, planes, kinds[kind].dtype, device);
}

static bool cut(struct divnorm_walk_args *w, int kind, int64_t planes, int64_t height,
                int64_t width, int multiprocessors)
{
    const struct wd_device device = DEVICE_NEW(90, multiprocessors);
    return cut_for(w, kind, planes, height, width, &device);
}

/* Strip number `strip`, a lane after the other, as the kernels find them. */
static void take_strip(const struct divnorm_walk_args *w, int64_t columns, uint32_t strip,
                       unsigned char *taken)
{
    const int64_t groups = w->width / columns, lanes = w->by_group.divisor;
    const int64_t part = strip % w->by_part.divisor;
    const int64_t segment = strip / w->by_part.divisor % w->by_segment.divisor;
    const int64_t plane = strip / w->by_part.divisor / w->by_segment.divisor;
    const int64_t first = part * (lanes - 2 * w->margin) - w->margin;
    const int64_t begin = segment * w->rows, end = wd_least(begin + w->rows, w->height);
    assert_true(begin < w->height);
    for (int64_t at = w->margin; at < lanes - w->margin; ++at) {
        const int64_t group = first + at;
        if (group < 0 || group >= groups) continue;
        for (int64_t row = begin; row < end; ++row) {
            taken[(plane * w->height + row) * groups + group] += 1;
        }
    }
}

static void check(const struct divnorm_walk_args *w, int kind, int64_t planes)
{
    const int64_t columns = kinds[kind].columns, count = planes * w->height * (w->width / columns);
    const int64_t lanes = w->by_group.divisor;
    unsigned char *taken = calloc((size_t)count, 1);
    int64_t once = 0;
    assert_non_null(taken);
    assert_true(w->strips >= 1 && w->strips * lanes <= WARP && lanes > 2 * w->margin);
    /* a place for each lane, and at the ends of strips others */
    assert_true(w->strips * lanes - 1 + 2 * (w->strips - 1) + 2 < DIVNORM_RING_LANES);
    assert_true(w->rows > 0 && w->rows % PHASES == 0);
    /* neighbours see what is beside them; those above and below gone down before */
    assert_true(w->by_part.divisor == 1 || w->margin > 0);
    assert_int_equal(w->items, planes * w->by_part.divisor * w->by_segment.divisor);
    for (uint32_t strip = 0; strip < w->items; ++strip) take_strip(w, columns, strip, taken);
    for (int64_t i = 0; i < count; ++i) once += taken[i] == 1;
    free(taken);
    assert_int_equal(once, count);
}

static int64_t any(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

static void test_random(void **state)
{
    int walks = 0, parts = 0, segments = 0, beside = 0;
    (void)state;
    srand(1);
    for (int turn = 0; turn < TURNS; ++turn) {
        const int kind = turn % KINDS;
        const int64_t width = kinds[kind].columns * any(1, 1 << any(0, 7));
        const int64_t height = any(1, 1 << any(0, 9));
        const int64_t most = wd_most(ELEMENTS_MOST / (width * height), 1);
        const int64_t planes = any(wd_ceil_div(most, 4), most);
        struct divnorm_walk_args w;
        if (!cut(&w, kind, planes, height, width, processors[any(0, 3)])) continue;
        check(&w, kind, planes);
        walks += 1, parts += w.by_part.divisor > 1;
        segments += w.by_segment.divisor > 1, beside += w.strips > 1;
    }
    assert_true(walks > TURNS / 4 && parts > 0 && segments > 0 && beside > 0);
}

/* Walks where there is work for the chip, and tiles where there is none. */
static void test_choices(void **state)
{
    struct divnorm_walk_args w;
    (void)state;
    for (int kind = 0; kind < KINDS; ++kind) {
        assert_true(cut(&w, kind, 64 * 64, 56, 56, 132));
        check(&w, kind, 64 * 64);
        assert_int_equal(w.by_part.divisor, 1);
        assert_false(cut(&w, kind, 1, 56, 56, 132));
        /* few planes: segments of them */
        assert_true(cut(&w, kind, 512, 224, 224, 132));
        check(&w, kind, 512);
        assert_true(w.by_segment.divisor > 1);
    }
}

/* Walks need less of a processor than tiles. */
static void test_other_processors(void **state)
{
    const struct wd_device old = DEVICE_OLD(108), small = DEVICE_SMALL(84);
    (void)state;
    for (int kind = 0; kind < KINDS; ++kind) {
        struct divnorm_walk_args w = {0};
        assert_true(cut_for(&w, kind, 4096, 112, 112, &old));
        check(&w, kind, 4096);
        assert_true(cut_for(&w, kind, 4096, 112, 112, &small));
    }
}

static bool cut_sheet(struct divnorm_sheet_args *s, struct wd_divnorm_launch *l, int window,
                      int64_t planes, int64_t height, int64_t width, const struct wd_device *device)
{
    static const float data = 0;
    const struct divnorm_vector_args a = {.x = &data,
                                          .dy = &data,
                                          .out = (void *)(uintptr_t)&data,
                                          .window = window,
                                          .height = (int32_t)height,
                                          .width = (int32_t)width};
    const struct wd_kernel_row *row =
        row_of(window == 5 ? "divnorm_sheet_backward_f32_5" : "divnorm_sheet_backward_f32_9");
    assert_non_null(row);
    return wd_divnorm_cut_sheet(s, &a, planes, row->threads, device, l);
}

/* Every quad of a plane is one block's, threads have all quads and pairs of the rows that they have at once, and what
 * is stored, or read beyond it, has room. */
static void check_sheet(const struct divnorm_sheet_args *s, const struct wd_divnorm_launch *l,
                        int window, int64_t planes, const struct wd_device *device)
{
    const int64_t segments = s->by_segment.divisor, parts = s->by_part.divisor;
    const int64_t quads = s->width / DIVNORM_QUAD, stored = s->quads + 2 * s->lead;
    const int64_t chunks = wd_ceil_div(s->rows, DIVNORM_DOWN);
    const int64_t floats = l->shared / sizeof(float);
    assert_true(segments * s->rows >= s->height && (segments - 1) * s->rows < s->height);
    assert_true(parts * s->quads >= quads && (parts - 1) * s->quads < quads);
    assert_int_equal(s->lead, parts > 1 ? 2 : 0);
    assert_true(s->by_quad.divisor == stored || s->by_quad.divisor == stored + 1);
    assert_int_equal(l->blocks, planes * segments * parts);
    assert_true(l->threads % WARP == 0 && l->threads <= DIVNORM_SHEET_THREADS);
    assert_true(s->rows_at_once >= 1 && s->rows_at_once * s->by_quad.divisor <= l->threads);
    assert_true(s->chunks_at_once >= 1 && s->chunks_at_once * s->by_pair.divisor <= l->threads);
    assert_true(s->by_pair.divisor == 2 * stored ||
                (s->by_pair.divisor > 2 * stored && s->by_pair.divisor % 16 == 0));
    assert_true(s->pitch == (stored + 1) * DIVNORM_QUAD && s->sums == s->sums_rows * s->pitch);
    assert_true(s->sums_rows >= wd_least(s->height, s->rows + window - 1));
    assert_true(s->sums_rows % DIVNORM_DOWN == 0);
    assert_true(s->shares >= (s->rows + window - 1) * s->pitch);
    assert_true(floats >= DIVNORM_QUAD + 2 * s->sums + 2 * s->shares + s->rows * s->pitch);
    assert_true(floats >= DIVNORM_QUAD + 2 * s->sums + s->shares +
                              (chunks * DIVNORM_DOWN + window - 1) * s->pitch);
    assert_true(l->shared <= device->shared_per_block);
}

static void test_sheets(void **state)
{
    int whole = 0, several = 0, parts = 0;
    (void)state;
    srand(2);
    for (int turn = 0; turn < TURNS; ++turn) {
        const struct wd_device devices[] = {DEVICE_NEW(90, 132), DEVICE_OLD(108), DEVICE_SMALL(84)};
        const struct wd_device *device = &devices[turn % 3];
        const int window = turn & 1 ? 9 : 5;
        const int64_t width = 4 * any(1, 1 << any(0, 9)), height = any(1, 1 << any(0, 9));
        const int64_t planes = any(1, 4096);
        struct divnorm_sheet_args s;
        struct wd_divnorm_launch l;
        if (!cut_sheet(&s, &l, window, planes, height, width, device)) continue;
        check_sheet(&s, &l, window, planes, device);
        whole += s.by_segment.divisor == 1, several += s.by_segment.divisor > 1;
        parts += s.by_part.divisor > 1;
    }
    assert_true(whole > TURNS / 16 && several > TURNS / 16 && parts > TURNS / 16);
}

/* Planes of a block each, parts of them, and tiles where there are few or small ones. */
static void test_choice_of_sheets(void **state)
{
    const struct wd_device device = DEVICE_NEW(90, 132);
    struct divnorm_sheet_args s;
    struct wd_divnorm_launch l;
    (void)state;
    assert_true(cut_sheet(&s, &l, 9, 4096, 56, 56, &device));
    assert_true(s.by_segment.divisor == 1 && l.threads == 224 && s.rows_at_once == 14);
    assert_true(cut_sheet(&s, &l, 5, 2048, 112, 112, &device));
    assert_true(s.by_segment.divisor == 4 && s.rows == 28);
    assert_false(cut_sheet(&s, &l, 9, 16, 56, 56, &device));
    assert_false(cut_sheet(&s, &l, 9, 4096, 8, 8, &device));
    assert_true(cut_sheet(&s, &l, 5, 512, 448, 448, &device));
    assert_true(s.by_part.divisor > 1);
    assert_true(cut_sheet(&s, &l, 5, 512, 1024, 2048, &device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sheets),           cmocka_unit_test(test_choice_of_sheets),
        cmocka_unit_test(test_random),           cmocka_unit_test(test_choices),
        cmocka_unit_test(test_other_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
