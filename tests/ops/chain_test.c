/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of several pointwise operations through the backend API: random ones, in which operands are
 * inputs, repeated along some dimensions, numbers, or results of operations before, and results are
 * virtual or not; in many types and layouts, in place, and at addresses that are aligned to their
 * elements alone. Every element is computed here in double, with a bound of what rounding may do to
 * it: the spread of an operation's results over its operands' bounds, and some roundings of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/pointwise_formula.h"
#include "support/backend_build.h"
#include "support/harness.h"

enum { NODES_MAX = 20, VALUES_MAX = 2 * NODES_MAX + 16, RANK_MAX = 5 };

/* An input or a result. */
struct value {
    cudnnDataType_t dtype;
    bool is_virtual;
    bool is_number; /* carried by value */
    float number;
    struct tensor *t; /* null: virtual, or a number */
    int64_t shift;    /* elements before its first in t, which then is of one long row */
    be_desc desc;
    double *exact; /* of every element of the space */
    double *bound;
    int readers;
};

struct graph {
    int rank;
    int dim[RANK_MAX];
    int64_t count;
    cudnnDataType_t compute;
    struct value value[VALUES_MAX];
    int values;
    be_desc op[NODES_MAX];
    int nodes;
    be_desc plan, pack;
};

static struct graph g;
static int fused; /* executions by an engine that takes several nodes */

/* ---- modes ---- */

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

/* ---- tensors ---- */

static double *doubles(int64_t count)
{
    double *list = calloc((size_t)(count > 0 ? count : 1), sizeof *list);
    if (!list) abort();
    return list;
}

