/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: pooling descriptors and the output dims that they give.
 */
#include "golden.h"

static cudnnPoolingDescriptor_t create(void)
{
    cudnnPoolingDescriptor_t p = NULL;
    gd_setup("create", lib.CreatePoolingDescriptor(&p));
    return p;
}

static void note_pooling(cudnnPoolingDescriptor_t pd)
{
    cudnnPoolingMode_t mode = (cudnnPoolingMode_t)-7;
    cudnnNanPropagation_t nan = (cudnnNanPropagation_t)-7;
    int w[8] = {0}, p[8] = {0}, s[8] = {0}, n = -7;
    if (gd_status("get2",
                  lib.GetPooling2dDescriptor(pd, &mode, &nan, w, w + 1, p, p + 1, s, s + 1)) == 0) {
        gd_int("mode", mode);
        gd_int("nan", nan);
        gd_ints("window", 2, w);
        gd_ints("pad", 2, p);
        gd_ints("stride", 2, s);
    }
    if (gd_status("getn", lib.GetPoolingNdDescriptor(pd, 6, &mode, &nan, &n, w, p, s)) == 0) {
        int m = n < 0 || n > 6 ? 6 : n;
        gd_int("n", n);
        gd_int("moden", mode);
        gd_ints("windown", m, w);
        gd_ints("padn", m, p);
        gd_ints("striden", m, s);
    }
}

static void set(void)
{
    static const int rows[][6] = {{2, 2, 0, 0, 2, 2},  {3, 5, 1, 2, 2, 1},    {1, 1, 0, 0, 1, 1},
                                  {2, 2, 2, 2, 1, 1},  {2, 2, 5, 5, 1, 1},    {0, 2, 0, 0, 1, 1},
                                  {2, 0, 0, 0, 1, 1},  {2, 2, -1, 0, 1, 1},   {2, 2, 0, 0, 0, 1},
                                  {2, 2, 0, 0, 1, -1}, {300, 300, 0, 0, 1, 1}};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        const int *r = rows[i];
        if (!gd_host_case("poolingdesc/set2d/%d,%d,%d,%d,%d,%d", r[0], r[1], r[2], r[3], r[4],
                          r[5]))
            continue;
        cudnnPoolingDescriptor_t p = create();
        if (gd_status("set", lib.SetPooling2dDescriptor(p, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN,
                                                        r[0], r[1], r[2], r[3], r[4], r[5])) == 0)
            note_pooling(p);
        gd_status("destroy", lib.DestroyPoolingDescriptor(p));
        gd_end();
    }
    for (int mode = -1; mode <= 4; mode++) {
        for (int nan = -1; nan <= 2; nan++) {
            if (!gd_host_case("poolingdesc/set2d/mode%d/nan%d", mode, nan)) continue;
            cudnnPoolingDescriptor_t p = create();
            if (gd_status("set", lib.SetPooling2dDescriptor(p, (cudnnPoolingMode_t)mode,
                                                            (cudnnNanPropagation_t)nan, 2, 2, 0, 0,
                                                            2, 2)) == 0)
                note_pooling(p);
            lib.DestroyPoolingDescriptor(p);
            gd_end();
        }
    }
    for (int n = -1; n < 9; n++) {
        if (gd_host_case("poolingdesc/setnd/%d", n)) {
            cudnnPoolingDescriptor_t p = create();
            if (gd_status("set", lib.SetPoolingNdDescriptor(
                                     p, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                     CUDNN_NOT_PROPAGATE_NAN, n, DIMS(2, 3, 4, 2, 2, 2, 2, 2, 2),
                                     DIMS(0, 1, 2, 0, 0, 0, 0, 0, 0),
                                     DIMS(1, 2, 3, 1, 1, 1, 1, 1, 1))) == 0)
                note_pooling(p);
            lib.DestroyPoolingDescriptor(p);
            gd_end();
        }
        if (gd_host_case("poolingdesc/getnd/want%d", n)) {
            cudnnPoolingDescriptor_t p = create();
            cudnnPoolingMode_t mode = (cudnnPoolingMode_t)-7;
            cudnnNanPropagation_t nan = (cudnnNanPropagation_t)-7;
            int w[16], q[16], s[16], got = -7;
            for (int i = 0; i < 16; i++) w[i] = q[i] = s[i] = -7;
            gd_setup("set",
                     lib.SetPoolingNdDescriptor(p, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3,
                                                DIMS(2, 3, 4), DIMS(0, 1, 2), DIMS(1, 2, 3)));
            gd_status("get", lib.GetPoolingNdDescriptor(p, n, &mode, &nan, &got, w, q, s));
            gd_int("n", got);
            gd_int("mode", mode);
            gd_ints("window", 8, w);
            gd_ints("pad", 8, q);
            gd_ints("stride", 8, s);
            lib.DestroyPoolingDescriptor(p);
            gd_end();
        }
    }
    if (gd_host_case("poolingdesc/fresh")) {
        cudnnPoolingDescriptor_t p = create();
        note_pooling(p);
        lib.DestroyPoolingDescriptor(p);
        gd_end();
    }
}

