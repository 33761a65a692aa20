/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: batch normalization with fused activation and addition: sizes, forward, and backward
 * through the reserve space of the library's own forward pass.
 */
#include "norm.h"

#include <math.h>

static const struct norm_kind kinds[] = {
    {"f16_nhwc", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f16_nhwc_c4", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, GD_NHWC, 4, {2, 4, 5, 5}},
    {"bf16_nhwc", CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32_nhwc", CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32", CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f16", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, GD_NCHW, 4, {4, 8, 6, 7}},
    {"f64", CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f16_5d_nhwc", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, GD_NHWC, 5, {2, 8, 3, 4, 5}},
};

struct sizes {
    size_t forward, backward, reserve;
};

static bool ask(const struct norm_set *s, int mode, int ops, struct sizes *z)
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

static void run(int k, int mode, int ops, int activation, double alpha, double beta, int form)
{
    struct norm_set s = norm_set(&kinds[k], mode);
    struct sizes z = {0};
    cudnnHandle_t h = gd_handle();
    cudnnBatchNormMode_t m = (cudnnBatchNormMode_t)mode;
    cudnnBatchNormOps_t o = (cudnnBatchNormOps_t)ops;
    const void *a = gd_scalar(s.st, alpha), *b = gd_scalar(s.st, beta);
    if (ops) norm_activation(&s, activation);
    bool asked = ask(&s, mode, ops, &z);
    void *wf = gd_workspace(z.forward), *wb = gd_workspace(z.backward);
    void *r = gd_workspace(z.reserve);
    if (!asked || form == 1) goto done;
    if (beta != 0) norm_fill_outputs(&s);
    bool add = ops == 2;
    if (gd_ran("fwd", lib.BatchNormalizationForwardTrainingEx(
                          h, m, o, a, b, s.x->desc, s.x->p, add ? s.z->desc : NULL,
                          add ? s.z->p : NULL, s.y->desc, s.y->p, s.scale->desc, s.scale->p,
                          s.bias->p, 0.1, s.mean->p, s.var->p, 1e-4, s.saved_mean->p,
                          s.saved_var->p, s.a, wf, z.forward, r, z.reserve))) {
        double scale = fabs(alpha) + fabs(beta);
        norm_out_training(&s, scale);
        if (gd_ran("bwd",
                   lib.BatchNormalizationBackwardEx(
                       h, m, o, a, b, a, b, s.x->desc, s.x->p, ops ? s.y->desc : NULL,
                       ops ? s.y->p : NULL, s.dy->desc, s.dy->p, add ? s.dz->desc : NULL,
                       add ? s.dz->p : NULL, s.dx->desc, s.dx->p, s.scale->desc, s.scale->p,
                       s.bias->p, s.dscale->p, s.dbias->p, 1e-4, form == 2 ? NULL : s.saved_mean->p,
                       form == 2 ? NULL : s.saved_var->p, s.a, wb, z.backward, r, z.reserve))) {
            norm_out_backward(&s, scale, add);
        }
    }
done:
    norm_end(&s);
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
