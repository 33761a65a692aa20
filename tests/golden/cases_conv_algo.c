/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: every algorithm enumerator of the three directions, invalid ones too; the counts and
 * results of Get and Find; too little workspace.
 */
#include "conv.h"

#include <stdio.h>
#include <string.h>

#define F32 CUDNN_DATA_FLOAT
#define F16 CUDNN_DATA_HALF

static const struct conv problems[] = {
    {"3x3p1", 2, 2, 8, {8, 8}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"5x5", 2, 1, 4, {10, 10}, 4, {5, 5}, {2, 2}, {1, 1}, {1, 1}, 1},
    {"1x1", 2, 2, 8, {6, 6}, 8, {1, 1}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"3x3s2", 2, 1, 4, {9, 9}, 4, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 1},
    {"3x3d2", 2, 1, 4, {9, 9}, 4, {3, 3}, {2, 2}, {1, 1}, {2, 2}, 1},
    {"g2", 2, 1, 8, {6, 6}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"3d", 3, 1, 4, {4, 6, 6}, 4, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1},
};

static const struct {
    const char *name;
    cudnnDataType_t type, acc;
    enum gd_layout layout;
} kinds[] = {{"f32", F32, F32, GD_NCHW},
             {"f16", F16, F32, GD_NCHW},
             {"f16_nhwc", F16, F32, GD_NHWC},
             {"f32_nhwc", F32, F32, GD_NHWC},
             {"f64", CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, GD_NCHW}};

static struct conv_how kind_how(int k)
{
    return (struct conv_how){.x = kinds[k].type,
                             .w = kinds[k].type,
                             .y = kinds[k].type,
                             .acc = kinds[k].acc,
                             .layout = kinds[k].layout,
                             .wlayout = kinds[k].layout,
                             .mode = CUDNN_CROSS_CORRELATION,
                             .alpha = 1,
                             .algo = -1};
}

/* FFT and Winograd round in the transformed domain: their error grows by the norms of the
 * transforms (4x4 output tiles of Winograd: about 10^2; FFT of 32: log2(32) stages). */
static double growth(int dir, int algo)
{
    static const double table[3][9] = {{1, 1, 1, 1, 16, 16, 128, 128, 1},
                                       {1, 1, 16, 16, 128, 128, 1},
                                       {1, 1, 16, 1, 128, 128, 16, 1}};
    return algo < 0 || algo > conv_algo_count[dir] ? 1 : table[dir][algo];
}

static void every_algo(void)
{
    for (int dir = 0; dir < 3; dir++) {
        for (int i = 0; i < GD_COUNT(problems); i++) {
            for (int k = 0; k < (i < 2 ? GD_COUNT(kinds) : 1); k++) {
                for (int algo = 0; algo <= conv_algo_count[dir]; algo++) {
                    if (!gd_case("conv_algo/%s/%s/%s/algo%d", conv_dir_names[dir], problems[i].name,
                                 kinds[k].name, algo))
                        continue;
                    struct conv_how how = kind_how(k);
                    how.algo = algo;
                    how.growth = growth(dir, algo);
                    conv_run(dir, &problems[i], &how);
                    gd_end();
                }
            }
        }
    }
}

struct set {
    struct gd_tens *x, *w, *y;
    cudnnConvolutionDescriptor_t d;
};

static struct set prepare(int problem, int k)
{
    struct conv_how how = kind_how(k);
    struct set s;
    int nd, x[5], w[5], y[5];
    conv_dims(&problems[problem], &nd, x, w, y);
    s.x = gd_tens("x", how.x, how.layout, nd, x);
    s.w = gd_filter("w", how.w, how.wlayout, nd, w);
    s.y = gd_tens("y", how.y, how.layout, nd, y);
    s.d = conv_desc(&problems[problem], &how);
    return s;
}

