/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling, forward and backward: window, stride and padding are the parameters, window 0 is the whole
 * image.
 *
 * Bytes: maximum backward finds the largest element by comparing x with y, and needs x, y and dy;
 * average backward needs dy alone. */
#include <math.h>
#include <string.h>

#include "problem.h"

static const struct entry {
    const char *call;
    cudnnPoolingMode_t mode;
    bool backward;
} entries[] = {
    {"max_forward", CUDNN_POOLING_MAX, false},
    {"max_backward", CUDNN_POOLING_MAX, true},
    {"max_det_forward", CUDNN_POOLING_MAX_DETERMINISTIC, false},
    {"max_det_backward", CUDNN_POOLING_MAX_DETERMINISTIC, true},
    {"average_forward", CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, false},
    {"average_backward", CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, true},
    {"average_ex_forward", CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, false},
    {"average_ex_backward", CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, true},
};
enum { ENTRIES = sizeof entries / sizeof entries[0], WINDOW = 0, STRIDE, PAD };

static const struct problem problems[] = {
#include "pooling.def"
};

static const struct entry *entry_of(const struct task *task)
{
    for (int i = 0; i < ENTRIES; ++i)
        if (task_is(task, entries[i].call)) return &entries[i];
    return NULL;
}

static bool is_max(const struct entry *e)
{
    return e->mode == CUDNN_POOLING_MAX || e->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

/* Window, stride and padding of dimension d (DIM_D, DIM_H, DIM_W), and the size that comes out. */
struct walk {
    int window, stride, pad, out;
};

static struct walk walk_of(const struct problem *p, int d)
{
    struct walk w = {p->p[WINDOW], p->p[STRIDE], p->p[PAD], 1};
    int in = p->dims[d];
    if (p->p[WINDOW] == 0 || (d == DIM_D && in == 1)) {
        w.window = in;
        w.stride = 1;
        w.pad = 0;
    }
    if (w.window > in + 2 * w.pad) w.window = in + 2 * w.pad;
    if (w.pad >= w.window) w.pad = w.window - 1;
    w.out = (in + 2 * w.pad - w.window) / w.stride + 1;
    return w;
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    int out[DIMS_MAX];
    struct operand *x;
    struct operand *y;
    if (!e) return false;
    t->planes = true;
    if (p->p[WINDOW]) task_text(t, "w%d/%d p%d", p->p[WINDOW], p->p[STRIDE], p->p[PAD]);
    else task_text(t, "global");
    memcpy(out, p->dims, sizeof out);
    for (int d = DIM_D; d <= DIM_W; ++d) out[d] = walk_of(p, d).out;
    t->terms =
        (double)walk_of(p, DIM_D).window * walk_of(p, DIM_H).window * walk_of(p, DIM_W).window;
    x = task_tensor(t, "x", INPUT, p->type, p->dims);
    y = task_tensor(t, "y", e->backward ? INPUT : OUTPUT, p->type, out);
    if (e->backward) {
        task_tensor(t, "dy", INPUT, p->type, out);
        task_tensor(t, "dx", OUTPUT, p->type, p->dims);
        if (!is_max(e)) x->moves = y->moves = 0.0;
    }
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    const struct problem *p = t->problem;
    cudnnPoolingDescriptor_t pooling;
    int window[3];
    int pad[3];
    int stride[3];
    int rank = 0;
    cudnnStatus_t status = s->library->CreatePoolingDescriptor(&pooling);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    s->made[0] = pooling;
    for (int d = DIM_D; d <= DIM_W; ++d) {
        struct walk w = walk_of(p, d);
        if (d == DIM_D && p->dims[DIM_D] == 1) continue;
        window[rank] = w.window;
        pad[rank] = w.pad;
        stride[rank++] = w.stride;
    }
    return s->library->SetPoolingNdDescriptor(pooling, entry_of(t)->mode, CUDNN_NOT_PROPAGATE_NAN,
                                              rank, window, pad, stride);
}

static void finish(struct session *s)
{
    if (s->made[0]) s->library->DestroyPoolingDescriptor(s->made[0]);
}

static cudnnStatus_t forward(struct session *s, const struct task *t, void *const *at)
{
    return s->library->PoolingForward(s->handle, s->made[0], scalar_one(t), s->tensor[0], at[0],
                                      scalar_zero(t), s->tensor[1], at[1]);
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    if (!entry_of(t)->backward) return forward(s, t, at);
    return s->library->PoolingBackward(s->handle, s->made[0], scalar_one(t), s->tensor[1], at[1],
                                       s->tensor[2], at[2], s->tensor[0], at[0], scalar_zero(t),
                                       s->tensor[3], at[3]);
}

static cudnnStatus_t setup(struct session *s, const struct task *t, void *const *at)
{
    return entry_of(t)->backward ? forward(s, t, at) : CUDNN_STATUS_SUCCESS;
}

/* The part of a window that lies inside the image. */
struct span {
    int from, to;
};

static struct span span_of(const struct walk *w, int in, int out)
{
    int from = out * w->stride - w->pad;
    struct span span = {from < 0 ? 0 : from, from + w->window > in ? in : from + w->window};
    return span;
}

/* A window of one image: forward it answers its value, backward it spreads dy. */
static double one_window(const struct entry *e, const struct problem *p, const struct walk w[3],
                         const int at[3], const double *x, double *dx, double dy)
{
    struct span span[3];
    double sum = 0.0;
    double most = -INFINITY;
    int best = 0;
    int inside;
    double share;
    for (int d = 0; d < 3; ++d) span[d] = span_of(&w[d], p->dims[DIM_D + d], at[d]);
    inside =
        (span[0].to - span[0].from) * (span[1].to - span[1].from) * (span[2].to - span[2].from);
    share = e->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING
                ? inside
                : (double)w[0].window * w[1].window * w[2].window;
    for (int a = span[0].from; a < span[0].to; ++a) {
        for (int b = span[1].from; b < span[1].to; ++b) {
            for (int c = span[2].from; c < span[2].to; ++c) {
                int i = (a * p->dims[DIM_H] + b) * p->dims[DIM_W] + c;
                sum += x[i];
                if (x[i] > most) {
                    most = x[i];
                    best = i;
                }
                if (dx && !is_max(e)) dx[i] += dy / share;
            }
        }
    }
    if (dx && is_max(e)) dx[best] += dy;
    return is_max(e) ? most : sum / share;
}

static bool reference(const struct task *t, double *const *values)
{
    const struct entry *e = entry_of(t);
    const struct problem *p = t->problem;
    const struct walk w[3] = {walk_of(p, DIM_D), walk_of(p, DIM_H), walk_of(p, DIM_W)};
    int64_t in = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    int64_t o = 0;
    if (e->backward) memset(values[3], 0, (size_t)t->operand[3].count * sizeof(double));
    for (int64_t image = 0; image < (int64_t)p->dims[DIM_N] * p->dims[DIM_C]; ++image) {
        const double *x = values[0] + image * in;
        double *dx = e->backward ? values[3] + image * in : NULL;
        int at[3];
        for (at[0] = 0; at[0] < w[0].out; ++at[0]) {
            for (at[1] = 0; at[1] < w[1].out; ++at[1]) {
                for (at[2] = 0; at[2] < w[2].out; ++at[2], ++o) {
                    double y = one_window(e, p, w, at, x, dx, dx ? values[2][o] : 0.0);
                    if (!dx) values[1][o] = y;
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
    p->p[WINDOW] = random_between(seed, 1, 5);
    p->p[STRIDE] = random_between(seed, 1, 3);
    p->p[PAD] = random_between(seed, 0, p->p[WINDOW] / 2);
}

const struct family family_pooling = {
    .name = "pooling",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"the window", 0, PARAMETER_MOST},
                  {"the stride", 1, PARAMETER_MOST},
                  {"the padding", 0, PARAMETER_MOST}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .setup = setup,
    .reference = reference,
};
