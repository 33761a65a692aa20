/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: tensor descriptors by every setter, in every format and type, good and bad dims and
 * strides; what the getters then say, and the size in bytes.
 */
#include "golden.h"

#include <stdio.h>
#include <string.h>

static void note_tensor(cudnnTensorDescriptor_t t)
{
    cudnnDataType_t type = (cudnnDataType_t)-7;
    int d[8] = {-7, -7, -7, -7}, s[8] = {-7, -7, -7, -7}, n = -7;
    size_t size = 77;
    if (gd_status("get4", lib.GetTensor4dDescriptor(t, &type, d, d + 1, d + 2, d + 3, s, s + 1,
                                                    s + 2, s + 3)) == 0) {
        gd_int("type", type);
        gd_ints("dims", 4, d);
        gd_ints("strides", 4, s);
    }
    int dn[8] = {0}, sn[8] = {0};
    if (gd_status("getn", lib.GetTensorNdDescriptor(t, 8, &type, &n, dn, sn)) == 0) {
        gd_int("typen", type);
        gd_int("n", n);
        gd_ints("dimsn", n > 8 || n < 0 ? 8 : n, dn);
        gd_ints("stridesn", n > 8 || n < 0 ? 8 : n, sn);
    }
    gd_status("size", lib.GetTensorSizeInBytes(t, &size));
    gd_int("bytes", (long long)size);
}

static cudnnTensorDescriptor_t create(void)
{
    cudnnTensorDescriptor_t t = NULL;
    gd_setup("create", lib.CreateTensorDescriptor(&t));
    return t;
}

static void set4(void)
{
    static const int dims[][4] = {
        {2, 32, 5, 7},         {1, 1, 1, 1},          {3, 5, 7, 11},        {1, 4, 1, 1},
        {1, 64, 3, 3},         {0, 1, 1, 1},          {1, 0, 1, 1},         {1, 1, 0, 1},
        {1, 1, 1, 0},          {-1, 2, 3, 4},         {1, -2, 3, 4},        {1, 2, -3, 4},
        {1, 2, 3, -4},         {65536, 4, 64, 128},   {32768, 4, 128, 128}, {65536, 65536, 1, 1},
        {2147483647, 1, 1, 1}, {1, 2147483647, 2, 1}, {1, 3, 4, 5},         {1, 6, 4, 5},
        {2, 33, 1, 2}};
    for (int type = -1; type <= 22; type++) {
        for (int format = -1; format <= 3; format++) {
            int n =
                type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_INT8x32
                    ? GD_COUNT(dims)
                    : 1;
            if ((format < 0 || format > 2) && n > 1) n = 1;
            for (int i = 0; i < n; i++) {
                const int *d = dims[i];
                if (!gd_host_case("tensor/set4d/t%d/f%d/%dx%dx%dx%d", type, format, d[0], d[1],
                                  d[2], d[3]))
                    continue;
                cudnnTensorDescriptor_t t = create();
                if (gd_status("set", lib.SetTensor4dDescriptor(t, (cudnnTensorFormat_t)format,
                                                               (cudnnDataType_t)type, d[0], d[1],
                                                               d[2], d[3])) == 0)
                    note_tensor(t);
                gd_status("destroy", lib.DestroyTensorDescriptor(t));
                gd_end();
            }
        }
    }
}

static void set4_ex(void)
{
    static const struct {
        const char *name;
        int d[4], s[4];
    } rows[] = {
        {"packed", {2, 3, 4, 5}, {60, 20, 5, 1}},
        {"nhwc", {2, 3, 4, 5}, {60, 1, 15, 3}},
        {"gaps", {2, 3, 4, 5}, {100, 30, 7, 1}},
        {"wide", {2, 3, 4, 5}, {120, 40, 10, 2}},
        {"chwn", {2, 3, 4, 5}, {1, 40, 10, 2}},
        {"overlap_rows", {2, 3, 4, 5}, {60, 20, 3, 1}},
        {"overlap_images", {2, 3, 4, 5}, {20, 20, 5, 1}},
        {"broadcast_n", {2, 3, 4, 5}, {0, 20, 5, 1}},
        {"broadcast_w", {2, 3, 4, 5}, {60, 20, 5, 0}},
        {"all_zero", {2, 3, 4, 5}, {0, 0, 0, 0}},
        {"negative_w", {2, 3, 4, 5}, {60, 20, 5, -1}},
        {"negative_n", {2, 3, 4, 5}, {-60, 20, 5, 1}},
        {"ones", {1, 1, 1, 1}, {1, 1, 1, 1}},
        {"ones_odd", {1, 1, 1, 1}, {9, 8, 7, 6}},
        {"zero_dim", {2, 0, 4, 5}, {60, 20, 5, 1}},
        {"negative_dim", {2, 3, -4, 5}, {60, 20, 5, 1}},
        {"huge_span", {2, 3, 4, 5}, {2147483647, 20, 5, 1}},
        {"over_span", {4, 4, 4, 4}, {1073741824, 1073741824, 16, 1}},
    };
    static const int types[] = {CUDNN_DATA_FLOAT,
                                CUDNN_DATA_DOUBLE,
                                CUDNN_DATA_HALF,
                                CUDNN_DATA_INT8x4,
                                CUDNN_DATA_INT8,
                                -1,
                                22};
    for (int k = 0; k < GD_COUNT(types); k++) {
        for (int i = 0; i < (k < 2 ? GD_COUNT(rows) : 3); i++) {
            if (!gd_host_case("tensor/set4dex/t%d/%s", types[k], rows[i].name)) continue;
            const int *d = rows[i].d, *s = rows[i].s;
            cudnnTensorDescriptor_t t = create();
            if (gd_status("set",
                          lib.SetTensor4dDescriptorEx(t, (cudnnDataType_t)types[k], d[0], d[1],
                                                      d[2], d[3], s[0], s[1], s[2], s[3])) == 0)
                note_tensor(t);
            gd_status("destroy", lib.DestroyTensorDescriptor(t));
            gd_end();
        }
    }
}

