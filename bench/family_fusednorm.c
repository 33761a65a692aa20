/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch norm with an activation, and with an addition before it, fused behind it (the Ex calls): training
 * and backward. The parameters are the mode, 1 spatial or 2 persistent, and what is fused: 0 nothing, 1
 * the activation, 2 addition and activation.
 *
 * Bytes: each tensor once; what the activation let through is a bit an element, so that backward need not
 * read y. The second pass over the input is not counted, as for batch norm. */
#include <math.h>

#include "problem.h"

enum { MODE = 0, OPS = 1 };
static const double epsilon = 1e-5;
static const double factor = 0.1;
/* Of what the activation sees backward. The computation in double takes from y what passed; of values below 3e-8
 * half precision makes 0 though they did. The larger they are, the fewer lie there. */
static const double magnified = 256.0;

static const struct problem problems[] = {
#include "fusednorm.def"
};

/* The operands; z, dz last, before the reserve space, where they are there at all. */
enum { X, Y, SCALE, BIAS, MEAN, INVERSE, FORWARD_Z };
enum { DY = FORWARD_Z, DX, DSCALE, DBIAS, Z, DZ };

static bool is_backward(const struct task *t)
{
    return task_is(t, "backward");
}

static bool adds(const struct task *t)
{
    return t->problem->p[OPS] == 2;
}

static int reserve_of(const struct task *t)
{
    return t->count - 1;
}

static bool plan(struct task *t)
{
    static const char *const fused[] = {"", " relu", " add relu"};
    const struct problem *p = t->problem;
    bool back = is_backward(t);
    enum role made = back ? INPUT : OUTPUT;
    double size = back && p->p[OPS] ? magnified : 1.0;
    double mask;
    struct operand *y;
    if (!back && !task_is(t, "training")) return false;
    task_text(t, "%s%s", p->p[MODE] == 2 ? "persistent" : "spatial", fused[p->p[OPS]]);
    t->terms = (double)p->dims[DIM_N] * p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    t->slack = task_norm_slack(t->terms);
    t->limit = back ? 1.8 : 1.6;
    task_tensor(t, "x", INPUT, p->type, p->dims);
    mask = p->p[OPS] ? (double)(t->operand[X].count + 7) / 8.0 : 0.0;
    y = task_tensor(t, "y", made, p->type, p->dims);
    if (back) y->moves = 0.0;
    task_range(task_channels(t, "scale", INPUT), 0.5 * size, 1.5 * size);
    task_range(task_channels(t, "bias", INPUT), -size, size);
    task_channels(t, "mean", made);
    task_channels(t, "inverse", made);
    if (back) {
        task_tensor(t, "dy", INPUT, p->type, p->dims);
        task_tensor(t, "dx", OUTPUT, p->type, p->dims);
        task_channels(t, "dscale", OUTPUT);
        task_channels(t, "dbias", OUTPUT);
    }
    if (adds(t)) {
        struct operand *z = task_tensor(t, "z", INPUT, p->type, p->dims);
        task_range(z, -size, size);
        if (back) {
            z->moves = 0.0; /* only what makes the inputs reads it */
            task_tensor(t, "dz", OUTPUT, p->type, p->dims);
        }
    }
    task_opaque(t, "reserve", mask);
    return true;
}

static cudnnBatchNormMode_t mode_of(const struct task *t)
{
    return t->problem->p[MODE] == 2 ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
}

static cudnnBatchNormOps_t ops_of(const struct task *t)
{
    static const cudnnBatchNormOps_t ops[] = {CUDNN_BATCHNORM_OPS_BN,
                                              CUDNN_BATCHNORM_OPS_BN_ACTIVATION,
                                              CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION};
    return ops[t->problem->p[OPS]];
}

/* Tensors that only the addition has. */
static cudnnTensorDescriptor_t added(const struct session *s, const struct task *t)
{
    return adds(t) ? s->tensor[X] : NULL;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    const struct library *l = s->library;
    cudnnActivationDescriptor_t relu;
    size_t forward = 0;
    size_t backward = 0;
    cudnnStatus_t status = l->CreateActivationDescriptor(&relu);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    s->made[0] = relu;
    status = l->SetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = l->GetBatchNormalizationForwardTrainingExWorkspaceSize(
            s->handle, mode_of(t), ops_of(t), s->tensor[X], added(s, t), s->tensor[Y],
            s->tensor[SCALE], relu, &forward);
    }
    if (status == CUDNN_STATUS_SUCCESS && is_backward(t)) {
        status = l->GetBatchNormalizationBackwardExWorkspaceSize(
            s->handle, mode_of(t), ops_of(t), s->tensor[X], s->tensor[Y], s->tensor[DY],
            added(s, t), s->tensor[DX], s->tensor[SCALE], relu, &backward);
    }
    s->workspace_bytes = forward > backward ? forward : backward;
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return l->GetBatchNormalizationTrainingExReserveSpaceSize(s->handle, mode_of(t), ops_of(t),
                                                              relu, s->tensor[X], &s->opaque_bytes);
}

static void finish(struct session *s)
{
    if (s->made[0]) s->library->DestroyActivationDescriptor(s->made[0]);
}

