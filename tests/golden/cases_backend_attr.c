/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: backend descriptors of convolution, pointwise, matmul and reduction and of their
 * operations: with everything set, with one attribute missing, of a wrong type or count, and with
 * operands that do not fit. Statuses only; no device.
 */
#include "backend.h"

#include <stdio.h>
#include <string.h>

/* An attribute and a good value of it. */
struct attr {
    int name, type, count;
    union {
        int64_t i64[4];
        int i32;
        float f32;
        double f64;
    } v;
};

#define I64(...)                                                                                   \
    {                                                                                              \
        .i64 = { __VA_ARGS__ }                                                                     \
    }
#define I32(x)                                                                                     \
    {                                                                                              \
        .i32 = (x)                                                                                 \
    }
#define F32(x)                                                                                     \
    {                                                                                              \
        .f32 = (x)                                                                                 \
    }
#define F64(x)                                                                                     \
    {                                                                                              \
        .f64 = (x)                                                                                 \
    }

static const struct attr conv_attrs[] = {
    {100, CUDNN_TYPE_DATA_TYPE, 1, I32(0)}, {101, CUDNN_TYPE_CONVOLUTION_MODE, 1, I32(1)},
    {102, CUDNN_TYPE_INT64, 2, I64(1, 1)},  {103, CUDNN_TYPE_INT64, 2, I64(1, 2)},
    {104, CUDNN_TYPE_INT64, 2, I64(1, 0)},  {105, CUDNN_TYPE_INT64, 2, I64(1, 1)},
    {106, CUDNN_TYPE_INT64, 1, I64(2)},
};
static const struct attr pointwise_attrs[] = {
    {0, CUDNN_TYPE_POINTWISE_MODE, 1, I32(100)}, {1, CUDNN_TYPE_DATA_TYPE, 1, I32(0)},
    {2, CUDNN_TYPE_NAN_PROPOGATION, 1, I32(1)},  {3, CUDNN_TYPE_DOUBLE, 1, F64(-1)},
    {4, CUDNN_TYPE_DOUBLE, 1, F64(6)},           {5, CUDNN_TYPE_DOUBLE, 1, F64(0.1)},
    {6, CUDNN_TYPE_DOUBLE, 1, F64(1)},           {7, CUDNN_TYPE_DOUBLE, 1, F64(1)},
    {8, CUDNN_TYPE_DOUBLE, 1, F64(1)},           {9, CUDNN_TYPE_INT64, 1, I64(1)},
};
static const struct attr matmul_attrs[] = {{1500, CUDNN_TYPE_DATA_TYPE, 1, I32(0)},
                                           {1503, CUDNN_TYPE_DOUBLE, 1, F64(0)}};
static const struct attr reduction_attrs[] = {{1600, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, I32(0)},
                                              {1601, CUDNN_TYPE_DATA_TYPE, 1, I32(0)}};

static const struct {
    const char *name;
    cudnnBackendDescriptorType_t type;
    int n;
    const struct attr *attrs;
} plain[] = {
    {"conv", CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, GD_COUNT(conv_attrs), conv_attrs},
    {"pointwise", CUDNN_BACKEND_POINTWISE_DESCRIPTOR, GD_COUNT(pointwise_attrs), pointwise_attrs},
    {"matmul", CUDNN_BACKEND_MATMUL_DESCRIPTOR, GD_COUNT(matmul_attrs), matmul_attrs},
    {"reduction", CUDNN_BACKEND_REDUCTION_DESCRIPTOR, GD_COUNT(reduction_attrs), reduction_attrs},
};

/* All attributes, but for one. */
static be_desc fill(int kind, int without)
{
    be_desc d = be_make(plain[kind].type);
    for (int i = 0; i < plain[kind].n; i++)
        if (i != without)
            be_set(d, plain[kind].attrs[i].name, plain[kind].attrs[i].type,
                   plain[kind].attrs[i].count, &plain[kind].attrs[i].v);
    return d;
}

