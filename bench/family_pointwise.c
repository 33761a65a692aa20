/* SPDX-License-Identifier: Apache-2.0
 *
 * Element by element: the legacy activations, op tensor, add, scale, set, and operations of the backend
 * API, alone and in chains that one pass can do.
 *
 * Bytes: a backward activation needs dy and either x or y, not both: only one is counted. A bias is
 * counted once. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compose.h"
#include "problem.h"

enum kind { FORWARD, BACKWARD, OP, OP_BIAS, OP_ONE, ADD, SCALE, SET, ONE, TWO, GRADIENT, CHAIN };
enum chain { ADD_RELU = 1000, BIAS_RELU, BIAS_GELU, SCALE_BIAS_RELU, MUL_ADD, SWISH_MUL };

static const struct entry {
    const char *call;
    enum kind kind;
    int mode;
    double low, high;
} entries[] = {
    {"relu_forward", FORWARD, CUDNN_ACTIVATION_RELU, -1, 1},
    {"clipped_relu_forward", FORWARD, CUDNN_ACTIVATION_CLIPPED_RELU, -1, 1},
    {"sigmoid_forward", FORWARD, CUDNN_ACTIVATION_SIGMOID, -4, 4},
    {"tanh_forward", FORWARD, CUDNN_ACTIVATION_TANH, -3, 3},
    {"elu_forward", FORWARD, CUDNN_ACTIVATION_ELU, -3, 3},
    {"swish_forward", FORWARD, CUDNN_ACTIVATION_SWISH, -4, 4},
    {"relu_backward", BACKWARD, CUDNN_ACTIVATION_RELU, -1, 1},
    {"clipped_relu_backward", BACKWARD, CUDNN_ACTIVATION_CLIPPED_RELU, -1, 1},
    {"sigmoid_backward", BACKWARD, CUDNN_ACTIVATION_SIGMOID, -4, 4},
    {"tanh_backward", BACKWARD, CUDNN_ACTIVATION_TANH, -3, 3},
    {"elu_backward", BACKWARD, CUDNN_ACTIVATION_ELU, -3, 3},
    {"swish_backward", BACKWARD, CUDNN_ACTIVATION_SWISH, -4, 4},
    {"op_add", OP, CUDNN_OP_TENSOR_ADD, -1, 1},
    {"op_mul", OP, CUDNN_OP_TENSOR_MUL, -1, 1},
    {"op_min", OP, CUDNN_OP_TENSOR_MIN, -1, 1},
    {"op_max", OP, CUDNN_OP_TENSOR_MAX, -1, 1},
    {"op_add_bias", OP_BIAS, CUDNN_OP_TENSOR_ADD, -1, 1},
    {"op_mul_bias", OP_BIAS, CUDNN_OP_TENSOR_MUL, -1, 1},
    {"op_sqrt", OP_ONE, CUDNN_OP_TENSOR_SQRT, 0.1, 4},
    {"op_not", OP_ONE, CUDNN_OP_TENSOR_NOT, -1, 1},
    {"add", ADD, 0, -1, 1},
    {"add_bias", ADD, 1, -1, 1},
    {"scale", SCALE, 0, -1, 1},
    {"set", SET, 0, -1, 1},
    {"b_relu", ONE, CUDNN_POINTWISE_RELU_FWD, -1, 1},
    {"b_gelu", ONE, CUDNN_POINTWISE_GELU_FWD, -3, 3},
    {"b_gelu_tanh", ONE, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, -3, 3},
    {"b_swish", ONE, CUDNN_POINTWISE_SWISH_FWD, -4, 4},
    {"b_softplus", ONE, CUDNN_POINTWISE_SOFTPLUS_FWD, -4, 4},
    {"b_exp", ONE, CUDNN_POINTWISE_EXP, -2, 2},
    {"b_log", ONE, CUDNN_POINTWISE_LOG, 0.1, 4},
    {"b_rsqrt", ONE, CUDNN_POINTWISE_RSQRT, 0.1, 4},
    {"b_erf", ONE, CUDNN_POINTWISE_ERF, -2, 2},
    {"b_identity", ONE, CUDNN_POINTWISE_IDENTITY, -1, 1},
    {"b_add", TWO, CUDNN_POINTWISE_ADD, -1, 1},
    {"b_mul", TWO, CUDNN_POINTWISE_MUL, -1, 1},
    {"b_max", TWO, CUDNN_POINTWISE_MAX, -1, 1},
    {"b_div", TWO, CUDNN_POINTWISE_DIV, 0.5, 2},
    {"b_relu_backward", GRADIENT, CUDNN_POINTWISE_RELU_BWD, -1, 1},
    {"b_gelu_backward", GRADIENT, CUDNN_POINTWISE_GELU_BWD, -3, 3},
    {"b_swish_backward", GRADIENT, CUDNN_POINTWISE_SWISH_BWD, -4, 4},
    {"chain_add_relu", CHAIN, ADD_RELU, -1, 1},
    {"chain_bias_relu", CHAIN, BIAS_RELU, -1, 1},
    {"chain_bias_gelu", CHAIN, BIAS_GELU, -1, 1},
    {"chain_scale_bias_relu", CHAIN, SCALE_BIAS_RELU, -1, 1},
    {"chain_mul_add", CHAIN, MUL_ADD, -1, 1},
    {"chain_swish_mul", CHAIN, SWISH_MUL, -3, 3},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static const struct problem problems[] = {
#include "pointwise.def"
};

static const double clip = 0.5;
static const float minus_one = -1.0F;
static const double minus_one64 = -1.0;

/* What a tensor is set to: a double for fp64, else a float. */
static const void *set_value(const struct task *t)
{
    static const double fp64 = 1.5;
    static const float fp32 = 1.5F;
    return t->problem->type == CUDNN_DATA_DOUBLE ? (const void *)&fp64 : &fp32;
}

