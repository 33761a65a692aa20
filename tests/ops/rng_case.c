/* SPDX-License-Identifier: Apache-2.0
 *
 * What random tensors hold, see rng_case.h: Philox by its paper and the three distributions with the
 * mathematical library's functions. Nothing here is the library's. */
#include "rng_case.h"

#include <math.h>

const char *const rng_kind_name[] = {"bernoulli", "uniform", "normal"};

/* Philox4x32-7 by its paper: word `word` of block `block`. */
static uint32_t random_word(uint64_t seed, uint64_t offset, uint64_t block, int word)
{
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)offset,
                           (uint32_t)(offset >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 7; ++round) {
        uint64_t even = (uint64_t)counter[0] * 0xd2511f53u;
        uint64_t odd = (uint64_t)counter[2] * 0xcd9e8d57u;
        counter[0] = (uint32_t)(odd >> 32) ^ counter[1] ^ key[0];
        counter[2] = (uint32_t)(even >> 32) ^ counter[3] ^ key[1];
        counter[1] = (uint32_t)odd;
        counter[3] = (uint32_t)even;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return counter[word];
}

/* Element i's 32 bits, four of a block. */
static double random_bits(uint64_t seed, uint64_t offset, int64_t i)
{
    return (double)random_word(seed, offset, (uint64_t)i / 4, (int)(i % 4));
}

/* Its 16 bits, eight of a block, or 16 more. */
static double random_half(uint64_t seed, uint64_t offset, int64_t i, bool more)
{
    uint64_t block = (uint64_t)i / 8 + ((uint64_t)more << 63);
    return (double)(random_word(seed, offset, block, (int)(i % 8 / 2)) >> (i % 2 * 16) & 0xffffu);
}

bool rng_is_coarse(int type)
{
    return type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE && type != CUDNN_DATA_INT32 &&
           type != CUDNN_DATA_INT64;
}

double rng_expected_of(const struct rng_distribution *d, int type, uint64_t seed, uint64_t offset,
                       int64_t i, double excess)
{
    const double pi = 3.14159265358979323846, range = 4294967296.0;
    double u, angle, radius;
    int64_t first = i / 2 * 2;
    if (d->kind == CUDNN_RNG_DISTRIBUTION_BERNOULLI) {
        double upper = random_half(seed, offset, i, false);
        double p = d->a;
        if (p >= 1.0 / 64 && p <= 63.0 / 64) p = floor(p * 32768.0 + 0.5) / 32768.0;
        return (upper * 65536.0 + random_half(seed, offset, i, true)) / range < p;
    }
    if (d->kind == CUDNN_RNG_DISTRIBUTION_UNIFORM) {
        u = rng_is_coarse(type) ? (random_half(seed, offset, i, false) + 0.5) / 65536.0
                                : random_bits(seed, offset, i) / range;
        return d->a + (d->b - d->a) * u;
    }
    if (rng_is_coarse(type)) { /* of eight, 0 and 2, 1 and 3, 4 and 6, 5 and 7 are pairs */
        bool cosine = i % 4 >= 2;
        int64_t pair = i - (cosine ? 2 : 0);
        uint32_t bits = (uint32_t)random_half(seed, offset, pair, false);
        uint32_t turn = (uint32_t)random_half(seed, offset, pair + 2, false);
        double at = ((turn & 0x3ff) * 32.0 + (turn >> 10 & 0x1f) + 0.5) / 32768.0, z;
        u = ((bits >> 1 & 0x1fff) + 0.5 + excess) / 8192.0;
        if ((bits >> 1 & 0x1fff) < 4) { /* the tail, finer */
            u = (bits >> 14 & 1) * 8 + (bits & 7);
            u = (u * 65536.0 + random_half(seed, offset, pair, true) + 0.5) / 2147483648.0;
            u *= 1.0 + 1e-3 * excess;
        }
        radius = u < 1.0 ? sqrt(-2.0 * log(u)) : 0.0;
        z = radius * (cosine ? cos(pi / 2 * at) : sin(pi / 2 * at));
        return d->a + d->b * ((cosine ? bits : turn) & 0x8000 ? -z : z);
    } else {
        uint32_t word = (uint32_t)random_bits(seed, offset, first + 1), swapped = word >> 30 & 1;
        /* the lower 30 bits in two's complement: where in a quarter of the circle */
        double t = (double)(word & 0x3fffffffu) + 0.5;
        double along, across;
        if (t >= 536870912.0) t -= 1073741824.0;
        u = random_bits(seed, offset, first) + 0.5;
        /* an odd number, of whose bits 24 count; the last one swaps; 31 bits of the other */
        if (type == CUDNN_DATA_FLOAT) {
            int power;
            swapped = (uint32_t)u & 1;
            u = floor(u / 2.0) * 2.0 + 1.0;
            frexp(u, &power);
            u = ldexp(floor(ldexp(u, 24 - power)), power - 24);
            t = (double)(word & 0x7fffffffu) + 0.5;
            if (t >= 1073741824.0) t -= 2147483648.0;
            t /= 2.0;
        }
        angle = pi / 4 * t / 536870912.0;
        radius = d->b * sqrt(-2.0 * log(u / range));
        along = word >> 31 ? -cos(angle) : cos(angle);
        across = sin(angle);
        return d->a + radius * (swapped != (uint32_t)(i % 2) ? across : along);
    }
}

