/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: convolution forward, backward data and backward filter: geometry, types, layouts,
 * scaling, both modes, every algorithm; backward bias; im2col.
 */
#include "conv.h"

#include <stdio.h>

static const struct conv geometries[] = {
    {"1x1", 2, 2, 8, {5, 6}, 6, {1, 1}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"3x3", 2, 2, 8, {7, 6}, 4, {3, 3}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"3x3p1", 2, 2, 8, {7, 6}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"3x3s2", 2, 1, 3, {9, 8}, 5, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 1},
    {"3x3d2", 2, 1, 4, {9, 10}, 4, {3, 3}, {2, 2}, {1, 1}, {2, 2}, 1},
    {"5x5p2", 2, 1, 3, {8, 8}, 4, {5, 5}, {2, 2}, {1, 1}, {1, 1}, 1},
    {"7x7s2", 2, 1, 3, {14, 14}, 8, {7, 7}, {3, 3}, {2, 2}, {1, 1}, 1},
    {"1x7", 2, 2, 3, {4, 11}, 3, {1, 7}, {0, 3}, {1, 1}, {1, 1}, 1},
    {"odd", 2, 3, 5, {7, 4}, 7, {3, 2}, {1, 0}, {2, 1}, {1, 2}, 1},
    {"asym", 2, 1, 4, {12, 5}, 4, {5, 1}, {0, 2}, {3, 1}, {1, 1}, 1},
    {"stride_over", 2, 1, 4, {9, 9}, 4, {2, 2}, {0, 0}, {4, 3}, {1, 1}, 1},
    {"big_pad", 2, 1, 2, {3, 3}, 2, {3, 3}, {5, 4}, {1, 1}, {1, 1}, 1},
    {"full", 2, 2, 4, {5, 4}, 6, {5, 4}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"one", 2, 1, 1, {1, 1}, 1, {1, 1}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"c1", 2, 2, 1, {8, 8}, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"k1", 2, 2, 16, {4, 4}, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"c64", 2, 1, 64, {4, 4}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"g2", 2, 2, 8, {6, 6}, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"g3", 2, 1, 9, {5, 5}, 6, {3, 3}, {0, 0}, {1, 1}, {1, 1}, 3},
    {"dw", 2, 2, 8, {6, 7}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8},
    {"dw_mult", 2, 1, 6, {6, 7}, 12, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 6},
    {"1d", 1, 2, 6, {15, 1}, 4, {3, 1}, {1, 0}, {1, 1}, {1, 1}, 1},
    {"1d_s2d3", 1, 1, 4, {20, 1}, 4, {4, 1}, {0, 0}, {2, 1}, {3, 1}, 1},
    {"3d", 3, 1, 4, {4, 5, 6}, 4, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1},
    {"3d_s2", 3, 1, 3, {5, 6, 7}, 4, {2, 3, 3}, {0, 1, 1}, {1, 2, 2}, {1, 1, 1}, 1},
    {"3d_d2", 3, 1, 2, {6, 7, 6}, 3, {2, 2, 2}, {1, 0, 1}, {1, 1, 1}, {2, 2, 2}, 1},
    {"3d_g2", 3, 2, 4, {3, 4, 4}, 4, {1, 3, 3}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}, 2},
};

#define F32 CUDNN_DATA_FLOAT
#define F64 CUDNN_DATA_DOUBLE
#define F16 CUDNN_DATA_HALF
#define B16 CUDNN_DATA_BFLOAT16

static const struct {
    const char *name;
    cudnnDataType_t type, acc;
    enum gd_layout layout, wlayout;
    cudnnMathType_t math;
} kinds[] = {
    {"f32", F32, F32, GD_NCHW, GD_NCHW, CUDNN_FMA_MATH},
    {"f32_default", F32, F32, GD_NCHW, GD_NCHW, CUDNN_DEFAULT_MATH},
    {"f32_nhwc", F32, F32, GD_NHWC, GD_NHWC, CUDNN_FMA_MATH},
    {"f32_gaps", F32, F32, GD_GAPS, GD_NCHW, CUDNN_FMA_MATH},
    {"f32_widew", F32, F32, GD_WIDE_W, GD_NCHW, CUDNN_FMA_MATH},
    {"f32_mixed", F32, F32, GD_NCHW, GD_NHWC, CUDNN_FMA_MATH},
    {"f64", F64, F64, GD_NCHW, GD_NCHW, CUDNN_DEFAULT_MATH},
    {"f64_nhwc", F64, F64, GD_NHWC, GD_NHWC, CUDNN_DEFAULT_MATH},
    {"f16", F16, F32, GD_NCHW, GD_NCHW, CUDNN_DEFAULT_MATH},
    {"f16_nhwc", F16, F32, GD_NHWC, GD_NHWC, CUDNN_TENSOR_OP_MATH},
    {"f16_true", F16, F16, GD_NCHW, GD_NCHW, CUDNN_DEFAULT_MATH},
    {"bf16", B16, F32, GD_NCHW, GD_NCHW, CUDNN_DEFAULT_MATH},
    {"bf16_nhwc", B16, F32, GD_NHWC, GD_NHWC, CUDNN_TENSOR_OP_MATH},
};

