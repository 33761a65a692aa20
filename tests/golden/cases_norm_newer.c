/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: the newer interface of batch normalization: sizes, training and backward with every
 * operation and algorithm, inference with its residual and activation, and what is refused.
 */
#include "norm.h"

#include <math.h>

static const struct norm_kind kinds[] = {
    {"f16_nhwc", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, GD_NHWC, 4, {4, 8, 6, 7}},
    {"bf16_nhwc", CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32_nhwc", CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, GD_NHWC, 4, {4, 8, 6, 7}},
    {"f32", CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f16", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, GD_NCHW, 4, {4, 8, 6, 7}},
    {"f64", CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, GD_NCHW, 4, {4, 5, 6, 7}},
    {"f32_5d", CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, GD_NCHW, 5, {2, 5, 3, 4, 5}},
    {"f16_5d_nhwc", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, GD_NHWC, 5, {2, 8, 3, 4, 5}},
};

struct how {
    int mode, ops, algo, activation, groups;
    double alpha, beta;
    bool saved;
};

static struct norm_set prepare(int k, const struct how *how)
{
    struct norm_set s = norm_set(&kinds[k], how->mode);
    if (how->ops) norm_activation(&s, how->activation);
    return s;
}

#define CHOICES (cudnnNormMode_t) how->mode, (cudnnNormOps_t)how->ops, (cudnnNormAlgo_t)how->algo

static void train(int k, const struct how *how)
{
    struct norm_set s = prepare(k, how);
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
    if (how->beta != 0) norm_fill_outputs(&s);
    double scale = fabs(how->alpha) + fabs(how->beta);
    if (!gd_ran("fwd", lib.NormalizationForwardTraining(
                           h, CHOICES, a, b, s.x->desc, s.x->p, s.scale->desc, s.scale->p,
                           s.bias->p, 0.1, s.mean->desc, s.mean->p, s.var->p, 1e-4, s.saved_mean->p,
                           s.saved_var->p, s.a, add ? s.z->desc : NULL, add ? s.z->p : NULL,
                           s.y->desc, s.y->p, wf, forward, r, reserve, how->groups)))
        goto done;
    norm_out_training(&s, scale);
    if (!gd_ran("bwd", lib.NormalizationBackward(
                           h, CHOICES, a, b, a, b, s.x->desc, s.x->p, how->ops ? s.y->desc : NULL,
                           how->ops ? s.y->p : NULL, s.dy->desc, s.dy->p, add ? s.dz->desc : NULL,
                           add ? s.dz->p : NULL, s.dx->desc, s.dx->p, s.scale->desc, s.scale->p,
                           s.bias->p, s.dscale->p, s.dbias->p, 1e-4, s.mean->desc,
                           how->saved ? s.saved_mean->p : NULL, how->saved ? s.saved_var->p : NULL,
                           s.a, wb, backward, r, reserve, how->groups)))
        goto done;
    norm_out_backward(&s, scale, add);
done:
    norm_end(&s);
}

static void infer(int k, const struct how *how)
{
    struct norm_set s = prepare(k, how);
    bool add = how->ops == CUDNN_NORM_OPS_NORM_ADD_ACTIVATION;
    if (how->beta != 0) gd_fill(s.y, GD_UNIT);
    if (gd_ran("run", lib.NormalizationForwardInference(
                          gd_handle(), CHOICES, gd_scalar(s.st, how->alpha),
                          gd_scalar(s.st, how->beta), s.x->desc, s.x->p, s.scale->desc, s.scale->p,
                          s.bias->p, s.mean->desc, s.mean->p, s.var->p, add ? s.z->desc : NULL,
                          add ? s.z->p : NULL, s.a, s.y->desc, s.y->p, 1e-4, how->groups)))
        gd_out(s.y, norm_tolerance(&s, s.y, 4, 1 + fabs(how->alpha) + fabs(how->beta)));
    norm_end(&s);
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
