/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the bn_column kernels, shared by host and device. x is [rows][params] in memory: `units` of `bn` are its
 * rows. */
#ifndef WD_OPS_NORM_BN_COLUMN_ARGS_H
#define WD_OPS_NORM_BN_COLUMN_ARGS_H

#include "ops/norm/bn_vector_args.h"

enum { BN_COLUMN_THREADS = 128 };

struct bn_column_args {
    struct bn_vector_args bn;
    double inverse;  /* 1 / rows */
    double unbiased; /* of a running variance: 1 / (rows - 1), of one row 1 */
    int32_t plain;   /* nothing is blended or scaled */
};

#endif
