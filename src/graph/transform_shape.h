/* SPDX-License-Identifier: Apache-2.0
 *
 * What a transform makes of dims, for the rule and the entry points alike. */
#ifndef WD_GRAPH_TRANSFORM_SHAPE_H
#define WD_GRAPH_TRANSFORM_SHAPE_H

#include "cudnn.h"
#include "graph/attr.h"

static inline void wd_transform_pad(const struct wd_transform_attr *p, int rank, int64_t *dim)
{
    for (int d = 0; d < rank; ++d) {
        if (dim[d] != INT64_MAX) dim[d] += p->before[d] + p->after[d];
    }
}

/* The channels take what the spatial dimensions give, and back; parts of blocks count as whole. */
static inline void wd_transform_fold(const struct wd_transform_attr *p, int rank, int64_t *dim)
{
    int up = p->direction == CUDNN_TRANSFORM_FOLD;
    int64_t blocks = 1;
    for (int d = 2; d < rank; ++d) {
        int64_t block = p->fold[d - 2];
        if (__builtin_mul_overflow(blocks, block, &blocks)) blocks = INT64_MAX;
        if (up) dim[d] = dim[d] / block + (dim[d] % block > 0);
        else if (__builtin_mul_overflow(dim[d], block, &dim[d])) dim[d] = INT64_MAX;
    }
    if (!up) dim[1] = dim[1] / blocks + (dim[1] % blocks > 0);
    else if (__builtin_mul_overflow(dim[1], blocks, &dim[1])) dim[1] = INT64_MAX;
}

/* The dims that a transform of a tensor has; INT64_MAX where they are too large to be said. They are
 * not positive where padding cuts everything off. */
static inline void wd_transform_dims(const struct wd_transform_attr *p, int rank,
                                     const int64_t *from, int64_t *to)
{
    for (int d = 0; d < rank; ++d) to[d] = from[d];
    if (p->direction == CUDNN_TRANSFORM_FOLD) {
        wd_transform_pad(p, rank, to);
        wd_transform_fold(p, rank, to);
    } else {
        wd_transform_fold(p, rank, to);
        wd_transform_pad(p, rank, to);
    }
}

#endif
