/* SPDX-License-Identifier: Apache-2.0
 *
 * How weighted sums are shared out among walks: whatever the shape, every element of every row has one
 * thread, and what a block keeps in shared memory has room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "ops/pooling/pooling_block.h"
#include "ops/resample/resample_ring.h"
#include "ops/resample/resample_ring_args.h"
#include "unit/devices.h"

enum { TURNS = 4000, SHARED_MAX = 40 << 10, RUN_BYTES = 16 };

static const int processors[] = {132, 114, 148, 2};

struct problem {
    struct wd_single single;
    struct wd_resample_shape shape;
    struct wd_resample_tables tables;
};

static void bind(struct wd_single *single, int slot, int dtype, const int64_t *dim, bool pixels)
{
    struct wd_tensor t = {.dtype = dtype,
                          .rank = 4,
                          .vect_count = 1,
                          .dim = {dim[0], dim[1], dim[2], dim[3]},
                          .stride = {dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1}};
    if (pixels) t.stride[1] = 1, t.stride[2] = dim[3] * dim[1], t.stride[3] = dim[1];
    wd_single_bind(single, slot, &t, NULL, NULL);
}

/* Averages of `window` pixels, by `stride`. */
static bool see(struct problem *p, bool backward, int dtype, const int64_t *dim, bool pixels,
                int64_t window, int64_t stride)
{
    const struct wd_problem problem = {.graph = &p->single.graph, .node = &p->single.node};
    struct wd_resample_attr *attr = &p->single.node.attr.resample;
    const int64_t pad = (window - 1) / 2;
    int64_t windows[4] = {dim[0], dim[1]};
    struct wd_reason reason;
    wd_single_init(&p->single, backward ? WD_OP_RESAMPLE_BACKWARD : WD_OP_RESAMPLE_FORWARD);
    attr->spatial = 2;
    attr->mode = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
    attr->padding = CUDNN_ZERO_PAD;
    attr->compute = CUDNN_DATA_FLOAT;
    for (int d = 0; d < 2; ++d) {
        attr->unit[d] = 2;
        attr->window[d] = 2 * window;
        attr->stride[d] = 2 * stride;
        attr->pad_before[d] = attr->pad_after[d] = 2 * pad;
        if (dim[2 + d] + 2 * pad < window) return false;
        windows[2 + d] = (dim[2 + d] + 2 * pad - window) / stride + 1;
    }
    bind(&p->single, backward ? (int)WD_RESAMPLE_BACK_DX : (int)WD_RESAMPLE_X, dtype, dim, pixels);
    bind(&p->single, backward ? (int)WD_RESAMPLE_BACK_DY : (int)WD_RESAMPLE_Y, dtype, windows,
         pixels);
    if (!wd_resample_shape_of(&problem, &p->shape, &reason)) return false;
    p->tables = wd_resample_tables_of(&p->shape, backward ? RESAMPLE_SHARES : RESAMPLE_PIXELS, 0);
    return true;
}

static const int64_t *out_of(const struct wd_resample_shape *s)
{
    return s->backward ? s->image : s->windows;
}

/* Words of a line that begins `at` elements behind a word's begin: each element in one, and none has none. */
static void check_words(const struct wd_resample_shape *s, const struct wd_resample_ring_plan *p,
                        int64_t at)
{
    const int64_t length = out_of(s)[2] * s->inner;
    const int64_t words =
        wd_resample_ring_words(s, p, (const void *)(uintptr_t)(1024 + at * s->size));
    const int64_t before = at % p->each;
    assert_true(length % p->each == 0); /* so that all lines begin alike */
    assert_true(words * p->each - before >= length && (words - 1) * p->each - before < length);
    assert_true(words * s->outer <= INT32_MAX);
}

/* Units of a line, and what a walk has of them. */
static void check_line(const struct wd_resample_shape *s, const struct wd_resample_ring_plan *p)
{
    const int64_t length = out_of(s)[2] * s->inner;
    int64_t most = p->threads * RING_PLACES;
    if (p->words) {
        assert_true(p->each * s->size <= 4 && p->outer == 1);
        assert_int_equal(p->units * p->each, length * s->outer);
        for (int64_t at = 0; at < 2; ++at) check_words(s, p, at);
        most = p->threads * RING_WORDS / p->each;
    } else if (p->runs) {
        assert_int_equal(p->units * RUN_BYTES, length * s->size);
        most = p->threads;
    } else {
        assert_int_equal(p->units, length);
        assert_int_equal(p->threads, RING_WARP);
    }
    assert_true(p->segment * (p->words ? 1 : p->planes) <= most);
    assert_true(p->segments * p->segment >= p->units);
    assert_true((p->segments - 1) * p->segment < p->units);
}

