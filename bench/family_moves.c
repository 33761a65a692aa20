/* SPDX-License-Identifier: Apache-2.0
 *
 * What the backend API moves and makes without arithmetic: random tensors (bernoulli, uniform, normal),
 * concatenations and reshapes. Dims are the output's. Parameters of a concatenation: how many inputs,
 * the axis, and whether they have the other layout.
 *
 * Bytes: each tensor once. Random numbers are each library's own, so they are judged by their range and
 * their moments. */
#include <math.h>
#include <stdio.h>

#include "compose.h"
#include "problem.h"

enum { INPUTS = 0, AXIS = 1, TURNED = 2 };
enum { CONCAT_MAX = OPERANDS_MAX - 1 };
static const double probability = 0.75;
static const int64_t seed_value = 20240607;

static const struct entry {
    const char *call;
    cudnnRngDistribution_t distribution;
    cudnnBackendAttributeName_t first, second; /* its parameters */
    double a, b;
    double mean, variance;
} entries[] = {
    {"bernoulli", CUDNN_RNG_DISTRIBUTION_BERNOULLI, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY,
     CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, probability, probability, probability,
     probability *(1.0 - probability)},
    {"uniform", CUDNN_RNG_DISTRIBUTION_UNIFORM, CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM,
     CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, -1.0, 1.0, 0.0, 1.0 / 3.0},
    {"normal", CUDNN_RNG_DISTRIBUTION_NORMAL, CUDNN_ATTR_RNG_NORMAL_DIST_MEAN,
     CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, 0.0, 1.0, 0.0, 1.0},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static const struct problem problems[] = {
#include "moves.def"
};

/* The distribution, or null: it moves. */
static const struct entry *entry_of(const struct task *task)
{
    for (int i = 0; i < ENTRIES; ++i)
        if (task_is(task, entries[i].call)) return &entries[i];
    return NULL;
}

static enum layout other_layout(enum layout layout)
{
    return layout == NCHW ? NHWC : NCHW;
}

/* At least an element each, where the problem was scaled down. */
static int inputs_of(const struct problem *p)
{
    int most = p->dims[p->p[AXIS]] < CONCAT_MAX ? p->dims[p->p[AXIS]] : CONCAT_MAX;
    int wanted = p->p[INPUTS] > 1 ? p->p[INPUTS] : 1;
    return wanted < most ? wanted : most;
}

static void plan_concat(struct task *t)
{
    static const char *const names[CONCAT_MAX] = {"x0", "x1", "x2", "x3",  "x4",  "x5", "x6",
                                                  "x7", "x8", "x9", "x10", "x11", "x12"};
    const struct problem *p = t->problem;
    int count = inputs_of(p);
    int axis = p->p[AXIS];
    task_text(t, "%d along %c%s", count, "NCDHW"[axis], p -> p[TURNED] ? ", turned" : "");
    for (int i = 0; i < count; ++i) {
        int dims[DIMS_MAX];
        struct operand *o;
        for (int d = 0; d < DIMS_MAX; ++d) dims[d] = p->dims[d];
        dims[axis] =
            (int)((int64_t)p->dims[axis] * (i + 1) / count - (int64_t)p->dims[axis] * i / count);
        o = task_tensor(t, names[i], INPUT, p->type, dims);
        if (p->p[TURNED]) task_layout(t, o, other_layout(p->layout));
    }
    task_tensor(t, "y", OUTPUT, p->type, p->dims);
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    if (entry_of(t)) {
        task_text(t, "%s", "");
        task_tensor(t, "y", OUTPUT, p->type, p->dims)->own = true;
    } else if (task_is(t, "concat")) {
        plan_concat(t);
    } else if (task_is(t, "reshape")) {
        const int flat[DIMS_MAX] = {
            p->dims[DIM_N], p->dims[DIM_C] * p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W], 1, 1,
            1};
        task_text(t, "%s", "");
        task_tensor(t, "x", INPUT, p->type, flat);
        task_tensor(t, "y", OUTPUT, p->type, p->dims);
    } else {
        return false;
    }
    return true;
}

