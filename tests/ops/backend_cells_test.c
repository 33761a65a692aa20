/* SPDX-License-Identifier: Apache-2.0
 *
 * Every type in every layout that it has through the backend API: convolution in its three directions,
 * pointwise and reduction, each as a graph of one node on the best engine and against sums in double.
 * What else these operations can be asked is in the tests of their own. */
#include <math.h>
#include <stdlib.h>

#include "ops/conv_case.h"
#include "support/backend_build.h"

enum { DATA = 4 };

struct run {
    struct tensor *t[DATA];
    int tensors;
    be_desc desc[DATA];
    be_desc plan, pack;
};

static cudnnDataType_t lane_of(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32: return CUDNN_DATA_INT8;
    case CUDNN_DATA_UINT8x4: return CUDNN_DATA_UINT8;
    default: return dtype;
    }
}

static cudnnDataType_t compute_of(cudnnDataType_t dtype)
{
    return dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static double lowest_of(cudnnDataType_t dtype)
{
    return lane_of(dtype) == CUDNN_DATA_UINT8 ? 0.0 : -5.0;
}

/* The tensor with the number uid; the dims of this API count vectors. */
static be_desc descriptor(const struct tensor *t, int64_t uid)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dim[8];
    int64_t stride[8];
    for (int d = 0; d < t->rank; ++d) {
        dim[d] = d == 1 ? t->dim[d] / t->lanes : t->dim[d];
        stride[d] = t->stride[d];
    }
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, (int)lane_of(t->dtype));
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, dim);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, stride);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
    if (t->lanes > 1) {
        be_set_int(desc, CUDNN_ATTR_TENSOR_VECTOR_COUNT, t->lanes);
        be_set_int(desc, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, 1);
    }
    return be_final(desc);
}

static cudnnStatus_t execute(void *context)
{
    struct run *r = context;
    return cudnnBackendExecute(harness_handle, r->plan, r->pack);
}

static void describe(struct run *r)
{
    for (int i = 0; i < r->tensors; ++i) r->desc[i] = descriptor(r->t[i], i + 1);
}

/* Runs one operation on the best engine; what it wrote is judged by the caller. */
static bool run(struct run *r, be_desc op)
{
    int64_t uids[DATA];
    void *data[DATA];
    struct tensor *workspace = NULL;
    int64_t bytes;
    r->plan = be_plan_of(harness_handle, 1, &op);
    bytes = be_workspace(r->plan);
    if (bytes > 0) workspace = tensor_bytes(bytes);
    for (int i = 0; i < r->tensors; ++i) {
        uids[i] = i + 1;
        data[i] = r->t[i]->data;
    }
    r->pack = be_pack(r->tensors, uids, data, workspace ? workspace->data : NULL);
    return run_call(execute, r);
}

static void pointwise_case(cudnnDataType_t dtype, enum layout layout)
{
    static const int dim[] = {2, 32, 3, 5};
    struct run r = {.tensors = 3};
    double *exact;
    double *magnitude;
    if (!case_begin("backend pointwise type %d layout %d", (int)dtype, (int)layout)) return;
    for (int i = 0; i < 2; ++i) {
        r.t[i] = tensor_input(dtype, 4, dim, layout, lowest_of(dtype), 5.0);
    }
    r.t[2] = tensor_output(dtype, 4, dim, layout);
    exact = conv_doubles(r.t[2]->count);
    magnitude = conv_doubles(r.t[2]->count);
    for (int64_t i = 0; i < r.t[2]->count; ++i) {
        exact[i] = r.t[0]->value[i] + r.t[1]->value[i];
        magnitude[i] = fabs(r.t[0]->value[i]) + fabs(r.t[1]->value[i]);
    }
    describe(&r);
    if (run(&r, be_pointwise(CUDNN_POINTWISE_ADD, r.desc[0], r.desc[1], NULL, r.desc[2]))) {
        check_values("y", r.t[2], exact, NULL, magnitude,
                     CUDNN_DATA_FLOAT); /* its math precision */
    }
    free(exact);
    free(magnitude);
    be_free_all();
    case_end();
}

