/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments and limits of the sampler's gradients by chunks, shared by host and device: see
 * sampler_chunks.cuh. */
#ifndef WD_OPS_SPATIAL_SAMPLER_CHUNKS_ARGS_H
#define WD_OPS_SPATIAL_SAMPLER_CHUNKS_ARGS_H

#include "ops/spatial/spatial_vector_args.h"

enum {
    CHUNK_THREADS = 448,
    CHUNK_EACH = 2, /* elements of a thread, of a tile and what is right and below of it */
    CHUNK_ELEMENTS = CHUNK_EACH * CHUNK_THREADS,
    CHUNK_BYTES = 16,
    CHUNK_CELL = 8,     /* bytes of an element or place of two bytes: the channels of a stage */
    CHUNK_CHANNELS = 4, /* of a stage */
    CHUNK_ROOM = 320,   /* chunks of four channels of two bytes */
    CHUNK_ROOM32 = 576, /* and of fp32 */
    CHUNK_SLOTS = 5,    /* places of an element in registers */
    CHUNK_COLOURS = 4,  /* of the grid, as a slot each */
    CHUNK_CLASSES = 6,  /* of elements by how many places they have */
    CHUNK_PLACES = 10,  /* at most */
    CHUNK_LISTED = 4,   /* of a cell */
    CHUNK_CELLS = CHUNK_ELEMENTS + 16, /* of a tile, and those left of it and above */
    CHUNK_MORE = 1088,                 /* places of a tile that are more than an element's SLOTS */
    CHUNK_ROWS = 128,                  /* of the grid that look into a tile */
    CHUNK_ROW_BITS = 7,                /* that number them */
    CHUNK_NEAR = 1024,                 /* parts of boxes that come near, of 32 places */
    CHUNK_SIDE_MOST = 1 << 16,         /* rows and columns of a grid */
    CHUNK_OUT = CHUNK_ELEMENTS + 8,    /* of dx, and one where what nobody asks for goes */
};

struct sampler_chunk_args {
    struct sampler_vector_args all; /* its tiles are those of back_planes */
    int32_t width;                  /* of a tile */
    int32_t height;
    float by_x; /* what the gradients of the grid are times */
    float by_y;
    int32_t paired;              /* rows of elements are dealt out by twos */
    struct wd_fastdiv by_across; /* tiles side by side */
    struct wd_fastdiv by_down;
};

/* Shared memory of a block, of which a processor holds two, by parts: the stages, dx of two of these, what elements
 * have more, which row of the grid a chunk is of, and where these begin. A stage of fp32 is four planes, each with zeros
 * after it, and as far apart as keeps boundaries of 64 bytes; there are two, or three. Of two bytes two are on their way,
 * and two more in cells, with zeros after these. Lists lie behind the first stage, before the others and dx do. */
enum {
    CHUNK_RING = CHUNK_ROOM * 4 * CHUNK_BYTES,
    CHUNK_SIDE = CHUNK_RING + CHUNK_BYTES,
    CHUNK_PLANE = CHUNK_ROOM32 * CHUNK_BYTES + 4 * CHUNK_BYTES,
    CHUNK_PLANE3 = 2 * CHUNK_PLANE / 3 / 64 * 64, /* where three stages have room */
    CHUNK_STAGE = 4 * CHUNK_PLANE,
    CHUNK_ALL = 2 * (CHUNK_RING + CHUNK_SIDE),
    CHUNK_ALL32 = 2 * CHUNK_STAGE,
    CHUNK_OUT_PLANE = 4 * CHUNK_OUT, /* a channel, or two of two bytes */
    CHUNK_COUNTS = 32,
    CHUNK_STAGES32 = CHUNK_ALL32 + 8 * CHUNK_OUT_PLANE,
    CHUNK_STAGES = CHUNK_ALL + 4 * CHUNK_OUT_PLANE,
    CHUNK_SHARED = (CHUNK_STAGES32 > CHUNK_STAGES ? CHUNK_STAGES32 : CHUNK_STAGES) +
                   10 * CHUNK_MORE + CHUNK_ROOM32 + 8 * (CHUNK_ROWS + 1) + 8 + CHUNK_COUNTS,
};

#endif
