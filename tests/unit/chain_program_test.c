/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of pointwise operations before anything is launched: which modes a program has an instruction
 * for, where its operands come from, and all that it refuses. */
#include "chain_program.h"

static void expect_refusal(cudnnStatus_t status, const char *part)
{
    assert_false(make());
    assert_int_equal(reason.status, status);
    assert_non_null(strstr(reason.text, part));
}

static void expect_op(int op, int x, int b, int t)
{
    assert_true(make());
    assert_int_equal(program.length, graph.node_count);
    assert_int_equal(program.instruction[0].op, op);
    assert_int_equal(program.instruction[0].x, x);
    assert_int_equal(program.instruction[0].b, b);
    assert_int_equal(program.instruction[0].t, t);
}

/* ---- Modes ---- */

static void begin_mode(int mode)
{
    begin();
    if (wd_pointwise_operands(mode) > 1) two(mode, real(), real(), real());
    else one(mode, real(), real());
    /* what a clamp is not */
    node[0].attr.pointwise.lower_slope = 0.5;
}

static void test_modes(void **state)
{
    static const struct {
        int mode, op;
    } unary[] =
        {
#define WD_UNARY(mode) {mode, CHAIN_OP_##mode},
#include "ops/pointwise/pointwise_modes.def"
        },
      binary[] =
          {
#define WD_BINARY(mode) {mode, CHAIN_OP_##mode},
#include "ops/pointwise/pointwise_modes.def"
          },
      by_output[] = {
#define WD_BY_OUTPUT(mode) {mode, CHAIN_BY_##mode},
#include "ops/pointwise/pointwise_modes.def"
      };
    static const int rare[] = {
#define WD_RARE_UNARY(mode) mode,
#define WD_RARE_BINARY(mode) mode,
#include "ops/pointwise/pointwise_modes.def"
    };
    (void)state;
    for (size_t i = 0; i < sizeof unary / sizeof *unary; ++i) {
        begin_mode(unary[i].mode);
        expect_op(unary[i].op, CHAIN_INPUT, CHAIN_NOTHING, CHAIN_NOTHING);
    }
    for (size_t i = 0; i < sizeof binary / sizeof *binary; ++i) {
        begin_mode(binary[i].mode);
        expect_op(binary[i].op, CHAIN_INPUT, CHAIN_INPUT + 1, CHAIN_NOTHING);
    }
    /* with the forward output, which stands in for x, x is not read */
    for (size_t i = 0; i < sizeof by_output / sizeof *by_output; ++i) {
        begin_mode(by_output[i].mode);
        node[0].slot[POINTWISE_T] = real();
        expect_op(by_output[i].op, CHAIN_INPUT, CHAIN_INPUT + 1, CHAIN_NOTHING);
        assert_int_equal(program.inputs, 2);
        assert_int_equal(program.input[0], node[0].slot[POINTWISE_T]);
    }
    for (size_t i = 0; i < sizeof rare / sizeof *rare; ++i) {
        begin_mode(rare[i]);
        expect_refusal(CUDNN_STATUS_NOT_SUPPORTED, "not done in a chain");
    }
    begin_mode(CUDNN_POINTWISE_GEN_INDEX);
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED, "not done in a chain");
    begin();
    select_of(CUDNN_POINTWISE_BINARY_SELECT, real(), real(), real(), real());
    expect_op(CHAIN_SELECT, CHAIN_INPUT, CHAIN_INPUT + 1, CHAIN_INPUT + 2);
}

/* A gradient by x that has t as well reads x and dy alone; a relu that clamps is an instruction of its own. */
static void test_special(void **state)
{
    const int relu = CHAIN_OP_CUDNN_POINTWISE_RELU_FWD;
    struct wd_pointwise_attr *attr = &node[0].attr.pointwise;
    (void)state;
    begin_mode(CUDNN_POINTWISE_GELU_BWD);
    node[0].slot[POINTWISE_T] = real();
    expect_op(CHAIN_OP_CUDNN_POINTWISE_GELU_BWD, CHAIN_INPUT, CHAIN_INPUT + 1, CHAIN_NOTHING);
    begin_mode(CUDNN_POINTWISE_RELU_FWD);
    attr->lower_slope = 0.0;
    attr->upper_clip = 6.0;
    expect_op(CHAIN_CLAMP, CHAIN_INPUT, CHAIN_NOTHING, CHAIN_NOTHING);
    attr->propagate_nan = true;
    expect_op(relu, CHAIN_INPUT, CHAIN_NOTHING, CHAIN_NOTHING);
    attr->propagate_nan = false;
    attr->lower_clip = 7.0;
    expect_op(relu, CHAIN_INPUT, CHAIN_NOTHING, CHAIN_NOTHING);
}

