/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics and outputs of batch normalization, block by block, for both types: the steps that the
 * CPU engines are made of (bn_cpu.h). Sums are of differences from the parameter's first element, in
 * double: one reading of x, and a common offset costs no digits. */
#include <math.h>
#include <string.h>

#include "ops/norm/bn_block.h"
#include "ops/norm/bn_cpu.h"
#include "ops/pointwise/pointwise_block.h"

/* The element that a parameter's differences are from: its first. */
static int64_t shift_offset(const struct wd_bn_args *a, int64_t param)
{
    return param * a->shape.inner;
}

static void finish_statistics(const struct wd_bn_args *a, int64_t param)
{
    double n = (double)a->shape.terms;
    double shift = a->wide ? wd_load_f64(a->x.data, a->x.dtype, shift_offset(a, param))
                           : (double)wd_load_f32(a->x.data, a->x.dtype, shift_offset(a, param));
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
    if (a->bias.data) { /* training */
        wd_bn_put_param(a, &a->mean, param, mean, 1.0, 0.0);
        wd_bn_put_param(a, &a->var, param, inv_std, 1.0, 0.0);
        wd_bn_put_param(a, &a->running_mean, param, mean, a->factor, 1.0 - a->factor);
        /* the unbiased estimate; of one element there is none, and its variance is 0 */
        wd_bn_put_param(a, &a->running_var, param, squares / (n > 1.0 ? n - 1.0 : n), a->factor,
                        1.0 - a->factor);
        wd_bn_set(a, WD_BN_FACTOR, param, wd_bn_param(a, &a->scale, param) * inv_std);
        wd_bn_set(a, WD_BN_BASE, param, wd_bn_param(a, &a->bias, param));
    }
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
