/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations of the backend API, see norms_case.h. One thread. */
#include "norms_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *reals(int64_t count)
{
    return calloc((size_t)(count > 0 ? count : 1), sizeof(double));
}

static norms_wide *wides(int64_t count)
{
    return calloc((size_t)(count > 0 ? count : 1), sizeof(norms_wide));
}

int64_t norms_count(int rank, const int *dim)
{
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= dim[d];
    return count;
}

int64_t *norms_map(const struct norms_case *c, const int *own)
{
    int64_t count = norms_count(c->rank, c->dim);
    int64_t *map = calloc((size_t)(count > 0 ? count : 1), sizeof *map);
    int line = c->dim[c->rank - 1], line_own = own[c->rank - 1];
    for (int64_t i = 0; i < count; i += line) { /* a line: last dimension */
        int64_t first = 0;
        int64_t before = 1;
        int64_t rest = i / line;
        for (int d = c->rank - 2; d >= 0; --d) {
            first += rest % c->dim[d] / (c->dim[d] / own[d]) * before;
            before *= own[d];
            rest /= c->dim[d];
        }
        for (int k = 0; k < line; ++k) {
            map[i + k] = first * line_own + (line_own == 1 ? 0 : k / (line / line_own));
        }
    }
    return map;
}

static double *copy(const struct tensor *t)
{
    double *to;
    if (!t) return NULL;
    to = reals(t->count);
    memcpy(to, t->value, (size_t)t->count * sizeof *to);
    return to;
}

struct norms_inputs norms_inputs(const struct norms_case *c)
{
    return (struct norms_inputs){copy(c->x),      copy(c->scale),   copy(c->bias_tensor),
                                 copy(c->mean),   copy(c->inv_std), copy(c->in_mean),
                                 copy(c->in_var), copy(c->dy)};
}

void norms_inputs_free(struct norms_inputs *in)
{
    free(in->x), free(in->scale), free(in->bias), free(in->mean), free(in->inv_std);
    free(in->in_mean), free(in->in_var), free(in->dy);
}

/* ---- The oracle ---- */

struct statistics {
    int64_t items;
    int64_t terms;
    int64_t *item; /* of each element */
    norms_wide *mean, *var, *inv;
    double *spread; /* the largest deviation */
};

/* Of x itself, or as they were given. */
static struct statistics statistics(const struct norms_case *c, const struct norms_inputs *in,
                                    bool given)
{
    struct statistics s = {.items = norms_count(c->rank, c->stat_dim)};
    int64_t count = norms_count(c->rank, c->dim);
    s.item = norms_map(c, c->stat_dim);
    s.terms = s.items > 0 ? count / s.items : 0;
    s.mean = wides(s.items), s.var = wides(s.items), s.inv = wides(s.items);
    s.spread = reals(s.items);
    for (int64_t i = 0; i < count && c->mode != CUDNN_RMS_NORM; ++i) s.mean[s.item[i]] += in->x[i];
    for (int64_t k = 0; k < s.items; ++k) {
        s.mean[k] /= (norms_wide)s.terms;
        if (given && in->mean) s.mean[k] = in->mean[k];
    }
    for (int64_t i = 0; i < count; ++i) {
        norms_wide d = in->x[i] - s.mean[s.item[i]];
        s.var[s.item[i]] += d * d;
        if (fabs((double)d) > s.spread[s.item[i]]) s.spread[s.item[i]] = fabs((double)d);
    }
    for (int64_t k = 0; k < s.items; ++k) {
        s.var[k] /= (norms_wide)s.terms;
        s.inv[k] = given ? in->inv_std[k] : 1 / sqrtl(s.var[k] + c->epsilon);
    }
    return s;
}

static void statistics_free(struct statistics *s)
{
    free(s->item), free(s->mean), free(s->var), free(s->inv), free(s->spread);
}

static bool is_given(const struct norms_case *c)
{
    return c->statistics && c->phase != NORMS_TRAINING;
}