/* ---- Operands and results ---- */

static void test_places(void **state)
{
    const struct pointwise_instruction *in = program.instruction;
    int16_t x, a, b, c, y;
    (void)state;
    /* a result is at hand for the next one, and waits in a place for a later one, which may take it over */
    begin();
    x = real(), a = between(), b = between(), c = between(), y = real();
    one(CUDNN_POINTWISE_EXP, x, a);
    two(ADD, a, x, b);
    two(MUL, b, a, c);
    select_of(CUDNN_POINTWISE_BINARY_SELECT, b, x, c, y);
    assert_true(make());
    assert_int_equal(program.inputs, 1);
    assert_int_equal(program.outputs, 1);
    assert_int_equal(program.kept, 2);
    assert_int_equal(in[0].keep, 1);
    assert_int_equal(in[1].x, CHAIN_RESULT);
    assert_int_equal(in[1].b, CHAIN_INPUT);
    assert_int_equal(in[1].keep, 2);
    assert_int_equal(in[2].x, CHAIN_RESULT);
    assert_int_equal(in[2].b, CHAIN_KEPT);
    assert_int_equal(in[2].keep, 0);
    assert_int_equal(in[3].x, CHAIN_KEPT + 1);
    assert_int_equal(in[3].t, CHAIN_RESULT);
    assert_int_equal(in[2].write, 0);
    assert_int_equal(in[3].write, 1);
    begin();
    x = real(), a = between(), b = between(), c = between(), y = real();
    one(CUDNN_POINTWISE_EXP, x, a);
    one(NEG, a, b);
    two(ADD, b, a, c);
    two(MUL, c, c, y);
    assert_true(make());
    assert_int_equal(in[2].keep, 0);
    assert_int_equal(in[3].x, CHAIN_RESULT);
    assert_int_equal(in[3].b, CHAIN_RESULT);
    assert_int_equal(program.kept, 1);
    /* a real result is written, and at hand all the same */
    begin();
    x = real(), a = real(), y = real();
    one(NEG, x, a);
    two(ADD, x, a, y);
    assert_true(make());
    assert_int_equal(program.outputs, 2);
    assert_int_equal(in[0].write, 1);
    assert_int_equal(in[1].x, CHAIN_INPUT);
    assert_int_equal(in[1].b, CHAIN_RESULT);
}

static void test_types(void **state)
{
    enum { F32 = CUDNN_DATA_FLOAT, F64 = CUDNN_DATA_DOUBLE };
    static const struct {
        int memory, hidden, compute, round;
    } cases[] = {{F32, F32, F32, CHAIN_AS_IS},
                 {F32, CUDNN_DATA_HALF, F32, CHAIN_TO_F16},
                 {CUDNN_DATA_HALF, F32, F32, CHAIN_AS_IS},
                 {CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, F32, CHAIN_TO_BF16},
                 {F32, CUDNN_DATA_BOOLEAN, F32, CHAIN_TO_BOOL},
                 {F64, F64, F64, CHAIN_AS_IS},
                 {F64, F32, F64, CHAIN_TO_F32},
                 {F32, F64, F32, CHAIN_AS_IS}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        begin_between(cases[i].memory, cases[i].hidden, cases[i].compute);
        assert_true(make());
        assert_int_equal(program.instruction[0].round, cases[i].round);
        assert_int_equal(program.instruction[1].round, CHAIN_AS_IS);
        /* one tensor of doubles is enough to compute in double */
        assert_int_equal(program.acc, cases[i].compute == F64 || cases[i].hidden == F64
                                          ? WD_ACC_F64
                                          : WD_ACC_F32);
        assert_int_equal(program.dtype, cases[i].memory);
    }
    /* one type of all that is in memory, or none; numbers have no say */
    begin();
    two(ADD, real(), tensor_of(CUDNN_DATA_HALF, 2, 0), real());
    assert_true(make());
    assert_int_equal(program.dtype, -1);
    begin();
    two(ADD, real(), tensor_of(CUDNN_DATA_DOUBLE, 2, WD_BY_VALUE), real());
    assert_true(make());
    assert_int_equal(program.dtype, F32);
    begin_between(F32, CUDNN_DATA_INT32, F32);
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "elements of x are");
    begin_between(CUDNN_DATA_INT8, F32, F32);
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "elements of x are");
    begin_between(CUDNN_DATA_BOOLEAN, F32, F32);
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "elements of x are");
    begin();
    one(NEG, real(), tensor_of(CUDNN_DATA_BOOLEAN, 2, 0));
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "elements of y are");
    begin_between(F64, F64, F64);
    node[1].attr.pointwise.compute = F32;
    tensor[node[1].slot[POINTWISE_Y]].dtype = F32;
    tensor[node[1].slot[POINTWISE_X]].dtype = F32;
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "some nodes compute in double");
}

