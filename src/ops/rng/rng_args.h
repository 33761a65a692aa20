/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pass of random numbers, shared by host and device, and a block's elements made of
 * its bits. rng_numbers.h has the arithmetic. */
#ifndef WD_OPS_RNG_ARGS_H
#define WD_OPS_RNG_ARGS_H

#include <float.h>

#include "base/philox.h"
#include "base/view.h"
#include "graph/attr.h"
#include "ops/rng/rng_numbers.h"

/* How bits become elements; a block has eight of the first two, four of the others. */
enum { RNG_CHANCE, RNG_COARSE, RNG_SINGLE, RNG_DOUBLE };

struct rng_args {
    struct wd_view y;
    const void *seed;   /* in the device's memory, of type seed_dtype; null: seed_value */
    const void *offset; /* likewise */
    uint64_t seed_value;
    uint64_t offset_value;
    int32_t seed_dtype;
    int32_t offset_dtype;
    int32_t how;
    int32_t per_item;           /* elements of a block; where some share a byte, those of a byte */
    int32_t order[WD_MAX_RANK]; /* of y's dimensions in memory */
    struct wd_rng_attr attr;
    struct rng_scale scale;
};

WD_FN uint64_t rng_integer(const void *data, int dtype, uint64_t value)
{
    if (!data) return value;
    if (dtype == CUDNN_DATA_INT32) return (uint64_t)(int64_t)((const int32_t *)data)[0];
    return (uint64_t)((const int64_t *)data)[0];
}

#if !WD_ON_DEVICE
static inline int rng_how(const struct wd_rng_attr *attr, int dtype)
{
    if (attr->distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI) return RNG_CHANCE;
    if (wd_dtype_bits(dtype) <= 16) return RNG_COARSE;
    if (dtype == CUDNN_DATA_FLOAT || dtype == CUDNN_DATA_FAST_FLOAT_FOR_FP8) return RNG_SINGLE;
    return RNG_DOUBLE;
}

static inline float rng_float(double value)
{
    return (float)fmax(-(double)FLT_MAX, fmin((double)FLT_MAX, value));
}

static inline struct rng_scale rng_scale_of(const struct wd_rng_attr *attr, int how)
{
    const int normal = attr->distribution == CUDNN_RNG_DISTRIBUTION_NORMAL;
    const double values = how == RNG_COARSE ? 65536.0 : 4294967296.0;
    struct rng_scale s = {0};
    s.base = normal ? attr->mean : attr->low;
    s.step = normal ? attr->deviation : (attr->high - attr->low) / values;
    s.most = attr->high;
    s.base_f = rng_float(s.base);
    s.step_f = rng_float(s.step);
    s.most_f = rng_float(s.most);
    return s;
}
#endif

WD_FN int rng_block_elements(int how)
{
    return how <= RNG_COARSE ? WD_PHILOX_HALVES : 4;
}

/* Element i of a block, a value of the precision that goes with `how`. */
WD_FN double rng_value(const struct rng_args *a, const uint32_t *number, const uint32_t *second,
                       int i)
{
    const struct rng_scale *p = &a->scale;
    const int normal = a->attr.distribution == CUDNN_RNG_DISTRIBUTION_NORMAL;
    const int first = i & ~1; /* of a pair */
    if (a->how == RNG_CHANCE) {
        const uint64_t chance = wd_philox_chance(number, second, i);
        return chance < wd_chance_threshold(a->attr.probability) ? 1.0 : 0.0;
    }
    if (a->how == RNG_COARSE) {
        const int of_radius =
            (i & 4) | (i & 1); /* of the block's numbers; that of the angle is two behind it */
        const uint32_t half = wd_philox_half(number, of_radius);
        double radius;
        if (!normal) return rng_coarse_uniform(p, (float)wd_philox_half(number, i) + 0.5f);
        if (rng_is_tail(half)) {
            radius = rng_to_half(sqrtf(rng_tail_square(half, wd_philox_half(second, of_radius))));
        } else {
            radius = rng_coarse_radius(half);
        }
        return fmaf(p->step_f,
                    rng_coarse_normal(radius, half, wd_philox_half(number, of_radius + 2), i & 2),
                    p->base_f);
    }
    if (a->how == RNG_SINGLE) {
        float pair[2];
        if (!normal) return rng_single_uniform(p, number[i]);
        rng_single_pair(p, sqrtf(rng_single_square(number[first])), number[first + 1],
                        number[first] & 1, pair);
        return pair[i & 1];
    } else {
        double pair[2];
        if (!normal) return rng_double_uniform(p, (double)number[i]);
        rng_double_pair(p, sqrt(rng_double_square((double)number[first] + 0.5)),
                        (double)(int32_t)(number[first + 1] << 2 | 2u), number[first + 1], pair);
        return pair[i & 1];
    }
}

#endif
