/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of norms over rows share on the host: which tensors are rows without gaps, and
 * the kernel that adds up rows of partial sums. Plain functions of shape, type and device. */
#ifndef WD_OPS_NORM_ROWS_H
#define WD_OPS_NORM_ROWS_H

#include "ops/norm/norm_gpu.h"

/* x as rows without gaps. */
struct wd_norm_rows {
    int64_t rows;
    int64_t length;
    int order[WD_MAX_RANK]; /* x's dimensions of more than one element, from the outermost */
    int count;
    int outer; /* of these, those that rows are counted by */
};

/* False where a dimension of the rows lies inside of one of a row's. */
bool wd_norm_rows_see(struct wd_norm_rows *s, const struct wd_problem *problem);

/* The conditions of all, whatever a row's length and whether statistics are given; `s` is set where
 * they hold. */
bool wd_norm_rows_match(const struct wd_problem *problem, struct wd_norm_rows *s,
                        struct wd_reason *reason);

/* A call's tensors, sizes and mode; epsilon, and how rows are cut, are left to be said. */
struct norm_rows_args wd_norm_rows_args_of(const struct wd_call *call, const struct wd_norm_rows *s,
                                           const struct wd_device *device);

/* dscale and dbias of `partials` rows in `partial`, of `length`: nothing else is read of the arguments. */
cudnnStatus_t wd_norm_rows_finish(struct wd_queue *queue, const struct norm_rows_args *a);

#endif