static void ask(int n, const int *x, const int *w, const int *p, const int *s)
{
    cudnnPoolingDescriptor_t pd = create();
    cudnnTensorDescriptor_t xd = NULL;
    int y[8] = {-7, -7, -7, -7, -7, -7, -7, -7};
    gd_setup("x", lib.CreateTensorDescriptor(&xd));
    gd_setup("setx", lib.SetTensorNdDescriptorEx(xd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, x));
    gd_setup("set", lib.SetPoolingNdDescriptor(pd, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, n - 2, w,
                                               p, s));
    if (gd_status("dim4", lib.GetPooling2dForwardOutputDim(pd, xd, y, y + 1, y + 2, y + 3)) == 0)
        gd_ints("y4", 4, y);
    if (gd_status("dimn", lib.GetPoolingNdForwardOutputDim(pd, xd, n, y)) == 0) gd_ints("yn", n, y);
    lib.DestroyTensorDescriptor(xd);
    lib.DestroyPoolingDescriptor(pd);
}

void cases_poolingdesc(void)
{
    set();
    static const struct {
        const char *name;
        int n, x[5], w[3], p[3], s[3];
    } rows[] = {
        {"plain", 4, {2, 3, 8, 9}, {2, 2}, {0, 0}, {2, 2}},
        {"pad", 4, {2, 3, 8, 9}, {3, 3}, {1, 1}, {2, 2}},
        {"pad_is_window", 4, {2, 3, 8, 9}, {2, 2}, {2, 2}, {2, 2}},
        {"pad_over_window", 4, {2, 3, 8, 9}, {2, 2}, {3, 3}, {1, 1}},
        {"global", 4, {2, 3, 8, 9}, {8, 9}, {0, 0}, {1, 1}},
        {"window_over", 4, {2, 3, 4, 4}, {5, 5}, {0, 0}, {1, 1}},
        {"window_far_over", 4, {2, 3, 2, 2}, {9, 9}, {0, 0}, {2, 2}},
        {"stride_over", 4, {2, 3, 7, 7}, {2, 2}, {0, 0}, {9, 9}},
        {"3d", 5, {1, 2, 5, 6, 7}, {2, 3, 2}, {1, 0, 1}, {1, 2, 3}},
        {"1d", 3, {1, 2, 9}, {2}, {0}, {2}},
        {"mixed", 5, {1, 2, 1, 1, 7}, {1, 1, 3}, {0, 0, 1}, {1, 1, 2}},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_host_case("poolingdesc/out/%s", rows[i].name)) continue;
        ask(rows[i].n, rows[i].x, rows[i].w, rows[i].p, rows[i].s);
        gd_end();
    }
    for (int seed = 0; seed < 30; seed++) {
        if (!gd_host_case("poolingdesc/out/random%d", seed)) continue;
        uint64_t h = gd_hash("poolingdesc", "random");
        int n = 4 + seed % 2, x[5] = {2, 3}, w[3], p[3], s[3];
        for (int i = 0; i < 3; i++) {
            uint64_t r = gd_mix(h, (uint64_t)(seed * 4 + i));
            if (i < n - 2) x[2 + i] = 1 + (int)(r % 17);
            w[i] = 1 + (int)(r >> 8) % 4;
            if (w[i] < 1) w[i] = 2;
            p[i] = (int)(r >> 40 & 255) % w[i];
            s[i] = 1 + (int)(r >> 50 & 255) % 4;
        }
        ask(n, x, w, p, s);
        gd_end();
    }
    if (gd_host_case("poolingdesc/out/dims_mismatch")) {
        cudnnPoolingDescriptor_t pd = create();
        cudnnTensorDescriptor_t xd = NULL;
        int y[8] = {0};
        lib.CreateTensorDescriptor(&xd);
        gd_setup("setx", lib.SetTensorNdDescriptorEx(xd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5,
                                                     DIMS(1, 2, 5, 6, 7)));
        gd_setup("set", lib.SetPooling2dDescriptor(pd, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2,
                                                   0, 0, 2, 2));
        gd_status("dimn", lib.GetPoolingNdForwardOutputDim(pd, xd, 5, y));
        gd_status("dimn4", lib.GetPoolingNdForwardOutputDim(pd, xd, 4, y));
        lib.DestroyTensorDescriptor(xd);
        lib.DestroyPoolingDescriptor(pd);
        gd_end();
    }
}
