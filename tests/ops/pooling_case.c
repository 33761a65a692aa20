/* SPDX-License-Identifier: Apache-2.0
 *
 * Poolings, see pooling_case.h. One thread. */
#include "pooling_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const pooling_type_name[POOLING_TYPES] = {
    "fp32", "fp64", "fp16", "int8", "int32", "int8x4", "uint8", "uint8x4", "int8x32", "bf16"};

cudnnStatus_t pooling_forward(void *context)
{
    const struct pooling_call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[2];
    return cudnnPoolingForward(harness_handle, c->pooling, api_scalar(type, c->alpha, s),
                               c->x->desc, part_data(c->x), api_scalar(type, c->beta, s + 1),
                               c->y->desc, part_data(c->y));
}

cudnnStatus_t pooling_backward(void *context)
{
    const struct pooling_call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[2];
    return cudnnPoolingBackward(harness_handle, c->pooling, api_scalar(type, c->alpha, s),
                                c->y->desc, part_data(c->y), c->dy->desc, part_data(c->dy),
                                c->x->desc, part_data(c->x), api_scalar(type, c->beta, s + 1),
                                c->dx->desc, part_data(c->dx));
}

cudnnPoolingDescriptor_t pooling_descriptor(const struct pooling_geometry *g)
{
    cudnnPoolingDescriptor_t pooling = NULL;
    cudnnCreatePoolingDescriptor(&pooling);
    if (cudnnSetPoolingNdDescriptor(pooling, (cudnnPoolingMode_t)g->mode,
                                    (cudnnNanPropagation_t)g->propagate, g->rank - 2, g->window,
                                    g->pad, g->stride) != CUDNN_STATUS_SUCCESS) {
        case_fail("the pooling descriptor is refused");
    }
    return pooling;
}

void pooling_roughen(struct part *x, bool nan)
{
    for (int64_t i = 0; i < x->whole->count; ++i) {
        if (random_chance(0.5)) x->whole->value[i] = (double)random_int(0, 2);
        if (nan && random_chance(0.1)) x->whole->value[i] = NAN;
        if (nan && random_chance(0.05)) x->whole->value[i] = random_chance(0.5) ? -INFINITY : 0.0;
    }
    tensor_write(x->whole);
}

static bool is_max(const struct pooling_geometry *g)
{
    return g->mode == CUDNN_POOLING_MAX || g->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

/* One window. */
struct seen {
    int64_t inside; /* elements of the image */
    double n;       /* of an average */
    double sum;     /* of the elements, and of their magnitudes */
    double magnitude;
    float naive; /* the sum again, in single precision */
    double largest;
    int64_t first; /* index in x of the first of the largest, -1: no candidate */
};

/* The lowest finite value. */
static double lowest(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_FLOAT: return -0x1.fffffep127;
    case CUDNN_DATA_DOUBLE: return -0x1.fffffffffffffp1023;
    case CUDNN_DATA_HALF: return -65504.0;
    case CUDNN_DATA_BFLOAT16: return -0x1.fep127;
    default: return tensor_round(dtype, -1e30);
    }
}

/* Calls `visit` (may be null) on each element of the image in the window at `out` of y. */
static struct seen look(const struct pooling_geometry *g, const struct part *x, const int *out,
                        void (*visit)(void *, int64_t), void *context)
{
    struct seen seen = {.first = -1};
    int64_t size = 1;
    for (int s = 0; s < g->rank - 2; ++s) size *= g->window[s];
    for (int64_t k = 0; k < size; ++k) {
        int at[8] = {out[0], out[1]};
        int64_t rest = k;
        bool inside = true;
        int64_t index;
        double value;
        for (int s = g->rank - 3; s >= 0; --s) {
            at[2 + s] = out[2 + s] * g->stride[s] - g->pad[s] + (int)(rest % g->window[s]);
            rest /= g->window[s];
            inside &= at[2 + s] >= 0 && at[2 + s] < g->x[2 + s];
        }
        if (!inside) continue;
        index = part_at(x, at);
        value = x->whole->value[index];
        seen.inside += 1;
        seen.sum += value;
        seen.naive += (float)value;
        seen.magnitude += fabs(value);
        if (visit) visit(context, index);
        if (isnan(value) && !g->propagate) continue;
        if (seen.first >= 0 && (isnan(seen.largest) || value <= seen.largest)) continue;
        seen.largest = value;
        seen.first = index;
    }
    seen.n =
        g->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING ? (double)seen.inside : (double)size;
    if (seen.first < 0) seen.largest = lowest(x->whole->dtype);
    return seen;
}