static be_desc describe(const struct value *v, int64_t uid, const int *dim)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dims[RANK_MAX];
    int64_t strides[RANK_MAX];
    int64_t next = 1;
    bool yes = true;
    for (int d = g.rank - 1; d >= 0; --d) {
        dims[d] = dim[d];
        strides[d] = v->t && v->shift < 0 ? v->t->stride[d] : next;
        next *= dim[d];
    }
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, (int)v->dtype);
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, g.rank, dims);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, g.rank, strides);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
    if (v->is_virtual) be_set(desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (v->is_number) be_set(desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    return be_final(desc);
}

/* A tensor of the space, or (dim) of one that repeats; `shift` as in struct value, -1: in a layout. */
static struct tensor *make_tensor(cudnnDataType_t dtype, const int *dim, int64_t shift,
                                  bool is_input)
{
    enum layout layout = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
    int row[RANK_MAX];
    int64_t count = 1;
    if (shift < 0) {
        if (is_input) return tensor_input(dtype, g.rank, dim, layout, -2.0, 2.0);
        return tensor_output(dtype, g.rank, dim, layout);
    }
    for (int d = 0; d < g.rank; ++d) {
        count *= dim[d];
        row[d] = 1;
    }
    row[g.rank - 1] = (int)(count + shift);
    if (is_input) return tensor_input(dtype, g.rank, row, LAYOUT_NCHW, -2.0, 2.0);
    return tensor_inout(dtype, g.rank, row, LAYOUT_NCHW, -2.0, 2.0);
}

static int64_t random_shift(bool misaligned)
{
    return misaligned && random_chance(0.7) ? random_int(0, 3) : -1;
}

/* Fills `exact` of an input from its tensor, repeated over the space. */
static void spread(struct value *v, const int *dim)
{
    int64_t first = v->shift < 0 ? 0 : v->shift;
    int at[RANK_MAX] = {0};
    for (int64_t i = 0; i < g.count; ++i) {
        int64_t index = 0;
        for (int d = 0; d < g.rank; ++d) index = index * dim[d] + (dim[d] == 1 ? 0 : at[d]);
        v->exact[i] = v->t ? v->t->value[first + index] : (double)v->number;
        for (int d = g.rank - 1; d >= 0 && ++at[d] == g.dim[d]; --d) at[d] = 0;
    }
}

static struct value *new_value(cudnnDataType_t dtype)
{
    struct value *v = &g.value[g.values++];
    *v = (struct value){.dtype = dtype, .shift = -1};
    v->exact = doubles(g.count);
    v->bound = doubles(g.count);
    return v;
}

static void add_input(cudnnDataType_t dtype, double repeats, bool misaligned)
{
    struct value *v = new_value(dtype);
    int dim[RANK_MAX];
    for (int d = 0; d < g.rank; ++d) dim[d] = random_chance(repeats) ? 1 : g.dim[d];
    if (repeats > 0.9) {
        v->is_number = true;
        v->dtype = CUDNN_DATA_FLOAT;
        v->number = (float)random_of(-1, 1, 2) * 0.5F;
        for (int d = 0; d < g.rank; ++d) dim[d] = 1;
    } else {
        v->shift = random_shift(misaligned);
        v->t = make_tensor(dtype, dim, v->shift, true);
    }
    v->desc = describe(v, g.values, dim);
    spread(v, dim);
}

/* ---- nodes ---- */

static double extent(const struct value *v, bool want_most)
{
    double result = want_most ? 0.0 : 1e30;
    for (int64_t i = 0; i < g.count; ++i) {
        if (want_most) result = fmax(result, fabs(v->exact[i]) + v->bound[i]);
        else result = fmin(result, v->exact[i] - v->bound[i]);
    }
    return result;
}

/* Results, and how far off they may be. */
static void evaluate(struct value *y, int mode, const struct pointwise_attributes *a,
                     const struct value *x, const struct value *b, const struct value *t)
{
    double own = 16.0 * tensor_epsilon(g.compute);
    double stored = tensor_epsilon(y->dtype);
    double smallest = y->dtype == CUDNN_DATA_HALF ? 0x1p-23 : 0x1p-120;
    for (int64_t i = 0; i < g.count; ++i) {
        double in[3] = {a->alpha1 * x->exact[i], b ? a->alpha2 * b->exact[i] : 0.0,
                        t ? t->exact[i] : 0.0};
        double off[3] = {fabs(a->alpha1) * x->bound[i], b ? fabs(a->alpha2) * b->bound[i] : 0.0,
                         t ? t->bound[i] : 0.0};
        double value = pointwise_formula(mode, a, in[0], in[1], in[2]);
        double bound = 0.0;
        bool is_exact =
            off[0] == 0.0 && off[1] == 0.0 && off[2] == 0.0 && a->alpha1 == 1.0 && a->alpha2 == 1.0;
        if (!is_exact || mode < CUDNN_POINTWISE_CMP_EQ || mode > CUDNN_POINTWISE_LOGICAL_NOT) {
            for (int corner = 0; corner < 8; ++corner) {
                double there = pointwise_formula(mode, a, in[0] + (corner & 1 ? off[0] : -off[0]),
                                                 in[1] + (corner & 2 ? off[1] : -off[1]),
                                                 in[2] + (corner & 4 ? off[2] : -off[2]));
                bound = fmax(bound, fabs(there - value));
            }
            bound += own * (fabs(value) + fabs(in[0]) + fabs(in[1]));
        }
        y->exact[i] = value;
        if (y->dtype == CUDNN_DATA_BOOLEAN) {
            y->exact[i] = value != 0.0;
            bound = is_exact || fabs(value) > bound ? 0.0 : 1.0;
        } else if (stored > tensor_epsilon(g.compute)) {
            y->exact[i] = tensor_round(y->dtype, value);
            if (bound > 0.0) bound += 2.0 * stored * fabs(value) + smallest;
        }
        y->bound[i] = bound;
    }
}

static void set_double(be_desc desc, cudnnBackendAttributeName_t name, double value)
{
    be_set(desc, name, CUDNN_TYPE_DOUBLE, 1, &value);
}

static be_desc make_op(int mode, const struct pointwise_attributes *a, const struct value *x,
                       const struct value *b, const struct value *t, const struct value *y)
{
    be_desc how = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    bool gradient = pointwise_is_gradient(mode);
    be_set_enum(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    be_set_enum(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, (int)g.compute);
    if (mode == CUDNN_POINTWISE_RELU_FWD || mode == CUDNN_POINTWISE_RELU_BWD) {
        set_double(how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, a->low);
        set_double(how, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, a->high);
        set_double(how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, a->slope);
    }
    set_double(how, CUDNN_ATTR_POINTWISE_ELU_ALPHA, a->elu);
    set_double(how, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, a->softplus);
    set_double(how, CUDNN_ATTR_POINTWISE_SWISH_BETA, a->swish);
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, be_final(how));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x->desc);
    if (gradient) {
        be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, b->desc);
        be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, y->desc);
    } else {
        if (b) be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->desc);
        if (t) be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t->desc);
        be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y->desc);
    }
    if (a->alpha1 != 1.0) set_double(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, a->alpha1);
    if (a->alpha2 != 1.0) set_double(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, a->alpha2);
    return be_final(op);
}

