/* SPDX-License-Identifier: Apache-2.0
 *
 * The scratch of the engines bn_vector, where parameters are too many to be worked on at once: what
 * their kernels are told to write ends where the workspace that they asked for does, for devices
 * that are only described. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/norm_slots.h"
#include "ops/engine.h"
#include "ops/norm/bn_vector_args.h"

extern const struct wd_engine wd_engine_bn_training_vector;
extern const struct wd_engine wd_engine_bn_backward_vector;

enum { TURNS = 3000, RANGE = 1 << 16, PARAMS_MAX = 1 << 20 };

static char scratch[16]; /* an address, of which nobody writes */
static int64_t written;  /* of it, by what was emitted */
static int launches;

static cudnnStatus_t record(struct wd_queue *queue, const struct wd_launch *launch)
{
    struct bn_vector_args a;
    int64_t end;
    (void)queue;
    assert_int_equal(launch->param_size[0], sizeof a);
    memcpy(&a, launch->param[0], sizeof a);
    end = (intptr_t)a.partial - (intptr_t)scratch +
          (int64_t)a.segments * a.width * (int64_t)sizeof(struct bn_partial);
    if (end > written) written = end;
    launches += 1;
    return CUDNN_STATUS_SUCCESS;
}

static struct wd_tensor columns(int dtype, int64_t outer, int64_t params)
{
    return (struct wd_tensor){.dtype = dtype,
                              .rank = 4,
                              .vect_count = 1,
                              .dim = {outer, params, 1, 1},
                              .stride = {params, 1, 1, 1}};
}

static void check(const struct wd_engine *engine, const struct wd_device *device, int dtype,
                  int64_t outer, int64_t params)
{
    static const struct wd_queue_ops ops = {.kernel = record};
    static char data[16];
    struct wd_tensor x = columns(dtype, outer, params);
    struct wd_tensor param =
        columns(dtype == CUDNN_DATA_DOUBLE ? dtype : CUDNN_DATA_FLOAT, 1, params);
    struct wd_queue queue = {.ops = &ops, .device = device};
    struct wd_single single;
    struct wd_reason reason;
    struct wd_call call;
    const struct wd_tensor *of[WD_MAX_SLOTS] = {NULL};
    wd_single_init(&single, engine->op);
    single.node.attr.norm.epsilon = 1e-5;
    single.node.attr.norm.mode = CUDNN_BATCHNORM_PER_ACTIVATION;
    if (engine->op == WD_OP_BN_TRAINING) {
        of[WD_BN_TRAIN_X] = of[WD_BN_TRAIN_Y] = &x;
        of[WD_BN_TRAIN_SCALE] = of[WD_BN_TRAIN_BIAS] = &param;
    } else {
        of[WD_BN_GRAD_X] = of[WD_BN_GRAD_DY] = of[WD_BN_GRAD_DX] = &x;
        of[WD_BN_GRAD_SCALE] = of[WD_BN_GRAD_DSCALE] = of[WD_BN_GRAD_DBIAS] = &param;
    }
    for (int s = 0; s < WD_MAX_SLOTS; ++s) {
        if (of[s]) wd_single_bind(&single, s, of[s], data, NULL);
    }
    memset(&call, 0, sizeof call);
    call.problem =
        (struct wd_problem){.graph = &single.graph, .node = &single.node, .device = device};
    call.data = single.data;
    call.scalars = single.scalars;
    call.workspace = scratch;
    assert_true(engine->match(&call.problem, &reason));
    written = launches = 0;
    assert_int_equal(engine->emit(&call, &queue), CUDNN_STATUS_SUCCESS);
    assert_true(launches >= 3 * (params / RANGE));
    if (written > engine->workspace(&call.problem)) {
        fail_msg("%s, %d processors, %lld x %lld of type %d: %lld bytes of %lld", engine->name,
                 device->multiprocessors, (long long)outer, (long long)params, dtype,
                 (long long)written, (long long)engine->workspace(&call.problem));
    }
}

static void check_both(const struct wd_device *device, int dtype, int64_t outer, int64_t params)
{
    check(&wd_engine_bn_training_vector, device, dtype, outer, params);
    check(&wd_engine_bn_backward_vector, device, dtype, outer, params);
}

/* The last range is narrower, so that more segments of it fill the chip. */
static void test_last_range(void **state)
{
    struct wd_device device = {.kind = WD_GPU, .capability = 90, .multiprocessors = 132};
    (void)state;
    check_both(&device, CUDNN_DATA_HALF, 65, 112896);
    check_both(&device, CUDNN_DATA_HALF, 128, 112896);
}

static int64_t any(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

static void test_random(void **state)
{
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                                CUDNN_DATA_DOUBLE};
    (void)state;
    srand(1);
    for (int turn = 0; turn < TURNS; ++turn) {
        struct wd_device device = {
            .kind = WD_GPU, .capability = 90, .multiprocessors = (int)any(1, 1 << any(1, 9))};
        check_both(&device, types[turn % 4], any(1, 1 << any(0, 12)),
                   8 * any(RANGE / 8, (turn % 2 ? 2 * RANGE : PARAMS_MAX) / 8));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_range),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