double norms_loss(const struct norms_case *c, const struct norms_inputs *in)
{
    struct statistics s = statistics(c, in, false);
    int64_t *param = norms_map(c, c->scale_dim);
    norms_wide sum = 0;
    for (int64_t i = 0; i < norms_count(c->rank, c->dim); ++i) {
        norms_wide xhat = (in->x[i] - s.mean[s.item[i]]) * s.inv[s.item[i]];
        sum += in->dy[i] * (in->scale[param[i]] * xhat + (in->bias ? in->bias[param[i]] : 0.0));
    }
    free(param), statistics_free(&s);
    return (double)sum;
}

/* The type that the library computes in: double where a type needs it. */
static cudnnDataType_t compute_of(const struct norms_case *c)
{
    const cudnnDataType_t types[] = {c->x_type, c->y_type, c->param_type, c->stat_type};
    int given = c->statistics || c->running ? 4 : 3;
    for (int i = 0; i < given; ++i) {
        if (types[i] == CUDNN_DATA_DOUBLE) return CUDNN_DATA_DOUBLE;
    }
    return CUDNN_DATA_FLOAT;
}

static double clamped(cudnnDataType_t dtype, double value)
{
    switch ((int)dtype) {
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32: return fmin(fmax(value, -128.0), 127.0);
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_UINT8x4: return fmin(fmax(value, 0.0), 255.0);
    default: return value;
    }
}

static void judge_averages(const struct norms_case *c, const struct norms_inputs *in,
                           const struct statistics *s)
{
    double *mean = reals(s->items), *mean_size = reals(s->items);
    double *var = reals(s->items), *var_size = reals(s->items);
    double keep = 1.0 - c->factor;
    for (int64_t k = 0; k < s->items; ++k) {
        norms_wide n = (norms_wide)s->terms;
        double unbiased = s->terms > 1 ? (double)(s->var[k] * n / (n - 1)) : 0.0;
        double old_mean = c->factor == 1.0 ? 0.0 : keep * in->in_mean[k];
        double old_var = c->factor == 1.0 ? 0.0 : keep * in->in_var[k];
        mean[k] = old_mean + c->factor * (double)s->mean[k];
        var[k] = old_var + c->factor * unbiased;
        mean_size[k] = fabs(old_mean) + fabs(c->factor) * (fabs((double)s->mean[k]) + s->spread[k]);
        var_size[k] = fabs(old_var) + fabs(c->factor * unbiased);
    }
    check_values("out_mean", c->out_mean, mean, NULL, mean_size, CUDNN_DATA_FLOAT);
    check_values("out_var", c->out_var, var, NULL, var_size, CUDNN_DATA_FLOAT);
    free(mean), free(mean_size), free(var), free(var_size);
}

/* Inverse deviations that are as far off as the worst by pieces of sums in single precision, of differences from an
 * item's first element, joined in double; null where the case is not for that. */
static double *single_deviations(const struct norms_case *c, const double *x,
                                 const struct statistics *s)
{
    enum { TERMS = 128 };
    const int64_t count = norms_count(c->rank, c->dim);
    double first = 0, sum = 0, squares = 0, worst = 0;
    float part = 0, part_squares = 0;
    double *inv;
    int64_t seen = 0;
    if (!c->single) return NULL;
    inv = reals(s->items);
    for (int64_t i = 0; i < count; ++i) { /* an item's elements follow one another */
        int64_t k = s->item[i];
        bool last = i + 1 == count || s->item[i + 1] != k;
        float d;
        if (seen == 0) first = x[i], sum = squares = 0;
        d = (float)(x[i] - first);
        part += d, part_squares += d * d;
        if (++seen % TERMS == 0 || last) {
            sum += part, squares += part_squares;
            part = part_squares = 0;
        }
        if (!last) continue;
        inv[k] = 1.0 / sqrt((squares - sum * sum / (double)seen) / (double)seen + c->epsilon);
        worst = fmax(worst, fabs(inv[k] / (double)s->inv[k] - 1.0));
        seen = 0;
    }
    for (int64_t k = 0; k < s->items; ++k) inv[k] = (double)s->inv[k] * (1.0 + worst);
    return inv;
}

