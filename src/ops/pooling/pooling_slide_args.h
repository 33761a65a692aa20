/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the kernels for windows that begin at every element of a plane, shared by host and device.
 * `from` is what windows lie over: x forward, dy for gradients of averages, where an element of dx is made of
 * the windows that cover it. A block has whole rows: of one plane, or of several planes all. */
#ifndef WD_OPS_POOLING_SLIDE_ARGS_H
#define WD_OPS_POOLING_SLIDE_ARGS_H

/* Modes. */
#include "ops/pooling/pooling_tile_args.h"

enum { POOL_SLIDE_THREADS = 256 };

/* Rows and columns of the windows that are made straight from memory. */
enum { POOL_SLIDE_ROWS = 5, POOL_SLIDE_ROW_THREADS = 128 };

/* Neighbours that a thread makes at once, by how long windows are along the axis. */
enum { POOL_SLIDE_FEW = 4, POOL_SLIDE_MANY = 8 };

/* Elements that are written at once, where rows are multiples of them. */
enum { POOL_SLIDE_RUN = 4 };

struct pool_slide_axis {
    int32_t ins;  /* of a plane of `from` */
    int32_t outs; /* of one of `out` */
    int32_t size;
    int32_t pad;
    int32_t image; /* of averages: what windows cover of it counts */
    int32_t image_pad;
};

struct pool_slide_args {
    const void *from;
    void *out;
    float alpha;
    float beta;
    float inverse;  /* averages: 1 / the size of a window */
    float lowest;   /* maxima without candidates */
    int32_t scales; /* alpha is not 0 */
    int32_t blends; /* beta is not 0: what was in `out` counts */
    int32_t streaming;
    int32_t mode;
    int32_t spread;  /* gradients of averages */
    int32_t exclude; /* averages: padding does not count */
    int32_t edge;    /* padding is the nearest element of the image */
    uint32_t outer;
    uint32_t images; /* of a block */
    int32_t rows;    /* of `out` of each of them */
    uint32_t total;  /* elements of `from`; straight from memory threads of a band */
    uint32_t middle_pitch;
    uint32_t out_pitch;
    uint32_t middle_at; /* bytes of shared memory; `from` is at 0, later what is made */
    uint32_t weights_at;
    struct wd_fastdiv by_tiles;   /* of a plane */
    struct wd_fastdiv by_columns; /* of `from`; of whole lines: runs of one */
    struct wd_fastdiv by_groups;  /* of a block's rows of a plane; of whole lines: its segments */
    struct wd_fastdiv by_rows;    /* a block's, of all its planes */
    struct wd_fastdiv by_runs;    /* of a row of `out` that are written at once; 0 where none are */
    struct pool_slide_axis high;
    struct pool_slide_axis wide;
};

#endif
