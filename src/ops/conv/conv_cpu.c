/* SPDX-License-Identifier: Apache-2.0
 *
 * What the convolution engines of the CPU module share: reading a problem, and the arithmetic of
 * strides and taps. Pure functions. */
#include "ops/conv/conv_cpu.h"

#include <string.h>

#include "cpu/module/blas.h"
#include "cpu/module/rows.h"

/* Slots by their part in each operation; -1 where there is none. */
struct roles {
    int x, w, y, z, b;
};

static struct roles roles_of(enum wd_op op)
{
    switch (op) {
    case WD_OP_CONV_DGRAD: return (struct roles){.w = 0, .y = 1, .x = 2, .z = -1, .b = -1};
    case WD_OP_CONV_WGRAD: return (struct roles){.x = 0, .y = 1, .w = 2, .z = -1, .b = -1};
    case WD_OP_CONV_FUSED: return (struct roles){.x = 0, .w = 1, .z = 2, .b = 3, .y = 4};
    default: return (struct roles){.x = 0, .w = 1, .y = 2, .z = -1, .b = -1};
    }
}

static const struct wd_tensor *tensor_of(const struct wd_problem *problem, int slot)
{
    return slot < 0 ? NULL : wd_slot(problem->graph, problem->node, slot);
}

bool wd_conv_cpu_match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_conv_attr *attr = &problem->node->attr.conv;
    const struct wd_op_info *info = wd_op_info(problem->node->op);
    const char *why;
    WD_NEED(wd_blas_ready(&why), reason, NOT_SUPPORTED, "no OpenBLAS: %.120s", why);
    WD_NEED(attr->spatial >= 1 && attr->spatial <= WD_CONV_SPATIAL, reason, NOT_SUPPORTED_SHAPE,
            "%d spatial dimensions", attr->spatial);
    WD_NEED(problem->node->op != WD_OP_CONV_FPROP ||
                wd_slot(problem->graph, problem->node, 2)->dtype != CUDNN_DATA_INT32,
            reason, NOT_SUPPORTED_DATA_TYPE,
            "tensor y is int32, whose sums wrap around: the definition does that");
    for (int s = 0; s < info->slot_count; ++s) {
        const struct wd_tensor *tensor = tensor_of(problem, s);
        char name[24];
        if (!tensor) continue;
        wd_op_slot_name(problem->node->op, s, name);
        WD_NEED(!(tensor->flags & (WD_BY_VALUE | WD_OPAQUE)), reason, NOT_SUPPORTED,
                "tensor %s is by value or opaque", name);
        WD_NEED(wd_row_takes(tensor->dtype), reason, NOT_SUPPORTED_DATA_TYPE,
                "tensor %s is %s, whose elements are no whole bytes", name,
                wd_dtype_name(tensor->dtype));
        WD_NEED(tensor->reordering == CUDNN_TENSOR_REORDERING_NONE, reason, NOT_SUPPORTED_LAYOUT,
                "tensor %s is reordered (%d)", name, tensor->reordering);
        WD_NEED(wd_tensor_count(tensor) > 0, reason, NOT_SUPPORTED_SHAPE, "tensor %s is empty",
                name);
    }
    return true;
}

static void read_image(const struct wd_tensor *tensor, struct wd_conv_image *image)
{
    int missing;
    int bits;
    if (!tensor) return;
    missing = WD_CONV_SPATIAL - (tensor->rank - 2);
    image->dtype = tensor->dtype;
    image->lanes = tensor->vect_count;
    image->outer = tensor->stride[0] * tensor->vect_count;
    image->channel = tensor->stride[1] * tensor->vect_count;
    bits = wd_dtype_bits(tensor->dtype);
    image->elements = bits > 0 ? wd_tensor_extent(tensor) * 8 / bits : 0;
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        bool own = d >= missing;
        image->extent[d] = own ? tensor->dim[2 + d - missing] : 1;
        image->space[d] = own ? tensor->stride[2 + d - missing] * tensor->vect_count : 0;
    }
}

void wd_conv_cpu_of(const struct wd_problem *problem, struct wd_conv_cpu *conv)
{
    const struct wd_conv_attr *attr = &problem->node->attr.conv;
    struct roles roles = roles_of(problem->node->op);
    const struct wd_tensor *x = tensor_of(problem, roles.x);
    const struct wd_tensor *w = tensor_of(problem, roles.w);
    const struct wd_tensor *y = tensor_of(problem, roles.y);
    int missing = WD_CONV_SPATIAL - attr->spatial;
    memset(conv, 0, sizeof *conv);
    read_image(x, &conv->x);
    read_image(w, &conv->w);
    read_image(y, &conv->y);
    read_image(tensor_of(problem, roles.z), &conv->z);
    read_image(tensor_of(problem, roles.b), &conv->b);
    conv->batch = y->dim[0];
    conv->groups = attr->groups > 0 ? attr->groups : 1;
    conv->c = w->dim[1];
    conv->k = w->dim[0] / conv->groups;
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        bool own = d >= missing;
        conv->pad[d] = own ? attr->pad_before[d - missing] : 0;
        conv->stride[d] = own ? attr->stride[d - missing] : 1;
        conv->dilation[d] = own ? attr->dilation[d - missing] : 1;
    }
    conv->activation = attr->activation;
    conv->flip = attr->mode == CUDNN_CONVOLUTION;
    conv->fused = problem->node->op == WD_OP_CONV_FUSED;
    conv->has_z = tensor_of(problem, roles.z) != NULL;
    /* integers are summed exactly, as the definition does */
    conv->wide = attr->compute == CUDNN_DATA_DOUBLE || wd_dtype_is_integer(x->dtype) ||
                 wd_problem_acc(problem) == WD_ACC_F64;
}

