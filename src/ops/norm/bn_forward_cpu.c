/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics and outputs of batch normalization, block by block, for both types: the steps that the
 * CPU engines are made of (bn_cpu.h).
 *
 * Sums are of differences from a guess at the mean, which costs no digits whatever the offset. fp64
 * reads x twice: for the mean, and for the squares about it. fp32 reads it once: the guess begins as
 * the parameter's first element, with everything in double, becomes the mean of the first block, and
 * then that of all so far whenever their number has grown fourfold. So squares of differences from it stay
 * in proportion to those from the mean, and their sums can be taken in fp32 within a block. */
#include <math.h>
#include <string.h>

#include "ops/norm/bn_block.h"
#include "ops/norm/bn_cpu.h"
#include "ops/pointwise/pointwise_block.h"

enum {
    GROWTH = 4,         /* of the elements seen, before there is a better guess */
    BLOCKS_A_PART = 16, /* whose sums are added by themselves */
};

/* The first element of a parameter is the first guess at its mean. */
static void take_first(const struct wd_bn_args *a, int64_t param)
{
    int64_t offset = param * a->shape.inner;
    double first = a->wide ? wd_load_f64(a->x.data, a->x.dtype, offset)
                           : (double)wd_load_f32(a->x.data, a->x.dtype, offset);
    wd_bn_set(a, WD_BN_MEAN, param, first);
}

/* From sums of differences from a guess to the mean, a better guess. */
static void finish_mean(const struct wd_bn_args *a, int64_t param)
{
    double sum[2];
    wd_bn_total(a, param, sum);
    wd_bn_set(a, WD_BN_MEAN, param,
              wd_bn_get(a, WD_BN_MEAN, param) + sum[0] / (double)a->shape.terms);
}

static void finish_statistics(const struct wd_bn_args *a, int64_t param)
{
    double n = (double)a->shape.terms;
    double shift = wd_bn_get(a, WD_BN_MEAN, param);
    double sum[2];
    double offset;
    double mean;
    double squares;
    double inv_std;
    wd_bn_total(a, param, sum);
    offset = sum[0] / n;
    mean = shift + offset;
    squares = sum[1] - sum[0] * offset;
    if (squares < 0.0) squares = 0.0;
    inv_std = 1.0 / sqrt(squares / n + a->attr.epsilon);
    wd_bn_set_mean(a, param, mean, offset - (mean - shift));
    wd_bn_set(a, WD_BN_INV_STD, param, inv_std);
    if (!a->bias.data) return; /* backward */
    wd_bn_put_param(a, &a->mean, param, mean, 1.0, 0.0);
    wd_bn_put_param(a, &a->var, param, inv_std, 1.0, 0.0);
    wd_bn_put_param(a, &a->running_mean, param, mean, a->factor, 1.0 - a->factor);
    /* the unbiased estimate; of one element there is none, and its variance is 0 */
    wd_bn_put_param(a, &a->running_var, param, squares / (n > 1.0 ? n - 1.0 : n), a->factor,
                    1.0 - a->factor);
    wd_bn_set(a, WD_BN_FACTOR, param, wd_bn_param(a, &a->scale, param) * inv_std);
    wd_bn_set(a, WD_BN_BASE, param,
              wd_bn_param(a, &a->bias, param) -
                  wd_bn_get(a, WD_BN_REST, param) * wd_bn_get(a, WD_BN_FACTOR, param));
}

/* Sums of n differences from `from` as those from `to`. */
static inline void rebase(double *sum, double *squares, double n, double from, double to)
{
    double d = to - from;
    *squares += d * (n * d - 2.0 * *sum);
    *sum -= n * d;
}

/* A better guess than `guess`, in the type of x. */
static inline float better(float guess, double sum, double n)
{
    float mean = (float)((double)guess + sum / n);
    return isfinite(mean) ? mean : guess;
}

static void sum_planes_f32(const struct wd_bn_args *a, struct wd_bn_block *b)
{
    const float first = ((const float *)a->number[WD_BN_MEAN])[b->column];
    float buffer[WD_BLOCK];
    float guess = first;
    double sum[2] = {0.0, 0.0};
    double n = 0.0;
    double next = 1.0; /* that many give a better guess */
    while (wd_bn_next(a, b, 1)) {
        int64_t count = b->n * b->rows;
        int64_t pitch;
        const float *x = wd_bn_load_f32(&a->x, b, true, buffer, &pitch);
        if (n == 0.0) wd_bn_sums_exact_f32(x, guess, count, sum);
        else wd_bn_sums_f32(x, guess, count, sum);
        n += (double)count;
        if (n >= next && b->at < b->end) {
            float mean = better(guess, sum[0], n);
            rebase(&sum[0], &sum[1], n, (double)guess, (double)mean);
            guess = mean;
            next = GROWTH * n;
        }
    }
    rebase(&sum[0], &sum[1], n, (double)guess, (double)first);
    *wd_bn_sums_of(a, b, 0) = sum[0];
    *wd_bn_sums_of(a, b, 1) = sum[1];
}