static const struct entry *entry_of(const struct task *task)
{
    for (int i = 0; i < ENTRIES; ++i)
        if (task_is(task, entries[i].call)) return &entries[i];
    return NULL;
}

static void bias_operand(struct task *t, const char *name)
{
    const int dims[DIMS_MAX] = {1, t->problem->dims[DIM_C], 1, 1, 1};
    task_tensor(t, name, INPUT, t->problem->type, dims);
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    struct operand *x;
    struct operand *y;
    if (!e) return false;
    task_text(t, "%s", "");
    if (e->kind == SET || e->kind == SCALE) {
        task_tensor(t, "y", e->kind == SET ? OUTPUT : BOTH, p->type, p->dims);
        return true;
    }
    x = task_tensor(t, e->kind == ADD && e->mode == 0 ? "a" : "x", INPUT, p->type, p->dims);
    task_range(x, e->low, e->high);
    switch (e->kind) {
    case BACKWARD:
        y = task_tensor(t, "y", INPUT, p->type, p->dims);
        task_tensor(t, "dy", INPUT, p->type, p->dims);
        if (e->mode == CUDNN_ACTIVATION_SWISH) y->moves = 0.0;
        else x->moves = 0.0;
        break;
    case GRADIENT: task_tensor(t, "dy", INPUT, p->type, p->dims); break;
    case OP:
    case TWO: task_range(task_tensor(t, "b", INPUT, p->type, p->dims), e->low, e->high); break;
    case OP_BIAS: bias_operand(t, "b"); break;
    case ADD:
        if (e->mode == 1) {
            t->count = 0;
            bias_operand(t, "a");
        }
        task_tensor(t, "y", BOTH, p->type, p->dims);
        return true;
    case CHAIN:
        if (e->mode == SCALE_BIAS_RELU) bias_operand(t, "scale");
        if (e->mode == BIAS_RELU || e->mode == BIAS_GELU || e->mode == SCALE_BIAS_RELU) {
            bias_operand(t, "bias");
        } else {
            task_tensor(t, "b", INPUT, p->type, p->dims);
        }
        if (e->mode == MUL_ADD) task_tensor(t, "c", INPUT, p->type, p->dims);
        break;
    default: break;
    }
    task_tensor(t, e->kind == BACKWARD || e->kind == GRADIENT ? "dx" : "y", OUTPUT, p->type,
                p->dims);
    return true;
}

