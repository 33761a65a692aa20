/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: resampling through the backend API: maxima with and without indices, both averages,
 * bilinear by two, forward and backward; and what its descriptors take (no device).
 */
#include "backend.h"

#include <stdio.h>

static const struct {
    const char *name;
    cudnnDataType_t type;
} types[] = {{"f32", CUDNN_DATA_FLOAT},
             {"f16", CUDNN_DATA_HALF},
             {"bf16", CUDNN_DATA_BFLOAT16},
             {"i8", CUDNN_DATA_INT8}};
enum { FLOATS = 3 };

static const struct {
    const char *name;
    int mode, padding;
} modes[] = {{"max", CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD},
             {"average", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_ZERO_PAD},
             {"exclude", CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, CUDNN_ZERO_PAD}};

static const struct geometry {
    const char *name;
    int nd, x[5], window[3], stride[3], pre[3], post[3];
} geometries[] = {
    {"3x3s2p1", 4, {2, 16, 9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {"2x2s2", 4, {2, 16, 8, 10}, {2, 2}, {2, 2}, {0, 0}, {0, 0}},
    {"3x3s1p1", 4, {1, 16, 7, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"5x3s3p2", 4, {3, 16, 13, 8}, {5, 3}, {3, 2}, {2, 1}, {2, 1}},
    {"global", 4, {2, 16, 7, 7}, {7, 7}, {1, 1}, {0, 0}, {0, 0}},
    {"uneven", 4, {2, 16, 10, 10}, {3, 3}, {2, 2}, {0, 1}, {1, 0}},
    {"3d", 5, {2, 16, 5, 6, 7}, {3, 2, 3}, {2, 2, 1}, {1, 0, 1}, {1, 0, 1}},
};

static struct gd_tens *operand(const char *name, cudnnDataType_t type, bool nhwc, int nd,
                               const int *dim)
{
    int stride[5], next = 1;
    if (nhwc) {
        stride[1] = 1;
        next = dim[1];
    }
    for (int d = nd - 1; d >= 0; d--) {
        if (nhwc && d == 1) continue;
        stride[d] = next;
        next *= dim[d];
    }
    return gd_tens_raw(name, type, nd, dim, stride);
}

static void lengths(be_desc d, int attribute, int n, const int *value, int below)
{
    cudnnFraction_t f[3];
    /* in lowest terms: the recorded library takes 2/1 and not 4/2 */
    for (int i = 0; i < n; i++)
        f[i] = value[i] % below ? (cudnnFraction_t){value[i], below}
                                : (cudnnFraction_t){value[i] / below, 1};
    be_set(d, attribute, CUDNN_TYPE_FRACTION, n, f);
}

/* Lengths in units of 1 / below. */
static be_desc resample(int mode, int padding, int nan, int n, const struct geometry *g, int below)
{
    be_desc d = be_make(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    be_set_int(d, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, mode);
    be_set_int(d, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, padding);
    be_set_int(d, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, nan);
    be_set_int(d, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    be_set_int(d, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, n);
    lengths(d, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, n, g->window, below);
    lengths(d, CUDNN_ATTR_RESAMPLE_STRIDES, n, g->stride, below);
    lengths(d, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, n, g->pre, below);
    lengths(d, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, n, g->post, below);
    be_finalize("resample", d);
    return d;
}

static void output_dims(const struct geometry *g, int *y)
{
    y[0] = g->x[0];
    y[1] = g->x[1];
    for (int s = 0; s < g->nd - 2; s++)
        y[2 + s] = (g->x[2 + s] + g->pre[s] + g->post[s] - g->window[s]) / g->stride[s] + 1;
}

static double window_size(const struct geometry *g)
{
    double n = 1;
    for (int s = 0; s < g->nd - 2; s++) n *= g->window[s];
    return n;
}

static void forward(int t, int m, const struct geometry *g, bool nhwc, bool indices, int nan,
                    enum gd_fill fill)
{
    int yd[5];
    output_dims(g, yd);
    struct gd_tens *o[3] = {operand("x", types[t].type, nhwc, g->nd, g->x),
                            operand("y", types[t].type, nhwc, g->nd, yd)};
    gd_fill(o[0], fill);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC,
                resample(modes[m].mode, modes[m].padding, nan, g->nd - 2, g, 1));
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, be_tensor_of(1, o[0]));
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, be_tensor_of(2, o[1]));
    if (indices) {
        o[2] = operand("idx", CUDNN_DATA_INT8, nhwc, g->nd, yd);
        be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, be_tensor_of(3, o[2]));
    }
    be_set_f64(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, 1.0);
    be_set_f64(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, 0.0);
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, indices ? 3 : 2, o)) {
        struct gd_tol tol = gd_sum_tol(types[t].type, CUDNN_DATA_FLOAT, window_size(g), 1);
        if (types[t].type == CUDNN_DATA_INT8) tol = (struct gd_tol){1, 0}; /* a tie of rounding */
        gd_out(o[1], m == 0 ? gd_exact : tol);
        if (indices) gd_out(o[2], gd_exact);
    }
    be_reset();
    gd_end();
}