static void counts(void)
{
    if (gd_case("conv_algo/max_count")) {
        int n[3] = {-7, -7, -7};
        cudnnHandle_t h = gd_handle();
        gd_status("fwd", lib.GetConvolutionForwardAlgorithmMaxCount(h, n));
        gd_status("dgrad", lib.GetConvolutionBackwardDataAlgorithmMaxCount(h, n + 1));
        gd_status("wgrad", lib.GetConvolutionBackwardFilterAlgorithmMaxCount(h, n + 2));
        gd_ints("counts", 3, n);
        gd_end();
    }
    static const int wanted[] = {-1, 0, 1, 3, 8, 20};
    for (int i = 0; i < GD_COUNT(problems); i++) {
        for (int k = 0; k < (i ? 1 : GD_COUNT(kinds)); k++) {
            for (int j = 0; j < GD_COUNT(wanted); j++) {
                if ((i || k) && wanted[j] != 20) continue;
                for (int find = 0; find < 2; find++) {
                    if (find && (i || wanted[j] < 1)) continue;
                    if (!gd_case("conv_algo/%s/%s/%s/want%d", find ? "find" : "get",
                                 problems[i].name, kinds[k].name, wanted[j]))
                        continue;
                    cudnnHandle_t h = gd_handle();
                    struct set s = prepare(i, k);
                    cudnnConvolutionFwdAlgoPerf_t f[24];
                    cudnnConvolutionBwdDataAlgoPerf_t d[24];
                    cudnnConvolutionBwdFilterAlgoPerf_t w[24];
                    int n[3] = {-7, -7, -7};
                    memset(f, 0, sizeof f);
                    memset(d, 0, sizeof d);
                    memset(w, 0, sizeof w);
                    gd_status("fwd",
                              (find ? lib.FindConvolutionForwardAlgorithm
                                    : lib.GetConvolutionForwardAlgorithm_v7)(
                                  h, s.x->desc, s.w->filter, s.d, s.y->desc, wanted[j], n, f));
                    gd_status("dgrad",
                              (find ? lib.FindConvolutionBackwardDataAlgorithm
                                    : lib.GetConvolutionBackwardDataAlgorithm_v7)(
                                  h, s.w->filter, s.y->desc, s.d, s.x->desc, wanted[j], n + 1, d));
                    gd_status("wgrad",
                              (find ? lib.FindConvolutionBackwardFilterAlgorithm
                                    : lib.GetConvolutionBackwardFilterAlgorithm_v7)(
                                  h, s.x->desc, s.y->desc, s.d, s.w->filter, wanted[j], n + 2, w));
                    if (wanted[j] < 10) gd_ints("returned", 3, n);
                    gd_note("n_fwd", n[0]);
                    gd_note("n_dgrad", n[1]);
                    gd_note("n_wgrad", n[2]);
                    if (n[0] > 0) {
                        gd_status("best", f[0].status);
                        gd_note("best_algo", f[0].algo);
                        gd_note("memory", (long long)f[0].memory);
                        gd_note("math", f[0].mathType);
                    }
                    lib.DestroyConvolutionDescriptor(s.d);
                    gd_end();
                }
            }
        }
    }
}

/* A workspace that is missing or one byte short is refused and the output stays as it was. */
static void short_workspace(void)
{
    for (int algo = 0; algo < 8; algo++) {
        if (!gd_case("conv_algo/short_workspace/algo%d", algo)) continue;
        struct set s = prepare(0, 0);
        size_t bytes = 0;
        gd_fill(s.x, GD_UNIT);
        gd_fill(s.w, GD_UNIT);
        cudnnStatus_t asked = lib.GetConvolutionForwardWorkspaceSize(
            gd_handle(), s.x->desc, s.w->filter, s.d, s.y->desc, (cudnnConvolutionFwdAlgo_t)algo,
            &bytes);
        gd_status("ask", asked);
        gd_size("ws", bytes);
        if (asked == 0 && bytes) {
            void *ws = gd_workspace(bytes - 1);
            cudnnStatus_t got =
                lib.ConvolutionForward(gd_handle(), gd_scalar(F32, 1), s.x->desc, s.x->p,
                                       s.w->filter, s.w->p, s.d, (cudnnConvolutionFwdAlgo_t)algo,
                                       ws, bytes - 1, gd_scalar(F32, 0), s.y->desc, s.y->p);
            gd_note("short", got);
            got = lib.ConvolutionForward(gd_handle(), gd_scalar(F32, 1), s.x->desc, s.x->p,
                                         s.w->filter, s.w->p, s.d, (cudnnConvolutionFwdAlgo_t)algo,
                                         NULL, 0, gd_scalar(F32, 0), s.y->desc, s.y->p);
            gd_note("none", got);
        }
        lib.DestroyConvolutionDescriptor(s.d);
        gd_end();
    }
}

