/* SPDX-License-Identifier: Apache-2.0
 *
 * Covers of graphs: which nodes become one piece on a GPU, in which order pieces run, what of their
 * tensors needs memory, which candidates there are, and how long it takes. Plans are made for a GPU
 * that is only described; nothing is executed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "plan/plan.h"

enum { NODES_MAX = 420, CHAIN = 302, CHAIN_HALF = 303 };

static const struct wd_device gpu = {.kind = WD_GPU,
                                     .capability = 90,
                                     .multiprocessors = 132,
                                     .shared_per_block = 232448,
                                     .shared_per_processor = 233472,
                                     .l2_bytes = 50 << 20,
                                     .memory_bytes = (int64_t)80 << 30,
                                     .cooperative = true};

static struct wd_node node[NODES_MAX];
static struct wd_tensor tensor[3 * NODES_MAX];
static struct wd_graph graph;
static struct wd_plan *plan;

static void begin(void)
{
    wd_plan_destroy(plan);
    plan = NULL;
    memset(node, 0, sizeof node);
    memset(tensor, 0, sizeof tensor);
    graph = (struct wd_graph){node, tensor, 0, 0, 0};
}

static int16_t tensor_of(int dtype, int64_t rows, int flags)
{
    int t = graph.tensor_count++;
    tensor[t] = (struct wd_tensor){.uid = t + 1,
                                   .dtype = dtype,
                                   .rank = 4,
                                   .vect_count = 1,
                                   .flags = flags,
                                   .dim = {rows, 8, 3, 5},
                                   .stride = {120, 15, 5, 1}};
    return (int16_t)t;
}

static int16_t real(void)
{
    return tensor_of(CUDNN_DATA_FLOAT, 2, 0);
}

static int16_t between(void)
{
    return tensor_of(CUDNN_DATA_FLOAT, 2, WD_VIRTUAL);
}

static struct wd_node *add(enum wd_op op, const int16_t *slots, int count)
{
    struct wd_single single;
    struct wd_node *made = &node[graph.node_count++];
    wd_single_init(&single, op);
    *made = single.node;
    memcpy(made->slot, slots, sizeof slots[0] * (size_t)count);
    return made;
}

/* y = mode(x, b, t); operands that a mode does not have are -1. */
static struct wd_node *select_of(int mode, int16_t x, int16_t b, int16_t t, int16_t y)
{
    struct wd_node *made = add(WD_OP_POINTWISE, (int16_t[]){x, b, t, y}, 4);
    made->attr.pointwise.mode = mode;
    made->attr.pointwise.compute = CUDNN_DATA_FLOAT;
    made->scalar_class[0] = made->scalar_class[1] = made->scalar_class[2] = WD_SCALAR_ONE;
    return made;
}

static struct wd_node *two(int mode, int16_t x, int16_t b, int16_t y)
{
    return select_of(mode, x, b, -1, y);
}

static struct wd_node *one(int mode, int16_t x, int16_t y)
{
    return select_of(mode, x, -1, -1, y);
}

/* What is no pointwise operation. */
static void softmax(int16_t x, int16_t y)
{
    struct wd_node *made = add(WD_OP_SOFTMAX_FORWARD, (int16_t[]){x, y}, 2);
    made->scalar_class[0] = WD_SCALAR_ONE;
    made->attr.softmax.algorithm = CUDNN_SOFTMAX_ACCURATE;
    made->attr.softmax.mode = CUDNN_SOFTMAX_MODE_INSTANCE;
}

/* Plans, and expects pieces of these nodes: "0 1 3|2". */
static void expect_pieces(const char *expected)
{
    char text[4096] = "";
    size_t length = 0;
    assert_int_equal(wd_plan_create(&gpu, &graph, &plan), 0);
    assert_int_equal(plan->cover.piece_count, plan->step_count);
    for (int p = 0; p < plan->step_count; ++p) {
        for (int i = plan->cover.begin[p]; i < plan->cover.begin[p + 1]; ++i) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%d",
                                       i > plan->cover.begin[p] ? " "
                                       : p > 0                  ? "|"
                                                                : "",
                                       (int)plan->cover.order[i]);
        }
    }
    assert_string_equal(text, expected);
}

