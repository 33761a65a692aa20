// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums by walks down the rows: the instances.
#include "ops/resample/resample_walk.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/resample/resample_walk_kernels.def"
#include "ops/kernels_device.inc"