static void set_nd(void)
{
    static const struct {
        const char *name;
        int n, d[10], s[10];
    } rows[] = {
        {"0d", 0, {0}, {0}},
        {"neg", -1, {1}, {1}},
        {"1d", 1, {7}, {1}},
        {"2d", 2, {3, 7}, {7, 1}},
        {"3d", 3, {2, 3, 7}, {21, 7, 1}},
        {"4d", 4, {2, 3, 7, 5}, {105, 35, 5, 1}},
        {"5d", 5, {2, 3, 4, 5, 6}, {360, 120, 30, 6, 1}},
        {"6d", 6, {2, 3, 4, 5, 6, 2}, {720, 240, 60, 12, 2, 1}},
        {"7d", 7, {2, 3, 2, 2, 2, 2, 2}, {96, 32, 16, 8, 4, 2, 1}},
        {"8d", 8, {2, 3, 2, 2, 2, 2, 2, 2}, {192, 64, 32, 16, 8, 4, 2, 1}},
        {"9d", 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
        {"5d_ndhwc", 5, {2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}},
        {"5d_gaps", 5, {2, 3, 4, 5, 6}, {800, 200, 45, 8, 1}},
        {"5d_zero_stride", 5, {2, 3, 4, 5, 6}, {0, 120, 30, 6, 1}},
        {"5d_zero_inner", 5, {2, 3, 4, 5, 6}, {360, 120, 30, 6, 0}},
        {"5d_negative_stride", 5, {2, 3, 4, 5, 6}, {360, 120, 30, 6, -1}},
        {"5d_zero_dim", 5, {2, 3, 0, 5, 6}, {360, 120, 30, 6, 1}},
        {"5d_negative_dim", 5, {2, 3, -4, 5, 6}, {360, 120, 30, 6, 1}},
        {"5d_overlap", 5, {2, 3, 4, 5, 6}, {30, 30, 7, 3, 1}},
        {"5d_large", 5, {1024, 64, 32, 32, 32}, {2097152, 32768, 1024, 32, 1}},
        {"5d_over", 5, {2048, 64, 32, 32, 32}, {2097152, 32768, 1024, 32, 1}},
    };
    static const int types[] = {CUDNN_DATA_FLOAT,  CUDNN_DATA_HALF,     CUDNN_DATA_INT64,
                                CUDNN_DATA_INT8x4, CUDNN_DATA_FP8_E4M3, 30};
    for (int k = 0; k < GD_COUNT(types); k++) {
        for (int i = 0; i < GD_COUNT(rows); i++) {
            if (k > 0 && i != 5 && i != 6) continue;
            for (int ex = 0; ex < 5; ex++) {
                if (ex == 2 && i == 3)
                    continue; /* 2-D NHWC: the recorded strides come from unset memory */
                if (!gd_host_case("tensor/setnd%s%d/t%d/%s", ex ? "ex" : "", ex ? ex - 1 : 0,
                                  types[k], rows[i].name))
                    continue;
                cudnnTensorDescriptor_t t = create();
                cudnnDataType_t type = (cudnnDataType_t)types[k];
                cudnnStatus_t s =
                    ex ? lib.SetTensorNdDescriptorEx(t, (cudnnTensorFormat_t)(ex - 1), type,
                                                     rows[i].n, rows[i].d)
                       : lib.SetTensorNdDescriptor(t, type, rows[i].n, rows[i].d, rows[i].s);
                if (gd_status("set", s) == 0) note_tensor(t);
                gd_status("destroy", lib.DestroyTensorDescriptor(t));
                gd_end();
            }
        }
    }
}

/* Getters asked for fewer or more dims than there are, or for nothing. */
static void getters(void)
{
    for (int n = -1; n <= 10; n++) {
        if (!gd_host_case("tensor/getnd/want%d", n)) continue;
        cudnnTensorDescriptor_t t = create();
        int d[16], s[16], got = -7;
        cudnnDataType_t type = (cudnnDataType_t)-7;
        for (int i = 0; i < 16; i++) d[i] = s[i] = -7;
        gd_status("set",
                  lib.SetTensor4dDescriptor(t, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 3, 4, 5));
        gd_status("get", lib.GetTensorNdDescriptor(t, n, &type, &got, d, s));
        gd_int("n", got);
        gd_int("type", type);
        gd_ints("dims", 10, d);
        gd_ints("strides", 10, s);
        gd_status("destroy", lib.DestroyTensorDescriptor(t));
        gd_end();
    }
    if (gd_host_case("tensor/fresh")) {
        cudnnTensorDescriptor_t t = create();
        note_tensor(t);
        gd_status("destroy", lib.DestroyTensorDescriptor(t));
        gd_end();
    }
    if (gd_host_case("tensor/set_again_after_failure")) {
        cudnnTensorDescriptor_t t = create();
        gd_status("good",
                  lib.SetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 5));
        gd_status("bad",
                  lib.SetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 9, -3, 4, 5));
        note_tensor(t);
        gd_status("destroy", lib.DestroyTensorDescriptor(t));
        gd_end();
    }
}

