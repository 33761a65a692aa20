/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the kernels that stage a box of the image by lines of bytes, shared by host and device.
 * Tensors are packed: [outer][depth][h][w][inner], a plane's `inner` being 1; a box has all of `inner`.
 *
 * A line is what a box has of a row. In shared memory lines lie at a pitch that is the row's length in
 * memory modulo 16 bytes, and so do planes and images: copies are of 16 bytes whatever the alignment, and
 * where an element lies is a linear function of its coordinates. */
#ifndef WD_OPS_POOLING_BAND_ARGS_H
#define WD_OPS_POOLING_BAND_ARGS_H

/* Modes. */
#include "ops/pooling/pooling_tile_args.h"

/* Of a block; of sheets the most. */
enum { POOL_BAND_THREADS = 256, POOL_SHEET_THREADS = 288, POOL_SHEET_MAXIMA = 512 };

struct pool_band_axis {
    int32_t image;
    int32_t windows;
    int32_t size;
    int32_t stride;
    int32_t pad;
    int32_t
        cover_image; /* gradients of averages: the image and its padding, which windows cover; forward the */
    int32_t cover_pad; /* same as above */
    int32_t outs;      /* the most that a box makes */
    int32_t over;      /* the most windows over a box */
    int32_t classes;   /* windows so many apart do not overlap */
    struct wd_fastdiv by_tiles;
    struct wd_fastdiv by_stride;
    struct wd_fastdiv by_window; /* sheets of maxima: windows over a box, or groups of them */
    struct wd_fastdiv
        by_class; /* the most windows of a class over a box; of others groups of results */
};

/* How a tensor's part lies in shared memory, in bytes; sums: in elements. */
struct pool_band_part {
    uint32_t at;
    uint32_t pitch[3]; /* from image to image, plane to plane, line to line */
    uint32_t lanes;    /* that share a line, up to a warp: their binary logarithm */
    uint32_t whole; /* axes, from the last on, that boxes have all of: of as many, lines are one */
    uint32_t total; /* elements of the tensor */
};

struct pool_band_args {
    const void *x; /* not of averages backward */
    const void *dy;
    void *out;
    double alpha;
    double beta;
    double inverse; /* averages: 1 / the size of a window */
    double lowest;  /* maxima without candidates */
    int32_t scales; /* alpha is not 0 */
    int32_t blends; /* beta is not 0: what was in `out` counts */
    int32_t streaming;
    int32_t mode;
    int32_t exclude; /* averages: padding does not count */
    uint32_t outer;
    uint32_t tile_outer;
    uint32_t inner;
    uint32_t sums_bytes;
    int32_t sheet_rows;     /* of a thread, or pairs of them */
    uint32_t sheet_windows; /* of maxima: rows of windows over an image's box, */
    uint32_t sheet_places;  /* and where, in bytes, their maxima's places are */
    uint32_t lanes; /* planes that are one window: lanes of each, a power of two up to a warp */
    struct wd_fastdiv by_inner;
    struct pool_band_axis axis[3];
    struct pool_band_part from;   /* x; averages backward: dy */
    struct pool_band_part shares; /* maxima backward: dy */
    struct pool_band_part to;     /* sums of maxima backward; of sheets what is made, in bytes */
};

#endif
