/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: TransformTensor between layouts and types, TransformTensorEx and TransformFilter.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>

static void one(cudnnDataType_t xt, enum gd_layout xl, cudnnDataType_t yt, enum gd_layout yl,
                int nd, const int *xd, const int *yd, double alpha, double beta, enum gd_fill fill,
                enum gd_fill out)
{
    struct gd_tens *x = gd_tens("x", xt, xl, nd, xd), *y = gd_tens("y", yt, yl, nd, yd);
    cudnnDataType_t st =
        yt == CUDNN_DATA_DOUBLE || xt == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    gd_fill(x, fill);
    if (beta != 0 || out) gd_fill(y, out ? out : GD_UNIT);
    if (gd_ran("run", lib.TransformTensor(gd_handle(), gd_scalar(st, alpha), x->desc, x->p,
                                          gd_scalar(st, beta), y->desc, y->p))) {
        bool plain = alpha == 1 && beta == 0 && xt == yt;
        struct gd_tol tol =
            gd_map_tol(y->type, CUDNN_DATA_FLOAT, 4, 4 * (fabs(alpha) + fabs(beta)));
        gd_out(y, plain ? gd_exact : gd_roundoff(y->type) == 0 ? (struct gd_tol){1, 0} : tol);
    }
    gd_end();
}

static void transform_ex(void)
{
    static const struct {
        const char *name;
        int nd, dim[5], before[5], after[5], format, direction;
        unsigned fold[3];
    } rows[] = {
        {"plain", 4, {2, 3, 4, 6}, {0}, {0}, 0, 0, {1, 1, 1}},
        {"nhwc", 4, {2, 3, 4, 6}, {0}, {0}, 1, 0, {1, 1, 1}},
        {"pad", 4, {2, 3, 4, 6}, {0, 0, 1, 2}, {0, 1, 1, 0}, 0, 0, {1, 1, 1}},
        {"pad_nhwc", 4, {2, 3, 4, 6}, {0, 1, 1, 2}, {0, 0, 1, 0}, 1, 0, {1, 1, 1}},
        {"fold", 4, {2, 3, 4, 6}, {0}, {0}, 0, 0, {2, 3, 1}},
        {"unfold", 4, {2, 12, 4, 6}, {0}, {0}, 0, 1, {2, 2, 1}},
        {"pad5", 5, {1, 2, 3, 4, 5}, {0, 0, 1, 0, 1}, {0, 0, 0, 1, 1}, 0, 0, {1, 1, 1}},
        {"fold_nhwc", 4, {2, 3, 4, 6}, {0}, {0}, 1, 0, {2, 3, 1}},
        {"unfold_nhwc", 4, {2, 12, 4, 6}, {0}, {0}, 1, 1, {2, 2, 1}},
        {"fold_pad", 4, {1, 3, 5, 7}, {0, 0, 1, 0}, {0, 1, 0, 1}, 0, 0, {2, 2, 1}},
        {"fold_part", 4, {1, 2, 5, 7}, {0}, {0}, 0, 0, {2, 3, 1}},
        {"unfold_pad", 4, {1, 8, 3, 3}, {0, 0, 1, 0}, {0, 0, 0, 2}, 0, 1, {2, 2, 1}},
        {"cut", 4, {2, 3, 6, 7}, {0, 0, -1, -2}, {0, -1, -1, 0}, 0, 0, {1, 1, 1}},
        {"unfold_cut", 4, {1, 8, 3, 4}, {0, 0, -1, 0}, {0, 0, 0, -1}, 0, 1, {2, 2, 1}},
        {"fold5", 5, {1, 2, 4, 4, 6}, {0}, {0}, 0, 0, {2, 1, 3}},
        {"batch", 4, {2, 2, 3, 3}, {1, 0, 0, 0}, {0, 0, 0, 1}, 1, 0, {1, 1, 1}},
    };
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_DOUBLE,
                                            CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8};
    static const double pairs[][2] = {{1, 0}, {2, 0}, {1, 1}, {-0.5, 0.25}, {0, 1}};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        for (int each = 0; each < GD_COUNT(types) * GD_COUNT(pairs); each++) {
            int k = each % GD_COUNT(types), scale = each / GD_COUNT(types);
            double alpha = pairs[scale][0], beta = pairs[scale][1];
            if (scale && (k > 2 || (i != 1 && i != 4))) continue;
            if (!(scale ? gd_case("transform_ex/%s/%s/scale%g,%g", rows[i].name,
                                  gd_type_name(types[k]), alpha, beta)
                        : gd_case("transform_ex/%s/%s", rows[i].name, gd_type_name(types[k]))))
                continue;
            int nd = rows[i].nd, d[5] = {0}, s[5] = {0}, got = 0;
            size_t bytes = 0;
            cudnnDataType_t type;
            cudnnTensorTransformDescriptor_t t = NULL;
            cudnnTensorDescriptor_t dest = NULL;
            struct gd_tens *x = gd_tens("x", types[k], GD_NCHW, nd, rows[i].dim);
            gd_setup("create", lib.CreateTensorTransformDescriptor(&t));
            gd_setup("dest", lib.CreateTensorDescriptor(&dest));
            gd_setup("set",
                     lib.SetTensorTransformDescriptor(
                         t, (uint32_t)nd, (cudnnTensorFormat_t)rows[i].format, rows[i].before,
                         rows[i].after, rows[i].fold, (cudnnFoldingDirection_t)rows[i].direction));
            if (gd_status("init", lib.InitTransformDest(t, x->desc, dest, &bytes)) == 0) {
                gd_int("bytes", (long long)bytes);
                gd_setup("get", lib.GetTensorNdDescriptor(dest, nd, &type, &got, d, s));
                gd_ints("dims", nd, d);
                gd_ints("strides", nd, s);
                bool sane = true;
                for (int j = 0; j < nd; j++)
                    sane &= d[j] > 0 && d[j] < 100 && s[j] > 0 && s[j] < 100000;
                struct gd_tens *y = sane ? gd_tens_raw("y", types[k], nd, d, s) : x;
                cudnnDataType_t st = types[k] == CUDNN_DATA_DOUBLE ? types[k] : CUDNN_DATA_FLOAT;
                gd_fill(x, GD_REAL);
                if (beta != 0 && sane) gd_fill(y, GD_UNIT);
                if (sane && gd_ran("run", lib.TransformTensorEx(gd_handle(), t,
                                                                gd_scalar(st, alpha), x->desc, x->p,
                                                                gd_scalar(st, beta), dest, y->p)))
                    gd_out(y, scale ? gd_map_tol(y->type, CUDNN_DATA_FLOAT, 4, 12) : gd_exact);
            }
            lib.DestroyTensorDescriptor(dest);
            lib.DestroyTensorTransformDescriptor(t);
            gd_end();
        }
    }
}

