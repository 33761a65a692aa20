/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the norm_spot kernels, shared by host and device: instance norm of small images with
 * channels last, where waiting is all there is. A block has the 16 bytes of neighbouring channels of
 * one sample's rows in registers, a thread up to NORM_SPOT_SLOTS rows. */
#ifndef WD_OPS_NORM_SPOT_ARGS_H
#define WD_OPS_NORM_SPOT_ARGS_H

#include "ops/norm/norm_rows_args.h"

enum {
    NORM_SPOT_THREADS = 256, /* of a block, at most */
    NORM_SPOT_SLOTS = 4,     /* rows of a thread, at most */
};

struct norm_spot_args {
    const void *x;
    void *y;
    struct norm_rows_param scale;
    struct norm_rows_param bias;
    float *mean; /* that are wanted; null: not */
    float *inv_std;
    float epsilon;
    float inverse; /* of the rows */
    uint32_t channels;
    uint32_t plane; /* rows of a sample */
    uint32_t tiles; /* blocks of a sample */
};

#endif
