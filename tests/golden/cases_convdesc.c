/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: convolution descriptors and the output dims that they give, for good and bad shapes.
 */
#include "golden.h"

#include <stdio.h>

static cudnnConvolutionDescriptor_t create(void)
{
    cudnnConvolutionDescriptor_t c = NULL;
    gd_setup("create", lib.CreateConvolutionDescriptor(&c));
    return c;
}

static void note_conv(cudnnConvolutionDescriptor_t c)
{
    int p[8] = {0}, s[8] = {0}, l[8] = {0}, n = -7;
    cudnnConvolutionMode_t mode = (cudnnConvolutionMode_t)-7;
    cudnnDataType_t type = (cudnnDataType_t)-7;
    if (gd_status("get2", lib.GetConvolution2dDescriptor(c, p, p + 1, s, s + 1, l, l + 1, &mode,
                                                         &type)) == 0) {
        gd_ints("pad", 2, p);
        gd_ints("stride", 2, s);
        gd_ints("dilation", 2, l);
        gd_int("mode", mode);
        gd_int("type", type);
    }
    if (gd_status("getn", lib.GetConvolutionNdDescriptor(c, 6, &n, p, s, l, &mode, &type)) == 0) {
        int m = n < 0 || n > 6 ? 6 : n;
        gd_int("n", n);
        gd_ints("padn", m, p);
        gd_ints("striden", m, s);
        gd_ints("dilationn", m, l);
    }
    cudnnMathType_t math = (cudnnMathType_t)-7;
    cudnnReorderType_t reorder = (cudnnReorderType_t)-7;
    int groups = -7;
    gd_setup("get_math", lib.GetConvolutionMathType(c, &math));
    gd_setup("get_reorder", lib.GetConvolutionReorderType(c, &reorder));
    gd_setup("get_groups", lib.GetConvolutionGroupCount(c, &groups));
    gd_int("math", math);
    gd_int("reorder", reorder);
    gd_int("groups", groups);
}

static void set2(void)
{
    static const int rows[][6] = {{0, 0, 1, 1, 1, 1},  {1, 2, 3, 4, 5, 6},   {-1, 0, 1, 1, 1, 1},
                                  {0, -1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1},   {0, 0, 1, 0, 1, 1},
                                  {0, 0, 1, 1, 0, 1},  {0, 0, 1, 1, 1, 0},   {0, 0, -1, 1, 1, 1},
                                  {0, 0, 1, 1, -1, 1}, {1000, 1, 1, 1, 1, 1}};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        const int *r = rows[i];
        if (!gd_host_case("convdesc/set2d/%d,%d,%d,%d,%d,%d", r[0], r[1], r[2], r[3], r[4], r[5]))
            continue;
        cudnnConvolutionDescriptor_t c = create();
        if (gd_status("set", lib.SetConvolution2dDescriptor(c, r[0], r[1], r[2], r[3], r[4], r[5],
                                                            CUDNN_CROSS_CORRELATION,
                                                            CUDNN_DATA_FLOAT)) == 0)
            note_conv(c);
        gd_status("destroy", lib.DestroyConvolutionDescriptor(c));
        gd_end();
    }
    for (int mode = -1; mode <= 2; mode++) {
        for (int type = -1; type <= 22; type++) {
            if (mode != 1 && type > 2) continue;
            if (!gd_host_case("convdesc/set2d/mode%d/t%d", mode, type)) continue;
            cudnnConvolutionDescriptor_t c = create();
            if (gd_status("set", lib.SetConvolution2dDescriptor(c, 1, 1, 1, 1, 1, 1,
                                                                (cudnnConvolutionMode_t)mode,
                                                                (cudnnDataType_t)type)) == 0)
                note_conv(c);
            gd_status("destroy", lib.DestroyConvolutionDescriptor(c));
            gd_end();
        }
    }
}

