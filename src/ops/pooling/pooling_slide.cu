// SPDX-License-Identifier: Apache-2.0
//
// Long windows that begin at every element of a plane, and gradients of such averages.
#include "ops/pooling/pooling_slide.cuh"
#include "ops/pooling/pooling_slide_rows.cuh"

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/pooling/pooling_slide_kernels.def"
#include "ops/kernels_device.inc"
