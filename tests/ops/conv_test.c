/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution through the legacy calls: three directions, bias gradient and im2col, on random
 * shapes, types, layouts, groups, strides, dilations and paddings, against sums over all products
 * in double; gradients also against finite differences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/conv_case.h"

static void random_case(enum conv_direction direction, cudnnDataType_t dtype, int spatial, int turn)
{
    struct conv_call c = {.direction = direction};
    struct conv_types types = {dtype, dtype, dtype};
    enum layout layout[3];
    if (!case_begin("%s type %d spatial %d turn %d", conv_direction_name[direction], (int)dtype,
                    spatial, turn)) {
        return;
    }
    c.g = conv_random_geometry(spatial);
    c.alpha = turn == 0 ? 1.0 : conv_random_scalar();
    c.beta = turn == 0 ? 0.0 : conv_random_scalar();
    c.algorithm = (int)random_int(0, conv_algorithm_count(direction) - 1);
    for (int i = 0; i < 3; ++i) layout[i] = (enum layout)random_of(0, 1, 2);
    conv_set_up(&c, &types, layout);
    conv_run_and_check(&c);
    conv_tear_down(&c);
}

struct shape {
    enum conv_direction only; /* the direction that it is for; the others would take too long */
    const char *name;
    struct conv_geometry g;
};

