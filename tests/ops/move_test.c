/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenation and reshape: every element is looked for where the documentation says that it goes.
 * All types, also of less than a byte and complex ones, conversions, layouts, axes, many inputs,
 * inputs that lie in the output already; and what is refused. */
#include "kernels_reached.h"
#include "node_run.h"

static int lanes_of(int type)
{
    return type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 ? 4
           : type == CUDNN_DATA_INT8x32                            ? 32
                                                                   : 1;
}

static enum layout random_layout(int lanes)
{
    return lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

static be_desc concat_open(int count, const be_desc *x, be_desc y, int64_t axis)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR);
    be_set_int(op, CUDNN_ATTR_OPERATION_CONCAT_AXIS, axis);
    be_set(op, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, y);
    return op;
}

static be_desc reshape_open(be_desc x, be_desc y)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    return op;
}

/* What y must hold: its own old values, and those of the inputs side by side. */
static void check_concat(int count, struct tensor *const *x, const struct tensor *y, int axis)
{
    double *exact = node_doubles(y->count);
    int first = 0;
    for (int i = 0; i < count; ++i) {
        for (int64_t e = 0; e < x[i]->count; ++e) {
            int at[8];
            coordinates(x[i], e, at);
            at[axis] += first;
            exact[logical_index(y, at)] = x[i]->value[e];
        }
        first += x[i]->dim[axis];
    }
    check_values("y", y, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    free(exact);
}

static void concat_case(int type, int other, enum layout layout, int count)
{
    struct node_run r = {0};
    struct tensor *x[31], *y;
    be_desc desc[31], dy;
    int lanes = lanes_of(type), rank = lanes > 1 || count == 3 ? 4 : (int)random_int(2, 5);
    int dim[5];
    int axis = (int)random_int(0, rank - 1), sum = 0;
    if (!case_begin("concat %s to %s layout %d inputs %d", node_type_name[type],
                    node_type_name[other], (int)layout, count)) {
        return;
    }
    for (int d = 0; d < rank; ++d) dim[d] = random_of(1, 2, 3, 5);
    if (layout == LAYOUT_NHWC && count == 3) { /* no doubt whose order it is */
        dim[1] = 3;
        dim[2] = 5;
    }
    if (lanes > 1) dim[1] = lanes * random_of(1, 2);
    for (int i = 0; i < count; ++i) {
        dim[axis] = axis == 1 ? lanes * random_of(2, 4) : random_of(1, 2, 3, 7);
        if (i == 0 && axis == 2) dim[axis] = 2;
        sum += dim[axis];
        x[i] = tensor_input((cudnnDataType_t)type, rank, dim, i ? random_layout(lanes) : layout,
                            type == CUDNN_DATA_UINT8 ? 0 : -100, 100);
        desc[i] = node_add(&r, x[i]);
    }
    dim[axis] = sum;
    y = tensor_output((cudnnDataType_t)other, rank, dim, layout);
    dy = node_add(&r, y);
    if (node_run(&r, be_final(concat_open(count, desc, dy, axis)))) check_concat(count, x, y, axis);
    be_free_all();
    case_end();
}

/* Rows of hundreds of bytes and more, each tensor at an address of its own, in equal and in other
 * layouts; with more inputs than a launch takes. */
static void large_concat(int type, enum layout layout, int axis, int odd, int count)
{
    static const int shapes[][4] = {{3, 5, 7, 9}, {2, 64, 7, 7}, {1, 33, 65, 3}, {4, 16, 12, 12}};
    const int shape = (axis + odd + count) % 4;
    struct node_run r = {0};
    struct tensor *x[31], *y;
    be_desc desc[31], dy;
    int dim[4], sum = 0;
    if (!case_begin("concat large %s layout %d axis %d odd %d inputs %d", node_type_name[type],
                    (int)layout, axis, odd, count)) {
        return;
    }
    memcpy(dim, shapes[shape], sizeof dim);
    for (int i = 0; i < count; ++i) {
        enum layout own = i % 4 == 3 ? random_layout(1) : layout;
        dim[axis] = count > 9 ? (int)random_int(1, 3) : (int)random_int(1, 80);
        sum += dim[axis];
        tensor_odd = odd * (int)random_int(0, 16);
        x[i] = tensor_input((cudnnDataType_t)type, 4, dim, own, type == CUDNN_DATA_UINT8 ? 0 : -100,
                            100);
        desc[i] = node_add(&r, x[i]);
    }
    dim[axis] = sum;
    tensor_odd = odd * (int)random_int(0, 16);
    y = tensor_output((cudnnDataType_t)type, 4, dim, layout);
    tensor_odd = 0;
    dy = node_add(&r, y);
    if (node_run(&r, be_final(concat_open(count, desc, dy, axis)))) check_concat(count, x, y, axis);
    be_free_all();
    case_end();
}

/* Many rows of few bytes side by side, channels as neighbours; and inputs of the other layout. */
static void rows_concat(int type, enum layout from, enum layout to, int odd, int count)
{
    struct node_run r = {0};
    struct tensor *x[31], *y;
    be_desc desc[31], dy;
    int dim[4] = {3, 0, 17, 19}, sum = 0;
    if (!case_begin("concat rows %s layouts %d %d odd %d inputs %d", node_type_name[type],
                    (int)from, (int)to, odd, count)) {
        return;
    }
    if (from != to) dim[2] = 25, dim[3] = 48;
    for (int i = 0; i < count; ++i) {
        dim[1] = from != to ? (int)random_int(19, 40) : (int)random_int(1, count > 4 ? 4 : 70);
        sum += dim[1];
        tensor_odd = odd * (int)random_int(0, 16);
        x[i] = tensor_input((cudnnDataType_t)type, 4, dim, from,
                            type == CUDNN_DATA_UINT8 ? 0 : -100, 100);
        desc[i] = node_add(&r, x[i]);
    }
    dim[1] = sum;
    tensor_odd = odd * (int)random_int(0, 16);
    y = tensor_output((cudnnDataType_t)type, 4, dim, to);
    tensor_odd = 0;
    dy = node_add(&r, y);
    if (node_run(&r, be_final(concat_open(count, desc, dy, 1)))) check_concat(count, x, y, 1);
    be_free_all();
    case_end();
}

/* Input `which` is a part of y's own memory; `said` in the descriptor or not, `there` or in memory
 * of its own. */
static void in_place_case(int which, bool there)
{
    static const int dims[3][4] = {{2, 3, 4, 5}, {2, 1, 4, 5}, {2, 4, 4, 5}};
    static const int whole[4] = {2, 8, 4, 5};
    struct node_run r = {0};
    struct tensor *x[3], *y;
    be_desc desc[3], op;
    double *exact;
    int first = 0;
    if (!case_begin("concat in place %d %s", which, there ? "there" : "elsewhere")) return;
    y = tensor_inout(CUDNN_DATA_HALF, 4, whole, LAYOUT_NHWC, -4, 4);
    exact = node_doubles(y->count);
    memcpy(exact, y->value, (size_t)y->count * sizeof *exact);
    for (int i = 0; i < 3; ++i) {
        if (i == which && there) {
            desc[i] = node_add_raw(
                &r, be_final(node_open_tensor(i + 1, CUDNN_DATA_HALF, 4, dims[i], y->stride, 1)),
                (char *)y->data + 2 * first * y->stride[1]);
        } else {
            x[i] = tensor_input(CUDNN_DATA_HALF, 4, dims[i], LAYOUT_GAPS, -4, 4);
            desc[i] = node_add(&r, x[i]);
            for (int64_t e = 0; e < x[i]->count; ++e) {
                int at[8];
                coordinates(x[i], e, at);
                at[1] += first;
                exact[logical_index(y, at)] = x[i]->value[e];
            }
        }
        first += dims[i][1];
    }
    op = concat_open(3, desc, node_add(&r, y), 1);
    be_set_int(op, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, which);
    if (node_run(&r, be_final(op))) {
        check_values("y", y, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    }
    free(exact);
    be_free_all();
    case_end();
}

/* An input in place that lies at another place of the output is refused, and nothing is written. */
static void in_place_wrong(void)
{
    static const int dim[3] = {2, 3, 4}, whole[3] = {2, 6, 4};
    struct node_run r = {0};
    struct tensor *x, *y;
    be_desc desc[2], op;
    if (!case_begin("concat in place at a wrong place")) return;
    x = tensor_input(CUDNN_DATA_FLOAT, 3, dim, LAYOUT_NCHW, -4, 4);
    y = tensor_inout(CUDNN_DATA_FLOAT, 3, whole, LAYOUT_NCHW, -4, 4);
    desc[0] = node_add(&r, x);
    desc[1] = node_add_raw(
        &r, be_final(node_open_tensor(2, CUDNN_DATA_FLOAT, 3, dim, y->stride, 1)), y->data);
    op = concat_open(2, desc, node_add(&r, y), 1);
    be_set_int(op, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, 1);
    node_plan(&r, be_final(op));
    run_refused(CUDNN_STATUS_BAD_PARAM, node_execute, &r);
    be_free_all();
    case_end();
}

/* Tensors of any type as bytes: three rows of `elements`, side by side or one after the other. */
static void bits_case(int dtype, int bits, bool rows)
{
    enum { INPUTS = 3 };
    static const int elements[INPUTS] = {5, 16, 3};
    struct node_run r = {0};
    struct tensor *carrier[INPUTS], *out;
    be_desc desc[INPUTS], dy;
    int total = 0, bytes[2] = {1}, width = 2, dim[2], stride[2];
    double *exact;
    if (!case_begin("concat of type %d, %d bits, %s", dtype, bits, rows ? "rows" : "columns")) {
        return;
    }
    for (int i = 0; i < INPUTS; ++i) {
        int count = elements[i] * width;
        bytes[1] = (count * bits + 7) / 8;
        total += count;
        carrier[i] = tensor_input(CUDNN_DATA_UINT8, 2, bytes, LAYOUT_NCHW, 0, 255);
        dim[0] = rows ? elements[i] : width;
        dim[1] = rows ? width : elements[i];
        stride[0] = dim[1];
        stride[1] = 1;
        desc[i] = node_add_raw(
            &r, be_final(node_open_tensor(i + 1, (cudnnDataType_t)dtype, 2, dim, stride, 1)),
            carrier[i]->data);
    }
    dim[0] = rows ? total / width : width;
    dim[1] = rows ? width : total / width;
    stride[0] = dim[1];
    stride[1] = 1;
    bytes[1] = (total * bits + 7) / 8;
    out = tensor_inout(CUDNN_DATA_UINT8, 2, bytes, LAYOUT_NCHW, 0, 0);
    dy = node_add_raw(
        &r, be_final(node_open_tensor(INPUTS + 1, (cudnnDataType_t)dtype, 2, dim, stride, 1)),
        out->data);
    exact = node_doubles(out->count);
    for (int i = 0, first = 0; i < INPUTS; first += elements[i++]) {
        for (int e = 0; e < elements[i] * width; ++e) {
            int row = rows ? first + e / width : e / elements[i];
            int column = rows ? e % width : first + e % elements[i];
            for (int b = 0; b < bits; ++b) {
                int from = e * bits + b, to = (row * dim[1] + column) * bits + b;
                int set = (int)carrier[i]->value[from / 8] >> from % 8 & 1;
                exact[to / 8] += set << to % 8;
            }
        }
    }
    if (node_run(&r, be_final(concat_open(INPUTS, desc, dy, rows ? 0 : 1)))) {
        check_values("bytes", out, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    }
    free(exact);
    be_free_all();
    case_end();
}

static int compare_places(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;
    return left[0] < right[0] ? -1 : left[0] > right[0];
}

/* Pairs of offset and logical index, in the order of the memory. */
static int64_t *in_memory_order(const struct tensor *t)
{
    int64_t *list = malloc((size_t)t->count * 2 * sizeof *list);
    for (int64_t i = 0; i < t->count; ++i) {
        int at[8];
        coordinates(t, i, at);
        list[2 * i] = 0;
        list[2 * i + 1] = i;
        for (int d = 0; d < t->rank; ++d) list[2 * i] += (int64_t)at[d] * t->stride[d];
    }
    qsort(list, (size_t)t->count, 2 * sizeof *list, compare_places);
    return list;
}

static void reshape_case(int type, int other, enum layout from, enum layout to, int variant)
{
    static const int shapes[][5] = {{2, 3, 4, 5, 1},   {6, 20, 1, 1, 1}, {5, 1, 24, 1, 1},
                                    {1, 1, 1, 1, 120}, {3, 2, 2, 2, 5},  {4, 30, 1, 1, 1}};
    static const int ranks[] = {4, 2, 3, 5, 5, 2};
    struct node_run r = {0};
    int a = variant == 1 ? 0 : (int)random_int(0, 5), b = (int)random_int(0, 5);
    struct tensor *x, *y;
    be_desc dx, dy;
    double *exact;
    int64_t *source, *target;
    if (!case_begin("reshape %s to %s layouts %d %d, %d", node_type_name[type],
                    node_type_name[other], (int)from, (int)to, variant)) {
        return;
    }
    tensor_odd = variant == 2 ? (int)random_int(0, 16) : 0;
    x = tensor_input((cudnnDataType_t)type, ranks[a], shapes[a], from,
                     type == CUDNN_DATA_UINT8 ? 0 : -100, 100);
    tensor_odd = variant == 2 ? (int)random_int(0, 16) : 0;
    y = tensor_output((cudnnDataType_t)other, ranks[b], shapes[b], to);
    tensor_odd = 0;
    dx = node_add(&r, x);
    dy = node_add(&r, y);
    exact = node_doubles(y->count);
    source = in_memory_order(x);
    target = in_memory_order(y);
    for (int64_t k = 0; k < y->count; ++k) exact[target[2 * k + 1]] = x->value[source[2 * k + 1]];
    if (node_run(&r, be_final(reshape_open(dx, dy)))) {
        check_values("y", y, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    }
    free(source);
    free(target);
    free(exact);
    be_free_all();
    case_end();
}

/* What attention graphs use a reshape for: the transpose of a matrix is another view of it. */
static void reshape_transposes(void)
{
    static const int dim[2] = {2, 3}, swapped[2] = {3, 2}, strides[2] = {1, 3};
    static const double transposed[6] = {0, 3, 1, 4, 2, 5};
    struct node_run r = {0};
    struct tensor *x, *y;
    be_desc dx, dy;
    if (!case_begin("reshape transposes")) return;
    x = tensor_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, 0, 0);
    y = tensor_output(CUDNN_DATA_FLOAT, 2, swapped, LAYOUT_NCHW);
    for (int i = 0; i < 6; ++i) x->value[i] = i;
    tensor_write(x);
    dx = node_add(&r, x);
    dy = node_add_raw(&r, be_final(node_open_tensor(2, CUDNN_DATA_FLOAT, 2, swapped, strides, 1)),
                      y->data);
    /* y by its descriptor is the transpose, so its memory is that of x */
    if (node_run(&r, be_final(reshape_open(dx, dy)))) {
        double memory[6];
        for (int i = 0; i < 6; ++i) memory[i % 2 * 3 + i / 2] = transposed[i];
        check_values("y", y, memory, NULL, NULL, CUDNN_DATA_DOUBLE);
    }
    be_free_all();
    case_end();
}

/* x is y: the bytes stay, whatever the dims are called; bits in bytes move as bytes where they can. */
static void reshape_in_place(bool bits)
{
    static const int flat[1] = {120}, dim[2] = {8, 15}, one[1] = {1}, packed[2] = {15, 1};
    const int bytes[2] = {1, bits ? 60 : 120};
    cudnnDataType_t type = bits ? CUDNN_DATA_INT4 : CUDNN_DATA_INT8;
    struct node_run r = {0};
    struct tensor *x, *y;
    be_desc dx, dy;
    double *exact;
    if (!case_begin("reshape %s", bits ? "of half bytes" : "in place")) return;
    y = tensor_inout(CUDNN_DATA_INT8, 2, bytes, LAYOUT_NCHW, -100, 100);
    x = bits ? tensor_input(CUDNN_DATA_INT8, 2, bytes, LAYOUT_NCHW, -100, 100) : y;
    exact = node_doubles(x->count);
    memcpy(exact, x->value, (size_t)x->count * sizeof *exact);
    dx = node_add_raw(&r, be_final(node_open_tensor(1, type, 1, flat, one, 1)), x->data);
    dy = node_add_raw(&r, be_final(node_open_tensor(2, type, 2, dim, packed, 1)), y->data);
    if (node_run(&r, be_final(reshape_open(dx, dy)))) {
        check_values("y", y, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    }
    free(exact);
    be_free_all();
    case_end();
}

/* A reshape into a virtual tensor that is then an input of a concatenation. */
static void two_nodes(void)
{
    static const int flat[2] = {6, 4}, dim[3] = {2, 3, 4}, whole[3] = {2, 5, 4},
                     more[3] = {2, 2, 4};
    struct node_run r = {0};
    static const int64_t dims[3] = {2, 3, 4};
    struct tensor *x, *z, *y, *part[2], *workspace;
    be_desc dx, dz, dy, v, ops[2], inputs[2];
    int64_t uids[] = {1, 2, 3};
    if (!case_begin("reshape, then concat")) return;
    x = tensor_input(CUDNN_DATA_FLOAT, 2, flat, LAYOUT_NCHW, -4, 4);
    z = tensor_input(CUDNN_DATA_FLOAT, 3, more, LAYOUT_GAPS, -4, 4);
    y = tensor_output(CUDNN_DATA_FLOAT, 3, whole, LAYOUT_NHWC);
    part[0] = tensor_input(CUDNN_DATA_FLOAT, 3, dim, LAYOUT_NCHW, 0, 0);
    memcpy(part[0]->value, x->value, (size_t)x->count * sizeof *x->value);
    tensor_write(part[0]);
    part[1] = z;
    dx = node_add(&r, x);
    dz = node_add(&r, z);
    dy = node_add(&r, y);
    v = be_tensor(9, CUDNN_DATA_FLOAT, 3, dims, BE_VIRTUAL);
    inputs[0] = v;
    inputs[1] = dz;
    ops[1] = be_final(reshape_open(dx, v));
    ops[0] = be_final(concat_open(2, inputs, dy, 1));
    r.plan = be_plan_of(harness_handle, 2, ops);
    workspace = tensor_bytes(be_workspace(r.plan));
    r.pack = be_pack(3, uids, r.data, workspace->data);
    if (run_call(node_execute, &r)) check_concat(2, part, y, 1);
    be_free_all();
    case_end();
}

/* Inputs of no elements among others, and a reshape of nothing. */
static void nothing(void)
{
    static const int none[3] = {2, 0, 4}, dim[3] = {2, 3, 4}, strides[3] = {12, 4, 1};
    static const int flat[2] = {0, 5}, units[2] = {5, 1};
    struct node_run r = {0}, e = {0};
    struct tensor *x, *y;
    be_desc in[3], dx, dy;
    if (!case_begin("concat and reshape of nothing")) return;
    x = tensor_input(CUDNN_DATA_HALF, 3, dim, LAYOUT_NHWC, -4, 4);
    y = tensor_output(CUDNN_DATA_HALF, 3, dim, LAYOUT_NCHW);
    in[0] = node_add_raw(&r, be_final(node_open_tensor(1, CUDNN_DATA_HALF, 3, none, strides, 1)),
                         x->data);
    in[1] = node_add(&r, x);
    in[2] = in[0];
    if (node_run(&r, be_final(concat_open(3, in, node_add(&r, y), 1)))) check_concat(1, &x, y, 1);
    dx = node_add_raw(&e, be_final(node_open_tensor(1, CUDNN_DATA_HALF, 3, none, strides, 1)),
                      x->data);
    dy = node_add_raw(&e, be_final(node_open_tensor(2, CUDNN_DATA_HALF, 2, flat, units, 1)),
                      x->data);
    node_run(&e, be_final(reshape_open(dx, dy)));
    be_free_all();
    case_end();
}

static void refusals(void)
{
    static const int64_t a[] = {2, 3, 4, 5}, b[] = {2, 4, 4, 5}, c[] = {2, 7, 4, 5},
                         d[] = {2, 7, 4, 6}, e[] = {2, 8, 4, 5}, f[] = {2, 4, 20}, g[] = {6, 21};
    static const int odd[] = {2, 7, 4, 5}, gaps[] = {512, 64, 16, 2}, broadcast[] = {0, 20, 5, 1};
    be_desc in[40], y, op;
    if (!case_begin("concat and reshape refusals")) return;
    in[0] = be_tensor(1, CUDNN_DATA_FLOAT, 4, a, BE_PLAIN);
    in[1] = be_tensor(2, CUDNN_DATA_FLOAT, 4, b, BE_PLAIN);
    y = be_tensor(3, CUDNN_DATA_FLOAT, 4, c, BE_PLAIN);
    node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "dim[1]=3 of input 0",
                 concat_open(2, in, y, 0));
    node_refused(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_OPERATION_CONCAT_AXIS=-1",
                 concat_open(2, in, y, -1));
    node_refused(CUDNN_STATUS_BAD_PARAM, "axis 4", concat_open(2, in, y, 4));
    node_refused(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_OPERATION_CONCAT_AXIS=99",
                 concat_open(2, in, y, 99));
    for (int wrong = -2; wrong <= 2; wrong += 4) {
        op = concat_open(2, in, y, 1);
        be_set_int(op, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, wrong);
        node_refused(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX", op);
    }
    node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "is not the sum",
                 concat_open(2, in, be_tensor(3, CUDNN_DATA_FLOAT, 4, e, BE_PLAIN), 1));
    node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "dim[3]=5 of input 0",
                 concat_open(2, in, be_tensor(3, CUDNN_DATA_FLOAT, 4, d, BE_PLAIN), 1));
    in[1] = be_tensor(2, CUDNN_DATA_FLOAT, 3, f, BE_PLAIN);
    node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "has 3 dimensions",
                 concat_open(2, in, y, 1));
    in[1] = be_tensor(2, CUDNN_DATA_COMPLEX_FP32, 4, b, BE_PLAIN);
    node_refused(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "complex", concat_open(2, in, y, 1));
    in[1] = be_tensor(2, CUDNN_DATA_FLOAT, 4, b, BE_PLAIN);
    node_refused(
        CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "share bytes",
        concat_open(2, in, be_final(node_open_tensor(3, CUDNN_DATA_INT4, 4, odd, gaps, 1)), 1));
    node_refused(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "lie in one place",
                 concat_open(2, in,
                             be_final(node_open_tensor(3, CUDNN_DATA_FLOAT, 4, odd, broadcast, 1)),
                             1));
    for (int i = 0; i < 40; ++i) in[i] = in[0];
    node_refused(CUDNN_STATUS_NOT_SUPPORTED, "40 elements", concat_open(40, in, y, 1));
    node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "120 elements",
                 reshape_open(in[0], be_tensor(3, CUDNN_DATA_FLOAT, 2, g, BE_PLAIN)));
    node_refused(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "complex",
                 reshape_open(in[0], be_tensor(3, CUDNN_DATA_COMPLEX_FP64, 4, a, BE_PLAIN)));
    node_refused(
        CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "no order in memory",
        reshape_open(be_final(node_open_tensor(1, CUDNN_DATA_FLOAT, 4, odd, broadcast, 1)), y));
    node_refused(
        CUDNN_STATUS_BAD_PARAM, "no tensor in memory",
        reshape_open(be_tensor(1, CUDNN_DATA_FLOAT, 2, (const int64_t[]){1, 1}, BE_BY_VALUE),
                     be_tensor(2, CUDNN_DATA_FLOAT, 1, (const int64_t[]){1}, BE_PLAIN)));
    be_free_all();
    case_end();
}

