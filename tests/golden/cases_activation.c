/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: activation forward and backward: modes, coefficients, NaN, scaling, in place, layouts.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>

enum { MODES = 7 };

static const struct {
    const char *name;
    cudnnDataType_t type;
    enum gd_layout layout;
    int nd, dim[5];
} kinds[] = {
    {"f32", CUDNN_DATA_FLOAT, GD_NCHW, 4, {2, 3, 5, 7}},
    {"f64", CUDNN_DATA_DOUBLE, GD_NCHW, 4, {2, 3, 5, 7}},
    {"f16", CUDNN_DATA_HALF, GD_NCHW, 4, {2, 3, 5, 7}},
    {"bf16", CUDNN_DATA_BFLOAT16, GD_NCHW, 4, {2, 3, 5, 7}},
    {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC, 4, {2, 3, 5, 7}},
    {"f16_nhwc", CUDNN_DATA_HALF, GD_NHWC, 4, {2, 8, 3, 5}},
    {"f32_gaps", CUDNN_DATA_FLOAT, GD_GAPS, 4, {2, 3, 5, 7}},
    {"f32_5d", CUDNN_DATA_FLOAT, GD_NCHW, 5, {2, 3, 2, 4, 5}},
    {"f32_5d_nhwc", CUDNN_DATA_FLOAT, GD_NHWC, 5, {2, 3, 2, 4, 5}},
    {"f32_long", CUDNN_DATA_FLOAT, GD_NCHW, 4, {1, 1, 1, 1027}},
    {"f32_3d", CUDNN_DATA_FLOAT, GD_NCHW, 3, {4, 5, 6}},
    {"i8", CUDNN_DATA_INT8, GD_NCHW, 4, {2, 3, 5, 7}},
};

struct how {
    int kind, mode, nan_opt;
    double coef, alpha, beta;
    enum gd_fill fill, out_fill;
    bool backward, in_place;
};

/* Values reach 4 (30 in wide fills): that bounds the derivative of what is computed from them. */
static struct gd_tol tolerance(const struct gd_tens *t, const struct how *how)
{
    cudnnDataType_t acc = t->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    double scale = (how->fill == GD_WIDE ? 30 : 4) *
                   (fabs(how->alpha) * (1 + fabs(how->coef)) + fabs(how->beta));
    if (gd_roundoff(t->type) == 0) return (struct gd_tol){1, 0};
    return gd_map_tol(t->type, acc, 8, scale);
}

static void run(const struct how *how)
{
    cudnnActivationDescriptor_t a = NULL;
    cudnnDataType_t type = kinds[how->kind].type;
    cudnnDataType_t st = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    const int *dim = kinds[how->kind].dim, nd = kinds[how->kind].nd;
    enum gd_layout layout = kinds[how->kind].layout;
    gd_setup("create", lib.CreateActivationDescriptor(&a));
    gd_setup("set", lib.SetActivationDescriptor(a, (cudnnActivationMode_t)how->mode,
                                                (cudnnNanPropagation_t)how->nan_opt, how->coef));
    if (how->mode == CUDNN_ACTIVATION_SWISH)
        gd_setup("beta", lib.SetActivationDescriptorSwishBeta(a, how->coef));
    struct gd_tens *x = gd_tens("x", type, layout, nd, dim);
    struct gd_tens *y = how->in_place && !how->backward ? x : gd_tens("y", type, layout, nd, dim);
    gd_fill(x, how->fill);
    const void *one = gd_scalar(st, 1), *zero = gd_scalar(st, 0);
    const void *alpha = gd_scalar(st, how->alpha), *beta = gd_scalar(st, how->beta);
    if (!how->backward) {
        if (!how->in_place && (how->beta != 0 || how->out_fill))
            gd_fill(y, how->out_fill ? how->out_fill : GD_UNIT);
        if (gd_ran("run", lib.ActivationForward(gd_handle(), a, alpha, x->desc, x->p, beta, y->desc,
                                                y->p)))
            gd_out(y, tolerance(y, how));
    } else {
        struct gd_tens *dy = gd_tens("dy", type, layout, nd, dim);
        struct gd_tens *dx = how->in_place ? dy : gd_tens("dx", type, layout, nd, dim);
        gd_setup("forward",
                 lib.ActivationForward(gd_handle(), a, one, x->desc, x->p, zero, y->desc, y->p));
        gd_fill(dy, GD_REAL);
        if (!how->in_place && (how->beta != 0 || how->out_fill))
            gd_fill(dx, how->out_fill ? how->out_fill : GD_UNIT);
        if (gd_ran("run", lib.ActivationBackward(gd_handle(), a, alpha, y->desc, y->p, dy->desc,
                                                 dy->p, x->desc, x->p, beta, dx->desc, dx->p))) {
            struct gd_tol tol = tolerance(dx, how);
            /* y is rounded to its type before the gradient is made of it. */
            tol.abs += 16 * gd_roundoff(dx->type) * (1 + fabs(how->coef));
            gd_out(dx, tol);
        }
    }
    lib.DestroyActivationDescriptor(a);
}

