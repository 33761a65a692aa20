/* SPDX-License-Identifier: Apache-2.0
 *
 * Reshape: elements stay in the order of the memory, whatever the dims are called; with a concatenation behind it; and
 * what both refuse. */
#include "move_case.h"

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

/* Sizes that the driver copies, and one that it does not, at addresses that it copies to, and others. */
static void reshape_bytes(int rows, int odd)
{
    const int from[] = {rows, 128}, to[] = {128, rows};
    struct node_run r = {0};
    struct tensor *x, *y;
    be_desc dx, dy;
    double *exact;
    if (!case_begin("reshape %d rows of 128 floats, %d off", rows, odd)) return;
    tensor_odd = odd;
    x = tensor_input(CUDNN_DATA_FLOAT, 2, from, LAYOUT_NCHW, -100, 100);
    y = tensor_output(CUDNN_DATA_FLOAT, 2, to, LAYOUT_NCHW);
    tensor_odd = 0;
    dx = node_add(&r, x);
    dy = node_add(&r, y);
    exact = node_doubles(y->count);
    memcpy(exact, x->value, (size_t)y->count * sizeof *exact);
    if (node_run(&r, be_final(reshape_open(dx, dy)))) {
        check_values("y", y, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    }
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
    if (run_call(node_execute, &r)) concat_check(2, part, y, 1);
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
    if (node_run(&r, be_final(concat_open(3, in, node_add(&r, y), 1)))) concat_check(1, &x, y, 1);
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
    harness_start(argc, argv);
    for (int t = 0; t < MOVE_TYPES; ++t) {
        int type = move_types[t];
        for (int l = LAYOUT_NCHW; l <= LAYOUT_GAPS; ++l) {
            int other = move_types[(t + 1 + l) % MOVE_TYPES];
            for (int m = LAYOUT_NCHW; m <= LAYOUT_GAPS; ++m) {
                reshape_case(type, type, (enum layout)l, (enum layout)m, 1);
                reshape_case(type, type, (enum layout)l, (enum layout)m, 2);
                reshape_case(type, other, (enum layout)l, (enum layout)m, 3);
            }
        }
    }
    for (int odd = 0; odd < 2; ++odd) {
        reshape_bytes(8, odd);
        reshape_bytes(24, odd);
        reshape_bytes(9, odd);
    }
    reshape_transposes();
    reshape_in_place(false);
    reshape_in_place(true);
    two_nodes();
    nothing();
    refusals();
    return harness_finish();
}
