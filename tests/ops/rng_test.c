/* SPDX-License-Identifier: Apache-2.0
 *
 * Random tensors: every value against those of rng_case.c, which writes them out a second time; equal
 * bits on every device (a hash of all of them is told); the same in every layout; moments, and what
 * seeds and offsets have to do with it. */
#include "kernels_reached.h"
#include "rng_case.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct rng_distribution some[] = {
    {CUDNN_RNG_DISTRIBUTION_BERNOULLI, 0.3, 0},
    {CUDNN_RNG_DISTRIBUTION_UNIFORM, -1.5, 4.25},
    {CUDNN_RNG_DISTRIBUTION_NORMAL, 2.0, 3.0},
    {CUDNN_RNG_DISTRIBUTION_BERNOULLI, 0.0123, 0}, /* counts to 2^-32 */
};

enum { BY_VALUE, BY_TENSOR, BY_HOST };

static void value_case(const struct rng_distribution *d, int type, enum layout layout, int how)
{
    static const int one[3] = {1, 1, 1};
    static const int64_t ones[3] = {1, 1, 1};
    struct node_run r = {0};
    int64_t seed = random_int(0, 1) ? random_int(0, 1 << 30) : -(random_int(1, 1 << 30) << 20);
    int64_t offset = random_int(0, 1 << 20);
    bool narrow = how == BY_TENSOR && random_chance(0.5);
    int lanes = layout == LAYOUT_VECT ? (type == CUDNN_DATA_INT8x32 ? 32 : 4) : 1;
    int rank = lanes > 1 ? 4 : (int)random_int(2, 5), dim[5];
    struct tensor *y, *number[2];
    be_desc dy, op;
    if (!case_begin("rng %s of %g %s layout %d seed %s", rng_kind_name[d->kind], d->a,
                    node_type_name[type], (int)layout,
                    how == BY_VALUE    ? "value"
                    : how == BY_TENSOR ? "tensor"
                                       : "host")) {
        return;
    }
    for (int i = 0; i < rank; ++i) dim[i] = random_of(1, 2, 3, 5, 7);
    if (lanes > 1) dim[1] = lanes;
    if (narrow) seed = (int32_t)seed;
    y = tensor_output((cudnnDataType_t)type, rank, dim, layout);
    dy = node_add(&r, y);
    op = rng_op_open(be_final(rng_open(d)), dy);
    if (how == BY_VALUE) {
        be_set_int(op, CUDNN_ATTR_OPERATION_RNG_SEED, seed);
        offset = 0;
    } else if (how == BY_TENSOR) {
        for (int i = 0; i < 2; ++i) {
            number[i] = tensor_input(narrow ? CUDNN_DATA_INT32 : CUDNN_DATA_INT64, 3, one,
                                     LAYOUT_NCHW, 0, 0);
            number[i]->value[0] = (double)(i ? offset : seed);
            tensor_write(number[i]);
        }
        be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_SEED, node_add(&r, number[0]));
        be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, node_add(&r, number[1]));
    } else {
        be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_SEED,
                   node_add_raw(&r, be_tensor(2, CUDNN_DATA_INT64, 3, ones, BE_BY_VALUE), &seed));
        be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC,
                   node_add_raw(&r, be_tensor(3, CUDNN_DATA_INT64, 3, ones, BE_BY_VALUE), &offset));
    }
    if (node_run(&r, be_final(op))) rng_judge(d, y, (uint64_t)seed, (uint64_t)offset);
    be_free_all();
    case_end();
}

/* Sizes beyond a block of threads, planes that are whole blocks of random numbers and that are not,
 * at addresses that are aligned to 16 bytes and to an element alone. */
static void large_case(const struct rng_distribution *d, int type, enum layout layout, int odd)
{
    static const int shapes[][5] = {{2, 8, 4, 9, 1},   {3, 16, 6, 6, 1},  {1, 24, 50, 2, 1},
                                    {2, 7, 4, 5, 1},   {3, 8, 3, 7, 1},   {2, 33, 5, 3, 3},
                                    {1, 5, 31, 37, 1}, {4, 2, 3, 2, 64},  {1, 1, 1, 1, 4099},
                                    {3, 34, 4, 6, 1},  {2, 200, 7, 7, 1}, {1, 136, 1, 5, 5},
                                    {2, 136, 9, 9, 1}, {1, 333, 3, 5, 1}};
    for (int s = 0; s < COUNT(shapes); ++s) {
        if (!case_begin("rng large %s of %g %s layout %d odd %d shape %d", rng_kind_name[d->kind],
                        d->a, node_type_name[type], (int)layout, odd, s)) {
            continue;
        }
        rng_draw(d, type, 5, shapes[s], layout, odd);
        case_end();
    }
}

