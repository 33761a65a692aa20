// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients by regions: the kernel's entry point.
#include "ops/spatial/sampler_regions.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/spatial/sampler_regions_kernels.def"
#include "ops/kernels_device.inc"