static struct conv_how kind_how(int k)
{
    return (struct conv_how){.x = kinds[k].type,
                             .w = kinds[k].type,
                             .y = kinds[k].type,
                             .acc = kinds[k].acc,
                             .layout = kinds[k].layout,
                             .wlayout = kinds[k].wlayout,
                             .mode = CUDNN_CROSS_CORRELATION,
                             .math = kinds[k].math,
                             .alpha = 1,
                             .algo = -1};
}

static const struct conv *geometry(const char *name)
{
    for (int i = 0; i < GD_COUNT(geometries); i++) {
        const char *a = geometries[i].name, *b = name;
        while (*a && *a == *b) {
            a++;
            b++;
        }
        if (*a == *b) return &geometries[i];
    }
    return &geometries[0];
}

static void shapes(void)
{
    static const char *const typed[] = {"1x1", "3x3p1", "odd", "g2", "dw", "3d"};
    for (int dir = 0; dir < 3; dir++) {
        for (int i = 0; i < GD_COUNT(geometries); i++) {
            struct conv_how how = kind_how(0);
            if (gd_case("conv/%s/f32/%s", conv_dir_names[dir], geometries[i].name)) {
                conv_run(dir, &geometries[i], &how);
                gd_end();
            }
            how.mode = CUDNN_CONVOLUTION;
            if (i % 3 == 1 &&
                gd_case("conv/%s/flipped/%s", conv_dir_names[dir], geometries[i].name)) {
                conv_run(dir, &geometries[i], &how);
                gd_end();
            }
        }
        for (int k = 1; k < GD_COUNT(kinds); k++) {
            for (int i = 0; i < GD_COUNT(typed); i++) {
                if (!gd_case("conv/%s/%s/%s", conv_dir_names[dir], kinds[k].name, typed[i]))
                    continue;
                struct conv_how how = kind_how(k);
                conv_run(dir, geometry(typed[i]), &how);
                gd_end();
            }
        }
    }
}

static void random_shapes(void)
{
    static const int pick[] = {0, 0, 2, 6, 8, 9, 11, 12};
    for (int dir = 0; dir < 3; dir++) {
        for (int seed = 0; seed < 24; seed++) {
            uint64_t h = gd_hash("conv", conv_dir_names[dir]);
            unsigned r[16];
            for (int i = 0; i < 16; i++)
                r[i] = (unsigned)(gd_mix(h, (uint64_t)(seed * 16 + i)) >> 33);
            struct conv c = {.name = "random", .sp = 2 + (int)(r[0] % 4 == 0)};
            c.groups = 1 + (int)(r[1] % 3 == 0) * (int)(1 + r[1] / 3 % 2);
            c.n = 1 + (int)(r[2] % 3);
            c.c = c.groups * (1 + (int)(r[3] % 5));
            c.k = c.groups * (1 + (int)(r[4] % 5));
            for (int i = 0; i < c.sp; i++) {
                c.rs[i] = 1 + (int)(r[5 + i] % 4);
                c.dil[i] = 1 + (int)(r[8 + i] % 2);
                c.stride[i] = 1 + (int)(r[11 + i] % 3);
                c.pad[i] = (int)(r[5 + i] / 4 % 3);
                int least = (c.rs[i] - 1) * c.dil[i] + 1 - 2 * c.pad[i];
                c.hw[i] = (least > 1 ? least : 1) + (int)(r[8 + i] / 2 % 7);
            }
            int k = pick[r[14] % GD_COUNT(pick)];
            if (!gd_case("conv/%s/random%d/%s_n%dc%dk%dg%d", conv_dir_names[dir], seed,
                         kinds[k].name, c.n, c.c, c.k, c.groups))
                continue;
            struct conv_how how = kind_how(k);
            conv_run(dir, &c, &how);
            gd_end();
        }
    }
}

