/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms of tensors and filters: every element of the source is taken to its place in a
 * destination of zeros, while the library looks from each place for its element. Random paddings
 * and cuts, blocks that do not divide, layouts, types, vectors of channels, scaling, NaN; and folding
 * undone by unfolding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "transform_case.h"

static cudnnStatus_t transform(void *context)
{
    const struct transform_call *c = context;
    double s[2];
    const void *alpha = transform_scalar(c->src->dtype, c->alpha, s);
    const void *beta = transform_scalar(c->src->dtype, c->beta, s + 1);
    if (c->src_filter) {
        return cudnnTransformFilter(harness_handle, c->how, alpha, c->src_filter, c->src->data,
                                    beta, c->dest_filter, c->dest->data);
    }
    return cudnnTransformTensorEx(harness_handle, c->how, alpha, c->src->desc, c->src->data, beta,
                                  c->dest->desc, c->dest->data);
}

static void check(const struct transform_call *c, const struct transform_shape *s,
                  const double *before)
{
    const struct tensor *dest = c->dest;
    double *exact = calloc((size_t)dest->count, sizeof *exact);
    double *magnitude = calloc((size_t)dest->count, sizeof *magnitude);
    bool wide = c->src->dtype == CUDNN_DATA_DOUBLE || dest->dtype == CUDNN_DATA_DOUBLE;
    for (int64_t i = 0; i < c->src->count; ++i) {
        int at[8], to[8];
        coordinates(c->src, i, at);
        if (transform_taken(s, at, to)) exact[logical_index(dest, to)] = c->src->value[i];
    }
    for (int64_t i = 0; i < dest->count; ++i) {
        double old = c->beta != 0 ? c->beta * before[i] : 0.0;
        magnitude[i] = isfinite(exact[i]) ? fabs(c->alpha * exact[i]) + fabs(old) : 0.0;
        exact[i] = (c->alpha != 0 ? c->alpha * exact[i] : 0.0) + old;
        if (!transform_is_float(dest->dtype)) exact[i] = tensor_round(dest->dtype, exact[i]);
    }
    check_values("dest", dest, exact, NULL, magnitude, wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(exact);
    free(magnitude);
}

static void random_shape(struct transform_shape *s, int unit, bool plain)
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
        transform_give_dims(s);
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
static struct tensor *destination(cudnnDataType_t dtype, const struct transform_shape *s,
                                  enum layout layout, double beta)
{
    if (beta == 0.0) return tensor_output(dtype, s->rank, s->dest, layout);
    return tensor_inout(dtype, s->rank, s->dest, layout, -8.0, 8.0);
}

static enum layout random_layout(int lanes)
{
    return lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

static void random_case(int from, int to, int turn)
{
    struct transform_call c = {.alpha = 1.0};
    struct transform_shape s = {0};
    double *before;
    int unit = transform_types[from].lanes > transform_types[to].lanes ? transform_types[from].lanes
                                                                       : transform_types[to].lanes;
    if (!case_begin("transform/%s_to_%s/%d", transform_types[from].name, transform_types[to].name,
                    turn))
        return;
    random_shape(&s, unit, turn == 1);
    if (turn > 1) c.alpha = random_scalar(), c.beta = random_scalar();
    transform_describe(&c, &s, random_of(CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC));
    c.src = tensor_input(transform_types[from].type, s.rank, s.src,
                         random_layout(transform_types[from].lanes), -9.0, 9.0);
    if (transform_is_float(transform_types[from].type) &&
        transform_is_float(transform_types[to].type) && random_chance(0.3)) {
        c.src->value[random_int(0, c.src->count - 1)] = NAN;
        c.src->value[random_int(0, c.src->count - 1)] = INFINITY;
        tensor_write(c.src);
    }
    c.dest =
        destination(transform_types[to].type, &s, random_layout(transform_types[to].lanes), c.beta);
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
    struct transform_call c = {.alpha = 1.0};
    struct transform_shape s = {0};
    enum layout from, to;
    double *before;
    if (!case_begin("transform_filter/%s/%d", transform_types[type].name, turn)) return;
    random_shape(&s, transform_types[type].lanes, turn == 1);
    if (turn > 1) c.alpha = random_scalar(), c.beta = random_scalar();
    from = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
    to = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC);
    if (transform_types[type].lanes > 1) from = to = LAYOUT_VECT;
    transform_describe(&c, &s, to == LAYOUT_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW);
    c.src = tensor_input(transform_types[type].type, s.rank, s.src, from, -9.0, 9.0);
    c.dest = destination(transform_types[type].type, &s, to, c.beta);
    c.src_filter = filter(transform_types[type].type, s.rank, s.src, from);
    c.dest_filter = filter(transform_types[type].type, s.rank, s.dest, to);
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
    struct transform_call c = {.alpha = 1.0};
    struct transform_shape s = {.rank = 4, .src = {2, 3, 7, 10}, .fold = {2, 3}}, back;
    struct tensor *image;
    cudnnTensorDescriptor_t given = NULL;
    size_t bytes = 0;
    if (!case_begin("transform/there_and_back/%d", turn)) return;
    s.direction = CUDNN_TRANSFORM_FOLD;
    s.before[2] = (int32_t)random_int(0, 2);
    s.after[1] = (int32_t)random_int(0, 2);
    s.after[2] = 4 - s.before[2] + turn % 2;
    s.after[3] = 2;
    transform_give_dims(&s);
    transform_describe(&c, &s, CUDNN_TENSOR_NHWC);
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
        int blocks = d > 1 ? transform_block(&s, d) : 1;
        int full =
            d == 1 ? transform_divide_up(s.dest[1], transform_blocks(&s)) : s.dest[d] * blocks;
        back.before[d] = -s.before[d];
        back.after[d] = s.src[d] - full + s.before[d];
        back.dest[d] = s.src[d];
    }
    transform_describe(&c, &back, CUDNN_TENSOR_NCHW);
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

int main(int argc, char **argv)
{
    const int count = TRANSFORM_TYPES;
    harness_start(argc, argv);
    for (int from = 0; from < count; ++from) {
        for (int to = 0; to < count; ++to) {
            int turns = from == to ? 24 : 4;
            for (int turn = 0; turn < turns; ++turn) random_case(from, to, turn);
        }
    }
    for (int type = 0; type < count; ++type) {
        if (transform_types[type].type == CUDNN_DATA_INT32) continue; /* filters have none */
        for (int turn = 0; turn < 12; ++turn) filter_case(type, turn);
    }
    for (int turn = 0; turn < 4; ++turn) there_and_back(turn);
    return harness_finish();
}
