/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the GPU kernels, shared by host and device. The tensors lie alike and
 * without gaps, as [outer][length][inner] in memory. Two ways through them:
 *
 *   rows     inner is 1: `lanes` threads (of a warp), a block, or a cluster of blocks hold a row, or
 *            a block has a tile of many. What of a row, or of a tile, lies on boundaries of 16 bytes
 *            goes by whole runs, the ends element by element.
 *   columns  a block has `across` runs of positions side by side, by `down` threads that share the
 *            channels of each; the blocks of a cluster share them too; or a thread has all channels
 *            of its positions
 *   pairs    columns of 16 bits by words: an [outer] has `segments` tiles of `lanes` positions, a
 *            channel of which is a warp's; `by_inner` divides by `segments`
 *
 * Forward a row has a maximum and a sum of exponentials, backward a sum alone. */
#ifndef WD_OPS_SOFTMAX_VECTOR_ARGS_H
#define WD_OPS_SOFTMAX_VECTOR_ARGS_H

#include "base/fastdiv.h"
#include "base/format.h"

enum {
    SOFTMAX_BYTES = 16,            /* of a run */
    SOFTMAX_CLUSTER_BLOCKS = 8,    /* of a cluster, at most */
    SOFTMAX_BLOCK_THREADS = 1024,  /* of a block that has a row, at most */
    SOFTMAX_COLUMN_THREADS = 512,  /* of a block of columns, at most */
    SOFTMAX_LONG_THREADS = 256,    /* of a block that has a segment of a row */
    SOFTMAX_LONG_RUNS = 4,         /* runs that such a thread loads at once */
    SOFTMAX_PAIR_CHANNELS = 32,    /* channels of a thread that has words of two positions */
    SOFTMAX_COLUMNS_LONG_RUNS = 4, /* elements that a thread of long columns loads at once */
};

struct softmax_vector_args {
    const void *x;  /* backward: y */
    const void *dy; /* backward */
    void *y;        /* backward: dx */
    void *partial;  /* of segments: [rows][segments] pairs of the accumulator */
    double alpha;
    double beta;
    int64_t rows;   /* of this launch; by columns the positions */
    int64_t first;  /* row of this launch in the tensors */
    int64_t length; /* elements of a row, channels of a position */
    int64_t inner;
    int64_t total;  /* elements of a tensor */
    int64_t runs;   /* of a block's segment */
    int32_t shift;  /* elements between x and the boundary before it */
    int32_t format; /* enum wd_format; fp64 is known to the kernel */
    int32_t log;
    int32_t streaming; /* the output is larger than what stays in the cache */
    int32_t plain;     /* alpha is 1, beta is 0 */
    int32_t wide;      /* by columns: positions need 64 bits */
    uint32_t lanes;    /* threads of a row within a warp; by columns `across` */
    uint32_t lane_bits;
    uint32_t cluster;      /* blocks of a row or of a tile of columns */
    uint32_t cluster_bits; /* its binary logarithm, but of a ring's */
    uint32_t segments;
    struct wd_fastdiv by_inner;
};

#endif
