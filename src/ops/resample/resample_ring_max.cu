// SPDX-License-Identifier: Apache-2.0
//
// Maxima with their places from rings of lines, or straight from memory: the instances.
#include "ops/resample/resample_ring_max.cuh"
#include "ops/resample/resample_ring_max_words.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/resample/resample_ring_max_kernels.def"
#include "ops/kernels_device.inc"
