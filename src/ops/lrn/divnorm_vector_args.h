/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the divnorm_vector kernels, shared by host and device. All tensors are packed planes;
 * pointers begin at the first plane of a launch. */
#ifndef WD_OPS_LRN_DIVNORM_VECTOR_ARGS_H
#define WD_OPS_LRN_DIVNORM_VECTOR_ARGS_H

#include "base/fastdiv.h"

enum {
    DIVNORM_SIDE = 32, /* of a tile: a block of threads with four pixels each */
    DIVNORM_THREADS = DIVNORM_SIDE * DIVNORM_SIDE / 4,
    DIVNORM_WINDOW_MAX = 16,
    DIVNORM_LEFT =
        8, /* columns of a tile's memory before it: what is before a pixel, and whole runs */
    DIVNORM_PITCH = DIVNORM_LEFT + DIVNORM_SIDE + 8,
    DIVNORM_LINES = DIVNORM_SIDE + DIVNORM_WINDOW_MAX - 1,
};

struct divnorm_vector_args {
    const void *x;
    const void *means; /* null: 0 */
    const void *dy;
    void *out;    /* y, or dx */
    void *dmeans; /* null: not wanted */
    void *shares; /* backward: h of a pixel, of the accumulator's type */
    void *direct; /* and dy s^-B */
    double alpha;
    double beta; /* what was in `out` and `dmeans` counts so much */
    double k;    /* s = k + factor * the sum of squared deviations */
    double factor;
    double exponent; /* -B */
    double share;    /* -2 B factor */
    int32_t scales;
    int32_t blends;
    int32_t back; /* pixels of a window before its own, in each direction */
    int32_t ahead;
    int32_t height;
    int32_t width;
    struct wd_fastdiv by_tile_w;
    struct wd_fastdiv by_tile_h;
};

#endif
