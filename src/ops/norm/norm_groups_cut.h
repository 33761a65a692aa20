/* SPDX-License-Identifier: Apache-2.0
 *
 * How the norm_groups engines cut x into blocks: a pure function of shape and device. */
#ifndef WD_OPS_NORM_GROUPS_CUT_H
#define WD_OPS_NORM_GROUPS_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/queue.h"

struct norm_groups_shape {
    int64_t samples;
    int64_t channels;
    int64_t plane;
    int64_t groups;
    int64_t each; /* channels of a group */
    int size;     /* bytes of an element */
    int arrays;   /* that are read: x, and dy */
    bool columns; /* channels lie last */
};

/* The fields of struct norm_groups_args that are called so. */
struct norm_groups_cut {
    bool whole;
    bool by_channels;
    int64_t segments;
    int64_t part;
    int64_t threads;
    int64_t width;
    int64_t team;
    int64_t turns;
    int64_t tile;
    int64_t tiles;
    int64_t rows;
    int64_t shared; /* bytes of dynamic shared memory */
    int64_t blocks;
};

/* Shares that are read once are cut so only if `keeps`; shared memory is for WHOLE and SUMS. */
struct norm_groups_cut norm_groups_cut(const struct norm_groups_shape *s, bool keeps,
                                       const struct wd_device *device);

#endif
