/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of norm_long in which all blocks of the chip share every row, and read it once. Plain
 * functions of shape, type and device. */
#ifndef WD_OPS_NORM_WIDE_H
#define WD_OPS_NORM_WIDE_H

#include "ops/norm/norm_rows.h"
#include "ops/norm/norm_wide_args.h"

/* How rows are cut, see norm_wide_args.h. */
struct wd_norm_wide {
    int64_t threads;
    int64_t share;
    int64_t blocks;
    int64_t batch;
    int64_t row_units;
    int64_t shared; /* bytes */
    int64_t parts;  /* bytes of workspace */
};

/* False where rows are too short to be worth it, or too long. */
bool wd_norm_wide_cut(struct wd_norm_wide *c, const struct wd_problem *problem,
                      const struct wd_norm_rows *s);

/* `of` has the tensors, sizes and mode. */
cudnnStatus_t wd_norm_wide_emit(const struct wd_call *call, struct wd_queue *queue,
                                const struct wd_norm_wide *c, const struct norm_rows_args *of);

/* The engines of long rows, in passes where there is no other way (norm_long.c). */
bool wd_norm_long_match(const struct wd_problem *problem, struct wd_reason *reason);
int64_t wd_norm_long_workspace(const struct wd_problem *problem);
cudnnStatus_t wd_norm_long_forward(const struct wd_call *call, struct wd_queue *queue);
cudnnStatus_t wd_norm_long_backward(const struct wd_call *call, struct wd_queue *queue);

#endif
