/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the kernels through whose shared memory rows flow, shared by host and device. Tensors are
 * packed, [outer][h][w][inner]; a row is its w * inner elements in one, so that a neighbour along the row
 * is `inner` elements away, whatever a plane or a pixel is.
 *
 * A column is one element of a row of results, or of a pair of columns of dx where windows are at a stride
 * of 2; a tile has `columns` of them in each of `images` images, and `tile_units` rows or pairs of rows.
 * Shared memory is a ring of POOL_FLOW_SLOTS steps; a step has `units` times `per` rows of each part. */
#ifndef WD_OPS_POOLING_FLOW_ARGS_H
#define WD_OPS_POOLING_FLOW_ARGS_H

/* Modes. */
#include "ops/pooling/pooling_tile_args.h"

/* Steps in shared memory, most threads that compute, and those beside them that copy. */
enum { POOL_FLOW_SLOTS = 4, POOL_FLOW_THREADS = 512, POOL_FLOW_COPIERS = 32 };

/* A tensor that flows: of the result in column q of unit k, counted from 0, elements are needed of the
 * pixels q * per + off[1] .. + span - 1, in the rows from k * per + off[0] on. */
struct pool_flow_part {
    int32_t rows;     /* of an image */
    int32_t pixels;   /* of a row */
    int32_t elements; /* of a row */
    int32_t per;
    int32_t span;
    int32_t off[2];
    uint32_t at;    /* within a step, in bytes */
    uint32_t pitch; /* from row to row: modulo 16 as in memory, and so is the next */
    uint32_t image_pitch;
    uint32_t whole; /* a tile has all of the rows' elements: a step's rows are one line */
    uint32_t total; /* elements of the tensor */
};

struct pool_flow_axis {
    int32_t image;
    int32_t windows;
    int32_t pad;
    int32_t outs; /* rows, or pixels of a row, of the result */
};

struct pool_flow_args {
    const void *x; /* what flows: x; dy of averages */
    const void *dy;
    void *out;
    float alpha;   /* nothing is blended in, and it is not 0 */
    float inverse; /* averages: 1 / the size of a window */
    int32_t mode;
    int32_t exclude; /* averages: padding does not count */
    uint32_t outer;
    uint32_t images;
    uint32_t inner;
    uint32_t tiles;
    uint32_t threads;     /* that compute */
    uint32_t row_columns; /* of a row of results */
    int32_t all_units;    /* of an image */
    int32_t tile_units;
    int32_t units;  /* of a step: a multiple of what a kernel unrolls */
    uint32_t steps; /* of a tile */
    uint32_t slot;  /* bytes of a step */
    struct wd_fastdiv by_inner;
    struct wd_fastdiv by_columns; /* of a tile */
    struct wd_fastdiv by_strips;  /* of columns, in a row */
    struct wd_fastdiv by_spans;   /* of rows, in an image */
    struct pool_flow_axis high;
    struct pool_flow_axis wide;
    struct pool_flow_part from;
    struct pool_flow_part shares; /* maxima backward: dy */
};

#endif
