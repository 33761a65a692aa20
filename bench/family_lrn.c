/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization across channels, and divisive normalization, forward and backward; the
 * parameter is the window's width.
 *
 * Bytes: backward needs x, y and dy. The divisive calls' two scratch tensors are not counted. */
#include <math.h>
#include <stdlib.h>
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
    t->planes = true;
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

/* What a window around `at` has along dimension `dim`; `turned`, whose windows have `at`. */
static void window(const struct problem *p, int dim, int at, bool turned, int *from, int *to)
{
    int behind = (p->p[WIDTH] - 1) / 2;
    int ahead = p->p[WIDTH] - behind - 1;
    *from = at - (turned ? ahead : behind);
    *to = at + (turned ? behind : ahead);
    if (*from < 0) *from = 0;
    if (*to >= p->dims[dim]) *to = p->dims[dim] - 1;
}

/* k + alpha / n * the sum of squares around channel c of the pixel that begins at x. */
static double spread(const struct problem *p, const double *x, int64_t image, int c)
{
    double sum = 0.0;
    int from;
    int to;
    window(p, DIM_C, c, false, &from, &to);
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
    window(p, DIM_C, c, true, &from, &to);
    for (int i = from; i <= to; ++i) sum += dy[i * image] * y[i * image] / spread(p, x, image, i);
    return dy[c * image] * pow(spread(p, x, image, c), -beta) -
           2.0 * alpha * beta / p->p[WIDTH] * x[c * image] * sum;
}

static int64_t image_of(const struct problem *p)
{
    return (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
}

static void cross(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    const bool backward = entry_of(t)->backward;
    int64_t image = image_of(p);
    for (int64_t n = 0; n < p->dims[DIM_N]; ++n) {
        for (int64_t i = 0; i < image; ++i) {
            int64_t pixel = n * p->dims[DIM_C] * image + i;
            const double *x = values[X] + pixel;
            for (int c = 0; c < p->dims[DIM_C]; ++c) {
                if (backward) {
                    values[CROSS_DX][pixel + c * image] = gradient(p, values, pixel, image, c);
                } else {
                    values[CROSS_Y][pixel + c * image] =
                        x[c * image] * pow(spread(p, x, image, c), -beta);
                }
            }
        }
    }
}

/* Divisive normalization is computed plane by plane. Sums over windows are taken along one dimension
 * after the other, for which (x_j - m)^2 and (x_j - m_i) h_i are multiplied out: with x and m up to 1,
 * what that cancels is far below every tolerance. */
enum { COUNTS, SUMS, SQUARES, SHARES, SHIFTS, SPARE, ARRAYS };
struct plane {
    const struct problem *p;
    int64_t count;
    double factor;      /* alpha over the elements of a window, as if all were inside */
    double *in[ARRAYS]; /* of an element's window; the last holds what is under way */
};

static void sum_along(const struct plane *a, int dim, bool turned, const double *of, double *sums)
{
    int64_t stride = 1;
    for (int d = dim + 1; d <= DIM_W; ++d) stride *= a->p->dims[d];
    for (int64_t i = 0; i < a->count; ++i) {
        int at = (int)(i / stride % a->p->dims[dim]);
        const double *line = of + (i - at * stride);
        int from;
        int to;
        window(a->p, dim, at, turned, &from, &to);
        sums[i] = 0.0;
        for (int k = from; k <= to; ++k) sums[i] += line[k * stride];
    }
}

/* Of an array, the sum over each element's window takes the element's place. */
static void sum_windows(const struct plane *a, bool turned, double *array)
{
    for (int d = DIM_D; d <= DIM_W; ++d) {
        if (a->p->dims[d] == 1) continue;
        sum_along(a, d, turned, array, a->in[SPARE]);
        memcpy(array, a->in[SPARE], (size_t)a->count * sizeof *array);
    }
}

static void sum_plane(const struct plane *a, const double *x)
{
    for (int64_t i = 0; i < a->count; ++i) {
        a->in[COUNTS][i] = 1.0;
        a->in[SUMS][i] = x[i];
        a->in[SQUARES][i] = x[i] * x[i];
    }
    for (int k = COUNTS; k <= SQUARES; ++k) sum_windows(a, false, a->in[k]);
}

/* k + factor * the sum of squares of what the window around i deviates from `mean`; and the sum of the
 * deviations themselves. */
static double strength(const struct plane *a, int64_t i, double mean, double *deviations)
{
    *deviations = a->in[SUMS][i] - mean * a->in[COUNTS][i];
    return bias + a->factor * (a->in[SQUARES][i] - mean * (a->in[SUMS][i] + *deviations));
}

static void divisive_forward(const struct plane *a, double *const *values, int64_t first)
{
    const double *x = values[X] + first;
    double unused;
    sum_plane(a, x);
    for (int64_t i = 0; i < a->count; ++i) {
        double s = strength(a, i, values[MEANS][first + i], &unused);
        values[FORWARD_Y][first + i] = x[i] * pow(s, -beta);
    }
}

static void divisive_backward(const struct plane *a, double *const *values, int64_t first)
{
    const double *x = values[X] + first;
    const double *means = values[MEANS] + first;
    const double *dy = values[DY] + first;
    double *dx = values[DX] + first;
    double *shares = a->in[SHARES];
    double *shifts = a->in[SHIFTS];
    sum_plane(a, x);
    for (int64_t i = 0; i < a->count; ++i) {
        double deviations;
        double s = strength(a, i, means[i], &deviations);
        double power = pow(s, -beta);
        dx[i] = dy[i] * power;
        shares[i] = -2.0 * beta * a->factor * dy[i] * x[i] * power / s;
        shifts[i] = means[i] * shares[i];
        values[DMEANS][first + i] = -shares[i] * deviations;
    }
    sum_windows(a, true, shares);
    sum_windows(a, true, shifts);
    for (int64_t i = 0; i < a->count; ++i) dx[i] += x[i] * shares[i] - shifts[i];
}

/* False where there is no memory. */
static bool divisive(const struct task *t, double *const *values)
{
    struct plane a = {.p = t->problem, .count = image_of(t->problem)};
    int64_t elements = t->operand[X].count;
    double *room = malloc((size_t)(a.count * ARRAYS) * sizeof *room);
    if (!room) return false;
    for (int k = 0; k < ARRAYS; ++k) a.in[k] = room + k * a.count;
    a.factor = alpha * pow(a.p->p[WIDTH], 2.0 - t->operand[X].rank);
    for (int64_t first = 0; first < elements; first += a.count) {
        if (entry_of(t)->backward) divisive_backward(&a, values, first);
        else divisive_forward(&a, values, first);
    }
    free(room);
    return true;
}

static bool reference(const struct task *t, double *const *values)
{
    if (entry_of(t)->divisive) return divisive(t, values);
    cross(t, values);
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
    .parameter = {{"the width", 1, PARAMETER_MOST}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .setup = setup,
    .reference = reference,
};