/* ---- Refusals ---- */

static void test_refusals(void **state)
{
    (void)state;
    chain_of(CHAIN_INSTRUCTIONS, CUDNN_DATA_FLOAT);
    assert_true(make());
    chain_of(CHAIN_INSTRUCTIONS + 1, CUDNN_DATA_FLOAT);
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "17 operations are more than 16");
    begin();
    softmax(real(), real());
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "is not pointwise");
    for (int scalar = 2; scalar <= 3; ++scalar) { /* alpha, beta */
        chain_of(2, CUDNN_DATA_FLOAT);
        node[1].scalar_class[scalar] = WD_SCALAR_OTHER;
        expect_refusal(CUDNN_STATUS_NOT_SUPPORTED, "scaled or blended into");
    }
    chain_of(2, CUDNN_DATA_FLOAT);
    node[1].scalar_class[0] = WD_SCALAR_OTHER; /* alpha1 */
    assert_true(make());
    chain_of(2, CUDNN_DATA_FLOAT);
    tensor[node[1].slot[POINTWISE_Y]].dim[0] = 3;
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "outputs have several shapes");
    chain_of(2, CUDNN_DATA_FLOAT);
    tensor[node[0].slot[POINTWISE_X]].vect_count = 4;
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "x is vectorised, 4 lanes");
    chain_of(2, CUDNN_DATA_FLOAT);
    tensor[node[1].slot[POINTWISE_Y]].vect_count = 32;
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "y is vectorised, 32 lanes");
    chain_of(2, CUDNN_DATA_FLOAT);
    tensor[node[0].slot[POINTWISE_X]].stride[0] = INT32_MAX;
    assert_true(make());
    tensor[node[0].slot[POINTWISE_X]].stride[0] += 1;
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "of x is beyond 2^31");
    tensor[node[0].slot[POINTWISE_X]].dim[0] = 1; /* which nobody goes */
    assert_true(make());
    chain_of(2, CUDNN_DATA_FLOAT);
    tensor[node[1].slot[POINTWISE_Y]].flags = WD_VIRTUAL;
    expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "nothing is written");
}

/* One more than there is room for. */
static void test_limits(void **state)
{
    (void)state;
    for (int inputs = CHAIN_INPUTS; inputs <= CHAIN_INPUTS + 1; ++inputs) {
        int16_t x;
        begin();
        x = real();
        for (int n = 1; n < inputs; ++n) {
            int16_t y = n + 1 < inputs ? between() : real();
            two(ADD, x, real(), y);
            x = y;
        }
        if (inputs > CHAIN_INPUTS) {
            expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "more than 8 inputs");
        } else {
            assert_true(make());
            assert_int_equal(program.inputs, CHAIN_INPUTS);
        }
    }
    for (int outputs = CHAIN_OUTPUTS; outputs <= CHAIN_OUTPUTS + 1; ++outputs) {
        chain_of(outputs, CUDNN_DATA_FLOAT);
        for (int n = 0; n < outputs; ++n) tensor[node[n].slot[POINTWISE_Y]].flags = 0;
        if (outputs > CHAIN_OUTPUTS) {
            expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "more than 4 outputs");
        } else {
            assert_true(make());
            assert_int_equal(program.outputs, CHAIN_OUTPUTS);
        }
    }
    for (int waiting = CHAIN_KEEPS; waiting <= CHAIN_KEEPS + 1; ++waiting) {
        int16_t result[CHAIN_KEEPS + 2], y;
        chain_of(waiting + 1, CUDNN_DATA_FLOAT);
        for (int n = 0; n <= waiting; ++n) {
            result[n] = node[n].slot[POINTWISE_Y];
            tensor[result[n]].flags = WD_VIRTUAL;
        }
        y = result[waiting];
        for (int n = 0; n < waiting; ++n) {
            int16_t x = y;
            y = n + 1 < waiting ? between() : real();
            two(ADD, x, result[n], y);
        }
        if (waiting > CHAIN_KEEPS) {
            expect_refusal(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "more than 4 results wait");
        } else {
            assert_true(make());
            assert_int_equal(program.kept, CHAIN_KEEPS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),    cmocka_unit_test(test_special),
        cmocka_unit_test(test_places),   cmocka_unit_test(test_types),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
