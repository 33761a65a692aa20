/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of several pointwise operations through the backend API: random ones, in which operands are
 * inputs, repeated along some dimensions, numbers, or results of operations before, and results are
 * virtual or not; in many types and layouts, in place, and at addresses that are aligned to their
 * elements alone. */
#include <math.h>
#include <stdlib.h>

#include "chain_case.h"

static int fused; /* executions by an engine that takes several nodes */

/* Modes by what they need: any operands, a first operand of at most 3, of at least 0.1, a second of
 * at least 0.1. What multiplies is drawn only where results stay small. */
static const int anything[] = {
    CUDNN_POINTWISE_ADD,          CUDNN_POINTWISE_ADD,         CUDNN_POINTWISE_SUB,
    CUDNN_POINTWISE_MAX,          CUDNN_POINTWISE_MIN,         CUDNN_POINTWISE_CMP_GT,
    CUDNN_POINTWISE_CMP_LE,       CUDNN_POINTWISE_CMP_NEQ,     CUDNN_POINTWISE_LOGICAL_AND,
    CUDNN_POINTWISE_LOGICAL_OR,   CUDNN_POINTWISE_LOGICAL_NOT, CUDNN_POINTWISE_BINARY_SELECT,
    CUDNN_POINTWISE_IDENTITY,     CUDNN_POINTWISE_ABS,         CUDNN_POINTWISE_NEG,
    CUDNN_POINTWISE_CEIL,         CUDNN_POINTWISE_FLOOR,       CUDNN_POINTWISE_ERF,
    CUDNN_POINTWISE_RELU_FWD,     CUDNN_POINTWISE_RELU_FWD,    CUDNN_POINTWISE_TANH_FWD,
    CUDNN_POINTWISE_SIGMOID_FWD,  CUDNN_POINTWISE_ELU_FWD,     CUDNN_POINTWISE_GELU_FWD,
    CUDNN_POINTWISE_SOFTPLUS_FWD, CUDNN_POINTWISE_SWISH_FWD,   CUDNN_POINTWISE_GELU_APPROX_TANH_FWD,
    CUDNN_POINTWISE_RELU_BWD,     CUDNN_POINTWISE_TANH_BWD,    CUDNN_POINTWISE_SIGMOID_BWD,
    CUDNN_POINTWISE_ELU_BWD,      CUDNN_POINTWISE_GELU_BWD,    CUDNN_POINTWISE_SOFTPLUS_BWD,
    CUDNN_POINTWISE_SWISH_BWD,
};
static const int small[] = {CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_ADD_SQUARE,
                            CUDNN_POINTWISE_EXP};
static const int positive[] = {CUDNN_POINTWISE_SQRT, CUDNN_POINTWISE_RSQRT, CUDNN_POINTWISE_LOG,
                               CUDNN_POINTWISE_RECIPROCAL};

#define ONE_OF(list) (list)[random_int(0, (int64_t)(sizeof(list) / sizeof((list)[0])) - 1)]

static int64_t random_shift(bool misaligned)
{
    return misaligned && random_chance(0.7) ? random_int(0, 3) : -1;
}

static void add_input(cudnnDataType_t dtype, double repeats, bool misaligned)
{
    struct chain_value *v = chain_value(dtype);
    int dim[CHAIN_RANK_MAX];
    for (int d = 0; d < chain.rank; ++d) dim[d] = random_chance(repeats) ? 1 : chain.dim[d];
    if (repeats > 0.9) {
        v->is_number = true;
        v->dtype = CUDNN_DATA_FLOAT;
        v->number = (float)random_of(-1, 1, 2) * 0.5F;
        for (int d = 0; d < chain.rank; ++d) dim[d] = 1;
    } else {
        v->shift = random_shift(misaligned);
        v->t = chain_tensor(dtype, dim, v->shift, true);
    }
    chain_describe(v, dim);
    chain_spread(v, dim);
}

static double extent(const struct chain_value *v, bool want_most)
{
    double result = want_most ? 0.0 : 1e30;
    for (int64_t i = 0; i < chain.count; ++i) {
        if (want_most) result = fmax(result, fabs(v->exact[i]) + v->bound[i]);
        else result = fmin(result, v->exact[i] - v->bound[i]);
    }
    return result;
}

