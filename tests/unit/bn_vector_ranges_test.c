/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines bn_vector, for devices that are only described. Where parameters are too many to be worked
 * on at once, what their kernels are told to write ends where the workspace that they asked for does.
 * Where tensors lie each otherwise, kernels count a parameter's elements in 31 bits, or are not asked. */
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
extern const struct wd_engine wd_engine_bn_training_def_gpu;
extern const struct wd_engine wd_engine_bn_backward_def_gpu;

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

/* A call without buffers: all tensors of x's shape at `data`, but for the output, `behind` it. */
struct made {
    struct wd_single single;
    struct wd_call call;
};

static void make(struct made *m, const struct wd_engine *engine, const struct wd_device *device,
                 const struct wd_tensor *x, const struct wd_tensor *param, int mode, int behind)
{
    static _Alignas(16) char data[32];
    const struct wd_tensor *of[WD_MAX_SLOTS] = {NULL};
    int output = engine->op == WD_OP_BN_TRAINING ? (int)WD_BN_TRAIN_Y : (int)WD_BN_GRAD_DX;
    struct wd_reason reason;
    wd_single_init(&m->single, engine->op);
    m->single.node.attr.norm.epsilon = 1e-5;
    m->single.node.attr.norm.mode = mode;
    of[output] = x;
    if (engine->op == WD_OP_BN_TRAINING) {
        of[WD_BN_TRAIN_X] = x;
        of[WD_BN_TRAIN_SCALE] = of[WD_BN_TRAIN_BIAS] = param;
    } else {
        of[WD_BN_GRAD_X] = of[WD_BN_GRAD_DY] = x;
        of[WD_BN_GRAD_SCALE] = of[WD_BN_GRAD_DSCALE] = of[WD_BN_GRAD_DBIAS] = param;
    }
    for (int s = 0; s < WD_MAX_SLOTS; ++s) {
        if (of[s]) wd_single_bind(&m->single, s, of[s], data + (s == output ? behind : 0), NULL);
    }
    memset(&m->call, 0, sizeof m->call);
    m->call.problem =
        (struct wd_problem){.graph = &m->single.graph, .node = &m->single.node, .device = device};
    m->call.data = m->single.data;
    m->call.scalars = m->single.scalars;
    m->call.workspace = scratch;
    assert_true(engine->match(&m->call.problem, &reason));
}

static void check(const struct wd_engine *engine, const struct wd_device *device, int dtype,
                  int64_t outer, int64_t params)
{
    static const struct wd_queue_ops ops = {.kernel = record};
    struct wd_tensor x = columns(dtype, outer, params);
    struct wd_tensor param =
        columns(dtype == CUDNN_DATA_DOUBLE ? dtype : CUDNN_DATA_FLOAT, 1, params);
    struct wd_queue queue = {.ops = &ops, .device = device};
    struct made m;
    make(&m, engine, device, &x, &param, CUDNN_BATCHNORM_PER_ACTIVATION, 0);
    written = launches = 0;
    assert_int_equal(engine->emit(&m.call, &queue), CUDNN_STATUS_SUCCESS);
    assert_true(launches >= 3 * (params / RANGE));
    if (written > engine->workspace(&m.call.problem)) {
        fail_msg("%s, %d processors, %lld x %lld of type %d: %lld bytes of %lld", engine->name,
                 device->multiprocessors, (long long)outer, (long long)params, dtype,
                 (long long)written, (long long)engine->workspace(&m.call.problem));
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

static int by_definition; /* launches; others are in `launches` */

static cudnnStatus_t count(struct wd_queue *queue, const struct wd_launch *launch)
{
    struct bn_vector_args a;
    (void)queue;
    if (launch->param_count == 2) {
        by_definition += 1;
        return CUDNN_STATUS_SUCCESS;
    }
    assert_int_equal(launch->param_size[0], sizeof a);
    memcpy(&a, launch->param[0], sizeof a);
    assert_true(a.units <= INT32_MAX && a.by_plane.divisor <= INT32_MAX);
    /* runs or elements of a parameter, all of them */
    assert_true((int64_t)a.units >= a.terms / BN_RUN);
    launches += 1;
    return CUDNN_STATUS_SUCCESS;
}

static void check_planes(const struct wd_engine *engine, int64_t outer, int64_t side, int behind,
                         bool defined)
{
    static const struct wd_queue_ops ops = {.kernel = count};
    static const struct wd_device device = {
        .kind = WD_GPU, .capability = 90, .multiprocessors = 132};
    enum { PARAMS = 2 };
    struct wd_tensor x = {.dtype = CUDNN_DATA_HALF,
                          .rank = 4,
                          .vect_count = 1,
                          .dim = {outer, PARAMS, side, side},
                          .stride = {PARAMS * side * side, side * side, side, 1}};
    struct wd_tensor param = columns(CUDNN_DATA_FLOAT, 1, PARAMS);
    struct wd_queue queue = {.ops = &ops, .device = &device};
    const struct wd_engine *definition = engine->op == WD_OP_BN_TRAINING
                                             ? &wd_engine_bn_training_def_gpu
                                             : &wd_engine_bn_backward_def_gpu;
    struct made m;
    make(&m, engine, &device, &x, &param, CUDNN_BATCHNORM_SPATIAL, behind);
    by_definition = launches = 0;
    assert_int_equal(engine->emit(&m.call, &queue), CUDNN_STATUS_SUCCESS);
    assert_true((by_definition > 0) == defined && (launches > 0) == !defined);
    if (defined) {
        assert_true(engine->workspace(&m.call.problem) >= definition->workspace(&m.call.problem));
    }
}

/* Planes of whole runs, of up to 2^34 elements, with an output that lies as x does, or not. */
static void test_planes(void **state)
{
    const struct wd_engine *engines[] = {&wd_engine_bn_training_vector,
                                         &wd_engine_bn_backward_vector};
    (void)state;
    for (int i = 0; i < 2; ++i) {
        check_planes(engines[i], 1, 1 << 15, 0, false);
        check_planes(engines[i], 1, 1 << 15, 2, false);
        check_planes(engines[i], 2, 1 << 15, 0, false);
        check_planes(engines[i], 2, 1 << 15, 2, true);
        check_planes(engines[i], 1, 1 << 16, 0, false);
        check_planes(engines[i], 1, 1 << 16, 2, true);
        check_planes(engines[i], (1 << 25) - 1, 8, 2, false);
        check_planes(engines[i], 1 << 25, 8, 2, true);
    }
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
        cmocka_unit_test(test_planes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