/* Descriptors that do not belong together. */
static void mismatches(void)
{
    static const struct {
        const char *name;
        int x[4], w[4], y[4], xt, wt, yt;
    } rows[] = {
        {"c", {2, 5, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 0, 0, 0},
        {"k", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 5, 6, 6}, 0, 0, 0},
        {"n", {2, 3, 6, 6}, {4, 3, 3, 3}, {3, 4, 6, 6}, 0, 0, 0},
        {"p", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 5, 6}, 0, 0, 0},
        {"types", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 0, 2, 0},
        {"types_y", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 0, 0, 2},
        {"half_in_float_out", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 2, 2, 0},
        {"int32", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 4, 4, 4},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        for (int dir = 0; dir < 3; dir++) {
            if (!gd_case("conv_algo/mismatch/%s/%s", conv_dir_names[dir], rows[i].name)) continue;
            struct conv_how how = kind_how(0);
            struct gd_tens *x = gd_tens("x", (cudnnDataType_t)rows[i].xt, GD_NCHW, 4, rows[i].x);
            struct gd_tens *w = gd_filter("w", (cudnnDataType_t)rows[i].wt, GD_NCHW, 4, rows[i].w);
            struct gd_tens *y = gd_tens("y", (cudnnDataType_t)rows[i].yt, GD_NCHW, 4, rows[i].y);
            cudnnConvolutionDescriptor_t d = conv_desc(&problems[0], &how);
            const void *one = gd_scalar(F32, 1), *zero = gd_scalar(F32, 0);
            cudnnHandle_t h = gd_handle();
            size_t bytes = 0;
            void *ws = gd_alloc(1 << 20);
            gd_fill(x, GD_UNIT);
            gd_fill(w, GD_UNIT);
            gd_fill(y, GD_UNIT);
            if (dir == CONV_FWD) {
                gd_status("ask", lib.GetConvolutionForwardWorkspaceSize(h, x->desc, w->filter, d,
                                                                        y->desc, 0, &bytes));
                gd_status("run", lib.ConvolutionForward(h, one, x->desc, x->p, w->filter, w->p, d,
                                                        0, ws, 1 << 20, zero, y->desc, y->p));
            } else if (dir == CONV_DGRAD) {
                gd_status("ask", lib.GetConvolutionBackwardDataWorkspaceSize(
                                     h, w->filter, y->desc, d, x->desc, 1, &bytes));
                gd_status("run",
                          lib.ConvolutionBackwardData(h, one, w->filter, w->p, y->desc, y->p, d, 1,
                                                      ws, 1 << 20, zero, x->desc, x->p));
            } else {
                gd_status("ask", lib.GetConvolutionBackwardFilterWorkspaceSize(
                                     h, x->desc, y->desc, d, w->filter, 1, &bytes));
                gd_status("run",
                          lib.ConvolutionBackwardFilter(h, one, x->desc, x->p, y->desc, y->p, d, 1,
                                                        ws, 1 << 20, zero, w->filter, w->p));
            }
            lib.DestroyConvolutionDescriptor(d);
            gd_end();
        }
    }
}

void cases_conv_algo(void)
{
    every_algo();
    counts();
    short_workspace();
    mismatches();
}