int main(int argc, char **argv)
{
    /* clang-format off */
    static const char *const symbols[] = {
#define WD_KERNEL(symbol, ...) "wd_" #symbol,
#include "ops/tensor/concat_copy_kernels.def"
#undef WD_KERNEL
    };
    /* clang-format on */
    static const int types[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8,   CUDNN_DATA_UINT8,
                                CUDNN_DATA_INT32,    CUDNN_DATA_INT64};
    static const int vectors[] = {CUDNN_DATA_INT8x4, CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x32};
    static const struct {
        int dtype, bits;
    } bits[] = {
        {CUDNN_DATA_BOOLEAN, 1},       {CUDNN_DATA_INT4, 4},           {CUDNN_DATA_UINT4, 4},
        {CUDNN_DATA_FP4_E2M1, 4},      {CUDNN_DATA_FP8_E4M3, 8},       {CUDNN_DATA_FP8_E5M2, 8},
        {CUDNN_DATA_FP8_E8M0, 8},      {CUDNN_DATA_UINT32, 32},        {CUDNN_DATA_INT64, 64},
        {CUDNN_DATA_COMPLEX_FP32, 64}, {CUDNN_DATA_COMPLEX_FP64, 128}, {CUDNN_DATA_BFLOAT16, 16}};
    harness_start(argc, argv);
    for (int t = 0; t < 8; ++t) {
        for (int l = LAYOUT_NCHW; l <= LAYOUT_GAPS; ++l) {
            int other = types[(t + 1 + l) % 8];
            concat_case(types[t], types[t], (enum layout)l, 1);
            concat_case(types[t], types[t], (enum layout)l, 3);
            concat_case(types[t], types[t], (enum layout)l, l == LAYOUT_NHWC ? 31 : 9);
            concat_case(types[t], other, (enum layout)l, 3);
            for (int m = LAYOUT_NCHW; m <= LAYOUT_GAPS; ++m) {
                reshape_case(types[t], types[t], (enum layout)l, (enum layout)m, 1);
                reshape_case(types[t], types[t], (enum layout)l, (enum layout)m, 2);
                reshape_case(types[t], other, (enum layout)l, (enum layout)m, 3);
            }
        }
    }
    for (int t = 0; t < 8; ++t) {
        for (int k = 0; k < 4 * 3 * 2; ++k) {
            enum layout layout = (enum layout)(LAYOUT_NCHW + k / 4 % 3);
            large_concat(types[t], layout, k % 4, k / 12, 1 + (k + t) % 5);
            if (k % 5 == t % 5) large_concat(types[t], layout, k % 4, k / 12, 16 + k % 15);
        }
    }
    for (int t = 0; t < 8; ++t) {
        for (int odd = 0; odd < 2; ++odd) {
            rows_concat(types[t], LAYOUT_NHWC, LAYOUT_NHWC, odd, 2);
            rows_concat(types[t], LAYOUT_NHWC, LAYOUT_NHWC, odd, 3 + t);
            rows_concat(types[t], LAYOUT_NHWC, LAYOUT_NHWC, odd, t % 2 ? 31 : 12);
            rows_concat(types[t], LAYOUT_NHWC, LAYOUT_NCHW, odd, 2);
            rows_concat(types[t], LAYOUT_NCHW, LAYOUT_NHWC, odd, 2);
        }
    }
    for (int t = 0; t < 3; ++t) {
        concat_case(vectors[t], vectors[t], LAYOUT_VECT, 1);
        concat_case(vectors[t], vectors[t], LAYOUT_VECT, 3);
    }
    for (size_t b = 0; b < sizeof bits / sizeof bits[0]; ++b) {
        bits_case(bits[b].dtype, bits[b].bits, false);
        bits_case(bits[b].dtype, bits[b].bits, true);
    }
    for (int which = 0; which < 3; ++which) {
        in_place_case(which, true);
        in_place_case(which, false);
    }
    in_place_wrong();
    reshape_transposes();
    reshape_in_place(false);
    reshape_in_place(true);
    two_nodes();
    nothing();
    refusals();
    if (argc == 1 && getenv("WARPDNN_ENGINES"))
        kernels_reached(symbols, sizeof symbols / sizeof symbols[0]);
    return harness_finish();
}