static const struct shape shapes[] = {
    {CONV_ANY, "pointwise 1x1", {2, 2, 1, 17, 13, {9, 7}, {1, 1}, {0}, {0, 0}, {1, 1}, {1, 1}, 1}},
    {CONV_ANY, "3x3 same", {2, 2, 1, 16, 16, {14, 14}, {3, 3}, {0}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {CONV_ANY, "3x3 stride 2", {2, 2, 1, 8, 8, {15, 16}, {3, 3}, {0}, {1, 1}, {2, 2}, {1, 1}, 1}},
    {CONV_ANY, "stem 7x7", {2, 1, 1, 3, 8, {31, 33}, {7, 7}, {0}, {3, 3}, {2, 2}, {1, 1}, 1}},
    {CONV_ANY, "depthwise", {2, 2, 24, 24, 24, {9, 10}, {3, 3}, {0}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {CONV_ANY,
     "depthwise multiplier",
     {2, 2, 7, 7, 21, {8, 8}, {3, 2}, {0}, {1, 0}, {2, 1}, {1, 1}, 1}},
    {CONV_ANY,
     "filter is the image",
     {2, 3, 1, 5, 6, {8, 9}, {8, 9}, {0}, {0, 0}, {1, 1}, {1, 1}, 1}},
    {CONV_ANY, "dilated", {2, 1, 1, 4, 4, {19, 21}, {3, 3}, {0}, {2, 2}, {1, 1}, {2, 3}, 0}},
    {CONV_ANY,
     "stride beyond filter",
     {2, 2, 1, 3, 4, {13, 12}, {2, 1}, {0}, {0, 0}, {4, 5}, {1, 1}, 1}},
    {CONV_ANY,
     "padding beyond filter",
     {2, 1, 1, 2, 3, {3, 2}, {3, 3}, {0}, {9, 8}, {2, 3}, {1, 1}, 0}},
    {CONV_ANY, "one dimension", {1, 2, 2, 6, 4, {61}, {9}, {0}, {4}, {3}, {2}, 1}},
    {CONV_ANY,
     "one dimension as H=1",
     {2, 2, 1, 6, 4, {1, 61}, {1, 9}, {0}, {0, 4}, {1, 3}, {1, 2}, 1}},
    {CONV_ANY,
     "three dimensions",
     {3, 1, 1, 4, 5, {5, 6, 7}, {3, 2, 3}, {0}, {1, 0, 1}, {1, 2, 1}, {1, 1, 2}, 1}},
    {CONV_ANY,
     "one of everything",
     {2, 1, 1, 1, 1, {1, 1}, {1, 1}, {0}, {0, 0}, {1, 1}, {1, 1}, 1}},
    /* a reduction in segments: few outputs, 2^19 and more products each */
    {CONV_WGRAD,
     "wgrad of a large image",
     {2, 9, 1, 1, 1, {257, 255}, {1, 2}, {0}, {0, 0}, {1, 1}, {1, 1}, 1}},
    {CONV_FPROP,
     "fprop of a large filter",
     {1, 1, 1, 4, 1, {150000}, {149999}, {0}, {0}, {1}, {1}, 1}},
};

/* No layout of its tensors is another one. */
static const struct shape cell = {
    CONV_ANY, "cell", {2, 2, 2, 4, 6, {5, 6}, {3, 2}, {0}, {1, 1}, {2, 1}, {1, 1}, 1}};

static void shape_case(const struct shape *shape, enum conv_direction direction,
                       cudnnDataType_t dtype, enum layout layout)
{
    struct conv_call c = {.direction = direction, .alpha = 1.0};
    struct conv_types types = {dtype, dtype, dtype};
    enum layout layouts[3] = {layout, layout, layout};
    if (!case_begin("%s %s type %d layout %d", conv_direction_name[direction], shape->name,
                    (int)dtype, (int)layout)) {
        return;
    }
    c.g = shape->g;
    c.algorithm = 1;
    conv_set_output(&c.g);
    conv_set_up(&c, &types, layouts);
    conv_run_and_check(&c);
    conv_tear_down(&c);
}

/* Every algorithm of a direction gives the right answer with the workspace that it asks for. */
static void algorithm_case(enum conv_direction direction, int algorithm)
{
    struct conv_call c = {
        .direction = direction, .alpha = 0.5, .beta = -1.5, .algorithm = algorithm};
    struct conv_types types = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT};
    enum layout layout[3] = {LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NCHW};
    if (!case_begin("%s algorithm %d", conv_direction_name[direction], algorithm)) return;
    c.g = conv_random_geometry(2);
    conv_set_up(&c, &types, layout);
    conv_run_and_check(&c);
    if (algorithm == 0 && c.workspace) case_fail("algorithm 0 asks for a workspace");
    conv_tear_down(&c);
}

/* 8-bit images: every type that the sum may go out in, packed and vectorised. */
static void integer_case(cudnnDataType_t x, cudnnDataType_t w, cudnnDataType_t y, int turn)
{
    struct conv_call c = {.direction = CONV_FPROP};
    struct conv_types types = {x, w, y};
    enum layout layout[3];
    int lanes = w == CUDNN_DATA_INT8x32 ? 32 : w == CUDNN_DATA_INT8x4 ? 4 : 1;
    bool vect_y = y == CUDNN_DATA_INT8x4 || y == CUDNN_DATA_INT8x32 || y == CUDNN_DATA_UINT8x4;
    if (!case_begin("fprop integers %d %d %d turn %d", (int)x, (int)w, (int)y, turn)) return;
    c.g = conv_random_geometry(2);
    if (lanes > 1) {
        c.g.groups = random_of(1, 2);
        c.g.channels = c.g.groups * lanes * random_of(1, 2);
        c.g.filters = c.g.groups * lanes * random_of(1, 2);
    }
    c.alpha = turn == 0 ? 1.0 : y == CUDNN_DATA_INT32 ? -3.0 : 0.0625;
    c.beta = turn == 0 ? 0.0 : y == CUDNN_DATA_INT32 ? 2.0 : 0.5;
    c.algorithm = 1;
    layout[0] = lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(0, 1, 2);
    layout[1] = lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(0, 1);
    layout[2] = vect_y ? LAYOUT_VECT : (enum layout)random_of(0, 1, 2);
    conv_set_up(&c, &types, layout);
    conv_run_and_check(&c);
    conv_tear_down(&c);
}

/* NaN in the image reaches exactly the outputs that see it; NaN in an output that beta 0 drops, none. */
static void nan_case(enum conv_direction direction)
{
    struct conv_call c = {.direction = direction, .alpha = 1.0, .algorithm = 1};
    struct conv_types types = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT};
    enum layout layout[3] = {LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NHWC};
    struct tensor *out;
    struct tensor *in;
    if (!case_begin("%s NaN", conv_direction_name[direction])) return;
    c.g = shapes[1].g;
    c.g.channels = c.g.filters = 3;
    conv_set_output(&c.g);
    conv_set_up(&c, &types, layout);
    out = conv_output_of(&c);
    in = direction == CONV_DGRAD ? c.y : c.x;
    for (int64_t i = 0; i < out->count; ++i) out->value[i] = NAN;
    in->value[random_int(0, in->count - 1)] = NAN;
    in->value[random_int(0, in->count - 1)] = INFINITY;
    tensor_write(out);
    tensor_write(in);
    conv_run_and_check(&c);
    conv_tear_down(&c);
}

/* (L(v + h) - L(v - h)) / 2h of L = sum of dy * y(x, w), for some coordinates of the input v. */
static void difference_case(enum conv_direction direction, int turn)
{
    enum { PROBES = 6 };
    struct conv_call c = {.direction = direction, .alpha = 1.0, .algorithm = 1};
    struct conv_types types = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE};
    enum layout layout[3] = {LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NCHW};
    struct tensor *of;
    double *gradient;
    double *start;
    double *dy;
    const double h = 0.125; /* the function is linear in v: any step is exact */
    if (!case_begin("%s finite differences turn %d", conv_direction_name[direction], turn)) return;
    c.g = conv_random_geometry((int)random_int(1, 3));
    conv_set_up(&c, &types, layout);
    c.algorithm = 0; /* no workspace */
    of = conv_output_of(&c);
    gradient = conv_doubles(of->count);
    start = conv_doubles(of->count);
    dy = conv_doubles(c.y->count);
    memcpy(start, of->value, (size_t)of->count * sizeof *start);
    memcpy(dy, c.y->value, (size_t)c.y->count * sizeof *dy);
    if (!run_call(conv_run, &c)) goto done;
    memcpy(gradient, of->value, (size_t)of->count * sizeof *gradient);
    c.direction = CONV_FPROP;
    c.y->output = true;
    of->output = false;
    for (int probe = 0; probe < PROBES; ++probe) {
        int64_t i = random_int(0, of->count - 1);
        double loss[2] = {0.0, 0.0};
        for (int side = 0; side < 2; ++side) {
            memcpy(of->value, start, (size_t)of->count * sizeof *start);
            of->value[i] += side ? h : -h;
            tensor_write(of);
            if (!run_call(conv_run, &c)) goto done;
            for (int64_t k = 0; k < c.y->count; ++k) loss[side] += dy[k] * c.y->value[k];
        }
        if (fabs((loss[1] - loss[0]) / (2.0 * h) - gradient[i]) >
            1e-9 * (1.0 + fabs(gradient[i]))) {
            case_fail("gradient[%lld] is %.12g, the difference quotient %.12g", (long long)i,
                      gradient[i], (loss[1] - loss[0]) / (2.0 * h));
        }
    }
done:
    free(gradient);
    free(start);
    free(dy);
    conv_tear_down(&c);
}

static cudnnStatus_t bias_gradient(void *context)
{
    struct conv_call *c = context;
    double s[2];
    return cudnnConvolutionBackwardBias(
        harness_handle, conv_scalar(c->y->dtype, c->alpha, s), c->y->desc, c->y->data,
        conv_scalar(c->y->dtype, c->beta, s + 1), c->b->desc, c->b->data);
}

static void bias_case(cudnnDataType_t dtype, int rank, enum layout layout, int turn)
{
    struct conv_call c = {0};
    int dim[8];
    int bias[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int64_t points = 1;
    double *exact;
    double *magnitude;
    if (!case_begin("bias type %d rank %d layout %d turn %d", (int)dtype, rank, (int)layout,
                    turn)) {
        return;
    }
    dim[0] = random_of(1, 2, 5);
    dim[1] = bias[1] = random_of(1, 3, 7, 16);
    for (int d = 2; d < rank; ++d) dim[d] = random_of(1, 3, 5, 8);
    if (turn == 2) { /* in segments */
        dim[0] = 8;
        dim[1] = bias[1] = 2;
        dim[2] = 41000 / (rank - 2);
        for (int d = 3; d < rank; ++d) dim[d] = d == 3 ? rank - 2 : 1;
    }
    c.alpha = turn == 0 ? 1.0 : conv_random_scalar();
    c.beta = turn == 0 ? 0.0 : conv_random_scalar();
    c.y = tensor_input(dtype, rank, dim, layout, -1.0, 1.0);
    c.b = tensor_inout(dtype, rank, bias, LAYOUT_NCHW, -1.0, 1.0);
    exact = conv_doubles(c.b->count);
    magnitude = conv_doubles(c.b->count);
    for (int d = 2; d < rank; ++d) points *= dim[d];
    for (int64_t i = 0; i < c.y->count; ++i) {
        exact[i / points % dim[1]] += c.y->value[i];
        magnitude[i / points % dim[1]] += fabs(c.y->value[i]);
    }
    for (int k = 0; k < dim[1]; ++k) {
        double old = c.beta != 0.0 ? c.beta * c.b->value[k] : 0.0;
        exact[k] = c.alpha * exact[k] + old;
        magnitude[k] = fabs(c.alpha) * magnitude[k] + fabs(old);
    }
    if (run_call(bias_gradient, &c)) {
        check_values("db", c.b, exact, NULL, magnitude,
                     dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    case_end();
}

static cudnnStatus_t im2col(void *context)
{
    struct conv_call *c = context;
    return cudnnIm2Col(harness_handle, c->x->desc, c->x->data, c->filter, c->conv, c->z->data);
}

/* Of vectors the matrix has single channels. */
static void im2col_case(cudnnDataType_t dtype, int spatial, int turn)
{
    struct conv_call c = {.direction = CONV_FPROP};
    int lanes = dtype == CUDNN_DATA_INT8x32                                 ? 32
                : dtype == CUDNN_DATA_INT8x4 || dtype == CUDNN_DATA_UINT8x4 ? 4
                                                                            : 1;
    enum layout plain = lanes > 1 ? LAYOUT_VECT : LAYOUT_NCHW;
    enum layout layout[3] = {lanes > 1 ? LAYOUT_VECT : (enum layout)(turn % 3), plain, plain};
    cudnnDataType_t lane = dtype == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_UINT8
                           : lanes > 1                 ? CUDNN_DATA_INT8
                                                       : dtype;
    struct conv_types types = {dtype, dtype, dtype};
    int col[2];
    int64_t points;
    int64_t taps;
    int64_t pixels;
    double *exact;
    if (!case_begin("im2col type %d spatial %d turn %d", (int)dtype, spatial, turn)) return;
    c.g = conv_is_integer(dtype) ? cell.g : conv_random_geometry(spatial);
    if (lanes > 1) {
        c.g.groups = 1;
        c.g.channels = lanes * random_of(1, 2);
        c.g.filters = lanes;
    }
    if (dtype == CUDNN_DATA_INT32 || dtype == CUDNN_DATA_UINT8) types.w = CUDNN_DATA_INT8;
    if (dtype == CUDNN_DATA_UINT8x4) types.w = CUDNN_DATA_INT8x4;
    conv_set_output(&c.g);
    conv_set_up(&c, &types, layout);
    c.y->output = false;
    points = conv_volume(&c.g, c.g.output);
    taps = conv_volume(&c.g, c.g.filter);
    pixels = conv_volume(&c.g, c.g.image);
    col[0] = (int)(c.g.channels * taps);
    col[1] = (int)(c.g.batch * points);
    c.z = tensor_output(lane, 2, col, LAYOUT_NCHW);
    exact = conv_doubles(c.z->count);
    for (int64_t i = 0; i < c.z->count; ++i) {
        int o[3];
        int t[3];
        int64_t row = i / col[1];
        int64_t column = i % col[1];
        int64_t pixel;
        conv_point(&c.g, c.g.output, column % points, o);
        conv_point(&c.g, c.g.filter, row % taps, t);
        pixel = conv_pixel_of(&c.g, o, t);
        if (pixel >= 0) {
            exact[i] = c.x->value[(column / points * c.g.channels + row / taps) * pixels + pixel];
        }
    }
    if (run_call(im2col, &c)) check_values("col", c.z, exact, NULL, NULL, lane);
    free(exact);
    conv_tear_down(&c);
}

/* Whole scalars of an int32 output: its arithmetic is that of int32, which wraps around. */
static void wrapping_case(int turn)
{
    struct conv_call c = {.direction = CONV_FPROP, .alpha = 1065353216.0, .algorithm = turn % 2};
    struct conv_types types = {CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32};
    enum layout layout[3] = {LAYOUT_NHWC, LAYOUT_NHWC, LAYOUT_NHWC};
    double *sum;
    double *magnitude;
    size_t bytes;
    if (!case_begin("fprop int32 wraps around, turn %d", turn)) return;
    c.g = conv_random_geometry(2);
    c.beta = turn < 2 ? 0.0 : -2147483648.0;
    conv_set_up(&c, &types, layout);
    sum = conv_doubles(c.y->count);
    magnitude = conv_doubles(c.y->count);
    conv_add_products(&c, sum, magnitude);
    for (int64_t i = 0; i < c.y->count; ++i) {
        uint64_t bits = (uint64_t)(int64_t)c.alpha * (uint64_t)(int64_t)sum[i];
        if (c.beta != 0.0) bits += (uint64_t)(int64_t)c.beta * (uint64_t)(int64_t)c.y->value[i];
        sum[i] = (double)(int32_t)(uint32_t)bits;
    }
    bytes = conv_workspace_of(&c);
    if (bytes > 0) c.workspace = tensor_bytes((int64_t)bytes);
    if (run_call(conv_run, &c)) check_values("y", c.y, sum, NULL, NULL, CUDNN_DATA_DOUBLE);
    free(sum);
    free(magnitude);
    conv_tear_down(&c);
}

static void integer_cases(void)
{
    static const cudnnDataType_t plain[] = {CUDNN_DATA_INT8, CUDNN_DATA_UINT8};
    static const cudnnDataType_t plain_out[] = {CUDNN_DATA_INT8, CUDNN_DATA_INT32,
                                                CUDNN_DATA_FLOAT};
    static const cudnnDataType_t vect[] = {CUDNN_DATA_INT8x4, CUDNN_DATA_UINT8x4};
    static const cudnnDataType_t vect_out[] = {CUDNN_DATA_INT8x4, CUDNN_DATA_INT32,
                                               CUDNN_DATA_FLOAT};
    for (int turn = 0; turn < 2; ++turn) {
        for (int i = 0; i < 2; ++i) {
            for (int o = 0; o < 3; ++o) {
                integer_case(plain[i], CUDNN_DATA_INT8, plain_out[o], turn);
                integer_case(vect[i], CUDNN_DATA_INT8x4, vect_out[o], turn);
            }
        }
        integer_case(CUDNN_DATA_UINT8, CUDNN_DATA_INT8, CUDNN_DATA_UINT8, turn);
        integer_case(CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32, turn);
        integer_case(CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32, CUDNN_DATA_FLOAT, turn);
    }
}

static void plain_cases(enum conv_direction direction)
{
    enum { TURNS = 4 };
    for (int t = 0; t < CONV_FLOAT_TYPES; ++t) {
        for (int spatial = 1; spatial <= 3; ++spatial) {
            for (int turn = 0; turn < TURNS; ++turn) {
                random_case(direction, conv_float_types[t], spatial, turn);
            }
        }
    }
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; ++s) {
        if (shapes[s].only != CONV_ANY && shapes[s].only != direction) continue;
        shape_case(&shapes[s], direction, CUDNN_DATA_FLOAT, LAYOUT_NCHW);
        shape_case(&shapes[s], direction, CUDNN_DATA_HALF, LAYOUT_NHWC);
        shape_case(&shapes[s], direction, CUDNN_DATA_DOUBLE, LAYOUT_GAPS);
    }
    for (int a = 0; a < conv_algorithm_count(direction); ++a) algorithm_case(direction, a);
    nan_case(direction);
}

/* Every type in every layout that it has, in every direction. */
static void cell_cases(void)
{
    static const cudnnDataType_t bytes[] = {CUDNN_DATA_INT8, CUDNN_DATA_UINT8, CUDNN_DATA_INT32};
    for (int layout = LAYOUT_NCHW; layout <= LAYOUT_GAPS; ++layout) {
        for (int t = 0; t < CONV_FLOAT_TYPES; ++t) {
            shape_case(&cell, CONV_FPROP, conv_float_types[t], (enum layout)layout);
            shape_case(&cell, CONV_DGRAD, conv_float_types[t], (enum layout)layout);
            shape_case(&cell, CONV_WGRAD, conv_float_types[t], (enum layout)layout);
        }
        for (int t = 0; t < 3; ++t) im2col_case(bytes[t], 2, layout);
    }
    im2col_case(CUDNN_DATA_INT8x4, 2, 0);
    im2col_case(CUDNN_DATA_UINT8x4, 2, 0);
    im2col_case(CUDNN_DATA_INT8x32, 2, 0);
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    plain_cases(CONV_FPROP);
    plain_cases(CONV_DGRAD);
    plain_cases(CONV_WGRAD);
    for (int turn = 0; turn < 4; ++turn) {
        difference_case(CONV_DGRAD, turn);
        difference_case(CONV_WGRAD, turn);
        wrapping_case(turn);
    }
    integer_cases();
    for (int t = 0; t < CONV_FLOAT_TYPES; ++t) {
        for (int rank = 3; rank <= 5; ++rank) {
            for (int turn = 0; turn < 3; ++turn) {
                bias_case(conv_float_types[t], rank, (enum layout)(turn % 3), turn);
                im2col_case(conv_float_types[t], rank - 2, turn);
            }
        }
    }
    cell_cases();
    return harness_finish();
}
