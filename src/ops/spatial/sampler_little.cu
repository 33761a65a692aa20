// SPDX-License-Identifier: Apache-2.0
//
// The gradients of the sampler of small grids: the kernels' entry points.
#include "ops/spatial/sampler_little.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/spatial/sampler_little_kernels.def"
#include "ops/kernels_device.inc"