static void setn(void)
{
    static const struct {
        const char *name;
        int n, p[8], s[8], l[8];
    } rows[] = {
        {"0", 0, {0}, {1}, {1}},
        {"-1", -1, {0}, {1}, {1}},
        {"1", 1, {2}, {3}, {4}},
        {"2", 2, {1, 2}, {1, 2}, {1, 3}},
        {"3", 3, {0, 1, 2}, {1, 2, 3}, {1, 1, 2}},
        {"4", 4, {0, 1, 2, 3}, {1, 2, 3, 4}, {1, 1, 2, 2}},
        {"5", 5, {0, 1, 2, 3, 4}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},
        {"6", 6, {0}, {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}},
        {"7", 7, {0}, {1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}},
        {"bad_pad", 3, {0, -1, 0}, {1, 1, 1}, {1, 1, 1}},
        {"bad_stride", 3, {0, 0, 0}, {1, 0, 1}, {1, 1, 1}},
        {"bad_dilation", 3, {0, 0, 0}, {1, 1, 1}, {1, 1, 0}},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_host_case("convdesc/setnd/%s", rows[i].name)) continue;
        cudnnConvolutionDescriptor_t c = create();
        if (gd_status("set",
                      lib.SetConvolutionNdDescriptor(c, rows[i].n, rows[i].p, rows[i].s, rows[i].l,
                                                     CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT)) == 0)
            note_conv(c);
        gd_status("destroy", lib.DestroyConvolutionDescriptor(c));
        gd_end();
    }
    for (int want = -1; want < 9; want++) {
        if (!gd_host_case("convdesc/getnd/want%d", want)) continue;
        cudnnConvolutionDescriptor_t c = create();
        int p[16], s[16], l[16], n = -7;
        cudnnConvolutionMode_t mode = (cudnnConvolutionMode_t)-7;
        cudnnDataType_t type = (cudnnDataType_t)-7;
        for (int i = 0; i < 16; i++) p[i] = s[i] = l[i] = -7;
        gd_setup("set",
                 lib.SetConvolutionNdDescriptor(c, 3, DIMS(1, 2, 3), DIMS(4, 5, 6), DIMS(7, 8, 9),
                                                CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
        gd_status("get", lib.GetConvolutionNdDescriptor(c, want, &n, p, s, l, &mode, &type));
        gd_int("n", n);
        gd_ints("pad", 8, p);
        gd_ints("stride", 8, s);
        gd_ints("dilation", 8, l);
        lib.DestroyConvolutionDescriptor(c);
        gd_end();
    }
}

static void attributes(void)
{
    static const int groups[] = {-1, 0, 1, 2, 64, 1 << 30};
    for (int i = 0; i < GD_COUNT(groups); i++) {
        if (!gd_host_case("convdesc/groups/%d", groups[i])) continue;
        cudnnConvolutionDescriptor_t c = create();
        int got = -7;
        gd_status("set", lib.SetConvolutionGroupCount(c, groups[i]));
        gd_status("get", lib.GetConvolutionGroupCount(c, &got));
        gd_int("groups", got);
        lib.DestroyConvolutionDescriptor(c);
        gd_end();
    }
    for (int v = -1; v < 6; v++) {
        if (gd_host_case("convdesc/math/%d", v)) {
            cudnnConvolutionDescriptor_t c = create();
            cudnnMathType_t got = (cudnnMathType_t)-7;
            gd_status("set", lib.SetConvolutionMathType(c, (cudnnMathType_t)v));
            gd_status("get", lib.GetConvolutionMathType(c, &got));
            gd_int("math", got);
            lib.DestroyConvolutionDescriptor(c);
            gd_end();
        }
        if (gd_host_case("convdesc/reorder/%d", v)) {
            cudnnConvolutionDescriptor_t c = create();
            cudnnReorderType_t got = (cudnnReorderType_t)-7;
            gd_status("set", lib.SetConvolutionReorderType(c, (cudnnReorderType_t)v));
            gd_status("get", lib.GetConvolutionReorderType(c, &got));
            gd_int("reorder", got);
            lib.DestroyConvolutionDescriptor(c);
            gd_end();
        }
    }
    if (gd_host_case("convdesc/fresh")) {
        cudnnConvolutionDescriptor_t c = create();
        note_conv(c);
        lib.DestroyConvolutionDescriptor(c);
        gd_end();
    }
    if (gd_host_case("convdesc/keeps_attributes")) {
        cudnnConvolutionDescriptor_t c = create();
        lib.SetConvolutionGroupCount(c, 4);
        lib.SetConvolutionMathType(c, CUDNN_TENSOR_OP_MATH);
        lib.SetConvolution2dDescriptor(c, 1, 1, 1, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT);
        note_conv(c);
        lib.DestroyConvolutionDescriptor(c);
        gd_end();
    }
}

/* One forward output dim question in both forms. */
static void ask(int n, const int *x, const int *w, const int *p, const int *s, const int *l, int g,
                int xtype, int wtype, int wformat)
{
    cudnnConvolutionDescriptor_t c = create();
    cudnnTensorDescriptor_t xd = NULL;
    cudnnFilterDescriptor_t wd = NULL;
    int y[8] = {-7, -7, -7, -7, -7, -7, -7, -7};
    gd_setup("x", lib.CreateTensorDescriptor(&xd));
    gd_setup("w", lib.CreateFilterDescriptor(&wd));
    gd_setup("setx", lib.SetTensorNdDescriptorEx(
                         xd, wformat == 2 ? CUDNN_TENSOR_NCHW_VECT_C : CUDNN_TENSOR_NCHW,
                         (cudnnDataType_t)xtype, n, x));
    gd_setup("setw", lib.SetFilterNdDescriptor(wd, (cudnnDataType_t)wtype,
                                               (cudnnTensorFormat_t)wformat, n, w));
    gd_setup("setc", lib.SetConvolutionNdDescriptor(c, n - 2, p, s, l, CUDNN_CROSS_CORRELATION,
                                                    CUDNN_DATA_FLOAT));
    gd_setup("setg", lib.SetConvolutionGroupCount(c, g));
    if (gd_status("dim4",
                  lib.GetConvolution2dForwardOutputDim(c, xd, wd, y, y + 1, y + 2, y + 3)) == 0)
        gd_ints("y4", 4, y);
    if (gd_status("dimn", lib.GetConvolutionNdForwardOutputDim(c, xd, wd, n, y)) == 0)
        gd_ints("yn", n, y);
    lib.DestroyTensorDescriptor(xd);
    lib.DestroyFilterDescriptor(wd);
    lib.DestroyConvolutionDescriptor(c);
}

static void output_dims(void)
{
    static const struct {
        const char *name;
        int n, x[6], w[6], p[4], s[4], l[4], g;
    } rows[] = {
        {"plain", 4, {2, 3, 8, 9}, {4, 3, 3, 3}, {0, 0}, {1, 1}, {1, 1}, 1},
        {"same", 4, {2, 3, 8, 9}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
        {"channels", 4, {2, 3, 8, 9}, {4, 5, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
        {"groups", 4, {2, 6, 8, 9}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
        {"groups_c", 4, {2, 7, 8, 9}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
        {"groups_k", 4, {2, 6, 8, 9}, {5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
        {"depthwise", 4, {2, 6, 8, 9}, {12, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 6},
        {"too_small", 4, {2, 3, 2, 2}, {4, 3, 5, 5}, {0, 0}, {1, 1}, {1, 1}, 1},
        {"barely", 4, {2, 3, 2, 2}, {4, 3, 5, 5}, {2, 2}, {1, 1}, {1, 1}, 1},
        {"zero_out", 4, {2, 3, 4, 4}, {4, 3, 5, 5}, {0, 0}, {1, 1}, {1, 1}, 1},
        {"zero_out_stride", 4, {2, 3, 3, 3}, {4, 3, 5, 5}, {0, 0}, {2, 2}, {1, 1}, 1},
        {"dilated", 4, {2, 3, 12, 13}, {4, 3, 3, 3}, {0, 0}, {1, 1}, {3, 4}, 1},
        {"dilated_out", 4, {2, 3, 6, 6}, {4, 3, 3, 3}, {0, 0}, {1, 1}, {4, 4}, 1},
        {"big_pad", 4, {1, 1, 1, 1}, {1, 1, 3, 3}, {7, 9}, {2, 3}, {1, 1}, 1},
        {"3d", 5, {1, 2, 5, 6, 7}, {3, 2, 2, 3, 3}, {1, 0, 2}, {1, 2, 3}, {2, 1, 1}, 1},
        {"4sp", 6, {1, 2, 5, 6, 7, 8}, {3, 2, 2, 3, 3, 1}, {0}, {1, 1, 1, 1}, {1, 1, 1, 1}, 1},
        {"1d", 3, {2, 3, 10}, {4, 3, 3}, {1}, {2}, {1}, 1},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_host_case("convdesc/out/%s", rows[i].name)) continue;
        ask(rows[i].n, rows[i].x, rows[i].w, rows[i].p, rows[i].s, rows[i].l, rows[i].g, 0, 0, 0);
        gd_end();
    }
    static const int kinds[][3] = {{0, 2, 0}, {2, 2, 1}, {3, 3, 1},
                                   {5, 5, 2}, {8, 8, 2}, {1, 1, 0}};
    for (int i = 0; i < GD_COUNT(kinds); i++) {
        if (!gd_host_case("convdesc/out/x_t%d/w_t%d_f%d", kinds[i][0], kinds[i][1], kinds[i][2]))
            continue;
        ask(4, DIMS(2, 32, 8, 9), DIMS(64, 32, 3, 3), DIMS(1, 1), DIMS(2, 1), DIMS(1, 1), 1,
            kinds[i][0], kinds[i][1], kinds[i][2]);
        gd_end();
    }
    for (int seed = 0; seed < 60; seed++) {
        if (!gd_host_case("convdesc/out/random%d", seed)) continue;
        uint64_t h = gd_hash("convdesc", "random");
        int r[16];
        for (int i = 0; i < 16; i++) r[i] = (int)(gd_mix(h, (uint64_t)(seed * 16 + i)) >> 33);
        int n = 4 + r[0] % 2, g = 1 + r[1] % 3, x[5], w[5], p[3], s[3], l[3];
        x[0] = 1 + r[2] % 4;
        w[1] = 1 + r[3] % 4;
        x[1] = w[1] * g;
        w[0] = g * (1 + r[4] % 4);
        for (int i = 0; i < 3; i++) {
            if (i < n - 2) {
                x[2 + i] = 1 + r[5 + i] % 20;
                w[2 + i] = 1 + r[8 + i] % 5;
            }
            p[i] = (r[11 + i] >> 4) % 4;
            s[i] = 1 + (r[11 + i] >> 8) % 3;
            l[i] = 1 + (r[11 + i] >> 12) % 3;
        }
        ask(n, x, w, p, s, l, g, 0, 0, 0);
        gd_end();
    }
}

void cases_convdesc(void)
{
    set2();
    setn();
    attributes();
    output_dims();
}
