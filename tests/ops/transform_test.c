/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms of tensors and filters: every element of the source is taken to its place in a
 * destination of zeros, while the library looks from each place for its element. Random paddings
 * and cuts, blocks that do not divide, layouts, types, vectors of channels, scaling, NaN; and folding
 * undone by unfolding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/harness.h"

enum { RANK_MAX = 5 };

struct call {
    cudnnTensorTransformDescriptor_t how;
    cudnnFilterDescriptor_t src_filter, dest_filter; /* null: tensors */
    struct tensor *src, *dest;
    double alpha, beta;
};

struct shape {
    int rank, direction;
    int src[RANK_MAX], dest[RANK_MAX];
    int32_t before[RANK_MAX], after[RANK_MAX];
    uint32_t fold[RANK_MAX - 2];
};

static const void *scalar(cudnnDataType_t dtype, double value, double *storage)
{
    if (dtype == CUDNN_DATA_DOUBLE) *storage = value;
    else *(float *)storage = (float)value;
    return storage;
}

static cudnnStatus_t transform(void *context)
{
    const struct call *c = context;
    double s[2];
    const void *alpha = scalar(c->src->dtype, c->alpha, s);
    const void *beta = scalar(c->src->dtype, c->beta, s + 1);
    if (c->src_filter) {
        return cudnnTransformFilter(harness_handle, c->how, alpha, c->src_filter, c->src->data,
                                    beta, c->dest_filter, c->dest->data);
    }
    return cudnnTransformTensorEx(harness_handle, c->how, alpha, c->src->desc, c->src->data, beta,
                                  c->dest->desc, c->dest->data);
}

static int block_of(const struct shape *s, int d)
{
    return s->fold[d - 2] > 1 ? (int)s->fold[d - 2] : 1;
}

static int blocks_of(const struct shape *s)
{
    int blocks = 1;
    for (int d = 2; d < s->rank; ++d) blocks *= block_of(s, d);
    return blocks;
}

static int divide_up(int value, int by)
{
    return (value + by - 1) / by;
}

static void give_dims(struct shape *s)
{
    bool folds = s->direction == CUDNN_TRANSFORM_FOLD;
    for (int d = 0; d < s->rank; ++d) {
        int extent = s->src[d];
        if (folds) extent += s->before[d] + s->after[d];
        if (d == 1 && folds) extent *= blocks_of(s);
        if (d == 1 && !folds) extent = divide_up(extent, blocks_of(s));
        if (d > 1 && folds) extent = divide_up(extent, block_of(s, d));
        if (d > 1 && !folds) extent *= block_of(s, d);
        if (!folds) extent += s->before[d] + s->after[d];
        s->dest[d] = extent;
    }
}

/* Where the source's element at `at` goes; false where it is cut off. Channels are padded on the side
 * that is folded: a channel for each element of a block. */
static bool taken(const struct shape *s, const int *at, int *to)
{
    int phase = 0, front = s->before[1] * blocks_of(s);
    memcpy(to, at, sizeof *to * (size_t)s->rank);
    if (s->direction == CUDNN_TRANSFORM_FOLD) {
        for (int d = 0; d < s->rank; ++d) {
            if (d == 1) continue;
            to[d] += s->before[d];
            if (to[d] < 0 || to[d] >= s->src[d] + s->before[d] + s->after[d]) return false;
        }
        for (int d = 2; d < s->rank; ++d) {
            phase = phase * block_of(s, d) + to[d] % block_of(s, d);
            to[d] /= block_of(s, d);
        }
        to[1] += phase * s->src[1] + front;
        return to[1] >= 0 && to[1] < s->dest[1];
    }
    if (at[1] + front < 0) return false;
    phase = (at[1] + front) / s->dest[1];
    to[1] = (at[1] + front) % s->dest[1];
    if (phase >= blocks_of(s)) return false;
    for (int d = s->rank - 1; d >= 2; --d) {
        to[d] = at[d] * block_of(s, d) + phase % block_of(s, d);
        phase /= block_of(s, d);
    }
    for (int d = 0; d < s->rank; ++d) {
        if (d == 1) continue;
        to[d] += s->before[d];
        if (to[d] < 0 || to[d] >= s->dest[d]) return false;
    }
    return true;
}

