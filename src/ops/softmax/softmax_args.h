/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the softmax passes, shared by host and device, and what a row is. */
#ifndef WD_OPS_SOFTMAX_ARGS_H
#define WD_OPS_SOFTMAX_ARGS_H

#include "base/view.h"
#include "graph/attr.h"

struct softmax_args {
    struct wd_view x;  /* forward */
    struct wd_view y;  /* forward: output; backward: input */
    struct wd_view dy; /* backward */
    struct wd_view dx; /* backward */
    double alpha;
    double beta;
    double
        *stats; /* of the reductions, two a row: maximum and sum; backward: the sum in the first */
    struct wd_softmax_attr attr;
};

/* How many elements a row has: the channels, or everything but the batch. */
WD_FN int64_t softmax_length(int mode, const int64_t *dim, int rank)
{
    int64_t length = 1;
    if (mode == CUDNN_SOFTMAX_MODE_CHANNEL) return dim[1];
    for (int d = 1; d < rank; ++d) length *= dim[d];
    return length;
}

/* Coordinates of element k of a row. */
WD_FN void softmax_at(int mode, const struct wd_view *v, int64_t row, int64_t k, int64_t *at)
{
    if (mode == CUDNN_SOFTMAX_MODE_CHANNEL) {
        for (int d = v->rank - 1; d >= 2; --d) {
            at[d] = row % v->dim[d];
            row /= v->dim[d];
        }
        at[1] = k;
        at[0] = row;
    } else {
        wd_unravel(v->dim + 1, v->rank - 1, k, at + 1);
        at[0] = row;
    }
}

/* The row of an element. */
WD_FN int64_t softmax_row(int mode, const struct wd_view *v, const int64_t *at)
{
    int64_t row = at[0];
    if (mode == CUDNN_SOFTMAX_MODE_CHANNEL) {
        for (int d = 2; d < v->rank; ++d) row = row * v->dim[d] + at[d];
    }
    return row;
}

#endif
