/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the concat_copy kernels, shared by host and device. An input is rows of `chunk` bytes
 * that are neighbours in x and in y, under up to five dims of rows. Blocks belong to one input each.
 *
 *   long chunks    a thread has 16 bytes of y between boundaries, wherever the row begins in x
 *   short chunks   a thread has a piece of 1 to 16 bytes, a power of two that divides all of it
 *
 * Mixed: inputs are one piece of memory each, whose rows are side by side in y's: channels as
 * neighbours. A block loads its rows of all inputs into shared memory, as they lie, and puts y's words
 * together from there; a table says where each column's elements are. */
#ifndef WD_OPS_CONCAT_COPY_ARGS_H
#define WD_OPS_CONCAT_COPY_ARGS_H

#include "base/fastdiv.h"

enum {
    CONCAT_THREADS = 256,
    CONCAT_BYTES = 16,  /* of a long chunk's unit */
    CONCAT_LONG = 2,    /* units of a thread, of long chunks */
    CONCAT_ALIKE = 4,   /* the same where no input is anything else, nor shifted */
    CONCAT_SHORT = 4,   /* pieces of a thread */
    CONCAT_INPUTS = 16, /* of a launch */
    CONCAT_DIMS = 5,
    MIX_THREADS = 256,
    MIX_INPUTS = 31,
    MIX_ROWS = 16, /* a tile has a multiple of these, so that all begin as far behind a boundary */
};

struct concat_input {
    const unsigned char *x;
    unsigned char *y;
    int64_t extent; /* bytes from x's first element to its last */
    uint32_t chunk; /* bytes */
    uint32_t units; /* in all */
    uint32_t first_block;
    uint16_t piece; /* bytes; of long chunks, which divides all of y */
    uint8_t is_long;
    uint8_t rank;          /* dims of rows */
    struct wd_fastdiv row; /* units of a row */
    struct wd_fastdiv dim[CONCAT_DIMS];
    int64_t x_stride[CONCAT_DIMS]; /* bytes */
    int64_t y_stride[CONCAT_DIMS];
};

struct concat_copy_args {
    int32_t inputs;
    int32_t streaming;
    struct concat_input input[CONCAT_INPUTS];
};

struct mix_input {
    const unsigned char *x;
    int64_t extent;  /* bytes */
    uint32_t chunk;  /* bytes of a row */
    uint32_t column; /* of y, in elements, the first one */
    uint32_t place;  /* in shared memory, of the boundary of 16 bytes before a tile's rows */
    uint32_t shift;  /* bytes between the two */
};

struct concat_mix_args {
    unsigned char *y;
    int64_t rows;
    int32_t inputs;
    uint32_t tile_rows;
    uint32_t columns; /* elements of a row of y */
    int32_t shift;    /* elements between the boundary of a word before y and y */
    struct wd_fastdiv by_columns;
    struct mix_input input[MIX_INPUTS];
};

#endif
