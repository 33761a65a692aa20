/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the transform_turn kernels, shared by host and device. Elements are moved from x to y,
 * both without gaps. `a` is the dim along which x has neighbours, `b` that of y; where they are one,
 * rows are copied, element by element where there are few in any order; else tiles of ta by tb go
 * through shared memory, which has rows of a. */
#ifndef WD_OPS_TRANSFORM_TURN_ARGS_H
#define WD_OPS_TRANSFORM_TURN_ARGS_H

#include "base/fastdiv.h"

enum { TURN_THREADS = 256, TURN_BYTES = 16 };

/* How one side of a tile is walked. */
enum turn_way {
    TURN_RUNS,    /* rows of whole, aligned loads */
    TURN_CHUNK,   /* the tile has whole rows that follow one another: one piece of memory */
    TURN_SHIFTED, /* rows that begin anywhere */
};

struct turn_args {
    const void *x;
    void *y;
    double alpha;
    double beta;
    int64_t total; /* elements */
    int64_t x_row; /* stride of b in x; rows of single elements: of the innermost dim */
    int64_t y_row; /* stride of a in y */
    uint32_t a;    /* extents */
    uint32_t b;
    uint32_t ta;
    uint32_t tb;
    uint32_t pitch;  /* of rows in shared memory */
    uint32_t lead;   /* elements of shared memory before the first row */
    uint32_t x_step; /* x_row modulo a run */
    uint32_t y_step;
    uint32_t count; /* rows: runs, or elements */
    int32_t x_way;  /* enum turn_way */
    int32_t y_way;
    int32_t x_shift; /* elements between x and the boundary before it */
    int32_t y_shift;
    int32_t plain; /* alpha is 1, beta 0 */
    int32_t bfloat;
    int32_t streaming;
    int32_t by_runs;             /* rows of x that begin anywhere are stored by whole runs */
    int32_t rank;                /* of the dims beside a and b */
    struct wd_fastdiv by_x;      /* units of a row of x in a tile, by its way */
    struct wd_fastdiv by_y;      /* likewise of y */
    struct wd_fastdiv by_tile_a; /* tiles along a; rows: runs of one */
    struct wd_fastdiv by_tile_b;
    struct wd_fastdiv dim[WD_MAX_RANK];
    int64_t x_stride[WD_MAX_RANK];
    int64_t y_stride[WD_MAX_RANK];
};

#endif
