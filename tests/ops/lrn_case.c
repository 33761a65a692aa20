/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response and divisive normalization, see lrn_case.h. One thread. */
#include "lrn_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct lrn_type lrn_types[LRN_TYPES] = {{"fp32", CUDNN_DATA_FLOAT},
                                              {"fp64", CUDNN_DATA_DOUBLE},
                                              {"fp16", CUDNN_DATA_HALF},
                                              {"bf16", CUDNN_DATA_BFLOAT16}};

cudnnStatus_t lrn_forward(void *context)
{
    const struct lrn_call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[2];
    if (!c->divisive) {
        return cudnnLRNCrossChannelForward(harness_handle, c->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                           api_scalar(type, c->alpha, s), c->x->desc,
                                           part_data(c->x), api_scalar(type, c->beta, s + 1),
                                           c->y->desc, part_data(c->y));
    }
    return cudnnDivisiveNormalizationForward(
        harness_handle, c->lrn, CUDNN_DIVNORM_PRECOMPUTED_MEANS, api_scalar(type, c->alpha, s),
        c->x->desc, part_data(c->x), c->means ? part_data(c->means) : NULL, part_data(c->temp),
        part_data(c->temp2), api_scalar(type, c->beta, s + 1), c->y->desc, part_data(c->y));
}

cudnnStatus_t lrn_backward(void *context)
{
    const struct lrn_call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[2];
    if (!c->divisive) {
        return cudnnLRNCrossChannelBackward(
            harness_handle, c->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, api_scalar(type, c->alpha, s),
            c->y->desc, part_data(c->y), c->dy->desc, part_data(c->dy), c->x->desc, part_data(c->x),
            api_scalar(type, c->beta, s + 1), c->dx->desc, part_data(c->dx));
    }
    return cudnnDivisiveNormalizationBackward(
        harness_handle, c->lrn, CUDNN_DIVNORM_PRECOMPUTED_MEANS, api_scalar(type, c->alpha, s),
        c->x->desc, part_data(c->x), c->means ? part_data(c->means) : NULL, part_data(c->dy),
        part_data(c->temp), part_data(c->temp2), api_scalar(type, c->beta, s + 1), c->dx->desc,
        part_data(c->dx), c->dmeans ? part_data(c->dmeans) : NULL);
}

static double value_at(const struct part *p, int64_t logical)
{
    return p ? p->whole->value[part_index(p, logical)] : 0.0;
}

static int64_t steps(const struct lrn_call *c)
{
    int64_t n = c->n;
    for (int d = 3; c->divisive && d < c->x->rank; ++d) n *= c->n;
    return n;
}

/* What judges an element: inputs by logical index, and the window that is moved over them. Its steps run through n
 * channels, or through n pixels of each spatial dimension. */
struct judge {
    const struct lrn_call *c;
    double *x, *means;
    int64_t steps, *offset, *member; /* member: logical indices of the terms of the last window */
    int (*delta)[8];
};

static double *logical_values(const struct part *p, int64_t count)
{
    double *value = calloc((size_t)count, sizeof *value);
    for (int64_t i = 0; i < count; ++i) value[i] = value_at(p, i);
    return value;
}

static struct judge judge_of(const struct lrn_call *c)
{
    struct judge j = {.c = c, .steps = steps(c)};
    const int first = c->divisive ? 2 : 1, last = c->divisive ? c->x->rank - 1 : 1;
    j.x = logical_values(c->x, c->x->count);
    j.means = logical_values(c->means, c->x->count);
    j.offset = calloc((size_t)j.steps, sizeof *j.offset);
    j.member = calloc((size_t)j.steps, sizeof *j.member);
    j.delta = calloc((size_t)j.steps, sizeof *j.delta);
    for (int64_t k = 0; k < j.steps; ++k) {
        int64_t left = k, stride = 1;
        for (int d = c->x->rank - 1; d >= 0; --d) {
            if (d >= first && d <= last) {
                j.delta[k][d] = (int)(left % c->n) - (c->n - 1) / 2;
                left /= c->n;
            }
            j.offset[k] += j.delta[k][d] * stride;
            stride *= c->x->dim[d];
        }
    }
    return j;
}

static void judge_free(struct judge *j)
{
    free(j->x);
    free(j->means);
    free(j->offset);
    free(j->member);
    free(j->delta);
}

