// SPDX-License-Identifier: Apache-2.0
//
// Maxima with their places from rings of lines: the instances.
#include "ops/resample/resample_ring_max.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/resample/resample_ring_max_kernels.def"
#include "ops/kernels_device.inc"
