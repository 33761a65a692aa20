/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the identity_sheared kernels, shared by host and device. Planes whose rows begin anywhere
 * are turned: `a` is the dim along which x has neighbours, `b` that of y. A tile is some of a by 128 of b,
 * but sheared: each row of y begins at the boundary of 32 bytes before it, so that all of its stores but
 * those at the ends of rows are whole and aligned. x is copied to shared memory in words of 4 bytes; a row
 * there begins in a word where it does in x, so that elements stand `pitch` apart, whatever rows begin at. */
#ifndef WD_OPS_IDENTITY_SHEARED_ARGS_H
#define WD_OPS_IDENTITY_SHEARED_ARGS_H

#include "base/fastdiv.h"

enum {
    SHEARED_THREADS = 256,
    SHEARED_A = 256,  /* bytes of a tile along a, at most */
    SHEARED_B = 128,  /* elements along b */
    SHEARED_BACK = 32 /* bytes: where a row of y begins in a tile */
};

struct sheared_args {
    const void *x;
    void *y;
    int64_t total; /* elements */
    int64_t x_row; /* stride of b in x */
    int64_t y_row; /* stride of a in y */
    uint32_t a;    /* extents */
    uint32_t b;
    uint32_t ta;     /* of a tile, along a */
    uint32_t pitch;  /* of rows in shared memory: odd where x_row is, and at least ta + 2 */
    uint32_t back;   /* by which a tile's row of y begins before the others', at most */
    int32_t x_shift; /* elements between x and the word that it is in */
    int32_t y_shift; /* elements between y and the boundary before it */
    int32_t rank;    /* of the dims beside a and b */
    struct wd_fastdiv by_tile_a; /* tiles along a */
    struct wd_fastdiv by_tile_b;
    struct wd_fastdiv dim[WD_MAX_RANK];
    int64_t x_stride[WD_MAX_RANK];
    int64_t y_stride[WD_MAX_RANK];
};

#endif
