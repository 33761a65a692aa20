/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pass of random numbers, shared by host and device, and the distributions made of
 * 32 random bits. They are added up from products and quotients alone (and a square root, which IEEE
 * 754 rounds as well), in double, for every accumulator: mathematical libraries differ in the last
 * bit, and here every device and engine must answer the same. */
#ifndef WD_OPS_RNG_ARGS_H
#define WD_OPS_RNG_ARGS_H

#include "base/philox.h"
#include "base/view.h"
#include "graph/attr.h"

struct rng_args {
    struct wd_view y;
    const void *seed;   /* in the device's memory, of type seed_dtype; null: seed_value */
    const void *offset; /* likewise */
    uint64_t seed_value;
    uint64_t offset_value;
    int32_t seed_dtype;
    int32_t offset_dtype;
    int32_t per_item; /* elements that share a byte, of types below one; else 4, those of a block */
    int32_t unused;
    int32_t order[WD_MAX_RANK]; /* of y's dimensions in memory */
    struct wd_rng_attr attr;
};

WD_FN uint64_t rng_integer(const void *data, int dtype, uint64_t value)
{
    if (!data) return value;
    if (dtype == CUDNN_DATA_INT32) return (uint64_t)(int64_t)((const int32_t *)data)[0];
    return (uint64_t)((const int64_t *)data)[0];
}

/* -ln((r + 1) / 2^32): of f in [1/sqrt 2, sqrt 2] times a power of two, ln f = 2 artanh((f - 1) /
 * (f + 1)), whose series has an error below 1e-19 there. */
WD_FN double rng_minus_log(uint32_t r)
{
    const double ln2 = 0.69314718055994530942;
    double f = (double)r + 1.0;
    double s;
    double square;
    double sum = 0;
    int power = -32;
    while (f >= 65536.0) {
        f /= 65536.0;
        power += 16;
    }
    while (f > 1.41421356237309504880) {
        f /= 2.0;
        power += 1;
    }
    s = (f - 1.0) / (f + 1.0);
    square = s * s;
    for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
    return -(power * ln2 + 2.0 * s * sum);
}

/* cos and sin of 2 pi r / 2^32, by their series within an eighth of the circle. */
WD_FN void rng_circle(uint32_t r, double *cosine, double *sine)
{
    const double step = 6.28318530717958647693 / 4294967296.0;
    const uint32_t quadrant = (r + 0x20000000u) >> 30;
    const double x = (double)(int32_t)(r - (quadrant << 30)) * step;
    const double square = x * x;
    double c = 1.0;
    double s = 1.0;
    for (int n = 18; n >= 2; n -= 2) c = 1.0 - square / (double)(n * (n - 1)) * c;
    for (int n = 19; n >= 3; n -= 2) s = 1.0 - square / (double)(n * (n - 1)) * s;
    s *= x;
    *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
    *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
}

/* The value of element i of a block of four random numbers. */
WD_FN double rng_value(const struct wd_rng_attr *p, const uint32_t *number, int i)
{
    if (p->distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI) {
        return (double)number[i] < p->probability * 4294967296.0 ? 1.0 : 0.0;
    }
    if (p->distribution == CUDNN_RNG_DISTRIBUTION_UNIFORM) {
        const double value = p->low + (p->high - p->low) * ((double)number[i] / 4294967296.0);
        return value < p->high ? value : p->high; /* the sum may have been rounded up */
    } else {
        /* G. E. P. Box and M. E. Muller: a pair of normal numbers from a pair of uniform ones */
        const int pair = i & 2;
        const double radius = sqrt(2.0 * rng_minus_log(number[pair]));
        double cosine;
        double sine;
        rng_circle(number[pair + 1], &cosine, &sine);
        return p->mean + p->deviation * (radius * (i & 1 ? sine : cosine));
    }
}

#endif
