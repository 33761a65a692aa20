/* SPDX-License-Identifier: Apache-2.0
 *
 * How samples of instance and group norm are shared out among teams of blocks, for devices that are only described: the
 * engine takes what its kernels can do whatever the channels of a group and the processors, and what it launches has
 * room on the board. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/board.h"
#include "base/sizes.h"
#include "graph/norms.h"
#include "ops/engine.h"
#include "ops/norm/bn_grid_args.h"
#include "unit/devices.h"

extern const struct wd_engine wd_engine_norm_training_samples;
extern const struct wd_engine wd_engine_norm_backward_samples;

static struct bn_grid_args said; /* by the first launch of a call */
static uint32_t grid;            /* of it, in blocks */
static int launches;

static cudnnStatus_t record(struct wd_queue *queue, const struct wd_launch *launch)
{
    (void)queue;
    if (launches++ > 0) return CUDNN_STATUS_SUCCESS;
    assert_int_equal(launch->param_size[0], sizeof said);
    memcpy(&said, launch->param[0], sizeof said);
    grid = launch->grid[0];
    return CUDNN_STATUS_SUCCESS;
}

static _Alignas(16) char nobody_writes[64];

static cudnnStatus_t counters(struct wd_queue *queue, void **at)
{
    (void)queue;
    *at = nobody_writes;
    return CUDNN_STATUS_SUCCESS;
}

/* [a][b][plane] with b last */
static struct wd_tensor tensor(int dtype, int64_t a, int64_t b, int64_t plane)
{
    return (struct wd_tensor){.dtype = dtype,
                              .rank = 4,
                              .vect_count = 1,
                              .dim = {a, b, plane, 1},
                              .stride = {b * plane, 1, b, b}};
}

struct shape {
    int64_t samples, channels, groups, plane;
};

/* False where the engine does not match; else said and grid are its launch's. */
static bool launch(const struct shape *s, bool backward, int processors)
{
    static const struct wd_queue_ops ops = {.kernel = record, .counters = counters};
    const struct wd_device device = DEVICE_NEW(90, processors);
    const struct wd_engine *engine =
        backward ? &wd_engine_norm_backward_samples : &wd_engine_norm_training_samples;
    const struct wd_tensor x = tensor(CUDNN_DATA_HALF, s->samples, s->channels, s->plane);
    const struct wd_tensor param = tensor(CUDNN_DATA_FLOAT, 1, s->channels, 1);
    const struct wd_tensor stat = tensor(CUDNN_DATA_FLOAT, s->samples, s->groups, 1);
    const struct wd_tensor one = tensor(CUDNN_DATA_FLOAT, 1, 1, 1);
    const struct wd_tensor *of[WD_MAX_SLOTS] = {NULL};
    struct wd_queue queue = {.ops = &ops, .device = &device};
    struct wd_single single;
    struct wd_reason reason;
    struct wd_call call = {.workspace = nobody_writes};
    wd_single_init(&single, engine->op);
    single.node.attr.norms.mode = s->groups == s->channels ? CUDNN_INSTANCE_NORM : CUDNN_GROUP_NORM;
    if (backward) {
        of[NORM_GRAD_X] = of[NORM_GRAD_DY] = of[NORM_GRAD_DX] = &x;
        of[NORM_GRAD_SCALE] = of[NORM_GRAD_DSCALE] = of[NORM_GRAD_DBIAS] = &param;
        of[NORM_GRAD_MEAN] = of[NORM_GRAD_INV_STD] = &stat;
    } else {
        of[NORM_TRAIN_X] = of[NORM_TRAIN_Y] = &x;
        of[NORM_TRAIN_SCALE] = of[NORM_TRAIN_BIAS] = &param;
        of[NORM_TRAIN_EPSILON] = &one;
        of[NORM_TRAIN_MEAN] = of[NORM_TRAIN_INV_STD] = &stat;
    }
    for (int i = 0; i < WD_MAX_SLOTS; ++i) {
        if (of[i]) wd_single_bind(&single, i, of[i], nobody_writes, NULL);
    }
    call.problem =
        (struct wd_problem){.graph = &single.graph, .node = &single.node, .device = &device};
    call.data = single.data;
    call.scalars = single.scalars;
    launches = 0;
    if (!engine->match(&call.problem, &reason)) return false;
    assert_int_equal(engine->emit(&call, &queue), CUDNN_STATUS_SUCCESS);
    assert_true(launches > 0);
    return true;
}

