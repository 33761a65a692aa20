/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of resampling, see resample_run.h. */
#include "resample_run.h"

cudnnDataType_t resample_arithmetic(cudnnDataType_t a, cudnnDataType_t b)
{
    bool wide = a == CUDNN_DATA_DOUBLE || b == CUDNN_DATA_DOUBLE;
    return wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static void check_forward(const struct geometry *g, const struct tensor *x, const struct tensor *y,
                          const struct tensor *idx, double alpha, double beta, const double *before)
{
    static struct pixel list[PIXELS];
    double *exact = node_doubles(y->count);
    double *naive = node_doubles(y->count);
    double *magnitude = node_doubles(y->count);
    double *places = node_doubles(y->count);
    for (int64_t i = 0; i < y->count; ++i) {
        double old = beta != 0.0 ? beta * before[i] : 0.0;
        double total, value = 0, size = 0;
        float single = 0;
        int out[5], count;
        coordinates(y, i, out);
        count = look(g, x, out, list, &total);
        if (is_max(g)) {
            int first = first_largest(g, x, list, count);
            places[i] = first < 0 ? 0 : first;
            value = first < 0               ? -INFINITY
                    : list[first].index < 0 ? list[first].value
                                            : x->value[list[first].index];
            single = (float)value;
            size = fabs(value);
        } else {
            for (int p = 0; p < count; ++p) {
                double v = list[p].index < 0 ? list[p].value : x->value[list[p].index];
                value += list[p].weight * v;
                single += (float)list[p].weight * (float)v;
                size += list[p].weight * fabs(v);
            }
            value = count ? value / total : 0.0;
            single = count ? single / (float)total : 0.0f;
            size = count ? size / total : 0.0;
        }
        exact[i] = (alpha != 0.0 ? alpha * value : 0.0) + old;
        naive[i] = (alpha != 0.0 ? alpha * (double)single : 0.0) + old;
        magnitude[i] = fabs(alpha) * size + fabs(old);
        if (!isfinite(magnitude[i])) magnitude[i] = 0;
        if (y->dtype == CUDNN_DATA_INT64) { /* saturates, where narrower ones are rounded to fit */
            exact[i] = fmax(-0x1p63, fmin(0x1p63, exact[i]));
            naive[i] = fmax(-0x1p63, fmin(0x1p63, naive[i]));
        }
    }
    check_values("y", y, exact, naive, magnitude, resample_arithmetic(x->dtype, y->dtype));
    if (idx) check_values("idx", idx, places, NULL, NULL, CUDNN_DATA_DOUBLE);
    free(exact);
    free(naive);
    free(magnitude);
    free(places);
}

static void check_backward(const struct geometry *g, const struct tensor *x,
                           const struct tensor *dy, const struct tensor *dx, double alpha,
                           double beta, const double *before)
{
    static struct pixel list[PIXELS];
    double *exact = node_doubles(dx->count);
    double *magnitude = node_doubles(dx->count);
    for (int64_t i = 0; i < dy->count; ++i) {
        double total;
        int out[5], count;
        coordinates(dy, i, out);
        count = look(g, dx, out, list, &total);
        if (is_max(g)) {
            int first = first_largest(g, x, list, count);
            int64_t to = count ? list[first < 0 ? 0 : first].index : -1;
            if (to >= 0) {
                exact[to] += dy->value[i];
                magnitude[to] += fabs(dy->value[i]);
            }
            continue;
        }
        for (int p = 0; p < count; ++p) {
            double share = dy->value[i] * list[p].weight / total;
            if (list[p].index < 0) continue;
            exact[list[p].index] += share;
            magnitude[list[p].index] += fabs(share);
        }
    }
    for (int64_t i = 0; i < dx->count; ++i) {
        double old = beta != 0.0 ? beta * before[i] : 0.0;
        exact[i] = (alpha != 0.0 ? alpha * exact[i] : 0.0) + old;
        magnitude[i] = 4 * fabs(alpha) * magnitude[i] + fabs(old); /* a sum of a few dozen */
    }
    check_values("dx", dx, exact, NULL, magnitude, resample_arithmetic(dy->dtype, dx->dtype));
    free(exact);
    free(magnitude);
}

int resample_lanes(int type)
{
    return type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 ? 4
           : type == CUDNN_DATA_INT8x32                            ? 32
                                                                   : 1;
}

bool resample_is_float(int type)
{
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
           type == CUDNN_DATA_BFLOAT16;
}

static double random_scalar(void)
{
    return (double)random_of(0, 2, 2, 1, -3) * 0.5;
}

static enum layout random_layout(int lanes)
{
    return lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

/* Few different values, so that maxima are often shared; and now and then a NaN. */
static void spoil(struct tensor *x)
{
    bool few = random_chance(0.5);
    bool nans = resample_is_float((int)x->dtype) && random_chance(0.3);
    for (int64_t i = 0; i < x->count; ++i) {
        if (few) x->value[i] = floor(x->value[i]);
        if (nans && random_chance(0.1)) x->value[i] = NAN;
    }
    tensor_write(x);
}

double *resample_copy(const struct tensor *t)
{
    double *copy = node_doubles(t->count);
    memcpy(copy, t->value, (size_t)t->count * sizeof *copy);
    return copy;
}

static int index_type(const struct geometry *g)
{
    int places = 1;
    for (int s = 0; s < g->rank - 2; ++s) places *= (g->window[s] + UNIT - 1) / UNIT;
    return places > 127 ? random_of(CUDNN_DATA_INT32, CUDNN_DATA_INT64)
                        : random_of(CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_UINT8,
                                    CUDNN_DATA_INT32, CUDNN_DATA_INT64);
}

static enum layout layout_beside(enum resample_lie lie, enum layout layout, int lanes)
{
    return lie == LIE_MIXED ? random_layout(lanes) : layout;
}

/* Nine in ten calls blend with nothing: kernels are for these. */
static void draw_scalars(double *alpha, double *beta)
{
    const bool plain = random_chance(0.9);
    *alpha = plain ? (double)random_of(2, 2, 2, 1, -3) * 0.5 : random_scalar();
    *beta = plain ? 0.0 : random_scalar();
}

/* Of each channel another number, of some of which thirds do not add up to it again. */
static double level_of(const struct tensor *t, int64_t index)
{
    int at[8];
    coordinates(t, index, at);
    return 1 + at[1] * 31 % 255;
}

/* An index tensor, the scalars, and what is done to x are the caller's. */
static void forward(const struct geometry *g, int xtype, int ytype, enum layout layout,
                    enum resample_lie lie, double alpha, double beta, void (*mark)(struct tensor *),
                    double with_index, bool constant)
{
    struct node_run r = {0};
    int lanes = resample_lanes(xtype);
    enum layout beside = layout_beside(lie, layout, lanes);
    struct tensor *x, *y, *idx = NULL;
    double *before;
    be_desc resample = be_final(
        resample_open(g, resample_arithmetic((cudnnDataType_t)xtype, (cudnnDataType_t)ytype)));
    be_desc dx, dy, didx = NULL;
    tensor_odd = lie == LIE_ODD;
    x = tensor_input((cudnnDataType_t)xtype, g->rank, g->x, layout,
                     xtype == CUDNN_DATA_UINT8 ? 0 : -5, 5);
    y = beta != 0.0 ? tensor_inout((cudnnDataType_t)ytype, g->rank, g->y, beside, -4, 4)
                    : tensor_output((cudnnDataType_t)ytype, g->rank, g->y, beside);
    before = resample_copy(y);
    mark(x);
    if (is_max(g) && lanes == 1 && random_chance(with_index)) {
        idx = tensor_output((cudnnDataType_t)index_type(g), g->rank, g->y,
                            layout_beside(lie, layout, 1));
    }
    tensor_odd = 0;
    dx = node_add(&r, x);
    dy = node_add(&r, y);
    if (idx) didx = node_add(&r, idx);
    if (node_run(&r, be_final(forward_open(resample, dx, dy, didx, alpha, beta)))) {
        check_forward(g, x, y, idx, alpha, beta, before);
        for (int64_t i = 0; constant && harness_values && i < y->count; ++i) {
            if (y->value[i] == level_of(y, i)) continue;
            case_fail("element %d of a constant image became %.9g", (int)i, y->value[i]);
            break;
        }
    }
    free(before);
    be_free_all();
}

void resample_forward(const struct geometry *g, int xtype, int ytype, enum layout layout,
                      enum resample_lie lie)
{
    double alpha, beta;
    draw_scalars(&alpha, &beta);
    forward(g, xtype, ytype, layout, lie, alpha, beta, spoil, 0.6, false);
}

/* A first image of minus infinity alone, and beside numbers NaNs and minus infinities. */
static void spoil_much(struct tensor *x)
{
    const int64_t image = x->count / x->dim[0];
    for (int64_t i = 0; i < x->count; ++i) {
        if (random_chance(0.1)) x->value[i] = NAN;
        if (random_chance(0.1) || i < image) x->value[i] = -INFINITY;
    }
    tensor_write(x);
}

void resample_hard_maxima(const struct geometry *g, int type, enum layout layout,
                          enum resample_lie lie)
{
    forward(g, type, type, layout, lie, 1.0, random_of(1, -1) * 0.5, spoil_much, 1.0, false);
}

static void level(struct tensor *x)
{
    for (int64_t i = 0; i < x->count; ++i) x->value[i] = level_of(x, i);
    tensor_write(x);
}

void resample_constant(const struct geometry *g, int type, enum layout layout,
                       enum resample_lie lie)
{
    forward(g, type, type, layout, lie, 1.0, 0.0, level, 0.0, true);
}

void resample_backward(const struct geometry *g, int dytype, int dxtype, enum layout layout,
                       enum resample_lie lie)
{
    struct node_run r = {0};
    double alpha, beta;
    bool indices = is_max(g) && random_chance(0.5);
    enum layout beside = layout_beside(lie, layout, 1);
    cudnnDataType_t wide = resample_arithmetic((cudnnDataType_t)dytype, (cudnnDataType_t)dxtype);
    be_desc resample = be_final(resample_open(g, wide));
    be_desc ddx, ddy, dd_idx = NULL, dd_x = NULL, dd_y = NULL;
    struct tensor *x, *dy, *dx, *y = NULL, *idx = NULL;
    double *before;
    draw_scalars(&alpha, &beta);
    tensor_odd = lie == LIE_ODD;
    x = tensor_input((cudnnDataType_t)dxtype, g->rank, g->x, beside, -5, 5);
    dy = tensor_input((cudnnDataType_t)dytype, g->rank, g->y, layout, -5, 5);
    dx = beta != 0.0 ? tensor_inout((cudnnDataType_t)dxtype, g->rank, g->x, beside, -4, 4)
                     : tensor_output((cudnnDataType_t)dxtype, g->rank, g->x, beside);
    before = resample_copy(dx);
    spoil(x);
    ddy = node_add(&r, dy);
    ddx = node_add(&r, dx);
    if (indices) {
        static struct pixel list[PIXELS];
        idx = tensor_input((cudnnDataType_t)index_type(g), g->rank, g->y,
                           layout_beside(lie, layout, 1), 0, 0);
        for (int64_t i = 0; i < idx->count; ++i) {
            int out[5], count, first;
            double total;
            coordinates(idx, i, out);
            count = look(g, x, out, list, &total);
            first = first_largest(g, x, list, count);
            idx->value[i] = first < 0 ? 0 : first;
        }
        tensor_write(idx);
        dd_idx = node_add(&r, idx);
    } else if (is_max(g)) {
        y = tensor_input((cudnnDataType_t)dytype, g->rank, g->y, layout_beside(lie, layout, 1), -5,
                         5);
        dd_x = node_add(&r, x);
        dd_y = node_add(&r, y);
    }
    tensor_odd = 0;
    if (node_run(&r,
                 be_final(backward_open(resample, ddy, dd_idx, dd_x, dd_y, ddx, alpha, beta)))) {
        check_backward(g, x, dy, dx, alpha, beta, before);
    }
    free(before);
    be_free_all();
}
