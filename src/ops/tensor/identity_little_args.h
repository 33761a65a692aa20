/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the identity_little kernels, shared by host and device. Small planes are turned by tiles of
 * 32 along `a`, where x has neighbours, and 16 along `b`, where y has, element by element: four loads a
 * thread, a barrier, four stores. */
#ifndef WD_OPS_IDENTITY_LITTLE_ARGS_H
#define WD_OPS_IDENTITY_LITTLE_ARGS_H

#include "base/fastdiv.h"

enum { LITTLE_A = 32, LITTLE_B = 16, LITTLE_THREADS = 128 };

struct little_args {
    const void *x;
    void *y;
    uint32_t x_row; /* stride of b in x */
    uint32_t y_row; /* stride of a in y */
    uint32_t a;     /* extents */
    uint32_t b;
    struct wd_fastdiv by_tile_a; /* tiles along a */
    struct wd_fastdiv by_tile_b;
    struct wd_fastdiv dim[WD_MAX_RANK]; /* of the dims beside a and b */
    uint32_t x_stride[WD_MAX_RANK];
    uint32_t y_stride[WD_MAX_RANK];
    int32_t rank;
};

#endif