/* The place of each window's first maximum, found on the host. */
static void fill_places(struct gd_tens *idx, const struct gd_tens *x, const struct geometry *g)
{
    int n = g->nd - 2;
    int w[3] = {1, 1, 1}, s[3] = {1, 1, 1}, p[3] = {0}, xd[3] = {1, 1, 1}, yd[3] = {1, 1, 1};
    for (int d = 0; d < n; d++) {
        w[d] = g->window[d];
        s[d] = g->stride[d];
        p[d] = g->pre[d];
        xd[d] = x->dim[2 + d];
        yd[d] = idx->dim[2 + d];
    }
    for (size_t i = 0; i < idx->count; i++) {
        size_t rest = i;
        int o[3], best = 0;
        double largest = 0;
        bool found = false;
        for (int d = 2; d >= 0; d--) {
            o[d] = (int)(rest % (size_t)yd[d]);
            rest /= (size_t)yd[d];
        }
        for (int k = 0; k < w[0] * w[1] * w[2]; k++) {
            int at[3] = {o[0] * s[0] - p[0] + k / (w[1] * w[2]),
                         o[1] * s[1] - p[1] + k / w[2] % w[1], o[2] * s[2] - p[2] + k % w[2]};
            bool inside = true;
            for (int d = 0; d < 3; d++) inside &= at[d] >= 0 && at[d] < xd[d];
            if (!inside) continue;
            double v =
                gd_at(x, ((rest * (size_t)xd[0] + (size_t)at[0]) * (size_t)xd[1] + (size_t)at[1]) *
                                 (size_t)xd[2] +
                             (size_t)at[2]);
            if (found && !(v > largest)) continue;
            found = true;
            largest = v;
            best = k;
        }
        gd_put(idx->type, idx->host + GD_GUARD + gd_offset(idx, i) * gd_elsize(idx->type), best);
    }
    gd_upload(idx->base, idx->host, idx->bytes + 2 * GD_GUARD);
}

static void backward(int t, int m, const struct geometry *g, bool nhwc, bool indices)
{
    int yd[5], n = 2;
    output_dims(g, yd);
    struct gd_tens *o[4] = {operand("dy", types[t].type, nhwc, g->nd, yd),
                            operand("dx", types[t].type, nhwc, g->nd, g->x)};
    struct gd_tens *x = operand("x", types[t].type, nhwc, g->nd, g->x);
    gd_fill(o[0], GD_UNIT);
    gd_fill(x, GD_REAL);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC,
                resample(modes[m].mode, modes[m].padding, 0, g->nd - 2, g, 1));
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, be_tensor_of(1, o[0]));
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, be_tensor_of(2, o[1]));
    if (indices) {
        o[n] = operand("idx", CUDNN_DATA_INT8, nhwc, g->nd, yd);
        fill_places(o[n], x, g);
        be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, be_tensor_of(++n, o[2]));
    } else if (m == 0) {
        /* y is x's maxima; nothing in the answers depends on more than its being there */
        o[n++] = x;
        o[n] = operand("y", types[t].type, nhwc, g->nd, yd);
        gd_fill(o[n++], GD_REAL);
        be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC, be_tensor_of(3, o[2]));
        be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_YDESC, be_tensor_of(4, o[3]));
    }
    be_set_f64(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA, 1.0);
    be_set_f64(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA, 0.0);
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, n, o))
        gd_out(o[1], gd_sum_tol(types[t].type, CUDNN_DATA_FLOAT, window_size(g), 1));
    be_reset();
    gd_end();
}

