/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the kernels that stage rows of odd length in shared memory, shared by host and device.
 *
 * A block has `tile` rows, whole runs of 16 bytes together, so that every tile lies alike on their
 * boundaries. `lanes` threads have a row, at most STAGED_ELEMENTS of it each, by words of 4 bytes.
 * Rows that a warp has at once are `spread` apart, so that their words lie in different banks. */
#ifndef WD_OPS_SOFTMAX_STAGED_ARGS_H
#define WD_OPS_SOFTMAX_STAGED_ARGS_H

#include <stdint.h>

enum {
    STAGED_RUN = 16,      /* bytes */
    STAGED_WORD = 4,      /* bytes */
    STAGED_ELEMENTS = 32, /* of a thread, at most */
    STAGED_GROUP = 4,     /* elements of a thread that are looked at together */
    STAGED_THREADS = 128, /* of a block */
    STAGED_SHORT = 8,     /* rows of fewer elements are a thread's */
};

struct softmax_staged_args {
    const void *x;  /* backward: y */
    const void *dy; /* backward */
    void *y;        /* backward: dx */
    double alpha;
    double beta;
    int64_t rows;
    uint32_t length;      /* elements of a row */
    uint32_t shift;       /* elements between x and the boundary before it */
    uint32_t tile;        /* rows */
    uint32_t runs;        /* of a tile of one tensor in shared memory */
    uint32_t lane_bits;   /* lanes: a power of two, of a warp */
    uint32_t spread_bits; /* spread: likewise */
    uint32_t whole;       /* groups that every thread of a row has whole; one more has the rest */
    int32_t log;
    int32_t streaming; /* the output is larger than what stays in the cache */
    int32_t plain;     /* alpha is 1, beta is 0 */
    int32_t apart;     /* the tensors lie differently on the boundaries: one by one, shift 0 */
};

#endif
