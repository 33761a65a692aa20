/* SPDX-License-Identifier: Apache-2.0
 *
 * That threads of bn_grid's kernels hold rounds in registers where a problem is more than shared memory, on the boundaries and off them,
 * for devices that are only described: the problems of tests/ops/norm_held_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "graph/norm_slots.h"
#include "ops/engine.h"
#include "ops/norm/bn_grid_args.h"
#include "unit/devices.h"

extern const struct wd_engine wd_engine_bn_training_grid;
extern const struct wd_engine wd_engine_bn_backward_grid;

static struct bn_grid_args said;
static int launches;

static cudnnStatus_t record(struct wd_queue *queue, const struct wd_launch *launch)
{
    (void)queue;
    assert_int_equal(launch->param_size[0], sizeof said);
    memcpy(&said, launch->param[0], sizeof said);
    launches += 1;
    return CUDNN_STATUS_SUCCESS;
}

static _Alignas(64) char nobody_writes[128];

static cudnnStatus_t counters(struct wd_queue *queue, void **at)
{
    (void)queue;
    *at = nobody_writes;
    return CUDNN_STATUS_SUCCESS;
}

static struct wd_tensor tensor(int dtype, int64_t images, int64_t channels, int64_t plane)
{
    return (struct wd_tensor){.dtype = dtype,
                              .rank = 4,
                              .vect_count = 1,
                              .dim = {images, channels, plane, 1},
                              .stride = {channels * plane, 1, channels, channels}};
}

/* Channels last, of two bytes; all tensors of x's shape lie off the boundaries by so many bytes. */
static void launch(int64_t channels, int64_t plane, bool backward, int off,
                   const struct wd_device *device)
{
    static const struct wd_queue_ops ops = {.kernel = record, .counters = counters};
    const struct wd_engine *engine =
        backward ? &wd_engine_bn_backward_grid : &wd_engine_bn_training_grid;
    const struct wd_tensor x = tensor(CUDNN_DATA_HALF, 2, channels, plane);
    const struct wd_tensor param = tensor(CUDNN_DATA_FLOAT, 1, channels, 1);
    const struct wd_tensor *of[WD_MAX_SLOTS] = {NULL};
    struct wd_queue queue = {.ops = &ops, .device = device};
    struct wd_single single;
    struct wd_reason reason;
    struct wd_call call = {.workspace = nobody_writes};
    wd_single_init(&single, engine->op);
    single.node.attr.norm.mode = CUDNN_BATCHNORM_SPATIAL;
    single.node.attr.norm.ops = CUDNN_BATCHNORM_OPS_BN;
    if (backward) {
        of[WD_BN_GRAD_X] = of[WD_BN_GRAD_DY] = of[WD_BN_GRAD_DX] = &x;
        of[WD_BN_GRAD_SCALE] = of[WD_BN_GRAD_DSCALE] = of[WD_BN_GRAD_DBIAS] = &param;
        of[WD_BN_GRAD_SAVED_MEAN] = of[WD_BN_GRAD_SAVED_INV_STD] = &param;
    } else {
        of[WD_BN_TRAIN_X] = of[WD_BN_TRAIN_Y] = &x;
        of[WD_BN_TRAIN_SCALE] = of[WD_BN_TRAIN_BIAS] = &param;
    }
    for (int i = 0; i < WD_MAX_SLOTS; ++i) {
        if (of[i]) wd_single_bind(&single, i, of[i], nobody_writes + (of[i] == &x ? off : 0), NULL);
    }
    call.problem =
        (struct wd_problem){.graph = &single.graph, .node = &single.node, .device = device};
    call.data = single.data;
    call.scalars = single.scalars;
    launches = 0;
    assert_true(engine->match(&call.problem, &reason));
    assert_int_equal(engine->emit(&call, &queue), CUDNN_STATUS_SUCCESS);
    assert_int_equal(launches, 1);
}

static void test_held(void **state)
{
    static const struct wd_device few = DEVICE_NEW(90, 4), h200 = DEVICE_NEW(90, 132);
    static const struct {
        const struct wd_device *device;
        int64_t channels, plane;
    } rows[] = {
        {&few, 16, 120 * 128},  {&few, 24, 130 * 141},   {&few, 3, 400 * 404},
        {&few, 61, 90 * 91},    {&few, 72, 60 * 61},     {&h200, 16, 711 * 712},
        {&h200, 24, 760 * 761}, {&h200, 3, 2300 * 2301}, {&h200, 61, 400 * 401},
        {&h200, 72, 290 * 291},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        for (int backward = 0; backward < 2; ++backward) {
            for (int led = 0; led < 2; ++led) {
                int64_t rows_of_x;
                launch(rows[i].channels, rows[i].plane, backward, led * 10, rows[i].device);
                assert_int_equal(said.bn.lead, led * 5);
                assert_int_equal(said.held, BN_GRID_HELD(1 + backward, led));
                /* whole rows are those that are held and the ring's */
                rows_of_x = (2 * rows[i].channels * rows[i].plane + said.bn.lead) /
                            (said.pitch * (int64_t)(BN_GRID_UNIT / 2));
                assert_int_equal(said.all_rows, rows_of_x);
                assert_int_equal(said.all_rows - said.rows, said.held * said.lanes * said.blocks);
                assert_true(said.rows > said.lanes * said.blocks);
            }
        }
    }
}

/* What shared memory holds is there alone. */
static void test_not_held(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132);
    (void)state;
    for (int backward = 0; backward < 2; ++backward) {
        launch(64, 200 * 200, backward, 0, &h200);
        assert_int_equal(said.held, 0);
        assert_int_equal(said.all_rows, said.rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