/* The one form of bilinear that is documented: by two, with the edge repeated. */
static void bilinear(const int *xd, int nd, bool nhwc)
{
    struct geometry g = {"", nd, {0}, {4, 4, 4}, {1, 1, 1}, {1, 1, 1}, {2, 2, 2}}; /* halves */
    int yd[5] = {xd[0], xd[1]};
    for (int s = 2; s < nd; s++) yd[s] = 2 * xd[s];
    struct gd_tens *o[2] = {operand("x", CUDNN_DATA_FLOAT, nhwc, nd, xd),
                            operand("y", CUDNN_DATA_FLOAT, nhwc, nd, yd)};
    gd_fill(o[0], GD_UNIT);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC,
                resample(CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, 0, nd - 2, &g, 2));
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, be_tensor_of(1, o[0]));
    be_set_desc(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, be_tensor_of(2, o[1]));
    be_set_f64(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, 1.0);
    be_set_f64(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, 0.0);
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, 2, o))
        gd_out(o[1], gd_map_tol(CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, 8, 1));
    be_reset();
    gd_end();
}

static void bilinear_cases(void)
{
    static const struct {
        int nd, x[5];
    } rows[] = {{4, {1, 16, 4, 4}}, {4, {2, 16, 5, 7}}, {4, {1, 32, 1, 3}},   {4, {3, 16, 8, 8}},
                {4, {1, 64, 2, 2}}, {4, {1, 16, 9, 2}}, {4, {2, 8, 6, 6}},    {4, {1, 16, 12, 5}},
                {4, {4, 16, 3, 3}}, {4, {1, 16, 1, 1}}, {5, {1, 16, 3, 4, 2}}};
    for (int i = 0; i < GD_COUNT(rows); i++)
        for (int nhwc = 0; nhwc < 2; nhwc++)
            if (gd_case("backend_resample/bilinear/%d/%s", i, nhwc ? "nhwc" : "nchw"))
                bilinear(rows[i].x, rows[i].nd, nhwc);
}

/* What the descriptor takes: no device is asked. */
static void descriptor_cases(void)
{
    static const struct geometry fits = {"", 4, {0}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}};
    static const struct geometry by_two = {"", 4, {0}, {4, 4, 4}, {1, 1, 1}, {1, 1, 1}, {2, 2, 2}};
    for (int mode = 2; mode <= 4; mode++)
        for (int padding = 0; padding <= 2; padding++)
            if (gd_host_case("backend/resample/mode%d/padding%d", mode, padding)) {
                resample(mode, padding, 0, 2, &fits, 1);
                gd_int("done", 1);
                be_reset();
                gd_end();
            }
    for (int n = 1; n <= 3; n++)
        if (gd_host_case("backend/resample/spatial%d", n)) {
            resample(CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, 0, n, &fits, 1);
            gd_int("done", 1);
            be_reset();
            gd_end();
        }
    if (gd_host_case("backend/resample/by_two")) {
        resample(CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, 0, 2, &by_two, 2);
        gd_int("done", 1);
        be_reset();
        gd_end();
    }
}

