/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax, see softmax_case.h. One thread. */
#include "softmax_case.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const cudnnDataType_t softmax_types[SOFTMAX_TYPES] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                                      CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
const char *const softmax_type_name[SOFTMAX_TYPES] = {"fp32", "fp64", "fp16", "bf16"};

static int skip_of(const struct softmax_call *c, const struct part *p)
{
    if (!c->skips) return 0;
    return p == c->x ? c->x_skip : p == c->y ? c->y_skip : p == c->dy ? c->dy_skip : c->dx_skip;
}

static void *data_of(const struct softmax_call *c, const struct part *p)
{
    int64_t bytes = p->whole->count ? p->whole->bytes / p->whole->count : 0;
    return (char *)p->whole->data + skip_of(c, p) * bytes;
}

static int64_t index_of(const struct softmax_call *c, const struct part *p, int64_t logical)
{
    return c->skips ? skip_of(c, p) + logical : part_index(p, logical);
}

cudnnStatus_t softmax_forward(void *context)
{
    const struct softmax_call *c = context;
    cudnnDataType_t type = c->y->whole->dtype;
    double s[2];
    return cudnnSoftmaxForward(harness_handle, c->algorithm, c->mode, api_scalar(type, c->alpha, s),
                               c->x->desc, data_of(c, c->x), api_scalar(type, c->beta, s + 1),
                               c->y->desc, data_of(c, c->y));
}

cudnnStatus_t softmax_backward(void *context)
{
    const struct softmax_call *c = context;
    cudnnDataType_t type = c->dx->whole->dtype;
    double s[2];
    return cudnnSoftmaxBackward(harness_handle, c->algorithm, c->mode,
                                api_scalar(type, c->alpha, s), c->y->desc, data_of(c, c->y),
                                c->dy->desc, data_of(c, c->dy), api_scalar(type, c->beta, s + 1),
                                c->dx->desc, data_of(c, c->dx));
}

