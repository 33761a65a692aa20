// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums by rings of lines, and of images that are enlarged: the instances.
#include "ops/resample/resample_ring.cuh"
#include "ops/resample/resample_up.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/resample/resample_ring_kernels.def"
#include "ops/kernels_device.inc"
