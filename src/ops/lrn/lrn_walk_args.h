/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the lrn_walk kernels, shared by host and device, and how a block's shared memory is cut. A
 * block has a span of pixels of an image and walks along a chunk of its channels, LRN_STAGE at a time. */
#ifndef WD_OPS_LRN_WALK_ARGS_H
#define WD_OPS_LRN_WALK_ARGS_H

#include "ops/lrn/lrn_vector_args.h"

enum {
    LRN_WALK_THREADS = 256,
    LRN_STAGE = 8,       /* channels of a stage: a row each of shared memory */
    LRN_PREFETCH = 2,    /* stages that are on their way while one is worked on */
    LRN_ROW_CHUNKS = 64, /* 16 bytes each; of a row, at most: two copies a lane */
};

struct lrn_walk_args {
    struct lrn_vector_args v; /* by_run: the spans of a plane */
    int64_t plane;            /* pixels */
    int64_t x_end;            /* bytes of x and of dy, from their pointers on */
    int64_t dy_end;
    int32_t span;  /* pixels of a block, whole chunks of 16 bytes */
    int32_t pitch; /* bytes of a row of shared memory */
};

/* Stages behind the newest one that windows reach into. */
WD_FN int32_t wd_lrn_behind(int32_t window)
{
    return window - 1 <= LRN_STAGE ? 1 : 2;
}

/* Stages of x in shared memory; of dy, backward. */
WD_FN int32_t wd_lrn_stages(int32_t window)
{
    return wd_lrn_behind(window) + 1 + LRN_PREFETCH;
}

enum { LRN_DY_STAGES = 1 + LRN_PREFETCH };

/* Numbers of a pixel that backward keeps from one stage to the next: shares, and the gradient's direct
 * parts. Where the window is known when compiled the parts of the stage itself are in registers. */
WD_FN int32_t wd_lrn_kept(int32_t window, int32_t known)
{
    int32_t back = (window - 1) / 2;
    return window - 1 + back + (known ? 0 : LRN_STAGE);
}

#endif
