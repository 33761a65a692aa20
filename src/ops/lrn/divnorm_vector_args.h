/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the divnorm_vector kernels, shared by host and device. A warp has strips of pixels, each
 * `lanes` runs of four pixels wide, and walks down the rows of a segment of a plane. Lane l of the
 * warp's strip s is thread l * per_warp + s. */
#ifndef WD_OPS_LRN_DIVNORM_VECTOR_ARGS_H
#define WD_OPS_LRN_DIVNORM_VECTOR_ARGS_H

#include "base/fastdiv.h"

enum {
    DIVNORM_THREADS = 32, /* a warp, so that waiting for each other is cheap */
    DIVNORM_RUN = 4,      /* pixels of a thread in each row */
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

/* What a call computes with. */
#define DIVNORM_NUMBERS(type)                                                                      \
    {                                                                                              \
        type alpha;                                                                                \
        type beta; /* what was in `out` and `dmeans` counts so much */                             \
        type k;    /* s = k + factor * the sum of squared deviations */                            \
        type factor;                                                                               \
        type exponent; /* -B */                                                                    \
        type share;    /* -2 B factor */                                                           \
    }
struct divnorm_doubles DIVNORM_NUMBERS(double);
struct divnorm_floats DIVNORM_NUMBERS(float);

/* From one to the next, in elements. */
struct divnorm_steps {
    int64_t image;
    int64_t channel;
    int64_t row;
    int64_t pixel;
};

struct divnorm_vector_args {
    const void *x;
    const void *means; /* null: 0 */
    const void *dy;
    void *out;               /* y, or dx */
    void *dmeans;            /* null: not wanted */
    struct divnorm_steps in; /* of x, means and dy */
    struct divnorm_steps to; /* of out and dmeans */
    struct divnorm_doubles full;
    struct divnorm_floats single; /* the same, rounded: a conversion would take as long as a root */
    int32_t power;
    int32_t scales;
    int32_t blends;
    int32_t window;
    int32_t back; /* pixels of a window before its own, in each direction */
    int32_t ahead;
    int32_t height;
    int32_t width;
    int32_t in_whole; /* runs are aligned, in x, means and dy */
    int32_t to_whole; /* in out and dmeans */
    int32_t lanes;    /* of a strip */
    int32_t halo;     /* lanes at either end that other strips own */
    int32_t per_warp; /* strips */
    int32_t rows;     /* of a segment */
    int32_t lead;     /* rows before a segment that its first windows need */
    int32_t trip;     /* rows that are walked */
    uint32_t strips;
    struct wd_fastdiv by_part;    /* strips side by side */
    struct wd_fastdiv by_segment; /* of a plane */
    struct wd_fastdiv by_channel;
};

/* Rows of shared memory, a run of numbers a thread each: columns' sums of a window, of squares and of
 * deviations; backward also of shares and of shares times means, then a window's shares, the last shares
 * times means, bounds, and the direct parts of the rows whose windows are not whole yet. */
WD_FN int32_t wd_divnorm_rows(int32_t window, int32_t backward)
{
    int32_t sums = window + 1;
    return backward ? 4 * sums + window + 2 + (window - 1) / 2 + 1 : 2 * sums;
}

#endif
