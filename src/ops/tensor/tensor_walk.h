/* SPDX-License-Identifier: Apache-2.0
 *
 * Two tensors walked together: their dims in the order of one's memory, as few as they can be made.
 * What engines that move elements share; plain functions of shapes. */
#ifndef WD_OPS_TENSOR_WALK_H
#define WD_OPS_TENSOR_WALK_H

#include "graph/graph.h"

enum { WD_WALK_MAX = 2 * WD_MAX_RANK }; /* dims, where blocks are folded */

/* Dims by falling stride of y, neighbours of one stride made one; strides in x and in y. */
struct wd_walk {
    int rank;
    int64_t dim[WD_WALK_MAX];
    int64_t x[WD_WALK_MAX];
    int64_t y[WD_WALK_MAX];
    int64_t count;
};

/* Another dim, behind those of the same stride; one of a single element is left out. */
void wd_walk_add(struct wd_walk *w, int64_t dim, int64_t x, int64_t y);

/* When all are there: joins neighbours and counts. At least one dim remains. */
void wd_walk_join(struct wd_walk *w);

/* Of tensors of the same dims. */
struct wd_walk wd_walk_of(const struct wd_tensor *x, const struct wd_tensor *y);

/* The dim along which x has neighbours; -1: none. */
int wd_walk_neighbours(const struct wd_walk *w);

#endif
