/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_spot kernels, shared by host and device: group and instance norm of small images
 * with channels last, where waiting is all there is. A block has a tile of whole groups of one sample in
 * registers: `across` runs of 16 bytes of every row, one of `lanes` threads each, a power of two, of
 * which some may have none. */
#ifndef WD_OPS_NORM_SPOT_ARGS_H
#define WD_OPS_NORM_SPOT_ARGS_H

#include "base/fastdiv.h"
#include "ops/norm/norm_rows_args.h"

enum {
    NORM_SPOT_THREADS = 512, /* of a block, at most */
    NORM_SPOT_SLOTS = 8,     /* runs of a thread, at most */
    NORM_SPOT_COLUMNS = 256, /* of a tile, at most */
};

struct norm_spot_args {
    const void *x;
    void *y;
    struct norm_rows_param scale;
    struct norm_rows_param bias;
    float *mean; /* that are wanted; null: not */
    float *inv_std;
    float epsilon;
    float inverse; /* of the elements of a group of a sample */
    struct wd_fastdiv by_each;
    uint32_t channels;
    uint32_t plane;
    uint32_t each; /* channels of a group */
    uint32_t tile; /* columns */
    uint32_t tiles;
    uint32_t across;
    uint32_t lanes;
};

#endif