static void sum_planes_f64(const struct wd_bn_args *a, struct wd_bn_block *b)
{
    const double guess = ((const double *)a->number[WD_BN_MEAN])[b->column];
    double buffer[WD_BLOCK];
    double sum[2] = {0.0, 0.0};
    while (wd_bn_next(a, b, 1)) {
        int64_t pitch;
        const double *x = wd_bn_load_f64(&a->x, b, true, buffer, &pitch);
        wd_bn_sums_exact_f64(x, guess, b->n * b->rows, sum);
    }
    *wd_bn_sums_of(a, b, 0) = sum[0];
    *wd_bn_sums_of(a, b, 1) = sum[1];
}

static void put_columns(const struct wd_bn_args *a, const struct wd_bn_block *b, int64_t width,
                        double sum[2][WD_BN_COLUMNS])
{
    for (int k = 0; k < 2; ++k) {
        memcpy(wd_bn_sums_of(a, b, k), sum[k], (size_t)width * sizeof(double));
    }
}

static void sum_columns_f32(const struct wd_bn_args *a, struct wd_bn_block *b)
{
    const float *first = (const float *)a->number[WD_BN_MEAN] + b->column;
    const int64_t width = wd_bn_columns(a, b);
    float buffer[WD_BN_ROWS * WD_BN_COLUMNS];
    float guess[WD_BN_COLUMNS];
    double sum[2][WD_BN_COLUMNS];
    int64_t rows = 0;
    int64_t shorter = width; /* columns of the last row */
    int64_t next = 1;
    memset(sum, 0, sizeof sum);
    memcpy(guess, first, (size_t)width * sizeof *guess);
    while (wd_bn_next(a, b, WD_BN_ROWS)) {
        int64_t pitch;
        const float *x = wd_bn_load_f32(&a->x, b, false, buffer, &pitch);
        if (rows == 0) {
            wd_bn_column_sums_exact_f32(x, pitch, b->rows, guess, b->n, sum[0], sum[1]);
        } else {
            wd_bn_column_sums_f32(x, pitch, b->rows, guess, b->n, sum[0], sum[1]);
        }
        rows += b->rows;
        if (b->n < width) {
            shorter = b->n;
        } else if (rows >= next && b->at < b->end) {
            wd_bn_column_rebase_f32(sum[0], sum[1], guess, (double)rows, width);
            next = GROWTH * rows;
        }
    }
    for (int64_t i = 0; i < width; ++i) {
        double n = (double)(i < shorter ? rows : rows - 1);
        rebase(&sum[0][i], &sum[1][i], n, (double)guess[i], (double)first[i]);
    }
    put_columns(a, b, width, sum);
}

/* In two levels, so that the roundings do not add up. */
static void sum_columns_f64(const struct wd_bn_args *a, struct wd_bn_block *b)
{
    const double *guess = (const double *)a->number[WD_BN_MEAN] + b->column;
    const int64_t width = wd_bn_columns(a, b);
    double buffer[WD_BN_ROWS * WD_BN_COLUMNS];
    double part[2][WD_BN_COLUMNS];
    double sum[2][WD_BN_COLUMNS];
    int blocks = 0;
    memset(part, 0, sizeof part);
    memset(sum, 0, sizeof sum);
    while (wd_bn_next(a, b, WD_BN_ROWS)) {
        int64_t pitch;
        const double *x = wd_bn_load_f64(&a->x, b, false, buffer, &pitch);
        wd_bn_column_sums_f64(x, pitch, b->rows, guess, b->n, part[0], part[1]);
        if (++blocks % BLOCKS_A_PART != 0 && b->at < b->end) continue;
        for (int k = 0; k < 2; ++k) {
            for (int64_t i = 0; i < width; ++i) sum[k][i] += part[k][i];
        }
        memset(part, 0, sizeof part);
    }
    put_columns(a, b, width, sum);
}

#define WD_REALS_BODY "ops/norm/bn_forward.inc"
#include "ops/reals.inc"

int wd_bn_statistics(const struct wd_bn_args *a, struct wd_bn_step *steps)
{
    int count = 0;
    steps[count++] = (struct wd_bn_step){NULL, take_first};
    if (a->wide) steps[count++] = (struct wd_bn_step){sum_items_f64, finish_mean};
    steps[count++] =
        (struct wd_bn_step){a->wide ? sum_items_f64 : sum_items_f32, finish_statistics};
    return count;
}
