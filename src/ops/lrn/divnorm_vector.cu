// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization: the kernels' entry points.
#include "ops/lrn/divnorm_ring.cuh"
#include "ops/lrn/divnorm_sheet.cuh"
#include "ops/lrn/divnorm_vector.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/lrn/divnorm_vector_kernels.def"
#include "ops/kernels_device.inc"
