/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: batch normalization with fused activation and addition: sizes, forward, and backward
 * through the reserve space of the library's own forward pass.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name;
    cudnnDataType_t type;
    enum gd_layout layout;
    int nd, dim[5];
} kinds[] = {
    {"f16_nhwc", CUDNN_DATA_HALF, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f16_nhwc_c4", CUDNN_DATA_HALF, GD_NHWC, 4, {2, 4, 5, 5}},
    {"bf16_nhwc", CUDNN_DATA_BFLOAT16, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32", CUDNN_DATA_FLOAT, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f16", CUDNN_DATA_HALF, GD_NCHW, 4, {4, 8, 6, 7}},
    {"f64", CUDNN_DATA_DOUBLE, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f16_5d_nhwc", CUDNN_DATA_HALF, GD_NHWC, 5, {2, 8, 3, 4, 5}},
};

struct sizes {
    size_t forward, backward, reserve;
};

struct set {
    struct gd_tens *x, *z, *y, *dy, *dx, *dz;
    struct gd_tens *scale, *bias, *mean, *var, *saved_mean, *saved_var, *dscale, *dbias;
    cudnnActivationDescriptor_t a;
    cudnnDataType_t st;
    double n;
};

static struct set prepare(int k, int mode, int ops, int activation)
{
    struct set s = {0};
    int p[5] = {1};
    s.st = kinds[k].type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    s.n = kinds[k].dim[0];
    for (int i = 1; i < kinds[k].nd; i++) {
        p[i] = i == 1 || mode == CUDNN_BATCHNORM_PER_ACTIVATION ? kinds[k].dim[i] : 1;
        if (i > 1 && mode) s.n *= kinds[k].dim[i];
    }
    struct gd_tens **big[] = {&s.x, &s.z, &s.y, &s.dy, &s.dx, &s.dz};
    static const char *const big_names[] = {"x", "z", "y", "dy", "dx", "dz"};
    for (int i = 0; i < 6; i++)
        *big[i] = gd_tens(big_names[i], kinds[k].type, kinds[k].layout, kinds[k].nd, kinds[k].dim);
    struct gd_tens **small[] = {&s.scale,      &s.bias,      &s.mean,   &s.var,
                                &s.saved_mean, &s.saved_var, &s.dscale, &s.dbias};
    static const char *const small_names[] = {"scale",      "bias",      "mean",   "var",
                                              "saved_mean", "saved_var", "dscale", "dbias"};
    enum gd_layout pl = kinds[k].layout == GD_NHWC && mode == 0 ? GD_NHWC : GD_NCHW;
    for (int i = 0; i < 8; i++) *small[i] = gd_tens(small_names[i], s.st, pl, kinds[k].nd, p);
    gd_fill(s.x, GD_REAL);
    gd_fill(s.z, GD_UNIT);
    gd_fill(s.dy, GD_UNIT);
    gd_fill(s.scale, GD_POS);
    gd_fill(s.bias, GD_UNIT);
    gd_fill(s.mean, GD_UNIT);
    gd_fill(s.var, GD_POS);
    if (ops) {
        gd_setup("act", lib.CreateActivationDescriptor(&s.a));
        gd_setup("act.set", lib.SetActivationDescriptor(s.a, (cudnnActivationMode_t)activation,
                                                        CUDNN_PROPAGATE_NAN, 1));
    }
    return s;
}

static bool ask(const struct set *s, int mode, int ops, struct sizes *z)
{
    cudnnBatchNormMode_t m = (cudnnBatchNormMode_t)mode;
    cudnnBatchNormOps_t o = (cudnnBatchNormOps_t)ops;
    cudnnHandle_t h = gd_handle();
    cudnnTensorDescriptor_t zd = ops == 2 ? s->z->desc : NULL, dz = ops == 2 ? s->dz->desc : NULL;
    cudnnTensorDescriptor_t yd = ops ? s->y->desc : NULL;
    bool ok = gd_status("ask_fwd", lib.GetBatchNormalizationForwardTrainingExWorkspaceSize(
                                       h, m, o, s->x->desc, zd, s->y->desc, s->scale->desc, s->a,
                                       &z->forward)) == 0;
    ok &= gd_status("ask_bwd", lib.GetBatchNormalizationBackwardExWorkspaceSize(
                                   h, m, o, s->x->desc, yd, s->dy->desc, dz, s->dx->desc,
                                   s->scale->desc, s->a, &z->backward)) == 0;
    ok &= gd_status("ask_reserve", lib.GetBatchNormalizationTrainingExReserveSpaceSize(
                                       h, m, o, s->a, s->x->desc, &z->reserve)) == 0;
    gd_size("ws_fwd", z->forward);
    gd_size("ws_bwd", z->backward);
    gd_size("reserve", z->reserve);
    return ok;
}

static struct gd_tol tolerance(const struct gd_tens *t, cudnnDataType_t acc, double n, double scale)
{
    struct gd_tol tol = gd_sum_tol(t->type, acc, n, 1);
    tol.abs = tol.abs / (n + 2) * 16 * scale;
    tol.rel += 16 * gd_roundoff(acc);
    return tol;
}

static void run(int k, int mode, int ops, int activation, double alpha, double beta, int form)
{
    struct set s = prepare(k, mode, ops, activation);
    struct sizes z = {0};
    cudnnHandle_t h = gd_handle();
    cudnnBatchNormMode_t m = (cudnnBatchNormMode_t)mode;
    cudnnBatchNormOps_t o = (cudnnBatchNormOps_t)ops;
    const void *a = gd_scalar(s.st, alpha), *b = gd_scalar(s.st, beta);
    bool asked = ask(&s, mode, ops, &z);
    void *wf = gd_workspace(z.forward), *wb = gd_workspace(z.backward);
    void *r = gd_workspace(z.reserve);
    if (!asked || form == 1) goto done;
    if (beta != 0) {
        gd_fill(s.y, GD_UNIT);
        gd_fill(s.dx, GD_UNIT);
        gd_fill(s.dscale, GD_UNIT);
        gd_fill(s.dbias, GD_UNIT);
    }
    bool add = ops == 2;
    if (gd_ran("fwd", lib.BatchNormalizationForwardTrainingEx(
                          h, m, o, a, b, s.x->desc, s.x->p, add ? s.z->desc : NULL,
                          add ? s.z->p : NULL, s.y->desc, s.y->p, s.scale->desc, s.scale->p,
                          s.bias->p, 0.1, s.mean->p, s.var->p, 1e-4, s.saved_mean->p,
                          s.saved_var->p, s.a, wf, z.forward, r, z.reserve))) {
        double scale = fabs(alpha) + fabs(beta);
        gd_out(s.y, tolerance(s.y, s.st, s.n, 1 + scale));
        gd_out(s.mean, tolerance(s.mean, s.st, s.n, 1));
        gd_out(s.var, tolerance(s.var, s.st, s.n, 1));
        gd_out(s.saved_mean, tolerance(s.saved_mean, s.st, s.n, 1));
        gd_out(s.saved_var, tolerance(s.saved_var, s.st, s.n, 1));
        if (gd_ran("bwd",
                   lib.BatchNormalizationBackwardEx(
                       h, m, o, a, b, a, b, s.x->desc, s.x->p, ops ? s.y->desc : NULL,
                       ops ? s.y->p : NULL, s.dy->desc, s.dy->p, add ? s.dz->desc : NULL,
                       add ? s.dz->p : NULL, s.dx->desc, s.dx->p, s.scale->desc, s.scale->p,
                       s.bias->p, s.dscale->p, s.dbias->p, 1e-4, form == 2 ? NULL : s.saved_mean->p,
                       form == 2 ? NULL : s.saved_var->p, s.a, wb, z.backward, r, z.reserve))) {
            gd_out(s.dx, tolerance(s.dx, s.st, s.n, scale));
            if (add) gd_out(s.dz, tolerance(s.dz, s.st, 1, scale));
            gd_out(s.dscale, tolerance(s.dscale, s.st, s.n, scale * s.n));
            gd_out(s.dbias, tolerance(s.dbias, s.st, s.n, scale * s.n));
        }
    }
done:
    if (s.a) lib.DestroyActivationDescriptor(s.a);
}

void cases_norm_ex(void)
{
    for (int mode = 0; mode < 3; mode++) {
        for (int ops = 0; ops < 3; ops++) {
            for (int k = 0; k < GD_COUNT(kinds); k++) {
                if (!gd_case("norm_ex/mode%d/ops%d/%s", mode, ops, kinds[k].name)) continue;
                run(k, mode, ops, CUDNN_ACTIVATION_RELU, 1, 0, 0);
                gd_end();
            }
            if (gd_case("norm_ex/mode%d/ops%d/scaled", mode, ops)) {
                run(0, mode, ops, CUDNN_ACTIVATION_RELU, 0.5, 0.25, 0);
                gd_end();
            }
            if (gd_case("norm_ex/mode%d/ops%d/no_saved", mode, ops)) {
                run(0, mode, ops, CUDNN_ACTIVATION_RELU, 1, 0, 2);
                gd_end();
            }
        }
    }
    for (int activation = 0; activation < 7; activation++) {
        for (int ops = 1; ops < 3; ops++) {
            if (gd_case("norm_ex/activation%d/ops%d", activation, ops)) {
                run(0, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, ops, activation, 1, 0, 0);
                gd_end();
            }
        }
    }
    for (int ops = -1; ops < 5; ops++) {
        if (gd_case("norm_ex/sizes/ops%d", ops)) {
            run(0, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, ops, CUDNN_ACTIVATION_RELU, 1, 0, 1);
            gd_end();
        }
    }
}
