/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms, see transform_case.h. One thread. */
#include "transform_case.h"

#include <string.h>

const struct transform_type transform_types[TRANSFORM_TYPES] = {
    {"fp32", CUDNN_DATA_FLOAT, 1},      {"fp64", CUDNN_DATA_DOUBLE, 1},
    {"fp16", CUDNN_DATA_HALF, 1},       {"bf16", CUDNN_DATA_BFLOAT16, 1},
    {"int8", CUDNN_DATA_INT8, 1},       {"int32", CUDNN_DATA_INT32, 1},
    {"int8x4", CUDNN_DATA_INT8x4, 4},   {"uint8", CUDNN_DATA_UINT8, 1},
    {"uint8x4", CUDNN_DATA_UINT8x4, 4}, {"int8x32", CUDNN_DATA_INT8x32, 32}};

bool transform_is_float(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
           type == CUDNN_DATA_BFLOAT16;
}

const void *transform_scalar(cudnnDataType_t dtype, double value, double *storage)
{
    if (dtype == CUDNN_DATA_DOUBLE) *storage = value;
    else *(float *)storage = (float)value;
    return storage;
}

int transform_block(const struct transform_shape *s, int d)
{
    return s->fold[d - 2] > 1 ? (int)s->fold[d - 2] : 1;
}

int transform_blocks(const struct transform_shape *s)
{
    int blocks = 1;
    for (int d = 2; d < s->rank; ++d) blocks *= transform_block(s, d);
    return blocks;
}

int transform_divide_up(int value, int by)
{
    return (value + by - 1) / by;
}

void transform_give_dims(struct transform_shape *s)
{
    bool folds = s->direction == CUDNN_TRANSFORM_FOLD;
    for (int d = 0; d < s->rank; ++d) {
        int extent = s->src[d];
        if (folds) extent += s->before[d] + s->after[d];
        if (d == 1 && folds) extent *= transform_blocks(s);
        if (d == 1 && !folds) extent = transform_divide_up(extent, transform_blocks(s));
        if (d > 1 && folds) extent = transform_divide_up(extent, transform_block(s, d));
        if (d > 1 && !folds) extent *= transform_block(s, d);
        if (!folds) extent += s->before[d] + s->after[d];
        s->dest[d] = extent;
    }
}

bool transform_taken(const struct transform_shape *s, const int *at, int *to)
{
    int phase = 0, front = s->before[1] * transform_blocks(s);
    memcpy(to, at, sizeof *to * (size_t)s->rank);
    if (s->direction == CUDNN_TRANSFORM_FOLD) {
        for (int d = 0; d < s->rank; ++d) {
            if (d == 1) continue;
            to[d] += s->before[d];
            if (to[d] < 0 || to[d] >= s->src[d] + s->before[d] + s->after[d]) return false;
        }
        for (int d = 2; d < s->rank; ++d) {
            phase = phase * transform_block(s, d) + to[d] % transform_block(s, d);
            to[d] /= transform_block(s, d);
        }
        to[1] += phase * s->src[1] + front;
        return to[1] >= 0 && to[1] < s->dest[1];
    }
    if (at[1] + front < 0) return false;
    phase = (at[1] + front) / s->dest[1];
    to[1] = (at[1] + front) % s->dest[1];
    if (phase >= transform_blocks(s)) return false;
    for (int d = s->rank - 1; d >= 2; --d) {
        to[d] = at[d] * transform_block(s, d) + phase % transform_block(s, d);
        phase /= transform_block(s, d);
    }
    for (int d = 0; d < s->rank; ++d) {
        if (d == 1) continue;
        to[d] += s->before[d];
        if (to[d] < 0 || to[d] >= s->dest[d]) return false;
    }
    return true;
}

void transform_describe(struct transform_call *c, const struct transform_shape *s, int format)
{
    cudnnCreateTensorTransformDescriptor(&c->how);
    if (cudnnSetTensorTransformDescriptor(
            c->how, (uint32_t)s->rank, (cudnnTensorFormat_t)format, s->before, s->after, s->fold,
            (cudnnFoldingDirection_t)s->direction) != CUDNN_STATUS_SUCCESS) {
        case_fail("the descriptor is refused");
    }
}