/* What came last, mostly; otherwise anything. */
static struct value *some_value(void)
{
    int back = random_chance(0.6) ? 0 : (int)random_int(0, g.values - 1);
    struct value *v = &g.value[g.values - 1 - back];
    v->readers += 1;
    return v;
}

static int choose_mode(const struct value *x, const struct value *b)
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
    struct value *x = some_value();
    struct value *b = some_value();
    struct pointwise_attributes a = random_attributes();
    int mode = choose_mode(x, b);
    struct value *t = mode == CUDNN_POINTWISE_BINARY_SELECT ? some_value() : NULL;
    bool logical = mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_LOGICAL_NOT;
    struct value *y = new_value(data);
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
        y->t = make_tensor(y->dtype, g.dim, y->shift, false);
    }
    y->desc = describe(y, g.values, g.dim);
    evaluate(y, mode, &a, x, b, t);
    g.op[g.nodes++] = make_op(mode, &a, x, b, t, y);
}

/* ---- a graph ---- */

static void begin_graph(int rank, const int *dim, cudnnDataType_t compute)
{
    memset(&g, 0, sizeof g);
    g.rank = rank;
    g.compute = compute;
    g.count = 1;
    for (int d = 0; d < rank; ++d) {
        g.dim[d] = dim[d];
        g.count *= dim[d];
    }
}

static void end_graph(void)
{
    for (int v = 0; v < g.values; ++v) {
        free(g.value[v].exact);
        free(g.value[v].bound);
    }
    be_free_all();
    case_end();
}

static cudnnStatus_t execute(void *context)
{
    (void)context;
    return cudnnBackendExecute(harness_handle, g.plan, g.pack);
}

static void judge(struct value *v, int index)
{
    int64_t first = v->shift < 0 ? 0 : v->shift;
    double *exact = doubles(v->t->count);
    double *magnitude = doubles(v->t->count);
    char name[24];
    snprintf(name, sizeof name, "value %d", index);
    for (int64_t i = 0; i < v->t->count; ++i) exact[i] = v->t->value[i]; /* what lies before */
    for (int64_t i = 0; i < g.count; ++i) {
        exact[first + i] = v->exact[i];
        /* allowed are 8 roundings of it */
        magnitude[first + i] = v->bound[i] / (8.0 * tensor_epsilon(CUDNN_DATA_DOUBLE));
    }
    check_values(name, v->t, exact, NULL, magnitude, CUDNN_DATA_DOUBLE);
    free(exact);
    free(magnitude);
}

