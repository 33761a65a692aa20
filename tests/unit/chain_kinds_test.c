/* SPDX-License-Identifier: Apache-2.0
 *
 * Which programs of pointwise operations are straight chains, each of every kind that has code of its own
 * and the others, and which are not. */
#include "chain_program.h"

#include "ops/pointwise/pointwise_straight.h"

enum { ROWS = 6, COLUMNS = 40, END = -1 };

static struct pointwise_straight_args straight;
static struct pointwise_operand operand[CHAIN_INPUTS + CHAIN_OUTPUTS];
static struct wd_joined walk;
static float memory[4];

/* x, then results of these modes, of which binary ones take one more input each. */
static void begin_straight(const int *modes, int length, int dtype)
{
    int16_t x;
    begin();
    x = tensor_of(dtype, 2, 0);
    for (int n = 0; n < length; ++n) {
        int16_t y = n + 1 < length ? between() : tensor_of(dtype, 2, 0);
        if (wd_pointwise_operands(modes[n]) > 1) two(modes[n], x, tensor_of(dtype, 2, 0), y);
        else one(modes[n], x, y);
        x = y;
    }
}

/* The program's operands, all of them whole tensors, over rows. */
static void lie(void)
{
    assert_true(make());
    memset(operand, 0, sizeof operand);
    memset(&walk, 0, sizeof walk);
    walk.rank = 1;
    walk.dim[0] = walk.count = ROWS * COLUMNS;
    walk.tensors = program.inputs + program.outputs;
    for (int i = 0; i < walk.tensors; ++i) {
        operand[i] = (struct pointwise_operand){
            .data = memory, .factor = 1.0, .way = POINTWISE_FLAT, .dtype = program.dtype};
        walk.stride[i][0] = 1;
    }
}

/* ... but for operand i, which is at `row` strides from row to row and `column` within. */
static void repeat(int i, int64_t row, int64_t column, int way)
{
    if (walk.rank == 1) {
        walk.rank = 2;
        walk.dim[0] = ROWS;
        walk.dim[1] = COLUMNS;
        for (int t = 0; t < walk.tensors; ++t) walk.stride[t][0] = COLUMNS, walk.stride[t][1] = 1;
    }
    walk.stride[i][0] = row;
    walk.stride[i][1] = column;
    operand[i].way = way;
}

static bool is_straight(void)
{
    return wd_straight_make(&straight, &program, &walk, operand);
}

/* In the order of the kinds. */
static const int frequent[STRAIGHT_KINDS][3] = {
    {CUDNN_POINTWISE_SWISH_FWD, MUL, END},
    {CUDNN_POINTWISE_GELU_FWD, MUL, END},
    {MUL, END},
    {ADD, END},
    {ADD, CUDNN_POINTWISE_RELU_FWD, END},
    {ADD, CUDNN_POINTWISE_GELU_FWD, END},
    {ADD, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, END},
    {ADD, CUDNN_POINTWISE_SWISH_FWD, END},
    {MUL, ADD, END},
    {MUL, ADD, CUDNN_POINTWISE_RELU_FWD},
    {ADD, ADD, CUDNN_POINTWISE_RELU_FWD},
};

static int length_of(const int *modes)
{
    int length = 0;
    while (length < 3 && modes[length] != END) ++length;
    return length;
}

static void test_kinds(void **state)
{
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    (void)state;
    for (int kind = 0; kind < STRAIGHT_KINDS; ++kind) {
        const int length = length_of(frequent[kind]);
        for (int t = 0; t < 3; ++t) {
            begin_straight(frequent[kind], length, types[t]);
            lie();
            assert_true(is_straight());
            assert_int_equal(straight.kind, kind);
            assert_int_equal(straight.length, length);
            assert_int_equal(straight.repeat, STRAIGHT_NONE);
            if (length == 1) continue;
            /* results that are rounded: to elements of that type alone */
            for (int r = 0; r < 3; ++r) {
                const bool own = types[r] == types[t] || types[r] == CUDNN_DATA_FLOAT;
                tensor[node[0].slot[POINTWISE_Y]].dtype = types[r];
                lie();
                assert_int_equal(is_straight(), own || kind < STRAIGHT_ONE);
                assert_int_equal(straight.kind, own ? kind : STRAIGHT_KINDS);
            }
        }
    }
    /* anything else of one operand, and of none */
    begin_straight((int[]){NEG, CUDNN_POINTWISE_MAX, CUDNN_POINTWISE_EXP}, 3, CUDNN_DATA_FLOAT);
    lie();
    assert_true(is_straight());
    assert_int_equal(straight.kind, STRAIGHT_KINDS);
    chain_of(STRAIGHT_STEPS, CUDNN_DATA_FLOAT);
    lie();
    assert_true(is_straight());
    assert_int_equal(straight.kind, STRAIGHT_KINDS);
    /* a relu with a slope is no clamp */
    begin_straight(frequent[STRAIGHT_ADD_CLAMP], 2, CUDNN_DATA_FLOAT);
    node[1].attr.pointwise.lower_slope = 0.1;
    lie();
    assert_true(is_straight());
    assert_int_equal(straight.kind, STRAIGHT_KINDS);
}

