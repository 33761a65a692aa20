// SPDX-License-Identifier: Apache-2.0
//
// Spatial transformers: the kernels' entry points.
#include "ops/spatial/grid_vector.cuh"
#include "ops/spatial/sampler_vector.cuh"

#define WD_KERNELS_ROWS "ops/spatial/spatial_vector_kernels.def"
#include "ops/kernels_device.inc"
