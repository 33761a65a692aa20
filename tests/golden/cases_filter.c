/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: filter descriptors and tensor transform descriptors.
 */
#include "golden.h"

static void note_filter(cudnnFilterDescriptor_t f)
{
    cudnnDataType_t type = (cudnnDataType_t)-7;
    cudnnTensorFormat_t format = (cudnnTensorFormat_t)-7;
    int d[8] = {-7, -7, -7, -7}, n = -7;
    size_t size = 77;
    if (gd_status("get4", lib.GetFilter4dDescriptor(f, &type, &format, d, d + 1, d + 2, d + 3)) ==
        0) {
        gd_int("type", type);
        gd_int("format", format);
        gd_ints("dims", 4, d);
    }
    int dn[8] = {0};
    if (gd_status("getn", lib.GetFilterNdDescriptor(f, 8, &type, &format, &n, dn)) == 0) {
        gd_int("n", n);
        gd_ints("dimsn", n > 8 || n < 0 ? 8 : n, dn);
    }
    gd_status("size", lib.GetFilterSizeInBytes(f, &size));
    gd_int("bytes", (long long)size);
}

static void filter4(void)
{
    static const int dims[][4] = {{8, 32, 3, 5},  {1, 1, 1, 1},         {5, 3, 7, 1},
                                  {0, 1, 1, 1},   {1, 0, 1, 1},         {1, 1, 0, 1},
                                  {1, 1, 1, 0},   {-1, 1, 1, 1},        {4, 6, 3, 3},
                                  {32, 64, 1, 1}, {65536, 65536, 1, 1}, {65536, 8192, 2, 2}};
    for (int type = -1; type <= 22; type++) {
        for (int format = -1; format <= 3; format++) {
            int n = type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT8x4 ? GD_COUNT(dims) : 1;
            for (int i = 0; i < n; i++) {
                const int *d = dims[i];
                if (!gd_host_case("filter/set4d/t%d/f%d/%dx%dx%dx%d", type, format, d[0], d[1],
                                  d[2], d[3]))
                    continue;
                cudnnFilterDescriptor_t f = NULL;
                gd_setup("create", lib.CreateFilterDescriptor(&f));
                if (gd_status("set", lib.SetFilter4dDescriptor(f, (cudnnDataType_t)type,
                                                               (cudnnTensorFormat_t)format, d[0],
                                                               d[1], d[2], d[3])) == 0)
                    note_filter(f);
                gd_status("destroy", lib.DestroyFilterDescriptor(f));
                gd_end();
            }
        }
    }
}

