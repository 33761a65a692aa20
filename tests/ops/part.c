/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of tensors, see part.h. One thread. */
#include "part.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 16 };

static struct part parts[PARTS_MAX];
static int part_count;

static struct part *part_new(struct tensor *whole, int rank, const int *dim, const int *margin)
{
    struct part *p = &parts[part_count++];
    p->whole = whole;
    p->desc = whole->desc;
    p->rank = rank;
    p->front = 0;
    p->count = 1;
    p->placed = false;
    p->skip = 0;
    for (int d = 0; d < rank; ++d) {
        p->dim[d] = dim[d];
        p->count *= dim[d];
    }
    if (!margin) return p;
    cudnnCreateTensorDescriptor(&p->desc);
    if (cudnnSetTensorNdDescriptor(p->desc, whole->dtype, rank, dim, whole->stride) !=
        CUDNN_STATUS_SUCCESS) {
        case_fail("the descriptor of a part is refused");
    }
    return p;
}

static void whole_dims(int rank, const int *dim, const int *margin, int *whole)
{
    if (part_count == PARTS_MAX) abort();
    for (int d = 0; d < rank; ++d) whole[d] = dim[d] + (margin ? margin[d] : 0);
}

struct part *part_input(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                        const int *margin, double lowest, double highest)
{
    int whole[8];
    whole_dims(rank, dim, margin, whole);
    return part_new(tensor_input(dtype, rank, whole, layout, lowest, highest), rank, dim, margin);
}

struct part *part_output(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                         const int *margin, bool fresh)
{
    int whole[8];
    struct part *p;
    whole_dims(rank, dim, margin, whole);
    p = part_new(tensor_inout(dtype, rank, whole, layout, -4.0, 4.0), rank, dim, margin);
    if (!fresh) return p;
    for (int64_t i = 0; i < p->count; ++i) p->whole->value[part_index(p, i)] = NAN;
    tensor_write(p->whole);
    return p;
}

struct part *part_skipped(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                          int skip, bool output, double lowest, double highest)
{
    struct part *p;
    int whole[2] = {1, skip};
    int stride[8];
    int64_t count = 1;
    if (part_count == PARTS_MAX) abort();
    for (int i = 0; i < rank; ++i) {
        int d = rank - 1 - i;
        if (layout == LAYOUT_NHWC) d = i == 0 ? 1 : i == rank - 1 ? 0 : rank - i;
        stride[d] = (int)count;
        count *= dim[d];
    }
    whole[1] += (int)count;
    p = part_new(output ? tensor_inout(dtype, 2, whole, LAYOUT_NCHW, lowest, highest)
                        : tensor_input(dtype, 2, whole, LAYOUT_NCHW, lowest, highest),
                 rank, dim, NULL);
    p->placed = true;
    p->skip = skip;
    memcpy(p->stride, stride, sizeof stride);
    cudnnCreateTensorDescriptor(&p->desc);
    if (cudnnSetTensorNdDescriptor(p->desc, dtype, rank, dim, stride) != CUDNN_STATUS_SUCCESS) {
        case_fail("the descriptor of a part is refused");
    }
    return p;
}

void parts_free(void)
{
    for (int i = 0; i < part_count; ++i) {
        if (parts[i].desc != parts[i].whole->desc) cudnnDestroyTensorDescriptor(parts[i].desc);
    }
    part_count = 0;
}

void part_coordinates(const struct part *p, int64_t logical, int *at)
{
    for (int d = p->rank - 1; d >= 0; --d) {
        at[d] = (int)(logical % p->dim[d]);
        logical /= p->dim[d];
    }
}

int64_t part_at(const struct part *p, const int *at)
{
    int64_t index = p->skip;
    int moved[8];
    for (int d = 0; p->placed && d < p->rank; ++d) index += (int64_t)at[d] * p->stride[d];
    if (p->placed) return index;
    memcpy(moved, at, (size_t)p->rank * sizeof *at);
    moved[0] += p->front;
    return logical_index(p->whole, moved);
}

void part_move(struct part *p)
{
    p->front = 1;
}

void *part_data(const struct part *p)
{
    const int type = p->whole->dtype;
    const size_t size = type == CUDNN_DATA_DOUBLE                                ? 8
                        : type == CUDNN_DATA_FLOAT                               ? 4
                        : type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2
                                                                                 : 1;
    const size_t before = p->front > 0 ? (size_t)p->front * (size_t)p->whole->stride[0] : 0;
    return (char *)p->whole->data + (before + (size_t)p->skip) * size;
}

int64_t part_index(const struct part *p, int64_t logical)
{
    int at[8];
    part_coordinates(p, logical, at);
    return part_at(p, at);
}

double *part_expected(const struct part *p)
{
    double *values = malloc((size_t)p->whole->count * sizeof *values);
    memcpy(values, p->whole->value, (size_t)p->whole->count * sizeof *values);
    return values;
}

const void *api_scalar(cudnnDataType_t dtype, double value, double *storage)
{
    if (dtype == CUDNN_DATA_DOUBLE) *storage = value;
    else *(float *)storage = (float)value;
    return storage;
}

const int *random_margin(int rank, int *margin)
{
    if (random_chance(0.6)) return NULL;
    for (int d = 0; d < rank; ++d) margin[d] = (int)random_int(0, 2);
    return margin;
}
