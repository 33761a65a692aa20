/* SPDX-License-Identifier: Apache-2.0
 *
 * How the norm_ring engines cut x into teams and blocks: a pure function of shape and device. */
#ifndef WD_OPS_NORM_RING_H
#define WD_OPS_NORM_RING_H

#include "ops/norm/norm_groups.h"

/* The fields of struct norm_ring_args that are called so. */
struct norm_ring_cut {
    int64_t panels;
    int64_t teams;
    int64_t blocks;
    int64_t threads;
    int64_t height;
    int64_t width;
    int64_t lines;
    int64_t lanes;
    int64_t pieces;
    int64_t slices;
    int64_t part;
    int64_t across;
    int64_t rows;
    int64_t ring;
    int64_t keep;
    int64_t lag;
    int64_t ahead;
    int64_t shared; /* bytes of dynamic shared memory */
    double cost;    /* ns, about */
};

/* False where a panel is too small or too large, or rows are no whole runs. */
bool norm_ring_cut(struct norm_ring_cut *best, const struct norm_groups_shape *s,
                   const struct wd_device *device);

#endif