static double gelu(int mode, double x)
{
    if (mode == CUDNN_POINTWISE_GELU_FWD) return 0.5 * x * erfc(-x / sqrt(2.0));
    /* (1 + tanh u) / 2 without its cancellation */
    return x / (1.0 + exp(-2.0 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

/* Modes that no legacy call has: both forms of gelu, and the selection of one of two. */
static void mode_case(int mode, cudnnDataType_t dtype)
{
    static const int dim[] = {2, 32, 3, 5};
    bool selects = mode == CUDNN_POINTWISE_BINARY_SELECT;
    struct run r = {.tensors = selects ? 4 : 2};
    struct tensor *y;
    double *exact;
    double *magnitude;
    if (!case_begin("backend pointwise mode %d type %d", mode, (int)dtype)) return;
    for (int i = 0; i + 1 < r.tensors; ++i) {
        r.t[i] = tensor_input(dtype, 4, dim, LAYOUT_NCHW, -5.0, 5.0);
    }
    y = r.t[r.tensors - 1] = tensor_output(dtype, 4, dim, LAYOUT_NCHW);
    exact = conv_doubles(y->count);
    magnitude = conv_doubles(y->count);
    for (int64_t i = 0; i < y->count; ++i) {
        double x = r.t[0]->value[i];
        if (selects && i % 3 == 0) r.t[2]->value[i] = 0.0;
        if (selects) exact[i] = r.t[2]->value[i] != 0.0 ? x : r.t[1]->value[i];
        else exact[i] = gelu(mode, x);
        magnitude[i] = selects ? 0.0 : fabs(x);
    }
    if (selects) tensor_write(r.t[2]);
    describe(&r);
    if (run(&r, be_pointwise(mode, r.desc[0], selects ? r.desc[1] : NULL,
                             selects ? r.desc[2] : NULL, r.desc[r.tensors - 1]))) {
        check_values("y", y, exact, NULL, magnitude, CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    be_free_all();
    case_end();
}

static void reduce_case(cudnnDataType_t dtype, enum layout layout)
{
    static const int dim[] = {2, 32, 3, 5};
    static const int kept[] = {1, 32, 1, 1};
    struct run r = {.tensors = 2};
    double *exact;
    double *magnitude;
    if (!case_begin("backend reduction type %d layout %d", (int)dtype, (int)layout)) return;
    r.t[0] = tensor_input(dtype, 4, dim, layout, lowest_of(dtype), 5.0);
    r.t[1] = tensor_output(CUDNN_DATA_FLOAT, 4, kept, LAYOUT_NCHW);
    exact = conv_doubles(r.t[1]->count);
    magnitude = conv_doubles(r.t[1]->count);
    for (int64_t i = 0; i < r.t[0]->count; ++i) {
        exact[i / 15 % 32] += r.t[0]->value[i];
        magnitude[i / 15 % 32] += fabs(r.t[0]->value[i]);
    }
    describe(&r);
    if (run(&r, be_reduction(CUDNN_REDUCE_TENSOR_ADD, r.desc[0], r.desc[1]))) {
        check_values("y", r.t[1], exact, NULL, magnitude, CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    be_free_all();
    case_end();
}

static be_desc convolution(const struct conv_geometry *g, cudnnDataType_t compute)
{
    be_desc desc = be_make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    int64_t pad[3];
    int64_t stride[3];
    int64_t dilation[3];
    for (int d = 0; d < g->spatial; ++d) {
        pad[d] = g->pad[d];
        stride[d] = g->stride[d];
        dilation[d] = g->dilation[d];
    }
    be_set_enum(desc, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, (int)compute);
    be_set_enum(desc, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, (int)g->mode);
    be_set_int(desc, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, g->spatial);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, g->spatial, pad);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, g->spatial, pad);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, g->spatial, stride);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, g->spatial, dilation);
    return be_final(desc);
}

static be_desc conv_operation(const struct run *r, enum conv_direction direction, be_desc conv)
{
    be_desc op;
    if (direction == CONV_FPROP) {
        return be_conv_forward(conv, r->desc[0], r->desc[1], r->desc[2]);
    }
    if (direction == CONV_DGRAD) {
        op = be_make(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
        be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, conv);
        be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, r->desc[0]);
        be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, r->desc[1]);
        be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, r->desc[2]);
    } else {
        op = be_make(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
        be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, conv);
        be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, r->desc[0]);
        be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, r->desc[1]);
        be_set_ref(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, r->desc[2]);
    }
    return be_final(op);
}