static void expect_candidates(int count, int a, int b, int c)
{
    const int expected[3] = {a, b, c};
    int ids[8] = {-1, -1, -1};
    assert_int_equal(wd_plan_candidates(&gpu, &graph, ids, 8, NULL), count);
    for (int i = 0; i < count; ++i) assert_int_equal(ids[i], expected[i]);
}

/* x0 -> x1 -> ... of `nodes` negations of one type, all but the ends virtual. */
static void chain_of(int nodes, int dtype)
{
    int16_t x;
    begin();
    x = tensor_of(dtype, 2, 0);
    for (int n = 0; n < nodes; ++n) {
        int16_t y = tensor_of(dtype, 2, n + 1 < nodes ? WD_VIRTUAL : 0);
        one(CUDNN_POINTWISE_NEG, x, y);
        x = y;
    }
}

static void test_chain(void **state)
{
    (void)state;
    chain_of(3, CUDNN_DATA_FLOAT);
    expect_pieces("0 1 2");
    assert_int_equal(plan->workspace, 0);
    assert_int_equal(plan->virtual_offset[1], -1);
    assert_int_equal(plan->virtual_offset[2], -1);
    assert_string_equal(plan->name, "pointwise_chain");
    assert_false(plan->last_resort);
    expect_candidates(2, CHAIN, WD_ENGINE_NODE_BY_NODE, 0);
    chain_of(3, CUDNN_DATA_BFLOAT16);
    expect_pieces("0 1 2");
    assert_string_equal(plan->name, "pointwise_chain_half");
    expect_candidates(3, CHAIN_HALF, CHAIN, WD_ENGINE_NODE_BY_NODE);
    /* by number: that engine, or none at all */
    graph.engine = CHAIN;
    wd_plan_destroy(plan);
    expect_pieces("0 1 2");
    assert_string_equal(plan->name, "pointwise_chain");
    graph.engine = WD_ENGINE_NODE_BY_NODE;
    wd_plan_destroy(plan);
    expect_pieces("0|1|2");
    assert_string_equal(plan->name, "pointwise_half+pointwise_half+pointwise_half");
    assert_true(plan->workspace > 0);
    graph.engine = 300;
    wd_plan_destroy(plan);
    expect_pieces("0|1|2");
    assert_string_equal(plan->name, "pointwise_vector+pointwise_vector+pointwise_vector");
    chain_of(1, CUDNN_DATA_FLOAT);
    graph.engine = CHAIN;
    assert_int_equal(wd_plan_create(&gpu, &graph, &plan), CUDNN_STATUS_NOT_SUPPORTED);
    plan = NULL;
}

static void test_limits(void **state)
{
    int16_t x, y[8];
    (void)state;
    chain_of(20, CUDNN_DATA_FLOAT);
    expect_pieces("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15|16 17 18 19");
    assert_int_equal(plan->workspace, 1024); /* one tensor, of 960 bytes */
    expect_candidates(2, WD_ENGINE_BEST, WD_ENGINE_NODE_BY_NODE, 0);
    /* inputs: eight, then another piece */
    begin();
    x = real();
    for (int n = 0; n < 9; ++n) {
        int16_t sum = n < 8 ? between() : real();
        two(CUDNN_POINTWISE_ADD, x, real(), sum);
        x = sum;
    }
    expect_pieces("0 1 2 3 4 5 6|7 8");
    /* outputs: four */
    begin();
    x = real();
    for (int n = 0; n < 5; ++n) {
        y[n] = real();
        one(CUDNN_POINTWISE_NEG, x, y[n]);
        x = y[n];
    }
    expect_pieces("0 1 2 3|4");
    assert_int_equal(plan->workspace, 0);
    /* results that wait: four beside the one at hand */
    begin();
    x = real();
    for (int n = 0; n < 7; ++n) {
        y[n] = between();
        if (n == 0) one(CUDNN_POINTWISE_EXP, x, y[n]);
        else one(CUDNN_POINTWISE_NEG, y[n - 1], y[n]);
    }
    for (int n = 0; n < 6; ++n) {
        x = n < 5 ? between() : real();
        two(CUDNN_POINTWISE_ADD, n == 0 ? y[6] : (int16_t)(x - 1), y[n], x);
    }
    assert_int_equal(wd_plan_create(&gpu, &graph, &plan), 0);
    assert_true(plan->step_count > 1);
}