static void transform_filter(void)
{
    static const struct {
        const char *name;
        enum gd_layout from, to;
        int k, c, before[4], after[4];
        unsigned fold[2];
        int direction;
    } rows[] = {
        {"nhwc", GD_NCHW, GD_NHWC, 4, 3, {0}, {0}, {1, 1}, 0},
        {"nchw", GD_NHWC, GD_NCHW, 4, 3, {0}, {0}, {1, 1}, 0},
        {"same", GD_NCHW, GD_NCHW, 4, 3, {0}, {0}, {1, 1}, 0},
        {"nhwc_same", GD_NHWC, GD_NHWC, 4, 3, {0}, {0}, {1, 1}, 0},
        {"pad", GD_NCHW, GD_NCHW, 4, 3, {0, 0, 1, 0}, {0, 0, 0, 2}, {1, 1}, 0},
        {"pad_k", GD_NCHW, GD_NCHW, 3, 3, {0}, {5, 0, 0, 0}, {1, 1}, 0},
        {"pad_c", GD_NCHW, GD_NHWC, 4, 3, {0}, {0, 5, 0, 0}, {1, 1}, 0},
        {"fold", GD_NCHW, GD_NCHW, 2, 3, {0}, {0, 0, 0, 1}, {2, 2}, 0},
        {"fold_nhwc", GD_NCHW, GD_NHWC, 2, 3, {0}, {0, 1, 0, 1}, {2, 2}, 0},
        {"unfold", GD_NCHW, GD_NCHW, 2, 8, {0}, {0}, {2, 2}, 1},
    };
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_DOUBLE,
                                            CUDNN_DATA_BFLOAT16};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        for (int k = 0; k < GD_COUNT(types); k++) {
            if (!gd_case("transform_filter/%s/%s", rows[i].name, gd_type_name(types[k]))) continue;
            cudnnTensorTransformDescriptor_t t = NULL;
            cudnnDataType_t st = types[k] == CUDNN_DATA_DOUBLE ? types[k] : CUDNN_DATA_FLOAT;
            int x_dim[4] = {rows[i].k, rows[i].c, 2, 3}, y_dim[4];
            int blocks = (int)(rows[i].fold[0] * rows[i].fold[1]);
            for (int d = 0; d < 4; d++) {
                int extent = x_dim[d] + rows[i].before[d] + rows[i].after[d];
                int block = d < 2 ? 1 : (int)rows[i].fold[d - 2];
                if (rows[i].direction) y_dim[d] = d == 1 ? extent / blocks : extent * block;
                else y_dim[d] = d == 1 ? extent * blocks : extent / block;
            }
            struct gd_tens *x = gd_filter("x", types[k], rows[i].from, 4, x_dim);
            struct gd_tens *y = gd_filter("y", types[k], rows[i].to, 4, y_dim);
            gd_setup("create", lib.CreateTensorTransformDescriptor(&t));
            gd_setup("set", lib.SetTensorTransformDescriptor(
                                t, 4, rows[i].to == GD_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                rows[i].before, rows[i].after, rows[i].fold,
                                (cudnnFoldingDirection_t)rows[i].direction));
            gd_fill(x, GD_REAL);
            if (gd_ran("run", lib.TransformFilter(gd_handle(), t, gd_scalar(st, 1), x->filter, x->p,
                                                  gd_scalar(st, 0), y->filter, y->p)))
                gd_out(y, gd_exact);
            lib.DestroyTensorTransformDescriptor(t);
            gd_end();
        }
    }
}