static const char *const directions[] = {"fwd", "bwd"};

static double usual(int mode)
{
    return mode == CUDNN_ACTIVATION_CLIPPED_RELU ? 2.5 : 1;
}

void cases_activation(void)
{
    static const double coefs[] = {0, 0.3, 6, -1};
    static const double pairs[][2] = {{2, 0}, {1, 1}, {-0.5, 0.25}, {0, 1}, {0, 0}};
    for (int back = 0; back < 2; back++) {
        const char *d = directions[back];
        for (int mode = 0; mode < MODES; mode++) {
            for (int k = 0; k < GD_COUNT(kinds); k++) {
                if (!gd_case("activation/%s/mode%d/%s", d, mode, kinds[k].name)) continue;
                run(&(struct how){k, mode, 1, usual(mode), 1, 0, GD_REAL, 0, back, false});
                gd_end();
            }
            for (int i = 0; i < GD_COUNT(coefs); i++) {
                if (!gd_case("activation/%s/mode%d/coef%g", d, mode, coefs[i])) continue;
                run(&(struct how){0, mode, 1, coefs[i], 1, 0, GD_REAL, 0, back, false});
                gd_end();
            }
            for (int k = 0; k < 4; k++) {
                for (int nan_opt = 0; nan_opt < 2; nan_opt++) {
                    if (k == 1 || !gd_case("activation/%s/mode%d/special%d/%s", d, mode, nan_opt,
                                           kinds[k].name))
                        continue;
                    run(&(struct how){k, mode, nan_opt, usual(mode), 1, 0, GD_SPECIAL, 0, back,
                                      false});
                    gd_end();
                }
            }
            for (int i = 0; i < GD_COUNT(pairs); i++) {
                for (int k = 0; k < 3; k++) {
                    if ((k && i != 2) || !gd_case("activation/%s/mode%d/scale%g,%g/%s", d, mode,
                                                  pairs[i][0], pairs[i][1], kinds[k].name))
                        continue;
                    run(&(struct how){k, mode, 1, usual(mode), pairs[i][0], pairs[i][1], GD_REAL, 0,
                                      back, false});
                    gd_end();
                }
            }
            if (gd_case("activation/%s/mode%d/nan_output_beta0", d, mode)) {
                run(&(struct how){0, mode, 1, usual(mode), 1, 0, GD_REAL, GD_NAN, back, false});
                gd_end();
            }
            if (gd_case("activation/%s/mode%d/in_place", d, mode)) {
                run(&(struct how){0, mode, 1, usual(mode), 1, 0, GD_REAL, 0, back, true});
                gd_end();
            }
            if (gd_case("activation/%s/mode%d/wide", d, mode)) {
                run(&(struct how){0, mode, 1, usual(mode), 1, 0, GD_WIDE, 0, back, false});
                gd_end();
            }
        }
    }
    /* Tensors that differ in strides, dims or type. */
    static const struct {
        const char *name;
        int y[4], type;
        enum gd_layout layout;
    } rows[] = {{"dims", {2, 3, 5, 6}, 0, GD_NCHW},
                {"type", {2, 3, 5, 7}, 2, GD_NCHW},
                {"layout", {2, 3, 5, 7}, 0, GD_NHWC},
                {"gaps", {2, 3, 5, 7}, 0, GD_GAPS}};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_case("activation/other/%s", rows[i].name)) continue;
        cudnnActivationDescriptor_t a = NULL;
        struct gd_tens *x = gd_tens("x", CUDNN_DATA_FLOAT, GD_NCHW, 4, DIMS(2, 3, 5, 7));
        struct gd_tens *y =
            gd_tens("y", (cudnnDataType_t)rows[i].type, rows[i].layout, 4, rows[i].y);
        gd_setup("create", lib.CreateActivationDescriptor(&a));
        gd_setup("set",
                 lib.SetActivationDescriptor(a, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
        gd_fill(x, GD_REAL);
        if (gd_ran("run", lib.ActivationForward(gd_handle(), a, gd_scalar(0, 1), x->desc, x->p,
                                                gd_scalar(0, 0), y->desc, y->p)))
            gd_out(y, gd_map_tol(y->type, CUDNN_DATA_FLOAT, 2, 4));
        lib.DestroyActivationDescriptor(a);
        gd_end();
    }
}
