/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the convolution passes, and the index arithmetic that does not depend on the
 * accumulator; shared by host and device. Every convolution is brought to three spatial dimensions
 * here: those that it lacks have extent 1. The three directions use the same names: x is the image
 * (or its gradient), w the filter, y the output image. */
#ifndef WD_OPS_CONV_ARGS_H
#define WD_OPS_CONV_ARGS_H

#include "base/view.h"
#include "graph/attr.h"

enum { CONV_SPATIAL = 3 };

/* A tensor [N or K, C, 3 spatial]; strides in lanes. */
struct conv_view {
    void *data;
    int64_t outer;   /* stride of n, or of k in a filter */
    int64_t channel; /* stride of one vector of channels */
    int64_t space[CONV_SPATIAL];
    int32_t dtype;
    int32_t lanes;     /* channels in a vector, 1 where not vectorised */
    int32_t reordered; /* filter and bias in the order of cudnnReorderFilterAndBias */
    int32_t unused;
};

struct conv_args {
    struct conv_view x;
    struct conv_view w;
    struct conv_view y;
    struct conv_view z; /* fused: residual */
    struct conv_view b; /* fused and bias gradient: one value a filter */
    int64_t batch;
    int64_t groups;
    int64_t group_channels; /* C / G */
    int64_t group_filters;  /* K / G */
    int64_t image[CONV_SPATIAL];
    int64_t filter[CONV_SPATIAL];
    int64_t output[CONV_SPATIAL];
    int64_t pad[CONV_SPATIAL];
    int64_t stride[CONV_SPATIAL];
    int64_t dilation[CONV_SPATIAL];
    int64_t products; /* in the sum of one item */
    int64_t chunk;    /* of which one term of the reduction does so many */
    double alpha;
    double beta;  /* fused: alpha2 */
    int32_t flip; /* CUDNN_CONVOLUTION: taps are counted from the far end */
    int32_t has_z;
    int32_t wraps; /* int32 output of bytes and whole scalars: computed modulo 2^32 */
    int32_t unused;
    struct wd_pointwise_attr activation;
};

/* Takes the last digit off a mixed-radix number. Almost all numbers here fit 32 bits, and a GPU
 * divides those several times faster. */
WD_FN int64_t conv_digit(int64_t *number, int64_t radix)
{
    int64_t rest = *number;
    int64_t digit;
    if ((((uint64_t)rest | (uint64_t)radix) >> 32) == 0) {
        uint32_t quotient = (uint32_t)rest / (uint32_t)radix;
        digit = (int64_t)((uint32_t)rest - quotient * (uint32_t)radix);
        *number = (int64_t)quotient;
    } else {
        digit = rest % radix;
        *number = rest / radix;
    }
    return digit;
}

/* alpha * sum + beta * old in the arithmetic of int32, exact even where a product has 62 bits. */
WD_FN void conv_store_int32(const struct conv_args *a, const struct conv_view *v, int64_t offset,
                            int64_t sum)
{
    uint32_t *to = (uint32_t *)v->data + offset;
    uint32_t value = (uint32_t)(int64_t)a->alpha * (uint32_t)sum;
    if (a->beta != 0.0) value += (uint32_t)(int64_t)a->beta * *to;
    *to = value;
}

/* Takes three spatial coordinates off a number. */
WD_OUTLINE void conv_point(int64_t *number, const int64_t *extent, int64_t *at)
{
    at[2] = conv_digit(number, extent[2]);
    at[1] = conv_digit(number, extent[1]);
    at[0] = conv_digit(number, extent[0]);
}

/* The next point in row-major order; 1 where it starts over. */
WD_FN int conv_next(const int64_t *extent, int64_t *at)
{
    if (++at[2] < extent[2]) return 0;
    at[2] = 0;
    if (++at[1] < extent[1]) return 0;
    at[1] = 0;
    if (++at[0] < extent[0]) return 0;
    at[0] = 0;
    return 1;
}

WD_FN int64_t conv_offset(const struct conv_view *v, int64_t outer, int64_t channel,
                          const int64_t *at)
{
    int64_t offset =
        outer * v->outer + at[0] * v->space[0] + at[1] * v->space[1] + at[2] * v->space[2];
    if (v->lanes == 1) return offset + channel * v->channel;
    return offset + channel / v->lanes * v->channel + channel % v->lanes;
}

/* Where cudnnReorderFilterAndBias puts filter k, channel c of an int8x32 filter: eight filters lie
 * together, dealt so that one 32-byte row holds four channels of eight of them. The order is
 * [C/32][R][S][K/8][k%2][c/4%8][k/2%4][c%4]; `filters` is K. */
WD_OUTLINE int64_t conv_reordered_offset(const int64_t *extent, int64_t filters, int64_t k,
                                         int64_t c, const int64_t *at)
{
    int64_t row = ((c / 32 * extent[0] + at[0]) * extent[1] + at[1]) * extent[2] + at[2];
    row = (row * (filters / 8) + k / 8) * 2 + k % 2;
    return ((row * 8 + c / 4 % 8) * 4 + k / 2 % 4) * 4 + c % 4;
}

/* The same for the bias of filter k: within 32 filters [k/4%2][k/8%4][k%4]. */
WD_OUTLINE int64_t conv_reordered_bias(int64_t k)
{
    return k / 32 * 32 + k / 4 % 2 * 16 + k / 8 % 4 * 4 + k % 4;
}

WD_FN int64_t conv_filter_offset(const struct conv_args *a, int64_t k, int64_t c,
                                 const int64_t *tap)
{
    if (!a->w.reordered) return conv_offset(&a->w, k, c, tap);
    return conv_reordered_offset(a->filter, a->groups * a->group_filters, k, c, tap);
}

WD_FN int64_t conv_bias_offset(const struct conv_args *a, int64_t k)
{
    const int64_t origin[CONV_SPATIAL] = {0, 0, 0};
    return conv_offset(&a->b, 0, a->b.reordered ? conv_reordered_bias(k) : k, origin);
}

/* Distance of a tap from the first pixel under the filter, along dimension d. */
WD_FN int64_t conv_reach(const struct conv_args *a, const int64_t *tap, int d)
{
    return (a->flip ? a->filter[d] - 1 - tap[d] : tap[d]) * a->dilation[d];
}

/* The pixel that output point `out` sees through `tap`; 0 where it lies in the padding. */
WD_FN int conv_pixel(const struct conv_args *a, const int64_t *out, const int64_t *tap,
                     int64_t *pixel)
{
    int inside = 1;
    for (int d = 0; d < CONV_SPATIAL; ++d) {
        pixel[d] = out[d] * a->stride[d] - a->pad[d] + conv_reach(a, tap, d);
        inside &= pixel[d] >= 0 && pixel[d] < a->image[d];
    }
    return inside;
}

/* The output point that sees `pixel` through `tap`; 0 where there is none. */
WD_FN int conv_seen_from(const struct conv_args *a, const int64_t *pixel, const int64_t *tap,
                         int64_t *out)
{
    for (int d = 0; d < CONV_SPATIAL; ++d) {
        int64_t from = pixel[d] + a->pad[d] - conv_reach(a, tap, d);
        if (from < 0) return 0;
        if (a->stride[d] != 1 && conv_digit(&from, a->stride[d]) != 0) return 0;
        if (from >= a->output[d]) return 0;
        out[d] = from;
    }
    return 1;
}

#endif
