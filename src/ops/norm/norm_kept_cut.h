/* SPDX-License-Identifier: Apache-2.0
 *
 * How the norm_kept engines cut x into panels and blocks: a pure function of shape and device. */
#ifndef WD_OPS_NORM_KEPT_CUT_H
#define WD_OPS_NORM_KEPT_CUT_H

#include "ops/norm/norm_groups_cut.h"

/* Ways, as the kernels' rows follow one another. */
enum norm_kept_way {
    NORM_KEPT_EVEN,
    NORM_KEPT_ODD,
    NORM_KEPT_BESIDE,
    NORM_KEPT_COLUMNS,
    NORM_KEPT_WAYS
};

/* The fields of struct norm_kept_args that are called so. */
struct norm_kept_cut {
    enum norm_kept_way way;
    bool meets; /* blocks of a panel are no cluster */
    int64_t panels;
    int64_t teams;
    int64_t blocks;
    int64_t threads;
    int64_t length;
    int64_t beside;
    int64_t lanes;
    int64_t pieces;
    int64_t lines;
    int64_t part;
    int64_t slots;
    int64_t tile;
    int64_t tiles;
    int64_t across;
    int64_t rows;
    int64_t space;
    int64_t shared; /* bytes of dynamic shared memory */
    double cost;    /* ns, about */
};

/* False where a share does not fit. */
bool norm_kept_cut(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                   const struct wd_device *device);
/* The same answer, without looking for the best. */
bool norm_kept_fits(const struct norm_groups_shape *s, const struct wd_device *device);

#endif
