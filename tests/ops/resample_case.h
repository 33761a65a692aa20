/* SPDX-License-Identifier: Apache-2.0
 *
 * What the resample tests share: descriptors in a line each, and the documented meaning of a window
 * written out: it looks at every pixel near the image and asks by cross-multiplied fractions whether
 * and how much it counts. */
#ifndef TESTS_OPS_RESAMPLE_CASE_H
#define TESTS_OPS_RESAMPLE_CASE_H

#include "node_run.h"

enum { UNIT = 12, SPATIAL = 3 }; /* lengths are in twelfths of a pixel */

struct geometry {
    int mode, padding, propagate, rank;
    int x[5], y[5];
    int window[SPATIAL], stride[SPATIAL], pre[SPATIAL], post[SPATIAL];
};

static inline bool is_max(const struct geometry *g)
{
    return g->mode == CUDNN_RESAMPLE_MAXPOOL;
}

static inline void set_lengths(be_desc desc, cudnnBackendAttributeName_t attribute, int count,
                               const int *lengths)
{
    cudnnFraction_t fractions[SPATIAL];
    int64_t wholes[SPATIAL];
    bool whole = true;
    for (int s = 0; s < count; ++s) {
        fractions[s].numerator = lengths[s];
        fractions[s].denominator = UNIT;
        wholes[s] = lengths[s] / UNIT;
        whole &= lengths[s] % UNIT == 0;
    }
    if (whole && random_chance(0.5)) {
        be_set(desc, attribute, CUDNN_TYPE_INT64, count, wholes);
    } else {
        be_set(desc, attribute, CUDNN_TYPE_FRACTION, count, fractions);
    }
}

static inline be_desc resample_open(const struct geometry *g, cudnnDataType_t compute)
{
    be_desc desc = be_make(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    int spatial = g->rank - 2;
    be_set_enum(desc, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, g->mode);
    be_set_enum(desc, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, g->padding);
    be_set_enum(desc, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION,
                g->propagate);
    be_set_enum(desc, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, (int)compute);
    be_set_int(desc, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, spatial);
    set_lengths(desc, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, spatial, g->window);
    set_lengths(desc, CUDNN_ATTR_RESAMPLE_STRIDES, spatial, g->stride);
    set_lengths(desc, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, spatial, g->pre);
    set_lengths(desc, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, spatial, g->post);
    return desc;
}

static inline void set_scalar(be_desc op, cudnnBackendAttributeName_t attribute, double value)
{
    float narrow = (float)value;
    if (random_chance(0.5)) be_set(op, attribute, CUDNN_TYPE_DOUBLE, 1, &value);
    else be_set(op, attribute, CUDNN_TYPE_FLOAT, 1, &narrow);
}

/* idx may be null. */
static inline be_desc forward_open(be_desc resample, be_desc x, be_desc y, be_desc idx,
                                   double alpha, double beta)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, resample);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y);
    if (idx) be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, idx);
    set_scalar(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, alpha);
    set_scalar(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, beta);
    return op;
}

/* idx, or x and y, may be null. */
static inline be_desc backward_open(be_desc resample, be_desc dy, be_desc idx, be_desc x, be_desc y,
                                    be_desc dx, double alpha, double beta)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, resample);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, dy);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, dx);
    if (idx) be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, idx);
    if (x) be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC, x);
    if (y) be_set_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_YDESC, y);
    set_scalar(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA, alpha);
    set_scalar(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA, beta);
    return op;
}

/* How much pixel k counts in window o along dimension s; 0: not at all. In 1/24 of a pixel: */
static inline int weight_of(const struct geometry *g, int s, int o, int k)
{
    int begin = 2 * (o * g->stride[s] - g->pre[s]);
    int end = begin + 2 * g->window[s];
    int centre = (begin + end) / 2;
    int left = 2 * k * UNIT;
    int right = left + 2 * UNIT;
    int reach = g->window[s] > 2 * UNIT ? g->window[s] : 2 * UNIT;
    int away = abs((left + right) / 2 - centre);
    switch (g->mode) {
    case CUDNN_RESAMPLE_NEAREST: return left <= centre && centre < right;
    case CUDNN_RESAMPLE_BILINEAR: return away < reach ? reach - away : 0;
    default: return begin <= left && left < end;
    }
}

/* A pixel that counts in a window, in the order of the rows. */
struct pixel {
    int64_t index; /* in the image, of the one that it stands for; -1: padding of its own value */
    double weight;
    double value; /* of padding */
};

enum { PIXELS = 4096 };

/* The pixels of the window at `out` of y, and the weight of all of them. */
static inline int look(const struct geometry *g, const struct tensor *image, const int *out,
                       struct pixel *list, double *total)
{
    int spatial = g->rank - 2;
    int low[SPATIAL] = {0}, high[SPATIAL] = {1, 1, 1}, k[SPATIAL] = {0};
    int count = 0;
    *total = 0;
    for (int s = 0; s < spatial; ++s) {
        low[s] = -(g->pre[s] + g->window[s]) / UNIT - 4;
        high[s] = g->x[2 + s] + (g->post[s] + g->window[s]) / UNIT + 4;
    }
    for (k[0] = low[0]; k[0] < high[0]; ++k[0]) {
        if (!weight_of(g, 0, out[2], k[0])) continue;
        for (k[1] = low[1]; k[1] < high[1]; ++k[1]) {
            if (spatial > 1 && !weight_of(g, 1, out[3], k[1])) continue;
            for (k[2] = low[2]; k[2] < high[2]; ++k[2]) {
                struct pixel pixel = {-1, 1.0, 0.0};
                int at[5] = {out[0], out[1]};
                bool inside = true;
                for (int s = 0; s < spatial; ++s) {
                    pixel.weight *= weight_of(g, s, out[2 + s], k[s]);
                    at[2 + s] = k[s] < 0 ? 0 : k[s] >= g->x[2 + s] ? g->x[2 + s] - 1 : k[s];
                    inside &= at[2 + s] == k[s];
                }
                if (pixel.weight == 0.0) continue;
                if (inside || g->padding == CUDNN_EDGE_VAL_PAD) {
                    pixel.index = logical_index(image, at);
                } else {
                    pixel.value = g->padding == CUDNN_NEG_INF_PAD ? -INFINITY : 0.0;
                }
                if (g->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING && !inside) continue;
                if (count == PIXELS) abort();
                *total += pixel.weight;
                list[count++] = pixel;
            }
        }
    }
    return count;
}

/* The first of the largest that is a candidate, else -1. */
static inline int first_largest(const struct geometry *g, const struct tensor *x,
                                const struct pixel *list, int count)
{
    int first = -1;
    double largest = 0;
    for (int i = 0; i < count; ++i) {
        double value = list[i].index >= 0 ? x->value[list[i].index] : list[i].value;
        if (list[i].index < 0 && g->padding == CUDNN_NEG_INF_PAD) continue;
        if (isnan(value) && !g->propagate) continue;
        if (first >= 0 && (isnan(largest) || value <= largest)) continue;
        first = i;
        largest = value;
    }
    return first;
}

/* As the API has it: 1 + (x + pre + post - window) / stride, rounded down. */
static inline bool set_output(struct geometry *g)
{
    g->y[0] = g->x[0];
    g->y[1] = g->x[1];
    for (int s = 0; s < g->rank - 2; ++s) {
        int room = g->x[2 + s] * UNIT + g->pre[s] + g->post[s] - g->window[s];
        if (room < 0) return false;
        g->y[2 + s] = 1 + room / g->stride[s];
        if (g->y[2 + s] > 40) return false;
    }
    return true;
}

#endif
