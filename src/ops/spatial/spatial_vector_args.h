/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the spatial_vector kernels, shared by host and device. */
#ifndef WD_OPS_SPATIAL_VECTOR_ARGS_H
#define WD_OPS_SPATIAL_VECTOR_ARGS_H

#include "base/fastdiv.h"

enum { SPATIAL_THREADS = 256, SPATIAL_STRIP = 32, SPATIAL_TILE = 4 };

struct grid_vector_args {
    void *theta;   /* or dtheta */
    void *grid;    /* or dgrid */
    void *partial; /* backward: six sums a segment, of the accumulator's type; null: one segment */
    double inverse_w; /* 1 / (columns - 1); 0 of one column */
    double inverse_h;
    int32_t columns;
    int32_t rows;
    uint32_t images;
    uint32_t skip;     /* forward: elements from aligned memory to the grid */
    uint32_t elements; /* forward: with those; backward: of an image */
    uint32_t count;    /* forward: runs */
    uint32_t segments; /* backward: of an image */
    uint32_t segment;  /* runs of one */
    int32_t streaming;
    struct wd_fastdiv by_column;
    struct wd_fastdiv by_row;
    struct wd_fastdiv by_segment;
};

/* Images of any strides. */
struct sampler_image {
    void *data;
    int64_t image;
    int64_t channel;
    int32_t row;
    int32_t column;
};

struct sampler_vector_args {
    struct sampler_image x;
    struct sampler_image y; /* or dy */
    struct sampler_image dx;
    const void *grid;
    void *dgrid;
    double alpha;
    double beta;
    double alpha_grid;
    double beta_grid;
    double scale_w; /* (width - 1) / 2 */
    double scale_h;
    int32_t scales;
    int32_t blends;
    int32_t scales_grid;
    int32_t blends_grid;
    int32_t pairs; /* both numbers of a place may be read at once */
    int32_t streaming;
    int32_t width; /* of the image that is looked at */
    int32_t height;
    int32_t columns; /* of the grid */
    int32_t rows;
    int32_t channels;
    int32_t chunk;                 /* channels of a thread */
    int32_t tiled;                 /* planes: positions go by strips; pixels: by tiles */
    int32_t lanes;                 /* gradient of the grid: threads that share a place */
    uint32_t count;                /* threads with work, or places */
    struct wd_fastdiv by_position; /* of a plane */
    struct wd_fastdiv by_chunk;
    struct wd_fastdiv by_run; /* pixels: runs of a pixel */
    struct wd_fastdiv by_column;
    struct wd_fastdiv by_row;
    /* lists of places by cell: see sampler_lists.cuh */
    uint32_t *cursor; /* one number: how much of `list` is given away */
    uint32_t *counts; /* of a cell: its places */
    uint32_t *ends;   /* of a cell: the end of its part of the list, while it is filled */
    uint32_t *list;   /* places by cell, in no order */
    uint32_t *sorted; /* the same, those of a cell in order */
    uint32_t first_image;
    uint32_t cells; /* of an image */
    uint32_t all_cells;
    struct wd_fastdiv by_cell;
    struct wd_fastdiv by_width;
    struct wd_fastdiv by_height;
};

#endif