static cudnnBackendDescriptor_t random_operation(struct session *s, const struct task *t,
                                                 const struct entry *e)
{
    cudnnBackendDescriptor_t how = compose_make(s, CUDNN_BACKEND_RNG_DESCRIPTOR);
    cudnnBackendDescriptor_t op = compose_make(s, CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
    compose_set(s, how, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1,
                &e->distribution);
    compose_set(s, how, e->first, CUDNN_TYPE_DOUBLE, 1, &e->a);
    if (e->second != e->first) compose_set(s, how, e->second, CUDNN_TYPE_DOUBLE, 1, &e->b);
    compose_refer(s, op, CUDNN_ATTR_OPERATION_RNG_DESC, compose_finalize(s, how));
    compose_refer(s, op, CUDNN_ATTR_OPERATION_RNG_YDESC, compose_operand(s, t, 0));
    compose_set(s, op, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_INT64, 1, &seed_value);
    return op;
}

static cudnnBackendDescriptor_t concat_operation(struct session *s, const struct task *t)
{
    const struct problem *p = t->problem;
    cudnnBackendDescriptor_t op = compose_make(s, CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR);
    cudnnBackendDescriptor_t inputs[CONCAT_MAX];
    int last = t->count - 1;
    /* among the operands' dims, which are four where there is no depth */
    int64_t axis = p->p[AXIS] - (p->p[AXIS] > DIM_D && t->operand[last].rank < DIMS_MAX);
    for (int i = 0; i < last; ++i) inputs[i] = compose_operand(s, t, i);
    compose_set(s, op, CUDNN_ATTR_OPERATION_CONCAT_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    compose_set(s, op, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, CUDNN_TYPE_BACKEND_DESCRIPTOR, last,
                inputs);
    compose_refer(s, op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, compose_operand(s, t, last));
    return op;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    const struct entry *e = entry_of(t);
    cudnnBackendDescriptor_t op;
    compose_begin(s);
    if (e) {
        op = random_operation(s, t, e);
    } else if (task_is(t, "concat")) {
        op = concat_operation(s, t);
    } else {
        op = compose_make(s, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
        compose_refer(s, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, compose_operand(s, t, 0));
        compose_refer(s, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, compose_operand(s, t, 1));
    }
    compose_operation(s, op);
    return compose_plan(s);
}

/* Values are in logical order: what of a concatenation is before the axis, and behind it. */
static void join(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    int last = t->count - 1;
    int64_t outer = 1;
    int64_t inner = 1;
    int64_t first = 0;
    int64_t whole;
    for (int d = 0; d < DIMS_MAX; ++d) {
        if (d < p->p[AXIS]) outer *= p->dims[d];
        if (d > p->p[AXIS]) inner *= p->dims[d];
    }
    whole = p->dims[p->p[AXIS]] * inner;
    for (int i = 0; i < last; ++i) {
        int64_t part = t->operand[i].count / outer;
        for (int64_t o = 0; o < outer; ++o) {
            for (int64_t k = 0; k < part; ++k) {
                values[last][o * whole + first + k] = values[i][o * part + k];
            }
        }
        first += part;
    }
}

/* The k-th element of y's memory is the k-th of x's; memory with channels fastest is not logical. */
static bool reference(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    int64_t image = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    int64_t channels = p->dims[DIM_C];
    if (entry_of(t)) return false;
    if (task_is(t, "concat")) {
        join(t, values);
        return true;
    }
    for (int64_t k = 0; k < t->operand[1].count; ++k) {
        int64_t to = k;
        if (p->layout == NHWC) {
            int64_t pixel = k / channels;
            to = (pixel / image * channels + k % channels) * image + pixel % image;
        }
        values[1][to] = values[0][k];
    }
    return true;
}

/* Of random tensors: their range, their mean and variance to six standard deviations. */
static bool judge(const struct task *t, double *const *values, char *why, size_t size)
{
    const struct entry *e = entry_of(t);
    int64_t count = t->operand[0].count;
    double sum = 0.0;
    double squares = 0.0;
    double far = 6.0 / sqrt((double)(count > 0 ? count : 1));
    if (!e || count == 0) return true;
    for (int64_t i = 0; i < count; ++i) {
        double v = values[0][i];
        bool right = e->distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI ? v == 0.0 || v == 1.0
                     : e->distribution == CUDNN_RNG_DISTRIBUTION_UNIFORM ? v >= e->a && v <= e->b
                                                                         : fabs(v) < 8.0;
        if (!right) {
            snprintf(why, size, "element %lld is %.9g", (long long)i, v);
            return false;
        }
        sum += v - e->mean;
        squares += (v - e->mean) * (v - e->mean);
    }
    if (fabs(sum / (double)count) > far * sqrt(e->variance) + 1e-3) {
        snprintf(why, size, "the mean is %.9g off %.9g", sum / (double)count, e->mean);
        return false;
    }
    if (fabs(squares / (double)count - e->variance) > 2.0 * far * e->variance + 1e-3) {
        snprintf(why, size, "the variance is %.9g for %.9g", squares / (double)count, e->variance);
        return false;
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    static const char *const calls[] = {"bernoulli", "uniform", "normal",
                                        "concat",    "concat",  "reshape"};
    random_problem(p, seed, 2e7);
    p->call = calls[random_next(seed) % (sizeof calls / sizeof calls[0])];
    p->p[INPUTS] = random_between(seed, 2, 6);
    p->p[AXIS] = random_next(seed) % 4 == 0 ? DIM_W : DIM_C;
    p->p[TURNED] = random_next(seed) % 6 == 0;
}

const struct family family_moves = {
    .name = "moves",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"inputs", 0, CONCAT_MAX}, {"the axis", 0, DIM_W}, {"turned", 0, 1}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = composed_run,
    .reference = reference,
    .judge = judge,
};
