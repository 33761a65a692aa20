// SPDX-License-Identifier: Apache-2.0
//
// Local response normalization across channels: the kernels' entry points.
#include "ops/lrn/lrn_pixels.cuh"
#include "ops/lrn/lrn_planes.cuh"

#define WD_KERNELS_ROWS "ops/lrn/lrn_vector_kernels.def"
#include "ops/kernels_device.inc"
