/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling of the backend API, forward and backward: window, stride, pre- and post-padding are the
 * parameters, in quarters of a pixel.
 *
 * Bytes: each tensor once; gradients need dy, and those of maxima the index tensor. */
#include <math.h>
#include <string.h>

#include "compose.h"
#include "problem.h"

enum { WINDOW, STRIDE, PRE, POST, PIXEL = 4, PLACES_MAX = 128 };

static const struct entry {
    const char *call;
    cudnnResampleMode_t mode;
    cudnnPaddingMode_t padding;
    bool backward, index;
} entries[] = {
    {"bilinear_forward", CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, false, false},
    {"bilinear_backward", CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, true, false},
    {"nearest_forward", CUDNN_RESAMPLE_NEAREST, CUDNN_ZERO_PAD, false, false},
    {"nearest_backward", CUDNN_RESAMPLE_NEAREST, CUDNN_ZERO_PAD, true, false},
    {"max_forward", CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, false, false},
    {"max_index_forward", CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, false, true},
    {"max_index_backward", CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, true, true},
    {"average_forward", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_ZERO_PAD, false, false},
    {"average_backward", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_ZERO_PAD, true, false},
    {"average_ex_forward", CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, CUDNN_ZERO_PAD, false, false},
    {"average_ex_backward", CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, CUDNN_ZERO_PAD, true, false},
    {"average_edge_forward", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_EDGE_VAL_PAD, false,
     false},
    {"average_edge_backward", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_EDGE_VAL_PAD, true,
     false},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static const struct problem problems[] = {
#include "resample.def"
};

static const struct entry *entry_of(const struct task *task)
{
    for (int i = 0; i < ENTRIES; ++i)
        if (task_is(task, entries[i].call)) return &entries[i];
    return NULL;
}

/* The windows of dimension DIM_D, DIM_H or DIM_W; lengths in quarters of a pixel. */
struct walk {
    int window, stride, pre, post, in, out;
};

static struct walk walk_of(const struct problem *p, int d)
{
    struct walk w = {p->p[WINDOW], p->p[STRIDE], p->p[PRE], p->p[POST], p->dims[d], 1};
    int room;
    if (d == DIM_D && w.in == 1) {
        w.window = w.stride = PIXEL;
        w.pre = w.post = 0;
    }
    room = w.in * PIXEL + w.pre + w.post; /* of a problem that was scaled down, little */
    if (w.window > room) w.window = room;
    w.out = (room - w.window) / w.stride + 1;
    return w;
}

static int pixels_of(const struct walk *w)
{
    return (w->window + PIXEL - 1) / PIXEL;
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    int out[DIMS_MAX];
    int places = 1;
    if (!e) return false;
    t->planes = true;
    task_text(t, "w%g/%g p%g,%g", p->p[WINDOW] / 4.0, p->p[STRIDE] / 4.0, p->p[PRE] / 4.0,
              p->p[POST] / 4.0);
    memcpy(out, p->dims, sizeof out);
    for (int d = DIM_D; d <= DIM_W; ++d) {
        struct walk w = walk_of(p, d);
        out[d] = w.out;
        places *= pixels_of(&w);
    }
    t->terms = places;
    if (e->index && places > PLACES_MAX) return false;
    task_tensor(t, e->backward ? "dy" : "x", INPUT, p->type, e->backward ? out : p->dims);
    task_tensor(t, e->backward ? "dx" : "y", OUTPUT, p->type, e->backward ? p->dims : out);
    if (e->index) {
        struct operand *idx =
            task_tensor(t, "idx", e->backward ? INPUT : OUTPUT, CUDNN_DATA_INT8, out);
        task_range(idx, 0.0, places - 1.0);
    }
    return true;
}

/* In lowest terms, as whole pixels are given: not every engine may reduce a fraction. */
static void set_lengths(struct session *s, cudnnBackendDescriptor_t d,
                        cudnnBackendAttributeName_t name, int64_t count, const int quarters[3])
{
    cudnnFraction_t length[3];
    for (int i = 0; i < 3; ++i) {
        const int by = quarters[i] % PIXEL == 0 ? PIXEL : quarters[i] % 2 == 0 ? 2 : 1;
        length[i].numerator = quarters[i] / by;
        length[i].denominator = PIXEL / by;
    }
    compose_set(s, d, name, CUDNN_TYPE_FRACTION, count, length);
}

static cudnnBackendDescriptor_t describe(struct session *s, const struct task *t)
{
    const struct entry *e = entry_of(t);
    const cudnnDataType_t compute = task_compute(t);
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    cudnnBackendDescriptor_t d = compose_make(s, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    int window[3] = {0};
    int stride[3] = {0};
    int pre[3] = {0};
    int post[3] = {0};
    int64_t rank = 0;
    for (int i = DIM_D; i <= DIM_W; ++i) {
        struct walk w = walk_of(t->problem, i);
        if (i == DIM_D && w.in == 1) continue;
        window[rank] = w.window;
        stride[rank] = w.stride;
        pre[rank] = w.pre;
        post[rank++] = w.post;
    }
    compose_set(s, d, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &e->mode);
    compose_set(s, d, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &e->padding);
    compose_set(s, d, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    compose_set(s, d, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    compose_set(s, d, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &rank);
    set_lengths(s, d, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, rank, window);
    set_lengths(s, d, CUDNN_ATTR_RESAMPLE_STRIDES, rank, stride);
    set_lengths(s, d, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, rank, pre);
    set_lengths(s, d, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, rank, post);
    return compose_finalize(s, d);
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    const struct entry *e = entry_of(t);
    cudnnBackendDescriptor_t how;
    cudnnBackendDescriptor_t op;
    compose_begin(s);
    how = describe(s, t);
    op = compose_make(s, e->backward ? CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR
                                     : CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    compose_refer(s, op,
                  e->backward ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC
                              : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC,
                  how);
    compose_refer(s, op,
                  e->backward ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC
                              : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC,
                  compose_operand(s, t, 0));
    compose_refer(s, op,
                  e->backward ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC
                              : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
                  compose_operand(s, t, 1));
    if (e->index) {
        compose_refer(s, op,
                      e->backward ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC
                                  : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC,
                      compose_operand(s, t, 2));
    }
    compose_operation(s, op);
    return compose_plan(s);
}

/* Along one dimension, how much pixel k counts in window o, in eighths of a pixel; 0: not at all. */
static double weight_of(const struct entry *e, const struct walk *w, int o, int k)
{
    const int unit = 2 * PIXEL;
    int begin = 2 * (o * w->stride - w->pre);
    int centre = begin + w->window;
    int left = k * unit;
    int reach = w->window > unit ? w->window : unit;
    int away = left + unit / 2 - centre;
    if (away < 0) away = -away;
    switch (e->mode) {
    case CUDNN_RESAMPLE_NEAREST: return left <= centre && centre < left + unit;
    case CUDNN_RESAMPLE_BILINEAR: return away < reach ? reach - away : 0;
    default: return begin <= left && left < begin + 2 * w->window;
    }
}

/* The pixels that count in window o, padding included: they are neighbours. */
struct taps {
    int first, count;
    double total; /* of the weights */
};

static struct taps taps_of(const struct entry *e, const struct walk *w, int o)
{
    int middle = (2 * (o * w->stride - w->pre) + w->window) / (2 * PIXEL);
    int far = pixels_of(w) + 3;
    struct taps t = {0, 0, 0.0};
    for (int k = middle - far; k <= middle + far; ++k) {
        double weight = weight_of(e, w, o, k);
        bool inside = k >= 0 && k < w->in;
        if (weight == 0.0) continue;
        if (t.count++ == 0) t.first = k;
        if (inside || e->mode != CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING) t.total += weight;
    }
    return t;
}

/* A window of one image: forward it answers its value and where the maximum is, backward it spreads
 * dy, of a maximum to the place `best`. */
static double one_window(const struct entry *e, const struct walk w[3], const int at[3],
                         const double *x, double *dx, double dy, int *best)
{
    struct taps t[3];
    double sum = 0.0;
    double most = -INFINITY;
    int place = 0;
    int k[3];
    for (int d = 0; d < 3; ++d) t[d] = taps_of(e, &w[d], at[d]);
    for (k[0] = t[0].first; k[0] < t[0].first + t[0].count; ++k[0]) {
        for (k[1] = t[1].first; k[1] < t[1].first + t[1].count; ++k[1]) {
            for (k[2] = t[2].first; k[2] < t[2].first + t[2].count; ++k[2], ++place) {
                double weight = 1.0;
                bool inside = true;
                int i = 0;
                for (int d = 0; d < 3; ++d) {
                    int in = k[d] < 0 ? 0 : k[d] >= w[d].in ? w[d].in - 1 : k[d];
                    inside = inside && in == k[d];
                    i = i * w[d].in + in;
                    weight *= weight_of(e, &w[d], at[d], k[d]) / t[d].total;
                }
                if (!inside && e->padding != CUDNN_EDGE_VAL_PAD) continue;
                if (dx && e->mode == CUDNN_RESAMPLE_MAXPOOL) dx[i] += place == *best ? dy : 0.0;
                else if (dx) dx[i] += weight * dy;
                else sum += weight * x[i];
                if (!dx && x[i] > most) {
                    most = x[i];
                    *best = place;
                }
            }
        }
    }
    return e->mode == CUDNN_RESAMPLE_MAXPOOL ? most : sum;
}

static bool reference(const struct task *t, double *const *values)
{
    const struct entry *e = entry_of(t);
    const struct problem *p = t->problem;
    const struct walk w[3] = {walk_of(p, DIM_D), walk_of(p, DIM_H), walk_of(p, DIM_W)};
    int64_t in = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    int64_t o = 0;
    if (e->backward) memset(values[1], 0, (size_t)t->operand[1].count * sizeof(double));
    for (int64_t image = 0; image < (int64_t)p->dims[DIM_N] * p->dims[DIM_C]; ++image) {
        double *dx = e->backward ? values[1] + image * in : NULL;
        const double *x = e->backward ? NULL : values[0] + image * in;
        int at[3];
        for (at[0] = 0; at[0] < w[0].out; ++at[0]) {
            for (at[1] = 0; at[1] < w[1].out; ++at[1]) {
                for (at[2] = 0; at[2] < w[2].out; ++at[2], ++o) {
                    int best = e->backward && e->index ? (int)values[2][o] : 0;
                    double y = one_window(e, w, at, x, dx, dx ? values[0][o] : 0.0, &best);
                    if (e->backward) continue;
                    values[1][o] = y;
                    if (e->index) values[2][o] = best;
                }
            }
        }
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 4e6);
    p->call = entries[random_next(seed) % ENTRIES].call;
    p->p[WINDOW] = random_between(seed, 1, 16);
    p->p[STRIDE] = random_between(seed, 2, 12);
    p->p[PRE] = random_between(seed, 0, p->p[WINDOW] / 2);
    p->p[POST] = random_between(seed, 0, p->p[WINDOW] / 2);
    if (p->dims[DIM_D] > 1 && p->p[WINDOW] > 12) p->p[WINDOW] = 12;
}

const struct family family_resample = {
    .name = "resample",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"the window", 1, PARAMETER_MOST},
                  {"the stride", 1, PARAMETER_MOST},
                  {"padding before", 0, PARAMETER_MOST},
                  {"padding behind", 0, PARAMETER_MOST}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = composed_run,
    .reference = reference,
    .arbiter = true,
};
