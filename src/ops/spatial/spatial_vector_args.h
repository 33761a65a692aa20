/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the spatial_vector kernels, shared by host and device. */
#ifndef WD_OPS_SPATIAL_VECTOR_ARGS_H
#define WD_OPS_SPATIAL_VECTOR_ARGS_H

#include "base/fastdiv.h"

enum {
    SPATIAL_THREADS = 256,
    SPATIAL_STRIP = 32,
    SPATIAL_TILE = 8,
    SPATIAL_FEW = 8,          /* places that a thread keeps in registers */
    SPATIAL_LINE_LOG2 = 5,    /* threads of a line of a tile, where there are as many elements */
    SPATIAL_STAGE = 4,        /* channels of planes that are brought together */
    SPATIAL_BOXES_MAX = 1024, /* of an image's grid */
    SPATIAL_LISTED = 32,      /* places that a warp adds at a time, */
    SAMPLER_REGION_TURN = 3,  /* and channels of these */
};

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
    uint32_t elements; /* of an image; forward, not by rows: of all */
    uint32_t count;    /* forward: runs */
    uint32_t turns;    /* forward: runs of a thread */
    uint32_t segments; /* of an image */
    uint32_t segment;  /* runs or rows of one */
    int32_t streaming;
    int32_t by_rows; /* backward: rows are whole runs, of aligned memory */
    struct wd_fastdiv by_column;
    struct wd_fastdiv by_row;
    struct wd_fastdiv by_segment;
    struct wd_fastdiv by_line; /* runs of a row */
};

/* Images of any strides. */
struct sampler_image {
    void *data;
    int64_t image;
    int64_t channel;
    int32_t row;
    int32_t column;
    int32_t runs;   /* its channels are whole runs of 16 bytes, aligned */
    int32_t unused; /* no padding: what was prepared is compared with what would have been */
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
    float scale_w32; /* the same in fp32 */
    float scale_h32;
    float alpha32;
    float beta32;
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
    int32_t chunk;  /* channels of a thread; pixels: from a run of a thread to its next */
    int32_t tiled;  /* planes: positions go by strips; pixels: by tiles */
    uint32_t count; /* threads with work, or places */
    struct wd_fastdiv by_position; /* of a plane */
    struct wd_fastdiv by_chunk;
    struct wd_fastdiv by_run; /* pixels: runs of a chunk */
    struct wd_fastdiv by_column;
    struct wd_fastdiv by_row;
    /* tiles: by_column and by_row count them, those of an image */
    int32_t lanes_log2;  /* threads of a line of a tile; other lines are below */
    int32_t across_log2; /* places of a thread beside each other, its others are below */
    int32_t
        room; /* elements of the image, or places, that fit into shared memory; pixels: runs of a thread */
    /* gradients: see sampler_back.cuh */
    void *boxes;     /* four numbers each; null: all places are looked at */
    uint32_t *marks; /* of the batch's images: back_planes does those that are marked; null: all */
    uint32_t first_image;
    int32_t box_row_log2; /* rows and columns of a box */
    int32_t box_column_log2;
    struct wd_fastdiv by_box;   /* boxes side by side */
    struct wd_fastdiv by_boxes; /* of an image */
    struct wd_fastdiv by_line;  /* places of a row of the grid */
    /* lists by warps, and few places; powers of two: */
    int32_t sharing_log2; /* threads among which the channels of a place are dealt out */
    int32_t warps_log2;   /* of a region, which each have some of its places */
};

/* How places, or elements of an image, are cut into tiles, whose windows come to shared memory. */
struct sampler_cut {
    int32_t width; /* of a tile */
    int32_t height;
    int32_t wide;                /* windows can be copied by 16 bytes; else there are none */
    struct wd_fastdiv by_tile;   /* tiles of an image */
    struct wd_fastdiv by_width;  /* of a tile */
    struct wd_fastdiv by_column; /* tiles side by side */
};

struct sampler_window_args {
    struct sampler_vector_args all;
    struct sampler_cut places;
    struct sampler_cut elements;
    struct wd_fastdiv by_block; /* forward: blocks of an image, tiles of all its chunks */
    int32_t listed;             /* places of a tile of elements that there is room for */
    uint32_t by_across; /* of a tile of elements: a cell times it is the cell's row, times 2^16 */
};

