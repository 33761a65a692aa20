/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the kernels whose lanes have columns of packed planes, shared by host and device. */
#ifndef WD_OPS_POOLING_COLUMNS_ARGS_H
#define WD_OPS_POOLING_COLUMNS_ARGS_H

/* Threads of a block, modes. */
#include "ops/pooling/pooling_tile_args.h"

struct pool_columns_args {
    const void *x;
    const void *dy;
    void *out;
    float alpha; /* nothing is blended in, and it is not 0 */
    int32_t streaming;
    int32_t mode;
    int32_t image_h;
    int32_t image_w;
    int32_t windows_h;
    int32_t windows_w;
    int32_t pad_h;
    int32_t strip;         /* pairs of rows of a lane */
    uint32_t rows_of_warp; /* rows of lanes in a warp */
    uint32_t units;        /* rows of lanes: segments of a row, strips, planes */
    struct wd_fastdiv by_lanes;
    struct wd_fastdiv by_segments;
    struct wd_fastdiv by_strips;
};

#endif