/* What came last, mostly; otherwise anything. */
static struct chain_value *some_value(void)
{
    int back = random_chance(0.6) ? 0 : (int)random_int(0, chain.values - 1);
    struct chain_value *v = &chain.value[chain.values - 1 - back];
    v->readers += 1;
    return v;
}

static int choose_mode(const struct chain_value *x, const struct chain_value *b)
{
    double most = fmax(extent(x, true), extent(b, true));
    if (most > 30.0) return random_of(CUDNN_POINTWISE_TANH_FWD, CUDNN_POINTWISE_SIGMOID_FWD);
    if (most < 3.0 && random_chance(0.3)) return ONE_OF(small);
    if (extent(x, false) > 0.1 && random_chance(0.5)) return ONE_OF(positive);
    if (extent(b, false) > 0.1 && random_chance(0.3)) return CUDNN_POINTWISE_DIV;
    return ONE_OF(anything);
}

static struct pointwise_attributes random_attributes(void)
{
    struct pointwise_attributes a = {0.0, HUGE_VAL, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    if (random_chance(0.3)) a.low = random_real(-1.0, 0.5);
    if (random_chance(0.3)) a.high = random_real(0.6, 2.0);
    if (random_chance(0.3)) a.slope = random_real(0.01, 0.3);
    if (random_chance(0.3)) a.elu = random_real(0.5, 2.0);
    if (random_chance(0.3)) a.softplus = random_real(0.5, 2.0);
    if (random_chance(0.3)) a.swish = random_real(0.5, 2.0);
    if (random_chance(0.1)) a.alpha1 = random_real(-1.0, 1.0);
    if (random_chance(0.1)) a.alpha2 = random_real(-1.0, 1.0);
    return a;
}

static void add_node(cudnnDataType_t data, cudnnDataType_t between, bool is_last, double hidden,
                     bool misaligned)
{
    struct chain_value *x = some_value();
    struct chain_value *b = some_value();
    struct pointwise_attributes a = random_attributes();
    int mode = choose_mode(x, b);
    struct chain_value *t = mode == CUDNN_POINTWISE_BINARY_SELECT ? some_value() : NULL;
    bool logical = mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_LOGICAL_NOT;
    struct chain_value *y = chain_value(data);
    if (pointwise_operands(mode) < 2) {
        b->readers -= 1;
        b = NULL;
        a.alpha2 = 1.0;
    }
    y->is_virtual = !is_last && random_chance(hidden);
    if (y->is_virtual) y->dtype = between;
    if (y->is_virtual && logical && random_chance(0.5)) y->dtype = CUDNN_DATA_BOOLEAN;
    if (!y->is_virtual) {
        y->shift = random_shift(misaligned);
        y->t = chain_tensor(y->dtype, chain.dim, y->shift, false);
    }
    chain_describe(y, chain.dim);
    chain_add(mode, &a, x, b, t, y);
}

static void random_dims(int *rank, int *dim)
{
    *rank = (int)random_int(3, 5);
    for (int d = 0; d < *rank; ++d) dim[d] = random_of(1, 2, 3, 5, 8, 8, 9, 16);
    if (random_chance(0.3)) dim[1] = random_of(32, 33, 64);
    if (random_chance(0.3)) dim[*rank - 1] = random_of(32, 33, 64);
}

enum kind { FP32, FP16, BF16, MIXED, FP64, KINDS };

static cudnnDataType_t type_of(enum kind kind)
{
    switch (kind) {
    case FP32: return CUDNN_DATA_FLOAT;
    case FP16: return CUDNN_DATA_HALF;
    case BF16: return CUDNN_DATA_BFLOAT16;
    case FP64: return random_chance(0.7) ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    default:
        return (cudnnDataType_t)random_of(CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16);
    }
}

static void random_case(enum kind kind, int turn)
{
    cudnnDataType_t between = kind == FP64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    bool misaligned;
    double hidden;
    int dim[CHAIN_RANK_MAX];
    int rank;
    int inputs;
    int nodes;
    if (!case_begin("random graph kind %d turn %d", (int)kind, turn)) return;
    random_dims(&rank, dim);
    misaligned = turn % 4 == 3;
    chain_begin(rank, dim, kind == FP64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    inputs = (int)random_int(1, 5);
    nodes = (int)random_int(2, random_chance(0.2) ? CHAIN_NODES_MAX : 7);
    hidden = random_chance(0.5) ? 1.0 : 0.7;
    if (random_chance(0.2)) between = type_of(kind);
    for (int i = 0; i < inputs; ++i) {
        /* the first is of the whole space; others repeat along some dimensions, or are numbers */
        double repeats = i == 0 || random_chance(0.4) ? 0.0 : random_chance(0.2) ? 1.0 : 0.5;
        add_input(type_of(kind), repeats, misaligned);
    }
    for (int n = 0; n < nodes; ++n) {
        add_node(type_of(kind), between, n == nodes - 1, hidden, misaligned);
    }
    fused += chain_run(turn % 8 == 5 ? 1 : 0);
    chain_end();
}

/* y = relu(x * scale + bias) + z, plainly: scale and bias repeat along all but dimension `along`. */
static void chain_case(cudnnDataType_t type, const int *dim, int along, enum layout layout,
                       bool in_place)
{
    static const struct pointwise_attributes plain = {0.0, HUGE_VAL, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    static const int modes[4] = {CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD,
                                 CUDNN_POINTWISE_ADD};
    const struct chain_value *last;
    int repeated[4] = {1, 1, 1, 1};
    if (!case_begin("chain type %d of %dx%dx%dx%d along %d layout %d%s", (int)type, dim[0], dim[1],
                    dim[2], dim[3], along, (int)layout, in_place ? " in place" : "")) {
        return;
    }
    chain_begin(4, dim, CUDNN_DATA_FLOAT);
    repeated[along] = dim[along];
    for (int i = 0; i < 4; ++i) {
        const int *own = i == 1 || i == 2 ? repeated : dim;
        struct chain_value *v = chain_value(type);
        v->readers = 1;
        if (in_place && i == 0) v->t = tensor_inout(type, 4, own, layout, -2.0, 2.0);
        else v->t = tensor_input(type, 4, own, layout, -2.0, 2.0);
        chain_describe(v, own);
        chain_spread(v, own);
    }
    last = &chain.value[0];
    for (int n = 0; n < 4; ++n) {
        const struct chain_value *b = n == 2   ? NULL
                                      : n == 3 ? &chain.value[3]
                                               : &chain.value[n + 1];
        struct chain_value *y = chain_value(n == 3 ? type : CUDNN_DATA_FLOAT);
        y->is_virtual = n < 3;
        if (n == 3) y->t = in_place ? chain.value[0].t : tensor_output(type, 4, dim, layout);
        chain_describe(y, dim);
        chain_add(modes[n], &plain, last, b, NULL, y);
        last = y;
    }
    fused += chain_run(0);
    chain_end();
}

int main(int argc, char **argv)
{
    static const int dims[][4] = {{2, 64, 8, 8}, {3, 61, 7, 9},  {1, 8, 1, 1},
                                  {1, 1, 1, 1},  {2, 3, 33, 65}, {1, 1, 1, 4099}};
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    /* many runs a thread, on a GPU of 132 multiprocessors; a fake one is spared */
    int large[4] = {1, 64, 56, 57};
    harness_start(argc, argv);
    if (harness_on_gpu && !getenv("WARPDNN_CUDA_DRIVER")) large[0] = 53;
    for (int t = 0; t < 3; ++t) {
        for (int d = 0; d < (int)(sizeof dims / sizeof dims[0]); ++d) {
            for (int along = 0; along < 4; ++along) {
                chain_case(types[t], dims[d], along, along % 2 ? LAYOUT_NHWC : LAYOUT_NCHW,
                           (d + along) % 2 == 1);
            }
        }
    }
    chain_case(CUDNN_DATA_FLOAT, large, 1, LAYOUT_NCHW, true);
    chain_case(CUDNN_DATA_HALF, large, 1, LAYOUT_NHWC, false);
    for (int kind = 0; kind < KINDS; ++kind) {
        for (int turn = 0; turn < 60; ++turn) random_case((enum kind)kind, turn);
    }
    if (harness_all_engines && case_begin("chains are one pass")) {
        if (fused == 0) case_fail("no graph ran on an engine for chains");
        case_end();
    }
    return harness_finish();
}
