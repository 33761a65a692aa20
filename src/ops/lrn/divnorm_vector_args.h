/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the divnorm_vector kernels, shared by host and device. All tensors are packed planes;
 * pointers begin at the first plane of a launch. */
#ifndef WD_OPS_LRN_DIVNORM_VECTOR_ARGS_H
#define WD_OPS_LRN_DIVNORM_VECTOR_ARGS_H

#include "base/fastdiv.h"

enum {
    DIVNORM_THREADS = 256,
    DIVNORM_DOWN = 8, /* pixels of a column that a thread has; a tile has whole groups of these */
    DIVNORM_WINDOW_MAX = 16,
    DIVNORM_TRUST = 4, /* how many times larger sums around another number may be */
};

/* How s^-B is computed. */
enum {
    DIVNORM_POWER_ANY,
    DIVNORM_POWER_HALF,
    DIVNORM_POWER_THREE_QUARTERS,
    DIVNORM_POWER_ONE,
};

struct divnorm_vector_args {
    const void *x;
    const void *means; /* null: 0 */
    const void *dy;
    void *out;    /* y, or dx */
    void *dmeans; /* null: not wanted */
    double alpha;
    double beta; /* what was in `out` and `dmeans` counts so much */
    double k;    /* s = k + factor * the sum of squared deviations */
    double factor;
    double exponent; /* -B */
    double share;    /* -2 B factor */
    int32_t power;
    int32_t scales;
    int32_t blends;
    int32_t window;
    int32_t back; /* pixels of a window before its own, in each direction */
    int32_t ahead;
    int32_t height;
    int32_t width;
    int32_t tile_h; /* whole groups of DIVNORM_DOWN */
    int32_t tile_w; /* whole runs of four */
    struct wd_fastdiv by_tile_w;
    struct wd_fastdiv by_tile_h;
};

/* So many elements in whole runs of four. */
WD_FN int32_t wd_divnorm_runs(int32_t elements)
{
    return (elements + 3) / 4 * 4;
}

/* Lines that whole groups of so many rows of windows reach. */
WD_FN int32_t wd_divnorm_lines(int32_t rows, int32_t window)
{
    return (rows + DIVNORM_DOWN - 1) / DIVNORM_DOWN * DIVNORM_DOWN + window - 1;
}

/* Numbers of a block's shared memory. */
WD_FN int32_t wd_divnorm_numbers(int32_t tile_h, int32_t tile_w, int32_t window, int32_t backward)
{
    int32_t more = backward ? window - 1 : 0;
    int32_t rows = tile_h + more;
    int32_t columns = tile_w + wd_divnorm_runs(more);
    int32_t x = (rows + window - 1) * (columns + wd_divnorm_runs(window - 1));
    int32_t sums = 2 * wd_divnorm_lines(rows, window) * columns;
    if (!backward) return x + sums;
    return x + sums + 2 * wd_divnorm_lines(tile_h, window) * columns + tile_h * tile_w;
}

#endif