static void plain_descriptors(void)
{
    for (int k = 0; k < GD_COUNT(plain); k++) {
        for (int i = -1; i < plain[k].n; i++) {
            int left_out = i < 0 ? -1 : plain[k].attrs[i].name;
            /* Without these the recorded answers come from memory that was never set. */
            if (left_out == CUDNN_ATTR_MATMUL_COMP_TYPE ||
                left_out == CUDNN_ATTR_REDUCTION_OPERATOR ||
                left_out == CUDNN_ATTR_REDUCTION_COMP_TYPE)
                continue;
            if (!gd_host_case("backend/%s/without%d", plain[k].name, left_out)) continue;
            be_desc d = fill(k, i);
            gd_status("finalize", lib.BackendFinalize(d));
            for (int j = 0; j < plain[k].n; j++) {
                const struct attr *a = &plain[k].attrs[j];
                char key[32];
                int64_t n = -7, v[4] = {0};
                snprintf(key, sizeof key, "get%d", a->name);
                gd_status(key, lib.BackendGetAttribute(d, (cudnnBackendAttributeName_t)a->name,
                                                       (cudnnBackendAttributeType_t)a->type,
                                                       a->count, &n, v));
                snprintf(key, sizeof key, "n%d", a->name);
                gd_int(key, n);
                snprintf(key, sizeof key, "v%d", a->name);
                gd_ints(key, 4, (const int *)v);
            }
            be_reset();
            gd_end();
        }
        for (int i = 0; i < plain[k].n; i++) {
            const struct attr *a = &plain[k].attrs[i];
            for (int type = 0; type <= 30; type++) {
                if (!gd_host_case("backend/%s/attr%d/as%d", plain[k].name, a->name, type)) continue;
                be_desc d = be_make(plain[k].type);
                gd_status("set", lib.BackendSetAttribute(d, (cudnnBackendAttributeName_t)a->name,
                                                         (cudnnBackendAttributeType_t)type,
                                                         a->count, &a->v));
                be_reset();
                gd_end();
            }
            static const int counts[] = {-1, 0, 1, 2, 3, 8, 9};
            for (int c = 0; c < GD_COUNT(counts); c++) {
                if (!gd_host_case("backend/%s/attr%d/count%d", plain[k].name, a->name, counts[c]))
                    continue;
                int64_t values[16];
                for (int j = 0; j < 16; j++) values[j] = a->v.i64[0];
                be_desc d = be_make(plain[k].type);
                gd_status("set", lib.BackendSetAttribute(d, (cudnnBackendAttributeName_t)a->name,
                                                         (cudnnBackendAttributeType_t)a->type,
                                                         counts[c], values));
                be_reset();
                gd_end();
            }
        }
    }
}