/* So many that blocks of threads stay. */
static void many(int kind, double first, double second, const int *dim, int type,
                 enum layout layout, int odd)
{
    const struct rng_distribution d = {kind, first, second};
    if (!case_begin("rng many %s %s of %g %g layout %d odd %d %dx%dx%dx%d", rng_kind_name[kind],
                    node_type_name[type], first, second, (int)layout, odd, dim[0], dim[1], dim[2],
                    dim[3])) {
        return;
    }
    rng_draw(&d, type, 4, dim, layout, odd);
    case_end();
}

static void many_normals(const int *dim, int type, enum layout layout, int odd, double mean,
                         double deviation)
{
    many(CUDNN_RNG_DISTRIBUTION_NORMAL, mean, deviation, dim, type, layout, odd);
}

/* One plan, whose offset the caller counts on in memory: other numbers each time, the same again. */
static void offsets_count(void)
{
    static const int one[3] = {1, 1, 1}, dim[3] = {3, 5, 7};
    struct node_run r = {0};
    struct tensor *y, *offset;
    be_desc op;
    if (!case_begin("rng offsets")) return;
    y = tensor_output(CUDNN_DATA_FLOAT, 3, dim, LAYOUT_NCHW);
    offset = tensor_input(CUDNN_DATA_INT64, 3, one, LAYOUT_NCHW, 0, 0);
    op = rng_op_open(be_final(rng_open(&some[1])), node_add(&r, y));
    be_set_int(op, CUDNN_ATTR_OPERATION_RNG_SEED, 99);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, node_add(&r, offset));
    node_plan(&r, be_final(op));
    for (int turn = 0; turn < 4; ++turn) {
        offset->value[0] = turn % 3;
        tensor_write(offset);
        if (run_call(node_execute, &r)) rng_judge(&some[1], y, 99, (uint64_t)(turn % 3));
    }
    be_free_all();
    case_end();
}

