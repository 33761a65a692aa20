/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the rng_vector kernels, shared by host and device. Three ways through y:
 *
 *   flat    memory is in the order of the index. A thread makes runs of 16 bytes, which begin `shift`
 *           bytes behind a boundary of 16; where that is not 0, lanes hand on what is beyond one.
 *   pairs   channels are neighbours, planes are whole blocks of bits: a thread makes two channels'.
 *   tiles   channels are neighbours. A block of threads makes the elements of some channels of some
 *           pixels in the order of the index, in shared memory, and stores them by pixels. */
#ifndef WD_OPS_RNG_VECTOR_ARGS_H
#define WD_OPS_RNG_VECTOR_ARGS_H

#include "base/fastdiv.h"
#include "ops/rng/rng_args.h"

enum {
    RNG_THREADS = 256,
    RNG_BYTES = 16,  /* of a store */
    RNG_RUNS = 4,    /* of a thread; where instructions bind, twice as many, or six times */
    RNG_ROW = 128,   /* bytes of a pixel in a tile, where there are more */
    RNG_GROUPS = 32, /* of threads in a block, at most, each with a tile */
    RNG_WORD = 32,   /* elements of a run of a mask */
};

struct rng_vector_args {
    void *y;
    const void *seed; /* in the device's memory; null: the value */
    const void *offset;
    uint64_t seed_value;
    uint64_t offset_value;
    int32_t seed_dtype;
    int32_t offset_dtype;
    uint32_t key[2 * WD_PHILOX_ROUNDS]; /* of seed_value */
    uint32_t exponent; /* the bits of 2^23, which no instruction holds besides another */
    int64_t count;     /* elements */
    uint64_t none;     /* Bernoulli: the bits of a 0, in all elements of eight bytes, and */
    uint64_t flip;     /* those in which a 1 is different */
    struct wd_threshold threshold;
    struct rng_scale scale;
    float byte_least; /* of integers of a byte */
    float byte_most;
    int32_t bfloat;     /* of 16 bits: y is bf16, else fp16 */
    int32_t near;       /* normal, of 16 bits: the table is brought to shared memory */
    int32_t plain;      /* likewise: of mean 0 and deviation 1, */
    int32_t halves;     /* and y is fp16: as they are made */
    uint32_t turns;     /* of a thread that stays, where y begins behind a boundary */
    uint32_t all_rows;  /* pairs: of blocks of bits, of all channels */
    uint32_t all_tiles; /* tiles: of all blocks */
    uint32_t tile_bytes;
    int32_t shift; /* flat: bytes between the boundary before y and y; of a mask, elements */
    int32_t streaming;
    uint32_t runs;         /* flat: of a thread */
    uint32_t whole_blocks; /* flat: of threads, all of whose runs are y's */
    int32_t small;  /* tiles: have whole planes, whose elements are neighbours in the index */
    int32_t turned; /* and are whole blocks of bits, channels by 16 bytes; */
    uint32_t group; /* so many threads have one, 32 or 64 */
    uint32_t channels;
    uint32_t plane;
    uint32_t tile_channels;
    uint32_t tile_pixels;
    uint32_t row_blocks;           /* pairs: of random bits, of a channel */
    uint32_t parts;                /* tiles: of a block's threads, each of which has all channels */
    int32_t contiguous;            /* a tile has all channels: it is one piece of memory */
    struct wd_fastdiv by_channels; /* of a tile */
    struct wd_fastdiv by_units;  /* a pixel of a tile is `units` of 16 bytes, where that is not 0 */
    struct wd_fastdiv by_groups; /* tiles of a pixel */
    struct wd_fastdiv by_spans;  /* tiles of a plane */
    int32_t units;
    uint32_t *counter; /* tiles that blocks draw */
};

#endif