static void scaling(void)
{
    static const double pairs[][2] = {{1, 1}, {2.5, 0}, {-0.5, 1}, {1, -0.25},
                                      {0, 1}, {0, 0},   {0, 2}};
    static const int some[] = {0, 6, 9, 11};
    for (int dir = 0; dir < 3; dir++) {
        for (int i = 0; i < GD_COUNT(pairs); i++) {
            for (int k = 0; k < GD_COUNT(some); k++) {
                if (!gd_case("conv/%s/scale%g,%g/%s", conv_dir_names[dir], pairs[i][0], pairs[i][1],
                             kinds[some[k]].name))
                    continue;
                struct conv_how how = kind_how(some[k]);
                how.alpha = pairs[i][0];
                how.beta = pairs[i][1];
                conv_run(dir, geometry("3x3p1"), &how);
                gd_end();
            }
        }
        for (int k = 0; k < GD_COUNT(some); k++) {
            if (gd_case("conv/%s/nan_output_beta0/%s", conv_dir_names[dir], kinds[some[k]].name)) {
                struct conv_how how = kind_how(some[k]);
                how.yfill = GD_NAN;
                conv_run(dir, geometry("3x3p1"), &how);
                gd_end();
            }
            if (gd_case("conv/%s/nan_input/%s", conv_dir_names[dir], kinds[some[k]].name)) {
                struct conv_how how = kind_how(some[k]);
                how.fill = GD_SOMENAN;
                conv_run(dir, geometry("3x3s2"), &how);
                gd_end();
            }
        }
    }
}

static void bias(void)
{
    static const struct {
        const char *name;
        int nd, dy[5];
    } rows[] = {{"plain", 4, {3, 5, 6, 7}},
                {"1x1", 4, {9, 4, 1, 1}},
                {"long", 4, {2, 3, 20, 21}},
                {"3d", 5, {2, 4, 3, 4, 5}},
                {"c1", 4, {2, 1, 5, 5}}};
    for (int k = 0; k < GD_COUNT(kinds); k++) {
        if (k == 1 || k == 5) continue;
        for (int i = 0; i < GD_COUNT(rows); i++) {
            for (int scaled = 0; scaled < (i ? 1 : 3); scaled++) {
                if (!gd_case("conv/bias_bwd/%s/%s/%d", kinds[k].name, rows[i].name, scaled))
                    continue;
                int nd = rows[i].nd, c = rows[i].dy[1];
                struct gd_tens *dy = gd_tens("dy", kinds[k].type, kinds[k].layout, nd, rows[i].dy);
                struct gd_tens *db = gd_tens("db", kinds[k].type, GD_NCHW, nd, DIMS(1, c, 1, 1, 1));
                gd_fill(dy, GD_UNIT);
                if (scaled) gd_fill(db, scaled == 2 ? GD_NAN : GD_UNIT);
                const void *alpha = gd_scalar(kinds[k].type, scaled == 1 ? 0.5 : 1);
                const void *beta = gd_scalar(kinds[k].type, scaled == 1 ? -2 : 0);
                if (gd_ran("run", lib.ConvolutionBackwardBias(gd_handle(), alpha, dy->desc, dy->p,
                                                              beta, db->desc, db->p)))
                    gd_out(db, gd_sum_tol(db->type, kinds[k].type == F64 ? F64 : F32,
                                          (double)dy->count / c, 0.5));
                gd_end();
            }
        }
    }
}

static void im2col(void)
{
    static const char *const names[] = {"1x1", "3x3", "3x3p1", "3x3s2", "3x3d2", "odd", "g2", "3d"};
    static const int some[] = {0, 6, 8, 11, 2, 3};
    for (int flip = 0; flip < 2; flip++) {
        for (int i = 0; i < GD_COUNT(names); i++) {
            for (int k = 0; k < (i == 2 ? GD_COUNT(some) : 1); k++) {
                if (!gd_case("conv/im2col%d/%s/%s", flip, kinds[some[k]].name, names[i])) continue;
                const struct conv *c = geometry(names[i]);
                struct conv_how how = kind_how(some[k]);
                int nd, x[5], w[5], y[5], cols = 1, rows = 1;
                how.mode = flip ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
                conv_dims(c, &nd, x, w, y);
                for (int j = 2; j < nd; j++) {
                    rows *= w[j];
                    cols *= y[j];
                }
                struct gd_tens *tx = gd_tens("x", how.x, how.layout, nd, x);
                struct gd_tens *tw = gd_filter("w", how.w, how.wlayout, nd, w);
                struct gd_tens *col =
                    gd_tens("col", how.x, GD_NCHW, 4, DIMS(1, x[1] * rows, x[0], cols));
                cudnnConvolutionDescriptor_t d = conv_desc(c, &how);
                gd_fill(tx, GD_UNIT);
                if (gd_ran("run", lib.Im2Col(gd_handle(), tx->desc, tx->p, tw->filter, d, col->p)))
                    gd_out(col, gd_exact);
                lib.DestroyConvolutionDescriptor(d);
                gd_end();
            }
        }
    }
}

void cases_conv(void)
{
    shapes();
    random_shapes();
    scaling();
    bias();
    im2col();
}