static void describe(struct call *c, const struct shape *s, int format)
{
    cudnnCreateTensorTransformDescriptor(&c->how);
    if (cudnnSetTensorTransformDescriptor(
            c->how, (uint32_t)s->rank, (cudnnTensorFormat_t)format, s->before, s->after, s->fold,
            (cudnnFoldingDirection_t)s->direction) != CUDNN_STATUS_SUCCESS) {
        case_fail("the descriptor is refused");
    }
}

static bool is_float(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
           type == CUDNN_DATA_BFLOAT16;
}

static void check(const struct call *c, const struct shape *s, const double *before)
{
    const struct tensor *dest = c->dest;
    double *exact = calloc((size_t)dest->count, sizeof *exact);
    double *magnitude = calloc((size_t)dest->count, sizeof *magnitude);
    bool wide = c->src->dtype == CUDNN_DATA_DOUBLE || dest->dtype == CUDNN_DATA_DOUBLE;
    for (int64_t i = 0; i < c->src->count; ++i) {
        int at[8], to[8];
        coordinates(c->src, i, at);
        if (taken(s, at, to)) exact[logical_index(dest, to)] = c->src->value[i];
    }
    for (int64_t i = 0; i < dest->count; ++i) {
        double old = c->beta != 0 ? c->beta * before[i] : 0.0;
        magnitude[i] = isfinite(exact[i]) ? fabs(c->alpha * exact[i]) + fabs(old) : 0.0;
        exact[i] = (c->alpha != 0 ? c->alpha * exact[i] : 0.0) + old;
        if (!is_float(dest->dtype)) exact[i] = tensor_round(dest->dtype, exact[i]);
    }
    check_values("dest", dest, exact, NULL, magnitude, wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(exact);
    free(magnitude);
}

static void random_shape(struct shape *s, int unit, bool plain)
{
    s->rank = random_of(3, 4, 4, 4, 5);
    if (unit > 1) s->rank = 4;
    s->direction = random_of(CUDNN_TRANSFORM_FOLD, CUDNN_TRANSFORM_UNFOLD);
    for (;;) {
        bool whole = true;
        for (int d = 0; d < s->rank; ++d) {
            bool pads = !plain && random_chance(0.4) && !(d == 1 && unit > 1);
            s->src[d] = (int)random_int(1, d < 2 ? 5 : 8);
            if (d == 1 && unit > 1) s->src[d] *= unit * 4;
            s->before[d] = pads ? (int32_t)random_int(-2, 3) : 0;
            s->after[d] = pads ? (int32_t)random_int(-2, 3) : 0;
            if (d > 1) s->fold[d - 2] = plain ? 1 : (uint32_t)random_of(0, 1, 1, 2, 2, 3);
            if (d > 1 && unit > 1 && s->fold[d - 2] > 2) s->fold[d - 2] = 2;
        }
        /* what padding cuts must leave something, in vectors where there are any */
        give_dims(s);
        for (int d = 0; d < s->rank; ++d) {
            whole &= s->dest[d] > 0 && s->src[d] + s->before[d] + s->after[d] > 0;
        }
        if (whole && s->dest[1] % unit == 0) return;
    }
}

static double random_scalar(void)
{
    return (double)random_of(0, 2, 2, 1, -3) * 0.5;
}

/* The elements that `beta` is to see, or poison. */
static struct tensor *destination(cudnnDataType_t dtype, const struct shape *s, enum layout layout,
                                  double beta)
{
    if (beta == 0.0) return tensor_output(dtype, s->rank, s->dest, layout);
    return tensor_inout(dtype, s->rank, s->dest, layout, -8.0, 8.0);
}

static const struct {
    const char *name;
    cudnnDataType_t type;
    int lanes;
} types[] = {{"fp32", CUDNN_DATA_FLOAT, 1},      {"fp64", CUDNN_DATA_DOUBLE, 1},
             {"fp16", CUDNN_DATA_HALF, 1},       {"bf16", CUDNN_DATA_BFLOAT16, 1},
             {"int8", CUDNN_DATA_INT8, 1},       {"int32", CUDNN_DATA_INT32, 1},
             {"int8x4", CUDNN_DATA_INT8x4, 4},   {"uint8", CUDNN_DATA_UINT8, 1},
             {"uint8x4", CUDNN_DATA_UINT8x4, 4}, {"int8x32", CUDNN_DATA_INT8x32, 32}};

static enum layout random_layout(int lanes)
{
    return lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

static void random_case(int from, int to, int turn)
{
    struct call c = {.alpha = 1.0};
    struct shape s = {0};
    double *before;
    int unit = types[from].lanes > types[to].lanes ? types[from].lanes : types[to].lanes;
    if (!case_begin("transform/%s_to_%s/%d", types[from].name, types[to].name, turn)) return;
    random_shape(&s, unit, turn == 1);
    if (turn > 1) c.alpha = random_scalar(), c.beta = random_scalar();
    describe(&c, &s, random_of(CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC));
    c.src =
        tensor_input(types[from].type, s.rank, s.src, random_layout(types[from].lanes), -9.0, 9.0);
    if (is_float(types[from].type) && is_float(types[to].type) && random_chance(0.3)) {
        c.src->value[random_int(0, c.src->count - 1)] = NAN;
        c.src->value[random_int(0, c.src->count - 1)] = INFINITY;
        tensor_write(c.src);
    }
    c.dest = destination(types[to].type, &s, random_layout(types[to].lanes), c.beta);
    before = malloc((size_t)c.dest->count * sizeof *before);
    memcpy(before, c.dest->value, (size_t)c.dest->count * sizeof *before);
    if (run_call(transform, &c)) check(&c, &s, before);
    free(before);
    cudnnDestroyTensorTransformDescriptor(c.how);
    case_end();
}

static cudnnFilterDescriptor_t filter(cudnnDataType_t dtype, int rank, const int *dim,
                                      enum layout layout)
{
    cudnnFilterDescriptor_t made = NULL;
    cudnnTensorFormat_t format = layout == LAYOUT_NHWC   ? CUDNN_TENSOR_NHWC
                                 : layout == LAYOUT_VECT ? CUDNN_TENSOR_NCHW_VECT_C
                                                         : CUDNN_TENSOR_NCHW;
    cudnnCreateFilterDescriptor(&made);
    if (cudnnSetFilterNdDescriptor(made, dtype, format, rank, dim) != CUDNN_STATUS_SUCCESS) {
        case_fail("a filter descriptor is refused");
    }
    return made;
}

static void filter_case(int type, int turn)
{
    struct call c = {.alpha = 1.0};
    struct shape s = {0};
    enum layout from, to;
    double *before;
    if (!case_begin("transform_filter/%s/%d", types[type].name, turn)) return;
    random_shape(&s, types[type].lanes, turn == 1);
    if (turn > 1) c.alpha = random_scalar(), c.beta = random_scalar();
    from = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
    to = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
    if (types[type].lanes > 1) from = to = LAYOUT_VECT;
    describe(&c, &s, to == LAYOUT_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW);
    c.src = tensor_input(types[type].type, s.rank, s.src, from, -9.0, 9.0);
    c.dest = destination(types[type].type, &s, to, c.beta);
    c.src_filter = filter(types[type].type, s.rank, s.src, from);
    c.dest_filter = filter(types[type].type, s.rank, s.dest, to);
    before = malloc((size_t)c.dest->count * sizeof *before);
    memcpy(before, c.dest->value, (size_t)c.dest->count * sizeof *before);
    if (run_call(transform, &c)) check(&c, &s, before);
    free(before);
    cudnnDestroyFilterDescriptor(c.src_filter);
    cudnnDestroyFilterDescriptor(c.dest_filter);
    cudnnDestroyTensorTransformDescriptor(c.how);
    case_end();
}

/* The destination is as cudnnInitTransformDest gives it, and unfolding brings the image back. */
static void there_and_back(int turn)
{
    struct call c = {.alpha = 1.0};
    struct shape s = {.rank = 4, .src = {2, 3, 7, 10}, .fold = {2, 3}}, back;
    struct tensor *image;
    cudnnTensorDescriptor_t given = NULL;
    size_t bytes = 0;
    if (!case_begin("transform/there_and_back/%d", turn)) return;
    s.direction = CUDNN_TRANSFORM_FOLD;
    s.before[2] = (int32_t)random_int(0, 2);
    s.after[1] = (int32_t)random_int(0, 2);
    s.after[2] = 4 - s.before[2] + turn % 2;
    s.after[3] = 2;
    give_dims(&s);
    describe(&c, &s, CUDNN_TENSOR_NHWC);
    image = tensor_input(CUDNN_DATA_FLOAT, 4, s.src, LAYOUT_NCHW, -4.0, 4.0);
    c.src = image;
    c.dest = tensor_inout(CUDNN_DATA_FLOAT, 4, s.dest, LAYOUT_NHWC, 0.0, 1.0);
    cudnnCreateTensorDescriptor(&given);
    if (cudnnInitTransformDest(c.how, c.src->desc, given, &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes != sizeof(float) * (size_t)c.dest->count) {
        case_fail("the destination that is given has %zu bytes", bytes);
    }
    run_call(transform, &c);
    cudnnDestroyTensorTransformDescriptor(c.how);
    back = s;
    back.direction = CUDNN_TRANSFORM_UNFOLD;
    memcpy(back.src, s.dest, sizeof back.src);
    for (int d = 0; d < 4; ++d) {
        int blocks = d > 1 ? block_of(&s, d) : 1;
        int full = d == 1 ? divide_up(s.dest[1], blocks_of(&s)) : s.dest[d] * blocks;
        back.before[d] = -s.before[d];
        back.after[d] = s.src[d] - full + s.before[d];
        back.dest[d] = s.src[d];
    }
    describe(&c, &back, CUDNN_TENSOR_NCHW);
    c.src = c.dest;
    c.src->output = false;
    tensor_write(c.src);
    c.dest = tensor_output(CUDNN_DATA_FLOAT, 4, back.dest, LAYOUT_NCHW);
    run_call(transform, &c);
    for (int64_t i = 0; i < image->count; ++i) {
        if (c.dest->value[i] == image->value[i]) continue;
        case_fail("element %lld went as %g and came back as %g", (long long)i, image->value[i],
                  c.dest->value[i]);
    }
    cudnnDestroyTensorTransformDescriptor(c.how);
    cudnnDestroyTensorDescriptor(given);
    case_end();
}

/* Layouts changed, of packed tensors that begin some elements behind aligned memory. The dims of four
 * lie in an order, from the outermost; blocks are folded where `fold` says so. */
enum { NCHW = 123, NHWC = 231, HNCW = 2013, WCNH = 3102 };

struct turn {
    struct call call;
    cudnnTensorDescriptor_t src_desc, dest_desc;
    int src_skip, dest_skip;
    bool plain; /* cudnnTransformTensor */
};

static void *behind(const struct tensor *t, int skip)
{
    return (char *)t->data + t->bytes / t->count * skip;
}

static cudnnStatus_t turn(void *context)
{
    const struct turn *t = context;
    const struct call *c = &t->call;
    double s[2];
    const void *alpha = scalar(c->src->dtype, c->alpha, s);
    const void *beta = scalar(c->src->dtype, c->beta, s + 1);
    const void *src = behind(c->src, t->src_skip);
    void *dest = behind(c->dest, t->dest_skip);
    if (t->plain) {
        return cudnnTransformTensor(harness_handle, alpha, t->src_desc, src, beta, t->dest_desc,
                                    dest);
    }
    return cudnnTransformTensorEx(harness_handle, c->how, alpha, t->src_desc, src, beta,
                                  t->dest_desc, dest);
}

/* A tensor without shape for `dim` and `skip`; strides for dims in the order of the digits. */
static int lay(const int *dim, int order, int *stride)
{
    int expected = 1;
    for (int i = 0; i < 4; ++i, order /= 10) {
        stride[order % 10] = expected;
        expected *= dim[order % 10];
    }
    return expected;
}

static cudnnTensorDescriptor_t packed(cudnnDataType_t type, const int *dim, const int *stride)
{
    cudnnTensorDescriptor_t desc = NULL;
    cudnnCreateTensorDescriptor(&desc);
    if (cudnnSetTensorNdDescriptor(desc, type, 4, dim, stride) != CUDNN_STATUS_SUCCESS) {
        case_fail("a descriptor is refused");
    }
    return desc;
}

static void turn_case(int type, const int *dim, int from, int to, int fold, int src_skip,
                      int dest_skip, double alpha, double beta)
{
    struct turn t = {
        .call = {.alpha = alpha, .beta = beta}, .src_skip = src_skip, .dest_skip = dest_skip};
    struct call *c = &t.call;
    struct shape s = {.rank = 4, .direction = fold < 0};
    int stride[2][4];
    double *exact;
    double *magnitude;
    int count;
    if (!case_begin("turn/%s/%d,%d,%d,%d/%04d_to_%04d/fold%d/skip%d,%d/%g,%g", types[type].name,
                    dim[0], dim[1], dim[2], dim[3], from, to, fold, src_skip, dest_skip, alpha,
                    beta)) {
        return;
    }
    s.direction = fold < 0 ? CUDNN_TRANSFORM_UNFOLD : CUDNN_TRANSFORM_FOLD;
    for (int d = 0; d < 4; ++d) s.src[d] = dim[d];
    for (int d = 0; d < 2; ++d) s.fold[d] = fold == 0 ? 1 : (uint32_t)(abs(fold) + d);
    give_dims(&s);
    count = lay(s.src, from, stride[0]);
    if (lay(s.dest, to, stride[1]) != count) case_fail("blocks do not divide");
    t.plain = fold == 0 && from != HNCW && to != HNCW && random_chance(0.6);
    describe(c, &s, CUDNN_TENSOR_NCHW);
    t.src_desc = packed(types[type].type, s.src, stride[0]);
    t.dest_desc = packed(types[type].type, s.dest, stride[1]);
    c->src = tensor_input(types[type].type, 2, (const int[]){1, count + src_skip}, LAYOUT_NCHW,
                          -9.0, 9.0);
    c->dest = tensor_inout(types[type].type, 2, (const int[]){1, count + dest_skip}, LAYOUT_NCHW,
                           -9.0, 9.0);
    exact = malloc((size_t)c->dest->count * sizeof *exact);
    magnitude = calloc((size_t)c->dest->count, sizeof *magnitude);
    memcpy(exact, c->dest->value, (size_t)c->dest->count * sizeof *exact);
    for (int i = 0, rest = 0; i < count; ++i) {
        int at[4], to_at[8];
        int64_t offset[2] = {src_skip, dest_skip};
        double old;
        double value;
        rest = i;
        for (int d = 3; d >= 0; --d) {
            at[d] = rest % s.src[d];
            rest /= s.src[d];
        }
        taken(&s, at, to_at);
        for (int d = 0; d < 4; ++d) {
            offset[0] += (int64_t)at[d] * stride[0][d];
            offset[1] += (int64_t)to_at[d] * stride[1][d];
        }
        value = alpha * c->src->value[offset[0]];
        old = beta * exact[offset[1]];
        exact[offset[1]] = value + old;
        if (!is_float(types[type].type)) {
            exact[offset[1]] = tensor_round(types[type].type, exact[offset[1]]);
        }
        if (alpha != 1.0 || beta != 0.0) magnitude[offset[1]] = fabs(value) + fabs(old);
    }
    if (run_call(turn, &t)) {
        check_values("dest", c->dest, exact, NULL, magnitude,
                     types[type].type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    cudnnDestroyTensorDescriptor(t.src_desc);
    cudnnDestroyTensorDescriptor(t.dest_desc);
    cudnnDestroyTensorTransformDescriptor(c->how);
    case_end();
}

/* Planes turned, thin and wide, of whole runs and not, little and much; rows that stay; blocks there
 * and back. */
static void turn_cases(void)
{
    static const int planes[][4] = {
        {6, 64, 8, 24},   {1, 3, 160, 151}, {8, 61, 11, 13},  {7, 200, 7, 7},   {4, 130, 9, 15},
        {6, 16, 1, 700},  {3, 8, 64, 64},   {5, 2, 3, 2},     {5, 127, 1, 127}, {7, 96, 10, 10},
        {2, 1023, 3, 11}, {2, 61, 11, 13},  {1, 256, 14, 14}, {1, 17, 224, 110}};
    static const int large[][4] = {
        {2, 61, 111, 113}, {2, 1023, 27, 33}, {10, 1024, 14, 14}, {4, 3, 384, 385}};
    static const int whole_tiles[] = {2, 1, 4, 0, 0, 0}; /* of the large ones, by type */
    static const int rows[][4] = {{3, 5, 7, 16}, {4, 3, 6, 5}, {1, 1, 1, 33}};
    static const int images[][4] = {{2, 3, 8, 12}, {1, 16, 16, 24}, {2, 24, 4, 6}};
    for (int type = 0; type < 6; ++type) { /* those of one lane */
        bool scales = is_float(types[type].type);
        for (int i = 0; i < 14; ++i) {
            for (int back = 0; back < 2; ++back) {
                int from = back ? NHWC : NCHW;
                int to = back ? NCHW : NHWC;
                turn_case(type, planes[i], from, to, 0, 0, 0, 1.0, 0.0);
                turn_case(type, planes[i], from, to, 0, i % 3, 1 + i % 2, 1.0, 0.0);
                if (scales) turn_case(type, planes[i], from, to, 0, i % 2, 0, -0.5, i % 3 * 0.5);
            }
            turn_case(type, planes[i], NHWC, WCNH, 0, 0, 0, 1.0, 0.0);
        }
        for (int i = 0; i < whole_tiles[type]; ++i) {
            turn_case(type, large[i], NCHW, NHWC, 0, 0, i % 2, 1.0, 0.0);
            turn_case(type, large[i], NHWC, NCHW, 0, i % 3, 0, 1.0, 0.0);
        }
        for (int i = 0; i < 3; ++i) {
            turn_case(type, rows[i], NCHW, HNCW, 0, 0, 0, 1.0, 0.0);
            turn_case(type, rows[i], HNCW, NCHW, 0, 1, i % 2, 1.0, 0.0);
            if (scales) turn_case(type, rows[i], NCHW, HNCW, 0, 0, 0, 2.0, -1.0);
            turn_case(type, images[i], NCHW, i % 2 ? NHWC : NCHW, 2, 0, 0, 1.0, 0.0);
            turn_case(type, images[i], NHWC, i % 2 ? NCHW : NHWC, 2, i, 0, 1.0, 0.0);
            if (i == 2) {
                turn_case(type, images[i], NHWC, NCHW, -2, 0, 0, 1.0, 0.0);
                turn_case(type, images[i], NCHW, NHWC, -2, 0, 1, scales ? 3.0 : 1.0, 0.0);
            }
        }
    }
}

/* One type to another at the same places, from any element on. */
static void convert_case(int from, int to, int count, int src_skip, int dest_skip)
{
    struct turn t = {
        .call = {.alpha = 1.0}, .src_skip = src_skip, .dest_skip = dest_skip, .plain = true};
    const int dim[4] = {1, count % 3 == 0 ? 3 : 1, 1, count % 3 == 0 ? count / 3 : count};
    int stride[4];
    double *exact;
    double *magnitude;
    if (!case_begin("convert/%s_to_%s/%d/skip%d,%d", types[from].name, types[to].name, count,
                    src_skip, dest_skip)) {
        return;
    }
    lay(dim, count % 2 ? NHWC : NCHW, stride);
    t.src_desc = packed(types[from].type, dim, stride);
    t.dest_desc = packed(types[to].type, dim, stride);
    t.call.src = tensor_input(types[from].type, 2, (const int[]){1, count + src_skip}, LAYOUT_NCHW,
                              -9.0, 9.0);
    t.call.dest = tensor_inout(types[to].type, 2, (const int[]){1, count + dest_skip}, LAYOUT_NCHW,
                               -9.0, 9.0);
    exact = malloc((size_t)t.call.dest->count * sizeof *exact);
    magnitude = calloc((size_t)t.call.dest->count, sizeof *magnitude);
    memcpy(exact, t.call.dest->value, (size_t)t.call.dest->count * sizeof *exact);
    for (int i = 0; i < count; ++i) {
        exact[dest_skip + i] = t.call.src->value[src_skip + i];
        magnitude[dest_skip + i] = fabs(exact[dest_skip + i]);
    }
    if (run_call(turn, &t)) {
        check_values("dest", t.call.dest, exact, NULL, magnitude, CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    cudnnDestroyTensorDescriptor(t.src_desc);
    cudnnDestroyTensorDescriptor(t.dest_desc);
    case_end();
}

static void convert_cases(void)
{
    static const int some[] = {0, 2, 3}; /* fp32, fp16, bf16 */
    static const int counts[] = {1, 7, 4096, 30011, 300000};
    for (int i = 0; i < 9; ++i) {
        int from = some[i / 3];
        int to = some[i % 3];
        if (from == to) continue;
        for (int n = 0; n < 5; ++n) {
            convert_case(from, to, counts[n], 0, 0);
            convert_case(from, to, counts[n], 1 + n % 3, 1 + n % 3);
            convert_case(from, to, counts[n], n, 3);
        }
    }
}

int main(int argc, char **argv)
{
    const int count = sizeof types / sizeof types[0];
    harness_start(argc, argv);
    for (int from = 0; from < count; ++from) {
        for (int to = 0; to < count; ++to) {
            int turns = from == to ? 24 : 4;
            for (int turn = 0; turn < turns; ++turn) random_case(from, to, turn);
        }
    }
    for (int type = 0; type < count; ++type) {
        if (types[type].type == CUDNN_DATA_INT32) continue; /* filters have none */
        for (int turn = 0; turn < 12; ++turn) filter_case(type, turn);
    }
    for (int turn = 0; turn < 4; ++turn) there_and_back(turn);
    turn_cases();
    convert_cases();
    return harness_finish();
}
