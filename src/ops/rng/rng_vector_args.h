/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the rng_vector kernels, shared by host and device. Three ways through y:
 *
 *   flat    memory is in the order of the index. A thread makes a run: whole blocks of four random
 *           numbers, cut at the boundaries of memory, `shift` elements before those of the index.
 *   quads   channels are neighbours, and a plane is whole blocks: a thread makes a run of channels
 *           of the four pixels that share its blocks.
 *   single  channels are neighbours, in any number, from anywhere: each element has its own block. */
#ifndef WD_OPS_RNG_VECTOR_ARGS_H
#define WD_OPS_RNG_VECTOR_ARGS_H

#include "base/fastdiv.h"
#include "ops/rng/rng_args.h"

enum {
    RNG_THREADS = 256,
    RNG_BYTES = 16, /* of a store */
    RNG_RUNS = 4,   /* of a thread */
    RNG_WORD = 32,  /* elements of a run of a mask */
};

struct rng_vector_args {
    void *y;
    const void *seed; /* in the device's memory; null: the value */
    const void *offset;
    uint64_t seed_value;
    uint64_t offset_value;
    int32_t seed_dtype;
    int32_t offset_dtype;
    int64_t count; /* elements */
    int64_t runs;
    uint64_t threshold; /* Bernoulli: numbers below are a 1 */
    double slip;        /* normal: how far an estimate is off, for each unit of the radius */
    double slip_mean;   /* and besides */
    int32_t estimates;  /* normal: the parameters are of a size that these hold for */
    int32_t shift;      /* elements between y and the boundary before it */
    int32_t streaming;
    uint32_t channels;
    uint32_t plane;
    struct wd_fastdiv by_channels; /* quads: runs of them */
    struct wd_fastdiv by_plane;    /* quads: of four pixels */
    struct wd_rng_attr attr;
};

#endif