void norms_judge_forward(const struct norms_case *c, const struct norms_inputs *in)
{
    struct statistics s = statistics(c, in, is_given(c));
    int64_t *param = norms_map(c, c->scale_dim);
    int64_t count = norms_count(c->rank, c->dim);
    double *y = reals(count), *size = reals(count);
    for (int64_t i = 0; i < count; ++i) {
        int64_t k = s.item[i];
        double scale = in->scale[param[i]];
        double bias = in->bias ? in->bias[param[i]] : 0.0;
        double v = (double)(scale * ((in->x[i] - s.mean[k]) * s.inv[k]) + bias);
        y[i] = clamped(c->y_type, v);
        size[i] = fabs(scale) * s.spread[k] * (double)s.inv[k] + fabs(bias);
    }
    check_values("y", c->y, y, NULL, size, compute_of(c));
    if (c->phase == NORMS_TRAINING && c->statistics) {
        double *mean = reals(s.items), *inv = reals(s.items);
        double *single = single_deviations(c, in->x, &s);
        for (int64_t k = 0; k < s.items; ++k)
            mean[k] = (double)s.mean[k], inv[k] = (double)s.inv[k];
        if (c->mean) check_values("mean", c->mean, mean, NULL, s.spread, compute_of(c));
        check_values("inv_std", c->inv_std, inv, single, inv, compute_of(c));
        free(mean), free(inv), free(single);
    }
    if (c->running) judge_averages(c, in, &s);
    free(param), free(y), free(size), statistics_free(&s);
}

void norms_judge_backward(const struct norms_case *c, const struct norms_inputs *in)
{
    struct statistics s = statistics(c, in, is_given(c));
    int64_t *param = norms_map(c, c->scale_dim);
    int64_t count = norms_count(c->rank, c->dim);
    int64_t params = norms_count(c->rank, c->scale_dim);
    double *dx = reals(count), *dx_size = reals(count);
    double *dscale = reals(params), *dscale_size = reals(params);
    double *dbias = reals(params), *dbias_size = reals(params);
    norms_wide *a = wides(s.items), *b = wides(s.items);
    double *a_size = reals(s.items), *b_size = reals(s.items);
    for (int64_t i = 0; i < count; ++i) {
        int64_t k = s.item[i];
        int64_t p = param[i];
        double dy = in->dy[i];
        double g = in->scale[p] * dy;
        double xhat = (double)((in->x[i] - s.mean[k]) * s.inv[k]);
        double most = s.spread[k] * (double)s.inv[k];
        a[k] += g;
        b[k] += g * xhat;
        a_size[k] += fabs(g);
        b_size[k] += fabs(g) * (fabs(xhat) + most);
        dbias[p] += dy;
        dscale[p] += dy * xhat;
        dbias_size[p] += fabs(dy);
        dscale_size[p] += fabs(dy) * (fabs(xhat) + most);
    }
    for (int64_t i = 0; i < count; ++i) {
        int64_t k = s.item[i];
        double n = (double)s.terms;
        double inv = (double)s.inv[k];
        double g = in->scale[param[i]] * in->dy[i];
        double xhat = (double)((in->x[i] - s.mean[k]) * s.inv[k]);
        double common = (double)b[k] * xhat + (c->mode == CUDNN_RMS_NORM ? 0.0 : (double)a[k]);
        dx[i] = inv * (g - common / n);
        dx_size[i] = inv * (fabs(g) + (a_size[k] + s.spread[k] * inv * b_size[k]) / n);
    }
    check_values("dx", c->dx, dx, NULL, dx_size, compute_of(c));
    if (c->dscale) check_values("dscale", c->dscale, dscale, NULL, dscale_size, compute_of(c));
    if (c->dbias) check_values("dbias", c->dbias, dbias, NULL, dbias_size, compute_of(c));
    free(dx), free(dx_size), free(dscale), free(dscale_size), free(dbias), free(dbias_size);
    free(a), free(b), free(a_size), free(b_size), free(param), statistics_free(&s);
}
