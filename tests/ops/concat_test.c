/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenation: every element is looked for where the documentation says that it goes. All types, also of less
 * than a byte and complex ones, conversions, layouts, axes, many inputs, and inputs that lie in the output already. */
#include "kernels_reached.h"
#include "move_case.h"

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
    if (node_run(&r, be_final(concat_open(count, desc, dy, axis)))) concat_check(count, x, y, axis);
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
    if (node_run(&r, be_final(concat_open(count, desc, dy, axis)))) concat_check(count, x, y, axis);
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
    if (node_run(&r, be_final(concat_open(count, desc, dy, 1)))) concat_check(count, x, y, 1);
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

int main(int argc, char **argv)
{
    /* clang-format off */
    static const char *const symbols[] = {
#define WD_KERNEL(symbol, ...) "wd_" #symbol,
#include "ops/tensor/concat_copy_kernels.def"
#undef WD_KERNEL
    };
    /* clang-format on */
    static const int vectors[] = {CUDNN_DATA_INT8x4, CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x32};
    static const struct {
        int dtype, bits;
    } bits[] = {
        {CUDNN_DATA_BOOLEAN, 1},       {CUDNN_DATA_INT4, 4},           {CUDNN_DATA_UINT4, 4},
        {CUDNN_DATA_FP4_E2M1, 4},      {CUDNN_DATA_FP8_E4M3, 8},       {CUDNN_DATA_FP8_E5M2, 8},
        {CUDNN_DATA_FP8_E8M0, 8},      {CUDNN_DATA_UINT32, 32},        {CUDNN_DATA_INT64, 64},
        {CUDNN_DATA_COMPLEX_FP32, 64}, {CUDNN_DATA_COMPLEX_FP64, 128}, {CUDNN_DATA_BFLOAT16, 16}};
    harness_start(argc, argv);
    for (int t = 0; t < MOVE_TYPES; ++t) {
        int type = move_types[t];
        for (int l = LAYOUT_NCHW; l <= LAYOUT_GAPS; ++l) {
            int other = move_types[(t + 1 + l) % MOVE_TYPES];
            concat_case(type, type, (enum layout)l, 1);
            concat_case(type, type, (enum layout)l, 3);
            concat_case(type, type, (enum layout)l, l == LAYOUT_NHWC ? 31 : 9);
            concat_case(type, other, (enum layout)l, 3);
        }
        for (int k = 0; k < 4 * 3 * 2; ++k) {
            enum layout layout = (enum layout)(LAYOUT_NCHW + k / 4 % 3);
            large_concat(type, layout, k % 4, k / 12, 1 + (k + t) % 5);
            if (k % 5 == t % 5) large_concat(type, layout, k % 4, k / 12, 16 + k % 15);
        }
        for (int odd = 0; odd < 2; ++odd) {
            rows_concat(type, LAYOUT_NHWC, LAYOUT_NHWC, odd, 2);
            rows_concat(type, LAYOUT_NHWC, LAYOUT_NHWC, odd, 3 + t);
            rows_concat(type, LAYOUT_NHWC, LAYOUT_NHWC, odd, t % 2 ? 31 : 12);
            rows_concat(type, LAYOUT_NHWC, LAYOUT_NCHW, odd, 2);
            rows_concat(type, LAYOUT_NCHW, LAYOUT_NHWC, odd, 2);
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
    if (argc == 1 && getenv("WARPDNN_ENGINES"))
        kernels_reached(symbols, sizeof symbols / sizeof symbols[0]);
    return harness_finish();
}