/* Shapes of y and of the index tensor. */
static void shape_cases(void)
{
    static const struct {
        const char *name;
        int x[4], y[4], idx[4];
        int type;
    } rows[] = {
        {"odd", {2, 3, 7, 9}, {2, 3, 4, 5}, {0}, 0},
        {"even", {2, 3, 8, 10}, {2, 3, 4, 5}, {0}, 0},
        {"rounded_up", {2, 3, 8, 10}, {2, 3, 5, 6}, {0}, 0},
        {"one_less", {2, 3, 7, 9}, {2, 3, 3, 5}, {0}, 0},
        {"channels", {2, 3, 7, 9}, {2, 4, 4, 5}, {0}, 0},
        {"idx_i8", {2, 3, 7, 9}, {2, 3, 4, 5}, {2, 3, 4, 5}, CUDNN_DATA_INT8},
        {"idx_i32", {2, 3, 7, 9}, {2, 3, 4, 5}, {2, 3, 4, 5}, CUDNN_DATA_INT32},
        {"idx_shape", {2, 3, 7, 9}, {2, 3, 4, 5}, {2, 3, 4, 6}, CUDNN_DATA_INT8},
    };
    static const struct geometry g = {"", 4, {0}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
    for (int i = 0; i < GD_COUNT(rows); i++)
        for (int back = 0; back < 2; back++) {
            if (!gd_host_case("backend/op_resample/%s/%s", back ? "bwd" : "fwd", rows[i].name))
                continue;
            const int *list[3] = {rows[i].x, rows[i].y, rows[i].idx};
            be_desc d[3] = {NULL},
                    r = resample(CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, 0, 2, &g, 1);
            for (int k = 0; k < 3; k++) {
                int stride[4] = {list[k][1] * list[k][2] * list[k][3], list[k][2] * list[k][3],
                                 list[k][3], 1};
                if (list[k][0])
                    d[k] = be_tensor(k + 1, k == 2 ? rows[i].type : CUDNN_DATA_FLOAT, 4, list[k],
                                     stride, false);
            }
            be_desc op = be_make(back ? CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR
                                      : CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
            be_set_desc(op,
                        back ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC
                             : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC,
                        r);
            be_set_desc(op,
                        back ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC
                             : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC,
                        d[0]);
            be_set_desc(op,
                        back ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC
                             : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
                        d[1]);
            if (d[2])
                be_set_desc(op,
                            back ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC
                                 : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC,
                            d[2]);
            gd_status("finalize", lib.BackendFinalize(op));
            be_reset();
            gd_end();
        }
}

void cases_backend_resample(void)
{
    descriptor_cases();
    shape_cases();
    for (int t = 0; t < GD_COUNT(types); t++)
        for (int m = 0; m < GD_COUNT(modes); m++)
            for (int i = 0; i < GD_COUNT(geometries); i++)
                for (int nhwc = 0; nhwc < 2; nhwc++) {
                    const char *layout = nhwc ? "nhwc" : "nchw";
                    if (gd_case("backend_resample/fwd/%s/%s/%s/%s", modes[m].name,
                                geometries[i].name, types[t].name, layout))
                        forward(t, m, &geometries[i], nhwc, false, 0, GD_REAL);
                    if (m == 0 && gd_case("backend_resample/fwd/max_idx/%s/%s/%s",
                                          geometries[i].name, types[t].name, layout))
                        forward(t, m, &geometries[i], nhwc, true, 0, i % 2 ? GD_TIES : GD_REAL);
                    if (t < FLOATS && gd_case("backend_resample/bwd/%s/%s/%s/%s", modes[m].name,
                                              geometries[i].name, types[t].name, layout))
                        backward(t, m, &geometries[i], nhwc, false);
                    if (t < FLOATS && m == 0 &&
                        gd_case("backend_resample/bwd/max_idx/%s/%s/%s", geometries[i].name,
                                types[t].name, layout))
                        backward(t, m, &geometries[i], nhwc, true);
                }
    for (int nan = 0; nan < 2; nan++)
        for (int t = 0; t < FLOATS; t++)
            for (int m = 0; m < GD_COUNT(modes); m++)
                if (gd_case("backend_resample/fwd/%s/nan%d/%s", modes[m].name, nan, types[t].name))
                    forward(t, m, &geometries[0], true, m == 0, nan, GD_SOMENAN);
    bilinear_cases();
}
