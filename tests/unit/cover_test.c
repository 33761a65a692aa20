/* SPDX-License-Identifier: Apache-2.0
 *
 * Covers of graphs: which nodes become one piece on a GPU, in which order pieces run, what of their
 * tensors needs memory, which candidates there are, and what an engine takes that is asked for by
 * number. Plans are made for a GPU that is only described; nothing is executed. */
#include "cover_graph.h"

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
    assert_string_equal(plan->name, "pointwise_chain");
    expect_candidates(2, CHAIN, WD_ENGINE_NODE_BY_NODE, 0);
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

/* relu(x * scale + bias) of fp16, of which what lies between is wider. */
static void scale_bias_relu(void)
{
    int16_t half[4], a, b;
    begin();
    for (int i = 0; i < 4; ++i) half[i] = tensor_of(CUDNN_DATA_HALF, 2, 0);
    a = between(), b = between();
    two(CUDNN_POINTWISE_MUL, half[0], half[1], a);
    two(CUDNN_POINTWISE_ADD, a, half[2], b);
    one(CUDNN_POINTWISE_RELU_FWD, b, half[3]);
}

static void expect_asked(int engine, const char *pieces, const char *name)
{
    wd_plan_destroy(plan);
    graph.engine = engine;
    expect_pieces(pieces);
    assert_string_equal(plan->name, name);
}

static void expect_refused(int engine)
{
    wd_plan_destroy(plan);
    plan = NULL;
    graph.engine = engine;
    assert_int_equal(wd_plan_create(&gpu, &graph, &plan), CUDNN_STATUS_NOT_SUPPORTED);
    plan = NULL;
}

/* What heuristics offer for a graph, an engine takes by its number. */
static void test_asked(void **state)
{
    int16_t x, a, y;
    (void)state;
    scale_bias_relu();
    expect_candidates(2, CHAIN, WD_ENGINE_NODE_BY_NODE, 0);
    expect_asked(WD_ENGINE_BEST, "0 1 2", "pointwise_chain");
    expect_asked(CHAIN, "0 1 2", "pointwise_chain");
    assert_int_equal(plan->workspace, 0);
    assert_int_equal(plan->virtual_offset[4], -1);
    assert_int_equal(plan->virtual_offset[5], -1);
    expect_asked(WD_ENGINE_NODE_BY_NODE, "0|1|2",
                 "pointwise_vector+pointwise_vector+pointwise_vector");
    assert_true(plan->workspace > 0);
    /* the first nodes alone */
    graph.node_count = 2;
    tensor[5].flags = 0;
    expect_asked(CHAIN, "0 1", "pointwise_chain");
    /* a whole that is too long is taken as it grows */
    chain_of(20, CUDNN_DATA_HALF);
    expect_asked(CHAIN, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15|16 17 18 19",
                 "pointwise_chain+pointwise_chain");
    /* no whole where something is written over between its nodes */
    begin();
    x = tensor_of(CUDNN_DATA_HALF, 2, 0), a = between(), y = tensor_of(CUDNN_DATA_HALF, 2, 0);
    one(CUDNN_POINTWISE_EXP, x, a);
    one(CUDNN_POINTWISE_ABS, tensor_of(CUDNN_DATA_HALF, 2, 0), x);
    one(CUDNN_POINTWISE_NEG, a, y);
    expect_refused(CHAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_outputs),  cmocka_unit_test(test_branches),
        cmocka_unit_test(test_declined), cmocka_unit_test(test_asked),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    wd_plan_destroy(plan);
    return failed;
}