static void test_repeats(void **state)
{
    (void)state;
    begin_straight(frequent[STRAIGHT_MUL_ADD], 2, CUDNN_DATA_FLOAT);
    lie();
    repeat(1, 0, 1, POINTWISE_ALONG);
    repeat(2, 0, 1, POINTWISE_ALONG);
    assert_true(is_straight());
    assert_int_equal(straight.kind, STRAIGHT_MUL_ADD);
    assert_int_equal(straight.repeat, STRAIGHT_ALONG);
    lie();
    repeat(1, 1, 0, POINTWISE_SPLIT);
    assert_true(is_straight());
    assert_int_equal(straight.repeat, STRAIGHT_ROWS);
    assert_int_equal(straight.operand[0].stride, 1);
    assert_int_equal(straight.operand[1].repeats, 0);
    /* a number, and one element for all */
    operand[2].data = NULL;
    operand[2].value = 0.5;
    assert_true(is_straight());
    assert_true(straight.operand[1].value == 0.5F);
    repeat(2, 0, 0, POINTWISE_REPEAT);
    operand[2].data = memory;
    assert_true(is_straight());
    /* in two ways */
    repeat(2, 0, 1, POINTWISE_ALONG);
    assert_false(is_straight());
    /* columns that are apart; rows that are shorter than a run */
    lie();
    repeat(1, 0, 2, POINTWISE_STRAY);
    assert_false(is_straight());
    repeat(1, 1, 0, POINTWISE_SPLIT);
    walk.dim[1] = 3;
    assert_false(is_straight());
    walk.dim[1] = 4;
    assert_true(is_straight());
    /* the first operand repeats: the second takes its place, what commutes is as it was */
    begin_straight(frequent[STRAIGHT_ADD], 1, CUDNN_DATA_FLOAT);
    lie();
    repeat(0, 0, 1, POINTWISE_ALONG);
    assert_true(is_straight());
    assert_int_equal(straight.kind, STRAIGHT_ADD);
    assert_int_equal(straight.step[0].swapped, 0);
    begin_straight((int[]){CUDNN_POINTWISE_SUB}, 1, CUDNN_DATA_FLOAT);
    lie();
    repeat(0, 0, 1, POINTWISE_ALONG);
    assert_true(is_straight());
    assert_int_equal(straight.kind, STRAIGHT_KINDS);
    assert_int_equal(straight.step[0].swapped, 1);
    /* both do; or the only one */
    repeat(1, 0, 1, POINTWISE_ALONG);
    assert_false(is_straight());
    chain_of(2, CUDNN_DATA_FLOAT);
    lie();
    repeat(0, 0, 1, POINTWISE_ALONG);
    assert_false(is_straight());
    /* what is written */
    lie();
    operand[1].way = POINTWISE_STRAY;
    assert_false(is_straight());
}

static void test_bent(void **state)
{
    int16_t x, a, b, y;
    (void)state;
    chain_of(STRAIGHT_STEPS + 1, CUDNN_DATA_FLOAT);
    lie();
    assert_false(is_straight());
    /* a frequent chain of two operands, and others of two and three */
    begin_straight((int[]){MUL, ADD, NEG}, 3, CUDNN_DATA_FLOAT);
    lie();
    assert_false(is_straight());
    begin_straight((int[]){MUL, ADD, ADD}, 3, CUDNN_DATA_FLOAT);
    lie();
    assert_false(is_straight());
    /* double precision; several types; several outputs */
    begin_between(CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE);
    lie();
    assert_false(is_straight());
    begin_straight(frequent[STRAIGHT_ADD], 1, CUDNN_DATA_FLOAT);
    tensor[node[0].slot[POINTWISE_B]].dtype = CUDNN_DATA_HALF;
    lie();
    assert_false(is_straight());
    chain_of(2, CUDNN_DATA_FLOAT);
    tensor[node[0].slot[POINTWISE_Y]].flags = 0;
    lie();
    assert_false(is_straight());
    /* three operands; a result that waits, and one that is both operands */
    begin();
    select_of(CUDNN_POINTWISE_BINARY_SELECT, real(), real(), real(), real());
    lie();
    assert_false(is_straight());
    begin();
    x = real(), a = between(), b = between(), y = real();
    one(NEG, x, a);
    one(CUDNN_POINTWISE_EXP, a, b);
    two(ADD, b, a, y);
    lie();
    assert_false(is_straight());
    begin();
    x = real(), a = between(), y = real();
    one(NEG, x, a);
    two(MUL, a, a, y);
    lie();
    assert_false(is_straight());
    /* an operation that leaves out the result before: the chain has two beginnings */
    begin();
    x = real(), a = between(), b = between(), y = real();
    one(NEG, x, a);
    one(NEG, x, b);
    two(ADD, a, b, y);
    lie();
    assert_false(is_straight());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_bent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