/* One attribute of a full descriptor replaced by another value. */
static void values(void)
{
    static const struct {
        int kind;
        const char *name;
        struct attr a;
    } rows[] = {
        {0, "type_half", {100, CUDNN_TYPE_DATA_TYPE, 1, I32(2)}},
        {0, "type_int8", {100, CUDNN_TYPE_DATA_TYPE, 1, I32(3)}},
        {0, "type_bad", {100, CUDNN_TYPE_DATA_TYPE, 1, I32(99)}},
        {0, "type_negative", {100, CUDNN_TYPE_DATA_TYPE, 1, I32(-1)}},
        {0, "mode_conv", {101, CUDNN_TYPE_CONVOLUTION_MODE, 1, I32(0)}},
        {0, "mode_bad", {101, CUDNN_TYPE_CONVOLUTION_MODE, 1, I32(2)}},
        {0, "dilation0", {102, CUDNN_TYPE_INT64, 2, I64(1, 0)}},
        {0, "dilation_negative", {102, CUDNN_TYPE_INT64, 2, I64(1, -2)}},
        {0, "dilation3", {102, CUDNN_TYPE_INT64, 3, I64(1, 1, 1)}},
        {0, "stride0", {103, CUDNN_TYPE_INT64, 2, I64(0, 1)}},
        {0, "stride_negative", {103, CUDNN_TYPE_INT64, 2, I64(1, -1)}},
        {0, "stride1", {103, CUDNN_TYPE_INT64, 1, I64(1)}},
        {0, "post_negative", {104, CUDNN_TYPE_INT64, 2, I64(-1, 0)}},
        {0, "pre_negative", {105, CUDNN_TYPE_INT64, 2, I64(-1, 0)}},
        {0, "spatial0", {106, CUDNN_TYPE_INT64, 1, I64(0)}},
        {0, "spatial1", {106, CUDNN_TYPE_INT64, 1, I64(1)}},
        {0, "spatial3", {106, CUDNN_TYPE_INT64, 1, I64(3)}},
        {0, "spatial9", {106, CUDNN_TYPE_INT64, 1, I64(9)}},
        {1, "mode_bad", {0, CUDNN_TYPE_POINTWISE_MODE, 1, I32(50)}},
        {1, "mode_negative", {0, CUDNN_TYPE_POINTWISE_MODE, 1, I32(-1)}},
        {1, "type_half", {1, CUDNN_TYPE_DATA_TYPE, 1, I32(2)}},
        {1, "type_bool", {1, CUDNN_TYPE_DATA_TYPE, 1, I32(11)}},
        {1, "type_bad", {1, CUDNN_TYPE_DATA_TYPE, 1, I32(99)}},
        {1, "clips_crossed", {3, CUDNN_TYPE_DOUBLE, 1, F64(9)}},
        {1, "axis_negative", {9, CUDNN_TYPE_INT64, 1, I64(-3)}},
        {1, "nan_bad", {2, CUDNN_TYPE_NAN_PROPOGATION, 1, I32(9)}},
        {2, "type_bad", {1500, CUDNN_TYPE_DATA_TYPE, 1, I32(99)}},
        {2, "type_int32", {1500, CUDNN_TYPE_DATA_TYPE, 1, I32(4)}},
        {3, "op_bad", {1600, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, I32(20)}},
        {3, "op_negative", {1600, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, I32(-1)}},
        {3, "op_nozeros", {1600, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, I32(8)}},
        {3, "type_bad", {1601, CUDNN_TYPE_DATA_TYPE, 1, I32(99)}},
        {3, "deterministic", {1602, CUDNN_TYPE_BOOLEAN, 1, I32(1)}},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_host_case("backend/%s/value/%s", plain[rows[i].kind].name, rows[i].name)) continue;
        be_desc d = fill(rows[i].kind, -1);
        const struct attr *a = &rows[i].a;
        gd_status("set",
                  lib.BackendSetAttribute(d, (cudnnBackendAttributeName_t)a->name,
                                          (cudnnBackendAttributeType_t)a->type, a->count, &a->v));
        gd_status("finalize", lib.BackendFinalize(d));
        be_reset();
        gd_end();
    }
    for (int mode = -1; mode <= 620; mode++) {
        bool known = (mode >= 0 && mode <= 26) || (mode >= 100 && mode <= 108) ||
                     (mode >= 200 && mode <= 208) || (mode >= 300 && mode <= 306) ||
                     (mode >= 400 && mode <= 403) || mode == 500 || mode == 501 || mode == 502 ||
                     mode == 601 || mode == 602;
        if (!known || !gd_host_case("backend/pointwise/mode%d", mode)) continue;
        be_desc d = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        gd_status("set", lib.BackendSetAttribute(d, CUDNN_ATTR_POINTWISE_MODE,
                                                 CUDNN_TYPE_POINTWISE_MODE, 1, &mode));
        gd_status("type", lib.BackendSetAttribute(d, CUDNN_ATTR_POINTWISE_MATH_PREC,
                                                  CUDNN_TYPE_DATA_TYPE, 1, &(int){0}));
        gd_status("finalize", lib.BackendFinalize(d));
        be_reset();
        gd_end();
    }
}

static be_desc packed(int64_t uid, int type, int n, const int *dim)
{
    int stride[8], step = 1;
    for (int i = n - 1; i >= 0; i--) {
        stride[i] = step;
        step *= dim[i];
    }
    return be_tensor(uid, type, n, dim, stride, false);
}

