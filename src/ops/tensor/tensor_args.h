/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the passes, shared by host and device, where an element of a transform comes from, and
 * how one element moves, which need no accumulator. */
#ifndef WD_OPS_TENSOR_ARGS_H
#define WD_OPS_TENSOR_ARGS_H

#include "base/view.h"
#include "graph/attr.h"

struct transform_args {
    struct wd_view src;
    struct wd_view dest;
    double alpha;
    double beta;
    int32_t order[WD_MAX_RANK]; /* of the destination's dimensions in memory */
    struct wd_transform_attr attr;
};

/* Concatenation of one input, and reshape. */
struct move_args {
    struct wd_view x;
    struct wd_view y;
    int64_t first; /* where x begins along the axis of y */
    int32_t axis;
    int32_t same;                 /* x and y have one type: bits are copied */
    int32_t per_item;             /* elements of y in a byte, of types below a byte; else 1 */
    int32_t order_x[WD_MAX_RANK]; /* of the dimensions in memory */
    int32_t order_y[WD_MAX_RANK];
    int32_t unused;
};

/* One element, offsets in elements: its bits where the types are the same, else its value. */
WD_FN void move_element(const struct move_args *a, int64_t from, int64_t to)
{
    const void *x = a->x.data;
    void *y = a->y.data;
    const int bits = wd_dtype_bits(a->y.dtype);
    if (!a->same) {
        wd_store_f64(y, a->y.dtype, to, wd_load_f64(x, a->x.dtype, from));
        return;
    }
    switch (bits) {
    case 128:
        ((uint64_t *)y)[2 * to + 1] = ((const uint64_t *)x)[2 * from + 1];
        ((uint64_t *)y)[2 * to] = ((const uint64_t *)x)[2 * from];
        return;
    case 64: ((uint64_t *)y)[to] = ((const uint64_t *)x)[from]; return;
    case 32: ((uint32_t *)y)[to] = ((const uint32_t *)x)[from]; return;
    case 16: ((uint16_t *)y)[to] = ((const uint16_t *)x)[from]; return;
    case 8: ((uint8_t *)y)[to] = ((const uint8_t *)x)[from]; return;
    default: {
        const int in_byte = 8 / bits;
        const uint32_t byte = ((const uint8_t *)x)[from / in_byte];
        wd_store_bits(y, to, bits, byte >> (from % in_byte * bits) & ((1u << bits) - 1u));
    }
    }
}

/* Channels of one phase of a block: of the tensor that is not folded. */
WD_FN int64_t transform_channels(const struct transform_args *a)
{
    return a->attr.direction == CUDNN_TRANSFORM_FOLD ? a->src.dim[1] : a->dest.dim[1];
}

/* Channels before the first phase in the folded tensor; negative where they are cut off. */
WD_FN int64_t transform_front(const struct transform_args *a)
{
    int64_t front = a->attr.before[1];
    for (int d = 2; d < a->src.rank; ++d) front *= a->attr.fold[d - 2];
    return front;
}

/* The source's element that goes to the destination's at `to`; 0 where that is padding. Folding, the
 * channels of the first element of a block come first, then those of the second; the last dimension
 * runs fastest through a block. */
WD_FN int transform_source(const struct transform_args *a, const int64_t *to, int64_t *from)
{
    const struct wd_transform_attr *p = &a->attr;
    const int rank = a->src.rank;
    int64_t channels = transform_channels(a);
    for (int d = 0; d < rank; ++d) from[d] = to[d] - (d == 1 ? transform_front(a) : 0);
    if (p->direction == CUDNN_TRANSFORM_FOLD) {
        int64_t phase = from[1] / channels;
        if (from[1] < 0) return 0;
        from[1] %= channels;
        for (int d = rank - 1; d >= 2; --d) {
            from[d] = to[d] * p->fold[d - 2] + phase % p->fold[d - 2];
            phase /= p->fold[d - 2];
        }
        if (phase > 0) return 0;
        for (int d = 0; d < rank; ++d) {
            if (d == 1) continue;
            if (from[d] >= a->src.dim[d] + p->before[d] + p->after[d]) return 0;
            from[d] -= p->before[d];
        }
    } else {
        int64_t phase = 0;
        for (int d = 0; d < rank; ++d) {
            if (d == 1) continue;
            from[d] -= p->before[d];
            if (from[d] < 0) return 0;
        }
        for (int d = 2; d < rank; ++d) {
            phase = phase * p->fold[d - 2] + from[d] % p->fold[d - 2];
            from[d] /= p->fold[d - 2];
        }
        from[1] += phase * channels;
    }
    for (int d = 0; d < rank; ++d) {
        if (from[d] < 0 || from[d] >= a->src.dim[d]) return 0;
    }
    return 1;
}

#endif
