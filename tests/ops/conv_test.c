/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution through the legacy calls: three directions, fused forward, bias gradient, im2col and
 * filter reordering, on random shapes, types, layouts, groups, strides, dilations and paddings,
 * against sums over all products written out here in double; gradients also against finite
 * differences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/harness.h"

enum direction { ANY, FPROP, DGRAD, WGRAD, FUSED };
static const char *const direction_name[] = {"", "fprop", "dgrad", "wgrad", "fused"};

static const cudnnDataType_t float_types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                              CUDNN_DATA_BFLOAT16};

struct geometry {
    int spatial;
    int batch, groups, channels, filters; /* C and K over all groups */
    int image[3], filter[3], output[3];
    int pad[3], stride[3], dilation[3];
    cudnnConvolutionMode_t mode;
};

struct call {
    enum direction direction;
    struct geometry g;
    cudnnConvolutionDescriptor_t conv;
    cudnnFilterDescriptor_t filter;
    cudnnActivationDescriptor_t activation;
    struct tensor *x, *w, *y, *z, *b, *workspace;
    int algorithm;
    double alpha, beta;
};

static const void *scalar(cudnnDataType_t dtype, double value, double *storage)
{
    if (dtype == CUDNN_DATA_DOUBLE) *storage = value;
    else *(float *)storage = (float)value;
    return storage;
}

static double random_scalar(void)
{
    return (double)random_of(0, 1, 2, -3) * 0.5;
}

