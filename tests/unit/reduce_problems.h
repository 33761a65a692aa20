/* SPDX-License-Identifier: Apache-2.0
 *
 * Random problems of reduce, devices that are only described, and what an engine launches for them, for
 * reduce_blocks_test.c. */
#ifndef TESTS_UNIT_REDUCE_PROBLEMS_H
#define TESTS_UNIT_REDUCE_PROBLEMS_H

#include "base/sizes.h"
#include "ops/reduce/reduce_gpu.h"
#include "reduce_devices.h"

enum { LAUNCHES_MAX = 2 };

/* ---- Problems ---- */

/* x as memory has it, [k0][r0][k1][r1][k2], which `see` makes fewer of where some are 1. */
struct shape {
    int64_t dim[5];
    int op;
    int dtype;
    int shift;     /* elements between x and a boundary of 16 bytes */
    bool indices;  /* where the operator has them */
    bool permuted; /* r1 comes before r0 in the order of dims */
};

static struct wd_single single;

static struct wd_problem problem_of(const struct shape *s, const struct wd_device *device)
{
    static char memory[WD_MAX_SLOTS * REDUCE_BYTES] __attribute__((aligned(REDUCE_BYTES)));
    static const int plain[5] = {0, 1, 2, 3, 4}, turned[5] = {0, 3, 2, 1, 4};
    const int *order = s->permuted ? turned : plain;
    struct wd_tensor x = {.dtype = s->dtype, .rank = 5, .vect_count = 1}, y = x, indices;
    int64_t stride[5], pitch = 1, after = 1;
    for (int i = 4; i >= 0; --i) stride[i] = pitch, pitch *= s->dim[i];
    for (int d = 4; d >= 0; --d) {
        x.dim[d] = s->dim[order[d]];
        x.stride[d] = stride[order[d]];
        y.dim[d] = order[d] % 2 ? 1 : x.dim[d];
        y.stride[d] = after;
        after *= y.dim[d];
    }
    indices = y;
    indices.dtype = CUDNN_DATA_INT32;
    wd_single_init(&single, WD_OP_REDUCE);
    single.node.attr.reduce = (struct wd_reduce_attr){
        .op = s->op, .compute = CUDNN_DATA_FLOAT, .index_type = CUDNN_32BIT_INDICES};
    wd_single_bind(&single, WD_REDUCE_X, &x, memory + s->shift * wd_dtype_bytes(s->dtype), NULL);
    wd_single_bind(&single, WD_REDUCE_Y, &y, memory, NULL);
    if (s->indices) wd_single_bind(&single, WD_REDUCE_INDICES, &indices, memory, NULL);
    single.scalars[0] = 1.0;
    return (struct wd_problem){.graph = &single.graph, .node = &single.node, .device = device};
}

static struct shape any_shape(int bits)
{
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF};
    static const int ops[] = {CUDNN_REDUCE_TENSOR_ADD,   CUDNN_REDUCE_TENSOR_AVG,
                              CUDNN_REDUCE_TENSOR_NORM2, CUDNN_REDUCE_TENSOR_MUL,
                              CUDNN_REDUCE_TENSOR_MAX,   CUDNN_REDUCE_TENSOR_AMAX};
    struct shape s = {.op = ops[any(0, 5)], .dtype = types[any(0, 4)]};
    const int groups = (int)any(0, 31); /* that there are */
    for (int i = 0; i < 5; ++i) s.dim[i] = 1;
    if (any(0, 3) == 0) { /* few outputs */
        s.dim[2 * any(0, 2)] = any(1, 16);
        s.dim[1] = any(1, 1 << any(0, 3));
        s.dim[3] = any(1, (int64_t)1 << wd_clamp(bits - 4, 0, 30));
    }
    for (int n = 0; s.dim[3] == 1 && n < 10; ++n) {
        const int i = (int)any(0, 4), some = (int)any(0, bits);
        if (s.dim[i] > 1 || !(groups >> i & 1)) continue;
        s.dim[i] = any(0, 2) ? any(1, (int64_t)1 << some) : (int64_t)1 << some;
        bits -= some;
    }
    if (any(0, 3)) s.shift = (int)any(1, REDUCE_BYTES / wd_dtype_bytes(s.dtype) - 1);
    if (s.op >= CUDNN_REDUCE_TENSOR_MIN && s.op <= CUDNN_REDUCE_TENSOR_AMAX) {
        s.indices = any(0, 1);
        s.permuted = any(0, 3) == 0;
    }
    return s;
}

/* ---- What is emitted ---- */

static struct {
    int64_t count;
    struct {
        const char *symbol;
        struct reduce_vector_args a;
        int64_t blocks, threads, cluster, shared;
    } of[LAUNCHES_MAX];
} launched;

static cudnnStatus_t note(struct wd_queue *queue, const struct wd_launch *launch)
{
    (void)queue;
    assert_true(launched.count < LAUNCHES_MAX);
    assert_int_equal(launch->param_size[0], sizeof(struct reduce_vector_args));
    memcpy(&launched.of[launched.count].a, launch->param[0], sizeof(struct reduce_vector_args));
    launched.of[launched.count].symbol = launch->kernel->symbol;
    launched.of[launched.count].blocks = launch->grid[0];
    launched.of[launched.count].threads = launch->block[0];
    launched.of[launched.count].cluster = launch->cluster;
    launched.of[launched.count].shared = launch->shared;
    launched.count += 1;
    return CUDNN_STATUS_SUCCESS;
}

/* False where the engine does not take the problem. */
static bool emit(const struct wd_engine *engine, const struct wd_problem *problem)
{
    static const struct wd_queue_ops ops = {.kernel = note};
    struct wd_queue queue = {.ops = &ops, .device = problem->device};
    const struct wd_call call = {
        .problem = *problem, .data = single.data, .scalars = single.scalars};
    struct wd_reason reason;
    if (!engine->match(problem, &reason)) return false;
    launched.count = 0;
    assert_int_equal(engine->emit(&call, &queue), CUDNN_STATUS_SUCCESS);
    assert_true(launched.count > 0);
    return true;
}

#endif
