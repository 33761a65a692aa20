/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: random tensors through the backend API. Generators differ from library to library, so what
 * is noted is whether the numbers have the distribution; and what the descriptors take (no device).
 */
#include "backend.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name;
    cudnnDataType_t type;
} types[] = {{"f32", CUDNN_DATA_FLOAT}, {"f16", CUDNN_DATA_HALF}, {"bf16", CUDNN_DATA_BFLOAT16}};

/* The parameters: probability; minimum and maximum; mean and deviation. */
static const struct draw {
    const char *name;
    int distribution;
    double a, b;
} draws[] = {
    {"p0", 0, 0, 0},    {"p0.1", 0, 0.1, 0}, {"p0.5", 0, 0.5, 0},  {"p0.9", 0, 0.9, 0},
    {"p1", 0, 1, 0},    {"unit", 1, 0, 1},   {"signed", 1, -1, 1}, {"wide", 1, -8, 24},
    {"point", 1, 3, 3}, {"shift", 1, 2, 3},  {"normal", 2, 0, 1},  {"half", 2, 0, 0.5},
    {"mean", 2, 4, 1},  {"minus", 2, -2, 3}, {"sharp", 2, 1, 0},
};

static be_desc rng(const struct draw *d)
{
    be_desc r = be_make(CUDNN_BACKEND_RNG_DESCRIPTOR);
    be_set_int(r, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, d->distribution);
    if (d->distribution == 0) be_set_f64(r, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, d->a);
    if (d->distribution == 1) {
        be_set_f64(r, CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM, d->a);
        be_set_f64(r, CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, d->b);
    }
    if (d->distribution == 2) {
        be_set_f64(r, CUDNN_ATTR_RNG_NORMAL_DIST_MEAN, d->a);
        be_set_f64(r, CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, d->b);
    }
    return r;
}

/* Mean and variance within six deviations of what chance does to them, and of the type's rounding;
 * every value where it may be. */
static void judge(struct gd_tens *y, const struct draw *d)
{
    double n = (double)y->count, u = gd_roundoff(y->type);
    double mean = d->distribution == 1 ? (d->a + d->b) / 2 : d->a;
    double variance = d->distribution == 0   ? d->a * (1 - d->a)
                      : d->distribution == 1 ? (d->b - d->a) * (d->b - d->a) / 12
                                             : d->b * d->b;
    double first = 0, second = 0, scale = fabs(d->a) + fabs(d->b) + 1;
    bool within = true;
    gd_fetch(y);
    for (size_t i = 0; i < y->count; i++) {
        double v = gd_at(y, i);
        first += v / n;
        second += (v - mean) * (v - mean) / n;
        if (d->distribution == 0) within &= v == 0 || v == 1;
        if (d->distribution == 1) within &= v >= d->a && v <= d->b;
        if (d->distribution == 2) within &= fabs(v - d->a) <= 8 * d->b + 4 * u * scale;
    }
    gd_int("within", within);
    gd_int("mean", fabs(first - mean) <= 6 * sqrt(variance / n) + 4 * u * scale);
    gd_int("variance", fabs(second - variance) <= 12 * variance / sqrt(n) + 8 * u * scale * scale);
}

enum { VALUE, TENSORS };

static void draw(int t, const struct draw *d, int how)
{
    static const int dim[] = {4, 16, 64, 64}, one[] = {1, 1, 1, 1};
    static const int stride[] = {65536, 4096, 64, 1}, ones[] = {1, 1, 1, 1};
    struct gd_tens *o[3] = {gd_tens_raw("y", types[t].type, 4, dim, stride)};
    int64_t seed = 1234;
    be_desc r = rng(d), op = be_make(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
    be_finalize("rng", r);
    be_set_desc(op, CUDNN_ATTR_OPERATION_RNG_DESC, r);
    be_set_desc(op, CUDNN_ATTR_OPERATION_RNG_YDESC, be_tensor_of(1, o[0]));
    if (how == VALUE) {
        be_set(op, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_INT64, 1, &seed);
    } else {
        o[1] = gd_tens_raw("seed", CUDNN_DATA_INT64, 4, one, ones);
        o[2] = gd_tens_raw("offset", CUDNN_DATA_INT64, 4, one, ones);
        gd_fill(o[1], GD_ONE);
        gd_fill(o[2], GD_ONE);
        be_set_desc(op, CUDNN_ATTR_OPERATION_RNG_SEED, be_tensor_of(2, o[1]));
        be_set_desc(op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, be_tensor_of(3, o[2]));
    }
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, how == VALUE ? 1 : 3, o))
        judge(o[0], d);
    be_reset();
    gd_end();
}

static void descriptor_cases(void)
{
    static const struct draw wrong[] = {
        {"p1.5", 0, 1.5, 0},      {"p-0.1", 0, -0.1, 0},  {"reversed", 1, 2, 1},
        {"point", 1, 1, 1},       {"negative", 2, 0, -1}, {"sharp", 2, 0, 0},
        {"bernoulli", 0, 0.3, 0}, {"uniform", 1, -1, 2},  {"normal", 2, 0, 1},
    };
    static const int dims[] = {2, 3, 4, 5}, strides[] = {60, 20, 5, 1}, two[] = {2, 1, 1, 1},
                     one[] = {1, 1, 1, 1};
    for (int i = 0; i < GD_COUNT(wrong); i++)
        if (gd_host_case("backend/rng/%s", wrong[i].name)) {
            gd_status("finalize", lib.BackendFinalize(rng(&wrong[i])));
            be_reset();
            gd_end();
        }
    for (int k = 0; k < 5; k++) {
        static const char *const names[] = {"value", "none", "tensor", "two_seeds", "two_offsets"};
        if (!gd_host_case("backend/op_rng/%s", names[k])) continue;
        be_desc r = rng(&wrong[6]), op = be_make(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
        int64_t seed = -7;
        be_finalize("rng", r);
        be_set_desc(op, CUDNN_ATTR_OPERATION_RNG_DESC, r);
        be_set_desc(op, CUDNN_ATTR_OPERATION_RNG_YDESC,
                    be_tensor(1, CUDNN_DATA_FLOAT, 4, dims, strides, false));
        if (k == 0) be_set(op, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_INT64, 1, &seed);
        if (k >= 2) {
            be_set_desc(op, CUDNN_ATTR_OPERATION_RNG_SEED,
                        be_tensor(2, CUDNN_DATA_INT64, 4, k == 3 ? two : one, one, false));
            be_set_desc(op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC,
                        be_tensor(3, CUDNN_DATA_INT64, 4, k == 4 ? two : one, one, false));
        }
        gd_status("finalize", lib.BackendFinalize(op));
        be_reset();
        gd_end();
    }
}

void cases_backend_rng(void)
{
    descriptor_cases();
    for (int t = 0; t < GD_COUNT(types); t++)
        for (int i = 0; i < GD_COUNT(draws); i++)
            for (int how = VALUE; how <= TENSORS; how++)
                if (gd_case("backend_rng/%s/%s/%s", draws[i].name, types[t].name,
                            how == VALUE ? "value" : "tensors"))
                    draw(t, &draws[i], how);
}