static double *doubles(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

/* --- Geometry ----------------------------------------------------------------------------------- */

/* What the formula gives; the shape may be chosen such that a filter just fits. */
static void set_output(struct geometry *g)
{
    for (int d = 0; d < g->spatial; ++d) {
        int window = (g->filter[d] - 1) * g->dilation[d] + 1;
        int room = g->image[d] + 2 * g->pad[d] - window;
        if (room < 0) { /* make the image large enough */
            g->image[d] -= room;
            room = 0;
        }
        g->output[d] = room / g->stride[d] + 1;
    }
}

static struct geometry random_geometry(int spatial)
{
    struct geometry g = {.spatial = spatial};
    g.batch = random_of(1, 2, 3);
    g.groups = random_of(1, 1, 2, 3);
    g.channels = g.groups * random_of(1, 2, 3, 5);
    g.filters = g.groups * random_of(1, 2, 3, 7);
    g.mode = random_chance(0.3) ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    for (int d = 0; d < spatial; ++d) {
        g.image[d] = spatial == 3 ? random_of(1, 2, 4, 5) : random_of(1, 2, 5, 7, 8, 11);
        g.filter[d] = random_of(1, 2, 3, 3, 5);
        g.pad[d] = random_of(0, 1, 2, 6); /* 6: whole windows in the padding */
        g.stride[d] = random_of(1, 1, 2, 3);
        g.dilation[d] = random_of(1, 1, 2);
    }
    set_output(&g);
    return g;
}

static void dims_of(const struct geometry *g, int first, int second, const int *space, int *dim)
{
    dim[0] = first;
    dim[1] = second;
    for (int d = 0; d < g->spatial; ++d) dim[2 + d] = space[d];
}

static int64_t volume(const struct geometry *g, const int *extent)
{
    int64_t n = 1;
    for (int d = 0; d < g->spatial; ++d) n *= extent[d];
    return n;
}

static void point(const struct geometry *g, const int *extent, int64_t index, int *at)
{
    for (int d = g->spatial - 1; d >= 0; --d) {
        at[d] = (int)(index % extent[d]);
        index /= extent[d];
    }
}

/* Index of the pixel that output point o sees through tap t, -1 in the padding. */
static int64_t pixel_of(const struct geometry *g, const int *o, const int *t)
{
    int64_t index = 0;
    for (int d = 0; d < g->spatial; ++d) {
        int tap = g->mode == CUDNN_CONVOLUTION ? g->filter[d] - 1 - t[d] : t[d];
        int at = o[d] * g->stride[d] - g->pad[d] + tap * g->dilation[d];
        if (at < 0 || at >= g->image[d]) return -1;
        index = index * g->image[d] + at;
    }
    return index;
}

/* Adds every product of the convolution to where its direction wants it. */
static void add_products(const struct call *c, double *sum, double *magnitude)
{
    const struct geometry *g = &c->g;
    int64_t points = volume(g, g->output);
    int64_t taps = volume(g, g->filter);
    int64_t pixels = volume(g, g->image);
    int cg = g->channels / g->groups;
    int kg = g->filters / g->groups;
    for (int64_t p = 0; p < points; ++p) {
        for (int64_t t = 0; t < taps; ++t) {
            int o[3];
            int tap[3];
            int64_t pixel;
            point(g, g->output, p, o);
            point(g, g->filter, t, tap);
            pixel = pixel_of(g, o, tap);
            if (pixel < 0) continue;
            for (int n = 0; n < g->batch; ++n) {
                for (int k = 0; k < g->filters; ++k) {
                    for (int i = 0; i < cg; ++i) {
                        int64_t x = ((int64_t)n * g->channels + k / kg * cg + i) * pixels + pixel;
                        int64_t w = ((int64_t)k * cg + i) * taps + t;
                        int64_t y = ((int64_t)n * g->filters + k) * points + p;
                        int64_t to = c->direction == DGRAD ? x : c->direction == WGRAD ? w : y;
                        double product = c->direction == DGRAD   ? c->w->value[w] * c->y->value[y]
                                         : c->direction == WGRAD ? c->x->value[x] * c->y->value[y]
                                                                 : c->x->value[x] * c->w->value[w];
                        sum[to] += product;
                        magnitude[to] += fabs(product);
                    }
                }
            }
        }
    }
}

/* --- Calls -------------------------------------------------------------------------------------- */

static struct tensor *output_of(const struct call *c)
{
    return c->direction == DGRAD ? c->x : c->direction == WGRAD ? c->w : c->y;
}

static cudnnStatus_t run(void *context)
{
    struct call *c = context;
    double s[2];
    cudnnDataType_t dtype = output_of(c)->dtype;
    const void *alpha = scalar(dtype, c->alpha, s);
    const void *beta = scalar(dtype, c->beta, s + 1);
    void *workspace = c->workspace ? c->workspace->data : NULL;
    size_t bytes = c->workspace ? (size_t)c->workspace->bytes : 0;
    switch (c->direction) {
    case FPROP:
        return cudnnConvolutionForward(harness_handle, alpha, c->x->desc, c->x->data, c->filter,
                                       c->w->data, c->conv, (cudnnConvolutionFwdAlgo_t)c->algorithm,
                                       workspace, bytes, beta, c->y->desc, c->y->data);
    case DGRAD:
        return cudnnConvolutionBackwardData(harness_handle, alpha, c->filter, c->w->data,
                                            c->y->desc, c->y->data, c->conv,
                                            (cudnnConvolutionBwdDataAlgo_t)c->algorithm, workspace,
                                            bytes, beta, c->x->desc, c->x->data);
    case WGRAD:
        return cudnnConvolutionBackwardFilter(harness_handle, alpha, c->x->desc, c->x->data,
                                              c->y->desc, c->y->data, c->conv,
                                              (cudnnConvolutionBwdFilterAlgo_t)c->algorithm,
                                              workspace, bytes, beta, c->filter, c->w->data);
    default:
        return cudnnConvolutionBiasActivationForward(
            harness_handle, alpha, c->x->desc, c->x->data, c->filter, c->w->data, c->conv,
            (cudnnConvolutionFwdAlgo_t)c->algorithm, workspace, bytes, beta, c->z->desc, c->z->data,
            c->b->desc, c->b->data, c->activation, c->y->desc, c->y->data);
    }
}

static size_t workspace_of(struct call *c)
{
    size_t bytes = 0;
    cudnnStatus_t status;
    if (c->direction == DGRAD) {
        status = cudnnGetConvolutionBackwardDataWorkspaceSize(
            harness_handle, c->filter, c->y->desc, c->conv, c->x->desc,
            (cudnnConvolutionBwdDataAlgo_t)c->algorithm, &bytes);
    } else if (c->direction == WGRAD) {
        status = cudnnGetConvolutionBackwardFilterWorkspaceSize(
            harness_handle, c->x->desc, c->y->desc, c->conv, c->filter,
            (cudnnConvolutionBwdFilterAlgo_t)c->algorithm, &bytes);
    } else {
        status = cudnnGetConvolutionForwardWorkspaceSize(
            harness_handle, c->x->desc, c->filter, c->conv, c->y->desc,
            (cudnnConvolutionFwdAlgo_t)c->algorithm, &bytes);
    }
    if (status != CUDNN_STATUS_SUCCESS) case_fail("the workspace query is refused");
    return bytes;
}

static cudnnTensorFormat_t format_of(enum layout layout)
{
    return layout == LAYOUT_NHWC   ? CUDNN_TENSOR_NHWC
           : layout == LAYOUT_VECT ? CUDNN_TENSOR_NCHW_VECT_C
                                   : CUDNN_TENSOR_NCHW;
}

static bool is_integer(cudnnDataType_t dtype)
{
    return dtype != CUDNN_DATA_FLOAT && dtype != CUDNN_DATA_DOUBLE && dtype != CUDNN_DATA_HALF &&
           dtype != CUDNN_DATA_BFLOAT16;
}

struct types {
    cudnnDataType_t x, w, y;
};

static struct tensor *make(const struct call *c, bool output, cudnnDataType_t dtype, const int *dim,
                           enum layout layout)
{
    double limit = is_integer(dtype) ? 9.0 : 1.0;
    double lowest = dtype == CUDNN_DATA_UINT8 || dtype == CUDNN_DATA_UINT8x4 ? 0.0 : -limit;
    int rank = c->g.spatial + 2;
    if (output) return tensor_inout(dtype, rank, dim, layout, lowest, limit);
    return tensor_input(dtype, rank, dim, layout, lowest, limit);
}

/* Descriptors and tensors; layouts of x, w, y. */
static void set_up(struct call *c, const struct types *types, const enum layout *layout)
{
    int x[8];
    int w[8];
    int y[8];
    const struct geometry *g = &c->g;
    bool vect_w = layout[1] == LAYOUT_VECT;
    cudnnDataType_t compute = types->x == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                              : is_integer(types->x)        ? CUDNN_DATA_INT32
                                                            : CUDNN_DATA_FLOAT;
    dims_of(g, g->batch, g->channels, g->image, x);
    dims_of(g, g->filters, g->channels / g->groups, g->filter, w);
    dims_of(g, g->batch, g->filters, g->output, y);
    cudnnCreateConvolutionDescriptor(&c->conv);
    cudnnCreateFilterDescriptor(&c->filter);
    cudnnSetConvolutionNdDescriptor(c->conv, g->spatial, g->pad, g->stride, g->dilation, g->mode,
                                    compute);
    cudnnSetConvolutionGroupCount(c->conv, g->groups);
    cudnnSetFilterNdDescriptor(c->filter, types->w, format_of(layout[1]), g->spatial + 2, w);
    c->x = make(c, c->direction == DGRAD, types->x, x, layout[0]);
    c->w = make(c, c->direction == WGRAD, types->w, w,
                layout[1] == LAYOUT_NHWC || vect_w ? layout[1] : LAYOUT_NCHW);
    c->y = make(c, c->direction != DGRAD && c->direction != WGRAD, types->y, y, layout[2]);
}

static void tear_down(struct call *c)
{
    cudnnDestroyConvolutionDescriptor(c->conv);
    cudnnDestroyFilterDescriptor(c->filter);
    if (c->activation) cudnnDestroyActivationDescriptor(c->activation);
    case_end();
}

/* Runs with exactly the workspace that was answered and judges the result of the plain directions. */
static void run_and_check(struct call *c)
{
    struct tensor *out = output_of(c);
    double *exact = doubles(out->count);
    double *magnitude = doubles(out->count);
    size_t bytes = workspace_of(c);
    bool wide = out->dtype == CUDNN_DATA_DOUBLE || is_integer(c->x->dtype);
    if (bytes > 0) c->workspace = tensor_bytes((int64_t)bytes);
    add_products(c, exact, magnitude);
    for (int64_t i = 0; i < out->count; ++i) {
        double old = c->beta != 0.0 ? c->beta * out->value[i] : 0.0;
        exact[i] = c->alpha * exact[i] + old;
        magnitude[i] = fabs(c->alpha) * magnitude[i] + fabs(old);
    }
    if (run_call(run, c)) {
        check_values(direction_name[c->direction], out, exact, NULL, magnitude,
                     wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
}

static int algorithm_count(enum direction direction)
{
    return direction == DGRAD   ? CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT
           : direction == WGRAD ? CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT
                                : CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
}

/* --- Cases -------------------------------------------------------------------------------------- */

static void random_case(enum direction direction, cudnnDataType_t dtype, int spatial, int turn)
{
    struct call c = {.direction = direction};
    struct types types = {dtype, dtype, dtype};
    enum layout layout[3];
    if (!case_begin("%s type %d spatial %d turn %d", direction_name[direction], (int)dtype, spatial,
                    turn)) {
        return;
    }
    c.g = random_geometry(spatial);
    c.alpha = turn == 0 ? 1.0 : random_scalar();
    c.beta = turn == 0 ? 0.0 : random_scalar();
    c.algorithm = (int)random_int(0, algorithm_count(direction) - 1);
    for (int i = 0; i < 3; ++i) layout[i] = (enum layout)random_of(0, 1, 2);
    set_up(&c, &types, layout);
    run_and_check(&c);
    tear_down(&c);
}

struct shape {
    enum direction only; /* the direction that it is for; the others would take too long */
    const char *name;
    struct geometry g;
};

static const struct shape shapes[] = {
    {ANY, "pointwise 1x1", {2, 2, 1, 17, 13, {9, 7}, {1, 1}, {0}, {0, 0}, {1, 1}, {1, 1}, 1}},
    {ANY, "3x3 same", {2, 2, 1, 16, 16, {14, 14}, {3, 3}, {0}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {ANY, "3x3 stride 2", {2, 2, 1, 8, 8, {15, 16}, {3, 3}, {0}, {1, 1}, {2, 2}, {1, 1}, 1}},
    {ANY, "stem 7x7", {2, 1, 1, 3, 8, {31, 33}, {7, 7}, {0}, {3, 3}, {2, 2}, {1, 1}, 1}},
    {ANY, "depthwise", {2, 2, 24, 24, 24, {9, 10}, {3, 3}, {0}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {ANY, "depthwise multiplier", {2, 2, 7, 7, 21, {8, 8}, {3, 2}, {0}, {1, 0}, {2, 1}, {1, 1}, 1}},
    {ANY, "filter is the image", {2, 3, 1, 5, 6, {8, 9}, {8, 9}, {0}, {0, 0}, {1, 1}, {1, 1}, 1}},
    {ANY, "dilated", {2, 1, 1, 4, 4, {19, 21}, {3, 3}, {0}, {2, 2}, {1, 1}, {2, 3}, 0}},
    {ANY,
     "stride beyond filter",
     {2, 2, 1, 3, 4, {13, 12}, {2, 1}, {0}, {0, 0}, {4, 5}, {1, 1}, 1}},
    {ANY, "padding beyond filter", {2, 1, 1, 2, 3, {3, 2}, {3, 3}, {0}, {9, 8}, {2, 3}, {1, 1}, 0}},
    {ANY, "one dimension", {1, 2, 2, 6, 4, {61}, {9}, {0}, {4}, {3}, {2}, 1}},
    {ANY, "one dimension as H=1", {2, 2, 1, 6, 4, {1, 61}, {1, 9}, {0}, {0, 4}, {1, 3}, {1, 2}, 1}},
    {ANY,
     "three dimensions",
     {3, 1, 1, 4, 5, {5, 6, 7}, {3, 2, 3}, {0}, {1, 0, 1}, {1, 2, 1}, {1, 1, 2}, 1}},
    {ANY, "one of everything", {2, 1, 1, 1, 1, {1, 1}, {1, 1}, {0}, {0, 0}, {1, 1}, {1, 1}, 1}},
    /* a reduction in segments: few outputs, 2^19 and more products each */
    {WGRAD,
     "wgrad of a large image",
     {2, 9, 1, 1, 1, {257, 255}, {1, 2}, {0}, {0, 0}, {1, 1}, {1, 1}, 1}},
    {FPROP, "fprop of a large filter", {1, 1, 1, 4, 1, {150000}, {149999}, {0}, {0}, {1}, {1}, 1}},
};

static void shape_case(const struct shape *shape, enum direction direction, cudnnDataType_t dtype,
                       enum layout layout)
{
    struct call c = {.direction = direction, .alpha = 1.0};
    struct types types = {dtype, dtype, dtype};
    enum layout layouts[3] = {layout, layout, layout};
    if (!case_begin("%s %s type %d layout %d", direction_name[direction], shape->name, (int)dtype,
                    (int)layout)) {
        return;
    }
    c.g = shape->g;
    c.algorithm = 1;
    set_output(&c.g);
    set_up(&c, &types, layouts);
    run_and_check(&c);
    tear_down(&c);
}

/* Every algorithm of a direction gives the right answer with the workspace that it asks for. */
static void algorithm_case(enum direction direction, int algorithm)
{
    struct call c = {.direction = direction, .alpha = 0.5, .beta = -1.5, .algorithm = algorithm};
    struct types types = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT};
    enum layout layout[3] = {LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NCHW};
    if (!case_begin("%s algorithm %d", direction_name[direction], algorithm)) return;
    c.g = random_geometry(2);
    set_up(&c, &types, layout);
    run_and_check(&c);
    if (algorithm == 0 && c.workspace) case_fail("algorithm 0 asks for a workspace");
    tear_down(&c);
}

/* 8-bit images: every type that the sum may go out in, packed and vectorised. */
static void integer_case(cudnnDataType_t x, cudnnDataType_t w, cudnnDataType_t y, int turn)
{
    struct call c = {.direction = FPROP};
    struct types types = {x, w, y};
    enum layout layout[3];
    int lanes = w == CUDNN_DATA_INT8x32 ? 32 : w == CUDNN_DATA_INT8x4 ? 4 : 1;
    bool vect_y = y == CUDNN_DATA_INT8x4 || y == CUDNN_DATA_INT8x32 || y == CUDNN_DATA_UINT8x4;
    if (!case_begin("fprop integers %d %d %d turn %d", (int)x, (int)w, (int)y, turn)) return;
    c.g = random_geometry(2);
    if (lanes > 1) {
        c.g.groups = random_of(1, 2);
        c.g.channels = c.g.groups * lanes * random_of(1, 2);
        c.g.filters = c.g.groups * lanes * random_of(1, 2);
    }
    c.alpha = turn == 0 ? 1.0 : 0.0625;
    c.beta = turn == 0 ? 0.0 : 0.5;
    c.algorithm = 1;
    layout[0] = lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(0, 1, 2);
    layout[1] = lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(0, 1);
    layout[2] = vect_y ? LAYOUT_VECT : (enum layout)random_of(0, 1, 2);
    set_up(&c, &types, layout);
    run_and_check(&c);
    tear_down(&c);
}

/* NaN in the image reaches exactly the outputs that see it; NaN in an output that beta 0 drops, none. */
static void nan_case(enum direction direction)
{
    struct call c = {.direction = direction, .alpha = 1.0, .algorithm = 1};
    struct types types = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT};
    enum layout layout[3] = {LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NHWC};
    struct tensor *out;
    struct tensor *in;
    if (!case_begin("%s NaN", direction_name[direction])) return;
    c.g = shapes[1].g;
    c.g.channels = c.g.filters = 3;
    set_output(&c.g);
    set_up(&c, &types, layout);
    out = output_of(&c);
    in = direction == DGRAD ? c.y : c.x;
    for (int64_t i = 0; i < out->count; ++i) out->value[i] = NAN;
    in->value[random_int(0, in->count - 1)] = NAN;
    in->value[random_int(0, in->count - 1)] = INFINITY;
    tensor_write(out);
    tensor_write(in);
    run_and_check(&c);
    tear_down(&c);
}

/* (L(v + h) - L(v - h)) / 2h of L = sum of dy * y(x, w), for some coordinates of the input v. */
static void difference_case(enum direction direction, int turn)
{
    enum { PROBES = 6 };
    struct call c = {.direction = direction, .alpha = 1.0, .algorithm = 1};
    struct types types = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE};
    enum layout layout[3] = {LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NCHW};
    struct tensor *of;
    double *gradient;
    double *start;
    double *dy;
    const double h = 0.125; /* the function is linear in v: any step is exact */
    if (!case_begin("%s finite differences turn %d", direction_name[direction], turn)) return;
    c.g = random_geometry((int)random_int(1, 3));
    set_up(&c, &types, layout);
    c.algorithm = 0; /* no workspace */
    of = output_of(&c);
    gradient = doubles(of->count);
    start = doubles(of->count);
    dy = doubles(c.y->count);
    memcpy(start, of->value, (size_t)of->count * sizeof *start);
    memcpy(dy, c.y->value, (size_t)c.y->count * sizeof *dy);
    if (!run_call(run, &c)) goto done;
    memcpy(gradient, of->value, (size_t)of->count * sizeof *gradient);
    c.direction = FPROP;
    c.y->output = true;
    of->output = false;
    for (int probe = 0; probe < PROBES; ++probe) {
        int64_t i = random_int(0, of->count - 1);
        double loss[2] = {0.0, 0.0};
        for (int side = 0; side < 2; ++side) {
            memcpy(of->value, start, (size_t)of->count * sizeof *start);
            of->value[i] += side ? h : -h;
            tensor_write(of);
            if (!run_call(run, &c)) goto done;
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
    tear_down(&c);
}

static double activate(cudnnActivationMode_t mode, double x, double coef)
{
    switch ((int)mode) {
    case CUDNN_ACTIVATION_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case CUDNN_ACTIVATION_RELU: return x > 0.0 ? x : 0.0;
    case CUDNN_ACTIVATION_TANH: return tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return x > coef ? coef : x > 0.0 ? x : 0.0;
    case CUDNN_ACTIVATION_ELU: return x > 0.0 ? x : coef * (exp(x) - 1.0);
    case CUDNN_ACTIVATION_SWISH: return x / (1.0 + exp(-x));
    default: return x;
    }
}

enum residual { Z_OWN, Z_IS_Y, Z_ABSENT };

static void set_up_fused(struct call *c, cudnnDataType_t bias_type, enum residual residual,
                         enum layout z_layout, cudnnActivationMode_t mode, double coef)
{
    int bias[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int rank = c->g.spatial + 2;
    bias[1] = c->g.filters;
    cudnnCreateActivationDescriptor(&c->activation);
    cudnnSetActivationDescriptor(c->activation, mode, CUDNN_NOT_PROPAGATE_NAN, coef);
    c->b = make(c, false, bias_type, bias, LAYOUT_NCHW);
    if (residual == Z_OWN) {
        c->z = make(c, false, c->y->dtype, c->y->dim, z_layout);
    } else {
        c->z = c->y;
    }
    (void)rank;
}

static void check_fused(struct call *c, cudnnActivationMode_t mode, double coef)
{
    double *exact = doubles(c->y->count);
    double *magnitude = doubles(c->y->count);
    int64_t points = volume(&c->g, c->g.output);
    bool wide = c->y->dtype == CUDNN_DATA_DOUBLE || is_integer(c->x->dtype);
    size_t bytes = workspace_of(c);
    if (bytes > 0) c->workspace = tensor_bytes((int64_t)bytes);
    add_products(c, exact, magnitude);
    for (int64_t i = 0; i < c->y->count; ++i) {
        double bias = c->b->value[i / points % c->g.filters];
        double z = c->beta != 0.0 ? c->beta * c->z->value[i] : 0.0;
        exact[i] = activate(mode, c->alpha * exact[i] + z + bias, coef);
        magnitude[i] = fabs(c->alpha) * magnitude[i] + fabs(z) + fabs(bias) + coef;
    }
    if (run_call(run, c)) {
        check_values("y", c->y, exact, NULL, magnitude,
                     wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
}

static void fused_case(cudnnActivationMode_t mode, cudnnDataType_t dtype, enum residual residual)
{
    struct call c = {.direction = FUSED};
    struct types types = {dtype, dtype, dtype};
    enum layout layout[3];
    double coef;
    if (!case_begin("fused activation %d type %d residual %d", (int)mode, (int)dtype,
                    (int)residual)) {
        return;
    }
    c.g = random_geometry((int)random_int(1, 3));
    c.alpha = random_of(1, 2, -3) * 0.5;
    c.beta = residual == Z_ABSENT ? 0.0 : random_of(1, 2, -1) * 0.5;
    c.algorithm = (int)random_int(0, CUDNN_CONVOLUTION_FWD_ALGO_COUNT - 1);
    coef = random_real(0.5, 2.0);
    for (int i = 0; i < 3; ++i) layout[i] = (enum layout)random_of(0, 1, 2);
    set_up(&c, &types, layout);
    set_up_fused(&c, dtype, residual, (enum layout)random_of(0, 1, 2), mode, coef);
    check_fused(&c, mode, coef);
    tear_down(&c);
}

/* The int8x32 filter once as it is and once reordered by hand: the same result; the reordered bytes
 * are those of the order [C/32][R][S][K/8][2][8][4][4], the bias's [K/32][2][4][4]. */
struct reorder {
    struct call *c;
    struct tensor *from, *to, *bias_from, *bias_to;
};

static cudnnStatus_t reorder(void *context)
{
    struct reorder *r = context;
    return cudnnReorderFilterAndBias(harness_handle, r->c->filter, CUDNN_DEFAULT_REORDER,
                                     r->from->data, r->to->data, 1, r->bias_from->data,
                                     r->bias_to->data);
}

static void reorder_case(int turn)
{
    struct call c = {.direction = FUSED};
    struct types types = {CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32};
    enum layout layout[3] = {LAYOUT_VECT, LAYOUT_VECT, LAYOUT_VECT};
    struct reorder r = {.c = &c};
    struct tensor *plain_filter;
    int filters;
    int vectors;
    int64_t taps;
    int64_t next = 0;
    if (!case_begin("fused reordered int8x32 turn %d", turn)) return;
    c.g = random_geometry(2);
    c.g.groups = 1;
    c.g.channels = 32 * random_of(1, 2);
    c.g.filters = 32 * random_of(1, 2, 3);
    c.alpha = 0.0625;
    c.beta = 0.5;
    c.algorithm = 1;
    set_up(&c, &types, layout);
    set_up_fused(&c, CUDNN_DATA_FLOAT, Z_OWN, LAYOUT_VECT, CUDNN_ACTIVATION_RELU, 0.0);
    r.from = c.w;
    r.to = tensor_output(CUDNN_DATA_INT8x32, 4, c.w->dim, LAYOUT_VECT);
    r.bias_from = c.b;
    r.bias_to = tensor_output(CUDNN_DATA_FLOAT, 4, c.b->dim, LAYOUT_NCHW);
    c.y->output = false;
    if (!run_call(reorder, &r)) goto done;
    filters = c.g.filters;
    vectors = c.g.channels / 32;
    taps = volume(&c.g, c.g.filter);
    for (int i = 0; i < vectors; ++i)
        for (int64_t t = 0; t < taps; ++t)
            for (int ob = 0; ob < filters / 8; ++ob)
                for (int o2 = 0; o2 < 2; ++o2)
                    for (int i8 = 0; i8 < 8; ++i8)
                        for (int o4 = 0; o4 < 4; ++o4)
                            for (int i4 = 0; i4 < 4; ++i4, ++next) {
                                int k = ob * 8 + o4 * 2 + o2;
                                int channel = i * 32 + i8 * 4 + i4;
                                double want =
                                    r.from->value[(k * vectors * 32 + channel) * taps + t];
                                /* byte `next` of the packed tensor in its logical numbering */
                                int64_t lane = next % 32;
                                int64_t tap = next / 32 % taps;
                                int64_t v = next / 32 / taps % vectors;
                                int64_t o = next / 32 / taps / vectors;
                                double got =
                                    r.to->value[((o * vectors + v) * 32 + lane) * taps + tap];
                                if (got != want) {
                                    case_fail("byte %lld of the reordered filter is %g, not %g",
                                              (long long)next, got, want);
                                    goto done;
                                }
                            }
    next = 0;
    for (int o32 = 0; o32 < filters / 32; ++o32)
        for (int b = 0; b < 2; ++b)
            for (int a = 0; a < 4; ++a)
                for (int q = 0; q < 4; ++q, ++next) {
                    double want = r.bias_from->value[o32 * 32 + a * 8 + b * 4 + q];
                    if (r.bias_to->value[next] != want) {
                        case_fail("reordered bias[%lld] is %g, not %g", (long long)next,
                                  r.bias_to->value[next], want);
                        goto done;
                    }
                }
    /* the convolution reads the reordered ones; the oracle the plain ones */
    tensor_write(r.to);
    tensor_write(r.bias_to);
    r.to->output = r.bias_to->output = false;
    c.y->output = true;
    cudnnSetConvolutionReorderType(c.conv, CUDNN_NO_REORDER);
    plain_filter = c.w;
    {
        void *plain_data = c.w->data;
        void *plain_bias = c.b->data;
        c.w->data = r.to->data;
        c.b->data = r.bias_to->data;
        check_fused(&c, CUDNN_ACTIVATION_RELU, 0.0);
        plain_filter->data = plain_data;
        c.b->data = plain_bias;
    }
done:
    tear_down(&c);
}

/* Integer fused: float bias, int8 in and out. */
static void fused_integer_case(cudnnDataType_t x, cudnnDataType_t w, cudnnDataType_t y)
{
    struct call c = {.direction = FUSED, .alpha = 0.0625, .beta = 0.5, .algorithm = 1};
    struct types types = {x, w, y};
    int lanes = w == CUDNN_DATA_INT8x4 ? 4 : 1;
    enum layout plain = lanes > 1 ? LAYOUT_VECT : LAYOUT_NHWC;
    enum layout layout[3] = {plain, plain, y == CUDNN_DATA_FLOAT ? LAYOUT_NCHW : plain};
    if (!case_begin("fused integers %d %d %d", (int)x, (int)w, (int)y)) return;
    c.g = random_geometry(2);
    c.g.groups = 1;
    c.g.channels = c.g.filters = 8;
    set_up(&c, &types, layout);
    set_up_fused(&c, CUDNN_DATA_FLOAT, Z_OWN, layout[2], CUDNN_ACTIVATION_RELU, 0.0);
    check_fused(&c, CUDNN_ACTIVATION_RELU, 0.0);
    tear_down(&c);
}

static cudnnStatus_t bias_gradient(void *context)
{
    struct call *c = context;
    double s[2];
    return cudnnConvolutionBackwardBias(harness_handle, scalar(c->y->dtype, c->alpha, s),
                                        c->y->desc, c->y->data, scalar(c->y->dtype, c->beta, s + 1),
                                        c->b->desc, c->b->data);
}

static void bias_case(cudnnDataType_t dtype, int rank, enum layout layout, int turn)
{
    struct call c = {0};
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
    c.alpha = turn == 0 ? 1.0 : random_scalar();
    c.beta = turn == 0 ? 0.0 : random_scalar();
    c.y = tensor_input(dtype, rank, dim, layout, -1.0, 1.0);
    c.b = tensor_inout(dtype, rank, bias, LAYOUT_NCHW, -1.0, 1.0);
    exact = doubles(c.b->count);
    magnitude = doubles(c.b->count);
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
    struct call *c = context;
    return cudnnIm2Col(harness_handle, c->x->desc, c->x->data, c->filter, c->conv, c->z->data);
}

static void im2col_case(cudnnDataType_t dtype, int spatial, int turn)
{
    struct call c = {.direction = FPROP};
    enum layout layout[3] = {(enum layout)(turn % 3), LAYOUT_NCHW, LAYOUT_NCHW};
    struct types types = {dtype, dtype, dtype};
    int col[2];
    int64_t points;
    int64_t taps;
    int64_t pixels;
    double *exact;
    if (!case_begin("im2col type %d spatial %d turn %d", (int)dtype, spatial, turn)) return;
    c.g = random_geometry(spatial);
    set_up(&c, &types, layout);
    c.y->output = false;
    points = volume(&c.g, c.g.output);
    taps = volume(&c.g, c.g.filter);
    pixels = volume(&c.g, c.g.image);
    col[0] = (int)(c.g.batch * points);
    col[1] = (int)(c.g.channels * taps);
    c.z = tensor_output(dtype, 2, col, LAYOUT_NCHW);
    exact = doubles(c.z->count);
    for (int64_t i = 0; i < c.z->count; ++i) {
        int o[3];
        int t[3];
        int64_t row = i / col[1];
        int64_t column = i % col[1];
        int64_t pixel;
        point(&c.g, c.g.output, row % points, o);
        point(&c.g, c.g.filter, column % taps, t);
        pixel = pixel_of(&c.g, o, t);
        if (pixel >= 0) {
            exact[i] = c.x->value[(row / points * c.g.channels + column / taps) * pixels + pixel];
        }
    }
    if (run_call(im2col, &c)) check_values("col", c.z, exact, NULL, NULL, dtype);
    free(exact);
    tear_down(&c);
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
        integer_case(CUDNN_DATA_INT32, CUDNN_DATA_INT32, CUDNN_DATA_INT32, turn);
    }
    fused_integer_case(CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT8);
    fused_integer_case(CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_FLOAT);
    fused_integer_case(CUDNN_DATA_UINT8, CUDNN_DATA_INT8, CUDNN_DATA_INT8);
    fused_integer_case(CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4);
    fused_integer_case(CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_FLOAT);
}

static void plain_cases(enum direction direction)
{
    enum { TURNS = 4 };
    for (size_t t = 0; t < sizeof float_types / sizeof float_types[0]; ++t) {
        for (int spatial = 1; spatial <= 3; ++spatial) {
            for (int turn = 0; turn < TURNS; ++turn) {
                random_case(direction, float_types[t], spatial, turn);
            }
        }
    }
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; ++s) {
        if (shapes[s].only != ANY && shapes[s].only != direction) continue;
        shape_case(&shapes[s], direction, CUDNN_DATA_FLOAT, LAYOUT_NCHW);
        shape_case(&shapes[s], direction, CUDNN_DATA_HALF, LAYOUT_NHWC);
        shape_case(&shapes[s], direction, CUDNN_DATA_DOUBLE, LAYOUT_GAPS);
    }
    for (int a = 0; a < algorithm_count(direction); ++a) algorithm_case(direction, a);
    nan_case(direction);
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    plain_cases(FPROP);
    plain_cases(DGRAD);
    plain_cases(WGRAD);
    for (int turn = 0; turn < 4; ++turn) {
        difference_case(DGRAD, turn);
        difference_case(WGRAD, turn);
        reorder_case(turn);
    }
    integer_cases();
    for (int mode = 0; mode <= CUDNN_ACTIVATION_SWISH; ++mode) {
        for (size_t t = 0; t < sizeof float_types / sizeof float_types[0]; ++t) {
            for (int z = Z_OWN; z <= Z_ABSENT; ++z) {
                fused_case((cudnnActivationMode_t)mode, float_types[t], (enum residual)z);
            }
        }
    }
    for (size_t t = 0; t < sizeof float_types / sizeof float_types[0]; ++t) {
        for (int rank = 3; rank <= 5; ++rank) {
            for (int turn = 0; turn < 3; ++turn) {
                bias_case(float_types[t], rank, (enum layout)(turn % 3), turn);
                im2col_case(float_types[t], rank - 2, turn);
            }
        }
    }
    im2col_case(CUDNN_DATA_INT8, 2, 0);
    im2col_case(CUDNN_DATA_INT32, 2, 1);
    return harness_finish();
}