/* Convolution operations: operand dims, one operand missing, descriptor not finalized. */
static void conv_operations(void)
{
    static const struct {
        const char *name;
        int x[4], w[4], y[4], xt, wt, yt, spatial;
    } rows[] = {
        {"good", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 0, 0, 0, 2},
        {"groups", {2, 6, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 0, 0, 0, 2},
        {"bad_c", {2, 4, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 0, 0, 0, 2},
        {"bad_k", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 5, 6, 6}, 0, 0, 0, 2},
        {"bad_n", {2, 3, 6, 6}, {4, 3, 3, 3}, {3, 4, 6, 6}, 0, 0, 0, 2},
        {"bad_p", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 5, 6}, 0, 0, 0, 2},
        {"bad_q", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 7}, 0, 0, 0, 2},
        {"mixed_types", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 2, 0, 9, 2},
        {"half", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 2, 2, 2, 2},
        {"spatial3", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 6, 6}, 0, 0, 0, 3},
    };
    static const int first[] = {700, 706, 712};
    static const cudnnBackendDescriptorType_t types[] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    for (int dir = 0; dir < 3; dir++) {
        for (int i = 0; i < GD_COUNT(rows); i++) {
            for (int skip = -1; skip < (i ? 0 : 8); skip++) {
                if (!gd_host_case("backend/op_conv%d/%s/skip%d", dir, rows[i].name, skip)) continue;
                be_desc x = packed(1, rows[i].xt, 4, rows[i].x),
                        w = packed(2, rows[i].wt, 4, rows[i].w);
                be_desc y = packed(3, rows[i].yt, 4, rows[i].y);
                be_desc c = be_conv(0, 1, rows[i].spatial, DIMS(1, 1, 1), DIMS(1, 1, 1),
                                    DIMS(1, 1, 1), DIMS(1, 1, 1));
                if (skip == 6)
                    c = be_make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR); /* not finalized */
                be_desc op = be_make(types[dir]);
                be_desc v[4] = {c, w, x, y}; /* in the order of the attributes */
                for (int k = 0; k < 4; k++)
                    if (k != skip) be_set_desc(op, first[dir] + 2 + k, v[k]);
                if (skip != 4) be_set_f32(op, first[dir], 1);
                if (skip != 5) be_set_f32(op, first[dir] + 1, 0);
                if (skip == 7) be_set_f64(op, first[dir], 2);
                gd_status("finalize", lib.BackendFinalize(op));
                be_reset();
                gd_end();
            }
        }
    }
}

static void matmul_operations(void)
{
    static const struct {
        const char *name;
        int n, a[4], b[4], c[4];
    } rows[] = {
        {"good", 3, {2, 3, 4}, {2, 4, 5}, {2, 3, 5}},
        {"2d", 2, {3, 4}, {4, 5}, {3, 5}},
        {"4d", 4, {2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}},
        {"broadcast_b", 3, {2, 3, 4}, {1, 4, 5}, {2, 3, 5}},
        {"broadcast_a", 3, {1, 3, 4}, {2, 4, 5}, {2, 3, 5}},
        {"broadcast_heads", 4, {2, 6, 4, 5}, {2, 2, 5, 6}, {2, 6, 4, 6}},
        {"bad_k", 3, {2, 3, 4}, {2, 5, 5}, {2, 3, 5}},
        {"bad_m", 3, {2, 3, 4}, {2, 4, 5}, {2, 4, 5}},
        {"bad_n", 3, {2, 3, 4}, {2, 4, 5}, {2, 3, 4}},
        {"bad_batch", 3, {2, 3, 4}, {3, 4, 5}, {2, 3, 5}},
        {"bad_batch_c", 3, {2, 3, 4}, {2, 4, 5}, {1, 3, 5}},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        for (int skip = -1; skip < (i ? 0 : 4); skip++) {
            if (!gd_host_case("backend/op_matmul/%s/skip%d", rows[i].name, skip)) continue;
            be_desc m = fill(2, -1), op = be_make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
            be_finalize("matmul", m);
            be_desc v[4] = {packed(1, 0, rows[i].n, rows[i].a), packed(2, 0, rows[i].n, rows[i].b),
                            packed(3, 0, rows[i].n, rows[i].c), m};
            for (int k = 0; k < 4; k++)
                if (k != skip) be_set_desc(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC + k, v[k]);
            gd_status("finalize", lib.BackendFinalize(op));
            be_reset();
            gd_end();
        }
    }
}

