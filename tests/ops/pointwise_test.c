/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise through the legacy calls: activation forward and backward, add, op, scale, set and
 * transform tensor, on random shapes, types and layouts, against formulas written out here in
 * double; gradients also against finite differences. */
#include <math.h>
#include <stdlib.h>

#include "support/harness.h"

static const cudnnDataType_t float_types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                              CUDNN_DATA_BFLOAT16};

struct call {
    cudnnActivationDescriptor_t activation;
    cudnnOpTensorDescriptor_t op;
    struct tensor *a, *b, *x, *y, *dy, *dx;
    double alpha1, alpha2, beta;
};

/* A scalar in the form that the API wants for a type. */
static const void *scalar(cudnnDataType_t dtype, double value, double *storage)
{
    if (dtype == CUDNN_DATA_DOUBLE) *storage = value;
    else *(float *)storage = (float)value;
    return storage;
}

/* Turns from CELL on say the layout of every tensor, CELL + layout; earlier ones draw them. WIDE are
 * packed tensors with something for every processor, rows no whole number of vectors, the first plain. */
enum { CELL = 100, WIDE = 200, WIDEST = 202 };

static enum layout layout_of(int turn)
{
    if (turn >= WIDE) return LAYOUT_NCHW;
    return turn >= CELL ? (enum layout)(turn - CELL) : (enum layout)random_of(0, 1, 2);
}

static int dims_of(int turn, int *dim)
{
    static const int cell[] = {2, 32, 3, 5}; /* channels for every vector; no layout is another */
    static const int wide[] = {5, 27, 91, 91};
    static const int widest[] = {5, 27, 176, 177}; /* what is copied whole */
    int rank = 4;
    if (turn >= WIDE) {
        for (int d = 0; d < rank; ++d) dim[d] = turn == WIDEST ? widest[d] : wide[d];
        return rank;
    }
    if (turn >= CELL) {
        for (int d = 0; d < rank; ++d) dim[d] = cell[d];
        return rank;
    }
    rank = (int)random_int(3, 5);
    for (int d = 0; d < rank; ++d) dim[d] = random_of(1, 2, 3, 5, 7, 8);
    return rank;
}

/* Lowest value that an input takes: unsigned types have no negative ones. */
static double lowest_of(cudnnDataType_t dtype, double lowest)
{
    return dtype == CUDNN_DATA_UINT8 || dtype == CUDNN_DATA_UINT8x4 ? 0.0 : lowest;
}

static double random_scalar(void)
{
    return (double)random_of(0, 1, 2, -3) * 0.5;
}

static double activate(cudnnActivationMode_t mode, double x, double coef)
{
    switch ((int)mode) {
    case CUDNN_ACTIVATION_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case CUDNN_ACTIVATION_RELU: return x > 0.0 ? x : 0.0;
    case CUDNN_ACTIVATION_TANH: return tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return x > coef ? coef : x > 0.0 ? x : 0.0;
    case CUDNN_ACTIVATION_ELU: return x > 0.0 ? x : coef * (exp(x) - 1.0);
    case CUDNN_ACTIVATION_SWISH: return x / (1.0 + exp(-x));
    default: return x;
    }
}

static cudnnStatus_t forward(void *context)
{
    struct call *c = context;
    double s[2];
    return cudnnActivationForward(harness_handle, c->activation, scalar(c->x->dtype, c->alpha1, s),
                                  c->x->desc, c->x->data, scalar(c->x->dtype, c->beta, s + 1),
                                  c->y->desc, c->y->data);
}

static cudnnStatus_t backward(void *context)
{
    struct call *c = context;
    double s[2];
    return cudnnActivationBackward(harness_handle, c->activation, scalar(c->x->dtype, c->alpha1, s),
                                   c->y->desc, c->y->data, c->dy->desc, c->dy->data, c->x->desc,
                                   c->x->data, scalar(c->x->dtype, c->beta, s + 1), c->dx->desc,
                                   c->dx->data);
}

static double *doubles(const struct tensor *t)
{
    return calloc((size_t)t->count, sizeof(double));
}