/* Masks: eight elements a byte, in any order of dimensions. */
static void mask_case(bool last)
{
    static const int dim[3] = {3, 5, 7}, rows[3] = {35, 7, 1}, columns[3] = {1, 21, 3};
    const int bytes[2] = {1, (3 * 5 * 7 + 7) / 8};
    struct node_run r = {0};
    struct tensor *carrier;
    be_desc op;
    double *exact;
    if (!case_begin("rng mask %s", last ? "of columns" : "of rows")) return;
    carrier = tensor_inout(CUDNN_DATA_UINT8, 2, bytes, LAYOUT_NCHW, 0, 0);
    exact = node_doubles(bytes[1]);
    for (int i = 0; i < 105; ++i) {
        const int *stride = last ? columns : rows;
        int place = i / 35 * stride[0] + i / 7 % 5 * stride[1] + i % 7 * stride[2];
        exact[place / 8] += (1 << place % 8) * rng_expected(&some[0], CUDNN_DATA_BOOLEAN, 7, 0, i);
    }
    op = rng_op_open(
        be_final(rng_open(&some[0])),
        node_add_raw(
            &r, be_final(node_open_tensor(1, CUDNN_DATA_BOOLEAN, 3, dim, last ? columns : rows, 1)),
            carrier->data));
    be_set_int(op, CUDNN_ATTR_OPERATION_RNG_SEED, 7);
    if (node_run(&r, be_final(op))) {
        check_values("mask", carrier, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    }
    free(exact);
    be_free_all();
    case_end();
}

/* Masks that begin at any byte: bits before and behind them stay. */
static void long_mask(int count, int skip)
{
    const int dim[2] = {1, count}, rows[2] = {count, 1};
    const int bytes[2] = {1, (count + 7) / 8 + skip + 3};
    struct node_run r = {0};
    struct tensor *carrier;
    be_desc op;
    double *exact;
    if (!case_begin("rng mask of %d from byte %d", count, skip)) return;
    carrier = tensor_inout(CUDNN_DATA_UINT8, 2, bytes, LAYOUT_NCHW, 0, 255);
    exact = node_doubles(bytes[1]);
    memcpy(exact, carrier->value, (size_t)bytes[1] * sizeof *exact);
    for (int i = 0; i < count; ++i) {
        double *byte = &exact[skip + i / 8];
        int was = (int)*byte >> i % 8 & 1;
        *byte += (1 << i % 8) * (rng_expected(&some[0], CUDNN_DATA_BOOLEAN, 7, 0, i) - was);
    }
    op = rng_op_open(
        be_final(rng_open(&some[0])),
        node_add_raw(&r, be_final(node_open_tensor(1, CUDNN_DATA_BOOLEAN, 2, dim, rows, 1)),
                     (char *)carrier->data + skip));
    be_set_int(op, CUDNN_ATTR_OPERATION_RNG_SEED, 7);
    if (node_run(&r, be_final(op))) {
        check_values("mask", carrier, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    }
    free(exact);
    be_free_all();
    case_end();
}

/* Mean, variance and the correlation of neighbours at several distances, all of which must be as
 * near to those of the distribution as chance allows (five standard deviations), and a hash of all
 * bits, the same on every device. */
static void moments(const struct rng_distribution *d, int type, double mean, double variance,
                    double kurtosis, uint64_t sum)
{
    enum { COUNT = 1 << 16 };
    static const int dim[2] = {256, 256};
    static const int distances[] = {1, 2, 3, 4, 256, 4096};
    struct node_run r = {0};
    struct tensor *y;
    be_desc op;
    if (!case_begin("rng moments %s %s", rng_kind_name[d->kind], node_type_name[type])) return;
    y = tensor_output((cudnnDataType_t)type, 2, dim, LAYOUT_NCHW);
    op = rng_op_open(be_final(rng_open(d)), node_add(&r, y));
    be_set_int(op, CUDNN_ATTR_OPERATION_RNG_SEED, 20250101);
    if (node_run(&r, be_final(op)) && harness_values) {
        double first = 0, second = 0;
        uint64_t bits = 0;
        for (int i = 0; i < COUNT; ++i) {
            uint64_t word;
            memcpy(&word, &y->value[i], sizeof word);
            bits = (bits ^ word) * 0x9e3779b97f4a7c15u;
            bits ^= bits >> 29;
            first += y->value[i] / COUNT;
            second += (y->value[i] - mean) * (y->value[i] - mean) / COUNT;
        }
        if (fabs(first - mean) > 5 * sqrt(variance / COUNT)) {
            case_fail("the mean is %g, not %g", first, mean);
        }
        if (fabs(second - variance) > 5 * variance * sqrt((kurtosis - 1) / COUNT) + 1e-9) {
            case_fail("the variance is %g, not %g", second, variance);
        }
        for (size_t k = 0; k < sizeof distances / sizeof distances[0]; ++k) {
            double product = 0;
            for (int i = 0; i + distances[k] < COUNT; ++i) {
                product += (y->value[i] - mean) * (y->value[i + distances[k]] - mean) / COUNT;
            }
            if (fabs(product) > 5 * variance / sqrt(COUNT)) {
                case_fail("elements %d apart correlate by %g", distances[k], product / variance);
            }
        }
        if (bits != sum) case_fail("the bits hash to 0x%llx", (unsigned long long)bits);
    }
    be_free_all();
    case_end();
}

/* Probabilities of 0 and 1 and a range of one number leave nothing to chance. */
static void certain(void)
{
    static const struct rng_distribution sure[] = {{CUDNN_RNG_DISTRIBUTION_BERNOULLI, 0.0, 0},
                                                   {CUDNN_RNG_DISTRIBUTION_BERNOULLI, 1.0, 0},
                                                   {CUDNN_RNG_DISTRIBUTION_UNIFORM, 2.5, 2.5},
                                                   {CUDNN_RNG_DISTRIBUTION_NORMAL, -3.0, 0.0}};
    static const double values[] = {0.0, 1.0, 2.5, -3.0};
    static const int dim[2] = {31, 33};
    for (int k = 0; k < 4; ++k) {
        struct node_run r = {0};
        struct tensor *y;
        double *exact;
        if (!case_begin("rng certain %d", k)) continue;
        y = tensor_output(CUDNN_DATA_HALF, 2, dim, LAYOUT_NCHW);
        exact = node_doubles(y->count);
        for (int64_t i = 0; i < y->count; ++i) exact[i] = values[k];
        if (node_run(&r, be_final(rng_op_open(be_final(rng_open(&sure[k])), node_add(&r, y))))) {
            check_values("y", y, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
        }
        free(exact);
        be_free_all();
        case_end();
    }
}

static void nothing(void)
{
    static const int none[3] = {2, 0, 4}, dim[3] = {2, 3, 4}, strides[3] = {12, 4, 1};
    struct node_run r = {0};
    struct tensor *other;
    be_desc dy;
    if (!case_begin("rng of nothing")) return;
    other = tensor_input(CUDNN_DATA_FLOAT, 3, dim, LAYOUT_NCHW, 0, 1);
    dy = node_add_raw(&r, be_final(node_open_tensor(1, CUDNN_DATA_FLOAT, 3, none, strides, 1)),
                      other->data);
    node_run(&r, be_final(rng_op_open(be_final(rng_open(&some[0])), dy)));
    be_free_all();
    case_end();
}

static void refusals(void)
{
    static const struct rng_distribution wrong[] = {
        {CUDNN_RNG_DISTRIBUTION_BERNOULLI, 1.5, 0}, {CUDNN_RNG_DISTRIBUTION_BERNOULLI, -0.1, 0},
        {CUDNN_RNG_DISTRIBUTION_BERNOULLI, NAN, 0}, {CUDNN_RNG_DISTRIBUTION_UNIFORM, 2, 1},
        {CUDNN_RNG_DISTRIBUTION_UNIFORM, NAN, 1},   {CUDNN_RNG_DISTRIBUTION_NORMAL, 0, -1},
        {CUDNN_RNG_DISTRIBUTION_NORMAL, 0, NAN}};
    static const char *const says[] = {
        "PROBABILITY=1.5", "PROBABILITY=-0.1", "PROBABILITY=", "MINIMUM=2",
        "MINIMUM=",        "DEVIATION=-1",     "DEVIATION="};
    static const struct rng_distribution endless[] = {
        {CUDNN_RNG_DISTRIBUTION_UNIFORM, -1.7e308, 1.7e308},
        {CUDNN_RNG_DISTRIBUTION_UNIFORM, 0, INFINITY},
        {CUDNN_RNG_DISTRIBUTION_NORMAL, INFINITY, 1},
        {CUDNN_RNG_DISTRIBUTION_NORMAL, 0, INFINITY}};
    static const int64_t dims[] = {2, 3, 4}, one[] = {1, 1, 1}, two[] = {2, 1, 1};
    static const int whole[] = {2, 3, 4}, gaps[] = {64, 16, 2};
    be_desc y, rng, op;
    if (!case_begin("rng refusals")) return;
    for (int i = 0; i < 7; ++i) node_refused(CUDNN_STATUS_BAD_PARAM, says[i], rng_open(&wrong[i]));
    y = be_tensor(1, CUDNN_DATA_FLOAT, 3, dims, BE_PLAIN);
    for (int i = 0; i < 4; ++i) {
        node_refused(CUDNN_STATUS_BAD_PARAM,
                     "rng: ", rng_op_open(be_final(rng_open(&endless[i])), y));
    }
    rng = be_final(rng_open(&some[0]));
    op = rng_op_open(rng, y);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_SEED, be_tensor(2, CUDNN_DATA_INT64, 3, two, BE_PLAIN));
    node_refused(CUDNN_STATUS_BAD_PARAM, "seed (int64[2,1,1]", op);
    op = rng_op_open(rng, y);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC,
               be_tensor(2, CUDNN_DATA_INT64, 3, two, BE_PLAIN));
    node_refused(CUDNN_STATUS_BAD_PARAM, "offset (int64[2,1,1]", op);
    op = rng_op_open(rng, y);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RNG_SEED, be_tensor(2, CUDNN_DATA_FLOAT, 3, one, BE_PLAIN));
    node_refused(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "seed is fp32", op);
    node_refused(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "y is",
                 rng_op_open(rng, be_tensor(1, CUDNN_DATA_COMPLEX_FP32, 3, dims, BE_PLAIN)));
    node_refused(
        CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "share bytes",
        rng_op_open(rng, be_final(node_open_tensor(1, CUDNN_DATA_BOOLEAN, 3, whole, gaps, 1))));
    node_refused(CUDNN_STATUS_BAD_PARAM, "no tensor in memory",
                 rng_op_open(rng, be_tensor(1, CUDNN_DATA_FLOAT, 3, one, BE_BY_VALUE)));
    be_free_all();
    case_end();
}

