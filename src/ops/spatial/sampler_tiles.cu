// SPDX-License-Identifier: Apache-2.0
//
// The sampler by tiles, and its gradients: the kernels' entry points.
#include "ops/spatial/sampler_back_planes.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/spatial/sampler_tiles_kernels.def"
#include "ops/kernels_device.inc"
