/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization across channels, and divisive normalization, forward and backward; the
 * parameter is the window's width.
 *
 * Bytes: backward needs x, y and dy. The divisive calls' two scratch tensors are not counted. */
#include <math.h>
#include <string.h>

#include "problem.h"

static const struct entry {
    const char *call;
    bool divisive;
    bool backward;
} entries[] = {
    {"cross_forward", false, false},
    {"cross_backward", false, true},
    {"divisive_forward", true, false},
    {"divisive_backward", true, true},
};
enum { ENTRIES = sizeof entries / sizeof entries[0], WIDTH = 0 };
/* The operands, in order. */
enum { X, CROSS_Y, CROSS_DY, CROSS_DX };
enum { MEANS = 1, FORWARD_TEMP, FORWARD_TEMP2, FORWARD_Y };
enum { DY = 2, BACK_TEMP, BACK_TEMP2, DX, DMEANS };
static const double alpha = 1e-2;
static const double beta = 0.75;
static const double bias = 2.0;

static const struct problem problems[] = {
#include "lrn.def"
};

static const struct entry *entry_of(const struct task *task)
{
    for (int i = 0; i < ENTRIES; ++i)
        if (task_is(task, entries[i].call)) return &entries[i];
    return NULL;
}

static void scratch(struct task *t, const char *name)
{
    struct operand *o = task_tensor(t, name, OUTPUT, t->problem->type, t->problem->dims);
    o->moves = 0.0;
    o->unchecked = true;
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    if (!e) return false;
    task_text(t, "n%d", p->p[WIDTH]);
    t->terms = p->p[WIDTH];
    task_tensor(t, "x", INPUT, p->type, p->dims);
    if (!e->divisive) {
        task_tensor(t, "y", e->backward ? INPUT : OUTPUT, p->type, p->dims);
        if (!e->backward) return true;
        task_tensor(t, "dy", INPUT, p->type, p->dims);
        task_tensor(t, "dx", OUTPUT, p->type, p->dims);
        return true;
    }
    t->terms *= p->p[WIDTH];
    task_range(task_tensor(t, "means", INPUT, p->type, p->dims), -0.1, 0.1);
    if (e->backward) task_tensor(t, "dy", INPUT, p->type, p->dims);
    scratch(t, "temp");
    scratch(t, "temp2");
    task_tensor(t, e->backward ? "dx" : "y", OUTPUT, p->type, p->dims);
    if (e->backward) task_tensor(t, "dmeans", OUTPUT, p->type, p->dims);
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    cudnnLRNDescriptor_t lrn;
    cudnnStatus_t status = s->library->CreateLRNDescriptor(&lrn);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    s->made[0] = lrn;
    return s->library->SetLRNDescriptor(lrn, (unsigned)t->problem->p[WIDTH], alpha, beta, bias);
}

static void finish(struct session *s)
{
    if (s->made[0]) s->library->DestroyLRNDescriptor(s->made[0]);
}

static cudnnStatus_t forward(struct session *s, const struct task *t, void *const *at)
{
    return s->library->LRNCrossChannelForward(s->handle, s->made[0], CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                              scalar_one(t), s->tensor[X], at[X], scalar_zero(t),
                                              s->tensor[CROSS_Y], at[CROSS_Y]);
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    const struct entry *e = entry_of(t);
    const struct library *l = s->library;
    const void *one = scalar_one(t);
    const void *zero = scalar_zero(t);
    if (!e->divisive && !e->backward) return forward(s, t, at);
    if (!e->divisive) {
        return l->LRNCrossChannelBackward(s->handle, s->made[0], CUDNN_LRN_CROSS_CHANNEL_DIM1, one,
                                          s->tensor[CROSS_Y], at[CROSS_Y], s->tensor[CROSS_DY],
                                          at[CROSS_DY], s->tensor[X], at[X], zero,
                                          s->tensor[CROSS_DX], at[CROSS_DX]);
    }
    if (!e->backward) {
        return l->DivisiveNormalizationForward(
            s->handle, s->made[0], CUDNN_DIVNORM_PRECOMPUTED_MEANS, one, s->tensor[X], at[X],
            at[MEANS], at[FORWARD_TEMP], at[FORWARD_TEMP2], zero, s->tensor[FORWARD_Y],
            at[FORWARD_Y]);
    }
    return l->DivisiveNormalizationBackward(
        s->handle, s->made[0], CUDNN_DIVNORM_PRECOMPUTED_MEANS, one, s->tensor[X], at[X], at[MEANS],
        at[DY], at[BACK_TEMP], at[BACK_TEMP2], zero, s->tensor[DX], at[DX], at[DMEANS]);
}

static cudnnStatus_t setup(struct session *s, const struct task *t, void *const *at)
{
    const struct entry *e = entry_of(t);
    return !e->divisive && e->backward ? forward(s, t, at) : CUDNN_STATUS_SUCCESS;
}

/* The channels of a window around c; `turned`, those whose windows hold c. */
static void window(const struct problem *p, int c, bool turned, int *from, int *to)
{
    int behind = (p->p[WIDTH] - 1) / 2;
    int ahead = p->p[WIDTH] - behind - 1;
    *from = c - (turned ? ahead : behind);
    *to = c + (turned ? behind : ahead);
    if (*from < 0) *from = 0;
    if (*to >= p->dims[DIM_C]) *to = p->dims[DIM_C] - 1;
}

/* k + alpha / n * the sum of squares around channel c of the pixel that begins at x. */
static double spread(const struct problem *p, const double *x, int64_t image, int c)
{
    double sum = 0.0;
    int from;
    int to;
    window(p, c, false, &from, &to);
    for (int i = from; i <= to; ++i) sum += x[i * image] * x[i * image];
    return bias + alpha / p->p[WIDTH] * sum;
}

static double gradient(const struct problem *p, double *const *values, int64_t pixel, int64_t image,
                       int c)
{
    const double *x = values[X] + pixel;
    const double *y = values[CROSS_Y] + pixel;
    const double *dy = values[CROSS_DY] + pixel;
    double sum = 0.0;
    int from;
    int to;
    window(p, c, true, &from, &to);
    for (int i = from; i <= to; ++i) sum += dy[i * image] * y[i * image] / spread(p, x, image, i);
    return dy[c * image] * pow(spread(p, x, image, c), -beta) -
           2.0 * alpha * beta / p->p[WIDTH] * x[c * image] * sum;
}

static bool reference(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    int64_t image = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    if (e->divisive) return false; /* against the peer alone */
    for (int64_t n = 0; n < p->dims[DIM_N]; ++n) {
        for (int64_t i = 0; i < image; ++i) {
            int64_t pixel = n * p->dims[DIM_C] * image + i;
            const double *x = values[X] + pixel;
            for (int c = 0; c < p->dims[DIM_C]; ++c) {
                if (e->backward) {
                    values[CROSS_DX][pixel + c * image] = gradient(p, values, pixel, image, c);
                } else {
                    values[CROSS_Y][pixel + c * image] =
                        x[c * image] * pow(spread(p, x, image, c), -beta);
                }
            }
        }
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 1e7);
    p->call = entries[random_next(seed) % ENTRIES].call;
    p->p[WIDTH] = random_between(seed, 1, 16);
    if (p->type == CUDNN_DATA_BFLOAT16) p->type = CUDNN_DATA_FLOAT;
}

const struct family family_lrn = {
    .name = "lrn",
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
