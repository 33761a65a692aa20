/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of the backend's normalizations share: where an operation has what, the types
 * that they take, and arguments of kernels. Pure functions. */
#ifndef WD_OPS_NORM_GPU_H
#define WD_OPS_NORM_GPU_H

#include "graph/norms.h"
#include "ops/engine.h"
#include "ops/norm/norm_rows_args.h"

/* Slots of an operation; -1: it has none. */
struct wd_norm_places {
    int x, dy, y, scale, bias, mean, inv_std, dscale, dbias;
};
struct wd_norm_places wd_norm_places(enum wd_op op);

/* The place of a type among kernels of three, and its number in norm_rows_param; -1: none. */
int wd_norm_type(int dtype);

/* Null where there is none. */
const struct wd_tensor *wd_norm_tensor(const struct wd_problem *problem, int slot);
void *wd_norm_data(const struct wd_call *call, int slot);
struct norm_rows_param wd_norm_param(const struct wd_call *call, int slot);

/* Where runs may begin. */
bool wd_norm_aligned(const void *data);

/* Blocks of the largest cluster on the device: 1 where there are no clusters. */
int wd_norm_cluster_max(const struct wd_device *device);

/* Whether x, dy and y are of one type and layout that kernels take, without gaps; parameters of types
 * that they take; and statistics fp32. */
bool wd_norm_match(const struct wd_problem *problem, struct wd_reason *reason);

/* Whether a backward pass is given the statistics. */
bool wd_norm_has_statistics(const struct wd_problem *problem, struct wd_reason *reason);

#endif
