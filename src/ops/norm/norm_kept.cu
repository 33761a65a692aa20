// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norm of what fits the shared memory of a block or cluster: one kernel, one
// reading. norm_kept_args.h says how x is gone through.
#include "ops/norm/norm_kept_columns.cuh"
#include "ops/norm/norm_kept_planes.cuh"

// left alone the compiler spills where it thinks that more blocks fit
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/norm_kept_kernels.def"
#include "ops/kernels_device.inc"
