/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms of packed tensors that change layout or type: planes turned, rows that stay, blocks folded
 * there and back, at every alignment; what goes where is told as in transform_test.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels_reached.h"
#include "transform_case.h"

/* Layouts changed, of packed tensors that begin some elements behind aligned memory. The dims of four
 * lie in an order, from the outermost; blocks are folded where `fold` says so. */
enum { NCHW = 123, NHWC = 231, HNCW = 2013, WCNH = 3102 };

struct turn {
    struct transform_call call;
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
    const struct transform_call *c = &t->call;
    double s[2];
    const void *alpha = transform_scalar(c->src->dtype, c->alpha, s);
    const void *beta = transform_scalar(c->src->dtype, c->beta, s + 1);
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
    struct transform_call *c = &t.call;
    struct transform_shape s = {.rank = 4, .direction = fold < 0};
    int stride[2][4];
    double *exact;
    double *magnitude;
    int count;
    if (!case_begin("turn/%s/%d,%d,%d,%d/%04d_to_%04d/fold%d/skip%d,%d/%g,%g",
                    transform_types[type].name, dim[0], dim[1], dim[2], dim[3], from, to, fold,
                    src_skip, dest_skip, alpha, beta)) {
        return;
    }
    s.direction = fold < 0 ? CUDNN_TRANSFORM_UNFOLD : CUDNN_TRANSFORM_FOLD;
    for (int d = 0; d < 4; ++d) s.src[d] = dim[d];
    for (int d = 0; d < 2; ++d) s.fold[d] = fold == 0 ? 1 : (uint32_t)(abs(fold) + d);
    transform_give_dims(&s);
    count = lay(s.src, from, stride[0]);
    if (lay(s.dest, to, stride[1]) != count) case_fail("blocks do not divide");
    t.plain = fold == 0 && from != HNCW && to != HNCW && random_chance(0.6);
    transform_describe(c, &s, CUDNN_TENSOR_NCHW);
    t.src_desc = packed(transform_types[type].type, s.src, stride[0]);
    t.dest_desc = packed(transform_types[type].type, s.dest, stride[1]);
    c->src = tensor_input(transform_types[type].type, 2, (const int[]){1, count + src_skip},
                          LAYOUT_NCHW, -9.0, 9.0);
    c->dest = tensor_inout(transform_types[type].type, 2, (const int[]){1, count + dest_skip},
                           LAYOUT_NCHW, -9.0, 9.0);
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
        transform_taken(&s, at, to_at);
        for (int d = 0; d < 4; ++d) {
            offset[0] += (int64_t)at[d] * stride[0][d];
            offset[1] += (int64_t)to_at[d] * stride[1][d];
        }
        value = alpha * c->src->value[offset[0]];
        old = beta * exact[offset[1]];
        exact[offset[1]] = value + old;
        if (!transform_is_float(transform_types[type].type)) {
            exact[offset[1]] = tensor_round(transform_types[type].type, exact[offset[1]]);
        }
        if (alpha != 1.0 || beta != 0.0) magnitude[offset[1]] = fabs(value) + fabs(old);
    }
    if (run_call(turn, &t)) {
        check_values("dest", c->dest, exact, NULL, magnitude,
                     transform_types[type].type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                                                                     : CUDNN_DATA_FLOAT);
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
        bool scales = transform_is_float(transform_types[type].type);
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

/* Large planes whose rows begin anywhere, in elements of 2 and 4 bytes: odd extents on either side and on
 * both, tiles that end with a plane and do not, from any element on. */
static void odd_planes(void)
{
    static const int planes[][4] = {
        {1, 130, 91, 93}, {2, 98, 75, 73}, {2, 101, 75, 70}, {12, 997, 10, 10}, {2, 1003, 25, 32}};
    static const int apart[4] = {2, 3, 2700, 7}; /* long planes of short rows that lie apart */
    enum { FP32 = 0, FP16 = 2, BF16 = 3 };
    for (int i = 0; i < 5; ++i) {
        turn_case(i % 2 ? FP32 : FP16, planes[i], NHWC, NCHW, 0, i % 3, i, 1.0, 0.0);
        turn_case(i % 2 ? BF16 : FP32, planes[i], NCHW, NHWC, 0, i, i % 3, 1.0, 0.0);
    }
    turn_case(FP16, apart, NHWC, WCNH, 0, 0, 0, 1.0, 0.0);
    turn_case(FP32, apart, NHWC, WCNH, 0, 1, 0, 1.0, 0.0);
    for (int i = 0; i < 3; ++i) {
        int dim[4] = {1, (int)random_int(33, 300), (int)random_int(9, 60), (int)random_int(11, 60)};
        dim[0] = (1 << 20) / (dim[1] * dim[2] * dim[3]) + 1;
        turn_case(random_of(FP32, FP16), dim, NHWC, random_of(NCHW, WCNH), 0, (int)random_int(0, 9),
                  (int)random_int(0, 9), 1.0, 0.0);
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
    if (!case_begin("convert/%s_to_%s/%d/skip%d,%d", transform_types[from].name,
                    transform_types[to].name, count, src_skip, dest_skip)) {
        return;
    }
    lay(dim, count % 2 ? NHWC : NCHW, stride);
    t.src_desc = packed(transform_types[from].type, dim, stride);
    t.dest_desc = packed(transform_types[to].type, dim, stride);
    t.call.src = tensor_input(transform_types[from].type, 2, (const int[]){1, count + src_skip},
                              LAYOUT_NCHW, -9.0, 9.0);
    t.call.dest = tensor_inout(transform_types[to].type, 2, (const int[]){1, count + dest_skip},
                               LAYOUT_NCHW, -9.0, 9.0);
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
    static const char *const kernels[] = {"wd_identity_sheared_2", "wd_identity_sheared_4",
                                          "wd_identity_little_2", "wd_identity_little_4",
                                          "wd_identity_little_8"};
    harness_start(argc, argv);
    turn_cases();
    odd_planes();
    convert_cases();
    if (argc == 1) kernels_reached(kernels, 5);
    return harness_finish();
}
