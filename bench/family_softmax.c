/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over a whole instance or over channels, forward and backward. The backward pass needs y and
 * dy, never x. */
#include <math.h>

#include "problem.h"

static const struct entry {
    const char *call;
    cudnnSoftmaxAlgorithm_t algorithm;
    cudnnSoftmaxMode_t mode;
    bool backward;
} entries[] = {
    {"forward", CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, false},
    {"fast_forward", CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_INSTANCE, false},
    {"log_forward", CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, false},
    {"backward", CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, true},
    {"log_backward", CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, true},
    {"channel_forward", CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, false},
    {"channel_log_forward", CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL, false},
    {"channel_backward", CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, true},
    {"channel_log_backward", CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL, true},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static const struct problem problems[] = {
#include "softmax.def"
};

static const struct entry *entry_of(const struct task *task)
{
    for (int i = 0; i < ENTRIES; ++i)
        if (task_is(task, entries[i].call)) return &entries[i];
    return NULL;
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    if (!e) return false;
    task_text(t, "%s", "");
    t->terms = p->dims[DIM_C];
    if (e->mode == CUDNN_SOFTMAX_MODE_INSTANCE) {
        t->terms *= (double)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    }
    if (!e->backward) {
        task_range(task_tensor(t, "x", INPUT, p->type, p->dims), -4.0, 4.0);
        task_tensor(t, "y", OUTPUT, p->type, p->dims);
        return true;
    }
    /* any y serves; it stays such that a sum over a row is no larger than its terms */
    task_range(task_tensor(t, "y", INPUT, p->type, p->dims),
               e->algorithm == CUDNN_SOFTMAX_LOG ? -log(t->terms) - 1.0 : 0.0,
               e->algorithm == CUDNN_SOFTMAX_LOG ? -log(t->terms) : 2.0 / t->terms);
    task_tensor(t, "dy", INPUT, p->type, p->dims);
    task_tensor(t, "dx", OUTPUT, p->type, p->dims);
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    (void)s;
    (void)t;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    const struct entry *e = entry_of(t);
    if (!e->backward) {
        return s->library->SoftmaxForward(s->handle, e->algorithm, e->mode, scalar_one(t),
                                          s->tensor[0], at[0], scalar_zero(t), s->tensor[1], at[1]);
    }
    return s->library->SoftmaxBackward(s->handle, e->algorithm, e->mode, scalar_one(t),
                                       s->tensor[0], at[0], s->tensor[1], at[1], scalar_zero(t),
                                       s->tensor[2], at[2]);
}

/* One row: `count` elements, `step` apart. */
static void row_forward(const struct entry *e, const double *x, double *y, int64_t count,
                        int64_t step)
{
    double most = -INFINITY;
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i) most = fmax(most, x[i * step]);
    for (int64_t i = 0; i < count; ++i) sum += exp(x[i * step] - most);
    for (int64_t i = 0; i < count; ++i) {
        double shifted = x[i * step] - most;
        y[i * step] = e->algorithm == CUDNN_SOFTMAX_LOG ? shifted - log(sum) : exp(shifted) / sum;
    }
}

static void row_backward(const struct entry *e, const double *y, const double *dy, double *dx,
                         int64_t count, int64_t step)
{
    bool is_log = e->algorithm == CUDNN_SOFTMAX_LOG;
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i) sum += is_log ? dy[i * step] : y[i * step] * dy[i * step];
    for (int64_t i = 0; i < count; ++i) {
        dx[i * step] =
            is_log ? dy[i * step] - exp(y[i * step]) * sum : y[i * step] * (dy[i * step] - sum);
    }
}

static bool reference(const struct task *t, double *const *values)
{
    const struct entry *e = entry_of(t);
    const struct problem *p = t->problem;
    int64_t inner = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    int64_t count = p->dims[DIM_C];
    if (e->mode == CUDNN_SOFTMAX_MODE_INSTANCE) {
        count *= inner;
        inner = 1;
    }
    for (int64_t n = 0; n < p->dims[DIM_N]; ++n) {
        for (int64_t i = 0; i < inner; ++i) {
            int64_t at = n * count * inner + i;
            if (e->backward) {
                row_backward(e, values[0] + at, values[1] + at, values[2] + at, count, inner);
            } else {
                row_forward(e, values[0] + at, values[1] + at, count, inner);
            }
        }
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 2e7);
    p->call = entries[random_next(seed) % ENTRIES].call;
    if (random_next(seed) % 2) { /* rows, as classifiers and attention have them */
        p->dims[DIM_N] = random_size(seed, 300) * random_between(seed, 1, 64);
        p->dims[DIM_C] = random_between(seed, 1, 2000);
        p->dims[DIM_H] = p->dims[DIM_W] = 1;
    }
}

const struct family family_softmax = {
    .name = "softmax",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .reference = reference,
};
