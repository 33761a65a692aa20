/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the kernels that pool a box of the image at a time in shared memory, shared by host
 * and device. Tensors are packed: [outer][depth][h][w][inner], a plane's `inner` being 1; what is
 * counted of `inner` are runs of the kernel's length.
 *
 * A block makes tile_outer * axis[0].outs * axis[1].outs * axis[2].outs * tile_inner runs of `out`
 * from what it stages of `from`: x forward, dy backward. */
#ifndef WD_OPS_POOLING_TILE_ARGS_H
#define WD_OPS_POOLING_TILE_ARGS_H

#include "base/fastdiv.h"

enum { POOL_THREADS = 256 };

/* Averages of whole planes backward: runs of a thread. */
enum { POOL_PLANE_RUNS = 4 };

/* What is made of a window. */
enum { POOL_AVERAGE, POOL_MAX, POOL_MAX_NAN };

/* A code says where in its window, padding included, the maximum is, row-major. */
enum { POOL_NO_CODE = 255 };

/* How windows lie, for which there is code of its own: any way, or at a stride of 1 and of at least 3 in
 * rows and columns. */
enum { POOL_ANY, POOL_RUN, POOL_WAYS };

/* Results of a thread along the last axis, and along the others: single elements, longer runs. */
enum { POOL_COLUMNS = 3, POOL_ROWS = 4, POOL_OF_RUNS = 2 };

/* Gradients of maxima: rows of dx of a thread. */
enum { POOL_COLLECTED = 4 };

struct pool_axis {
    int32_t image;
    int32_t windows;
    int32_t size;
    int32_t stride;
    int32_t pad;
    int32_t ins;   /* the most that is staged along it */
    int32_t outs;  /* the most that is made */
    int32_t whole; /* all there is is staged */
    int32_t overs; /* gradients of maxima: the most windows over what is made */
    struct wd_fastdiv by_tiles;
    struct wd_fastdiv by_ins;
    struct wd_fastdiv by_groups; /* groups of a thread's results in `outs` */
    struct wd_fastdiv by_stride;
    struct wd_fastdiv by_overs;
};

/* Bytes in shared memory, from its beginning; the staged box lies at 0. */
struct pool_memory {
    uint32_t rows;   /* where each row of the box begins: lines only */
    uint32_t middle; /* after the pass along the last axis */
    uint32_t half;   /* middle: between the halves of runs of 32 bytes */
    uint32_t second; /* after the next: over the box */
    uint32_t second_half;
    uint32_t weights; /* gradients of averages without padding: of each axis, `ins` of 8 bytes */
    uint32_t shares;  /* gradients of maxima: dy, then the codes */
    uint32_t codes;
};

struct pool_tile_args {
    const void *from;
    const void *x; /* gradients of maxima */
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
    int32_t volume;  /* a pass along the first axis, too */
    int32_t lines;   /* rows are staged as lines of bytes, `line_rows` in each */
    uint32_t line_rows;
    uint32_t line_pitch;
    uint32_t row_bytes;
    uint32_t total; /* elements of what is staged */
    uint32_t outer;
    uint32_t tile_outer;
    uint32_t inner;
    uint32_t tile_inner;
    struct wd_fastdiv by_inner_tiles;
    struct wd_fastdiv by_tile_inner;
    struct wd_fastdiv by_line_rows;
    struct wd_fastdiv by_line_chunks;
    struct wd_fastdiv by_row;   /* runs of a row of results */
    struct wd_fastdiv by_plane; /* and of a plane of them */
    struct pool_axis axis[3];
    struct pool_memory at;
};

#endif