static void test_outputs(void **state)
{
    int16_t x, a, b, y;
    (void)state;
    /* what is read outside too is written, and stands in the workspace as long as it is wanted */
    begin();
    x = real(), a = between(), y = real();
    one(CUDNN_POINTWISE_RELU_FWD, x, a);
    one(CUDNN_POINTWISE_NEG, a, y);
    softmax(a, real());
    expect_pieces("0 1|2");
    assert_int_equal(plan->virtual_offset[a], 0);
    assert_int_equal(plan->workspace, 1024);
    assert_false(wd_problem_hides(&plan->steps[0].problem, a));
    expect_candidates(2, WD_ENGINE_BEST, WD_ENGINE_NODE_BY_NODE, 0);
    /* read outside before the piece could grow: it does not */
    begin();
    x = real(), a = between(), y = real();
    one(CUDNN_POINTWISE_RELU_FWD, x, a);
    softmax(a, real());
    one(CUDNN_POINTWISE_NEG, a, y);
    expect_pieces("0|1|2");
    expect_candidates(1, WD_ENGINE_NODE_BY_NODE, 0, 0);
    /* a circle: the softmax would wait for the piece and the piece for it */
    begin();
    x = real(), a = between(), b = between(), y = real();
    one(CUDNN_POINTWISE_RELU_FWD, x, a);
    softmax(a, b);
    two(CUDNN_POINTWISE_ADD, a, b, y);
    expect_pieces("0|1|2");
    /* no circle: what comes of the softmax joins what follows it */
    begin();
    x = real(), a = between(), b = between(), y = real();
    softmax(x, a);
    one(CUDNN_POINTWISE_RELU_FWD, a, b);
    two(CUDNN_POINTWISE_ADD, a, b, y);
    expect_pieces("0|1 2");
    assert_int_equal(plan->virtual_offset[b], -1);
    assert_int_equal(plan->virtual_offset[a], 0);
}

static void test_branches(void **state)
{
    int16_t x, a, b, c, d, y;
    (void)state;
    /* two branches, made one where they meet */
    begin();
    x = real(), a = between(), b = between(), y = real();
    one(CUDNN_POINTWISE_SIGMOID_FWD, x, a);
    one(CUDNN_POINTWISE_TANH_FWD, real(), b);
    two(CUDNN_POINTWISE_MUL, a, b, y);
    expect_pieces("0 1 2");
    /* a diamond, with something else between */
    begin();
    x = real(), a = between(), b = between(), c = between(), d = between(), y = real();
    one(CUDNN_POINTWISE_EXP, x, a);
    one(CUDNN_POINTWISE_NEG, a, b);
    softmax(real(), d);
    one(CUDNN_POINTWISE_ABS, a, c);
    two(CUDNN_POINTWISE_SUB, b, c, y);
    expect_pieces("2|0 1 3 4");
    assert_int_equal(plan->workspace, 1024); /* of the softmax, which nobody reads */
    /* real tensors within a piece are written and not read again */
    begin();
    x = real(), a = real(), y = real();
    one(CUDNN_POINTWISE_EXP, x, a);
    two(CUDNN_POINTWISE_MUL, a, a, y);
    expect_pieces("0 1");
    /* not connected: siblings of one input */
    begin();
    x = real();
    one(CUDNN_POINTWISE_EXP, x, real());
    one(CUDNN_POINTWISE_ABS, x, real());
    expect_pieces("0|1");
    /* what is written over later is read where it stands */
    begin();
    x = real(), a = between(), y = real();
    one(CUDNN_POINTWISE_EXP, x, a);
    one(CUDNN_POINTWISE_ABS, real(), x);
    one(CUDNN_POINTWISE_NEG, a, y);
    expect_pieces("0|1|2");
    /* in place: one tensor is read and written by one node */
    begin();
    x = real(), y = real();
    one(CUDNN_POINTWISE_EXP, x, x);
    one(CUDNN_POINTWISE_NEG, x, y);
    expect_pieces("0 1");
}

/* Two nodes that do not become one, or do. */
static void expect_pair(const char *expected, int mode, int virtual_type, int64_t rows, int type)
{
    int16_t x, a;
    begin();
    x = tensor_of(CUDNN_DATA_FLOAT, rows, 0);
    a = tensor_of(virtual_type, rows, WD_VIRTUAL);
    one(CUDNN_POINTWISE_ABS, x, a);
    if (mode == CUDNN_POINTWISE_ADD) two(mode, a, real(), tensor_of(type, 2, 0));
    else one(mode, a, tensor_of(type, 2, 0));
    expect_pieces(expected);
}