static void conv_case(enum conv_direction direction, const struct conv_types *types,
                      enum layout layout)
{
    static const struct conv_geometry shape = {2,      2,      1,      32,     32,     {5, 6},
                                               {3, 2}, {0, 0}, {1, 1}, {2, 1}, {1, 1}, 1};
    struct conv_call c = {.direction = direction, .g = shape, .alpha = 1.0};
    bool vectors = layout == LAYOUT_VECT;
    enum layout layouts[3] = {layout, layout, vectors ? LAYOUT_NCHW : layout};
    struct run r = {.tensors = 3};
    struct tensor *out;
    double *exact;
    double *magnitude;
    if (!case_begin("backend %s of type %d layout %d", conv_direction_name[direction],
                    (int)types->x, (int)layout)) {
        return;
    }
    conv_set_output(&c.g);
    conv_set_up(&c, types, layouts);
    r.t[0] = c.x;
    r.t[1] = c.w;
    r.t[2] = c.y;
    out = conv_output_of(&c);
    exact = conv_doubles(out->count);
    magnitude = conv_doubles(out->count);
    conv_add_products(&c, exact, magnitude);
    describe(&r);
    if (run(&r,
            conv_operation(&r, direction,
                           convolution(&c.g, conv_is_integer(types->x) ? CUDNN_DATA_INT32
                                                                       : compute_of(types->x))))) {
        check_values(conv_direction_name[direction], out, exact, NULL, magnitude,
                     conv_is_integer(types->x) ? CUDNN_DATA_DOUBLE : compute_of(types->x));
    }
    free(exact);
    free(magnitude);
    be_free_all();
    conv_tear_down(&c);
}

int main(int argc, char **argv)
{
    static const struct {
        struct conv_types conv;
        bool image, gradient, vector;
    } types[] = {
        {{CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT}, true, true, false},
        {{CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE}, true, true, false},
        {{CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_HALF}, true, true, false},
        {{CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16}, true, true, false},
        {{CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32}, true, false, false},
        {{CUDNN_DATA_UINT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32}, true, false, false},
        {{CUDNN_DATA_INT32, CUDNN_DATA_INT32, CUDNN_DATA_INT32}, false, false, false},
        {{CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_INT32}, true, false, true},
        {{CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_INT32}, true, false, true},
        {{CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32, CUDNN_DATA_INT32}, true, false, true},
    };
    harness_start(argc, argv);
    for (int t = 0; t < 4; ++t) {
        if (types[t].conv.x == CUDNN_DATA_DOUBLE) continue; /* its math precision is fp32 */
        mode_case(CUDNN_POINTWISE_GELU_FWD, types[t].conv.x);
        mode_case(CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, types[t].conv.x);
        mode_case(CUDNN_POINTWISE_BINARY_SELECT, types[t].conv.x);
    }
    for (size_t t = 0; t < sizeof types / sizeof types[0]; ++t) {
        int first = types[t].vector ? LAYOUT_VECT : LAYOUT_NCHW;
        int last = types[t].vector ? LAYOUT_VECT : LAYOUT_GAPS;
        for (int l = first; l <= last; ++l) {
            enum layout layout = (enum layout)l;
            pointwise_case(types[t].conv.x, layout);
            reduce_case(types[t].conv.x, layout);
            if (types[t].image) conv_case(CONV_FPROP, &types[t].conv, layout);
            if (types[t].gradient) conv_case(CONV_DGRAD, &types[t].conv, layout);
            if (types[t].gradient) conv_case(CONV_WGRAD, &types[t].conv, layout);
        }
    }
    return harness_finish();
}
