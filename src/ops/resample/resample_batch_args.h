/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the resample_batch kernels, shared by host and device: images enlarged by two with samples on
 * the corners of pixels, and the gradients of that, at any alignment. */
#ifndef WD_OPS_RESAMPLE_BATCH_ARGS_H
#define WD_OPS_RESAMPLE_BATCH_ARGS_H

#include "ops/resample/resample_ring_args.h"

enum {
    BATCH_THREADS = 128,
    BATCH_LINES = 8, /* of x, forward, that a thread asks for at once */
    BATCH_ROWS = 4,  /* of dx, backward, for which it asks for twice as many lines of dy */
    BATCH_WORD = 2,  /* elements of 16 bits that are stored at once */
    /* planes, forward, by lines in shared memory: */
    BATCH_WALKS = 4,    /* warps of a block, at most */
    BATCH_TURN = 4,     /* rows of x that are made before they are stored */
    BATCH_WIDEST = 512, /* columns of x, at most */
    BATCH_OVER = 256,   /* bytes behind lines, which lanes of no columns read and nobody writes */
};

struct resample_batch_args {
    const void *from; /* x, or dy */
    void *out;        /* y, or dx; nothing is blended in */
    float alpha;
    int32_t rows; /* of a thread, of x: whole batches */
    int32_t high; /* of x */
    int32_t wide;
    uint32_t inner;
    uint32_t before; /* 1: lines of y begin between two words */
    uint32_t count;  /* threads; of planes, forward, warps */
    uint32_t pitch;  /* of planes, forward: bytes of a turn's lines of x in shared memory */
    uint32_t size;   /* and of all that a warp has there */
    uint32_t unused;
    int64_t bytes;             /* of `from` */
    struct wd_fastdiv by_line; /* threads of a line: words of y, elements of dx; or warps */
    struct wd_fastdiv by_band;
    struct wd_fastdiv by_run; /* elements of a pixel */
};

#endif