static void test_declined(void **state)
{
    (void)state;
    expect_pair("0 1", CUDNN_POINTWISE_NEG, CUDNN_DATA_FLOAT, 2, CUDNN_DATA_FLOAT);
    expect_pair("0 1", CUDNN_POINTWISE_NEG, CUDNN_DATA_HALF, 2, CUDNN_DATA_BFLOAT16);
    expect_pair("0 1", CUDNN_POINTWISE_NEG, CUDNN_DATA_BOOLEAN, 2, CUDNN_DATA_FLOAT);
    expect_pair("0|1", CUDNN_POINTWISE_NEG, CUDNN_DATA_INT8, 2, CUDNN_DATA_FLOAT);
    expect_pair("0|1", CUDNN_POINTWISE_NEG, CUDNN_DATA_FLOAT, 2, CUDNN_DATA_INT8);
    expect_pair("0|1", CUDNN_POINTWISE_NEG, CUDNN_DATA_FLOAT, 2, CUDNN_DATA_DOUBLE);
    expect_pair("0 1", CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, 2, CUDNN_DATA_FLOAT);
    expect_pair("0|1", CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, 1, CUDNN_DATA_FLOAT);
    expect_pair("0|1", CUDNN_POINTWISE_SIN, CUDNN_DATA_FLOAT, 2, CUDNN_DATA_FLOAT);
    expect_pair("0|1", CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2, CUDNN_DATA_FLOAT);
    begin();
    one(CUDNN_POINTWISE_ABS, real(), between());
    one(CUDNN_POINTWISE_NEG, 1, real())->scalar_class[3] = WD_SCALAR_OTHER;
    expect_pieces("0|1");
    /* a device with hardly any shared memory */
    {
        struct wd_device small = gpu;
        small.shared_per_block = 4096;
        chain_of(3, CUDNN_DATA_FLOAT);
        assert_int_equal(wd_plan_create(&small, &graph, &plan), 0);
        assert_int_equal(plan->step_count, 3);
    }
    /* and the CPU, which has no such engine */
    {
        const struct wd_device cpu = {.kind = WD_CPU, .ordinal = -1, .multiprocessors = 1};
        chain_of(3, CUDNN_DATA_FLOAT);
        assert_int_equal(wd_plan_create(&cpu, &graph, &plan), 0);
        assert_int_equal(plan->step_count, 3);
    }
}

static uint32_t seed;

static int below(int limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)limit);
}

static void random_graph(int nodes)
{
    int16_t made[NODES_MAX + 4];
    int count = 0;
    begin();
    for (int i = 0; i < 3; ++i) made[count++] = real();
    for (int n = 0; n < nodes; ++n) {
        /* mostly of what came last, so that there are chains */
        int16_t x = made[count - 1 - below(count < 4 || below(5) == 0 ? count : 3)];
        int16_t b = made[below(count)];
        int16_t y = tensor_of(CUDNN_DATA_FLOAT, 2, below(5) ? WD_VIRTUAL : 0);
        switch (below(8)) {
        case 0: softmax(x, y); break;
        case 1:
        case 2: two(CUDNN_POINTWISE_ADD, x, b, y); break;
        case 3: select_of(CUDNN_POINTWISE_BINARY_SELECT, x, b, made[below(count)], y); break;
        default: one(CUDNN_POINTWISE_NEG, x, y); break;
        }
        made[count++] = y;
    }
}

/* Where steps want two tensors at once, those lie apart. */
static void check_workspace(const int *piece)
{
    int first[3 * NODES_MAX], last[3 * NODES_MAX];
    for (int t = 0; t < graph.tensor_count; ++t) first[t] = -1;
    for (int n = 0; n < graph.node_count; ++n) {
        for (int s = 0; s < wd_op_info(node[n].op)->slot_count; ++s) {
            int t = node[n].slot[s];
            if (t < 0 || plan->virtual_offset[t] < 0) continue;
            if (first[t] < 0 || piece[n] < first[t]) first[t] = piece[n];
            if (first[t] == piece[n] || piece[n] > last[t]) last[t] = piece[n];
        }
    }
    for (int t = 0; t < graph.tensor_count; ++t) {
        for (int u = 0; u < t; ++u) {
            int64_t apart = plan->virtual_offset[t] - plan->virtual_offset[u];
            if (first[t] < 0 || first[u] < 0 || last[t] < first[u] || last[u] < first[t]) continue;
            assert_true(apart >= wd_tensor_extent(&tensor[u]) ||
                        -apart >= wd_tensor_extent(&tensor[t]));
        }
    }
}

