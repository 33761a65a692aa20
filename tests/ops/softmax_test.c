/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax against its formula in double, row by row, every algorithm, mode and type, on random
 * shapes and layouts; long rows and many rows, large magnitudes, infinities, NaN, in place;
 * gradients also against finite differences. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "part.h"

struct call {
    cudnnSoftmaxAlgorithm_t algorithm;
    cudnnSoftmaxMode_t mode;
    struct part *x, *y, *dy, *dx;
    double alpha, beta;
    bool skips; /* each tensor is packed and begins some elements into its whole */
    int x_skip, y_skip, dy_skip, dx_skip;
};

static int skip_of(const struct call *c, const struct part *p)
{
    if (!c->skips) return 0;
    return p == c->x ? c->x_skip : p == c->y ? c->y_skip : p == c->dy ? c->dy_skip : c->dx_skip;
}

static void *data_of(const struct call *c, const struct part *p)
{
    int64_t bytes = p->whole->count ? p->whole->bytes / p->whole->count : 0;
    return (char *)p->whole->data + skip_of(c, p) * bytes;
}

static int64_t index_of(const struct call *c, const struct part *p, int64_t logical)
{
    return c->skips ? skip_of(c, p) + logical : part_index(p, logical);
}

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                        CUDNN_DATA_BFLOAT16};
static const char *const type_name[] = {"fp32", "fp64", "fp16", "bf16"};

static cudnnStatus_t forward(void *context)
{
    const struct call *c = context;
    cudnnDataType_t type = c->y->whole->dtype;
    double s[2];
    return cudnnSoftmaxForward(harness_handle, c->algorithm, c->mode, api_scalar(type, c->alpha, s),
                               c->x->desc, data_of(c, c->x), api_scalar(type, c->beta, s + 1),
                               c->y->desc, data_of(c, c->y));
}