static void other_operations(void)
{
    static const struct {
        const char *name;
        int mode, n, x[4], b[4], y[4];
    } rows[] = {
        {"add", 0, 4, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
        {"add_bias", 0, 4, {2, 3, 4, 5}, {1, 3, 1, 1}, {2, 3, 4, 5}},
        {"add_scalar", 0, 4, {2, 3, 4, 5}, {1, 1, 1, 1}, {2, 3, 4, 5}},
        {"add_grow_x", 0, 4, {1, 3, 1, 1}, {2, 3, 4, 5}, {2, 3, 4, 5}},
        {"add_both", 0, 4, {2, 1, 4, 1}, {1, 3, 1, 5}, {2, 3, 4, 5}},
        {"add_bad", 0, 4, {2, 3, 4, 5}, {2, 2, 4, 5}, {2, 3, 4, 5}},
        {"add_shrink", 0, 4, {2, 3, 4, 5}, {2, 3, 4, 5}, {1, 3, 4, 5}},
        {"relu", 100, 4, {2, 3, 4, 5}, {0}, {2, 3, 4, 5}},
        {"relu_bad", 100, 4, {2, 3, 4, 5}, {0}, {2, 3, 4, 4}},
        {"relu_with_b", 100, 4, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
        {"add_without_b", 0, 4, {2, 3, 4, 5}, {0}, {2, 3, 4, 5}},
    };
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_host_case("backend/op_pointwise/%s", rows[i].name)) continue;
        be_desc p = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        be_set_int(p, 0, CUDNN_TYPE_POINTWISE_MODE, rows[i].mode);
        be_set_int(p, 1, CUDNN_TYPE_DATA_TYPE, 0);
        be_finalize("pointwise", p);
        be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
        be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, packed(1, 0, 4, rows[i].x));
        if (rows[i].b[0])
            be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, packed(2, 0, 4, rows[i].b));
        be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, packed(3, 0, 4, rows[i].y));
        gd_status("finalize", lib.BackendFinalize(op));
        be_reset();
        gd_end();
    }
    static const struct {
        const char *name;
        int x[4], y[4];
    } reds[] = {
        {"all", {2, 3, 4, 5}, {1, 1, 1, 1}},  {"c", {2, 3, 4, 5}, {2, 1, 4, 5}},
        {"none", {2, 3, 4, 5}, {2, 3, 4, 5}}, {"bad", {2, 3, 4, 5}, {2, 2, 4, 5}},
        {"grow", {2, 1, 4, 5}, {2, 3, 4, 5}}, {"nhw", {2, 3, 4, 5}, {1, 3, 1, 1}},
    };
    for (int i = 0; i < GD_COUNT(reds); i++) {
        for (int skip = -1; skip < (i ? 0 : 3); skip++) {
            if (!gd_host_case("backend/op_reduction/%s/skip%d", reds[i].name, skip)) continue;
            be_desc r = fill(3, -1), op = be_make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
            be_finalize("reduction", r);
            be_desc v[3] = {packed(1, 0, 4, reds[i].x), packed(2, 0, 4, reds[i].y), r};
            for (int k = 0; k < 3; k++)
                if (k != skip) be_set_desc(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC + k, v[k]);
            gd_status("finalize", lib.BackendFinalize(op));
            be_reset();
            gd_end();
        }
    }
}

void cases_backend_attr(void)
{
    plain_descriptors();
    values();
    conv_operations();
    matmul_operations();
    other_operations();
}