static cudnnStatus_t compose(struct session *s, const struct task *t, const struct entry *e)
{
    cudnnBackendDescriptor_t d[OPERANDS_MAX] = {NULL};
    cudnnBackendDescriptor_t mid;
    cudnnBackendDescriptor_t mid2;
    int last = t->count - 1;
    compose_begin(s);
    for (int i = 0; i < t->count; ++i) d[i] = compose_operand(s, t, i);
    if (e->kind == CHAIN) {
        mid = compose_virtual(s, t, 0);
        switch (e->mode) {
        case ADD_RELU:
        case BIAS_RELU:
        case BIAS_GELU:
            compose_pointwise(s, t, CUDNN_POINTWISE_ADD, d[0], d[1], NULL, mid);
            compose_pointwise(
                s, t, e->mode == BIAS_GELU ? CUDNN_POINTWISE_GELU_FWD : CUDNN_POINTWISE_RELU_FWD,
                mid, NULL, NULL, d[last]);
            break;
        case SCALE_BIAS_RELU:
            mid2 = compose_virtual(s, t, 0);
            compose_pointwise(s, t, CUDNN_POINTWISE_MUL, d[0], d[1], NULL, mid);
            compose_pointwise(s, t, CUDNN_POINTWISE_ADD, mid, d[2], NULL, mid2);
            compose_pointwise(s, t, CUDNN_POINTWISE_RELU_FWD, mid2, NULL, NULL, d[last]);
            break;
        case MUL_ADD:
            compose_pointwise(s, t, CUDNN_POINTWISE_MUL, d[0], d[1], NULL, mid);
            compose_pointwise(s, t, CUDNN_POINTWISE_ADD, mid, d[2], NULL, d[last]);
            break;
        default:
            compose_pointwise(s, t, CUDNN_POINTWISE_SWISH_FWD, d[0], NULL, NULL, mid);
            compose_pointwise(s, t, CUDNN_POINTWISE_MUL, mid, d[1], NULL, d[last]);
            break;
        }
    } else {
        compose_pointwise(s, t, (cudnnPointwiseMode_t)e->mode, d[0], e->kind == TWO ? d[1] : NULL,
                          e->kind == GRADIENT ? d[1] : NULL, d[last]);
    }
    return compose_plan(s);
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    const struct entry *e = entry_of(t);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    cudnnActivationDescriptor_t activation;
    cudnnOpTensorDescriptor_t op;
    switch (e->kind) {
    case FORWARD:
    case BACKWARD:
        status = s->library->CreateActivationDescriptor(&activation);
        if (status != CUDNN_STATUS_SUCCESS) break;
        s->made[0] = activation;
        status = s->library->SetActivationDescriptor(
            activation, (cudnnActivationMode_t)e->mode, CUDNN_NOT_PROPAGATE_NAN,
            e->mode == CUDNN_ACTIVATION_CLIPPED_RELU ? clip : 1.0);
        break;
    case OP:
    case OP_BIAS:
    case OP_ONE:
        status = s->library->CreateOpTensorDescriptor(&op);
        if (status != CUDNN_STATUS_SUCCESS) break;
        s->made[1] = op;
        status = s->library->SetOpTensorDescriptor(op, (cudnnOpTensorOp_t)e->mode, task_compute(t),
                                                   CUDNN_NOT_PROPAGATE_NAN);
        break;
    case ONE:
    case TWO:
    case GRADIENT:
    case CHAIN: status = compose(s, t, e); break;
    default: break;
    }
    return status;
}

static void finish(struct session *s)
{
    if (s->made[0]) s->library->DestroyActivationDescriptor(s->made[0]);
    if (s->made[1]) s->library->DestroyOpTensorDescriptor(s->made[1]);
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    const struct entry *e = entry_of(t);
    const void *one = scalar_one(t);
    const void *zero = scalar_zero(t);
    const struct library *l = s->library;
    int last = t->count - 1;
    int b = e->kind == OP_ONE ? 0 : 1;
    switch (e->kind) {
    case FORWARD:
        return l->ActivationForward(s->handle, s->made[0], one, s->tensor[0], at[0], zero,
                                    s->tensor[1], at[1]);
    case BACKWARD:
        return l->ActivationBackward(s->handle, s->made[0], one, s->tensor[1], at[1], s->tensor[2],
                                     at[2], s->tensor[0], at[0], zero, s->tensor[3], at[3]);
    case OP:
    case OP_BIAS:
    case OP_ONE:
        return l->OpTensor(s->handle, s->made[1], one, s->tensor[0], at[0], one, s->tensor[b],
                           at[b], zero, s->tensor[last], at[last]);
    case ADD: return l->AddTensor(s->handle, one, s->tensor[0], at[0], one, s->tensor[1], at[1]);
    case SCALE: /* by -1: values stay as large as they are, replay by replay */
        return l->ScaleTensor(s->handle, s->tensor[0], at[0],
                              t->problem->type == CUDNN_DATA_DOUBLE ? (const void *)&minus_one64
                                                                    : &minus_one);
    case SET: return l->SetTensor(s->handle, s->tensor[0], at[0], set_value(t));
    default: return composed_run(s, t, at);
    }
}