/* Every node in one piece; what is read is written by a piece before, or before in the same piece;
 * what has no memory is read in its piece alone. */
static void check_cover(void)
{
    int position[NODES_MAX], piece[NODES_MAX], writer[3 * NODES_MAX];
    int at = 0;
    for (int t = 0; t < graph.tensor_count; ++t) writer[t] = -1;
    for (int n = 0; n < graph.node_count; ++n) position[n] = -1;
    for (int p = 0; p < plan->step_count; ++p) {
        const struct wd_problem *problem = &plan->steps[p].problem;
        assert_true(wd_problem_count(problem) <= WD_PIECE_MAX);
        for (int i = 0; i < wd_problem_count(problem); ++i) {
            int n = (int)(wd_problem_node(problem, i) - plan->graph->nodes);
            assert_int_equal(position[n], -1);
            position[n] = at++;
            piece[n] = p;
        }
    }
    assert_int_equal(at, graph.node_count);
    for (int n = 0; n < graph.node_count; ++n) {
        const struct wd_op_info *info = wd_op_info(node[n].op);
        for (int s = 0; s < info->slot_count; ++s) {
            int t = node[n].slot[s];
            int from = t < 0 ? -1 : writer[t];
            if (from < 0 || !(info->inputs >> s & 1u)) continue;
            assert_true(position[from] < position[n]);
            if (tensor[t].flags & WD_VIRTUAL) {
                assert_true(plan->virtual_offset[t] >= 0 || piece[from] == piece[n]);
            }
        }
        for (int s = 0; s < info->slot_count; ++s) {
            int t = node[n].slot[s];
            if (t >= 0 && (info->outputs >> s & 1u)) writer[t] = n;
        }
    }
    check_workspace(piece);
}

static void test_random(void **state)
{
    int several = 0;
    (void)state;
    for (uint32_t round = 0; round < 3000; ++round) {
        seed = round;
        random_graph(1 + below(40));
        if (wd_plan_create(&gpu, &graph, &plan) != 0) {
            fail_msg("seed %u: %s", (unsigned)round, wd_last_error());
        }
        check_cover();
        several += graph.node_count - plan->step_count;
    }
    assert_true(several > 3000); /* pieces are made at all */
}

static double microseconds_of(int nodes)
{
    double best = 1e9;
    for (int i = 0; i < 20; ++i) {
        struct timespec from, to;
        double took;
        seed = 7;
        random_graph(nodes);
        clock_gettime(CLOCK_MONOTONIC, &from);
        assert_int_equal(wd_plan_create(&gpu, &graph, &plan), 0);
        clock_gettime(CLOCK_MONOTONIC, &to);
        took = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
        if (took < best) best = took;
    }
    return best;
}

static void test_time(void **state)
{
    double few = microseconds_of(50);
    double many = microseconds_of(400);
    (void)state;
    print_message("planning 50 nodes takes %.0f us, 400 nodes %.0f us\n", few, many);
    assert_true(few < 1000.0);
    assert_true(many < 24.0 * few); /* eight times, were it not for the noise */
}

static void test_no_memory(void **state)
{
    uint64_t allocations;
    (void)state;
    chain_of(5, CUDNN_DATA_FLOAT);
    wd_alloc_fail_at(0);
    assert_int_equal(wd_plan_create(&gpu, &graph, &plan), 0);
    allocations = wd_alloc_fail_at(0);
    assert_true(allocations > 4);
    wd_plan_destroy(plan);
    plan = NULL;
    for (uint64_t n = 1; n <= allocations; ++n) {
        uint64_t before = wd_alloc_bytes();
        wd_alloc_fail_at(n);
        assert_int_equal(wd_plan_create(&gpu, &graph, &plan),
                         CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
        wd_alloc_fail_at(0);
        assert_int_equal(wd_alloc_bytes(), before);
    }
    plan = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_outputs),  cmocka_unit_test(test_branches),
        cmocka_unit_test(test_declined), cmocka_unit_test(test_random),
        cmocka_unit_test(test_time),     cmocka_unit_test(test_no_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    wd_plan_destroy(plan);
    return failed;
}
