/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms of the backend API: layer, RMS, instance and group, forward in training and inference, backward.
 * The parameter is the number of groups of a group norm. Scale, bias and statistics are fp32.
 *
 * Bytes: each tensor once. Instance and group norms go over an image twice where it exceeds what fits on
 * the chip, as batch norm does, and may take as long. */
#include <math.h>
#include <string.h>

#include "compose.h"
#include "problem.h"

enum phase { TRAINING, INFERENCE, BACKWARD };
enum { GROUPS = 0 };
static const float epsilon = 1e-5F;

static const struct entry {
    const char *call;
    cudnnBackendNormMode_t mode;
    enum phase phase;
} entries[] = {
    {"layer_training", CUDNN_LAYER_NORM, TRAINING},
    {"layer_inference", CUDNN_LAYER_NORM, INFERENCE},
    {"layer_backward", CUDNN_LAYER_NORM, BACKWARD},
    {"rms_training", CUDNN_RMS_NORM, TRAINING},
    {"rms_inference", CUDNN_RMS_NORM, INFERENCE},
    {"rms_backward", CUDNN_RMS_NORM, BACKWARD},
    {"instance_training", CUDNN_INSTANCE_NORM, TRAINING},
    {"instance_inference", CUDNN_INSTANCE_NORM, INFERENCE},
    {"instance_backward", CUDNN_INSTANCE_NORM, BACKWARD},
    {"group_training", CUDNN_GROUP_NORM, TRAINING},
    {"group_backward", CUDNN_GROUP_NORM, BACKWARD},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static const struct problem problems[] = {
#include "norm.def"
};

static const struct entry *entry_of(const struct task *task)
{
    for (int i = 0; i < ENTRIES; ++i)
        if (task_is(task, entries[i].call)) return &entries[i];
    return NULL;
}

static bool over_rows(const struct entry *e)
{
    return e->mode == CUDNN_LAYER_NORM || e->mode == CUDNN_RMS_NORM;
}

/* How many groups an instance has, each with its own statistics. */
static int groups_of(const struct entry *e, const struct problem *p)
{
    int groups = p->p[GROUPS] > 0 ? p->p[GROUPS] : 1;
    if (over_rows(e)) return 1;
    if (e->mode == CUDNN_INSTANCE_NORM) return p->dims[DIM_C];
    while (p->dims[DIM_C] % groups) --groups; /* a problem that was scaled down */
    return groups;
}

/* Where an operand is among the task's, -1 where there is none. */
static int find(const struct task *t, const char *name)
{
    for (int i = 0; i < t->count; ++i)
        if (!strcmp(t->operand[i].name, name)) return i;
    return -1;
}

static struct operand *parameter(struct task *t, const char *name, enum role role)
{
    int dims[DIMS_MAX];
    for (int d = 0; d < DIMS_MAX; ++d) {
        bool whole = d == DIM_C || (d > DIM_C && over_rows(entry_of(t)));
        dims[d] = whole ? t->problem->dims[d] : 1;
    }
    return task_tensor(t, name, role, task_compute(t), dims);
}

static struct operand *statistic(struct task *t, const char *name, enum role role)
{
    const int dims[DIMS_MAX] = {t->problem->dims[DIM_N], groups_of(entry_of(t), t->problem), 1, 1,
                                1};
    return task_tensor(t, name, role, task_compute(t), dims);
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    bool has_mean;
    if (!e) return false;
    if (e->mode == CUDNN_GROUP_NORM) task_text(t, "g%d", p->p[GROUPS]);
    else task_text(t, "%s", "");
    has_mean = e->mode != CUDNN_RMS_NORM;
    t->terms =
        (double)p->dims[DIM_C] * p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W] / groups_of(e, p);
    t->slack = task_norm_slack(t->terms);
    if (!over_rows(e)) t->limit = e->phase == BACKWARD ? 1.8 : 1.6;
    task_tensor(t, "x", INPUT, p->type, p->dims);
    task_range(parameter(t, "scale", INPUT), 0.5, 1.5);
    if (e->phase == BACKWARD) {
        /* dscale sums over instances, and dx over a group */
        t->terms = fmax(t->terms, (double)p->dims[DIM_N]);
        task_tensor(t, "dy", INPUT, p->type, p->dims);
        if (has_mean) task_range(statistic(t, "mean", INPUT), -0.1, 0.1);
        task_range(statistic(t, "inverse", INPUT), 1.5, 2.0);
        task_tensor(t, "dx", OUTPUT, p->type, p->dims);
        parameter(t, "dscale", OUTPUT);
        if (has_mean) parameter(t, "dbias", OUTPUT);
        return true;
    }
    if (has_mean) parameter(t, "bias", INPUT);
    task_tensor(t, "y", OUTPUT, p->type, p->dims);
    if (e->phase == TRAINING) {
        if (has_mean) statistic(t, "mean", OUTPUT);
        statistic(t, "inverse", OUTPUT);
    }
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    static const struct {
        const char *operand;
        cudnnBackendAttributeName_t forward, backward;
    } links[] = {
        {"x", CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC},
        {"scale", CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC,
         CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC},
        {"mean", CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC},
        {"inverse", CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC,
         CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC},
        {"bias", CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_MODE},
        {"y", CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, CUDNN_ATTR_OPERATION_NORM_BWD_MODE},
        {"dy", CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC},
        {"dx", CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC},
        {"dscale", CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC},
        {"dbias", CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC},
    };
    const struct entry *e = entry_of(t);
    bool back = e->phase == BACKWARD;
    cudnnBackendNormFwdPhase_t phase =
        e->phase == TRAINING ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE;
    cudnnBackendDescriptor_t op;
    compose_begin(s);
    op = compose_make(s, back ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                              : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    compose_set(s, op,
                back ? CUDNN_ATTR_OPERATION_NORM_BWD_MODE : CUDNN_ATTR_OPERATION_NORM_FWD_MODE,
                CUDNN_TYPE_NORM_MODE, 1, &e->mode);
    if (!back) {
        compose_set(s, op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1,
                    &phase);
        compose_refer(s, op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, compose_value(s, epsilon));
    }
    for (size_t i = 0; i < sizeof links / sizeof links[0]; ++i) {
        int at = find(t, links[i].operand);
        if (at < 0) continue;
        compose_refer(s, op, back ? links[i].backward : links[i].forward,
                      compose_operand(s, t, at));
    }
    compose_operation(s, op);
    return compose_plan(s);
}

/* Values by name; null where the operand is not there. */
static double *named(const struct task *t, double *const *values, const char *name)
{
    int at = find(t, name);
    return at < 0 ? NULL : values[at];
}

/* A group of `count` elements from `first` on, in logical order contiguous. */
struct group {
    int64_t first, count;
    int64_t index;     /* of its statistics */
    int64_t parameter; /* of its first element */
    int64_t step;      /* elements that share a parameter */
};

static int64_t parameter_of(const struct group *g, int64_t j)
{
    return g->parameter + j / g->step;
}

static void forward(const struct task *t, double *const *values, const struct group *g)
{
    const double *x = values[0] + g->first;
    const double *scale = named(t, values, "scale");
    const double *bias = named(t, values, "bias");
    double *y = named(t, values, "y") + g->first;
    double *means = named(t, values, "mean");
    double *inverses = named(t, values, "inverse");
    double mean = 0.0;
    double square = 0.0;
    double inverse;
    bool centred = entry_of(t)->mode != CUDNN_RMS_NORM;
    for (int64_t j = 0; centred && j < g->count; ++j) mean += x[j] / (double)g->count;
    for (int64_t j = 0; j < g->count; ++j) square += (x[j] - mean) * (x[j] - mean);
    inverse = 1.0 / sqrt(square / (double)g->count + (double)epsilon);
    for (int64_t j = 0; j < g->count; ++j) {
        int64_t k = parameter_of(g, j);
        y[j] = scale[k] * (x[j] - mean) * inverse + (bias ? bias[k] : 0.0);
    }
    if (means) means[g->index] = mean;
    if (inverses) inverses[g->index] = inverse;
}

static void backward(const struct task *t, double *const *values, const struct group *g)
{
    const double *x = values[0] + g->first;
    const double *scale = named(t, values, "scale");
    const double *dy = named(t, values, "dy") + g->first;
    const double *means = named(t, values, "mean");
    double *dx = named(t, values, "dx") + g->first;
    double *dscale = named(t, values, "dscale");
    double *dbias = named(t, values, "dbias");
    double inverse = named(t, values, "inverse")[g->index];
    double mean = means ? means[g->index] : 0.0;
    double sum = 0.0;
    double product = 0.0;
    for (int64_t j = 0; j < g->count; ++j) {
        int64_t k = parameter_of(g, j);
        double normal = (x[j] - mean) * inverse;
        sum += dy[j] * scale[k];
        product += dy[j] * scale[k] * normal;
        dscale[k] += dy[j] * normal;
        if (dbias) dbias[k] += dy[j];
    }
    if (!means) sum = 0.0;
    for (int64_t j = 0; j < g->count; ++j) {
        double normal = (x[j] - mean) * inverse;
        dx[j] = inverse * (dy[j] * scale[parameter_of(g, j)] - sum / (double)g->count -
                           normal * product / (double)g->count);
    }
}

static bool reference(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    const struct entry *e = entry_of(t);
    int64_t image = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    int64_t groups = groups_of(e, p);
    struct group g = {0, p->dims[DIM_C] * image / groups, 0, 0, over_rows(e) ? 1 : image};
    for (int i = 0; i < t->count; ++i) {
        const struct operand *o = &t->operand[i];
        if (o->role == OUTPUT) memset(values[i], 0, (size_t)o->count * sizeof(double));
    }
    for (int64_t n = 0; n < p->dims[DIM_N]; ++n) {
        for (int64_t k = 0; k < groups; ++k) {
            g.index = n * groups + k;
            g.first = g.index * g.count;
            g.parameter = k * (p->dims[DIM_C] / groups);
            if (e->phase == BACKWARD) backward(t, values, &g);
            else forward(t, values, &g);
        }
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 2e7);
    p->call = entries[random_next(seed) % ENTRIES].call;
    p->p[GROUPS] = p->dims[DIM_C] % 4 == 0 ? 4 : 1;
    if (strncmp(p->call, "layer", 5) == 0 || strncmp(p->call, "rms", 3) == 0) {
        p->layout = NHWC;
        p->dims[DIM_N] = random_between(seed, 1, 8192);
        p->dims[DIM_C] = random_between(seed, 16, 4096);
        p->dims[DIM_H] = p->dims[DIM_W] = 1;
    }
}

const struct family family_norm = {
    .name = "norm",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"groups", 0, PARAMETER_MOST}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = composed_run,
    .reference = reference,
    .arbiter = true,
};