static void run_graph(int64_t engine)
{
    int64_t uids[VALUES_MAX];
    void *data[VALUES_MAX];
    struct tensor *workspace = NULL;
    const char *name = "";
    int64_t bytes;
    int count = 0;
    g.plan = be_plan(harness_handle,
                     be_config(be_engine(be_graph(harness_handle, g.nodes, g.op), engine)));
    bytes = be_workspace(g.plan);
    if (bytes > 0) workspace = tensor_bytes(bytes);
    for (int v = 0; v < g.values; ++v) {
        struct value *it = &g.value[v];
        int64_t size = it->dtype == CUDNN_DATA_DOUBLE ? 8 : it->dtype == CUDNN_DATA_FLOAT ? 4 : 2;
        if (it->is_virtual || (it->readers == 0 && v < g.values - g.nodes)) continue;
        uids[count] = v + 1;
        if (it->is_number) data[count++] = &it->number;
        else data[count++] = (char *)it->t->data + (it->shift > 0 ? it->shift * size : 0);
    }
    g.pack = be_pack(count, uids, data, workspace ? workspace->data : NULL);
    if (!run_call(execute, NULL)) return;
    if (warpdnnGetLastEngine(harness_handle, &name) == 0 && strstr(name, "pointwise_chain"))
        ++fused;
    for (int v = 0; v < g.values; ++v) {
        if (g.value[v].t && g.value[v].t->output) judge(&g.value[v], v);
    }
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
    int dim[RANK_MAX];
    int rank;
    int inputs;
    int nodes;
    if (!case_begin("random graph kind %d turn %d", (int)kind, turn)) return;
    random_dims(&rank, dim);
    misaligned = turn % 4 == 3;
    begin_graph(rank, dim, kind == FP64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    inputs = (int)random_int(1, 5);
    nodes = (int)random_int(2, random_chance(0.2) ? NODES_MAX : 7);
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
    run_graph(turn % 8 == 5 ? 1 : 0);
    end_graph();
}

/* y = relu(x * scale + bias) + z, plainly: scale and bias repeat along all but dimension `along`. */
static void chain_case(cudnnDataType_t type, const int *dim, int along, enum layout layout,
                       bool in_place)
{
    static const struct pointwise_attributes plain = {0.0, HUGE_VAL, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    static const int modes[4] = {CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD,
                                 CUDNN_POINTWISE_ADD};
    const struct value *last;
    int repeated[4] = {1, 1, 1, 1};
    if (!case_begin("chain type %d of %dx%dx%dx%d along %d layout %d%s", (int)type, dim[0], dim[1],
                    dim[2], dim[3], along, (int)layout, in_place ? " in place" : "")) {
        return;
    }
    begin_graph(4, dim, CUDNN_DATA_FLOAT);
    repeated[along] = dim[along];
    for (int i = 0; i < 4; ++i) {
        const int *own = i == 1 || i == 2 ? repeated : dim;
        struct value *v = new_value(type);
        v->readers = 1;
        if (in_place && i == 0) v->t = tensor_inout(type, 4, own, layout, -2.0, 2.0);
        else v->t = tensor_input(type, 4, own, layout, -2.0, 2.0);
        v->desc = describe(v, g.values, own);
        spread(v, own);
    }
    last = &g.value[0];
    for (int n = 0; n < 4; ++n) {
        const struct value *b = n == 2 ? NULL : n == 3 ? &g.value[3] : &g.value[n + 1];
        struct value *y = new_value(n == 3 ? type : CUDNN_DATA_FLOAT);
        y->is_virtual = n < 3;
        if (n == 3) y->t = in_place ? g.value[0].t : tensor_output(type, 4, dim, layout);
        y->desc = describe(y, g.values, dim);
        evaluate(y, modes[n], &plain, last, b, NULL);
        g.op[g.nodes++] = make_op(modes[n], &plain, last, b, NULL, y);
        last = y;
    }
    /* in place, the tensor of the input holds the result: it is judged by that */
    if (in_place) {
        free(g.value[0].exact);
        free(g.value[0].bound);
        g.value[0].exact = doubles(0);
        g.value[0].bound = doubles(0);
    }
    {
        struct tensor *shared = g.value[0].t;
        int64_t uids[5] = {1, 2, 3, 4, 8};
        void *data[5];
        struct tensor *workspace = NULL;
        const char *name = "";
        g.plan = be_plan_of(harness_handle, g.nodes, g.op);
        if (be_workspace(g.plan) > 0) workspace = tensor_bytes(be_workspace(g.plan));
        for (int i = 0; i < 4; ++i) data[i] = g.value[i].t->data;
        data[4] = in_place ? shared->data : g.value[7].t->data;
        g.pack = be_pack(5, uids, data, workspace ? workspace->data : NULL);
        if (run_call(execute, NULL)) {
            if (warpdnnGetLastEngine(harness_handle, &name) == 0 &&
                strstr(name, "pointwise_chain")) {
                ++fused;
            }
            judge(&g.value[7], 7);
        }
    }
    end_graph();
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
