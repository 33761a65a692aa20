/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: y = act(alpha1 * conv(x, w) + alpha2 * z + bias), in fp and int8.
 */
#include "conv.h"

#include <math.h>
#include <stdio.h>

static const struct conv problems[] = {
    {"3x3p1", 2, 2, 8, {6, 5}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"1x1", 2, 2, 16, {4, 4}, 8, {1, 1}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"3x3s2", 2, 1, 4, {7, 7}, 12, {3, 3}, {0, 0}, {2, 2}, {1, 1}, 1},
    {"g2", 2, 1, 8, {6, 6}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"3d", 3, 1, 4, {3, 4, 5}, 4, {2, 3, 3}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1},
};

static const struct {
    const char *name;
    cudnnDataType_t x, y, bias, acc;
    enum gd_layout layout;
} kinds[] = {
    {"f32", 0, 0, 0, 0, GD_NCHW},         {"f32_nhwc", 0, 0, 0, 0, GD_NHWC},
    {"f64", 1, 1, 1, 1, GD_NCHW},         {"f16", 2, 2, 2, 0, GD_NCHW},
    {"f16_nhwc", 2, 2, 2, 0, GD_NHWC},    {"f16_true", 2, 2, 2, 2, GD_NCHW},
    {"bf16_nhwc", 9, 9, 9, 0, GD_NHWC},   {"i8_i8_nhwc", 3, 3, 0, 4, GD_NHWC},
    {"i8_f32_nhwc", 3, 0, 0, 4, GD_NHWC}, {"x4_x4", 5, 5, 0, 4, GD_VECT},
};

enum { PLAIN, WITH_Z, Z_IS_Y, SCALED, COUNT };

static void one(int p, int k, int activation, int form, int algo)
{
    static const char *const forms[] = {"plain", "z", "z_is_y", "scaled"};
    const struct conv *c = &problems[p];
    if (!gd_case("conv_fused/%s/%s/act%d/%s/algo%d", kinds[k].name, c->name, activation,
                 forms[form], algo))
        return;
    struct conv_how how = {.acc = kinds[k].acc,
                           .mode = CUDNN_CROSS_CORRELATION,
                           .math = kinds[k].x == 3 || kinds[k].x == 5 ? CUDNN_TENSOR_OP_MATH
                                                                      : CUDNN_DEFAULT_MATH};
    int nd, xd[5], wd[5], yd[5];
    conv_dims(c, &nd, xd, wd, yd);
    struct gd_tens *x = gd_tens("x", kinds[k].x, kinds[k].layout, nd, xd);
    struct gd_tens *w = gd_filter("w", kinds[k].x, kinds[k].layout, nd, wd);
    struct gd_tens *y = gd_tens("y", kinds[k].y, kinds[k].layout, nd, yd);
    struct gd_tens *z = form == Z_IS_Y ? y : gd_tens("z", kinds[k].y, kinds[k].layout, nd, yd);
    struct gd_tens *b = gd_tens("b", kinds[k].bias, GD_NCHW, nd, DIMS(1, c->k, 1, 1, 1));
    cudnnConvolutionDescriptor_t d = conv_desc(c, &how);
    cudnnActivationDescriptor_t a = NULL;
    gd_setup("act", lib.CreateActivationDescriptor(&a));
    gd_setup("act.set",
             lib.SetActivationDescriptor(a, (cudnnActivationMode_t)activation,
                                         CUDNN_NOT_PROPAGATE_NAN, activation == 3 ? 1.5 : 0.5));
    gd_fill(x, GD_UNIT);
    gd_fill(w, GD_UNIT);
    gd_fill(b, GD_UNIT);
    gd_fill(z, GD_UNIT);
    cudnnDataType_t scalar =
        kinds[k].acc == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    double alpha1 = form == SCALED ? 0.5 : 1, alpha2 = form == PLAIN ? 0 : form == SCALED ? -2 : 1;
    size_t bytes = 0;
    gd_setup("ask",
             lib.GetConvolutionForwardWorkspaceSize(gd_handle(), x->desc, w->filter, d, y->desc,
                                                    (cudnnConvolutionFwdAlgo_t)algo, &bytes));
    void *ws = gd_workspace(bytes);
    cudnnStatus_t s = lib.ConvolutionBiasActivationForward(
        gd_handle(), gd_scalar(scalar, alpha1), x->desc, x->p, w->filter, w->p, d,
        (cudnnConvolutionFwdAlgo_t)algo, ws, bytes, gd_scalar(scalar, alpha2), z->desc, z->p,
        b->desc, b->p, a, y->desc, y->p);
    if (gd_ran("run", s)) {
        double n = (double)wd[1] * wd[2] * wd[3] * (nd == 5 ? wd[4] : 1);
        cudnnDataType_t acc = kinds[k].acc == CUDNN_DATA_INT32 ? CUDNN_DATA_FLOAT : kinds[k].acc;
        struct gd_tol tol =
            gd_sum_tol(y->type, acc, n + 2, 2 * (fabs(alpha1) / 4 + (fabs(alpha2) + 1) / n));
        if (gd_roundoff(y->type) == 0) tol = (struct gd_tol){1, 0}; /* a tie may round either way */
        gd_out(y, tol);
    }
    lib.DestroyActivationDescriptor(a);
    lib.DestroyConvolutionDescriptor(d);
    gd_end();
}

void cases_conv_fused(void)
{
    for (int k = 0; k < GD_COUNT(kinds); k++) {
        for (int form = 0; form < COUNT; form++) one(0, k, CUDNN_ACTIVATION_RELU, form, 1);
        one(0, k, CUDNN_ACTIVATION_IDENTITY, WITH_Z, 1);
        one(1, k, CUDNN_ACTIVATION_RELU, WITH_Z, 1);
        one(2, k, CUDNN_ACTIVATION_RELU, SCALED, 1);
        if (k < 5) {
            one(3, k, CUDNN_ACTIVATION_RELU, WITH_Z, 1);
            one(4, k, CUDNN_ACTIVATION_RELU, WITH_Z, 1);
        }
    }
    for (int activation = 0; activation < 7; activation++)
        for (int algo = 0; algo < 3; algo++)
            if (activation != CUDNN_ACTIVATION_RELU || algo != 1) /* that one is above */
                one(0, 0, activation, SCALED, algo);
    for (int algo = 3; algo < 8; algo++) one(0, 0, CUDNN_ACTIVATION_RELU, WITH_Z, algo);
}
