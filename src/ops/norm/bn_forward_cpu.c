/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics and outputs of batch normalization, block by block, for both types: the steps that the
 * CPU engines are made of (bn_cpu.h). Sums are of differences from the parameter's first element, in
 * double: one reading of x gives fp32 all its digits, whatever the offset. For fp64 it gives the
 * mean, and a second one the squares about it. */
#include <math.h>
#include <string.h>

#include "ops/norm/bn_block.h"
#include "ops/norm/bn_cpu.h"
#include "ops/pointwise/pointwise_block.h"

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
    wd_bn_set(a, WD_BN_BASE, param, wd_bn_param(a, &a->bias, param));
}

#define REAL float
#define T(name) name##_f32
#define REAL_DTYPE CUDNN_DATA_FLOAT
#include "ops/norm/bn_forward.inc"
#undef REAL
#undef T
#undef REAL_DTYPE

#define REAL double
#define T(name) name##_f64
#define REAL_DTYPE CUDNN_DATA_DOUBLE
#include "ops/norm/bn_forward.inc"
#undef REAL
#undef T
#undef REAL_DTYPE

int wd_bn_statistics(const struct wd_bn_args *a, struct wd_bn_step *steps)
{
    int count = 0;
    steps[count++] = (struct wd_bn_step){NULL, take_first};
    if (a->wide) steps[count++] = (struct wd_bn_step){sum_items_f64, finish_mean};
    steps[count++] =
        (struct wd_bn_step){a->wide ? sum_items_f64 : sum_items_f32, finish_statistics};
    return count;
}
