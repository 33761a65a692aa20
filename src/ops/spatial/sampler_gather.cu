// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients by lists and windows: the kernels' entry points.
#include "ops/spatial/sampler_gather_pixels.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/spatial/sampler_gather_kernels.def"
#include "ops/kernels_device.inc"