static cudnnDataType_t compute_type(const struct part *p)
{
    return p->whole->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/* The rows: `length` logical indices of the k-th elements of row r. */
struct rows {
    int64_t count, length, inner; /* inner: distance of neighbours in a row, logically */
};

static struct rows rows_of(const struct part *p, cudnnSoftmaxMode_t mode)
{
    struct rows r = {.length = p->count / p->dim[0], .inner = 1};
    if (mode == CUDNN_SOFTMAX_MODE_CHANNEL) {
        r.inner = p->count / p->dim[0] / p->dim[1];
        r.length = p->dim[1];
    }
    r.count = p->count / r.length;
    return r;
}

static int64_t element(const struct rows *r, int64_t row, int64_t k)
{
    return row / r->inner * r->inner * r->length + k * r->inner + row % r->inner;
}

/* Better than the type by far. */
static long double exp_of(long double value, bool single)
{
    return single ? (long double)exp((double)value) : expl(value);
}

static void check_forward(const struct softmax_call *c, const double *x, double *want)
{
    struct rows r = rows_of(c->y, c->mode);
    bool single = compute_type(c->y) == CUDNN_DATA_FLOAT;
    double *naive = malloc((size_t)c->y->whole->count * sizeof *naive);
    double *magnitude = calloc((size_t)c->y->whole->count, sizeof *magnitude);
    memcpy(naive, want, (size_t)c->y->whole->count * sizeof *naive);
    for (int64_t row = 0; row < r.count; ++row) {
        double max = -INFINITY;
        long double sum = 0.0;
        float float_sum = 0.0f;
        long double log_of_sum;
        float log_of_float;
        for (int64_t k = 0; k < r.length; ++k) {
            double value = x[index_of(c, c->x, element(&r, row, k))];
            if (value > max) max = value;
        }
        for (int64_t k = 0; k < r.length; ++k) {
            double value = x[index_of(c, c->x, element(&r, row, k))];
            sum += exp_of((long double)value - max, single);
            float_sum += expf((float)(value - max));
        }
        log_of_sum = logl(sum);
        log_of_float = logf(float_sum);
        for (int64_t k = 0; k < r.length; ++k) {
            int64_t index = index_of(c, c->y, element(&r, row, k));
            double value = x[index_of(c, c->x, element(&r, row, k))];
            double old = c->beta != 0.0 ? c->beta * want[index] : 0.0;
            if (c->algorithm == CUDNN_SOFTMAX_LOG) {
                double log_y = (double)((long double)value - max - log_of_sum);
                want[index] = c->alpha * log_y + old;
                naive[index] = c->alpha * (value - max - (double)log_of_float) + old;
                magnitude[index] =
                    fabs(c->alpha) * (fabs(value - max) + fabs((double)log_of_sum) + 1.0);
            } else {
                double probability = (double)(exp_of((long double)value - max, single) / sum);
                want[index] = c->alpha * probability + old;
                naive[index] = c->alpha * (exp(value - max) / (double)float_sum) + old;
                /* exp's own error grows with the rounding of its argument */
                magnitude[index] = fabs(c->alpha) * probability * (2.0 + fabs(value - max));
            }
            magnitude[index] += fabs(old);
            if (!isfinite(magnitude[index])) magnitude[index] = 0.0;
            if (single) magnitude[index] += fabs(c->alpha) * FLT_MIN;
        }
    }
    check_values("y", c->y->whole, want, single ? naive : NULL, magnitude, compute_type(c->y));
    free(naive);
    free(magnitude);
}

static void check_backward(const struct softmax_call *c, const double *y, const double *dy,
                           double *want)
{
    struct rows r = rows_of(c->dx, c->mode);
    double *magnitude = calloc((size_t)c->dx->whole->count, sizeof *magnitude);
    bool log_form = c->algorithm == CUDNN_SOFTMAX_LOG;
    bool single = compute_type(c->dx) == CUDNN_DATA_FLOAT;
    for (int64_t row = 0; row < r.count; ++row) {
        long double sum = 0.0;
        double absolute = 0.0;
        for (int64_t k = 0; k < r.length; ++k) {
            double gradient = dy[index_of(c, c->dy, element(&r, row, k))];
            long double term =
                log_form ? gradient
                         : (long double)y[index_of(c, c->y, element(&r, row, k))] * gradient;
            sum += term;
            absolute += fabs((double)term);
        }
        /* a tree of n terms: its rounding is that of its depth */
        absolute *= 1.0 + log2((double)r.length) / 8.0;
        for (int64_t k = 0; k < r.length; ++k) {
            int64_t from = index_of(c, c->y, element(&r, row, k));
            int64_t index = index_of(c, c->dx, element(&r, row, k));
            double gradient = dy[index_of(c, c->dy, element(&r, row, k))];
            double old = c->beta != 0.0 ? c->beta * want[index] : 0.0;
            double factor = log_form ? exp(y[from]) : y[from];
            double dx = (double)(log_form ? gradient - exp_of(y[from], single) * sum
                                          : factor * (gradient - sum));
            want[index] = c->alpha * dx + old;
            magnitude[index] =
                fabs(c->alpha) *
                    (log_form ? fabs(gradient) + fabs(factor) * absolute * (1.0 + fabs(y[from]))
                              : fabs(factor) * (fabs(gradient) + absolute)) +
                fabs(old);
        }
    }
    check_values("dx", c->dx->whole, want, NULL, magnitude, compute_type(c->dx));
    free(magnitude);
}

void softmax_run_forward(struct softmax_call *c)
{
    double *x = part_expected(c->x);
    double *want = part_expected(c->y);
    if (run_call(softmax_forward, c)) check_forward(c, x, want);
    free(x);
    free(want);
}

void softmax_run_backward(struct softmax_call *c)
{
    double *y = part_expected(c->y);
    double *dy = part_expected(c->dy);
    double *want = part_expected(c->dx);
    if (run_call(softmax_backward, c)) check_backward(c, y, dy, want);
    free(y);
    free(dy);
    free(want);
}