static cudnnStatus_t train(struct session *s, const struct task *t, void *const *at, const void *z)
{
    return s->library->BatchNormalizationForwardTrainingEx(
        s->handle, mode_of(t), ops_of(t), scalar_one(t), scalar_zero(t), s->tensor[X], at[X],
        added(s, t), z, s->tensor[Y], at[Y], s->tensor[SCALE], at[SCALE], at[BIAS], factor, NULL,
        NULL, epsilon, at[MEAN], at[INVERSE], s->made[0], s->workspace, s->workspace_bytes,
        at[reserve_of(t)], s->opaque_bytes);
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    const void *one = scalar_one(t);
    const void *zero = scalar_zero(t);
    if (!is_backward(t)) return train(s, t, at, adds(t) ? at[FORWARD_Z] : NULL);
    return s->library->BatchNormalizationBackwardEx(
        s->handle, mode_of(t), ops_of(t), one, zero, one, zero, s->tensor[X], at[X], s->tensor[Y],
        at[Y], s->tensor[DY], at[DY], added(s, t), adds(t) ? at[DZ] : NULL, s->tensor[DX], at[DX],
        s->tensor[SCALE], at[SCALE], at[BIAS], at[DSCALE], at[DBIAS], epsilon, at[MEAN],
        at[INVERSE], s->made[0], s->workspace, s->workspace_bytes, at[reserve_of(t)],
        s->opaque_bytes);
}

static cudnnStatus_t setup(struct session *s, const struct task *t, void *const *at)
{
    if (!is_backward(t)) return CUDNN_STATUS_SUCCESS;
    return train(s, t, at, adds(t) ? at[Z] : NULL);
}

/* Element j of a channel's m elements. */
static int64_t at_of(const struct problem *p, int64_t image, int c, int64_t j)
{
    return (j / image * p->dims[DIM_C] + c) * image + j % image;
}

static void train_channel(const struct task *t, double *const *v, int64_t image, int c)
{
    const struct problem *p = t->problem;
    int64_t m = p->dims[DIM_N] * image;
    double mean = 0.0;
    double square = 0.0;
    for (int64_t j = 0; j < m; ++j) mean += v[X][at_of(p, image, c, j)] / (double)m;
    for (int64_t j = 0; j < m; ++j) {
        double off = v[X][at_of(p, image, c, j)] - mean;
        square += off * off / (double)m;
    }
    v[MEAN][c] = mean;
    v[INVERSE][c] = 1.0 / sqrt(square + epsilon);
    for (int64_t j = 0; j < m; ++j) {
        int64_t i = at_of(p, image, c, j);
        double y = v[SCALE][c] * (v[X][i] - mean) * v[INVERSE][c] + v[BIAS][c];
        if (adds(t)) y += v[FORWARD_Z][i];
        v[Y][i] = p->p[OPS] ? fmax(y, 0.0) : y;
    }
}

static void back_channel(const struct task *t, double *const *v, int64_t image, int c)
{
    const struct problem *p = t->problem;
    int64_t m = p->dims[DIM_N] * image;
    double inverse = v[INVERSE][c];
    v[DSCALE][c] = v[DBIAS][c] = 0.0;
    for (int64_t j = 0; j < m; ++j) {
        int64_t i = at_of(p, image, c, j);
        double dy = p->p[OPS] && v[Y][i] <= 0.0 ? 0.0 : v[DY][i];
        if (adds(t)) v[DZ][i] = dy;
        v[DX][i] = dy; /* for the second pass */
        v[DBIAS][c] += dy;
        v[DSCALE][c] += dy * (v[X][i] - v[MEAN][c]) * inverse;
    }
    for (int64_t j = 0; j < m; ++j) {
        int64_t i = at_of(p, image, c, j);
        double normal = (v[X][i] - v[MEAN][c]) * inverse;
        v[DX][i] = v[SCALE][c] * inverse *
                   (v[DX][i] - v[DBIAS][c] / (double)m - normal * v[DSCALE][c] / (double)m);
    }
}

static bool reference(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    int64_t image = (int64_t)p->dims[DIM_D] * p->dims[DIM_H] * p->dims[DIM_W];
    for (int c = 0; c < p->dims[DIM_C]; ++c) {
        if (is_backward(t)) back_channel(t, values, image, c);
        else train_channel(t, values, image, c);
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    static const int types[] = {FP16, FP16, FP32, BF16};
    random_problem(p, seed, 2e7);
    p->call = random_next(seed) % 2 ? "training" : "backward";
    p->type = (cudnnDataType_t)random_pick(seed, 4, types);
    p->p[MODE] = random_between(seed, 1, 2);
    p->p[OPS] = random_between(seed, 0, 2);
    if (p->dims[DIM_N] < 2) p->dims[DIM_N] = 2;
    if (p->type == CUDNN_DATA_HALF) { /* where the peer has engines */
        p->layout = NHWC;
        p->p[MODE] = 2;
        p->dims[DIM_C] = (p->dims[DIM_C] + 3) / 4 * 4;
    }
}

const struct family family_fusednorm = {
    .name = "fusednorm",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"the mode", 1, 2}, {"the operations", 0, 2}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .setup = setup,
    .reference = reference,
    .arbiter = true,
};
