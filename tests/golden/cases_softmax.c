/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: softmax forward and backward: algorithms, modes, types, layouts, magnitudes, scaling.
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
    {"f32", CUDNN_DATA_FLOAT, GD_NCHW, 4, {2, 7, 3, 4}},
    {"f64", CUDNN_DATA_DOUBLE, GD_NCHW, 4, {2, 7, 3, 4}},
    {"f16", CUDNN_DATA_HALF, GD_NCHW, 4, {2, 7, 3, 4}},
    {"bf16", CUDNN_DATA_BFLOAT16, GD_NCHW, 4, {2, 7, 3, 4}},
    {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC, 4, {2, 7, 3, 4}},
    {"f16_nhwc", CUDNN_DATA_HALF, GD_NHWC, 4, {2, 8, 3, 4}},
    {"f32_gaps", CUDNN_DATA_FLOAT, GD_GAPS, 4, {2, 5, 3, 4}},
    {"f32_5d", CUDNN_DATA_FLOAT, GD_NCHW, 5, {2, 5, 2, 3, 4}},
    {"f32_rows", CUDNN_DATA_FLOAT, GD_NCHW, 4, {6, 100, 1, 1}},
    {"f32_long", CUDNN_DATA_FLOAT, GD_NCHW, 4, {2, 1500, 1, 1}},
    {"f16_rows", CUDNN_DATA_HALF, GD_NCHW, 4, {6, 100, 1, 1}},
    {"f32_c1", CUDNN_DATA_FLOAT, GD_NCHW, 4, {2, 1, 3, 4}},
};

struct how {
    int kind, algo, mode;
    double alpha, beta;
    enum gd_fill fill, out_fill;
    bool backward, in_place;
};

static void run(const struct how *how)
{
    cudnnDataType_t type = kinds[how->kind].type;
    cudnnDataType_t st = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    const int *dim = kinds[how->kind].dim, nd = kinds[how->kind].nd;
    enum gd_layout layout = kinds[how->kind].layout;
    cudnnSoftmaxAlgorithm_t algo = (cudnnSoftmaxAlgorithm_t)how->algo;
    cudnnSoftmaxMode_t mode = (cudnnSoftmaxMode_t)how->mode;
    struct gd_tens *x = gd_tens("x", type, layout, nd, dim);
    struct gd_tens *y = how->in_place && !how->backward ? x : gd_tens("y", type, layout, nd, dim);
    gd_fill(x, how->fill);
    const void *one = gd_scalar(st, 1), *zero = gd_scalar(st, 0);
    const void *alpha = gd_scalar(st, how->alpha), *beta = gd_scalar(st, how->beta);
    double n = dim[1];
    for (int i = 2; i < nd && how->mode == 0; i++) n *= dim[i];
    /* A probability has the relative error of exp and of a sum of n; a log has the absolute error
     * of its argument, up to 8 (60 in wide fills). */
    double reach = how->fill == GD_WIDE ? 60 : how->fill == GD_LARGE ? 90 : 8;
    double scale = (how->algo == CUDNN_SOFTMAX_LOG ? 4 * reach + n : 0.5) * fabs(how->alpha);
    scale = scale + fabs(how->beta);
    if (!how->backward) {
        if (!how->in_place && (how->beta != 0 || how->out_fill))
            gd_fill(y, how->out_fill ? how->out_fill : GD_UNIT);
        if (gd_ran("run", lib.SoftmaxForward(gd_handle(), algo, mode, alpha, x->desc, x->p, beta,
                                             y->desc, y->p)))
            gd_out(y, gd_map_tol(y->type, st, 4 + n + reach, scale));
        return;
    }
    struct gd_tens *dy = gd_tens("dy", type, layout, nd, dim);
    struct gd_tens *dx = how->in_place ? dy : gd_tens("dx", type, layout, nd, dim);
    gd_setup("forward",
             lib.SoftmaxForward(gd_handle(), algo, mode, one, x->desc, x->p, zero, y->desc, y->p));
    gd_fill(dy, GD_UNIT);
    if (!how->in_place && (how->beta != 0 || how->out_fill))
        gd_fill(dx, how->out_fill ? how->out_fill : GD_UNIT);
    if (gd_ran("run", lib.SoftmaxBackward(gd_handle(), algo, mode, alpha, y->desc, y->p, dy->desc,
                                          dy->p, beta, dx->desc, dx->p))) {
        struct gd_tol tol = gd_map_tol(dx->type, st, 4 + n, (n + 4) * scale);
        /* y comes rounded to its type: dx = y * (dy - sum) inherits that. */
        tol.abs +=
            8 * gd_roundoff(dx->type) * (fabs(how->alpha) * (1 + (how->algo == 2 ? n / 8 : 1)));
        gd_out(dx, tol);
    }
}

static const char *const directions[] = {"fwd", "bwd"};

void cases_softmax(void)
{
    static const double pairs[][2] = {{2, 0}, {1, 1}, {-0.5, 0.25}, {0, 1}};
    for (int back = 0; back < 2; back++) {
        for (int algo = 0; algo < 3; algo++) {
            for (int mode = 0; mode < 2; mode++) {
                for (int k = 0; k < GD_COUNT(kinds); k++) {
                    if (!gd_case("softmax/%s/algo%d/mode%d/%s", directions[back], algo, mode,
                                 kinds[k].name))
                        continue;
                    run(&(struct how){k, algo, mode, 1, 0, GD_REAL, 0, back, false});
                    gd_end();
                }
                static const struct {
                    const char *name;
                    enum gd_fill fill, out;
                    bool in_place;
                } rows[] = {{"wide", GD_WIDE, 0, false},
                            {"large", GD_LARGE, 0, false},
                            {"special", GD_SPECIAL, 0, false},
                            {"zero", GD_ZERO, 0, false},
                            {"some_nan", GD_SOMENAN, 0, false},
                            {"in_place", GD_REAL, 0, true},
                            {"nan_output_beta0", GD_REAL, GD_NAN, false}};
                for (int i = 0; i < GD_COUNT(rows); i++) {
                    for (int k = 0; k < 3; k += 2) {
                        if ((k && i > 3) ||
                            !gd_case("softmax/%s/algo%d/mode%d/%s/%s", directions[back], algo, mode,
                                     rows[i].name, kinds[k].name))
                            continue;
                        run(&(struct how){k, algo, mode, 1, 0, rows[i].fill, rows[i].out, back,
                                          rows[i].in_place});
                        gd_end();
                    }
                }
                for (int i = 0; i < GD_COUNT(pairs); i++) {
                    if (!gd_case("softmax/%s/algo%d/mode%d/scale%g,%g", directions[back], algo,
                                 mode, pairs[i][0], pairs[i][1]))
                        continue;
                    run(&(struct how){0, algo, mode, pairs[i][0], pairs[i][1], GD_REAL, 0, back,
                                      false});
                    gd_end();
                }
            }
        }
    }
    static const int bad[][2] = {{3, 0}, {-1, 0}, {1, 2}, {1, -1}};
    for (int i = 0; i < GD_COUNT(bad); i++) {
        if (gd_case("softmax/invalid/algo%d/mode%d", bad[i][0], bad[i][1])) {
            run(&(struct how){0, bad[i][0], bad[i][1], 1, 0, GD_REAL, 0, false, false});
            gd_end();
        }
    }
}
