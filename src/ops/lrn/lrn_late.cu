// SPDX-License-Identifier: Apache-2.0
//
// The gradient of local response normalization of planes from the first channel on: the kernels' entry
// points.
#include "ops/lrn/lrn_planes.cuh"

#define WD_KERNELS_ROWS "ops/lrn/lrn_late_kernels.def"
#include "ops/kernels_device.inc"
