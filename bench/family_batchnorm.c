/* SPDX-License-Identifier: Apache-2.0
 *
 * The legacy batch norm: training, inference, backward. The parameter is the mode: 0 per activation, 1
 * spatial, 2 spatial persistent.
 *
 * Bytes: each tensor once. Training and backward must go over their input twice where it exceeds what
 * fits on the chip; that is not counted, so their rows may take 1.6 and 1.8 times the floor. */
#include <math.h>

#include "problem.h"

enum { MODE = 0 };
enum kind { TRAINING, INFERENCE, BACKWARD };
static const char *const names[] = {"training", "inference", "backward"};
static const double epsilon = 1e-5;
static const double factor = 0.1;

static const struct problem problems[] = {
#include "batchnorm.def"
};

/* The operands, in order. */
enum {
    X = 0,
    TRAIN_Y = 1,
    TRAIN_SCALE,
    TRAIN_BIAS,
    RUNNING_MEAN,
    RUNNING_VARIANCE,
    SAVED_MEAN,
    SAVED_INVERSE
};
enum { INFER_Y = 1, INFER_SCALE, INFER_BIAS, INFER_MEAN, INFER_VARIANCE };
enum { DY = 1, DX, BACK_SCALE, DSCALE, DBIAS, BACK_MEAN, BACK_INVERSE };

static int kind_of(const struct task *t)
{
    for (int k = TRAINING; k <= BACKWARD; ++k)
        if (task_is(t, names[k])) return k;
    return -1;
}

/* One value a channel, or one an activation. */
static struct operand *parameter(struct task *t, const char *name, enum role role)
{
    int dims[DIMS_MAX];
    const struct problem *p = t->problem;
    if (p->p[MODE] != 0) return task_channels(t, name, role);
    for (int d = 0; d < DIMS_MAX; ++d) dims[d] = d == DIM_N ? 1 : p->dims[d];
    return task_tensor(t, name, role, task_compute(t), dims);
}

static double terms_of(const struct problem *p)
{
    if (p->p[MODE] == 0) return p->dims[DIM_N];
    return (double)p->dims[DIM_N] * p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
}