double rng_expected(const struct rng_distribution *d, int type, uint64_t seed, uint64_t offset,
                    int64_t i)
{
    return rng_expected_of(d, type, seed, offset, i, 0.0);
}

void rng_judge(const struct rng_distribution *d, const struct tensor *y, uint64_t seed,
               uint64_t offset)
{
    /* coarse normal numbers are a place off, near the tail, and two roundings of fp16 */
    bool short_ones = rng_is_coarse(y->dtype) && d->kind == CUDNN_RNG_DISTRIBUTION_NORMAL;
    double *exact = node_doubles(y->count);
    double *naive = node_doubles(y->count);
    double *magnitude = node_doubles(y->count);
    for (int64_t i = 0; i < y->count; ++i) {
        exact[i] = rng_expected(d, y->dtype, seed, offset, i);
        naive[i] = rng_expected_of(d, y->dtype, seed, offset, i, short_ones ? 1.0 : 0.0);
        magnitude[i] = fabs(d->a) + 8 * fabs(d->b);
        if (short_ones) magnitude[i] = 64.0 * magnitude[i] + 8192.0 * fabs(exact[i] - d->a);
    }
    check_values("y", y, exact, naive,
                 d->kind == CUDNN_RNG_DISTRIBUTION_BERNOULLI ? NULL : magnitude,
                 y->dtype == CUDNN_DATA_FLOAT || rng_is_coarse(y->dtype) ? CUDNN_DATA_FLOAT
                                                                         : CUDNN_DATA_DOUBLE);
    free(exact);
    free(naive);
    free(magnitude);
}

be_desc rng_open(const struct rng_distribution *d)
{
    static const cudnnBackendAttributeName_t names[3][2] = {
        {CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY},
        {CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM, CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM},
        {CUDNN_ATTR_RNG_NORMAL_DIST_MEAN, CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION},
    };
    be_desc desc = be_make(CUDNN_BACKEND_RNG_DESCRIPTOR);
    be_set_enum(desc, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, d->kind);
    be_set(desc, names[d->kind][0], CUDNN_TYPE_DOUBLE, 1, &d->a);
    if (d->kind > 0) be_set(desc, names[d->kind][1], CUDNN_TYPE_DOUBLE, 1, &d->b);
    return desc;
}

be_desc rng_op_open(be_desc rng, be_desc y)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_DESC, rng);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_YDESC, y);
    return op;
}

void rng_draw(const struct rng_distribution *d, int type, int rank, const int *dim,
              enum layout layout, int odd)
{
    struct node_run r = {0};
    struct tensor *y;
    be_desc op;
    int64_t seed = random_int(0, 1 << 30);
    tensor_odd = odd;
    y = tensor_output((cudnnDataType_t)type, rank, dim, layout);
    tensor_odd = 0;
    op = rng_op_open(be_final(rng_open(d)), node_add(&r, y));
    be_set_int(op, CUDNN_ATTR_OPERATION_RNG_SEED, seed);
    if (node_run(&r, be_final(op))) rng_judge(d, y, (uint64_t)seed, 0);
    be_free_all();
}