enum {
    WINDOW_THREADS = 256,
    WINDOW_STAGES = 3,
    WINDOW_BYTES = 8,   /* of an element's channels in a stage */
    SAMPLE_ROOM = 3152, /* elements of a window, so that three blocks fit a processor */
    SLOPE_ROOM = 2368,  /* four */
    GATHER_THREADS = 512,
    GATHER_STAGES = 2,  /* of 16 bytes of channels */
    GATHER_ROOM = 2480, /* two blocks */
    GATHER_EACH = 2,    /* elements of a thread */
};

/* Shared memory of a tile of elements: its windows or, before them, places on the way; then lists. Of runs of channels
 * there are no windows: what is not asked for is the first-level cache's. */
static inline int64_t wd_gather_bytes(const struct sampler_window_args *a, int runs)
{
    int64_t windows = runs ? 0 : (int64_t)GATHER_STAGES * 16 * GATHER_ROOM;
    int64_t before = (int64_t)(runs ? 24 : 20) * a->listed;
    int64_t cells = (int64_t)(a->elements.width + 1) * (a->elements.height + 1);
    return (windows > before ? windows : before) + 12 * (int64_t)a->listed + 4 * (2 * cells + 1) +
           2 * SPATIAL_BOXES_MAX;
}

enum {
    AFFINE_LEAST_WIDTH = 32, /* of an image */
    AFFINE_LEAST_HEIGHT = 16,
    AFFINE_WIDTH = 56, /* a block's elements */
    AFFINE_HEIGHT = 28,
    AFFINE_CHANNELS = 3, /* at most */
    AFFINE_PITCH = 64, /* of the image around the tile: neighbours of all rows are in other banks */
    AFFINE_PIECE = 64, /* places of a row that are looked at together where some may see nothing */
    AFFINE_SIDE = 4096, /* rows and columns at most, of image and grid: fp32 has places of them */
    /* x and sums: four blocks a processor */
    AFFINE_SHARED = 2 * 4 * AFFINE_CHANNELS * AFFINE_PITCH * (AFFINE_HEIGHT + 2) +
                    128, /* and a line, for x may begin within one */
};

/* The affine map from an image's coordinates to its grid's (p its rows, q its columns), and how far off
 * places may be, in places. */
struct sampler_map {
    float px;
    float py;
    float p0;
    float off_p;
    float qx;
    float qy;
    float q0;
    float off_q;
    /* Along rows of the grid, that coordinate of x and y which moves more: */
    float first;     /* of the first place, */
    float per_step;  /* columns of the grid for one of it, */
    float slope;     /* columns more of the next row, where it is the same, */
    float margin;    /* and columns more that places off the map need */
    int32_t along;   /* it is x */
    int32_t apart;   /* rows of places that have no elements in common */
    uint32_t mapped; /* places are far enough apart, and the map is good enough, for tiles */
    uint32_t marked; /* not, or a place was found that is too far off */
    /* Back: the place of row p and column q looks at x0 + xq * q + xp * p, y0 + yq * q + yp * p, and places which do so that
     * far from all borders of the image see it for certain, if they are no further off than they may be. */
    float x0;
    float xq;
    float xp;
    float within;
    float y0;
    float yq;
    float yp;
    uint32_t unused;
};

struct sampler_affine_args {
    struct sampler_vector_args all;
    void *maps;      /* of the batch; null: no images are mapped */
    uint32_t images; /* of the batch */
    uint32_t blocks; /* with regions of these */
    float by_x;      /* tiles by maps: what the gradients of the grid are times */
    float by_y;
    int32_t checks; /* tiles find out whether places are where the map has them; regions did */
    int32_t fills;  /* tiles are filled */
    int32_t plain;  /* see affine_tiles */
    int32_t unused; /* no padding */
};

/* Shared memory of a tile of 1 << lanes_log2 elements across, with so much room for places, and numbers
 * of `bytes` bytes: in the order of back_tile. */
static inline int64_t wd_back_bytes(int lanes_log2, int64_t room, int64_t bytes)
{
    int64_t lanes = (int64_t)1 << lanes_log2;
    int64_t lines = SPATIAL_THREADS >> lanes_log2;
    int64_t cells = (lanes + 1) * (lines + 1);
    return 16 * (room + (lanes + 2) * (lines + 2)) + 6 * room * bytes + 4 * room +
           4 * (2 * cells + 1) + 2 * room + 2 * SPATIAL_BOXES_MAX;
}

#endif
