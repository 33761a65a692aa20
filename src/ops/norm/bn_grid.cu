// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the engine bn_grid.
#include "ops/norm/bn_grid.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_grid_kernels.def"
#include "ops/kernels_device.inc"