static void activation_case(cudnnActivationMode_t mode, cudnnDataType_t dtype, int turn)
{
    struct call c = {0};
    int dim[8];
    int rank;
    double coef;
    double *exact;
    double *magnitude;
    if (!case_begin("activation mode %d type %d turn %d", (int)mode, (int)dtype, turn)) return;
    rank = dims_of(turn, dim);
    coef = random_real(0.5, 3.0);
    c.alpha1 = turn == 0 || turn == WIDE || (turn >= CELL && turn < WIDE) ? 1.0 : random_scalar();
    c.beta = turn == 0 || turn == WIDE ? 0.0 : turn >= CELL && turn < WIDE ? 0.5 : random_scalar();
    cudnnCreateActivationDescriptor(&c.activation);
    cudnnSetActivationDescriptor(c.activation, mode, CUDNN_NOT_PROPAGATE_NAN, coef);
    c.x = tensor_input(dtype, rank, dim, layout_of(turn), lowest_of(dtype, -4.0), 4.0);
    c.y = tensor_inout(dtype, rank, dim, layout_of(turn), lowest_of(dtype, -1.0), 1.0);
    exact = doubles(c.x);
    magnitude = doubles(c.x);
    for (int64_t i = 0; i < c.x->count; ++i) {
        double value = activate(mode, c.x->value[i], coef);
        exact[i] = c.alpha1 * value + (c.beta != 0.0 ? c.beta * c.y->value[i] : 0.0);
        magnitude[i] = fabs(c.alpha1) * (fabs(value) + coef) + fabs(c.beta * c.y->value[i]);
    }
    if (run_call(forward, &c)) {
        check_values("y", c.y, exact, NULL, magnitude,
                     dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    cudnnDestroyActivationDescriptor(c.activation);
    case_end();
}

/* The gradient against the central difference of the formula. */
static void gradient_case(cudnnActivationMode_t mode, cudnnDataType_t dtype, int turn)
{
    struct call c = {0};
    int dim[8];
    int rank;
    double coef;
    double *exact;
    double *magnitude;
    if (!case_begin("gradient mode %d type %d turn %d", (int)mode, (int)dtype, turn)) return;
    rank = dims_of(turn, dim);
    coef = random_real(0.5, 3.0);
    c.alpha1 = turn == 0 || turn == WIDE || (turn >= CELL && turn < WIDE) ? 1.0 : random_scalar();
    c.beta = turn == 0 || turn == WIDE ? 0.0 : turn >= CELL && turn < WIDE ? 0.5 : random_scalar();
    cudnnCreateActivationDescriptor(&c.activation);
    cudnnSetActivationDescriptor(c.activation, mode, CUDNN_NOT_PROPAGATE_NAN, coef);
    c.x = tensor_input(dtype, rank, dim, layout_of(turn), lowest_of(dtype, -4.0), 4.0);
    c.y = tensor_input(dtype, rank, dim, layout_of(turn), lowest_of(dtype, -1.0), 1.0);
    c.dy = tensor_input(dtype, rank, dim, layout_of(turn), -2.0, 2.0);
    c.dx = tensor_inout(dtype, rank, dim, layout_of(turn), lowest_of(dtype, -1.0), 1.0);
    exact = doubles(c.x);
    magnitude = doubles(c.x);
    for (int64_t i = 0; i < c.x->count; ++i) {
        double x = c.x->value[i];
        double slope;
        /* the difference quotient means nothing across a kink */
        if (fabs(x) < 1e-3 || fabs(x - coef) < 1e-3) x = tensor_round(dtype, x + 0.02);
        c.x->value[i] = x;
        c.y->value[i] = activate(mode, x, coef);
        slope = (activate(mode, x + 1e-5, coef) - activate(mode, x - 1e-5, coef)) / 2e-5;
        exact[i] =
            c.alpha1 * c.dy->value[i] * slope + (c.beta != 0.0 ? c.beta * c.dx->value[i] : 0.0);
        /* y is given rounded to its type, and 1 - y^2 loses what y lost; 1e-8 is the quotient's own */
        magnitude[i] = fabs(c.alpha1 * c.dy->value[i]) * (2.0 + coef) *
                           (1.0 + tensor_epsilon(dtype) / tensor_epsilon(CUDNN_DATA_FLOAT)) +
                       fabs(c.beta * c.dx->value[i]);
        if (dtype == CUDNN_DATA_DOUBLE) magnitude[i] += 1e-8 / tensor_epsilon(CUDNN_DATA_DOUBLE);
    }
    tensor_write(c.x);
    tensor_write(c.y);
    if (run_call(backward, &c)) {
        check_values("dx", c.dx, exact, NULL, magnitude,
                     dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    cudnnDestroyActivationDescriptor(c.activation);
    case_end();
}

static cudnnStatus_t op(void *context)
{
    struct call *c = context;
    double s[3];
    cudnnDataType_t type = c->a->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    return cudnnOpTensor(harness_handle, c->op, scalar(type, c->alpha1, s), c->a->desc, c->a->data,
                         scalar(type, c->alpha2, s + 1), c->b->desc, c->b->data,
                         scalar(type, c->beta, s + 2), c->y->desc, c->y->data);
}

static double operate(int how, double a, double b)
{
    switch (how) {
    case CUDNN_OP_TENSOR_ADD: return a + b;
    case CUDNN_OP_TENSOR_MUL: return a * b;
    case CUDNN_OP_TENSOR_MIN: return a < b ? a : b;
    case CUDNN_OP_TENSOR_MAX: return a > b ? a : b;
    case CUDNN_OP_TENSOR_SQRT: return sqrt(a);
    default: return 1.0 - a;
    }
}

/* Logical index in b of the element that repeats at index i of a. */
static int64_t repeated(const struct tensor *a, int64_t i, const struct tensor *b)
{
    int at[8];
    coordinates(a, i, at);
    for (int d = 0; d < a->rank; ++d)
        if (b->dim[d] == 1) at[d] = 0;
    return logical_index(b, at);
}

static void op_case(int how, cudnnDataType_t dtype, int turn)
{
    struct call c = {0};
    int dim[8];
    int b_dim[8];
    int rank;
    double *exact;
    double *magnitude;
    bool is_double = dtype == CUDNN_DATA_DOUBLE;
    if (!case_begin("op %d type %d turn %d", how, (int)dtype, turn)) return;
    rank = dims_of(turn, dim);
    for (int d = 0; d < rank; ++d) b_dim[d] = turn < CELL && random_chance(0.5) ? 1 : dim[d];
    if (turn == WIDE + 1) b_dim[0] = b_dim[2] = b_dim[3] = 1; /* a bias */
    c.alpha1 = how == CUDNN_OP_TENSOR_SQRT ? 1.5 : random_scalar();
    c.alpha2 = random_scalar();
    c.beta = random_scalar();
    cudnnCreateOpTensorDescriptor(&c.op);
    cudnnSetOpTensorDescriptor(c.op, (cudnnOpTensorOp_t)how,
                               is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                               CUDNN_NOT_PROPAGATE_NAN);
    c.a = tensor_input(dtype, rank, dim, layout_of(turn), 0.0, 4.0);
    c.b = tensor_input(dtype, rank, b_dim, layout_of(turn), lowest_of(dtype, -4.0), 4.0);
    c.y = tensor_inout(dtype, rank, dim, layout_of(turn), lowest_of(dtype, -1.0), 1.0);
    exact = doubles(c.a);
    magnitude = doubles(c.a);
    for (int64_t i = 0; i < c.a->count; ++i) {
        double a = c.alpha1 * c.a->value[i];
        double b = c.alpha2 * c.b->value[repeated(c.a, i, c.b)];
        double old = c.beta != 0.0 ? c.beta * c.y->value[i] : 0.0;
        exact[i] = operate(how, a, b) + old;
        magnitude[i] = fabs(a) + fabs(b) + fabs(a * b) + fabs(old) + 1.0;
    }
    if (run_call(op, &c)) {
        check_values("c", c.y, exact, NULL, magnitude,
                     is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    cudnnDestroyOpTensorDescriptor(c.op);
    case_end();
}

static cudnnStatus_t add(void *context)
{
    struct call *c = context;
    double s[2];
    return cudnnAddTensor(harness_handle, scalar(c->y->dtype, c->alpha1, s), c->a->desc, c->a->data,
                          scalar(c->y->dtype, c->beta, s + 1), c->y->desc, c->y->data);
}

static cudnnStatus_t transform(void *context)
{
    struct call *c = context;
    double s[2];
    return cudnnTransformTensor(harness_handle, scalar(c->a->dtype, c->alpha1, s), c->a->desc,
                                c->a->data, scalar(c->a->dtype, c->beta, s + 1), c->y->desc,
                                c->y->data);
}

static cudnnStatus_t scale(void *context)
{
    struct call *c = context;
    double s;
    return cudnnScaleTensor(harness_handle, c->y->desc, c->y->data,
                            scalar(c->y->dtype, c->alpha1, &s));
}

/* add repeats a into y; transform converts between types and layouts */
static void blend_case(bool is_add, cudnnDataType_t from, cudnnDataType_t to, int turn)
{
    struct call c = {0};
    int dim[8];
    int a_dim[8];
    int rank;
    double *exact;
    double *magnitude;
    cudnnDataType_t compute = from == CUDNN_DATA_DOUBLE || to == CUDNN_DATA_DOUBLE ||
                                      from == CUDNN_DATA_INT32 || to == CUDNN_DATA_INT32
                                  ? CUDNN_DATA_DOUBLE
                                  : CUDNN_DATA_FLOAT;
    if (!case_begin("%s type %d to %d turn %d", is_add ? "add" : "transform", (int)from, (int)to,
                    turn)) {
        return;
    }
    rank = dims_of(turn, dim);
    for (int d = 0; d < rank; ++d)
        a_dim[d] = is_add && turn < CELL && random_chance(0.5) ? 1 : dim[d];
    if (is_add && turn == WIDE) a_dim[0] = a_dim[2] = a_dim[3] = 1; /* a bias */
    c.alpha1 = turn == 0 || turn >= CELL ? 1.0 : random_scalar();
    c.beta = turn == 0 || turn == WIDEST ? 0.0
             : turn == WIDE              ? 1.0
             : turn >= CELL              ? 0.5
                                         : random_scalar();
    c.a = tensor_input(from, rank, a_dim, layout_of(turn), lowest_of(from, -40.0), 40.0);
    c.y = tensor_inout(to, rank, dim, layout_of(turn), lowest_of(to, -10.0), 10.0);
    exact = doubles(c.y);
    magnitude = doubles(c.y);
    for (int64_t i = 0; i < c.y->count; ++i) {
        double a = c.alpha1 * c.a->value[repeated(c.y, i, c.a)];
        double old = c.beta != 0.0 ? c.beta * c.y->value[i] : 0.0;
        exact[i] = a + old;
        magnitude[i] = fabs(a) + fabs(old);
    }
    if (run_call(is_add ? add : transform, &c)) {
        check_values("y", c.y, exact, NULL, magnitude, compute);
    }
    free(exact);
    free(magnitude);
    case_end();
}

static void scale_case(cudnnDataType_t dtype, int turn)
{
    struct call c = {0};
    int dim[8];
    int rank;
    double *exact;
    if (!case_begin("scale type %d turn %d", (int)dtype, turn)) return;
    c.alpha1 = turn < CELL ? random_scalar() : 2.0; /* 0 sets, 1 does nothing */
    rank = dims_of(turn, dim);
    c.y = tensor_inout(dtype, rank, dim, layout_of(turn), lowest_of(dtype, -9.0), 9.0);
    exact = doubles(c.y);
    for (int64_t i = 0; i < c.y->count; ++i) exact[i] = c.alpha1 * c.y->value[i];
    if (run_call(scale, &c)) check_values("y", c.y, exact, NULL, NULL, CUDNN_DATA_FLOAT);
    free(exact);
    case_end();
}

static cudnnStatus_t set(void *context)
{
    struct call *c = context;
    union {
        double d;
        float f;
        int32_t i;
    } value;
    switch ((int)c->y->dtype) {
    case CUDNN_DATA_DOUBLE: value.d = c->alpha1; break;
    case CUDNN_DATA_INT32: value.i = (int32_t)c->alpha1; break;
    default: value.f = (float)c->alpha1; break;
    }
    return cudnnSetTensor(harness_handle, c->y->desc, c->y->data, &value);
}

static void set_case(cudnnDataType_t dtype, int turn)
{
    struct call c = {0};
    int dim[8];
    int rank;
    double *exact;
    if (!case_begin("set type %d turn %d", (int)dtype, turn)) return;
    c.alpha1 = lowest_of(dtype, -1.0) < 0.0 ? -3.0 : 3.0;
    rank = dims_of(turn, dim);
    c.y = tensor_output(dtype, rank, dim, turn < CELL ? LAYOUT_GAPS : layout_of(turn));
    exact = doubles(c.y);
    for (int64_t i = 0; i < c.y->count; ++i) exact[i] = c.alpha1;
    if (run_call(set, &c)) check_values("y", c.y, exact, NULL, NULL, CUDNN_DATA_FLOAT);
    free(exact);
    case_end();
}

/* Every type in every layout that it has, through every call that takes it. */
static void cell_cases(void)
{
    static const struct {
        cudnnDataType_t dtype;
        bool vector, gradient;
    } types[] = {
        {CUDNN_DATA_FLOAT, false, true},   {CUDNN_DATA_DOUBLE, false, true},
        {CUDNN_DATA_HALF, false, true},    {CUDNN_DATA_BFLOAT16, false, true},
        {CUDNN_DATA_INT8, false, false},   {CUDNN_DATA_UINT8, false, false},
        {CUDNN_DATA_INT32, false, false},  {CUDNN_DATA_INT8x4, true, false},
        {CUDNN_DATA_UINT8x4, true, false}, {CUDNN_DATA_INT8x32, true, false},
    };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; ++t) {
        cudnnDataType_t dtype = types[t].dtype;
        int first = types[t].vector ? LAYOUT_VECT : LAYOUT_NCHW;
        int last = types[t].vector ? LAYOUT_VECT : LAYOUT_GAPS;
        for (int turn = CELL + first; turn <= CELL + last; ++turn) {
            activation_case(CUDNN_ACTIVATION_RELU, dtype, turn);
            if (types[t].gradient) gradient_case(CUDNN_ACTIVATION_TANH, dtype, turn);
            op_case(CUDNN_OP_TENSOR_ADD, dtype, turn);
            op_case(CUDNN_OP_TENSOR_MAX, dtype, turn);
            scale_case(dtype, turn);
            set_case(dtype, turn);
            blend_case(true, dtype, dtype, turn);
            blend_case(false, dtype, dtype, turn);
        }
    }
}

/* What every processor has something of: whole lines, ends, biases of odd rows. */
static void wide_cases(void)
{
    for (int t = 0; t < 4; ++t) {
        for (int m = CUDNN_ACTIVATION_SIGMOID; m <= CUDNN_ACTIVATION_SWISH; ++m) {
            if (m == CUDNN_ACTIVATION_IDENTITY) continue;
            activation_case((cudnnActivationMode_t)m, float_types[t], WIDE);
            gradient_case((cudnnActivationMode_t)m, float_types[t], WIDE);
        }
        activation_case(CUDNN_ACTIVATION_RELU, float_types[t], WIDE + 1);
        gradient_case(CUDNN_ACTIVATION_RELU, float_types[t], WIDE + 1);
        op_case(CUDNN_OP_TENSOR_ADD, float_types[t], WIDE);
        op_case(CUDNN_OP_TENSOR_MUL, float_types[t], WIDE + 1);
        blend_case(true, float_types[t], float_types[t], WIDE);
        scale_case(float_types[t], WIDE);
        set_case(float_types[t], WIDE);
    }
    blend_case(false, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, WIDEST);
}

int main(int argc, char **argv)
{
    static const cudnnDataType_t all_types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                                CUDNN_DATA_HALF,  CUDNN_DATA_BFLOAT16,
                                                CUDNN_DATA_INT8,  CUDNN_DATA_INT32};
    harness_start(argc, argv);
    for (int t = 0; t < 4; ++t) {
        for (int turn = 0; turn < 4; ++turn) {
            for (int m = CUDNN_ACTIVATION_SIGMOID; m <= CUDNN_ACTIVATION_SWISH; ++m) {
                if (m == CUDNN_ACTIVATION_IDENTITY) continue;
                activation_case((cudnnActivationMode_t)m, float_types[t], turn);
                gradient_case((cudnnActivationMode_t)m, float_types[t], turn);
            }
            for (int how = CUDNN_OP_TENSOR_ADD; how <= CUDNN_OP_TENSOR_NOT; ++how) {
                op_case(how, float_types[t], turn);
            }
            scale_case(float_types[t], turn);
        }
    }
    for (int t = 0; t < 6; ++t) {
        set_case(all_types[t], 0);
        for (int turn = 0; turn < 3; ++turn) {
            blend_case(true, all_types[t], all_types[t], turn);
            for (int to = 0; to < 6; ++to) blend_case(false, all_types[t], all_types[to], turn);
        }
    }
    cell_cases();
    wide_cases();
    return harness_finish();
}
