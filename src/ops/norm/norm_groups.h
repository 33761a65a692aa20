/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engines of group and instance norm share: which problems are theirs. Pure functions, but
 * for what emits. */
#ifndef WD_OPS_NORM_GROUPS_H
#define WD_OPS_NORM_GROUPS_H

#include "ops/norm/norm_gpu.h"
#include "ops/norm/norm_groups_cut.h"
#include "ops/norm/norm_kept_args.h"
#include "ops/norm/norm_kept_cut.h"

/* False where samples are not outermost, or channels neither next nor last. */
bool wd_norm_groups_see(struct norm_groups_shape *s, const struct wd_problem *problem);

bool wd_norm_groups_match(const struct wd_problem *problem, struct wd_reason *reason);

/* Whether statistics are given, so that outputs are all there is to do. */
bool wd_norm_groups_given(const struct wd_problem *problem);

/* The engine that takes a problem that matches wherever its tensors lie. */
const struct wd_engine *wd_norm_groups_any(const struct wd_problem *problem);

/* Whether a problem that matches is read once; inference may be. */
bool wd_norm_kept_takes(const struct wd_problem *problem);
int64_t wd_norm_kept_workspace(const struct wd_problem *problem);

/* A problem that matches, and how it is cut, unless it does not fit. */
struct wd_norm_kept_work {
    struct norm_groups_shape shape;
    struct norm_kept_cut cut;
    bool fits;
};
void wd_norm_kept_prepare(const struct wd_problem *problem, void *work);
struct wd_norm_kept_work wd_norm_kept_work_of(const struct wd_problem *problem);
cudnnStatus_t wd_norm_kept_emit(const struct wd_call *call, struct wd_queue *queue,
                                const struct wd_norm_kept_work *work);

/* dscale and dbias from what was found of each channel of each sample. */
cudnnStatus_t wd_norm_kept_sum_params(struct wd_queue *queue, const struct norm_groups_shape *s,
                                      struct norm_kept_sums *sums, struct norm_rows_param dscale,
                                      struct norm_rows_param dbias);

#endif
