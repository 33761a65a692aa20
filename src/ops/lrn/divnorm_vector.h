/* SPDX-License-Identifier: Apache-2.0
 *
 * How divisive normalization is cut into walks down the rows, and gradients into blocks of whole rows. Pure functions
 * of their arguments. */
#ifndef WD_OPS_LRN_DIVNORM_VECTOR_H
#define WD_OPS_LRN_DIVNORM_VECTOR_H

#include "ops/engine.h"
#include "ops/lrn/divnorm_vector_args.h"

/* Cuts planes into strips, segments of rows of parts of planes, of which a warp has some: as many segments as let the
 * device end first, were every block of a turn to take the same time. Rows are whole runs of a kernel that goes down
 * them. False where that is too few threads. */
bool wd_divnorm_cut_walk(struct divnorm_walk_args *w, const struct divnorm_vector_args *a,
                         const struct wd_kernel_row *kernel, int64_t planes, int dtype,
                         const struct wd_device *device);

struct wd_divnorm_launch {
    int64_t blocks;
    uint32_t threads;
    uint32_t shared; /* bytes of a block */
};

/* Cuts planes of whole runs of fp32 into blocks' rows. False where rows are long, or blocks too few. */
bool wd_divnorm_cut_sheet(struct divnorm_sheet_args *s, const struct divnorm_vector_args *a,
                          int64_t planes, int64_t threads, const struct wd_device *device,
                          struct wd_divnorm_launch *l);

#endif