static void derive(void)
{
    static const struct {
        const char *name;
        int n, d[6];
    } rows[] = {{"4d", 4, {2, 3, 4, 5}},
                {"5d", 5, {2, 3, 4, 5, 6}},
                {"3d", 3, {2, 3, 4}},
                {"6d", 6, {2, 3, 4, 5, 6, 7}},
                {"1c", 4, {2, 1, 4, 5}}};
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8};
    for (int mode = -1; mode <= 3; mode++) {
        for (int k = 0; k < GD_COUNT(types); k++) {
            for (int i = 0; i < GD_COUNT(rows); i++) {
                for (int nhwc = 0; nhwc < 2; nhwc++) {
                    if ((k > 2 || mode < 0 || mode > 2) && (i || nhwc)) continue;
                    if (!gd_host_case("tensor/derive_bn/m%d/t%d/%s%s", mode, types[k], rows[i].name,
                                      nhwc ? "_nhwc" : ""))
                        continue;
                    cudnnTensorDescriptor_t x = create(), b = create();
                    gd_setup("x", lib.SetTensorNdDescriptorEx(
                                      x, nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                      (cudnnDataType_t)types[k], rows[i].n, rows[i].d));
                    if (gd_status("derive", lib.DeriveBNTensorDescriptor(
                                                b, x, (cudnnBatchNormMode_t)mode)) == 0)
                        note_tensor(b);
                    lib.DestroyTensorDescriptor(x);
                    lib.DestroyTensorDescriptor(b);
                    gd_end();
                }
            }
        }
    }
    for (int mode = 0; mode < 3; mode++) {
        for (int groups = 0; groups < 3; groups++) {
            if (!gd_host_case("tensor/derive_norm/m%d/g%d", mode, groups)) continue;
            cudnnTensorDescriptor_t x = create(), b = create(), m = create();
            gd_setup("x",
                     lib.SetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 2, 4, 3, 5));
            if (gd_status("derive", lib.DeriveNormTensorDescriptor(b, m, x, (cudnnNormMode_t)mode,
                                                                   groups)) == 0)
                note_tensor(b);
            lib.DestroyTensorDescriptor(x);
            lib.DestroyTensorDescriptor(b);
            lib.DestroyTensorDescriptor(m);
            gd_end();
        }
    }
}

static void reserve(void)
{
    static const int dims[][4] = {{1, 1, 1, 1}, {2, 3, 4, 5}, {7, 1, 1, 1}, {4, 8, 16, 16}};
    for (int i = 0; i < GD_COUNT(dims); i++) {
        for (int type = 0; type < 3; type++) {
            if (!gd_host_case("tensor/dropout_reserve/t%d/%d", type, i)) continue;
            cudnnTensorDescriptor_t x = create();
            size_t size = 77;
            gd_setup("x",
                     lib.SetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, (cudnnDataType_t)type,
                                               dims[i][0], dims[i][1], dims[i][2], dims[i][3]));
            gd_status("get", lib.DropoutGetReserveSpaceSize(x, &size));
            gd_size("bytes", size);
            lib.DestroyTensorDescriptor(x);
            gd_end();
        }
    }
}

void cases_tensor(void)
{
    set4();
    set4_ex();
    set_nd();
    getters();
    derive();
    reserve();
}