void pooling_check_forward(const struct pooling_geometry *g, const struct pooling_call *c,
                           double *before)
{
    double *naive = malloc((size_t)c->y->whole->count * sizeof *naive);
    double *magnitude = calloc((size_t)c->y->whole->count, sizeof *magnitude);
    memcpy(naive, before, (size_t)c->y->whole->count * sizeof *naive);
    for (int64_t i = 0; i < c->y->count; ++i) {
        int64_t index = part_index(c->y, i);
        double old = c->beta != 0.0 ? c->beta * before[index] : 0.0;
        struct seen seen;
        int out[8];
        part_coordinates(c->y, i, out);
        seen = look(g, c->x, out, NULL, NULL);
        if (c->alpha == 0.0) { /* what is not wanted does not count, not even a NaN */
            before[index] = naive[index] = old;
            magnitude[index] = fabs(old);
            continue;
        }
        if (is_max(g)) {
            before[index] = naive[index] = c->alpha * seen.largest + old;
            magnitude[index] =
                isfinite(seen.largest) ? fabs(c->alpha * seen.largest) + fabs(old) : 0;
        } else {
            before[index] = c->alpha * (seen.inside ? seen.sum / seen.n : 0.0) + old;
            naive[index] = c->alpha * (seen.inside ? (double)seen.naive / seen.n : 0.0) + old;
            magnitude[index] = fabs(c->alpha) * seen.magnitude / (seen.n + 1e-9) + fabs(old);
            if (!isfinite(magnitude[index])) magnitude[index] = 0;
        }
    }
    check_values("y", c->y->whole, before, naive, magnitude,
                 c->y->whole->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(naive);
    free(magnitude);
}

struct spread {
    double share;
    double *sum, *magnitude;
};

static void add_share(void *context, int64_t index)
{
    const struct spread *spread = context;
    spread->sum[index] += spread->share;
    spread->magnitude[index] += fabs(spread->share);
}

void pooling_check_backward(const struct pooling_geometry *g, const struct pooling_call *c,
                            double *before)
{
    int64_t count = c->dx->whole->count;
    double *sum = calloc((size_t)count, sizeof *sum);
    double *magnitude = calloc((size_t)count, sizeof *magnitude);
    for (int64_t i = 0; i < c->dy->count; ++i) {
        struct spread spread = {0, sum, magnitude};
        struct seen seen;
        int out[8];
        part_coordinates(c->dy, i, out);
        seen = look(g, c->x, out, NULL, NULL);
        spread.share = c->dy->whole->value[part_index(c->dy, i)];
        if (is_max(g)) {
            if (seen.first >= 0) add_share(&spread, seen.first);
        } else if (seen.inside) {
            spread.share /= seen.n;
            look(g, c->x, out, add_share, &spread);
        }
    }
    for (int64_t i = 0; i < c->dx->count; ++i) {
        int64_t index = part_index(c->dx, i);
        double old = c->beta != 0.0 ? c->beta * before[index] : 0.0;
        before[index] = c->alpha * sum[index] + old;
        magnitude[index] = fabs(c->alpha) * magnitude[index] + fabs(old);
    }
    for (int64_t i = 0; i < count; ++i) magnitude[i] *= 4; /* a sum of a few dozen at most */
    check_values("dx", c->dx->whole, before, NULL, magnitude,
                 c->dx->whole->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(sum);
    free(magnitude);
}
