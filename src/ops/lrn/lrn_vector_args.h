/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the lrn_vector kernels, shared by host and device. Planes: an image is `channels`
 * planes of neighbouring pixels. Pixels: all elements lie one behind the other, the channels of a
 * pixel first; then pointers are moved back by `skip` elements, so that they are aligned. */
#ifndef WD_OPS_LRN_VECTOR_ARGS_H
#define WD_OPS_LRN_VECTOR_ARGS_H

#include "base/fastdiv.h"
#include "ops/lrn/lrn_numbers.h"

enum {
    LRN_THREADS = 128,
    LRN_TILE_THREADS = 256, /* of the blocks that exchange through shared memory */
    LRN_SPREAD =
        2, /* pixels of a thread, where planes have no runs; of small ones in fp32 forward, 1 */
    LRN_WINDOW_MAX = 16,
    LRN_BACK_MAX = 7, /* of a window that long */
    LRN_AHEAD_MAX = 8,
};

struct lrn_operand {
    void *data;
    int64_t image; /* planes: from one image to the next, in elements */
    int64_t plane; /* and from one channel to the next */
};

struct lrn_vector_args {
    struct lrn_operand x;
    struct lrn_operand dy;
    struct lrn_operand out; /* y, or dx */
    struct lrn_doubles full;
    struct lrn_floats single; /* the same, rounded: a conversion would take as long as a root */
    int32_t power;
    int32_t scales; /* alpha is not 0 */
    int32_t blends; /* beta is not 0 */
    int32_t plain;  /* results are scaled, and not blended */
    int32_t streaming;
    int32_t channels;
    int32_t window;
    int32_t back;   /* channels of a window before its own */
    int32_t ahead;  /* and behind it */
    int32_t chunk;  /* planes: channels that a thread walks along */
    int32_t margin; /* tiles: runs at either end of a block that others compute */
    int64_t plane;  /* planes: pixels */
    uint32_t count; /* planes: threads with work; pixels: runs */
    uint32_t skip;
    int32_t loose;                /* pixels: pointers are not aligned alike */
    uint32_t elements;            /* pixels: skipped ones included */
    uint32_t phase;               /* pixels: the channel of element i is (i + phase) % channels */
    struct wd_fastdiv by_run;     /* planes: runs of a plane; whole pixels: runs of a pixel */
    struct wd_fastdiv by_chunk;   /* planes: chunks of an image */
    struct wd_fastdiv by_channel; /* pixels: channels */
    struct wd_fastdiv by_spread;  /* planes, spread: from one pixel of a thread to its next */
};

#endif