static cudnnStatus_t setup(struct session *s, const struct task *t, void *const *at)
{
    if (entry_of(t)->kind != BACKWARD) return CUDNN_STATUS_SUCCESS;
    return s->library->ActivationForward(s->handle, s->made[0], scalar_one(t), s->tensor[0], at[0],
                                         scalar_zero(t), s->tensor[1], at[1]);
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double gelu(double x)
{
    return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
}

static double activation(int mode, double x)
{
    switch (mode) {
    case CUDNN_ACTIVATION_RELU: return fmax(x, 0.0);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return fmin(fmax(x, 0.0), clip);
    case CUDNN_ACTIVATION_SIGMOID: return sigmoid(x);
    case CUDNN_ACTIVATION_TANH: return tanh(x);
    case CUDNN_ACTIVATION_ELU: return x > 0.0 ? x : expm1(x);
    default: return x * sigmoid(x);
    }
}

/* The derivative, from x and y as they are stored. */
static double slope(int mode, double x, double y)
{
    double s = sigmoid(x);
    switch (mode) {
    case CUDNN_ACTIVATION_RELU: return y > 0.0;
    case CUDNN_ACTIVATION_CLIPPED_RELU: return x > 0.0 && x < clip;
    case CUDNN_ACTIVATION_SIGMOID: return y * (1.0 - y);
    case CUDNN_ACTIVATION_TANH: return 1.0 - y * y;
    case CUDNN_ACTIVATION_ELU: return x > 0.0 ? 1.0 : y + 1.0;
    default: return s + x * s * (1.0 - s);
    }
}

static double two(int mode, double a, double b)
{
    switch (mode) {
    case CUDNN_OP_TENSOR_ADD: return a + b;
    case CUDNN_OP_TENSOR_MUL: return a * b;
    case CUDNN_OP_TENSOR_MIN: return fmin(a, b);
    case CUDNN_OP_TENSOR_MAX: return fmax(a, b);
    case CUDNN_OP_TENSOR_SQRT: return sqrt(a);
    default: return 1.0 - a;
    }
}

static double backend(int mode, double x, double b)
{
    switch (mode) {
    case CUDNN_POINTWISE_RELU_FWD: return fmax(x, 0.0);
    case CUDNN_POINTWISE_GELU_FWD: return gelu(x);
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case CUDNN_POINTWISE_SWISH_FWD: return x * sigmoid(x);
    case CUDNN_POINTWISE_SOFTPLUS_FWD: return log1p(exp(x));
    case CUDNN_POINTWISE_EXP: return exp(x);
    case CUDNN_POINTWISE_LOG: return log(x);
    case CUDNN_POINTWISE_RSQRT: return 1.0 / sqrt(x);
    case CUDNN_POINTWISE_ERF: return erf(x);
    case CUDNN_POINTWISE_IDENTITY: return x;
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_MAX: return fmax(x, b);
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_RELU_BWD: return x > 0.0 ? b : 0.0;
    case CUDNN_POINTWISE_GELU_BWD:
        return b *
               (0.5 * (1.0 + erf(x / sqrt(2.0))) + x * exp(-0.5 * x * x) / sqrt(2.0 * acos(-1.0)));
    default: return b * slope(CUDNN_ACTIVATION_SWISH, x, 0.0);
    }
}

static double chain(int mode, double x, double b, double c)
{
    switch (mode) {
    case ADD_RELU:
    case BIAS_RELU: return fmax(x + b, 0.0);
    case BIAS_GELU: return gelu(x + b);
    case SCALE_BIAS_RELU: return fmax(x * b + c, 0.0);
    case MUL_ADD: return x * b + c;
    default: return x * sigmoid(x) * b;
    }
}

/* Element i of operand o, which may be repeated over all but the channels. */
static double take(const struct task *t, double *const *values, int o, int64_t i)
{
    const struct problem *p = t->problem;
    int64_t inner = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    const struct operand *last = &t->operand[t->count - 1];
    if (o >= t->count - 1 && o > 0) return 0.0;
    if (t->operand[o].count == last->count) return values[o][i];
    return values[o][i / inner % p->dims[DIM_C]];
}

static bool reference(const struct task *t, double *const *values)
{
    const struct entry *e = entry_of(t);
    int last = t->count - 1;
    double *out = values[last];
    for (int64_t i = 0; i < t->operand[last].count; ++i) {
        double a = e->kind == SET ? 0.0 : take(t, values, 0, i);
        double b = take(t, values, 1, i);
        switch (e->kind) {
        case FORWARD: out[i] = activation(e->mode, a); break;
        case BACKWARD: out[i] = values[2][i] * slope(e->mode, a, b); break;
        case OP:
        case OP_BIAS:
        case OP_ONE: out[i] = two(e->mode, a, b); break;
        case ADD: out[i] += a; break;
        case SCALE: out[i] = -out[i]; break;
        case SET: out[i] = 1.5; break;
        case CHAIN: out[i] = chain(e->mode, a, b, take(t, values, 2, i)); break;
        default: out[i] = backend(e->mode, a, b); break;
        }
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 3e7);
    p->call = entries[random_next(seed) % ENTRIES].call;
}

const struct family family_pointwise = {
    .name = "pointwise",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .setup = setup,
    .reference = reference,
};
