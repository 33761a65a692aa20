/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the dropout_vector kernels, shared by host and device. A group is eight elements that
 * follow one another as the index counts: a byte of the mask, a Philox block. Three ways:
 *
 *   flat    memory is in the order of the index. Groups of memory begin at whole loads of y, `shift`
 *           elements before those of the index: their bits come of two bytes.
 *   pixels  channels are neighbours in whole loads, and a plane of an image is whole groups. A block
 *           draws the bytes of `octets` times eight pixels into shared memory and walks over the pixels.
 *   tiles   channels are neighbours, however many and whatever the planes. A block draws the groups of
 *           some channels of some pixels into shared memory, a byte an element, as they lie in y. */
#ifndef WD_OPS_DROPOUT_VECTOR_ARGS_H
#define WD_OPS_DROPOUT_VECTOR_ARGS_H

#include "base/fastdiv.h"
#include "base/philox.h"

enum {
    DROPOUT_THREADS = 256,
    DROPOUT_GROUP = 8,
    DROPOUT_BYTES = 16, /* of a load */
    DROPOUT_PAD = 8,    /* bytes between octets in shared memory */
};

struct dropout_vector_args {
    const void *x; /* backward: dy */
    void *y;       /* backward: dx */
    struct wd_random_state *state;
    uint8_t *mask;
    double scale;
    int64_t count;      /* elements */
    int64_t mask_bytes; /* that are written; backward: that there are */
    int64_t groups;     /* of memory or of the mask, whichever are more */
    struct wd_threshold threshold;
    int32_t bfloat;       /* of two bytes: bf16, else fp16 */
    int32_t none;         /* no element is kept */
    uint32_t whole_bytes; /* of the mask, and */
    uint32_t last_bits;   /* the bits of the next one */
    int32_t shift;        /* elements between y and the boundary before it */
    int32_t alike;        /* x begins as far behind one */
    int32_t streaming;
    int32_t contiguous; /* tiles: they have all channels and are one piece of memory */
    uint32_t channels;
    uint32_t plane; /* tiles: elements */
    uint32_t tile_channels;
    uint32_t tile_pixels;
    uint32_t row_groups; /* of a channel in a tile, at most */
    uint32_t octets;     /* pixels: of a tile */
    uint32_t tiles;
    uint32_t all_octets;
    struct wd_fastdiv by_channels; /* of a tile; pixels: runs of them */
    struct wd_fastdiv by_octets;   /* pixels: of a tile */
    struct wd_fastdiv by_plane;    /* pixels: octets of an image */
    struct wd_fastdiv by_groups;   /* tiles: of a pixel */
    struct wd_fastdiv by_spans;    /* tiles: of a plane */
};

#endif