/* Of what was launched: whole groups, all channels, blocks that are there at once, and words that have room. */
static void check(const struct shape *s, bool backward, int processors)
{
    const int64_t ranges = wd_ceil_div(s->channels, said.items);
    const int64_t words = (int64_t)grid * (said.sets > 0 ? said.sets : said.items);
    assert_int_equal(said.items % said.members, 0);
    assert_int_equal(said.members, s->channels / s->groups);
    assert_true(said.blocks > 1 && grid == said.blocks * ranges * said.at_once);
    assert_true(grid <= (uint32_t)processors);
    assert_true((backward ? 2 : 1) * words <= WD_BOARD_WORDS);
}

static void takes(struct shape s, bool backward, int processors)
{
    if (!launch(&s, backward, processors)) {
        fail_msg("%lldx%lldx%lld, %lld groups, %s, %d processors: not taken", (long long)s.samples,
                 (long long)s.channels, (long long)s.plane, (long long)s.groups,
                 backward ? "backward" : "training", processors);
    }
    check(&s, backward, processors);
}

static const int chips[] = {78, 114, 132, 148, 160};

/* Any channels of a group, in as many teams as it takes. */
static void test_groups(void **state)
{
    (void)state;
    for (int i = 0; i < 5; ++i) {
        for (int64_t each = 1; each <= 20; ++each) {
            for (int64_t groups = 8; groups <= 64; groups *= 2) {
                const struct shape s = {8, each * groups, groups, (1 << 24) / (each * groups)};
                takes(s, false, chips[i]);
                takes(s, true, chips[i]);
            }
        }
    }
}

/* Teams have as many columns each. */
static void test_even(void **state)
{
    (void)state;
    takes((struct shape){8, 192, 192, 128 * 128}, true, 132);
    assert_int_equal(said.items, 96);
    takes((struct shape){8, 192, 32, 128 * 128}, true, 132);
    assert_int_equal(said.items, 96);
    takes((struct shape){8, 240, 40, 128 * 128}, true, 132);
    assert_int_equal(said.items, 120);
    takes((struct shape){8, 224, 32, 128 * 128}, true, 132);
    assert_int_equal(said.items, 112);
}

/* What has been measured (backward of the last row as the model has it), on a chip of 132 processors: columns of a team and samples
 * at once, forward and backward. */
static void test_measured(void **state)
{
    static const struct {
        struct shape shape;
        uint32_t columns[2], at_once[2];
    } rows[] = {
        {{8, 640, 32, 64 * 64}, {160, 160}, {8, 4}},
        {{8, 320, 32, 128 * 128}, {160, 160}, {4, 2}},
        {{64, 256, 32, 56 * 56}, {128, 128}, {32, 16}},
        {{8, 64, 64, 256 * 256}, {64, 64}, {8, 4}},
        {{16, 1280, 32, 32 * 32}, {320, 160}, {16, 8}},
        {{1, 128, 32, 1024 * 1024}, {128, 128}, {1, 1}},
        {{2, 512, 32, 256 * 256}, {128, 128}, {1, 1}},
        {{2, 32, 32, 64 * 128 * 128}, {32, 32}, {1, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        for (int backward = 0; backward < 2; ++backward) {
            takes(rows[i].shape, backward, 132);
            assert_int_equal(said.items, rows[i].columns[backward]);
            assert_int_equal(said.at_once, rows[i].at_once[backward]);
        }
    }
}

/* More processors than the board has room for with the most columns. */
static void test_larger(void **state)
{
    (void)state;
    takes((struct shape){8, 640, 640, 64 * 64}, true, 148);
    assert_int_equal(said.items, 128);
    takes((struct shape){8, 640, 32, 64 * 64}, false, 148);
    assert_int_equal(said.items, 320);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_even),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
