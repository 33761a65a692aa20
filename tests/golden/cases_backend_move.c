/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: concatenation and reshape through the backend API, and what their operations take (no
 * device).
 */
#include "backend.h"

#include <stdio.h>

static const struct {
    const char *name;
    cudnnDataType_t type;
} types[] = {{"f32", CUDNN_DATA_FLOAT}, {"f16", CUDNN_DATA_HALF},  {"bf16", CUDNN_DATA_BFLOAT16},
             {"i8", CUDNN_DATA_INT8},   {"i32", CUDNN_DATA_INT32}, {"f64", CUDNN_DATA_DOUBLE}};

static void strides(bool nhwc, int nd, const int *dim, int *stride)
{
    int next = 1;
    if (nhwc) {
        stride[1] = 1;
        next = dim[1];
    }
    for (int d = nd - 1; d >= 0; d--) {
        if (nhwc && d == 1) continue;
        stride[d] = next;
        next *= dim[d];
    }
}

static struct gd_tens *operand(const char *name, cudnnDataType_t type, bool nhwc, int nd,
                               const int *dim)
{
    int stride[5];
    strides(nhwc, nd, dim, stride);
    return gd_tens_raw(name, type, nd, dim, stride);
}

static const struct join {
    const char *name;
    int axis, inputs, nd;
    int x[3][5];
} joins[] = {
    {"channels", 1, 2, 4, {{2, 16, 4, 5}, {2, 32, 4, 5}}},
    {"channels3", 1, 3, 4, {{2, 8, 4, 5}, {2, 16, 4, 5}, {2, 8, 4, 5}}},
    {"batch", 0, 2, 4, {{2, 16, 4, 5}, {3, 16, 4, 5}}},
    {"rows", 2, 2, 4, {{2, 16, 4, 5}, {2, 16, 1, 5}}},
    {"columns", 3, 3, 4, {{1, 16, 4, 5}, {1, 16, 4, 2}, {1, 16, 4, 1}}},
    {"one", 1, 1, 4, {{2, 16, 4, 5}}},
};

static void concat(int t, const struct join *j, bool nhwc)
{
    static const char *const names[] = {"x0", "x1", "x2"};
    struct gd_tens *o[4];
    be_desc in[3];
    int yd[5];
    for (int d = 0; d < j->nd; d++) yd[d] = j->x[0][d];
    yd[j->axis] = 0;
    for (int i = 0; i < j->inputs; i++) {
        o[i] = operand(names[i], types[t].type, nhwc, j->nd, j->x[i]);
        gd_fill(o[i], GD_REAL);
        in[i] = be_tensor_of(i + 1, o[i]);
        yd[j->axis] += j->x[i][j->axis];
    }
    o[j->inputs] = operand("y", types[t].type, nhwc, j->nd, yd);
    int64_t axis = j->axis;
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR);
    be_set(op, CUDNN_ATTR_OPERATION_CONCAT_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    be_set(op, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, CUDNN_TYPE_BACKEND_DESCRIPTOR, j->inputs,
           in);
    be_set_desc(op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC,
                be_tensor_of(j->inputs + 1, o[j->inputs]));
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, j->inputs + 1, o))
        gd_out(o[j->inputs], gd_exact);
    be_reset();
    gd_end();
}

static const struct view {
    const char *name;
    int nd, x[5];
    int yd, y[5];
    bool x_nhwc, y_nhwc;
} views[] = {
    {"flat", 4, {2, 16, 4, 5}, 2, {32, 20}, false, false},
    {"split", 2, {32, 20}, 4, {2, 16, 4, 5}, false, false},
    {"same", 4, {2, 16, 4, 5}, 4, {2, 16, 4, 5}, false, false},
    {"nhwc_to_nchw", 4, {2, 16, 4, 5}, 4, {2, 16, 4, 5}, true, false},
    {"nchw_to_nhwc", 4, {2, 16, 4, 5}, 4, {2, 16, 4, 5}, false, true},
    {"nhwc", 4, {2, 16, 4, 5}, 4, {2, 16, 2, 10}, true, true},
    {"swap", 3, {2, 16, 24}, 3, {2, 24, 16}, false, true},
    {"unswap", 3, {2, 16, 24}, 3, {2, 24, 16}, true, false},
    {"merge", 5, {2, 4, 4, 4, 5}, 3, {2, 16, 20}, false, false},
    {"ones", 3, {8, 16, 8}, 5, {1, 8, 1, 16, 8}, false, false},
    {"rows", 3, {1, 64, 16}, 3, {1, 16, 64}, false, false},
};

