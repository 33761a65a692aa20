/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pooling_walk kernels, shared by host and device. Images are packed pixels of whole
 * runs of channels. `from` is what windows are made of: x forward, dy for gradients, where an element
 * of dx is a window of those that cover it. */
#ifndef WD_OPS_POOLING_WALK_ARGS_H
#define WD_OPS_POOLING_WALK_ARGS_H

/* Threads of a block, modes. */
#include "ops/pooling/pooling_tile_args.h"

struct pool_walk_axis {
    int32_t ins;  /* elements of `from` */
    int32_t outs; /* of `out` */
    int32_t size; /* of what `out` is made of */
    int32_t stride;
    int32_t pad;
    int32_t image; /* the image, and where its windows begin: to count what they cover */
    int32_t image_pad;
};

struct pool_walk_args {
    const void *from;
    const void *
        dy; /* maxima backward, where `from` is x; along an axis `ins` are then its windows, `outs` the image */
    void *out;
    float alpha; /* nothing is blended in, and it is not 0 */
    int32_t streaming;
    int32_t mode;
    int32_t exclude; /* averages: padding does not count */
    float lowest;    /* maxima without candidates */
    float inverse;   /* averages: 1 / the size of a window */
    int32_t strip;   /* rows of `out` of a thread */
    uint32_t inner;  /* channels */
    uint32_t items;
    struct wd_fastdiv by_inner; /* runs of a pixel */
    struct wd_fastdiv by_groups;
    struct wd_fastdiv by_strips;
    struct wd_fastdiv by_deep;
    struct pool_walk_axis axis[3];
};

#endif
