/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pooling_vector and pooling_single kernels, shared by host and device. Images are packed, and x and y
 * lie alike: [outer][h][w] (planes) or [outer][h][w][inner] (pixels of `inner` channels). */
#ifndef WD_OPS_POOLING_VECTOR_ARGS_H
#define WD_OPS_POOLING_VECTOR_ARGS_H

/* Threads of a block, modes. */
#include "ops/pooling/pooling_tile_args.h"

struct pool_vector_args {
    const void *x;
    const void *dy;
    void *out;      /* y, or dx */
    uint8_t *codes; /* one a window, in the order of y: gradients of maxima */
    float alpha;
    float beta;
    int32_t scales; /* alpha is not 0 */
    int32_t blends; /* beta is not 0: what was in `out` counts */
    int32_t streaming;
    int32_t mode;
    int32_t exclude; /* averages: padding does not count */
    float lowest;    /* maxima without candidates */
    float inverse;   /* averages: 1 / the size of a window */
    int32_t image_h;
    int32_t image_w;
    int32_t windows_h;
    int32_t windows_w;
    int32_t size_h;
    int32_t size_w;
    int32_t stride_h;
    int32_t stride_w;
    int32_t pad_h;
    int32_t pad_w;
    uint32_t inner;
    uint32_t aligned;           /* x may be read 16 bytes at a time */
    uint32_t total;             /* elements of x */
    uint32_t count;             /* items: runs of the output, or windows */
    uint32_t tile_runs;         /* blocks over channels: runs of a row of threads */
    uint32_t lanes;             /* that share a window of a plane */
    struct wd_fastdiv by_w;     /* items of a row (planes), runs of a pixel (pixels) */
    struct wd_fastdiv by_h;     /* rows of an image (planes), pixels of a row (pixels) */
    struct wd_fastdiv by_outer; /* pixels: rows of an image; pool_deep: its depth */
    struct wd_fastdiv by_stride_h;
    struct wd_fastdiv by_stride_w;
    int32_t image_d; /* images of three dimensions: pool_deep alone */
    int32_t windows_d;
    int32_t size_d;
    int32_t stride_d;
    int32_t pad_d;
};

#endif