static void filter_nd(void)
{
    static const struct {
        const char *name;
        int n, d[10];
    } rows[] = {
        {"0d", 0, {0}},
        {"1d", 1, {3}},
        {"2d", 2, {3, 4}},
        {"3d", 3, {3, 4, 5}},
        {"4d", 4, {3, 4, 5, 6}},
        {"5d", 5, {3, 4, 5, 6, 7}},
        {"6d", 6, {1, 2, 3, 4, 5, 6}},
        {"7d", 7, {1, 1, 2, 3, 4, 5, 6}},
        {"8d", 8, {1, 1, 1, 2, 3, 4, 5, 6}},
        {"9d", 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
        {"5d_zero", 5, {3, 0, 5, 6, 7}},
        {"5d_negative", 5, {3, 4, 5, -6, 7}},
        {"neg", -2, {1}},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        for (int format = 0; format < 3; format++) {
            if (!gd_host_case("filter/setnd/f%d/%s", format, rows[i].name)) continue;
            cudnnFilterDescriptor_t f = NULL;
            gd_setup("create", lib.CreateFilterDescriptor(&f));
            if (gd_status("set", lib.SetFilterNdDescriptor(
                                     f, format == 2 ? CUDNN_DATA_INT8x4 : CUDNN_DATA_HALF,
                                     (cudnnTensorFormat_t)format, rows[i].n, rows[i].d)) == 0)
                note_filter(f);
            gd_status("destroy", lib.DestroyFilterDescriptor(f));
            gd_end();
        }
    }
    for (int want = -1; want < 9; want++) {
        if (!gd_host_case("filter/getnd/want%d", want)) continue;
        cudnnFilterDescriptor_t f = NULL;
        cudnnDataType_t type = (cudnnDataType_t)-7;
        cudnnTensorFormat_t format = (cudnnTensorFormat_t)-7;
        int d[16], n = -7;
        for (int i = 0; i < 16; i++) d[i] = -7;
        gd_setup("create", lib.CreateFilterDescriptor(&f));
        gd_setup("set",
                 lib.SetFilter4dDescriptor(f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 8, 3, 5, 7));
        gd_status("get", lib.GetFilterNdDescriptor(f, want, &type, &format, &n, d));
        gd_int("type", type);
        gd_int("format", format);
        gd_int("n", n);
        gd_ints("dims", 10, d);
        lib.DestroyFilterDescriptor(f);
        gd_end();
    }
    if (gd_host_case("filter/fresh")) {
        cudnnFilterDescriptor_t f = NULL;
        gd_setup("create", lib.CreateFilterDescriptor(&f));
        note_filter(f);
        lib.DestroyFilterDescriptor(f);
        gd_end();
    }
}

static void transforms(void)
{
    static const struct {
        const char *name;
        unsigned n;
        int format, direction, before[8], after[8];
        unsigned fold[8];
        bool no_before, no_after, no_fold;
    } rows[] = {
        {"plain4", 4, 0, 0, {0}, {0}, {1, 1}, 0, 0, 0},
        {"pad4", 4, 1, 0, {0, 1, 2, 3}, {0, 3, 2, 1}, {1, 1}, 0, 0, 0},
        {"fold4", 4, 0, 0, {0}, {0}, {2, 3}, 0, 0, 0},
        {"unfold4", 4, 0, 1, {0}, {0}, {2, 2}, 0, 0, 0},
        {"null_all4", 4, 1, 0, {0}, {0}, {0}, 1, 1, 1},
        {"null_fold4", 4, 0, 0, {0, 1, 1, 1}, {0, 1, 1, 1}, {0}, 0, 0, 1},
        {"pad5", 5, 0, 0, {0, 1, 0, 2, 1}, {0, 0, 1, 0, 1}, {1, 1, 1}, 0, 0, 0},
        {"vect4", 4, 2, 0, {0}, {0}, {1, 1}, 0, 0, 0},
        {"n0", 0, 0, 0, {0}, {0}, {0}, 0, 0, 0},
        {"n2", 2, 0, 0, {0}, {0}, {0}, 0, 0, 0},
        {"n3", 3, 0, 0, {0}, {0}, {1}, 0, 0, 0},
        {"n8", 8, 0, 0, {0}, {0}, {1, 1, 1, 1, 1, 1}, 0, 0, 0},
        {"n9", 9, 0, 0, {0}, {0}, {1, 1, 1, 1, 1, 1}, 1, 1, 1},
        {"bad_format", 4, 5, 0, {0}, {0}, {1, 1}, 0, 0, 0},
        {"bad_direction", 4, 0, 7, {0}, {0}, {1, 1}, 0, 0, 0},
        {"fold0", 4, 0, 0, {0}, {0}, {0, 1}, 0, 0, 0},
        {"negative", 4, 0, 0, {0, -1, 0, 0}, {0}, {1, 1}, 0, 0, 0},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_host_case("transform/%s", rows[i].name)) continue;
        cudnnTensorTransformDescriptor_t t = NULL;
        cudnnTensorDescriptor_t x = NULL, y = NULL;
        cudnnTensorFormat_t format = (cudnnTensorFormat_t)7;
        cudnnFoldingDirection_t direction = (cudnnFoldingDirection_t)7;
        int before[8] = {0}, after[8] = {0};
        unsigned fold[8] = {0};
        size_t bytes = 77;
        gd_status("create", lib.CreateTensorTransformDescriptor(&t));
        if (gd_status("set", lib.SetTensorTransformDescriptor(
                                 t, rows[i].n, (cudnnTensorFormat_t)rows[i].format,
                                 rows[i].no_before ? NULL : rows[i].before,
                                 rows[i].no_after ? NULL : rows[i].after,
                                 rows[i].no_fold ? NULL : rows[i].fold,
                                 (cudnnFoldingDirection_t)rows[i].direction)) == 0) {
            unsigned n = rows[i].n > 8 ? 8 : rows[i].n;
            if (gd_status("get", lib.GetTensorTransformDescriptor(t, n, &format, before, after,
                                                                  fold, &direction)) == 0) {
                gd_int("format", format);
                gd_int("direction", direction);
                gd_ints("before", (int)n, before);
                gd_ints("after", (int)n, after);
                gd_ints("fold", n > 2 ? (int)n - 2 : 0, (const int *)fold);
            }
            lib.CreateTensorDescriptor(&x);
            lib.CreateTensorDescriptor(&y);
            static const int dims[] = {2, 8, 6, 12, 4, 2, 2, 2};
            gd_setup("x", lib.SetTensorNdDescriptorEx(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                                      (int)n, dims));
            if (gd_status("dest", lib.InitTransformDest(t, x, y, &bytes)) == 0) {
                int d[8] = {0}, s[8] = {0}, got = 0;
                cudnnDataType_t type;
                gd_int("bytes", (long long)bytes);
                gd_status("gety", lib.GetTensorNdDescriptor(y, 8, &type, &got, d, s));
                gd_ints("dims", got, d);
                gd_ints("strides", got, s);
            }
            lib.DestroyTensorDescriptor(x);
            lib.DestroyTensorDescriptor(y);
        }
        gd_status("destroy", lib.DestroyTensorTransformDescriptor(t));
        gd_end();
    }
}

void cases_filter(void)
{
    filter4();
    filter_nd();
    transforms();
}
