/* SPDX-License-Identifier: Apache-2.0
 *
 * A view: a tensor as definitions and kernels see it, plain data that travels in kernel arguments.
 * dims are logical; strides count addressable units (a vectorised tensor packs `vect_count` lanes
 * of dimension `vect_dim` into one unit). A view without data is a scalar carried by value. */
#ifndef WD_BASE_VIEW_H
#define WD_BASE_VIEW_H

#include "base/dtype.h"

struct wd_view {
    void *data;
    double value; /* what every element reads as, where data is null */
    int64_t dim[WD_MAX_RANK];
    int64_t stride[WD_MAX_RANK];
    int32_t dtype; /* of one lane */
    int32_t rank;
    int32_t vect_count; /* 1 when not vectorised */
    int32_t vect_dim;
};

WD_FN int64_t wd_view_count(const struct wd_view *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->rank; ++d) n *= v->dim[d];
    return n;
}

/* Index of the element at logical coordinates `at`, in elements of one lane. */
WD_OUTLINE int64_t wd_view_offset(const struct wd_view *v, const int64_t *at)
{
    int64_t offset = 0;
    if (v->vect_count == 1) {
        for (int d = 0; d < v->rank; ++d) offset += at[d] * v->stride[d];
        return offset;
    }
    for (int d = 0; d < v->rank; ++d) {
        offset += (d == v->vect_dim ? at[d] / v->vect_count : at[d]) * v->stride[d];
    }
    return offset * v->vect_count + at[v->vect_dim] % v->vect_count;
}

/* The same where a dimension of extent 1 repeats along the iterated shape. */
WD_OUTLINE int64_t wd_view_broadcast_offset(const struct wd_view *v, const int64_t *at)
{
    int64_t own[WD_MAX_RANK];
    for (int d = 0; d < v->rank; ++d) own[d] = v->dim[d] == 1 ? 0 : at[d];
    return wd_view_offset(v, own);
}

/* Logical coordinates of linear index i, the last dimension fastest. */
WD_OUTLINE void wd_unravel(const int64_t *dim, int rank, int64_t i, int64_t *at)
{
    for (int d = rank - 1; d >= 0; --d) {
        at[d] = i % dim[d];
        i /= dim[d];
    }
}

/* The order of a view's dimensions by falling stride: unravelled along it, neighbouring indices are
 * neighbours in memory, and of a packed view the index is the offset. */
WD_FN void wd_view_order(const struct wd_view *v, int32_t *order)
{
    for (int d = 0; d < v->rank; ++d) {
        int at = d;
        for (; at > 0 && v->stride[order[at - 1]] < v->stride[d]; --at) order[at] = order[at - 1];
        order[at] = d;
    }
}

WD_OUTLINE void wd_unravel_along(const int32_t *order, const int64_t *dim, int rank, int64_t i,
                                 int64_t *at)
{
    for (int k = rank - 1; k >= 0; --k) {
        at[order[k]] = i % dim[order[k]];
        i /= dim[order[k]];
    }
}

WD_OUTLINE float wd_view_load_f32(const struct wd_view *v, int64_t offset)
{
    return v->data ? wd_load_f32(v->data, v->dtype, offset) : (float)v->value;
}

WD_OUTLINE double wd_view_load_f64(const struct wd_view *v, int64_t offset)
{
    return v->data ? wd_load_f64(v->data, v->dtype, offset) : v->value;
}

WD_OUTLINE void wd_view_store_f32(const struct wd_view *v, int64_t offset, float value)
{
    wd_store_f32(v->data, v->dtype, offset, value);
}

WD_OUTLINE void wd_view_store_f64(const struct wd_view *v, int64_t offset, double value)
{
    wd_store_f64(v->data, v->dtype, offset, value);
}

/* alpha * value + beta * old. With beta 0 the old value is not read, and with alpha 0 the new one
 * does not count, so that garbage and NaN do not reach the result through a factor of 0. */
WD_OUTLINE void wd_view_blend_f32(const struct wd_view *v, int64_t offset, float value,
                                  double alpha, double beta)
{
    float result = alpha != 0.0 ? (float)alpha * value : 0.0f;
    if (beta != 0.0) result += (float)beta * wd_view_load_f32(v, offset);
    wd_view_store_f32(v, offset, result);
}

WD_OUTLINE void wd_view_blend_f64(const struct wd_view *v, int64_t offset, double value,
                                  double alpha, double beta)
{
    double result = alpha != 0.0 ? alpha * value : 0.0;
    if (beta != 0.0) result += beta * wd_view_load_f64(v, offset);
    wd_view_store_f64(v, offset, result);
}

#endif