static void check(const struct wd_resample_shape *s, const struct wd_resample_ring_plan *p)
{
    const int64_t rows = out_of(s)[1];
    assert_true(p->threads % RING_WARP == 0 && p->walks >= 1);
    assert_true(p->threads * p->walks <= RING_WALKS * RING_WARP);
    assert_true(p->rows >= 1 && p->bands * p->walks * p->rows >= rows);
    assert_true((p->bands - 1) * p->walks * p->rows < rows);
    assert_true(p->shared <= SHARED_MAX);
    if (!p->words) {
        assert_true(p->outer * p->planes >= s->outer && (p->outer - 1) * p->planes < s->outer);
        assert_true(p->planes == 1 || p->segments == 1);
    }
    check_line(s, p);
}

static int64_t any(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

/* One number after the other: in which order a call takes its arguments is the compiler's matter. */
static bool see_any(struct problem *p)
{
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    const int dtype = types[any(0, 2)];
    const bool backward = any(0, 1), pixels = any(0, 1);
    const int64_t window = any(1, 5), stride = any(1, window);
    int64_t dim[4];
    dim[0] = any(1, 64);
    dim[1] = any(1, 1 << any(0, 8));
    dim[2] = any(1, 1 << any(0, 9));
    dim[3] = any(1, 1 << any(0, 9));
    return see(p, backward, dtype, dim, pixels, window, stride);
}

static void test_random(void **state)
{
    int words = 0, pairs = 0, runs = 0, planes = 0, others = 0;
    (void)state;
    srand(1);
    for (int turn = 0; turn < TURNS; ++turn) {
        struct problem problem;
        struct wd_resample_ring_plan p;
        if (!see_any(&problem) ||
            !wd_resample_ring_plan_of(&problem.shape, &problem.tables, processors[turn % 4], &p))
            continue;
        check(&problem.shape, &p);
        words += p.words, pairs += p.words && p.each == 2, runs += p.runs;
        planes += p.planes > 1, others += !p.words && !p.runs;
    }
    assert_true(words > TURNS / 32 && pairs > 0 && pairs < words);
    assert_true(runs > TURNS / 32 && others > TURNS / 32 && planes > 0);
}

/* Sums of three taps, of 16 bits: words of two elements where lines are made of such. */
static void test_words(void **state)
{
    static const struct {
        int64_t dim[4];
        int dtype;
        int64_t each;
    } list[] = {
        {{63, 61, 111, 114}, CUDNN_DATA_HALF, 2},
        {{63, 61, 111, 113}, CUDNN_DATA_HALF, 1},
        {{63, 61, 111, 114}, CUDNN_DATA_FLOAT, 1},
        {{1, 1, 64, 2}, CUDNN_DATA_BFLOAT16, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        struct problem problem;
        struct wd_resample_ring_plan p;
        assert_true(see(&problem, false, list[i].dtype, list[i].dim, false, 3, 2));
        /* the windows' lines are half as long */
        problem.shape.windows[2] = list[i].dim[3];
        assert_true(wd_resample_ring_plan_of(&problem.shape, &problem.tables, 132, &p));
        assert_true(p.words && p.each == list[i].each);
        check(&problem.shape, &p);
    }
}

/* Bilinear windows of two, by two, have a job of pooling's with their plan: runs of channels and pairs of columns,
 * either way, and nothing else has. */
static void test_halves(void **state)
{
    static const struct wd_device device = DEVICE_NEW(90, 132);
    static const struct {
        int64_t dim[4];
        bool pixels;
        int mode;
        int64_t window, stride;
        bool is;
    } list[] = {
        {{4, 64, 32, 32}, true, CUDNN_RESAMPLE_BILINEAR, 2, 2, true},
        {{4, 64, 32, 32}, false, CUDNN_RESAMPLE_BILINEAR, 2, 2, true},
        {{4, 61, 32, 32}, true, CUDNN_RESAMPLE_BILINEAR, 2, 2, false},
        {{4, 64, 32, 32}, true, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, 2, 2, false},
        {{4, 64, 33, 33}, true, CUDNN_RESAMPLE_BILINEAR, 3, 2, false},
        {{4, 64, 32, 32}, true, CUDNN_RESAMPLE_BILINEAR, 2, 1, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        for (int backward = 0; backward < 2; ++backward) {
            struct problem p;
            struct wd_pool_job job;
            assert_true(see(&p, backward, CUDNN_DATA_HALF, list[i].dim, list[i].pixels,
                            list[i].window, list[i].stride));
            p.single.node.attr.resample.mode = list[i].mode;
            assert_int_equal(wd_resample_halves_of(&p.shape, &device, &job), list[i].is);
            assert_int_equal(job.way != NULL, list[i].is);
            if (!list[i].is) continue;
            assert_ptr_equal(job.way,
                             backward ? &wd_pool_backward_vector : &wd_pool_forward_vector);
            for (int d = 1; d < 3; ++d) {
                assert_int_equal(job.shape.image[d], list[i].dim[1 + d]);
                assert_int_equal(job.shape.windows[d], list[i].dim[1 + d] / 2);
                assert_true(job.shape.window[d] == 2 && job.shape.stride[d] == 2);
            }
            assert_true(job.shape.inverse == 0.25 && !job.shape.max);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
