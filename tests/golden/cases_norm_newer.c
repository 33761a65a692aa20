/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: the newer interface of batch normalization: sizes, training and backward with every
 * operation and algorithm, inference with its residual and activation, and what is refused.
 */
#include "golden.h"

#include <math.h>

static const struct {
    const char *name;
    cudnnDataType_t type;
    enum gd_layout layout;
    int nd, dim[5];
} kinds[] = {
    {"f16_nhwc", CUDNN_DATA_HALF, GD_NHWC, 4, {4, 8, 6, 7}},
    {"bf16_nhwc", CUDNN_DATA_BFLOAT16, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32", CUDNN_DATA_FLOAT, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f16", CUDNN_DATA_HALF, GD_NCHW, 4, {4, 8, 6, 7}},
    {"f64", CUDNN_DATA_DOUBLE, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f32_5d", CUDNN_DATA_FLOAT, GD_NCHW, 5, {2, 5, 3, 4, 5}},
    {"f16_5d_nhwc", CUDNN_DATA_HALF, GD_NHWC, 5, {2, 8, 3, 4, 5}},
};

struct how {
    int mode, ops, algo, activation, groups;
    double alpha, beta;
    bool saved;
};

struct set {
    struct gd_tens *x, *z, *y, *dy, *dx, *dz;
    struct gd_tens *scale, *bias, *mean, *var, *saved_mean, *saved_var, *dscale, *dbias;
    cudnnActivationDescriptor_t a;
    cudnnDataType_t st;
    double n;
};

static struct set prepare(int k, const struct how *how)
{
    struct set s = {0};
    int p[5] = {1};
    s.st = kinds[k].type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    s.n = kinds[k].dim[0];
    for (int i = 1; i < kinds[k].nd; i++) {
        p[i] = i == 1 || how->mode == CUDNN_NORM_PER_ACTIVATION ? kinds[k].dim[i] : 1;
        if (i > 1 && how->mode) s.n *= kinds[k].dim[i];
    }
    struct gd_tens **big[] = {&s.x, &s.z, &s.y, &s.dy, &s.dx, &s.dz};
    static const char *const big_names[] = {"x", "z", "y", "dy", "dx", "dz"};
    for (int i = 0; i < 6; i++)
        *big[i] = gd_tens(big_names[i], kinds[k].type, kinds[k].layout, kinds[k].nd, kinds[k].dim);
    struct gd_tens **small[] = {&s.scale,      &s.bias,      &s.mean,   &s.var,
                                &s.saved_mean, &s.saved_var, &s.dscale, &s.dbias};
    static const char *const small_names[] = {"scale",      "bias",      "mean",   "var",
                                              "saved_mean", "saved_var", "dscale", "dbias"};
    enum gd_layout pl = kinds[k].layout == GD_NHWC && how->mode == 0 ? GD_NHWC : GD_NCHW;
    for (int i = 0; i < 8; i++) *small[i] = gd_tens(small_names[i], s.st, pl, kinds[k].nd, p);
    gd_fill(s.x, GD_REAL);
    gd_fill(s.z, GD_UNIT);
    gd_fill(s.dy, GD_UNIT);
    gd_fill(s.scale, GD_POS);
    gd_fill(s.bias, GD_UNIT);
    gd_fill(s.mean, GD_UNIT);
    gd_fill(s.var, GD_POS);
    if (how->ops) {
        gd_setup("act", lib.CreateActivationDescriptor(&s.a));
        gd_setup("act.set", lib.SetActivationDescriptor(s.a, (cudnnActivationMode_t)how->activation,
                                                        CUDNN_PROPAGATE_NAN, 1));
    }
    return s;
}

static struct gd_tol tolerance(const struct gd_tens *t, cudnnDataType_t acc, double n, double scale)
{
    struct gd_tol tol = gd_sum_tol(t->type, acc, n, 1);
    tol.abs = tol.abs / (n + 2) * 16 * scale;
    tol.rel += 16 * gd_roundoff(acc);
    return tol;
}

#define CHOICES (cudnnNormMode_t) how->mode, (cudnnNormOps_t)how->ops, (cudnnNormAlgo_t)how->algo

static void train(int k, const struct how *how)
{
    struct set s = prepare(k, how);
    cudnnHandle_t h = gd_handle();
    size_t forward = 0, backward = 0, reserve = 0;
    const void *a = gd_scalar(s.st, how->alpha), *b = gd_scalar(s.st, how->beta);
    bool add = how->ops == CUDNN_NORM_OPS_NORM_ADD_ACTIVATION;
    bool ok =
        gd_status("ask_fwd", lib.GetNormalizationForwardTrainingWorkspaceSize(
                                 h, CHOICES, s.x->desc, add ? s.z->desc : NULL, s.y->desc,
                                 s.scale->desc, s.a, s.mean->desc, &forward, how->groups)) == 0;
    ok &= gd_status("ask_bwd", lib.GetNormalizationBackwardWorkspaceSize(
                                   h, CHOICES, s.x->desc, how->ops ? s.y->desc : NULL, s.dy->desc,
                                   add ? s.dz->desc : NULL, s.dx->desc, s.scale->desc, s.a,
                                   s.mean->desc, &backward, how->groups)) == 0;
    ok &= gd_status("ask_reserve", lib.GetNormalizationTrainingReserveSpaceSize(
                                       h, CHOICES, s.a, s.x->desc, &reserve, how->groups)) == 0;
    gd_size("ws_fwd", forward);
    gd_size("ws_bwd", backward);
    gd_size("reserve", reserve);
    if (!ok) goto done;
    void *wf = gd_workspace(forward), *wb = gd_workspace(backward), *r = gd_workspace(reserve);
    if (how->beta != 0) {
        gd_fill(s.y, GD_UNIT);
        gd_fill(s.dx, GD_UNIT);
        gd_fill(s.dscale, GD_UNIT);
        gd_fill(s.dbias, GD_UNIT);
    }
    double scale = fabs(how->alpha) + fabs(how->beta);
    if (!gd_ran("fwd", lib.NormalizationForwardTraining(
                           h, CHOICES, a, b, s.x->desc, s.x->p, s.scale->desc, s.scale->p,
                           s.bias->p, 0.1, s.mean->desc, s.mean->p, s.var->p, 1e-4, s.saved_mean->p,
                           s.saved_var->p, s.a, add ? s.z->desc : NULL, add ? s.z->p : NULL,
                           s.y->desc, s.y->p, wf, forward, r, reserve, how->groups)))
        goto done;
    gd_out(s.y, tolerance(s.y, s.st, s.n, 1 + scale));
    gd_out(s.mean, tolerance(s.mean, s.st, s.n, 1));
    gd_out(s.var, tolerance(s.var, s.st, s.n, 1));
    gd_out(s.saved_mean, tolerance(s.saved_mean, s.st, s.n, 1));
    gd_out(s.saved_var, tolerance(s.saved_var, s.st, s.n, 1));
    if (!gd_ran("bwd", lib.NormalizationBackward(
                           h, CHOICES, a, b, a, b, s.x->desc, s.x->p, how->ops ? s.y->desc : NULL,
                           how->ops ? s.y->p : NULL, s.dy->desc, s.dy->p, add ? s.dz->desc : NULL,
                           add ? s.dz->p : NULL, s.dx->desc, s.dx->p, s.scale->desc, s.scale->p,
                           s.bias->p, s.dscale->p, s.dbias->p, 1e-4, s.mean->desc,
                           how->saved ? s.saved_mean->p : NULL, how->saved ? s.saved_var->p : NULL,
                           s.a, wb, backward, r, reserve, how->groups)))
        goto done;
    gd_out(s.dx, tolerance(s.dx, s.st, s.n, scale));
    if (add) gd_out(s.dz, tolerance(s.dz, s.st, 1, scale));
    gd_out(s.dscale, tolerance(s.dscale, s.st, s.n, scale * s.n));
    gd_out(s.dbias, tolerance(s.dbias, s.st, s.n, scale * s.n));
done:
    if (s.a) lib.DestroyActivationDescriptor(s.a);
}

static void infer(int k, const struct how *how)
{
    struct set s = prepare(k, how);
    bool add = how->ops == CUDNN_NORM_OPS_NORM_ADD_ACTIVATION;
    if (how->beta != 0) gd_fill(s.y, GD_UNIT);
    if (gd_ran("run", lib.NormalizationForwardInference(
                          gd_handle(), CHOICES, gd_scalar(s.st, how->alpha),
                          gd_scalar(s.st, how->beta), s.x->desc, s.x->p, s.scale->desc, s.scale->p,
                          s.bias->p, s.mean->desc, s.mean->p, s.var->p, add ? s.z->desc : NULL,
                          add ? s.z->p : NULL, s.a, s.y->desc, s.y->p, 1e-4, how->groups)))
        gd_out(s.y, tolerance(s.y, s.st, 4, 1 + fabs(how->alpha) + fabs(how->beta)));
    if (s.a) lib.DestroyActivationDescriptor(s.a);
}

void cases_norm_newer(void)
{
    struct how how = {.groups = 1, .alpha = 1, .saved = true, .activation = CUDNN_ACTIVATION_RELU};
    for (how.mode = 0; how.mode < 2; how.mode++) {
        for (how.ops = 0; how.ops < 3; how.ops++) {
            for (int k = 0; k < GD_COUNT(kinds); k++) {
                for (how.algo = 0; how.algo < 2; how.algo++) {
                    if (!gd_case("norm_newer/train/mode%d/ops%d/%s/algo%d", how.mode, how.ops,
                                 kinds[k].name, how.algo))
                        continue;
                    train(k, &how);
                    gd_end();
                }
                for (how.algo = 0; how.algo < 2; how.algo++) {
                    if (!gd_case("norm_newer/infer/mode%d/ops%d/%s/algo%d", how.mode, how.ops,
                                 kinds[k].name, how.algo))
                        continue;
                    infer(k, &how);
                    gd_end();
                }
            }
        }
    }
    for (int i = 0; i < 8; i++) {
        how = (struct how){.mode = 1,
                           .ops = i % 3,
                           .algo = i / 4,
                           .groups = 1,
                           .alpha = 0.5,
                           .beta = 0.25,
                           .saved = i % 2 == 0};
        how.activation = i < 4 ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_SWISH;
        if (gd_case("norm_newer/scaled%d", i)) {
            train(0, &how);
            gd_end();
        }
        if (gd_case("norm_newer/infer_scaled%d", i)) {
            infer(3, &how);
            gd_end();
        }
    }
    static const struct {
        const char *name;
        struct how how;
    } wrong[] = {
        {"groups0", {1, 0, 0, 1, 0, 1, 0, true}}, {"groups2", {1, 0, 0, 1, 2, 1, 0, true}},
        {"mode2", {2, 0, 0, 1, 1, 1, 0, true}},   {"mode-1", {-1, 0, 0, 1, 1, 1, 0, true}},
        {"algo2", {1, 0, 2, 1, 1, 1, 0, true}},   {"algo-1", {1, 0, -1, 1, 1, 1, 0, true}},
        {"ops3", {1, 3, 0, 1, 1, 1, 0, true}},    {"ops-1", {1, -1, 0, 1, 1, 1, 0, true}},
    };
    for (int i = 0; i < GD_COUNT(wrong); i++) {
        if (gd_case("norm_newer/invalid/%s/train", wrong[i].name)) {
            train(3, &wrong[i].how);
            gd_end();
        }
        if (gd_case("norm_newer/invalid/%s/infer", wrong[i].name)) {
            infer(3, &wrong[i].how);
            gd_end();
        }
    }
}