/* clang-format off */
static const char *const symbols[] = {
#define WD_KERNEL(symbol, ...) "wd_" #symbol,
#include "ops/rng/rng_vector_exact_kernels.def"
#undef WD_KERNEL
};
/* clang-format on */

int main(int argc, char **argv)
{
    static const int types[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8,   CUDNN_DATA_UINT8,
                                CUDNN_DATA_INT32,    CUDNN_DATA_INT64};
    static const int vectors[] = {CUDNN_DATA_INT8x4, CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x32};
    harness_start(argc, argv);
    for (int k = 0; k < 4; ++k) {
        for (int t = 0; t < 8; ++t) {
            for (int l = LAYOUT_NCHW; l <= LAYOUT_GAPS; ++l) {
                for (int how = BY_VALUE; how <= BY_HOST; ++how) {
                    value_case(&some[k], types[t], (enum layout)l, how);
                }
            }
        }
        for (int t = 0; t < 3; ++t) value_case(&some[k], vectors[t], LAYOUT_VECT, BY_VALUE);
        for (int t = 0; t < 7; ++t) {
            for (int odd = 0; odd < (t == 1 ? 2 : 4); ++odd) {
                large_case(&some[k], types[t], LAYOUT_NCHW, odd);
                if (odd < 2) large_case(&some[k], types[t], LAYOUT_NHWC, odd);
            }
        }
    }
    for (int skip = 0; skip < 5; ++skip) {
        long_mask(7, skip);
        long_mask(1000 + skip, skip);
        long_mask(20001, skip);
    }
    many_normals((const int[]){8, 64, 64, 51}, CUDNN_DATA_HALF, LAYOUT_NCHW, 0, 0, 1);
    many_normals((const int[]){8, 64, 64, 53}, CUDNN_DATA_BFLOAT16, LAYOUT_NCHW, 1, 0, 3);
    many_normals((const int[]){8, 64, 64, 104}, CUDNN_DATA_BFLOAT16, LAYOUT_NHWC, 0, 2, 3);
    many_normals((const int[]){8, 64, 64, 104}, CUDNN_DATA_BFLOAT16, LAYOUT_NHWC, 0, 0, 1);
    many_normals((const int[]){5, 2048, 49, 1}, CUDNN_DATA_BFLOAT16, LAYOUT_NCHW, 0, 0, 1);
    many_normals((const int[]){13, 2048, 7, 7}, CUDNN_DATA_HALF, LAYOUT_NHWC, 0, 0, 2);
    many_normals((const int[]){3, 61, 87, 89}, CUDNN_DATA_HALF, LAYOUT_NHWC, 1, 0, 1);
    if (harness_on_gpu) { /* tiles of whole planes, by warps of blocks that stay, and of parts of planes */
        many_normals((const int[]){27, 2048, 7, 7}, CUDNN_DATA_HALF, LAYOUT_NHWC, 0, 0, 1);
        many(CUDNN_RNG_DISTRIBUTION_BERNOULLI, 0.3, 0, (const int[]){5, 2048, 7, 7},
             CUDNN_DATA_HALF, LAYOUT_NHWC, 0);
    }
    offsets_count();
    mask_case(false);
    mask_case(true);
    moments(&some[0], CUDNN_DATA_DOUBLE, 0.3, 0.3 * 0.7, 1.0 / 0.21 - 3.0, 0x37ae977cfc4d8384u);
    moments(&some[1], CUDNN_DATA_DOUBLE, 1.375, 5.75 * 5.75 / 12, 1.8, 0xb60cdc9c668f972du);
    moments(&some[2], CUDNN_DATA_DOUBLE, 2.0, 9.0, 3.0, 0xa8342fdc596a9f05u);
    moments(&some[1], CUDNN_DATA_FLOAT, 1.375, 5.75 * 5.75 / 12, 1.8, 0x25ba41077bdea2dfu);
    moments(&some[1], CUDNN_DATA_HALF, 1.375, 5.75 * 5.75 / 12, 1.8, 0xd807ade169572ddbu);
    moments(&some[2], CUDNN_DATA_FLOAT, 2.0, 9.0, 3.0, 0x4758c4a498aefab7u);
    moments(&some[2], CUDNN_DATA_HALF, 2.0, 9.0, 3.0, 0x44df155cdd3e839au);
    moments(&some[2], CUDNN_DATA_BFLOAT16, 2.0, 9.0, 3.0, 0x72c0945812c44667u);
    certain();
    nothing();
    refusals();
    if (argc == 1) kernels_reached(symbols, COUNT(symbols));
    return harness_finish();
}
