/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the kernels in which a warp's lanes have two channels of 16 bits of a pixel each, shared by host and
 * device. A unit is what so many lanes have: a few pairs of columns; of small pixels a warp has several side by side. */
#ifndef WD_OPS_POOLING_WARP_ARGS_H
#define WD_OPS_POOLING_WARP_ARGS_H

/* Modes. */
#include "ops/pooling/pooling_tile_args.h"

enum {
    POOL_WARP_THREADS = 128,
    /* Pairs of columns of a unit: measured, of what is loaded of dy alone more are better, of maxima over x registers
     * have no room for. */
    POOL_WARP_MAXIMA = 2,
    POOL_WARP_SUMS = 4,
    POOL_WARP_PLACES = 3,
    POOL_WARP_MARGIN = 128,
};

/* Bytes of a row in shared memory, of which a warp has two, with what lies before and behind. */
#define pool_warp_row(pairs) (POOL_WARP_MARGIN + (pairs)*256 + 32)

struct pool_warp_args {
    const void *x; /* of maxima */
    const void *dy;
    void *out;
    float alpha;
    float inverse;   /* averages: 1 / the size of a window */
    int32_t exclude; /* averages: padding does not count */
    int32_t inner;
    int32_t image_h;
    int32_t image_w;
    int32_t windows_h;
    int32_t windows_w;
    int32_t pad_h;
    int32_t pad_w;
    int32_t strip; /* pairs of rows of a warp */
    int32_t strips;
    int32_t groups;            /* of columns, a unit each */
    int32_t each;              /* units of a warp */
    struct wd_fastdiv by_sets; /* of so many units of a row */
    struct wd_fastdiv by_outer;
    struct wd_fastdiv by_lanes; /* lanes of a unit */
};

#endif