void cases_transform(void)
{
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                            CUDNN_DATA_HALF,  CUDNN_DATA_BFLOAT16,
                                            CUDNN_DATA_INT8,  CUDNN_DATA_INT32};
    static const enum gd_layout layouts[] = {GD_NCHW, GD_NHWC, GD_GAPS, GD_WIDE_W, GD_CHWN};
    static const double pairs[][2] = {{2, 0}, {1, 1}, {-0.5, 0.25}, {0, 1}};
    static const int d4[] = {2, 3, 4, 5}, d5[] = {2, 3, 2, 4, 3}, d32[] = {2, 64, 3, 4};
    for (int a = 0; a < GD_COUNT(layouts); a++)
        for (int b = 0; b < GD_COUNT(layouts); b++)
            for (int k = 0; k < 3; k++) {
                if (gd_case("transform/%s_to_%s/%s", gd_layout_name(layouts[a]),
                            gd_layout_name(layouts[b]), gd_type_name(types[k])))
                    one(types[k], layouts[a], types[k], layouts[b], 4, d4, d4, 1, 0, GD_REAL, 0);
                if (k == 0 && gd_case("transform/5d/%s_to_%s", gd_layout_name(layouts[a]),
                                      gd_layout_name(layouts[b])))
                    one(types[k], layouts[a], types[k], layouts[b], 5, d5, d5, 1, 0, GD_REAL, 0);
            }
    for (int a = 0; a < GD_COUNT(types); a++)
        for (int b = 0; b < GD_COUNT(types); b++)
            if (gd_case("transform/types/%s_to_%s", gd_type_name(types[a]), gd_type_name(types[b])))
                one(types[a], GD_NCHW, types[b], GD_NCHW, 4, d4, d4, 1, 0, GD_REAL, 0);
    for (int i = 0; i < GD_COUNT(pairs); i++)
        for (int k = 0; k < 4; k++)
            if (gd_case("transform/scale%g,%g/%s", pairs[i][0], pairs[i][1],
                        gd_type_name(types[k])))
                one(types[k], GD_NCHW, types[k], GD_NHWC, 4, d4, d4, pairs[i][0], pairs[i][1],
                    GD_REAL, 0);
    if (gd_case("transform/nan_output_beta0"))
        one(0, GD_NCHW, 0, GD_NHWC, 4, d4, d4, 1, 0, GD_REAL, GD_NAN);
    if (gd_case("transform/special")) one(0, GD_NCHW, 0, GD_NHWC, 4, d4, d4, 1, 0, GD_SPECIAL, 0);
    if (gd_case("transform/dims_differ"))
        one(0, GD_NCHW, 0, GD_NCHW, 4, d4, DIMS(2, 3, 4, 6), 1, 0, GD_REAL, 0);
    static const struct {
        const char *name;
        cudnnDataType_t xt, yt;
        enum gd_layout xl, yl;
    } vects[] = {
        {"i8_to_x4", CUDNN_DATA_INT8, CUDNN_DATA_INT8x4, GD_NCHW, GD_VECT},
        {"x4_to_i8", CUDNN_DATA_INT8x4, CUDNN_DATA_INT8, GD_VECT, GD_NCHW},
        {"i8_to_x32", CUDNN_DATA_INT8, CUDNN_DATA_INT8x32, GD_NCHW, GD_VECT},
        {"x32_to_i8", CUDNN_DATA_INT8x32, CUDNN_DATA_INT8, GD_VECT, GD_NCHW},
        {"x4_to_x32", CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x32, GD_VECT, GD_VECT},
        {"f32_to_x4", CUDNN_DATA_FLOAT, CUDNN_DATA_INT8x4, GD_NCHW, GD_VECT},
        {"x4_to_f32", CUDNN_DATA_INT8x4, CUDNN_DATA_FLOAT, GD_VECT, GD_NCHW},
        {"nhwc_to_x4", CUDNN_DATA_INT8, CUDNN_DATA_INT8x4, GD_NHWC, GD_VECT},
        {"i8_to_x4_scaled", CUDNN_DATA_INT8, CUDNN_DATA_INT8x4, GD_NCHW, GD_VECT},
    };
    for (int i = 0; i < GD_COUNT(vects); i++)
        if (gd_case("transform/vect/%s", vects[i].name))
            one(vects[i].xt, vects[i].xl, vects[i].yt, vects[i].yl, 4, d32, d32, i == 8 ? 1.5 : 1,
                0, GD_WIDE, 0);
    transform_ex();
    transform_filter();
}