static bool is_int32(double scalar)
{
    return scalar >= INT32_MIN && scalar <= INT32_MAX && scalar == (double)(int32_t)scalar;
}

void wd_conv_cpu_bind(const struct wd_call *call, struct wd_conv_cpu *conv)
{
    struct roles roles = roles_of(call->problem.node->op);
    conv->x.data = wd_call_data(call, roles.x);
    conv->w.data = wd_call_data(call, roles.w);
    conv->y.data = wd_call_data(call, roles.y);
    if (roles.z >= 0) conv->z.data = wd_call_data(call, roles.z);
    if (roles.b >= 0) conv->b.data = wd_call_data(call, roles.b);
    conv->alpha = call->scalars[0];
    conv->beta = call->scalars[1];
    conv->wraps = call->problem.node->op == WD_OP_CONV_FPROP &&
                  (conv->x.dtype == CUDNN_DATA_INT8 || conv->x.dtype == CUDNN_DATA_UINT8) &&
                  conv->w.dtype == CUDNN_DATA_INT8 && conv->y.dtype == CUDNN_DATA_INT32 &&
                  is_int32(conv->alpha) && is_int32(conv->beta);
}

bool wd_conv_flat(const struct wd_conv_image *image, int64_t batch, int64_t *pixel, bool *whole)
{
    int64_t points = 0;
    *pixel = 1;
    *whole = batch == 1;
    for (int d = WD_CONV_SPATIAL - 1; d >= 0; --d) {
        if (image->extent[d] == 1) continue;
        if (points == 0) *pixel = image->space[d];
        else if (image->space[d] != points * *pixel) return false;
        points = (points == 0 ? 1 : points) * image->extent[d];
    }
    if (points == 0) {
        /* one point an image: the images themselves follow each other */
        *pixel = batch == 1 ? 1 : image->outer;
        *whole = true;
    } else if (image->outer == points * *pixel) {
        *whole = true;
    }
    return true;
}

bool wd_conv_is_pointwise(const struct wd_conv_cpu *conv)
{
    for (int d = 0; d < WD_CONV_SPATIAL; ++d) {
        if (conv->w.extent[d] != 1 || conv->stride[d] != 1 || conv->pad[d] != 0) return false;
        if (conv->x.extent[d] != conv->y.extent[d]) return false;
    }
    return true;
}

bool wd_conv_filter_lies(const struct wd_conv_cpu *conv, int dtype, bool pixels)
{
    const struct wd_conv_image *w = &conv->w;
    int64_t taps = wd_conv_points(w->extent);
    int64_t tap;
    bool whole;
    if (w->dtype != dtype || w->lanes != 1) return false;
    if (taps == 1) return wd_blas_takes(conv->k, conv->c, w->outer, w->channel);
    if (!wd_conv_flat(w, 1, &tap, &whole)) return false;
    if (pixels ? w->channel != 1 || tap != conv->c : tap != 1 || w->channel != taps) return false;
    return wd_blas_takes(conv->k, conv->c * taps, w->outer, 1);
}

void wd_conv_fold(struct wd_conv_cpu *conv, int64_t x_stride, int64_t y_stride)
{
    int last = WD_CONV_SPATIAL - 1;
    int64_t points = conv->batch * wd_conv_points(conv->x.extent);
    for (int d = 0; d < last; ++d) conv->x.extent[d] = conv->y.extent[d] = 1;
    conv->x.extent[last] = conv->y.extent[last] = points;
    conv->x.space[last] = x_stride;
    conv->y.space[last] = y_stride;
    conv->batch = 1;
}

struct wd_matrix wd_conv_image_matrix(const struct wd_conv_image *image, int64_t size,
                                      int64_t stride, const struct wd_conv_panel *panel,
                                      int64_t channel)
{
    int64_t at = panel->image * image->outer + channel * image->channel + panel->first * stride;
    return (struct wd_matrix){(const char *)image->data + at * size, image->channel, stride};
}

struct wd_conv_axis wd_conv_axis_forward(const struct wd_conv_cpu *conv, int d)
{
    int64_t taps = conv->w.extent[d];
    return (struct wd_conv_axis){
        .points = conv->y.extent[d],
        .step = conv->stride[d],
        .taps = taps,
        .offset = (conv->flip ? conv->dilation[d] * (taps - 1) : 0) - conv->pad[d],
        .offset_step = conv->flip ? -conv->dilation[d] : conv->dilation[d],
        .tap_first = 0,
        .tap_step = 1,
        .to_step = 1,
        .to_first = 0,
    };
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Pixel h = stride i + phase is seen through tap t by output o = (h + pad - dilation t) / stride where
 * that divides: by every stride / gcd(stride, dilation)-th tap. */
struct wd_conv_axis wd_conv_axis_backward(const struct wd_conv_cpu *conv, int d, int64_t phase)
{
    int64_t taps = conv->w.extent[d];
    int64_t stride = conv->stride[d];
    int64_t period = stride / common_divisor(stride, conv->dilation[d]);
    struct wd_conv_axis axis = {
        .points = (conv->x.extent[d] - phase + stride - 1) / stride,
        .step = 1,
        .tap_step = period,
        .to_step = stride,
        .to_first = phase,
    };
    for (int64_t t = 0; t < period && t < taps; ++t) {
        int64_t reach = conv->dilation[d] * (conv->flip ? taps - 1 - t : t);
        int64_t from = phase + conv->pad[d] - reach;
        if (from % stride != 0) continue;
        axis.taps = (taps - t + period - 1) / period;
        axis.tap_first = t;
        axis.offset = from / stride;
        axis.offset_step = conv->dilation[d] * period / stride * (conv->flip ? 1 : -1);
        break;
    }
    return axis;
}