/* Finds the terms of the window around element i, at `at`, that are in the tensor; their number. */
static int64_t window_around(const struct judge *j, int64_t i, const int *at)
{
    int64_t count = 0;
    for (int64_t k = 0; k < j->steps; ++k) {
        bool inside = true;
        for (int d = 1; d < j->c->x->rank; ++d) {
            const int to = at[d] + j->delta[k][d];
            inside &= to >= 0 && to < j->c->x->dim[d];
        }
        if (inside) j->member[count++] = i + j->offset[k];
    }
    return count;
}

/* Of an element, as the window around `centre` sees it. */
static double deviation(const struct judge *j, int64_t logical, int64_t centre)
{
    return j->x[logical] - j->means[centre];
}

/* What element i, with so many terms around it, is divided by the power of. */
static double strength(const struct judge *j, int64_t i, int64_t terms)
{
    double sum = 0.0;
    for (int64_t k = 0; k < terms; ++k) {
        const double apart = deviation(j, j->member[k], i);
        sum += apart * apart;
    }
    return j->c->k + j->c->a / (double)j->steps * sum;
}

static cudnnDataType_t compute_type(const struct lrn_call *c)
{
    return c->x->whole->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/* alpha * value + beta * old, a factor of 0 meaning that what it stands before does not count. */
static double blended(const struct lrn_call *c, double value, double old)
{
    return (c->alpha != 0 ? c->alpha * value : 0.0) + (c->beta != 0 ? c->beta * old : 0.0);
}

/* A power of a sum of so many terms has so many roundings. */
static double roundings(const struct lrn_call *c)
{
    return 1.0 + (2.0 + c->b) * (1.0 + (double)steps(c) / 8.0);
}

void lrn_check_forward(const struct lrn_call *c, double *before)
{
    double *magnitude = calloc((size_t)c->y->whole->count, sizeof *magnitude);
    struct judge j = judge_of(c);
    for (int64_t i = 0; i < c->y->count; ++i) {
        int64_t index = part_index(c->y, i);
        double y, old = c->beta != 0 ? fabs(c->beta * before[index]) : 0.0;
        int at[8];
        part_coordinates(c->x, i, at);
        y = j.x[i] * pow(strength(&j, i, window_around(&j, i, at)), -c->b);
        before[index] = blended(c, y, before[index]);
        magnitude[index] = fabs(c->alpha * y) * roundings(c) + old;
        if (!isfinite(magnitude[index])) magnitude[index] = 0;
    }
    check_values("y", c->y->whole, before, NULL, magnitude, compute_type(c));
    judge_free(&j);
    free(magnitude);
}

static void finish(const struct lrn_call *c, const char *name, const struct part *p,
                   const double *sum, const double *size, double *before)
{
    double *magnitude = calloc((size_t)p->whole->count, sizeof *magnitude);
    for (int64_t i = 0; i < p->count; ++i) {
        int64_t index = part_index(p, i);
        double old = c->beta != 0 ? fabs(c->beta * before[index]) : 0.0;
        before[index] = blended(c, sum[i], before[index]);
        magnitude[index] = fabs(c->alpha) * size[i] * roundings(c) + old;
        if (!isfinite(magnitude[index])) magnitude[index] = 0;
    }
    check_values(name, p->whole, before, NULL, magnitude, compute_type(c));
    free(magnitude);
}

void lrn_check_backward(const struct lrn_call *c, double *dx, double *dmeans)
{
    size_t count = (size_t)c->x->count;
    double *sum = calloc(count, sizeof *sum), *size = calloc(count, sizeof *size);
    double *means = calloc(count, sizeof *means), *means_size = calloc(count, sizeof *means);
    struct judge j = judge_of(c);
    for (int64_t i = 0; i < c->x->count; ++i) {
        const double dy = value_at(c->dy, i);
        double power, share;
        int64_t terms;
        int at[8];
        part_coordinates(c->x, i, at);
        terms = window_around(&j, i, at);
        power = strength(&j, i, terms);
        /* d(s^-b) / ds, and ds / dx_j = 2 a / steps * (x_j - means_i) */
        share = dy * j.x[i] * -c->b * pow(power, -c->b - 1.0) * 2.0 * c->a / (double)j.steps;
        power = pow(power, -c->b);
        sum[i] += dy * power;
        size[i] += fabs(dy) * power;
        for (int64_t k = 0; k < terms; ++k) {
            const int64_t to = j.member[k];
            const double part = share * deviation(&j, to, i);
            sum[to] += part;
            size[to] += fabs(part);
            means[i] -= part;
            means_size[i] += fabs(part);
        }
    }
    finish(c, "dx", c->dx, sum, size, dx);
    if (c->dmeans) finish(c, "dMeans", c->dmeans, means, means_size, dmeans);
    judge_free(&j);
    free(sum);
    free(size);
    free(means);
    free(means_size);
}

void lrn_describe(struct lrn_call *c)
{
    if (cudnnCreateLRNDescriptor(&c->lrn) != CUDNN_STATUS_SUCCESS ||
        cudnnSetLRNDescriptor(c->lrn, (unsigned)c->n, c->a, c->b, c->k) != CUDNN_STATUS_SUCCESS) {
        case_fail("the descriptor is refused");
    }
}

/* What scratch holds is the library's: only what lies around it is judged. */
static struct part *scratch(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                            const int *margin)
{
    return part_output(dtype, rank, dim, layout, margin, false);
}

/* Whether a call has kept to the places of its scratch. Frees `before`. */
static void check_around(const char *name, const struct part *p, double *before)
{
    for (int64_t i = 0; i < p->count; ++i) {
        int64_t index = part_index(p, i);
        before[index] = p->whole->value[index];
    }
    if (memcmp(before, p->whole->value, (size_t)p->whole->count * sizeof *before) != 0) {
        case_fail("%s is written outside of its dims", name);
    }
    free(before);
}

double lrn_random_scalar(void)
{
    return (double)random_of(0, 2, 2, 1, -3) * 0.5;
}

static void random_coefficients(struct lrn_call *c)
{
    static const double a[] = {1e-4, 0.5, 2.0, 3.0}, b[] = {0.75, 0.5, 1.0, 1.25};
    static const double k[] = {1.0, 2.0, 0.25};
    c->n = (int)random_int(1, c->divisive ? 7 : 16);
    c->a = a[random_int(0, 3)];
    c->b = b[random_int(0, 3)];
    c->k = k[random_int(0, 2)];
}

static void random_dims(const struct lrn_call *c, int *rank, int *dim)
{
    *rank = c->divisive ? random_of(4, 4, 5) : random_of(3, 4, 4, 4, 5, 6);
    dim[0] = (int)random_int(1, 3);
    dim[1] = c->divisive ? (int)random_int(1, 4) : random_of(1, 2, 3, 5, 7, 16, 31);
    for (int d = 2; d < *rank; ++d) {
        dim[d] = (int)random_int(1, *rank == 4 ? 9 : c->divisive ? 6 : 4);
    }
}

void lrn_random_case(bool divisive, int type, int turn)
{
    struct lrn_call c = {.divisive = divisive, .alpha = 1.0};
    cudnnDataType_t dtype = lrn_types[type].type;
    enum layout layout;
    int dim[8], margin[8], rank;
    const int *extra;
    double *before, *before_means = NULL, *around = NULL, *around2 = NULL;
    if (!case_begin("%s/%s/%d", divisive ? "divisive" : "lrn", lrn_types[type].name, turn)) return;
    random_coefficients(&c);
    random_dims(&c, &rank, dim);
    layout = random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
    extra = random_margin(rank, margin);
    if (turn) c.alpha = lrn_random_scalar(), c.beta = lrn_random_scalar();
    lrn_describe(&c);
    c.x = part_input(dtype, rank, dim, layout, extra, -4.0, 4.0);
    if (divisive) {
        if (random_chance(0.6)) c.means = part_input(dtype, rank, dim, layout, extra, -2.0, 2.0);
        c.temp = scratch(dtype, rank, dim, layout, extra);
        c.temp2 = scratch(dtype, rank, dim, layout, extra);
        around = part_expected(c.temp);
        around2 = part_expected(c.temp2);
    }
    c.y = part_output(dtype, rank, dim, random_chance(0.5) ? layout : LAYOUT_NCHW,
                      random_chance(0.5) ? extra : NULL, c.beta == 0.0);
    before = part_expected(c.y);
    if (run_call(lrn_forward, &c)) lrn_check_forward(&c, before);
    free(before);
    c.y->whole->output = false; /* an input now */
    tensor_write(c.y->whole);
    c.dy = part_input(dtype, rank, dim, layout, extra, -4.0, 4.0);
    c.dx = part_output(dtype, rank, dim, layout, extra, c.beta == 0.0);
    before = part_expected(c.dx);
    if (divisive && random_chance(0.7)) {
        c.dmeans = part_output(dtype, rank, dim, layout, extra, c.beta == 0.0);
        before_means = part_expected(c.dmeans);
    }
    if (run_call(lrn_backward, &c)) lrn_check_backward(&c, before, before_means);
    if (divisive) {
        check_around("temp", c.temp, around);
        check_around("temp2", c.temp2, around2);
    }
    free(before);
    free(before_means);
    cudnnDestroyLRNDescriptor(c.lrn);
    parts_free();
    case_end();
}

void lrn_odd_case(bool divisive, int type)
{
    static const int dim[4] = {1, 9, 7, 8};
    struct lrn_call c = {.divisive = divisive, .n = 3, .a = 1.0, .b = 0.75, .k = 1.0, .alpha = 1.0};
    cudnnDataType_t dtype = lrn_types[type].type;
    double *before;
    if (!case_begin("%s/%s/odd", divisive ? "divisive" : "lrn", lrn_types[type].name)) return;
    lrn_describe(&c);
    c.x = part_input(dtype, 4, dim, LAYOUT_NCHW, NULL, -4.0, 4.0);
    c.x->whole->value[37] = NAN;
    c.x->whole->value[200] = INFINITY;
    c.x->whole->value[411] = -INFINITY;
    tensor_write(c.x->whole);
    if (divisive) {
        c.temp = scratch(dtype, 4, dim, LAYOUT_NCHW, NULL);
        c.temp2 = scratch(dtype, 4, dim, LAYOUT_NCHW, NULL);
    }
    c.y = part_output(dtype, 4, dim, LAYOUT_NCHW, NULL, true);
    before = part_expected(c.y);
    if (run_call(lrn_forward, &c)) lrn_check_forward(&c, before);
    free(before);
    cudnnDestroyLRNDescriptor(c.lrn);
    parts_free();
    case_end();
}

static double loss(struct lrn_call *c, const double *weight)
{
    double sum = 0.0;
    run_call(lrn_forward, c);
    for (int64_t i = 0; i < c->y->count; ++i) sum += weight[i] * c->y->whole->value[i];
    return sum;
}

static void nudge(struct lrn_call *c, const char *name, struct tensor *input,
                  const double *gradient, const double *weight)
{
    const double step = 1e-5;
    for (int64_t i = 0; i < input->count; ++i) {
        double value = input->value[i];
        double up, down;
        input->value[i] = value + step;
        tensor_write(input);
        up = loss(c, weight);
        input->value[i] = value - step;
        tensor_write(input);
        down = loss(c, weight);
        input->value[i] = value;
        tensor_write(input);
        if (harness_values &&
            !(fabs((up - down) / (2 * step) - gradient[i]) < 1e-6 * (1 + fabs(gradient[i])))) {
            case_fail("%s[%lld] is %.12g, the difference quotient %.12g", name, (long long)i,
                      gradient[i], (up - down) / (2 * step));
        }
    }
}

void lrn_difference_case(bool divisive, int n)
{
    static const int dim[4] = {1, 4, 3, 3};
    struct lrn_call c = {.divisive = divisive, .n = n, .a = 1.5, .b = 0.75, .k = 2.0, .alpha = 1.0};
    double weight[36], dx[36], dmeans[36];
    if (!case_begin("%s/differences/%d", divisive ? "divisive" : "lrn", n)) return;
    lrn_describe(&c);
    c.x = part_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, -2.0, 2.0);
    c.y = part_output(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, false);
    c.dy = part_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, -2.0, 2.0);
    memcpy(weight, c.dy->whole->value, sizeof weight);
    if (divisive) {
        c.means = part_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, -1.0, 1.0);
        c.temp = scratch(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL);
        c.temp2 = scratch(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL);
    }
    loss(&c, weight);
    c.y->whole->output = false;
    tensor_write(c.y->whole);
    c.dx = part_output(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, false);
    if (divisive) c.dmeans = part_output(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, false);
    run_call(lrn_backward, &c);
    memcpy(dx, c.dx->whole->value, sizeof dx);
    c.dx->whole->output = false;
    if (divisive) {
        memcpy(dmeans, c.dmeans->whole->value, sizeof dmeans);
        c.dmeans->whole->output = false;
    }
    c.y->whole->output = true;
    nudge(&c, "dx", c.x->whole, dx, weight);
    if (divisive) nudge(&c, "dMeans", c.means->whole, dmeans, weight);
    cudnnDestroyLRNDescriptor(c.lrn);
    parts_free();
    case_end();
}