static cudnnStatus_t backward(void *context)
{
    const struct call *c = context;
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

static void check_forward(const struct call *c, const double *x, double *want)
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
        for (int64_t k = 0; k < r.length; ++k) {
            double value = x[index_of(c, c->x, element(&r, row, k))];
            if (value > max) max = value;
        }
        for (int64_t k = 0; k < r.length; ++k) {
            double value = x[index_of(c, c->x, element(&r, row, k))];
            sum += expl((long double)value - max);
            float_sum += expf((float)(value - max));
        }
        for (int64_t k = 0; k < r.length; ++k) {
            int64_t index = index_of(c, c->y, element(&r, row, k));
            double value = x[index_of(c, c->x, element(&r, row, k))];
            double old = c->beta != 0.0 ? c->beta * want[index] : 0.0;
            double log_y = (double)((long double)value - max - logl(sum));
            double probability = (double)(expl((long double)value - max) / sum);
            if (c->algorithm == CUDNN_SOFTMAX_LOG) {
                want[index] = c->alpha * log_y + old;
                naive[index] = c->alpha * (value - max - (double)logf(float_sum)) + old;
                magnitude[index] =
                    fabs(c->alpha) * (fabs(value - max) + fabs((double)logl(sum)) + 1.0);
            } else {
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

static void check_backward(const struct call *c, const double *y, const double *dy, double *want)
{
    struct rows r = rows_of(c->dx, c->mode);
    double *magnitude = calloc((size_t)c->dx->whole->count, sizeof *magnitude);
    bool log_form = c->algorithm == CUDNN_SOFTMAX_LOG;
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
            double dx = (double)(log_form ? gradient - expl((long double)y[from]) * sum
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

static double *copy_values(const struct part *p)
{
    return part_expected(p);
}

static void run_forward(struct call *c)
{
    double *x = copy_values(c->x);
    double *want = part_expected(c->y);
    if (run_call(forward, c)) check_forward(c, x, want);
    free(x);
    free(want);
}

static void run_backward(struct call *c)
{
    double *y = copy_values(c->y);
    double *dy = copy_values(c->dy);
    double *want = part_expected(c->dx);
    if (run_call(backward, c)) check_backward(c, y, dy, want);
    free(y);
    free(dy);
    free(want);
}

static double random_scalar(void)
{
    return (double)random_of(0, 2, 2, 1, -3) * 0.5;
}

static void random_case(int algorithm, int mode, int type, int turn)
{
    struct call c = {(cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode, .alpha = 1.0};
    int dim[8], x_margin[8], y_margin[8];
    int rank;
    double reach;
    if (!case_begin("softmax/algo%d/mode%d/%s/%d", algorithm, mode, type_name[type], turn)) return;
    rank = random_of(2, 3, 4, 4, 4, 5, 6);
    for (int d = 0; d < rank; ++d) dim[d] = random_of(1, 2, 3, 5, 7, 8);
    if (turn % 3 == 1) dim[1] = random_of(1, 31, 32, 33, 100, 257);
    if (turn) c.alpha = random_scalar(), c.beta = random_scalar();
    reach = random_of(1, 4, 60);
    {
        const int *x_extra = random_margin(rank, x_margin);
        const int *y_extra = random_margin(rank, y_margin);
        enum layout x_layout = random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
        enum layout y_layout = random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
        c.x = part_input(types[type], rank, dim, x_layout, x_extra, -reach, reach);
        c.y = part_output(types[type], rank, dim, y_layout, y_extra, c.beta == 0.0);
        run_forward(&c);
        c.y->whole->output = false;
        /* the backward pass takes any y: here one of the size that it has */
        c.y = part_input(types[type], rank, dim, y_layout, y_extra,
                         algorithm == CUDNN_SOFTMAX_LOG ? -6.0 : 0.0,
                         algorithm == CUDNN_SOFTMAX_LOG ? 0.0 : 1.0);
        c.dy = part_input(types[type], rank, dim, y_layout, y_extra, -2.0, 2.0);
        c.dx = part_output(types[type], rank, dim, x_layout, x_extra, c.beta == 0.0);
        run_backward(&c);
    }
    parts_free();
    case_end();
}

/* Rows on both sides of every limit between one item a row, one reduction, and one in pieces. */
static void shape_case(int algorithm, int mode, int n, int channels, int width, int type)
{
    struct call c = {(cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode, .alpha = 1.0};
    int dim[4] = {n, channels, 1, width};
    if (!case_begin("softmax/shape/algo%d/mode%d/%d,%d,%d/%s", algorithm, mode, n, channels, width,
                    type_name[type])) {
        return;
    }
    c.x = part_input(types[type], 4, dim, LAYOUT_NCHW, NULL, -8.0, 8.0);
    c.y = part_output(types[type], 4, dim, LAYOUT_NCHW, NULL, true);
    run_forward(&c);
    c.y->whole->output = false;
    c.y = part_input(types[type], 4, dim, LAYOUT_NCHW, NULL,
                     algorithm == CUDNN_SOFTMAX_LOG ? -16.0 : 0.0,
                     algorithm == CUDNN_SOFTMAX_LOG ? -8.0 : 0.01);
    c.dy = part_input(types[type], 4, dim, LAYOUT_NCHW, NULL, -2.0, 2.0);
    c.dx = part_output(types[type], 4, dim, LAYOUT_NCHW, NULL, true);
    run_backward(&c);
    parts_free();
    case_end();
}

static struct part packed_after(const struct tensor *whole, const int *dim)
{
    struct part p = {.whole = (struct tensor *)whole, .rank = 4, .count = 1};
    for (int d = 0; d < 4; ++d) {
        p.dim[d] = dim[d];
        p.count *= dim[d];
    }
    cudnnCreateTensorDescriptor(&p.desc);
    cudnnSetTensor4dDescriptor(p.desc, CUDNN_TENSOR_NCHW, whole->dtype, dim[0], dim[1], dim[2],
                               dim[3]);
    return p;
}

/* Tensors that begin off the boundaries of 16 bytes, alike or each in its own way. */
static void skip_case(int mode, int n, int channels, int width, int type, bool alike, double beta)
{
    static const int algorithms[] = {CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG};
    for (int i = 0; i < 2; ++i) {
        struct call c = {.algorithm = (cudnnSoftmaxAlgorithm_t)algorithms[i],
                         .mode = (cudnnSoftmaxMode_t)mode,
                         .alpha = 1.5,
                         .beta = beta,
                         .skips = true,
                         .x_skip = 1,
                         .y_skip = alike ? 1 : 2,
                         .dy_skip = alike ? 1 : 0,
                         .dx_skip = alike ? 1 : 3};
        bool log_form = c.algorithm == CUDNN_SOFTMAX_LOG;
        int dim[4] = {n, channels, 1, width};
        int whole[4] = {1, 1, 1, n * channels * width + 9};
        struct part x, y, dy, dx;
        if (!case_begin("softmax/skip/algo%d/mode%d/%d,%d,%d/%s/%s", algorithms[i], mode, n,
                        channels, width, type_name[type], alike ? "alike" : "apart")) {
            continue;
        }
        x = packed_after(tensor_input(types[type], 4, whole, LAYOUT_NCHW, -8.0, 8.0), dim);
        y = packed_after(tensor_inout(types[type], 4, whole, LAYOUT_NCHW, -4.0, 4.0), dim);
        c.x = &x;
        c.y = &y;
        run_forward(&c);
        cudnnDestroyTensorDescriptor(y.desc);
        y.whole->output = false;
        y = packed_after(tensor_input(types[type], 4, whole, LAYOUT_NCHW, log_form ? -16.0 : 0.0,
                                      log_form ? -8.0 : 0.01),
                         dim);
        dy = packed_after(tensor_input(types[type], 4, whole, LAYOUT_NCHW, -2.0, 2.0), dim);
        dx = packed_after(tensor_inout(types[type], 4, whole, LAYOUT_NCHW, -4.0, 4.0), dim);
        c.dy = &dy;
        c.dx = &dx;
        run_backward(&c);
        cudnnDestroyTensorDescriptor(x.desc);
        cudnnDestroyTensorDescriptor(y.desc);
        cudnnDestroyTensorDescriptor(dy.desc);
        cudnnDestroyTensorDescriptor(dx.desc);
        case_end();
    }
}

/* Output over input. The harness compares inputs too, so the shared tensor is the output. */
static void in_place_case(int algorithm, int mode, int channels)
{
    struct call c = {(cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode, .alpha = 1.5,
                     .beta = -0.5};
    int dim[4] = {2, channels, 3, 2};
    if (!case_begin("softmax/in_place/algo%d/mode%d/%d", algorithm, mode, channels)) return;
    c.x = c.y = part_output(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NHWC, NULL, false);
    run_forward(&c);
    c.y = part_input(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NHWC, NULL, -1.0, 0.0);
    c.dy = c.dx = part_output(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NHWC, NULL, false);
    run_backward(&c);
    c.dy = part_input(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NHWC, NULL, -1.0, 1.0);
    c.y = c.dx = part_output(CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NHWC, NULL, false);
    run_backward(&c);
    parts_free();
    case_end();
}

/* Rows with values that break a careless softmax; what is due is written out. */
static void special_case(int algorithm, int type, int copies)
{
    static const double rows[][4] = {
        {-INFINITY, 0.0, 0.0, -INFINITY}, /* half, half */
        {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
        {NAN, 0.0, 1.0, 2.0},
        {INFINITY, 0.0, 1.0, 2.0},
        {30000.0, 30000.0, -30000.0, -30000.0},
        {-30000.0, -30000.0, -30000.0, -30000.0},
        {0.0, -200.0, -200.0, -200.0},
    };
    static const double due[][4] = {
        {0.0, 0.5, 0.5, 0.0}, {NAN, NAN, NAN, NAN},     {NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN},
        {0.5, 0.5, 0.0, 0.0}, {0.25, 0.25, 0.25, 0.25}, {1.0, 0.0, 0.0, 0.0},
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct call c = {(cudnnSoftmaxAlgorithm_t)algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, .alpha = 1.0};
    int dim[3] = {ROWS, 4, copies}; /* copies: long rows become reductions */
    if (!case_begin("softmax/special/algo%d/%s/%d", algorithm, type_name[type], copies)) return;
    c.x = part_input(types[type], 3, dim, LAYOUT_NCHW, NULL, 0.0, 0.0);
    c.y = part_output(types[type], 3, dim, LAYOUT_NCHW, NULL, true);
    for (int64_t i = 0; i < c.x->count; ++i) {
        c.x->whole->value[i] = rows[i / (4 * copies)][i / copies % 4];
    }
    tensor_write(c.x->whole);
    if (run_call(forward, &c) && harness_values) {
        for (int64_t i = 0; i < c.y->count; ++i) {
            int row = (int)(i / (4 * copies));
            double want = due[row][i / copies % 4] / copies;
            double got = c.y->whole->value[i];
            double slack;
            if (algorithm == CUDNN_SOFTMAX_LOG) {
                /* the logarithm of a vanishing probability is not minus infinity */
                if (row == 4 && want == 0.0) want = -60000.0 - log(2.0 * copies);
                else if (row == 6 && want == 0.0) want = -200.0 - log(copies);
                else want = log(want);
            }
            slack = 4.0 * tensor_epsilon(types[type]) * fabs(want) + 1e-5;
            if (isnan(want) ? isnan(got) : got == want || fabs(got - want) <= slack) continue;
            case_fail("y[%d][%lld] is %g, due is %g", row, (long long)(i / copies % 4), got, want);
        }
    }
    parts_free();
    case_end();
}

static double weighted(struct call *c, const double *weight)
{
    double sum = 0.0;
    run_call(forward, c);
    for (int64_t i = 0; i < c->y->count; ++i) sum += weight[i] * c->y->whole->value[i];
    return sum;
}

static void difference_case(int algorithm, int mode, int channels)
{
    struct call c = {(cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode, .alpha = 1.0};
    int dim[4] = {2, channels, 2, 1};
    double *weight;
    double *quotient;
    if (!case_begin("softmax/differences/algo%d/mode%d/%d", algorithm, mode, channels)) return;
    c.x = part_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, -2.0, 2.0);
    c.y = part_output(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, false);
    c.dy = part_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, -2.0, 2.0);
    c.dx = part_output(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, true);
    weight = part_expected(c.dy);
    quotient = calloc((size_t)c.x->count, sizeof *quotient);
    for (int64_t i = 0; i < c.x->count; ++i) {
        double x = c.x->whole->value[i];
        double up;
        c.x->whole->value[i] = x + 1e-5;
        tensor_write(c.x->whole);
        up = weighted(&c, weight);
        c.x->whole->value[i] = x - 1e-5;
        tensor_write(c.x->whole);
        quotient[i] = (up - weighted(&c, weight)) / 2e-5;
        c.x->whole->value[i] = x;
        tensor_write(c.x->whole);
    }
    weighted(&c, weight); /* y at x */
    c.y->whole->output = false;
    tensor_write(c.y->whole);
    run_call(backward, &c);
    for (int64_t i = 0; harness_values && i < c.x->count; ++i) {
        if (fabs(quotient[i] - c.dx->whole->value[i]) < 1e-8) continue;
        case_fail("dx[%lld] is %.12g, the difference quotient %.12g", (long long)i,
                  c.dx->whole->value[i], quotient[i]);
    }
    free(weight);
    free(quotient);
    parts_free();
    case_end();
}

/* Rows and columns on both sides of what lanes, a warp, a block and a cluster hold, and of what is worth
 * a tile. */
static void gpu_shapes(void)
{
    static const int lengths[] = {1,   2,   3,   4,   5,    8,    31,   33,   64,  127,
                                  250, 256, 257, 513, 1000, 1024, 1025, 2049, 4097};
    static const int many[] = {9, 500, 1000, 2048, 2049}; /* channels */
    for (int type = 0; type < 4; ++type) {
        int run = type == 0 ? 4 : type == 1 ? 2 : 8; /* elements of 16 bytes */
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
            int algorithm = (int)(i % 3);
            shape_case(algorithm, 0, 37, lengths[i], 1, type);
            skip_case(0, 3, lengths[i], 1, type, true, i % 2 ? 0.0 : 0.5);
            if (i % 3 == 0) skip_case(0, 3, lengths[i], 1, type, false, 0.5);
        }
        for (size_t i = 0; i < sizeof many / sizeof *many; ++i) {
            int algorithm = (int)((i + type) % 3);
            shape_case(algorithm, 1, 2, many[i], 49, type);
            shape_case(algorithm, 1, 2, many[i], 16, type);
        }
        shape_case(type % 3, 1, 3, 3, 3136, type);
        shape_case(type % 3, 1, 70, 21, 48, type);
        shape_case(type % 3, 1, 2, 19, 3135, type);
        shape_case(type % 3, 1, 1, 9000, 6, type);
        shape_case(type % 3, 1, 1, 17000, 8, type);
        skip_case(1, 2, 21, 64, type, true, 0.0);
        skip_case(1, 2, 700, 7, type, false, 0.5);
        /* many rows of a warp each */
        shape_case(type % 3, 0, 530, 100 * run, 1, type);
        shape_case(type % 3, 0, 529, 180 * run, 1, type);
        skip_case(0, 531, 200 * run - 3, 1, type, true, 0.0);
        shape_case(type % 3, 0, 2, 50257, 1, type);
        /* tiles of odd rows, and tensors that lie apart */
        shape_case(type % 3, 0, 180001, 3, 1, type);
        shape_case((type + 1) % 3, 1, 26003, 21, 1, type);
        shape_case((type + 2) % 3, 0, 2800, 197, 1, type);
        shape_case(type % 3, 0, 1100, 513, 1, type);
        skip_case(0, 53003, 10, 1, type, true, 0.5);
        skip_case(0, 1101, 515, 1, type, true, 0.0);
        skip_case(0, 530, 300, 1, type, false, 0.5);
        skip_case(0, 5, 200, 1, type, false, 0.0);
        /* all channels in a thread: runs, words, odd positions */
        shape_case(type % 3, 1, 9, 3, 8000, type);
        shape_case((type + 1) % 3, 1, 10, 7, 7200, type);
        shape_case((type + 2) % 3, 1, 7, 19, 2602, type);
        shape_case(type % 3, 1, 4, 32, 2601, type);
        skip_case(1, 9, 5, 2000, type, true, 0.5);
        skip_case(1, 9, 4, 2001, type, false, 0.0);
        shape_case((type + 1) % 3, 0, 67, 5001, 1, type);
    }
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 2, 128000, 1, 0);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 1, 128001, 1, 3);
    skip_case(0, 1, 600001, 1, 2, true, 0.0);
    skip_case(0, 1, 1000001, 1, 2, true, 0.5);
    shape_case(CUDNN_SOFTMAX_LOG, 0, 1, 1000003, 1, 3);
    shape_case(CUDNN_SOFTMAX_LOG, 0, 2, 1000003, 1, 0);
    skip_case(0, 2, 300001, 1, 1, true, 0.5);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 1, 1, 70001, 3, 0);
    shape_case(CUDNN_SOFTMAX_LOG, 1, 1, 140000, 4, 2);
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int algorithm = 0; algorithm < 3; ++algorithm) {
        for (int mode = 0; mode < 2; ++mode) {
            for (int type = 0; type < 4; ++type) {
                for (int turn = 0; turn < 12; ++turn) random_case(algorithm, mode, type, turn);
            }
            in_place_case(algorithm, mode, 5);
            in_place_case(algorithm, mode, 70);
            difference_case(algorithm, mode, 3);
            difference_case(algorithm, mode, 40);
        }
        for (int type = 0; type < 4; ++type) {
            special_case(algorithm, type, 1);
            special_case(algorithm, type, 100);
        }
        shape_case(algorithm, 1, 1, 1, 1, 0);
        shape_case(algorithm, 1, 2, 1000, 7, 0);
        shape_case(algorithm, 0, 2, 1000, 7, 0);
        shape_case(algorithm, 1, 3, 50000, 1, 1);
        shape_case(algorithm, 0, 3, 7, 9001, 3);
    }
    shape_case(CUDNN_SOFTMAX_LOG, 1, 1, 33, 65537, 0);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 65537, 3, 11, 2);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 1, 1, 1000000, 0);
    gpu_shapes();
    return harness_finish();
}