static bool plan(struct task *t)
{
    static const char *const modes[] = {"per-activation", "spatial", "persistent"};
    const struct problem *p = t->problem;
    int kind = kind_of(t);
    if (kind < 0) return false;
    task_text(t, "%s", modes[p->p[MODE]]);
    task_tensor(t, "x", INPUT, p->type, p->dims);
    task_tensor(t, kind == BACKWARD ? "dy" : "y", kind == BACKWARD ? INPUT : OUTPUT, p->type,
                p->dims);
    if (kind == BACKWARD) task_tensor(t, "dx", OUTPUT, p->type, p->dims);
    task_range(parameter(t, "scale", INPUT), 0.5, 1.5);
    if (kind == BACKWARD) {
        parameter(t, "dscale", OUTPUT);
        parameter(t, "dbias", OUTPUT);
        task_range(parameter(t, "mean", INPUT), -0.1, 0.1);
        task_range(parameter(t, "inverse", INPUT), 1.5, 2.0);
        t->terms = terms_of(p);
        t->limit = 1.8;
        return true;
    }
    parameter(t, "bias", INPUT);
    task_range(parameter(t, "mean", kind == TRAINING ? BOTH : INPUT), -0.1, 0.1);
    task_range(parameter(t, "variance", kind == TRAINING ? BOTH : INPUT), 0.5, 2.0);
    if (kind == TRAINING) {
        parameter(t, "saved mean", OUTPUT);
        parameter(t, "saved inverse", OUTPUT);
        t->terms = terms_of(p);
        t->slack = task_norm_slack(t->terms);
        t->limit = 1.6;
    }
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    (void)s;
    (void)t;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnBatchNormMode_t mode_of(const struct task *t)
{
    static const cudnnBatchNormMode_t modes[] = {CUDNN_BATCHNORM_PER_ACTIVATION,
                                                 CUDNN_BATCHNORM_SPATIAL,
                                                 CUDNN_BATCHNORM_SPATIAL_PERSISTENT};
    return modes[t->problem->p[MODE]];
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    const struct library *l = s->library;
    const void *one = scalar_one(t);
    const void *zero = scalar_zero(t);
    switch (kind_of(t)) {
    case TRAINING:
        return l->BatchNormalizationForwardTraining(
            s->handle, mode_of(t), one, zero, s->tensor[X], at[X], s->tensor[TRAIN_Y], at[TRAIN_Y],
            s->tensor[TRAIN_SCALE], at[TRAIN_SCALE], at[TRAIN_BIAS], factor, at[RUNNING_MEAN],
            at[RUNNING_VARIANCE], epsilon, at[SAVED_MEAN], at[SAVED_INVERSE]);
    case INFERENCE:
        return l->BatchNormalizationForwardInference(
            s->handle, mode_of(t), one, zero, s->tensor[X], at[X], s->tensor[INFER_Y], at[INFER_Y],
            s->tensor[INFER_SCALE], at[INFER_SCALE], at[INFER_BIAS], at[INFER_MEAN],
            at[INFER_VARIANCE], epsilon);
    default:
        return l->BatchNormalizationBackward(
            s->handle, mode_of(t), one, zero, one, zero, s->tensor[X], at[X], s->tensor[DY], at[DY],
            s->tensor[DX], at[DX], s->tensor[BACK_SCALE], at[BACK_SCALE], at[DSCALE], at[DBIAS],
            epsilon, at[BACK_MEAN], at[BACK_INVERSE]);
    }
}

/* What one group of elements, those that share their statistics, is computed from: element j of the
 * group is `outer_step * (j / inner) + j % inner` from its first. */
struct group {
    int64_t first, count, inner, outer_step;
};

static int64_t at_of(const struct group *g, int64_t j)
{
    return g->first + j / g->inner * g->outer_step + j % g->inner;
}

static void train(const struct group *g, double *const *v, int64_t k)
{
    double mean = 0.0;
    double variance = 0.0;
    double m = (double)g->count;
    double inverse;
    for (int64_t j = 0; j < g->count; ++j) mean += v[X][at_of(g, j)];
    mean /= m;
    for (int64_t j = 0; j < g->count; ++j) {
        double off = v[X][at_of(g, j)] - mean;
        variance += off * off;
    }
    variance /= m;
    inverse = 1.0 / sqrt(variance + epsilon);
    for (int64_t j = 0; j < g->count; ++j) {
        int64_t i = at_of(g, j);
        v[TRAIN_Y][i] = v[TRAIN_SCALE][k] * (v[X][i] - mean) * inverse + v[TRAIN_BIAS][k];
    }
    v[RUNNING_MEAN][k] += factor * (mean - v[RUNNING_MEAN][k]);
    v[RUNNING_VARIANCE][k] += factor * (variance * m / (m - 1.0) - v[RUNNING_VARIANCE][k]);
    v[SAVED_MEAN][k] = mean;
    v[SAVED_INVERSE][k] = inverse;
}

static void infer(const struct group *g, double *const *v, int64_t k)
{
    double inverse = 1.0 / sqrt(v[INFER_VARIANCE][k] + epsilon);
    for (int64_t j = 0; j < g->count; ++j) {
        int64_t i = at_of(g, j);
        v[INFER_Y][i] =
            v[INFER_SCALE][k] * (v[X][i] - v[INFER_MEAN][k]) * inverse + v[INFER_BIAS][k];
    }
}

static void back(const struct group *g, double *const *v, int64_t k)
{
    double dbias = 0.0;
    double dscale = 0.0;
    double m = (double)g->count;
    double mean = v[BACK_MEAN][k];
    double inverse = v[BACK_INVERSE][k];
    for (int64_t j = 0; j < g->count; ++j) {
        int64_t i = at_of(g, j);
        dbias += v[DY][i];
        dscale += v[DY][i] * (v[X][i] - mean) * inverse;
    }
    for (int64_t j = 0; j < g->count; ++j) {
        int64_t i = at_of(g, j);
        double normal = (v[X][i] - mean) * inverse;
        v[DX][i] = v[BACK_SCALE][k] * inverse * (v[DY][i] - dbias / m - normal * dscale / m);
    }
    v[DSCALE][k] = dscale;
    v[DBIAS][k] = dbias;
}

static bool reference(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    int64_t image = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    int64_t inner = p->p[MODE] == 0 ? 1 : image;
    int64_t groups = p->dims[DIM_C] * image / inner;
    int kind = kind_of(t);
    if (terms_of(p) < 2.0) return false; /* no variance */
    for (int64_t k = 0; k < groups; ++k) {
        struct group g = {k * inner, p->dims[DIM_N] * inner, inner, p->dims[DIM_C] * image};
        if (kind == TRAINING) train(&g, values, k);
        else if (kind == INFERENCE) infer(&g, values, k);
        else back(&g, values, k);
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 2e7);
    p->call = names[random_next(seed) % 3];
    p->p[MODE] = random_between(seed, 0, 2);
    if (p->dims[DIM_N] < 2) p->dims[DIM_N] = 2;
}

const struct family family_batchnorm = {
    .name = "batchnorm",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"the mode", 0, 2}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .reference = reference,
    .arbiter = true,
};