static void reshape(int t, const struct view *v)
{
    struct gd_tens *o[2] = {operand("x", types[t].type, v->x_nhwc, v->nd, v->x),
                            operand("y", types[t].type, v->y_nhwc, v->yd, v->y)};
    gd_fill(o[0], GD_REAL);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, be_tensor_of(1, o[0]));
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, be_tensor_of(2, o[1]));
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, 2, o))
        gd_out(o[1], gd_exact);
    be_reset();
    gd_end();
}

static be_desc plain(int64_t uid, int nd, const int *dim)
{
    int stride[5];
    strides(false, nd, dim, stride);
    return be_tensor(uid, CUDNN_DATA_FLOAT, nd, dim, stride, false);
}

static void operation_cases(void)
{
    static const struct {
        const char *name;
        int axis, in_place; /* -9: not set */
        int a[4], b[4], y[4];
    } rows[] = {
        {"good", 1, -9, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"in_place0", 1, 0, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"in_place1", 1, 1, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"in_place2", 1, 2, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"in_place-1", 1, -1, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"in_place-2", 1, -2, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"axis0", 0, -9, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"axis4", 4, -9, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"axis-1", -1, -9, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 7, 4, 5}},
        {"sum", 1, -9, {2, 3, 4, 5}, {2, 4, 4, 5}, {2, 8, 4, 5}},
        {"other", 1, -9, {2, 3, 4, 5}, {2, 4, 4, 6}, {2, 7, 4, 5}},
    };
    static const struct {
        const char *name;
        int y[4];
    } shapes[] = {{"fewer", {2, 3, 4, 4}}, {"more", {2, 4, 4, 5}}, {"equal", {3, 2, 5, 4}}};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_host_case("backend/op_concat/%s", rows[i].name)) continue;
        be_desc in[2] = {plain(1, 4, rows[i].a), plain(2, 4, rows[i].b)};
        be_desc op = be_make(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR);
        int64_t axis = rows[i].axis, in_place = rows[i].in_place, n = 0;
        be_set(op, CUDNN_ATTR_OPERATION_CONCAT_AXIS, CUDNN_TYPE_INT64, 1, &axis);
        be_set(op, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2, in);
        be_set_desc(op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, plain(3, 4, rows[i].y));
        if (in_place > -9)
            be_set(op, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, CUDNN_TYPE_INT64, 1, &in_place);
        if (gd_status("finalize", lib.BackendFinalize(op)) == 0) {
            in_place = 77;
            gd_status("get", lib.BackendGetAttribute(op, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX,
                                                     CUDNN_TYPE_INT64, 1, &n, &in_place));
            gd_int("n", n);
            gd_int("in_place", in_place);
        }
        be_reset();
        gd_end();
    }
    for (int i = 0; i < GD_COUNT(shapes); i++) {
        if (!gd_host_case("backend/op_reshape/%s", shapes[i].name)) continue;
        be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
        be_set_desc(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, plain(1, 4, DIMS(2, 3, 4, 5)));
        be_set_desc(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, plain(2, 4, shapes[i].y));
        gd_status("finalize", lib.BackendFinalize(op));
        be_reset();
        gd_end();
    }
}

void cases_backend_move(void)
{
    operation_cases();
    for (int t = 0; t < GD_COUNT(types); t++) {
        for (int i = 0; i < GD_COUNT(joins); i++)
            for (int nhwc = 0; nhwc < 2; nhwc++)
                if (gd_case("backend_concat/%s/%s/%s", joins[i].name, types[t].name,
                            nhwc ? "nhwc" : "nchw"))
                    concat(t, &joins[i], nhwc);
        for (int i = 0; i < GD_COUNT(views); i++)
            if (gd_case("backend_reshape/%s/%s", views[i].name, types[t].name))
                reshape(t, &views[i]);
    }
}
